//! The key schema of a priority queue.
//!
//! ```text
//! (queue, priority, count, item id)  =  value
//!         int       int    16 bytes
//! ```
//!
//! Items are ordered by ascending priority, and within a priority by the order of pushes: `count` is one more
//! than the largest existing count. The item id is drawn once per operation. It distinguishes pushes that
//! computed the same count, and ensures that no item overwrites another.

use super::Error;
use crate::{
    canonical,
    once::{self, Answer},
    queue::ItemId,
    tx::VALUE_SIZE_LIMIT,
};
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The maximum size of a value, in bytes: FoundationDB's limit minus the overhead of a pop's record.
pub const MAX_VALUE_BYTES: usize = VALUE_SIZE_LIMIT - 100;

/// The place of an item; places sort as their keys do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The priority; negative priorities sort before zero.
    pub priority: i64,
    /// The count, from 0, in the order of pushes to this priority.
    pub count: i64,
    /// The item's id, which breaks ties.
    pub id: ItemId,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "priority {}, count {}, id {:032x}",
            self.priority,
            self.count,
            u128::from_be_bytes(self.id.0)
        )
    }
}

impl Place {
    pub(super) fn pack(&self, queue: &Subspace) -> Vec<u8> {
        queue.pack(&(self.priority, self.count, TupleBytes::from(&self.id.0[..])))
    }

    pub(super) fn unpack(queue: &Subspace, key: &[u8]) -> Result<Place, Error> {
        let foreign = || Error::foreign(key);
        let (priority, count, id): (_, _, TupleBytes<'_>) =
            canonical::unpack_below(queue, key).map_err(|_| foreign())?;
        let id = (*id).try_into().map(ItemId).map_err(|_| foreign())?;
        Ok(Place { priority, count, id })
    }
}

/// Encoded as the item's key without the queue's prefix.
impl Answer for Place {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        out.extend_from_slice(&self.pack(&Subspace::all()));
        Ok(None)
    }

    fn decode(bytes: Bytes) -> Option<Place> {
        Place::unpack(&Subspace::all(), &bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_places_do_and_round_trip() {
        let queue = Subspace::from("p");
        let mut places: Vec<Place> = [i64::MIN, -256, -255, -1, 0, 1, 255, 256, i64::MAX]
            .into_iter()
            .flat_map(|priority| {
                [(300, 0), (0, 255), (0, 0), (255, 1)].map(|(count, id)| Place {
                    priority,
                    count,
                    id: ItemId([id; 16]),
                })
            })
            .collect();
        places.sort();
        let keys: Vec<_> = places.iter().map(|place| place.pack(&queue)).collect();
        assert!(keys.is_sorted());
        for (key, place) in keys.iter().zip(&places) {
            assert_eq!(Place::unpack(&queue, key).as_ref(), Ok(place));
            let mut out = BytesMut::new();
            assert_eq!(place.encode(&mut out), Ok(None));
            assert_eq!(Place::decode(out.freeze()), Some(*place));
        }
    }

    #[test]
    fn other_keys_are_foreign() {
        let queue = Subspace::from("p");
        for key in [
            queue.pack(&(1, 2)),
            queue.pack(&(1.5, 2, TupleBytes::from(&[0; 16][..]))),
            queue.pack(&(1, 2, TupleBytes::from(&[0; 15][..]))),
            b"else".to_vec(),
        ] {
            assert_eq!(Place::unpack(&queue, &key), Err(Error::foreign(&key)));
        }
        for byte in [0x05, 0x01, 0x1d, 0xff] {
            let key = [queue.bytes(), &[byte; 9_900]].concat();
            assert_eq!(Place::unpack(&queue, &key), Err(Error::foreign(&key)));
        }
        proptest::proptest!(|(tail in proptest::collection::vec(0u8..0x40, 0..60))| {
            let key = [queue.bytes(), &tail].concat();
            if let Err(e) = Place::unpack(&queue, &key) {
                assert_eq!(e, Error::foreign(&key));
            }
            let _ = Place::decode(tail.into());
        });
        assert_eq!(Place::decode(Bytes::from_static(b"\x15")), None);
    }
}
