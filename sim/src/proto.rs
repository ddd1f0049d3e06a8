//! The messages that machines exchange. Names are FoundationDB's, without "Request".
//!
//! A request carries its reply's promise, so that one that is dropped unanswered breaks it.

use crate::{
    history::AttemptId,
    net::{Endpoint, NodeId, ReplyTo},
};
use bytes::Bytes;
use shaketable_layers::tx::{Error, KeySelector, KeyValue, MutationType};
use std::{collections::BTreeMap, sync::Arc};

/// A version: advances about a million a second.
pub type Version = i64;

/// A generation of the transaction system; each recovery begins a new one.
pub type Generation = u64;

/// A half-open range of keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyRange {
    /// First key inside.
    pub begin: Bytes,
    /// First key behind.
    pub end: Bytes,
}

impl KeyRange {
    /// `[begin, end)`.
    pub fn new(begin: impl Into<Bytes>, end: impl Into<Bytes>) -> Self {
        KeyRange { begin: begin.into(), end: end.into() }
    }

    /// Whether the key lies inside.
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.begin <= *key && *key < *self.end
    }

    /// Whether some key lies in both.
    pub fn intersects(&self, other: &KeyRange) -> bool {
        self.begin < other.end && other.begin < self.end
    }

    /// Whether no key lies inside.
    pub fn is_empty(&self) -> bool {
        self.begin >= self.end
    }
}

/// One write of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Mutation {
    /// Sets a key.
    Set(Bytes, Bytes),
    /// Clears a range.
    ClearRange(KeyRange),
    /// Applies an atomic operation: key, operand, which.
    Atomic(Bytes, Bytes, MutationType),
}

/// What a client sends to a commit proxy (`CommitTransactionRef` and its flags).
#[derive(Clone, Debug, Default)]
pub struct CommitData {
    /// Which attempt of the history this is; the dummy transaction and other internal ones have none.
    pub attempt: Option<AttemptId>,
    /// The version it read at.
    pub read_version: Version,
    /// What it writes, in order.
    pub mutations: Vec<Mutation>,
    /// What it read.
    pub read_ranges: Vec<KeyRange>,
    /// What it writes, as ranges.
    pub write_ranges: Vec<KeyRange>,
    /// Whether a conflict's reply should name the read ranges that conflicted.
    pub report_conflicting_keys: bool,
    /// Whether it commits although the database is locked.
    pub lock_aware: bool,
    /// Its idempotency id, if it has one.
    pub idempotency_id: Option<Bytes>,
}

/// A commit proxy's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitReply {
    /// Committed, and durable on every log.
    Committed {
        /// The batch's version.
        version: Version,
        /// The transaction's place among all of its batch, rejected ones included.
        batch_index: u16,
    },
    /// Not committed; indices into `read_ranges` of what conflicted when that was asked for.
    Conflict(Vec<u32>),
}

/// A GRV proxy's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadVersionReply {
    /// At least every version acknowledged before the request.
    pub version: Version,
    /// Whether the database is locked.
    pub locked: bool,
}

/// A transaction's priority at the GRV proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// Batch priority.
    Batch,
    /// The default.
    #[default]
    Default,
    /// System immediate.
    Immediate,
}

/// Where a client finds the current generation's proxies (`ClientDBInfo`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientInfo {
    /// The generation, 0 before the first.
    pub generation: Generation,
    /// Its GRV proxies.
    pub grv_proxies: Vec<Endpoint>,
    /// Its commit proxies.
    pub commit_proxies: Vec<Endpoint>,
}

/// A shard and the storage servers that hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The shard.
    pub range: KeyRange,
    /// Its replicas.
    pub servers: Vec<Endpoint>,
}

/// `wrong_shard_server` (1001): the storage server does not hold the key; the client's cached
/// location is stale. Never reaches a layer.
pub const WRONG_SHARD_SERVER: Error = Error::from_code(1001);

/// One transaction as a log keeps it.
#[derive(Clone, Debug)]
pub struct LoggedTransaction {
    /// The attempt it came from.
    pub attempt: Option<AttemptId>,
    /// Its place in the batch.
    pub batch_index: u16,
    /// Its mutations, versionstamps filled in.
    pub mutations: Vec<Mutation>,
}

/// One version as a log keeps it: the accepted transactions of one batch (none, for an empty one).
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// The version before it, so that a reader sees a gap.
    pub previous: Version,
    /// The version.
    pub version: Version,
    /// The highest version known fully committed when this was pushed.
    pub known_committed: Version,
    /// The transactions in the batch's order.
    pub transactions: Vec<LoggedTransaction>,
}

/// A storage server's answer to a range read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetKeyValuesReply {
    /// The rows, in the order asked for.
    pub rows: Vec<KeyValue>,
    /// Whether the limits cut the answer short of the range asked for.
    pub more: bool,
}

/// A storage server's answer to a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolvedKey {
    /// The key that the selector names.
    Found(Bytes),
    /// It lies outside of the shard: the same selector, said from the shard's edge (its end with an
    /// offset of 1 or more, or its begin with one of 0 or less).
    Beyond(KeySelector),
}

/// What storage servers must know of the logs (`LogSystemConfig`): the current generation's, and
/// where each earlier generation ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSystem {
    /// The current generation.
    pub generation: Generation,
    /// Its logs. Each holds every entry, those of earlier generations that some storage server has
    /// not popped included; the first entry of a generation follows (`previous`) its predecessor's end.
    pub logs: Vec<Endpoint>,
    /// Where each earlier generation ended: the last of its versions that counts (the recovery
    /// version). A storage server that has applied more of that generation rolls back to it.
    pub ends: BTreeMap<Generation, Version>,
}

/// What a worker is recruited as, with what the role must know.
#[derive(Clone, Debug)]
pub enum Role {
    /// The sequencer, which begins behind the last generation's end.
    Sequencer {
        /// Where the last generation ended.
        recovery_version: Version,
    },
    /// A resolver.
    Resolver {
        /// Its share of the keyspace.
        share: KeyRange,
        /// Where the last generation ended.
        recovery_version: Version,
    },
    /// A transaction log.
    Log(Arc<LogSeed>),
    /// A commit proxy.
    CommitProxy(Arc<TransactionSystem>),
    /// A GRV proxy.
    GrvProxy(Arc<TransactionSystem>),
}

/// What a new generation's log begins with.
#[derive(Clone, Debug, Default)]
pub struct LogSeed {
    /// Where the last generation ended.
    pub recovery_version: Version,
    /// The earlier generations' entries up to there that some storage server may still need.
    pub entries: Vec<Arc<LogEntry>>,
    /// Up to which version each storage server has said that it needs no more.
    pub popped: Vec<Version>,
}

/// What is left of a log that was locked.
#[derive(Clone, Debug)]
pub struct LockedLog {
    /// Its durable entries that are not popped, those of earlier generations included.
    pub entries: Vec<Arc<LogEntry>>,
    /// Up to where it is durable.
    pub durable: Version,
    /// The highest version it knows to be committed.
    pub known_committed: Version,
    /// Up to which version each storage server has said that it needs no more.
    pub popped: Vec<Version>,
}

/// The roles of a generation that proxies talk to.
#[derive(Clone, Debug)]
pub struct TransactionSystem {
    /// Where the last generation ended.
    pub recovery_version: Version,
    /// The sequencer.
    pub sequencer: Endpoint,
    /// The resolvers; every one looks at every batch, and each only at its share of the keyspace.
    pub resolvers: Vec<Endpoint>,
    /// The logs.
    pub logs: Vec<Endpoint>,
}

macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident : $ty:ty,)* })*) => {
        /// Every message of the cluster.
        #[allow(missing_docs, reason = "fields are documented at the list below")]
        pub enum Message { $($(#[$doc])* $name { $($(#[$fdoc])* $field: $ty,)* },)* }

        #[derive(Clone, Copy)]
        #[repr(u8)]
        enum Tag { $($name),* }

        impl Message {
            /// A small number for the kind of message.
            pub fn tag(&self) -> u8 {
                match self { $(Message::$name { .. } => Tag::$name as u8),* }
            }

            /// The kinds of message by their number.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];
        }
    };
}

messages! {
    // Client to controller.
    /// The proxies of a generation newer than `known`; answered when there is one.
    GetClientInfo { known: Generation, reply: ReplyTo<Arc<ClientInfo>>, }

    // Client to GRV proxy.
    /// A read version. `causal_read_risky` skips the check that this generation still lives.
    GetReadVersion {
        priority: Priority,
        causal_read_risky: bool,
        lock_aware: bool,
        reply: ReplyTo<Result<ReadVersionReply, Error>>,
    }

    // Client to commit proxy.
    /// A commit.
    Commit { data: Arc<CommitData>, reply: ReplyTo<Result<CommitReply, Error>>, }
    /// The shards that meet a range, in order (from its end when `reverse`), at most `limit`.
    GetKeyLocations { range: KeyRange, limit: usize, reverse: bool, reply: ReplyTo<Vec<Location>>, }

    // Client to storage server.
    /// A value at a version.
    GetValue { key: Bytes, version: Version, reply: ReplyTo<Result<Option<Bytes>, Error>>, }
    /// A selector at a version, resolved within the server's shard that holds (or, for an offset
    /// of 0 or less, holds the keys just before) its base key.
    GetKey { selector: KeySelector, version: Version, reply: ReplyTo<Result<ResolvedKey, Error>>, }
    /// The rows of `range` at a version, all within one shard: at most `limit` rows and about
    /// `limit_bytes` bytes, from the end when `reverse`.
    GetKeyValues {
        range: KeyRange,
        version: Version,
        limit: usize,
        limit_bytes: usize,
        reverse: bool,
        reply: ReplyTo<Result<GetKeyValuesReply, Error>>,
    }
    /// Answers with a version at which the key's value differed from `value`.
    WatchValue { key: Bytes, value: Option<Bytes>, version: Version, reply: ReplyTo<Result<Version, Error>>, }
    /// About how many bytes of the range this server holds, by sampling.
    GetStorageMetrics { range: KeyRange, reply: ReplyTo<Result<i64, Error>>, }
    /// Keys inside the range that split it into pieces of about `chunk_size` bytes.
    GetSplitPoints { range: KeyRange, chunk_size: i64, reply: ReplyTo<Result<Vec<Bytes>, Error>>, }

    // Proxies to sequencer.
    /// The next commit version and the one before it.
    GetCommitVersion { reply: ReplyTo<(Version, Version)>, }
    /// The highest committed version.
    GetLiveCommittedVersion { reply: ReplyTo<ReadVersionReply>, }
    /// A version is durable on every log.
    ReportCommitted { version: Version, reply: ReplyTo<()>, }

    // Commit proxy to resolver.
    /// Which transactions of a batch may commit. Answered in the order of versions.
    ResolveBatch {
        previous: Version,
        version: Version,
        transactions: Arc<Vec<Arc<CommitData>>>,
        reply: ReplyTo<Vec<Verdict>>,
    }

    // Commit and GRV proxies to logs.
    /// Makes an entry durable, in the order of versions.
    Push { entry: Arc<LogEntry>, reply: ReplyTo<()>, }
    /// Answered only while the log's generation is not locked.
    ConfirmRunning { reply: ReplyTo<()>, }

    // Storage server to log, and back.
    /// The log system, answered when its generation is newer than `known`. Sent to the controller.
    GetLogSystem { known: Generation, reply: ReplyTo<Arc<LogSystem>>, }
    /// Streams entries from version `from` (exclusive) on to `to`, one way, until the log dies. A
    /// second one for the same `to` replaces the first.
    Subscribe { from: Version, to: Endpoint, }
    /// A stretch of the log, in order. A gap before the first entry means that messages were lost.
    LogData { generation: Generation, entries: Vec<Arc<LogEntry>>, }
    /// Entries up to this version are durable at storage server `server` and may be forgotten
    /// once every server has said so.
    Pop { server: u16, version: Version, }

    // Data distributor to storage server.
    /// Makes the server fetch a shard from the storage servers `sources` and keep it from then on.
    /// Answered once it is readable, and durable beyond the version it was fetched at. Asking again
    /// joins a fetch under way.
    AddShard { range: KeyRange, sources: Vec<NodeId>, reply: ReplyTo<()>, }
    /// Makes the server forget a shard, durably. Answered when it has.
    DropShard { range: KeyRange, reply: ReplyTo<()>, }

    // Controller to everybody.
    /// Answered while the machine lives.
    Ping { reply: ReplyTo<()>, }
    /// Never answered: the promise breaks when the role ends.
    WaitFailure { reply: ReplyTo<()>, }

    // Controller to workers (the well-known inbox of a machine).
    /// Starts a role of a generation, ending those of earlier ones (but a log's stored entries,
    /// which stay until `EndGenerations`). Answered with the role's inbox, by a log once what it
    /// was given is durable.
    Recruit { generation: Generation, role: Box<Role>, reply: ReplyTo<Endpoint>, }
    /// Ends the log of a generation on this machine for good, so that no commit of the generation
    /// can be acknowledged any more. Broken when the machine never was a log of that generation.
    LockLog { generation: Generation, reply: ReplyTo<LockedLog>, }
    /// Generations before this one are over: their roles end, their logs' entries are forgotten.
    EndGenerations { before: Generation, }
}

/// What a resolver says about one transaction of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No conflict.
    Committed,
    /// A read range meets a later write; indices of the ranges when that was asked for.
    Conflict(Vec<u32>),
    /// The read version is older than the resolver's window.
    TooOld,
}
