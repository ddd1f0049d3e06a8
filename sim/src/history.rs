//! What happened in a run, append-only: what judges read.
//!
//! Clients record each attempt as the application saw it: every read with its answer and every
//! write, in the order they were issued. Logs record each version they make durable; the
//! controller records where a generation ended. Together these are the truth that the judges
//! compare with what clients were told.

use crate::{
    net::NodeId,
    proto::{Generation, KeyRange, LogEntry, Mutation, Version},
    rt::Nanos,
};
use bytes::Bytes;
use shaketable_layers::tx::{Error, Isolation, KeySelector, KeyValue};
use std::{collections::BTreeMap, sync::Arc};

/// An attempt's number in the history, dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptId(pub u32);

/// A client's number, dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct ClientId(pub u16);

/// A call of the transaction contract, as the application saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A point read.
    Get {
        /// The key.
        key: Bytes,
        /// Its isolation.
        isolation: Isolation,
        /// The answer; `None` while it is pending and for ever when it failed.
        answer: Option<Option<Bytes>>,
    },
    /// A selector's resolution.
    GetKey {
        /// The selector.
        selector: KeySelector,
        /// Its isolation.
        isolation: Isolation,
        /// The answer.
        answer: Option<Bytes>,
    },
    /// One batch of a range read.
    GetRange {
        /// The begin selector.
        begin: KeySelector,
        /// The end selector.
        end: KeySelector,
        /// The limit, 0 for none.
        limit: usize,
        /// From the end.
        reverse: bool,
        /// Its isolation.
        isolation: Isolation,
        /// The rows and whether there was more.
        answer: Option<(Arc<[KeyValue]>, bool)>,
    },
    /// A write.
    Write(Mutation),
}

/// How an attempt ended, as the client was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Nothing: dropped, reset or still under way.
    Nothing,
    /// Committed without writing.
    ReadOnly,
    /// Committed.
    Committed {
        /// The commit version.
        version: Version,
        /// The place in the batch.
        batch_index: u16,
    },
    /// An error.
    Failed(Error),
}

/// One attempt of a transaction.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Who made it.
    pub client: ClientId,
    /// The operation it belongs to, as the client's label says.
    pub operation: Option<u32>,
    /// When the read version was asked for.
    pub asked: Nanos,
    /// The read version, once known.
    pub read_version: Option<Version>,
    /// Whether the read version promises to see every acknowledged commit: not when it was set by
    /// hand, is causally risky or came from a cache.
    pub fresh: bool,
    /// Whether reads see own writes: option 51 off.
    pub read_your_writes: bool,
    /// Whether snapshot reads see own writes: the counter of options 600 and 601 is not negative.
    pub snapshot_read_your_writes: bool,
    /// The calls, in the order issued.
    pub calls: Vec<Call>,
    /// When the commit was sent, if it was.
    pub commit_sent: Option<Nanos>,
    /// Whether 1021 means that the outcome is decided: not when causal write risk was accepted (option 10),
    /// for which the client makes sure of nothing.
    pub settles: bool,
    /// The read conflict ranges it was sent with.
    pub read_ranges: Vec<KeyRange>,
    /// The write conflict ranges it was sent with, if one of its writes was to go without (option 30).
    pub write_ranges: Option<Vec<KeyRange>>,
    /// What the client was told.
    pub told: Told,
    /// When it was told.
    pub ended: Nanos,
}

/// Everything recorded of a run.
#[derive(Default)]
pub struct History {
    /// Attempts by number; `None` for one that is still under way.
    pub attempts: Vec<Option<Attempt>>,
    /// Versions made durable: by generation and version, the entry as the first log had it.
    pub logged: BTreeMap<(Generation, Version), Arc<LogEntry>>,
    /// When the first log made a version durable; nothing where nobody can see it, as on a real cluster.
    pub durable: BTreeMap<(Generation, Version), Nanos>,
    /// Disagreements between logs about one version: generation, version, the second log.
    pub disagreements: Vec<(Generation, Version, NodeId)>,
    /// Where generations ended: the version up to which their entries count.
    pub ended: BTreeMap<Generation, Version>,
    /// From when until when faults were on; `None` when there were none.
    pub faulty: Option<(Nanos, Nanos)>,
}

impl History {
    /// The committed entries in order: of each generation what its end left valid.
    pub fn committed(&self) -> impl Iterator<Item = &Arc<LogEntry>> {
        self.logged
            .iter()
            .filter(|((generation, version), _)| self.ended.get(generation).is_none_or(|end| version <= end))
            .map(|(_, entry)| entry)
    }

    /// A number for an attempt that is about to commit or has ended.
    pub fn reserve(&mut self) -> AttemptId {
        self.attempts.push(None);
        AttemptId(self.attempts.len() as u32 - 1)
    }

    /// Records an attempt that has ended, or is left to its fate.
    pub fn record(&mut self, id: AttemptId, attempt: Attempt) {
        self.attempts[id.0 as usize] = Some(attempt);
    }

    /// Records that a log made an entry durable.
    pub fn log_durable(&mut self, generation: Generation, log: NodeId, entry: &Arc<LogEntry>, now: Nanos) {
        match self.logged.entry((generation, entry.version)) {
            std::collections::btree_map::Entry::Vacant(slot) => {
                slot.insert(entry.clone());
                self.durable.insert((generation, entry.version), now);
            }
            std::collections::btree_map::Entry::Occupied(first) => {
                if !Arc::ptr_eq(first.get(), entry) {
                    self.disagreements.push((generation, entry.version, log));
                }
            }
        }
    }
}
