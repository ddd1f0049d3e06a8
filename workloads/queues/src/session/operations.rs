//! The operations of the workload and their answers as plain data, and how they are drawn.

use super::Sessions;
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::Versionstamp;
use proptest::{collection::vec, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable_tx::once::{self, Fate, MAX_ANSWER_BYTES, OpId, Packed};

/// One operation. Those that add contain the number to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Begins a new incarnation.
    Open,
    /// Reads the register and adds, unless the result would exceed the bound, which refuses the operation.
    Add(i8),
    /// Adds without a read.
    Blind(i8),
    /// Adds, with an answer that no slot can hold: a head and a body of so many bytes.
    TooLarge(i8, usize, usize),
    /// Adds in a retry loop of its own, with this retry limit.
    Manual(i8, i32),
    /// Adds, and uses a clone of the transaction after this many tenths of a millisecond.
    Clone(i8, u8),
    /// Adds, and drops the future of the commit after this many polls.
    Cut(i8, u8),
    /// Prepares to add, and keeps the transaction.
    Keep(i8),
    /// Commits the transaction that was kept.
    Late,
    /// This many operations that add one, one after the other.
    Burst(u16),
    /// Resolves the pending operation, with the session if true, and otherwise as another process would.
    Settle(bool),
    /// Resolves the operation with this incarnation and number, as another process would.
    Ask(u8, u8),
    /// Reads the operation that the session has resolved by itself.
    Settled,
    /// Reads the slot and the register.
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
                | Op::TooLarge(..)
                | Op::Manual(..)
                | Op::Clone(..)
                | Op::Cut(..)
                | Op::Keep(_)
                | Op::Burst(_)
        )
    }
}

/// What an operation returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// An incarnation began; the operation that was recorded last before it.
    Opened(Option<(OpId, Known)>),
    /// Applied; the register's value, or 0 if it was not read, and the versionstamp.
    Applied(i64, [u8; 10]),
    /// The number of operations that were certainly applied.
    Burst(u16),
    /// Not applied, for this reason.
    Refused(String),
    /// Not applied, because of this error of the database.
    Failed(i32),
    /// The fate of an operation.
    Fate(OpId, Known),
    /// Not applied, because this operation was dropped earlier; and the fate of that operation.
    Unread(OpId, Known),
    /// The register, and whether the slot rules the last operation out; `None` without a slot.
    Seen(i64, Option<bool>),
    /// No result.
    Nothing,
}

/// The fate of an operation, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Known {
    /// Applied, with this value and versionstamp.
    Applied(i64, [u8; 10]),
    /// Not applied, and never will be.
    NotApplied,
    /// Overwritten.
    Forgotten,
}

/// What every operation returns and records: the register's value, or 0 if it was not read, and the
/// versionstamp.
pub(super) type RecordedAnswer = Packed<(i64, Versionstamp)>;

/// An answer of a head and a body, so many bytes each.
pub(super) struct Long(pub(super) usize, pub(super) usize);

impl once::Answer for Long {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        let Long(head, body) = *self;
        once::encode_headed(&Bytes::from(vec![7; head]), &vec![8; body], out)
    }

    fn decode(bytes: Bytes) -> Option<Long> {
        let (head, body) = once::decode_headed::<Bytes>(bytes)?;
        Some(Long(head.len(), body.len()))
    }
}

impl Long {
    /// Why no slot can hold it.
    pub(super) fn refusal(&self) -> once::Error {
        let Long(head, body) = *self;
        let (bytes, limit) = match head {
            ..=MAX_HEAD_BYTES => (1 + head + body, MAX_ANSWER_BYTES),
            _ => (head, MAX_HEAD_BYTES),
        };
        once::Error::AnswerTooLarge { bytes, limit }
    }
}

const MAX_HEAD_BYTES: usize = 255;

pub(super) fn applied_answer(Packed((value, stamp)): RecordedAnswer) -> Answer {
    let mut bytes = [0; 10];
    bytes.copy_from_slice(stamp.transaction_version());
    Answer::Applied(value, bytes)
}

pub(super) fn known(fate: Fate<RecordedAnswer>) -> Known {
    match fate.map(applied_answer) {
        Fate::Applied(Answer::Applied(value, stamp)) => Known::Applied(value, stamp),
        Fate::Forgotten => Known::Forgotten,
        _ => Known::NotApplied,
    }
}

impl Sessions {
    /// Draws the operations of a client.
    pub(super) fn drawn(&self) -> BoxedStrategy<Vec<Op>> {
        let by = || (-9i8..10).prop_filter("something to add", |by| *by != 0);
        let head = prop_oneof![
            Just((0, MAX_ANSWER_BYTES)),
            Just((MAX_HEAD_BYTES, MAX_ANSWER_BYTES - MAX_HEAD_BYTES)),
            select(&[256, 257, 511, 512][..]).prop_map(|head| (head, 0)),
        ];
        let op = prop_oneof![
            1 => (by(), head).prop_map(|(by, (head, body))| Op::TooLarge(by, head, body)),
            2 => Just(Op::Open),
            12 => by().prop_map(Op::Add),
            8 => by().prop_map(Op::Blind),
            10 => (by(), -1i32..4).prop_map(|(by, limit)| Op::Manual(by, limit)),
            6 => (by(), 0u8..80).prop_map(|(by, after)| Op::Clone(by, after)),
            6 => (by(), 0u8..12).prop_map(|(by, polls)| Op::Cut(by, polls)),
            4 => by().prop_map(Op::Keep),
            4 => Just(Op::Late),
            1 => (self.burst / 2..self.burst + 1).prop_map(Op::Burst),
            6 => any::<bool>().prop_map(Op::Settle),
            1 => (1u8..5, 1u8..12).prop_map(|(epoch, seq)| Op::Ask(epoch, seq)),
            4 => Just(Op::Settled),
            6 => Just(Op::Look),
            2 => any::<u8>().prop_map(Op::Mark),
        ];
        vec(op, self.operations.clone()).boxed()
    }
}
