//! `priority_queue`: items are pushed, popped at both ends and moved to other priorities.
//!
//! There are few priorities, including negative ones and the extremes, so that many items share one; then the
//! order of the pushes decides, at both ends. The count that a push computes follows from what its
//! transaction read, and the item ids are drawn with the operations. The sequential model therefore knows
//! every place exactly.

#[cfg(test)]
mod bounds;
mod client;
#[cfg(test)]
mod documents;
mod model;
mod operations;
mod planted;

pub use model::Items;
pub use operations::{Answer, Batch, Item, Name, Op};

use crate::shared::{self, item_id, item_name};
use bytes::Bytes;
use client::{deep, perform, popped, pushed};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    models::timeline::Timeline,
    specimen::{self, At, Content, Recorded, Specimen},
    weakened::Span,
    workload::{Bug, Outcome},
};
use shaketable_layers::{
    priority_queue::{Error, Place, PriorityQueue},
    queue::ItemId,
};
use shaketable_sim::seed::Stream;
use shaketable_tx::{
    self as tx, Database, Db, Env, Isolation, Transaction, Tx,
    once::{self, Fate, OpId, Session},
};
use std::collections::BTreeSet;

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Queue {
    /// The first of [`PRIORITIES`](operations::PRIORITIES) that is used, and how many from there on.
    priorities: (usize, usize),
    /// The count of the item that exists from the beginning, if there is one.
    start: Option<i64>,
    /// The usual maximum length of values, in bytes; a few are longer.
    usual: usize,
    /// The weights of pushes, pops, changes of priority, and looks.
    mix: [u32; 4],
    planted: Option<Planted>,
}

fn queue() -> PriorityQueue {
    PriorityQueue::new(Subspace::from("priorities"))
}

impl Queue {
    /// Whether a call that is alone in its transaction is recorded with the layer's own answer.
    fn records_alone(&self, ops: &[Op]) -> bool {
        self.planted.is_none()
            && match ops {
                [Op::Push(batch)] => batch.items == 1,
                [Op::Pop(..)] => true,
                _ => false,
            }
    }
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Queue>>()
}

impl Specimen for Queue {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Timeline<Items>;

    const NAME: &'static str = "priority_queue";
    const ABOUT: &'static str = "pushes, pops at both ends and changes of priority, in the order promised";
    const CHECKS_LIMITS: bool = true;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "priority_queue: a pop finds no item",
            "priority_queue: an item changes its priority",
            "priority_queue: the highest priority has several items",
        ]
    }

    fn rare_kinds() -> &'static [&'static str] {
        &["Deep"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Queue {
        let planted = bug.and_then(Planted::named);
        let start = *rng.pick(&[None, None, Some(0), Some(255), Some(i64::MAX - 1), Some(i64::MAX - 10)]);
        Queue {
            priorities: (rng.range(0..12) as usize, rng.range(1..8) as usize),
            start: if planted == Some(Planted::UnsignedPriority) { None } else { start },
            usual: *rng.pick(&[1, 100, 3_000]),
            mix: [rng.range(3..8), rng.range(3..8), rng.range(1..4), rng.range(1..3)].map(|w| w as u32),
            planted,
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let key = |priority: i64| queue().subspace().pack(&(priority, 1)).into();
        self.priorities().into_iter().map(key).collect()
    }

    fn subspaces(&self) -> Vec<Span> {
        vec![queue().subspace().range(), Subspace::from_bytes(deep(0)).range()]
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        self.drawn()
    }

    fn number(op: &mut Op, client: usize, number: usize) {
        if let Op::Push(batch) = op {
            (batch.client, batch.number) = (client as u16, number as u16);
        }
    }

    fn refuses_cleanly(op: &Op, _: &Error) -> bool {
        !matches!(op, Op::Push(_) | Op::Change { stale: true, .. })
    }

    fn is_read_only(op: &Op) -> bool {
        matches!(op, Op::Peek(..) | Op::IsEmpty(_) | Op::Len(_) | Op::Items(_) | Op::Pages(..))
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        use Op::*;
        matches!(op, Push(_) | Peek(_, true) | IsEmpty(true) | Len(true) | Items(true) | Pages(true, _))
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        let first = &self.first_items();
        let stored = db.run(|tx, _| async move {
            for Place { priority, count, id } in first.keys() {
                let key = queue().subspace().pack(&(*priority, *count, TupleBytes::from(&id.0[..])));
                tx.set(&key, b"first");
            }
            Ok::<_, tx::Error>(())
        });
        stored.await.map_err(|e| e.error)
    }

    async fn perform(&self, tx: &Tx, env: &Env, op: &Op, _: Isolation) -> Result<Answer, Error> {
        match self.planted {
            Some(planted) => planted::perform(planted, tx, env, op).await,
            None => perform(tx, op).await,
        }
    }

    async fn apply(
        &self,
        _: Option<&str>,
        session: &mut Session<Db>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        if let Some(planted) = self.planted {
            return planted::apply_planted(planted, session, ops).await;
        }
        if !self.records_alone(ops) {
            return None;
        }
        let queue = &queue();
        match &ops[0] {
            Op::Push(batch) => {
                let (id, value) = (item_id(batch.names().next()?), &batch.value());
                let run = session.apply(|tx| async move { queue.push(&tx, id, batch.priority, value).await });
                Some(specimen::told(run.await.map(|place| Recorded(vec![pushed(place)]))))
            }
            Op::Pop(end, _) => {
                let run = session.apply(|tx| async move { queue.pop(&tx, *end).await });
                Some(specimen::told(run.await.map(|item| Recorded(vec![popped(item)]))))
            }
            _ => None,
        }
    }

    async fn resolve(
        &self,
        _: Option<&str>,
        session: &mut Session<Db>,
        ops: &[Op],
        pending: OpId,
    ) -> Result<Fate<Vec<Answer>>, once::Error> {
        Ok(match ops {
            [Op::Push(_)] if self.records_alone(ops) => {
                session.resolve(pending).await?.map(|place| vec![pushed(place)])
            }
            [Op::Pop(..)] if self.records_alone(ops) => {
                session.resolve(pending).await?.map(|item| vec![popped(item)])
            }
            _ => session.resolve(pending).await?.map(|Recorded(answers)| answers),
        })
    }

    fn takes_turns(&self) -> bool {
        self.planted.is_none()
    }

    fn model(&self) -> Timeline<Items> {
        Timeline::new(self.first_items())
    }

    fn replay(&self, model: &mut Timeline<Items>, op: &Op, at: &At) -> Result<Answer, Error> {
        self.replayed(model, op, at)
    }

    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Timeline<Items>, Misfit>> {
        let queue = queue();
        let rows = shared::rows(tx, queue.subspace()).await?;
        let mut model = Items::new();
        let mut names = BTreeSet::new();
        for row in rows {
            let Ok((priority, count, id)) = queue.subspace().unpack::<(i64, i64, TupleBytes<'_>)>(&row.key)
            else {
                return Ok(Err(
                    format!("the key \"{}\" does not belong to an item", row.key.escape_ascii()).into()
                ));
            };
            let Ok(id) = (*id).try_into().map(ItemId) else {
                return Ok(Err(format!("the id {id:?} does not belong to an item").into()));
            };
            let place = Place { priority, count, id };
            if place.count < 0 {
                return Ok(Err(format!("{place} has a negative count").into()));
            }
            if !names.insert(item_name(place.id)) {
                return Ok(Err(format!("the item {:?} is there twice", item_name(place.id)).into()));
            }
            model.insert(planted::known(self.planted, place), Content::from(&row.value));
        }
        Ok(Ok(Timeline::new(model)))
    }
}
