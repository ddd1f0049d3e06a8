//! How the calls of a transaction are performed, and what their client learns.

use super::{Answer, Mounted, Specimen};
use crate::{describe::isolation, describe::workload::Outcome};
use bytes::{BufMut, Bytes, BytesMut};
use futures::{
    FutureExt,
    future::{BoxFuture, join_all},
};
use serde::{Serialize, de::DeserializeOwned};
use shaketable_tx::{
    self as tx, Database, Db, Env, FirstWrite, Isolation, RetryError, RunError, Transaction,
    TransactionOption, Turns, Tx,
    once::{self, Session},
};
use std::{
    fmt::Display,
    future::Future,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// The answers of one transaction, in the format in which the session records them.
pub struct Recorded<A>(pub Vec<A>);

/// Writes the answers of a transaction as its session records them.
fn write_answers<A: Serialize>(answers: &[A], out: &mut BytesMut) -> Result<(), once::Error> {
    // Through the forms that a repro file's values take as well: nothing is compiled for answers alone.
    let answers: Vec<&dyn erased_serde::Serialize> = answers.iter().map(|answer| answer as _).collect();
    // Plain data with text keys only: serializing it cannot fail.
    serde_json::to_writer(out.writer(), &answers).map_err(|_| once::Error::Unreadable)
}

/// Whether a transaction was refused because its session cannot record these answers: the layer is not to
/// blame.
pub(super) fn are_too_large<A: Serialize>(answers: &[A], refusal: &str) -> bool {
    let mut recorded = BytesMut::new();
    let written = write_answers(answers, &mut recorded);
    let too_large = once::Error::AnswerTooLarge { bytes: recorded.len(), limit: once::MAX_ANSWER_BYTES };
    written.is_ok() && recorded.len() > once::MAX_ANSWER_BYTES && refusal == too_large.to_string()
}

impl<A: Serialize + DeserializeOwned + Send> once::Answer for Recorded<A> {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        write_answers(&self.0, out)?;
        Ok(None)
    }

    fn decode(bytes: Bytes) -> Option<Self> {
        let answers: Vec<serde_json::Value> = serde_json::from_slice(&bytes).ok()?;
        answers.iter().map(A::deserialize).collect::<Result<_, _>>().ok().map(Recorded)
    }
}

/// One in this many read-only calls is done at both isolation levels.
const READS_PER_DOUBLE_READ: u64 = 4;

/// The transaction of one call.
fn of_call<S: Specimen>(mounted: &Mounted<S>, tx: impl Transaction) -> Tx {
    match mounted.takes_turns() {
        true => Tx::in_turns(tx),
        false => Tx::new(tx),
    }
}

/// Does a read-only call at both isolation levels.
#[allow(clippy::manual_async_fn, reason = "see perform_all")]
fn perform_at_both_levels<'a, S: Specimen>(
    mounted: &'a Mounted<S>,
    tx: &'a Tx,
    env: &'a Env,
    op: &'a S::Op,
) -> impl Future<Output = Result<S::Answer, S::Error>> + Send + 'a {
    async move {
        let read = |tx, isolation| async move {
            let tx = of_call(mounted, tx);
            Box::pin(mounted.perform_call(&tx, env, op, isolation)).await
        };
        isolation::at_both_levels(tx, op, read).await
    }
}

/// Whether a call of a transaction that does several side by side has failed with an error of FoundationDB.
/// The transaction is lost then, and the other calls may find what that one has left half done.
type Failed = AtomicBool;

/// Does one call: some of the read-only ones at both isolation levels, unless others run `beside` it.
#[allow(clippy::manual_async_fn, reason = "see perform_all")]
fn perform_one<'a, S: Specimen>(
    mounted: &'a Mounted<S>,
    tx: &'a Tx,
    env: &'a Env,
    op: &'a S::Op,
    beside: Option<&'a Failed>,
) -> impl Future<Output = Result<S::Answer, S::Error>> + Send + 'a {
    async move {
        let twice = beside.is_none()
            && mounted.specimen.takes_isolation(op)
            && env.random_u64().is_multiple_of(READS_PER_DOUBLE_READ);
        if twice {
            return Box::pin(perform_at_both_levels(mounted, tx, env, op)).await;
        }
        let wrote = FirstWrite::default();
        let within = of_call(mounted, tx.clone()).noting(wrote.clone());
        let answer = Box::pin(mounted.perform_call(&within, env, op, Isolation::Serializable)).await;
        if let Err(refusal) = &answer {
            let is_lost = || beside.is_some_and(|failed| failed.load(Relaxed));
            if refusal.fdb().is_some() {
                beside.inspect(|failed| failed.store(true, Relaxed));
            } else if S::refuses_cleanly(op, refusal) && !is_lost() {
                isolation::check_refusal(wrote.get(), op, refusal);
            }
        }
        answer
    }
}

/// One in this many transactions with several calls does them side by side.
const TRANSACTIONS_PER_JOINED: u64 = 2;

/// Does the calls of one transaction in order: one after the other, or with joined futures. The answer is
/// that of the first call that fails.
#[allow(
    clippy::manual_async_fn,
    reason = "a plain async fn that borrows into `Database::run` is not Send (rust-lang/rust#100013)"
)]
pub(super) fn perform_all<'a, S: Specimen>(
    mounted: &'a Mounted<S>,
    tx: Tx,
    env: &'a Env,
    ops: &'a [S::Op],
) -> impl Future<Output = Result<Vec<S::Answer>, S::Error>> + Send + 'a {
    async move {
        let joins = S::JOINS && ops.len() > 1 && env.random_u64().is_multiple_of(TRANSACTIONS_PER_JOINED);
        if joins {
            let failed = Failed::default();
            let mut calls = Vec::with_capacity(ops.len());
            for op in ops {
                calls.push(perform_one(mounted, &tx, env, op, Some(&failed)).boxed());
            }
            return join(calls).await;
        }
        let mut answers = Vec::with_capacity(ops.len());
        for op in ops {
            answers.push(perform_one(mounted, &tx, env, op, None).await?);
        }
        Ok(answers)
    }
}

/// Polls calls of one transaction side by side, and returns their answers, or the error of the first one that
/// fails.
pub async fn join<A, E>(calls: Vec<BoxFuture<'_, Result<A, E>>>) -> Result<Vec<A>, E> {
    join_all(calls).await.into_iter().collect()
}

/// Does the calls side by side, and lets none wait for another one: each has turns of its own.
#[allow(clippy::manual_async_fn, reason = "see perform_all")]
pub(super) fn perform_interleaved<'a, S: Specimen>(
    mounted: &'a Mounted<S>,
    tx: Tx,
    env: &'a Env,
    ops: &'a [S::Op],
) -> impl Future<Output = Result<Vec<S::Answer>, S::Error>> + Send + 'a {
    async move {
        let failed = &Failed::default();
        let mut calls = Vec::with_capacity(ops.len());
        for op in ops {
            let apart = tx.with_turns(Turns::default());
            calls.push(async move { perform_one(mounted, &apart, env, op, Some(failed)).await }.boxed());
        }
        join(calls).await
    }
}

/// The outcome of an operation that ended with an error and has no effect: FoundationDB's errors are
/// failures, and those of the layer are answers.
pub fn refused<A, E: RetryError + Display>(error: &E) -> Outcome<Answer<A>> {
    error.fdb().map_or_else(|| Outcome::Answered(Answer::Refused(error.to_string())), Outcome::Failed)
}

/// The outcome of an exactly-once operation for its client.
pub fn concluded<A, E: RetryError + Display>(outcome: once::Outcome<Recorded<A>, E>) -> Outcome<Answer<A>> {
    match outcome {
        once::Outcome::Applied(Recorded(answers)) => Outcome::Answered(Answer::Done(answers)),
        once::Outcome::Refused(e) => refused(&e),
        once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
    }
}

/// The outcome of a retry loop without a session for its client.
pub fn ran<A, E: RetryError + Display>(ran: Result<Vec<A>, RunError<E>>) -> Outcome<Answer<A>> {
    match ran {
        Ok(answers) => Outcome::Answered(Answer::Done(answers)),
        Err(e) => match e.error.fdb() {
            Some(error) if e.maybe_committed => Outcome::Unknown(error),
            _ => refused(&e.error),
        },
    }
}

/// How the reads of a transaction without a session get their version.
pub(super) enum Reads {
    /// As always.
    Fresh,
    /// With the option `CausalReadRisky`.
    Risky,
    /// At the version that was kept, if there is one, in the first attempt.
    Kept(Option<i64>),
}

/// Does the calls in a retry loop without a session. Returns the read version with the answers, if it is to
/// be kept.
pub(super) async fn run_all<S: Specimen>(
    mounted: &Mounted<S>,
    db: &Db,
    ops: &[S::Op],
    reads: Reads,
) -> Result<(Option<i64>, Vec<S::Answer>), RunError<S::Error>> {
    let (env, reads) = (db.env(), &reads);
    db.run(|tx, attempt| async move {
        let version = match *reads {
            Reads::Fresh => None,
            Reads::Risky => {
                tx.set_option(TransactionOption::CausalReadRisky)?;
                None
            }
            Reads::Kept(kept) => {
                if let (Some(version), 0) = (kept, attempt.number) {
                    tx.set_read_version(version);
                }
                Some(tx.get_read_version().await?)
            }
        };
        Ok((version, perform_all(mounted, tx, env, ops).await?))
    })
    .await
}

/// Does the calls in a retry loop without a session, and returns their outcome for the client.
pub(super) async fn ran_all<S: Specimen>(
    mounted: &Mounted<S>,
    db: &Db,
    ops: &[S::Op],
    reads: Reads,
) -> Outcome<Answer<S::Answer>> {
    ran(run_all(mounted, db, ops, reads).await.map(|(_, answers)| answers))
}

/// Does the calls as one operation of the session.
pub(super) async fn apply_all<S: Specimen>(
    mounted: &Mounted<S>,
    session: &mut Session<Db>,
    ops: &[S::Op],
) -> once::Outcome<Recorded<S::Answer>, S::Error> {
    let db = session.database().clone();
    let env = db.env();
    session.apply(|tx| async move { perform_all(mounted, tx, env, ops).await.map(Recorded) }).await
}

/// Does calls in a transaction that is never committed, and returns their answers as if it had been.
pub(super) async fn without_commit<S: Specimen>(
    mounted: &Mounted<S>,
    db: &Db,
    ops: &[S::Op],
) -> Outcome<Answer<S::Answer>> {
    let Ok(tx) = db.create_transaction() else {
        return Outcome::Failed(tx::Error::OPERATION_CANCELLED);
    };
    loop {
        let error = match perform_all(mounted, tx.clone(), db.env(), ops).await {
            Ok(answers) => return Outcome::Answered(Answer::Done(answers)),
            Err(e) => match e.fdb() {
                Some(e) => e,
                None => return refused(&e),
            },
        };
        if let Err(e) = tx.on_error(error).await {
            return Outcome::Failed(e);
        }
    }
}

/// Does the calls in a transaction without a session. It retries only if the last attempt certainly had no
/// effect.
pub(super) async fn without_session<S: Specimen>(
    mounted: &Mounted<S>,
    db: &Db,
    ops: &[S::Op],
) -> Outcome<Answer<S::Answer>> {
    let tx = match db.create_transaction() {
        Ok(tx) => tx,
        Err(e) => return Outcome::Failed(e),
    };
    loop {
        let error = match perform_all(mounted, tx.clone(), db.env(), ops).await {
            Ok(answers) => match tx.commit().await {
                Ok(()) => return Outcome::Answered(Answer::Done(answers)),
                Err(e) if e.is_retryable_not_committed() => e,
                Err(e) => return Outcome::Unknown(e),
            },
            Err(e) => match e.fdb() {
                Some(e) => e,
                None => return refused(&e),
            },
        };
        if let Err(e) = tx.on_error(error).await {
            return Outcome::Failed(e);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::calm::simulate;
    use shaketable_tx::points;

    /// How many claims are broken by reading and writing a key in a turn of the caller's: in no turn of their
    /// own, in one that is shared, and in one alone.
    #[test]
    fn a_call_without_a_turn_of_its_own_is_a_broken_claim() {
        let broken = simulate(|db| async move {
            let tx = db.create_transaction().expect("a transaction").writing().await;
            let call = Tx::in_turns(tx);
            let mut broken = Vec::new();
            for taken in 0..3 {
                let within = match taken {
                    0 => call.clone(),
                    1 => call.reading().await,
                    _ => call.writing().await,
                };
                points::install();
                within.get(b"k", Isolation::Serializable).await.expect("a calm cluster");
                within.set(b"k", b"");
                broken.push(points::take().broken.len());
            }
            broken
        });
        assert_eq!(broken, [2, 1, 0]);
    }
}
