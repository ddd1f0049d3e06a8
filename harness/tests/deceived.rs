//! Layers that lie, and judges that must not be deceived: a plain register, whose clients use it in every wrong
//! way that leaves no trace in the history, or a misleading one.

use bytes::Bytes;
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable::finding::{Kind, Verdict};
use shaketable::{Bug, Outcome, Shake, Step, Workload};
use shaketable_layers::tx::{Database, Env, Error, Isolation, Transaction, TransactionOption};
use shaketable_sim::{
    faults::{Family, Profile},
    proto::Mutation,
    seed::Stream,
};
use std::{cell::Cell, future::Future, time::Duration};

/// The workload, drawn: how its clients use the register.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Register {
    manner: Manner,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Manner {
    /// As one should.
    Honest,
    /// A set is acknowledged and never committed.
    NeverCommitted,
    /// A get is answered from memory, for ever after the first.
    FromMemory,
    /// A get reads at a version that is kept for a second.
    KeptVersion,
    /// A set is acknowledged, and committed by the client's next operation.
    CommittedLater,
    /// A get accepts a causally risky read version.
    RiskyRead,
    /// Honest, and commits accept causal write risk: 1021 then decides nothing.
    RiskyWrite,
    /// A get never ends reading what it has read.
    ReadsForEver,
    /// A set never ends writing.
    WritesForEver,
    /// Every set makes transactions for ever, and uses none of them.
    OpensForEver,
    /// A set never ends committing.
    CommitsForEver,
    /// A set breaks an invariant for a moment, and mends it in its next transaction.
    BrokenForAMoment,
    /// The workload's own model panics.
    ModelPanics,
}

const MANNERS: [Manner; 13] = [
    Manner::Honest,
    Manner::NeverCommitted,
    Manner::FromMemory,
    Manner::KeptVersion,
    Manner::CommittedLater,
    Manner::RiskyRead,
    Manner::RiskyWrite,
    Manner::ReadsForEver,
    Manner::WritesForEver,
    Manner::OpensForEver,
    Manner::CommitsForEver,
    Manner::BrokenForAMoment,
    Manner::ModelPanics,
];

const BUGS: &[Bug] = &[
    bug("Honest"),
    bug("NeverCommitted"),
    bug("FromMemory"),
    bug("KeptVersion"),
    bug("CommittedLater"),
    bug("RiskyRead"),
    bug("RiskyWrite"),
    bug("ReadsForEver"),
    bug("WritesForEver"),
    bug("OpensForEver"),
    bug("BrokenForAMoment"),
    bug("ModelPanics"),
];

const fn bug(name: &'static str) -> Bug {
    Bug { name, about: "a manner of using the register", source: "this test" }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Op {
    Set(u32),
    Get,
}

/// What a client holds.
struct Client<D: Database> {
    db: D,
    remembered: Option<Option<u32>>,
    kept: Option<(i64, Duration)>,
    owed: Cell<Option<u32>>,
}

const KEY: &[u8] = b"register";

/// Absent at every version, as the workload's audit has it.
const MARK: &[u8] = b"under way";

fn number(value: Option<Bytes>) -> Option<u32> {
    value.and_then(|bytes| Some(u32::from_be_bytes(bytes.as_ref().try_into().ok()?)))
}

/// One attempt after the other, as long as it is certain that none has committed.
async fn attempt<D: Database, A, F: Future<Output = Result<A, Error>>>(
    db: &D,
    body: impl Fn(D::Transaction) -> F,
) -> Outcome<A> {
    let tx = match db.create_transaction() {
        Ok(tx) => tx,
        Err(e) => return Outcome::GaveUp(e),
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
            return Outcome::GaveUp(e);
        }
    }
}

fn now(env: &Env) -> Duration {
    env.now()
}

impl Register {
    async fn set<D: Database>(&self, client: &Client<D>, value: u32) -> Outcome<Option<u32>> {
        let manner = self.manner;
        match manner {
            Manner::NeverCommitted => return Outcome::Answered(None),
            Manner::CommittedLater if client.owed.get().is_none() => {
                client.owed.set(Some(value));
                return Outcome::Answered(None);
            }
            Manner::OpensForEver => loop {
                let Ok(tx) = client.db.create_transaction() else { break };
                tx.reset();
            },
            _ => {}
        }
        while manner == Manner::CommitsForEver {
            let again = attempt(&client.db, |tx| async move {
                tx.set(KEY, &value.to_be_bytes());
                Ok(None)
            });
            if let other @ Outcome::Violated(_) = again.await {
                return other;
            }
        }
        if manner == Manner::BrokenForAMoment {
            let marked = attempt(&client.db, |tx| async move {
                tx.set(MARK, b"");
                Ok(None)
            });
            match marked.await {
                Outcome::Answered(_) => client.db.env().sleep(Duration::from_millis(20)).await,
                other => return other,
            }
        }
        client.owed.set(None);
        attempt(&client.db, |tx| async move {
            tx.clear(MARK);
            if manner == Manner::RiskyWrite {
                tx.set_option(TransactionOption::CausalWriteRisky)?;
            }
            tx.set(KEY, &value.to_be_bytes());
            if manner == Manner::WritesForEver {
                loop {
                    tx.set(KEY, &value.to_be_bytes());
                }
            }
            Ok(None)
        })
        .await
    }

    async fn get<D: Database>(&self, client: &mut Client<D>) -> Outcome<Option<u32>> {
        let manner = self.manner;
        if let (Manner::FromMemory, Some(remembered)) = (manner, client.remembered) {
            return Outcome::Answered(remembered);
        }
        let before = client.kept.filter(|(_, since)| now(client.db.env()) < *since + Duration::from_secs(1));
        let kept = before.filter(|_| manner == Manner::KeptVersion).map(|(version, _)| version);
        let owed = client.owed.get();
        let read = attempt(&client.db, |tx| async move {
            match (kept, manner) {
                (Some(version), _) => tx.set_read_version(version),
                (None, Manner::RiskyRead) => tx.set_option(TransactionOption::CausalReadRisky)?,
                _ => {}
            }
            if let Some(owed) = owed {
                tx.set(KEY, &owed.to_be_bytes());
            }
            let value = number(tx.get(KEY, Isolation::Serializable).await?);
            if manner == Manner::ReadsForEver {
                loop {
                    tx.get(KEY, Isolation::Serializable).await?;
                }
            }
            Ok((value, tx.get_read_version().await?))
        });
        match read.await {
            Outcome::Answered((value, version)) => {
                client.owed.set(None);
                client.remembered = Some(value);
                if kept.is_none() {
                    client.kept = Some((version, now(client.db.env())));
                }
                Outcome::Answered(value)
            }
            // A version that is too old is not kept.
            Outcome::GaveUp(e) | Outcome::Unknown(e) => {
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
    type Session<D: Database> = Client<D>;
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
        let named = |manner: &&Manner| bug == Some(format!("{manner:?}").as_str());
        Register { manner: MANNERS.iter().find(named).copied().unwrap_or(Manner::Honest) }
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

    async fn open<D: Database>(&self, db: &D, _: usize) -> Result<Client<D>, Error> {
        Ok(Client { db: db.clone(), remembered: None, kept: None, owed: Cell::new(None) })
    }

    async fn apply<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Outcome<Option<u32>> {
        match op {
            Op::Set(value) => self.set(client, *value).await,
            Op::Get => self.get(client).await,
        }
    }

    fn model(&self) -> Option<u32> {
        None
    }

    fn step(&self, model: &mut Option<u32>, step: &Step<'_, Self>) -> Result<(), String> {
        assert!(self.manner != Manner::ModelPanics || step.index < 10, "no eleventh operation");
        match (step.op, step.answer) {
            (Op::Set(value), _) if step.committed => *model = Some(*value),
            (Op::Set(_), Some(_)) => return Err("acknowledged, but nothing was committed".into()),
            (Op::Get, Some(read)) if read != model => return Err(format!("read {read:?}, holds {model:?}")),
            _ => {}
        }
        Ok(())
    }

    async fn audit<D: Database>(&self, tx: &D::Transaction) -> Result<Result<(), String>, Error> {
        let mark = tx.get(MARK, Isolation::Serializable).await?;
        Ok(mark.map_or(Ok(()), |_| Err("a set is under way".into())))
    }

    async fn check<D: Database>(&self, db: &D, model: &Option<u32>) -> Result<Result<(), String>, Error> {
        let read = db.run(|tx, _| async move { tx.get(KEY, Isolation::Serializable).await }).await;
        let read = number(read.map_err(|e| e.error)?);
        Ok(if read == *model { Ok(()) } else { Err(format!("holds {read:?}, not {model:?}")) })
    }
}

/// What is found of the first seed that falls.
fn caught(manner: Manner, seeds: u64) -> String {
    let shake = Shake::<Register>::new().seeds(0..seeds).bug(&format!("{manner:?}"));
    let (seed, result) = shake.assert_caught();
    assert_ne!(result.verdict(), Verdict::Harness);
    let messages: Vec<&str> = result.findings.iter().map(|finding| &*finding.message).collect();
    format!("{manner:?} {seed}: {}", messages.join("; "))
}

#[test]
fn an_honest_register_stands() {
    Shake::<Register>::new().seeds(0..100).assert();
    let calm = Shake::<Register>::new().seeds(0..3).faults(Profile::Calm).run();
    assert_eq!((calm.ran, calm.counters.recoveries), (3, 0), "nothing makes a calm cluster recover");
    Shake::<Register>::new().seeds(0..30).without(Family::UnknownCommitted).assert();
}

/// Shakes a register that is used this way until it is caught for this reason.
fn is_caught(manner: Manner, seeds: u64, why: &str) {
    let message = caught(manner, seeds);
    assert!(message.contains(why), "{message}");
}

#[test]
fn what_is_acknowledged_is_committed() {
    is_caught(Manner::NeverCommitted, 5, "nothing was committed");
    is_caught(Manner::CommittedLater, 5, "holds None");
}

#[test]
fn what_is_read_is_from_between_call_and_return() {
    is_caught(Manner::FromMemory, 10, "neither read nor wrote");
    is_caught(Manner::KeptVersion, 10, "known to be committed before it was called");
    is_caught(Manner::RiskyRead, 50, "known to be committed before it was called");
}

#[test]
fn an_invariant_holds_at_every_version() {
    is_caught(Manner::BrokenForAMoment, 5, ": a set is under way");
    // Not only when somebody happens to look.
    is_caught(Manner::BrokenForAMoment, 5, "from version ");
}

/// A layer may choose what it pays for: nobody blames the cluster for what 1021 then leaves open.
#[test]
fn a_risky_write_is_no_fault_of_the_cluster() {
    Shake::<Register>::new().seeds(0..200).bug("RiskyWrite").assert();
}

#[test]
fn what_loops_without_end_is_a_finding_of_its_seed() {
    for manner in [Manner::ReadsForEver, Manner::WritesForEver, Manner::OpensForEver] {
        is_caught(manner, 3, "panicked: it loops without");
    }
}

/// The database that is judged is final: a client that never ends is stopped first.
#[test]
fn an_operation_that_commits_without_end_is_stuck() {
    is_caught(Manner::CommitsForEver, 2, "waits for its operation");
}

/// A workload that fails itself says nothing about its layer, and names the operation.
#[test]
fn a_panic_in_the_model_is_the_workload_s() {
    let swept = Shake::<Register>::new().seeds(0..1).bug("ModelPanics").run();
    let (_, result) = swept.failed.expect("the model panics");
    assert_eq!(result.verdict(), Verdict::Harness);
    let finding = &result.findings[0];
    assert_eq!(finding.kind, Kind::WorkloadModel);
    let named = finding.message.contains("operation 10 of client") && finding.message.contains("no eleventh");
    assert!(named, "{}", finding.message);
    let shake = Shake::<Register>::new().seeds(0..1).bug("ModelPanics");
    let refused = std::panic::catch_unwind(|| shake.assert_caught()).expect_err("no catch");
    let said = refused.downcast_ref::<String>().expect("words");
    assert!(said.contains("was not caught"), "{said}");
}
