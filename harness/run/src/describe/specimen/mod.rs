//! Workloads over a layer whose operations each run in one transaction.
//!
//! A [`Specimen`] describes a layer: its operations as plain data, how each is done in a transaction, a
//! sequential model that gives the expected answers, and how the stored data is read back as a model.
//! [`Mounted`] makes a [`Workload`](crate::describe::workload::Workload) of it: clients with exactly-once
//! sessions and timeouts, several operations composed in one transaction, refusals compared by their
//! messages, unknown outcomes resolved, the model's judge, the audit and the check.

mod content;
mod foreseen;
mod mounted;
mod perform;
mod planted;
pub mod table;

pub use content::Content;
pub use mounted::{Client, Mounted};
pub use perform::{Recorded, concluded, join, ran, refused};
pub use planted::{
    DEFERRED, INTERLEAVED, KEPT_VERSION, NOT_AWAITED, REMEMBERED, RISKY_READ, UNRECORDED, UNRECORDED_BUG,
    UNWRITTEN,
};

use crate::{
    describe::misfit::Misfit,
    describe::sessions,
    describe::waiting::Wait,
    describe::weakened::Span,
    describe::workload::{Bug, Outcome},
};
use bytes::Bytes;
use proptest::strategy::BoxedStrategy;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use shaketable_sim::{
    proto::{Mutation, Version},
    seed::Stream,
};
use shaketable_tx::{
    self as tx, Db, Env, Isolation, RetryError, Tx,
    once::{self, Fate, OpId, Session},
};
use std::{
    fmt::{Debug, Display},
    future::Future,
    ops::Range,
};

/// The place of an operation in the sequential order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct At<'a> {
    /// The versionstamp of its transaction if that committed: eight bytes of commit version and two bytes of
    /// batch order, big-endian.
    pub stamp: Option<[u8; 10]>,
    /// The read version of its transaction.
    pub read_version: Option<Version>,
    /// The highest version that was known to be committed when the operation was called. Transactions with a
    /// higher version may have committed during the operation.
    pub called: Version,
    /// The message with which the transaction was refused. A layer that makes free choices, such as an
    /// allocator, may have made a choice that leads to a refusal.
    pub refusal: Option<&'a str>,
}

/// A layer on the shake table. The value is the drawn configuration of a run.
pub trait Specimen: Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// One call of the layer: plain data.
    type Op: Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// What a call returns.
    type Answer: Clone + Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// Why the layer refuses a call; compared by its message.
    type Error: RetryError + From<once::Error> + Display + Debug + Send + 'static;
    /// The sequential model: what the layer should store.
    type Model: Clone + Debug + PartialEq + Send + Sync + 'static;

    /// The name on the command line.
    const NAME: &'static str;
    /// A description of what it shakes, in one line.
    const ABOUT: &'static str;
    /// The number of clients of a run is drawn from this range.
    const CLIENTS: Range<u64> = 2..9;
    /// The maximum number of transactions per client is drawn from this range.
    const TRANSACTIONS: Range<u64> = 8..40;
    /// The maximum number of calls in one transaction is drawn from this range.
    const TOGETHER: Range<u64> = 1..5;
    /// Whether several calls may run side by side in one transaction, with joined futures. Their effects and
    /// answers must be those of calls one after the other, in the order in which their futures were first
    /// polled. A layer whose calls take turns ([`writing`](tx::Transaction::writing)) promises this.
    const JOINS: bool = true;
    /// Whether the layer itself refuses keys, values and ranges that FoundationDB does not accept, and a call
    /// that is too large for a transaction of its own. It is a finding then if FoundationDB refuses one.
    const CHECKS_LIMITS: bool = false;

    /// Its planted bugs. [`Mounted`] implements those named [`UNRECORDED`], [`UNWRITTEN`], [`DEFERRED`],
    /// [`REMEMBERED`], [`KEPT_VERSION`], [`RISKY_READ`], [`NOT_AWAITED`] and [`INTERLEAVED`].
    fn bugs() -> &'static [Bug] {
        &[]
    }

    /// The `sometimes!` and `reachable!` claims that its sweep must reach, in addition to those of the
    /// exactly-once mechanism.
    fn points() -> &'static [&'static str] {
        &[]
    }

    /// Draws a configuration. `bug` is the name of the planted bug, one of [`bugs`](Specimen::bugs).
    fn draw(rng: &mut Stream, bug: Option<&str>) -> Self;

    /// Samples of the keys it uses, at which shards and resolvers may be split.
    fn keys(&self) -> Vec<Bytes>;

    /// The subspaces that have all keys of the layer, as [`Workload::subspaces`](crate::Workload::subspaces).
    fn subspaces(&self) -> Vec<Span> {
        Vec::new()
    }

    /// The strategy of one call by client number `client`.
    fn operation(&self, client: usize) -> BoxedStrategy<Self::Op>;

    /// Stores in a drawn call what identifies it within the run: its client, and its number among the
    /// client's calls.
    fn number(op: &mut Self::Op, client: usize, number: usize) {
        let _ = (op, client, number);
    }

    /// Whether a call never writes.
    fn is_read_only(op: &Self::Op) -> bool;

    /// Whether this call, if it is refused, has written nothing, so that its caller may do something else in
    /// the transaction. Not so for a call that consists of several calls of the layer.
    fn refuses_cleanly(op: &Self::Op, refusal: &Self::Error) -> bool {
        let _ = (op, refusal);
        true
    }

    /// Whether the layer promises that this call never conflicts with another call for which this is true. A
    /// judge checks it.
    fn is_conflict_free(&self, op: &Self::Op) -> bool {
        let _ = op;
        false
    }

    /// The kinds of calls that need not succeed, as
    /// [`Workload::rare_kinds`](crate::describe::workload::Workload::rare_kinds).
    fn rare_kinds() -> &'static [&'static str] {
        &[]
    }

    /// A key in the words of the layer, as
    /// [`Workload::describe_key`](crate::describe::workload::Workload::describe_key).
    fn describe_key(&self, key: &[u8]) -> Option<String> {
        let _ = key;
        None
    }

    /// A value in the words of the layer, as
    /// [`Workload::describe_value`](crate::describe::workload::Workload::describe_value).
    fn describe_value(&self, key: &[u8], value: &[u8]) -> Option<String> {
        let _ = (key, value);
        None
    }

    /// Prepares the empty database, before any fault.
    fn setup(&self, db: &Db) -> impl Future<Output = Result<(), tx::Error>> {
        let _ = db;
        async { Ok(()) }
    }

    /// Whether a read-only call reads at the isolation level with which it is [performed](Specimen::perform).
    /// [`Mounted`] does some of these calls at both levels, one after the other, and checks their reads.
    fn takes_isolation(&self, op: &Self::Op) -> bool {
        let _ = op;
        false
    }

    /// Whether each call of the layer takes a turn before it reads or writes. That is checked in every call
    /// ([`Tx::in_turns`](tx::Tx::in_turns)): joined futures show it only where two of
    /// them meet.
    fn takes_turns(&self) -> bool {
        false
    }

    /// Does one call in a transaction. `isolation` is for calls that [take it](Specimen::takes_isolation).
    /// This is the place of planted bugs that concern a single transaction.
    fn perform(
        &self,
        tx: &Tx,
        env: &Env,
        op: &Self::Op,
        isolation: Isolation,
    ) -> impl Future<Output = Result<Self::Answer, Self::Error>> + Send;

    /// The level at which a table of operations performs a call that is to be done at this one: a call whose
    /// own level is drawn reads no stricter than that.
    #[doc(hidden)]
    fn level(op: &Self::Op, isolation: Isolation) -> Isolation {
        let _ = op;
        isolation
    }

    /// Whether it has the planted bug of this name as a [table](crate::table) of operations, which need not
    /// keep the name in its configuration.
    #[doc(hidden)]
    fn plants(bug: &str) -> bool {
        let _ = bug;
        false
    }

    /// Does one call with one of the bugs that it [`plants`](Specimen::plants); `None` if the bug does not
    /// change it.
    #[doc(hidden)]
    fn perform_planted(
        &self,
        bug: &str,
        within: (&Tx, &Env),
        op: &Self::Op,
        isolation: Isolation,
    ) -> impl Future<Output = Option<Result<Self::Answer, Self::Error>>> + Send {
        let _ = (bug, within, op, isolation);
        async { None }
    }

    /// Does the calls of a transaction with one of the bugs that it [`plants`](Specimen::plants), in several
    /// transactions; `None` if the bug does not change them.
    #[doc(hidden)]
    fn apply_bug(
        &self,
        bug: &str,
        session: &mut Session<Db>,
        ops: &[Self::Op],
    ) -> impl Future<Output = Option<Outcome<Answer<Self::Answer>>>> {
        let _ = (bug, session, ops);
        async { None }
    }

    /// Does the calls of a transaction in a way of their own, such as several transactions, or a session's
    /// run of the layer. `None` leaves them to [`Mounted`], which [performs](Specimen::perform) them in one
    /// transaction. `bug` is the planted bug of the run. Where it is another body of one of these
    /// calls, or one of all workloads, it shows only in what is left to [`Mounted`].
    fn apply(
        &self,
        bug: Option<&str>,
        session: &mut Session<Db>,
        ops: &[Self::Op],
    ) -> impl Future<Output = Option<Outcome<Answer<Self::Answer>>>> {
        let _ = (bug, session, ops);
        async { None }
    }

    /// Resolves calls whose outcome was unknown. For a workload whose [`apply`](Specimen::apply) records
    /// the answer of a call in the layer's own format.
    fn resolve(
        &self,
        bug: Option<&str>,
        session: &mut Session<Db>,
        ops: &[Self::Op],
        pending: OpId,
    ) -> impl Future<Output = Result<Fate<Vec<Self::Answer>>, once::Error>> {
        let _ = (bug, ops);
        async move { Ok(session.resolve(pending).await?.map(|Recorded(answers)| answers)) }
    }

    /// Whether a committed transaction is the effect of its calls: see
    /// [`Workload::is_effect`](crate::describe::workload::Workload::is_effect).
    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        !sessions::is_fence(mutations)
    }

    /// The sequential model after [`setup`](Specimen::setup).
    fn model(&self) -> Self::Model;

    /// Does one call on the model, and returns the expected answer. After a refusal the model is restored to
    /// its state before the transaction.
    fn replay(&self, model: &mut Self::Model, op: &Self::Op, at: &At) -> Result<Self::Answer, Self::Error>;

    /// Fills in the choices that [`replay`](Specimen::replay) leaves open where the layer chooses freely, as
    /// an allocator does: in the model after the calls of a transaction, and in their expected answers.
    /// `answers` are the actual answers, if the client received them, and `mutations` are the writes. A
    /// choice that is not allowed remains open and therefore matches nothing.
    fn choose(
        &self,
        model: &mut Self::Model,
        expected: &mut [Self::Answer],
        answers: Option<&[Self::Answer]>,
        mutations: &[Mutation],
    ) {
        let _ = (model, expected, answers, mutations);
    }

    /// The timeout of a call that is alone in its transaction: it waits so long at most and then returns
    /// whatever it finds, in nanoseconds; `None` for a call that has none.
    fn timeout(&self, op: &Self::Op) -> Option<u64> {
        let _ = op;
        None
    }

    /// The wait of a call that was alone in its transaction, returned `answer` and left this model; `None`
    /// for a call that did not wait.
    fn wait(&self, model: &Self::Model, op: &Self::Op, answer: &Self::Answer, at: &At) -> Option<Wait> {
        let _ = (model, op, answer, at);
        None
    }

    /// Reads everything that the layer stores, in one transaction, as a model. The inner error is the
    /// structural invariant that is broken; these invariants must hold at every version.
    fn read_model(
        &self,
        tx: &Tx,
    ) -> impl Future<Output = Result<Result<Self::Model, Misfit>, tx::Error>> + Send;
}

/// The answer of the calls of one transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer<A> {
    /// All calls were done: their answers, in order.
    Done(Vec<A>),
    /// One call was refused with this message, and therefore all of them.
    Refused(String),
}
