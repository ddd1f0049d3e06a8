//! How a client of the run performs an operation.

use super::{
    Answer, Op, Refusal, Sessions,
    operations::{Long, RecordedAnswer, applied_answer, known},
    register::{add, blind, mark, number, register},
    ways::{burst, cut, disturbed, manual, prepared},
};
use crate::shared;
use shaketable::{sessions::slots, workload::Outcome};
use shaketable_tx::{
    self as tx, Database, Db,
    Isolation::Serializable,
    RetryError, Transaction, Tx, always,
    once::{self, Error, OpId, Session, converging, resolve},
};
use std::time::Duration;

/// The state of a client of the run.
pub struct Client {
    pub(super) db: Db,
    pub(super) number: u64,
    pub(super) run: usize,
    pub(super) session: Option<Session<Db>>,
    /// A transaction that was prepared and not committed.
    pub(super) kept: Option<Tx>,
    /// The operation that was begun and dropped, and whose fate is not known: no other operation may begin.
    pub(super) dropped: Option<OpId>,
}

impl Client {
    /// The session, which is opened if there is none.
    pub(super) async fn session(&mut self) -> Result<&mut Session<Db>, Answer> {
        if self.session.is_none() {
            let opened = Session::open(&self.db, &slots(), self.number).await;
            self.session = Some(opened.map_err(|e| refused(Refusal::Once(e)))?);
        }
        self.session.as_mut().ok_or(Answer::Nothing)
    }
}

/// The answer of an operation that was not applied.
pub(super) fn refused(refusal: Refusal) -> Answer {
    refusal.fdb().map_or_else(|| Answer::Refused(refusal.to_string()), |e| Answer::Failed(e.code()))
}

pub(super) fn ended(outcome: once::Outcome<RecordedAnswer, Refusal>) -> Outcome<Answer> {
    shared::ended(outcome, applied_answer, |refusal| Outcome::Answered(refused(refusal)))
}

impl Sessions {
    pub(super) async fn perform(&self, client: &mut Client, op: &Op) -> Result<Outcome<Answer>, Answer> {
        let (number, db) = (client.number, client.db.clone());
        Ok(Outcome::Answered(match op {
            Op::Open => {
                client.dropped = None;
                let opened = Session::open(&db, &slots(), number).await;
                let session = client.session.insert(opened.map_err(|e| refused(Refusal::Once(e)))?);
                let last = session.last::<RecordedAnswer>().map_err(|e| refused(Refusal::Once(e)))?;
                Answer::Opened(last.map(|(op, fate)| (op, known(fate))))
            }
            Op::Add(by) => {
                let by = *by;
                let added = client.session().await?.apply(|tx| async move { add(&tx, number, by).await });
                return Ok(ended(added.await));
            }
            Op::Blind(by) => {
                let by = *by;
                let added = client.session().await?;
                return Ok(ended(added.apply(|tx| async move { Ok(blind(&tx, number, by)) }).await));
            }
            Op::TooLarge(by, head, body) => {
                let (by, head, body) = (*by, *head, *body);
                let added = client.session().await?.apply(|tx| async move {
                    add(&tx, number, by).await?;
                    Ok(Long(head, body))
                });
                // What is applied against its promise is what the model refuses.
                let applied = |_| Answer::Applied(by.into(), [0; 10]);
                return Ok(shared::ended(added.await, applied, |refusal| {
                    Outcome::Answered(refused(refusal))
                }));
            }
            Op::Manual(by, limit) => return Ok(manual(client.session().await?, *by, *limit).await),
            Op::Clone(by, after) => {
                let after = Duration::from_micros(100 * u64::from(*after));
                return Ok(disturbed(client.session().await?, number, *by, after).await);
            }
            Op::Cut(by, polls) => {
                return Ok(cut(client.session().await?, *by, *polls).await.unwrap_or_else(|op| {
                    client.dropped = Some(op);
                    Outcome::Unknown(tx::Error::OPERATION_CANCELLED)
                }));
            }
            Op::Keep(by) => match prepared(client.session().await?, *by).await {
                Ok((op, tx, _)) => {
                    (client.kept, client.dropped) = (Some(tx), Some(op));
                    return Ok(Outcome::Unknown(tx::Error::OPERATION_CANCELLED));
                }
                Err(refusal) => refused(refusal),
            },
            Op::Late => {
                if let Some(tx) = client.kept.take() {
                    // The model decides whether it may commit.
                    let _ = tx.commit().await;
                }
                Answer::Nothing
            }
            Op::Burst(count) => burst(client.session().await?, number, *count).await,
            Op::Settle(by_session) => {
                if *by_session {
                    client.dropped = None;
                }
                let session = client.session().await?;
                // The operation that was reported as unknown, or the one that was not reported at all.
                let Some(op) = session.unknown().or(session.pending()) else {
                    return Ok(Outcome::Answered(Answer::Nothing));
                };
                let fate = match by_session {
                    true => session.resolve(op).await,
                    false => resolve(&db, session.slots(), op).await,
                };
                fate.map_or_else(|e| refused(Refusal::Once(e)), |fate| Answer::Fate(op, known(fate)))
            }
            Op::Ask(epoch, seq) => {
                let op = OpId { client: number, epoch: u64::from(*epoch), seq: u64::from(*seq) };
                let fate = resolve(&db, &slots(), op).await;
                fate.map_or_else(|e| refused(Refusal::Once(e)), |fate| Answer::Fate(op, known(fate)))
            }
            Op::Settled => match client.session().await?.settled::<RecordedAnswer>() {
                Ok(Some((op, fate))) => Answer::Fate(op, known(fate)),
                Ok(None) => Answer::Nothing,
                Err(e) => refused(Refusal::Once(e)),
            },
            Op::Look => {
                let slot = slots().key(number);
                let (slot, own) = (&slot, &register(number));
                let seen = db.run(|tx, _| async move {
                    let sum = tx.get(own, Serializable).await?;
                    Ok::<_, tx::Error>((sum, tx.get(slot, Serializable).await?))
                });
                match seen.await {
                    Ok((sum, value)) => {
                        let ruled_out = value.map(|value| slots().is_fence(slot, &value));
                        Answer::Seen(self::number(sum), ruled_out)
                    }
                    Err(e) => Answer::Failed(e.error.code()),
                }
            }
            Op::Mark(byte) => {
                let (key, byte) = (&mark(client.run), *byte);
                let marked = converging(&db, |tx| async move {
                    tx.set(key, &[byte]);
                    Ok::<_, tx::Error>(())
                });
                match marked.await {
                    Err(e) if e.maybe_committed => return Ok(Outcome::Unknown(e.error)),
                    Err(e) => Answer::Failed(e.error.code()),
                    Ok(()) => Answer::Nothing,
                }
            }
        }))
    }

    /// Ends an operation. If it was refused because of a dropped operation, the fate of that one is resolved.
    /// As long as a dropped operation is not resolved, no other operation may begin.
    pub(super) async fn resolve_dropped(
        client: &mut Client,
        op: &Op,
        dropped: Option<OpId>,
        outcome: Outcome<Answer>,
    ) -> Outcome<Answer> {
        if !op.begins() {
            return outcome;
        }
        let unread = client.session.as_mut().and_then(|session| Some((session.unresolved()?, session)));
        let named = match (&outcome, unread) {
            (Outcome::Answered(Answer::Refused(why)), Some((unread, session))) => {
                (*why == Error::Unresolved(unread).to_string()).then_some((unread, session))
            }
            _ => None,
        };
        let refused_for = named.as_ref().map(|(unread, _)| *unread);
        always!(
            dropped.is_none() || refused_for == dropped,
            "once: an operation begins although {dropped:?} was not resolved"
        );
        let Some((unread, session)) = named else { return outcome };
        client.dropped = None;
        Outcome::Answered(match session.resolve(unread).await {
            Ok(fate) => Answer::Unread(unread, known(fate)),
            Err(e) => refused(Refusal::Once(e)),
        })
    }
}
