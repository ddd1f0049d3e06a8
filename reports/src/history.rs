//! What happened in one run: operations, transactions, faults and the witness of what went wrong, with
//! decoded keys, for stories and time lines.
//!
//! All times are nanoseconds of virtual time since the start of the run.

use crate::when::When;
use serde::{Deserialize, Serialize};

/// What happened in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunHistory {
    /// The operations of the clients, by client and index.
    pub operations: Vec<OperationEntry>,
    /// The attempts at transactions, by number: those of operations and those of the setup.
    pub transactions: Vec<TransactionEntry>,
    /// Faults, deaths and recoveries, in the order of time.
    pub events: Vec<EventEntry>,
    /// What contradicts the claim that is broken.
    pub witness: WitnessEntry,
    /// The end of the run.
    pub ended: u64,
    /// Whether it is the run of a program, whose databases are clients with one operation each.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_program: bool,
}

/// One operation of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationEntry {
    /// The client's number.
    pub client: u16,
    /// Its index among the client's operations.
    pub index: u32,
    /// The operation in the words of the workload.
    pub call: String,
    /// When it was called.
    pub called: u64,
    /// When it returned; `None` if it never did.
    pub returned: Option<u64>,
    /// How it returned: `returns 7`, `has an unknown outcome: ..`.
    pub outcome: String,
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It committed, and its client was told so.
    Committed,
    /// It wrote nothing, and its commit succeeded.
    ReadOnly,
    /// Its commit was refused with not_committed (1020).
    Conflict,
    /// Its client was told commit_unknown_result (1021) or another error that leaves the outcome open, and it
    /// committed.
    UnknownCommitted,
    /// As before, and it did not commit.
    UnknownNotCommitted,
    /// It failed with another error and did not commit.
    Failed,
    /// Its client dropped it, or died, during the commit, and it committed.
    DroppedCommitted,
    /// It was dropped and did not commit.
    #[default]
    Dropped,
}

impl Fate {
    /// Whether the writes of the attempt are in the database.
    pub fn is_in_effect(self) -> bool {
        matches!(self, Fate::Committed | Fate::UnknownCommitted | Fate::DroppedCommitted)
    }
}

/// One attempt at a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionEntry {
    /// Its number in the run.
    pub id: u32,
    /// The client's number; `None` for the setup.
    pub client: Option<u16>,
    /// The index of its operation; `None` if it belongs to none.
    pub operation: Option<u32>,
    /// When it requested its read version, or began.
    pub began: u64,
    /// Its read version.
    pub read_version: Option<i64>,
    /// Its reads and writes, in the order of the calls.
    pub calls: Vec<CallEntry>,
    /// When its commit was sent.
    pub commit_sent: Option<u64>,
    /// When its writes became durable.
    pub durable: Option<u64>,
    /// When its client knew how it ended, or gave it up.
    pub ended: u64,
    /// What became of it.
    pub fate: Fate,
    /// The commit version, if it committed.
    pub version: Option<i64>,
    /// Its end in words: `commits at version 7`,
    /// `not_committed (1020); (1,) was written at version 5 by transaction 3`.
    pub end: String,
    /// The transaction whose write refused its commit.
    pub refused_by: Option<u32>,
    /// Of a program, the thread that created the transaction, if this is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// Of a program, the attempt before this one at the same transaction, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u32>,
}

/// The kind of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// A point read.
    #[default]
    Get,
    /// The resolution of a key selector.
    GetKey,
    /// A range read.
    GetRange,
    /// A set.
    Set,
    /// A clear of a key or of a range.
    Clear,
    /// An atomic operation.
    Atomic,
    /// A watch, which begins with the commit.
    Watch,
    /// A range that is added to the read conflict ranges.
    ReadConflict,
    /// A range that is added to the write conflict ranges.
    WriteConflict,
    /// An option of the transaction that is set: its name, and its value if it has one.
    Option,
    /// The read version is set.
    ReadVersion,
}

impl Access {
    /// Whether the call returns what is in the database.
    pub fn is_read(self) -> bool {
        matches!(self, Access::Get | Access::GetKey | Access::GetRange)
    }

    /// Whether the call writes.
    pub fn is_write(self) -> bool {
        matches!(self, Access::Set | Access::Clear | Access::Atomic)
    }
}

/// One read or write of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEntry {
    /// Its kind.
    pub access: Access,
    /// The name of the atomic operation; empty for others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub atomic: String,
    /// Whether it is a snapshot read.
    #[serde(default)]
    pub snapshot: bool,
    /// The key, or the two ends of the range; selectors in words. The name of an option, or a version.
    pub at: String,
    /// The rows that were read, or the row that was written; a read that found nothing has none.
    pub rows: Vec<RowEntry>,
    /// How many further rows were read.
    #[serde(default)]
    pub more: u64,
    /// Whether a read got its answer.
    pub answered: bool,
    /// Whether it touches a key, or a range with a key, that several transactions touch and one of them
    /// writes.
    #[serde(default)]
    pub shared: bool,
    /// Whether it is of interest to nobody else: the record of an exactly-once session.
    #[serde(default)]
    pub bookkeeping: bool,
    /// Whether the broken claim names the key, or one of the rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
}

/// One key and its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowEntry {
    /// The key, decoded.
    pub key: String,
    /// The value, decoded; `None` if there is none: a key that was found or cleared, a point read of nothing.
    pub value: Option<String>,
    /// The transaction that had written what was read, or cleared what was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<u32>,
    /// Whether several transactions touch the key, one of which writes it.
    #[serde(default)]
    pub shared: bool,
    /// Whether the broken claim names it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A fault that was injected.
    #[default]
    Fault,
    /// The time in which a machine was dead.
    Dead,
    /// The time in which a machine was paused.
    Paused,
    /// A recovery of the cluster.
    Recovery,
    /// The beginning of an act of the run: setup, hurt, heal, check.
    Act,
}

/// One event, or the time in which a condition lasted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventEntry {
    /// Its kind.
    pub kind: EventKind,
    /// When it began.
    pub at: u64,
    /// When it ended, if it lasts and ended.
    pub until: Option<u64>,
    /// The client that it hit, if it hit one.
    pub client: Option<u16>,
    /// The machine that it hit, if it hit one: `storage-2`.
    pub machine: Option<String>,
    /// What happened, in words.
    pub text: String,
}

/// What contradicts a claim: the operations, transactions and keys, and what differs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WitnessEntry {
    /// Operations: client and index.
    pub operations: Vec<(u16, u32)>,
    /// Transactions.
    pub transactions: Vec<u32>,
    /// Keys, decoded.
    pub keys: Vec<String>,
    /// What the judge expected, if it compares.
    pub expected: Option<String>,
    /// What it found instead.
    pub found: Option<String>,
}

impl WitnessEntry {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        *self == WitnessEntry::default()
    }
}

/// A run that was cut down to what its failure needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShrunkRun {
    /// The plan, as a repro file has it.
    pub plan: serde_json::Value,
    /// The size of the plan before.
    pub before: Size,
    /// Its size now.
    pub after: Size,
    /// How many runs it took.
    pub replays: u64,
    /// Whether nothing more can be taken away; `false` if a limit ended the search.
    pub is_minimal: bool,
    /// The kinds of operations that the finding named at first, and no longer names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What the judge found in it.
    pub message: String,
    /// The hash over its events, 16 hexadecimal digits.
    pub event_hash: String,
    /// What happens in it.
    pub history: RunHistory,
    /// When its failure became certain, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
}

/// How large a plan is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Operations.
    pub operations: u64,
    /// Clients with an operation.
    pub clients: u64,
    /// Faults.
    pub faults: u64,
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = |count: u64, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        let [operations, clients, faults] =
            [of(self.operations, "operation"), of(self.clients, "client"), of(self.faults, "fault")];
        write!(f, "{operations} of {clients}, {faults}")
    }
}
