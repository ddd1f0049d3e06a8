//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::Multimap;
use crate::models::labels::{Family, Which, label};
use crate::shared::page_sizes;
use foundationdb_tuple::Subspace;
use proptest::{option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{real::key_room, specimen::Content};
use shaketable_layers::label::Label;
use shaketable_tx::{self as tx};

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Adds a value to the set of an index.
    Add(Which, Which),
    /// Removes a value from the set of an index.
    Remove(Which, Which),
    /// Clears the set of an index.
    RemoveAll(Which),
    /// Whether the set contains a value.
    IsElement(Which, Which),
    /// Reads up to this many values of the set of an index, after a value.
    Get(Which, Option<Which>, usize),
    /// Reads up to this many pairs of all sets, after a pair.
    All(Option<(Which, Which)>, usize),
    /// Adds copies to the multiset.
    AddCopies(Which, Which, u32),
    /// Removes copies from the multiset.
    RemoveCopies(Which, Which, u32),
    /// Clears the multiset of an index.
    RemoveAllCopies(Which),
    /// Counts the copies of a value.
    Count(Which, Which),
    /// Reads up to this many values of the multiset of an index, after a value.
    Counts(Which, Option<Which>, usize),
    /// Reads up to this many pairs of all multisets, after a pair.
    AllCounts(Option<(Which, Which)>, usize),
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// Whether the set contains the value.
    Is(bool),
    /// The values of a set.
    Values(Vec<Content>),
    /// The number of copies that exist, or remain.
    Copies(u64),
    /// The values of a multiset.
    Counts(Vec<(Content, u64)>),
    /// Indexes, with their values.
    Pairs(Vec<(Content, Content)>),
    /// Indexes, with their values and the numbers of copies.
    PairCounts(Vec<(Content, Content, u64)>),
}

/// A value that gives a key the maximum size, and one that gives it one byte more.
const EDGES: [Which; 2] = [(u8::MAX, 0), (u8::MAX, 1)];

/// Two values, used in all runs, of which the key of one begins with the key of the other.
const NESTED: [Which; 2] = [(0, 0), (0, 2)];

/// An index and a value, for a key below this subspace.
pub(super) fn pair(space: &Subspace, index: Which, value: Which) -> (Label, Label) {
    let index = label(index);
    match EDGES.iter().position(|edge| *edge == value) {
        Some(beyond) => {
            // A text takes two bytes in addition to its own.
            let room = if beyond > 0 { 0 } else { key_room() };
            let others = space.bytes().len() + index.packed().len() + 2;
            let bytes = tx::KEY_SIZE_LIMIT - others - room + beyond;
            let value = "e".repeat(bytes).as_str().into();
            (index, value)
        }
        None => (index, label(value)),
    }
}

pub(super) fn set_space() -> Subspace {
    Subspace::from("enroll")
}

pub(super) fn copies_space() -> Subspace {
    Subspace::from("stock")
}

pub(super) fn set_pair(index: Which, value: Which) -> (Label, Label) {
    pair(&set_space(), index, value)
}

pub(super) fn copies_pair(index: Which, value: Which) -> (Label, Label) {
    pair(&copies_space(), index, value)
}

pub(super) fn content(label: &Label) -> Content {
    Content::from(label.packed())
}

impl Multimap {
    /// Draws one call.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let index = || self.indexes.one();
        let edge = (0..2usize).prop_map(|beyond| EDGES[beyond]);
        let value = prop_oneof![30 => self.values.one(), 4 => select(&NESTED[..]), 1 => edge].boxed();
        let value = || value.clone();
        let pair = || (index(), value());
        let many = [127, 128, 255, 256, 65_535, 65_536, i32::MAX as u32, u32::MAX];
        let copies = || prop_oneof![12 => 0u32..4, 1 => select(many.to_vec())];
        let most = || prop_oneof![1 => Just(0), 4 => page_sizes(), 3 => Just(usize::MAX)];
        prop_oneof![
            6 => pair().prop_map(|(i, v)| Op::Add(i, v)),
            3 => pair().prop_map(|(i, v)| Op::Remove(i, v)),
            1 => index().prop_map(Op::RemoveAll),
            2 => pair().prop_map(|(i, v)| Op::IsElement(i, v)),
            3 => (index(), option::of(value()), most()).prop_map(|(i, v, most)| Op::Get(i, v, most)),
            1 => (option::of(pair()), most()).prop_map(|(after, most)| Op::All(after, most)),
            6 => (pair(), copies()).prop_map(|((i, v), n)| Op::AddCopies(i, v, n)),
            5 => (pair(), copies()).prop_map(|((i, v), n)| Op::RemoveCopies(i, v, n)),
            1 => index().prop_map(Op::RemoveAllCopies),
            2 => pair().prop_map(|(i, v)| Op::Count(i, v)),
            3 => (index(), option::of(value()), most()).prop_map(|(i, v, most)| Op::Counts(i, v, most)),
            1 => (option::of(pair()), most()).prop_map(|(after, most)| Op::AllCounts(after, most)),
            1 => self.values.one().prop_map(|v| Op::Add(Family::oversize(), v)),
            1 => index().prop_map(|i| Op::AddCopies(i, Family::oversize(), 1)),
        ]
        .boxed()
    }
}
