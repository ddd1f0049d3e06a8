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
pub use operations::{Answer, Known};
pub use register::Refusal;

use crate::shared::{self, objection};
use bytes::Bytes;
use client::{Ended, ended, refused};
use operations::{Long, RecordedAnswer, known, too_long};
use planted::{BUGS, Planted};
use proptest::prelude::*;
use register::register;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    sessions::{self, slots},
    workload::{Bug, Outcome, Step},
};
use shaketable_sim::{proto::Mutation, seed::Stream};
use shaketable_tx::{
    self as tx, Database, DatabaseOption, Db,
    Isolation::Serializable,
    Transaction, Tx,
    once::{OpId, Session, converging, resolve},
};
use slot::Slot;
use std::{
    ops::{Range, RangeInclusive},
    time::Duration,
};

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

impl SessionsOp {
    /// What it adds to the register that it reads.
    fn adds(&self) -> Option<i8> {
        match *self {
            SessionsOp::too_large { by, .. }
            | SessionsOp::add { by }
            | SessionsOp::manual { by, .. }
            | SessionsOp::disturbed { by, .. }
            | SessionsOp::cut { by, .. }
            | SessionsOp::keep { by } => Some(by),
            _ => None,
        }
    }

    /// Whether it begins an operation of the session.
    fn begins(&self) -> bool {
        self.adds().is_some() || matches!(self, SessionsOp::blind { .. } | SessionsOp::burst { .. })
    }
}

/// The exactly-once mechanism by every way into it, two processes as one client.
#[shaketable::workload(name = "session", session = Client, answer = Answer, model = Model)]
impl Sessions {
    /// Draws a number to add.
    #[draws(by)]
    fn by() -> impl Strategy<Value = i8> {
        (-9i8..10).prop_filter("something to add", |by| *by != 0)
    }

    /// Adds, with an answer that no slot can hold.
    #[write]
    async fn too_large(&self, client: &mut Client, by: i8, #[draw(too_long())] answer: Long) -> Ended {
        let number = client.number;
        let added = client.session().await?.apply(|tx| async move {
            register::add(&tx, number, by).await?;
            Ok(answer)
        });
        // What is applied against its promise is what the model refuses.
        let applied = |_| Answer::Applied(by.into(), [0; 10]);
        Ok(shared::ended(added.await, applied, |refusal: Refusal| Outcome::Answered(refused(refusal))))
    }

    /// Begins a new incarnation.
    #[write(weight = 2)]
    async fn open_session(&self, client: &mut Client) -> Result<Answer, Answer> {
        client.dropped = None;
        let opened = Session::open(&client.db, &slots(), client.number).await;
        let session = client.session.insert(opened.map_err(refused)?);
        let last = session.last::<RecordedAnswer>().map_err(refused)?;
        Ok(Answer::Opened(last.map(|(op, fate)| (op, known(fate)))))
    }

    /// Reads the register and adds, unless the result would exceed the bound, which refuses the operation.
    #[write(weight = 12)]
    async fn add(&self, client: &mut Client, by: i8) -> Ended {
        let number = client.number;
        let session = client.session().await?;
        Ok(ended(session.apply(|tx| async move { register::add(&tx, number, by).await }).await))
    }

    /// Adds without a read.
    #[write(weight = 8)]
    async fn blind(&self, client: &mut Client, by: i8) -> Ended {
        let number = client.number;
        let session = client.session().await?;
        Ok(ended(session.apply(|tx| async move { Ok(register::blind(&tx, number, by)) }).await))
    }

    /// Adds in a retry loop of its own, with this retry limit.
    #[write(weight = 10)]
    async fn manual(&self, client: &mut Client, by: i8, #[draw(-1i32..4)] limit: i32) -> Ended {
        Ok(ways::manual(client.session().await?, by, limit).await)
    }

    /// Adds, and uses a clone of the transaction after this many tenths of a millisecond.
    #[write(weight = 6)]
    async fn disturbed(&self, client: &mut Client, by: i8, #[draw(0u8..80)] after: u8) -> Ended {
        let (number, after) = (client.number, Duration::from_micros(100 * u64::from(after)));
        Ok(ways::disturbed(client.session().await?, number, by, after).await)
    }

    /// Adds, and drops the future of the commit after this many polls.
    #[write(weight = 6)]
    async fn cut(&self, client: &mut Client, by: i8, #[draw(0u8..12)] polls: u8) -> Ended {
        Ok(ways::cut(client.session().await?, by, polls).await.unwrap_or_else(|op| {
            client.dropped = Some(op);
            Outcome::Unknown(tx::Error::OPERATION_CANCELLED)
        }))
    }

    /// Prepares to add, and keeps the transaction.
    #[write(weight = 4)]
    async fn keep(&self, client: &mut Client, by: i8) -> Ended {
        let (op, tx, _) = ways::prepared(client.session().await?, by).await.map_err(refused)?;
        (client.kept, client.dropped) = (Some(tx), Some(op));
        Ok(Outcome::Unknown(tx::Error::OPERATION_CANCELLED))
    }

    /// Commits the transaction that was kept.
    #[write(weight = 4)]
    async fn late(&self, client: &mut Client) -> Outcome<Answer> {
        if let Some(tx) = client.kept.take() {
            // The model decides whether it may commit.
            let _ = tx.commit().await;
        }
        Outcome::Answered(Answer::Nothing)
    }

    /// This many operations that add one or subtract it, one after the other.
    #[write]
    async fn burst(
        &self,
        client: &mut Client,
        #[draw(self.burst / 2..self.burst + 1)] count: u16,
    ) -> Result<Answer, Answer> {
        let number = client.number;
        Ok(ways::burst(client.session().await?, number, count).await)
    }

    /// Resolves the pending operation, with the session if true, and otherwise as another process would.
    #[write(weight = 6)]
    async fn settle(
        &self,
        client: &mut Client,
        #[draw(any::<bool>())] by_session: bool,
    ) -> Result<Answer, Answer> {
        if by_session {
            client.dropped = None;
        }
        let session = client.session().await?;
        // The operation that was reported as unknown, or the one that was not reported at all.
        let Some(op) = session.unknown().or(session.pending()) else { return Ok(Answer::Nothing) };
        let fate = match by_session {
            true => session.resolve(op).await,
            false => resolve(session.database(), session.slots(), op).await,
        };
        Ok(Answer::Fate(op, known(fate.map_err(refused)?)))
    }

    /// Resolves the operation with this incarnation and number, as another process would.
    #[write]
    async fn ask(
        &self,
        client: &mut Client,
        #[draw(1u8..5)] epoch: u8,
        #[draw(1u8..12)] seq: u8,
    ) -> Result<Answer, Answer> {
        let op = OpId { client: client.number, epoch: epoch.into(), seq: seq.into() };
        let fate = resolve(&client.db, &slots(), op).await;
        Ok(Answer::Fate(op, known(fate.map_err(refused)?)))
    }

    /// Reads the operation that the session has resolved by itself.
    #[read(weight = 4)]
    async fn settled(&self, client: &mut Client) -> Result<Answer, Answer> {
        let settled = client.session().await?.settled::<RecordedAnswer>().map_err(refused)?;
        Ok(settled.map_or(Answer::Nothing, |(op, fate)| Answer::Fate(op, known(fate))))
    }

    /// Reads the slot and the register.
    #[read(weight = 6)]
    async fn look(&self, client: &mut Client) -> Result<Answer, Answer> {
        let (slot, own) = (&slots().key(client.number), &register(client.number));
        let seen = client.db.run(|tx, _| async move {
            let sum = tx.get(own, Serializable).await?;
            Ok::<_, tx::Error>((sum, tx.get(slot, Serializable).await?))
        });
        let (sum, value) = seen.await.map_err(|e| refused(e.error))?;
        let ruled_out = value.map(|value| slots().is_fence(slot, &value));
        Ok(Answer::Seen(register::number(sum), ruled_out))
    }

    /// Writes a mark, which may happen twice.
    #[write(weight = 2)]
    async fn mark(&self, client: &mut Client, #[draw(any::<u8>())] byte: u8) -> Outcome<Answer> {
        let key = &register::mark(client.run);
        let marked = converging(&client.db, |tx| async move {
            tx.set(key, &[byte]);
            Ok::<_, tx::Error>(())
        });
        match marked.await {
            Err(e) if e.maybe_committed => Outcome::Unknown(e.error),
            Err(e) => Outcome::Answered(refused(e.error)),
            Ok(()) => Outcome::Answered(Answer::Nothing),
        }
    }

    /// Each write to a slot is followed.
    fn is_effect(&self, _: &[Mutation]) -> bool {
        true
    }

    /// A failure to open, or to begin, does not resolve the last attempt at it. A burst does not resolve
    /// those of its operations that it does not count.
    fn is_given_up(&self, op: &SessionsOp) -> bool {
        matches!(op, SessionsOp::cut { .. } | SessionsOp::keep { .. })
    }

    fn may_land_late(&self, answer: &Answer) -> bool {
        matches!(answer, Answer::Failed(_) | Answer::Burst(_))
    }

    /// What an operation does to a slot is an effect as well: it begins, is fenced, or is repeated on
    /// purpose.
    fn effects(&self, _: &SessionsOp) -> RangeInclusive<usize> {
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

    fn keys(&self) -> Vec<Bytes> {
        let numbers = 0..self.clients as u64;
        numbers.flat_map(|client| [slots().key(client), register(client)]).collect()
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

    async fn apply_planted(&self, client: &mut Client, op: &SessionsOp) -> Option<Outcome<Answer>> {
        let dropped = client.dropped;
        let wrong = planted::apply(self.planted?, client, op).await;
        let outcome = wrong.unwrap_or_else(|answer| Some(Outcome::Answered(answer)))?;
        Some(Sessions::resolve_dropped(client, op, dropped, outcome).await)
    }

    async fn apply(&self, client: &mut Client, op: &SessionsOp) -> Outcome<Answer> {
        let dropped = client.dropped;
        let outcome = self.perform(client, op).await;
        Sessions::resolve_dropped(client, op, dropped, outcome).await
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
            .flat_map(|client| [slots().key(client as u64), register(client as u64), register::mark(client)]);
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
