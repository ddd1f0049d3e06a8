//! The append-only record of a run, which judges read.
//!
//! Clients record each attempt as the application saw it: every read with its result and every write, in the
//! order in which they were issued. Logs record each version that they make durable; the controller records
//! the end of each generation. Together these are the ground truth that the judges compare with the results
//! reported to clients.

use crate::{
    endings::{Ending, Met},
    ids::{AttemptId, ClientId},
    ids::{Generation, NodeId},
    proto::{KeyRange, LogEntry, Mutation, Version},
    rt::Nanos,
};
use bytes::Bytes;
use shaketable_tx::{ConflictRangeType, Error, Isolation, KeySelector, KeyValue, TransactionOption};
use std::{collections::BTreeMap, sync::Arc};

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

/// A call that neither reads nor writes, and decides what others do or what the commit conflicts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aside {
    /// Adds a conflict range.
    ConflictRange(ConflictRangeType, KeyRange),
    /// Sets an option whose effect can be observed.
    Option(TransactionOption),
    /// Sets the read version.
    ReadVersion(Version),
    /// Watches a key, from the commit on.
    Watch(Bytes),
}

/// Which of its own writes a transaction's reads see. Options decide it, and may change between two reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnWrites {
    /// Reads see them: option 51 is off.
    pub read: bool,
    /// Snapshot reads see them: the counter of options 600 and 601 is not negative.
    pub snapshot_read: bool,
    /// A read of a key whose versionstamp is not known yet is answered instead of refused with 1036: option
    /// 1100.
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

/// Where in a program a transaction comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The thread that created it: the number of threads that had created one before.
    pub thread: u32,
    /// The number of its handle: its attempts are attempts at one transaction, or follow a reset.
    pub transaction: u64,
}

/// One attempt of a transaction.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The client that made it.
    pub client: ClientId,
    /// The operation that it belongs to, according to the client's label.
    pub operation: Option<u32>,
    /// Where in a program it comes from, if it is one of a program and this is known.
    pub origin: Option<Origin>,
    /// Whether the client made it to prepare for the operation, such as to learn what became of a dropped
    /// one: what it read is no part of the operation's answer.
    pub prepares: bool,
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
    /// The round trips of its reads to storage servers, as far as each was asked after the reply to the one
    /// before; reads that are asked at once are one. 0 where this cannot be observed, as on a real cluster.
    pub round_trips: u32,
    /// The calls that neither read nor write, in their order, each with the number of calls before it. On a
    /// real cluster, watches cannot be observed.
    pub asides: Vec<(usize, Aside)>,
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

impl Attempt {
    /// An attempt of a client that has called nothing, and of which nothing was reported: for histories that
    /// tests make.
    pub fn new(client: ClientId) -> Attempt {
        Attempt {
            client,
            operation: None,
            origin: None,
            prepares: false,
            version_requested: 0,
            read_version: None,
            fresh: true,
            own_writes: OwnWritesByCall::default(),
            calls: Vec::new(),
            round_trips: 0,
            asides: Vec::new(),
            commit_sent: None,
            outcome_is_final: true,
            read_ranges: Vec::new(),
            write_ranges: None,
            reported: Reported::Nothing,
            ended: 0,
        }
    }

    /// Whether it has read anything.
    fn reads(&self) -> bool {
        self.calls.iter().any(|call| !matches!(call, Call::Write(_)))
    }

    /// The keys that it watches.
    pub fn watches(&self) -> impl Iterator<Item = &Bytes> {
        self.asides.iter().filter_map(|(_, aside)| match aside {
            Aside::Watch(key) => Some(key),
            _ => None,
        })
    }

    /// Whether the call with this number is the read that a watch makes for itself.
    pub fn is_of_watch(&self, call: usize) -> bool {
        let asides = &self.asides[self.asides.partition_point(|(before, _)| *before < call)..];
        let mut beside = asides.iter().take_while(|(before, _)| *before == call);
        let Some(Call::Get { key, .. }) = self.calls.get(call) else { return false };
        beside.any(|(_, aside)| matches!(aside, Aside::Watch(watched) if watched == key))
    }

    /// The conflict ranges that it adds itself.
    pub fn added_ranges(&self) -> impl Iterator<Item = &KeyRange> {
        self.asides.iter().filter_map(|(_, aside)| match aside {
            Aside::ConflictRange(_, range) => Some(range),
            _ => None,
        })
    }

    /// Its size in memory, bytes, about.
    pub fn size(&self) -> usize {
        let ranges = self.read_ranges.len() + self.write_ranges.as_ref().map_or(0, Vec::len);
        let ranges = ranges * size_of::<KeyRange>() + self.asides.len() * size_of::<(usize, Aside)>();
        size_of::<Attempt>() + ranges + self.calls.iter().map(Call::size).sum::<usize>()
    }
}

impl Call {
    /// Whether a read has its answer. A write has none.
    pub fn is_answered(&self) -> bool {
        match self {
            Call::Get { answer, .. } => answer.is_some(),
            Call::GetKey { answer, .. } => answer.is_some(),
            Call::GetRange { answer, .. } => answer.is_some(),
            Call::Write(_) => false,
        }
    }

    /// Its size in memory, bytes, about.
    fn size(&self) -> usize {
        let row = |row: &KeyValue| size_of::<KeyValue>() + row.key.len() + row.value.len();
        let bytes = match self {
            Call::Get { key, answer, .. } => {
                key.len() + answer.iter().flatten().map(Bytes::len).sum::<usize>()
            }
            Call::GetKey { selector, answer, .. } => {
                selector.key.len() + answer.as_ref().map_or(0, Bytes::len)
            }
            Call::GetRange { answer, .. } => answer.iter().flat_map(|(rows, _)| rows.iter()).map(row).sum(),
            Call::Write(Mutation::Set(key, value) | Mutation::Atomic(key, value, _)) => {
                key.len() + value.len()
            }
            Call::Write(Mutation::ClearRange(range)) => range.begin.len() + range.end.len(),
        };
        size_of::<Call>() + bytes
    }
}

/// What a client has open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// Transactions that have a read version or have been asked to commit, and have not ended.
    pub transactions: u64,
    /// Watches that have not reported a change.
    pub watches: u64,
}

/// Everything recorded of a run.
#[derive(Clone, Default)]
pub struct History {
    /// The number of the first attempt that is kept: those before it were judged and forgotten.
    pub first: u32,
    /// Attempts by number, from the first that is kept; `None` for those that are still in progress.
    pub attempts: Vec<Option<Attempt>>,
    /// The version up to which entries of the logs were judged, and forgotten or not.
    pub judged: Version,
    /// Attempts that ended after they would have had to be judged: what they read is not.
    pub late: u64,
    /// What the calls of each operation ended with, beside answers, by client and operation.
    pub met: BTreeMap<(ClientId, u32), Met>,
    /// What a client had open at the end of an operation, if anything; empty where this cannot be observed,
    /// as on a real cluster.
    pub open: BTreeMap<(ClientId, u32), Open>,
    /// Whether writes that were never sent are forgotten, unless a read follows them: no judge of the cluster
    /// needs them. Who tells the story of a run does.
    pub forgets_unsent: bool,
    /// What is kept, bytes, about.
    pub size: usize,
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

    /// Whether a commit whose client did not wait for its result may still take effect. It can until its read
    /// version is too old. After 1021 it cannot: that error is returned only when the outcome is final.
    pub fn commits_may_land(&self) -> bool {
        // Those that were forgotten are not asked.
        self.first > 0
            || self.attempts.iter().any(|attempt| match attempt {
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
        AttemptId(self.first + self.attempts.len() as u32 - 1)
    }

    /// Notes how a call of a client ended: for the operation that made it, and for another one that goes on.
    /// A wait is given up by the one that goes on, whoever made the call.
    pub fn note_ending(&mut self, client: ClientId, [made, goes_on]: [Option<u32>; 2], ending: Ending) {
        let made = made.filter(|_| ending != Ending::GivenUp || goes_on.is_none());
        for operation in [made, goes_on].into_iter().flatten() {
            self.met.entry((client, operation)).or_default().note(ending);
        }
    }

    /// Records an attempt that has ended or is abandoned.
    pub fn record(&mut self, id: AttemptId, mut attempt: Attempt) {
        let Some(index) = id.0.checked_sub(self.first) else {
            self.late += 1;
            return;
        };
        if self.forgets_unsent && attempt.commit_sent.is_none() {
            let is_write = |call: &Call| matches!(call, Call::Write(_));
            let read = attempt.calls.iter().rposition(|call| !is_write(call));
            attempt.calls.truncate(read.map_or(0, |last| last + 1));
            attempt.calls.shrink_to_fit();
        }
        self.late +=
            u64::from(attempt.read_version.is_some_and(|version| version <= self.judged) && attempt.reads());
        self.size += attempt.size();
        self.attempts[index as usize] = Some(attempt);
    }

    /// The attempt with a number, if it is kept and has ended.
    pub fn attempt(&self, id: AttemptId) -> Option<&Attempt> {
        self.attempts.get(id.0.checked_sub(self.first)? as usize)?.as_ref()
    }

    /// The attempts that are kept and have ended, with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (AttemptId, &Attempt)> {
        let numbers = (self.first..).map(AttemptId);
        numbers.zip(&self.attempts).filter_map(|(id, attempt)| Some((id, attempt.as_ref()?)))
    }

    /// Forgets the attempts before the first one that ended at `ended` or later, and the entries up to a
    /// version. An attempt that has not ended does not keep others, if it began before `ended`. Returns the
    /// attempts.
    pub fn forget(&mut self, until: Version, ended: Nanos) -> Vec<(AttemptId, Attempt)> {
        let is_kept = |attempt: &Option<Attempt>| attempt.as_ref().is_some_and(|a| a.ended >= ended);
        let is_old = |attempt: &Option<Attempt>| attempt.as_ref().is_some_and(|a| a.ended < ended);
        // What has a lower number than one that has ended began before that.
        let old = self.attempts.iter().rposition(is_old).map_or(0, |last| last + 1);
        let count = self.attempts.iter().position(is_kept).map_or(old, |kept| kept.min(old));
        let numbers = self.first..;
        let forgotten = numbers.zip(self.attempts.drain(..count));
        let forgotten: Vec<_> = forgotten.filter_map(|(id, a)| Some((AttemptId(id), a?))).collect();
        self.first += count as u32;
        self.size -= forgotten.iter().map(|(_, attempt)| attempt.size()).sum::<usize>();
        let size = &mut self.size;
        self.logged.retain(|(_, version), entry| {
            let is_kept = *version > until;
            *size -= if is_kept { 0 } else { entry.size() };
            is_kept
        });
        self.durable.retain(|(_, version), _| *version > until);
        self.judged = self.judged.max(until);
        forgotten
    }

    /// Forgets the calls of these attempts, which were judged, as all up to a version.
    pub fn forget_calls(&mut self, until: Version, goes: impl Fn(AttemptId, &Attempt) -> bool) {
        for (id, attempt) in (self.first..).map(AttemptId).zip(&mut self.attempts) {
            let Some(attempt) = attempt.as_mut().filter(|attempt| goes(id, attempt)) else { continue };
            self.size -= attempt.size();
            attempt.calls = Vec::new();
            // Watches are counted at the end.
            attempt.asides.retain(|(_, aside)| matches!(aside, Aside::Watch(_)));
            self.size += attempt.size();
        }
        self.judged = self.judged.max(until);
    }

    /// Records that a log made an entry durable.
    pub fn log_durable(&mut self, generation: Generation, log: NodeId, entry: &Arc<LogEntry>, now: Nanos) {
        match self.logged.entry((generation, entry.version)) {
            std::collections::btree_map::Entry::Vacant(slot) => {
                self.size += entry.size();
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
