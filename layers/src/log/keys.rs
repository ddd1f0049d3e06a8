//! The key schema of a log.
//!
//! ```text
//! entry   (log, 0, versionstamp, rank)  =  value
//!                  12 bytes      int
//! head    (log, 1)                      =  ten bytes of the last append's versionstamp
//! ```
//!
//! The versionstamp's two user bytes are zero. `rank` orders the entries of one transaction, which share its
//! versionstamp: it is the transaction's approximate size at the call, which increases with every write, so
//! that callers need not count and no two entries have the same key. The head is the key that a tail watches:
//! a watch is on a single key, and a stamp never returns to an earlier value.

use super::Error;
use crate::{
    canonical,
    limits::{self, TooLarge},
    once::Answer,
    tx::VALUE_SIZE_LIMIT,
};
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::{Subspace, Versionstamp};
use serde::{Deserialize, Serialize};

const ENTRIES: i64 = 0;
const HEAD: i64 = 1;

/// The maximum length of an appended entry's key after the log's prefix: the number of the entries' subspace,
/// a versionstamp, a rank, and the four bytes of the stamp's offset.
const MOST_KEY_BYTES: usize = 1 + 13 + 9 + 4;

/// An entry's position in its log; positions are ordered by commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The ten bytes of the transaction's versionstamp.
    pub stamp: [u8; 10],
    /// The rank, which orders the entries of one transaction.
    pub rank: i64,
}

/// The position of an entry within the transaction that appends it. Before the commit this is not a
/// [`Position`]: it cannot be used to read or trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Appended {
    rank: i64,
    stamp: Option<[u8; 10]>,
}

impl Appended {
    /// The position in a transaction that has not committed yet.
    pub(super) fn new(rank: i64) -> Appended {
        Appended { rank, stamp: None }
    }

    /// The position, after the transaction has committed with this versionstamp
    /// ([`get_versionstamp`](crate::tx::Transaction::get_versionstamp)).
    pub fn stamped(self, stamp: [u8; 10]) -> Position {
        Position { stamp, rank: self.rank }
    }

    /// The position, if this is the answer of an operation that was applied exactly once
    /// ([`once`](crate::once)); `None` if it was returned by the appending call itself.
    pub fn position(self) -> Option<Position> {
        self.stamp.map(|stamp| Position { stamp, rank: self.rank })
    }

    fn versionstamp(self) -> Versionstamp {
        self.stamp.map_or(Versionstamp::incomplete(0), |stamp| Versionstamp::complete(stamp, 0))
    }
}

/// Refuses a value that is too large, and every value if the subspace's prefix is too long.
pub(super) fn fits(log: &Subspace, value: &[u8]) -> Result<(), TooLarge> {
    limits::key_below(log.bytes(), MOST_KEY_BYTES)?;
    limits::value_up_to(VALUE_SIZE_LIMIT, log.bytes(), value)
}

/// The subspace of the entries.
pub(super) fn entries(log: &Subspace) -> Subspace {
    log.subspace(&ENTRIES)
}

/// The key that every append changes.
pub(super) fn head(log: &Subspace) -> Vec<u8> {
    log.pack(&HEAD)
}

/// An entry's key.
pub(super) fn entry(log: &Subspace, position: &Position) -> Vec<u8> {
    entries(log).pack(&(Versionstamp::complete(position.stamp, 0), position.rank))
}

/// The key of an entry to be appended, followed by the little-endian offset of its stamp.
pub(super) fn appended(log: &Subspace, place: Appended) -> Vec<u8> {
    entries(log).pack_with_versionstamp(&(place.versionstamp(), place.rank))
}

/// An entry's position, decoded from its key.
pub(super) fn position(log: &Subspace, key: &[u8]) -> Result<Position, Error> {
    let foreign = || Error::foreign(key);
    let (stamp, rank): (Versionstamp, i64) =
        canonical::unpack_below(&entries(log), key).map_err(|_| foreign())?;
    match (stamp.is_complete(), stamp.user_version()) {
        (true, 0) => {
            Ok(Position { stamp: stamp.transaction_version().try_into().map_err(|_| foreign())?, rank })
        }
        _ => Err(foreign()),
    }
}

/// Encoded as the entry's key without the log's prefix; the commit fills in the stamp.
impl Answer for Appended {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, crate::once::Error> {
        let start = out.len();
        let key = Subspace::all().pack_with_versionstamp(&(self.versionstamp(), self.rank));
        if self.stamp.is_some() {
            out.extend_from_slice(&key);
            return Ok(None);
        }
        let (key, offset) = key.split_at(key.len() - 4);
        out.extend_from_slice(key);
        Ok(Some(start + offset.try_into().map_or(0, u32::from_le_bytes) as usize))
    }

    fn decode(bytes: Bytes) -> Option<Appended> {
        let (stamp, rank): (Versionstamp, i64) = foundationdb_tuple::unpack(&bytes).ok()?;
        let complete = stamp.is_complete() && stamp.user_version() == 0;
        complete.then_some(Appended { rank, stamp: Some(stamp.transaction_version().try_into().ok()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tx::KEY_SIZE_LIMIT;

    #[test]
    fn keys_sort_as_positions_do_and_can_be_decoded() {
        let log = Subspace::from("log");
        let at = |byte, rank| Position { stamp: [byte; 10], rank };
        let positions = [at(0, 70), at(1, 0), at(1, 255), at(1, 256), at(1, 100_000), at(0xfe, 3)];
        assert!(positions.is_sorted());
        let keys: Vec<_> = positions.iter().map(|position| entry(&log, position)).collect();
        assert!(keys.is_sorted());
        for (key, at) in keys.iter().zip(&positions) {
            assert_eq!(position(&log, key).as_ref(), Ok(at));
            assert!(!head(&log).starts_with(key) && *key < head(&log));
        }
    }

    #[test]
    fn the_offset_is_that_of_the_stamp_in_the_whole_key() {
        let log = Subspace::from(("a", "log"));
        let at = Position { stamp: [1; 10], rank: 77 };
        let mut key = appended(&log, Appended::new(77));
        let offset = u32::from_le_bytes(key.split_off(key.len() - 4).try_into().unwrap()) as usize;
        key[offset..offset + 10].copy_from_slice(&[1; 10]);
        assert_eq!(position(&log, &key), Ok(at));
        assert_eq!(Appended::new(77).stamped([1; 10]), at);

        let mut answer = BytesMut::from(&b"header"[..]);
        let offset = Appended::new(77).encode(&mut answer).unwrap().unwrap();
        let unanswered = answer.clone().freeze().slice(6..);
        answer[offset..offset + 10].copy_from_slice(&[1; 10]);
        let told = Appended::decode(answer.freeze().slice(6..)).unwrap();
        assert_eq!(told.position(), Some(at));
        assert_eq!(Appended::new(77).position(), None);
        assert_eq!(Appended::decode(unanswered), None);
        let user_bytes = foundationdb_tuple::pack(&(Versionstamp::complete([1; 10], 5), 77));
        assert_eq!(Appended::decode(user_bytes.into()), None);
        // A returned answer can be recorded with another operation.
        let mut again = BytesMut::new();
        assert_eq!(told.encode(&mut again), Ok(None));
        assert_eq!(Appended::decode(again.freeze()), Some(told));
    }

    #[test]
    fn the_longest_key_fits_and_longer_keys_are_refused() {
        let long = |bytes: usize| Subspace::from_bytes(vec![b'p'; bytes]);
        let longest = long(KEY_SIZE_LIMIT - MOST_KEY_BYTES);
        assert_eq!(appended(&longest, Appended::new(i64::MAX)).len(), KEY_SIZE_LIMIT);
        assert_eq!(fits(&longest, &[0; VALUE_SIZE_LIMIT]), Ok(()));
        assert!(fits(&longest, &[0; VALUE_SIZE_LIMIT + 1]).is_err());
        assert!(fits(&long(KEY_SIZE_LIMIT - MOST_KEY_BYTES + 1), b"").is_err());
    }

    #[test]
    fn what_a_log_does_not_write_is_foreign() {
        let log = Subspace::from("log");
        let user_bytes = entries(&log).pack(&(Versionstamp::complete([1; 10], 5), 1));
        let unstamped = entries(&log).pack(&(Versionstamp::incomplete(0), 1));
        for key in [head(&log), entries(&log).pack(&("x", 1)), user_bytes, unstamped] {
            assert_eq!(position(&log, &key), Err(Error::foreign(&key)));
        }
    }
}
