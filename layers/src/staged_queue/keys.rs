//! The key schema of a staged queue.
//!
//! ```text
//! (staged, 0, versionstamp, rank, item id)  =  value          an item
//! (staged, 1, versionstamp, rank, ticket)   =  ""             a request: who waits for an item
//! (staged, 2, ticket)                       =  0 | 1 item     what a request was given, parked for it
//!             16 bytes                         item: its position and value
//! ```
//!
//! Items and requests each stand in commit order, as in a [`queue`](crate::queue). A ticket is drawn for
//! every request and never used again. A parked item keeps its position, so that it can go back there.

use super::Error;
use crate::{
    once::Answer,
    queue::{Item, ItemId, Order, Position},
    tx::KeyValue,
};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};

/// A row of a staged queue, for whoever looks after one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// An item.
    Item(Item),
    /// A request, at its position.
    Request(Position),
    /// What the request with this ticket was given.
    Parked(ItemId, Option<Item>),
}

#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub all: Subspace,
    pub items: Subspace,
    pub requests: Subspace,
    pub parked: Subspace,
}

impl Keys {
    pub fn new(all: Subspace) -> Keys {
        let [items, requests, parked] = [0, 1, 2].map(|part| all.subspace(&part));
        Keys { all, items, requests, parked }
    }

    pub fn parked(&self, ticket: ItemId) -> Vec<u8> {
        self.parked.pack(&TupleBytes::from(&ticket.0[..]))
    }

    pub fn item(&self, row: &KeyValue) -> Result<Item, Error> {
        let position = Position::unpack(&self.items, Order::Commit, &row.key);
        Ok(Item { position: position.map_err(|_| Error::foreign(&row.key))?, value: row.value.clone() })
    }

    pub fn request(&self, key: &[u8]) -> Result<Position, Error> {
        Position::unpack(&self.requests, Order::Commit, key).map_err(|_| Error::foreign(key))
    }

    pub fn row(&self, row: &KeyValue) -> Result<Row, Error> {
        if self.items.is_start_of(&row.key) {
            return Ok(Row::Item(self.item(row)?));
        }
        if self.requests.is_start_of(&row.key) {
            return Ok(Row::Request(self.request(&row.key)?));
        }
        let ticket: TupleBytes<'_> = self.parked.unpack(&row.key).map_err(|_| Error::foreign(&row.key))?;
        let ticket = (*ticket).try_into().map(ItemId).map_err(|_| Error::foreign(&row.key))?;
        Ok(Row::Parked(ticket, given(&row.key, row.value.clone())?))
    }
}

/// What a parked value holds.
pub(super) fn given(key: &[u8], value: Bytes) -> Result<Option<Item>, Error> {
    <Option<Item>>::decode(value).ok_or_else(|| Error::foreign(key))
}

/// The ticket of a request.
pub(super) fn ticket(request: &Position) -> ItemId {
    let (Position::Index { id, .. } | Position::Commit { id, .. }) = request;
    *id
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;

    fn at(byte: u8) -> Position {
        Position::Commit { stamp: [byte; 10], rank: 5, id: ItemId([byte; 16]) }
    }

    #[test]
    fn rows_are_told_apart_and_round_trip() {
        let keys = Keys::new(Subspace::from("s"));
        let item = Item { position: at(0), value: Bytes::from_static(b"\0x") };
        let mut parked = BytesMut::new();
        Some(item.clone()).encode(&mut parked).unwrap();
        for (row, expected) in [
            (KeyValue::new(at(0).pack(&keys.items), item.value.clone()), Row::Item(item.clone())),
            (KeyValue::new(at(7).pack(&keys.requests), ""), Row::Request(at(7))),
            (
                KeyValue::new(keys.parked(ItemId([7; 16])), parked.freeze()),
                Row::Parked(ItemId([7; 16]), Some(item)),
            ),
            (
                KeyValue::new(keys.parked(ItemId([0; 16])), Bytes::from_static(b"\0")),
                Row::Parked(ItemId([0; 16]), None),
            ),
        ] {
            assert!(keys.all.is_start_of(&row.key));
            assert_eq!(keys.row(&row), Ok(expected));
        }
        assert_eq!(ticket(&at(7)), ItemId([7; 16]));
    }

    #[test]
    fn other_rows_are_foreign() {
        let keys = Keys::new(Subspace::from("s"));
        for row in [
            KeyValue::new(keys.items.pack(&1), ""),
            KeyValue::new(keys.requests.pack(&"x"), ""),
            KeyValue::new(keys.parked.pack(&TupleBytes::from(&[0; 9][..])), Bytes::from_static(b"\0")),
            KeyValue::new(keys.parked(ItemId([0; 16])), "x"),
            KeyValue::new(keys.all.pack(&3), ""),
        ] {
            assert_eq!(keys.row(&row), Err(Error::foreign(&row.key)));
        }
    }
}
