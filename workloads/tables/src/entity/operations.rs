//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::{Entity, model::SIDES, space};
use crate::shared::{edge_ids, page_sizes};
use bytes::Bytes;
use proptest::{option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{real::key_room, specimen::Content, strategies};
use shaketable_layers::{
    entity::{Cardinality, Direction},
    id::Id,
};
use shaketable_tx::{self as tx};
use std::collections::BTreeSet;

/// One call. A value is a byte and the number of its repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Sets an attribute.
    AddAttribute(Id, String, u8, usize),
    /// Removes an attribute.
    RemoveAttribute(Id, String),
    /// Relates two entities.
    Relate(String, Id, Id),
    /// Ends the relationship of two entities.
    Part(String, Id, Id),
    /// Deletes an entity.
    Delete(Id),
    /// Reads an attribute.
    Attribute(Id, String),
    /// Reads all attributes.
    Attributes(Id),
    /// Reads all pairs of a relationship.
    Pairs(String),
    /// Reads the entities to which an entity is related.
    Related(String, Direction, Id),
    /// Reads up to this many pairs of a relationship, from the first one on or after a pair.
    PairsPage(String, Option<(Id, Id)>, usize),
    /// Reads up to this many of the entities to which an entity is related, from the first one on or after an
    /// entity.
    RelatedPage(String, Direction, Id, Option<Id>, usize),
    /// Reads whether two entities are related.
    IsRelated(String, Id, Id),
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// The number of pairs that were deleted.
    Deleted(u64),
    /// An attribute.
    Value(Option<Content>),
    /// Attributes, in the order of their names.
    Attributes(Vec<(String, Content)>),
    /// Pairs, in order.
    Pairs(Vec<(Id, Id)>),
    /// Entities.
    Entities(BTreeSet<Id>),
    /// Entities, in order.
    Page(Vec<Id>),
    /// Whether the condition holds.
    Is(bool),
}

/// The relationships, at least one of each cardinality.
pub(super) const RELATIONSHIPS: [(&str, Cardinality); 6] = [
    ("belongs_to", Cardinality::ManyToMany),
    ("married", Cardinality::OneToOne),
    ("owns", Cardinality::OneToMany),
    ("works_for", Cardinality::ManyToOne),
    ("own", Cardinality::ManyToMany),
    ("", Cardinality::OneToOne),
];

/// A relationship that is not declared.
const UNDECLARED: &str = "knows";

/// The attributes that are drawn.
const ATTRIBUTES: [&str; 7] = ["region", "", "a\0", "a", "regio", "a\u{10ffff}", "\u{10ffff}"];

/// The entities that are drawn.
pub(super) fn entities() -> Vec<Id> {
    vec![
        "a".into(),
        Bytes::from_static(b"a").into(),
        "belongs_to".into(),
        7.into(),
        "".into(),
        i64::MIN.into(),
        "region\0".into(),
        "a\u{10ffff}".into(),
        long(space().pack(&("attribute", "", "region")).len()),
        long(space().pack(&("relationship", "married", "", "a")).len()),
        Bytes::from_static(b"\xff").into(),
        "a\0".into(),
    ]
}

/// An entity whose name is as long as possible for a key with this many other bytes: its attribute `region`,
/// or its marriage to `"a"`. Longer keys are refused.
fn long(others: usize) -> Id {
    Id::from("x".repeat(tx::KEY_SIZE_LIMIT - others - key_room()))
}

impl Entity {
    /// Draws one call.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let entities = [&entities()[..self.entities], &self.edges].concat();
        let id = move || strategies::mostly(select(entities.clone()), edge_ids());
        let names: Vec<&str> = RELATIONSHIPS.iter().map(|(name, _)| *name).collect();
        let name = || prop_oneof![12 => select(names.clone()), 1 => Just(UNDECLARED)].prop_map(String::from);
        let attribute = || {
            let attribute = strategies::mostly(select(&ATTRIBUTES), select(&strategies::BEYOND_ASCII[..]));
            attribute.prop_map(String::from)
        };
        let length = prop_oneof![12 => strategies::value_lengths(40), 1 => Just(2_000)];
        let direction = || select(SIDES.to_vec());
        let limit = || prop_oneof![2 => Just(0), 8 => page_sizes()];
        let related = (name(), direction(), id(), option::of(id()), limit());
        prop_oneof![
            4 => (id(), attribute(), any::<u8>(), length).prop_map(|(i, a, b, n)| Op::AddAttribute(i, a, b, n)),
            2 => (id(), attribute()).prop_map(|(i, a)| Op::RemoveAttribute(i, a)),
            10 => (name(), id(), id()).prop_map(|(r, p, f)| Op::Relate(r, p, f)),
            4 => (name(), id(), id()).prop_map(|(r, p, f)| Op::Part(r, p, f)),
            2 => id().prop_map(Op::Delete),
            2 => (id(), attribute()).prop_map(|(i, a)| Op::Attribute(i, a)),
            1 => id().prop_map(Op::Attributes),
            2 => name().prop_map(Op::Pairs),
            3 => (name(), direction(), id()).prop_map(|(r, d, i)| Op::Related(r, d, i)),
            2 => (name(), option::of((id(), id())), limit()).prop_map(|(r, p, n)| Op::PairsPage(r, p, n)),
            2 => related.prop_map(|(r, d, i, after, n)| Op::RelatedPage(r, d, i, after, n)),
            1 => (name(), id(), id()).prop_map(|(r, p, f)| Op::IsRelated(r, p, f)),
        ]
        .boxed()
    }
}
