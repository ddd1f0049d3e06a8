//! Reads of whole ranges, with a bound: what cannot end within the five seconds of a transaction is refused
//! instead of being retried for ever.

use crate::{
    limits::{READ_COST, READ_LIMIT, TooLarge},
    tx::{self, Isolation, KeyValue, RangeOption, Transaction},
};
use futures::TryStreamExt;
use std::{
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering},
};

/// How many reads of one call are under way at once.
pub(crate) const AT_ONCE: usize = 16;

/// What one call may read in all its reads together: [`READ_LIMIT`] bytes of keys and values.
pub(crate) struct Allowance {
    left: AtomicUsize,
}

impl Allowance {
    pub(crate) fn new() -> Allowance {
        Allowance { left: AtomicUsize::new(READ_LIMIT) }
    }

    /// Counts so many reads, each [`READ_COST`], before they are begun.
    pub(crate) fn reads(&self, reads: usize) -> Result<(), TooLarge> {
        self.bytes(reads.saturating_mul(READ_COST))
    }

    /// [`all`] rows of a range, counted with those of the other reads.
    pub(crate) async fn all<T, E>(
        &self,
        tx: &T,
        range: RangeOption,
        isolation: Isolation,
    ) -> Result<Vec<KeyValue>, E>
    where
        T: Transaction,
        E: From<tx::Error> + From<TooLarge>,
    {
        let mut rows = Vec::new();
        let mut stream = pin!(tx.get_ranges_keyvalues(range, isolation));
        while let Some(row) = stream.try_next().await? {
            self.bytes(row.key.len() + row.value.len())?;
            rows.push(row);
        }
        Ok(rows)
    }

    /// Counts so many bytes that were read.
    pub(crate) fn bytes(&self, bytes: usize) -> Result<(), TooLarge> {
        let left = |left: usize| left.checked_sub(bytes);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left) {
            Ok(_) => Ok(()),
            Err(_) => Err(TooLarge::Read { limit: READ_LIMIT }),
        }
    }
}

/// All rows of a range. [`TooLarge::Read`] as soon as their keys and values exceed [`READ_LIMIT`].
pub(crate) async fn all<T, E>(tx: &T, range: RangeOption, isolation: Isolation) -> Result<Vec<KeyValue>, E>
where
    T: Transaction,
    E: From<tx::Error> + From<TooLarge>,
{
    Allowance::new().all(tx, range, isolation).await
}

/// The first `limit` rows of `[begin, end)`; none when that is inverted. A limit of 0 is no rows, and not
/// all of them as for FoundationDB.
pub(crate) async fn page<T, E>(
    tx: &T,
    (begin, end): (Vec<u8>, Vec<u8>),
    limit: usize,
    isolation: Isolation,
) -> Result<Vec<KeyValue>, E>
where
    T: Transaction,
    E: From<tx::Error> + From<TooLarge>,
{
    match limit > 0 && begin < end {
        true => all(tx, RangeOption::new(begin, end).limit(limit), isolation).await,
        false => Ok(Vec::new()),
    }
}

/// The rows of a range up to the one with which their keys and values reach `bytes`, and whether the read
/// stopped there: for who can do with fewer rows.
pub(crate) async fn first<T: Transaction>(
    tx: &T,
    range: RangeOption,
    bytes: usize,
    isolation: Isolation,
) -> tx::Result<(Vec<KeyValue>, bool)> {
    let mut rows = Vec::new();
    let (mut read, mut stream) = (0, pin!(tx.get_ranges_keyvalues(range, isolation)));
    while let Some(row) = stream.try_next().await? {
        read += row.key.len() + row.value.len();
        rows.push(row);
        if read >= bytes {
            return Ok((rows, true));
        }
    }
    Ok((rows, false))
}
