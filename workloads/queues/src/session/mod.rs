//! `session`: the exactly-once mechanism itself, by every way into it, while two processes act as the same
//! client.
//!
//! Each client of the mechanism has a register. In some seeds two clients of the run have the same number, as
//! when a process that was believed dead continues; then the last one to open a session supersedes the other.
//! Operations are dropped, kept and committed long afterwards, disturbed, limited in their retries, and
//! resolved by other processes. The model follows what each transaction wrote to the slots: an incarnation
//! begins, or an operation is applied or ruled out, and each follows all earlier ones. At the end, everything
//! that was returned about an operation's fate is compared with what happened.

mod client;
#[cfg(test)]
mod documents;
mod model;
mod operations;
mod planted;
mod register;
mod slot;
mod ways;

pub use client::Client;
pub use model::Model;
pub use operations::{Answer, Known, Op};
pub use register::Refusal;

use crate::shared::objection;
use bytes::Bytes;
use planted::{BUGS, Planted};
use proptest::prelude::*;
use register::{mark, register};
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    sessions::{self, slots},
    workload::{Bug, Outcome, Step, Workload},
};
use shaketable_sim::{proto::Mutation, seed::Stream};
use shaketable_tx::{self as tx, Database, DatabaseOption, Db, Isolation::Serializable, Transaction, Tx};
use slot::Slot;
use std::ops::{Range, RangeInclusive};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sessions {
    clients: usize,
    operations: Range<usize>,
    /// Whether two clients each have the same number.
    twins: bool,
    /// The maximum number of operations in a burst.
    burst: u16,
    /// The timeout that clients set on their database, in milliseconds.
    timeout: Option<i32>,
    /// The retry limit that clients set on their database.
    retries: Option<i32>,
    planted: Option<Planted>,
}

impl Sessions {
    fn number(&self, client: usize) -> u64 {
        (if self.twins { client / 2 } else { client }) as u64
    }
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Sessions>()
}

impl Workload for Sessions {
    type Op = Op;
    type Answer = Answer;
    type Session = Client;
    type Model = Model;

    const NAME: &'static str = "session";
    const ABOUT: &'static str =
        "the exactly-once mechanism by every way into it, two processes as one client";
    // But for the answer, which is the same at each place.
    const MISFIT_KEEPS_MODEL: bool = true;

    /// Each write to a slot is followed.
    fn is_effect(&self, _: &[Mutation]) -> bool {
        true
    }

    /// A failure to open, or to begin, does not resolve the last attempt at it. A burst does not resolve
    /// those of its operations that it does not count.
    fn is_given_up(&self, op: &Op) -> bool {
        matches!(op, Op::Cut(..) | Op::Keep(_))
    }

    fn may_land_late(&self, answer: &Answer) -> bool {
        matches!(answer, Answer::Failed(_) | Answer::Burst(_))
    }

    /// What an operation does to a slot is an effect as well: it begins, is fenced, or is repeated on
    /// purpose.
    fn effects(&self, _: &Op) -> RangeInclusive<usize> {
        0..=usize::MAX
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "once: a client comes back",
            "once: a retry finds its operation recorded",
            "once: a refusal needs a fence",
            "once: an unknown operation is ruled out",
            "once: an unknown operation turns out applied",
            "once: a session settles what had been applied",
            "once: a session refuses to begin after a dropped operation",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Sessions {
        let most = rng.range(10..50) as usize;
        Sessions {
            clients: rng.range(2..7) as usize,
            operations: most / 2..most,
            twins: rng.chance(0.6),
            burst: if rng.chance(0.15) { 300 } else { 5 },
            timeout: sessions::draw_timeout(rng),
            retries: rng.chance(0.4).then(|| *rng.pick(&[0, 1, 3, 10])),
            planted: bug.and_then(Planted::named),
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        let numbers = 0..self.clients as u64;
        numbers.flat_map(|client| [slots().key(client), register(client)]).collect()
    }

    fn operations(&self, _: usize) -> BoxedStrategy<Vec<Op>> {
        self.drawn()
    }

    fn length(&mut self) -> Option<&mut Range<usize>> {
        Some(&mut self.operations)
    }

    async fn open(&self, db: &Db, client: usize) -> tx::Result<Client> {
        if let Some(timeout) = self.timeout {
            db.set_option(DatabaseOption::TransactionTimeout(timeout))?;
        }
        if let Some(retries) = self.retries {
            db.set_option(DatabaseOption::TransactionRetryLimit(retries))?;
        }
        Ok(Client {
            db: db.clone(),
            number: self.number(client),
            run: client,
            session: None,
            kept: None,
            dropped: None,
        })
    }

    async fn apply_planted(&self, client: &mut Client, op: &Op) -> Option<Outcome<Answer>> {
        let dropped = client.dropped;
        let wrong = planted::apply(self.planted?, client, op).await;
        let outcome = wrong.unwrap_or_else(|answer| Some(Outcome::Answered(answer)))?;
        Some(Sessions::resolve_dropped(client, op, dropped, outcome).await)
    }

    async fn apply(&self, client: &mut Client, op: &Op) -> Outcome<Answer> {
        let dropped = client.dropped;
        let outcome = self.perform(client, op).await.unwrap_or_else(Outcome::Answered);
        Sessions::resolve_dropped(client, op, dropped, outcome).await
    }

    fn model(&self) -> Model {
        Model::default()
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        if let Some(answer) = step.answer {
            model.told.insert((step.client, step.index), answer.clone());
        }
        let client = self.number(step.client);
        if step.committed {
            return model.commit(client, step);
        }
        match model.fits(client, step)? {
            true => Ok(()),
            false => Err(format!(
                "returned {:?}, but the slot is {:?} and the register {}",
                step.answer,
                model.slot(client)?,
                model.register(client)
            )
            .into()),
        }
    }

    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        for client in 0..self.clients as u64 {
            let slot = tx.get(&slots().key(client), Serializable).await?;
            if let Some(Err(why)) = slot.as_ref().map(Slot::of) {
                return Ok(Err(why.into()));
            }
        }
        Ok(Ok(()))
    }

    async fn check(&self, db: &Db, model: &Model) -> tx::Result<Result<(), Misfit>> {
        if let Err(why) = objection(&model.told, |call, told| model.misled(call, told)) {
            return Ok(Err(why));
        }
        let rows = &model.rows;
        let keys = (0..self.clients)
            .flat_map(|client| [slots().key(client as u64), register(client as u64), mark(client)]);
        let keys: Vec<Bytes> = keys.collect();
        let keys = &keys;
        let differs = db.run(|tx, _| async move {
            for key in keys {
                let value = tx.get(key, Serializable).await?;
                if value.as_ref() != rows.0.get(key) {
                    return Ok::<_, tx::Error>(Err(format!("{key:?} has the value {value:?}").into()));
                }
            }
            Ok(Ok(()))
        });
        differs.await.map_err(|e| e.error)
    }
}
