//! The messages that machines exchange, with FoundationDB's names without "Request".
//!
//! A request carries the promise of its reply, so that dropping an unanswered request breaks the promise.

use crate::{
    ids::{AttemptId, Endpoint, Generation, NodeId},
    reply::ReplyTo,
};
use bytes::Bytes;
use shaketable_tx::{Error, KeySelector, KeyValue, MutationType};
use std::{collections::BTreeMap, sync::Arc};

/// A version; advances by about a million per second.
pub type Version = i64;

/// A half-open range of keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyRange {
    /// The first key in the range.
    pub begin: Bytes,
    /// The first key after the range.
    pub end: Bytes,
}

impl KeyRange {
    /// `[begin, end)`.
    pub fn new(begin: impl Into<Bytes>, end: impl Into<Bytes>) -> Self {
        KeyRange { begin: begin.into(), end: end.into() }
    }

    /// Whether the range contains the key.
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.begin <= *key && *key < *self.end
    }

    /// Whether a key is in both ranges.
    pub fn intersects(&self, other: &KeyRange) -> bool {
        self.begin < other.end && other.begin < self.end
    }

    /// Whether the range contains no key.
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
    /// Applies an atomic operation: key, operand, operation.
    Atomic(Bytes, Bytes, MutationType),
}

impl Mutation {
    /// The bytes of its keys and values.
    pub fn bytes(&self) -> usize {
        match self {
            Mutation::Set(first, second) | Mutation::Atomic(first, second, _) => first.len() + second.len(),
            Mutation::ClearRange(range) => range.begin.len() + range.end.len(),
        }
    }
}

/// The data that a client sends to a commit proxy (`CommitTransactionRef` and its flags).
#[derive(Clone, Debug, Default)]
pub struct CommitData {
    /// The attempt in the history; the dummy transaction and other internal ones have none.
    pub attempt: Option<AttemptId>,
    /// Its read version.
    pub read_version: Version,
    /// Its writes, in order.
    pub mutations: Vec<Mutation>,
    /// Its read conflict ranges.
    pub read_ranges: Vec<KeyRange>,
    /// Its write conflict ranges.
    pub write_ranges: Vec<KeyRange>,
    /// Whether the reply to a conflict should list the conflicting read ranges.
    pub report_conflicting_keys: bool,
    /// Whether it commits even if the database is locked.
    pub lock_aware: bool,
    /// Its idempotency id, if it has one.
    pub idempotency_id: Option<Bytes>,
}

/// A commit proxy's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitReply {
    /// Committed, and durable on every log.
    Committed {
        /// The batch's version.
        version: Version,
        /// The transaction's position in its batch, counting rejected transactions as well.
        batch_index: u16,
    },
    /// Not committed; if requested, the indices of the conflicting `read_ranges`.
    Conflict(Vec<u32>),
}

/// A GRV proxy's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadVersionReply {
    /// A version not less than any version acknowledged before the request.
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

/// The current generation's proxies, as published to clients (`ClientDBInfo`).
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

/// `wrong_shard_server` (1001): the storage server does not hold the key; the client's cached location is
/// stale. Never visible to a layer.
pub const WRONG_SHARD_SERVER: Error = Error::from_code(1001);

/// One transaction as stored in a log.
#[derive(Clone, Debug)]
pub struct LoggedTransaction {
    /// The attempt that it belongs to.
    pub attempt: Option<AttemptId>,
    /// Its position in the batch.
    pub batch_index: u16,
    /// Its mutations, with versionstamps filled in.
    pub mutations: Vec<Mutation>,
}

/// One version as stored in a log: the accepted transactions of one batch (none if it is empty).
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// The version before it, so that a reader can detect gaps.
    pub previous: Version,
    /// The version.
    pub version: Version,
    /// The highest version that was known to be fully committed when this was pushed.
    pub known_committed: Version,
    /// The transactions in batch order.
    pub transactions: Vec<LoggedTransaction>,
}

impl LogEntry {
    /// Its size in memory, bytes, about, without the keys and values, which it shares with those who wrote
    /// them.
    pub fn size(&self) -> usize {
        let mutations = self.transactions.iter().map(|tx| tx.mutations.len() * size_of::<Mutation>());
        let transactions = self.transactions.len() * size_of::<LoggedTransaction>();
        size_of::<LogEntry>() + transactions + mutations.sum::<usize>()
    }
}

/// A storage server's reply to a range read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetKeyValuesReply {
    /// The rows, in the requested order.
    pub rows: Vec<KeyValue>,
    /// Whether the limits ended the reply before the end of the requested range.
    pub more: bool,
}

/// A storage server's reply to a key selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolvedKey {
    /// The key to which the selector resolves.
    Found(Bytes),
    /// The key lies outside of the shard: the same selector, relative to the shard's boundary (its end with
    /// an offset of 1 or more, or its begin with an offset of 0 or less).
    Beyond(KeySelector),
}

/// The information about logs that storage servers need (`LogSystemConfig`): the logs of the current
/// generation, and the end of each earlier generation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSystem {
    /// The current generation.
    pub generation: Generation,
    /// Its logs. Each holds every entry, including those of earlier generations that a storage server has not
    /// popped; the first entry of a generation follows (`previous`) the end of its predecessor.
    pub logs: Vec<Endpoint>,
    /// The end of each earlier generation: its last valid version (the recovery version). A storage server
    /// that has applied later versions of that generation rolls back to it.
    pub ends: BTreeMap<Generation, Version>,
}

/// The role for which a worker is recruited, with the role's parameters.
#[derive(Clone, Debug)]
pub enum Role {
    /// The sequencer, which starts after the end of the last generation.
    Sequencer {
        /// The end of the last generation.
        recovery_version: Version,
        /// How many generations followed that version before, and were abandoned.
        abandoned: Version,
    },
    /// A resolver.
    Resolver {
        /// Its partition of the keyspace.
        share: KeyRange,
        /// The end of the last generation.
        recovery_version: Version,
    },
    /// A transaction log.
    Log(Arc<LogSeed>),
    /// A commit proxy.
    CommitProxy(Arc<TransactionSystem>),
    /// A GRV proxy.
    GrvProxy(Arc<TransactionSystem>),
}

/// The name of a log's role.
pub const LOG: &str = "log";

impl Role {
    /// FoundationDB's name of the role.
    pub fn name(&self) -> &'static str {
        match self {
            Role::Sequencer { .. } => "master",
            Role::Resolver { .. } => "resolver",
            Role::Log(_) => LOG,
            Role::CommitProxy(_) => "commit_proxy",
            Role::GrvProxy(_) => "grv_proxy",
        }
    }
}

/// The initial content of a new generation's log.
#[derive(Clone, Debug, Default)]
pub struct LogSeed {
    /// The end of the last generation.
    pub recovery_version: Version,
    /// The entries of earlier generations, up to that version, that a storage server may still need.
    pub entries: Vec<Arc<LogEntry>>,
    /// The version up to which each storage server has popped entries.
    pub popped: Vec<Version>,
}

/// The content of a locked log.
#[derive(Clone, Debug)]
pub struct LockedLog {
    /// Its durable entries that are not popped, including those of earlier generations.
    pub entries: Vec<Arc<LogEntry>>,
    /// The last durable version.
    pub durable: Version,
    /// The highest version that it knows to be committed.
    pub known_committed: Version,
    /// The version up to which each storage server has popped entries.
    pub popped: Vec<Version>,
}

/// The roles of a generation with which proxies communicate.
#[derive(Clone, Debug)]
pub struct TransactionSystem {
    /// The end of the last generation.
    pub recovery_version: Version,
    /// The sequencer.
    pub sequencer: Endpoint,
    /// The resolvers; each receives every batch, but checks only its partition of the keyspace.
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
            /// A small number that identifies the kind of the message.
            pub fn tag(&self) -> u8 {
                match self { $(Message::$name { .. } => Tag::$name as u8),* }
            }

            /// The names of the message kinds, by number.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];
        }
    };
}

messages! {
    // Client to controller.
    /// The proxies of a generation newer than `known`; the reply is sent when there is one.
    GetClientInfo { known: Generation, reply: ReplyTo<Arc<ClientInfo>>, }

    // Client to GRV proxy.
    /// A read version. `causal_read_risky` skips the check that this generation is still current.
    GetReadVersion {
        priority: Priority,
        causal_read_risky: bool,
        lock_aware: bool,
        reply: ReplyTo<Result<ReadVersionReply, Error>>,
    }

    // Client to commit proxy.
    /// A commit.
    Commit { data: Arc<CommitData>, reply: ReplyTo<Result<CommitReply, Error>>, }
    /// The shards that intersect a range, in order (from its end if `reverse`), at most `limit`.
    GetKeyLocations { range: KeyRange, limit: usize, reverse: bool, reply: ReplyTo<Vec<Location>>, }

    // Client to storage server.
    /// A value at a version.
    GetValue { key: Bytes, version: Version, reply: ReplyTo<Result<Option<Bytes>, Error>>, }
    /// A selector at a version, resolved within the server's shard that holds its base key (or, for an offset
    /// of 0 or less, the keys just before it).
    GetKey { selector: KeySelector, version: Version, reply: ReplyTo<Result<ResolvedKey, Error>>, }
    /// The rows of `range` at a version, all within one shard: at most `limit` rows and about `limit_bytes`
    /// bytes, from the end if `reverse`.
    GetKeyValues {
        range: KeyRange,
        version: Version,
        limit: usize,
        limit_bytes: usize,
        reverse: bool,
        reply: ReplyTo<Result<GetKeyValuesReply, Error>>,
    }
    /// Returns a version at which the key's value differed from `value`.
    WatchValue { key: Bytes, value: Option<Bytes>, version: Version, reply: ReplyTo<Result<Version, Error>>, }
    /// The approximate number of bytes of the range on this server, from a sample.
    GetStorageMetrics { range: KeyRange, reply: ReplyTo<Result<i64, Error>>, }
    /// Keys within the range that split it into chunks of about `chunk_size` bytes.
    GetSplitPoints { range: KeyRange, chunk_size: i64, reply: ReplyTo<Result<Vec<Bytes>, Error>>, }

    // Proxies to sequencer.
    /// The next commit version and the one before it.
    GetCommitVersion { reply: ReplyTo<(Version, Version)>, }
    /// The highest committed version.
    GetLiveCommittedVersion { reply: ReplyTo<ReadVersionReply>, }
    /// A version is durable on every log.
    ReportCommitted { version: Version, reply: ReplyTo<()>, }

    // Commit proxy to resolver.
    /// Which transactions of a batch may commit. Replies are sent in version order.
    ResolveBatch {
        previous: Version,
        version: Version,
        transactions: Arc<Vec<Arc<CommitData>>>,
        reply: ReplyTo<Vec<Resolution>>,
    }

    // Commit and GRV proxies to logs.
    /// Makes an entry durable, in version order.
    Push { entry: Arc<LogEntry>, reply: ReplyTo<()>, }
    /// The reply is sent only while the log's generation is not locked.
    ConfirmRunning { reply: ReplyTo<()>, }

    // Storage server to log, and back.
    /// The log system; the reply is sent when its generation is newer than `known`. Sent to the controller.
    GetLogSystem { known: Generation, reply: ReplyTo<Arc<LogSystem>>, }
    /// Streams entries after version `from` to `to`, one way, until the log dies. A second subscription with
    /// the same `to` replaces the first.
    Subscribe { from: Version, to: Endpoint, }
    /// A section of the log, in order. A gap before the first entry means that messages were lost.
    LogData { generation: Generation, entries: Vec<Arc<LogEntry>>, }
    /// Entries up to this version are durable at storage server `server` and may be discarded once every
    /// server has sent this message.
    Pop { server: u16, version: Version, }

    // Data distributor to storage server.
    /// Makes the server fetch a shard from the storage servers `sources` and keep it from then on. The reply
    /// is sent once the shard is readable, and durable beyond the version at which it was fetched. A repeated
    /// request joins a fetch in progress.
    AddShard { range: KeyRange, sources: Vec<NodeId>, reply: ReplyTo<()>, }
    /// Makes the server drop a shard durably. The reply is sent when it has done so.
    DropShard { range: KeyRange, reply: ReplyTo<()>, }

    // Controller to all others.
    /// The reply is sent if the machine is alive.
    Ping { reply: ReplyTo<()>, }
    /// Never replied to: the promise breaks when the role ends.
    WaitFailure { reply: ReplyTo<()>, }

    // Controller to workers (the well-known inbox of a machine).
    /// Starts a role of a generation and ends those of earlier ones (except a log's stored entries, which
    /// stay until `EndGenerations`). The reply contains the role's inbox; a log replies once its initial
    /// entries are durable.
    Recruit { generation: Generation, role: Box<Role>, reply: ReplyTo<Endpoint>, }
    /// Ends the log of a generation on this machine permanently, so that no commit of the generation can be
    /// acknowledged any more. Broken if the machine was never a log of that generation.
    LockLog { generation: Generation, reply: ReplyTo<LockedLog>, }
    /// Generations before this one have ended: their roles end, and their logs' entries are discarded.
    EndGenerations { before: Generation, }
}

/// A resolver's decision about one transaction of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// No conflict.
    Committed,
    /// A read range intersects a later write; the indices of the ranges if requested.
    Conflict(Vec<u32>),
    /// The read version is older than the resolver's window.
    TooOld,
}
