//! The transaction contract: what a FoundationDB client promises, as two traits.
//!
//! [`Database`] and [`Transaction`] cover the client API that layers need. Names follow the
//! `foundationdb` crate. Behaviour is that of a FoundationDB 7.4 client at API version 740; the
//! simulated cluster and a real one implement the same traits.
//!
//! Two parts of the API are left out: tenants, which FoundationDB has given up again, and blob granules. So
//! are calls that manage a cluster's processes instead of its data (rebooting workers, forcing recoveries).
//!
//! Layer functions take `&T where T: Transaction`, so that they compose inside one transaction;
//! database-level forms call [`Database::run`].

#[cfg(feature = "contract")]
pub mod contract;
mod env;
mod error;
mod mapped;
mod options;
mod run;
mod types;

pub use env::{Env, Environment};
pub use error::{Error, Result};
pub use mapped::{MappedBatch, MappedRow, Mapper};
pub use options::{DatabaseOption, TransactionOption};
pub use run::{Attempt, RetryError, RunError};
pub use types::{
    ConflictRangeType, Isolation, KEY_SIZE_LIMIT, KeySelector, KeyValue, MutationType, RangeBatch,
    RangeOption, StreamingMode, VALUE_SIZE_LIMIT, key_after, strinc,
};

use bytes::Bytes;
use futures::{Stream, future::BoxFuture};
use std::{
    collections::VecDeque,
    future::{Future, ready},
    time::Duration,
};

/// A database handle: creates transactions, carries their defaults, hands out time and chance.
pub trait Database: Clone + Send + Sync + 'static {
    /// The transactions it creates.
    type Transaction: Transaction;

    /// A new transaction with the database's default options.
    fn create_transaction(&self) -> Result<Self::Transaction>;

    /// Sets a default for transactions created from now on. 2006 or 2007 for a bad value or option.
    fn set_option(&self, option: DatabaseOption) -> Result<()>;

    /// [`set_option`](Database::set_option) by numeric code and value; see [`DatabaseOption::from_raw`].
    fn set_option_raw(&self, code: i32, value: Option<&[u8]>) -> Result<()> {
        self.set_option(DatabaseOption::from_raw(code, value)?)
    }

    /// Time and chance of this backend.
    fn env(&self) -> &Env;

    /// Runs `body` in a transaction and commits it, retrying as FoundationDB's bindings do:
    /// every FoundationDB error goes through [`Transaction::on_error`]; any other error of the
    /// body ends the loop without a commit.
    ///
    /// The body may run many times and must have no effect but through its transaction.
    /// [`Attempt::maybe_committed`] and [`RunError::maybe_committed`] are sticky.
    ///
    /// An async function that calls `run` with borrowed captures, and must itself be `Send`, is
    /// written `fn f(..) -> impl Future<Output = ..> + Send { async move { .. } }`: rustc cannot
    /// see that a plain `async fn` is `Send` there (rust-lang/rust#100013).
    fn run<F, Fut, T, E>(&self, body: F) -> impl Future<Output = Result<T, RunError<E>>> + Send
    where
        F: Fn(Self::Transaction, Attempt) -> Fut + Send + Sync,
        Fut: Future<Output = Result<T, E>> + Send,
        T: Send,
        E: RetryError + Send,
    {
        run::run(self, body)
    }
}

/// A transaction: a cheap handle, clones of which are the same transaction.
///
/// A read is *issued* when its method is called, not when its future is first polled: it sees the
/// writes made before the call and none made after. Commit waits for issued reads that are being
/// polled. `set`, `clear` and the atomic operations answer nothing; their size and range errors
/// are given by the next call that answers, or by the commit (as the C API defers them).
///
/// After [`commit`](Transaction::commit) has begun every other call answers 2017, and the commit
/// fails with it too unless option 701 is set; after it has succeeded the transaction must be
/// [`reset`](Transaction::reset) before it is used again.
pub trait Transaction: Clone + Send + Sync + 'static {
    /// The value of `key`, or `None`.
    fn get(
        &self,
        key: &[u8],
        isolation: Isolation,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<Self>;

    /// The key that `selector` resolves to, clamped to `""` and `\xff`.
    fn get_key(
        &self,
        selector: &KeySelector,
        isolation: Isolation,
    ) -> impl Future<Output = Result<Bytes>> + Send + use<Self>;

    /// One batch of a range. `iteration` counts from 1 and sizes the batches of
    /// [`StreamingMode::Iterator`]. When [`RangeBatch::more`] is set the range continues behind the
    /// last row: taking the first batch for the whole range is a classic bug, use
    /// [`get_range_all`](Transaction::get_range_all) or
    /// [`get_ranges_keyvalues`](Transaction::get_ranges_keyvalues).
    fn get_range(
        &self,
        range: &RangeOption,
        iteration: usize,
        isolation: Isolation,
    ) -> impl Future<Output = Result<RangeBatch>> + Send + use<Self>;

    /// The rows of a range as a stream over as many batches as it takes.
    fn get_ranges_keyvalues(
        &self,
        range: RangeOption,
        isolation: Isolation,
    ) -> impl Stream<Item = Result<KeyValue>> + Send {
        let state = (self.clone(), Some((range, 1)), VecDeque::new());
        futures::stream::try_unfold(state, move |(tx, mut next, mut rows)| async move {
            loop {
                if let Some(row) = rows.pop_front() {
                    return Ok(Some((row, (tx, next, rows))));
                }
                let Some((range, iteration)) = next else {
                    return Ok(None);
                };
                let batch = tx.get_range(&range, iteration, isolation).await?;
                next = continuation(range, &batch).map(|r| (r, iteration + 1));
                rows = batch.rows.into();
            }
        })
    }

    /// All rows of a range, over as many batches as it takes.
    fn get_range_all(
        &self,
        mut range: RangeOption,
        isolation: Isolation,
    ) -> impl Future<Output = Result<Vec<KeyValue>>> + Send {
        async move {
            let mut rows = Vec::new();
            for iteration in 1.. {
                let batch = self.get_range(&range, iteration, isolation).await?;
                let next = continuation(range, &batch);
                if rows.is_empty() {
                    rows = batch.rows;
                } else {
                    rows.extend(batch.rows);
                }
                match next {
                    Some(r) => range = r,
                    None => break,
                }
            }
            Ok(rows)
        }
    }

    /// One batch of a range, and of the ranges that its rows lead to: see [`Mapper`], which says how, and which
    /// errors that can end with. `range` and `iteration` are as for [`get_range`](Transaction::get_range).
    ///
    /// All that is read is added to the read conflict ranges, when the answer comes. None of it may have been
    /// written by the transaction by then: that is 2039. Snapshot reads, and reads while read-your-writes is off,
    /// are 2108, special keys 2000. A commit does not wait for this read, nor does its error make one fail.
    ///
    /// A backend that cannot map answers 2108.
    fn get_mapped_range(
        &self,
        _range: &RangeOption,
        _mapper: &[u8],
        _iteration: usize,
        _isolation: Isolation,
    ) -> impl Future<Output = Result<MappedBatch>> + Send + use<Self> {
        ready(Err(Error::UNSUPPORTED_OPERATION))
    }

    /// Sets `key` to `value`.
    fn set(&self, key: &[u8], value: &[u8]);

    /// Clears `key`.
    fn clear(&self, key: &[u8]);

    /// Clears `[begin, end)`. An inverted range is 2005 at the next call that answers.
    fn clear_range(&self, begin: &[u8], end: &[u8]);

    /// Applies an atomic operation. For the versionstamped ones the last four bytes of the key or
    /// the operand are the little-endian offset of the ten bytes to replace.
    fn atomic_op(&self, key: &[u8], operand: &[u8], op: MutationType);

    /// [`atomic_op`](Transaction::atomic_op) by numeric code; 2018 for a code that is no operation.
    fn atomic_op_code(&self, key: &[u8], operand: &[u8], code: u32) -> Result<()> {
        let op = MutationType::from_code(code).ok_or(Error::INVALID_MUTATION_TYPE)?;
        self.atomic_op(key, operand, op);
        Ok(())
    }

    /// Adds a conflict range `[begin, end)` without reading or writing it. 2005 if inverted.
    fn add_conflict_range(&self, begin: &[u8], end: &[u8], kind: ConflictRangeType) -> Result<()>;

    /// Adds a conflict range for `key` alone.
    fn add_conflict_key(&self, key: &[u8], kind: ConflictRangeType) -> Result<()> {
        self.add_conflict_range(key, &key_after(key), kind)
    }

    /// A watch on `key`, armed when the transaction commits. Completes when the value differs from
    /// what this transaction sees, perhaps late, perhaps not at all for a value that changed back;
    /// fails with the commit's error, 1025 on reset, 1032 beyond `max_watches`, 1034 without
    /// read-your-writes. A cancel or a timeout before the commit leaves it silent until the reset, once
    /// it has read its key. From the commit on it watches whether or not its future is polled, until that
    /// is dropped.
    fn watch(&self, key: &[u8]) -> BoxFuture<'static, Result<()>>;

    /// The read version, fetched at the first need. Commits acknowledged before are visible at it.
    fn get_read_version(&self) -> impl Future<Output = Result<i64>> + Send + use<Self>;

    /// Fixes the read version. 2010 at the next call if it was already fixed.
    fn set_read_version(&self, version: i64);

    /// The version at which the transaction committed, -1 if it was read-only.
    fn get_committed_version(&self) -> Result<i64>;

    /// The ten bytes of the versionstamp (8 of commit version, 2 of batch order, big-endian). To be
    /// requested before the commit, completes with it; 2021 for a read-only transaction, 2020 when
    /// the commit failed, 1100 when the transaction is reset.
    fn get_versionstamp(&self) -> BoxFuture<'static, Result<[u8; 10]>>;

    /// About how many bytes the commit would send, reckoned locally.
    fn get_approximate_size(&self) -> impl Future<Output = Result<i64>> + Send + use<Self>;

    /// A sampled estimate of the bytes stored in `[begin, end)`; rough below some 3 MB.
    fn get_estimated_range_size_bytes(
        &self,
        begin: &[u8],
        end: &[u8],
    ) -> impl Future<Output = Result<i64>> + Send + use<Self>;

    /// Keys that split `[begin, end)` into pieces of about `chunk_size` bytes, both ends included.
    fn get_range_split_points(
        &self,
        begin: &[u8],
        end: &[u8],
        chunk_size: i64,
    ) -> impl Future<Output = Result<Vec<Bytes>>> + Send + use<Self>;

    /// The addresses, as `IP:port`, of the storage servers that hold `key`; none for keys at `\xff\xff` and
    /// beyond. 2108 from a backend that has none.
    fn get_addresses_for_key(
        &self,
        _key: &[u8],
    ) -> impl Future<Output = Result<Vec<String>>> + Send + use<Self> {
        ready(Err(Error::UNSUPPORTED_OPERATION))
    }

    /// For how long proxies have held the transaction back because a tag of it is throttled, since the attempt
    /// began. 2108 from a backend that does not know.
    fn get_tag_throttled_duration(&self) -> impl Future<Output = Result<Duration>> + Send + use<Self> {
        ready(Err(Error::UNSUPPORTED_OPERATION))
    }

    /// What the attempt has cost so far, bytes in pages of 4,096, as throttling by quota reckons it: each read that
    /// asked a storage server, and four times as much each write, from the commit on. 2108 from a backend that
    /// does not know.
    fn get_total_cost(&self) -> impl Future<Output = Result<i64>> + Send + use<Self> {
        ready(Err(Error::UNSUPPORTED_OPERATION))
    }

    /// Sets an option; 2006 or 2007 for a bad value or option, 2000 when it comes too late.
    fn set_option(&self, option: TransactionOption) -> Result<()>;

    /// [`set_option`](Transaction::set_option) by numeric code and value; see [`TransactionOption::from_raw`].
    fn set_option_raw(&self, code: i32, value: Option<&[u8]>) -> Result<()> {
        self.set_option(TransactionOption::from_raw(code, value)?)
    }

    /// Commits. See the trait's documentation for what may be called afterwards, and
    /// [`Error::leaves_commit_unknown`] for what a failure can mean.
    fn commit(&self) -> impl Future<Output = Result<()>> + Send + use<Self>;

    /// Waits as FoundationDB's backoff demands and resets the transaction if `error` is worth a
    /// retry; gives the error back otherwise, and 1031 once the timeout has passed.
    fn on_error(&self, error: Error) -> impl Future<Output = Result<()>> + Send + use<Self>;

    /// Makes the transaction as new, but for the database's defaults and the backoff.
    fn reset(&self);

    /// Cancels everything under way with 1025; only `reset` makes the handle usable again.
    fn cancel(&self);
}

/// What remains of `range` after `batch`, or `None` when the batch ended it.
fn continuation(mut range: RangeOption, batch: &RangeBatch) -> Option<RangeOption> {
    if !batch.more {
        return None;
    }
    if let Some(last) = batch.rows.last() {
        if range.reverse {
            range.end = KeySelector::first_greater_or_equal(last.key.clone());
        } else {
            range.begin = KeySelector::first_greater_than(last.key.clone());
        }
    }
    if let Some(limit) = &mut range.limit
        && *limit > 0
    {
        *limit -= batch.rows.len().min(*limit);
        if *limit == 0 {
            return None;
        }
    }
    Some(range)
}
