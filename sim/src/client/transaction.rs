//! A transaction's state, in each of its lives.

use super::{
    backoff,
    conflict::RangeSet,
    keys::{ALL_END, USER_END},
    options::{Options, is_persistent},
    record::Record,
    shared::{Client, Label},
    snapshot_cache::SnapshotCache,
    special_keys::{Span, Writes},
    stamp::StampCell,
    wakers::Wakers,
    watch_cell::WatchCell,
    write_map::WriteMap,
};
use crate::{
    config::ClusterBug,
    history::Reported,
    proto::{CommitReply, KeyRange, Mutation, Version},
    rt::Nanos,
};
use bytes::Bytes;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use shaketable_tx::{Error, Result, TransactionOption, Turns};
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    task::Waker,
};

/// The calls of one transaction that are recorded at most, which would take a gigabyte: forty times what any
/// program is known to need. The clock finds a loop that never waits much earlier.
const MOST_CALLS: u32 = 10_000_000;

/// A transaction's handle; clones refer to the same transaction.
#[derive(Clone)]
pub struct SimTransaction(pub(super) Arc<Inner>, pub(super) Turns);

/// The state shared by the handles.
pub struct Inner {
    /// The client of the database.
    pub client: Arc<Client>,
    /// The operation for which it was created.
    pub operation: Option<u32>,
    /// The mutable state.
    pub state: Mutex<State>,
}

/// Data that is sent to the commit proxy unchanged: everything if read-your-writes is disabled; otherwise,
/// what a versionstamped key has pushed out of the write map.
#[derive(Debug, Default)]
pub struct Native {
    /// Writes, in order.
    pub mutations: Vec<Mutation>,
    /// Read conflict ranges.
    pub read_ranges: Vec<KeyRange>,
    /// Ranges of completed reads; they do not count towards the size.
    pub extra_reads: Vec<KeyRange>,
    /// Write conflict ranges.
    pub write_ranges: Vec<KeyRange>,
}

/// A read that the application has dropped.
pub type Left = BoxFuture<'static, ()>;

/// The state of the read version.
pub enum ReadVersion {
    /// Not needed so far.
    NotRequested,
    /// Requested.
    Requested(Shared<BoxFuture<'static, Result<Version>>>),
    /// Received or set.
    Known(Version),
}

impl ReadVersion {
    /// The version, if it has arrived.
    pub fn known(&self) -> Option<Version> {
        match self {
            ReadVersion::Known(version) => Some(*version),
            ReadVersion::NotRequested => None,
            ReadVersion::Requested(requested) => requested.peek().and_then(|answer| answer.ok()),
        }
    }
}

/// The mutable state of a transaction.
pub struct State {
    /// The number of resets: a call of an earlier life ends with 1025.
    pub epoch: u32,
    /// The number of calls in this life.
    calls: u32,
    /// The options in effect.
    pub options: Options,
    /// Options set on this transaction that remain set after `on_error`.
    pub(super) persistent: Vec<TransactionOption>,
    pub(super) created: Nanos,
    pub(super) retries: i32,
    pub(super) backoff: Nanos,
    /// The error with which every call ends until a reset.
    pub failure: Option<Error>,
    /// The error of a call that returns nothing, for the next call that returns a result.
    pub deferred: Option<Error>,
    /// Whether a commit has started: no other call is allowed until a reset.
    pub commit_started: bool,
    /// Whether a read was ever started.
    pub has_read: bool,
    /// The transaction's own writes; reads in progress keep the ones with which they were issued.
    pub writes: Arc<WriteMap>,
    /// The cached part of the snapshot.
    pub cache: SnapshotCache,
    /// Read conflict ranges.
    pub reads: RangeSet,
    /// Data that is sent to the commit proxy unchanged.
    pub native: Native,
    /// Versionstamped keys in their original form.
    pub stamp_keys: Vec<Bytes>,
    /// The approximate size.
    pub size: i64,
    /// The cost of what was read from storage servers and passed to the commit, in bytes of pages.
    pub cost: i64,
    /// The read version.
    pub version: ReadVersion,
    /// The number of reads in progress, the tasks that wait for it to become zero, and the first error of a
    /// read.
    pub reading: usize,
    pub idle: Vec<Waker>,
    /// Reads in progress that the application has dropped.
    pub left: Vec<Left>,
    pub reading_error: Option<Error>,
    /// Tasks of calls in progress.
    pub waiting: Wakers,
    /// Watches that the commit will arm.
    pub watches: Vec<Arc<WatchCell>>,
    /// Watches that have ended. They are dropped with this life, when the state is not locked.
    pub watches_over: Vec<Arc<WatchCell>>,
    /// The tasks that wait for the versionstamp.
    pub stamp: Option<Arc<StampCell>>,
    /// The commit version; -1 before the commit and for a read-only transaction.
    pub committed_version: Version,
    /// The reply to the commit.
    pub outcome: Option<CommitReply>,
    /// After 1020, the read ranges that conflicted.
    pub conflicting: RangeSet,
    /// The id with which an unknown result is looked up.
    pub idempotency_id: Option<Bytes>,
    /// The special keys that it has written.
    pub special: Writes,
    /// Why a call of special keys has failed.
    pub special_error: Option<String>,
    /// What identifies it in traces.
    pub span: Span,
    /// The record of this attempt for the history.
    pub record: Record,
    /// The record of the next attempt, while this one backs off. FoundationDB's client resets what is below
    /// read-your-writes before it backs off, and ends the reads in flight after it (`RYWImpl::onError`). The
    /// read version that such a read asks for meanwhile is that of the next attempt.
    pub next: Option<Record>,
    /// The number of read versions that may have been requested: a reply to an earlier request is not kept.
    pub versions: u32,
}

impl Inner {
    /// A transaction with the client's defaults.
    pub fn new(client: Arc<Client>) -> Arc<Inner> {
        let label = *client.label.lock();
        let state = State::new(&client, label);
        Arc::new(Inner { client, operation: label.operation, state: Mutex::new(state) })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Inner { client, state, .. } = self;
        let state = state.get_mut();
        state.end(client, Reported::Nothing);
        state.end_next(client);
        let cancelled = Error::TRANSACTION_CANCELLED;
        state.abandon(cancelled, cancelled).wake();
    }
}

/// What an abandoned life leaves: tasks to wake, and watches and reads to drop, which lock the state once
/// more. All of it only after the state is unlocked.
#[must_use = "tasks would wait for ever"]
pub(super) struct Abandoned {
    woken: Vec<Waker>,
    _watches: Vec<Arc<WatchCell>>,
    _left: Vec<Left>,
}

impl Abandoned {
    /// Only the tasks that wait for the end of a call.
    pub(super) fn calls(woken: Vec<Waker>) -> Abandoned {
        Abandoned { woken, _watches: Vec::new(), _left: Vec::new() }
    }

    pub(super) fn wake(self) {
        self.woken.into_iter().for_each(Waker::wake);
    }
}

impl State {
    fn new(client: &Client, label: Label) -> State {
        let mut state = State {
            epoch: 0,
            calls: 0,
            options: Options::new(1),
            persistent: Vec::new(),
            created: client.connection.world.clock.now(),
            retries: 0,
            backoff: backoff::FIRST,
            failure: None,
            deferred: None,
            commit_started: false,
            has_read: false,
            writes: client.empty_writes.clone(),
            cache: SnapshotCache::default(),
            reads: RangeSet::default(),
            native: Native::default(),
            stamp_keys: Vec::new(),
            size: 0,
            cost: 0,
            version: ReadVersion::NotRequested,
            reading: 0,
            idle: Vec::new(),
            left: Vec::new(),
            reading_error: None,
            waiting: Wakers::default(),
            watches: Vec::new(),
            watches_over: Vec::new(),
            stamp: None,
            committed_version: -1,
            outcome: None,
            conflicting: RangeSet::default(),
            idempotency_id: None,
            special: Writes::default(),
            special_error: None,
            span: Span::new(client.lives.fetch_add(1, Relaxed)),
            record: Record::new(label),
            next: None,
            versions: 0,
        };
        state.restore_options(client);
        state.identify(client);
        state
    }

    /// Draws the id of a transaction that uses automatic idempotency.
    fn identify(&mut self, client: &Client) {
        if self.options.automatic_idempotency && self.idempotency_id.is_none() {
            let mut id = [0; 16];
            client.connection.draw(|chance| chance.fill(&mut id));
            self.idempotency_id = Some(Bytes::copy_from_slice(&id));
        }
    }

    /// The options of a new attempt: the database's defaults, and those that remain set after a retry.
    fn restore_options(&mut self, client: &Client) {
        let defaults = client.defaults.lock();
        self.options = Options::new(defaults.snapshot_ryw);
        for option in defaults.options.iter().chain(&self.persistent) {
            // Each was valid when it was set.
            let _ = self.options.set(option);
        }
    }

    /// The end of the keys that the transaction may read.
    pub fn max_read(&self) -> Bytes {
        if self.options.read_system_keys { ALL_END } else { USER_END }
    }

    /// The end of the keys that it may write.
    pub fn max_write(&self) -> Bytes {
        if self.options.write_system_keys { ALL_END } else { USER_END }
    }

    /// When the timeout expires.
    pub fn deadline(&self) -> Option<Nanos> {
        (self.options.timeout > 0).then(|| self.created + self.options.timeout)
    }

    /// The error with which a call made in the life `epoch` must end now.
    pub fn check(&mut self, client: &Client, epoch: u32) -> Result<()> {
        if self.epoch != epoch {
            return Err(Error::TRANSACTION_CANCELLED);
        }
        self.alive(client)
    }

    /// The error that every call on a failed transaction returns.
    pub fn alive(&mut self, client: &Client) -> Result<()> {
        if self.failure.is_none() && self.deadline().is_some_and(|deadline| client.now() >= deadline) {
            self.failure = Some(Error::TRANSACTION_TIMED_OUT);
        }
        self.failure.map_or(Ok(()), Err)
    }

    /// The error left by an earlier call.
    pub fn deferred(&self) -> Result<()> {
        self.deferred.map_or(Ok(()), Err)
    }

    /// Leaves an error for a later call, unless there is already one.
    pub fn defer(&mut self, error: Error) {
        self.deferred.get_or_insert(error);
    }

    /// Fails with 2017 once a commit has started, and makes that commit fail as well. An endless loop of
    /// calls panics, so that it becomes a finding of its seed: if virtual time stands still (see
    /// [`Clock::now`](crate::rt::Clock::now)), or after more calls than can be recorded.
    pub fn unused(&mut self, client: &Client) -> Result<()> {
        client.now();
        self.calls += 1;
        assert!(self.calls < MOST_CALLS, "it loops without end: {MOST_CALLS} calls of one transaction");
        if !self.commit_started {
            return Ok(());
        }
        if !self.options.used_during_commit_allowed && self.failure.is_none() {
            self.failure = Some(Error::USED_DURING_COMMIT);
            self.waiting.take().into_iter().for_each(Waker::wake);
        }
        Err(Error::USED_DURING_COMMIT)
    }

    /// The checks that every call that returns a result starts with.
    pub fn enter(&mut self, client: &Client) -> Result<()> {
        self.deferred()?;
        self.unused(client)?;
        self.alive(client)
    }

    /// Records that a read has failed: the commit will fail with the same error.
    pub fn read_failed(&mut self, error: Error) {
        self.reading_error.get_or_insert(error);
    }

    /// Records the attempt's end.
    pub fn end(&mut self, client: &Client, reported: Reported) {
        self.record.end(client, reported);
    }

    /// Resets what the next attempt begins with before the backoff.
    pub(super) fn back_off(&mut self, client: &Client) {
        self.versions += 1;
        self.version = ReadVersion::NotRequested;
        self.next = Some(Record::new(self.record.label().renewed(*client.label.lock())));
    }

    /// Records the end of an attempt that has got a read version, and never began.
    pub(super) fn end_next(&mut self, client: &Client) {
        if let Some(mut next) = self.next.take() {
            next.end(client, Reported::Nothing);
        }
    }

    /// Ends everything that waits: the versionstamp with `unstamped`, all else with `error`.
    fn abandon(&mut self, error: Error, unstamped: Error) -> Abandoned {
        let mut watches = std::mem::take(&mut self.watches);
        watches.iter().for_each(|watch| watch.fail(error));
        watches.append(&mut self.watches_over);
        if let Some(stamp) = self.stamp.take() {
            stamp.set(Err(unstamped));
        }
        let mut woken = self.waiting.take();
        woken.append(&mut self.idle);
        Abandoned { woken, _watches: watches, _left: std::mem::take(&mut self.left) }
    }

    /// Sets an option.
    pub fn set_option(&mut self, client: &Client, option: &TransactionOption) -> Result<()> {
        if *option == TransactionOption::ReadYourWritesDisable && (self.has_read || !self.writes.is_empty()) {
            return Err(Error::CLIENT_INVALID_OPERATION);
        }
        if matches!(option, TransactionOption::Timeout(_)) {
            // If the time is over, another limit does not give it back.
            let _ = self.alive(client);
        }
        self.options.set(option)?;
        self.record.option(option);
        if let TransactionOption::IdempotencyId(id) = option {
            self.idempotency_id = Some(id.clone());
        }
        if is_persistent(option) {
            self.persistent.push(option.clone());
        }
        self.identify(client);
        Ok(())
    }

    /// What a client with a planted bug carries into the next life.
    fn plant(&mut self, next: &mut State, client: &Client) {
        match client.connection.world.config.cluster_bug {
            Some(ClusterBug::ClientKeepsVersion) => next.committed_version = self.committed_version,
            Some(ClusterBug::ClientKeepsOptions) => next.options = self.options.clone(),
            Some(ClusterBug::ClientLosesOptions) => next.options = Options::new(1),
            Some(ClusterBug::ClientKeepsReads) => next.reads = std::mem::take(&mut self.reads),
            _ => {}
        }
    }

    /// Starts the next life: options that do not persist are lost, and all calls in progress end with 1025,
    /// except for the versionstamp: it ends with 1100, or with the error that had ended the transaction
    /// before.
    pub(super) fn renew(&mut self, client: &Client) -> Abandoned {
        self.end(client, Reported::Nothing);
        let unstamped = self.failure.unwrap_or(Error::BROKEN_PROMISE);
        let abandoned = self.abandon(Error::TRANSACTION_CANCELLED, unstamped);
        let mut next = State::new(client, self.record.label().renewed(*client.label.lock()));
        next.epoch = self.epoch + 1;
        match self.next.take() {
            Some(record) => {
                next.record = record;
                next.versions = self.versions;
                next.version = std::mem::replace(&mut self.version, ReadVersion::NotRequested);
            }
            None => next.versions = self.versions + 1,
        }
        next.persistent = std::mem::take(&mut self.persistent);
        next.created = self.created;
        next.retries = self.retries;
        next.backoff = self.backoff;
        next.restore_options(client);
        self.plant(&mut next, client);
        *self = next;
        abandoned
    }
}

impl Inner {
    /// Ends every call with 1025 until a reset.
    pub(super) fn cancel(&self) {
        let mut state = self.state.lock();
        state.failure.get_or_insert(Error::TRANSACTION_CANCELLED);
        let woken = state.waiting.take();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}
