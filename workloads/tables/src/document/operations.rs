//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::{Document, indexed_path, root};
use crate::models::json::{self, Item, Json, Shown};
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shaketable::{real::key_room, strategies};
use shaketable_layers::{
    document::{DOC_ID, Id, MAX_ID_BYTES},
    hierarchy::{self, Step},
};
use shaketable_tx::{self as tx};

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Inserts a document.
    Insert(Id, Item),
    /// Inserts a document under the id that it contains.
    InsertOwn(Json),
    /// Inserts a document under an id that the layer draws, reads it, and removes it.
    InsertDrawn(Json),
    /// Replaces a document.
    Replace(Id, Item),
    /// Merges an item into the value at a path.
    Merge(Id, Vec<Step>, Item),
    /// Replaces the value at a path.
    Patch(Id, Vec<Step>, Item),
    /// Removes the value at a path.
    Remove(Id, Vec<Step>),
    /// Reads the value at a path.
    Get(Id, Vec<Step>),
    /// Finds the documents with this leaf at a path.
    Find(Vec<Step>, Json),
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Written.
    Written,
    /// Written, under this id.
    Inserted(Id),
    /// Whether there was a value to remove.
    Removed(bool),
    /// The value found.
    Read(Option<Shown>),
    /// The documents found.
    Found(Vec<Id>),
}

impl Document {
    /// Draws one call.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let id = || {
            let usual = [Id::from(1), "1".into(), "a".into(), "a\0b".into()];
            let usual = select([&usual[..], &self.edges].concat());
            let number = select(&strategies::UNSIGNED[..]).prop_map(Id::from);
            let text = select(&strategies::BEYOND_ASCII[..]).prop_map(Id::from);
            let long = select(vec![255, 256, 257, MAX_ID_BYTES - 1, MAX_ID_BYTES]);
            let long = long.prop_map(|bytes| Id::Text("x".repeat(bytes)));
            strategies::mostly(usual, prop_oneof![6 => number, 1 => text, 1 => long])
        };
        let path = || json::path(self.names, self.longest);
        let names = self.names;
        let own =
            (json::value(names), select(vec![1.into(), Value::from("1"), "a".into(), Value::from(1.0)]));
        let piece = self.piece();
        let own = own.prop_map(|(value, id)| {
            let mut members = value.as_object().cloned().unwrap_or_default();
            members.insert(DOC_ID.to_owned(), id);
            Value::from(members)
        });
        let edges = [piece - 1, piece, piece + 1, 2 * piece - 1, 2 * piece, 2 * piece + 1];
        // Each piece repeats its key: more of them under a long id would fit into no transaction, which the
        // model does not count.
        let bytes = || {
            let bytes = [vec![0, 4, 5, 210, 999, 1_000, 1_001, 3_000, 20_000], edges.to_vec()].concat();
            select(bytes).prop_map(move |bytes| bytes.min(500 * piece))
        };
        let text = prop_oneof![3 => bytes().prop_map(Item::Text), 1 => bytes().prop_map(Item::Wide)];
        let value = |value: Value| Item::Value(Json(value));
        let item = prop_oneof![
            20 => json::value(names).prop_map(value),
            6 => json::leaf().prop_map(value),
            3 => text.clone(),
            2 => own.prop_map(value),
        ];
        let long_id = Id::Text("x".repeat(MAX_ID_BYTES + 1));
        let far = vec![Step::from("x".repeat(tx::KEY_SIZE_LIMIT).as_str())];
        // The keys of a text, or of its pieces, have up to so many bytes more than the path.
        let room = tx::KEY_SIZE_LIMIT - key_room() - json::key(&root(&1.into()), &["".into()]).len();
        let edge = (0..6usize, select(vec![1, piece + 1, 2 * piece])).prop_map(move |(less, bytes)| {
            let path = vec![Step::from("x".repeat(room - less).as_str())];
            Op::Patch(1.into(), path, Item::Text(bytes))
        });
        let step = select(vec![Step::from("a"), Step::Index(0)]);
        let mut kinds = vec![
            (60, (id(), item.clone()).prop_map(|(id, item)| Op::Insert(id, item)).boxed()),
            (20, json::value(names).prop_map(|doc| Op::InsertOwn(Json(doc))).boxed()),
            (5, json::value(names).prop_map(|doc| Op::InsertDrawn(Json(doc))).boxed()),
            (40, (id(), item.clone()).prop_map(|(id, item)| Op::Replace(id, item)).boxed()),
            (60, (id(), path(), item.clone()).prop_map(|(id, path, item)| Op::Merge(id, path, item)).boxed()),
            (80, (id(), path(), item).prop_map(|(id, path, item)| Op::Patch(id, path, item)).boxed()),
            (70, (id(), path()).prop_map(|(id, path)| Op::Remove(id, path)).boxed()),
            (80, (id(), path()).prop_map(|(id, path)| Op::Get(id, path)).boxed()),
            (
                4,
                json::leaf()
                    .prop_map(|id| Op::Patch(1.into(), vec![DOC_ID.into()], Item::Value(Json(id))))
                    .boxed(),
            ),
            (
                8,
                (id(), step, json::leaf())
                    .prop_map(|(id, step, leaf)| {
                        Op::Patch(id, vec![DOC_ID.into(), step], Item::Value(Json(leaf)))
                    })
                    .boxed(),
            ),
            (
                2,
                (id(), path(), hierarchy::MAX_DEPTH - 2..hierarchy::MAX_DEPTH + 2)
                    .prop_map(|(id, path, depth)| Op::Patch(id, path, Item::Nested(depth)))
                    .boxed(),
            ),
            (1, Just(Op::Insert(long_id, Item::Text(1))).boxed()),
            (2, edge.boxed()),
            (1, id().prop_map(move |id| Op::Patch(id, far.clone(), Item::Text(1))).boxed()),
            (2, json::leaf().prop_map(|leaf| Op::Find(vec!["b".into()], Json(leaf))).boxed()),
        ];
        if self.indexed {
            // Of long texts that begin alike, the index holds the same beginning.
            let alike = select(vec![997, 998, 999, 1_000, 1_001, 3_000]).prop_map(Item::Text);
            let leaf = prop_oneof![
                if self.alike { 1 } else { 3 } => json::leaf(),
                1 => text.prop_map(|item| item.value()),
                if self.alike { 6 } else { 1 } => alike.prop_map(|item| item.value()),
            ];
            let on = |leaf: BoxedStrategy<Value>| (id(), leaf);
            let leaf = leaf.boxed();
            kinds.push((40, leaf.clone().prop_map(|leaf| Op::Find(indexed_path(), Json(leaf))).boxed()));
            let patch =
                on(leaf).prop_map(|(id, leaf)| Op::Patch(id, indexed_path(), Item::Value(Json(leaf))));
            kinds.push((30, patch.boxed()));
        }
        proptest::strategy::Union::new_weighted(kinds).boxed()
    }
}
