//! The key schema of slots.
//!
//! ```text
//! (subspace, client)  =  format  epoch  answered.epoch  answered.seq  decision  answer ..
//!  tuple layer, u64      u8=1    u64    u64             u64           u8        bytes
//! ```
//!
//! `epoch` counts the incarnations of the client. `answered` is its last decided operation (`0, 0` before the
//! first one) and `decision` is its fate: 0 never applied, 1 applied with the answer that follows.
//! Integers are big-endian. The answer is stored raw, not as a tuple element, so that an answer of arbitrary
//! bytes needs no escaping and may use the maximum size of a value minus the header.

use super::Error;
use crate::VALUE_SIZE_LIMIT;
use bytes::{BufMut, Bytes, BytesMut};
use foundationdb_tuple::Subspace;
use serde::{Deserialize, Serialize};
use std::fmt;

const FORMAT: u8 = 1;
const HEADER: usize = 26;

/// The maximum size of an encoded answer, in bytes: the maximum size of a value, minus the slot's header and
/// the four bytes that a versionstamped value needs until it is committed.
pub const MAX_ANSWER_BYTES: usize = VALUE_SIZE_LIMIT - HEADER - 4;

/// Identifies one operation of one client, permanently and globally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OpId {
    /// The client's number, which determines its slot.
    pub client: u64,
    /// The client's incarnation.
    pub epoch: u64,
    /// The operation's number within the incarnation, from 1.
    pub seq: u64,
}

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.client, self.epoch, self.seq)
    }
}

/// The location of slots: a dedicated subspace with one key for each client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    subspace: Subspace,
}

impl Slots {
    /// The slots in `subspace`, which must not be used for anything else.
    pub fn new(subspace: Subspace) -> Slots {
        Slots { subspace }
    }

    /// The key of a client's slot.
    pub fn key(&self, client: u64) -> Bytes {
        self.subspace.pack(&client).into()
    }

    /// Whether this write marks an operation as never applied, as [`resolve`](super::resolve) does if it
    /// finds no record. The transaction of such a write has no other effect.
    pub fn is_fence(&self, key: &[u8], value: &[u8]) -> bool {
        let slot = || Slot::decode(Bytes::copy_from_slice(value));
        self.subspace.is_start_of(key) && slot().is_ok_and(|slot| slot.decision == Decision::Never)
    }
}

/// The decision about an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Fenced: it was never applied and never will be.
    Never,
    /// Applied, with the encoded answer.
    Applied(Bytes),
}

/// A slot's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// The incarnation that may write the slot.
    pub epoch: u64,
    /// Epoch and number of the last decided operation; zeros before the first.
    pub answered: (u64, u64),
    /// The decision about it.
    pub decision: Decision,
}

impl Slot {
    /// The content before the first incarnation.
    pub fn vacant() -> Slot {
        Slot { epoch: 0, answered: (0, 0), decision: Decision::Never }
    }

    /// The header, to which the answer is appended.
    pub fn header(epoch: u64, op: (u64, u64), applied: bool) -> BytesMut {
        let mut out = BytesMut::with_capacity(HEADER + 16);
        out.put_u8(FORMAT);
        out.put_u64(epoch);
        out.put_u64(op.0);
        out.put_u64(op.1);
        out.put_u8(applied as u8);
        out
    }

    pub fn encode(&self) -> BytesMut {
        let mut out = Slot::header(self.epoch, self.answered, matches!(self.decision, Decision::Applied(_)));
        if let Decision::Applied(answer) = &self.decision {
            out.extend_from_slice(answer);
        }
        out
    }

    pub fn decode(value: Bytes) -> Result<Slot, Error> {
        let word = |at: usize| -> Result<u64, Error> {
            let bytes = value.get(at..at + 8).ok_or(Error::Unreadable)?;
            Ok(u64::from_be_bytes(bytes.try_into().map_err(|_| Error::Unreadable)?))
        };
        let (epoch, answered) = (word(1)?, (word(9)?, word(17)?));
        let decision = match (value[0], value.get(25)) {
            (FORMAT, Some(0)) => Decision::Never,
            (FORMAT, Some(1)) => Decision::Applied(value.slice(HEADER..)),
            _ => return Err(Error::Unreadable),
        };
        Ok(Slot { epoch, answered, decision })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_named_by_client_incarnation_and_number() {
        assert_eq!(OpId { client: 3, epoch: 1, seq: 20 }.to_string(), "3.1.20");
    }

    #[test]
    fn slots_round_trip_and_garbage_is_refused() {
        for decision in [
            Decision::Never,
            Decision::Applied(Bytes::from_static(b"\0\xff\0")),
            Decision::Applied(Bytes::new()),
        ] {
            let slot = Slot { epoch: 7, answered: (6, u64::MAX), decision };
            let bytes = slot.encode().freeze();
            assert_eq!(Slot::decode(bytes.clone()), Ok(slot));
            for cut in 0..HEADER {
                assert_eq!(Slot::decode(bytes.slice(..cut)), Err(Error::Unreadable));
            }
        }
        assert_eq!(Slot::decode(Bytes::from(vec![9; 40])), Err(Error::Unreadable));
        assert_eq!(Slot::header(1, (2, 3), true).len(), HEADER);
    }

    #[test]
    fn each_client_has_its_own_key() {
        let slots = Slots::new(Subspace::from("once"));
        assert_eq!(&slots.key(3)[..], &foundationdb_tuple::pack(&("once", 3u64))[..]);
        assert_ne!(slots.key(3), slots.key(4));
    }

    #[test]
    fn a_fence_is_distinguished_from_a_record() {
        let slots = Slots::new(Subspace::from("once"));
        let slot = |decision| Slot { epoch: 1, answered: (1, 1), decision }.encode();
        assert!(slots.is_fence(&slots.key(3), &slot(Decision::Never)));
        assert!(!slots.is_fence(&slots.key(3), &slot(Decision::Applied(Bytes::new()))));
        assert!(!slots.is_fence(b"else", &slot(Decision::Never)));
        assert!(!slots.is_fence(&slots.key(3), b"no slot"));
    }
}
