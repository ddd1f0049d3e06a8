//! A client of the run, and how its operations end.

use super::{
    Answer, Refusal, Sessions, SessionsOp,
    operations::{RecordedAnswer, applied_answer, known},
};
use crate::shared;
use shaketable::{sessions::slots, workload::Outcome};
use shaketable_tx::{
    Db, RetryError, Tx, always,
    once::{self, Error, OpId, Session},
};

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
            self.session = Some(opened.map_err(refused)?);
        }
        self.session.as_mut().ok_or(Answer::Nothing)
    }
}

/// How an operation ends. The error is the answer of one that was not applied.
pub(super) type Ended = Result<Outcome<Answer>, Answer>;

/// The answer of an operation that was not applied.
pub(super) fn refused(refusal: impl Into<Refusal>) -> Answer {
    let refusal = refusal.into();
    refusal.fdb().map_or_else(|| Answer::Refused(refusal.to_string()), |e| Answer::Failed(e.code()))
}

pub(super) fn ended(outcome: once::Outcome<RecordedAnswer, Refusal>) -> Outcome<Answer> {
    shared::ended(outcome, applied_answer, |refusal| Outcome::Answered(refused(refusal)))
}

impl Sessions {
    /// Ends an operation. If it was refused because of a dropped operation, the fate of that one is resolved.
    /// As long as a dropped operation is not resolved, no other operation may begin.
    pub(super) async fn resolve_dropped(
        client: &mut Client,
        op: &SessionsOp,
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
            Err(e) => refused(e),
        })
    }
}
