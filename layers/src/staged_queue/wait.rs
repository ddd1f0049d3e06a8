//! Operations on staged queues that take more than one transaction.
//!
//! A dequeue takes several transactions, and its future may be dropped between any two of them or during one.
//! Its state is therefore noted in its session ([`Unfinished`](crate::once::Session)): nothing yet, or its
//! request. The next dequeue of the session continues from there.

use super::{Error, Request, RequestState, Served, StagedQueue, Taken};
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
        async move {
            let id = ItemId::draw(session.database().env());
            session.apply(|tx| async move { self.enqueue(&tx, id, value).await }).await
        }
    }

    /// The first step of a dequeue, exactly once: the first attempt [takes](StagedQueue::take) an item if no
    /// request is waiting; if it fails, the next one [registers](StagedQueue::register). Never returns
    /// [`RequestState::Gone`].
    ///
    /// All attempts are one operation with one record: if an attempt that took an item was applied with an
    /// unknown result, the next attempt finds it recorded and does not request another item.
    ///
    /// Dropping the future: the result is returned by the session's next `start_dequeue` or
    /// [`dequeue`](StagedQueue::dequeue), which start with unfinished dequeues. After a result of
    /// [`RequestState::Waiting`], the caller must [wait](StagedQueue::wait) or [give
    /// up](StagedQueue::give_up).
    pub fn start_dequeue<D: Database>(
        &self,
        session: &mut Session<D>,
    ) -> impl Future<Output = Outcome<RequestState, Error>> + Send {
        async move {
            let result = match self.unfinished_state(session).await {
                Ok(RequestState::Gone) => self.first_step(session).await,
                Ok(state) => Outcome::Applied(state),
                Err(e) => return self.unknown(session, e),
            };
            if let Outcome::Applied(RequestState::Waiting(request)) = &result {
                session.finish(&self.name(), &request.note());
            }
            result
        }
    }

    /// Waits until a request is served, serves all existing requests in the meantime, and collects the
    /// result: [`RequestState::Given`], or [`RequestState::Gone`] if it was reclaimed. The returned result is
    /// certain. Transient errors are retried; any other error ends the wait, and leaves the request
    /// unchanged.
    ///
    /// Dropping the future: the request still exists, or its result is returned by the next call for the same
    /// request, or by the session's next [`dequeue`](StagedQueue::dequeue).
    pub fn wait<D: Database>(
        &self,
        session: &mut Session<D>,
        request: Request,
    ) -> impl Future<Output = Result<RequestState, Error>> + Send {
        async move {
            let db = session.database().clone();
            loop {
                if let Some(state) = self.collected(session, request).await? {
                    return Ok(state);
                }
                let look = db.run(|tx, _| async move { self.state(&tx, request, Isolation::Snapshot).await });
                match look.await {
                    Ok(RequestState::Waiting(_)) => match self.fulfil_all(&db).await {
                        // Requests were served, possibly including this one.
                        Ok(1..) => {}
                        Ok(0) => pause(db.env()).await,
                        Err(e) => wait_if_transient(db.env(), e.error).await?,
                    },
                    Ok(RequestState::Gone) => {
                        session.finish(&self.name(), &request.note());
                        return Ok(RequestState::Gone);
                    }
                    Ok(RequestState::Given(_)) => {
                        if let Some(state) = self.end(session, request, false).await? {
                            return Ok(state);
                        }
                    }
                    Err(e) => wait_if_transient(db.env(), e.error).await?,
                }
            }
        }
    }

    /// Ends a request: returns [`RequestState::Given`] with its result, or [`RequestState::Gone`] if it had
    /// none and has been removed. The returned result is certain. Transient errors are retried for some time;
    /// any other error ends the attempt, and leaves the request unchanged.
    ///
    /// Dropping the future: as with [`wait`](StagedQueue::wait).
    pub fn give_up<D: Database>(
        &self,
        session: &mut Session<D>,
        request: Request,
    ) -> impl Future<Output = Result<RequestState, Error>> + Send {
        async move {
            let mut tries = 1;
            loop {
                if let Some(state) = self.collected(session, request).await? {
                    return Ok(state);
                }
                if let Some(state) = self.end(session, request, true).await? {
                    return Ok(state);
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
    /// a [`RequestState`]; if that returns [`Fate::Forgotten`], an item given to its request is returned to
    /// the queue by [`reclaim_unchanged`](StagedQueue::reclaim_unchanged).
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
        async move {
            loop {
                let (request, resumed) = match self.unfinished_state(session).await {
                    Ok(RequestState::Given(item)) => return Outcome::Applied(item),
                    Ok(RequestState::Waiting(request)) => (request, true),
                    Ok(RequestState::Gone) => match self.first_step(session).await {
                        Outcome::Applied(RequestState::Given(item)) => return Outcome::Applied(item),
                        Outcome::Applied(RequestState::Waiting(request)) => (request, false),
                        Outcome::Applied(RequestState::Gone) => continue,
                        Outcome::Refused(e) => return Outcome::Refused(e),
                        Outcome::Unknown(op) => return Outcome::Unknown(op),
                    },
                    Err(e) => return self.unknown(session, e),
                };
                match self.wait(session, request).await {
                    // The result that there was none may date from before this call.
                    Ok(RequestState::Given(None)) if resumed => {}
                    Ok(RequestState::Given(item)) => return Outcome::Applied(item),
                    Ok(RequestState::Gone | RequestState::Waiting(_)) => {}
                    Err(e) => return self.pending_outcome(session, request, e),
                }
            }
        }
    }

    /// Like [`dequeue`](StagedQueue::dequeue), but gives up after about `patience`, by this process's own
    /// timer: it then takes the item that it was given meanwhile, or removes its request and returns
    /// [`Served::TimedOut`], so that it can be given no item after that. Leaving takes one transaction beyond
    /// the patience, or several while errors persist.
    ///
    /// Dropping the future: as with [`dequeue`](StagedQueue::dequeue).
    pub fn dequeue_within<D: Database>(
        &self,
        session: &mut Session<D>,
        patience: Duration,
    ) -> impl Future<Output = Outcome<Served, Error>> + Send {
        async move {
            let late = session.database().env().sleep(patience);
            // Polled first, so that there is at least one attempt even if the patience is very short.
            match select(pin!(self.dequeue(session)), late).await {
                Either::Left((outcome, _)) => return outcome.map(Served::of),
                Either::Right(_) => {}
            }
            loop {
                let request = match self.unfinished_state(session).await {
                    Ok(RequestState::Given(item)) => {
                        reachable!("staged_queue: a dequeue gives up and finds what it was given");
                        return Outcome::Applied(Served::of(item));
                    }
                    Ok(RequestState::Gone) => return Outcome::Applied(Served::TimedOut),
                    Ok(RequestState::Waiting(request)) => request,
                    Err(e) => match wait_if_transient(session.database().env(), e).await {
                        Ok(()) => continue,
                        Err(e) => return self.unknown(session, e),
                    },
                };
                return match self.give_up(session, request).await {
                    Ok(RequestState::Given(item)) => Outcome::Applied(Served::of(item)),
                    Ok(RequestState::Gone | RequestState::Waiting(_)) => Outcome::Applied(Served::TimedOut),
                    Err(e) => self.pending_outcome(session, request, e),
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
    fn unfinished_state<D: Database>(
        &self,
        session: &mut Session<D>,
    ) -> impl Future<Output = Result<RequestState, Error>> + Send {
        async move {
            let name = self.name();
            let Some(unfinished) = session.unfinished(&name, None).await.map_err(lift)? else {
                return Ok(RequestState::Gone);
            };
            let noted = Request::of_note(&unfinished.note).map_or(RequestState::Gone, RequestState::Waiting);
            let state = decode_step(unfinished.fate)?.unwrap_or(noted);
            if let RequestState::Waiting(request) = &state {
                session.note_state(&name, &unfinished.note, request.note());
                return Ok(state);
            }
            session.finish(&name, &unfinished.note);
            Ok(match state {
                RequestState::Given(Some(item)) => {
                    reachable!("staged_queue: a dequeue finds what a dropped one was given");
                    RequestState::Given(Some(item))
                }
                _ => RequestState::Gone,
            })
        }
    }

    /// The first step of a new dequeue. A resulting request is noted in the session.
    fn first_step<D: Database>(
        &self,
        session: &mut Session<D>,
    ) -> impl Future<Output = Outcome<RequestState, Error>> + Send {
        async move {
            let (name, nothing) = (self.name(), Bytes::new());
            let ticket = ItemId::draw(session.database().env());
            let result = session.apply_step(name.clone(), nothing.clone(), |tx, attempt| async move {
                match attempt.number {
                    0 => self.take(&tx, ticket).await,
                    _ => self.register(&tx, ticket).await.map(Taken::Waiting),
                }
            });
            match result.await {
                Outcome::Applied(Taken::Now(item)) => {
                    session.finish(&name, &nothing);
                    Outcome::Applied(RequestState::Given(item))
                }
                Outcome::Applied(Taken::Waiting(registered)) => match registered.request() {
                    Some(request) => {
                        session.note_state(&name, &nothing, request.note());
                        Outcome::Applied(RequestState::Waiting(request))
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
    ) -> impl Future<Output = Result<Option<RequestState>, Error>> + Send {
        async move {
            let (name, note) = (self.name(), request.note());
            loop {
                let unfinished = match session.unfinished(&name, Some(&note)).await {
                    Ok(Some(unfinished)) => unfinished,
                    Ok(None) => return Ok(None),
                    Err(e) => {
                        wait_if_transient(session.database().env(), lift(e)).await?;
                        continue;
                    }
                };
                return match decode_step(unfinished.fate)? {
                    Some(RequestState::Waiting(_)) | None => {
                        session.note_state(&name, &note, note.clone());
                        Ok(None)
                    }
                    Some(state) => {
                        session.finish(&name, &note);
                        Ok(Some(state))
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
    ) -> impl Future<Output = Result<Option<RequestState>, Error>> + Send {
        async move {
            let (name, note) = (self.name(), request.note());
            let ended = session.apply_step(name.clone(), note.clone(), |tx, _| async move {
                match leave {
                    true => self.leave(&tx, request).await,
                    false => self.collect(&tx, request).await,
                }
            });
            match ended.await {
                Outcome::Applied(RequestState::Waiting(_)) => session.note_state(&name, &note, note.clone()),
                Outcome::Applied(state) => {
                    session.finish(&name, &note);
                    return Ok(Some(state));
                }
                Outcome::Refused(e) => {
                    session.note_state(&name, &note, note.clone());
                    wait_if_transient(session.database().env(), e).await?;
                }
                // The next call resolves it.
                Outcome::Unknown(_) => pause(session.database().env()).await,
            }
            Ok(None)
        }
    }

    /// The outcome of a dequeue whose request still exists.
    fn pending_outcome<D: Database, A>(
        &self,
        session: &Session<D>,
        request: Request,
        e: Error,
    ) -> Outcome<A, Error> {
        let begun = session.begun(&self.name(), Some(&request.note()));
        begun.map_or(Outcome::Refused(e), Outcome::Unknown)
    }

    /// The outcome of a dequeue that cannot determine the state of an earlier one.
    fn unknown<D: Database, A>(&self, session: &Session<D>, e: Error) -> Outcome<A, Error> {
        session.begun(&self.name(), None).map_or(Outcome::Refused(e), Outcome::Unknown)
    }
}

/// The result of a step; `None` if it was not applied.
fn decode_step(fate: Option<Fate<Bytes>>) -> Result<Option<RequestState>, Error> {
    match fate {
        Some(Fate::Applied(answer)) => {
            RequestState::decode(answer).map(Some).ok_or(Error::Once(once::Error::Unreadable))
        }
        Some(Fate::NotApplied) | None => Ok(None),
        // Only a later incarnation overwrites a step that this one has not settled.
        Some(Fate::Forgotten) => Err(Error::Once(once::Error::Superseded)),
    }
}

/// Waits briefly after a transient error, and returns any other.
async fn wait_if_transient(env: &Env, error: Error) -> Result<(), Error> {
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
