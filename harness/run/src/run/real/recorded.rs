//! A client of a real cluster that records the history.
//!
//! Every call is recorded as the simulated client records it. Each transaction that writes also writes an
//! entry into a log: a key with its versionstamp and the number of the attempt. The log shows whether an
//! attempt with an unknown outcome committed, and at which version. From both, [`SharedHistory::history`]
//! makes a history like that of a simulated run.
//!
//! The futures of the database are boxed: those of a layer contain them many times, and the stacks of threads
//! are small.

use super::{
    attempt::AttemptRecord,
    log::{Log, SharedHistory, place},
    prefixed::{Prefixed, PrefixedTransaction, Space},
};
use crate::describe::pass_on::pass_on;
use bytes::Bytes;
use futures::{
    FutureExt,
    future::{BoxFuture, ready},
};
use parking_lot::Mutex;
use shaketable_sim::{
    client::Label,
    endings::{Ending, beside, with_ending},
    history::{Aside, Call, Reported},
    ids::ClientId,
    proto::{KeyRange, Mutation},
    rt::Nanos,
};
use shaketable_tx::{
    ConflictRangeType, Database, DatabaseOption, Env, Error, Isolation, KeySelector, MappedBatch,
    MutationType, RangeBatch, RangeOption, Result, Transaction, TransactionOption, Turns,
};
use std::{future::Future, sync::Arc, time::Duration};

/// The database of a client, which records its calls.
#[derive(Clone)]
pub(super) struct Recorded<D>(Arc<Shared<D>>);

struct Shared<D> {
    inner: Prefixed<D>,
    client: ClientId,
    log: Log,
    history: Arc<SharedHistory>,
    label: Mutex<Label>,
}

impl<D: Database> Recorded<D> {
    /// The database of one client of a run.
    pub(super) fn new(
        inner: D,
        space: Space,
        log: Log,
        client: ClientId,
        history: Arc<SharedHistory>,
    ) -> Recorded<D> {
        let inner = Prefixed::new(inner, space);
        Recorded(Arc::new(Shared { inner, client, log, history, label: Mutex::default() }))
    }

    /// The time since the run began.
    pub(super) fn now(&self) -> Nanos {
        self.0.now()
    }

    /// Sets the operation to which transactions created from now on belong. Until
    /// [`prepared`](Self::prepared) they only prepare for it.
    pub(super) fn set_operation(&self, operation: Option<u32>) {
        *self.0.label.lock() = Label { operation, prepares: true, origin: None };
    }

    /// The client has prepared for its operation, and does it from now on.
    pub(super) fn prepared(&self) {
        self.0.label.lock().prepares = false;
    }
}

impl<D: Database> Shared<D> {
    fn now(&self) -> Nanos {
        self.history.since_began(self.inner.env())
    }

    /// Notes how a call ended for the operation that made its transaction, and for the one that goes on.
    fn note_ending(&self, operation: Option<u32>, ending: Ending) {
        let goes_on = self.label.lock().operation.filter(|goes_on| Some(*goes_on) != operation);
        self.history.recorded.lock().note_ending(self.client, [operation, goes_on], ending);
    }

    /// The answer to a call that returns at once; the history has its error.
    fn noted<T>(&self, operation: Option<u32>, answer: Result<T>) -> Result<T> {
        answer.inspect_err(|error| self.note_ending(operation, Ending::Error(*error)))
    }
}

impl<D: Database> Database for Recorded<D> {
    type Transaction = RecordedTransaction<D>;

    fn create_transaction(&self) -> Result<RecordedTransaction<D>> {
        let inner = self.0.noted(None, self.0.inner.create_transaction())?;
        let label = *self.0.label.lock();
        let record = AttemptRecord::new(label, self.0.client, self.0.history.clone());
        let (shared, record) = (self.0.clone(), Arc::new(Mutex::new(record)));
        Ok(RecordedTransaction { inner, shared, operation: label.operation, record })
    }

    fn set_option(&self, option: DatabaseOption) -> Result<()> {
        self.0.noted(None, self.0.inner.set_option(option))
    }

    fn set_option_raw(&self, code: i32, value: Option<&[u8]>) -> Result<()> {
        self.set_option(self.0.noted(None, DatabaseOption::from_raw(code, value))?)
    }

    fn env(&self) -> &Env {
        self.0.inner.env()
    }
}

/// A transaction that records its calls.
pub(super) struct RecordedTransaction<D: Database> {
    inner: PrefixedTransaction<D::Transaction>,
    shared: Arc<Shared<D>>,
    /// The operation for which it was created.
    operation: Option<u32>,
    record: Arc<Mutex<AttemptRecord>>,
}

impl<D: Database> Clone for RecordedTransaction<D> {
    fn clone(&self) -> Self {
        RecordedTransaction {
            inner: self.inner.clone(),
            shared: self.shared.clone(),
            operation: self.operation,
            record: self.record.clone(),
        }
    }
}

impl<D: Database> RecordedTransaction<D> {
    fn now(&self) -> Nanos {
        self.shared.now()
    }

    /// The answer to a call that returns at once; the history has its error.
    fn noted<T>(&self, answer: Result<T>) -> Result<T> {
        self.shared.noted(self.operation, answer)
    }

    /// A call whose ending the history has.
    fn with_ending<T, F>(&self, call: F) -> impl Future<Output = Result<T>> + Send + use<T, F, D>
    where
        T: Send,
        F: Future<Output = Result<T>> + Send,
    {
        let (shared, operation) = (self.shared.clone(), self.operation);
        let clock = shared.clone();
        with_ending(call, move || clock.now(), move |ending| shared.note_ending(operation, ending))
    }

    /// Records a call. Returns the number of the attempt and the index of the call, for
    /// [`replied`](Self::replied). A call after the commit is no part of the attempt: FoundationDB's client
    /// refuses it with 2017, and the cluster commits nothing of it.
    fn call(&self, call: Call) -> (u32, usize) {
        let now = self.now();
        let mut record = self.record.lock();
        if record.commit_sent.is_some() {
            return (record.number, usize::MAX);
        }
        if !matches!(call, Call::Write(_)) {
            record.version_is_needed(now);
        }
        let (number, seen) = (record.calls.len(), record.seen);
        record.own_writes.note(number, seen);
        record.reading += u32::from(matches!(call, Call::GetKey { .. } | Call::GetRange { .. }));
        record.calls.push(call);
        (record.number, record.calls.len() - 1)
    }

    /// Notes that a read of several steps has ended.
    fn has_read<T>(&self, (number, _): (u32, usize), answer: Result<T>) -> Result<T> {
        let mut record = self.record.lock();
        if record.number == number {
            record.reading -= 1;
        }
        answer
    }

    /// Notes that a call follows for which the client may request the read version.
    fn needs_version(&self) {
        let now = self.now();
        self.record.lock().version_is_needed(now);
    }

    /// Records the reply to a call, and the read version of the attempt. A reply that is late, because its
    /// attempt has ended, asks for nothing: the request would be that of the next attempt.
    async fn replied(&self, (number, at): (u32, usize), note: impl FnOnce(&mut Call)) {
        let is_late = || {
            let record = self.record.lock();
            record.number != number || record.is_ending
        };
        if is_late() {
            return;
        }
        let version = self.inner.get_read_version().boxed().await.ok();
        let mut record = self.record.lock();
        if record.number == number {
            record.read_version = record.read_version.or(version);
            record.calls.get_mut(at).map(note);
        }
    }

    fn write(&self, mutation: Mutation) {
        self.call(Call::Write(mutation));
    }
}

impl<D: Database> Transaction for RecordedTransaction<D> {
    pass_on! { <D> inner: turns }

    fn with_turns(&self, turns: Turns) -> Self {
        RecordedTransaction { inner: self.inner.with_turns(turns), ..self.clone() }
    }

    fn get(
        &self,
        key: &[u8],
        isolation: Isolation,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<D> {
        let call = self.call(Call::Get { key: Bytes::copy_from_slice(key), isolation, answer: None });
        let (read, this) = (self.inner.get(key, isolation).boxed(), self.clone());
        self.with_ending(async move {
            let value = read.await?;
            this.replied(call, |call| {
                if let Call::Get { answer, .. } = call {
                    *answer = Some(value.clone());
                }
            })
            .await;
            Ok(value)
        })
    }

    fn get_key(
        &self,
        selector: &KeySelector,
        isolation: Isolation,
    ) -> impl Future<Output = Result<Bytes>> + Send + use<D> {
        let call = self.call(Call::GetKey { selector: selector.clone(), isolation, answer: None });
        let (read, this) = (self.inner.get_key(selector, isolation).boxed(), self.clone());
        self.with_ending(async move {
            let key = this.has_read(call, read.await)?;
            this.replied(call, |call| {
                if let Call::GetKey { answer, .. } = call {
                    *answer = Some(key.clone());
                }
            })
            .await;
            Ok(key)
        })
    }

    fn get_range(
        &self,
        range: &RangeOption,
        iteration: usize,
        isolation: Isolation,
    ) -> impl Future<Output = Result<RangeBatch>> + Send + use<D> {
        let call = self.call(Call::GetRange {
            begin: range.begin.clone(),
            end: range.end.clone(),
            limit: range.limit.unwrap_or(0),
            reverse: range.reverse,
            isolation,
            answer: None,
        });
        let (read, this) = (self.inner.get_range(range, iteration, isolation).boxed(), self.clone());
        self.with_ending(async move {
            let batch = this.has_read(call, read.await)?;
            this.replied(call, |call| {
                if let Call::GetRange { answer, .. } = call {
                    *answer = Some((batch.rows.as_slice().into(), batch.more));
                }
            })
            .await;
            Ok(batch)
        })
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        self.write(Mutation::Set(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
        self.inner.set(key, value);
    }

    fn clear(&self, key: &[u8]) {
        self.write(Mutation::ClearRange(KeyRange::new(
            Bytes::copy_from_slice(key),
            shaketable_tx::key_after(key),
        )));
        self.inner.clear(key);
    }

    fn clear_range(&self, begin: &[u8], end: &[u8]) {
        if begin < end {
            let (begin, end) = (Bytes::copy_from_slice(begin), Bytes::copy_from_slice(end));
            self.write(Mutation::ClearRange(KeyRange::new(begin, end)));
        }
        self.inner.clear_range(begin, end);
    }

    fn add_conflict_range(&self, begin: &[u8], end: &[u8], kind: ConflictRangeType) -> Result<()> {
        self.noted(self.inner.add_conflict_range(begin, end, kind))?;
        let range = KeyRange::new(Bytes::copy_from_slice(begin), Bytes::copy_from_slice(end));
        self.record.lock().aside(Aside::ConflictRange(kind, range));
        Ok(())
    }

    fn atomic_op(&self, key: &[u8], operand: &[u8], op: MutationType) {
        self.write(Mutation::Atomic(Bytes::copy_from_slice(key), Bytes::copy_from_slice(operand), op));
        self.inner.atomic_op(key, operand, op);
    }

    fn get_read_version(&self) -> impl Future<Output = Result<i64>> + Send + use<D> {
        self.needs_version();
        let number = self.record.lock().number;
        let (read, this) = (self.inner.get_read_version(), self.clone());
        self.with_ending(async move {
            let version = read.await?;
            let mut record = this.record.lock();
            if record.number == number {
                record.read_version.get_or_insert(version);
            }
            Ok(version)
        })
    }

    fn set_read_version(&self, version: i64) {
        let mut record = self.record.lock();
        record.fresh = false;
        record.read_version.get_or_insert(version);
        record.aside(Aside::ReadVersion(version));
        self.inner.set_read_version(version);
    }

    fn set_option(&self, option: TransactionOption) -> Result<()> {
        self.noted(self.inner.set_option(option.clone()))?;
        let mut record = self.record.lock();
        if option.is_observable() {
            record.aside(Aside::Option(option.clone()));
        }
        match option {
            TransactionOption::ReadYourWritesDisable => record.seen.read = false,
            TransactionOption::SnapshotRywEnable => record.snapshot_read_your_writes += 1,
            TransactionOption::SnapshotRywDisable => record.snapshot_read_your_writes -= 1,
            TransactionOption::BypassUnreadable => record.seen.unreadable = true,
            TransactionOption::CausalReadRisky | TransactionOption::UseGrvCache => record.fresh = false,
            TransactionOption::CausalWriteRisky => record.outcome_is_final = false,
            TransactionOption::NextWriteNoWriteConflictRange => record.waives_conflicts = true,
            _ => {}
        }
        record.seen.snapshot_read = record.snapshot_read_your_writes >= 0;
        Ok(())
    }

    fn set_option_raw(&self, code: i32, value: Option<&[u8]>) -> Result<()> {
        self.set_option(self.noted(TransactionOption::from_raw(code, value))?)
    }

    /// Adds the attempt's entry in the log to the transaction, if it writes anything, and commits.
    fn commit(&self) -> impl Future<Output = Result<()>> + Send + use<D> {
        let now = self.now();
        let mut record = self.record.lock();
        let number = record.number;
        let (writes, first) = (record.writes(), record.commit_sent.is_none());
        let mut stamp = None;
        if record.version_requested.is_none() {
            // The client requests one that need not include what was acknowledged before
            // (`NativeAPI.actor.cpp`).
            record.fresh = false;
        }
        record.version_is_needed(now);
        if first {
            record.commit_sent = Some(now);
            if writes {
                let key = self.shared.log.key(record.id());
                self.inner.set_stamped(&key, b"");
                stamp = Some(self.inner.get_versionstamp());
            }
        }
        drop(record);
        let (commit, this) = (self.inner.commit().boxed(), self.clone());
        self.with_ending(async move {
            let committed = commit.await;
            let reported = match (&committed, stamp) {
                (Err(error), _) => Reported::Failed(*error),
                (Ok(()), None) => Reported::ReadOnly,
                (Ok(()), Some(stamp)) => match stamp.await {
                    Ok(stamp) => {
                        let (version, batch_index) = place(&stamp);
                        Reported::Committed { version, batch_index }
                    }
                    Err(error) => Reported::Failed(error),
                },
            };
            let mut record = this.record.lock();
            if first && record.number == number {
                (record.reported, record.ended) = (reported, this.now());
            }
            committed
        })
    }

    fn on_error(&self, error: Error) -> impl Future<Output = Result<()>> + Send + use<D> {
        let now = self.now();
        let number = {
            let mut record = self.record.lock();
            record.is_ending = true;
            record.called_meanwhile = (record.reading > 0).then_some(now);
            record.number
        };
        let (retried, this) = (self.inner.on_error(error).boxed(), self.clone());
        let (shared, operation) = (self.shared.clone(), self.operation);
        let clock = shared.clone();
        let end = beside(error, move |ending| shared.note_ending(operation, ending));
        let retry = async move {
            let retried = retried.await;
            let mut record = this.record.lock();
            if record.number == number {
                match retried {
                    Ok(()) => record.next(*this.shared.label.lock()),
                    Err(_) => record.is_ending = false,
                }
            }
            retried
        };
        with_ending(retry, move || clock.now(), end)
    }

    fn reset(&self) {
        self.record.lock().next(*self.shared.label.lock());
        self.inner.reset();
    }

    fn watch(&self, key: &[u8]) -> BoxFuture<'static, Result<()>> {
        self.needs_version();
        self.with_ending(self.inner.watch(key)).boxed()
    }

    fn get_estimated_range_size_bytes(
        &self,
        begin: &[u8],
        end: &[u8],
    ) -> impl Future<Output = Result<i64>> + Send + use<D> {
        self.needs_version();
        self.with_ending(self.inner.get_estimated_range_size_bytes(begin, end))
    }

    fn get_range_split_points(
        &self,
        begin: &[u8],
        end: &[u8],
        chunk_size: i64,
    ) -> impl Future<Output = Result<Vec<Bytes>>> + Send + use<D> {
        self.needs_version();
        self.with_ending(self.inner.get_range_split_points(begin, end, chunk_size))
    }

    fn get_addresses_for_key(&self, key: &[u8]) -> impl Future<Output = Result<Vec<String>>> + Send + use<D> {
        self.needs_version();
        self.with_ending(self.inner.get_addresses_for_key(key))
    }

    fn get_mapped_range(
        &self,
        _: &RangeOption,
        _: &[u8],
        _: usize,
        _: Isolation,
    ) -> impl Future<Output = Result<MappedBatch>> + Send + use<D> {
        // As the prefixed transaction answers.
        self.with_ending(ready(Err(Error::UNSUPPORTED_OPERATION)))
    }

    fn atomic_op_code(&self, key: &[u8], operand: &[u8], code: u32) -> Result<()> {
        let op = MutationType::from_code(code).ok_or(Error::INVALID_MUTATION_TYPE);
        self.noted(op).map(|op| self.atomic_op(key, operand, op))
    }

    fn get_committed_version(&self) -> Result<i64> {
        self.noted(self.inner.get_committed_version())
    }

    fn get_versionstamp(&self) -> BoxFuture<'static, Result<[u8; 10]>> {
        self.with_ending(self.inner.get_versionstamp()).boxed()
    }

    fn get_approximate_size(&self) -> impl Future<Output = Result<i64>> + Send + use<D> {
        self.with_ending(self.inner.get_approximate_size())
    }

    fn get_tag_throttled_duration(&self) -> impl Future<Output = Result<Duration>> + Send + use<D> {
        self.with_ending(self.inner.get_tag_throttled_duration())
    }

    fn get_total_cost(&self) -> impl Future<Output = Result<i64>> + Send + use<D> {
        self.with_ending(self.inner.get_total_cost())
    }

    pass_on! { <D> inner: cancel }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        judge::{Evidence, Truth, serializable},
        run::calm,
    };
    use shaketable_sim::seed::Seed;

    /// What a client that goes on after its commit leaves in the history, and what is said of the cluster.
    async fn after_its_commit(db: impl Database) -> (Vec<Mutation>, bool) {
        let (space, log) = (Space::new("run/data/"), Space::new("run/log/"));
        let (space, log) = (space.expect("a prefix"), Log::new(log.expect("a prefix")));
        let shared = Arc::new(SharedHistory::default());
        let recorded = Recorded::new(db.clone(), space, log.clone(), ClientId(0), shared.clone());
        recorded.set_operation(Some(3));
        let tx = recorded.create_transaction().expect("a transaction");
        tx.set(b"a", b"1");
        tx.commit().await.expect("a calm commit");
        tx.set(b"b", b"2");
        let refused = tx.get(b"b", Isolation::Serializable).await.expect_err("it is used after its commit");
        drop(tx);
        let rows = log.space().all();
        let rows = &rows;
        let rows = db
            .run(|tx, _| async move { tx.get_range_all(rows.clone(), Isolation::Serializable).await })
            .await;
        let entries: Vec<_> = rows.expect("the log").iter().filter_map(|row| log.entry(&row.key)).collect();
        let history = shared.history(&entries);
        assert_eq!(history.met[&(ClientId(0), 3)].errors, [refused]);
        let truth = Truth::of(&history);
        let evidence = Evidence { history: &history, truth: &truth, replicas: &[] };
        let written = truth.entries.iter().flat_map(|entry| &entry.transactions);
        (written.flat_map(|tx| tx.mutations.clone()).collect(), serializable::judge(&evidence).is_ok())
    }

    #[test]
    fn what_a_client_writes_after_its_commit_is_not_taken_for_committed() {
        let only = vec![Mutation::Set("a".into(), "1".into())];
        assert_eq!(calm::simulate(after_its_commit), (only, true));
    }

    /// Writes some keys of each block, and then reads some of the blocks: what is read has a conflict range
    /// between any two keys that were written.
    async fn work(tx: &impl Transaction, blocks: &[(u8, Vec<u8>)]) -> Result<()> {
        for (block, (_, keys)) in (0..).zip(blocks) {
            keys.iter().for_each(|key| tx.set(&[block, *key], b"value"));
        }
        for (block, (reads, _)) in (0..).zip(blocks) {
            match reads {
                0 => {}
                1 => tx.add_conflict_range(&[block], &[block, 200], ConflictRangeType::Read)?,
                _ => {
                    let block = RangeOption::new(vec![block], vec![block, 200]);
                    tx.get_range(&block, 1, Isolation::Serializable).await?;
                }
            }
        }
        Ok(())
    }

    /// The least limit of the size with which a transaction commits.
    async fn least(db: &impl Database, blocks: &[(u8, Vec<u8>)]) -> i32 {
        let (mut least, mut most) = (32, 100_000);
        while least < most {
            let limit = (least + most) / 2;
            let tx = db.create_transaction().expect("a transaction");
            tx.set_option(TransactionOption::SizeLimit(limit)).expect("a limit");
            work(&tx, blocks).await.expect("a calm cluster answers");
            match tx.commit().await {
                Ok(()) => most = limit,
                Err(error) => {
                    assert_eq!(error, Error::TRANSACTION_TOO_LARGE);
                    least = limit + 1;
                }
            }
        }
        least
    }

    #[test]
    fn nothing_of_the_run_counts_against_a_limit_of_the_size() {
        let limits = calm::simulate(|db| async move {
            let (space, log) = (Space::new("p".repeat(200)), Space::new("log/"));
            let (space, log) = (space.expect("a prefix"), Log::new(log.expect("a prefix")));
            let shared = Arc::new(SharedHistory::default());
            let recorded = Recorded::new(db.clone(), space, log, ClientId(0), shared);
            let mut draw = Seed(7).stream("sizes");
            let mut limits = Vec::new();
            for _ in 0..20 {
                let mut block = || {
                    let keys = (0..draw.below(5) as u8).map(|key| 2 * key).collect();
                    (draw.below(3) as u8, keys)
                };
                let blocks: Vec<(u8, Vec<u8>)> = (0..6).map(|_| block()).collect();
                limits.push((least(&db, &blocks).await, least(&recorded, &blocks).await));
            }
            limits
        });
        assert!(limits.iter().any(|(alone, _)| *alone > 1_500), "{limits:?}");
        for (alone, recorded) in limits {
            // A mutation counts for a little more than it has.
            assert!((alone - 30..=alone).contains(&recorded), "{recorded} where {alone} would do");
        }
    }
}
