//! Planted bugs: the exactly-once mechanism implemented or used wrongly.

use super::{
    Answer, Client, Known, Refusal, SessionsOp,
    client::{Ended, refused},
    operations::{Long, RecordedAnswer, applied_answer},
    register::{add, blind},
    slot::Slot,
    ways::{cut, meddle},
};
use crate::shared;
use bytes::{Bytes, BytesMut};
use futures::future::join;
use parking_lot::Mutex;
use shaketable::{sessions::slots, workload::Outcome};
use shaketable_tx::{
    Database, Db, Error,
    Isolation::{Serializable, Snapshot},
    MutationType, RetryError, Transaction, Tx,
    once::{self, Answer as _, OpId, Packed, Session},
};
use std::{
    ops::ControlFlow::{self, Break, Continue},
    time::Duration,
};

shaketable::planted_bugs! {
    Unread = "unread-slot", "the record is written without a read of the slot", "a retry that expects no other writer";
    SnapshotSlot = "snapshot-slot", "the slot is read at snapshot", "a record outside the conflict ranges";
    OldEpoch = "old-epoch", "a superseded session goes on", "a process believed dead";
    OneByte = "one-byte-numbers", "operations are counted in one byte", "a counter that was never thought large";
    UsedIsRefused = "used-is-refused", "2017 of a commit counts as a refusal", "a list of unknown results that is not complete", "unknown-fatal";
    FatalIsRefused = "fatal-is-refused", "1022 of a commit counts as a refusal", "a list of unknown results that is not complete", "unknown-fatal";
    RefusedUnfenced = "refused-unfenced", "a refusal after an unknown attempt is returned as it is", "a retry loop that keeps the last error alone";
    DroppedIsRefused = "dropped-is-refused", "an operation whose commit was dropped counts as not applied", "a request time-out";
    UnfencedFate = "unfenced-fate", "an operation that is not recorded counts as not applied, without a fence", "a look for a record";
    BegunOver = "begun-over", "an operation begins although a dropped one was not resolved", "an answer that is lost unnoticed";
    CutLength = "cut-length", "the length of an answer's head is cut off to one byte", "a cast that truncates";
    AnswersLast = "answers-the-last", "whatever is recorded in the slot is taken for the operation's own answer", "a slot without numbers";
}

/// Performs an operation that the bug changes; `None` for every other operation. The error is the answer of
/// one that could not begin.
pub async fn apply(
    planted: Planted,
    client: &mut Client,
    op: &SessionsOp,
) -> Result<Option<Outcome<Answer>>, Answer> {
    use Planted::*;
    Ok(Some(match (planted, op) {
        (DroppedIsRefused, SessionsOp::cut { by, polls }) => {
            let failed = |_| Outcome::Answered(Answer::Failed(Error::OPERATION_CANCELLED.code()));
            cut(client.session().await?, *by, *polls).await.unwrap_or_else(failed)
        }
        (CutLength, SessionsOp::too_large { by, answer: Long(head @ 256.., _) }) => {
            let (number, by, head) = (client.number, *by, *head);
            let added = client.session().await?.apply(|tx| async move {
                add(&tx, number, by).await?;
                Ok::<_, Refusal>(Bytes::from([vec![head as u8], vec![7; head]].concat()))
            });
            let applied = |_| Answer::Applied(by.into(), [0; 10]);
            shared::ended(added.await, applied, |refusal| Outcome::Answered(refused(refusal)))
        }
        (BegunOver, op) if op.begins() => {
            if let Ok(session) = client.session().await {
                // The operation itself encounters the same problem.
                let _ = read(session).await;
            }
            return Ok(None);
        }
        (UnfencedFate, SessionsOp::settle { .. }) => look_for_record(client.session().await?).await,
        (UsedIsRefused, SessionsOp::disturbed { by, after }) => {
            added(planted, client, *by, false, Some(Duration::from_micros(100 * u64::from(*after)))).await?
        }
        (UnfencedFate | UsedIsRefused | DroppedIsRefused | BegunOver | CutLength, _) => return Ok(None),
        (OneByte, SessionsOp::burst { count }) => {
            let mut applied = 0;
            for n in 0..*count {
                let by = if n % 2 == 0 { 1 } else { -1 };
                let added = added(planted, client, by, true, None).await;
                applied += u16::from(matches!(added, Ok(Outcome::Answered(Answer::Applied(..)))));
            }
            Outcome::Answered(Answer::Burst(applied))
        }
        (_, SessionsOp::add { by }) => added(planted, client, *by, false, None).await?,
        (_, SessionsOp::blind { by }) => added(planted, client, *by, true, None).await?,
        _ => return Ok(None),
    }))
}

/// Checks whether the pending operation is recorded, without a fence.
async fn look_for_record(session: &mut Session<Db>) -> Outcome<Answer> {
    let Some(op) = session.pending() else { return Outcome::Answered(Answer::Nothing) };
    let key = &slots().key(op.client);
    let read = session.database().run(|tx, _| async move { tx.get(key, Serializable).await });
    Outcome::Answered(match read.await {
        Err(e) => Answer::Failed(e.error.code()),
        Ok(value) => {
            let last = value.and_then(|value| Slot::of(&value).ok()?.last(op.client).ok()?);
            let fate = last.filter(|(last, _)| *last == op).map(|(_, fate)| fate);
            Answer::Fate(op, fate.unwrap_or(Known::NotApplied))
        }
    })
}

/// Resolves the operation before which no other one may begin, and ignores the result.
async fn read(session: &mut Session<Db>) -> Result<(), once::Error> {
    match session.unresolved() {
        Some(unread) => session.resolve::<Bytes>(unread).await.map(drop),
        None => Ok(()),
    }
}

/// Adds with a mechanism of its own that has the bug.
async fn added(
    planted: Planted,
    client: &mut Client,
    by: i8,
    blind: bool,
    disturbed: Option<Duration>,
) -> Ended {
    let dropped = client.dropped;
    let session = client.session().await?;
    // What it has begun itself is not concluded.
    if dropped.is_none() {
        read(session).await.map_err(refused)?;
    }
    let op = session.begin().await.map_err(refused)?;
    let (db, kept) = (session.database(), Mutex::new(None));
    let attempts = attempts(planted, db, op, by, blind, &kept);
    match disturbed {
        None => attempts.await,
        Some(after) => join(attempts, meddle(db, &kept, after)).await.0,
    }
}

/// Makes attempts in a retry loop of its own. The error is the answer of an operation that was refused.
async fn attempts(
    planted: Planted,
    db: &Db,
    op: OpId,
    by: i8,
    blind: bool,
    kept: &Mutex<Option<Tx>>,
) -> Ended {
    let tx = db.create_transaction().map_err(|e| Answer::Failed(e.code()))?;
    let (mut maybe_committed, mut number) = (false, 0);
    loop {
        *kept.lock() = Some(tx.clone());
        let stamp = tx.get_versionstamp();
        let failed = match attempt(planted, &tx, op, by, blind, number).await {
            Ok(Break(answer)) => return Ok(Outcome::Answered(answer)),
            Ok(Continue(value)) => match tx.commit().await {
                Ok(()) => {
                    let stamped = |stamp| Outcome::Answered(Answer::Applied(value, stamp));
                    return Ok(stamp.await.map_or_else(Outcome::Unknown, stamped));
                }
                Err(Error::COMMIT_UNKNOWN_RESULT_FATAL) if planted == Planted::FatalIsRefused => {
                    return Err(Answer::Failed(1022));
                }
                Err(Error::USED_DURING_COMMIT) if planted == Planted::UsedIsRefused => {
                    return Err(Answer::Failed(2017));
                }
                Err(e) => {
                    maybe_committed |= e.leaves_commit_unknown();
                    Refusal::Fdb(e)
                }
            },
            Err(e) => e,
        };
        let given_up = match failed.fdb() {
            Some(error) => tx.on_error(error).await.err().map(Refusal::Fdb),
            None => Some(failed),
        };
        match given_up {
            Some(refusal) if !maybe_committed => return Err(refused(refusal)),
            Some(refusal) if planted == Planted::RefusedUnfenced && refusal.fdb().is_none() => {
                return Err(refused(refusal));
            }
            Some(_) => return Ok(Outcome::Unknown(Error::COMMIT_UNKNOWN_RESULT)),
            None => number += 1,
        }
    }
}

/// Makes an attempt, up to its commit. Returns an answer if the operation has ended, and otherwise the value
/// that is recorded if the attempt commits.
async fn attempt(
    planted: Planted,
    tx: &Tx,
    op: OpId,
    by: i8,
    blind: bool,
    number: u32,
) -> Result<ControlFlow<Answer, i64>, Refusal> {
    let key = slots().key(op.client);
    let slot = match planted {
        Planted::Unread => Slot { epoch: op.epoch, ..Slot::default() },
        _ => {
            let isolation = if planted == Planted::SnapshotSlot { Snapshot } else { Serializable };
            let value = tx.get(&key, isolation).await?;
            value.and_then(|value| Slot::of(&value).ok()).ok_or(once::Error::Superseded)?
        }
    };
    let is_own = slot.answered == (op.epoch, op.seq) || planted == Planted::AnswersLast && number > 0;
    if let Some(recorded) = slot.applied.filter(|_| is_own).and_then(RecordedAnswer::decode) {
        return Ok(Break(applied_answer(recorded)));
    }
    if slot.answered == (op.epoch, op.seq) {
        return Err(once::Error::Fenced.into());
    }
    let is_over = slot.epoch != op.epoch || slot.answered > (op.epoch, op.seq);
    if is_over && !matches!(planted, Planted::OldEpoch | Planted::OneByte) {
        return Err(once::Error::Superseded.into());
    }
    let told = if blind { self::blind(tx, op.client, by) } else { add(tx, op.client, by).await? };
    let Packed((sum, _)) = told;
    let seq = if planted == Planted::OneByte { op.seq & 0xff } else { op.seq };
    let mut value = BytesMut::from(&[1][..]);
    [op.epoch, op.epoch, seq].iter().for_each(|word| value.extend_from_slice(&word.to_be_bytes()));
    value.extend_from_slice(&[1]);
    let offset = told.encode(&mut value)?.unwrap_or_default() as u32;
    value.extend_from_slice(&offset.to_le_bytes());
    tx.atomic_op(&key, &value, MutationType::SetVersionstampedValue);
    Ok(Continue(sum))
}
