//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::Queue;
pub use crate::catalogue::shared::ItemName as Name;
use crate::catalogue::shared::{self, item_name};
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{specimen::Content, strategies};
use shaketable_layers::priority_queue::{self as layer, End};

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Pushes items.
    Push(Batch),
    /// Removes the first item at an end; the second time by the function that has the end in its name.
    Pop(End, bool),
    /// Looks at the first item at an end; at snapshot if asked to.
    Peek(End, bool),
    /// Whether there is no item; at snapshot if asked to.
    IsEmpty(bool),
    /// Counts the items; at snapshot if asked to.
    Len(bool),
    /// Gives the item that stands at `nth`, as a snapshot shows them, another priority; with `stale` it
    /// then does the same once more, with the place where the item no longer is.
    Change {
        /// Which item, counted from the lowest priority, modulo their number.
        nth: usize,
        /// The new priority.
        to: i64,
        /// Whether to use the old place again.
        stale: bool,
    },
    /// Lists the items; at snapshot if asked to.
    Items(bool),
    /// Lists them a few at a time.
    Pages(bool),
}

/// What is pushed by one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    pub(super) client: u16,
    pub(super) number: u16,
    pub(super) items: u16,
    pub(super) priority: i64,
    pub(super) length: usize,
}

impl Batch {
    pub(super) fn names(&self) -> impl Iterator<Item = Name> + use<> {
        let (client, number) = (self.client, self.number);
        (0..self.items).map(move |part| (client, number, part))
    }

    /// What every item of the call holds.
    pub(super) fn value(&self) -> Vec<u8> {
        vec![self.number as u8; self.length]
    }
}

/// What a call answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Pushed, at these counts.
    Pushed(Vec<i64>),
    /// The first item, or none.
    First(Option<Item>),
    /// The item has this priority now and had another before, or there was no item.
    Changed(Option<(Name, i64)>),
    /// Whether there is none.
    IsEmpty(bool),
    /// How many there are.
    Len(usize),
    /// So many items, and a digest of them in their order.
    Items(usize, u64),
}

/// An item, as answers tell it: priority, name, value.
pub type Item = (i64, Name, Content);

/// The priorities that are drawn: around zero, where another byte begins, and the extremes.
const PRIORITIES: [i64; 12] = [0, -1, 1, -300, 256, i64::MIN, i64::MAX, 255, -255, -256, 65_536, -65_536];

/// The longest value that a queue takes.
pub(super) const LONGEST: usize = 99_900;

pub(super) fn told(item: &layer::Item) -> Item {
    (item.place.priority, item_name(item.place.id), Content::from(&item.value))
}

/// The digest of items in their order.
pub(super) fn digest(items: impl Iterator<Item = Item>) -> Answer {
    let (count, hash) = shared::digest(items);
    Answer::Items(count, hash)
}

impl Queue {
    /// One call, drawn.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let priority = || select(self.priorities());
        let end = || select(vec![End::Min, End::Max]);
        let batch = |items: std::ops::Range<u16>, length: BoxedStrategy<usize>| {
            (priority(), items, length).prop_map(|(priority, items, length)| {
                Op::Push(Batch { client: 0, number: 0, items, priority, length })
            })
        };
        let usual = || (0..=self.usual).boxed();
        let change = (any::<u16>(), priority(), 0..8u8);
        let change = change.prop_map(|(nth, to, odd)| Op::Change { nth: nth.into(), to, stale: odd == 0 });
        let [push, pop, move_, look] = self.mix;
        prop_oneof![
            20 * push => batch(1..2, strategies::lengths(self.usual, LONGEST)),
            20 * push => batch(2..4, usual()),
            1 => batch(30..90, usual()),
            60 * pop => (end(), any::<bool>()).prop_map(|(end, named)| Op::Pop(end, named)),
            30 * move_ => change,
            20 * look => (end(), any::<bool>()).prop_map(|(end, snapshot)| Op::Peek(end, snapshot)),
            4 * look => any::<bool>().prop_map(Op::IsEmpty),
            8 * look => any::<bool>().prop_map(Op::Len),
            8 * look => any::<bool>().prop_map(Op::Items),
            4 * look => any::<bool>().prop_map(Op::Pages),
        ]
        .boxed()
    }

    pub(super) fn priorities(&self) -> Vec<i64> {
        let (from, count) = self.priorities;
        PRIORITIES.into_iter().cycle().skip(from).take(count).collect()
    }
}
