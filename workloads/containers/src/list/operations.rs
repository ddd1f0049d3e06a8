//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::{List, space};
use crate::shared;
use bytes::Bytes;
use proptest::{option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{real::key_room, specimen::Content, strategies};
use shaketable_layers::{id::Id, list};
use shaketable_tx::{self as tx};

/// One call. A value is a byte and the number of its repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Inserts a node before all others.
    PushFront(Id, u8, usize),
    /// Inserts a node (the second) after another one.
    InsertAfter(Id, Id, u8, usize),
    /// Removes the first node.
    RemoveFirst,
    /// Removes the node after this one.
    RemoveNext(Id),
    /// Removes the node after this one if it is the expected one.
    RemoveNextIf(Id, Option<Id>),
    /// Replaces a value.
    SetValue(Id, u8, usize),
    /// Sets an attribute.
    SetAttribute(Id, String, u8, usize),
    /// Removes an attribute.
    ClearAttribute(Id, String),
    /// Reads the first node.
    First,
    /// Reads the next node.
    Next(Id),
    /// Reads whether a node exists.
    Contains(Id),
    /// Reads a value.
    Value(Id),
    /// Reads an attribute.
    Attribute(Id, String),
    /// Reads all attributes.
    Attributes(Id),
    /// Walks up to this many nodes, from the start or after a node.
    Walk(Option<Id>, usize),
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// The node that was removed, or that was read.
    Node(Option<Id>),
    /// A value or an attribute.
    Value(Option<Content>),
    /// Attributes, in the order of their names.
    Attributes(Vec<(String, Content)>),
    /// Whether the condition holds.
    Is(bool),
    /// The nodes on the way.
    Walk(Vec<(Id, Content)>),
    /// The number of nodes on a long way, and a hash of them.
    LongWalk(usize, u64),
}

/// The answer with the nodes on the way, which fits into a session's slot.
pub(super) fn walked(nodes: impl Iterator<Item = (Id, Content)>) -> Answer {
    let nodes: Vec<_> = nodes.collect();
    match nodes.len() {
        ..=20 => Answer::Walk(nodes),
        _ => {
            let (count, hash) = shared::digest(nodes.iter());
            Answer::LongWalk(count, hash)
        }
    }
}

/// The ids that are drawn.
pub(super) fn ids() -> Vec<Id> {
    let bytes = |bytes: &'static [u8]| Id::Bytes(Bytes::from_static(bytes));
    vec![
        "a".into(),
        bytes(b"a"),
        1.into(),
        "".into(),
        "a\0b".into(),
        "a\u{10ffff}".into(),
        i64::MIN.into(),
        bytes(b""),
        bytes(b"\0\xff"),
        0.into(),
        "next".into(),
        "ß".into(),
        "y".repeat(256).as_str().into(),
        long(0),
        long(1),
    ]
}

/// How many of [`ids`] may be in the list at first, which are those within the limits.
pub(super) const SHORT: usize = 13;

/// An id so long that the key of its node's link has the maximum size, or this many bytes more.
fn long(more: usize) -> Id {
    let others = space().pack(&("node", "", list::NEXT)).len();
    let room = if more > 0 { 0 } else { key_room() };
    Id::from("x".repeat(tx::KEY_SIZE_LIMIT - others - room + more))
}

/// The names of attributes that are drawn; every list refuses one of them.
const NAMES: [&str; 7] = ["", "color", "n\0", list::NEXT, "nex", "next\0", "\u{10ffff}"];

impl List {
    /// Draws one call.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let ids = ids()[..self.ids].to_vec();
        // An id that every list refuses ends a transaction, so it is rare.
        let usual = [&ids[..self.ids.min(SHORT)], &self.edges].concat();
        let id = move || prop_oneof![12 => select(usual.clone()), 1 => select(ids.clone())];
        let name = || {
            let name = strategies::mostly(select(&NAMES), select(&strategies::BEYOND_ASCII[..]));
            name.prop_map(String::from)
        };
        let length = || prop_oneof![12 => strategies::value_lengths(40), 1 => Just(2_000)];
        let byte = any::<u8>;
        let long = strategies::counts(list::MAX_WALK);
        let limit = match self.crowd {
            0 => prop_oneof![18 => 0..14usize, 1 => Just(usize::MAX), 1 => long].boxed(),
            _ => prop_oneof![1 => 0..14usize, 1 => Just(usize::MAX), 2 => long].boxed(),
        };
        // A long list stays about as long as a walk may be: what is removed of the crowd does not come back.
        let removals = if self.crowd == 0 { [2, 5, 4] } else { [1, 1, 1] };
        let first = self.first_nodes().first().cloned().unwrap_or_else(|| 0.into());
        let from = prop_oneof![1 => Just(first), 2 => id()];
        prop_oneof![
            4 => (id(), byte(), length()).prop_map(|(i, b, n)| Op::PushFront(i, b, n)),
            8 => (id(), id(), byte(), length()).prop_map(|(a, i, b, n)| Op::InsertAfter(a, i, b, n)),
            removals[0] => Just(Op::RemoveFirst),
            removals[1] => id().prop_map(Op::RemoveNext),
            removals[2] => (id(), option::weighted(0.9, id())).prop_map(|(i, next)| Op::RemoveNextIf(i, next)),
            2 => (id(), byte(), length()).prop_map(|(i, b, n)| Op::SetValue(i, b, n)),
            4 => (id(), name(), byte(), length()).prop_map(|(i, a, b, n)| Op::SetAttribute(i, a, b, n)),
            1 => (id(), name()).prop_map(|(i, a)| Op::ClearAttribute(i, a)),
            1 => Just(Op::First),
            1 => id().prop_map(Op::Next),
            1 => id().prop_map(Op::Contains),
            1 => id().prop_map(Op::Value),
            1 => (id(), name()).prop_map(|(i, a)| Op::Attribute(i, a)),
            2 => id().prop_map(Op::Attributes),
            4 => (option::weighted(0.4, from), limit).prop_map(|(from, n)| Op::Walk(from, n)),
        ]
        .boxed()
    }
}
