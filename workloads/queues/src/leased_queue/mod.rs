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
pub use operations::{Act, ActAnswer, Answer, Batch, End, Hand, Manner, Name, Op};

use crate::shared::{check_ended, compare, objection, session_keys, stamp};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit, sessions,
    specimen::Recorded,
    workload::{Bug, Outcome, Step, Workload},
};
use shaketable_layers::{leased_queue::LeasedQueue, queue::Position};
use shaketable_sim::seed::Stream;
use shaketable_tx::{self as tx, Database, Db, Tx, once::Session};
use stage::stored;
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

impl Workload for Leased {
    type Op = Op;
    type Answer = Answer;
    type Session = Session<Db>;
    type Model = Model;

    const NAME: &'static str = "leased_queue";
    const ABOUT: &'static str = "items worked at under leases: one holder at a time, one acknowledgement";

    /// Who works on an item claims it and then ends the lease, and may renew it meanwhile.
    fn effects(&self, op: &Op) -> RangeInclusive<usize> {
        match op {
            Op::Work(_) | Op::Expire => 0..=usize::MAX,
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

    fn rare_kinds() -> &'static [&'static str] {
        &["Deep", "Oversized"]
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

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        let rows = (0..3)
            .flat_map(|part| (1..5).map(move |n| leased().subspace().subspace(&part).pack(&stamp(n)).into()));
        session_keys(self.clients).chain(rows).collect()
    }

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<Op>> {
        self.drawn(client)
    }

    fn length(&mut self) -> Option<&mut Range<usize>> {
        Some(&mut self.operations)
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Enqueue(_))
    }

    async fn open(&self, db: &Db, client: usize) -> tx::Result<Session<Db>> {
        sessions::open(db, client, self.timeout).await
    }

    async fn apply(&self, session: &mut Session<Db>, op: &Op) -> Outcome<Answer> {
        self.perform(session, op).await
    }

    async fn resolve_dropped(&self, session: &mut Session<Db>) {
        sessions::resolve_dropped(session, self.timeout).await;
    }

    async fn resolve(&self, session: &mut Session<Db>, op: &Op, error: tx::Error) -> Outcome<Answer> {
        sessions::resolve_unknown(session, self.timeout, error, async |session, pending| {
            let answer = match op {
                Op::Together(_) => {
                    session.resolve(pending).await?.map(|Recorded(answers)| Answer::Together(answers))
                }
                _ => session.resolve(pending).await?.map(|_: Position| Answer::Enqueued),
            };
            Ok(answer.map(Outcome::Answered))
        })
        .await
    }

    fn model(&self) -> Model {
        Model::default()
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
        if let Err(e) = self.expire(db).await {
            return check_ended(&e);
        }
        let read = db.run(|tx, _| async move { stored(&tx).await }).await.map_err(|e| e.error)?;
        let mut expected = model.stage.clone();
        expected.waiting.append(&mut expected.claimed);
        expected.leases.values_mut().for_each(|(_, _, held)| *held = false);
        Ok(read.map_err(Misfit::from).and_then(|stage| compare(&stage, &expected)))
    }
}
