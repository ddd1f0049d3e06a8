//! The operations of the workload and their answers as plain data, and how they are drawn.

use super::Staged;
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

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Enqueues these items in one transaction.
    Enqueue(Batch),
    /// Dequeues an item.
    Dequeue,
    /// Dequeues an item, or gives up after this many tenths of a millisecond.
    Within(u16),
    /// Dequeues an item, unless it still waits after this many polls: then the future is dropped.
    Cut(u8),
    /// Requests an item and does not wait: gives the request up.
    Leave,
    /// Requests an item and stops.
    Vanish,
    /// Registers a request without a record, and gives it up if it is known to have committed.
    Enlist,
    /// Registers a request without a record. If that is known to have committed, performs these calls with it
    /// in one transaction, and then stops.
    Deal(Vec<Deal>),
    /// Brings back what was not collected.
    Reclaim,
    /// Reads the first item.
    Peek,
    /// Counts the items.
    Count,
    /// Reads everything, row by row.
    Survey,
    /// Does several things in one transaction.
    Together(Vec<Part>),
    /// Tries to enqueue a value that exceeds the limit by this many bytes.
    Oversized(u16),
    /// Enqueues into a queue whose prefix is so long that a key has the maximum length, or this many bytes
    /// more.
    Deep(usize),
}

impl Op {
    /// Whether it continues a dequeue of its session that was dropped.
    pub(super) fn dequeues(&self) -> bool {
        matches!(self, Op::Dequeue | Op::Within(_) | Op::Cut(_) | Op::Leave | Op::Vanish)
    }
}

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
pub enum Deal {
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
pub enum Dealt {
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
    Dealt(Vec<Dealt>),
    /// Refused, with this message.
    Refused(String),
}

/// The items that an operation enqueues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    client: u16,
    number: u16,
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

/// The time limit of an [`Op::Within`].
pub(super) fn patience(units: u16) -> Duration {
    Duration::from_micros(100 * u64::from(units))
}

impl Staged {
    /// Draws the operations of a client.
    pub(super) fn drawn(&self, client: usize) -> BoxedStrategy<Vec<Op>> {
        let batch = |items: Range<u16>| {
            let padding = 0..=self.padding;
            (items, padding).prop_map(|(items, padding)| Batch { client: 0, number: 0, items, padding })
        };
        let [put, take, walk, back, read, both] = self.mix;
        let (largest, full) = if self.crowded { (15u16, 6) } else { (3, 1) };
        let part = prop_oneof![
            3 => batch(1..3).prop_map(Part::Put),
            2 => Just(Part::Take),
            2 => Just(Part::Peek),
            1 => Just(Part::Count),
            1 => Just(Part::Parked),
        ];
        let deal = prop_oneof![
            4 => Just(Deal::Turn),
            2 => Just(Deal::Collect),
            1 => Just(Deal::Leave),
            3 => (0..4usize).prop_map(Deal::Serve),
            1 => Just(Deal::TakeBack),
            1 => batch(1..3).prop_map(Deal::Put),
        ];
        let op = prop_oneof![
            4 * put => batch(1..2).prop_map(Op::Enqueue),
            put => batch(2..5).prop_map(Op::Enqueue),
            full => (1..largest).prop_map(|items| Op::Enqueue(Batch { items, ..FULL_BATCH })),
            4 * take => Just(Op::Dequeue),
            2 * take => select(&[0, 1, 10, 50, 100, 300, 1_000, 5_000][..]).prop_map(Op::Within),
            take => (1u8..60).prop_map(Op::Cut),
            walk => Just(Op::Leave),
            walk => Just(Op::Vanish),
            walk => Just(Op::Enlist),
            back => Just(Op::Reclaim),
            read => Just(Op::Peek),
            read => Just(Op::Count),
            read => Just(Op::Survey),
            2 * both => vec(part, 1..6).prop_map(Op::Together),
            both => vec(deal, 1..7).prop_map(Op::Deal),
            1 => prop_oneof![Just(1u16), 1..500u16].prop_map(Op::Oversized),
            1 => (0..2usize).prop_map(Op::Deep),
        ];
        let op = match self.crowded {
            true => prop_oneof![
                20 => op,
                1 => strategies::mostly(1..CROWD, select(&[99, 100, 101][..]))
                    .prop_map(|requests| Op::Together(vec![Part::Crowd(requests)])),
            ]
            .boxed(),
            false => op.boxed(),
        };
        let named = move |mut ops: Vec<Op>| {
            let batches = ops.iter_mut().flat_map(|op| match op {
                Op::Enqueue(batch) => vec![batch],
                Op::Deal(deals) => {
                    let puts = deals.iter_mut().filter_map(|deal| match deal {
                        Deal::Put(batch) => Some(batch),
                        _ => None,
                    });
                    puts.collect()
                }
                Op::Together(parts) => {
                    let puts = parts.iter_mut().filter_map(|part| match part {
                        Part::Put(batch) => Some(batch),
                        _ => None,
                    });
                    puts.collect()
                }
                _ => Vec::new(),
            });
            for (number, batch) in (0..).zip(batches) {
                (batch.client, batch.number) = (client as u16, number);
            }
            ops
        };
        vec(op, self.operations.clone()).prop_map(named).boxed()
    }
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
