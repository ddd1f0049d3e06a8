//! Workloads with operations and invariants, and without a model.
//!
//! A [table](crate::specimen::table) of operations without a model is one. Each operation runs in one
//! transaction, exactly once, through a session. The invariants are read on the running cluster, at the end,
//! and at versions rebuilt from the log ([`audits`](crate::judge::audits)). Without a model answers are not
//! compared: an operation may return a wrong answer unnoticed as long as the invariants hold. A
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
    fmt::{Debug, Display},
    ops::Range,
    panic::{AssertUnwindSafe, resume_unwind},
};

/// A layer with operations and invariants. The value is the drawn configuration of a run.
pub trait Invariants: Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
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

    /// The `sometimes!` and `reachable!` claims that its sweep must reach.
    fn points() -> &'static [&'static str] {
        &[]
    }

    /// Draws a configuration.
    fn draw(rng: &mut Stream) -> Self;

    /// Samples of the keys it uses, at which shards and resolvers may be split.
    fn keys(&self) -> Vec<Bytes> {
        Vec::new()
    }

    /// The subspaces that have all keys of the layer, as [`Workload::subspaces`].
    fn subspaces(&self) -> Vec<Span> {
        Vec::new()
    }

    /// The strategy of one operation by client number `client`.
    fn operation(&self, client: usize) -> BoxedStrategy<Self::Op>;

    /// Fills the empty database in one transaction, before any fault.
    fn setup(&self, tx: &Tx) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = tx;
        async { Ok(()) }
    }

    /// Does an operation in a transaction. `env` is the client's clock and randomness.
    fn perform(
        &self,
        tx: &Tx,
        env: &Env,
        op: &Self::Op,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Checks the invariants, which must hold at every version. The inner error names and describes the one
    /// that does not.
    fn holds(&self, tx: &Tx) -> impl Future<Output = Result<Result<(), Misfit>, Self::Error>> + Send;
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
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Guarded<I: Invariants> {
    clients: usize,
    operations: Range<usize>,
    /// The timeout that clients set on their database, in milliseconds.
    timeout: Option<i32>,
    unrecorded: bool,
    layer: I,
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
async fn audit<I: Invariants>(layer: &I, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
    match layer.holds(tx).await {
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

    fn points() -> &'static [&'static str] {
        I::points()
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Self {
        let most = rng.range(I::OPERATIONS) as usize;
        Guarded {
            clients: rng.range(I::CLIENTS) as usize,
            operations: most / 2..most + 1,
            timeout: sessions::draw_timeout(rng),
            unrecorded: bug == Some(UNRECORDED),
            layer: I::draw(rng),
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        let slots = (0..self.clients as u64).map(|client| slots().key(client));
        slots.chain(self.layer.keys()).collect()
    }

    fn subspaces(&self) -> Vec<Span> {
        self.layer.subspaces()
    }

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<I::Op>> {
        vec(self.layer.operation(client), self.operations.clone()).boxed()
    }

    fn may_overwrite(&self, _: &I::Op) -> bool {
        I::MAY_OVERWRITE
    }

    fn length(&mut self) -> Option<&mut Range<usize>> {
        Some(&mut self.operations)
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        let filled = db.run(|tx, _| async move { self.layer.setup(&tx).await }).await;
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
        let ran = db.run(|tx, _| async move { self.layer.perform(&tx, env, op).await }).await;
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
        match session.apply(|tx| async move { self.layer.perform(&tx, env, op).await }).await {
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
        audit(&self.layer, tx).await
    }

    async fn check(&self, db: &Db, (): &()) -> tx::Result<Result<(), Misfit>> {
        db.run(|tx, _| async move { audit(&self.layer, &tx).await }).await.map_err(|e| e.error)
    }
}
