//! A staged queue's operations that are more than one transaction.
//!
//! A dequeue is several transactions, and its future may be dropped between any two of them or in the middle
//! of one. Where it stands is therefore noted in its session ([`Unfinished`](crate::once::Session)): nothing
//! yet, or its request. The next dequeue of the session goes on from there.

use super::{Error, Request, Served, StagedQueue, Taken, Turn};
use crate::{
    once::{self, Answer, Fate, Outcome, Session},
    queue::{Item, ItemId, Position},
    reachable,
    tx::{self, Database, Env, Isolation, RetryError, RunError},
};
use bytes::Bytes;
use futures::future::{Either, select};
use std::{collections::BTreeSet, pin::pin, time::Duration};

/// So many requests are served in one transaction.
const MOST_REQUESTS: usize = 100;

/// Who waits looks again after about so long.
const PAUSE: Duration = Duration::from_millis(10);

/// Who gives up tries to leave so often, with a pause after each failure.
const MOST_LEAVES: u32 = 1_000;

impl StagedQueue {
    /// [`enqueue`](StagedQueue::enqueue), exactly once.
    ///
    /// Dropping the future: as with [`Session::apply`].
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
    /// nobody waits; when that does not come through, the next one [registers](StagedQueue::register). Never
    /// answers [`Turn::Gone`].
    ///
    /// All attempts are one operation with one record: when an attempt that took an item was applied unseen,
    /// the next one finds it recorded and does not ask for another.
    ///
    /// Dropping the future: what it came to is answered by the session's next `ask` or
    /// [`dequeue`](StagedQueue::dequeue), which begin with what is unfinished. Whoever has an answer of
    /// [`Turn::Waiting`] has to [wait](StagedQueue::take_turn), or to [give up](StagedQueue::give_up).
    pub fn ask<D: Database>(
        &self,
        session: &mut Session<D>,
    ) -> impl Future<Output = Outcome<Turn, Error>> + Send {
        crate::called!();
        async move {
            let asked = match self.left(session).await {
                Ok(Turn::Gone) => self.asked(session).await,
                Ok(turn) => Outcome::Applied(turn),
                Err(e) => return self.unknown(session, e),
            };
            if let Outcome::Applied(Turn::Waiting(request)) = &asked {
                session.finish(&self.name(), &request.note());
            }
            asked
        }
    }

    /// Waits until a request is served, serving all there are meanwhile, and collects what it was given:
    /// [`Turn::Given`], or [`Turn::Gone`] when it was reclaimed in between. What this answers is certain.
    /// Errors that pass are waited out; any other ends the wait, and leaves the request as it stands.
    ///
    /// Dropping the future: the request stands, or what it was given is answered by the next call for the same
    /// request, or by the session's next [`dequeue`](StagedQueue::dequeue).
    pub fn take_turn<D: Database>(
        &self,
        session: &mut Session<D>,
        request: Request,
    ) -> impl Future<Output = Result<Turn, Error>> + Send {
        crate::called!();
        async move {
            let db = session.database().clone();
            loop {
                if let Some(turn) = self.collected(session, request).await? {
                    return Ok(turn);
                }
                let look = db.run(|tx, _| async move { self.turn(&tx, request, Isolation::Snapshot).await });
                match look.await {
                    Ok(Turn::Waiting(_)) => match self.fulfil_all(&db).await {
                        // Served, perhaps with this request.
                        Ok(1..) => {}
                        Ok(0) => pause(db.env()).await,
                        Err(e) => outlast(db.env(), e.error).await?,
                    },
                    Ok(Turn::Gone) => {
                        session.finish(&self.name(), &request.note());
                        return Ok(Turn::Gone);
                    }
                    Ok(Turn::Given(_)) => {
                        if let Some(turn) = self.end(session, request, false).await? {
                            return Ok(turn);
                        }
                    }
                    Err(e) => outlast(db.env(), e.error).await?,
                }
            }
        }
    }

    /// Ends a request: [`Turn::Given`] what it was given, or [`Turn::Gone`] when nothing was, and it stands no
    /// more. What this answers is certain. Errors that pass are waited out for some time; any other ends the
    /// attempt, and leaves the request as it stands.
    ///
    /// Dropping the future: as with [`take_turn`](StagedQueue::take_turn).
    pub fn give_up<D: Database>(
        &self,
        session: &mut Session<D>,
        request: Request,
    ) -> impl Future<Output = Result<Turn, Error>> + Send {
        crate::called!();
        async move {
            let mut tries = 1;
            loop {
                if let Some(turn) = self.collected(session, request).await? {
                    return Ok(turn);
                }
                if let Some(turn) = self.end(session, request, true).await? {
                    return Ok(turn);
                }
                if tries == MOST_LEAVES {
                    return Err(Error::Fdb(tx::Error::TRANSACTION_TIMED_OUT));
                }
                tries += 1;
            }
        }
    }

    /// Removes the first item, or answers that there is none, exactly once. Waits for its turn however long
    /// that takes.
    ///
    /// [`Outcome::Refused`] is answered when nothing was taken and no request stands. [`Outcome::Unknown`] is
    /// not the end of it: the session's next dequeue goes on where this one stands. From elsewhere its
    /// operation may be resolved as a [`Turn`]; when that is [`Fate::Forgotten`], whatever its request is given
    /// comes back by [`reclaim_unchanged`](StagedQueue::reclaim_unchanged).
    ///
    /// Dropping the future: the session's next dequeue from this queue goes on with what was begun. It answers
    /// the item that was already taken, or waits for the request that stands. When there is no next one, an item
    /// that is given to the request comes back by [`reclaim_unchanged`](StagedQueue::reclaim_unchanged), and
    /// one that was taken has left. To end a dequeue that was dropped call
    /// [`dequeue_within`](StagedQueue::dequeue_within) with no patience.
    pub fn dequeue<D: Database>(
        &self,
        session: &mut Session<D>,
    ) -> impl Future<Output = Outcome<Option<Item>, Error>> + Send {
        crate::called!();
        async move {
            loop {
                let (request, resumed) = match self.left(session).await {
                    Ok(Turn::Given(item)) => return Outcome::Applied(item),
                    Ok(Turn::Waiting(request)) => (request, true),
                    Ok(Turn::Gone) => match self.asked(session).await {
                        Outcome::Applied(Turn::Given(item)) => return Outcome::Applied(item),
                        Outcome::Applied(Turn::Waiting(request)) => (request, false),
                        Outcome::Applied(Turn::Gone) => continue,
                        Outcome::Refused(e) => return Outcome::Refused(e),
                        Outcome::Unknown(op) => return Outcome::Unknown(op),
                    },
                    Err(e) => return self.unknown(session, e),
                };
                match self.take_turn(session, request).await {
                    // That there was none may have been before this call.
                    Ok(Turn::Given(None)) if resumed => {}
                    Ok(Turn::Given(item)) => return Outcome::Applied(item),
                    Ok(Turn::Gone | Turn::Waiting(_)) => {}
                    Err(e) => return self.stands(session, request, e),
                }
            }
        }
    }

    /// [`dequeue`](StagedQueue::dequeue) that gives up after about `patience`, by this process's own timer: it
    /// then takes what it was given meanwhile, or leaves its request and answers [`Served::Late`], so that no
    /// item is given to it any more. Leaving takes a transaction beyond the patience, or several while errors
    /// pass.
    ///
    /// Dropping the future: as with [`dequeue`](StagedQueue::dequeue).
    pub fn dequeue_within<D: Database>(
        &self,
        session: &mut Session<D>,
        patience: Duration,
    ) -> impl Future<Output = Outcome<Served, Error>> + Send {
        crate::called!();
        async move {
            let late = session.database().env().sleep(patience);
            // Polled first, so that there is one attempt however short the patience is.
            match select(pin!(self.dequeue(session)), late).await {
                Either::Left((outcome, _)) => return outcome.map(Served::of),
                Either::Right(_) => {}
            }
            loop {
                let request = match self.left(session).await {
                    Ok(Turn::Given(item)) => {
                        reachable!("staged_queue: a dequeue gives up and finds what it was given");
                        return Outcome::Applied(Served::of(item));
                    }
                    Ok(Turn::Gone) => return Outcome::Applied(Served::Late),
                    Ok(Turn::Waiting(request)) => request,
                    Err(e) => match outlast(session.database().env(), e).await {
                        Ok(()) => continue,
                        Err(e) => return self.unknown(session, e),
                    },
                };
                return match self.give_up(session, request).await {
                    Ok(Turn::Given(item)) => Outcome::Applied(Served::of(item)),
                    Ok(Turn::Gone | Turn::Waiting(_)) => Outcome::Applied(Served::Late),
                    Err(e) => self.stands(session, request, e),
                };
            }
        }
    }

    /// [`fulfil`](StagedQueue::fulfil) for as many requests as fit into one transaction. To be repeated at
    /// will: what an attempt applied unseen has served is served.
    ///
    /// Dropping the future: requests are served or not, as if somebody else had done it.
    pub fn fulfil_all<D: Database>(
        &self,
        db: &D,
    ) -> impl Future<Output = Result<usize, RunError<Error>>> + Send {
        crate::called!();
        async move { db.run(|tx, _| async move { self.fulfil(&tx, MOST_REQUESTS).await }).await }
    }

    /// Watches what is parked for as long as `patience`, by this process's own timer, and
    /// [reclaims](StagedQueue::reclaim) what nobody has collected. Answers how much that was.
    ///
    /// Dropping the future: some of it may be back, and the rest stays parked.
    pub fn reclaim_unchanged<D: Database>(
        &self,
        db: &D,
        patience: Duration,
    ) -> impl Future<Output = Result<usize, RunError<Error>>> + Send {
        crate::called!();
        async move {
            let before = self.all_parked(db).await?;
            if before.is_empty() {
                return Ok(0);
            }
            db.env().sleep(patience).await;
            let mut reclaimed = 0;
            for ticket in self.all_parked(db).await?.intersection(&before) {
                let back = db.run(|tx, _| async move { self.reclaim(&tx, *ticket).await }).await?;
                reclaimed += usize::from(back);
            }
            Ok(reclaimed)
        }
    }

    /// All tickets for which something is parked, read in as many transactions as it takes.
    async fn all_parked<D: Database>(&self, db: &D) -> Result<BTreeSet<ItemId>, RunError<Error>> {
        let mut all = BTreeSet::new();
        loop {
            let after = all.last().copied();
            let page = db.run(|tx, _| async move { self.parked_after(&tx, after).await });
            let (tickets, more) = page.await?;
            all.extend(tickets);
            if !more {
                return Ok(all);
            }
        }
    }

    /// The name by which a session notes this queue's dequeues.
    fn name(&self) -> Bytes {
        Bytes::copy_from_slice(self.keys.all.bytes())
    }

    /// What an unfinished dequeue of this session has come to: the item that it was given, the request with
    /// which it stands, or nothing. That there was none is no longer the truth.
    fn left<D: Database>(
        &self,
        session: &mut Session<D>,
    ) -> impl Future<Output = Result<Turn, Error>> + Send {
        async move {
            let name = self.name();
            let Some(unfinished) = session.unfinished(&name, None).await.map_err(lift)? else {
                return Ok(Turn::Gone);
            };
            let stood = Request::of_note(&unfinished.note).map_or(Turn::Gone, Turn::Waiting);
            let turn = came_to(unfinished.fate)?.unwrap_or(stood);
            if let Turn::Waiting(request) = &turn {
                session.stand(&name, &unfinished.note, request.note());
                return Ok(turn);
            }
            session.finish(&name, &unfinished.note);
            Ok(match turn {
                Turn::Given(Some(item)) => {
                    reachable!("staged_queue: a dequeue finds what a dropped one was given");
                    Turn::Given(Some(item))
                }
                _ => Turn::Gone,
            })
        }
    }

    /// A new dequeue's first step. A request is noted.
    fn asked<D: Database>(
        &self,
        session: &mut Session<D>,
    ) -> impl Future<Output = Outcome<Turn, Error>> + Send {
        async move {
            let (name, nothing) = (self.name(), Bytes::new());
            let ticket = ItemId::draw(session.database().env());
            let asked = session.apply_step(name.clone(), nothing.clone(), |tx, attempt| async move {
                match attempt.number {
                    0 => self.take(&tx, ticket).await,
                    _ => self.register(&tx, ticket).await.map(Taken::Waiting),
                }
            });
            match asked.await {
                Outcome::Applied(Taken::Now(item)) => {
                    session.finish(&name, &nothing);
                    Outcome::Applied(Turn::Given(item))
                }
                Outcome::Applied(Taken::Waiting(registered)) => match registered.request() {
                    Some(request) => {
                        session.stand(&name, &nothing, request.note());
                        Outcome::Applied(Turn::Waiting(request))
                    }
                    None => Outcome::Refused(Error::Once(once::Error::Unreadable)),
                },
                Outcome::Refused(e) => {
                    session.finish(&name, &nothing);
                    Outcome::Refused(e)
                }
                Outcome::Unknown(op) => Outcome::Unknown(op),
            }
        }
    }

    /// What an earlier call has collected or left for this request unseen.
    fn collected<D: Database>(
        &self,
        session: &mut Session<D>,
        request: Request,
    ) -> impl Future<Output = Result<Option<Turn>, Error>> + Send {
        async move {
            let (name, note) = (self.name(), request.note());
            loop {
                let unfinished = match session.unfinished(&name, Some(&note)).await {
                    Ok(Some(unfinished)) => unfinished,
                    Ok(None) => return Ok(None),
                    Err(e) => {
                        outlast(session.database().env(), lift(e)).await?;
                        continue;
                    }
                };
                return match came_to(unfinished.fate)? {
                    Some(Turn::Waiting(_)) | None => {
                        session.stand(&name, &note, note.clone());
                        Ok(None)
                    }
                    Some(turn) => {
                        session.finish(&name, &note);
                        Ok(Some(turn))
                    }
                };
            }
        }
    }

    /// Collects what a request was given, or leaves it; `None` when that is to be tried again.
    fn end<D: Database>(
        &self,
        session: &mut Session<D>,
        request: Request,
        leave: bool,
    ) -> impl Future<Output = Result<Option<Turn>, Error>> + Send {
        async move {
            let (name, note) = (self.name(), request.note());
            let ended = session.apply_step(name.clone(), note.clone(), |tx, _| async move {
                match leave {
                    true => self.leave(&tx, request).await,
                    false => self.collect(&tx, request).await,
                }
            });
            match ended.await {
                Outcome::Applied(Turn::Waiting(_)) => session.stand(&name, &note, note.clone()),
                Outcome::Applied(turn) => {
                    session.finish(&name, &note);
                    return Ok(Some(turn));
                }
                Outcome::Refused(e) => {
                    session.stand(&name, &note, note.clone());
                    outlast(session.database().env(), e).await?;
                }
                // To be asked for again.
                Outcome::Unknown(_) => pause(session.database().env()).await,
            }
            Ok(None)
        }
    }

    /// The outcome of a dequeue whose request stands.
    fn stands<D: Database, A>(&self, session: &Session<D>, request: Request, e: Error) -> Outcome<A, Error> {
        let begun = session.begun(&self.name(), Some(&request.note()));
        begun.map_or(Outcome::Refused(e), Outcome::Unknown)
    }

    /// The outcome of a dequeue that cannot learn what an earlier one came to.
    fn unknown<D: Database, A>(&self, session: &Session<D>, e: Error) -> Outcome<A, Error> {
        session.begun(&self.name(), None).map_or(Outcome::Refused(e), Outcome::Unknown)
    }
}

/// What a step came to; `None` when it was not applied.
fn came_to(fate: Option<Fate<Bytes>>) -> Result<Option<Turn>, Error> {
    match fate {
        Some(Fate::Applied(answer)) => {
            Turn::decode(answer).map(Some).ok_or(Error::Once(once::Error::Unreadable))
        }
        Some(Fate::NotApplied) | None => Ok(None),
        // Only a later incarnation writes over a step that this one has not settled.
        Some(Fate::Forgotten) => Err(Error::Once(once::Error::Superseded)),
    }
}

/// Waits a little after an error that passes, and gives back any other.
async fn outlast(env: &Env, error: Error) -> Result<(), Error> {
    let passes = |e: tx::Error| {
        e.is_retryable()
            || matches!(e, tx::Error::TRANSACTION_TIMED_OUT | tx::Error::COMMIT_UNKNOWN_RESULT_FATAL)
    };
    match error.fdb() {
        Some(e) if passes(e) => {
            pause(env).await;
            Ok(())
        }
        _ => Err(error),
    }
}

/// Waits for about [`PAUSE`]; those who began together do not look again together.
async fn pause(env: &Env) {
    let part = env.random_u64() % PAUSE.as_micros() as u64;
    env.sleep(PAUSE / 2 + Duration::from_micros(part)).await;
}

fn lift(error: once::Error) -> Error {
    error.fdb().map_or_else(|| error.into(), Error::Fdb)
}
