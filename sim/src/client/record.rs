//! The record of one attempt in the history.

use super::{
    shared::{Client, Label},
    sizes::TRANSACTION_SIZE_LIMIT,
};
use crate::{
    history::{Aside, Attempt, Call, OwnWrites, OwnWritesByCall, Reported},
    ids::AttemptId,
    proto::{KeyRange, Mutation, Version},
    rt::Nanos,
    trace::Kind,
};
use bytes::Bytes;
use shaketable_tx::{KeyValue, TransactionOption};
use std::sync::{Arc, atomic::Ordering};

/// The bytes of writes of an attempt that was never sent to be committed which the history keeps in any case.
const KEPT: usize = 100_000;

/// The bytes of rows that the range reads of one attempt may return. A loop that reads one page again and
/// again waits for nothing, and would fill the memory before it has made too many calls.
const MOST_ROWS: usize = 2 << 30;

/// The calls that neither read nor write of an attempt after which its options are not recorded any more.
const MOST_ASIDES: usize = 100_000;

/// The attempt so far.
#[derive(Debug, Default)]
pub struct Record {
    label: Label,
    id: Option<AttemptId>,
    calls: Vec<Call>,
    own_writes: OwnWritesByCall,
    /// The bytes of the rows that were returned.
    returned: usize,
    round_trips: u32,
    asides: Vec<(usize, Aside)>,
    version_requested: Nanos,
    read_version: Option<Version>,
    fresh: bool,
    commit_sent: Option<Nanos>,
    unsettled: bool,
    read_ranges: Vec<KeyRange>,
    omits_conflict_ranges: bool,
    write_ranges: Option<Vec<KeyRange>>,
    ended: bool,
}

impl Record {
    /// A record of an attempt with this label.
    pub fn new(label: Label) -> Record {
        Record { label, ..Record::default() }
    }

    /// What it belongs to.
    pub fn label(&self) -> Label {
        self.label
    }

    /// The operation it belongs to.
    pub fn operation(&self) -> Option<u32> {
        self.label.operation
    }

    /// Records a write.
    pub fn write(&mut self, mutation: Mutation) {
        self.calls.push(Call::Write(mutation));
    }

    /// Records a read, and which of the transaction's own writes it sees. The returned number identifies it
    /// when its result is recorded.
    pub fn read(&mut self, call: Call, own: OwnWrites) -> usize {
        self.own_writes.note(self.calls.len(), own);
        self.calls.push(call);
        self.calls.len() - 1
    }

    /// Records the result of a point read.
    pub fn value(&mut self, at: usize, value: &Option<Bytes>) {
        if let Some(Call::Get { answer, .. }) = self.calls.get_mut(at) {
            *answer = Some(value.clone());
        }
    }

    /// Records the result of a selector's resolution.
    pub fn key(&mut self, at: usize, key: &Bytes) {
        if let Some(Call::GetKey { answer, .. }) = self.calls.get_mut(at) {
            *answer = Some(key.clone());
        }
    }

    /// Records the result of a range read. Panics after more than [`MOST_ROWS`].
    pub fn rows(&mut self, at: usize, rows: &[KeyValue], more: bool) {
        let bytes = |row: &KeyValue| size_of::<KeyValue>() + row.key.len() + row.value.len();
        self.returned += rows.iter().map(bytes).sum::<usize>();
        assert!(
            self.returned < MOST_ROWS,
            "it loops without end: {MOST_ROWS} bytes of rows in one transaction"
        );
        if let Some(Call::GetRange { answer, .. }) = self.calls.get_mut(at) {
            *answer = Some((Arc::from(rows), more));
        }
    }

    /// The round trips so far, when a request is sent.
    pub fn round_trips(&self) -> u32 {
        self.round_trips
    }

    /// Records the reply to a request that was sent after this number of round trips.
    pub fn replied(&mut self, round_trips: u32) {
        self.round_trips = self.round_trips.max(round_trips + 1);
    }

    /// Records a call that neither reads nor writes.
    pub fn aside(&mut self, aside: Aside) {
        self.asides.push((self.calls.len(), aside));
    }

    /// Records an option, if its effect can be observed. A loop that sets one again and again must not fill
    /// the memory.
    pub fn option(&mut self, option: &TransactionOption) {
        if option.is_observable() && self.asides.len() < MOST_ASIDES {
            self.aside(Aside::Option(option.clone()));
        }
    }

    /// Records that the read version was requested, and whether it is guaranteed to be fresh.
    pub fn version_requested(&mut self, now: Nanos, fresh: bool) {
        self.version_requested = now;
        self.fresh = fresh;
    }

    /// When the read version was requested.
    pub fn version_requested_at(&self) -> Nanos {
        self.version_requested
    }

    /// The attempt's number, reserved when it is first needed.
    pub fn id(&mut self, client: &Client) -> AttemptId {
        let operation = self.operation().map_or(u64::MAX, u64::from);
        *self.id.get_or_insert_with(|| {
            client.attempts.fetch_add(1, Ordering::Relaxed);
            let world = &client.connection.world;
            let id = world.history.lock().reserve();
            world.event(client.connection.node, Kind::Attempt, u64::from(id.0), operation);
            id
        })
    }

    /// Records the read version.
    pub fn read_version(&mut self, client: &Client, version: Version) {
        self.read_version = Some(version);
        let id = self.id(client);
        let connection = &client.connection;
        connection.world.event(connection.node, Kind::ReadVersion, u64::from(id.0), version as u64);
    }

    /// Records that a write was made without a write conflict range, as requested.
    pub fn omits_conflict_range(&mut self) {
        self.omits_conflict_ranges = true;
    }

    /// Records that an unknown result of the commit is not guaranteed to be final.
    pub fn is_unsettled(&mut self) {
        self.unsettled = true;
    }

    /// Records that the commit is being sent.
    pub fn commit_sent(&mut self, now: Nanos, read_ranges: &[KeyRange], write_ranges: &[KeyRange]) {
        self.commit_sent = Some(now);
        self.read_ranges = read_ranges.to_vec();
        self.write_ranges = self.omits_conflict_ranges.then(|| write_ranges.to_vec());
    }

    /// Records the result of the commit: the version, or the negated error code.
    pub fn commit_answered(&mut self, client: &Client, answer: i64) {
        let id = self.id(client);
        let connection = &client.connection;
        connection.world.event(connection.node, Kind::Commit, u64::from(id.0), answer as u64);
    }

    /// The bytes that its writes hold.
    fn written(&self) -> usize {
        self.calls.iter().map(|call| if let Call::Write(m) = call { m.bytes() } else { 0 }).sum()
    }

    /// Of an attempt that was never sent to be committed, nothing depends on its writes but its later reads.
    /// Frees the writes that no read follows, and all after the first, reads included, if they are more than
    /// a transaction may write.
    fn free_writes(&mut self) {
        let is_read = |call: &Call| !matches!(call, Call::Write(_));
        if self.written() > KEPT {
            self.calls.truncate(self.calls.iter().rposition(is_read).map_or(0, |last| last + 1));
        }
        if self.written() > TRANSACTION_SIZE_LIMIT as usize {
            let reads = self.calls.iter().position(|call| !is_read(call)).unwrap_or_default();
            self.calls.truncate(reads);
        }
        self.calls.shrink_to_fit();
    }

    /// Records the end of the attempt. Does nothing for a second call, or for an attempt without any
    /// activity.
    pub fn end(&mut self, client: &Client, reported: Reported) {
        let idle = self.calls.is_empty() && self.read_version.is_none() && self.commit_sent.is_none();
        if std::mem::replace(&mut self.ended, true) || (idle && self.id.is_none()) {
            return;
        }
        if self.commit_sent.is_none() {
            self.free_writes();
        }
        let id = self.id(client);
        client.attempts.fetch_sub(1, Ordering::Relaxed);
        let world = &client.connection.world;
        let attempt = Attempt {
            client: client.id,
            operation: self.label.operation,
            origin: self.label.origin,
            prepares: self.label.prepares,
            version_requested: self.version_requested,
            read_version: self.read_version,
            fresh: self.fresh,
            own_writes: std::mem::take(&mut self.own_writes),
            calls: std::mem::take(&mut self.calls),
            round_trips: self.round_trips,
            asides: std::mem::take(&mut self.asides),
            commit_sent: self.commit_sent,
            outcome_is_final: !self.unsettled,
            read_ranges: std::mem::take(&mut self.read_ranges),
            write_ranges: self.write_ranges.take(),
            reported,
            ended: world.clock.now(),
        };
        world.history.lock().record(id, attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::OwnWrites;
    use shaketable_tx::{Isolation, KeySelector};

    #[test]
    fn pages_without_end_are_an_endless_loop() {
        let pages = |count: usize| {
            let mut record = Record::default();
            let row = KeyValue { key: "a".into(), value: Bytes::from(vec![0; 1 << 20]) };
            let at = KeySelector::first_greater_or_equal("a");
            let call = Call::GetRange {
                begin: at.clone(),
                end: at,
                limit: 1,
                reverse: false,
                isolation: Isolation::Snapshot,
                answer: None,
            };
            let at = record.read(call, OwnWrites::default());
            std::panic::catch_unwind(move || {
                (0..count).for_each(|_| record.rows(at, std::slice::from_ref(&row), true))
            })
        };
        assert!(pages(2_000).is_ok());
        assert!(pages(2_048).is_err(), "a loop");
    }
}
