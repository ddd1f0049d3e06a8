//! A staged queue's operations that are more than one transaction.

use super::{Error, StagedQueue, Taken, Turn};
use crate::{
    once::{Check, Fate, Landing, Outcome, Session, check, record},
    queue::{Item, ItemId, Position},
    tx::{Database, Env, Isolation, RetryError, RunError},
};
use std::{collections::BTreeSet, time::Duration};

/// So many requests are served in one transaction.
const MOST_REQUESTS: usize = 100;

/// Who waits looks again after about so long.
const PAUSE: Duration = Duration::from_millis(10);

impl StagedQueue {
    /// [`enqueue`](StagedQueue::enqueue), exactly once.
    pub fn enqueue_once<D: Database>(
        &self,
        session: &mut Session<D>,
        value: &[u8],
    ) -> impl Future<Output = Outcome<Position, Error>> + Send {
        crate::called!();
        async move {
            let id = ItemId::draw(session.database().env());
            session.apply(|tx| async move { self.enqueue(&tx, id, value).await }).await
        }
    }

    /// The first step of a dequeue, exactly once: the first attempt [takes](StagedQueue::take) an item if
    /// nobody waits; when that does not come through, the next one [registers](StagedQueue::register).
    ///
    /// All attempts are one operation with one record: when an attempt that took an item was applied unseen,
    /// the next one finds it recorded and does not ask for another.
    pub fn ask<D: Database>(
        &self,
        session: &mut Session<D>,
    ) -> impl Future<Output = Outcome<Taken, Error>> + Send {
        crate::called!();
        async move {
            let (db, slots) = (session.database().clone(), session.slots().clone());
            let ticket = ItemId::draw(db.env());
            let op = match session.begin().await {
                Ok(op) => op,
                Err(e) => return Outcome::Refused(lift(e)),
            };
            let slots = &slots;
            let ran = db
                .run(|tx, attempt| async move {
                    match check(&tx, slots, op).await.map_err(lift)? {
                        Check::Done(taken) => Ok(Landing::ready(taken)),
                        Check::New(permit) => {
                            let taken = match attempt.number {
                                0 => self.take(&tx, ticket).await?,
                                _ => self.register(&tx, ticket).await?,
                            };
                            record(&tx, permit, taken).map_err(lift)
                        }
                    }
                })
                .await;
            session.conclude(op, ran).await
        }
    }

    /// Waits until a request is served, serving all there are meanwhile, and collects what it was given:
    /// [`Turn::Given`], or [`Turn::Gone`] when it was reclaimed in between. FoundationDB's errors are waited
    /// out; what this answers is certain.
    pub fn take_turn<D: Database>(
        &self,
        session: &mut Session<D>,
        request: Position,
    ) -> impl Future<Output = Result<Turn, Error>> + Send {
        crate::called!();
        async move {
            let db = session.database().clone();
            loop {
                let look = db.run(|tx, _| async move { self.turn(&tx, request, Isolation::Snapshot).await });
                match look.await {
                    Ok(Turn::Waiting) => match self.fulfil_all(&db).await {
                        // Served, perhaps with this request.
                        Ok(1..) => {}
                        Ok(0) => pause(db.env()).await,
                        Err(e) if e.error.fdb().is_some() => pause(db.env()).await,
                        Err(e) => return Err(e.error),
                    },
                    Ok(Turn::Gone) => return Ok(Turn::Gone),
                    Ok(Turn::Given(_)) => match self.collect_known(session, request).await? {
                        Some(turn) => return Ok(turn),
                        None => pause(db.env()).await,
                    },
                    Err(e) if e.error.fdb().is_some() => pause(db.env()).await,
                    Err(e) => return Err(e.error),
                }
            }
        }
    }

    /// Removes the first item, or answers that there is none, exactly once. Waits for its turn however long
    /// that takes. [`Outcome::Unknown`] can only be the first step: resolve it as [`Taken`], and
    /// [`take_turn`](StagedQueue::take_turn) if it waits.
    pub fn dequeue<D: Database>(
        &self,
        session: &mut Session<D>,
    ) -> impl Future<Output = Outcome<Option<Item>, Error>> + Send {
        crate::called!();
        async move {
            loop {
                let request = match self.ask(session).await {
                    Outcome::Applied(Taken::Now(item)) => return Outcome::Applied(item),
                    Outcome::Applied(Taken::Waiting(request)) => request,
                    Outcome::Refused(e) => return Outcome::Refused(e),
                    Outcome::Unknown(op) => return Outcome::Unknown(op),
                };
                match self.take_turn(session, request).await {
                    Ok(Turn::Given(item)) => return Outcome::Applied(item),
                    Ok(Turn::Gone | Turn::Waiting) => {}
                    Err(e) => return Outcome::Refused(e),
                }
            }
        }
    }

    /// [`fulfil`](StagedQueue::fulfil) for as many requests as fit into one transaction. To be repeated at
    /// will: what an attempt applied unseen has served is served.
    pub fn fulfil_all<D: Database>(
        &self,
        db: &D,
    ) -> impl Future<Output = Result<usize, RunError<Error>>> + Send {
        crate::called!();
        async move { db.run(|tx, _| async move { self.fulfil(&tx, MOST_REQUESTS).await }).await }
    }

    /// Watches what is parked for as long as `patience`, by this process's own timer, and
    /// [reclaims](StagedQueue::reclaim) what nobody has collected. Answers how much that was.
    pub fn reclaim_unchanged<D: Database>(
        &self,
        db: &D,
        patience: Duration,
    ) -> impl Future<Output = Result<usize, RunError<Error>>> + Send {
        crate::called!();
        async move {
            let parked = || db.run(|tx, _| async move { self.parked(&tx, Isolation::Snapshot).await });
            let before: BTreeSet<ItemId> = parked().await?.into_iter().collect();
            if before.is_empty() {
                return Ok(0);
            }
            db.env().sleep(patience).await;
            let mut reclaimed = 0;
            for ticket in parked().await?.into_iter().filter(|ticket| before.contains(ticket)) {
                let back = db.run(|tx, _| async move { self.reclaim(&tx, ticket).await }).await?;
                reclaimed += usize::from(back);
            }
            Ok(reclaimed)
        }
    }

    /// [`collect`](StagedQueue::collect), until its outcome is certain; `None` when it was not applied.
    fn collect_known<D: Database>(
        &self,
        session: &mut Session<D>,
        request: Position,
    ) -> impl Future<Output = Result<Option<Turn>, Error>> + Send {
        async move {
            match self.collect_once(session, request).await {
                Outcome::Applied(turn) => return Ok(Some(turn)),
                Outcome::Refused(e) if e.fdb().is_some() => return Ok(None),
                Outcome::Refused(e) => return Err(e),
                Outcome::Unknown(_) => {}
            }
            while let Some(op) = session.pending() {
                match session.resolve::<Turn>(op).await {
                    Ok(Fate::Applied(turn)) => return Ok(Some(turn)),
                    Ok(Fate::NotApplied | Fate::Forgotten) => return Ok(None),
                    Err(e) if e.fdb().is_some() => pause(session.database().env()).await,
                    Err(e) => return Err(lift(e)),
                }
            }
            Ok(None)
        }
    }
}

once_forms! { impl StagedQueue, Error {
    collect_once = collect(request: Position) -> Turn;
    leave_once = leave(request: Position) -> Turn;
} }

/// Waits for about [`PAUSE`]; those who began together do not look again together.
async fn pause(env: &Env) {
    let part = env.random_u64() % PAUSE.as_micros() as u64;
    env.sleep(PAUSE / 2 + Duration::from_micros(part)).await;
}

fn lift(error: crate::once::Error) -> Error {
    error.fdb().map_or_else(|| error.into(), Error::Fdb)
}
