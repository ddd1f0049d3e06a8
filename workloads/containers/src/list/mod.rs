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
mod operations;
mod planted;

pub use model::{Held, Model};
pub use operations::{Answer, Op};

use crate::shared::{self, came_back};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use model::read;
use operations::{SHORT, ids, walked};
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    specimen::{At, Content, Specimen},
    weakened::Span,
    workload::Bug,
};
use shaketable_layers::{
    id::Id,
    list::{self, Error, List as Layer},
};
use shaketable_sim::seed::Stream;
use shaketable_tx::{self as tx, Database, Db, Env, Isolation, Transaction, Tx};
use std::{collections::BTreeMap, ops::Range, sync::Arc};

/// The list's subspace.
fn space() -> Subspace {
    Subspace::from("list")
}

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
    planted: Option<Planted>,
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<List>>()
}

impl List {
    /// The nodes that are in the list at first.
    fn first_nodes(&self) -> Vec<Id> {
        let crowd = (0..self.crowd as i64).map(|n| Id::from(1_000_000 + n));
        ids()[..self.first].iter().cloned().chain(crowd).collect()
    }

    /// Performs a call correctly.
    async fn right(&self, tx: &Tx, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
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
            Op::RemoveFirst => Answer::Node(came_back(list.remove_first(tx).await?)),
            Op::RemoveNext(id) => Answer::Node(came_back(list.remove_next_node(tx, id).await?)),
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
                walked(nodes.into_iter().map(|node| (node.id, Content::from(&node.value))))
            }
        })
    }
}

impl Specimen for List {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "list";
    const ABOUT: &'static str = "nodes of a linked list come and go between their neighbours";
    const CHECKS_LIMITS: bool = true;

    // A refusal undoes the other calls of its transaction, too.
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
        let mut drawn = List {
            ids: ids as usize,
            first: rng.range(0..ids.min(SHORT as u64) + 1) as usize,
            crowd: 0,
            ended: rng.chance(0.5),
            edges: shared::draw_edge_ids(rng),
            planted: bug.and_then(Planted::named),
        };
        // A run with such a list takes thirty times as long as another.
        if rng.chance(0.2) {
            drawn.crowd = list::MAX_WALK + 2 - drawn.first - rng.below(4) as usize;
        }
        drawn
    }

    fn keys(&self) -> Vec<Bytes> {
        ids()[..self.ids].iter().map(|id| space().pack(&("node", id)).into()).collect()
    }

    fn subspaces(&self) -> Vec<Span> {
        vec![space().range()]
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        self.drawn()
    }

    fn is_read_only(op: &Op) -> bool {
        use Op::*;
        matches!(op, First | Next(_) | Contains(_) | Value(_) | Attribute(..) | Attributes(_) | Walk(..))
    }

    async fn setup(&self, db: &Db) -> Result<(), tx::Error> {
        let nodes = &self.first_nodes();
        let write = |tx: Tx, _| async move {
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
        Self::is_read_only(op) && self.planted.is_none_or(|planted| planted == Planted::WalkAtSnapshot)
    }

    async fn perform(&self, tx: &Tx, _: &Env, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        match self.planted {
            Some(planted) => planted::perform(planted, self, tx, op, isolation).await,
            None => self.right(tx, op, isolation).await,
        }
    }

    fn takes_turns(&self) -> bool {
        self.planted.is_none()
    }

    fn model(&self) -> Model {
        let mut model = Model::default();
        for (at, id) in self.first_nodes().iter().enumerate() {
            Arc::make_mut(&mut model.order).insert(at, id.clone());
            let node = Held { value: Content::of(0, 0), attributes: BTreeMap::new() };
            Arc::make_mut(&mut model.nodes).insert(id.clone(), node);
        }
        model
    }

    fn replay(&self, model: &mut Model, op: &Op, _: &At) -> Result<Answer, Error> {
        self.replayed(model, op)
    }

    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Model, Misfit>> {
        let rows = shared::rows(tx, &space()).await?;
        Ok(read(&rows).map_err(Misfit::from))
    }
}
