//! A client's session: the retry loop around the record.

use super::{
    Answer, Check, Error, Fate, Landing, OpId, Slots, check,
    keys::{Slot, Verdict},
    ops::read,
    record, resolve,
};
use crate::{
    reachable, sometimes,
    tx::{Database, RetryError, RunError},
};
use bytes::Bytes;
use std::future::Future;

/// What a mutating operation answers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome<A, E> {
    /// Applied, once, with this answer.
    Applied(A),
    /// Not applied, and never will be, for this reason.
    Refused(E),
    /// Applied or not, or still to land: ask [`resolve`] with this id.
    Unknown(OpId),
}

impl<A, E> Outcome<A, E> {
    /// Another answer in place of this one.
    pub fn map<B>(self, f: impl FnOnce(A) -> B) -> Outcome<B, E> {
        crate::called!();
        match self {
            Outcome::Applied(answer) => Outcome::Applied(f(answer)),
            Outcome::Refused(e) => Outcome::Refused(e),
            Outcome::Unknown(op) => Outcome::Unknown(op),
        }
    }
}

/// One incarnation of a client, which does one operation after the other, each exactly once.
#[derive(Debug)]
pub struct Session<D: Database> {
    db: D,
    slots: Slots,
    client: u64,
    epoch: u64,
    seq: u64,
    last: Option<(OpId, Fate<Bytes>)>,
    pending: Option<OpId>,
    settled: Option<(OpId, Fate<Bytes>)>,
}

impl<D: Database> Session<D> {
    /// Begins a new incarnation of `client`. Once this has succeeded, nothing that an earlier one left
    /// under way can land. An error changes nothing for the caller, who may open again.
    pub fn open(
        db: &D,
        slots: &Slots,
        client: u64,
    ) -> impl Future<Output = Result<Session<D>, Error>> + Send {
        crate::called!();
        async move {
            let key = slots.key(client);
            let key = &key;
            let opened = db
                .run(|tx, _| async move {
                    let mut slot = read(&tx, key).await?.unwrap_or_else(Slot::vacant);
                    slot.epoch += 1;
                    crate::tx::Transaction::set(&tx, key, &slot.encode());
                    Ok::<_, Error>(slot)
                })
                .await;
            let slot = opened.map_err(|e| e.error)?;
            sometimes!(slot.epoch > 1, "once: a client comes back");
            let (epoch, seq) = slot.answered;
            let fate = match slot.verdict {
                Verdict::Applied(answer) => Fate::Applied(answer),
                Verdict::Never => Fate::NotApplied,
            };
            Ok(Session {
                db: db.clone(),
                slots: slots.clone(),
                client,
                epoch: slot.epoch,
                seq: 0,
                last: (seq > 0).then_some((OpId { client, epoch, seq }, fate)),
                pending: None,
                settled: None,
            })
        }
    }

    /// The database this session works on.
    pub fn database(&self) -> &D {
        crate::called!();
        &self.db
    }

    /// Where this session's slot lives.
    pub fn slots(&self) -> &Slots {
        crate::called!();
        &self.slots
    }

    /// The last operation that earlier incarnations had recorded when this one opened, and its fate.
    /// Later operations of theirs were not applied.
    pub fn last<A: Answer>(&self) -> Result<Option<(OpId, Fate<A>)>, Error> {
        crate::called!();
        let Some((op, fate)) = &self.last else { return Ok(None) };
        Ok(Some((*op, fate.clone().try_map(A::decode)?)))
    }

    /// The operation whose fate this session does not know yet: one that ended unknown, or whose
    /// future was dropped.
    pub fn pending(&self) -> Option<OpId> {
        crate::called!();
        self.pending
    }

    /// Runs `body` in a transaction, exactly once, whatever happens to the commits.
    ///
    /// `body` may run several times, must have no effect but through its transaction, and must not
    /// commit it. It may call any number of layers. Its own errors refuse the operation.
    ///
    /// An operation of this session that is still unknown is settled first; while that does not
    /// succeed, this one is refused with the error met.
    pub fn apply<F, Fut, A, E>(&mut self, body: F) -> impl Future<Output = Outcome<A, E>> + Send
    where
        F: Fn(D::Transaction) -> Fut + Send + Sync,
        Fut: Future<Output = Result<A, E>> + Send,
        A: Answer,
        E: RetryError + From<Error> + Send,
    {
        crate::called!();
        async move {
            let op = match self.begin().await {
                Ok(op) => op,
                Err(e) => return Outcome::Refused(lift(e)),
            };
            let (slots, body) = (&self.slots, &body);
            let ran = self
                .db
                .run(|tx, _| async move {
                    match check(&tx, slots, op).await.map_err(lift::<E>)? {
                        Check::Done(answer) => Ok(Landing::ready(answer)),
                        Check::New(permit) => {
                            let answer = body(tx.clone()).await?;
                            record(&tx, permit, answer).map_err(lift)
                        }
                    }
                })
                .await;
            self.conclude(op, ran).await
        }
    }

    /// The next operation's id, for a caller with a retry loop of its own around [`check`] and
    /// [`record`]; to be given to [`conclude`](Session::conclude). Settles a pending operation first.
    pub fn begin(&mut self) -> impl Future<Output = Result<OpId, Error>> + Send {
        crate::called!();
        async move {
            if let Some(op) = self.pending {
                let fate = self.resolve::<Bytes>(op).await?;
                self.settled = Some((op, fate));
            }
            self.seq += 1;
            let op = OpId { client: self.client, epoch: self.epoch, seq: self.seq };
            self.pending = Some(op);
            Ok(op)
        }
    }

    /// Turns what the retry loop of `op` said into an outcome.
    pub fn conclude<A, E>(
        &mut self,
        op: OpId,
        ran: Result<Landing<A>, RunError<E>>,
    ) -> impl Future<Output = Outcome<A, E>> + Send
    where
        A: Answer,
        E: RetryError + Send,
    {
        crate::called!();
        async move {
            let refusal = match ran {
                Ok(landing) => match landing.landed().await {
                    Ok(answer) => {
                        self.pending = None;
                        return Outcome::Applied(answer);
                    }
                    Err(_) => None,
                },
                Err(e) if !e.maybe_committed => {
                    self.pending = None;
                    return Outcome::Refused(e.error);
                }
                // The loop gave up on the database, not on the operation: whoever waits may want to
                // hear of it now, and resolve later.
                Err(e) if e.error.fdb().is_some_and(|e| e.is_retryable() || e.leaves_commit_unknown()) => {
                    return Outcome::Unknown(op);
                }
                Err(e) => Some(e.error),
            };
            // An earlier attempt may have landed, or may still: a refusal is one only behind a fence.
            reachable!("once: a refusal needs a fence");
            match (self.resolve(op).await, refusal) {
                (Ok(Fate::Applied(answer)), _) => Outcome::Applied(answer),
                (Ok(Fate::NotApplied), Some(e)) => Outcome::Refused(e),
                _ => Outcome::Unknown(op),
            }
        }
    }

    /// [`resolve`] for an operation of this session; also answers for the unknown operation that the
    /// session settled last by itself.
    pub fn resolve<A: Answer>(&mut self, op: OpId) -> impl Future<Output = Result<Fate<A>, Error>> + Send {
        crate::called!();
        async move {
            if let Some((known, fate)) = &self.settled
                && *known == op
            {
                return fate.clone().try_map(A::decode);
            }
            let fate = resolve(&self.db, &self.slots, op).await?;
            if self.pending == Some(op) {
                self.pending = None;
            }
            Ok(fate)
        }
    }
}

/// Runs `body` in a transaction without a record: the cheaper form for an operation that may be repeated,
/// a set or a clear of keys that depend on nothing read.
///
/// What it gives up: after an unknown result the operation is done again, so that a value which another
/// client has overwritten in between comes back. `Err` with `maybe_committed` is the unknown outcome, and
/// nothing can resolve it.
pub fn converging<D, F, Fut, A, E>(db: &D, body: F) -> impl Future<Output = Result<A, RunError<E>>> + Send
where
    D: Database,
    F: Fn(D::Transaction) -> Fut + Send + Sync,
    Fut: Future<Output = Result<A, E>> + Send,
    A: Send,
    E: RetryError + Send,
{
    crate::called!();
    async move {
        let body = &body;
        db.run(|tx, _| async move { body(tx).await }).await
    }
}

/// FoundationDB's errors as themselves, so that the retry loop sees them, and others as the layer's.
fn lift<E: RetryError + From<Error>>(error: Error) -> E {
    match error {
        Error::Fdb(e) => E::from(e),
        other => E::from(other),
    }
}
