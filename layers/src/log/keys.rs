//! The key schema of a log.
//!
//! ```text
//! entry   (log, 0, versionstamp, rank)  =  value
//!                  12 bytes      int
//! head    (log, 1)                      =  ten bytes of the last append's versionstamp
//! ```
//!
//! The versionstamp's two user bytes are zero. `rank` orders the entries of one transaction, which share
//! its versionstamp: it is the transaction's approximate size at the call, which every write makes larger,
//! so that no caller has to count and no two entries have one key. The head is what a tail watches: a
//! watch is on a single key, and a stamp never comes back to an earlier value.

use super::Error;
use crate::once::Answer;
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::{Subspace, Versionstamp};
use serde::{Deserialize, Serialize};

const ENTRIES: i64 = 0;
const HEAD: i64 = 1;

const UNSTAMPED: [u8; 10] = [0xff; 10];

/// An entry's place in its log; the order of positions is the order of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The ten bytes of the transaction's versionstamp; all 0xff while it has not committed.
    pub stamp: [u8; 10],
    /// Orders the entries of one transaction.
    pub rank: i64,
}

impl Position {
    /// A place in a transaction that is still to commit.
    pub(super) fn unstamped(rank: i64) -> Position {
        Position { stamp: UNSTAMPED, rank }
    }

    /// The key below `subspace`; with the little-endian offset of the stamp in the whole key behind it
    /// when the stamp is incomplete, as a versionstamped key wants it.
    fn pack(&self, subspace: &Subspace) -> Vec<u8> {
        subspace.pack_with_versionstamp(&(Versionstamp::complete(self.stamp, 0), self.rank))
    }
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
    position.pack(&entries(log))
}

/// An entry's position, by its key.
pub(super) fn position(log: &Subspace, key: &[u8]) -> Result<Position, Error> {
    let foreign = || Error::foreign(key);
    let (stamp, rank): (Versionstamp, i64) = entries(log).unpack(key).map_err(|_| foreign())?;
    match stamp.user_version() {
        0 => Ok(Position { stamp: stamp.transaction_version().try_into().map_err(|_| foreign())?, rank }),
        _ => Err(foreign()),
    }
}

/// As the entry's key without the log's prefix; the commit fills in the stamp.
impl Answer for Position {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, crate::once::Error> {
        let start = out.len();
        let key = self.pack(&Subspace::all());
        if self.stamp != UNSTAMPED {
            out.extend_from_slice(&key);
            return Ok(None);
        }
        let (key, offset) = key.split_at(key.len() - 4);
        out.extend_from_slice(key);
        Ok(Some(start + offset.try_into().map_or(0, u32::from_le_bytes) as usize))
    }

    fn decode(bytes: Bytes) -> Option<Position> {
        let (stamp, rank): (Versionstamp, i64) = foundationdb_tuple::unpack(&bytes).ok()?;
        Some(Position { stamp: stamp.transaction_version().try_into().ok()?, rank })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_positions_do_and_come_back() {
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
    fn the_stamp_goes_where_the_offset_in_the_whole_key_says() {
        let log = Subspace::from(("a", "log"));
        let mut key = entry(&log, &Position::unstamped(77));
        let offset = u32::from_le_bytes(key.split_off(key.len() - 4).try_into().unwrap()) as usize;
        key[offset..offset + 10].copy_from_slice(&[1; 10]);
        assert_eq!(position(&log, &key), Ok(Position { stamp: [1; 10], rank: 77 }));

        let mut answer = BytesMut::from(&b"header"[..]);
        let at = Position::unstamped(77).encode(&mut answer).unwrap().unwrap();
        answer[at..at + 10].copy_from_slice(&[1; 10]);
        let told = Position::decode(answer.freeze().slice(6..));
        assert_eq!(told, Some(Position { stamp: [1; 10], rank: 77 }));
    }

    #[test]
    fn what_a_log_does_not_write_is_foreign() {
        let log = Subspace::from("log");
        let user_bytes = entries(&log).pack(&(Versionstamp::complete([1; 10], 5), 1));
        for key in [head(&log), entries(&log).pack(&("x", 1)), user_bytes] {
            assert_eq!(position(&log, &key), Err(Error::foreign(&key)));
        }
    }
}
