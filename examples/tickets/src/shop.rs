//! A shop that sells seats, written against the crate `foundationdb` for a real cluster. Nothing here knows
//! that it is shaken.

use foundationdb::{
    Database, FdbBindingError, RangeOption, RetryableTransaction,
    tuple::{Subspace, pack, unpack},
};
use futures::TryStreamExt;
use std::{
    error::Error,
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::time::timeout;

/// Every seat is sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoldOut;

impl fmt::Display for SoldOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sold out")
    }
}

impl Error for SoldOut {}

/// The seats that are free, and the seat of each order.
pub fn space() -> Subspace {
    Subspace::from("tickets")
}

/// The key of a free seat.
pub fn free(seat: u32) -> Vec<u8> {
    space().pack(&("free", seat))
}

/// The key of an order.
pub fn order(order: u64) -> Vec<u8> {
    space().pack(&("order", order))
}

/// The key of a sold seat.
pub fn sold(seat: u32) -> Vec<u8> {
    space().pack(&("sold", seat))
}

/// Puts the seats with the numbers below `seats` on sale.
pub async fn open(db: &Database, seats: u32) -> Result<(), FdbBindingError> {
    db.run(|tx, _| async move {
        (0..seats).for_each(|seat| tx.set(&free(seat), b""));
        Ok(())
    })
    .await
}

/// Takes the first free seat out of those on sale, for an order.
async fn take(tx: &RetryableTransaction, number: u64) -> Result<u32, FdbBindingError> {
    let on_sale = space().subspace(&("free",));
    let first = RangeOption { limit: Some(1), ..RangeOption::from(&on_sale) };
    let rows = tx.get_range(&first, 1, false).await?;
    let row = rows.first().ok_or_else(|| FdbBindingError::new_custom_error(Box::new(SoldOut)))?;
    let seat: u32 = on_sale.unpack(row.key()).map_err(FdbBindingError::PackError)?;
    tx.clear(row.key());
    tx.set(&sold(seat), &pack(&number));
    tx.set(&order(number), &pack(&seat));
    Ok(seat)
}

/// The number of the next order of this process. Two processes, or two runs in one, have no order in common
/// by luck alone.
pub fn next_order() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1_000_000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Buys a seat: the one that the order has, if it has one already.
pub async fn buy(db: &Database, number: u64) -> Result<u32, FdbBindingError> {
    db.run(|tx, _| async move {
        match tx.get(&order(number), false).await? {
            Some(seat) => unpack(&seat).map_err(FdbBindingError::PackError),
            None => take(&tx, number).await,
        }
    })
    .await
}

/// Buys a seat, as one writes it first: if the cluster does not say whether a commit succeeded, `run` calls
/// the function again, and it takes another seat.
pub async fn buy_as_written_first(db: &Database, number: u64) -> Result<u32, FdbBindingError> {
    db.run(|tx, _| async move { take(&tx, number).await }).await
}

/// Gives the seat of an order back, if it has one.
pub async fn give_back(db: &Database, number: u64) -> Result<(), FdbBindingError> {
    take_back(db, number).await.map(|_| ())
}

/// Gives the seat of an order back, and returns it. If the result of a commit is unknown, `run` calls the
/// function again, and it finds no seat.
pub async fn take_back(db: &Database, number: u64) -> Result<Option<u32>, FdbBindingError> {
    db.run(|tx, _| async move {
        let Some(seat) = tx.get(&order(number), false).await? else { return Ok(None) };
        let seat: u32 = unpack(&seat).map_err(FdbBindingError::PackError)?;
        tx.clear(&order(number));
        tx.clear(&sold(seat));
        tx.set(&free(seat), b"");
        Ok(Some(seat))
    })
    .await
}

/// How many seats are on sale.
pub async fn count(db: &Database) -> Result<usize, FdbBindingError> {
    db.run(|tx, _| async move {
        let on_sale = RangeOption::from(&space().subspace(&("free",)));
        let seats = tx.get_ranges_keyvalues(on_sale, true);
        Ok(seats.try_fold(0, async |count, _| Ok(count + 1)).await?)
    })
    .await
}

/// How many seats are on sale, if it takes no longer than this to know.
pub async fn count_within(db: &Database, patience: Duration) -> Result<Option<usize>, FdbBindingError> {
    timeout(patience, count(db)).await.map_or(Ok(None), |count| count.map(Some))
}

/// How many seats the first batch of those on sale has: `get_range` returns no more.
pub async fn count_first_batch(db: &Database) -> Result<usize, FdbBindingError> {
    db.run(|tx, _| async move {
        let on_sale = RangeOption::from(&space().subspace(&("free",)));
        Ok(tx.get_range(&on_sale, 1, true).await?.len())
    })
    .await
}
