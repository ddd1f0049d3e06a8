//! What committed: the entries of the logs that were valid at the end of their generation.

use crate::{
    history::{History, Reported},
    ids::AttemptId,
    proto::{LogEntry, Version},
    rt::Nanos,
};
use shaketable_tx::Error;
use std::{collections::BTreeMap, sync::Arc};

/// The committed entries in order, and the place of each attempt of the history in them.
pub struct Truth {
    /// Entries by version, ascending.
    pub entries: Vec<Arc<LogEntry>>,
    places: BTreeMap<AttemptId, (Version, u16)>,
    twice: Option<AttemptId>,
}

impl Truth {
    /// The truth of a run.
    pub fn of(history: &History) -> Truth {
        Truth::after(history, BTreeMap::new())
    }

    /// The truth of what is kept of a run, after these places of attempts that are kept.
    pub fn after(history: &History, mut places: BTreeMap<AttemptId, (Version, u16)>) -> Truth {
        let mut entries: Vec<Arc<LogEntry>> = history.committed().cloned().collect();
        entries.sort_by_key(|e| e.version);
        let mut twice = None;
        for entry in &entries {
            for tx in &entry.transactions {
                if let Some(attempt) = tx.attempt
                    && places.insert(attempt, (entry.version, tx.batch_index)).is_some()
                {
                    twice = twice.or(Some(attempt));
                }
            }
        }
        Truth { entries, places, twice }
    }

    /// The time at which each commit was known to be final, its version and its attempt: the time of its
    /// acknowledgement, or of the report of 1021.
    pub fn decided(&self, history: &History) -> Vec<(Nanos, Version, AttemptId)> {
        let decided = history.numbered().filter_map(|(id, attempt)| {
            let version = match attempt.reported {
                Reported::Committed { version, .. } => version,
                Reported::Failed(Error::COMMIT_UNKNOWN_RESULT) if attempt.outcome_is_final => {
                    self.place(id)?.0
                }
                _ => return None,
            };
            Some((attempt.ended, version, id))
        });
        decided.collect()
    }

    /// The version and batch index at which an attempt committed, if it did.
    pub fn place(&self, attempt: AttemptId) -> Option<(Version, u16)> {
        self.places.get(&attempt).copied()
    }

    /// The places of the attempts from this one on.
    pub fn into_places(mut self, first: AttemptId) -> BTreeMap<AttemptId, (Version, u16)> {
        self.places.split_off(&first)
    }

    /// An attempt that is in the logs twice, if there is one.
    pub fn twice(&self) -> Option<AttemptId> {
        self.twice
    }
}
