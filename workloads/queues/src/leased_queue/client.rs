//! How a worker claims an item, and what it does with it.

use super::{
    Answer, End, Leased, Manner, leased,
    operations::name,
    planted::{self, Planted},
};
use crate::shared::{self, Timer, ended, turned};
use futures::future;
use shaketable::{
    sessions::{self, known},
    workload::Outcome,
};
use shaketable_layers::{
    leased_queue::{Claim, Error, Hold},
    queue::Position,
};
use shaketable_tx::{
    self as tx, Database, Db,
    once::{self, Session},
};

pub(super) fn refused(error: Error) -> Outcome<Answer> {
    shared::refused(&error, Answer::Refused)
}

pub(super) fn enqueued(outcome: once::Outcome<Position, Error>) -> Outcome<Answer> {
    ended(outcome, |_| Answer::Enqueued, refused)
}

impl Leased {
    /// Claims an item and works on it.
    pub(super) async fn claim(&self, session: &mut Session<Db>, manner: Manner) -> Outcome<Answer> {
        let db = session.database().clone();
        let mut timer = Timer::new(&db, self.lease());
        let claimed = match self.planted {
            Some(Planted::StoredDeadline) => planted::claim(self, session).await,
            _ => session.apply(|tx| async move { leased().claim(&turned(&tx)).await }).await,
        };
        let Claim { hold, value } = match self.settle(session, claimed).await {
            Ok(Some(Some(claim))) => claim,
            Ok(Some(None)) => return Outcome::Answered(Answer::Nothing),
            Ok(None) => return Outcome::Failed(tx::Error::COMMIT_UNKNOWN_RESULT),
            Err(e) => return refused(e),
        };
        let name = match name(&value) {
            Ok(name) => name,
            Err(why) => return Outcome::Violated(why),
        };
        let end = match self.go_on(session, &mut timer, hold, manner).await {
            Ok(Some(end)) => end,
            Ok(None) => End::Silent,
            Err(Error::Lost(lost)) if lost != hold => {
                return Outcome::Violated(format!("received an error about {lost}, which it does not hold"));
            }
            Err(Error::Lost(_)) => match timer.is_over() {
                true => End::Lost,
                false => return Outcome::Violated(format!("lost before the lease ended: {hold}")),
            },
            Err(e) => return refused(e),
        };
        Outcome::Answered(Answer::Worked(name, end))
    }

    /// What a worker does with an item that it holds; `None` if its last step did not succeed.
    async fn go_on(
        &self,
        session: &mut Session<Db>,
        timer: &mut Timer,
        hold: Hold,
        manner: Manner,
    ) -> Result<Option<End>, Error> {
        let db = session.database().clone();
        let tenths = |n: u8| db.env().sleep(self.lease() * n.into() / 10);
        match manner {
            Manner::Prompt => {}
            Manner::Slow(n) => tenths(n).await,
            Manner::Renewing(times) => {
                for _ in 0..times {
                    tenths(4).await;
                    if !self.renew(session, timer, hold).await? {
                        return Ok(None);
                    }
                }
            }
            Manner::Late(n) => {
                tenths(n).await;
                if !self.renew(session, timer, hold).await? {
                    return Ok(None);
                }
                tenths(3).await;
            }
            Manner::Releasing => return self.finish(session, hold, true).await,
            Manner::Vanishing => return Ok(Some(End::Silent)),
            Manner::Twice(first, second, releases) => {
                let first = async {
                    tenths(first).await;
                    self.finish(session, hold, false).await
                };
                let second = async {
                    tenths(second).await;
                    // With a session of its own, so that only the lease keeps the two apart.
                    let client = db.env().random_u64() as usize;
                    match sessions::open(&db, client, self.timeout).await {
                        Ok(mut session) => self.finish(&mut session, hold, releases).await,
                        // The second incarnation did not start.
                        Err(_) => Ok(None),
                    }
                };
                return once_of_two(hold, future::join(first, second).await);
            }
        }
        self.finish(session, hold, false).await
    }

    /// Acknowledges an item, or gives it back; `None` if that did not succeed.
    async fn finish(
        &self,
        session: &mut Session<Db>,
        hold: Hold,
        releases: bool,
    ) -> Result<Option<End>, Error> {
        let finished = match (self.planted, releases) {
            (_, true) => session.apply(|tx| async move { leased().release(&turned(&tx), hold).await }).await,
            (Some(Planted::AcknowledgesUnrecorded), false) => {
                planted::acknowledge(session.database(), hold).await
            }
            (_, false) => {
                session.apply(|tx| async move { leased().acknowledge(&turned(&tx), hold).await }).await
            }
        };
        let known = self.settle(session, finished).await?;
        Ok(known.map(|()| if releases { End::Released } else { End::Acknowledged }))
    }

    /// Renews a lease, and restarts the timer. Returns whether that succeeded.
    async fn renew(&self, session: &mut Session<Db>, timer: &mut Timer, hold: Hold) -> Result<bool, Error> {
        let db = session.database().clone();
        let anew = Timer::new(&db, self.lease());
        let renewed = match self.planted {
            Some(Planted::StoredDeadline) => planted::renew(self, session, hold).await,
            _ => session.apply(|tx| async move { leased().renew(&turned(&tx), hold).await }).await,
        };
        let renewed = self.settle(session, renewed).await?.is_some();
        if renewed {
            *timer = anew;
        }
        Ok(renewed)
    }

    /// Learns what became of a step, however long that takes.
    async fn settle<A: once::Answer>(
        &self,
        session: &mut Session<Db>,
        outcome: once::Outcome<A, Error>,
    ) -> Result<Option<A>, Error> {
        let db = session.database().clone();
        sessions::patiently(&db, self.timeout, known(session, outcome)).await?
    }

    /// Ends leases that are not renewed.
    pub(super) async fn end_leases(&self, db: &Db) -> Result<(), Error> {
        let expired = match self.planted {
            Some(planted @ (Planted::StoredDeadline | Planted::ComesBackLast)) => {
                planted::expire(planted, self, db).await
            }
            _ => leased().expire_unchanged(db, self.lease(), self.page).await.map(drop),
        };
        expired.map_err(|e| e.error)
    }
}

/// How it ended for a worker with two incarnations: at most one of them may have ended it.
fn once_of_two(
    hold: Hold,
    ends: (Result<Option<End>, Error>, Result<Option<End>, Error>),
) -> Result<Option<End>, Error> {
    match ends {
        (Ok(Some(_)), Ok(Some(_))) => Ok(Some(End::Twice)),
        (Ok(Some(end)), Ok(None) | Err(Error::Lost(_))) | (Ok(None) | Err(Error::Lost(_)), Ok(Some(end))) => {
            Ok(Some(end))
        }
        (Err(Error::Lost(lost)), _) | (_, Err(Error::Lost(lost))) if lost == hold => Err(Error::Lost(hold)),
        (first, second) => first.and(second),
    }
}
