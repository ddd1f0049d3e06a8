//! A state rebuilt from the log as a read-only [`Database`], so that the audit that a workload runs on a
//! cluster also runs, unchanged, on past versions.

use super::{
    Keyspace,
    writes::{point, resolved, scanned},
};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, ready};
use parking_lot::Mutex;
use shaketable_sim::proto::KeyRange;
use shaketable_tx::{
    ConflictRangeType, Database, DatabaseOption, Env, Environment, Error, Isolation, KeySelector, KeyValue,
    MutationType, RangeBatch, RangeOption, Result, Transaction, TransactionOption, Turns,
};
use std::{sync::Arc, time::Duration};

/// A database with one state, which its owner can change. Writes are ignored, and watches fail with 2023.
#[derive(Clone)]
pub struct Snapshot {
    state: Arc<Mutex<Keyspace>>,
    /// The ranges read, while they are recorded.
    reads: Arc<Mutex<Option<Vec<KeyRange>>>>,
    env: Env,
    turns: Turns,
}

/// An environment without time and randomness.
struct Still;

impl Environment for Still {
    fn now(&self) -> Duration {
        Duration::ZERO
    }
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        ready(()).boxed()
    }
}

impl Snapshot {
    /// Creates a database with this state.
    pub fn new(state: Keyspace) -> Snapshot {
        let state = Arc::new(Mutex::new(state));
        Snapshot { state, reads: Arc::default(), env: Env::new(Still), turns: Turns::default() }
    }

    /// Records the ranges that are read from now on, and returns those recorded so far.
    pub(super) fn record_reads(&self) -> Vec<KeyRange> {
        self.reads.lock().replace(Vec::new()).unwrap_or_default()
    }

    fn note(&self, range: impl FnOnce() -> KeyRange) {
        if let Some(reads) = &mut *self.reads.lock() {
            reads.push(range());
        }
    }

    /// Changes the state. No read is in progress, because every read completes immediately.
    pub fn change(&self, change: impl FnOnce(&mut Keyspace)) {
        change(&mut self.state.lock());
    }
}

impl Database for Snapshot {
    type Transaction = Snapshot;

    fn create_transaction(&self) -> Result<Snapshot> {
        Ok(self.with_turns(Turns::default()))
    }
    fn set_option(&self, _: DatabaseOption) -> Result<()> {
        Ok(())
    }
    fn env(&self) -> &Env {
        &self.env
    }
}

impl Transaction for Snapshot {
    fn turns(&self) -> &Turns {
        &self.turns
    }

    fn with_turns(&self, turns: Turns) -> Self {
        Snapshot { turns, ..self.clone() }
    }

    fn get(&self, key: &[u8], _: Isolation) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<> {
        self.note(|| point(key));
        ready(Ok(self.state.lock().get(key).cloned()))
    }

    fn get_key(
        &self,
        selector: &KeySelector,
        _: Isolation,
    ) -> impl Future<Output = Result<Bytes>> + Send + use<> {
        let found = self.state.lock().resolve(selector);
        self.note(|| resolved(&selector.key, &found));
        ready(Ok(found))
    }

    fn get_range(
        &self,
        range: &RangeOption,
        _: usize,
        _: Isolation,
    ) -> impl Future<Output = Result<RangeBatch>> + Send + use<> {
        let state = self.state.lock();
        let limit = range.limit.filter(|l| *l > 0).unwrap_or(usize::MAX);
        let mut rows = state.range(&range.begin, &range.end, range.reverse);
        let taken: Vec<KeyValue> =
            rows.by_ref().take(limit).map(|(k, v)| KeyValue::new(k.clone(), v.clone())).collect();
        let more = rows.next().is_some();
        let asked = || KeyRange::new(range.begin.key.clone(), range.end.key.clone());
        self.note(|| scanned(asked(), &taken, range.reverse, more));
        ready(Ok(RangeBatch { rows: taken, more }))
    }

    fn set(&self, _: &[u8], _: &[u8]) {}
    fn clear(&self, _: &[u8]) {}
    fn clear_range(&self, _: &[u8], _: &[u8]) {}
    fn atomic_op(&self, _: &[u8], _: &[u8], _: MutationType) {}

    fn add_conflict_range(&self, _: &[u8], _: &[u8], _: ConflictRangeType) -> Result<()> {
        Ok(())
    }

    fn watch(&self, _: &[u8]) -> BoxFuture<'static, Result<()>> {
        ready(Err(Error::TRANSACTION_READ_ONLY)).boxed()
    }

    fn get_read_version(&self) -> impl Future<Output = Result<i64>> + Send + use<> {
        ready(Ok(0))
    }

    fn set_read_version(&self, _: i64) {}

    fn get_committed_version(&self) -> Result<i64> {
        Ok(-1)
    }

    fn get_versionstamp(&self) -> BoxFuture<'static, Result<[u8; 10]>> {
        ready(Err(Error::NO_COMMIT_VERSION)).boxed()
    }

    fn get_approximate_size(&self) -> impl Future<Output = Result<i64>> + Send + use<> {
        ready(Ok(0))
    }

    fn get_estimated_range_size_bytes(
        &self,
        begin: &[u8],
        end: &[u8],
    ) -> impl Future<Output = Result<i64>> + Send + use<> {
        let state = self.state.lock();
        let range = state.0.range(Bytes::copy_from_slice(begin)..Bytes::copy_from_slice(end));
        ready(Ok(range.map(|(k, v)| (k.len() + v.len()) as i64).sum()))
    }

    fn get_range_split_points(
        &self,
        begin: &[u8],
        end: &[u8],
        _: i64,
    ) -> impl Future<Output = Result<Vec<Bytes>>> + Send + use<> {
        ready(Ok(vec![Bytes::copy_from_slice(begin), Bytes::copy_from_slice(end)]))
    }

    fn set_option(&self, _: TransactionOption) -> Result<()> {
        Ok(())
    }

    /// Ends the transaction. Writes have no effect and cause no error: an audit must not write.
    fn commit(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        ready(Ok(()))
    }

    fn on_error(&self, error: Error) -> impl Future<Output = Result<()>> + Send + use<> {
        ready(Err(error))
    }

    fn reset(&self) {}
    fn cancel(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_sim::proto::Mutation;

    fn now<T>(answer: impl Future<Output = Result<T>>) -> Result<T> {
        answer.now_or_never().expect("nothing here waits")
    }

    #[test]
    fn a_rebuilt_state_has_neither_time_nor_randomness() {
        let mut bytes = [7; 3];
        Still.fill(&mut bytes);
        assert_eq!((bytes, Still.now()), ([0; 3], Duration::ZERO));
        assert_eq!(Still.sleep(Duration::from_secs(1)).now_or_never(), Some(()));
    }

    fn snapshot() -> Snapshot {
        let snapshot = Snapshot::new(Keyspace::default());
        snapshot.change(|state| {
            for (key, value) in [("a", "1"), ("b", "22"), ("c", "333")] {
                state.apply(&Mutation::Set(key.into(), value.into()), None);
            }
        });
        snapshot
    }

    #[test]
    fn a_state_is_read_like_a_database() {
        let snapshot = snapshot();
        let tx = snapshot.create_transaction().expect("a transaction");
        assert_eq!(now(tx.get(b"b", Isolation::Serializable)), Ok(Some(Bytes::from("22"))));
        assert_eq!(now(tx.get(b"d", Isolation::Snapshot)), Ok(None));
        let after = KeySelector::first_greater_than("a");
        assert_eq!(now(tx.get_key(&after, Isolation::Snapshot)), Ok(Bytes::from("b")));
        for (limit, reverse, keys, more) in [
            (None, false, &["a", "b", "c"][..], false),
            (Some(0), false, &["a", "b", "c"][..], false),
            (Some(2), false, &["a", "b"][..], true),
            (Some(3), false, &["a", "b", "c"][..], false),
            (Some(1), true, &["c"][..], true),
        ] {
            let range = RangeOption { limit, reverse, ..RangeOption::new("a", "d") };
            let batch = now(tx.get_range(&range, 1, Isolation::Snapshot)).expect("rows");
            let found: Vec<_> = batch.rows.iter().map(|row| &row.key[..]).collect();
            assert_eq!((found, batch.more), (keys.iter().map(|key| key.as_bytes()).collect(), more));
        }
        assert_eq!(now(tx.get_estimated_range_size_bytes(b"b", b"d")), Ok(7));
        let points = now(tx.get_range_split_points(b"a", b"d", 1)).expect("points");
        assert_eq!(points, [Bytes::from("a"), Bytes::from("d")]);
    }

    #[test]
    fn reads_are_recorded_once_asked_for() {
        let tx = snapshot();
        let read = |range: RangeOption| now(tx.get_range(&range, 1, Isolation::Snapshot)).map(drop);
        now(tx.get(b"a", Isolation::Snapshot)).expect("a value");
        assert!(tx.record_reads().is_empty());
        now(tx.get(b"b", Isolation::Snapshot)).expect("a value");
        now(tx.get_key(&KeySelector::first_greater_than("a"), Isolation::Snapshot)).expect("a key");
        for range in [
            RangeOption::new("a", "x"),
            RangeOption::new("a", "x").limit(2),
            RangeOption::new("", "c").limit(1).reversed(),
            RangeOption::new("x", "y"),
        ] {
            read(range).expect("rows");
        }
        let ranges = [("b", "b\0"), ("a", "b\0"), ("a", "x"), ("a", "b\0"), ("b", "c"), ("x", "y")];
        assert_eq!(tx.record_reads(), ranges.map(|(begin, end)| KeyRange::new(begin, end)));
        assert!(tx.record_reads().is_empty());
    }

    #[test]
    fn writes_to_a_state_are_ignored() {
        let tx = snapshot();
        tx.set(b"a", b"2");
        tx.clear_range(b"a", b"d");
        assert_eq!(now(tx.commit()), Ok(()));
        assert_eq!(now(tx.get(b"a", Isolation::Snapshot)), Ok(Some(Bytes::from("1"))));
        assert_eq!(now(tx.watch(b"a")), Err(Error::TRANSACTION_READ_ONLY));
        assert_eq!(now(tx.get_versionstamp()), Err(Error::NO_COMMIT_VERSION));
        assert_eq!(now(tx.on_error(Error::NOT_COMMITTED)), Err(Error::NOT_COMMITTED));
        assert_eq!(tx.get_committed_version(), Ok(-1));
    }

    #[test]
    fn time_does_not_pass_in_a_state() {
        let env = snapshot().env().clone();
        assert_eq!(env.now(), Duration::ZERO);
        env.sleep(Duration::from_secs(9)).now_or_never().expect("no wait");
    }
}
