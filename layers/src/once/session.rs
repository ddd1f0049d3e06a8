//! A client's session: the retry loop around the record.

use super::{
    Answer, Check, Error, Fate, Landing, OpId, Slots, check,
    keys::{Slot, Verdict},
    ops::read,
    record, resolve,
};
use crate::{
    reachable, sometimes,
    tx::{Attempt, Database, RetryError, RunError},
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
///
/// The future of any of its functions may be dropped at any await. An operation that was under way then is
/// [`unread`](Session::unread), and the session begins no other one ([`Error::Unread`]) until its fate was asked
/// for with [`resolve`](Session::resolve): from then on nothing of it can land any later, and its answer is not
/// lost unnoticed. An operation that was answered as [`Outcome::Unknown`] is settled by the next one, before that
/// begins.
#[derive(Debug)]
pub struct Session<D: Database> {
    db: D,
    slots: Slots,
    client: u64,
    epoch: u64,
    seq: u64,
    last: Option<(OpId, Fate<Bytes>)>,
    pending: Option<OpId>,
    /// `pending` was answered as unknown.
    answered_unknown: bool,
    /// Somebody has asked for the fate of `pending` since it was answered.
    asked: bool,
    settled: Option<(OpId, Fate<Bytes>)>,
    unfinished: Vec<Unfinished>,
}

/// Where an operation of several transactions stands whose future may be dropped between any two awaits: what
/// its layer needs to go on with it, or to give out what it had already got. It is kept until the layer says
/// that the operation is finished; a layer goes on with what is unfinished before it begins anew, so that
/// there are few.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfinished {
    /// The layer's own name for what works on it, its subspace.
    pub of: Bytes,
    /// What the layer has noted.
    pub note: Bytes,
    /// Its first step.
    pub begun: OpId,
    /// The step that was under way.
    pub step: Option<OpId>,
    /// What became of that step, once that is known.
    pub fate: Option<Fate<Bytes>>,
}

impl<D: Database> Session<D> {
    /// Begins a new incarnation of `client`. Once this has succeeded, nothing that an earlier one left
    /// under way can land. An error changes nothing for the caller, who may open again.
    ///
    /// Dropping the future: the incarnation may begin all the same, and with it earlier sessions of the
    /// client end. Open again.
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
                    slot.epoch = slot.epoch.checked_add(1).ok_or(Error::Unreadable)?;
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
                answered_unknown: false,
                asked: false,
                settled: None,
                unfinished: Vec::new(),
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

    /// The pending operation if the session has answered it as [`Outcome::Unknown`] and nobody has asked for
    /// its fate since; one whose future was dropped was not answered.
    pub fn unknown(&self) -> Option<OpId> {
        crate::called!();
        self.pending.filter(|_| self.answered_unknown && !self.asked)
    }

    /// The pending operation if its future was dropped, or if it was [begun](Session::begin) and never
    /// [concluded](Session::conclude): no other one begins until its fate was asked for. A dequeue of several
    /// transactions ([`StagedQueue::dequeue`](crate::staged_queue::StagedQueue::dequeue)) is none: the next one
    /// goes on with it.
    pub fn unread(&self) -> Option<OpId> {
        crate::called!();
        self.pending
            .filter(|op| !self.answered_unknown && !self.unfinished.iter().any(|u| u.step == Some(*op)))
    }

    /// The operation that this session has settled last by itself, because the next one was about to begin,
    /// and its fate: what became of an operation that was answered as [`Outcome::Unknown`]. The next one that is
    /// settled so takes its place.
    pub fn settled<A: Answer>(&self) -> Result<Option<(OpId, Fate<A>)>, Error> {
        crate::called!();
        let Some((op, fate)) = &self.settled else { return Ok(None) };
        Ok(Some((*op, fate.clone().try_map(A::decode)?)))
    }

    /// Runs `body` in a transaction, exactly once, whatever happens to the commits.
    ///
    /// `body` may run several times, must have no effect but through its transaction, and must not
    /// commit it. It may call any number of layers. Its own errors refuse the operation.
    ///
    /// An operation of this session that was answered as unknown is settled first; while that does not
    /// succeed, this one is refused with the error met. After one whose future was dropped this one is refused
    /// with [`Error::Unread`].
    ///
    /// Dropping the future: the operation is applied once or not at all. The session refuses to begin another
    /// one until its fate was asked for ([`unread`](Session::unread), [`resolve`](Session::resolve)); nothing of
    /// it lands after that.
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
            self.perform(op, |tx, _| body(tx)).await
        }
    }

    /// [`apply`](Session::apply) for a step of an operation of several: it is noted as
    /// [unfinished](Session::unfinished), in the place of what was noted under the same name with the same
    /// note, when it begins.
    pub(crate) fn apply_step<F, Fut, A, E>(
        &mut self,
        of: Bytes,
        note: Bytes,
        body: F,
    ) -> impl Future<Output = Outcome<A, E>> + Send
    where
        F: Fn(D::Transaction, Attempt) -> Fut + Send + Sync,
        Fut: Future<Output = Result<A, E>> + Send,
        A: Answer,
        E: RetryError + From<Error> + Send,
    {
        async move {
            let op = match self.begin().await {
                Ok(op) => op,
                Err(e) => return Outcome::Refused(lift(e)),
            };
            let begun = self.finish(&of, &note).unwrap_or(op);
            self.unfinished.push(Unfinished { of, note, begun, step: Some(op), fate: None });
            self.perform(op, body).await
        }
    }

    fn perform<F, Fut, A, E>(&mut self, op: OpId, body: F) -> impl Future<Output = Outcome<A, E>> + Send
    where
        F: Fn(D::Transaction, Attempt) -> Fut + Send + Sync,
        Fut: Future<Output = Result<A, E>> + Send,
        A: Answer,
        E: RetryError + From<Error> + Send,
    {
        async move {
            let (slots, body) = (&self.slots, &body);
            let ran = self
                .db
                .run(|tx, attempt| async move {
                    match check(&tx, slots, op).await.map_err(lift::<E>)? {
                        Check::Done(answer) => Ok(Landing::ready(answer)),
                        Check::New(permit) => {
                            let answer = body(tx.clone(), attempt).await?;
                            record(&tx, permit, answer).map_err(lift)
                        }
                    }
                })
                .await;
            self.conclude(op, ran).await
        }
    }

    /// The next operation's id, for a caller with a retry loop of its own around [`check`] and
    /// [`record`]; to be given to [`conclude`](Session::conclude). Settles first what was answered as unknown.
    ///
    /// # Errors
    ///
    /// [`Error::Unread`] while the fate of a dropped operation has not been asked for; those of [`resolve`]
    /// while the pending operation cannot be settled.
    ///
    /// Dropping the future: no operation has begun.
    pub fn begin(&mut self) -> impl Future<Output = Result<OpId, Error>> + Send {
        crate::called!();
        async move {
            if let Some(op) = self.unread() {
                reachable!("once: a session refuses to begin after a dropped operation");
                return Err(Error::Unread(op));
            }
            if let Some(op) = self.pending {
                let fate = self.ask(op).await?;
                sometimes!(matches!(fate, Fate::Applied(_)), "once: a session settles what had been applied");
                if !self.unfinished.iter().any(|unfinished| unfinished.step == Some(op)) {
                    self.settled = Some((op, fate));
                }
            }
            self.seq += 1;
            let op = OpId { client: self.client, epoch: self.epoch, seq: self.seq };
            (self.pending, self.answered_unknown, self.asked) = (Some(op), false, false);
            Ok(op)
        }
    }

    /// Turns what the retry loop of `op` said into an outcome.
    ///
    /// Dropping the future: `op` stays pending.
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
                        self.known(op);
                        return Outcome::Applied(answer);
                    }
                    Err(_) => None,
                },
                Err(e) if !e.maybe_committed => {
                    self.known(op);
                    return Outcome::Refused(e.error);
                }
                // The loop gave up on the database, not on the operation: whoever waits may want to
                // hear of it now, and resolve later.
                Err(e) if e.error.fdb().is_some_and(|e| e.is_retryable() || e.leaves_commit_unknown()) => {
                    return self.leave_unknown(op);
                }
                Err(e) => Some(e.error),
            };
            // An earlier attempt may have landed, or may still: a refusal is one only behind a fence.
            reachable!("once: a refusal needs a fence");
            let fate = self.ask(op).await.and_then(|fate| fate.try_map(A::decode));
            match (fate, refusal) {
                (Ok(Fate::Applied(answer)), _) => Outcome::Applied(answer),
                (Ok(Fate::NotApplied), Some(e)) => Outcome::Refused(e),
                _ => self.leave_unknown(op),
            }
        }
    }

    fn leave_unknown<A, E>(&mut self, op: OpId) -> Outcome<A, E> {
        if self.pending == Some(op) {
            (self.answered_unknown, self.asked) = (true, false);
        }
        Outcome::Unknown(op)
    }

    /// The fate of `op` is known: nothing of it is under way.
    fn known(&mut self, op: OpId) {
        if self.pending == Some(op) {
            (self.pending, self.answered_unknown, self.asked) = (None, false, false);
        }
    }

    /// [`resolve`] for an operation of this session; also answers for the unknown operation that the
    /// session settled last by itself.
    ///
    /// Dropping the future: nothing is lost, ask again.
    pub fn resolve<A: Answer>(&mut self, op: OpId) -> impl Future<Output = Result<Fate<A>, Error>> + Send {
        crate::called!();
        async move {
            if let Some((known, fate)) = &self.settled
                && *known == op
            {
                return fate.clone().try_map(A::decode);
            }
            let unfinished = self.unfinished.iter().position(|unfinished| unfinished.step == Some(op));
            let known = unfinished.and_then(|at| self.unfinished[at].fate.clone());
            let fate = match known {
                Some(fate) => fate,
                None => self.ask(op).await?,
            };
            let fate = fate.try_map(A::decode)?;
            // Who asks has got it, and goes on with it.
            self.unfinished.retain(|unfinished| unfinished.step != Some(op));
            Ok(fate)
        }
    }

    /// Asks the database what became of `op`, and notes it.
    fn ask(&mut self, op: OpId) -> impl Future<Output = Result<Fate<Bytes>, Error>> + Send {
        async move {
            self.asked |= self.pending == Some(op);
            let fate = resolve::<_, Bytes>(&self.db, &self.slots, op).await?;
            self.known(op);
            for unfinished in self.unfinished.iter_mut().filter(|u| u.step == Some(op)) {
                unfinished.fate = Some(fate.clone());
            }
            Ok(fate)
        }
    }

    /// What is unfinished under this name, with this note if one is given, the oldest first: with the fate of
    /// the step that was under way.
    pub(crate) fn unfinished(
        &mut self,
        of: &Bytes,
        note: Option<&Bytes>,
    ) -> impl Future<Output = Result<Option<Unfinished>, Error>> + Send {
        async move {
            let is_it = |u: &Unfinished| u.of == *of && note.is_none_or(|note| u.note == *note);
            let Some(at) = self.unfinished.iter().position(is_it) else { return Ok(None) };
            if let Unfinished { step: Some(op), fate: None, .. } = self.unfinished[at] {
                self.ask(op).await?;
            }
            Ok(Some(self.unfinished[at].clone()))
        }
    }

    /// The first step of what is unfinished under this name, with this note if one is given.
    pub(crate) fn begun(&self, of: &Bytes, note: Option<&Bytes>) -> Option<OpId> {
        let mut unfinished = self.unfinished.iter();
        unfinished.find(|u| u.of == *of && note.is_none_or(|note| u.note == *note)).map(|u| u.begun)
    }

    /// Notes where an operation stands between two of its transactions, in the place of what was noted under
    /// the same name with the note `before`, if anything was.
    pub(crate) fn stand(&mut self, of: &Bytes, before: &Bytes, note: Bytes) {
        if let Some(begun) = self.finish(of, before) {
            self.unfinished.push(Unfinished { of: of.clone(), note, begun, step: None, fate: None });
        }
    }

    /// Forgets what was unfinished under this name with this note, and gives its first step.
    pub(crate) fn finish(&mut self, of: &Bytes, note: &Bytes) -> Option<OpId> {
        let at = self.unfinished.iter().position(|u| u.of == *of && u.note == *note)?;
        Some(self.unfinished.remove(at).begun)
    }
}

/// Runs `body` in a transaction without a record: the cheaper form for an operation that may be repeated,
/// a set or a clear of keys that depend on nothing read.
///
/// What it gives up: after an unknown result the operation is done again, so that a value which another
/// client has overwritten in between comes back. `Err` with `maybe_committed` is the unknown outcome, and
/// nothing can resolve it.
///
/// Dropping the future: the outcome is unknown, and a commit that was under way may land later, after whatever
/// the caller does next.
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
