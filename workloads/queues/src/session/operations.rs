//! What operations return and record, as plain data.

use bytes::{Bytes, BytesMut};
use foundationdb_tuple::Versionstamp;
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable_tx::once::{self, Fate, MAX_ANSWER_BYTES, OpId, Packed};

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
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
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

/// Draws an answer that no slot can hold.
pub(super) fn too_long() -> impl Strategy<Value = Long> {
    prop_oneof![
        Just(Long(0, MAX_ANSWER_BYTES)),
        Just(Long(MAX_HEAD_BYTES, MAX_ANSWER_BYTES - MAX_HEAD_BYTES)),
        select(&[256, 257, 511, 512][..]).prop_map(|head| Long(head, 0)),
    ]
}
