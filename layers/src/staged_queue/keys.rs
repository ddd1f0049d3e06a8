//! The key schema of a staged queue.
//!
//! ```text
//! (staged, 0, versionstamp, rank, item id)  =  value          an item
//! (staged, 1, versionstamp, rank, ticket)   =  ""             a request of a client that waits for an item
//! (staged, 2, ticket)                       =  0 | 1 item     the result for a request, parked for it
//!             16 bytes                         item: its position and value
//! ```
//!
//! Items and requests are each stored in commit order, as in a [`queue`](crate::queue). A ticket is drawn for
//! every request and never used again. A parked item keeps its position, so that it can return there.

use super::Error;
use crate::{
    once::{self, Answer},
    queue::{Item, ItemId, MAX_VALUE_BYTES, Order, Position},
    tx::KeyValue,
};
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};

/// The request of a waiting client, with its position among all requests. It exists once its registration has
/// committed; requests are served in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request(Position);

impl Request {
    fn at(position: Position) -> Option<Request> {
        match position {
            Position::Commit { stamp, .. } if stamp != UNSTAMPED => Some(Request(position)),
            _ => None,
        }
    }

    /// The ticket with which it was registered.
    pub fn ticket(&self) -> ItemId {
        ticket(&self.0)
    }

    /// The versionstamp of its registration's transaction.
    pub fn stamp(&self) -> [u8; 10] {
        match self.0 {
            Position::Commit { stamp, .. } => stamp,
            Position::Index { .. } => UNSTAMPED,
        }
    }

    /// The note that a session keeps for it.
    pub(super) fn note(&self) -> Bytes {
        self.0.pack(&Subspace::all()).into()
    }

    pub(super) fn of_note(note: &Bytes) -> Option<Request> {
        Request::decode(note.clone())
    }
}

/// Encoded as its key without the queue's prefix.
impl Answer for Request {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        self.0.encode(out)
    }

    fn decode(bytes: Bytes) -> Option<Request> {
        Position::decode(bytes).and_then(Request::at)
    }
}

/// A request that a transaction registers. Waiting for it, collecting its result and leaving require that the
/// transaction has committed, which determines its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered(pub(super) Position);

impl Registered {
    /// The request; `None` if it is not known to have committed. It is known in an answer returned by a
    /// [`Session`](crate::once::Session).
    pub fn request(&self) -> Option<Request> {
        Request::at(self.0)
    }

    /// The request, given the versionstamp of the transaction that registered it.
    pub fn committed(&self, stamp: [u8; 10]) -> Option<Request> {
        match self.0 {
            Position::Commit { rank, id, .. } => Request::at(Position::Commit { stamp, rank, id }),
            Position::Index { .. } => None,
        }
    }
}

/// Encoded as its request; the commit fills in the stamp.
impl Answer for Registered {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        self.0.encode(out)
    }

    fn decode(bytes: Bytes) -> Option<Registered> {
        Position::decode(bytes).map(Registered)
    }
}

/// The stamp of a position whose transaction has not committed.
const UNSTAMPED: [u8; 10] = [0xff; 10];

/// A row of a staged queue, for tools that inspect one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// An item.
    Item(Item),
    /// A request.
    Request(Request),
    /// The result that is parked for the request with this ticket.
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
        let foreign = || Error::foreign(&row.key);
        let position = Position::unpack(&self.items, Order::Commit, &row.key).map_err(|_| foreign())?;
        // A larger item could not be parked.
        match row.value.len() {
            ..=MAX_VALUE_BYTES => Ok(Item { position, value: row.value.clone() }),
            _ => Err(foreign()),
        }
    }

    pub fn request(&self, key: &[u8]) -> Result<Request, Error> {
        let position = Position::unpack(&self.requests, Order::Commit, key);
        position.ok().and_then(Request::at).ok_or_else(|| Error::foreign(key))
    }

    /// The key of a request.
    pub fn waiting(&self, request: &Request) -> Vec<u8> {
        request.0.pack(&self.requests)
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

/// Decodes a parked value.
pub(super) fn given(key: &[u8], value: Bytes) -> Result<Option<Item>, Error> {
    let item = <Option<Item>>::decode(value);
    // The item returns to its original position, which is in commit order.
    let stood = |item: &Item| matches!(item.position, Position::Commit { .. });
    item.filter(|item| item.as_ref().is_none_or(stood)).ok_or_else(|| Error::foreign(key))
}

fn ticket(position: &Position) -> ItemId {
    let (Position::Index { id, .. } | Position::Commit { id, .. }) = position;
    *id
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(byte: u8) -> Position {
        Position::Commit { stamp: [byte; 10], rank: 5, id: ItemId([byte; 16]) }
    }

    #[test]
    fn row_kinds_are_distinguished_and_round_trip() {
        let keys = Keys::new(Subspace::from("s"));
        let parts = [keys.items.clone(), keys.requests.clone(), keys.parked.clone()];
        assert_eq!(parts, [0, 1, 2].map(|part| keys.all.subspace(&part)));
        let item = Item { position: at(0), value: Bytes::from_static(b"\0x") };
        let mut parked = BytesMut::new();
        Some(item.clone()).encode(&mut parked).unwrap();
        for (row, expected) in [
            (KeyValue::new(at(0).pack(&keys.items), item.value.clone()), Row::Item(item.clone())),
            (KeyValue::new(at(7).pack(&keys.requests), ""), Row::Request(Request(at(7)))),
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
    }

    #[test]
    fn a_request_exists_once_its_registration_has_committed() {
        let registered = Registered(Position::unstamped(3, ItemId([7; 16])));
        assert_eq!(registered.request(), None);
        assert_eq!(registered.committed(UNSTAMPED), None);
        let request = registered.committed([9; 10]).expect("a stamp");
        assert_eq!((request.ticket(), request.stamp()), (ItemId([7; 16]), [9; 10]));
        assert_eq!(Registered(request.0).request(), Some(request));
        assert_eq!(Request::of_note(&request.note()), Some(request));
        assert_eq!(Request::of_note(&Bytes::new()), None);
        assert_eq!(Request::at(Position::Index { index: 1, id: ItemId([7; 16]) }), None);
    }

    #[test]
    fn other_rows_are_foreign() {
        let keys = Keys::new(Subspace::from("s"));
        let position = Position::Index { index: 1, id: ItemId([7; 16]) };
        let mut indexed = BytesMut::new();
        Some(Item { position, value: Bytes::new() }).encode(&mut indexed).unwrap();
        for row in [
            KeyValue::new(keys.items.pack(&1), ""),
            KeyValue::new(keys.requests.pack(&"x"), ""),
            KeyValue::new(Position::unstamped(1, ItemId([0; 16])).pack(&keys.requests), ""),
            KeyValue::new(keys.parked.pack(&TupleBytes::from(&[0; 9][..])), Bytes::from_static(b"\0")),
            KeyValue::new(keys.parked(ItemId([0; 16])), "x"),
            KeyValue::new(keys.all.pack(&3), ""),
            // An item that could not be parked, and one that could not return to its original position.
            KeyValue::new(at(7).pack(&keys.items), vec![0; MAX_VALUE_BYTES + 1]),
            KeyValue::new(keys.parked(ItemId([0; 16])), indexed.freeze()),
        ] {
            assert_eq!(keys.row(&row), Err(Error::foreign(&row.key)));
        }
    }
}
