//! `staged_queue`: many concurrent dequeues, served in order, while clients die, leave and never come back.
//!
//! A dequeue is several transactions, some of which serve other clients. The model therefore follows what
//! each transaction wrote. Every transaction must be a step that the queue allows: it appends, takes, parks,
//! collects or brings back an item, or registers or leaves a request. The order must be the promised one, and
//! each operation must return the result of its own steps. Some clients leave their request as if they had
//! died. If a dequeue is dropped while its client lives, what it was given belongs to the client's next
//! dequeue. A request is also read, served, collected and left in one transaction, which sees what it has
//! done itself.

#[cfg(test)]
mod bounds;
mod client;
mod composed;
#[cfg(test)]
mod documents;
mod model;
mod operations;
mod planted;
mod stage;

pub use client::Client;
pub use model::Model;
pub use operations::{Answer, Batch, Deal, Dealt, Name, Op, Part, PartAnswer};

use crate::shared::{check_ended, compare, objection, session_keys, stamp};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit, sessions,
    specimen::Recorded,
    workload::{Bug, Outcome, Step, Workload},
};
use shaketable_layers::{queue::Position, staged_queue::StagedQueue};
use shaketable_sim::seed::Stream;
use shaketable_tx::{self as tx, Database, Db, Tx};
use stage::{Stage, stored};
use std::{
    collections::BTreeMap,
    ops::{Range, RangeInclusive},
};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Staged {
    clients: usize,
    operations: Range<usize>,
    /// The weights of operations that enqueue, dequeue, leave, reclaim, look, and do several things at once.
    mix: [u32; 6],
    /// How long a parked item is watched before it is brought back, in milliseconds.
    patience: u64,
    /// The maximum padding of values, in bytes.
    padding: u16,
    /// Whether more requests may wait, and more items be there, than one transaction serves and moves.
    crowded: bool,
    /// The timeout that clients set on their database, in milliseconds.
    timeout: Option<i32>,
    planted: Option<Planted>,
}

fn staged() -> StagedQueue {
    StagedQueue::new(Subspace::from("staged"))
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Staged>()
}

impl Workload for Staged {
    type Op = Op;
    type Answer = Answer;
    type Session = Client;
    type Model = Model;

    const NAME: &'static str = "staged_queue";
    const ABOUT: &'static str = "dequeues that register and serve each other, in order, while clients die";

    /// A client that leaves does not know the fate of its request, and a dequeue that failed may have served
    /// others.
    fn may_land_late(&self, answer: &Answer) -> bool {
        matches!(answer, Answer::Away | Answer::Failed(_))
    }

    /// A dequeue registers, serves others, and collects what it was given.
    fn effects(&self, op: &Op) -> RangeInclusive<usize> {
        match op {
            Op::Enqueue(_) | Op::Together(_) | Op::Oversized(_) | Op::Deep(_) => 0..=1,
            _ => 0..=usize::MAX,
        }
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "staged_queue: a dequeue finds others waiting",
            "staged_queue: several requests are served at once",
            "staged_queue: more wait than one transaction moves items for",
            "staged_queue: a request is told that there is no item",
            "staged_queue: a client leaves while it waits",
            "staged_queue: an item comes back",
            "staged_queue: a dequeue finds what a dropped one was given",
            "staged_queue: a dequeue gives up and finds what it was given",
        ]
    }

    fn is_given_up(&self, op: &Op) -> bool {
        matches!(op, Op::Cut(..))
    }

    fn rare_kinds() -> &'static [&'static str] {
        &["Deep", "Oversized"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Staged {
        let most = rng.range(8..30) as usize;
        let rare = [(); 4].map(|()| rng.range(1..4));
        let mix = [rng.range(4..12), rng.range(4..12), rare[0], rare[1], rare[2], rare[3]];
        let mut drawn = Staged {
            clients: rng.range(2..10) as usize,
            operations: most / 2..most,
            mix: mix.map(|w| w as u32),
            patience: *rng.pick(&[1, 5, 30, 200]),
            padding: *rng.pick(&[0, 100, 3_000]),
            crowded: rng.chance(0.1),
            timeout: sessions::draw_timeout(rng),
            planted: bug.and_then(Planted::named),
        };
        if drawn.crowded {
            // A transaction that moves a megabyte takes longer than a short timeout, and would be repeated
            // for ever.
            drawn.timeout = drawn.timeout.filter(|milliseconds| *milliseconds >= 1_000);
        }
        drawn
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        let rows = (0..2)
            .flat_map(|part| (1..6).map(move |n| staged().subspace().subspace(&part).pack(&stamp(n)).into()));
        let parked = |n: u8| staged().subspace().subspace(&2).pack(&TupleBytes::from(&[n][..])).into();
        session_keys(self.clients).chain(rows).chain([64, 128, 192].map(parked)).collect()
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

    async fn open(&self, db: &Db, client: usize) -> tx::Result<Client> {
        let session = sessions::open(db, client, self.timeout).await?;
        Ok(Client { session, calls: 0, open: None })
    }

    async fn apply_planted(&self, client: &mut Client, op: &Op) -> Option<Outcome<Answer>> {
        client.begins(op);
        let wrong = planted::apply(self.planted?, self, &mut client.session, op);
        let outcome = match op {
            Op::Cut(polls) => match sessions::polled(u64::from(*polls), wrong).await {
                Some(outcome) => outcome?,
                None => return Some(Outcome::Unknown(tx::Error::OPERATION_CANCELLED)),
            },
            _ => wrong.await?,
        };
        Some(client.ends(op, outcome))
    }

    async fn apply(&self, client: &mut Client, op: &Op) -> Outcome<Answer> {
        self.perform(client, op).await
    }

    async fn resolve_dropped(&self, client: &mut Client) {
        sessions::resolve_dropped(&mut client.session, self.timeout).await;
    }

    async fn resolve(&self, client: &mut Client, op: &Op, error: tx::Error) -> Outcome<Answer> {
        if op.dequeues() {
            // It may have registered a request, with which the next dequeue of the session continues.
            return Outcome::Unknown(error);
        }
        sessions::resolve_unknown(&mut client.session, self.timeout, error, async |session, pending| {
            let enqueued = || Outcome::Answered(Answer::Enqueued);
            Ok(match op {
                Op::Enqueue(Batch { items: 1, .. }) => {
                    session.resolve(pending).await?.map(|_: Position| enqueued())
                }
                Op::Together(_) => {
                    let parts = session.resolve(pending).await?;
                    parts.map(|Recorded(answers)| Outcome::Answered(Answer::Parts(answers)))
                }
                _ => session.resolve(pending).await?.map(|()| enqueued()),
            })
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

    /// Clients that are dead do not return: what was parked for them is brought back, and every item that was
    /// not given to a client must be there.
    async fn check(&self, db: &Db, model: &Model) -> tx::Result<Result<(), Misfit>> {
        if let Err(why) = objection(&model.told, |call, told| model.misled(call, told)) {
            return Ok(Err(why));
        }
        if let Err(e) = self.reclaim(db).await {
            return check_ended(&e);
        }
        let read = db.run(|tx, _| async move { stored(&tx).await }).await.map_err(|e| e.error)?;
        let expected = Stage {
            items: model.stage.remaining(),
            requests: model.stage.requests.clone(),
            parked: BTreeMap::new(),
        };
        Ok(read.map_err(Misfit::from).and_then(|stage| compare(&stage, &expected)))
    }
}
