//! `leased_queue`: workers claim, renew, acknowledge, are slow, give up, die.
//!
//! A worker's operation is several transactions, and others take his item back when he is silent for the
//! duration of a lease. The model follows what each transaction wrote: every one must be a step that the
//! queue allows, by who may do it: only the last claim of an item can be renewed, released or acknowledged,
//! and by the operation that made it. Each worker holds a timer beside his lease, so that one which was taken
//! from him before its end shows. Now and then a worker who was believed dead goes on beside his second
//! incarnation. Several calls are composed in one transaction, and answer what the model does one after the
//! other.

mod client;
mod composed;
mod model;
mod operations;
mod planted;
mod stage;

pub use model::Model;
pub use operations::{Act, Answer, Batch, End, Hand, Manner, Name, Op, Told};

use crate::catalogue::shared::{check_ended, compare, objection, session_keys, stamp};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    sessions::{self},
    specimen::Recorded,
    workload::{Bug, Outcome, Step, Workload},
};
use shaketable_layers::{
    leased_queue::LeasedQueue,
    once::Session,
    queue::Position,
    tx::{self, Database},
};
use shaketable_sim::seed::Stream;
use stage::stored;
use std::{ops::Range, time::Duration};

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Leased {
    clients: usize,
    operations: Range<usize>,
    /// How often an operation puts in, works, ends leases, looks.
    mix: [u32; 4],
    /// How long a lease is, milliseconds.
    lease: u64,
    /// Values are padded with up to so many bytes.
    padding: u32,
    /// How many leases are read in one transaction.
    page: usize,
    /// The timeout that clients set on their database, milliseconds.
    timeout: Option<i32>,
    planted: Option<Planted>,
}

fn leased() -> LeasedQueue {
    LeasedQueue::new(Subspace::from("leased"))
}

impl Leased {
    /// How many leases are read in one transaction.
    fn page(&self) -> usize {
        self.page
    }

    /// How long a lease is.
    fn lease(&self) -> Duration {
        Duration::from_millis(self.lease)
    }
}

impl Workload for Leased {
    type Op = Op;
    type Answer = Answer;
    type Session<D: Database> = Session<D>;
    type Model = Model;

    const NAME: &'static str = "leased_queue";
    const ABOUT: &'static str = "items worked at under leases: one holder at a time, one acknowledgement";
    const ONE_EFFECT: bool = false;

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
        // Where leases are long, a few operations take all the time that there is.
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

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Enqueue(_))
    }

    async fn open<D: Database>(&self, db: &D, client: usize) -> tx::Result<Session<D>> {
        sessions::open(db, client, self.timeout).await
    }

    async fn apply<D: Database>(&self, session: &mut Session<D>, op: &Op) -> Outcome<Answer> {
        self.perform(session, op).await
    }

    async fn recall<D: Database>(&self, session: &mut Session<D>) {
        sessions::read_dropped(session, self.timeout).await;
    }

    async fn resolve<D: Database>(
        &self,
        session: &mut Session<D>,
        op: &Op,
        error: tx::Error,
    ) -> Outcome<Answer> {
        sessions::settle(session, self.timeout, error, async |session, pending| {
            let answer = match op {
                Op::Together(_) => {
                    session.resolve(pending).await?.map(|Recorded(told)| Answer::Together(told))
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

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), String> {
        self.follow(model, step)
    }

    async fn audit<D: Database>(&self, tx: &D::Transaction) -> tx::Result<Result<(), String>> {
        Ok(stored(tx).await?.and_then(|stage| stage.check()))
    }

    /// Nobody works any more: every lease ends, and everything is there that nobody has acknowledged.
    async fn check<D: Database>(&self, db: &D, model: &Model) -> tx::Result<Result<(), String>> {
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
        Ok(read.and_then(|stage| compare(&stage, &expected)))
    }
}
