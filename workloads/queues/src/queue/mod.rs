//! `queue`: clients enqueue items and dequeue them, exactly once, in index order or in commit order.
//!
//! Each seed uses one of the two orders. Every call is composed with others in one transaction, including
//! looks of either isolation; a call that is alone in its transaction is recorded with the layer's own
//! answer. Items are named by their client and call. In index order their ids follow from their names, so
//! that the sequential model knows every place exactly: the last index follows from what the transaction
//! read. In commit order the model learns the stamp from the transaction's commit.

#[cfg(test)]
mod bounds;
mod client;
#[cfg(test)]
mod documents;
mod model;
mod operations;
mod planted;

pub use model::{Items, Place};
pub use operations::{Answer, Batch, Item, Look, Name, Op, Spot};

use crate::{beside, shared};
use bytes::Bytes;
use client::{dequeued_item, enqueued_at};
use foundationdb_tuple::{Bytes as TupleBytes, Element, Subspace};
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    models::timeline::Timeline,
    specimen::{self, At, Recorded, Specimen},
    workload::{Bug, Outcome},
};
use shaketable_layers::queue::{self as layer, Error, Order};
use shaketable_sim::{proto::Mutation, seed::Stream};
use shaketable_tx::{
    self as tx, Database, Db, Env,
    Isolation::{self, Snapshot},
    Transaction, Tx, nesting,
    once::{self, Fate, OpId, Session},
};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Queue {
    order: Order,
    /// The queue's prefix.
    prefix: Vec<u8>,
    /// In index order, the index of the item that exists from the beginning, if there is one.
    start: Option<i64>,
    /// The usual maximum length of values, in bytes; a few are longer.
    usual: usize,
    /// The weights of enqueues, dequeues, and looks.
    mix: [u32; 3],
    planted: Option<Planted>,
}

/// The last four bytes in hexadecimal.
fn shown(bytes: &[u8]) -> String {
    bytes[bytes.len().saturating_sub(4)..].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Queue {
    fn space(&self) -> Subspace {
        Subspace::from_bytes(self.prefix.clone())
    }

    fn queue(&self) -> layer::Queue {
        layer::Queue::new(self.space(), self.order)
    }

    /// Whether a call that is alone in its transaction is recorded with the layer's own answer.
    fn records_alone(&self, ops: &[Op]) -> bool {
        self.planted.is_none()
            && match ops {
                [Op::Enqueue(batch)] => batch.items == 1,
                [Op::Dequeue] => true,
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

    const NAME: &'static str = "queue";
    const ABOUT: &'static str = "concurrent enqueues and dequeues, exactly once and in the order promised";
    const CHECKS_LIMITS: bool = true;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "queue: a dequeue finds no item",
            "queue: a transaction comes to its own items",
            "once: a retry finds its operation recorded",
            "once: an unknown operation turns out applied",
            "once: an unknown operation is ruled out",
            "once: a client comes back",
        ]
    }

    fn rare_kinds() -> &'static [&'static str] {
        &["Deep"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Queue {
        let planted = bug.and_then(Planted::named);
        let drawn = *rng.pick(&[Order::Index, Order::Commit]);
        let prefixes =
            [Subspace::from("queue").into_bytes(), Subspace::from("q\0").into_bytes(), b"\xfe".into()];
        let starts = [None, Some(0), Some(255), Some(i64::MAX - 1), Some(i64::MAX - 30)];
        let start = *rng.pick(&starts);
        Queue {
            order: planted.and_then(Planted::order).unwrap_or(drawn),
            prefix: rng.pick(&prefixes).clone(),
            start,
            usual: *rng.pick(&[0, 100, 3_000]),
            mix: [rng.range(2..10), rng.range(2..10), rng.range(1..4)].map(|w| w as u32),
            planted,
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let item = |n: u8| match self.order {
            Order::Index => self.space().pack(&(2 * u16::from(n), "")),
            Order::Commit => self.space().pack(&shared::stamp(n)),
        };
        (1..8).map(|n| item(n).into()).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        self.drawn()
    }

    fn number(op: &mut Op, client: usize, number: usize) {
        if let Op::Enqueue(batch) = op {
            (batch.client, batch.number) = (client as u16, number as u16);
        }
    }

    fn refuses_cleanly(op: &Op, _: &Error) -> bool {
        !matches!(op, Op::Enqueue(batch) if batch.items > 1)
    }

    fn is_read_only(op: &Op) -> bool {
        matches!(op, Op::Look(..))
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Enqueue(_) | Op::Look(_, true))
    }

    fn describe_key(&self, key: &[u8]) -> Option<String> {
        let elements: Vec<Element<'_>> = nesting::unpack(key.strip_prefix(&self.prefix[..])?).ok()?;
        match &elements[..] {
            [Element::Int(index), Element::Bytes(id)] => Some(format!("item {index} with id {}", shown(id))),
            [Element::Versionstamp(stamp), Element::Int(rank), Element::Bytes(id)] if stamp.is_complete() => {
                Some(format!("item {}/{rank} with id {}", shown(stamp.transaction_version()), shown(id)))
            }
            _ => None,
        }
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        beside::plant(db, &beside::of(&self.prefix)).await?;
        let first = &self.first_items();
        let stored = db.run(|tx, _| async move {
            for place in first.keys() {
                if let Place::Index(index, id) = place {
                    tx.set(&self.space().pack(&(*index, TupleBytes::from(&id.0[..]))), b"first");
                }
            }
            Ok::<_, tx::Error>(())
        });
        stored.await.map_err(|e| e.error)
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        self.planted.is_none() && op.at_snapshot().is_some()
    }

    async fn perform(&self, tx: &Tx, env: &Env, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        if let Some(planted) = self.planted
            && let Some(answer) = planted::perform(planted, self, tx, env, op).await?
        {
            return Ok(answer);
        }
        match op.at_snapshot() {
            Some(op) if isolation == Snapshot => self.right(tx, env, &op).await,
            _ => self.right(tx, env, op).await,
        }
    }

    async fn apply(
        &self,
        _: Option<&str>,
        session: &mut Session<Db>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        if let Some(planted) = self.planted {
            return planted::apply_planted(planted, self, session, ops).await;
        }
        if !self.records_alone(ops) {
            return None;
        }
        let queue = &self.queue();
        match &ops[0] {
            Op::Enqueue(batch) => {
                let (name, value) = &batch.items().next()?;
                let id = self.id(session.database().env(), *name);
                let enqueued = session.apply(|tx| async move { queue.enqueue(&tx, id, value).await });
                Some(specimen::told(enqueued.await.map(|at| Recorded(vec![enqueued_at(at)]))))
            }
            _ => {
                let dequeued = session.apply(|tx| async move { queue.dequeue(&tx).await });
                Some(specimen::told(dequeued.await.map(|item| Recorded(vec![dequeued_item(item)]))))
            }
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
            [Op::Enqueue(_)] if self.records_alone(ops) => {
                session.resolve(pending).await?.map(|at| vec![enqueued_at(at)])
            }
            [Op::Dequeue] if self.records_alone(ops) => {
                session.resolve(pending).await?.map(|item| vec![dequeued_item(item)])
            }
            _ => session.resolve(pending).await?.map(|Recorded(answers)| answers),
        })
    }

    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        !shaketable::sessions::is_fence(mutations) && !planted::only_tidies_up(mutations)
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
        Ok(self.read(tx).await?.map_err(Misfit::from))
    }
}
