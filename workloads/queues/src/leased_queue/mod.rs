//! `leased_queue`: workers claim items, renew their leases, acknowledge, are slow, give up, and die.
//!
//! An operation of a worker is several transactions, and other clients take an item back when its worker is
//! silent for the duration of a lease. The model follows what each transaction wrote: every transaction must
//! be a step that the queue allows to its client. Only the last claim of an item can be renewed, released or
//! acknowledged, and only by the operation that made it. Each worker has a timer beside its lease, which
//! reveals a lease that ended early. A few workers that were believed dead continue beside a second
//! incarnation of themselves. Several calls are composed in one transaction, and must return what the model
//! returns for the same calls in sequence.

#[cfg(test)]
mod bounds;
mod client;
mod composed;
mod model;
mod operations;
mod planted;
mod stage;

pub use model::Model;
pub use operations::{Act, ActAnswer, Answer, Batch, End, Handling, Manner, Name};

use crate::shared::{
    self, check_ended, compare, ended, in_turns, objection, one_call, session_keys, stamp, turned, unexpected,
};
use bytes::Bytes;
use client::{enqueued, refused};
use foundationdb_tuple::Subspace;
use futures::FutureExt;
use imbl::OrdMap;
use operations::{manner, some};
use planted::{BUGS, Planted};
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit, sessions,
    specimen::Recorded,
    workload::{Bug, Outcome, Step},
};
use shaketable_layers::{
    leased_queue::{Error, LeasedQueue, MAX_VALUE_BYTES},
    queue::{ItemId, Position},
};
use shaketable_sim::seed::Stream;
use shaketable_tx::{self as tx, Database, Db, Isolation::Serializable, Tx, once::Session};
use stage::{Stage, stored};
use std::{
    ops::{Range, RangeInclusive},
    time::Duration,
};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Leased {
    clients: usize,
    operations: Range<usize>,
    /// The weights of operations that enqueue, work, end leases, and look.
    mix: [u32; 4],
    /// The duration of a lease, in milliseconds.
    lease: u64,
    /// The maximum padding of values, in bytes.
    padding: u32,
    /// The number of leases that are read in one transaction.
    page: usize,
    /// The timeout that clients set on their database, in milliseconds.
    timeout: Option<i32>,
    planted: Option<Planted>,
}

fn leased() -> LeasedQueue {
    LeasedQueue::new(Subspace::from("leased"))
}

impl Leased {
    /// The duration of a lease.
    fn lease(&self) -> Duration {
        Duration::from_millis(self.lease)
    }
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Leased>()
}

/// Items worked at under leases: one holder at a time, one acknowledgement.
#[shaketable::workload(name = "leased_queue", session = Session<Db>, answer = Answer, model = Model)]
impl Leased {
    /// Enqueues an item.
    #[write(weight = 6 * self.mix[0], blind)]
    async fn enqueue(
        &self,
        session: &mut Session<Db>,
        #[draw(self.batch_or_full())] batch: Batch,
    ) -> Outcome<Answer> {
        enqueued(leased().enqueue_once(session, &batch.value()).await)
    }

    /// Claims an item and works on it, in this manner.
    #[write(weight = 4 * self.mix[1])]
    async fn work(&self, session: &mut Session<Db>, #[draw(manner())] manner: Manner) -> Outcome<Answer> {
        self.claim(session, manner).await
    }

    /// Ends the leases that are not renewed.
    #[write(weight = 4 * self.mix[2])]
    async fn expire(&self, session: &mut Session<Db>) -> Outcome<Answer> {
        match self.end_leases(session.database()).await {
            Ok(()) => Outcome::Answered(Answer::Expired),
            // Some of it may have happened, or may still happen; nothing depends on that.
            Err(e) => unexpected(&e, Outcome::Unknown),
        }
    }

    /// Counts the items that wait and those that are claimed, each up to this number.
    #[read(weight = 2 * self.mix[3])]
    async fn count(&self, session: &mut Session<Db>, #[draw(some(4))] most: usize) -> Outcome<Answer> {
        let counted = session
            .database()
            .run(|tx, _| async move { leased().len(&turned(&tx), most, Serializable).await })
            .await;
        counted.map_or_else(
            |e| refused(e.error),
            |(waiting, claimed)| Outcome::Answered(Answer::Count(waiting, claimed)),
        )
    }

    /// Performs several calls in one transaction.
    #[write(weight = 4 * self.mix[3])]
    async fn together(
        &self,
        session: &mut Session<Db>,
        #[draw(vec(self.act(), 1..6))] acts: Vec<Act>,
    ) -> Outcome<Answer> {
        let db = &session.database().clone();
        let (acts, ids) = (&acts, &acts.iter().map(|_| ItemId::draw(db.env())).collect::<Vec<_>>());
        let interleaved = self.planted == Some(Planted::Interleaved);
        let together = session.apply(|tx| async move {
            let perform = |n: usize, tx| {
                async move {
                    match (self.planted, &acts[n]) {
                        (
                            Some(planted @ (Planted::CountBeside | Planted::CountAtSnapshot)),
                            Act::Count(most),
                        ) => planted::count(planted, db, &tx, *most).await,
                        (_, act) => composed::perform(&tx, act, ids[n]).await,
                    }
                }
                .boxed()
            };
            in_turns(db.env(), &tx, acts.len(), interleaved, perform).await.map(Recorded)
        });
        ended(together.await, |Recorded(answers)| Answer::Together(answers), refused)
    }

    /// Tries to enqueue a value that exceeds the limit by this many bytes.
    #[write(rare)]
    async fn oversized(
        &self,
        session: &mut Session<Db>,
        #[draw(prop_oneof![Just(1u16), 1u16..500])] beyond: u16,
    ) -> Outcome<Answer> {
        let value = vec![0; MAX_VALUE_BYTES + usize::from(beyond)];
        enqueued(leased().enqueue_once(session, &value).await)
    }

    /// Enqueues into a queue whose prefix is so long that a key has the maximum length, or this many bytes
    /// more.
    #[write(rare)]
    async fn deep(&self, session: &mut Session<Db>, #[draw(0..2usize)] beyond: usize) -> Outcome<Answer> {
        let id = ItemId::draw(session.database().env());
        let deep = session.apply(|tx| async move {
            let tx = one_call(&tx, false).await;
            let queue = LeasedQueue::new(shared::deep(&tx, id, beyond).await?);
            let position = queue.enqueue(&tx, id, b"").await?;
            shared::fits(&tx, &id).await?;
            Ok::<_, Error>(position)
        });
        enqueued(deep.await)
    }

    fn number(op: &mut LeasedOp, client: usize, number: usize) {
        let named = |batch: &mut Batch, part: usize| {
            (batch.client, batch.number) = (client as u16, (number * 8 + part) as u16);
        };
        match op {
            LeasedOp::enqueue { batch } => named(batch, 0),
            LeasedOp::together { acts } => {
                for (part, act) in acts.iter_mut().enumerate() {
                    if let Act::Put(batch) = act {
                        named(batch, part);
                    }
                }
            }
            _ => {}
        }
    }

    /// Who works on an item claims it and then ends the lease, and may renew it meanwhile.
    fn effects(&self, op: &LeasedOp) -> RangeInclusive<usize> {
        match op {
            LeasedOp::work { .. } | LeasedOp::expire {} => 0..=usize::MAX,
            _ => 0..=1,
        }
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "leased_queue: a claim finds no item",
            "leased_queue: a lease ends",
            "leased_queue: who lost the lease is refused",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Leased {
        let lease = *rng.pick(&[0, 30, 30, 100, 100, 300, 300, 2_000]);
        // If leases are long, a few operations take all the available time.
        let most = if lease > 300 { 5 } else { rng.range(8..30) as usize };
        let mix = [rng.range(3..7), rng.range(3..9), rng.range(1..4), rng.range(1..4)];
        Leased {
            clients: rng.range(2..9) as usize,
            operations: most / 2..most,
            mix: mix.map(|w| w as u32),
            lease,
            padding: *rng.pick(&[0, 100, 3_000]),
            page: rng.range(0..4) as usize,
            timeout: sessions::draw_timeout(rng),
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let rows = (0..3)
            .flat_map(|part| (1..5).map(move |n| leased().subspace().subspace(&part).pack(&stamp(n)).into()));
        session_keys(self.clients).chain(rows).collect()
    }

    async fn open(&self, db: &Db, client: usize) -> tx::Result<Session<Db>> {
        sessions::open(db, client, self.timeout).await
    }

    async fn resolve_dropped(&self, session: &mut Session<Db>) {
        sessions::resolve_dropped(session, self.timeout).await;
    }

    async fn resolve(&self, session: &mut Session<Db>, op: &LeasedOp, error: tx::Error) -> Outcome<Answer> {
        sessions::resolve_unknown(session, self.timeout, error, async |session, pending| {
            let answer = match op {
                LeasedOp::together { .. } => {
                    session.resolve(pending).await?.map(|Recorded(answers)| Answer::Together(answers))
                }
                _ => session.resolve(pending).await?.map(|_: Position| Answer::Enqueued),
            };
            Ok(answer.map(Outcome::Answered))
        })
        .await
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        self.follow(model, step)
    }

    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        Ok(stored(tx).await?.and_then(|stage| stage.check()).map_err(Misfit::from))
    }

    /// All workers have stopped: every lease ends, and every item that was not acknowledged is there.
    async fn check(&self, db: &Db, model: &Model) -> tx::Result<Result<(), Misfit>> {
        if let Err(why) = objection(&model.told, |call, told| model.misled(call, told)) {
            return Ok(Err(why));
        }
        if let Err(e) = self.end_leases(db).await {
            return check_ended(&e);
        }
        let read = db.run(|tx, _| async move { stored(&tx).await }).await.map_err(|e| e.error)?;
        let Stage { waiting, claimed, leases } = model.stage.clone();
        let unheld = |(position, (token, revision, _))| (position, (token, revision, false));
        let expected = Stage {
            waiting: waiting.union(claimed),
            claimed: OrdMap::new(),
            leases: leases.into_iter().map(unheld).collect(),
        };
        Ok(read.map_err(Misfit::from).and_then(|stage| compare(&stage, &expected)))
    }
}
