//! A workload as a table of operations.
//!
//! `#[shaketable::workload]` on an `impl` block makes a workload of it. With a model it is a [`Specimen`],
//! which is run as [`Mounted`](super::Mounted). Each operation is a method, and the model is a type with
//! methods of the same names: what `stock.take(many)` should answer is what `model.take(many)` answers.
//!
//! ```
//! use shaketable::prelude::*;
//!
//! shaketable_tx::refusals! {
//!     /// Why a step was refused.
//!     pub enum Refusal { Empty = "there is nothing left" }
//! }
//!
//! fn number(value: Option<Bytes>) -> u64 {
//!     value.and_then(|value| value[..].try_into().ok()).map_or(0, u64::from_le_bytes)
//! }
//!
//! /// The configuration of a run: nothing is drawn.
//! #[derive(Clone, Debug, Default, Serialize, Deserialize)]
//! pub struct Stock {}
//!
//! /// A number that never falls below zero.
//! #[shaketable::workload(name = "stock", model = Model, planted, promises(turns))]
//! impl Stock {
//!     #[draws(many)]
//!     fn many() -> impl Strategy<Value = u64> {
//!         1..15u64
//!     }
//!
//!     #[write(weight = 2, blind)]
//!     async fn add(&self, tx: &Tx, many: u64) -> Result<(), Refusal> {
//!         tx.writing().await.atomic_op(b"stock", &many.to_le_bytes(), MutationType::Add);
//!         Ok(())
//!     }
//!
//!     #[write]
//!     async fn take(&self, tx: &Tx, many: u64) -> Result<u64, Refusal> {
//!         let tx = tx.writing().await;
//!         let left = number(tx.get(b"stock", Serializable).await?).checked_sub(many).ok_or(Refusal::Empty)?;
//!         tx.set(b"stock", &left.to_le_bytes());
//!         Ok(left)
//!     }
//!
//!     #[read]
//!     async fn count(&self, tx: &Tx, isolation: Isolation) -> Result<u64, Refusal> {
//!         Ok(number(tx.reading().await.get(b"stock", isolation).await?))
//!     }
//!
//!     #[stored]
//!     async fn stored(&self, tx: &Tx) -> tx::Result<Model> {
//!         Ok(Model(number(tx.get(b"stock", Serializable).await?)))
//!     }
//! }
//!
//! /// How many there should be.
//! #[derive(Clone, Debug, Default, PartialEq)]
//! pub struct Model(u64);
//!
//! impl Model {
//!     fn add(&mut self, many: u64) -> Result<(), Refusal> {
//!         self.0 += many;
//!         Ok(())
//!     }
//!
//!     fn take(&mut self, many: u64) -> Result<u64, Refusal> {
//!         self.0 = self.0.checked_sub(many).ok_or(Refusal::Empty)?;
//!         Ok(self.0)
//!     }
//!
//!     fn count(&self) -> Result<u64, Refusal> {
//!         Ok(self.0)
//!     }
//! }
//!
//! #[shaketable::planted]
//! #[flaw(unwritten_take, take, Unwritten, "what is taken is not written", "a forgotten line")]
//! impl Stock {
//!     /// The number is read at snapshot.
//!     #[bug(take, "a missing conflict range")]
//!     async fn at_snapshot(&self, tx: &Tx, many: u64) -> Result<u64, Refusal> {
//!         let left = number(tx.get(b"stock", Snapshot).await?).checked_sub(many).ok_or(Refusal::Empty)?;
//!         tx.set(b"stock", &left.to_le_bytes());
//!         Ok(left)
//!     }
//! }
//!
//! Shake::<Mounted<Stock>>::new().seeds(0..10).assert();
//! Shake::<Mounted<Stock>>::new().bug("at-snapshot").assert_caught();
//! Shake::<Mounted<Stock>>::new().bug("unwritten-take").assert_caught();
//! Shake::<Mounted<Stock>>::new().bug("unrecorded").assert_caught();
//! ```
//!
//! # Without a model
//!
//! A block without a model says what must hold instead: methods with `#[invariant(..)]`, which return `Ok` of
//! a `bool`, or of a `Result<(), String>` whose error describes what is wrong. It is an
//! [`Invariants`](crate::Invariants), and is run as [`Guarded`](crate::Guarded). Answers are not compared.
//!
//! ```
//! use shaketable::prelude::*;
//!
//! shaketable_tx::refusals! {
//!     /// Why a step was refused.
//!     pub enum Refusal { TooMuch = "that is too much" }
//! }
//!
//! #[derive(Clone, Debug, Default, Serialize, Deserialize)]
//! pub struct Twins;
//!
//! /// Two counters that move together.
//! #[shaketable::workload(name = "twins")]
//! impl Twins {
//!     #[write]
//!     async fn step(&self, tx: &Tx, env: &Env, #[draw(1..10i64)] by: i64) -> Result<(), Refusal> {
//!         if env.random_u64() % 9 == 0 {
//!             return Err(Refusal::TooMuch);
//!         }
//!         for twin in [b"a", b"b"] {
//!             tx.atomic_op(twin, &by.to_le_bytes(), MutationType::Add);
//!         }
//!         Ok(())
//!     }
//!
//!     #[invariant("they are equal")]
//!     async fn equal(&self, tx: &Tx) -> tx::Result<bool> {
//!         Ok(tx.get(b"a", Serializable).await? == tx.get(b"b", Serializable).await?)
//!     }
//! }
//!
//! Shake::<Guarded<Twins>>::new().seeds(0..3).assert();
//! Shake::<Guarded<Twins>>::new().bug("unrecorded").run();
//! ```
//!
//! # With a session
//!
//! With `session = TYPE` an operation decides itself how it is done: in several transactions, with watches
//! and waits, or by functions of another library. The block is then a [`Workload`](crate::Workload), and
//! has its methods. Each operation takes the state of its client, `&mut TYPE`, in place of a transaction,
//! and what is drawn. It returns an [`Outcome`] of `answer = TYPE`, or a `Result` of that outcome or of an
//! answer, whose error is an answer too, so that `?` ends the operation with it.
//!
//! ```
//! use shaketable::{Misfit, prelude::*};
//! use std::ops::{Range, RangeInclusive};
//!
//! /// The configuration of a run: what its fields `clients` and `operations` are for need not be said.
//! #[derive(Clone, Debug, Serialize, Deserialize)]
//! pub struct Steps {
//!     clients: usize,
//!     operations: Range<usize>,
//! }
//!
//! /// A counter that is raised in two steps.
//! #[shaketable::workload(name = "steps", session = Db, answer = (), model = u64)]
//! impl Steps {
//!     #[write(weight = 3)]
//!     async fn raise(&self, db: &mut Db, #[draw(1..5u64)] by: u64) -> Outcome<()> {
//!         for _ in 0..2 {
//!             let raised = db.run(|tx, _| async move {
//!                 tx.atomic_op(b"steps", &by.to_le_bytes(), MutationType::Add);
//!                 Ok::<_, tx::Error>(())
//!             });
//!             if let Err(failed) = raised.await {
//!                 return Outcome::Unknown(failed.error);
//!             }
//!         }
//!         Outcome::Answered(())
//!     }
//!
//!     /// An unknown step is done again.
//!     fn effects(&self, _: &StepsOp) -> RangeInclusive<usize> {
//!         0..=usize::MAX
//!     }
//!
//!     fn draw(rng: &mut Stream, _: Option<&str>) -> Steps {
//!         Steps { clients: rng.range(1..4) as usize, operations: 1..10 }
//!     }
//!
//!     fn keys(&self) -> Vec<Bytes> {
//!         Vec::new()
//!     }
//!
//!     async fn open(&self, db: &Db, _: usize) -> tx::Result<Db> {
//!         Ok(db.clone())
//!     }
//!
//!     fn step(&self, sum: &mut u64, step: &Step<'_, Self>) -> Result<(), Misfit> {
//!         let StepsOp::raise { by } = step.op;
//!         *sum += if step.committed { *by } else { 0 };
//!         Ok(())
//!     }
//!
//!     async fn audit(&self, _: &Tx) -> tx::Result<Result<(), Misfit>> {
//!         Ok(Ok(()))
//!     }
//!
//!     async fn check(&self, db: &Db, sum: &u64) -> tx::Result<Result<(), Misfit>> {
//!         let read = db.run(|tx, _| async move { tx.get(b"steps", Serializable).await }).await;
//!         let value = read.map_err(|failed| failed.error)?;
//!         let stored = value.map_or(0, |value| u64::from_le_bytes(value[..].try_into().unwrap_or_default()));
//!         Ok(if stored == *sum { Ok(()) } else { Err(format!("{stored}, should be {sum}").into()) })
//!     }
//! }
//!
//! Shake::<Steps>::new().seeds(0..10).assert();
//! ```
//!
//! A block without `clients`, `length`, `model` or `is_conflict_free` has those of the fields `clients` and
//! `operations` (or of a constant `OPERATIONS`, the range of how many operations a client has), of the
//! model's default, and of `blind`. `number`, if it is there, is called as [`Specimen::number`]. A block
//! with its own `operations` draws one with `self.operation(client)`, and one with its own `apply` does
//! what was drawn with `self.perform(session, op)`.
//!
//! # The attribute
//!
//! The first line of the block's documentation is what lists say of the workload.
//!
//! | | |
//! |---|---|
//! | `name = "stock"` | the name on the command line; without it, that of the type in small letters |
//! | `model = Model` | the model, if there is one: a type that is `Clone`, `Debug` and `PartialEq` |
//! | `session = TYPE`, `answer = TYPE` | the state of a client, and what every operation returns: see [above](#with-a-session) |
//! | `error = Refusal` | the layer's error, where the operations return an alias of `Result` that hides it |
//! | `planted` | another block has its planted bugs |
//! | `promises(turns, limits)` | each call [takes a turn](shaketable_tx::Transaction::writing); the layer itself [refuses](Specimen::CHECKS_LIMITS) what is too large |
//! | `without(interleaved)` | general planted bugs that it does not have |
//! | `risky_read` | a general bug that few workloads show: reads accept a causally risky read version |
//!
//! # Operations
//!
//! `#[write]` or `#[read]` makes an operation of an `async` method. It takes `&self`, its transaction as
//! `tx: &Tx`, and then in any order an [`Isolation`] (it is then read at both levels), an [`Env`], and its
//! arguments. An argument is drawn by its own `#[draw(STRATEGY)]`, or by the method that `#[draws(NAME)]`
//! gives to all arguments of this name, which may take the number of the client. It is taken as it is, or by
//! reference: `&[T]` is drawn as a `Vec<T>`, and `&str` as a `String`. If the `Isolation` is drawn, it is a
//! part of the operation, which the model's method is given too: a look at snapshot is then composed with
//! other calls, and conflicts with none.
//!
//! | in `#[write(..)]`, `#[read(..)]` | |
//! |---|---|
//! | `weight = 3` | how often it is drawn, a number, or an expression of `self` and `client` that is 0 where it is not to be drawn; 1 if nothing is said |
//! | `blind` | it conflicts with no other blind operation, which is checked |
//! | `rare` | it need not succeed in a sweep |
//! | `at` | the model's method takes [where it stands](super::At) in the sequential order as well: `at: &At` |
//! | `composed` | a refused call may have written: it consists of several calls of the layer |
//!
//! `#[stored]` reads everything that the layer stores, as the model. An error of the layer, or an inner
//! `Result` with a text or a [`Misfit`], says what is wrong with it.
//!
//! # Further methods
//!
//! These describe a workload by their names: `draw`, `keys`, `subspaces`, `setup`, `model`, `points`,
//! `number`, `is_conflict_free`, `refuses_cleanly`, `describe_key`, `describe_value`, `is_effect`, `choose`,
//! `apply`, `resolve`, `timeout` and `wait`, each as in [`Specimen`]. Without `draw` and `model`, it is the
//! default of the type. `setup` may take a transaction, `setup(&self, tx: &Tx)`. The constants `CLIENTS`,
//! `TRANSACTIONS`, `TOGETHER` and `JOINS` describe it too. Without a model these are `draw`, `keys`,
//! `subspaces`, `setup` and `points`, and the constants `CLIENTS`, `OPERATIONS` and `MAY_OVERWRITE`; of the
//! options of an operation, it has only `weight`.
//!
//! # Planted bugs
//!
//! Every workload with a model has the [`general`] ones. `#[shaketable::planted]` on a block adds others: a
//! method with `#[bug(OPERATION, SOURCE)]` is another body of this operation, or of several, `add | take`.
//! The first paragraph of its documentation says what is wrong. It takes of the operation's arguments what it
//! needs. Instead of `tx: &Tx` it may take `db: &Db`, for several transactions (the error is then that of the
//! layer, or the `RunError` of a retry loop), or `session: &mut Session<Db>`, and then returns an [`Outcome`]
//! of its answer, or of an [`Answer`] with it. Another text says what it takes to show a bug that no real
//! cluster shows. `#[bug(OPERATION, part_of = "NAME")]` is a further body of a bug. With `#[bug(*, SOURCE)]`
//! the method takes all calls of a transaction, `session: &mut Session<Db>, ops: &[StockOp]`, and returns
//! their outcome, or `None` if it changes nothing.
//!
//! `#[flaw(NAME, OPERATION, FLAW, WHAT, SOURCE)]` on the block needs no body: the operation is done as it is
//! written, in a transaction with a [`Flaw`](crate::weakened::Flaw). `#[named(NAME, WHAT, SOURCE)]` only
//! declares a bug: `draw`, `apply` and `resolve` are given its name, and do what is wrong.

use super::{Answer, Specimen, refused};
use crate::{
    describe::misfit::Misfit,
    describe::workload::{Bug, Outcome},
};
use proptest::{
    collection::vec,
    strategy::{BoxedStrategy, Strategy, Union},
};
use shaketable_tx::{self as tx, Db, Env, Isolation, RetryError, Tx, once::Session};
use std::{
    fmt::{Debug, Display},
    future::Future,
    ops::Range,
};

/// The planted bugs of a workload that is a table of operations: `#[shaketable::planted]` implements this.
pub trait Planted: Specimen {
    /// The bugs.
    const BUGS: &'static [Bug];

    /// Does one call in its transaction with this bug; `None` if the bug does not change it.
    fn perform(
        &self,
        bug: &str,
        within: (&Tx, &Env),
        op: &Self::Op,
        isolation: Isolation,
    ) -> impl Future<Output = Option<Result<Self::Answer, Self::Error>>> + Send;

    /// Does the calls of a transaction with this bug in several transactions; `None` if the bug does not
    /// change them.
    fn apply(
        &self,
        bug: &str,
        session: &mut Session<Db>,
        ops: &[Self::Op],
    ) -> impl Future<Output = Option<Outcome<Answer<Self::Answer>>>>;
}

/// What a method with `#[stored]` returns: the model, or what is wrong with what is stored. An error of the
/// layer says what is wrong, unless it is one of FoundationDB.
pub trait Stored<M> {
    /// As [`Specimen::read_model`] returns it.
    fn stored(self) -> tx::Result<Result<M, Misfit>>;
}

impl<M, E: RetryError + Display> Stored<M> for Result<M, E> {
    fn stored(self) -> tx::Result<Result<M, Misfit>> {
        match self {
            Ok(model) => Ok(Ok(model)),
            Err(e) => e.fdb().map_or_else(|| Ok(Err(e.to_string().into())), Err),
        }
    }
}

impl<M, X: Into<Misfit>> Stored<M> for tx::Result<Result<M, X>> {
    fn stored(self) -> tx::Result<Result<M, Misfit>> {
        self.map(|read| read.map_err(Into::into))
    }
}

/// One of these operations. One that has weight 0 in this configuration is never drawn.
///
/// # Panics
///
/// If all have.
pub fn drawn<T: Debug + 'static>(mut operations: Vec<(u32, BoxedStrategy<T>)>) -> BoxedStrategy<T> {
    operations.retain(|(weight, _)| *weight > 0);
    assert!(!operations.is_empty(), "every operation has weight 0 in this configuration");
    match operations.pop() {
        Some((_, one)) if operations.is_empty() => one,
        last => Union::new_weighted(operations.into_iter().chain(last).collect()).boxed(),
    }
}

/// A list of operations, of a length in this range.
pub fn list<T: Debug + 'static>(operation: BoxedStrategy<T>, length: &Range<usize>) -> BoxedStrategy<Vec<T>> {
    vec(operation, length.clone()).boxed()
}

/// The outcome of a call that was done in several transactions.
pub fn outcome<A, E: RetryError + Display>(done: Result<A, E>) -> Outcome<Answer<A>> {
    match done {
        Ok(answer) => Outcome::Answered(Answer::Done(vec![answer])),
        Err(e) => refused(&e),
    }
}

/// The outcome of a call that is alone in its transaction: of the call, or of the transaction with it.
pub trait Alone<A> {
    /// The outcome of the transaction.
    fn alone<B>(self, answer: impl FnMut(A) -> B) -> Outcome<Answer<B>>;
}

impl<A> Alone<A> for Outcome<A> {
    fn alone<B>(self, mut answer: impl FnMut(A) -> B) -> Outcome<Answer<B>> {
        self.map(|answered| Answer::Done(vec![answer(answered)]))
    }
}

impl<A> Alone<A> for Outcome<Answer<A>> {
    fn alone<B>(self, answer: impl FnMut(A) -> B) -> Outcome<Answer<B>> {
        self.map(|answered| match answered {
            Answer::Done(answers) => Answer::Done(answers.into_iter().map(answer).collect()),
            Answer::Refused(why) => Answer::Refused(why),
        })
    }
}

/// What an operation of a session returns: its outcome, or an answer that `?` ends it with.
pub trait Ended<A> {
    /// The outcome.
    fn ended(self) -> Outcome<A>;
}

impl<A> Ended<A> for Outcome<A> {
    fn ended(self) -> Outcome<A> {
        self
    }
}

impl<A> Ended<A> for Result<Outcome<A>, A> {
    fn ended(self) -> Outcome<A> {
        self.unwrap_or_else(Outcome::Answered)
    }
}

impl<A> Ended<A> for Result<A, A> {
    fn ended(self) -> Outcome<A> {
        Outcome::Answered(self.unwrap_or_else(|answer| answer))
    }
}

/// The planted bugs of every table of operations: mistakes in the way a client uses the layer.
pub mod general {
    use super::super::planted;
    use crate::describe::workload::Bug;

    const fn bug(name: &'static str, about: &'static str, source: &'static str) -> Bug {
        Bug { name, about, source, only_simulated: None }
    }

    /// Operations are retried without a record.
    pub const UNRECORDED: Bug = planted::UNRECORDED_BUG;
    /// Writes are never committed.
    pub const UNWRITTEN: Bug = bug(
        planted::UNWRITTEN,
        "what is written is acknowledged and never committed",
        "a write-behind cache",
    );
    /// Writes are committed with the next ones.
    pub const DEFERRED: Bug = bug(
        planted::DEFERRED,
        "what is written is acknowledged at once and committed with the client's next write",
        "batching without a wait",
    );
    /// Commits are not awaited.
    pub const NOT_AWAITED: Bug =
        bug(planted::NOT_AWAITED, "the commit is started and not awaited", "fire and forget");
    /// Answers of reads are remembered.
    pub const REMEMBERED: Bug = bug(
        planted::REMEMBERED,
        "a client that repeats a read gets the answer that it remembers",
        "a cache that is never invalidated",
    );
    /// A read version is kept.
    pub const KEPT_VERSION: Bug = bug(
        planted::KEPT_VERSION,
        "a client reads at a version that it keeps for up to a second",
        "a read version shared between transactions",
    );
    /// Reads accept a risky version.
    pub const RISKY_READ: Bug =
        bug(planted::RISKY_READ, "reads accept a causally risky read version", "an option set for its speed");
    /// Calls side by side take no turns.
    pub const INTERLEAVED: Bug = bug(
        planted::INTERLEAVED,
        "calls that run side by side in one transaction do not take turns",
        "two futures in one transaction",
    );
}

#[cfg(test)]
mod tests {
    use super::drawn;
    use proptest::{
        strategy::{Just, Strategy, ValueTree},
        test_runner::TestRunner,
    };

    #[test]
    fn an_operation_without_weight_is_never_drawn() {
        let mut runner = TestRunner::deterministic();
        let some = drawn(vec![(0, Just('a').boxed()), (1, Just('b').boxed()), (2, Just('c').boxed())]);
        let mut seen: Vec<char> =
            (0..50).map(|_| some.new_tree(&mut runner).expect("an operation").current()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, ['b', 'c']);
    }
}
