//! The layer: how many there are of each item.
//!
//! Its functions work inside the caller's transaction, and compose in it: each takes its turn, so that
//! callers may also join their futures.
//!
//! ```text
//! ("stock", item) = how many there are, eight bytes, little-endian
//! ```

use foundationdb_tuple::Subspace;
use shaketable_tx::{self as tx, Isolation, MutationType, RangeOption, Transaction};

shaketable_tx::refusals! {
    /// Why an operation was refused.
    pub enum Refusal {
        SoldOut = "there are not that many",
    }
}

fn space() -> Subspace {
    Subspace::from("stock")
}

/// Where an item's number is stored.
pub fn key(item: u32) -> Vec<u8> {
    space().pack(&item)
}

fn number(value: &[u8]) -> u64 {
    value.try_into().map_or(0, u64::from_le_bytes)
}

/// Adds some of an item. Two additions do not conflict.
pub async fn add<T: Transaction>(tx: &T, item: u32, many: u64) {
    let tx = tx.writing().await;
    tx.atomic_op(&key(item), &many.to_le_bytes(), MutationType::Add);
}

/// Takes some of an item, and returns how many are left.
pub async fn take<T: Transaction>(tx: &T, item: u32, many: u64) -> Result<u64, Refusal> {
    let tx = &tx.writing().await;
    let there_are = count(tx, item, Isolation::Serializable).await?;
    let left = there_are.checked_sub(many).ok_or(Refusal::SoldOut)?;
    tx.set(&key(item), &left.to_le_bytes());
    Ok(left)
}

/// How many there are of an item.
pub async fn count<T: Transaction>(tx: &T, item: u32, isolation: Isolation) -> tx::Result<u64> {
    let tx = tx.reading().await;
    Ok(tx
        .get(&key(item), isolation)
        .await?
        .map_or(0, |value| number(&value)))
}

/// How many there are of each item that is stored, in the items' order.
pub async fn all<T: Transaction>(tx: &T) -> tx::Result<Vec<u64>> {
    let tx = tx.reading().await;
    let rows = RangeOption::from(space().range());
    let rows = tx.get_range_all(rows, Isolation::Serializable).await?;
    Ok(rows.iter().map(|row| number(&row.value)).collect())
}
