//! Operations on staged queues that take more than one transaction.
//!
//! A dequeue takes several transactions, and its future may be dropped between any two of them or during one.
//! Its state is therefore noted in its session ([`Unfinished`](crate::once::Session)): nothing yet, or its
//! request. The next dequeue of the session continues from there.

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

/// The maximum number of requests served in one transaction.
const MOST_REQUESTS: usize = 100;

/// The approximate interval at which a waiting client reads its state.
const PAUSE: Duration = Duration::from_millis(10);

/// How many times a client that gives up tries to leave, with a pause after each failure.
const MOST_LEAVES: u32 = 1_000;

impl StagedQueue {
    /// Calls [`enqueue`](StagedQueue::enqueue), exactly once.
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

    /// The first step of a dequeue, exactly once: the first attempt [takes](StagedQueue::take) an item if no
    /// request is waiting; if it fails, the next one [registers](StagedQueue::register). Never returns
    /// [`Turn::Gone`].
    ///
    /// All attempts are one operation with one record: if an attempt that took an item was applied with an
    /// unknown result, the next attempt finds it recorded and does not request another item.
    ///
    /// Dropping the future: the result is returned by the session's next `ask` or
    /// [`dequeue`](StagedQueue::dequeue), which start with unfinished dequeues. After a result of
    /// [`Turn::Waiting`], the caller must [wait](StagedQueue::take_turn) or [give up](StagedQueue::give_up).
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

    /// Waits until a request is served, serves all existing requests in the meantime, and collects the
    /// result: [`Turn::Given`], or [`Turn::Gone`] if it was reclaimed. The returned result is certain.
    /// Transient errors are retried; any other error ends the wait, and leaves the request unchanged.
    ///
    /// Dropping the future: the request still exists, or its result is returned by the next call for the same
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
                        // Requests were served, possibly including this one.
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

    /// Ends a request: returns [`Turn::Given`] with its result, or [`Turn::Gone`] if it had none and has been
    /// removed. The returned result is certain. Transient errors are retried for some time; any other error
    /// ends the attempt, and leaves the request unchanged.
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

    /// Removes and returns the first item, or `None` if there is none, exactly once. Waits until it is
    /// served, without a time limit.
    ///
    /// Returns [`Outcome::Refused`] if nothing was taken and no request exists. [`Outcome::Unknown`] does not
    /// end the dequeue: the session's next dequeue continues it. Other processes may resolve its operation as
    /// a [`Turn`]; if that returns [`Fate::Forgotten`], an item given to its request is returned to the queue
    /// by [`reclaim_unchanged`](StagedQueue::reclaim_unchanged).
    ///
    /// Dropping the future: the session's next dequeue from this queue continues it. It returns the item that
    /// was already taken, or waits for the existing request. If there is no next dequeue, an item that is
    /// given to the request is returned to the queue by
    /// [`reclaim_unchanged`](StagedQueue::reclaim_unchanged), and one that was taken has left the queue. To
    /// end a dropped dequeue, call [`dequeue_within`](StagedQueue::dequeue_within) with zero patience.
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
                    // The result that there was none may date from before this call.
                    Ok(Turn::Given(None)) if resumed => {}
                    Ok(Turn::Given(item)) => return Outcome::Applied(item),
                    Ok(Turn::Gone | Turn::Waiting(_)) => {}
                    Err(e) => return self.stands(session, request, e),
                }
            }
        }
    }

    /// Like [`dequeue`](StagedQueue::dequeue), but gives up after about `patience`, by this process's own
    /// timer: it then takes the item that it was given meanwhile, or removes its request and returns
    /// [`Served::Late`], so that it can be given no item after that. Leaving takes one transaction beyond the
    /// patience, or several while errors persist.
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
            // Polled first, so that there is at least one attempt even if the patience is very short.
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

    /// Calls [`fulfil`](StagedQueue::fulfil) for as many requests as fit into one transaction. Can be
    /// repeated at any time: requests served by an attempt with an unknown result stay served.
    ///
    /// Dropping the future: requests are served or not, as if another process had done it.
    pub fn fulfil_all<D: Database>(
        &self,
        db: &D,
    ) -> impl Future<Output = Result<usize, RunError<Error>>> + Send {
        crate::called!();
        async move { db.run(|tx, _| async move { self.fulfil(&tx, MOST_REQUESTS).await }).await }
    }

    /// Observes the parked results for `patience`, by this process's own timer, and
    /// [reclaims](StagedQueue::reclaim) those that were not collected. Returns their number.
    ///
    /// Dropping the future: some of them may have been returned to the queue, the others stay parked.
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

    /// The tickets of all parked results, read in as many transactions as needed.
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

    /// The name under which a session notes this queue's dequeues.
    fn name(&self) -> Bytes {
        Bytes::copy_from_slice(self.keys.all.bytes())
    }

    /// The state of an unfinished dequeue of this session: the item that it was given, its existing request,
    /// or nothing. A result that there was no item is ignored, because it is outdated.
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

    /// The first step of a new dequeue. A resulting request is noted in the session.
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

    /// The result of an earlier call that has collected or left this request with an unknown result.
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

    /// Collects the result of a request, or leaves it; `None` if the caller must try again.
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
                // The next call resolves it.
                Outcome::Unknown(_) => pause(session.database().env()).await,
            }
            Ok(None)
        }
    }

    /// The outcome of a dequeue whose request still exists.
    fn stands<D: Database, A>(&self, session: &Session<D>, request: Request, e: Error) -> Outcome<A, Error> {
        let begun = session.begun(&self.name(), Some(&request.note()));
        begun.map_or(Outcome::Refused(e), Outcome::Unknown)
    }

    /// The outcome of a dequeue that cannot determine the state of an earlier one.
    fn unknown<D: Database, A>(&self, session: &Session<D>, e: Error) -> Outcome<A, Error> {
        session.begun(&self.name(), None).map_or(Outcome::Refused(e), Outcome::Unknown)
    }
}

/// The result of a step; `None` if it was not applied.
fn came_to(fate: Option<Fate<Bytes>>) -> Result<Option<Turn>, Error> {
    match fate {
        Some(Fate::Applied(answer)) => {
            Turn::decode(answer).map(Some).ok_or(Error::Once(once::Error::Unreadable))
        }
        Some(Fate::NotApplied) | None => Ok(None),
        // Only a later incarnation overwrites a step that this one has not settled.
        Some(Fate::Forgotten) => Err(Error::Once(once::Error::Superseded)),
    }
}

/// Waits briefly after a transient error, and returns any other.
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

/// Waits for about [`PAUSE`], randomized so that clients that started together do not retry together.
async fn pause(env: &Env) {
    let part = env.random_u64() % PAUSE.as_micros() as u64;
    env.sleep(PAUSE / 2 + Duration::from_micros(part)).await;
}

fn lift(error: once::Error) -> Error {
    error.fdb().map_or_else(|| error.into(), Error::Fdb)
}
