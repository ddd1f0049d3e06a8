//! Workloads over a layer whose operations each run in one transaction.
//!
//! A [`Specimen`] describes a layer: its operations as plain data, how each is done in a transaction, a sequential
//! model that gives the expected answers, and how the stored data is read back as a model. [`Mounted`] makes a
//! [`Workload`] of it: clients with exactly-once sessions and timeouts, several operations composed in one
//! transaction, refusals compared by their messages, unknown outcomes resolved, the model's judge, the audit and
//! the check.

use crate::{
    judges::waiting::Wait,
    looks,
    sessions::{self, slots},
    workload::{Bug, Outcome, Step, Workload},
};
use bytes::{BufMut, Bytes, BytesMut};
use futures::future::select;
use proptest::{
    collection::vec,
    strategy::{BoxedStrategy, Strategy},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use shaketable_layers::{
    once::{self, Fate, OpId, Session},
    tx::{self, Database, Env, Isolation, RetryError, RunError, Transaction, TransactionOption},
};
use shaketable_sim::{
    proto::{Mutation, Version},
    seed::Stream,
};
use std::{
    collections::BTreeMap,
    fmt::{Debug, Display},
    future::Future,
    ops::Range,
    pin::pin,
    time::Duration,
};

/// The name of a planted bug that every specimen can list: operations are retried without recording earlier
/// attempts.
pub const UNRECORDED: &str = "unrecorded";
/// The name of a planted bug that every specimen can list: a write is acknowledged and never committed.
pub const UNWRITTEN: &str = "unwritten";
/// The name of a planted bug that every specimen can list: a write is acknowledged immediately and committed with
/// the client's next write.
pub const DEFERRED: &str = "deferred";
/// The name of a planted bug that every specimen can list: a client that repeats a read-only call returns the
/// answer of the first call.
pub const REMEMBERED: &str = "remembered";
/// The name of a planted bug that every specimen can list: a client reuses a read version for up to a second.
pub const KEPT_VERSION: &str = "kept-version";
/// The name of a planted bug that every specimen can list: reads accept a causally risky read version.
pub const RISKY_READ: &str = "risky-read";
/// The name of a planted bug that every specimen can list: a write is acknowledged without awaiting its commit.
pub const NOT_AWAITED: &str = "not-awaited";

/// The place of an operation in the sequential order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct At<'a> {
    /// The versionstamp of its transaction if that committed: eight bytes of commit version and two bytes of batch
    /// order, big-endian.
    pub stamp: Option<[u8; 10]>,
    /// The read version of its transaction.
    pub read_version: Option<Version>,
    /// The highest version that was known to be committed when the operation was called. Transactions with a higher
    /// version may have committed during the operation.
    pub called: Version,
    /// The message with which the transaction was refused. A layer that makes free choices, such as an allocator,
    /// may have made a choice that leads to a refusal.
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

    /// Its planted bugs. [`Mounted`] implements those named [`UNRECORDED`], [`UNWRITTEN`], [`DEFERRED`],
    /// [`REMEMBERED`], [`KEPT_VERSION`], [`RISKY_READ`] and [`NOT_AWAITED`].
    fn bugs() -> &'static [Bug] {
        &[]
    }

    /// The `sometimes!` and `reachable!` claims that its sweep must reach, in addition to those of the exactly-once
    /// mechanism.
    fn points() -> &'static [&'static str] {
        &[]
    }

    /// Draws a configuration. `bug` is the name of the planted bug, one of [`bugs`](Specimen::bugs).
    fn draw(rng: &mut Stream, bug: Option<&str>) -> Self;

    /// Samples of the keys it uses, at which shards and resolvers may be split.
    fn keys(&self) -> Vec<Bytes>;

    /// The strategy of one call by client number `client`.
    fn operation(&self, client: usize) -> BoxedStrategy<Self::Op>;

    /// The strategy of the calls of client number `client`, transaction by transaction. `transactions` is the
    /// number of transactions, `together` the number of calls in each. Implement it if calls depend on those drawn
    /// before them; by default each call is an [`operation`](Specimen::operation).
    fn transactions(
        &self,
        client: usize,
        transactions: Range<usize>,
        together: Range<usize>,
    ) -> BoxedStrategy<Vec<Vec<Self::Op>>> {
        vec(vec(self.operation(client), together), transactions).boxed()
    }

    /// Stores in a drawn call what identifies it within the run: its client, and its number among the client's
    /// calls.
    fn number(op: &mut Self::Op, client: usize, number: usize) {
        let _ = (op, client, number);
    }

    /// Whether a call never writes.
    fn is_look(op: &Self::Op) -> bool;

    /// Whether the layer promises that this call never conflicts with another call for which this is true. A judge
    /// checks it.
    fn is_conflict_free(&self, op: &Self::Op) -> bool {
        let _ = op;
        false
    }

    /// Prepares the empty database, before any fault.
    fn setup<D: Database>(&self, db: &D) -> impl Future<Output = Result<(), tx::Error>> {
        let _ = db;
        async { Ok(()) }
    }

    /// Whether a read-only call reads at the isolation level with which it is [performed](Specimen::perform).
    /// [`Mounted`] does some of these calls at both levels, one after the other, and checks their reads.
    fn takes_isolation(&self, op: &Self::Op) -> bool {
        let _ = op;
        false
    }

    /// Does one call in a transaction. `isolation` is for calls that [take it](Specimen::takes_isolation). This is
    /// the place of planted bugs that concern a single transaction.
    fn perform<T: Transaction>(
        &self,
        tx: &T,
        env: &Env,
        op: &Self::Op,
        isolation: Isolation,
    ) -> impl Future<Output = Result<Self::Answer, Self::Error>> + Send;

    /// Does the calls in the way of a planted bug that concerns more than one transaction. Returns `None` if the
    /// bug does not change them.
    fn divert<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Self::Op],
    ) -> impl Future<Output = Option<Outcome<Answer<Self::Answer>>>> {
        let _ = (session, ops);
        async { None }
    }

    /// Resolves calls whose outcome was unknown. For a workload whose [`divert`](Specimen::divert) records the
    /// answer of a single call in the layer's own format.
    fn resolve<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Self::Op],
        pending: OpId,
    ) -> impl Future<Output = Result<Fate<Vec<Self::Answer>>, once::Error>> {
        let _ = ops;
        async move { Ok(session.resolve(pending).await?.map(|Recorded(answers)| answers)) }
    }

    /// Whether a committed transaction is the effect of its calls: see [`Workload::is_effect`].
    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        !sessions::is_fence(mutations)
    }

    /// The sequential model after [`setup`](Specimen::setup).
    fn model(&self) -> Self::Model;

    /// Does one call on the model, and returns the expected answer. After a refusal the model is restored to its
    /// state before the transaction.
    fn replay(&self, model: &mut Self::Model, op: &Self::Op, at: &At) -> Result<Self::Answer, Self::Error>;

    /// Fills in the choices that [`replay`](Specimen::replay) leaves open where the layer chooses freely, as an
    /// allocator does: in the model after the calls of a transaction, and in their expected answers. `answers` are
    /// the actual answers, if the client received them, and `mutations` are the writes. A choice that is not
    /// allowed remains open and therefore matches nothing.
    fn choose(
        &self,
        model: &mut Self::Model,
        expected: &mut [Self::Answer],
        answers: Option<&[Self::Answer]>,
        mutations: &[Mutation],
    ) {
        let _ = (model, expected, answers, mutations);
    }

    /// The wait of a call that was alone in its transaction, returned `answer` and left this model; `None` for a
    /// call that did not wait.
    fn wait(&self, model: &Self::Model, op: &Self::Op, answer: &Self::Answer, at: &At) -> Option<Wait> {
        let _ = (model, op, answer, at);
        None
    }

    /// Reads everything that the layer stores, in one transaction, as a model. The inner error describes the
    /// structural invariant that is broken; these invariants must hold at every version.
    fn stored<T: Transaction>(
        &self,
        tx: &T,
    ) -> impl Future<Output = Result<Result<Self::Model, String>, tx::Error>> + Send;
}

/// The answer of the calls of one transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer<A> {
    /// All calls were done: their answers, in order.
    Done(Vec<A>),
    /// One call was refused with this message, and therefore all of them.
    Refused(String),
}

/// A specimen as a workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Mounted<S: Specimen> {
    specimen: S,
    clients: usize,
    transactions: Range<usize>,
    together: Range<usize>,
    /// The timeout that clients set on their database, in milliseconds.
    timeout: Option<i32>,
    /// Whether clients use plain transactions instead of a session: an unknown commit result is then not resolved.
    bare: bool,
    planted: Option<Planted>,
}

/// A planted bug in the way a client uses the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Planted {
    Unrecorded,
    Unwritten,
    Deferred,
    Remembered,
    KeptVersion,
    RiskyRead,
    NotAwaited,
}

impl Planted {
    fn named(name: &str) -> Option<Planted> {
        Some(match name {
            UNRECORDED => Planted::Unrecorded,
            UNWRITTEN => Planted::Unwritten,
            DEFERRED => Planted::Deferred,
            REMEMBERED => Planted::Remembered,
            KEPT_VERSION => Planted::KeptVersion,
            RISKY_READ => Planted::RiskyRead,
            NOT_AWAITED => Planted::NotAwaited,
            _ => return None,
        })
    }
}

/// The state of a client of a specimen.
pub struct Client<D: Database, S: Specimen> {
    session: Session<D>,
    bug_state: BugState<S>,
}

/// The additional state of a client with a planted bug.
struct BugState<S: Specimen> {
    /// Acknowledged calls that will be committed with the next ones.
    deferred: Vec<S::Op>,
    /// Earlier calls and their outcomes.
    remembered: BTreeMap<String, Outcome<Answer<S::Answer>>>,
    /// A read version, and when it was obtained.
    kept: Option<(i64, Duration)>,
}

/// A value in answers and models: its length, hash and first bytes. This distinguishes it from other values, and
/// stays short enough to be printed and to be recorded by a session.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Content {
    length: usize,
    hash: u64,
    start: Vec<u8>,
}

impl Content {
    /// The content of a value of `length` equal bytes.
    pub fn of(byte: u8, length: usize) -> Content {
        Content::from(&vec![byte; length][..])
    }

    /// The value's length, in bytes.
    pub fn length(&self) -> usize {
        self.length
    }
}

impl<B: AsRef<[u8]> + ?Sized> From<&B> for Content {
    fn from(bytes: &B) -> Content {
        let bytes = bytes.as_ref();
        let start = bytes[..bytes.len().min(12)].to_vec();
        Content { length: bytes.len(), hash: shaketable_sim::trace::hash_bytes(0, bytes), start }
    }
}

impl Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.length > self.start.len() {
            true => write!(
                f,
                "\"{}…\" ({} bytes, {:08x})",
                self.start.escape_ascii(),
                self.length,
                self.hash as u32
            ),
            false => write!(f, "\"{}\"", self.start.escape_ascii()),
        }
    }
}

/// The answers of one transaction, in the format in which the session records them.
pub struct Recorded<A>(pub Vec<A>);

impl<A: Serialize + DeserializeOwned + Send> once::Answer for Recorded<A> {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        // Plain data with text keys only: serializing it cannot fail.
        serde_json::to_writer(out.writer(), &self.0).map_err(|_| once::Error::Unreadable)?;
        Ok(None)
    }

    fn decode(bytes: Bytes) -> Option<Self> {
        serde_json::from_slice(&bytes).ok().map(Recorded)
    }
}

/// One in this many read-only calls is done at both isolation levels.
const READS_PER_DOUBLE_READ: u64 = 4;

/// Does a read-only call at both isolation levels.
#[allow(clippy::manual_async_fn, reason = "see perform_all")]
fn perform_twice<'a, S: Specimen, T: Transaction>(
    specimen: &'a S,
    tx: &'a T,
    env: &'a Env,
    op: &'a S::Op,
) -> impl Future<Output = Result<S::Answer, S::Error>> + Send + 'a {
    async move {
        let look = |tx, isolation| async move { Box::pin(specimen.perform(&tx, env, op, isolation)).await };
        looks::twice(tx, op, look).await
    }
}

/// Does the calls of one transaction, in order.
#[allow(
    clippy::manual_async_fn,
    reason = "a plain async fn that borrows into `Database::run` is not Send (rust-lang/rust#100013)"
)]
fn perform_all<'a, S: Specimen, T: Transaction>(
    specimen: &'a S,
    tx: T,
    env: &'a Env,
    ops: &'a [S::Op],
) -> impl Future<Output = Result<Vec<S::Answer>, S::Error>> + Send + 'a {
    async move {
        let mut answers = Vec::with_capacity(ops.len());
        for op in ops {
            let twice =
                specimen.takes_isolation(op) && env.random_u64().is_multiple_of(READS_PER_DOUBLE_READ);
            answers.push(match twice {
                true => Box::pin(perform_twice(specimen, &tx, env, op)).await?,
                false => Box::pin(specimen.perform(&tx, env, op, Isolation::Serializable)).await?,
            });
        }
        Ok(answers)
    }
}

/// The outcome of an operation that ended with an error and has no effect: FoundationDB's errors are failures, and
/// those of the layer are answers.
pub fn refused<A, E: RetryError + Display>(error: &E) -> Outcome<Answer<A>> {
    error.fdb().map_or_else(|| Outcome::Answered(Answer::Refused(error.to_string())), Outcome::GaveUp)
}

/// The outcome of an exactly-once operation for its client.
pub fn told<A, E: RetryError + Display>(outcome: once::Outcome<Recorded<A>, E>) -> Outcome<Answer<A>> {
    match outcome {
        once::Outcome::Applied(Recorded(answers)) => Outcome::Answered(Answer::Done(answers)),
        once::Outcome::Refused(e) => refused(&e),
        once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
    }
}

/// The outcome of a retry loop without a session for its client.
pub fn ran<A, E: RetryError + Display>(ran: Result<Vec<A>, RunError<E>>) -> Outcome<Answer<A>> {
    match ran {
        Ok(answers) => Outcome::Answered(Answer::Done(answers)),
        Err(e) => match e.error.fdb() {
            Some(error) if e.maybe_committed => Outcome::Unknown(error),
            _ => refused(&e.error),
        },
    }
}

/// Does calls in a transaction that is never committed, and returns their answers as if it had been.
async fn without_commit<S: Specimen, D: Database>(
    specimen: &S,
    db: &D,
    ops: &[S::Op],
) -> Outcome<Answer<S::Answer>> {
    let Ok(tx) = db.create_transaction() else {
        return Outcome::GaveUp(tx::Error::OPERATION_CANCELLED);
    };
    loop {
        let error = match perform_all(specimen, tx.clone(), db.env(), ops).await {
            Ok(answers) => return Outcome::Answered(Answer::Done(answers)),
            Err(e) => match e.fdb() {
                Some(e) => e,
                None => return refused(&e),
            },
        };
        if let Err(e) = tx.on_error(error).await {
            return Outcome::GaveUp(e);
        }
    }
}

/// Does the calls in a transaction without a session. It retries only if the last attempt certainly had no effect.
async fn without_session<S: Specimen, D: Database>(
    specimen: &S,
    db: &D,
    ops: &[S::Op],
) -> Outcome<Answer<S::Answer>> {
    let tx = match db.create_transaction() {
        Ok(tx) => tx,
        Err(e) => return Outcome::GaveUp(e),
    };
    loop {
        let error = match perform_all(specimen, tx.clone(), db.env(), ops).await {
            Ok(answers) => match tx.commit().await {
                Ok(()) => return Outcome::Answered(Answer::Done(answers)),
                Err(e) if e.is_retryable_not_committed() => e,
                Err(e) => return Outcome::Unknown(e),
            },
            Err(e) => match e.fdb() {
                Some(e) => e,
                None => return refused(&e),
            },
        };
        if let Err(e) = tx.on_error(error).await {
            return Outcome::GaveUp(e);
        }
    }
}

impl<S: Specimen> Mounted<S> {
    /// Does the calls as a client with a planted bug does. Returns `None` if the bug does not change them.
    async fn perform_planted<D: Database>(
        &self,
        planted: Planted,
        Client { session, bug_state }: &mut Client<D, S>,
        ops: &[S::Op],
    ) -> Option<Outcome<Answer<S::Answer>>> {
        let (specimen, db) = (&self.specimen, session.database().clone());
        let (env, looks) = (db.env(), ops.iter().all(S::is_look));
        match planted {
            Planted::Unrecorded => Some(ran(db.run(|tx, _| perform_all(specimen, tx, env, ops)).await)),
            Planted::Unwritten if !looks => Some(without_commit(specimen, &db, ops).await),
            Planted::Deferred if !looks && bug_state.deferred.is_empty() => {
                let outcome = without_commit(specimen, &db, ops).await;
                if let Outcome::Answered(Answer::Done(_)) = outcome {
                    bug_state.deferred = ops.to_vec();
                }
                Some(outcome)
            }
            Planted::Deferred if !looks => {
                let before = std::mem::take(&mut bug_state.deferred);
                let all = [&before[..], ops].concat();
                let all = &all[..];
                let applied = session
                    .apply(|tx| async move { perform_all(specimen, tx, env, all).await.map(Recorded) })
                    .await;
                Some(told(applied.map(|Recorded(mut answers)| Recorded(answers.split_off(before.len())))))
            }
            Planted::Remembered if looks => {
                let calls = format!("{ops:?}");
                if let Some(outcome) = bug_state.remembered.get(&calls) {
                    return Some(outcome.clone());
                }
                let outcome = ran(db.run(|tx, _| perform_all(specimen, tx, env, ops)).await);
                bug_state.remembered.insert(calls, outcome.clone());
                Some(outcome)
            }
            Planted::KeptVersion if looks => {
                let kept = bug_state.kept.filter(|(_, since)| env.now() < *since + Duration::from_secs(1));
                let kept = kept.map(|(version, _)| version);
                let read = db
                    .run(|tx, attempt| async move {
                        if let (Some(version), true) = (kept, attempt.number == 0) {
                            tx.set_read_version(version);
                        }
                        let version = tx.get_read_version().await?;
                        Ok::<_, S::Error>((version, perform_all(specimen, tx, env, ops).await?))
                    })
                    .await;
                if let (Ok((version, _)), None) = (&read, kept) {
                    bug_state.kept = Some((*version, env.now()));
                }
                Some(ran(read.map(|(_, answers)| answers)))
            }
            Planted::RiskyRead if looks => Some(ran(db
                .run(|tx, _| async move {
                    tx.set_option(TransactionOption::CausalReadRisky)?;
                    perform_all(specimen, tx, env, ops).await
                })
                .await)),
            Planted::NotAwaited if !looks => {
                let tx = db.create_transaction().ok()?;
                let answers = match perform_all(specimen, tx.clone(), env, ops).await {
                    Ok(answers) => answers,
                    Err(e) => return Some(refused(&e)),
                };
                // Usually long enough to send the commit, and rarely long enough for its reply.
                let wait = Duration::from_micros(env.random_u64() % 2_000);
                drop(select(pin!(tx.commit()), env.sleep(wait)).await);
                Some(Outcome::Answered(Answer::Done(answers)))
            }
            _ => None,
        }
    }

    /// The model after a transaction, and the expected answer.
    fn expect(&self, model: &S::Model, ops: &[S::Op], at: &At) -> (S::Model, Answer<S::Answer>) {
        let mut after = model.clone();
        let mut answers = Vec::with_capacity(ops.len());
        for op in ops {
            match self.specimen.replay(&mut after, op, at) {
                Ok(answer) => answers.push(answer),
                Err(refusal) => return (model.clone(), Answer::Refused(refusal.to_string())),
            }
        }
        (after, Answer::Done(answers))
    }
}

impl<S: Specimen> Workload for Mounted<S> {
    type Op = Vec<S::Op>;
    type Answer = Answer<S::Answer>;
    type Session<D: Database> = Client<D, S>;
    type Model = S::Model;

    const NAME: &'static str = S::NAME;
    const ABOUT: &'static str = S::ABOUT;

    fn bugs() -> &'static [Bug] {
        S::bugs()
    }

    fn points() -> &'static [&'static str] {
        S::points()
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Self {
        let most = rng.range(S::TRANSACTIONS) as usize;
        let together = rng.range(S::TOGETHER) as usize;
        Mounted {
            clients: rng.range(S::CLIENTS) as usize,
            transactions: most / 2..most + 1,
            together: 1..together + 1,
            timeout: sessions::draw_timeout(rng),
            bare: rng.chance(0.1) && bug != Some(UNRECORDED),
            planted: bug.and_then(Planted::named),
            specimen: S::draw(rng, bug),
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        let slots = (0..self.clients as u64).map(|client| slots().key(client));
        slots.chain(self.specimen.keys()).collect()
    }

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<Vec<S::Op>>> {
        let drawn = self.specimen.transactions(client, self.transactions.clone(), self.together.clone());
        let numbered = move |mut list: Vec<Vec<S::Op>>| {
            for (number, op) in list.iter_mut().flatten().enumerate() {
                S::number(op, client, number);
            }
            list
        };
        drawn.prop_map(numbered).boxed()
    }

    fn is_conflict_free(&self, ops: &Vec<S::Op>) -> bool {
        ops.iter().all(|op| self.specimen.is_conflict_free(op))
    }

    async fn setup<D: Database>(&self, db: &D) -> tx::Result<()> {
        self.specimen.setup(db).await
    }

    async fn open<D: Database>(&self, db: &D, client: usize) -> tx::Result<Client<D, S>> {
        let session = sessions::open(db, client, self.timeout).await?;
        let bug_state = BugState { deferred: Vec::new(), remembered: BTreeMap::new(), kept: None };
        Ok(Client { session, bug_state })
    }

    async fn recall<D: Database>(&self, client: &mut Client<D, S>) {
        sessions::read_dropped(&mut client.session, self.timeout).await;
    }

    async fn divert<D: Database>(
        &self,
        client: &mut Client<D, S>,
        ops: &Vec<S::Op>,
    ) -> Option<Outcome<Self::Answer>> {
        match self.specimen.divert(&mut client.session, ops).await {
            Some(outcome) => Some(outcome),
            None => self.perform_planted(self.planted?, client, ops).await,
        }
    }

    async fn apply<D: Database>(
        &self,
        Client { session, .. }: &mut Client<D, S>,
        ops: &Vec<S::Op>,
    ) -> Outcome<Self::Answer> {
        let (specimen, db) = (&self.specimen, session.database().clone());
        let (env, ops) = (db.env(), &ops[..]);
        if ops.iter().all(S::is_look) {
            return ran(db.run(|tx, _| perform_all(specimen, tx, env, ops)).await);
        }
        if self.bare {
            return without_session(specimen, &db, ops).await;
        }
        let applied =
            session.apply(|tx| async move { perform_all(specimen, tx, env, ops).await.map(Recorded) });
        told(applied.await)
    }

    async fn resolve<D: Database>(
        &self,
        client: &mut Client<D, S>,
        ops: &Vec<S::Op>,
        error: tx::Error,
    ) -> Outcome<Self::Answer> {
        sessions::settle(&mut client.session, self.timeout, error, async |session, pending| {
            let fate = self.specimen.resolve(session, ops, pending).await?;
            Ok(fate.map(|answers| Outcome::Answered(Answer::Done(answers))))
        })
        .await
    }

    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        self.specimen.is_effect(mutations)
    }

    fn model(&self) -> S::Model {
        self.specimen.model()
    }

    fn step(&self, model: &mut S::Model, step: &Step<'_, Self>) -> Result<(), String> {
        let refusal = match step.answer {
            Some(Answer::Refused(message)) => Some(&message[..]),
            _ => None,
        };
        let at =
            At { stamp: step.stamp, read_version: step.read_version, called: step.known_at_call(), refusal };
        if !step.committed && step.answer.is_none() {
            return Ok(());
        }
        let (mut after, mut expected) = self.expect(model, step.op, &at);
        if let Answer::Done(expected) = &mut expected {
            let answers = match step.answer {
                Some(Answer::Done(answers)) => Some(&answers[..]),
                _ => None,
            };
            self.specimen.choose(&mut after, expected, answers, step.mutations);
        }
        if let Some(answer) = step.answer
            && *answer != expected
        {
            return Err(format!("answered {answer:?} where the model answers {expected:?}"));
        }
        if let ([op], Answer::Done(answers), Some(_)) = (&step.op[..], &expected, step.answer)
            && let Some(wait) = self.specimen.wait(&after, op, &answers[0], &at)
        {
            step.waited(wait)?;
        }
        let looks = step.op.iter().all(S::is_look);
        match (&expected, step.committed) {
            // A call that changes nothing need not commit anything.
            (Answer::Done(_), false) if !looks && after != *model => {
                Err("answered, but nothing was committed".into())
            }
            (Answer::Done(_), true) if looks => Err("committed a write".into()),
            (Answer::Refused(why), true) => Err(format!("committed where the model refuses: {why}")),
            _ => {
                *model = after;
                Ok(())
            }
        }
    }

    async fn audit<D: Database>(&self, tx: &D::Transaction) -> tx::Result<Result<(), String>> {
        Ok(self.specimen.stored(tx).await?.map(|_| ()))
    }

    async fn check<D: Database>(&self, db: &D, model: &S::Model) -> tx::Result<Result<(), String>> {
        let specimen = &self.specimen;
        let stored = db.run(|tx, _| async move { specimen.stored(&tx).await }).await.map_err(|e| e.error)?;
        Ok(stored.and_then(|stored| match stored == *model {
            true => Ok(()),
            false => Err(format!("the database holds {stored:?}, should hold {model:?}")),
        }))
    }
}
