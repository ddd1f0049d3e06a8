//! What a workload is: it generates operations, does them, and says what must be true.
//!
//! The three are kept apart. [`Workload::operations`] draws plain data, [`Workload::apply`] does
//! one operation on any [`Database`], and [`Workload::step`], [`Workload::audit`] and
//! [`Workload::check`] judge. A workload is one file, readable alone.

use crate::{
    judges::waiting::{Timing, Wait},
    sessions,
};
use bytes::Bytes;
use proptest::strategy::BoxedStrategy;
use serde::{Serialize, de::DeserializeOwned};
use shaketable_layers::tx::{Database, Error};
use shaketable_sim::{
    proto::{Mutation, Version},
    rt::Nanos,
    seed::Stream,
};
use std::{fmt::Debug, future::Future};

/// A planted bug: a variant of the code, wrong on purpose, that a sweep must catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bug {
    /// The name by which it is chosen, unique within its workload.
    pub name: &'static str,
    /// What is wrong, in a line.
    pub about: &'static str,
    /// Where such a bug comes from: a document, a published example, a known issue.
    pub source: &'static str,
}

/// How an operation ended, as its client learned it.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<A> {
    /// It has this answer (a refusal is an answer). If it has an effect, it has happened.
    Answered(A),
    /// It certainly has no effect and never will: the client gave up.
    GaveUp(Error),
    /// Whether it has or will have its effect is not known.
    Unknown(Error),
    /// Its answer contradicts what the layer promises, whatever the others did.
    Violated(String),
}

/// An operation as its client saw it.
#[derive(Clone, Debug)]
pub struct Operation<A> {
    /// When it was called.
    pub called: Nanos,
    /// When it returned, or when its client dropped it or died.
    pub returned: Nanos,
    /// How it ended; `None` while it is under way.
    pub outcome: Option<Outcome<A>>,
}

/// One step of the sequential model: an operation at its place in commit order.
pub struct Step<'a, W: Workload> {
    /// Which client called it.
    pub client: usize,
    /// Its place in the client's list.
    pub index: usize,
    /// The operation.
    pub op: &'a W::Op,
    /// The answer its client got, if it learned one.
    pub answer: Option<&'a W::Answer>,
    /// Whether a transaction of it that writes has committed here. Otherwise it took only a look:
    /// the model must not change and the answer must fit the model as it stands.
    pub committed: bool,
    /// The versionstamp of that transaction, when it has committed: eight bytes of commit version,
    /// two of batch order, big-endian.
    pub stamp: Option<[u8; 10]>,
    /// The read version of that transaction, or of the look.
    pub read_version: Option<Version>,
    /// What that transaction wrote, as it was logged; nothing for a look.
    pub mutations: &'a [Mutation],
    /// When the operation was called, nanoseconds.
    pub called: Nanos,
    /// When it returned, or when its client died.
    pub returned: Nanos,
    /// What was known when.
    pub timing: &'a Timing,
}

impl<W: Workload> Step<'_, W> {
    /// The highest version that was known to be committed when the operation was called.
    pub fn known_at_call(&self) -> Version {
        self.timing.known_at(self.called)
    }

    /// Judges a wait of this operation: whether its answer came soon after it was possible, and one that
    /// says "nothing" only once patience had run out.
    pub fn waited(&self, wait: Wait) -> Result<(), String> {
        self.timing.judge(self.called, self.returned, self.read_version.filter(|_| !self.committed), wait)
    }
}

/// A concurrent program over a layer, with everything needed to judge it.
///
/// The value itself is the workload's drawn configuration: plain data, saved in repro files.
pub trait Workload: Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// One operation: plain data.
    type Op: Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// What a client learns from an operation.
    type Answer: Clone + Debug + Serialize + Send + Sync + 'static;
    /// What one client holds between operations, such as an exactly-once session. It is lost when
    /// the client dies.
    type Session<D: Database>: 'static;
    /// The sequential model: plain data.
    type Model: Send + Sync + 'static;

    /// The name on the command line.
    const NAME: &'static str;
    /// What it shakes, in a line.
    const ABOUT: &'static str;
    /// Whether an operation has at most one committed transaction that writes. The model's judge
    /// then reports a second one by itself.
    const ONE_EFFECT: bool = true;

    /// Whether a committed transaction of an operation is its effect. One that only makes sure that the
    /// operation has none is not, as the fence of an exactly-once record. By itself this knows the fences
    /// of sessions that live where this crate's own workloads keep them, in the subspace of the tuple
    /// `("sessions",)`; a workload with [`Slots`](shaketable_layers::once::Slots) elsewhere says so with
    /// [`Slots::is_fence`](shaketable_layers::once::Slots::is_fence).
    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        !sessions::is_fence(mutations)
    }

    /// Its planted bugs.
    fn bugs() -> &'static [Bug] {
        &[]
    }

    /// The `sometimes!` and `reachable!` claims that its sweep is expected to reach.
    fn points() -> &'static [&'static str] {
        &[]
    }

    /// Draws a configuration; `bug` is the name of one of [`bugs`](Workload::bugs) to plant.
    fn draw(rng: &mut Stream, bug: Option<&str>) -> Self;

    /// How many clients run.
    fn clients(&self) -> usize;

    /// Samples of the keys it uses, so that shards and resolvers can divide them.
    fn keys(&self) -> Vec<Bytes>;

    /// The operations of client number `client`.
    fn operations(&self, client: usize) -> BoxedStrategy<Vec<Self::Op>>;

    /// Whether the layer promises that this operation never conflicts with another one for which this
    /// is true.
    fn is_conflict_free(&self, op: &Self::Op) -> bool {
        let _ = op;
        false
    }

    /// Whether the answer of this operation may leave out what was acknowledged before its call: a read at
    /// an old version, a cached read version, a causally risky one. Every other operation sees it, and a
    /// judge holds it to that.
    fn may_read_stale(&self, op: &Self::Op) -> bool {
        let _ = op;
        false
    }

    /// Whether an operation that was answered so may still have an effect that commits after its return, such as
    /// one that says that it failed without asking what became of its last attempt. Every other answer says
    /// that nothing is under way, and a judge holds it to that.
    fn may_land_late(&self, answer: &Self::Answer) -> bool {
        let _ = answer;
        false
    }

    /// Prepares the empty database. Runs before any fault.
    fn setup<D: Database>(&self, db: &D) -> impl Future<Output = Result<(), Error>> {
        let _ = db;
        async { Ok(()) }
    }

    /// Opens a client's session, again after each death of the client.
    fn open<D: Database>(
        &self,
        db: &D,
        client: usize,
    ) -> impl Future<Output = Result<Self::Session<D>, Error>>;

    /// Prepares a client for its next operation after one whose future was dropped, as a session does that must
    /// first ask for its fate. Called before every operation, as a part of it.
    fn recall<D: Database>(&self, session: &mut Self::Session<D>) -> impl Future<Output = ()> {
        let _ = session;
        async {}
    }

    /// Where a planted bug does an operation its own way; `None` for everything that it leaves alone, which
    /// is [applied](Workload::apply).
    fn divert<D: Database>(
        &self,
        session: &mut Self::Session<D>,
        op: &Self::Op,
    ) -> impl Future<Output = Option<Outcome<Self::Answer>>> {
        let _ = (session, op);
        async { None }
    }

    /// Does one operation. Must end whatever the database does, within the limits of liveness.
    fn apply<D: Database>(
        &self,
        session: &mut Self::Session<D>,
        op: &Self::Op,
    ) -> impl Future<Output = Outcome<Self::Answer>>;

    /// Tries to learn what became of the session's last operation, whose outcome was unknown. What
    /// it writes belongs to no operation.
    fn resolve<D: Database>(
        &self,
        session: &mut Self::Session<D>,
        op: &Self::Op,
        error: Error,
    ) -> impl Future<Output = Outcome<Self::Answer>> {
        let _ = (session, op);
        async move { Outcome::Unknown(error) }
    }

    /// The sequential model of the database after [`setup`](Workload::setup).
    fn model(&self) -> Self::Model;

    /// Does one operation of the truth on the model, in commit order, and compares the answer.
    /// `Err` says what does not fit.
    fn step(&self, model: &mut Self::Model, step: &Step<'_, Self>) -> Result<(), String>;

    /// Invariants that hold at every version, read in one transaction. The outer error is the
    /// database's; the inner says which invariant is broken.
    fn audit<D: Database>(
        &self,
        tx: &D::Transaction,
    ) -> impl Future<Output = Result<Result<(), String>, Error>>;

    /// Compares the final database with the final model, read in one transaction or several.
    fn check<D: Database>(
        &self,
        db: &D,
        model: &Self::Model,
    ) -> impl Future<Output = Result<Result<(), String>, Error>>;
}

/// Does one operation, when the last one needs no more care: the planted bug's way, if there is one and it does it.
pub(crate) async fn perform<W: Workload, D: Database>(
    workload: &W,
    session: &mut W::Session<D>,
    op: &W::Op,
) -> Outcome<W::Answer> {
    workload.recall(session).await;
    match workload.divert(session, op).await {
        Some(outcome) => outcome,
        None => workload.apply(session, op).await,
    }
}
