//! How a client performs an operation: the queue's own calls, repeated until their outcome is certain if the
//! operation requires that.

use super::{
    Answer, Deal, Op, Part, Staged,
    operations::{name, patience},
    planted::{self, Planted},
    stage::stored,
    staged,
};
use crate::shared::{self, ended, in_turns, one_call, turned, unexpected};
use bytes::Bytes;
use futures::FutureExt;
use shaketable::{
    isolation,
    sessions::{self, known},
    specimen::Recorded,
    workload::Outcome,
};
use shaketable_layers::{
    queue::{Item, ItemId},
    staged_queue::{Error, MAX_VALUE_BYTES, Request, RequestState, Served, StagedQueue},
};
use shaketable_tx::{
    self as tx, Database, Db,
    Isolation::Serializable,
    RetryError, Transaction,
    once::{self, Session},
};
use std::time::Duration;

/// How often a dequeue is called again after an unknown result. A session whose slot is unreadable, or taken
/// by another one, never has another.
const MOST_UNKNOWN: usize = 1_000;

/// The state of a client.
pub struct Client {
    pub(super) session: Session<Db>,
    /// The number of operations that this session has begun.
    pub(super) calls: usize,
    /// The first dequeue that has not ended.
    pub(super) open: Option<usize>,
}

impl Client {
    pub(super) fn begins(&mut self, op: &Op) {
        self.calls += 1;
        if op.dequeues() {
            self.open.get_or_insert(self.calls);
        }
    }

    pub(super) fn ends(&mut self, op: &Op, mut outcome: Outcome<Answer>) -> Outcome<Answer> {
        if let Outcome::Answered(Answer::Failed(_)) = outcome {
            // A dequeue that was dropped earlier may still be open.
            self.open = self.open.filter(|since| *since != self.calls);
        } else if let (true, Outcome::Answered(answer)) = (op.dequeues(), &mut outcome) {
            let since = self.open.take().unwrap_or(self.calls);
            if let Answer::Taken(_, ago) | Answer::Left(ago) = answer {
                *ago = self.calls - since;
            }
        }
        outcome
    }
}

/// The answer for an item that was taken.
pub(super) fn taken(item: Option<Item>) -> Outcome<Answer> {
    match item.as_ref().map(name).transpose() {
        Ok(name) => Outcome::Answered(Answer::Taken(name, 0)),
        Err(why) => Outcome::Violated(why),
    }
}

pub(super) fn refused(error: Error) -> Outcome<Answer> {
    shared::refused(&error, Answer::Refused)
}

/// The answer of a dequeue that was refused, which may have served others.
fn failed(error: Error) -> Outcome<Answer> {
    Outcome::Answered(match error.fdb() {
        Some(e) => Answer::Failed(e.code()),
        None => Answer::Refused(error.to_string()),
    })
}

impl Staged {
    /// Performs an operation.
    pub(super) async fn perform(&self, client: &mut Client, op: &Op) -> Outcome<Answer> {
        let session = &mut client.session;
        let db = session.database().clone();
        let outcome = match op {
            Op::Enqueue(batch) => self.enqueue(session, &batch.values()).await,
            Op::Dequeue => self.dequeue(session).await,
            Op::Within(patience) => self.within(session, self::patience(*patience)).await,
            Op::Cut(polls) => match sessions::polled(u64::from(*polls), self.dequeue(session)).await {
                Some(outcome) => outcome,
                None => return Outcome::Unknown(tx::Error::OPERATION_CANCELLED),
            },
            Op::Leave => self.leave(session).await,
            Op::Vanish => match self.ask(session).await {
                Ok(RequestState::Given(item)) => taken(item),
                Ok(_) => Outcome::Answered(Answer::Away),
                Err(outcome) => outcome,
            },
            Op::Enlist => self.enlist(session).await,
            Op::Deal(deals) => self.deal(session, deals).await,
            Op::Reclaim => match self.reclaim(&db).await {
                Ok(()) => Outcome::Answered(Answer::Reclaimed),
                // Some of it may have happened, or may still happen; nothing depends on that.
                Err(e) => unexpected(&e, Outcome::Unknown),
            },
            Op::Peek => {
                let peeked =
                    db.run(|tx, _| async move { staged().peek(&turned(&tx), Serializable).await }).await;
                match peeked.map(|item| item.as_ref().map(name).transpose()) {
                    Ok(Ok(name)) => Outcome::Answered(Answer::First(name)),
                    Ok(Err(why)) => Outcome::Violated(why),
                    Err(e) => refused(e.error),
                }
            }
            Op::Count => {
                let count = |tx, isolation| async move { staged().len(&turned(&tx), isolation).await };
                let counted =
                    db.run(|tx, _| async move { isolation::at_both_levels(&tx, op, count).await }).await;
                counted.map_or_else(|e| refused(e.error), |n| Outcome::Answered(Answer::Count(n)))
            }
            Op::Survey => match db.run(|tx, _| async move { stored(&tx).await }).await {
                Ok(Ok(stage)) => Outcome::Answered(Answer::Rows([
                    stage.items.len(),
                    stage.requests.len(),
                    stage.parked.len(),
                ])),
                Ok(Err(why)) => Outcome::Violated(why),
                Err(e) => Outcome::Failed(e.error),
            },
            Op::Together(parts) => self.together(session, parts).await,
            Op::Oversized(beyond) => {
                let value = vec![0; MAX_VALUE_BYTES + usize::from(*beyond)].into();
                self.enqueue(session, &[value]).await
            }
            Op::Deep(beyond) => {
                let id = ItemId::draw(db.env());
                let deep = session.apply(|tx| async move {
                    let tx = one_call(&tx, false).await;
                    let queue = StagedQueue::new(shared::deep(&tx, id, *beyond).await?);
                    queue.enqueue(&tx, id, b"").await?;
                    shared::fits(&tx, op).await?;
                    Ok::<(), Error>(())
                });
                ended(deep.await, |()| Answer::Enqueued, refused)
            }
        };
        client.ends(op, outcome)
    }

    /// Performs work without timeouts, which ends as soon as the database permits.
    pub(super) async fn patiently(
        &self,
        db: &Db,
        work: impl Future<Output = Outcome<Answer>>,
    ) -> Outcome<Answer> {
        let done = sessions::patiently(db, self.timeout, work).await;
        done.unwrap_or_else(|e| Outcome::Violated(format!("a timeout was refused: {e}")))
    }

    /// Repeats a call until its outcome is certain: each attempt begins with the result of the one before.
    async fn certain<T>(
        &self,
        session: &mut Session<Db>,
        call: impl AsyncFn(&mut Session<Db>) -> once::Outcome<T, Error>,
    ) -> Result<T, Outcome<Answer>> {
        let db = session.database().clone();
        let repeated = async |session: &mut Session<Db>| {
            for _ in 0..20 {
                match call(session).await {
                    once::Outcome::Applied(done) => return Ok(done),
                    once::Outcome::Refused(e) => return Err(failed(e)),
                    once::Outcome::Unknown(_) => db.env().sleep(Duration::from_millis(5)).await,
                }
            }
            Err(Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT))
        };
        match repeated(session).await {
            // With a timeout within which no commit succeeds, it would be repeated for ever.
            Err(Outcome::Unknown(_)) => {
                let done = sessions::patiently(&db, self.timeout, repeated(session)).await;
                done.unwrap_or_else(|e| Err(Outcome::Violated(format!("a timeout was refused: {e}"))))
            }
            ended => ended,
        }
    }

    /// Requests an item.
    async fn ask(&self, session: &mut Session<Db>) -> Result<RequestState, Outcome<Answer>> {
        self.certain(session, async |session| staged().start_dequeue(session).await).await
    }

    async fn dequeue(&self, session: &mut Session<Db>) -> Outcome<Answer> {
        let dequeued = self.certain(session, async |session| staged().dequeue(session).await);
        dequeued.await.map_or_else(|outcome| outcome, taken)
    }

    pub(super) async fn within(&self, session: &mut Session<Db>, patience: Duration) -> Outcome<Answer> {
        for _ in 0..MOST_UNKNOWN {
            match staged().dequeue_within(session, patience).await {
                once::Outcome::Applied(Served::Item(item)) => return taken(Some(item)),
                once::Outcome::Applied(Served::Empty) => return taken(None),
                once::Outcome::Applied(Served::TimedOut) => return Outcome::Answered(Answer::Left(0)),
                once::Outcome::Refused(e) => return failed(e),
                once::Outcome::Unknown(_) => {}
            }
        }
        Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT)
    }

    async fn leave(&self, session: &mut Session<Db>) -> Outcome<Answer> {
        let request = match self.ask(session).await {
            Ok(RequestState::Given(item)) => return taken(item),
            Ok(RequestState::Waiting(request)) => request,
            Ok(RequestState::Gone) => {
                return Outcome::Violated("asked for an item, and the request is gone".to_owned());
            }
            Err(outcome) => return outcome,
        };
        give_up(session, request).await
    }

    /// Registers a request without a record, so that only an acknowledged request can be found again.
    async fn register(&self, db: &Db) -> Result<Request, Outcome<Answer>> {
        let ticket = ItemId::draw(db.env());
        let registered = async {
            let tx = db.create_transaction()?;
            let registered = staged().register(&turned(&tx), ticket).await?;
            let stamp = tx.get_versionstamp();
            tx.commit().await?;
            Ok::<_, Error>(registered.committed(stamp.await?))
        };
        match registered.await {
            Ok(Some(request)) => Ok(request),
            Ok(None) => Err(Outcome::Violated("a request without a place".to_owned())),
            Err(_) => Err(Outcome::Answered(Answer::Away)),
        }
    }

    async fn enlist(&self, session: &mut Session<Db>) -> Outcome<Answer> {
        match self.register(&session.database().clone()).await {
            Ok(request) => give_up(session, request).await,
            Err(outcome) => outcome,
        }
    }

    async fn deal(&self, session: &mut Session<Db>, deals: &[Deal]) -> Outcome<Answer> {
        let db = session.database().clone();
        let request = match self.register(&db).await {
            Ok(request) => request,
            Err(outcome) => return outcome,
        };
        let values: Vec<Vec<(ItemId, Bytes)>> = deals.iter().map(|deal| deal.values(db.env())).collect();
        let done = async {
            let (db, values) = (&db, &values);
            let dealt = session.apply(|tx| async move {
                let mut dealt = Vec::new();
                for (deal, values) in deals.iter().zip(values) {
                    dealt.push(match (self.planted, deal) {
                        (Some(Planted::TurnBeside), Deal::Turn) => planted::turn(db, request).await?,
                        _ => deal.perform(&tx, request, values).await?,
                    });
                }
                Ok::<_, Error>(Recorded(dealt))
            });
            let dealt = dealt.await;
            match known(session, dealt).await {
                Ok(Some(Recorded(dealt))) => Outcome::Answered(Answer::Dealt(dealt)),
                // Refused, or not performed: the request stands.
                Ok(None) | Err(Error::OwnUnreadable) => Outcome::Answered(Answer::Away),
                Err(e) => Outcome::Violated(e.to_string()),
            }
        };
        self.patiently(&db, done).await
    }

    async fn together(&self, session: &mut Session<Db>, parts: &[Part]) -> Outcome<Answer> {
        let env = &session.database().env().clone();
        let values: Vec<Vec<(ItemId, Bytes)>> = parts.iter().map(|part| part.values(env)).collect();
        let tickets: Vec<ItemId> = parts.iter().map(|_| ItemId::draw(env)).collect();
        let (values, tickets) = (&values, &tickets);
        let done = session.apply(|tx| async move {
            let perform =
                |n: usize, tx| async move { parts[n].perform(&tx, &values[n], tickets[n]).await }.boxed();
            let interleaved = self.planted == Some(Planted::Interleaved);
            in_turns(env, &tx, parts.len(), interleaved, perform).await.map(Recorded)
        });
        ended(done.await, |Recorded(answers)| Answer::Parts(answers), refused)
    }

    /// Brings back what was not collected.
    pub(super) async fn reclaim(&self, db: &Db) -> Result<(), Error> {
        let patience = Duration::from_millis(self.patience);
        let reclaimed = match self.planted {
            Some(Planted::ParkedForEver) => Ok(()),
            Some(Planted::ComesBackLast) => planted::enqueue_anew(db, patience).await,
            _ => staged().reclaim_unchanged(db, patience).await.map(drop),
        };
        reclaimed.map_err(|e| e.error)
    }

    async fn enqueue(&self, session: &mut Session<Db>, values: &[Bytes]) -> Outcome<Answer> {
        let enqueued = match values {
            [value] => staged().enqueue_once(session, value).await.map(|_| ()),
            values => {
                let env = session.database().env();
                let items: Vec<_> = values.iter().map(|value| (ItemId::draw(env), value)).collect();
                let (items, queue) = (&items, &staged());
                let all = session.apply(|tx| async move {
                    for (id, value) in items {
                        queue.enqueue(&turned(&tx), *id, value).await?;
                    }
                    Ok::<(), Error>(())
                });
                all.await
            }
        };
        ended(enqueued, |()| Answer::Enqueued, refused)
    }
}

/// Gives a request up, however long that takes.
async fn give_up(session: &mut Session<Db>, request: Request) -> Outcome<Answer> {
    match staged().give_up(session, request).await {
        Ok(RequestState::Given(item)) => taken(item),
        Ok(RequestState::Gone) => Outcome::Answered(Answer::Left(0)),
        Ok(RequestState::Waiting(_)) => Outcome::Violated("gave a request up, and it waits".to_owned()),
        Err(e) => Outcome::Violated(e.to_string()),
    }
}

/// Waits for a request to be served. If its item was brought back in between, makes a new request.
pub(super) async fn wait(session: &mut Session<Db>, mut request: Request) -> Outcome<Answer> {
    loop {
        match staged().wait(session, request).await {
            Ok(RequestState::Given(item)) => return taken(item),
            Ok(_) => {}
            Err(e) => return Outcome::Violated(e.to_string()),
        }
        request = loop {
            match staged().start_dequeue(session).await {
                once::Outcome::Applied(RequestState::Given(item)) => return taken(item),
                once::Outcome::Applied(RequestState::Waiting(request)) => break request,
                _ => session.database().env().sleep(Duration::from_millis(10)).await,
            }
        };
    }
}
