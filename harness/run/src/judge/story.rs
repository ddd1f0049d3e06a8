//! A history that a test makes up, for what reads histories.

use shaketable_sim::{
    history::{Attempt, Call, History},
    ids::{AttemptId, ClientId, NodeId},
    proto::{LogEntry, LoggedTransaction, Mutation, Version},
    rt::Nanos,
};
use std::sync::Arc;

/// A history under construction: one log, one generation.
#[derive(Default)]
pub struct Story {
    /// What is recorded so far.
    pub history: History,
    last: Version,
}

impl Story {
    /// Adds an attempt of client 0, which reads at this version and makes these calls. The caller writes what
    /// becomes of it.
    pub fn attempt(&mut self, read_version: Version, calls: Vec<Call>) -> (AttemptId, &mut Attempt) {
        let id = self.history.reserve();
        let attempt = Attempt {
            operation: Some(id.0),
            read_version: Some(read_version),
            calls,
            ..Attempt::new(ClientId(0))
        };
        self.history.record(id, attempt);
        (id, self.history.attempts[id.0 as usize].as_mut().expect("just recorded"))
    }

    /// Logs a version: the attempt of each transaction, its place in the batch, and what it writes.
    pub fn log(&mut self, version: Version, transactions: Vec<(Option<AttemptId>, u16, Vec<Mutation>)>) {
        self.log_at(version, transactions, 0);
    }

    /// Logs a version that becomes durable at `now`.
    pub fn log_at(
        &mut self,
        version: Version,
        transactions: Vec<(Option<AttemptId>, u16, Vec<Mutation>)>,
        now: Nanos,
    ) {
        let transactions = transactions
            .into_iter()
            .map(|(attempt, batch_index, mutations)| LoggedTransaction { attempt, batch_index, mutations })
            .collect();
        let entry = LogEntry { previous: self.last, version, known_committed: self.last, transactions };
        self.last = version;
        self.history.log_durable(1, NodeId(1), &Arc::new(entry), now);
    }
}
