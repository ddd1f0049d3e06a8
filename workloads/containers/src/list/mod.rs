//! `list`: nodes of one linked list are inserted, removed and given attributes, at the same few places.
//!
//! The list exists before the clients start, as another program would have written it; in some seeds its last
//! node has no link at all. Ids have three types and some differ only in their type; one id is as long as a
//! key allows, and one is longer. A few lists have about as many nodes as one walk may visit. Some nodes are
//! in the list already, and some are not any more. Some attributes have names similar to that of the link.
//! Some removals specify which node they expect. In half of the runs a few ids are at edges of their types.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;
mod model;
mod planted;

pub use model::Model;

use crate::shared::{self, came_back};
use foundationdb_tuple::Subspace;
use proptest::option;
use shaketable::{prelude::*, real::key_room, specimen::Content, strategies};
use shaketable_layers::{
    id::Id,
    list::{Error, List as Layer, MAX_WALK, NEXT},
};
use shaketable_tx::KEY_SIZE_LIMIT;
use std::ops::Range;

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct List {
    /// How many of [`ids`] are used.
    ids: usize,
    /// How many of these are in the list at first.
    first: usize,
    /// How many further nodes are in the list at first: about as many as one walk visits, or none.
    crowd: usize,
    /// Whether the last of them has an empty link; otherwise it has none.
    ended: bool,
    /// Ids that are used beside them.
    edges: Vec<Id>,
}

/// Nodes of a linked list come and go between their neighbours.
#[shaketable::workload(name = "list", model = Model, planted, promises(turns, limits))]
impl List {
    // A refusal undoes the other calls of its transaction, too.
    const TOGETHER: Range<u64> = 1..4;

    fn draw(rng: &mut Stream) -> List {
        let ids = rng.range(3..ids().len() as u64 + 1);
        let mut drawn = List {
            ids: ids as usize,
            first: rng.range(0..ids.min(SHORT as u64) + 1) as usize,
            crowd: 0,
            ended: rng.chance(0.5),
            edges: shared::draw_edge_ids(rng),
        };
        // A run with such a list takes thirty times as long as another.
        if rng.chance(0.2) {
            drawn.crowd = MAX_WALK + 2 - drawn.first - rng.below(4) as usize;
        }
        drawn
    }

    fn points() -> &'static [&'static str] {
        &[
            "list: what comes next is not what was expected",
            "list: nothing to remove at the end",
            "list: an absent link is the end",
            "list: an empty link is the end",
        ]
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        ids()[..self.ids].iter().map(|id| space().pack(&("node", id))).collect()
    }

    fn subspaces(&self) -> [(Vec<u8>, Vec<u8>); 1] {
        [space().range()]
    }

    fn layer(&self) -> Layer {
        Layer::new(space())
    }

    /// The nodes that are in the list at first.
    fn first_nodes(&self) -> Vec<Id> {
        let crowd = (0..self.crowd as i64).map(|n| Id::from(1_000_000 + n));
        ids().into_iter().take(self.first).chain(crowd).collect()
    }

    #[draws(id, node)]
    fn id(&self) -> BoxedStrategy<Id> {
        let ids = ids()[..self.ids].to_vec();
        // An id that every list refuses ends a transaction, so it is rare.
        let usual = [&ids[..self.ids.min(SHORT)], &self.edges].concat();
        prop_oneof![12 => select(usual), 1 => select(ids)].boxed()
    }

    #[draws(expected)]
    fn expected(&self) -> BoxedStrategy<Option<Id>> {
        option::weighted(0.9, self.id()).boxed()
    }

    #[draws(from)]
    fn from(&self) -> BoxedStrategy<Option<Id>> {
        let first = self.first_nodes().first().cloned().unwrap_or_else(|| 0.into());
        option::weighted(0.4, prop_oneof![1 => Just(first), 2 => self.id()]).boxed()
    }

    #[draws(limit)]
    fn limit(&self) -> BoxedStrategy<usize> {
        let long = strategies::counts(MAX_WALK);
        match self.crowd {
            0 => prop_oneof![18 => 0..14usize, 1 => Just(usize::MAX), 1 => long].boxed(),
            _ => prop_oneof![1 => 0..14usize, 1 => Just(usize::MAX), 2 => long].boxed(),
        }
    }

    #[draws(name)]
    fn name() -> impl Strategy<Value = String> {
        let name = strategies::mostly(select(&NAMES), select(&strategies::BEYOND_ASCII[..]));
        name.prop_map(String::from)
    }

    #[draws(byte)]
    fn byte() -> impl Strategy<Value = u8> {
        any::<u8>()
    }

    #[draws(length)]
    fn length() -> impl Strategy<Value = usize> {
        prop_oneof![12 => strategies::value_lengths(40), 1 => Just(2_000)]
    }

    /// The weight of a removal. A long list stays about as long as a walk may be: what is removed of the
    /// crowd does not come back.
    fn removal(&self, usual: u32) -> u32 {
        if self.crowd == 0 { usual } else { 1 }
    }

    async fn setup(&self, tx: &Tx) -> Result<(), Error> {
        let mut link = space().pack(&("head",));
        for id in self.first_nodes() {
            tx.set(&link, &foundationdb_tuple::pack(&id));
            tx.set(&space().pack(&("node", &id)), b"");
            link = link_of(&id);
        }
        if self.ended {
            tx.set(&link, b"");
        }
        Ok(())
    }

    #[write(weight = 4)]
    async fn push_front(&self, tx: &Tx, id: &Id, byte: u8, length: usize) -> Result<(), Error> {
        self.layer().push_front(tx, id, &vec![byte; length]).await
    }

    #[write(weight = 8)]
    async fn insert_after(&self, tx: &Tx, node: &Id, id: &Id, byte: u8, length: usize) -> Result<(), Error> {
        self.layer().insert_after(tx, node, id, &vec![byte; length]).await
    }

    #[write(weight = self.removal(2))]
    async fn remove_first(&self, tx: &Tx) -> Result<Option<Id>, Error> {
        Ok(came_back(self.layer().remove_first(tx).await?))
    }

    #[write(weight = self.removal(5))]
    async fn remove_next(&self, tx: &Tx, node: &Id) -> Result<Option<Id>, Error> {
        Ok(came_back(self.layer().remove_next_node(tx, node).await?))
    }

    #[write(weight = self.removal(4))]
    async fn remove_next_if(&self, tx: &Tx, node: &Id, expected: Option<Id>) -> Result<(), Error> {
        self.layer().remove_next_node_if(tx, node, expected.as_ref()).await
    }

    #[write(weight = 2)]
    async fn set_value(&self, tx: &Tx, node: &Id, byte: u8, length: usize) -> Result<(), Error> {
        self.layer().set_value(tx, node, &vec![byte; length]).await
    }

    #[write(weight = 4)]
    async fn set_attribute(
        &self,
        tx: &Tx,
        node: &Id,
        name: &str,
        byte: u8,
        length: usize,
    ) -> Result<(), Error> {
        self.layer().set_attribute(tx, node, name, &vec![byte; length]).await
    }

    #[write]
    async fn clear_attribute(&self, tx: &Tx, node: &Id, name: &str) -> Result<(), Error> {
        self.layer().clear_attribute(tx, node, name).await
    }

    #[read]
    async fn first(&self, tx: &Tx, isolation: Isolation) -> Result<Option<Id>, Error> {
        self.layer().first(tx, isolation).await
    }

    #[read]
    async fn next(&self, tx: &Tx, isolation: Isolation, node: &Id) -> Result<Option<Id>, Error> {
        self.layer().next(tx, node, isolation).await
    }

    #[read]
    async fn contains(&self, tx: &Tx, isolation: Isolation, node: &Id) -> Result<bool, Error> {
        self.layer().contains(tx, node, isolation).await
    }

    #[read]
    async fn value(&self, tx: &Tx, isolation: Isolation, node: &Id) -> Result<Content, Error> {
        Ok(Content::from(&self.layer().value(tx, node, isolation).await?))
    }

    #[read]
    async fn attribute(
        &self,
        tx: &Tx,
        isolation: Isolation,
        node: &Id,
        name: &str,
    ) -> Result<Option<Content>, Error> {
        Ok(self.layer().attribute(tx, node, name, isolation).await?.as_ref().map(Content::from))
    }

    #[read(weight = 2)]
    async fn attributes(
        &self,
        tx: &Tx,
        isolation: Isolation,
        node: &Id,
    ) -> Result<Vec<(String, Content)>, Error> {
        let all = self.layer().attributes(tx, node, isolation).await?;
        Ok(all.into_iter().map(|(name, value)| (name, Content::from(&value))).collect())
    }

    #[read(weight = 4)]
    async fn walk(
        &self,
        tx: &Tx,
        isolation: Isolation,
        from: Option<Id>,
        limit: usize,
    ) -> Result<Walked, Error> {
        let nodes = self.layer().walk(tx, from.as_ref(), limit, isolation).await?;
        Ok(Walked::of(nodes.into_iter().map(|node| (node.id, Content::from(&node.value)))))
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Result<Model, String>> {
        Ok(Model::read(&shared::rows(tx, &space()).await?))
    }

    fn model(&self) -> Model {
        Model::of(self.first_nodes())
    }
}

/// The nodes on the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Walked {
    /// All of them, in order.
    Nodes(Vec<(Id, Content)>),
    /// Of a long way their number and a hash of them, which fit into a session's slot.
    Long(usize, u64),
}

impl Walked {
    fn of(nodes: impl Iterator<Item = (Id, Content)>) -> Walked {
        let nodes: Vec<_> = nodes.collect();
        match nodes.len() {
            ..=20 => Walked::Nodes(nodes),
            _ => {
                let (count, hash) = shared::digest(nodes.iter());
                Walked::Long(count, hash)
            }
        }
    }
}

/// The list's subspace.
fn space() -> Subspace {
    Subspace::from("list")
}

/// The key of a node's link.
fn link_of(node: &Id) -> Vec<u8> {
    space().pack(&("node", node, NEXT))
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
const SHORT: usize = 13;

/// An id so long that the key of its node's link has the maximum size, or this many bytes more.
fn long(more: usize) -> Id {
    let room = if more > 0 { 0 } else { key_room() };
    Id::from("x".repeat(KEY_SIZE_LIMIT - link_of(&"".into()).len() - room + more))
}

/// The names of attributes that are drawn; every list refuses one of them.
const NAMES: [&str; 7] = ["", "color", "n\0", NEXT, "nex", "next\0", "\u{10ffff}"];

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<List>>()
}
