//! What operations are given and what they return, as plain data, and how it is drawn.

use super::{Staged, StagedOp};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, pack, unpack};
use proptest::{collection::vec, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::strategies;
use shaketable_layers::{
    queue::{Item, ItemId},
    staged_queue::MAX_VALUE_BYTES,
};
use shaketable_tx::Env;
use std::{ops::Range, time::Duration};

/// One of several things in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// Enqueues items.
    Put(Batch),
    /// Takes an item, or registers a request for which nothing will be collected.
    Take,
    /// Reads the first item.
    Peek,
    /// Counts the items.
    Count,
    /// Counts the parked items.
    Parked,
    /// Registers this many requests for which nothing will be collected. Alone in its transaction.
    Crowd(u16),
}

/// One of several calls about a request in one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestCall {
    /// Reads the state of the request.
    Turn,
    /// Collects what was parked for it.
    Collect,
    /// Ends it.
    Leave,
    /// Serves up to this many requests, at least one.
    Serve(usize),
    /// Brings back what was parked for it.
    TakeBack,
    /// Enqueues items.
    Put(Batch),
}

/// What such a call returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestAnswer {
    /// The request waits.
    Waiting,
    /// The request was given this item, or there was none for it.
    Given(Option<Name>),
    /// There is no such request.
    Gone,
    /// The number of requests that were served.
    Served(usize),
    /// Whether something was parked for the request.
    Back(bool),
    /// Enqueued.
    Put,
}

/// What such a part returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartAnswer {
    /// Enqueued.
    Put,
    /// The item that was taken, if there was one.
    Took(Option<Name>),
    /// Registered a request.
    Registered,
    /// The first item.
    First(Option<Name>),
    /// The number of items.
    Count(usize),
}

/// What an operation returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Enqueued.
    Enqueued,
    /// The item that was dequeued, if there was one. The number says how many operations earlier the
    /// session's first dequeue began that had not ended.
    Taken(Option<Name>, usize),
    /// Gave up without an item, and so did the dequeues that had not ended.
    Left(usize),
    /// Stopped, without an item so far.
    Away,
    /// Ended by this error of the database: it has no item, and no request stands.
    Failed(i32),
    /// Brought back what there was.
    Reclaimed,
    /// The first item.
    First(Option<Name>),
    /// The number of items.
    Count(usize),
    /// The number of items, of requests and of parked rows.
    Rows([usize; 3]),
    /// What the parts returned.
    Parts(Vec<PartAnswer>),
    /// What the calls about a request returned.
    Request(Vec<RequestAnswer>),
    /// Refused, with this message.
    Refused(String),
}

/// The items that an operation enqueues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    pub(super) client: u16,
    pub(super) number: u16,
    pub(super) items: u16,
    padding: u16,
}

pub use crate::shared::ItemName as Name;

/// More requests than one transaction serves.
const CROWD: u16 = 160;

/// The padding that gives a value the maximum size.
const FULL: u16 = u16::MAX;
const FULL_BATCH: Batch = Batch { client: 0, number: 0, items: 1, padding: FULL };

impl Batch {
    pub(super) fn values(&self) -> Vec<Bytes> {
        let value = |(client, number, part): Name| {
            // A zero takes two bytes in a tuple.
            let of = |padding: usize| pack(&(client, number, part, &vec![1u8; padding][..]));
            let padding = match self.padding {
                FULL => MAX_VALUE_BYTES - of(0).len(),
                padding => padding.into(),
            };
            of(padding).into()
        };
        self.names().map(value).collect()
    }

    /// The items to enqueue, with ids that are drawn here.
    pub(super) fn draw(&self, env: &Env) -> Vec<(ItemId, Bytes)> {
        self.values().into_iter().map(|value| (ItemId::draw(env), value)).collect()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = Name> + use<> {
        let (client, number) = (self.client, self.number);
        (0..self.items).map(move |part| (client, number, part))
    }
}

/// The name in a value.
pub(super) fn name(item: &Item) -> Result<Name, String> {
    let unpacked = unpack::<(u16, u16, u16, TupleBytes<'_>)>(&item.value);
    let parts = unpacked.map_err(|_| format!("\"{}\" was never enqueued", item.value.escape_ascii()))?;
    Ok((parts.0, parts.1, parts.2))
}

/// The time limit of a [`StagedOp::within`].
pub(super) fn patience(units: u16) -> Duration {
    Duration::from_micros(100 * u64::from(units))
}

impl RequestCall {
    pub(super) fn batch(&mut self) -> Option<&mut Batch> {
        if let RequestCall::Put(batch) = self { Some(batch) } else { None }
    }
}

impl Part {
    pub(super) fn batch(&mut self) -> Option<&mut Batch> {
        if let Part::Put(batch) = self { Some(batch) } else { None }
    }
}

impl Staged {
    /// Draws so many items.
    pub(super) fn batch(&self, items: Range<u16>) -> impl Strategy<Value = Batch> + use<> {
        let padding = 0..=self.padding;
        (items, padding).prop_map(|(items, padding)| Batch { client: 0, number: 0, items, padding })
    }

    /// Draws items of the maximum size.
    pub(super) fn full(&self) -> impl Strategy<Value = Batch> + use<> {
        let most = if self.crowded { 15u16 } else { 3 };
        (1..most).prop_map(|items| Batch { items, ..FULL_BATCH })
    }

    pub(super) fn parts(&self) -> BoxedStrategy<Vec<Part>> {
        let part = prop_oneof![
            3 => self.batch(1..3).prop_map(Part::Put),
            2 => Just(Part::Take),
            2 => Just(Part::Peek),
            1 => Just(Part::Count),
            1 => Just(Part::Parked),
        ];
        vec(part, 1..6).boxed()
    }

    pub(super) fn calls(&self) -> BoxedStrategy<Vec<RequestCall>> {
        let call = prop_oneof![
            4 => Just(RequestCall::Turn),
            2 => Just(RequestCall::Collect),
            1 => Just(RequestCall::Leave),
            3 => (0..4usize).prop_map(RequestCall::Serve),
            1 => Just(RequestCall::TakeBack),
            1 => self.batch(1..3).prop_map(RequestCall::Put),
        ];
        vec(call, 1..7).boxed()
    }
}

/// Draws requests of which there may be more than one transaction serves.
pub(super) fn crowd() -> impl Strategy<Value = StagedOp> {
    strategies::mostly(1..CROWD, select(&[99, 100, 101][..]))
        .prop_map(|requests| StagedOp::together { parts: vec![Part::Crowd(requests)] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_layers::queue::Position;

    #[test]
    fn items_carry_their_names() {
        let batch = Batch { client: 3, number: 9, items: 2, padding: 300 };
        let position = Position::Commit { stamp: [0; 10], rank: 0, id: ItemId([0; 16]) };
        let item = |value: Bytes| Item { position, value };
        let names: Result<Vec<_>, _> = batch.values().into_iter().map(|v| name(&item(v))).collect();
        assert_eq!(names, Ok(batch.names().collect()));
        assert!(name(&item(Bytes::from_static(b"else"))).is_err());
    }
}
