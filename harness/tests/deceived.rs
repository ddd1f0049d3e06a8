//! Tests that the judges catch layers that lie: the clients of a register misuse it in ways that leave no
//! trace in the history, or a misleading trace.

#[path = "deceived/judges.rs"]
mod judges;

use bytes::Bytes;
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable::finding::{Finding, Kind, Verdict};
use shaketable::{Bug, Misfit, Outcome, Shake, Step, Workload};
use shaketable_sim::{
    faults::{Family, Profile},
    proto::Mutation,
    seed::Stream,
};
use shaketable_tx::{Database, Db, Env, Error, Isolation, Transaction, TransactionOption, Tx};
use std::{cell::Cell, future::Future, time::Duration};

#[path = "deceived/advised.rs"]
mod advised;

#[path = "deceived/runs.rs"]
mod runs;

/// The workload. Its configuration is the behavior of its clients.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Register {
    behavior: Behavior,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Behavior {
    /// The clients are correct.
    Correct,
    /// A set is acknowledged and never committed.
    NeverCommitted,
    /// Every get after the first one returns the same answer.
    FromMemory,
    /// A get reuses a read version for up to a second.
    KeptVersion,
    /// A set is acknowledged, and committed by the client's next operation.
    CommittedLater,
    /// A get accepts a causally risky read version.
    RiskyRead,
    /// The clients are correct, and commits accept causal write risk: after 1021 the outcome is not final.
    RiskyWrite,
    /// A get of the first client repeats its read forever.
    ReadsForever,
    /// A set of the first client repeats its write forever.
    WritesForever,
    /// A set of the first client creates transactions forever and does not use them.
    OpensForever,
    /// A set commits its write forever.
    CommitsForever,
    /// A set breaks an invariant temporarily, and repairs it in its next transaction.
    TemporarilyBroken,
    /// The workload's model panics.
    ModelPanics,
    /// A client can be opened once in a hundred times.
    OpensLate,
}

const BEHAVIORS: [Behavior; 14] = [
    Behavior::Correct,
    Behavior::NeverCommitted,
    Behavior::FromMemory,
    Behavior::KeptVersion,
    Behavior::CommittedLater,
    Behavior::RiskyRead,
    Behavior::RiskyWrite,
    Behavior::ReadsForever,
    Behavior::WritesForever,
    Behavior::OpensForever,
    Behavior::CommitsForever,
    Behavior::TemporarilyBroken,
    Behavior::ModelPanics,
    Behavior::OpensLate,
];

const BUGS: &[Bug] = &[
    bug("Correct"),
    bug("NeverCommitted"),
    bug("FromMemory"),
    bug("KeptVersion"),
    bug("CommittedLater"),
    bug("RiskyRead"),
    bug("RiskyWrite"),
    bug("ReadsForever"),
    bug("WritesForever"),
    bug("OpensForever"),
    bug("CommitsForever"),
    bug("TemporarilyBroken"),
    bug("ModelPanics"),
    bug("OpensLate"),
];

const fn bug(name: &'static str) -> Bug {
    Bug {
        name,
        about: "a behavior of the clients of the register",
        source: "this test",
        only_simulated: None,
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Op {
    Set(u32),
    Get,
}

/// The state of a client.
struct Client {
    db: Db,
    is_first: bool,
    remembered: Option<Option<u32>>,
    kept: Option<(i64, Duration)>,
    deferred: Cell<Option<u32>>,
}

const KEY: &[u8] = b"register";

/// The invariant of the workload is that this key is absent at every version.
const MARK: &[u8] = b"in progress";

fn number(value: Option<Bytes>) -> Option<u32> {
    value.and_then(|bytes| Some(u32::from_be_bytes(bytes.as_ref().try_into().ok()?)))
}

/// Retries `body` as long as it is certain that no attempt has committed.
async fn attempt<A, F: Future<Output = Result<A, Error>>>(db: &Db, body: impl Fn(Tx) -> F) -> Outcome<A> {
    let tx = match db.create_transaction() {
        Ok(tx) => tx,
        Err(e) => return Outcome::Failed(e),
    };
    loop {
        let error = match body(tx.clone()).await {
            Ok(answer) => match tx.commit().await {
                Ok(()) => return Outcome::Answered(answer),
                Err(e) if e.is_retryable_not_committed() => e,
                Err(e) => return Outcome::Unknown(e),
            },
            Err(e) => e,
        };
        if let Err(e) = tx.on_error(error).await {
            return Outcome::Failed(e);
        }
    }
}

fn now(env: &Env) -> Duration {
    env.now()
}

impl Register {
    async fn set(&self, client: &Client, value: u32) -> Outcome<Option<u32>> {
        let (behavior, is_first) = (self.behavior, client.is_first);
        match behavior {
            Behavior::NeverCommitted => return Outcome::Answered(None),
            Behavior::CommittedLater if client.deferred.get().is_none() => {
                client.deferred.set(Some(value));
                return Outcome::Answered(None);
            }
            Behavior::OpensForever if client.is_first => loop {
                let Ok(tx) = client.db.create_transaction() else { break };
                tx.reset();
            },
            _ => {}
        }
        if behavior == Behavior::CommitsForever {
            loop {
                let again = attempt(&client.db, |tx| async move {
                    tx.set(KEY, &value.to_be_bytes());
                    Ok(None)
                });
                if let other @ Outcome::Violated(_) = again.await {
                    return other;
                }
            }
        }
        if behavior == Behavior::TemporarilyBroken {
            let marked = attempt(&client.db, |tx| async move {
                tx.set(MARK, b"");
                Ok(None)
            });
            match marked.await {
                Outcome::Answered(_) => client.db.env().sleep(Duration::from_millis(20)).await,
                other => return other,
            }
        }
        client.deferred.set(None);
        attempt(&client.db, |tx| async move {
            tx.clear(MARK);
            if behavior == Behavior::RiskyWrite {
                tx.set_option(TransactionOption::CausalWriteRisky)?;
            }
            tx.set(KEY, &value.to_be_bytes());
            if behavior == Behavior::WritesForever && is_first {
                loop {
                    tx.set(KEY, &value.to_be_bytes());
                }
            }
            Ok(None)
        })
        .await
    }

    async fn get(&self, client: &mut Client) -> Outcome<Option<u32>> {
        let (behavior, is_first) = (self.behavior, client.is_first);
        if let (Behavior::FromMemory, Some(remembered)) = (behavior, client.remembered) {
            return Outcome::Answered(remembered);
        }
        let before = client.kept.filter(|(_, since)| now(client.db.env()) < *since + Duration::from_secs(1));
        let kept = before.filter(|_| behavior == Behavior::KeptVersion).map(|(version, _)| version);
        let deferred = client.deferred.get();
        let read = attempt(&client.db, |tx| async move {
            match (kept, behavior) {
                (Some(version), _) => tx.set_read_version(version),
                (None, Behavior::RiskyRead) => tx.set_option(TransactionOption::CausalReadRisky)?,
                _ => {}
            }
            if let Some(deferred) = deferred {
                tx.set(KEY, &deferred.to_be_bytes());
            }
            let value = number(tx.get(KEY, Isolation::Serializable).await?);
            if behavior == Behavior::ReadsForever && is_first {
                loop {
                    tx.get(KEY, Isolation::Serializable).await?;
                }
            }
            Ok((value, tx.get_read_version().await?))
        });
        match read.await {
            Outcome::Answered((value, version)) => {
                client.deferred.set(None);
                client.remembered = Some(value);
                if kept.is_none() {
                    client.kept = Some((version, now(client.db.env())));
                }
                Outcome::Answered(value)
            }
            // The kept version may be too old: get a new one.
            Outcome::Failed(e) | Outcome::Unknown(e) => {
                client.kept = None;
                Outcome::Unknown(e)
            }
            Outcome::Violated(why) => Outcome::Violated(why),
        }
    }
}

impl Workload for Register {
    type Op = Op;
    type Answer = Option<u32>;
    type Session = Client;
    type Model = Option<u32>;

    const NAME: &'static str = "register";
    const ABOUT: &'static str = "one register";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        !matches!(mutations, [Mutation::Set(key, _)] if *key == MARK)
    }

    fn draw(_: &mut Stream, bug: Option<&str>) -> Register {
        let named = |behavior: &&Behavior| bug == Some(format!("{behavior:?}").as_str());
        Register { behavior: BEHAVIORS.iter().find(named).copied().unwrap_or(Behavior::Correct) }
    }

    fn clients(&self) -> usize {
        3
    }

    fn keys(&self) -> Vec<Bytes> {
        vec![Bytes::from_static(KEY), Bytes::from_static(MARK)]
    }

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<Op>> {
        let number = move |at: usize| (client * 1_000 + at) as u32;
        let op = prop_oneof![Just(Op::Set(0)), Just(Op::Get)];
        vec(op, 20..30)
            .prop_map(move |mut ops| {
                for (at, op) in ops.iter_mut().enumerate() {
                    if let Op::Set(value) = op {
                        *value = number(at);
                    }
                }
                ops
            })
            .boxed()
    }

    async fn open(&self, db: &Db, client: usize) -> Result<Client, Error> {
        if self.behavior == Behavior::OpensLate && !db.env().random_u64().is_multiple_of(100) {
            return Err(Error::TRANSACTION_TIMED_OUT);
        }
        Ok(Client {
            db: db.clone(),
            is_first: client == 0,
            remembered: None,
            kept: None,
            deferred: Cell::new(None),
        })
    }

    async fn apply(&self, client: &mut Client, op: &Op) -> Outcome<Option<u32>> {
        match op {
            Op::Set(value) => self.set(client, *value).await,
            Op::Get => self.get(client).await,
        }
    }

    fn model(&self) -> Option<u32> {
        None
    }

    fn step(&self, model: &mut Option<u32>, step: &Step<'_, Self>) -> Result<(), Misfit> {
        assert!(self.behavior != Behavior::ModelPanics || step.index < 10, "no eleventh operation");
        match (step.op, step.answer) {
            (Op::Set(value), _) if step.committed => *model = Some(*value),
            (Op::Set(_), Some(_)) => return Err("acknowledged, but nothing was committed".into()),
            (Op::Get, Some(read)) if read != model => {
                return Err(format!("read {read:?} where the model has {model:?}").into());
            }
            _ => {}
        }
        Ok(())
    }

    async fn audit(&self, tx: &Tx) -> Result<Result<(), Misfit>, Error> {
        let mark = tx.get(MARK, Isolation::Serializable).await?;
        Ok(mark.map_or(Ok(()), |_| Err("a set is in progress".into())))
    }

    async fn check(&self, db: &Db, model: &Option<u32>) -> Result<Result<(), Misfit>, Error> {
        let read = db.run(|tx, _| async move { tx.get(KEY, Isolation::Serializable).await }).await;
        let read = number(read.map_err(|e| e.error)?);
        Ok(if read == *model { Ok(()) } else { Err(format!("contains {read:?}, not {model:?}").into()) })
    }
}

/// The findings of the first seed that does not pass.
fn caught(behavior: Behavior, seeds: u64) -> Vec<Finding> {
    let shake = Shake::<Register>::new().seeds(0..seeds).bug(&format!("{behavior:?}"));
    let (_, result) = shake.assert_caught();
    assert_ne!(result.verdict(), Verdict::Harness);
    result.findings
}

#[test]
fn a_correct_register_passes() {
    Shake::<Register>::new().seeds(0..100).assert();
    let calm = Shake::<Register>::new().seeds(0..3).faults(Profile::Calm).run();
    assert_eq!((calm.ran, calm.counters.recoveries), (3, 0), "a calm cluster has no recovery");
    assert_eq!(calm.counters.audits, 162, "those of the auditor and those of the rebuilt states");
    let hurt = Shake::<Register>::new().seeds(0..5).run();
    assert!(hurt.counters.recoveries > 0, "faults cause recoveries");
    Shake::<Register>::new().seeds(0..30).without(Family::UnknownCommitted).assert();
}

/// Shakes a register with this behavior until it is caught, and checks the reason.
fn is_caught(behavior: Behavior, seeds: u64, why: &str) {
    let findings = caught(behavior, seeds);
    assert!(findings.iter().any(|finding| finding.message.contains(why)), "{findings:?}");
}

#[test]
fn an_acknowledged_write_is_committed() {
    is_caught(Behavior::NeverCommitted, 5, "nothing was committed");
    is_caught(Behavior::CommittedLater, 5, "nothing was committed");
}

#[test]
fn a_read_has_a_place_between_call_and_return() {
    is_caught(Behavior::FromMemory, 10, "neither read nor wrote");
    is_caught(Behavior::KeptVersion, 10, "known to be committed before it was called");
    is_caught(Behavior::RiskyRead, 50, "known to be committed before it was called");
}

#[test]
fn an_invariant_holds_at_every_version() {
    is_caught(Behavior::TemporarilyBroken, 5, ": a set is in progress");
    // It is found in a version rebuilt from the log, not only by the auditor of the run.
    is_caught(Behavior::TemporarilyBroken, 5, "from version ");
}

#[test]
fn a_client_that_cannot_be_opened_is_opened_later() {
    Shake::<Register>::new().seeds(0..5).bug("OpensLate").assert();
}

/// A layer may accept causal write risk. A commit after 1021 is then not a finding about the cluster.
#[test]
fn a_risky_write_is_not_a_fault_of_the_cluster() {
    Shake::<Register>::new().seeds(0..200).bug("RiskyWrite").assert();
}

/// Shakes a register that loops. The message of the finding names the operation.
fn is_a_finding_of_its_seed(behavior: Behavior) {
    let findings = caught(behavior, 3);
    let looped = |finding: &&Finding| finding.message.contains("panicked: it loops without");
    is_named(findings.iter().find(looped).expect("the loop"));
}

// Three tests, which run side by side: each of these loops is long.

#[test]
fn a_loop_that_reads_is_a_finding_of_its_seed() {
    is_a_finding_of_its_seed(Behavior::ReadsForever);
}

#[test]
fn a_loop_that_writes_is_a_finding_of_its_seed() {
    is_a_finding_of_its_seed(Behavior::WritesForever);
}

#[test]
fn a_loop_that_opens_transactions_is_a_finding_of_its_seed() {
    is_a_finding_of_its_seed(Behavior::OpensForever);
}

/// A client that does not finish is stopped before the database is judged, so that the database is final.
#[test]
fn an_operation_that_commits_forever_is_stuck() {
    is_caught(Behavior::CommitsForever, 2, "has waited for its operation");
}

/// The message of the finding names the one operation of its witness as well.
fn is_named(finding: &Finding) {
    let [(client, index)] = finding.witness.operations[..] else { panic!("{finding:?}") };
    let named = format!("operation {index} of client {client} (");
    assert!(finding.message.contains(&named), "{finding:?}");
}

#[test]
fn findings_have_what_contradicts_the_claim_as_data() {
    let found = |bug, kind| {
        let (_, result) = Shake::<Register>::new().seeds(0..5).bug(bug).run().failed.expect("it is caught");
        let finding = result.findings.into_iter().find(|finding| finding.kind == kind);
        finding.expect("a finding of this kind")
    };
    is_named(&found("ModelPanics", Kind::WorkloadModel));
    let finding = found("CommitsForever", Kind::Live);
    assert!(finding.message.matches("has waited for").count() == finding.witness.operations.len());
    let finding = found("TemporarilyBroken", Kind::Audit);
    assert_eq!(finding.witness.keys, [MARK], "{finding:?}");
    assert_eq!(finding.witness.attempts.len(), 1, "{finding:?}");
}

/// A panic in the model accuses the workload and catches no bug. The message contains the operation.
#[test]
fn a_panic_in_the_model_accuses_the_workload() {
    let swept = Shake::<Register>::new().seeds(0..1).bug("ModelPanics").run();
    let (_, result) = swept.failed.expect("the model panics");
    assert_eq!((result.verdict(), result.accuses_workload()), (Verdict::Violated, true));
    let finding = &result.findings[0];
    assert_eq!(finding.kind, Kind::WorkloadModel);
    assert!(finding.message.contains("operation 10 of client"), "{}", finding.message);
    assert!(finding.message.contains("no eleventh"), "{}", finding.message);
    let shake = Shake::<Register>::new().seeds(0..1).bug("ModelPanics");
    let panic = std::panic::catch_unwind(|| shake.assert_caught()).expect_err("a panic");
    let message = panic.downcast_ref::<String>().expect("a message");
    assert!(message.contains("was not caught"), "{message}");
}

mod refused {
    use shaketable::prelude::*;

    shaketable_tx::refusals! {
        /// Why the setup is refused.
        pub enum Refusal { Full = "the store is full" }
    }

    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub struct Full;

    /// A workload whose setup its layer refuses.
    #[shaketable::workload(name = "full")]
    impl Full {
        async fn setup(&self, tx: &Tx) -> Result<(), Refusal> {
            tx.set(b"a", b"1");
            Err(Refusal::Full)
        }

        #[write]
        async fn read(&self, tx: &Tx, #[draw(0..2u32)] _unused: u32) -> Result<(), Refusal> {
            tx.get(b"a", Serializable).await?;
            Ok(())
        }

        #[invariant("nothing is there")]
        async fn holds(&self, tx: &Tx) -> Result<bool, Refusal> {
            Ok(tx.get(b"a", Serializable).await?.is_none())
        }
    }
}

/// What a test says of a register that fails.
fn said(shake: &Shake<Register>) -> String {
    let panic = std::panic::catch_unwind(|| shake.assert()).expect_err("a panic");
    panic.downcast_ref::<String>().expect("a message").clone()
}

#[test]
fn a_failed_test_tells_what_remains_of_its_run() {
    let shake = Shake::<Register>::new().seeds(0..50).bug(&format!("{:?}", Behavior::FromMemory));
    let message = said(&shake);
    let parts = [
        "\n  model: operation ",
        "\n  shrunk from ",
        "\n  to ",
        " attempt ",
        "\nrepro file: ",
        "shaketable/register-FromMemory-",
        "\nshrunk to: ",
        ".shrunk.json\n",
    ];
    let places: Vec<_> = parts.iter().map(|part| message.find(part).expect(&message)).collect();
    assert!(places.is_sorted(), "{message}");
    assert_eq!(message.matches("model: ").count(), 1, "the finding is told once: {message}");
    assert!(message.lines().last().is_some_and(|line| line.starts_with("SHAKETABLE_SEEDS=")), "{message}");
    let whole = said(&shake.shrink_budget(std::time::Duration::ZERO));
    assert!(!whole.contains("shrunk"), "{whole}");
}

#[test]
fn a_refused_setup_names_the_refusal() {
    let result = Shake::<shaketable::Guarded<refused::Full>>::new().seeds(0..1).run();
    let (_, failed) = result.failed.expect("a refused setup is a finding");
    let messages: Vec<&str> = failed.findings.iter().map(|finding| &*finding.message).collect();
    let named = |message: &&str| message.starts_with("in setup: the layer refuses: the store is full");
    assert!(messages.iter().any(named), "{messages:?}");
}
