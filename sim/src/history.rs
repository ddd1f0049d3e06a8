//! The append-only record of a run, which judges read.
//!
//! Clients record each attempt as the application saw it: every read with its result and every write, in the
//! order in which they were issued. Logs record each version that they make durable; the controller records
//! the end of each generation. Together these are the ground truth that the judges compare with the results
//! reported to clients.

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

/// A call of the transaction contract, as seen by the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A point read.
    Get {
        /// The key.
        key: Bytes,
        /// Its isolation.
        isolation: Isolation,
        /// The result; `None` while it is pending, and permanently if it failed.
        answer: Option<Option<Bytes>>,
    },
    /// A selector's resolution.
    GetKey {
        /// The selector.
        selector: KeySelector,
        /// Its isolation.
        isolation: Isolation,
        /// The result.
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
        /// Whether the range is read from its end.
        reverse: bool,
        /// Its isolation.
        isolation: Isolation,
        /// The rows, and whether there were more.
        answer: Option<(Arc<[KeyValue]>, bool)>,
    },
    /// A write.
    Write(Mutation),
}

/// Which of its own writes a transaction's reads see. Options decide it, and may change between two reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnWrites {
    /// Reads see them: option 51 is off.
    pub read: bool,
    /// Snapshot reads see them: the counter of options 600 and 601 is not negative.
    pub snapshot_read: bool,
    /// A read of a key whose versionstamp is not known yet is answered instead of refused with 1036: option 1100.
    pub unreadable: bool,
}

impl Default for OwnWrites {
    fn default() -> OwnWrites {
        OwnWrites { read: true, snapshot_read: true, unreadable: false }
    }
}

impl OwnWrites {
    /// Whether a read with this isolation sees them.
    pub fn are_seen(self, isolation: Isolation) -> bool {
        self.read && (isolation == Isolation::Serializable || self.snapshot_read)
    }
}

/// Which of its own writes each read of an attempt sees.
#[derive(Clone, Debug, Default)]
pub struct OwnWritesByCall(Vec<(usize, OwnWrites)>);

impl OwnWritesByCall {
    /// Notes what the reads from this call on see. Calls come in their order.
    pub fn note(&mut self, call: usize, own: OwnWrites) {
        if self.at(call) != own {
            self.0.push((call, own));
        }
    }

    /// What the read with this number among the attempt's calls sees.
    pub fn at(&self, call: usize) -> OwnWrites {
        let noted = self.0.partition_point(|(from, _)| *from <= call);
        noted.checked_sub(1).map_or_else(OwnWrites::default, |last| self.0[last].1)
    }
}

/// How an attempt ended, as reported to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// Nothing was reported: dropped, reset or still in progress.
    Nothing,
    /// Committed without writing.
    ReadOnly,
    /// Committed.
    Committed {
        /// The commit version.
        version: Version,
        /// The position in the batch.
        batch_index: u16,
    },
    /// An error.
    Failed(Error),
}

/// One attempt of a transaction.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The client that made it.
    pub client: ClientId,
    /// The operation that it belongs to, according to the client's label.
    pub operation: Option<u32>,
    /// When the read version was requested.
    pub version_requested: Nanos,
    /// The read version, once known.
    pub read_version: Option<Version>,
    /// Whether the read version is guaranteed to include every acknowledged commit: not if it was set
    /// explicitly, is causally risky or came from a cache.
    pub fresh: bool,
    /// Which of the transaction's own writes its reads see.
    pub own_writes: OwnWritesByCall,
    /// The calls, in the order in which they were issued.
    pub calls: Vec<Call>,
    /// The round trips of its reads to storage servers, as far as each was asked after the reply to the one before; reads
    /// that are asked at once are one. 0 where this cannot be observed, as on a real cluster.
    pub round_trips: u32,
    /// The keys that it watches; empty where this cannot be observed, as on a real cluster.
    pub watches: Vec<Bytes>,
    /// When the commit was sent, if it was.
    pub commit_sent: Option<Nanos>,
    /// Whether 1021 implies that the outcome is final: not if causal write risk was accepted (option 10), in
    /// which case the client does not ensure it.
    pub outcome_is_final: bool,
    /// The read conflict ranges of the commit.
    pub read_ranges: Vec<KeyRange>,
    /// The write conflict ranges of the commit, if one of its writes was made without one (option 30).
    pub write_ranges: Option<Vec<KeyRange>>,
    /// The result reported to the client.
    pub reported: Reported,
    /// When it was reported.
    pub ended: Nanos,
}

/// Everything recorded of a run.
#[derive(Default)]
pub struct History {
    /// Attempts by number; `None` for those that are still in progress.
    pub attempts: Vec<Option<Attempt>>,
    /// Versions made durable: by generation and version, the entry as the first log stored it.
    pub logged: BTreeMap<(Generation, Version), Arc<LogEntry>>,
    /// When the first log made a version durable; empty where this cannot be observed, as on a real cluster.
    pub durable: BTreeMap<(Generation, Version), Nanos>,
    /// Disagreements between logs about one version: generation, version, the second log.
    pub disagreements: Vec<(Generation, Version, NodeId)>,
    /// The end of each generation: the version up to which its entries are valid.
    pub ended: BTreeMap<Generation, Version>,
    /// The interval in which faults were active; `None` if there were none.
    pub faulty: Option<(Nanos, Nanos)>,
}

impl History {
    /// The committed entries in order: the valid entries of each generation.
    pub fn committed(&self) -> impl Iterator<Item = &Arc<LogEntry>> {
        self.logged
            .iter()
            .filter(|((generation, version), _)| self.ended.get(generation).is_none_or(|end| version <= end))
            .map(|(_, entry)| entry)
    }

    /// Whether a commit whose client did not wait for its result may still take effect. It can until its read version
    /// is too old. After 1021 it cannot: that error is returned only when the outcome is final.
    pub fn commits_may_land(&self) -> bool {
        self.attempts.iter().any(|attempt| match attempt {
            // The client died before it recorded the attempt.
            None => true,
            Some(attempt) => match attempt.reported {
                Reported::Nothing => attempt.commit_sent.is_some(),
                Reported::Failed(Error::COMMIT_UNKNOWN_RESULT) => !attempt.outcome_is_final,
                Reported::Failed(error) => error.leaves_commit_unknown(),
                Reported::ReadOnly | Reported::Committed { .. } => false,
            },
        })
    }

    /// Reserves a number for an attempt that is about to commit or has ended.
    pub fn reserve(&mut self) -> AttemptId {
        self.attempts.push(None);
        AttemptId(self.attempts.len() as u32 - 1)
    }

    /// Records an attempt that has ended or is abandoned.
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
