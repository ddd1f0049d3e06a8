//! The transaction contract: the guarantees of a FoundationDB client, as two traits.
//!
//! [`Database`] and [`Transaction`] cover the client API that layers need. Names follow the `foundationdb`
//! crate. The behaviour is that of a FoundationDB 7.4 client at API version 740; the simulated cluster and
//! the real backend implement the same traits.
//!
//! Two parts of the API are left out: tenants, which FoundationDB has since removed, and blob granules. Also
//! left out are calls that manage a cluster's processes instead of its data (rebooting workers, forcing
//! recoveries).
//!
//! Layer functions take `&T where T: Transaction`, so that several of them can be combined in one
//! transaction; database-level forms call [`Database::run`].
//!
//! Beside the traits is what is built from them alone: operations that take effect exactly once ([`once`]),
//! claims that code makes about its own runs ([`points`]), FoundationDB's sizes ([`limits`]), reads of ranges
//! with a bound ([`mod@read`]), nested tuples ([`nesting`]), and how FoundationDB's own client is started
//! ([`real`]).

#![allow(
    clippy::manual_async_fn,
    reason = "a plain async fn that borrows into `Database::run` is not Send (rust-lang/rust#100013)"
)]

mod any;
mod env;
mod error;
pub mod limits;
mod macros;
mod mapped;
pub mod mutants;
pub mod nesting;
pub mod once;
mod options;
pub mod points;
pub mod read;
pub mod real;
mod run;
pub mod show;
mod turns;
mod types;

pub use any::{Db, FirstWrite, Tx, downcast};
pub use env::{Env, Environment};
pub use error::{Error, Result};
pub use mapped::{MappedBatch, MappedRow, Mapper};
pub use options::{DatabaseOption, TransactionOption};
pub use run::{Attempt, RetryError, RunError};
pub use turns::Turns;
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

/// A database handle: creates transactions, holds their default options, and provides time and randomness.
pub trait Database: Clone + Send + Sync + 'static {
    /// The transactions it creates.
    type Transaction: Transaction;

    /// A new transaction with the database's default options.
    fn create_transaction(&self) -> Result<Self::Transaction>;

    /// Sets a default option for transactions created from now on. Fails with 2006 for an invalid value, with
    /// 2007 for an invalid option.
    fn set_option(&self, option: DatabaseOption) -> Result<()>;

    /// [`set_option`](Database::set_option) by numeric code and value; see [`DatabaseOption::from_raw`].
    fn set_option_raw(&self, code: i32, value: Option<&[u8]>) -> Result<()> {
        self.set_option(DatabaseOption::from_raw(code, value)?)
    }

    /// Time and randomness of this backend.
    fn env(&self) -> &Env;

    /// Runs `body` in a transaction and commits it, retrying as FoundationDB's bindings do: every
    /// FoundationDB error is passed to [`Transaction::on_error`]; any other error of the body ends the loop
    /// without a commit.
    ///
    /// The body may run many times and must have no effects outside its transaction. Once set,
    /// [`Attempt::maybe_committed`] and [`RunError::maybe_committed`] stay set.
    ///
    /// An async function that calls `run` with borrowed captures and must itself be `Send` has to be written
    /// as `fn f(..) -> impl Future<Output = ..> + Send { async move { .. } }`: rustc cannot prove that a
    /// plain `async fn` is `Send` there (rust-lang/rust#100013).
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

/// A transaction: a cheap handle whose clones refer to the same transaction.
///
/// A read is *issued* when its method is called, not when its future is first polled: it sees the writes made
/// before the call and none made after it. Commit waits for the reads issued before it, but for one that
/// nobody polls only as long as a transaction may live. `set`, `clear` and the atomic operations return
/// nothing; their size and range errors are returned by the next call that returns a result, or by the commit
/// (the C API defers them in the same way).
///
/// After [`commit`](Transaction::commit) has started, every other call returns 2017, and the commit then
/// fails with 2017 too unless option 701 is set. After a successful commit the transaction must be
/// [`reset`](Transaction::reset) before it is used again.
///
/// Calls of layers may run side by side in one transaction: each takes its turn
/// ([`writing`](Transaction::writing), [`reading`](Transaction::reading)), so that they have the effects and
/// answers of calls one after the other, in the order in which their futures were first polled. A call that
/// has begun must be polled to its end, or dropped, before the next one can go on.
pub trait Transaction: Clone + Send + Sync + 'static {
    /// The turns of this transaction. A backend keeps one [`Turns::default`] for each transaction, in its
    /// handles.
    fn turns(&self) -> &Turns;

    /// A handle of the same transaction with these turns in place of its own.
    fn with_turns(&self, turns: Turns) -> Self;

    /// Waits until the calls of layers that began before this one have ended. The turn lasts until the last
    /// clone of the returned handle is dropped; calls through this handle are part of the turn, and wait for
    /// each other only.
    ///
    /// A layer's call that writes begins with `let tx = &tx.writing().await;`, and passes this handle on to
    /// whatever it calls.
    fn writing(&self) -> impl Future<Output = Self> + Send {
        async { self.with_turns(self.turns().alone().await) }
    }

    /// [`writing`](Transaction::writing) for a call that only reads: it shares its turn with others that do.
    fn reading(&self) -> impl Future<Output = Self> + Send {
        async { self.with_turns(self.turns().shared().await) }
    }

    /// The value of `key`, or `None`.
    fn get(
        &self,
        key: &[u8],
        isolation: Isolation,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<Self>;

    /// The key that `selector` resolves to, clamped to the range from `""` to `\xff`.
    fn get_key(
        &self,
        selector: &KeySelector,
        isolation: Isolation,
    ) -> impl Future<Output = Result<Bytes>> + Send + use<Self>;

    /// One batch of a range. `iteration` counts from 1 and determines the batch sizes of
    /// [`StreamingMode::Iterator`]. When [`RangeBatch::more`] is set, the range continues after the last row.
    /// Treating the first batch as the whole range is a common bug: use
    /// [`get_range_all`](Transaction::get_range_all) or
    /// [`get_ranges_keyvalues`](Transaction::get_ranges_keyvalues).
    fn get_range(
        &self,
        range: &RangeOption,
        iteration: usize,
        isolation: Isolation,
    ) -> impl Future<Output = Result<RangeBatch>> + Send + use<Self>;

    /// The rows of a range as a stream, fetched in as many batches as needed.
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

    /// All rows of a range, fetched in as many batches as needed.
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

    /// One batch of a range, and of the ranges that its rows map to; [`Mapper`] describes the mapping and its
    /// errors. `range` and `iteration` are as for [`get_range`](Transaction::get_range).
    ///
    /// Everything that is read is added to the read conflict ranges when the result arrives. If the
    /// transaction has by then written any of it, the read fails with 2039. Snapshot reads, and reads with
    /// read-your-writes disabled, fail with 2108, special keys with 2000. A commit does not wait for this
    /// read, and an error of this read does not make a commit fail.
    ///
    /// A backend without mapped ranges returns 2108.
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

    /// Clears `[begin, end)`. For an inverted range, the next call that returns a result fails with 2005.
    fn clear_range(&self, begin: &[u8], end: &[u8]);

    /// Applies an atomic operation. For the versionstamped operations, the last four bytes of the key or of
    /// the operand are the little-endian offset of the ten bytes to replace.
    fn atomic_op(&self, key: &[u8], operand: &[u8], op: MutationType);

    /// [`atomic_op`](Transaction::atomic_op) by numeric code; fails with 2018 for an unknown code.
    fn atomic_op_code(&self, key: &[u8], operand: &[u8], code: u32) -> Result<()> {
        let op = MutationType::from_code(code).ok_or(Error::INVALID_MUTATION_TYPE)?;
        self.atomic_op(key, operand, op);
        Ok(())
    }

    /// Adds a conflict range `[begin, end)` without reading or writing it. Fails with 2005 if the range is
    /// inverted.
    fn add_conflict_range(&self, begin: &[u8], end: &[u8], kind: ConflictRangeType) -> Result<()>;

    /// Adds a conflict range for the single key `key`.
    fn add_conflict_key(&self, key: &[u8], kind: ConflictRangeType) -> Result<()> {
        self.add_conflict_range(key, &key_after(key), kind)
    }

    /// A watch on `key`, armed when the transaction commits. Completes when the value differs from the value
    /// that this transaction sees: possibly late, and possibly never if the value changes back. Fails with
    /// the commit's error, with 1025 on reset, with 1032 beyond `max_watches`, and with 1034 if
    /// read-your-writes is disabled. If the transaction is cancelled or times out before the commit and the
    /// watch has already read its key, the watch does not complete until the reset. From the commit until its
    /// future is dropped, the watch is active whether or not the future is polled.
    fn watch(&self, key: &[u8]) -> BoxFuture<'static, Result<()>>;

    /// The read version, fetched when first needed. Commits acknowledged before that are visible at it.
    fn get_read_version(&self) -> impl Future<Output = Result<i64>> + Send + use<Self>;

    /// Sets the read version. If it was already set, the next call fails with 2010.
    fn set_read_version(&self, version: i64);

    /// The version at which the transaction committed; -1 if it was read-only.
    fn get_committed_version(&self) -> Result<i64>;

    /// The ten bytes of the versionstamp (8 of commit version, 2 of batch order, big-endian). Must be
    /// requested before the commit, and completes with it. Fails with 2021 for a read-only transaction, with
    /// 2020 if the commit failed, and with 1100 if the transaction is reset.
    fn get_versionstamp(&self) -> BoxFuture<'static, Result<[u8; 10]>>;

    /// The approximate number of bytes that the commit would send, computed locally.
    fn get_approximate_size(&self) -> impl Future<Output = Result<i64>> + Send + use<Self>;

    /// A sampled estimate of the bytes stored in `[begin, end)`; imprecise below about 3 MB.
    fn get_estimated_range_size_bytes(
        &self,
        begin: &[u8],
        end: &[u8],
    ) -> impl Future<Output = Result<i64>> + Send + use<Self>;

    /// Keys that split `[begin, end)` into chunks of about `chunk_size` bytes, including `begin` and `end`.
    fn get_range_split_points(
        &self,
        begin: &[u8],
        end: &[u8],
        chunk_size: i64,
    ) -> impl Future<Output = Result<Vec<Bytes>>> + Send + use<Self>;

    /// The addresses, as `IP:port`, of the storage servers that hold `key`; none for keys at or after
    /// `\xff\xff`. Fails with 2108 on a backend without addresses.
    fn get_addresses_for_key(
        &self,
        _key: &[u8],
    ) -> impl Future<Output = Result<Vec<String>>> + Send + use<Self> {
        ready(Err(Error::UNSUPPORTED_OPERATION))
    }

    /// How long proxies have delayed the transaction because one of its tags is throttled, since the attempt
    /// began. Fails with 2108 on a backend that does not support it.
    fn get_tag_throttled_duration(&self) -> impl Future<Output = Result<Duration>> + Send + use<Self> {
        ready(Err(Error::UNSUPPORTED_OPERATION))
    }

    /// The cost of the attempt so far, as throttling by quota computes it: bytes in pages of 4,096, for each
    /// read that reached a storage server and, from the commit on, four times as much for each write. Fails
    /// with 2108 on a backend that does not support it.
    fn get_total_cost(&self) -> impl Future<Output = Result<i64>> + Send + use<Self> {
        ready(Err(Error::UNSUPPORTED_OPERATION))
    }

    /// Sets an option. Fails with 2006 for an invalid value, with 2007 for an invalid option, and with 2000
    /// if it is set too late.
    fn set_option(&self, option: TransactionOption) -> Result<()>;

    /// [`set_option`](Transaction::set_option) by numeric code and value; see
    /// [`TransactionOption::from_raw`].
    fn set_option_raw(&self, code: i32, value: Option<&[u8]>) -> Result<()> {
        self.set_option(TransactionOption::from_raw(code, value)?)
    }

    /// Commits. See the trait's documentation for what may be called afterwards, and
    /// [`Error::leaves_commit_unknown`] for the possible meanings of a failure.
    fn commit(&self) -> impl Future<Output = Result<()>> + Send + use<Self>;

    /// If `error` is retryable, waits for FoundationDB's backoff and resets the transaction; otherwise
    /// returns the error. Returns 1031 once the timeout has passed.
    fn on_error(&self, error: Error) -> impl Future<Output = Result<()>> + Send + use<Self>;

    /// Resets the transaction to its initial state, except for the database's defaults and the backoff.
    fn reset(&self);

    /// Cancels all outstanding operations with 1025; only `reset` makes the handle usable again.
    fn cancel(&self);
}

/// The part of `range` that remains after `batch`, or `None` if the batch reached its end.
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
