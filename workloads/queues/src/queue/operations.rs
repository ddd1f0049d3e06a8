//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::{Queue, model::UNSTAMPED};
pub use crate::shared::ItemName as Name;
use crate::shared::{self, item_id, item_name, page_sizes};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{specimen::Content, strategies};
use shaketable_layers::queue::{self as layer, ItemId, Position};

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Enqueues items.
    Enqueue(Batch),
    /// Dequeues an item.
    Dequeue,
    /// Performs a look, at snapshot if true.
    Look(Look, bool),
    /// Enqueues into a queue whose prefix leaves exactly the room that its keys may need, or this many bytes
    /// less.
    Deep(usize),
}

impl Op {
    /// The same look at snapshot; `None` for a write, and for a look that is at snapshot already.
    pub(super) fn at_snapshot(&self) -> Option<Op> {
        Some(match self.clone() {
            Op::Look(look, false) => Op::Look(look, true),
            _ => return None,
        })
    }
}

/// A look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Look {
    /// The first item.
    First,
    /// Whether there is no item.
    IsEmpty,
    /// The number of items.
    Len,
    /// All items.
    Items,
    /// All items, by pages of this many.
    Pages(usize),
}

/// The items that a call enqueues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    pub(super) client: u16,
    pub(super) number: u16,
    pub(super) items: u16,
    pub(super) length: usize,
}

impl Batch {
    /// The names and values of the items. An item's bytes repeat those of its name.
    pub(super) fn items(&self) -> impl Iterator<Item = (Name, Vec<u8>)> + use<> {
        let Batch { client, number, items, length } = *self;
        (0..items).map(move |part| {
            let bytes = [client as u8, number as u8, part as u8];
            let mut value = bytes.repeat(length.div_ceil(bytes.len()));
            value.truncate(length);
            ((client, number, part), value)
        })
    }
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The positions of the items that were enqueued.
    Enqueued(Vec<Spot>),
    /// The first item, or none.
    First(Option<Item>),
    /// Whether there is no item.
    IsEmpty(bool),
    /// The number of items.
    Len(usize),
    /// The number of items, and a digest of them in their order.
    Items(usize, u64),
}

/// A position as answers contain it.
#[derive(Clone, Copy, Debug, Eq, Serialize, Deserialize)]
pub enum Spot {
    /// In index order.
    Index(i64),
    /// In commit order. The transaction that appended the item does not know the stamp.
    Commit(Option<[u8; 10]>),
}

/// An unknown stamp equals every stamp.
impl PartialEq for Spot {
    fn eq(&self, other: &Spot) -> bool {
        match (self, other) {
            (Spot::Index(a), Spot::Index(b)) => a == b,
            (Spot::Commit(a), Spot::Commit(b)) => a.is_none() || b.is_none() || a == b,
            _ => false,
        }
    }
}

/// An item as answers contain it: its position, its name unless its id was drawn, its value.
pub type Item = (Spot, Option<Name>, Content);

/// The longest value that a queue takes.
pub(super) const LONGEST: usize = 99_900;

/// The name in an id, unless the id was drawn.
pub(super) fn name(drawn: ItemId) -> Option<Name> {
    let name = item_name(drawn);
    (item_id(name).0[..15] == drawn.0[..15]).then_some(name)
}

/// A position, as answers contain it.
pub(super) fn spot(position: &Position) -> Spot {
    match position {
        Position::Index { index, .. } => Spot::Index(*index),
        Position::Commit { stamp, .. } => Spot::Commit((*stamp != UNSTAMPED).then_some(*stamp)),
    }
}

/// An item, as answers contain it.
pub(super) fn told(item: &layer::Item) -> Item {
    let (Position::Index { id, .. } | Position::Commit { id, .. }) = &item.position;
    (spot(&item.position), name(*id), Content::from(&item.value))
}

/// The answer that lists these items.
pub(super) fn digest(items: impl Iterator<Item = Item>) -> Answer {
    let (count, hash) = shared::digest(items);
    Answer::Items(count, hash)
}

impl Queue {
    /// Draws one call.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let batch = |items: std::ops::Range<u16>, length: BoxedStrategy<usize>| {
            let batch = |(items, length)| Op::Enqueue(Batch { client: 0, number: 0, items, length });
            (items, length).prop_map(batch)
        };
        let look = prop_oneof![
            2 => Just(Look::First),
            1 => Just(Look::IsEmpty),
            2 => Just(Look::Len),
            2 => Just(Look::Items),
            1 => page_sizes().prop_map(Look::Pages),
        ];
        let [put, take, see] = self.mix;
        prop_oneof![
            20 * put => batch(1..2, strategies::lengths(self.usual, LONGEST)),
            5 * put => batch(2..5, (0..=self.usual).boxed()),
            1 => batch(30..90, (0..=self.usual).boxed()),
            24 * take => Just(Op::Dequeue),
            12 * see => (look, any::<bool>()).prop_map(|(look, snapshot)| Op::Look(look, snapshot)),
            1 => (0..2usize).prop_map(Op::Deep),
        ]
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::drawn;
    use shaketable::specimen::Mounted;
    use std::collections::BTreeSet;

    #[test]
    fn plans_have_both_orders_and_every_kind_of_call() {
        let mut seen = BTreeSet::new();
        for seed in 0..100 {
            let (_, operations) = drawn::<Mounted<Queue>>(seed);
            for op in operations.iter().flatten().flatten() {
                seen.insert(match op {
                    Op::Enqueue(batch) if batch.length > LONGEST => "oversized".to_owned(),
                    Op::Enqueue(batch) if batch.length == LONGEST => "longest".to_owned(),
                    Op::Enqueue(batch) => format!("{} items", batch.items.min(2)),
                    Op::Look(Look::Pages(_), snapshot) => format!("Pages {snapshot}"),
                    Op::Look(look, snapshot) => format!("{look:?} {snapshot}"),
                    other => format!("{other:?}"),
                });
            }
        }
        assert_eq!(seen.len(), 4 + 10 + 3, "{seen:?}");
    }

    #[test]
    fn ids_contain_their_names_unless_they_were_drawn() {
        for item in [(0, 0, 0), (8, 300, 3), (u16::MAX, 1, 0)] {
            assert_eq!(name(item_id(item)), Some(item));
        }
        assert_eq!(name(ItemId([1; 16])), None);
    }

    #[test]
    fn a_stamp_is_learned_from_the_commit() {
        let (known, other) = (Spot::Commit(Some([1; 10])), Spot::Commit(Some([2; 10])));
        assert!(Spot::Commit(None) == known && known != other && known != Spot::Index(1));
    }
}
