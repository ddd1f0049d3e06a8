//! An attempt of a recorded transaction: its calls with what they were told, until it ends and belongs to the
//! history.

use super::log::SharedHistory;
use shaketable_sim::{
    client::Label,
    history::{Aside, Attempt, Call, OwnWrites, OwnWritesByCall, Reported},
    ids::{AttemptId, ClientId},
    proto::Version,
    rt::Nanos,
};
use std::sync::Arc;

/// The current attempt. It is added to the history when it ends in any way.
pub(super) struct AttemptRecord {
    pub(super) history: Arc<SharedHistory>,
    pub(super) client: ClientId,
    pub(super) label: Label,
    /// The number of the attempt within its transaction, so that a late reply is not recorded in the next
    /// attempt.
    pub(super) number: u32,
    pub(super) id: Option<AttemptId>,
    pub(super) calls: Vec<Call>,
    pub(super) version_requested: Option<Nanos>,
    /// Whether `on_error` is in progress: the client may have begun the next attempt already, before its
    /// recorder knows.
    pub(super) is_ending: bool,
    /// The reads that the client may still take steps of: also those whose futures were dropped.
    pub(super) reading: u32,
    /// When something was first called since then, which the client may have taken for the next attempt; the
    /// begin of `on_error`, if a read was in flight: its next step requests the version of the next attempt
    /// (the contract's `errors/on_error/read-in-flight`).
    pub(super) called_meanwhile: Option<Nanos>,
    pub(super) fresh: bool,
    pub(super) read_version: Option<Version>,
    pub(super) own_writes: OwnWritesByCall,
    pub(super) asides: Vec<(usize, Aside)>,
    /// What the next read sees of them.
    pub(super) seen: OwnWrites,
    pub(super) snapshot_read_your_writes: i32,
    pub(super) waives_conflicts: bool,
    pub(super) commit_sent: Option<Nanos>,
    pub(super) outcome_is_final: bool,
    pub(super) reported: Reported,
    pub(super) ended: Nanos,
}

impl AttemptRecord {
    pub(super) fn new(label: Label, client: ClientId, history: Arc<SharedHistory>) -> AttemptRecord {
        AttemptRecord {
            history,
            client,
            label,
            number: 0,
            id: None,
            calls: Vec::new(),
            version_requested: None,
            is_ending: false,
            reading: 0,
            called_meanwhile: None,
            fresh: true,
            read_version: None,
            own_writes: OwnWritesByCall::default(),
            asides: Vec::new(),
            seen: OwnWrites::default(),
            snapshot_read_your_writes: 0,
            waives_conflicts: false,
            commit_sent: None,
            outcome_is_final: true,
            reported: Reported::Nothing,
            ended: 0,
        }
    }

    /// Adds this attempt to the history and begins the next one.
    pub(super) fn next(&mut self, now: Label) {
        let label = self.label.renewed(now);
        let mut next = AttemptRecord::new(label, self.client, self.history.clone());
        next.number = self.number + 1;
        next.version_requested = self.called_meanwhile;
        drop(std::mem::replace(self, next));
    }

    /// A call follows for which the client may request the read version. The request is not earlier than
    /// this, and may be later: a verdict about its order holds at whatever time this thread proceeds.
    pub(super) fn version_is_needed(&mut self, now: Nanos) {
        self.version_requested.get_or_insert(now);
        if self.is_ending {
            self.called_meanwhile.get_or_insert(now);
        }
    }

    /// Records a call that neither reads nor writes.
    pub(super) fn aside(&mut self, aside: Aside) {
        self.asides.push((self.calls.len(), aside));
    }

    pub(super) fn id(&mut self) -> AttemptId {
        let history = &self.history;
        *self.id.get_or_insert_with(|| history.recorded.lock().reserve())
    }

    pub(super) fn writes(&self) -> bool {
        self.calls.iter().any(|call| matches!(call, Call::Write(_)))
    }
}

impl Drop for AttemptRecord {
    fn drop(&mut self) {
        if self.calls.is_empty() && self.read_version.is_none() && self.commit_sent.is_none() {
            return;
        }
        let id = self.id();
        let attempt = Attempt {
            client: self.client,
            operation: self.label.operation,
            origin: None,
            prepares: self.label.prepares,
            version_requested: self.version_requested.unwrap_or(0),
            read_version: self.read_version,
            fresh: self.fresh && self.version_requested.is_some(),
            own_writes: std::mem::take(&mut self.own_writes),
            calls: std::mem::take(&mut self.calls),
            round_trips: 0,
            asides: std::mem::take(&mut self.asides),
            commit_sent: self.commit_sent,
            outcome_is_final: self.outcome_is_final,
            // The C client does not expose them.
            read_ranges: Vec::new(),
            write_ranges: self.waives_conflicts.then(Vec::new),
            reported: self.reported,
            ended: self.ended,
        };
        self.history.recorded.lock().record(id, attempt);
    }
}
