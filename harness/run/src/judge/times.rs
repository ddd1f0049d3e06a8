//! When things happened that are known by their versions or by their attempts.

use super::Truth;
use shaketable_sim::{
    history::History,
    ids::AttemptId,
    proto::{LoggedTransaction, Version},
    rt::Nanos,
};
use std::collections::BTreeMap;

/// The times of a run.
pub struct Times<'a> {
    /// What was recorded.
    pub history: &'a History,
    /// What committed.
    pub truth: &'a Truth,
    /// When each version was first durable, where that can be observed.
    durable: BTreeMap<Version, Nanos>,
}

impl<'a> Times<'a> {
    /// The times of a history.
    pub fn of(history: &'a History, truth: &'a Truth) -> Times<'a> {
        let mut durable = BTreeMap::new();
        for ((_, version), at) in &history.durable {
            let first = durable.entry(*version).or_insert(*at);
            *first = *at.min(first);
        }
        Times { history, truth, durable }
    }

    /// When what a version has was first durable. A real cluster does not tell: there it is when the last of
    /// its commits was sent.
    pub fn at(&self, version: Version) -> Nanos {
        let entries = &self.truth.entries;
        let last = entries.partition_point(|entry| entry.version <= version).checked_sub(1);
        let Some(entry) = last.map(|last| &entries[last]) else { return 0 };
        let sent = |tx: &LoggedTransaction| self.history.attempt(tx.attempt?)?.commit_sent;
        let sent = || entry.transactions.iter().filter_map(sent).max();
        self.durable.get(&entry.version).copied().or_else(sent).unwrap_or(Nanos::MAX)
    }
}

/// When the last of some attempts had ended.
pub fn ended(history: &History, attempts: &[AttemptId]) -> Nanos {
    attempts.iter().filter_map(|id| Some(history.attempt(*id)?.ended)).max().unwrap_or(Nanos::MAX)
}
