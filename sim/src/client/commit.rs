//! Commits: what is sent, the result, and the client's actions when the result is unknown.

use super::{
    conflict::{clip, common_key},
    connection::{Commit, Connection, VersionFlags},
    guard::{guarded, idle},
    keys::{ALL_END, Edge, SELF_CONFLICT_PREFIX, single_key},
    shared::Client,
    sizes, special_keys,
    stamp::{self, StampCell},
    transaction::{Inner, Native, SimTransaction, State},
    version::read_version,
    write_map::{Op, Segment, conflict_ranges},
};
use crate::{
    atomic,
    config::ClusterBug,
    faults::{Family, Occurrence, Request, draws},
    history::Reported,
    idempotency,
    proto::{CommitData, CommitReply, KeyRange, Mutation, Version},
    rt::{self, MILLISECOND, Nanos, SECOND},
};
use bytes::Bytes;
use futures::future::select;
use shaketable_tx::{Error, KeySelector, Result, key_after};
use std::{future::Future, pin::pin, sync::Arc};

/// The number of versions after its read version within which a transaction can commit.
const LIFE: Version = 5_000_000;

impl State {
    /// Moves the writes of `range` to the mutations to be sent, clears first; of each key only the last, if a
    /// planted bug wants it so.
    pub fn flush(&mut self, range: &KeyRange, last_only: bool) {
        let mut cursor = self.writes.cursor_at(&range.begin);
        let mut cleared: Option<Bytes> = None;
        let begin = |edge: Edge<'_>| match edge < Edge::at(&range.begin) {
            true => range.begin.clone(),
            false => edge.to_bytes(),
        };
        let mutations = &mut self.native.mutations;
        let flushed = mutations.len();
        let mut after_clears = Vec::new();
        while cursor.begins_before(&range.end) {
            if cursor.segment() == Segment::Cleared {
                cleared.get_or_insert_with(|| begin(cursor.begin()));
            } else if let Some(from) = cleared.take() {
                mutations
                    .push(Mutation::ClearRange(KeyRange { begin: from, end: cursor.begin().to_bytes() }));
            }
            if cursor.is_operation() {
                let key = cursor.key_bytes();
                let ops = cursor.stack().ops();
                let from = if last_only { ops.len().max(1) - 1 } else { 0 };
                after_clears.extend(ops[from..].iter().map(|op| match op {
                    Op::Set(Some(value)) => Mutation::Set(key.clone(), value.clone()),
                    Op::Set(None) => Mutation::ClearRange(single_key(&key)),
                    Op::Atomic(op, operand) => Mutation::Atomic(key.clone(), operand.clone(), *op),
                }));
            }
            cursor.next();
        }
        if let Some(from) = cleared {
            mutations.push(Mutation::ClearRange(KeyRange { begin: from, end: range.end.clone() }));
        }
        mutations.append(&mut after_clears);
        self.cost += self.native.mutations[flushed..].iter().map(sizes::write_cost).sum::<i64>();
        self.native.write_ranges.extend(conflict_ranges(&self.writes, &range.begin, &range.end));
    }

    /// Builds the data to be sent; the returned size is that of what the transaction requested.
    fn build(&mut self, client: &Client) -> (CommitData, i64) {
        if !self.options.ryw_disabled && !self.writes.is_untouched() {
            let last_only = client.has(ClusterBug::ClientSendsLast);
            self.flush(&KeyRange { begin: Bytes::new(), end: ALL_END }, last_only);
        }
        let Native { mutations, mut read_ranges, extra_reads, write_ranges } =
            std::mem::take(&mut self.native);
        if self.options.ryw_disabled {
            // The special keys still show these after the commit.
            self.native.read_ranges = read_ranges.clone();
            self.native.extra_reads = extra_reads.clone();
            self.native.write_ranges = write_ranges.clone();
        } else {
            read_ranges = self.reads.ranges();
        }
        let size = sizes::commit(&mutations, &read_ranges, &write_ranges);
        read_ranges.extend(extra_reads.into_iter().filter_map(|r| clip(&r.begin, &r.end)));
        let data = CommitData {
            mutations,
            read_ranges,
            write_ranges,
            report_conflicting_keys: self.options.report_conflicting_keys,
            lock_aware: self.options.lock_aware,
            idempotency_id: self.idempotency_id.clone(),
            ..CommitData::default()
        };
        (data, size)
    }
}

/// The effects of a fault on a commit.
#[derive(Debug)]
enum Fault {
    /// Nothing is sent; this is the result.
    Refuse(Error),
    /// Nothing is sent, and the outcome is unknown.
    Lose(Occurrence),
    /// The transaction is committed, and the outcome is unknown.
    Hide(Occurrence),
    /// The transaction is committed, or nothing is sent, and the outcome stays unknown.
    Forget { sent: bool },
    /// This is the result, and the commit is sent after this delay.
    SendLater(Error, Nanos),
}

impl Connection {
    fn commit_fault(&self, timeout: bool) -> Option<Fault> {
        let faults = &self.world.faults;
        if !faults.are_on() {
            return None;
        }
        let late =
            |of: &mut Occurrence| faults.draw(of, |chance| draws::landing_delay(chance, self.window()));
        if let Some(error) = self.refusal_of([Family::SpuriousConflict, Family::ProxyMemory]) {
            return Some(Fault::Refuse(error));
        }
        if self.fault_occurs(Family::Throttled) {
            return Some(Fault::Refuse(Error::TRANSACTION_THROTTLED_HOT_SHARD));
        }
        if let Some(error) = self.refusal_of([Family::RangeLocked]) {
            return Some(Fault::Refuse(error));
        }
        if let Some(mut fault) = self.fault(Family::UnknownFatal) {
            return Some(Fault::Forget { sent: faults.draw(&mut fault, draws::is_sent) });
        }
        if let Some(fault) = self.fault(Family::UnknownNotCommitted) {
            return Some(Fault::Lose(fault));
        }
        if let Some(fault) = self.fault(Family::UnknownCommitted) {
            return Some(Fault::Hide(fault));
        }
        // Only a transaction with a timeout can time out.
        if timeout && let Some(mut fault) = self.fault(Family::LateLanding) {
            return Some(Fault::SendLater(Error::TRANSACTION_TIMED_OUT, late(&mut fault)));
        }
        if let Some(mut fault) = self.fault(Family::ClusterVersionChanged) {
            let error = Error::CLUSTER_VERSION_CHANGED;
            let sent = faults.draw(&mut fault, draws::is_sent);
            return Some(match sent {
                true => Fault::SendLater(error, late(&mut fault)),
                false => Fault::Refuse(error),
            });
        }
        None
    }

    /// If the fault occurs, waits until a read version requested at `version_requested` is about as old as
    /// the window is long: slightly less, or slightly more.
    async fn wait_for_window_edge(self: &Arc<Self>, version_requested: Nanos) {
        const EDGE: Nanos = 20 * MILLISECOND;
        if let Some(mut fault) = self.fault(Family::WindowEdge) {
            let edge =
                version_requested + self.window() + self.world.faults.draw(&mut fault, |c| c.below(2 * EDGE));
            self.sleep((edge.saturating_sub(EDGE)).saturating_sub(self.world.clock.now())).await;
        }
    }

    /// How long a read version can be used, nanoseconds.
    fn window(&self) -> Nanos {
        self.world.tunables.window() as u64 * SECOND / self.world.config.versions_per_second.max(1) as u64
    }

    /// Delays an unknown result, often for long enough that other clients act between it and the retry.
    async fn delay_result(self: &Arc<Self>, mut fault: Occurrence) {
        let delay = self.world.faults.draw(&mut fault, draws::result_delay);
        self.sleep(delay).await;
    }

    /// Commits a transaction that conflicts with one that reads and writes `key`: once this returns, the
    /// other one has committed, or never will.
    async fn ensure_final(self: &Arc<Self>, key: &Bytes) {
        let mut backoff = 10 * MILLISECOND;
        loop {
            let flags = VersionFlags { causal_read_risky: true, lock_aware: true, ..VersionFlags::default() };
            if let Ok(read) = self.read_version(flags).await {
                let range = single_key(key);
                let data = CommitData {
                    read_version: read.version,
                    read_ranges: vec![range.clone()],
                    write_ranges: vec![range],
                    lock_aware: true,
                    ..CommitData::default()
                };
                if let Commit::Answered(Ok(CommitReply::Committed { .. })) = self.commit(Arc::new(data)).await
                {
                    return;
                }
            }
            self.sleep((backoff as f64 * self.draw(|chance| chance.f64())) as Nanos).await;
            backoff = (backoff * 2).min(SECOND);
        }
    }

    /// Whether the transaction with this id has committed after `read_version`, and where.
    async fn find_idempotency_id(
        self: &Arc<Self>,
        id: &Bytes,
        read_version: Version,
    ) -> Option<(Version, u16)> {
        let KeyRange { begin: mut from, end } =
            idempotency::between(read_version, read_version.saturating_add(2 * LIFE));
        let mut backoff = 10 * MILLISECOND;
        loop {
            match self.idempotency_ids(&from, &end, id).await {
                Ok(SearchProgress::Found(at)) => return Some(at),
                Ok(SearchProgress::Nowhere) => return None,
                Ok(SearchProgress::UpTo(key)) => from = key_after(&key),
                Err(_) => {
                    self.sleep(backoff).await;
                    backoff = (backoff * 2).min(SECOND);
                }
            }
        }
    }

    async fn idempotency_ids(
        self: &Arc<Self>,
        from: &Bytes,
        end: &Bytes,
        id: &Bytes,
    ) -> Result<SearchProgress> {
        let flags = VersionFlags { lock_aware: true, ..VersionFlags::default() };
        let version = self.read_version(flags).await?.version;
        let fetch = super::range::Fetch {
            begin: super::selector::Selector::plain(&KeySelector::first_greater_or_equal(from.clone())),
            end: super::selector::Selector::plain(&KeySelector::first_greater_or_equal(end.clone())),
            limits: super::limits::Limits { rows: Some(1_000), min_rows: 1, bytes: None },
            reverse: false,
        };
        let batch = self.range(fetch, version).await?;
        let found = batch.rows.iter().find(|row| row.value == *id);
        if let Some(place) = found.and_then(|row| idempotency::place(&row.key)) {
            return Ok(SearchProgress::Found(place));
        }
        match (batch.more, batch.rows.last()) {
            (true, Some(last)) => Ok(SearchProgress::UpTo(last.key.clone())),
            _ => Ok(SearchProgress::Nowhere),
        }
    }
}

/// The progress of a search for an idempotency id.
enum SearchProgress {
    Found((Version, u16)),
    Nowhere,
    UpTo(Bytes),
}

impl SimTransaction {
    /// Starts the commit; the returned future completes it.
    pub(super) fn do_commit(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        let inner = self.0.clone();
        let begun = {
            let mut state = inner.state.lock();
            state.enter(&inner.client).map(|()| {
                state.commit_started = true;
                state.epoch
            })
        };
        async move {
            let epoch = begun?;
            let committed = guarded(&inner, epoch, commit(&inner, epoch)).await;
            let (answer, stamp) = inner.conclude(epoch, committed);
            if let Some(stamp) = stamp
                && !inner.client.has(ClusterBug::ClientStampsLate)
            {
                stamp.received(&inner.client.connection.world.clock).await;
            }
            answer
        }
    }
}

impl Inner {
    /// Reports the result of the commit to everything that waits for it. Also returns the versionstamp's
    /// cell, if it was asked for.
    fn conclude(
        &self,
        epoch: u32,
        committed: Result<Option<CommitReply>>,
    ) -> (Result<()>, Option<Arc<StampCell>>) {
        let mut state = self.state.lock();
        if state.epoch != epoch {
            return (Err(Error::TRANSACTION_CANCELLED), None);
        }
        let reported = match &committed {
            Ok(Some(CommitReply::Committed { version, batch_index })) => {
                Reported::Committed { version: *version, batch_index: *batch_index }
            }
            Ok(_) => Reported::ReadOnly,
            Err(e) => Reported::Failed(*e),
        };
        match reported {
            Reported::Committed { version, .. } => state.record.commit_answered(&self.client, version),
            Reported::Failed(e) => state.record.commit_answered(&self.client, -i64::from(e.code())),
            Reported::ReadOnly | Reported::Nothing => {}
        }
        state.end(&self.client, reported);
        // A cancel, a timeout or misuse ends the call, and leaves the watches and the versionstamp to the
        // reset.
        let is_abandoned = committed.is_err() && state.failure == committed.as_ref().err().copied();
        let (watches, stamp) = match is_abandoned {
            true => (Vec::new(), None),
            false => (std::mem::take(&mut state.watches), state.stamp.take()),
        };
        let (answer, stamped) = match committed {
            Ok(Some(CommitReply::Committed { version, batch_index })) => {
                state.committed_version = version;
                (Ok(Some(version)), Ok(atomic::versionstamp(version, batch_index)))
            }
            Ok(_) => (Ok(state.version.known()), stamp::READ_ONLY),
            Err(e) => (Err(e), stamp::FAILED),
        };
        state.outcome = committed.ok().flatten();
        drop(state);
        if let Some(stamp) = &stamp {
            stamp.set(stamped);
        }
        for watch in watches {
            match answer {
                Ok(version) => watch.arm(&self.client.connection, version),
                Err(e) => watch.fail(e),
            }
        }
        (answer.map(|_| ()), stamp)
    }

    /// Sends the commit after `delay` from a separate task, which outlives the transaction. After 1039 it
    /// arrives before any later commit of the client: the client closes the old connection before it opens a
    /// new one.
    fn send_later(&self, data: Arc<CommitData>, delay: Nanos, error: Error) {
        let connection = self.client.connection.clone();
        let mut hurry = match error {
            Error::CLUSTER_VERSION_CHANGED => Some(connection.landings.add()),
            _ => None,
        };
        rt::spawn(async move {
            match &mut hurry {
                Some(landing) => {
                    let _ = select(pin!(connection.sleep(delay)), landing.hurried()).await;
                }
                None => connection.sleep(delay).await,
            }
            // The result is discarded: the application was already informed that it is unknown.
            connection.commit(data).await;
        });
    }
}

/// Commits; `None` for a transaction without writes.
async fn commit(inner: &Arc<Inner>, epoch: u32) -> Result<Option<CommitReply>> {
    let connection = &inner.client.connection;
    if inner.state.lock().options.special_keys_writes {
        Box::pin(special_keys::commit(inner, epoch)).await?;
    }
    let watches = inner.state.lock().watches.clone();
    for watch in watches {
        watch.read().await;
    }
    if !inner.client.has(ClusterBug::ClientForgetsReads) {
        idle(inner, epoch).await?;
    }
    let (mut data, version, fault, turn) = {
        let mut state = inner.state.lock();
        state.check(&inner.client, epoch)?;
        let (data, size) = state.build(&inner.client);
        if data.mutations.is_empty() && data.write_ranges.is_empty() {
            return Ok(None);
        }
        if state.options.read_only {
            return Err(Error::TRANSACTION_READ_ONLY);
        }
        let most = state.options.size_limit - i64::from(inner.client.has(ClusterBug::ClientSizeLimit));
        if size > most {
            return Err(Error::TRANSACTION_TOO_LARGE);
        }
        let turn = connection.turn(state.record.operation(), Request::Commit);
        let fault = connection.commit_fault(state.options.timeout > 0);
        if let Some(Fault::Refuse(error)) = fault {
            return Err(error);
        }
        // A transaction without reads needs no causally consistent version.
        (data, read_version(inner, &mut state, true), fault, turn)
    };
    connection.landings.settle().await;
    let causal_write_risky = inner.state.lock().options.causal_write_risky;
    let settle_at = make_settleable(connection, &mut data, causal_write_risky);
    data.read_version = version.get().await?;
    let version_requested = inner.state.lock().record.version_requested_at();
    connection.wait_for_window_edge(version_requested).await;
    if let Some(turn) = &turn {
        turn.come().await;
    }
    let data = {
        let mut state = inner.state.lock();
        state.check(&inner.client, epoch)?;
        data.attempt = Some(state.record.id(&inner.client));
        if settle_at.is_none() {
            state.record.is_unsettled();
        }
        state.record.commit_sent(connection.world.clock.now(), &data.read_ranges, &data.write_ranges);
        Arc::new(data)
    };
    let answer = match fault {
        Some(Fault::SendLater(error, delay)) => {
            inner.send_later(data, delay, error);
            if error == Error::TRANSACTION_TIMED_OUT {
                inner.state.lock().failure.get_or_insert(error);
            }
            return Err(error);
        }
        Some(Fault::Lose(_)) => Commit::Unknown,
        Some(Fault::Forget { sent: false }) => return Err(Error::COMMIT_UNKNOWN_RESULT_FATAL),
        Some(Fault::Forget { sent: true }) => match connection.send_commit(data.clone()).await {
            Commit::Answered(Ok(CommitReply::Committed { .. })) => {
                return Err(Error::COMMIT_UNKNOWN_RESULT_FATAL);
            }
            other => other,
        },
        Some(Fault::Hide(_)) => match connection.send_commit(data.clone()).await {
            Commit::Answered(Ok(CommitReply::Committed { .. })) => Commit::Unknown,
            other => other,
        },
        _ => connection.commit(data.clone()).await,
    };
    if let Some(turn) = &turn {
        turn.answered().await;
    }
    match answer {
        Commit::Answered(Ok(CommitReply::Conflict(which))) => {
            let mut state = inner.state.lock();
            if state.epoch == epoch && data.report_conflicting_keys {
                let ranges = which.iter().filter_map(|i| data.read_ranges.get(*i as usize));
                ranges.for_each(|range| state.conflicting.insert(range.clone()));
            }
            Err(Error::NOT_COMMITTED)
        }
        Commit::Answered(answer) => answer.map(Some),
        Commit::Unknown => {
            if let Some(key) = &settle_at {
                connection.ensure_final(key).await;
                if let Some(id) = &data.idempotency_id {
                    return match connection.find_idempotency_id(id, data.read_version).await {
                        Some((version, batch_index)) => {
                            Ok(Some(CommitReply::Committed { version, batch_index }))
                        }
                        // It can no longer happen: equivalent to a read version that was too old.
                        None => Err(Error::TRANSACTION_TOO_OLD),
                    };
                }
            }
            if let Some(Fault::Lose(fault) | Fault::Hide(fault)) = fault {
                connection.delay_result(fault).await;
            }
            match inner.client.has(ClusterBug::ClientDeniesCommit) {
                true => Err(Error::NOT_COMMITTED),
                false => Err(Error::COMMIT_UNKNOWN_RESULT),
            }
        }
    }
}

/// Ensures that a key is both read and written, unless causal write risk is accepted: with that key, a later
/// transaction can ensure that this one is over. Returns the key.
fn make_settleable(connection: &Connection, data: &mut CommitData, risky: bool) -> Option<Bytes> {
    let conflict_with_itself = |data: &mut CommitData, id: &[u8]| {
        let range = single_key(&[SELF_CONFLICT_PREFIX, id].concat());
        data.read_ranges.push(range.clone());
        data.write_ranges.push(range.clone());
        range.begin
    };
    if let Some(id) = data.idempotency_id.clone() {
        return Some(conflict_with_itself(data, &id));
    }
    if risky {
        return None;
    }
    common_key(&data.write_ranges, &data.read_ranges).or_else(|| {
        let mut id = [0; 16];
        connection.draw(|chance| chance.fill(&mut id));
        Some(conflict_with_itself(data, &id))
    })
}
