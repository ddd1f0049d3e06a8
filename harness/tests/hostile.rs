//! Tests that layers which refuse, fail or "do not know" are convicted, in each of the three ways to describe
//! a layer: an error that nothing explains is a finding, and a kind of operations of which none is done makes
//! the sweep vacuous.

use shaketable::{
    Misfit,
    finding::{Finding, Kind},
    prelude::*,
};
use shaketable_sim::faults::Profile as Faults;
use shaketable_tx::{Db, Error, Tx};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

shaketable_tx::refusals! {
    /// Why the store does nothing.
    pub enum Refusal { Closed = "the store is closed" }
}

const KEY: &[u8] = b"sum";
/// What an addition has not finished.
const MARK: &[u8] = b"unfinished";

fn number(value: Option<Bytes>) -> u64 {
    value.and_then(|bytes| bytes.as_ref().try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// What the layer does in place of what it should.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Hostility {
    None,
    /// Three additions of ten fail.
    Fails,
    /// All reads fail, after they have read.
    ReadsFail,
    /// A third of the additions has an unknown outcome, also where it is known.
    Loses,
    /// Everything is refused.
    Refuses,
    /// The first operation in the process breaks its promise.
    Vanishes,
    /// Each operation answers with the number of those before it in the process.
    Counts,
    /// An addition that fails leaves a mark, at which the next one in its transaction writes and refuses.
    /// That is no bug: a transaction with a failed call is lost.
    LeavesMark,
    /// Its operations cannot be drawn.
    Undrawn,
}

const HOSTILE: &[Bug] = &[
    bug("fails"),
    bug("reads-fail"),
    bug("loses"),
    bug("refuses"),
    bug("vanishes"),
    bug("counts"),
    bug("leaves-mark"),
    bug("undrawn"),
];

const fn bug(name: &'static str) -> Bug {
    Bug { name, about: "a hostile layer", source: "this test", only_simulated: None }
}

impl Hostility {
    fn of(bug: Option<&str>) -> Hostility {
        match bug {
            Some("fails") => Hostility::Fails,
            Some("reads-fail") => Hostility::ReadsFail,
            Some("loses") => Hostility::Loses,
            Some("refuses") => Hostility::Refuses,
            Some("vanishes") => Hostility::Vanishes,
            Some("counts") => Hostility::Counts,
            Some("leaves-mark") => Hostility::LeavesMark,
            Some("undrawn") => Hostility::Undrawn,
            _ => Hostility::None,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Op {
    Add(u64),
    Read,
}

async fn perform(tx: &Tx, op: &Op, hostility: Hostility) -> Result<u64, Refusal> {
    match (hostility, op) {
        (Hostility::Refuses, _) => return Err(Refusal::Closed),
        (Hostility::Fails, Op::Add(n)) if n % 10 < 3 => return Err(Error::TRANSACTION_TIMED_OUT.into()),
        _ => {}
    }
    let tx = &tx.writing().await;
    if let (Hostility::LeavesMark, Op::Add(n)) = (hostility, op) {
        return add_with_mark(tx, *n).await;
    }
    let before = number(tx.get(KEY, Serializable).await?);
    match op {
        Op::Read if hostility == Hostility::ReadsFail => Err(Error::TRANSACTION_TIMED_OUT.into()),
        Op::Read => Ok(before),
        Op::Add(n) => {
            tx.set(KEY, &(before + n).to_le_bytes());
            Ok(before + n)
        }
    }
}

async fn add_with_mark(tx: &Tx, n: u64) -> Result<u64, Refusal> {
    if tx.get(MARK, Serializable).await?.is_some() {
        tx.clear(MARK);
        return Err(Refusal::Closed);
    }
    tx.set(MARK, b"");
    let sum = number(tx.get(KEY, Serializable).await?) + n;
    tx.clear(MARK);
    tx.set(KEY, &sum.to_le_bytes());
    Ok(sum)
}

fn operation() -> BoxedStrategy<Op> {
    prop_oneof![(1..1_000u64).prop_map(Op::Add), Just(Op::Read)].boxed()
}

/// The layer as a specimen. Its model refuses what the layer refuses.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Sum(Hostility);

impl Specimen for Sum {
    type Op = Op;
    type Answer = u64;
    type Error = Refusal;
    type Model = u64;

    const NAME: &'static str = "sum";
    const ABOUT: &'static str = "one sum";

    fn bugs() -> &'static [Bug] {
        HOSTILE
    }
    fn draw(_: &mut Stream, bug: Option<&str>) -> Sum {
        Sum(Hostility::of(bug))
    }
    fn keys(&self) -> Vec<Bytes> {
        vec![KEY.into()]
    }
    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        operation()
    }
    fn is_read_only(op: &Op) -> bool {
        matches!(op, Op::Read)
    }
    async fn perform(&self, tx: &Tx, _: &Env, op: &Op, _: Isolation) -> Result<u64, Refusal> {
        perform(tx, op, self.0).await
    }
    async fn apply(
        &self,
        _: Option<&str>,
        session: &mut Session<Db>,
        ops: &[Op],
    ) -> Option<Outcome<shaketable::specimen::Answer<u64>>> {
        let [Op::Add(n)] = ops else { return None };
        if self.0 != Hostility::Loses || !n.is_multiple_of(3) {
            return None;
        }
        let _ = session.apply(|tx| async move { perform(&tx, &Op::Add(*n), self.0).await }).await;
        Some(Outcome::Unknown(Error::COMMIT_UNKNOWN_RESULT))
    }
    fn model(&self) -> u64 {
        0
    }
    fn replay(&self, sum: &mut u64, op: &Op, _: &At) -> Result<u64, Refusal> {
        match op {
            _ if self.0 == Hostility::Refuses => return Err(Refusal::Closed),
            Op::Add(n) => *sum += n,
            Op::Read => {}
        }
        Ok(*sum)
    }
    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<u64, Misfit>> {
        Ok(Ok(number(tx.get(KEY, Serializable).await?)))
    }
}

static SEEN: AtomicBool = AtomicBool::new(false);
static COUNTED: AtomicU64 = AtomicU64::new(0);

/// The layer as a workload of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Plain(Hostility);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Answer {
    Sum(u64),
    Refused(String),
}

impl Workload for Plain {
    type Op = Op;
    type Answer = Answer;
    type Session = Db;
    type Model = u64;

    const NAME: &'static str = "plain";
    const ABOUT: &'static str = "one sum";

    fn bugs() -> &'static [Bug] {
        HOSTILE
    }
    fn draw(_: &mut Stream, bug: Option<&str>) -> Plain {
        Plain(Hostility::of(bug))
    }
    fn clients(&self) -> usize {
        3
    }
    fn keys(&self) -> Vec<Bytes> {
        vec![KEY.into()]
    }
    fn operations(&self, _: usize) -> BoxedStrategy<Vec<Op>> {
        match self.0 {
            Hostility::Undrawn => panic!("it draws nothing"),
            _ => vec(operation(), 10..20).boxed(),
        }
    }
    async fn open(&self, db: &Db, _: usize) -> tx::Result<Db> {
        Ok(db.clone())
    }
    async fn apply(&self, db: &mut Db, op: &Op) -> Outcome<Answer> {
        match self.0 {
            Hostility::Vanishes if !SEEN.swap(true, Ordering::Relaxed) => {
                return Outcome::Violated("it is odd".to_owned());
            }
            Hostility::Counts => {
                return Outcome::Violated(COUNTED.fetch_add(1, Ordering::Relaxed).to_string());
            }
            _ => {}
        }
        let Ok(tx) = db.create_transaction() else { return Outcome::Failed(Error::OPERATION_CANCELLED) };
        loop {
            let error = match perform(&tx, op, self.0).await {
                Err(Refusal::Fdb(error)) => error,
                Err(refusal) => return Outcome::Answered(Answer::Refused(refusal.to_string())),
                Ok(sum) => match tx.commit().await {
                    Ok(()) if self.0 == Hostility::Loses && sum.is_multiple_of(3) => {
                        return Outcome::Unknown(Error::COMMIT_UNKNOWN_RESULT);
                    }
                    Ok(()) => return Outcome::Answered(Answer::Sum(sum)),
                    Err(error) if error.is_retryable_not_committed() => error,
                    Err(error) => return Outcome::Unknown(error),
                },
            };
            if let Err(error) = tx.on_error(error).await {
                return Outcome::Failed(error);
            }
        }
    }
    fn model(&self) -> u64 {
        0
    }
    fn step(&self, sum: &mut u64, step: &Step<'_, Self>) -> Result<(), Misfit> {
        if let (Op::Add(n), true) = (step.op, step.committed) {
            *sum += n;
        }
        match step.answer {
            Some(Answer::Sum(found)) if found != sum => Err(format!("{found} in place of {sum}").into()),
            _ => Ok(()),
        }
    }
    async fn audit(&self, _: &Tx) -> tx::Result<Result<(), Misfit>> {
        Ok(Ok(()))
    }
    async fn check(&self, db: &Db, sum: &u64) -> tx::Result<Result<(), Misfit>> {
        let stored = db.run(|tx, _| async move { tx.get(KEY, Serializable).await }).await;
        let stored = number(stored.map_err(|e: tx::RunError<Error>| e.error)?);
        Ok(if stored == *sum { Ok(()) } else { Err(format!("{stored} in place of {sum}").into()) })
    }
}

/// The layer as invariants: nothing compares its answers.
macro_rules! guarded {
    ($module:ident, $hostility:expr) => {
        mod $module {
            use super::{Hostility, Refusal, perform};
            use shaketable::prelude::*;

            #[derive(Clone, Debug, Default, Serialize, Deserialize)]
            pub struct Layer;

            /// Additions to a sum.
            #[shaketable::workload(name = "layer")]
            impl Layer {
                #[write]
                async fn add(&self, tx: &Tx, #[draw(1..1_000u64)] n: u64) -> Result<(), Refusal> {
                    perform(tx, &super::Op::Add(n), $hostility).await.map(drop)
                }

                #[write]
                async fn read(&self, tx: &Tx) -> Result<(), Refusal> {
                    perform(tx, &super::Op::Read, $hostility).await.map(drop)
                }

                #[invariant("it is a number")]
                async fn holds(&self, tx: &Tx) -> Result<bool, Refusal> {
                    Ok(tx.get(super::KEY, Serializable).await?.is_none_or(|value| value.len() == 8))
                }
            }
        }
    };
}

guarded!(sound, Hostility::None);
guarded!(fails, Hostility::Fails);
guarded!(reads_fail, Hostility::ReadsFail);
guarded!(refuses, Hostility::Refuses);

/// What a sweep finds, and what it lacks.
fn swept<W: Workload>(shake: &Shake<W>) -> (Option<Finding>, Vec<String>) {
    let swept = shake.run();
    let first = swept.failed.map(|(_, result)| result.findings.into_iter().next().expect("a finding"));
    (first, swept.vacuous)
}

fn is_convicted<W: Workload>(shake: &Shake<W>, why: &str) {
    let (finding, _) = swept(shake);
    let finding = finding.expect("it is convicted");
    assert_eq!(finding.kind, Kind::Unexplained, "{finding:?}");
    assert!(finding.message.contains(why), "{finding:?}");
    assert_eq!(finding.witness.operations.len(), 1, "{finding:?}");
}

fn is_vacuous<W: Workload>(shake: &Shake<W>, kinds: &[&str]) {
    let (finding, vacuous) = swept(shake);
    assert_eq!(finding, None);
    let named = |kind: &str| vacuous.iter().any(|line| line.starts_with(&format!("{kind} that was done (")));
    assert!(kinds.iter().all(|kind| named(kind)), "{vacuous:?}");
}

fn shake<W: Workload>(bug: Option<&str>) -> Shake<W> {
    let shake = Shake::<W>::new().seeds(0..30);
    bug.map_or(shake.clone(), |bug| shake.bug(bug))
}

const FAILED: &str = "failed with transaction_timed_out (1031), but ";

#[test]
fn layers_that_fail_without_a_fault_are_convicted() {
    is_convicted(&shake::<Mounted<Sum>>(Some("fails")), FAILED);
    is_convicted(&shake::<Plain>(Some("fails")), FAILED);
    is_convicted(&shake::<Guarded<fails::Layer>>(None), FAILED);
    is_convicted(&shake::<Mounted<Sum>>(Some("reads-fail")), FAILED);
    is_convicted(&shake::<Plain>(Some("reads-fail")), FAILED);
    is_convicted(&shake::<Guarded<reads_fail::Layer>>(None), FAILED);
}

#[test]
fn layers_that_do_not_know_what_they_were_told_are_convicted() {
    const LOST: &str = "has an unknown outcome with commit_unknown_result (1021), but ";
    is_convicted(&shake::<Mounted<Sum>>(Some("loses")), LOST);
    is_convicted(&shake::<Plain>(Some("loses")), LOST);
}

#[test]
fn layers_that_refuse_everything_are_vacuous() {
    is_vacuous(&shake::<Mounted<Sum>>(Some("refuses")), &["Add", "Read"]);
    is_vacuous(&shake::<Plain>(Some("refuses")), &["Add", "Read"]);
    is_vacuous(&shake::<Guarded<refuses::Layer>>(None), &["add", "read"]);
}

#[test]
fn the_layer_itself_passes() {
    for faults in [Faults::Calm, Faults::Standard, Faults::Storm] {
        shake::<Mounted<Sum>>(None).faults(faults).assert();
        shake::<Plain>(None).faults(faults).assert();
        shake::<Guarded<sound::Layer>>(None).faults(faults).assert();
    }
    let swept = shake::<Plain>(None).run();
    let all: u64 = swept.outcomes.values().map(|of_kind| of_kind.all()).sum();
    assert_eq!(all, swept.counters.operations);
    assert!(swept.outcomes.values().all(|of_kind| of_kind.done > 0 && of_kind.refused == 0));
}

#[test]
fn a_refusal_after_a_call_that_failed_in_its_transaction_is_not_judged() {
    shake::<Mounted<Sum>>(Some("leaves-mark")).seeds(0..100).faults(Faults::Storm).assert();
}

/// What a test says of a sweep that fails.
fn said(shake: &Shake<Plain>) -> String {
    let panic = std::panic::catch_unwind(|| shake.assert()).expect_err("a panic");
    panic.downcast_ref::<String>().expect("a message").clone()
}

#[test]
fn operations_that_cannot_be_drawn_accuse_their_workload() {
    let message = said(&shake(Some("undrawn")));
    assert!(message.starts_with("plain cannot be drawn with seed 0: it draws nothing ("), "{message}");
}

#[test]
fn a_failure_that_vanishes_is_told_with_its_reason() {
    let message = said(&shake(Some("vanishes")));
    let reason =
        "it did not fail again: not deterministic: two runs of the seed differ, and two further ones do not";
    assert!(message.contains(reason), "{message}");
    let message = said(&shake(Some("counts")).seeds(0..1));
    assert!(
        message.contains(
            "it failed in another way: not deterministic: two runs of the seed differ, in what operation "
        ),
        "{message}"
    );
    let message = said(&shake(Some("counts")).seeds(0..1).check_determinism());
    assert!(message.contains("two runs of the seed differ, in what operation "), "{message}");
}
