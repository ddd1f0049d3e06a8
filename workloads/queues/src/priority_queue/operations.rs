//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::Queue;
pub use crate::shared::ItemName as Name;
use crate::shared::{self, item_name, page_sizes};
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{specimen::Content, strategies};
use shaketable_layers::priority_queue::{self as layer, End};

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Pushes items.
    Push(Batch),
    /// Removes the first item at an end, with the function that has the end in its name if true.
    Pop(End, bool),
    /// Reads the first item at an end, at snapshot if true.
    Peek(End, bool),
    /// Reads whether there is no item, at snapshot if true.
    IsEmpty(bool),
    /// Counts the items, at snapshot if true.
    Len(bool),
    /// Changes the priority of the item at `nth`, as a snapshot shows the items. With `stale`, it then does
    /// the same again with the item's previous place.
    Change {
        /// Which item, counted from the lowest priority, modulo their number.
        nth: usize,
        /// The new priority.
        to: i64,
        /// Whether to use the previous place again.
        stale: bool,
    },
    /// Lists the items, at snapshot if true.
    Items(bool),
    /// Lists the items page by page, at snapshot if true.
    Pages(bool, usize),
    /// Pushes to a queue whose prefix is so long that a key has the maximum length, or this many bytes more,
    /// and pops what it has pushed.
    Deep(usize),
}

/// The items that one call pushes.
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

    /// The value of every item of the call.
    pub(super) fn value(&self) -> Vec<u8> {
        vec![self.number as u8; self.length]
    }
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Pushed, with these counts.
    Pushed(Vec<i64>),
    /// The first item, or none.
    First(Option<Item>),
    /// The item's name and its previous priority, unless there was no item.
    Changed(Option<(Name, i64)>),
    /// Whether there is no item.
    IsEmpty(bool),
    /// The number of items.
    Len(usize),
    /// The number of items, and a digest of them in their order.
    Items(usize, u64),
}

/// An item as answers contain it: priority, name, value.
pub type Item = (i64, Name, Content);

/// The priorities that are drawn: around zero, where another byte is needed, and the extremes.
const PRIORITIES: [i64; 12] = [0, -1, 1, -300, 256, i64::MIN, i64::MAX, 255, -255, -256, 65_536, -65_536];

/// The longest value that a queue takes.
pub(super) const LONGEST: usize = 99_900;

pub(super) fn told(item: &layer::Item) -> Item {
    (item.place.priority, item_name(item.place.id), Content::from(&item.value))
}

/// The answer that lists these items.
pub(super) fn digest(items: impl Iterator<Item = Item>) -> Answer {
    let (count, hash) = shared::digest(items);
    Answer::Items(count, hash)
}

impl Queue {
    /// Draws one call.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let priority = || strategies::mostly(select(self.priorities()), strategies::integers());
        let end = || select(vec![End::Min, End::Max]);
        let batch = |items: std::ops::Range<u16>, length: BoxedStrategy<usize>| {
            (priority(), items, length).prop_map(|(priority, items, length)| {
                Op::Push(Batch { client: 0, number: 0, items, priority, length })
            })
        };
        let usual = || (0..=self.usual).boxed();
        let change = (any::<u16>(), priority(), 0..8u8);
        let change = change.prop_map(|(nth, to, odd)| Op::Change { nth: nth.into(), to, stale: odd == 0 });
        let [push, pop, move_, read] = self.mix;
        prop_oneof![
            20 * push => batch(1..2, strategies::lengths(self.usual, LONGEST)),
            20 * push => batch(2..4, usual()),
            1 => batch(30..90, usual()),
            60 * pop => (end(), any::<bool>()).prop_map(|(end, named)| Op::Pop(end, named)),
            30 * move_ => change,
            20 * read => (end(), any::<bool>()).prop_map(|(end, snapshot)| Op::Peek(end, snapshot)),
            4 * read => any::<bool>().prop_map(Op::IsEmpty),
            8 * read => any::<bool>().prop_map(Op::Len),
            8 * read => any::<bool>().prop_map(Op::Items),
            4 * read => (any::<bool>(), page_sizes()).prop_map(|(snapshot, most)| Op::Pages(snapshot, most)),
            2 => (0..2usize).prop_map(Op::Deep),
        ]
        .boxed()
    }

    pub(super) fn priorities(&self) -> Vec<i64> {
        let (from, count) = self.priorities;
        PRIORITIES.into_iter().cycle().skip(from).take(count).collect()
    }
}
