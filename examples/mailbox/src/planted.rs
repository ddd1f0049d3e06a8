//! The layer done wrong, one planted bug at a time.

use crate::{
    layer::{self, Refusal},
    workload::{Answer, MailOp, Planted, Worker, outcome_of, took},
};
use foundationdb_tuple::pack;
use futures::future::{Either, select};
use shaketable::prelude::*;
use shaketable_tx::once::Packed;
use std::time::Duration;

/// Does an operation with the bug in it; `None` for what the bug leaves alone.
pub async fn apply_planted(planted: Planted, worker: &mut Worker, op: &MailOp) -> Option<Outcome<Answer>> {
    match (planted, op) {
        (Planted::BlindRetry, MailOp::post { mailbox, job }) => {
            let (mailbox, job) = (*mailbox, *job);
            let posted = worker.session.database().run(|tx, _| async move {
                layer::post(&tx, mailbox, job);
                Ok::<_, tx::Error>(())
            });
            Some(match posted.await {
                Ok(()) => Outcome::Answered(Answer::Posted),
                Err(failed) if failed.maybe_committed => Outcome::Unknown(failed.error),
                Err(failed) => Outcome::Failed(failed.error),
            })
        }
        (Planted::BlindRetry, _) | (_, MailOp::post { .. } | MailOp::finish {}) => None,
        (_, MailOp::take { patience }) => {
            let patience = Duration::from_millis(*patience);
            Some(outcome_of(take_within(planted, worker, patience).await, took))
        }
    }
}

async fn take_within(
    planted: Planted,
    Worker { session, mailbox, number }: &mut Worker,
    patience: Duration,
) -> once::Outcome<Option<Packed<u64>>, Refusal> {
    let (db, mailbox, worker) = (session.database().clone(), *mailbox, *number);
    let (mut patience, mut waits) = (db.env().sleep(patience), true);
    loop {
        let looked = db.run(|tx, _| async move {
            let is_ready = layer::is_ready(&tx, mailbox, worker).await?;
            let posted = (waits && !is_ready).then(|| tx.watch(&layer::bell(mailbox)));
            Ok::<_, Refusal>((is_ready, posted))
        });
        let (is_ready, mut posted) = match looked.await {
            Ok(looked) => looked,
            Err(failed) => return once::Outcome::Refused(failed.error),
        };
        if is_ready {
            match session.apply(|tx| async move { claim(planted, &tx, mailbox, worker).await }).await {
                once::Outcome::Applied(None) => continue,
                claimed => return claimed,
            }
        }
        if planted == Planted::LostWakeUp && posted.is_some() {
            // A job that was posted since the look changes the bell before the watch is set.
            let watched = db.run(|tx, _| async move { Ok::<_, Refusal>(tx.watch(&layer::bell(mailbox))) });
            match watched.await {
                Ok(watch) => posted = Some(watch),
                Err(failed) => return once::Outcome::Refused(failed.error),
            }
        }
        let Some(posted) = posted else { return once::Outcome::Applied(None) };
        match select(posted, &mut patience).await {
            Either::Left((Ok(()), _)) => {}
            Either::Left((Err(error), _)) if error.is_retryable() => {
                db.env().sleep(Duration::from_millis(10)).await;
            }
            Either::Left((Err(error), _)) => return once::Outcome::Refused(error.into()),
            Either::Right(_) if planted == Planted::NoLastLook => return once::Outcome::Applied(None),
            Either::Right(_) => waits = false,
        }
    }
}

async fn claim(planted: Planted, tx: &Tx, mailbox: u32, worker: u32) -> Result<Option<Packed<u64>>, Refusal> {
    let isolation = match planted {
        Planted::ClaimAtSnapshot => Snapshot,
        Planted::DeskForgotten => Serializable,
        _ => return layer::claim(tx, mailbox, worker).await,
    };
    let on_desk = layer::on_desk(tx, worker, Serializable).await?;
    let first = layer::first(tx, mailbox, isolation).await?;
    match (on_desk, first) {
        (Some(job), None) => Ok(Some(Packed(job))),
        (Some(job), _) if planted == Planted::ClaimAtSnapshot => Ok(Some(Packed(job))),
        (None, None) => Ok(None),
        (_, Some((key, job))) => {
            tx.clear(&key);
            tx.set(&layer::desk(worker), &pack(&job));
            Ok(Some(Packed(job)))
        }
    }
}
