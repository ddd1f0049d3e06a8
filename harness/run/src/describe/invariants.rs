//! Workloads with operations and invariants, and without a model.
//!
//! [`invariants!`](macro@crate::invariants) defines one from a few functions. Each operation runs
//! in one transaction, exactly once, through a session. The invariants are read on the running cluster, at
//! the end, and at versions rebuilt from the log ([`audits`](crate::judge::audits)). Without a model answers
//! are not compared: an operation may return a wrong answer unnoticed as long as the invariants hold. A
//! [`Specimen`](crate::describe::specimen::Specimen) has a model.

use crate::{
    describe::misfit::Misfit,
    describe::sessions::{self, slots},
    describe::specimen::{UNRECORDED, UNRECORDED_BUG},
    describe::weakened::Span,
    describe::workload::{Bug, Outcome, Step, Workload},
};
use bytes::Bytes;
use futures::FutureExt;
use proptest::{
    collection::vec,
    strategy::{BoxedStrategy, Strategy},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use shaketable_sim::seed::Stream;
use shaketable_tx::{
    self as tx, Database, Db, Env, RetryError, Tx,
    once::{self, Session},
};
use std::{
    any::Any,
    fmt::{self, Debug, Display, Formatter},
    marker::PhantomData,
    ops::Range,
    panic::{AssertUnwindSafe, resume_unwind},
};

/// A layer with operations and invariants.
pub trait Invariants: Clone + Debug + Send + Sync + 'static {
    /// One operation: plain data.
    type Op: Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// Why the layer refuses an operation.
    type Error: RetryError + From<once::Error> + Display + Debug + Send + 'static;

    /// The name on the command line.
    const NAME: &'static str;
    /// A description of what it shakes, in one line.
    const ABOUT: &'static str;
    /// The number of clients of a run is drawn from this range.
    const CLIENTS: Range<u64> = 2..9;
    /// The maximum number of operations per client is drawn from this range.
    const OPERATIONS: Range<u64> = 8..40;
    /// Whether [the last writer wins](Workload::may_overwrite). If not, a judge reports an operation that
    /// overwrites what another one wrote after it had looked, at snapshot, and seen nothing there.
    const MAY_OVERWRITE: bool = false;

    /// The subspaces that have all keys of the layer, as [`Workload::subspaces`].
    fn subspaces() -> Vec<Span> {
        Vec::new()
    }

    /// The strategy of one operation.
    fn operation() -> BoxedStrategy<Self::Op>;

    /// Fills the empty database in one transaction, before any fault.
    fn setup(tx: &Tx) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = tx;
        async { Ok(()) }
    }

    /// Does an operation in a transaction. `env` is the client's clock and randomness.
    fn perform(tx: &Tx, env: &Env, op: &Self::Op) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Checks the invariants, which must hold at every version. The inner error names and describes the one
    /// that does not.
    fn holds(tx: &Tx) -> impl Future<Output = Result<Result<(), Misfit>, Self::Error>> + Send;
}

/// The result of the body of an invariant: a `bool`, or a `Result` whose error describes what is wrong.
pub trait Verdict {
    /// Why the invariant does not hold, if it does not.
    fn broken(self) -> Result<(), String>;
}

impl Verdict for bool {
    fn broken(self) -> Result<(), String> {
        if self { Ok(()) } else { Err("does not hold".to_owned()) }
    }
}

impl Verdict for Result<(), String> {
    fn broken(self) -> Result<(), String> {
        self
    }
}

/// The payload of a panic in the body of an invariant.
pub(crate) struct InInvariant {
    /// The name of the invariant.
    pub(crate) name: String,
    /// The payload that it had.
    pub(crate) panic: Box<dyn Any + Send>,
}

/// The verdict on the invariant with this name and body. A refusal of the layer breaks it. A panic is told
/// with the name, like both.
#[doc(hidden)]
pub async fn judged<E: RetryError + Display>(
    name: &str,
    body: impl Future<Output = Result<impl Verdict, E>>,
) -> Result<Result<(), Misfit>, E> {
    let ended = AssertUnwindSafe(body).catch_unwind().await;
    let named = |panic| InInvariant { name: name.to_owned(), panic };
    let broken = match ended.unwrap_or_else(|panic| resume_unwind(Box::new(named(panic)))) {
        Ok(verdict) => verdict.broken(),
        Err(refusal) if refusal.fdb().is_none() => Err(format!("refused: {refusal}")),
        Err(error) => return Err(error),
    };
    Ok(broken.map_err(|why| Misfit::from(why).named(name)))
}

/// Operations and invariants as a workload. Its only planted bug retries operations without recording earlier
/// attempts.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Guarded<I> {
    clients: usize,
    operations: Range<usize>,
    /// The timeout that clients set on their database, in milliseconds.
    timeout: Option<i32>,
    unrecorded: bool,
    #[serde(skip)]
    layer: PhantomData<fn() -> I>,
}

impl<I> Debug for Guarded<I> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Guarded");
        shown.field("clients", &self.clients).field("operations", &self.operations);
        shown.field("timeout", &self.timeout).field("unrecorded", &self.unrecorded).finish()
    }
}

/// The answer of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// It was done.
    Done,
    /// The layer refused it with this message.
    Refused(String),
}

fn refused<E: RetryError + Display>(error: &E) -> Outcome<Answer> {
    error.fdb().map_or_else(|| Outcome::Answered(Answer::Refused(error.to_string())), Outcome::Failed)
}

/// Checks the invariants in a transaction.
async fn audit<I: Invariants>(tx: &Tx) -> tx::Result<Result<(), Misfit>> {
    match I::holds(tx).await {
        Ok(verdict) => Ok(verdict),
        Err(error) => error.fdb().map_or_else(|| Ok(Err(error.to_string().into())), Err),
    }
}

impl<I: Invariants> Workload for Guarded<I> {
    type Op = I::Op;
    type Answer = Answer;
    type Session = Session<Db>;
    type Model = ();

    const NAME: &'static str = I::NAME;
    const ABOUT: &'static str = I::ABOUT;

    fn bugs() -> &'static [Bug] {
        &[UNRECORDED_BUG]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Self {
        let most = rng.range(I::OPERATIONS) as usize;
        Guarded {
            clients: rng.range(I::CLIENTS) as usize,
            operations: most / 2..most + 1,
            timeout: sessions::draw_timeout(rng),
            unrecorded: bug == Some(UNRECORDED),
            layer: PhantomData,
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        (0..self.clients as u64).map(|client| slots().key(client)).collect()
    }

    fn subspaces(&self) -> Vec<Span> {
        I::subspaces()
    }

    fn operations(&self, _: usize) -> BoxedStrategy<Vec<I::Op>> {
        vec(I::operation(), self.operations.clone()).boxed()
    }

    fn may_overwrite(&self, _: &I::Op) -> bool {
        I::MAY_OVERWRITE
    }

    fn length(&mut self) -> Option<&mut Range<usize>> {
        Some(&mut self.operations)
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        let filled = db.run(|tx, _| async move { I::setup(&tx).await }).await;
        sessions::set_up(filled)
    }

    async fn open(&self, db: &Db, client: usize) -> tx::Result<Session<Db>> {
        sessions::open(db, client, self.timeout).await
    }

    async fn resolve_dropped(&self, session: &mut Session<Db>) {
        sessions::resolve_dropped(session, self.timeout).await;
    }

    async fn apply_planted(&self, session: &mut Session<Db>, op: &I::Op) -> Option<Outcome<Answer>> {
        if !self.unrecorded {
            return None;
        }
        let db = session.database();
        let env = db.env();
        let ran = db.run(|tx, _| async move { I::perform(&tx, env, op).await }).await;
        Some(match ran {
            Ok(()) => Outcome::Answered(Answer::Done),
            Err(e) => match e.error.fdb() {
                Some(error) if e.maybe_committed => Outcome::Unknown(error),
                _ => refused(&e.error),
            },
        })
    }

    async fn apply(&self, session: &mut Session<Db>, op: &I::Op) -> Outcome<Answer> {
        let db = session.database().clone();
        let env = db.env();
        match session.apply(|tx| async move { I::perform(&tx, env, op).await }).await {
            once::Outcome::Applied(()) => Outcome::Answered(Answer::Done),
            once::Outcome::Refused(e) => refused(&e),
            once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
        }
    }

    async fn resolve(&self, session: &mut Session<Db>, _: &I::Op, error: tx::Error) -> Outcome<Answer> {
        sessions::resolve_unknown(session, self.timeout, error, async |session, pending| {
            Ok(session.resolve(pending).await?.map(|()| Outcome::Answered(Answer::Done)))
        })
        .await
    }

    fn model(&self) {}

    fn step(&self, (): &mut (), step: &Step<'_, Self>) -> Result<(), Misfit> {
        match (step.answer, step.committed) {
            (Some(Answer::Refused(why)), true) => Err(format!("was refused and committed: {why}").into()),
            // A session writes at least the record of the operation.
            (Some(Answer::Done), false) if !self.unrecorded => {
                Err("answered, but nothing was committed".into())
            }
            _ => Ok(()),
        }
    }

    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        audit::<I>(tx).await
    }

    async fn check(&self, db: &Db, (): &()) -> tx::Result<Result<(), Misfit>> {
        db.run(|tx, _| async move { audit::<I>(&tx).await }).await.map_err(|e| e.error)
    }
}

/// Defines a workload from operations and invariants.
///
/// The parts are the name of its type and the error of the layer; any constants of [`Invariants`], such as
/// `const MAY_OVERWRITE: bool = true;`; an optional `subspaces = LIST;`, the begin and the end of each
/// subspace of the layer, so that [nothing else may be changed](Workload::subspaces); an optional `setup` of
/// the empty database;
/// the operations with their arguments, each drawn by a proptest strategy (a range of numbers needs a type,
/// as in `0..5u32`), and after a semicolon a name for the [`Env`] (clock and randomness) if they need it, as
/// in `fn step(tx, by: i64 = 1..10i64; env)`; and the invariants, whose bodies evaluate to `Ok` of a `bool`,
/// or of a `Result<(), String>` whose error describes what is wrong. All bodies are `async` and may use `?`.
///
/// ```
/// use shaketable::prelude::*;
///
/// shaketable_tx::refusals! {
///     /// Why a step was refused.
///     pub enum Refusal { TooMuch = "that is too much" }
/// }
///
/// shaketable::invariants! {
///     /// Two counters that move together.
///     Twins: Refusal;
///
///     fn step(tx, by: i64 = 1..10i64; env) {
///         if env.random_u64() % 9 == 0 {
///             return Err(Refusal::TooMuch);
///         }
///         for twin in [b"a", b"b"] {
///             tx.atomic_op(twin, &by.to_le_bytes(), MutationType::Add);
///         }
///         Ok(())
///     }
///
///     invariant "they are equal" (tx) {
///         Ok(tx.get(b"a", Serializable).await? == tx.get(b"b", Serializable).await?)
///     }
/// }
///
/// Shake::<Guarded<Twins>>::new().seeds(0..3).run();
/// ```
#[macro_export]
macro_rules! invariants {
    (
        $(#[doc = $about:literal])+
        $vis:vis $layer:ident: $error:ty;
        $(const $constant:ident: $constant_type:ty = $constant_value:expr;)*
        $(subspaces = $subspaces:expr;)?
        $(setup($setup_tx:ident) $setup:block)?
        $(fn $op:ident(
            $tx:ident $(, $arg:ident: $type:ty = $strategy:expr)* $(,)? $(; $env:ident)?
        ) $body:block)+
        $(invariant $name:literal ($audit_tx:ident) $audit:block)+
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug)]
        $vis struct $layer;

        const _: () = {
            use $crate::__private as __with;

            $crate::__operations! { $($op { $($arg: $type = $strategy),* })+ }

            impl $crate::Invariants for $layer {
                type Op = __Op;
                type Error = $error;

                const NAME: &'static str = stringify!($layer);
                const ABOUT: &'static str = [$($about),+][0].trim_ascii();
                $(const $constant: $constant_type = $constant_value;)*

                $(fn subspaces() -> Vec<$crate::weakened::Span> {
                    $subspaces.into_iter().collect()
                })?

                fn operation() -> __with::BoxedStrategy<__Op> {
                    __operation()
                }

                $(async fn setup(
                    $setup_tx: &__with::Tx,
                ) -> ::std::result::Result<(), $error> $setup)?

                async fn perform(
                    tx: &__with::Tx,
                    env: &__with::Env,
                    op: &__Op,
                ) -> ::std::result::Result<(), $error> {
                    match op.clone() {
                        $(__Op::$op { $($arg),* } => {
                            async fn __perform(
                                $tx: &__with::Tx,
                                env: &__with::Env,
                                $($arg: $type),*
                            ) -> ::std::result::Result<(), $error> {
                                $(let $env = env;)?
                                $body
                            }
                            __perform(tx, env, $($arg),*).await
                        })+
                    }
                }

                async fn holds(
                    tx: &__with::Tx,
                ) -> ::std::result::Result<::std::result::Result<(), $crate::Misfit>, $error> {
                    $({
                        async fn __holds(
                            $audit_tx: &__with::Tx,
                        ) -> ::std::result::Result<impl $crate::invariants::Verdict, $error> $audit
                        if let Err(broken) = $crate::invariants::judged($name, __holds(tx)).await? {
                            return Ok(Err(broken));
                        }
                    })+
                    Ok(Ok(()))
                }
            }
        };
    };
}
