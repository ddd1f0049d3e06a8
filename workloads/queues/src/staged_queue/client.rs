//! How a client calls the queue: a call is repeated until its outcome is certain if the operation requires
//! that.

use super::{
    Answer, Staged, StagedOp,
    operations::name,
    planted::{self, Planted},
    staged,
};
use crate::shared::{self, turned};
use shaketable::{sessions, workload::Outcome};
use shaketable_layers::{
    queue::{Item, ItemId},
    staged_queue::{Error, Request, RequestState, Served},
};
use shaketable_tx::{
    self as tx, Database, Db, RetryError, Transaction,
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
    pub(super) fn db(&self) -> &Db {
        self.session.database()
    }

    pub(super) fn begins(&mut self, op: &StagedOp) {
        self.calls += 1;
        if op.dequeues() {
            self.open.get_or_insert(self.calls);
        }
    }

    pub(super) fn ends(&mut self, op: &StagedOp, mut outcome: Outcome<Answer>) -> Outcome<Answer> {
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
    pub(super) async fn certain<T>(
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
    pub(super) async fn ask(&self, session: &mut Session<Db>) -> Result<RequestState, Outcome<Answer>> {
        self.certain(session, async |session| staged().start_dequeue(session).await).await
    }

    /// Brings back what was not collected.
    pub(super) async fn bring_back(&self, db: &Db) -> Result<(), Error> {
        let patience = Duration::from_millis(self.patience);
        let reclaimed = match self.planted {
            Some(Planted::ParkedForEver) => Ok(()),
            Some(Planted::ComesBackLast) => planted::enqueue_anew(db, patience).await,
            _ => staged().reclaim_unchanged(db, patience).await.map(drop),
        };
        reclaimed.map_err(|e| e.error)
    }
}

pub(super) async fn dequeue_within(session: &mut Session<Db>, patience: Duration) -> Outcome<Answer> {
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

/// Registers a request without a record, so that only an acknowledged request can be found again.
pub(super) async fn register(db: &Db) -> Result<Request, Outcome<Answer>> {
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

/// Gives a request up, however long that takes.
pub(super) async fn give_up(session: &mut Session<Db>, request: Request) -> Outcome<Answer> {
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
