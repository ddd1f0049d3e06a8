//! The record within a transaction: check, record, resolve.

use super::{
    Answer, Error, MAX_ANSWER_BYTES, OpId, Slots,
    keys::{Decision, Slot},
};
use crate::{Database, Isolation, MutationType, Transaction, reachable, sometimes};
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use std::{fmt, future::Future};

/// The certain result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate<A> {
    /// It was applied once, with this answer.
    Applied(A),
    /// It was not applied and never will be.
    NotApplied,
    /// The slot has moved on: a later operation, or one of a later incarnation, has overwritten the record.
    Forgotten,
}

impl<A> Fate<A> {
    /// Maps the answer with `f`.
    pub fn map<B>(self, f: impl FnOnce(A) -> B) -> Fate<B> {
        match self {
            Fate::Applied(answer) => Fate::Applied(f(answer)),
            Fate::NotApplied => Fate::NotApplied,
            Fate::Forgotten => Fate::Forgotten,
        }
    }

    pub(super) fn try_map<B>(self, f: impl FnOnce(A) -> Option<B>) -> Result<Fate<B>, Error> {
        Ok(match self {
            Fate::Applied(answer) => Fate::Applied(f(answer).ok_or(Error::Unreadable)?),
            Fate::NotApplied => Fate::NotApplied,
            Fate::Forgotten => Fate::Forgotten,
        })
    }
}

/// The result of [`check`].
#[derive(Debug)]
pub enum Check<A> {
    /// The operation has not been done yet: do it, and [`record`] it in the same transaction.
    New(Permit),
    /// An earlier attempt was applied with this answer: change nothing.
    Done(A),
}

/// Permission to apply one operation in one transaction; only [`check`] creates it.
#[derive(Debug)]
pub struct Permit {
    key: Bytes,
    op: OpId,
}

/// An answer that is available after the commit: it may contain the versionstamp of a transaction that has
/// not committed yet.
pub struct PendingAnswer<A>(State<A>);

enum State<A> {
    Ready(A),
    Stamped(Stamped),
}

/// An encoded answer, and the place of the versionstamp that it waits for.
pub(super) struct Stamped {
    answer: BytesMut,
    at: usize,
    stamp: BoxFuture<'static, crate::Result<[u8; 10]>>,
}

impl<A: Answer> PendingAnswer<A> {
    /// An answer that does not depend on the commit.
    pub fn ready(answer: A) -> PendingAnswer<A> {
        PendingAnswer(State::Ready(answer))
    }

    /// The answer; must be called after the transaction has committed.
    pub async fn answer(self) -> Result<A, Error> {
        match self.0 {
            State::Ready(answer) => Ok(answer),
            State::Stamped(stamped) => A::decode(stamped.complete().await?).ok_or(Error::Unreadable),
        }
    }

    /// The answer, or what completes it.
    pub(super) fn split(self) -> (Option<A>, Option<Stamped>) {
        match self.0 {
            State::Ready(answer) => (Some(answer), None),
            State::Stamped(stamped) => (None, Some(stamped)),
        }
    }
}

impl Stamped {
    /// The encoded answer with its versionstamp.
    pub(super) async fn complete(mut self) -> Result<Bytes, Error> {
        self.answer[self.at..self.at + 10].copy_from_slice(&self.stamp.await?);
        Ok(self.answer.freeze())
    }
}

impl<A> fmt::Debug for PendingAnswer<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PendingAnswer")
    }
}

pub(super) async fn read<T: Transaction>(tx: &T, key: &[u8]) -> Result<Option<Slot>, Error> {
    tx.get(key, Isolation::Serializable).await?.map(Slot::decode).transpose()
}

/// Reads the slot serializably, and returns whether `op` is still to be done in this transaction.
///
/// Fails with [`Error::Superseded`] if a later session has opened the slot, and with [`Error::Fenced`] if the
/// operation was resolved as not applied; both are final.
pub async fn check<T: Transaction, A: Answer>(tx: &T, slots: &Slots, op: OpId) -> Result<Check<A>, Error> {
    match look(tx, slots, op).await? {
        Check::New(permit) => Ok(Check::New(permit)),
        Check::Done(answer) => A::decode(answer).map(Check::Done).ok_or(Error::Unreadable),
    }
}

/// [`check`] with the encoded answer.
pub(super) async fn look<T: Transaction>(tx: &T, slots: &Slots, op: OpId) -> Result<Check<Bytes>, Error> {
    let key = slots.key(op.client);
    let slot = read(tx, &key).await?.ok_or(Error::Superseded)?;
    if slot.answered == (op.epoch, op.seq) {
        return match slot.decision {
            Decision::Applied(answer) => {
                reachable!("once: a retry finds its operation recorded");
                Ok(Check::Done(answer))
            }
            Decision::Never => Err(Error::Fenced),
        };
    }
    if slot.epoch != op.epoch || slot.answered > (op.epoch, op.seq) {
        return Err(Error::Superseded);
    }
    Ok(Check::New(Permit { key, op }))
}

/// Writes the operation and its answer into the slot. If the answer contains an incomplete versionstamp, the
/// slot cannot be read again in this transaction (1036).
pub fn record<T: Transaction, A: Answer>(
    tx: &T,
    permit: Permit,
    answer: A,
) -> Result<PendingAnswer<A>, Error> {
    let draft = draft(permit, &answer)?;
    Ok(PendingAnswer(write(tx, draft)?.map_or(State::Ready(answer), State::Stamped)))
}

/// What is to be written into a slot.
pub(super) struct Draft {
    key: Bytes,
    value: BytesMut,
    /// Where the answer begins.
    header: usize,
    /// Where an incomplete versionstamp of the answer is.
    stamp: Option<usize>,
}

pub(super) fn draft<A: Answer>(permit: Permit, answer: &A) -> Result<Draft, Error> {
    let mut value = Slot::header(permit.op.epoch, (permit.op.epoch, permit.op.seq), true);
    let header = value.len();
    let stamp = answer.encode(&mut value)?;
    Ok(Draft { key: permit.key, value, header, stamp })
}

/// Writes a slot.
pub(super) fn write<T: Transaction>(tx: &T, draft: Draft) -> Result<Option<Stamped>, Error> {
    let Draft { key, mut value, header, stamp } = draft;
    let bytes = value.len() - header;
    if bytes > MAX_ANSWER_BYTES {
        return Err(Error::AnswerTooLarge { bytes, limit: MAX_ANSWER_BYTES });
    }
    let Some(at) = stamp else {
        tx.set(&key, &value);
        return Ok(None);
    };
    let answer = BytesMut::from(&value[header..]);
    value.extend_from_slice(&(at as u32).to_le_bytes());
    tx.atomic_op(&key, &value, MutationType::SetVersionstampedValue);
    Ok(Some(Stamped { answer, at: at - header, stamp: tx.get_versionstamp() }))
}

/// Determines the fate of `op` and makes it final: an operation that is not recorded is fenced, so that an
/// attempt in flight, or one not yet begun, can no longer be applied.
///
/// Can be called by any process. After an error, nothing is known, and the call can safely be repeated.
///
/// Dropping the future: the operation may or may not have been fenced; call again.
pub fn resolve<D: Database, A: Answer>(
    db: &D,
    slots: &Slots,
    op: OpId,
) -> impl Future<Output = Result<Fate<A>, Error>> + Send {
    async move {
        let key = slots.key(op.client);
        let key = &key;
        let ran = db.run(|tx, _| async move { fence(&tx, key, op).await }).await;
        ran.map_err(|e| e.error)?.try_map(A::decode)
    }
}

async fn fence<T: Transaction>(tx: &T, key: &[u8], op: OpId) -> Result<Fate<Bytes>, Error> {
    let Some(mut slot) = read(tx, key).await? else {
        return Ok(Fate::Forgotten);
    };
    let requested = (op.epoch, op.seq);
    if slot.answered == requested {
        sometimes!(slot.decision != Decision::Never, "once: an unknown operation turns out applied");
        return Ok(match slot.decision {
            Decision::Applied(answer) => Fate::Applied(answer),
            Decision::Never => Fate::NotApplied,
        });
    }
    if slot.answered > requested || slot.epoch < op.epoch {
        return Ok(Fate::Forgotten);
    }
    // The `open` of a later incarnation has written the slot: every attempt of this epoch read the slot
    // before that, and conflicts. For the current epoch, the slot must be written here.
    if slot.epoch == op.epoch {
        reachable!("once: an unknown operation is ruled out");
        (slot.answered, slot.decision) = (requested, Decision::Never);
        tx.set(key, &slot.encode());
    }
    Ok(Fate::NotApplied)
}
