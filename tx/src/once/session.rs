//! A client's session: the retry loop around the record.

use super::{
    Answer, Check, Error, Fate, OpId, PendingAnswer, Permit, Slots,
    keys::{Decision, Slot},
    ops::{Draft, Stamped, draft, look, read, write},
    resolve,
};
use crate::{Attempt, Database, RetryError, RunError, reachable, run::Kept, sometimes};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use std::future::Future;

/// The outcome of a mutating operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome<A, E> {
    /// Applied once, with this answer.
    Applied(A),
    /// Not applied and never will be, for this reason.
    Refused(E),
    /// May have been applied, or may still be: call [`resolve`] with this id.
    Unknown(OpId),
}

impl<A, E> Outcome<A, E> {
    /// Maps the answer with `f`.
    pub fn map<B>(self, f: impl FnOnce(A) -> B) -> Outcome<B, E> {
        match self {
            Outcome::Applied(answer) => Outcome::Applied(f(answer)),
            Outcome::Refused(e) => Outcome::Refused(e),
            Outcome::Unknown(op) => Outcome::Unknown(op),
        }
    }
}

/// One incarnation of a client, which runs one operation after another, each exactly once.
///
/// The future of any of its functions may be dropped at any await. The operation in progress is then
/// [`unresolved`](Session::unresolved), and the session begins no other operation ([`Error::Unresolved`])
/// until its fate has been requested with [`resolve`](Session::resolve): from then on no part of it can
/// commit, and its answer cannot be lost unnoticed. An operation that was reported as [`Outcome::Unknown`] is
/// settled before the next operation begins.
#[derive(Debug)]
pub struct Session<D: Database> {
    db: D,
    slots: Slots,
    client: u64,
    epoch: u64,
    seq: u64,
    last: Option<(OpId, Fate<Bytes>)>,
    pending: Pending,
    settled: Option<(OpId, Fate<Bytes>)>,
    unfinished: Vec<Unfinished>,
}

/// The operation whose fate a session does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    /// There is none.
    Nothing,
    /// It is in progress, or its future was dropped.
    Begun(OpId),
    /// The caller was told that it is unknown.
    Told(OpId),
    /// The caller was told, and its fate has been requested since.
    Asked(OpId),
}

impl Pending {
    fn op(self) -> Option<OpId> {
        match self {
            Pending::Nothing => None,
            Pending::Begun(op) | Pending::Told(op) | Pending::Asked(op) => Some(op),
        }
    }
}

/// The state of an operation of several transactions, whose future may be dropped between any two awaits: the
/// information that its layer needs to continue it, or to return what it has already obtained. It is kept
/// until the layer marks the operation as finished. A layer continues unfinished operations before it begins
/// a new one, so that there are few.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The layer's identifier of the object that the operation works on: its subspace.
    pub of: Bytes,
    /// The layer's note about the state.
    pub note: Bytes,
    /// The first step of the operation.
    pub begun: OpId,
    /// The step that was in progress.
    pub step: Option<OpId>,
    /// The fate of that step, once it is known.
    pub fate: Option<Fate<Bytes>>,
}

impl<D: Database> Session<D> {
    /// Begins a new incarnation of `client`. Once this has succeeded, nothing that an earlier incarnation
    /// left in flight can commit. An error changes nothing for the caller, which may open again.
    ///
    /// Dropping the future: the incarnation may still begin, which ends earlier sessions of the client. Open
    /// again.
    pub fn open(
        db: &D,
        slots: &Slots,
        client: u64,
    ) -> impl Future<Output = Result<Session<D>, Error>> + Send {
        async move {
            let key = slots.key(client);
            let key = &key;
            let opened = db
                .run(|tx, _| async move {
                    let mut slot = read(&tx, key).await?.unwrap_or_else(Slot::vacant);
                    slot.epoch = slot.epoch.checked_add(1).ok_or(Error::Unreadable)?;
                    crate::Transaction::set(&tx, key, &slot.encode());
                    Ok::<_, Error>(slot)
                })
                .await;
            let slot = opened.map_err(|e| e.error)?;
            sometimes!(slot.epoch > 1, "once: a client comes back");
            let (epoch, seq) = slot.answered;
            let fate = match slot.decision {
                Decision::Applied(answer) => Fate::Applied(answer),
                Decision::Never => Fate::NotApplied,
            };
            Ok(Session {
                db: db.clone(),
                slots: slots.clone(),
                client,
                epoch: slot.epoch,
                seq: 0,
                last: (seq > 0).then_some((OpId { client, epoch, seq }, fate)),
                pending: Pending::Nothing,
                settled: None,
                unfinished: Vec::new(),
            })
        }
    }

    /// The database that this session uses.
    pub fn database(&self) -> &D {
        &self.db
    }

    /// The location of this session's slot.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// The last operation that earlier incarnations had recorded when this one opened, and its fate. Their
    /// later operations were not applied.
    pub fn last<A: Answer>(&self) -> Result<Option<(OpId, Fate<A>)>, Error> {
        let Some((op, fate)) = &self.last else { return Ok(None) };
        Ok(Some((*op, fate.clone().try_map(A::decode)?)))
    }

    /// The operation whose fate this session does not know yet: one whose outcome was unknown, or whose
    /// future was dropped.
    pub fn pending(&self) -> Option<OpId> {
        self.pending.op()
    }

    /// The pending operation if the session has reported it as [`Outcome::Unknown`] and its fate has not been
    /// requested since. An operation whose future was dropped was not reported.
    pub fn unknown(&self) -> Option<OpId> {
        match self.pending {
            Pending::Told(op) => Some(op),
            _ => None,
        }
    }

    /// The pending operation if its future was dropped, or if it was [begun](Session::begin) and never
    /// [concluded](Session::conclude): no other operation begins until its fate has been requested. A dequeue
    /// of several transactions (`StagedQueue::dequeue` of the layers) does not
    /// count: the next dequeue continues it.
    pub fn unresolved(&self) -> Option<OpId> {
        match self.pending {
            Pending::Begun(op) if !self.unfinished.iter().any(|u| u.step == Some(op)) => Some(op),
            _ => None,
        }
    }

    /// The operation that this session last settled by itself because the next one was about to begin, and
    /// its fate: the result of an operation that was reported as [`Outcome::Unknown`]. Replaced when the
    /// session settles another operation.
    pub fn settled<A: Answer>(&self) -> Result<Option<(OpId, Fate<A>)>, Error> {
        let Some((op, fate)) = &self.settled else { return Ok(None) };
        Ok(Some((*op, fate.clone().try_map(A::decode)?)))
    }

    /// Runs `body` in a transaction, exactly once, whatever happens to the commits.
    ///
    /// `body` may run several times, must have no effects outside its transaction, and must not commit it. It
    /// may call any number of layers. If it returns an error of its own, the operation is refused.
    ///
    /// An operation of this session that was reported as unknown is settled first; if that fails, this
    /// operation is refused with the error. If the future of an earlier operation was dropped, this operation
    /// is refused with [`Error::Unresolved`].
    ///
    /// Dropping the future: the operation is applied once or not at all. The session does not begin another
    /// operation until its fate has been requested ([`unresolved`](Session::unresolved),
    /// [`resolve`](Session::resolve)); no part of it commits after that.
    pub fn apply<F, Fut, A, E>(&mut self, body: F) -> impl Future<Output = Outcome<A, E>> + Send
    where
        F: Fn(D::Transaction) -> Fut + Send + Sync,
        Fut: Future<Output = Result<A, E>> + Send,
        A: Answer,
        E: RetryError + From<Error> + Send,
    {
        async move {
            let op = match self.begin().await {
                Ok(op) => op,
                Err(e) => return Outcome::Refused(lift(e)),
            };
            self.perform(op, |tx, _| body(tx)).await
        }
    }

    /// [`apply`](Session::apply) for one step of a multi-step operation: when the step begins, it is noted as
    /// [unfinished](Session::unfinished), replacing the entry with the same name and note. If the future is
    /// dropped, the step is applied once or not at all, and [`unfinished`](Session::unfinished) returns its
    /// fate.
    pub fn apply_step<F, Fut, A, E>(
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
            let operation = Operation { body, answer: Kept::default() };
            let outcome = self.perform_erased(op, &operation).await;
            operation.answer.of(outcome)
        }
    }

    fn perform_erased<'a, E: RetryError + From<Error> + Send>(
        &'a mut self,
        op: OpId,
        operation: &'a dyn Erased<'a, D::Transaction, E>,
    ) -> impl Future<Output = Outcome<(), E>> + Send {
        async move {
            let slots = &self.slots;
            let ran = self
                .db
                .run(|tx, attempt| async move {
                    match look(&tx, slots, op).await.map_err(lift::<E>)? {
                        Check::Done(answer) => {
                            operation.decode(answer).ok_or(Error::Unreadable).map_err(lift::<E>)?;
                            Ok(None)
                        }
                        Check::New(permit) => {
                            let draft = operation.attempt(tx.clone(), attempt, permit).await?;
                            write(&tx, draft).map_err(lift)
                        }
                    }
                })
                .await;
            self.conclude_erased(op, ran, &|answer| operation.decode(answer)).await
        }
    }

    /// The id of the next operation, for a caller with its own retry loop around [`check`](super::check) and
    /// [`record`](super::record); pass it to [`conclude`](Session::conclude). First settles an operation that was reported as unknown.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`] if the fate of a dropped operation has not been requested; the errors of
    /// [`resolve`] if the pending operation cannot be settled.
    ///
    /// Dropping the future: no operation has begun.
    pub fn begin(&mut self) -> impl Future<Output = Result<OpId, Error>> + Send {
        async move {
            if let Some(op) = self.unresolved() {
                reachable!("once: a session refuses to begin after a dropped operation");
                return Err(Error::Unresolved(op));
            }
            if let Some(op) = self.pending.op() {
                let fate = self.ask(op).await?;
                sometimes!(matches!(fate, Fate::Applied(_)), "once: a session settles what had been applied");
                if !self.unfinished.iter().any(|unfinished| unfinished.step == Some(op)) {
                    self.settled = Some((op, fate));
                }
            }
            self.seq += 1;
            let op = OpId { client: self.client, epoch: self.epoch, seq: self.seq };
            self.pending = Pending::Begun(op);
            Ok(op)
        }
    }

    /// Turns the result of the retry loop of `op` into an outcome.
    ///
    /// Dropping the future: `op` stays pending.
    pub fn conclude<A, E>(
        &mut self,
        op: OpId,
        ran: Result<PendingAnswer<A>, RunError<E>>,
    ) -> impl Future<Output = Outcome<A, E>> + Send
    where
        A: Answer,
        E: RetryError + Send,
    {
        async move {
            let answer = Kept::default();
            let ran = ran.map(|pending| {
                let (ready, stamped) = pending.split();
                answer.keep(ready);
                stamped
            });
            let outcome = self.conclude_erased(op, ran, &|encoded| answer.decode(encoded)).await;
            answer.of(outcome)
        }
    }

    /// [`conclude`](Session::conclude) with an answer that is kept elsewhere: what completes it, if it waits
    /// for a versionstamp, and what decodes it.
    fn conclude_erased<E: RetryError + Send>(
        &mut self,
        op: OpId,
        ran: Result<Option<Stamped>, RunError<E>>,
        decode: &(dyn Fn(Bytes) -> Option<()> + Sync),
    ) -> impl Future<Output = Outcome<(), E>> + Send {
        async move {
            let refusal = match ran {
                Ok(stamped) => {
                    let decoded = match stamped {
                        None => Some(()),
                        Some(stamped) => stamped.complete().await.ok().and_then(decode),
                    };
                    if decoded.is_some() {
                        self.known(op);
                        return Outcome::Applied(());
                    }
                    None
                }
                Err(e) if !e.maybe_committed => {
                    self.known(op);
                    return Outcome::Refused(e.error);
                }
                // The loop gave up on the database, not on the operation: a waiting caller may want this
                // result now, and resolve later.
                Err(e) if e.error.fdb().is_some_and(|e| e.is_retryable() || e.leaves_commit_unknown()) => {
                    return self.leave_unknown(op);
                }
                Err(e) => Some(e.error),
            };
            // An earlier attempt may have committed, or may still commit: a refusal is certain only after a
            // fence.
            reachable!("once: a refusal needs a fence");
            let fate = self.ask(op).await.and_then(|fate| fate.try_map(decode));
            match (fate, refusal) {
                (Ok(Fate::Applied(())), _) => Outcome::Applied(()),
                (Ok(Fate::NotApplied), Some(e)) => Outcome::Refused(e),
                _ => self.leave_unknown(op),
            }
        }
    }

    fn leave_unknown<A, E>(&mut self, op: OpId) -> Outcome<A, E> {
        if self.pending.op() == Some(op) {
            self.pending = Pending::Told(op);
        }
        Outcome::Unknown(op)
    }

    /// The fate of `op` is known: no part of it is in flight.
    fn known(&mut self, op: OpId) {
        if self.pending.op() == Some(op) {
            self.pending = Pending::Nothing;
        }
    }

    /// [`resolve`] for an operation of this session; also returns the fate of the unknown operation that the
    /// session last settled by itself.
    ///
    /// Dropping the future: nothing is lost, call again.
    pub fn resolve<A: Answer>(&mut self, op: OpId) -> impl Future<Output = Result<Fate<A>, Error>> + Send {
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
            // The caller has the fate now, and continues from it.
            self.unfinished.retain(|unfinished| unfinished.step != Some(op));
            Ok(fate)
        }
    }

    /// Queries the database for the fate of `op`, and notes it.
    fn ask(&mut self, op: OpId) -> impl Future<Output = Result<Fate<Bytes>, Error>> + Send {
        async move {
            if self.pending == Pending::Told(op) {
                self.pending = Pending::Asked(op);
            }
            let fate = resolve::<_, Bytes>(&self.db, &self.slots, op).await?;
            self.known(op);
            for unfinished in self.unfinished.iter_mut().filter(|u| u.step == Some(op)) {
                unfinished.fate = Some(fate.clone());
            }
            Ok(fate)
        }
    }

    /// The oldest unfinished operation with this name and, if one is given, this note, with the fate of the
    /// step that was in progress.
    pub fn unfinished(
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

    /// The first step of the unfinished operation with this name and, if one is given, this note.
    pub fn begun(&self, of: &Bytes, note: Option<&Bytes>) -> Option<OpId> {
        let mut unfinished = self.unfinished.iter();
        unfinished.find(|u| u.of == *of && note.is_none_or(|note| u.note == *note)).map(|u| u.begun)
    }

    /// Notes the state of an operation between two of its transactions, replacing the entry with the same
    /// name and the note `before`. Does nothing if there is no such entry.
    pub fn note_state(&mut self, of: &Bytes, before: &Bytes, note: Bytes) {
        if let Some(begun) = self.finish(of, before) {
            self.unfinished.push(Unfinished { of: of.clone(), note, begun, step: None, fate: None });
        }
    }

    /// Removes the unfinished entry with this name and note, and returns its first step.
    pub fn finish(&mut self, of: &Bytes, note: &Bytes) -> Option<OpId> {
        let at = self.unfinished.iter().position(|u| u.of == *of && u.note == *note)?;
        Some(self.unfinished.remove(at).begun)
    }
}

/// Runs `body` in a transaction without a record: the cheaper form for an operation that may be repeated,
/// that is, a set or a clear of keys that does not depend on reads.
///
/// The limitation: after an unknown result the operation is repeated, so that it can restore a value that
/// another client has overwritten in between. `Err` with `maybe_committed` is the unknown outcome, and it
/// cannot be resolved.
///
/// Dropping the future: the outcome is unknown, and a commit in flight may still take effect later, after
/// whatever the caller does next.
pub fn converging<D, F, Fut, A, E>(db: &D, body: F) -> impl Future<Output = Result<A, RunError<E>>> + Send
where
    D: Database,
    F: Fn(D::Transaction) -> Fut + Send + Sync,
    Fut: Future<Output = Result<A, E>> + Send,
    A: Send,
    E: RetryError + Send,
{
    async move {
        let body = &body;
        db.run(|tx, _| async move { body(tx).await }).await
    }
}

/// The body of an operation, and the answer of its last attempt.
struct Operation<F, A> {
    body: F,
    answer: Kept<A>,
}

/// An [`Operation`] without the type of its answer: the retry loop, the record and what follows are compiled
/// once for each type of errors.
trait Erased<'a, Tx, E>: Send + Sync {
    /// Performs the body, and returns what is to be recorded.
    fn attempt(&'a self, tx: Tx, attempt: Attempt, permit: Permit) -> BoxFuture<'a, Result<Draft, E>>;

    /// Keeps the answer of an earlier attempt; `None` if it is not the encoding of one.
    fn decode(&self, answer: Bytes) -> Option<()>;
}

impl<'a, Tx, F, Fut, A, E> Erased<'a, Tx, E> for Operation<F, A>
where
    Tx: Send,
    F: Fn(Tx, Attempt) -> Fut + Send + Sync,
    Fut: Future<Output = Result<A, E>> + Send + 'a,
    A: Answer + 'a,
    E: RetryError + From<Error> + Send,
{
    fn attempt(&'a self, tx: Tx, attempt: Attempt, permit: Permit) -> BoxFuture<'a, Result<Draft, E>> {
        let performed = (self.body)(tx, attempt);
        async move {
            let answer = performed.await?;
            let draft = draft(permit, &answer).map_err(lift::<E>)?;
            self.answer.keep(Some(answer));
            Ok(draft)
        }
        .boxed()
    }

    fn decode(&self, answer: Bytes) -> Option<()> {
        self.answer.decode(answer)
    }
}

impl<A> Kept<A> {
    /// The outcome with the answer.
    fn of<E>(self, outcome: Outcome<(), E>) -> Outcome<A, E> {
        match outcome {
            Outcome::Applied(()) => {
                Outcome::Applied(self.into_inner().expect("what was applied has answered"))
            }
            Outcome::Refused(e) => Outcome::Refused(e),
            Outcome::Unknown(op) => Outcome::Unknown(op),
        }
    }
}

impl<A: Answer> Kept<A> {
    fn decode(&self, answer: Bytes) -> Option<()> {
        self.keep(Some(A::decode(answer)?));
        Some(())
    }
}

/// Converts FoundationDB errors directly, so that the retry loop sees them, and others to the layer's error.
fn lift<E: RetryError + From<Error>>(error: Error) -> E {
    match error {
        Error::Fdb(e) => E::from(e),
        other => E::from(other),
    }
}
