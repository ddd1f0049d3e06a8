//! `list`: nodes of one linked list come, go and carry attributes, at the same few places.
//!
//! The list is there before the clients are, as another program would have written it: in some seeds its
//! last node has no link at all. Ids of three types, alike but for their type, one as long as a key allows
//! and one longer; nodes that are in the list already, or not any more; attributes called nearly as the link;
//! and removals that say which node they mean.

mod planted;

use bytes::Bytes;
use foundationdb_tuple::Subspace;
use proptest::{option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    specimen::{At, Content, Specimen, UNRECORDED},
    strategies,
    workload::Bug,
};
use shaketable_layers::{
    id::Id,
    limits,
    list::{self, Error, List as Layer},
    tx::{
        self, Database, Env,
        Isolation::{self, Serializable},
        RangeOption, Transaction,
    },
};
use shaketable_sim::seed::Stream;
use std::{collections::BTreeMap, ops::Range};

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "a removal is retried after an unknown result without an operation record", "the guide's remove_next_node";
    NullLink = "null-link", "a link that is absent is taken for a link to a node named null", "the guide's remove_next_node, on a list whose last node has no link";
    EmptyLink = "empty-link", "a link that is empty is taken for a link to a node without a name", "the guide's remove_next_node, where bytes are no text";
    BytesLink = "bytes-link", "an id read from a link is looked up as bytes, whatever it was", "the guide's remove_next_node, where bytes are no text";
    OwnKeyStays = "own-key-stays", "a removal clears what is behind a node's key, and not the key itself", "the guide's remove_next_node, on nodes with a value";
    SnapshotLinks = "snapshot-links", "links are read at snapshot isolation", "reads that decide a write outside conflict detection";
    BlindAttribute = "blind-attribute", "an attribute is set without a look at its node", "a node that is gone";
    UncheckedInsert = "unchecked-insert", "a node is inserted without a look whether it is there", "one id twice in a list";
    LinkListed = "link-listed", "the link is listed among the attributes", "an attribute that is none";
    PrefixCleared = "prefix-cleared", "an attribute is removed with all whose names begin with its name", "a range where a key is meant";
    AttributesStay = "attributes-stay", "the first node is removed without its attributes", "a removal that knows the value and the link only";
    WalkRepeats = "walk-repeats", "a walk behind a node begins with that node", "a bound that is inclusive instead of exclusive";
    BehindFirst = "behind-first", "a node for the front is put behind the first one", "an insertion without a case of its own for the head";
    UncheckedNext = "unchecked-next", "the expected next node is not compared", "a removal of whatever comes next";
    WalkAtSnapshot = "walk-at-snapshot", "a walk is read at snapshot, however it is asked for", "a dropped conflict range";
}

/// The list's subspace.
pub(crate) fn space() -> Subspace {
    Subspace::from("list")
}

/// The ids that are drawn.
fn ids() -> Vec<Id> {
    let bytes = |bytes: &'static [u8]| Id::Bytes(Bytes::from_static(bytes));
    vec![
        "a".into(),
        bytes(b"a"),
        1.into(),
        "".into(),
        "a\0b".into(),
        i64::MIN.into(),
        bytes(b""),
        bytes(b"\0\xff"),
        0.into(),
        "next".into(),
        long(0),
        long(1),
    ]
}

/// How many of [`ids`] may be in the list at first: all that no other limit concerns.
const SHORT: usize = 10;

/// An id so long that its node's link has a key of the largest size, or of so many bytes more.
fn long(more: usize) -> Id {
    let others = space().pack(&("node", "", list::NEXT)).len();
    Id::from("x".repeat(tx::KEY_SIZE_LIMIT - others + more))
}

/// The attributes that are drawn, one of which no list takes.
const NAMES: [&str; 7] = ["", "color", "n\0", list::NEXT, "nex", "next\0", "\u{10ffff}"];

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct List {
    /// Of [`ids`], how many are used.
    ids: usize,
    /// Of these, how many are in the list at first.
    first: usize,
    /// Whether the last of them has an empty link; otherwise it has none.
    ended: bool,
    planted: Option<Planted>,
}

/// One call. Values are so many bytes of a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Puts a node before all others.
    PushFront(Id, u8, usize),
    /// Puts a node (the second) behind another.
    InsertAfter(Id, Id, u8, usize),
    /// Removes the first node.
    RemoveFirst,
    /// Removes the node behind this one.
    RemoveNext(Id),
    /// Removes the node behind this one if it is the other one.
    RemoveNextIf(Id, Option<Id>),
    /// Replaces a value.
    SetValue(Id, u8, usize),
    /// Sets an attribute.
    SetAttribute(Id, String, u8, usize),
    /// Removes an attribute.
    ClearAttribute(Id, String),
    /// Reads which node is the first.
    First,
    /// Reads which node is next.
    Next(Id),
    /// Reads whether there is such a node.
    Contains(Id),
    /// Reads a value.
    Value(Id),
    /// Reads an attribute.
    Attribute(Id, String),
    /// Reads all attributes.
    Attributes(Id),
    /// Walks, from the start or behind a node.
    Walk(Option<Id>, usize),
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// The node that was removed, or is next.
    Node(Option<Id>),
    /// A value or an attribute.
    Value(Option<Content>),
    /// Attributes in the order of their names.
    Attributes(Vec<(String, Content)>),
    /// Whether it is so.
    Is(bool),
    /// The nodes met.
    Walk(Vec<(Id, Content)>),
}

/// A list: its nodes in order, and what each holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    order: Vec<Id>,
    nodes: BTreeMap<Id, Held>,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    value: Content,
    attributes: BTreeMap<String, Content>,
}

impl Model {
    fn node(&mut self, id: &Id) -> Result<&mut Held, Error> {
        fits(id, 0, 0)?;
        self.nodes.get_mut(id).ok_or_else(|| Error::NoSuchNode(id.clone()))
    }

    /// How many nodes come up to this one, itself included.
    fn up_to(&self, id: &Id) -> Result<usize, Error> {
        fits(id, 0, 0)?;
        let at = self.order.iter().position(|node| node == id);
        at.map(|at| at + 1).ok_or_else(|| Error::NoSuchNode(id.clone()))
    }

    fn insert(&mut self, at: usize, id: &Id, byte: u8, length: usize) -> Result<Answer, Error> {
        fits(id, byte, length)?;
        if self.nodes.contains_key(id) {
            return Err(Error::NodeExists(id.clone()));
        }
        self.order.insert(at, id.clone());
        let value = Content::of(byte, length);
        self.nodes.insert(id.clone(), Held { value, attributes: BTreeMap::new() });
        Ok(Answer::Written)
    }

    fn remove(&mut self, at: usize) -> Option<Id> {
        let id = (at < self.order.len()).then(|| self.order.remove(at))?;
        self.nodes.remove(&id);
        Some(id)
    }
}

fn fits(id: &Id, byte: u8, length: usize) -> Result<(), Error> {
    limits::key(&space().pack(&("node", id, list::NEXT)))?;
    Ok(limits::row(&space().pack(&("node", id)), &vec![byte; length])?)
}

fn attribute(id: &Id, name: &str) -> Result<Vec<u8>, Error> {
    match name {
        list::NEXT => Err(Error::ReservedAttribute(name.into())),
        _ => Ok(space().pack(&("node", id, name))),
    }
}

/// The key schema read from the other end: rows become a list, or show why they are none.
pub(crate) fn read(rows: &[tx::KeyValue]) -> Result<Model, String> {
    let (head, below) = (space().pack(&("head",)), space().subspace(&("node",)));
    let mut links: BTreeMap<Option<Id>, Id> = BTreeMap::new();
    let mut nodes: BTreeMap<Id, Held> = BTreeMap::new();
    let mut attributes = Vec::new();
    let link = |key: &[u8], value: &[u8]| match value {
        [] => Ok(None),
        _ => foundationdb_tuple::unpack::<Id>(value)
            .map(Some)
            .map_err(|_| format!("{} is no link", key.escape_ascii())),
    };
    for row in rows {
        if row.key == head {
            links.extend(link(&row.key, &row.value)?.map(|id| (None, id)));
        } else if let Ok((id,)) = below.unpack::<(Id,)>(&row.key) {
            nodes.insert(id, Held { value: Content::from(&row.value), attributes: BTreeMap::new() });
        } else if let Ok((id, name)) = below.unpack::<(Id, String)>(&row.key) {
            match name == list::NEXT {
                true => links.extend(link(&row.key, &row.value)?.map(|next| (Some(id.clone()), next))),
                false => attributes.push((id.clone(), name, Content::from(&row.value))),
            }
            if !nodes.contains_key(&id) {
                return Err(format!("{} belongs to no node", row.key.escape_ascii()));
            }
        } else {
            return Err(format!("{} is no key of a list", row.key.escape_ascii()));
        }
    }
    for (id, name, value) in attributes {
        nodes.entry(id).and_modify(|node| drop(node.attributes.insert(name, value)));
    }
    let mut order: Vec<Id> = Vec::new();
    while let Some(next) = links.get(&order.last().cloned()) {
        if order.contains(next) {
            return Err(format!("the links come back to {next}"));
        }
        if !nodes.contains_key(next) {
            return Err(format!("a link leads to {next}, which does not exist"));
        }
        order.push(next.clone());
    }
    match nodes.keys().find(|id| !order.contains(id)) {
        Some(orphan) => Err(format!("no link leads to {orphan}")),
        None => Ok(Model { order, nodes }),
    }
}

impl Specimen for List {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "list";
    const ABOUT: &'static str = "nodes of a linked list come and go between their neighbours";

    // A refusal takes the other calls of its transaction with it.
    const TOGETHER: Range<u64> = 1..4;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "list: what comes next is not what was expected",
            "list: nothing to remove at the end",
            "list: an absent link is the end",
            "list: an empty link is the end",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> List {
        let ids = rng.range(3..ids().len() as u64 + 1);
        List {
            ids: ids as usize,
            first: rng.range(0..ids.min(SHORT as u64) + 1) as usize,
            ended: rng.chance(0.5),
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        ids()[..self.ids].iter().map(|id| space().pack(&("node", id)).into()).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let ids = ids()[..self.ids].to_vec();
        // An id that no list takes ends a transaction: now and then is enough.
        let usual = ids[..self.ids.min(SHORT)].to_vec();
        let id = move || prop_oneof![12 => select(usual.clone()), 1 => select(ids.clone())];
        let name = || select(&NAMES).prop_map(String::from);
        let length = || prop_oneof![12 => strategies::value_lengths(40), 1 => Just(2_000)];
        let byte = any::<u8>;
        prop_oneof![
            4 => (id(), byte(), length()).prop_map(|(i, b, n)| Op::PushFront(i, b, n)),
            8 => (id(), id(), byte(), length()).prop_map(|(a, i, b, n)| Op::InsertAfter(a, i, b, n)),
            2 => Just(Op::RemoveFirst),
            5 => id().prop_map(Op::RemoveNext),
            4 => (id(), option::weighted(0.9, id())).prop_map(|(i, next)| Op::RemoveNextIf(i, next)),
            2 => (id(), byte(), length()).prop_map(|(i, b, n)| Op::SetValue(i, b, n)),
            4 => (id(), name(), byte(), length()).prop_map(|(i, a, b, n)| Op::SetAttribute(i, a, b, n)),
            1 => (id(), name()).prop_map(|(i, a)| Op::ClearAttribute(i, a)),
            1 => Just(Op::First),
            1 => id().prop_map(Op::Next),
            1 => id().prop_map(Op::Contains),
            1 => id().prop_map(Op::Value),
            1 => (id(), name()).prop_map(|(i, a)| Op::Attribute(i, a)),
            2 => id().prop_map(Op::Attributes),
            4 => (option::weighted(0.3, id()), prop_oneof![9 => 0..14usize, 1 => Just(usize::MAX)])
                .prop_map(|(from, n)| Op::Walk(from, n)),
        ]
        .boxed()
    }

    fn is_look(op: &Op) -> bool {
        use Op::*;
        matches!(op, First | Next(_) | Contains(_) | Value(_) | Attribute(..) | Attributes(_) | Walk(..))
    }

    async fn setup<D: Database>(&self, db: &D) -> Result<(), tx::Error> {
        let nodes = &ids()[..self.first];
        let write = |tx: D::Transaction, _| async move {
            let mut link = space().pack(&("head",));
            for id in nodes {
                tx.set(&link, &foundationdb_tuple::pack(id));
                tx.set(&space().pack(&("node", id)), b"");
                link = space().pack(&("node", id, list::NEXT));
            }
            if self.ended {
                tx.set(&link, b"");
            }
            Ok::<_, tx::Error>(())
        };
        db.run(write).await.map_err(|e| e.error)
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        Self::is_look(op) && self.planted.is_none_or(|planted| planted == Planted::WalkAtSnapshot)
    }

    async fn perform<T: Transaction>(
        &self,
        tx: &T,
        _: &Env,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Error> {
        if let Some(planted) = self.planted
            && let Some(answer) = planted::perform(planted, tx, op).await
        {
            return answer;
        }
        let isolation = planted::isolation(self.planted, op, isolation);
        let list = Layer::new(space());
        Ok(match op {
            Op::PushFront(id, byte, length) => {
                list.push_front(tx, id, &vec![*byte; *length]).await?;
                Answer::Written
            }
            Op::InsertAfter(after, id, byte, length) => {
                list.insert_after(tx, after, id, &vec![*byte; *length]).await?;
                Answer::Written
            }
            Op::RemoveFirst => Answer::Node(list.remove_first(tx).await?),
            Op::RemoveNext(id) => Answer::Node(list.remove_next_node(tx, id).await?),
            Op::RemoveNextIf(id, expected) => {
                list.remove_next_node_if(tx, id, expected.as_ref()).await?;
                Answer::Written
            }
            Op::SetValue(id, byte, length) => {
                list.set_value(tx, id, &vec![*byte; *length]).await?;
                Answer::Written
            }
            Op::SetAttribute(id, name, byte, length) => {
                list.set_attribute(tx, id, name, &vec![*byte; *length]).await?;
                Answer::Written
            }
            Op::ClearAttribute(id, name) => {
                list.clear_attribute(tx, id, name).await?;
                Answer::Written
            }
            Op::First => Answer::Node(list.first(tx, isolation).await?),
            Op::Contains(id) => Answer::Is(list.contains(tx, id, isolation).await?),
            Op::Next(id) => Answer::Node(list.next(tx, id, isolation).await?),
            Op::Value(id) => Answer::Value(Some(Content::from(&list.value(tx, id, isolation).await?))),
            Op::Attribute(id, name) => {
                let value = list.attribute(tx, id, name, isolation).await?;
                Answer::Value(value.as_ref().map(Content::from))
            }
            Op::Attributes(id) => {
                let all = list.attributes(tx, id, isolation).await?;
                Answer::Attributes(all.into_iter().map(|(name, v)| (name, Content::from(&v))).collect())
            }
            Op::Walk(after, limit) => {
                let nodes = list.walk(tx, after.as_ref(), *limit, isolation).await?;
                Answer::Walk(nodes.into_iter().map(|node| (node.id, Content::from(&node.value))).collect())
            }
        })
    }

    fn model(&self) -> Model {
        let mut model = Model::default();
        for (at, id) in ids()[..self.first].iter().enumerate() {
            model.order.insert(at, id.clone());
            let node = Held { value: Content::of(0, 0), attributes: BTreeMap::new() };
            model.nodes.insert(id.clone(), node);
        }
        model
    }

    fn replay(&self, model: &mut Model, op: &Op, _: &At) -> Result<Answer, Error> {
        Ok(match op {
            Op::PushFront(id, byte, length) => model.insert(0, id, *byte, *length)?,
            Op::InsertAfter(after, id, byte, length) => {
                let at = model.up_to(after)?;
                model.insert(at, id, *byte, *length)?
            }
            Op::RemoveFirst => Answer::Node(model.remove(0)),
            Op::RemoveNext(id) => {
                let at = model.up_to(id)?;
                Answer::Node(model.remove(at))
            }
            Op::RemoveNextIf(id, expected) => {
                let at = model.up_to(id)?;
                let found = model.order.get(at).cloned();
                if found != *expected {
                    return Err(Error::NextChanged { node: id.clone(), expected: expected.clone(), found });
                }
                model.remove(at);
                Answer::Written
            }
            Op::SetValue(id, byte, length) => {
                fits(id, *byte, *length)?;
                model.node(id)?.value = Content::of(*byte, *length);
                Answer::Written
            }
            Op::SetAttribute(id, name, byte, length) => {
                limits::row(&attribute(id, name)?, &vec![*byte; *length])?;
                model.node(id)?.attributes.insert(name.clone(), Content::of(*byte, *length));
                Answer::Written
            }
            Op::ClearAttribute(id, name) => {
                limits::key(&attribute(id, name)?)?;
                model.node(id)?.attributes.remove(name);
                Answer::Written
            }
            Op::First => Answer::Node(model.order.first().cloned()),
            Op::Contains(id) => {
                fits(id, 0, 0)?;
                Answer::Is(model.nodes.contains_key(id))
            }
            Op::Next(id) => {
                let at = model.up_to(id)?;
                Answer::Node(model.order.get(at).cloned())
            }
            Op::Value(id) => Answer::Value(Some(model.node(id)?.value.clone())),
            Op::Attribute(id, name) => {
                limits::key(&attribute(id, name)?)?;
                Answer::Value(model.node(id)?.attributes.get(name).cloned())
            }
            Op::Attributes(id) => {
                Answer::Attributes(model.node(id)?.attributes.clone().into_iter().collect())
            }
            Op::Walk(after, limit) => {
                let from = after.as_ref().map_or(Ok(0), |after| model.up_to(after))?;
                let nodes = model.order[from..].iter().take(*limit);
                Answer::Walk(nodes.map(|id| (id.clone(), model.nodes[id].value.clone())).collect())
            }
        })
    }

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Model, String>> {
        let rows = tx.get_range_all(RangeOption::from(space().range()), Serializable).await?;
        Ok(read(&rows))
    }
}
