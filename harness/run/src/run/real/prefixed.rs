//! A separate keyspace within a database: every stored key begins with a prefix, which the application does
//! not see.
//!
//! The application uses keys from `""` to `"\xff"` as on an empty cluster, and touches no key outside of the
//! prefix: options that permit writes to system keys are refused. Special keys and system keys are read
//! without the prefix.
//!
//! Four things differ from an empty cluster:
//!
//! * The maximum key length is shorter by the length of the prefix.
//! * A range that begins at a selector with an offset of 0 or less, or ends at one with an offset of more
//!   than 1, is read in two steps, because such a selector could leave the prefix. The second step begins
//!   only when the future is polled.
//! * Conflict ranges of selectors that do leave the prefix extend beyond it, so that writes of other
//!   applications can conflict.
//! * Mapped ranges are refused with 2108, because a mapper creates keys without the prefix.
//!
//! The prefix, and what the run itself writes, do not count against a limit of its size that the application
//! sets, nor in its approximate size, except in the conflict ranges of reads that are under way, or that meet
//! the transaction's own writes.

use crate::describe::pass_on::pass_on;
use bytes::{BufMut, Bytes, BytesMut};
use futures::{
    FutureExt,
    future::{BoxFuture, Either},
};
use parking_lot::Mutex;
use shaketable_tx::{
    ConflictRangeType, Database, DatabaseOption, Env, Error, Isolation, KEY_SIZE_LIMIT, KeySelector,
    KeyValue, MutationType, RangeBatch, RangeOption, Result, Transaction, TransactionOption, Turns,
    key_after, limits::TRANSACTION_SIZE_LIMIT, strinc,
};
use std::{collections::BTreeMap, future::Future, mem, ops::Bound, sync::Arc, time::Duration};

/// The end of the user keys and the begin of the system keys.
const END: &[u8] = b"\xff";

/// What a client counts for a mutation beside its key and its value, at most.
const MUTATION: usize = 64;

/// The keys with a prefix.
#[derive(Clone, Debug)]
pub struct Space {
    prefix: Bytes,
    end: Bytes,
}

/// A database within a prefix of another database.
#[derive(Clone)]
pub(super) struct Prefixed<D> {
    inner: D,
    space: Space,
    /// The size limit that new transactions have, if the application has set one.
    size_limit: Arc<Mutex<Option<i32>>>,
}

/// What of a transaction's size is not the application's.
#[derive(Debug, Default)]
struct Foreign {
    /// How often the size has the prefix, at most: in a mutation, and at both ends of conflict ranges.
    prefixes: usize,
    /// How often it has the prefix at least. An estimate of the size leaves out so many, so that it grows
    /// with each mutation, as layers rely on.
    sure: usize,
    /// The number of attempts before this one. A read that ends in a later one has no conflict range there.
    attempts: usize,
    /// Whether the next write has no conflict range.
    unconflicted: bool,
    /// What the application has written, as the ends of ranges by their begins: a read over it conflicts
    /// with what is between, so that it has several conflict ranges.
    own: BTreeMap<Bytes, Bytes>,
    /// The number of versionstamped keys among it, which may land within any read.
    stamped: usize,
    /// The bytes of what the run itself writes.
    written: usize,
    /// The limit that the application has set.
    limit: Option<i32>,
}

/// A transaction of a [`Prefixed`] database.
#[derive(Clone)]
pub(super) struct PrefixedTransaction<T> {
    inner: T,
    space: Space,
    foreign: Arc<Mutex<Foreign>>,
    default_limit: Arc<Mutex<Option<i32>>>,
}

impl Space {
    /// The keys that begin with `prefix`; `None` if the prefix is empty or is a system key.
    pub fn new(prefix: impl Into<Bytes>) -> Option<Space> {
        let prefix = prefix.into();
        let end = strinc(&prefix)?;
        (!prefix.is_empty() && &prefix[..] < END).then_some(Space { prefix, end })
    }

    /// The keys that continue with `name` after the prefix.
    pub fn below(&self, name: &str) -> Space {
        let prefix: Bytes = [&self.prefix, name.as_bytes()].concat().into();
        // The longer prefix has an end, as the shorter one has.
        let end = strinc(&prefix).unwrap_or_else(|| self.end.clone());
        Space { prefix, end }
    }

    /// The prefix.
    pub fn prefix(&self) -> &Bytes {
        &self.prefix
    }

    /// The begin and the end of the range of all keys.
    pub fn range(&self) -> (Bytes, Bytes) {
        (self.prefix.clone(), self.end.clone())
    }

    /// The options to read all keys.
    pub fn all(&self) -> RangeOption {
        RangeOption::new(self.prefix.clone(), self.end.clone())
    }

    /// The stored form of a key. System keys are unchanged.
    fn key(&self, key: &[u8]) -> Bytes {
        match key < END {
            true => [&self.prefix, key].concat().into(),
            false => Bytes::copy_from_slice(key),
        }
    }

    /// The stored form of a bound of a range. The end of all user keys becomes the end of the prefix.
    fn bound(&self, key: &[u8]) -> Bytes {
        if key == END { self.end.clone() } else { self.key(key) }
    }

    /// The stored form of the two bounds of a range. A range that begins at a user key and ends in the system
    /// keys is replaced by an empty range at its end, which the client refuses or which has no effect.
    fn part(&self, begin: &[u8], end: &[u8]) -> (Bytes, Bytes) {
        match (begin < END, end > END) {
            (true, true) => (Bytes::copy_from_slice(end), Bytes::copy_from_slice(end)),
            _ => (self.bound(begin), self.bound(end)),
        }
    }

    fn selector(&self, selector: &KeySelector) -> KeySelector {
        KeySelector::new(self.bound(&selector.key), selector.or_equal, selector.offset)
    }

    /// The key without its prefix. A stored key before the prefix becomes `""`, and one after it `"\xff"`.
    pub fn seen(&self, key: Bytes) -> Bytes {
        if key.starts_with(&self.prefix) {
            key.slice(self.prefix.len()..)
        } else if key < self.prefix {
            Bytes::new()
        } else {
            Bytes::from_static(END)
        }
    }

    /// The stored form of a key that ends with the offset of its versionstamp. A key with an invalid offset
    /// is unchanged, so that the client refuses it.
    fn stamped(&self, key: &[u8]) -> Bytes {
        let stored = || {
            let (name, offset) = key.split_last_chunk::<4>()?;
            let offset = i32::from_le_bytes(*offset);
            let moved = offset.checked_add(self.prefix.len().try_into().ok()?)?;
            if offset < 0 || name >= END {
                return None;
            }
            let mut stored = BytesMut::from(&self.prefix[..]);
            stored.put_slice(name);
            stored.put_i32_le(moved);
            Some(stored.freeze())
        };
        stored().unwrap_or_else(|| Bytes::copy_from_slice(key))
    }
}

impl<D: Database> Prefixed<D> {
    /// The keys of `inner` in `space` as a database.
    pub(super) fn new(inner: D, space: Space) -> Prefixed<D> {
        Prefixed { inner, space, size_limit: Arc::default() }
    }
}

impl<T: Transaction> PrefixedTransaction<T> {
    /// Sets a versionstamped key of the run itself, which has no conflict range.
    pub(super) fn set_stamped(&self, key: &[u8], operand: &[u8]) {
        self.foreign.lock().written += key.len() + operand.len() + MUTATION;
        self.inner.atomic_op(key, operand, MutationType::SetVersionstampedKey);
    }

    /// The size of the transaction from now on has the prefixes of the conflict ranges of a read of these
    /// keys. It surely has two once it has ended, if it conflicts with all that is between the bounds.
    fn read_range(&self, isolation: Isolation, begin: &[u8], end: &[u8]) -> Read {
        let mut foreign = self.foreign.lock();
        let mut read = Read { foreign: self.foreign.clone(), attempt: foreign.attempts, prefixes: 0 };
        if isolation == Isolation::Serializable {
            let before = (Bound::Unbounded, Bound::Excluded(end));
            let within = foreign.own.range::<[u8], _>(before).filter(|(_, to)| to[..] > *begin).count();
            foreign.prefixes += 2 * (1 + within + foreign.stamped);
            if begin < end && within + foreign.stamped == 0 {
                read.prefixes = 2;
            }
        }
        read
    }

    /// The same for a write of these keys, whose mutation has the prefix so many times itself.
    fn writes(&self, begin: &[u8], end: Bytes, times: usize) {
        let mut foreign = self.foreign.lock();
        let longest = begin.len().max(end.len()) + self.space.prefix.len();
        foreign.mutates(times, begin < &end[..] && longest <= KEY_SIZE_LIMIT);
        let until = foreign.own.entry(Bytes::copy_from_slice(begin)).or_default();
        *until = end.max(until.clone());
    }
}

impl Foreign {
    /// A mutation has the prefix so many times, and its conflict range twice. One of no keys, or of keys that
    /// are too long, may have no effect.
    fn mutates(&mut self, times: usize, is_sure: bool) {
        self.prefixes += times + 2;
        let times = if mem::take(&mut self.unconflicted) { times } else { times + 2 };
        self.sure += if is_sure { times } else { 0 };
    }

    /// The bytes of the transaction's size that are not the application's, if it has this prefix so often.
    fn bytes(&self, prefix: &[u8], times: usize) -> usize {
        times * prefix.len() + self.written
    }

    /// The next attempt begins, with this limit.
    fn begin_anew(&mut self, limit: Option<i32>) {
        *self = Foreign { limit, attempts: self.attempts + 1, ..Foreign::default() };
    }
}

/// A read that is under way.
struct Read {
    foreign: Arc<Mutex<Foreign>>,
    attempt: usize,
    /// How often the size surely has the prefix more when it has ended.
    prefixes: usize,
}

impl Read {
    /// It has returned.
    fn ended(self) {
        let mut foreign = self.foreign.lock();
        if foreign.attempts == self.attempt {
            foreign.sure += self.prefixes;
        }
    }
}

impl<D: Database> Database for Prefixed<D> {
    type Transaction = PrefixedTransaction<D::Transaction>;

    fn create_transaction(&self) -> Result<Self::Transaction> {
        let limit = *self.size_limit.lock();
        Ok(PrefixedTransaction {
            inner: self.inner.create_transaction()?,
            space: self.space.clone(),
            foreign: Arc::new(Mutex::new(Foreign { limit, ..Foreign::default() })),
            default_limit: self.size_limit.clone(),
        })
    }

    fn set_option(&self, option: DatabaseOption) -> Result<()> {
        self.inner.set_option(option.clone())?;
        if let DatabaseOption::TransactionSizeLimit(bytes) = option {
            *self.size_limit.lock() = Some(bytes);
        }
        Ok(())
    }

    fn env(&self) -> &Env {
        self.inner.env()
    }
}

/// Whether a selector may resolve to a key outside of the prefix of its key: before it for the begin of a
/// range, and after it for the end.
fn may_leave(selector: &KeySelector, forwards: bool) -> bool {
    selector.key < END && if forwards { selector.offset > 1 } else { selector.offset < 1 }
}

impl<T: Transaction> Transaction for PrefixedTransaction<T> {
    pass_on! { <T> inner: turns }

    fn with_turns(&self, turns: Turns) -> Self {
        PrefixedTransaction { inner: self.inner.with_turns(turns), ..self.clone() }
    }

    fn get(
        &self,
        key: &[u8],
        isolation: Isolation,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<T> {
        let this = self.read_range(isolation, key, &key_after(key));
        let read = self.inner.get(&self.space.key(key), isolation);
        async move { read.await.inspect(|_| this.ended()) }
    }

    fn get_key(
        &self,
        selector: &KeySelector,
        isolation: Isolation,
    ) -> impl Future<Output = Result<Bytes>> + Send + use<T> {
        let is_system = &selector.key[..] > END;
        // It may resolve to any key.
        self.read_range(isolation, b"", END);
        let read = self.inner.get_key(&self.space.selector(selector), isolation);
        let space = self.space.clone();
        async move { read.await.map(|key| if is_system { key } else { space.seen(key) }) }
    }

    fn get_range(
        &self,
        range: &RangeOption,
        iteration: usize,
        isolation: Isolation,
    ) -> impl Future<Output = Result<RangeBatch>> + Send + use<T> {
        let is_system = &range.begin.key[..] > END || &range.end.key[..] > END;
        let stored = match is_system {
            true => range.clone(),
            false => RangeOption {
                begin: self.space.selector(&range.begin),
                end: self.space.selector(&range.end),
                ..range.clone()
            },
        };
        let leaves = (may_leave(&range.begin, false), may_leave(&range.end, true));
        let begin = if leaves.0 { b"" } else { &range.begin.key[..] };
        let mut this = self.read_range(isolation, begin, if leaves.1 { END } else { &range.end.key });
        // Others may resolve to an empty range.
        let is_between = |selector: &KeySelector| !selector.or_equal && selector.offset == 1;
        if !is_between(&range.begin) || !is_between(&range.end) {
            this.prefixes = 0;
        }
        let read = if !is_system && (leaves.0 || leaves.1) {
            let (this, range) = (self.clone(), range.clone());
            let in_two_steps = async move {
                let mut stored = stored;
                for (at, selector, leaves) in
                    [(&mut stored.begin, &range.begin, leaves.0), (&mut stored.end, &range.end, leaves.1)]
                {
                    if leaves {
                        let key = this.get_key(selector, isolation).await?;
                        *at = KeySelector::first_greater_or_equal(this.space.bound(&key));
                    }
                }
                this.inner.get_range(&stored, iteration, isolation).await
            };
            Either::Left(in_two_steps.boxed())
        } else {
            Either::Right(self.inner.get_range(&stored, iteration, isolation))
        };
        let space = self.space.clone();
        async move {
            let batch = read.await?;
            this.ended();
            if is_system {
                return Ok(batch);
            }
            let seen = |row: KeyValue| KeyValue { key: space.seen(row.key), value: row.value };
            Ok(RangeBatch { rows: batch.rows.into_iter().map(seen).collect(), more: batch.more })
        }
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        self.writes(key, key_after(key), 1);
        self.inner.set(&self.space.key(key), value);
    }

    fn clear(&self, key: &[u8]) {
        self.writes(key, key_after(key), 2);
        self.inner.clear(&self.space.key(key));
    }

    fn clear_range(&self, begin: &[u8], end: &[u8]) {
        self.writes(begin, Bytes::copy_from_slice(end), 2);
        let (begin, end) = self.space.part(begin, end);
        self.inner.clear_range(&begin, &end);
    }

    fn atomic_op(&self, key: &[u8], operand: &[u8], op: MutationType) {
        let stored = match op {
            MutationType::SetVersionstampedKey => {
                let mut foreign = self.foreign.lock();
                foreign.stamped += 1;
                foreign.mutates(1, key.len() + self.space.prefix.len() <= KEY_SIZE_LIMIT);
                self.space.stamped(key)
            }
            _ => {
                self.writes(key, key_after(key), 1);
                self.space.key(key)
            }
        };
        self.inner.atomic_op(&stored, operand, op);
    }

    fn add_conflict_range(&self, begin: &[u8], end: &[u8], kind: ConflictRangeType) -> Result<()> {
        match kind {
            ConflictRangeType::Read => self.read_range(Isolation::Serializable, begin, end).ended(),
            ConflictRangeType::Write => self.foreign.lock().prefixes += 2,
        }
        let (begin, end) = self.space.part(begin, end);
        self.inner.add_conflict_range(&begin, &end, kind)
    }

    fn watch(&self, key: &[u8]) -> BoxFuture<'static, Result<()>> {
        self.inner.watch(&self.space.key(key))
    }

    fn get_estimated_range_size_bytes(
        &self,
        begin: &[u8],
        end: &[u8],
    ) -> impl Future<Output = Result<i64>> + Send + use<T> {
        let (begin, end) = self.space.part(begin, end);
        self.inner.get_estimated_range_size_bytes(&begin, &end)
    }

    fn get_range_split_points(
        &self,
        begin: &[u8],
        end: &[u8],
        chunk_size: i64,
    ) -> impl Future<Output = Result<Vec<Bytes>>> + Send + use<T> {
        let (begin, end) = self.space.part(begin, end);
        let read = self.inner.get_range_split_points(&begin, &end, chunk_size);
        let space = self.space.clone();
        async move { Ok(read.await?.into_iter().map(|point| space.seen(point)).collect()) }
    }

    fn get_addresses_for_key(&self, key: &[u8]) -> impl Future<Output = Result<Vec<String>>> + Send + use<T> {
        self.inner.get_addresses_for_key(&self.space.key(key))
    }

    /// Refuses access to system keys and raw access, which would permit keys outside of the prefix.
    fn set_option(&self, option: TransactionOption) -> Result<()> {
        match option {
            TransactionOption::AccessSystemKeys | TransactionOption::RawAccess => Err(Error::INVALID_OPTION),
            option => {
                self.inner.set_option(option.clone())?;
                match option {
                    TransactionOption::SizeLimit(bytes) => self.foreign.lock().limit = Some(bytes),
                    TransactionOption::NextWriteNoWriteConflictRange => {
                        self.foreign.lock().unconflicted = true
                    }
                    _ => {}
                }
                Ok(())
            }
        }
    }

    fn get_approximate_size(&self) -> impl Future<Output = Result<i64>> + Send + use<T> {
        let (size, foreign) = (self.inner.get_approximate_size(), self.foreign.lock());
        let foreign = foreign.bytes(&self.space.prefix, foreign.sure);
        async move { Ok((size.await? - foreign as i64).max(0)) }
    }

    /// Commits with the limit that the application has set for what is its own.
    fn commit(&self) -> impl Future<Output = Result<()>> + Send + use<T> {
        let foreign = self.foreign.lock();
        let bytes = foreign.bytes(&self.space.prefix, foreign.prefixes);
        if let Some(limit) = foreign.limit {
            let most = (limit as usize + bytes).min(TRANSACTION_SIZE_LIMIT);
            // Refused while an earlier commit goes on: this one then ends with the same error.
            let _ = self.inner.set_option(TransactionOption::SizeLimit(most as i32));
        }
        self.inner.commit()
    }

    fn on_error(&self, error: Error) -> impl Future<Output = Result<()>> + Send + use<T> {
        let (retried, foreign) = (self.inner.on_error(error), self.foreign.clone());
        async move {
            retried.await?;
            let mut foreign = foreign.lock();
            let limit = foreign.limit;
            foreign.begin_anew(limit);
            Ok(())
        }
    }

    fn reset(&self) {
        self.inner.reset();
        self.foreign.lock().begin_anew(*self.default_limit.lock());
    }

    pass_on! {
        <T> inner:
            get_read_version, set_read_version, get_committed_version, get_versionstamp,
            get_tag_throttled_duration, get_total_cost, cancel
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::calm;

    fn space() -> Space {
        Space::new("run/7/").expect("a prefix with an end")
    }

    #[test]
    fn keys_are_stored_with_the_prefix_and_read_without_it() {
        let space = space();
        for key in [&b""[..], b"a", b"\xfe\xff", b"\0"] {
            let stored = space.key(key);
            assert!(stored.starts_with(b"run/7/"));
            assert_eq!(space.seen(stored), key);
        }
        assert_eq!(space.seen("run/6".into()), "");
        // `0` is the character after `/`.
        assert_eq!(space.seen("run/70".into()), END);
        assert_eq!(space.seen("run0".into()), END);
    }

    #[test]
    fn no_range_extends_beyond_the_prefix() {
        let space = space();
        let within = |begin: &[u8], end: &[u8]| {
            let (begin, end) = space.part(begin, end);
            begin >= end || (b"run/7/"[..] <= begin[..] && end[..] <= b"run/70"[..])
        };
        assert!(within(b"", END));
        assert!(within(b"a", b"b"));
        assert!(within(b"a", b"\xff\x02"));
        assert!(within(b"", b"\xff\xff\xff"));
    }

    #[test]
    fn a_versionstamp_offset_is_moved_by_the_prefix() {
        let space = space();
        let moved = space.stamped(b"ab##########\x02\0\0\0");
        assert_eq!(&moved[..], b"run/7/ab##########\x08\0\0\0");
        for wrong in [&b"abc"[..], b"ab\xff\xff\xff\xff", b"ab\xff\xff\xff\x7f", b"\xffa\0\0\0\0"] {
            assert_eq!(space.stamped(wrong), wrong, "unchanged, so that the client refuses it");
        }
    }

    #[test]
    fn an_invalid_prefix_is_refused() {
        for wrong in [&b""[..], b"\xff", b"\xff\xff", b"\xff\x02"] {
            assert!(Space::new(wrong).is_none());
        }
    }

    /// What a transaction is told of its size, and whether it commits, with a limit of the transaction or of
    /// the database.
    async fn within<D: Database>(db: &D, limit: i32, of_database: bool) -> (i64, Result<()>) {
        let limited = match of_database {
            true => db.set_option(DatabaseOption::TransactionSizeLimit(limit)),
            false => Ok(()),
        };
        limited.expect("a limit");
        let tx = db.create_transaction().expect("a transaction");
        if !of_database {
            tx.set_option(TransactionOption::SizeLimit(limit)).expect("a limit");
        }
        for n in 0..10 {
            let key = format!("key {n}");
            tx.get(key.as_bytes(), Isolation::Serializable).await.expect("a calm cluster answers");
            tx.get(key.as_bytes(), Isolation::Snapshot).await.expect("a calm cluster answers");
            tx.set(key.as_bytes(), b"value");
        }
        tx.clear(b"other");
        tx.clear_range(b"x", b"y");
        tx.atomic_op(b"z", b"1", MutationType::Add);
        tx.add_conflict_range(b"a", b"b", ConflictRangeType::Read).expect("a range");
        let all = RangeOption::new(&b"m"[..], &b"n"[..]);
        tx.get_range(&all, 1, Isolation::Serializable).await.expect("a calm cluster answers");
        let size = tx.get_approximate_size().await.expect("a size");
        (size, tx.commit().await)
    }

    #[test]
    fn the_prefix_does_not_count_against_a_limit_of_the_size() {
        let (plain, prefixed) = calm::simulate(|db| async move {
            let long = Space::new("p".repeat(500)).expect("a prefix with an end");
            let prefixed = Prefixed::new(db.clone(), long);
            let mut of_plain = Vec::new();
            let mut of_prefixed = Vec::new();
            for of_database in [false, true] {
                for limit in [100, 2_000] {
                    of_plain.push(within(&db, limit, of_database).await);
                    db.set_option(DatabaseOption::TransactionSizeLimit(10_000_000)).expect("a limit");
                    of_prefixed.push(within(&prefixed, limit, of_database).await);
                }
            }
            (of_plain, of_prefixed)
        });
        let too_large = Err(Error::TRANSACTION_TOO_LARGE);
        let outcomes: Vec<_> = plain.iter().map(|(_, committed)| *committed).collect();
        assert_eq!(outcomes, [too_large, Ok(()), too_large, Ok(())]);
        assert_eq!(prefixed, plain);
    }

    /// The size of a transaction after each of several steps that have the prefix fewer times than the limit
    /// of its size makes room for.
    async fn grown<D: Database>(db: &D) -> Vec<i64> {
        let tx = db.create_transaction().expect("a transaction");
        let mut sizes = Vec::new();
        for n in 0..6 {
            let key = format!("key {n}");
            let key = key.as_bytes();
            tx.set_option(TransactionOption::NextWriteNoWriteConflictRange).expect("an option");
            tx.set(key, b"value");
            sizes.push(tx.get_approximate_size().await.expect("a size"));
            tx.get(key, Isolation::Serializable).await.expect("a calm cluster answers");
            tx.clear_range(key, key);
            let all = RangeOption::new(&b""[..], &b"z"[..]);
            tx.get_range(&all, 1, Isolation::Serializable).await.expect("a calm cluster answers");
            tx.get_range(&all, 2, Isolation::Serializable).await.expect("a calm cluster answers");
        }
        sizes
    }

    #[test]
    fn an_estimate_of_the_size_grows_with_each_mutation() {
        let (plain, prefixed) = calm::simulate(|db| async move {
            let long = Space::new("p".repeat(500)).expect("a prefix with an end");
            (grown(&db).await, grown(&Prefixed::new(db, long)).await)
        });
        assert!(prefixed.is_sorted_by(|a, b| a < b), "{prefixed:?}");
        assert!(
            plain.iter().zip(&prefixed).all(|(plain, prefixed)| plain <= prefixed),
            "{plain:?} {prefixed:?}"
        );
    }
}
