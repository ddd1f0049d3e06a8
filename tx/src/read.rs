//! Reads of whole ranges, with a limit: a read that cannot finish within the five-second limit of a
//! transaction is refused instead of being retried forever.

use crate::{
    Isolation, KeyValue, RangeOption, Transaction,
    limits::{READ_COST, READ_LIMIT, TooLarge},
};
use futures::TryStreamExt;
use std::{
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering},
};

/// The number of concurrent reads of one call.
pub const AT_ONCE: usize = 16;

/// The total that one call may read in all its reads: [`READ_LIMIT`] bytes of keys and values.
pub struct Allowance {
    left: AtomicUsize,
}

impl Allowance {
    /// The whole allowance.
    #[allow(clippy::new_without_default, reason = "an allowance is begun where it is used")]
    pub fn new() -> Allowance {
        Allowance { left: AtomicUsize::new(READ_LIMIT) }
    }

    /// Counts `reads` reads at [`READ_COST`] each, before they start.
    pub fn reads(&self, reads: usize) -> Result<(), TooLarge> {
        self.bytes(reads.saturating_mul(READ_COST))
    }

    /// Reads [`all`] rows of a range and counts them against this allowance.
    pub async fn all<T, E>(
        &self,
        tx: &T,
        range: RangeOption,
        isolation: Isolation,
    ) -> Result<Vec<KeyValue>, E>
    where
        T: Transaction,
        E: From<crate::Error> + From<TooLarge>,
    {
        let mut rows = Vec::new();
        let mut stream = pin!(tx.get_ranges_keyvalues(range, isolation));
        while let Some(row) = stream.try_next().await? {
            self.bytes(row.key.len() + row.value.len())?;
            rows.push(row);
        }
        Ok(rows)
    }

    /// Counts `bytes` bytes that were read.
    pub fn bytes(&self, bytes: usize) -> Result<(), TooLarge> {
        let left = |left: usize| left.checked_sub(bytes);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left) {
            Ok(_) => Ok(()),
            Err(_) => Err(TooLarge::Read { limit: READ_LIMIT }),
        }
    }
}

/// Reads all rows of a range. Fails with [`TooLarge::Read`] as soon as their keys and values exceed
/// [`READ_LIMIT`].
pub async fn all<T, E>(tx: &T, range: RangeOption, isolation: Isolation) -> Result<Vec<KeyValue>, E>
where
    T: Transaction,
    E: From<crate::Error> + From<TooLarge>,
{
    Allowance::new().all(tx, range, isolation).await
}

/// Reads the first `limit` rows of `[begin, end)`; none if the range is inverted. A limit of 0 means no rows,
/// whereas FoundationDB takes it as unlimited.
pub async fn page<T, E>(
    tx: &T,
    (begin, end): (Vec<u8>, Vec<u8>),
    limit: usize,
    isolation: Isolation,
) -> Result<Vec<KeyValue>, E>
where
    T: Transaction,
    E: From<crate::Error> + From<TooLarge>,
{
    match limit > 0 && begin < end {
        true => all(tx, RangeOption::new(begin, end).limit(limit), isolation).await,
        false => Ok(Vec::new()),
    }
}

/// Reads the rows of a range up to and including the row with which their keys and values reach `bytes`, and
/// reports whether the read stopped there: for callers that can work with fewer rows.
pub async fn first<T: Transaction>(
    tx: &T,
    range: RangeOption,
    bytes: usize,
    isolation: Isolation,
) -> crate::Result<(Vec<KeyValue>, bool)> {
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
