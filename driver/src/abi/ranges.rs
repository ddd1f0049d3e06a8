//! Calls of a transaction about ranges of keys.

use super::{
    future::FDBFuture,
    memory::copy,
    transaction::{FDBTransaction, borrow, isolation},
    types::fdb_bool_t,
};
use bytes::Bytes;
use shaketable_session::{Call, Reply};
use shaketable_tx::{Error, KeySelector, RangeOption, Result, StreamingMode};
use std::ffi::c_int;

impl FDBTransaction {
    /// A call about a range: 2005 for an inverted one.
    fn call_range(
        &self,
        begin: Bytes,
        end: Bytes,
        call: impl FnOnce(Bytes, Bytes) -> Call,
        and: impl FnOnce(Result<Reply>) -> Result<Reply> + Send + 'static,
    ) -> *mut FDBFuture {
        match begin > end {
            true => FDBFuture::ready(Err(Error::INVERTED_RANGE)),
            false => self.call_and(call(begin, end), and),
        }
    }
}

/// The sampled size of a range.
///
/// # Safety
///
/// `tr` is a transaction that was not destroyed, and the keys are null or readable for their lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_transaction_get_estimated_range_size_bytes(
    tr: *mut FDBTransaction,
    begin: *const u8,
    begin_length: c_int,
    end: *const u8,
    end_length: c_int,
) -> *mut FDBFuture {
    // SAFETY: as the caller promises.
    let (transaction, begin, end) = unsafe { (borrow(tr), copy(begin, begin_length), copy(end, end_length)) };
    transaction.call_range(begin, end, Call::GetEstimatedRangeSize, |answer| answer)
}

/// Keys that divide a range into chunks of about a size.
///
/// # Safety
///
/// `tr` is a transaction that was not destroyed, and the keys are null or readable for their lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_transaction_get_range_split_points(
    tr: *mut FDBTransaction,
    begin: *const u8,
    begin_length: c_int,
    end: *const u8,
    end_length: c_int,
    chunk_size: i64,
) -> *mut FDBFuture {
    // SAFETY: as the caller promises.
    unsafe {
        fdb_transaction_get_range_split_points_with_limit(
            tr,
            begin,
            begin_length,
            end,
            end_length,
            chunk_size,
            -1,
        )
    }
}

/// At most `limit` of the keys that divide a range into chunks of about a size; all of them if it is
/// negative. The ends of the range are not counted. Of the header of 8.0.
///
/// # Safety
///
/// As for [`fdb_transaction_get_range_split_points`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_transaction_get_range_split_points_with_limit(
    tr: *mut FDBTransaction,
    begin: *const u8,
    begin_length: c_int,
    end: *const u8,
    end_length: c_int,
    chunk_size: i64,
    limit: c_int,
) -> *mut FDBFuture {
    // SAFETY: as the caller promises.
    let (transaction, begin, end) = unsafe { (borrow(tr), copy(begin, begin_length), copy(end, end_length)) };
    let limited = move |answer| match (answer, usize::try_from(limit)) {
        (Ok(Reply::Keys(mut keys)), Ok(limit)) => {
            let last = keys.len().saturating_sub(1);
            keys.drain(last.min(limit.saturating_add(1))..last);
            Ok(Reply::Keys(keys))
        }
        (answer, _) => answer,
    };
    transaction.call_range(
        begin,
        end,
        |begin, end| Call::GetRangeSplitPoints(begin, end, chunk_size),
        limited,
    )
}

/// The parameters of a range read that are not keys.
struct Limits {
    limit: c_int,
    target_bytes: c_int,
    mode: c_int,
    iteration: c_int,
    reverse: fdb_bool_t,
}

/// A limit: 0 and, as for the C client, -1 are none. 2012 for other negative ones.
fn limit(n: c_int) -> Result<Option<usize>> {
    match n {
        -1 | 0 => Ok(None),
        n => usize::try_from(n).map(Some).map_err(|_| Error::RANGE_LIMITS_INVALID),
    }
}

impl Limits {
    /// The range between two selectors, and the iteration. 2000 for an unknown mode and for iterator mode
    /// without an iteration, 2210 for exact mode without limits, 2012 for negative limits.
    fn range(&self, begin: KeySelector, end: KeySelector) -> Result<(RangeOption, usize)> {
        let mode = match self.mode {
            -2 => StreamingMode::WantAll,
            -1 if self.iteration <= 0 => return Err(Error::CLIENT_INVALID_OPERATION),
            -1 => StreamingMode::Iterator,
            0 if matches!((self.limit, self.target_bytes), (-1 | 0, -1 | 0)) => {
                return Err(Error::EXACT_MODE_WITHOUT_LIMITS);
            }
            0 => StreamingMode::Exact,
            1 => StreamingMode::Small,
            2 => StreamingMode::Medium,
            3 => StreamingMode::Large,
            4 => StreamingMode::Serial,
            _ => return Err(Error::CLIENT_INVALID_OPERATION),
        };
        let range = RangeOption {
            limit: limit(self.limit)?,
            target_bytes: limit(self.target_bytes)?.unwrap_or(0),
            mode,
            reverse: self.reverse != 0,
            ..RangeOption::between(begin, end)
        };
        Ok((range, usize::try_from(self.iteration).unwrap_or(0).max(1)))
    }
}

/// Defines functions that read a range between two selectors. Their own parameters follow the selectors.
macro_rules! range_reads {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident($($own:ident: $type:ty),*) => |$range:ident, $iteration:ident, $isolation:ident| $call:expr;
    )*) => {
        $(
            $(#[doc = $doc])+
            ///
            /// # Safety
            ///
            /// `tr` is a transaction that was not destroyed, and each pointer is null or readable for the
            /// length that follows it.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                tr: *mut FDBTransaction,
                begin: *const u8,
                begin_length: c_int,
                begin_or_equal: fdb_bool_t,
                begin_offset: c_int,
                end: *const u8,
                end_length: c_int,
                end_or_equal: fdb_bool_t,
                end_offset: c_int,
                $($own: $type,)*
                limit: c_int,
                target_bytes: c_int,
                mode: c_int,
                iteration: c_int,
                snapshot: fdb_bool_t,
                reverse: fdb_bool_t,
            ) -> *mut FDBFuture {
                // SAFETY: as the caller promises.
                let transaction = unsafe { borrow(tr) };
                // SAFETY: as the caller promises.
                let (begin, end) = unsafe { (copy(begin, begin_length), copy(end, end_length)) };
                let begin = KeySelector::new(begin, begin_or_equal != 0, begin_offset);
                let end = KeySelector::new(end, end_or_equal != 0, end_offset);
                match (Limits { limit, target_bytes, mode, iteration, reverse }).range(begin, end) {
                    Ok(($range, $iteration)) => {
                        let $isolation = isolation(snapshot);
                        transaction.call($call)
                    }
                    Err(error) => FDBFuture::ready(Err(error)),
                }
            }
        )*
    };
}

range_reads! {
    /// A batch of a range.
    fdb_transaction_get_range() => |range, iteration, isolation| Call::GetRange(range, iteration, isolation);
    /// A batch of a mapped range.
    fdb_transaction_get_mapped_range(mapper: *const u8, mapper_length: c_int) => |range, iteration, isolation| {
        // SAFETY: readable for its length, as the caller promises.
        let mapper = unsafe { copy(mapper, mapper_length) };
        Call::GetMappedRange(range, mapper, iteration, isolation)
    };
}
