//! The key schema of a leased queue.
//!
//! ```text
//! (leased, 0, versionstamp, rank, item id)  =  value                    a waiting item
//! (leased, 1, versionstamp, rank, item id)  =  value                    a claimed item
//! (leased, 2, versionstamp, rank, item id)  =  (token, revision, held)  its lease, since the first claim
//!                                               int    int       bool
//! ```
//!
//! An item has the same position in all three, and returns to its original position. The token counts the
//! claims of the item, the revision the renewals of the claim. The lease remains while the item waits again,
//! so that no token is used twice; acknowledging removes it together with the item. No time is stored.

use super::Error;
use crate::{
    once::{self, Answer, Packed, decode_headed, encode_headed},
    queue::{Item, Order, Position},
    tx::KeyValue,
};
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::Subspace;
use std::fmt;

/// What a worker holds: an item, and the number of its claim. The token is greater than those of all earlier
/// claims of the item, so that it can fence the worker's effects in other systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hold {
    /// The item.
    pub position: Position,
    /// The number of the claim, from 1.
    pub token: i64,
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Position::Index { id, .. } | Position::Commit { id, .. }) = self.position;
        write!(f, "claim {} of the item {:032x}", self.token, u128::from_be_bytes(id.0))
    }
}

/// An observed lease: any renewal, and any new claim, changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    /// The claim of the item.
    pub hold: Hold,
    /// The number of renewals.
    pub revision: i64,
}

/// A row of a leased queue, for tools that inspect one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// A waiting item.
    Waiting(Item),
    /// A claimed item.
    Claimed(Item),
    /// An item's last lease, and whether it is held.
    Lease(Lease, bool),
}

#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub all: Subspace,
    pub waiting: Subspace,
    pub claimed: Subspace,
    pub leases: Subspace,
}

impl Keys {
    pub fn new(all: Subspace) -> Keys {
        let [waiting, claimed, leases] = [0, 1, 2].map(|part| all.subspace(&part));
        Keys { all, waiting, claimed, leases }
    }

    pub fn item(of: &Subspace, row: &KeyValue) -> Result<Item, Error> {
        let position = Position::unpack(of, Order::Commit, &row.key);
        Ok(Item { position: position.map_err(|_| Error::foreign(&row.key))?, value: row.value.clone() })
    }

    pub fn lease(&self, row: &KeyValue) -> Result<(Lease, bool), Error> {
        let foreign = || Error::foreign(&row.key);
        let position = Position::unpack(&self.leases, Order::Commit, &row.key).map_err(|_| foreign())?;
        let (token, revision, held) = foundationdb_tuple::unpack(&row.value).map_err(|_| foreign())?;
        Ok((Lease { hold: Hold { position, token }, revision }, held))
    }

    pub fn row(&self, row: &KeyValue) -> Result<Row, Error> {
        if self.waiting.is_start_of(&row.key) {
            return Ok(Row::Waiting(Keys::item(&self.waiting, row)?));
        }
        if self.claimed.is_start_of(&row.key) {
            return Ok(Row::Claimed(Keys::item(&self.claimed, row)?));
        }
        let (lease, held) = self.lease(row)?;
        Ok(Row::Lease(lease, held))
    }
}

/// Encodes the value of a lease.
pub(super) fn lease_value(lease: &Lease, held: bool) -> Vec<u8> {
    foundationdb_tuple::pack(&(lease.hold.token, lease.revision, held))
}

/// The position as head, the token.
impl Answer for Hold {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        encode_headed(&self.position, &foundationdb_tuple::pack(&self.token), out)
    }

    fn decode(bytes: Bytes) -> Option<Hold> {
        let (position, token) = decode_headed(bytes)?;
        let Packed(token) = Packed::decode(token)?;
        Some(Hold { position, token })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::ItemId;

    fn at(byte: u8) -> Position {
        Position::Commit { stamp: [byte; 10], rank: 300, id: ItemId([byte; 16]) }
    }

    #[test]
    fn row_kinds_are_distinguished_and_round_trip() {
        let keys = Keys::new(Subspace::from("l"));
        let parts = [keys.waiting.clone(), keys.claimed.clone(), keys.leases.clone()];
        assert_eq!(parts, [0, 1, 2].map(|part| keys.all.subspace(&part)));
        let item = Item { position: at(0), value: Bytes::from_static(b"\0x") };
        let lease = Lease { hold: Hold { position: at(9), token: 300 }, revision: i64::MAX };
        for (row, expected) in [
            (KeyValue::new(at(0).pack(&keys.waiting), item.value.clone()), Row::Waiting(item.clone())),
            (KeyValue::new(at(0).pack(&keys.claimed), item.value.clone()), Row::Claimed(item)),
            (KeyValue::new(at(9).pack(&keys.leases), lease_value(&lease, true)), Row::Lease(lease, true)),
            (KeyValue::new(at(9).pack(&keys.leases), lease_value(&lease, false)), Row::Lease(lease, false)),
        ] {
            assert!(keys.all.is_start_of(&row.key));
            assert_eq!(keys.row(&row), Ok(expected));
        }
    }

    #[test]
    fn other_rows_are_foreign() {
        let keys = Keys::new(Subspace::from("l"));
        for row in [
            KeyValue::new(keys.waiting.pack(&1), ""),
            KeyValue::new(keys.claimed.pack(&"x"), ""),
            KeyValue::new(at(1).pack(&keys.leases), "x"),
            KeyValue::new(keys.all.pack(&3), ""),
        ] {
            assert_eq!(keys.row(&row), Err(Error::foreign(&row.key)));
        }
    }

    #[test]
    fn holds_are_answers() {
        for hold in [Hold { position: at(0), token: 1 }, Hold { position: at(254), token: i64::MAX }] {
            let mut out = BytesMut::new();
            assert_eq!(hold.encode(&mut out), Ok(None));
            assert_eq!(Hold::decode(out.freeze()), Some(hold));
        }
        assert_eq!(Hold::decode(Bytes::from_static(b"\x40x")), None);
        assert_eq!(Hold::decode(Bytes::new()), None);
    }
}
