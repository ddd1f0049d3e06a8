//! The ways into the mechanism other than [`Session::apply`]: a retry loop of the client's own, a commit that
//! is disturbed, dropped or postponed, and many operations in a row.

use super::{
    Answer, Refusal,
    client::{ended, refused},
    operations::RecordedAnswer,
    register::{add, blind, register},
};
use futures::future::join;
use parking_lot::Mutex;
use shaketable::{sessions, workload::Outcome};
use shaketable_tx::{
    Attempt, Database, Db,
    Isolation::Serializable,
    RetryError, RunError, Transaction, TransactionOption, Tx,
    once::{self, Check, Error, OpId, PendingAnswer, Session, check, record},
};
use std::time::Duration;

/// A retry loop of a client's own, with a retry limit.
pub(super) async fn manual(session: &mut Session<Db>, by: i8, limit: i32) -> Outcome<Answer> {
    let op = match session.begin().await {
        Ok(op) => op,
        Err(e) => return Outcome::Answered(refused(e)),
    };
    let (db, slots) = (session.database().clone(), session.slots().clone());
    let mut attempt = Attempt::default();
    let gave_up = |error: Refusal, attempt: Attempt| RunError {
        error,
        maybe_committed: attempt.maybe_committed,
        attempts: attempt.number + 1,
    };
    let ran = async {
        let tx = db.create_transaction().map_err(|e| gave_up(e.into(), attempt))?;
        loop {
            let once = async {
                tx.set_option(TransactionOption::RetryLimit(limit))?;
                let landing = match check::<_, RecordedAnswer>(&tx, &slots, op).await? {
                    Check::Done(answer) => PendingAnswer::ready(answer),
                    Check::New(permit) => record(&tx, permit, add(&tx, op.client, by).await?)?,
                };
                Ok::<_, Refusal>(landing)
            };
            let failed = match once.await {
                Ok(landing) => match tx.commit().await {
                    Ok(()) => return Ok(landing),
                    Err(e) => {
                        attempt.maybe_committed |= e.leaves_commit_unknown();
                        Refusal::Fdb(e)
                    }
                },
                Err(e) => e,
            };
            let Some(error) = failed.fdb() else { return Err(gave_up(failed, attempt)) };
            if let Err(e) = tx.on_error(error).await {
                return Err(gave_up(e.into(), attempt));
            }
            attempt.number += 1;
        }
    };
    let ran = ran.await;
    ended(session.conclude(op, ran).await)
}

/// Adds, and uses a clone of the transaction while the commit may be in progress.
pub(super) async fn disturbed(
    session: &mut Session<Db>,
    number: u64,
    by: i8,
    after: Duration,
) -> Outcome<Answer> {
    let (kept, db) = (Mutex::new(None), session.database().clone());
    let kept = &kept;
    let added = session.apply(|tx| async move {
        *kept.lock() = Some(tx.clone());
        add(&tx, number, by).await
    });
    ended(join(added, meddle(&db, kept, after)).await.0)
}

/// Uses the transaction that is kept, if there is one by then. The call disturbs a commit; its result does
/// not matter.
pub(super) async fn meddle(db: &Db, kept: &Mutex<Option<Tx>>, after: Duration) {
    db.env().sleep(after).await;
    let clone = kept.lock().clone();
    if let Some(tx) = clone {
        let _ = tx.get(&register(0), Serializable).await;
    }
}

/// Prepares an operation in a transaction that is not committed yet.
pub(super) async fn prepared(
    session: &mut Session<Db>,
    by: i8,
) -> Result<(OpId, Tx, PendingAnswer<RecordedAnswer>), Refusal> {
    let op = session.begin().await?;
    let (db, slots) = (session.database().clone(), session.slots().clone());
    let ready = async {
        let tx = db.create_transaction()?;
        let landing = match check::<_, RecordedAnswer>(&tx, &slots, op).await? {
            Check::Done(answer) => PendingAnswer::ready(answer),
            Check::New(permit) => record(&tx, permit, add(&tx, op.client, by).await?)?,
        };
        Ok((op, tx, landing))
    };
    match ready.await {
        Err(error) => {
            // Nothing was committed.
            let ran = RunError { error, maybe_committed: false, attempts: 1 };
            let _ = session.conclude::<RecordedAnswer, Refusal>(op, Err(ran)).await;
            Err(error)
        }
        ready => ready,
    }
}

/// Adds. If the commit still waits after this many polls, drops its future and returns the operation.
pub(super) async fn cut(session: &mut Session<Db>, by: i8, polls: u8) -> Result<Outcome<Answer>, OpId> {
    let (op, tx, landing) = match prepared(session, by).await {
        Ok(prepared) => prepared,
        Err(refusal) => return Ok(Outcome::Answered(refused(refusal))),
    };
    let ran = match sessions::polled(u64::from(polls), tx.commit()).await {
        None => return Err(op),
        // What the session would do itself.
        Some(Ok(())) => match landing.answer().await {
            Ok(answer) => Ok(PendingAnswer::ready(answer)),
            Err(e) => Err(RunError { error: e.into(), maybe_committed: true, attempts: 1 }),
        },
        Some(Err(e)) => {
            Err(RunError { error: Refusal::Fdb(e), maybe_committed: e.leaves_commit_unknown(), attempts: 1 })
        }
    };
    Ok(ended(session.conclude(op, ran).await))
}

/// Several operations, one after the other. An operation resolves the previous one if its outcome is unknown.
pub(super) async fn burst(session: &mut Session<Db>, number: u64, count: u16) -> Answer {
    let mut applied = 0;
    for n in 0..count {
        let by = if n % 2 == 0 { 1 } else { -1 };
        match session.apply(|tx| async move { Ok::<_, Refusal>(blind(&tx, number, by)) }).await {
            once::Outcome::Applied(_) => applied += 1,
            once::Outcome::Refused(unread @ Refusal::Once(Error::Unresolved(_))) => return refused(unread),
            once::Outcome::Refused(refusal) if refusal.fdb().is_none() => break,
            once::Outcome::Refused(_) | once::Outcome::Unknown(_) => {}
        }
    }
    Answer::Burst(applied)
}
