//! The operations of the workload and their answers as plain data, and how they are drawn.

use super::Sessions;
use foundationdb_tuple::Versionstamp;
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable_layers::once::{Fate, OpId, Packed};

/// One operation. Those that add name a number to be added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Begins a new incarnation.
    Open,
    /// Reads the register and adds; unless that leaves the bound, which refuses it.
    Add(i8),
    /// Adds without a look.
    Blind(i8),
    /// Adds by a retry loop of its own, with this retry limit.
    Manual(i8, i32),
    /// Adds, and uses a clone of the transaction after so many tenths of a millisecond.
    Clone(i8, u8),
    /// Adds, and drops the future of the commit after so many polls.
    Cut(i8, u8),
    /// Prepares to add, and keeps the transaction.
    Keep(i8),
    /// Commits what was kept.
    Late,
    /// So many operations that add one, one after the other.
    Burst(u16),
    /// Asks what became of the pending operation: by the session, or as another process would.
    Settle(bool),
    /// Asks what became of the operation of this incarnation and number, as another process would.
    Ask(u8, u8),
    /// What the session has settled by itself.
    Settled,
    /// Looks at the slot and the register.
    Look,
    /// Writes a mark, which may happen twice.
    Mark(u8),
}

impl Op {
    /// Whether it begins an operation of the session.
    pub(super) fn begins(&self) -> bool {
        matches!(
            self,
            Op::Add(_)
                | Op::Blind(_)
                | Op::Manual(..)
                | Op::Clone(..)
                | Op::Cut(..)
                | Op::Keep(_)
                | Op::Burst(_)
        )
    }
}

/// What an operation answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// An incarnation has begun, and this is what was recorded last before it.
    Opened(Option<(OpId, Known)>),
    /// Applied: the register's value, unless nobody looked, and the versionstamp.
    Applied(i64, [u8; 10]),
    /// So many operations were applied, and perhaps more.
    Burst(u16),
    /// Not applied, for this reason.
    Refused(String),
    /// Not applied, because the database did not let it.
    Failed(i32),
    /// What became of an operation.
    Fate(OpId, Known),
    /// Not applied, because this operation was dropped before; and what had become of it, asked for now.
    Unread(OpId, Known),
    /// The register, and whether the slot says that the last operation is ruled out; `None` without a slot.
    Seen(i64, Option<bool>),
    /// Nothing to be said of.
    Nothing,
}

/// What is known of an operation's fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Known {
    /// Applied, with this value and versionstamp.
    Applied(i64, [u8; 10]),
    /// Not applied, for ever.
    NotApplied,
    /// Overwritten.
    Forgotten,
}

/// What every operation answers and records: the register's value, or 0 when nobody looked, and the
/// versionstamp.
pub(super) type Told = Packed<(i64, Versionstamp)>;

pub(super) fn told(Packed((value, stamp)): Told) -> Answer {
    let mut bytes = [0; 10];
    bytes.copy_from_slice(stamp.transaction_version());
    Answer::Applied(value, bytes)
}

pub(super) fn known(fate: Fate<Told>) -> Known {
    match fate.map(told) {
        Fate::Applied(Answer::Applied(value, stamp)) => Known::Applied(value, stamp),
        Fate::Forgotten => Known::Forgotten,
        _ => Known::NotApplied,
    }
}

impl Sessions {
    /// What a client does, drawn.
    pub(super) fn drawn(&self) -> BoxedStrategy<Vec<Op>> {
        let by = || (-9i8..10).prop_filter("something to add", |by| *by != 0);
        let op = prop_oneof![
            2 => Just(Op::Open),
            12 => by().prop_map(Op::Add),
            8 => by().prop_map(Op::Blind),
            6 => (by(), -1i32..4).prop_map(|(by, limit)| Op::Manual(by, limit)),
            6 => (by(), 0u8..80).prop_map(|(by, after)| Op::Clone(by, after)),
            6 => (by(), 0u8..12).prop_map(|(by, polls)| Op::Cut(by, polls)),
            4 => by().prop_map(Op::Keep),
            4 => Just(Op::Late),
            1 => (self.burst / 2..self.burst + 1).prop_map(Op::Burst),
            4 => any::<bool>().prop_map(Op::Settle),
            1 => (1u8..5, 1u8..12).prop_map(|(epoch, seq)| Op::Ask(epoch, seq)),
            4 => Just(Op::Settled),
            6 => Just(Op::Look),
            2 => any::<u8>().prop_map(Op::Mark),
        ];
        vec(op, self.operations.clone()).boxed()
    }
}
