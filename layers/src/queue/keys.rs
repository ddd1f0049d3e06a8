//! The key schema of a queue.
//!
//! ```text
//! Order::Index    (queue, index, item id)                    =  value
//!                         int    16 bytes
//! Order::Commit   (queue, versionstamp, rank, item id)       =  value
//!                         12 bytes      int   16 bytes
//! ```
//!
//! The item id is drawn once per operation. It distinguishes enqueues that computed the same index, and
//! ensures that no item overwrites another. The versionstamp's two user bytes are zero; `rank` orders the
//! items of one transaction: it is the transaction's approximate size at the call, which increases with every
//! write, so that callers need not count.

use super::Error;
use crate::{
    canonical,
    once::Answer,
    tx::{Env, VALUE_SIZE_LIMIT},
};
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::{Bytes as TupleBytes, Element, Subspace, Versionstamp};
use serde::{Deserialize, Serialize};

/// The maximum size of a value, in bytes: FoundationDB's limit minus the overhead of a dequeue's record.
pub const MAX_VALUE_BYTES: usize = VALUE_SIZE_LIMIT - 100;

/// The order of a queue's items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Order {
    /// By an index that is one more than the last one.
    Index,
    /// By the versionstamp of the enqueuing transaction.
    Commit,
}

/// Identifies an enqueue. Draw it before a retry loop, never inside it: otherwise, an attempt that committed
/// with an unknown result would leave its item under another id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ItemId(pub [u8; 16]);

impl ItemId {
    /// A new id from the backend's randomness.
    pub fn draw(env: &Env) -> ItemId {
        ItemId(env.random_bytes())
    }
}

/// An item's position in its queue; positions are ordered as items leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Position {
    /// In index order.
    Index {
        /// The index, from 1.
        index: i64,
        /// The item's id, which breaks ties.
        id: ItemId,
    },
    /// In commit order.
    Commit {
        /// The ten bytes of the transaction's versionstamp; all 0xff before it has committed.
        stamp: [u8; 10],
        /// The rank, which orders the items of one transaction.
        rank: i64,
        /// The item's id.
        id: ItemId,
    },
}

const UNSTAMPED: [u8; 10] = [0xff; 10];

impl Position {
    /// A position in commit order, in a transaction that has not committed yet.
    pub(crate) fn unstamped(rank: i64, id: ItemId) -> Position {
        Position::Commit { stamp: UNSTAMPED, rank, id }
    }

    fn elements(&self) -> (Element<'_>, Option<i64>, TupleBytes<'_>) {
        match self {
            Position::Index { index, id } => (Element::Int(*index), None, id.0[..].into()),
            Position::Commit { stamp, rank, id } => {
                (Element::Versionstamp(Versionstamp::complete(*stamp, 0)), Some(*rank), id.0[..].into())
            }
        }
    }

    /// The key in `subspace`; if the stamp is incomplete, followed by its little-endian offset, as a
    /// versionstamped key requires.
    pub(crate) fn pack(&self, subspace: &Subspace) -> Vec<u8> {
        match self.elements() {
            (first, None, id) => subspace.pack(&(first, id)),
            (first, Some(rank), id) => subspace.pack_with_versionstamp(&(first, rank, id)),
        }
    }

    pub(crate) fn unpack(subspace: &Subspace, order: Order, key: &[u8]) -> Result<Position, Error> {
        let foreign = || Error::foreign(key);
        let id = |id: TupleBytes<'_>| (*id).try_into().map(ItemId).map_err(|_| foreign());
        match order {
            Order::Index => {
                let (index, rest) = canonical::unpack_below(subspace, key).map_err(|_| foreign())?;
                Ok(Position::Index { index, id: id(rest)? })
            }
            Order::Commit => {
                let (stamp, rank, rest): (Versionstamp, _, _) =
                    canonical::unpack_below(subspace, key).map_err(|_| foreign())?;
                if !stamp.is_complete() || stamp.user_version() != 0 {
                    return Err(foreign());
                }
                let stamp = stamp.transaction_version().try_into().map_err(|_| foreign())?;
                Ok(Position::Commit { stamp, rank, id: id(rest)? })
            }
        }
    }
}

/// Encoded as the item's key without the queue's prefix; the commit fills in the stamp.
impl Answer for Position {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, crate::once::Error> {
        let start = out.len();
        let key = self.pack(&Subspace::all());
        match self {
            Position::Commit { stamp, .. } if *stamp == UNSTAMPED => {
                let (key, offset) = key.split_at(key.len() - 4);
                out.extend_from_slice(key);
                let offset = offset.try_into().map_or(0, u32::from_le_bytes);
                Ok(Some(start + offset as usize))
            }
            _ => {
                out.extend_from_slice(&key);
                Ok(None)
            }
        }
    }

    fn decode(bytes: Bytes) -> Option<Position> {
        let all = Subspace::all();
        Position::unpack(&all, Order::Index, &bytes)
            .or_else(|_| Position::unpack(&all, Order::Commit, &bytes))
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(byte: u8) -> ItemId {
        ItemId([byte; 16])
    }

    #[test]
    fn keys_sort_as_positions_do_and_round_trip() {
        let queue = Subspace::from("q");
        let stamped = |a, rank, i| Position::Commit { stamp: [a; 10], rank, id: id(i) };
        let index = |index, i| Position::Index { index, id: id(i) };
        for (order, mut positions) in [
            (Order::Index, vec![index(300, 0), index(1, 9), index(1, 0), index(2, 255), index(255, 3)]),
            (Order::Commit, vec![stamped(2, 1, 0), stamped(1, 400, 1), stamped(1, 60, 9), stamped(1, 60, 0)]),
        ] {
            positions.sort();
            let keys: Vec<_> = positions.iter().map(|p| p.pack(&queue)).collect();
            assert!(keys.is_sorted());
            for (key, position) in keys.iter().zip(&positions) {
                assert_eq!(Position::unpack(&queue, order, key).as_ref(), Ok(position));
                let other = if order == Order::Index { Order::Commit } else { Order::Index };
                assert_eq!(Position::unpack(&queue, other, key), Err(Error::foreign(key)));
            }
        }
    }

    #[test]
    fn the_offset_is_that_of_the_stamp() {
        let position = Position::unstamped(77, id(5));
        let mut key = position.pack(&Subspace::from("q"));
        let offset = u32::from_le_bytes(key.split_off(key.len() - 4).try_into().unwrap()) as usize;
        key[offset..offset + 10].copy_from_slice(&[1; 10]);
        let stamped = Position::Commit { stamp: [1; 10], rank: 77, id: id(5) };
        assert_eq!(Position::unpack(&Subspace::from("q"), Order::Commit, &key), Ok(stamped));

        let mut answer = BytesMut::from(&b"header"[..]);
        let at = position.encode(&mut answer).unwrap().unwrap();
        answer[at..at + 10].copy_from_slice(&[1; 10]);
        assert_eq!(Position::decode(answer.freeze().slice(6..)), Some(stamped));
    }

    #[test]
    fn positions_are_answers() {
        for position in [
            Position::Index { index: 4, id: id(0) },
            Position::Commit { stamp: [3; 10], rank: 9, id: id(255) },
        ] {
            let mut out = BytesMut::new();
            assert_eq!(position.encode(&mut out), Ok(None));
            assert_eq!(Position::decode(out.freeze()), Some(position));
        }
        assert_eq!(Position::decode(Bytes::from_static(b"\x15")), None);
    }

    #[test]
    fn a_place_that_no_item_can_have_is_foreign() {
        let (queue, item) = (Subspace::from("q"), id(1));
        let read = |order, packed: &[u8]| {
            Position::unpack(
                &queue,
                order,
                &[queue.bytes(), packed, &foundationdb_tuple::pack(&&item.0[..])].concat(),
            )
        };
        let stamp = |bytes: u8, user: u8| [&[0x33][..], &[bytes; 10], &[0, user, 0x15, 7]].concat();
        assert!(read(Order::Commit, &stamp(1, 0)).is_ok());
        // A stamp with a user version would otherwise be taken for the same stamp without it.
        assert!(read(Order::Commit, &stamp(1, 1)).is_err());
        // No transaction has this stamp: it marks a position before its commit.
        assert!(read(Order::Commit, &stamp(0xff, 0)).is_err());
        assert!(read(Order::Index, &[0x15, 7]).is_ok());
        assert!(read(Order::Index, &[0x16, 0, 7]).is_err());
    }

    /// Nested tuples as deep as a key allows, and random bytes.
    #[test]
    fn whatever_is_stored_is_a_position_or_foreign() {
        let queue = Subspace::from("q");
        let read = |tail: &[u8]| {
            let key = [queue.bytes(), tail].concat();
            for order in [Order::Index, Order::Commit] {
                if let Err(e) = Position::unpack(&queue, order, &key) {
                    assert_eq!(e, Error::foreign(&key));
                }
            }
            let _ = Position::decode(Bytes::copy_from_slice(tail));
        };
        for byte in [0x05, 0x01, 0x33, 0x1d, 0xff] {
            read(&[byte; 9_900]);
            read(&[&[0x15, 1][..], &[byte; 9_900]].concat());
        }
        proptest::proptest!(|(code in 0u8..0x40, tail in proptest::collection::vec(proptest::num::u8::ANY, 0..60))| {
            read(&[&[code][..], &tail].concat());
        });
    }
}
