//! A state rebuilt from the log as a read-only [`Database`], so that the audit a workload runs on
//! a cluster runs unchanged on every version of the past.

use super::Keyspace;
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, ready};
use parking_lot::Mutex;
use shaketable_layers::tx::{
    ConflictRangeType, Database, DatabaseOption, Env, Environment, Error, Isolation, KeySelector, KeyValue,
    MutationType, RangeBatch, RangeOption, Result, Transaction, TransactionOption,
};
use std::{sync::Arc, time::Duration};

/// A database that holds one state, which its owner moves on, and takes no writes (2023).
#[derive(Clone)]
pub struct Snapshot {
    state: Arc<Mutex<Keyspace>>,
    env: Env,
}

/// Nothing here waits, and nothing is left to chance.
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
    /// A database that holds `state`.
    pub fn new(state: Keyspace) -> Snapshot {
        Snapshot { state: Arc::new(Mutex::new(state)), env: Env::new(Still) }
    }

    /// Moves the state on. No read may be under way, and none is: nothing here waits.
    pub fn change(&self, change: impl FnOnce(&mut Keyspace)) {
        change(&mut self.state.lock());
    }
}

impl Database for Snapshot {
    type Transaction = Snapshot;

    fn create_transaction(&self) -> Result<Snapshot> {
        Ok(self.clone())
    }
    fn set_option(&self, _: DatabaseOption) -> Result<()> {
        Ok(())
    }
    fn env(&self) -> &Env {
        &self.env
    }
}

impl Transaction for Snapshot {
    fn get(&self, key: &[u8], _: Isolation) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<> {
        ready(Ok(self.state.lock().get(key).cloned()))
    }

    fn get_key(
        &self,
        selector: &KeySelector,
        _: Isolation,
    ) -> impl Future<Output = Result<Bytes>> + Send + use<> {
        ready(Ok(self.state.lock().resolve(selector)))
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

    /// Ends a transaction that only read. One that wrote has been told nothing so far: an audit
    /// must not write, and what it wrote is gone.
    fn commit(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        ready(Ok(()))
    }

    fn on_error(&self, error: Error) -> impl Future<Output = Result<()>> + Send + use<> {
        ready(Err(error))
    }

    fn reset(&self) {}
    fn cancel(&self) {}
}
