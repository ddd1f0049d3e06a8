//! The [`Workload`] trait: a workload generates operations, does them, and checks what must be true.
//!
//! These three parts are separate. [`Workload::operations`] draws plain data, [`Workload::apply`] does one
//! operation on a [`Db`], and [`Workload::step`], [`Workload::audit`] and [`Workload::check`] judge.

use crate::{
    describe::beside::OneBeside,
    describe::kinds,
    describe::misfit::Misfit,
    describe::sessions,
    describe::waiting::{Timing, Wait},
    describe::weakened::Span,
};
use bytes::Bytes;
use proptest::strategy::BoxedStrategy;
use serde::{Serialize, de::DeserializeOwned};
use shaketable_sim::{
    config::ClusterBug,
    proto::{Mutation, Version},
    rt::Nanos,
    seed::Stream,
};
use shaketable_tx::{Db, Error, Tx};
use std::{
    fmt::Debug,
    future::Future,
    ops::{Range, RangeInclusive},
    time::Duration,
};

/// A planted bug: a variant of the code that is wrong on purpose and that a sweep must catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bug {
    /// The name that selects it, unique within its workload.
    pub name: &'static str,
    /// A description of what is wrong, in one line.
    pub about: &'static str,
    /// Where such a bug comes from: a document, a published example, a known issue.
    pub source: &'static str,
    /// What it takes to show the bug that only a simulated cluster has, if anything.
    pub only_simulated: Option<&'static str>,
}

/// How an operation ended for its client.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<A> {
    /// It returned this answer. A refusal is an answer. If the operation has an effect, the effect has
    /// happened.
    Answered(A),
    /// It failed with this error. It has no effect and never will.
    Failed(Error),
    /// It failed with this error. It may have an effect, now or later.
    Unknown(Error),
    /// Its answer contradicts the promises of the layer, whatever other clients did.
    Violated(String),
}

impl<A> Outcome<A> {
    /// The outcome with another answer.
    pub fn map<B>(self, answer: impl FnOnce(A) -> B) -> Outcome<B> {
        match self {
            Outcome::Answered(answered) => Outcome::Answered(answer(answered)),
            Outcome::Failed(error) => Outcome::Failed(error),
            Outcome::Unknown(error) => Outcome::Unknown(error),
            Outcome::Violated(why) => Outcome::Violated(why),
        }
    }
}

/// An operation as its client observed it.
#[derive(Clone, Debug)]
pub struct Operation<A> {
    /// When it was called.
    pub called: Nanos,
    /// When it returned, or when its client dropped it or died.
    pub returned: Nanos,
    /// How it ended; `None` while it is in progress.
    pub outcome: Option<Outcome<A>>,
}

/// How old the data may be that an operation reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staleness {
    /// What was acknowledged this long before the call is seen.
    pub at_most: Duration,
    /// Whether a client sees what its earlier operations were acknowledged to have written, however short the
    /// time since then is. A causally risky read version does not promise it.
    pub sees_own: bool,
}

/// Twice as old as the oldest version that a transaction can read, and no older than the client's own writes.
impl Default for Staleness {
    fn default() -> Staleness {
        Staleness { at_most: Duration::from_secs(10), sees_own: true }
    }
}

/// One step of the sequential model: an operation at its place in commit order.
pub struct Step<'a, W: Workload> {
    /// The client that called it.
    pub client: usize,
    /// Its index in the client's list of operations.
    pub index: usize,
    /// The operation.
    pub op: &'a W::Op,
    /// The answer that the client received, if any.
    pub answer: Option<&'a W::Answer>,
    /// Whether a transaction of the operation that writes committed here. Otherwise the operation only read:
    /// the model must not change, and the answer must be the one that the model gives in its present state.
    pub committed: bool,
    /// The versionstamp of that transaction if it committed: eight bytes of commit version and two bytes of
    /// batch order, big-endian.
    pub stamp: Option<[u8; 10]>,
    /// The read version of that transaction, or of the read.
    pub read_version: Option<Version>,
    /// The mutations of that transaction in the log; empty if the operation only read.
    pub mutations: &'a [Mutation],
    /// When the operation was called, nanoseconds.
    pub called: Nanos,
    /// When it returned, or when its client died, nanoseconds.
    pub returned: Nanos,
    /// When each version was known to be committed.
    pub timing: &'a Timing,
}

impl<W: Workload> Step<'_, W> {
    /// The highest version that was known to be committed when the operation was called.
    pub fn known_at_call(&self) -> Version {
        self.timing.known_at(self.called)
    }

    /// Judges a wait of this operation. The answer must come soon after it became possible; an answer that
    /// nothing came is allowed only after the time limit of the wait. The error describes what is wrong.
    pub fn waited(&self, wait: Wait) -> Result<(), Misfit> {
        let read_version = self.read_version.filter(|_| !self.committed);
        self.timing.judge((self.client, self.index), self.called, self.returned, read_version, wait)
    }

    /// Judges that this operation returned soon after a time limit in nanoseconds, whatever it found. The
    /// error describes what is wrong.
    pub fn returned_within(&self, limit: Nanos) -> Result<(), Misfit> {
        self.timing.judge_end((self.client, self.index), self.called, self.returned, limit)
    }
}

/// A concurrent program that uses a layer, with everything that is needed to judge it.
///
/// The value is the drawn configuration of a run: plain data, which repro files contain.
pub trait Workload: Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// One operation: plain data.
    type Op: Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// What an operation returns to its client.
    type Answer: Clone + Debug + Serialize + Send + Sync + 'static;
    /// The state that a client keeps between operations, such as an exactly-once session. It is lost when the
    /// client dies.
    type Session: 'static;
    /// The sequential model: plain data.
    type Model: Clone + Send + Sync + 'static;

    /// The name on the command line.
    const NAME: &'static str;
    /// A description of what it shakes, in one line.
    const ABOUT: &'static str;

    /// How many effects this operation may have: writing transactions that commit. The model's judge reports
    /// more, and fewer if it was answered and not [refused](Workload::is_refusal). The default is none or
    /// one.
    fn effects(&self, op: &Self::Op) -> RangeInclusive<usize> {
        let _ = op;
        0..=1
    }

    /// Whether this operation may overwrite what another one wrote after it had looked at the key, at
    /// snapshot, and seen nothing: the last writer wins. If not, a judge reports it. The default is true,
    /// because a model tells what must not be lost.
    fn may_overwrite(&self, op: &Self::Op) -> bool {
        let _ = op;
        true
    }

    /// The longest time that this operation may take, of which only that counts in which the cluster serves
    /// other clients. Faults between this client alone and the cluster count as well. `None`, the default, is
    /// no limit.
    fn time_limit(&self, op: &Self::Op) -> Option<Duration> {
        let _ = op;
        None
    }

    /// Whether a committed transaction of an operation is its effect. A transaction that only ensures that
    /// the operation has no effect, such as the fence of an exactly-once record, is not. The default
    /// recognizes the fences of sessions in the subspace of the tuple `("sessions",)`, where this crate's
    /// workloads keep them. A workload with [`Slots`](shaketable_tx::once::Slots) elsewhere implements this
    /// with [`Slots::is_fence`](shaketable_tx::once::Slots::is_fence).
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

    /// The bugs planted in the cluster that this workload shows, in addition to those that every workload
    /// shows ([`ClusterBug::shows_everywhere`]). Any finding about such a bug catches it.
    fn cluster_bugs() -> &'static [ClusterBug] {
        &[]
    }

    /// Draws a configuration. `bug` is the name of the planted bug, one of [`bugs`](Workload::bugs).
    fn draw(rng: &mut Stream, bug: Option<&str>) -> Self;

    /// The number of clients.
    fn clients(&self) -> usize;

    /// Samples of the keys it uses, at which shards and resolvers may be split.
    fn keys(&self) -> Vec<Bytes>;

    /// The subspaces that have all keys of the layer, each from its begin to its end, as
    /// [`Subspace::range`](foundationdb_tuple::Subspace::range) returns them. A judge then reports who
    /// changes other keys, and rows of another application stand at the edges: a range that is read too far
    /// finds one. The sessions of clients and the system keys need not be named. With none, the default,
    /// little is known of what the layer must leave alone.
    fn subspaces(&self) -> Vec<Span> {
        Vec::new()
    }

    /// The operations of client number `client`.
    fn operations(&self, client: usize) -> BoxedStrategy<Vec<Self::Op>>;

    /// The strategy of one operation of a client that would probably be done, for what was drawn before: most
    /// runs draw their operations one after the other, and each is [foreseen](Workload::foresee). A client
    /// has as many as [`operations`](Workload::operations) draws. With `None`, the default, that list is
    /// taken as it comes.
    fn operation_beside(&self, client: usize) -> Option<OneBeside<'_, Self::Model, Self::Op>> {
        let _ = client;
        None
    }

    /// The model after an operation that is done before the run, as if alone, at this place in the order of
    /// all operations; `None` if it changes nothing, as what would be refused.
    fn foresee(&self, model: &Self::Model, op: &Self::Op, order: u64) -> Option<Self::Model> {
        let _ = (model, op, order);
        None
    }

    /// The part of the configuration that decides how many [`operations`](Workload::operations) a client has.
    /// A run at scale N has N times as many (`--scale`); a workload without this part has no longer runs.
    /// Where [operations are drawn one after the other](Workload::operation_beside), it is the range of their
    /// number.
    fn length(&mut self) -> Option<&mut Range<usize>> {
        None
    }

    /// Whether the layer promises that this operation never conflicts with another operation for which this
    /// is true.
    fn is_conflict_free(&self, op: &Self::Op) -> bool {
        let _ = op;
        false
    }

    /// The kinds of an operation, by which the report of a sweep counts how operations ended: a kind that
    /// never succeeds makes the sweep vacuous. An operation that does several things at once has several.
    fn kinds(&self, op: &Self::Op) -> Vec<&'static str> {
        kinds::of(op)
    }

    /// The kinds of operations that need not succeed in a sweep, because they are refused by design or
    /// succeed rarely.
    fn rare_kinds() -> &'static [&'static str] {
        &[]
    }

    /// Whether an answer says that the operation was refused.
    fn is_refusal(&self, answer: &Self::Answer) -> bool {
        kinds::of(answer) == ["Refused"]
    }

    /// Whether the client of this operation gives it up on purpose, for example by dropping its future, so
    /// that its outcome is unknown without a fault. A judge checks that the unknown outcomes and errors of
    /// others are explained by their run.
    fn is_given_up(&self, op: &Self::Op) -> bool {
        let _ = op;
        false
    }

    /// How old the data may be that this operation reads, if its answer may miss what was acknowledged before
    /// the call because it reads at an old, a cached or a causally risky read version, or in a cache. A judge
    /// checks that every other operation sees all of it.
    fn staleness(&self, op: &Self::Op) -> Option<Staleness> {
        let _ = op;
        None
    }

    /// Whether an operation with this answer may still have an effect that commits after its return, for
    /// example because it reports a failure without resolving its last attempt. A judge checks that
    /// operations with any other answer have no effect after their return.
    fn may_land_late(&self, answer: &Self::Answer) -> bool {
        let _ = answer;
        false
    }

    /// A key in the words of the layer, for stories and time lines: `the item at the head`. Keys are shown as
    /// tuples where this is `None`.
    fn describe_key(&self, key: &[u8]) -> Option<String> {
        let _ = key;
        None
    }

    /// The value of a key in the words of the layer. Values are shown as text, numbers or tuples where this
    /// is `None`.
    fn describe_value(&self, key: &[u8], value: &[u8]) -> Option<String> {
        let _ = (key, value);
        None
    }

    /// Prepares the empty database, before any fault.
    fn setup(&self, db: &Db) -> impl Future<Output = Result<(), Error>> {
        let _ = db;
        async { Ok(()) }
    }

    /// Opens a client's session, again after each death of the client.
    fn open(&self, db: &Db, client: usize) -> impl Future<Output = Result<Self::Session, Error>>;

    /// Whether clients may be tasks of one process, as those of most programs are. In some runs several of
    /// them are then on one machine, and die together: the first one is [opened](Workload::open), the others
    /// [beside it](Workload::open_beside), and their operations are in flight at once.
    const TASKS: bool = false;

    /// Opens the session of a client that is a task of the same process as another one: with the same opened
    /// state of the layer, and with a database and an exactly-once session of its own.
    fn open_beside(
        &self,
        db: &Db,
        client: usize,
        other: &mut Self::Session,
    ) -> impl Future<Output = Result<Self::Session, Error>> {
        let _ = other;
        self.open(db, client)
    }

    /// Prepares a client for its next operation after one whose future was dropped: a session, for example,
    /// must first resolve the outcome of the dropped operation. Called before every operation, as a part of
    /// it.
    fn resolve_dropped(&self, session: &mut Self::Session) -> impl Future<Output = ()> {
        let _ = session;
        async {}
    }

    /// Does an operation in the way of the planted bug. Returns `None` if the bug does not change this
    /// operation, which is then [applied](Workload::apply).
    fn apply_planted(
        &self,
        session: &mut Self::Session,
        op: &Self::Op,
    ) -> impl Future<Output = Option<Outcome<Self::Answer>>> {
        let _ = (session, op);
        async { None }
    }

    /// Does one operation. It must finish whatever the database does, within the time limit of the `live`
    /// judge after faults have ended.
    fn apply(
        &self,
        session: &mut Self::Session,
        op: &Self::Op,
    ) -> impl Future<Output = Outcome<Self::Answer>>;

    /// Tries to resolve the session's last operation, whose outcome was unknown. Returns `Outcome::Unknown`
    /// if it cannot. The transactions of this call belong to no operation.
    fn resolve(
        &self,
        session: &mut Self::Session,
        op: &Self::Op,
        error: Error,
    ) -> impl Future<Output = Outcome<Self::Answer>> {
        let _ = (session, op);
        async move { Outcome::Unknown(error) }
    }

    /// The sequential model of the database after [`setup`](Workload::setup).
    fn model(&self) -> Self::Model;

    /// Does one operation on the model, in commit order, and compares the answer. The error describes what
    /// does not match. An operation that only read may be tried at several places; what it changes in the
    /// model where it does not match is undone.
    fn step(&self, model: &mut Self::Model, step: &Step<'_, Self>) -> Result<(), Misfit>;

    /// Reads the invariants, which hold at every version, in one transaction. The outer error is the error of
    /// the database; the inner error describes the broken invariant.
    fn audit(&self, tx: &Tx) -> impl Future<Output = Result<Result<(), Misfit>, Error>>;

    /// Audits a version at which the model is known, and compares with it what is stored. Called with states
    /// that are rebuilt from the log. The default only [audits](Workload::audit).
    fn audit_against(
        &self,
        tx: &Tx,
        model: &Self::Model,
    ) -> impl Future<Output = Result<Result<(), Misfit>, Error>> {
        let _ = model;
        self.audit(tx)
    }

    /// Compares the final database, read in one or more transactions, with the final model. The outer error
    /// is the error of the database; the inner error describes the difference.
    fn check(&self, db: &Db, model: &Self::Model) -> impl Future<Output = Result<Result<(), Misfit>, Error>>;
}
