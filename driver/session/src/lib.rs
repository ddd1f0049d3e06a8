//! Sessions: what a client library asks of a simulated cluster, and how the answers come back.
//!
//! A [`Session`] takes [`Command`]s, which have no answer, and [`Call`]s, whose answer arrives once through a
//! [`Completion`]. Both are plain data and are performed in the order in which they were given, so that a
//! session need not be where its cluster is. The errors of commands are FoundationDB's deferred errors: the
//! next call of the transaction returns them.
//!
//! [`Host`] is a session whose cluster runs on a thread of this process: the thread that calls [`Host::run`].
//! Virtual time follows the demand for answers, which callers announce with [`Session::want`]:
//!
//! | something waits for | virtual time |
//! |---|---|
//! | a call, or a [virtual time](Host::sleep) | runs as fast as it can |
//! | only watches, and versionstamps of transactions that were not committed | keeps the pace of the wall clock |
//! | nothing, but a transaction has a timeout, and the program sleeps | keeps the pace of the wall clock |
//! | nothing | stands still |
//!
//! [`Remote`](remote::Remote) is a session whose cluster is at a [`Server`](server::Server), which several
//! programs share. Virtual time follows the demand of all programs together.
//!
//! The run of a program that calls from one thread and blocks for its answers is therefore determined by the
//! seed: however long it computes between two calls, the cluster sees the same calls at the same virtual
//! times.
//!
//! So is the run of a program that calls from one thread and is called back ([`Session::expect`]), such as
//! one with an event loop: answers are given one at a time, and virtual time does not advance before every
//! thread of the process sleeps (on Linux; on other systems, the order of arrival decides). There are three
//! exceptions: a thread of the process runs for ten seconds without a pause, which the report then says; the
//! program waits for something other than the cluster, such as the wall clock, a file or another process,
//! while calls are outstanding; and the program has more than 32 threads, of which one that has been idle and
//! does not call hands an answer on.
//!
//! With several threads that call, or with several programs, the order of arrival decides, unless the
//! settings let the threads of a program run one at a time ([`turns`]). If callbacks of
//! several threads wait at once, virtual time waits for the program once in a millisecond at most. Watches
//! alone keep the pace of the wall clock, so that the virtual time at which a program that waits for nothing
//! else calls again differs from run to run.
//!
//! The history of a run is kept for the judges of the cluster, about 1.4 kB for a small transaction, until it
//! is as large as [`Settings::memory`](settings::Settings::memory) allows: what is final is then judged and
//! forgotten.
//!
//! What a program asks can be kept in a [journal], from which its run is performed again.
//!
//! A session whose callers are themselves tasks of the simulated cluster needs none of this: it performs
//! commands and calls on [`Transactions`](transactions::Transactions) at once.

pub mod address;
pub mod calls;
mod client;
mod clusters;
pub mod compare;
mod engine;
mod fault_windows;
mod host;
mod inbox;
pub mod journal;
mod load;
pub mod output;
mod pending;
pub mod protocol;
mod quiescence;
pub mod remote;
pub mod report;
pub mod server;
pub mod settings;
mod sleepers;
pub mod snapshot;
pub mod spin;
pub mod stale;
mod threads;
mod timeouts;
pub mod topology;
pub mod transactions;
pub mod turns;
mod verdict;
mod wakeup;
mod wall;
pub mod watchdog;

pub use host::{Host, Performed};
pub use sleepers::{SleepId, Sleeper};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use shaketable_tx::{
    ConflictRangeType, Error, Isolation, KeySelector, MappedBatch, RangeBatch, RangeOption, Result,
};
use std::time::Duration;
use turns::Turn;

/// A database handle of a session. Each is a client of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DatabaseId(pub u16);

/// The name of a cluster: description and id of its cluster file, as in `docker:docker`. The first name that
/// a run hears of is that of its first cluster, and so is no name. Each other name is another cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClusterName(pub String);

/// A transaction handle of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TransactionId(pub u64);

/// A call whose answer is outstanding or was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallId(pub u64);

/// A request that has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Sets an option of the database.
    SetDatabaseOption {
        /// FoundationDB's code.
        code: i32,
        /// The value as the C API encodes it.
        value: Option<Bytes>,
    },
    /// Creates a transaction.
    Create(TransactionId),
    /// Does something to a transaction.
    Transaction(TransactionId, Action),
    /// Destroys the database handle. Its transactions remain usable.
    Close,
}

/// What a command does to a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Sets an option.
    SetOption {
        /// FoundationDB's code.
        code: i32,
        /// The value as the C API encodes it.
        value: Option<Bytes>,
    },
    /// Sets the read version.
    SetReadVersion(i64),
    /// Sets a key.
    Set(Bytes, Bytes),
    /// Clears a key.
    Clear(Bytes),
    /// Clears a range.
    ClearRange(Bytes, Bytes),
    /// Applies an atomic operation, given by its code, with an operand.
    Atomic {
        /// The key.
        key: Bytes,
        /// The operand.
        operand: Bytes,
        /// FoundationDB's code of the operation.
        code: u32,
    },
    /// Adds a conflict range.
    AddConflictRange(Bytes, Bytes, ConflictRangeType),
    /// Resets the transaction.
    Reset,
    /// Cancels it.
    Cancel,
    /// Destroys the handle: what is outstanding ends with 1025, except for watches of a commit.
    Destroy,
}

/// A request that has an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// A value: [`Reply::Value`].
    Get(Bytes, Isolation),
    /// The key that a selector resolves to: [`Reply::Key`].
    GetKey(KeySelector, Isolation),
    /// A batch of a range: [`Reply::Range`].
    GetRange(RangeOption, usize, Isolation),
    /// A batch of a mapped range: [`Reply::Mapped`].
    GetMappedRange(RangeOption, Bytes, usize, Isolation),
    /// The read version: [`Reply::Number`].
    GetReadVersion,
    /// Commits: [`Reply::Committed`].
    Commit,
    /// Waits and resets after an error: [`Reply::Done`].
    OnError(Error),
    /// Waits until a key changes: [`Reply::Done`].
    Watch(Bytes),
    /// The versionstamp of the commit: [`Reply::Key`].
    GetVersionstamp,
    /// The size of the commit: [`Reply::Number`].
    GetApproximateSize,
    /// The sampled size of a range: [`Reply::Number`].
    GetEstimatedRangeSize(Bytes, Bytes),
    /// Keys that divide a range: [`Reply::Keys`].
    GetRangeSplitPoints(Bytes, Bytes, i64),
    /// The servers that hold a key: [`Reply::Addresses`].
    GetAddresses(Bytes),
    /// How long throttling has delayed the transaction: [`Reply::Time`].
    GetTagThrottledDuration,
    /// The cost of the transaction: [`Reply::Number`].
    GetTotalCost,
    /// Waits until the cluster commits, with a transaction that does nothing else: [`Reply::Done`].
    Recover,
}

impl Call {
    /// Whether the call may never end. A versionstamp's call ends in bounded time once the commit was
    /// requested.
    pub fn is_open_ended(&self) -> bool {
        matches!(self, Call::Watch(_) | Call::GetVersionstamp)
    }
}

/// The answer of a [`Call`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// It is done.
    Done,
    /// Committed at this version; -1 if the transaction was read-only.
    Committed(i64),
    /// A version, a size or a cost.
    Number(i64),
    /// A length of time.
    Time(Duration),
    /// A key or a versionstamp.
    Key(Bytes),
    /// A value, if the key has one.
    Value(Option<Bytes>),
    /// A batch of a range.
    Range(RangeBatch),
    /// A batch of a mapped range.
    Mapped(MappedBatch),
    /// Keys.
    Keys(Vec<Bytes>),
    /// Addresses, as `IP:port`.
    Addresses(Vec<String>),
}

/// What receives the answer of a call, once.
pub type Completion = Box<dyn FnOnce(Result<Reply>) + Send>;

/// A way to a simulated cluster.
pub trait Session: Send + Sync {
    /// Opens a database handle of a cluster.
    fn open(&self, cluster: &ClusterName) -> DatabaseId;

    /// A number for a transaction that [`Command::Create`] is about to create.
    fn next_transaction(&self) -> TransactionId;

    /// Performs a command after everything given before.
    fn command(&self, database: DatabaseId, command: Command);

    /// Performs a call after everything given before. Its answer arrives on the thread of the cluster.
    fn call(
        &self,
        database: DatabaseId,
        transaction: TransactionId,
        call: Call,
        completion: Completion,
    ) -> CallId;

    /// Announces that something waits for the answer of a call. Does nothing if it was given.
    fn want(&self, call: CallId);

    /// Like [`want`](Session::want), for an answer that is not waited for by a thread that sleeps until it
    /// arrives, but by a callback: time does not advance while the program reacts to answers.
    fn expect(&self, call: CallId) {
        self.want(call);
    }

    /// Ends a call with 1101, unless its answer was given.
    fn cancel(&self, call: CallId);

    /// Whether the current thread is the one on which answers arrive: it must not wait for one.
    fn is_here(&self) -> bool;

    /// Waits until this thread may go on, if the session lets the threads of the program run one at a time.
    fn wait_for_turn(&self, _: Turn) {}
}
