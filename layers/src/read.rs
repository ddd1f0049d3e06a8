//! Reads of whole ranges, with a bound: what cannot end within the five seconds of a transaction is refused
//! instead of being retried for ever.

use crate::{
    limits::{READ_LIMIT, TooLarge},
    tx::{self, Isolation, KeyValue, RangeOption, Transaction},
};
use futures::TryStreamExt;
use std::pin::pin;

/// How many reads of one call are under way at once.
pub(crate) const AT_ONCE: usize = 16;

/// All rows of a range. [`TooLarge::Read`] as soon as their keys and values exceed [`READ_LIMIT`].
pub(crate) async fn all<T, E>(tx: &T, range: RangeOption, isolation: Isolation) -> Result<Vec<KeyValue>, E>
where
    T: Transaction,
    E: From<tx::Error> + From<TooLarge>,
{
    let mut rows = Vec::new();
    let (mut bytes, mut stream) = (0, pin!(tx.get_ranges_keyvalues(range, isolation)));
    while let Some(row) = stream.try_next().await? {
        bytes += row.key.len() + row.value.len();
        if bytes > READ_LIMIT {
            return Err(TooLarge::Read { limit: READ_LIMIT }.into());
        }
        rows.push(row);
    }
    Ok(rows)
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
