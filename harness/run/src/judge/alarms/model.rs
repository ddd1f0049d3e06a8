//! Tests of the judges of a workload, with sound and broken histories of a register.

mod witness;

use super::{Story, set};
use crate::{
    describe::erased::{AnyValue, AnyWorkload, forgotten},
    describe::workload::Operation,
    describe::workload::{Outcome, Staleness, Step, Workload},
    describe::{misfit::Misfit, waiting::Wait},
    judge::finding::{Finding, Kind, Objection, Witness},
    judge::{Truth, audits, conflict_free, model, times::Times},
};
use bytes::Bytes;
use proptest::strategy::{BoxedStrategy, Just, Strategy};
use serde::{Deserialize, Serialize};
use shaketable_sim::{
    history::Reported,
    ids::ClientId,
    proto::{KeyRange, Mutation, Version},
    rt::{Nanos, SECOND},
    seed::Stream,
};
use shaketable_tx::{self as tx, Db, Error, Isolation, Transaction, Tx, points};
use std::{ops::RangeInclusive, time::Duration};

/// A workload with one register, whose operations have at most one effect if `ONE`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Register<const ONE: bool = true> {
    /// How stale reads may be.
    #[serde(skip)]
    stale: Option<Staleness>,
    /// Whether effects may commit after the return.
    late: bool,
    /// Whether writes promise not to conflict.
    conflict_free: bool,
    /// Whether reads wait for the last write.
    waits: bool,
    /// Whether a read writes its answer into the model, also where it does not fit.
    notes: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Op {
    Set(String),
    Get,
}

impl<const ONE: bool> Workload for Register<ONE> {
    type Op = Op;
    /// The value read.
    type Answer = Option<String>;
    type Session = ();
    /// Its value, and the versionstamp of its last write.
    type Model = (Option<String>, Option<[u8; 10]>);

    const NAME: &'static str = "register";
    const ABOUT: &'static str = "one register";

    fn draw(_: &mut Stream, _: Option<&str>) -> Self {
        Register::default()
    }
    fn clients(&self) -> usize {
        2
    }
    fn keys(&self) -> Vec<Bytes> {
        Vec::new()
    }
    fn operations(&self, _: usize) -> BoxedStrategy<Vec<Op>> {
        Just(Vec::new()).boxed()
    }
    fn is_conflict_free(&self, op: &Op) -> bool {
        self.conflict_free && matches!(op, Op::Set(_))
    }
    fn effects(&self, _: &Op) -> RangeInclusive<usize> {
        0..=if ONE { 1 } else { usize::MAX }
    }
    fn staleness(&self, _: &Op) -> Option<Staleness> {
        self.stale
    }
    fn may_land_late(&self, _: &Option<String>) -> bool {
        self.late
    }
    async fn open(&self, _: &Db, _: usize) -> tx::Result<()> {
        Ok(())
    }
    async fn apply(&self, _: &mut (), _: &Op) -> Outcome<Option<String>> {
        Outcome::Answered(None)
    }
    fn model(&self) -> Self::Model {
        (None, None)
    }
    fn step(&self, (model, stamp): &mut Self::Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        match (step.op, step.answer) {
            (Op::Set(value), _) if step.committed => {
                assert_eq!(step.mutations.len(), 1);
                (*model, *stamp) = (Some(value.clone()), step.stamp);
            }
            (Op::Get, Some(read)) if self.notes && read != model => {
                model.clone_from(read);
                return Err("it is something else".into());
            }
            (Op::Get, Some(read)) if read != model => {
                let (found, expected) = (format!("{read:?}"), format!("{model:?}"));
                let message = format!("read {found} where the model has {expected}");
                return Err(Misfit::new(message, expected, found));
            }
            (Op::Set(_), Some(_)) => return Err("nothing was committed".into()),
            (Op::Get, Some(_)) if self.waits => {
                let written = stamp.map(|[a, b, c, d, e, f, g, h, ..]| [a, b, c, d, e, f, g, h]);
                step.waited(Wait { patience: 5 * SECOND, found: written.map(Version::from_be_bytes) })?;
            }
            _ => {}
        }
        Ok(())
    }
    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        let broken = tx.get(b"broken", Isolation::Serializable).await?;
        shaketable_tx::always!(broken.is_none(), "it is not broken");
        Ok(broken.map_or(Ok(()), |_| Err("it is broken".into())))
    }
    /// The register holds its value.
    async fn audit_against(&self, tx: &Tx, (model, _): &Self::Model) -> tx::Result<Result<(), Misfit>> {
        let stored = tx.get(b"register", Isolation::Serializable).await?;
        if let Err(broken) = self.audit(tx).await? {
            return Ok(Err(broken));
        }
        Ok(match stored.as_deref() == model.as_deref().map(str::as_bytes) {
            true => Ok(()),
            false => Err(format!("holds {stored:?} where the model has {model:?}").into()),
        })
    }
    async fn check(&self, _: &Db, _: &Self::Model) -> tx::Result<Result<(), Misfit>> {
        Ok(Ok(()))
    }
}

/// A history of the register with two clients.
#[derive(Default)]
struct Run {
    workload: Register,
    story: Story,
    plan: [Vec<AnyValue>; 2],
    operations: [Vec<Operation<AnyValue>>; 2],
}

impl Run {
    fn any(&self) -> AnyWorkload {
        AnyWorkload::new(self.workload)
    }

    fn operation(&mut self, client: usize, op: Op, (called, returned): (Nanos, Nanos)) -> &mut Self {
        self.plan[client].push(AnyValue::new(op));
        self.operations[client].push(Operation { called, returned, outcome: None });
        self.answers(client, None)
    }

    fn ends(&mut self, client: usize, outcome: Outcome<Option<String>>) -> &mut Self {
        self.operations[client].last_mut().expect("an operation").outcome = Some(forgotten(outcome));
        self
    }

    fn answers(&mut self, client: usize, read: Option<&str>) -> &mut Self {
        self.ends(client, Outcome::Answered(read.map(str::to_owned)))
    }

    /// Adds an attempt of the client's last operation with this read version. `committed` is the version at
    /// which its write committed, and the time at which that was durable.
    fn attempt(
        &mut self,
        client: usize,
        read: Version,
        committed: Option<(Version, Nanos)>,
        ended: Nanos,
    ) -> &mut Self {
        let operation = self.plan[client].len() - 1;
        let value = match self.plan[client][operation].get() {
            Some(Op::Set(value)) => value.clone(),
            _ => "by a get".to_owned(),
        };
        let (id, attempt) = self.story.attempt(read, Vec::new());
        (attempt.client, attempt.operation) = (ClientId(client as u16), Some(operation as u32));
        attempt.ended = ended;
        if let Some((version, durable)) = committed {
            attempt.reported = Reported::Committed { version, batch_index: 0 };
            attempt.commit_sent = Some(0);
            self.story.log_at(
                version,
                vec![(Some(id), 0, vec![Mutation::Set("register".into(), value.into())])],
                durable,
            );
        }
        self
    }

    /// Adds a set that commits at `version` and is called, durable and answered at these times.
    fn set(&mut self, client: usize, value: &str, version: Version, [called, durable, returned]: [Nanos; 3]) {
        let op = Op::Set(value.to_owned());
        self.operation(client, op, (called, returned)).attempt(
            client,
            version - 1,
            Some((version, durable)),
            returned,
        );
    }

    fn get(&mut self, client: usize, read: Option<&str>, at: Option<Version>, when: (Nanos, Nanos)) {
        self.operation(client, Op::Get, when).answers(client, read);
        if let Some(version) = at {
            self.attempt(client, version, None, when.1);
        }
    }

    fn objection(&self) -> Result<<Register as Workload>::Model, Box<Objection>> {
        let truth = Truth::of(&self.story.history);
        let judged = model::judge(
            &self.any(),
            &self.plan,
            &self.operations,
            &self.story.history,
            &truth,
            &mut |_, _| (),
        );
        let model = judged.0.map_err(|mismatch| match mismatch {
            model::Mismatch::Layer(why, _) => why,
            model::Mismatch::Model(why, _) => panic!("{}", why.message),
        });
        model.map(|model| model.get::<<Register as Workload>::Model>().expect("its model").clone())
    }

    fn judge(&self) -> Result<<Register as Workload>::Model, String> {
        self.objection().map_err(|objection| objection.message)
    }

    /// The witness of the finding.
    fn witness(&self) -> Witness {
        let objection = self.objection().expect_err("the history is broken");
        Finding::of(Kind::Model, *objection).witness
    }

    fn is_rejected(&self, why: &str) {
        let finding = self.judge().expect_err("the history is broken");
        assert!(finding.contains(why), "{finding}");
    }
}

#[test]
fn reads_of_the_written_values_are_accepted() {
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.get(1, Some("a"), Some(10), (300, 400));
    run.set(0, "b", 20, [410, 450, 500]);
    run.get(1, Some("b"), Some(20), (600, 700));
    let (value, stamp) = run.judge().expect("sound");
    assert_eq!(value.as_deref(), Some("b"));
    assert_eq!(stamp, Some([0, 0, 0, 0, 0, 0, 0, 20, 0, 0]));
}

#[test]
fn a_read_of_another_value_is_rejected_at_every_place() {
    for at in [Some(10), None] {
        let mut run = Run::default();
        run.set(0, "a", 10, [100, 150, 200]);
        run.get(1, Some("b"), at, (300, 400));
        run.is_rejected("read Some(\"b\") where the model has Some(\"a\")");
    }
}

#[test]
fn an_answer_without_a_transaction_has_a_place_between_call_and_return() {
    let during = |called, returned, read| {
        let mut run = Run::default();
        run.set(0, "a", 10, [100, 150, 200]);
        run.set(0, "b", 20, [300, 350, 400]);
        run.set(0, "c", 30, [500, 550, 600]);
        run.get(1, Some(read), None, (called, returned));
        run
    };
    // The writes are acknowledged at 400 and 600, and visible to others from 350 and 550 on.
    for (called, returned, read) in [(390, 560, "a"), (390, 560, "b"), (390, 560, "c"), (401, 540, "b")] {
        during(called, returned, read).judge().unwrap_or_else(|why| panic!("{called} {returned}: {why}"));
    }
    during(401, 560, "a").is_rejected("neither read nor wrote");
    during(390, 549, "c").is_rejected("neither read nor wrote");
}

#[test]
fn a_read_sees_what_was_acknowledged_before_its_call() {
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.set(0, "b", 20, [300, 350, 400]);
    run.get(1, Some("a"), Some(15), (401, 500));
    run.is_rejected("read at version 15, but version 20 (attempt 1) was known to be committed");
    run.workload.stale = Some(Staleness::default());
    assert!(run.judge().is_ok());
    // A read that was called before the acknowledgement may be older.
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.set(0, "b", 20, [300, 350, 400]);
    run.get(1, Some("a"), Some(15), (400, 500));
    assert!(run.judge().is_ok());
}

#[test]
fn a_stale_read_sees_what_is_old_and_what_its_client_wrote() {
    let run = |at_most, sees_own, reader, read| {
        let stale = Some(Staleness { at_most: Duration::from_nanos(at_most), sees_own });
        let mut run = Run { workload: Register { stale, ..Register::default() }, ..Run::default() };
        run.set(0, "a", 10, [100, 150, 200]);
        run.set(0, "b", 20, [300, 350, 400]);
        run.get(reader, Some("a"), read, (1_000, 1_100));
        run
    };
    for read in [Some(15), None] {
        assert!(run(600, true, 1, read).judge().is_ok());
        assert!(run(600, false, 0, read).judge().is_ok());
    }
    run(599, true, 1, Some(15)).is_rejected("known to be committed 0.000000599 s before it was called");
    run(599, true, 1, None).is_rejected("read Some(\"a\") where the model has Some(\"b\")");
    run(600, true, 0, Some(15)).is_rejected("acknowledged to its own client before it was called");
    run(600, true, 0, None).is_rejected("read Some(\"a\") where the model has Some(\"b\")");
}

#[test]
fn an_operation_may_answer_from_any_attempt_that_is_recent_enough() {
    // Two attempts, of which the first one misses what was acknowledged before the call.
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.get(1, Some("a"), Some(5), (201, 300));
    run.attempt(1, 10, None, 290);
    assert!(run.judge().is_ok());
    run.answers(1, None);
    run.is_rejected("read None where the model has Some(\"a\")");
}

#[test]
fn a_version_that_an_answer_shows_is_known_to_be_committed() {
    // The client of the set receives no result. Then one read sees the value, and a later one does not.
    let run = |late: bool, called: Nanos| {
        let mut run = Run { workload: Register { late, ..Register::default() }, ..Run::default() };
        run.operation(0, Op::Set("a".to_owned()), (100, 900));
        run.attempt(0, 9, Some((10, 150)), 900);
        run.ends(0, Outcome::Unknown(Error::OPERATION_CANCELLED));
        let attempt = run.story.history.attempts[0].as_mut().expect("an attempt");
        attempt.reported = Reported::Nothing;
        run.get(1, Some("a"), Some(10), (200, 300));
        run.get(1, None, Some(8), (called, 500));
        run
    };
    run(false, 301).is_rejected("but version 10 was known to be committed");
    assert!(run(false, 300).judge().is_ok());
    assert!(run(true, 301).judge().is_ok());
}

#[test]
fn an_effect_is_durable_when_it_is_acknowledged_and_counts_once() {
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 201, 200]);
    run.is_rejected("it committed at version 10, and was answered");
    run.workload.late = true;
    assert!(run.judge().is_ok());
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 200, 200]);
    assert!(run.judge().is_ok());
    // The next version is not durable when the first operation returns.
    run.set(1, "b", 11, [100, 900, 1_000]);
    assert!(run.judge().is_ok());
    run.attempt(0, 19, Some((20, 200)), 200);
    run.is_rejected("took effect 2 times: at versions 10, 20");
}

#[test]
fn a_failed_operation_has_no_effect_and_an_answered_one_has_its_effect() {
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.ends(0, Outcome::Failed(Error::NOT_COMMITTED));
    run.is_rejected("without an effect, but it committed at version 10");
    let mut run = Run::default();
    run.operation(0, Op::Set("a".to_owned()), (100, 200));
    run.is_rejected("nothing was committed");
    run.ends(0, Outcome::Failed(Error::NOT_COMMITTED));
    assert!(run.judge().is_ok());
    run.ends(0, Outcome::Unknown(Error::COMMIT_UNKNOWN_RESULT));
    assert!(run.judge().is_ok());
}

#[test]
fn operations_that_promise_not_to_conflict_read_nothing_that_others_write() {
    let verdict = |conflict_free: bool, client: u16, read: (&'static str, &'static str)| {
        let workload = Register { conflict_free, ..Register::default() };
        let mut run = Run { workload, ..Run::default() };
        run.set(0, "a", 10, [100, 150, 200]);
        run.set(1, "b", 20, [100, 150, 200]);
        let mine = usize::from(client);
        let attempt = run.story.history.attempts[mine].as_mut().expect("an attempt");
        attempt.read_ranges = vec![KeyRange::new(read.0, read.1)];
        let truth = Truth::of(&run.story.history);
        conflict_free::judge(&run.any(), &run.plan, &run.story.history, &truth)
    };
    for client in [0, 1] {
        assert!(verdict(true, client, ("r", "s")).unwrap_err().message.contains("they can conflict"));
        assert_eq!(verdict(false, client, ("r", "s")), Ok(()));
        assert_eq!(verdict(true, client, ("s", "t")), Ok(()));
        assert_eq!(verdict(true, client, ("a", "register")), Ok(()));
    }
    // A client may read what it writes itself.
    let mut run = Run { workload: Register { conflict_free: true, ..Register::default() }, ..Run::default() };
    run.set(0, "a", 10, [100, 150, 200]);
    run.story.history.attempts[0].as_mut().expect("an attempt").read_ranges = vec![KeyRange::new("r", "s")];
    let truth = Truth::of(&run.story.history);
    assert_eq!(conflict_free::judge(&run.any(), &run.plan, &run.story.history, &truth), Ok(()));
}

#[test]
fn an_audit_reports_the_first_version_that_breaks_an_invariant() {
    let looked = |broken: std::ops::Range<Version>, from: Version, looked: Option<Version>| {
        let mut story = Story::default();
        for version in 1..=200 {
            let clear = Mutation::ClearRange(KeyRange::new("broken", "broken\0"));
            let state = if broken.contains(&version) { set("broken", "") } else { clear };
            story.log(version * 10, vec![(None, 0, vec![set("a", "1")]), (None, 1, vec![state])]);
        }
        let (workload, truth) = (AnyWorkload::new(<Register>::default()), Truth::of(&story.history));
        let judged = audits::judge(&workload, &Times::of(&story.history, &truth), from, looked);
        (judged.0, judged.1.map_err(|broken| broken.objection.message))
    };
    let audit = |broken, from| looked(broken, from, None);
    assert_eq!(audit(0..0, 0), (41, Ok(())));
    assert_eq!(audit(0..0, 1_990), (2, Ok(())));
    assert_eq!(audit(0..0, 2_000), (1, Ok(())));
    // The invariant is broken from this version on, which need not be an audited one.
    for first in [1, 2, 77, 199, 200] {
        let why = audit(first..201, 0).1.unwrap_err();
        assert_eq!(why, format!("from version {}: it is broken", first * 10));
    }
    // It is broken for a moment, in which somebody looks.
    assert_eq!(audit(77..79, 0).1, Ok(()));
    for at in [770, 775, 780, 789] {
        let why = looked(77..79, 0, Some(at)).1.unwrap_err();
        assert_eq!(why, "from version 770: it is broken", "{at}");
    }
    // Versions before the first audit may break the invariant.
    assert_eq!(audit(1..9, 95).1, Ok(()));
    assert!(audit(1..10, 95).1.unwrap_err().contains("it is broken"));
}

#[test]
fn a_claim_in_an_audit_is_of_the_time_of_the_audited_version() {
    let mut story = Story::default();
    for version in 1..=200 {
        let state = if version > 77 { set("broken", "") } else { set("a", "1") };
        story.log_at(version, vec![(None, 0, vec![state])], version as Nanos * 1_000);
    }
    let (workload, truth) = (AnyWorkload::new(<Register>::default()), Truth::of(&story.history));
    points::install();
    let broken = audits::judge(&workload, &Times::of(&story.history, &truth), 0, None).1.unwrap_err();
    let claims = points::take().broken;
    assert_eq!(broken.since, 78);
    // Every fifth version is audited, and then each of those between them.
    let moments: Vec<_> = claims.iter().map(|claim| claim.part.moment).collect();
    assert_eq!(moments, [Some(78_000), Some(80_000)]);
}

#[test]
fn what_is_stored_is_compared_with_the_model_at_audited_versions() {
    let judged = |wrong: Option<Version>, repaired: Version, broken: Option<Version>| {
        let mut run = Run::default();
        for number in 1..=100_u64 {
            let [called, durable, returned] = [10, 15, 20].map(|step| number * 20 + step);
            let (version, value) = (number as Version * 10, number.to_string());
            run.set(0, &value, version, [called, durable, returned]);
            if wrong.is_some_and(|wrong| version >= wrong && version < repaired) {
                // Nobody's, just after it.
                run.story.log(version + 5, vec![(None, 0, vec![set("register", "wrong")])]);
            }
            if broken == Some(version) {
                run.story.log(version + 6, vec![(None, 0, vec![set("broken", "")])]);
            }
        }
        let truth = Truth::of(&run.story.history);
        let (history, workload) = (&run.story.history, run.any());
        let replay = |beside: model::Beside<'_>| {
            model::judge(&workload, &run.plan, &run.operations, history, &truth, beside).0.map(drop)
        };
        let times = Times::of(history, &truth);
        let mut audits = audits::Audits::new(&workload, &times, 0, None);
        assert_eq!(replay(&mut |place, model| audits.advance(place, Some(model))), Ok(()));
        let (audited, invariants, differs) = audits.finish();
        let first = differs.and_then(|differs| {
            let mut search = audits::Search::new(&workload, &times, differs);
            assert_eq!(replay(&mut |place, model| search.advance(place, model)), Ok(()));
            search.finish()
        });
        (audited, invariants.map_err(|broken| broken.since), first.map(|broken| broken.objection.message))
    };
    assert_eq!(judged(None, 0, None), (35, Ok(()), None));
    let (_, invariants, first) = judged(Some(500), 600, None);
    assert_eq!(invariants, Ok(()));
    let text = "from version 505: holds Some(b\"wrong\") where the model has Some(\"50\")";
    assert_eq!(first.as_deref(), Some(text), "although it was repaired");
    // A broken invariant is one of its own.
    assert_eq!(judged(None, 0, Some(700)), (25, Err(706), None));
    assert_eq!(judged(Some(500), 600, Some(700)).1, Err(706));
}

#[test]
fn what_audits_read_is_in_proportion_to_what_was_written() {
    let audited = |keys: i64| {
        let mut story = Story::default();
        for version in 1..=2_000 {
            // Each key has a value of ten bytes.
            let key = format!("{:04}", version % keys);
            let written = Mutation::Set(key.into(), "0123456789".into());
            let state = if version > 1_777 { vec![written, set("broken", "")] } else { vec![written] };
            story.log(version, vec![(None, 0, state)]);
        }
        let workload = AnyWorkload::new(<Register>::default());
        let truth = Truth::of(&story.history);
        let times = Times::of(&story.history, &truth);
        let sound = audits::judge(&workload, &times, 1_999, None);
        assert!(sound.1.is_err());
        let (audited, broken) = audits::judge(&workload, &times, 0, None);
        (audited, broken.map_err(|broken| broken.since))
    };
    // 50 versions are between two audits, unless the database has more rows than four times as many.
    assert_eq!(audited(100), (37, Err(1_778)));
    assert_eq!(audited(2_000), (13, Err(1_778)));
}

#[test]
fn judged_waits_are_counted() {
    for (waits, judged) in [(false, 0), (true, 1)] {
        let mut run = Run { workload: Register { waits, ..Register::default() }, ..Run::default() };
        run.get(1, None, Some(10), (0, 6 * SECOND));
        let truth = Truth::of(&run.story.history);
        let judge =
            model::judge(&run.any(), &run.plan, &run.operations, &run.story.history, &truth, &mut |_, _| ());
        assert_eq!((judge.0.is_ok(), judge.1), (true, judged));
    }
}

/// The judge of a workload whose operations may have several effects.
#[test]
fn all_effects_are_durable_when_the_operation_is_answered() {
    let judged = |second: Nanos, late: bool| {
        let mut run = Run::default();
        run.set(0, "a", 10, [100, 150, 200]);
        run.attempt(0, 19, Some((20, second)), 200);
        let truth = Truth::of(&run.story.history);
        let workload = Register::<false> { late, ..Register::default() };
        model::judge(
            &AnyWorkload::new(workload),
            &run.plan,
            &run.operations,
            &run.story.history,
            &truth,
            &mut |_, _| (),
        )
        .0
    };
    assert!(judged(200, false).is_ok() && judged(201, true).is_ok());
    let Err(model::Mismatch::Layer(objection, _)) = judged(201, false) else { panic!("the second is late") };
    assert!(objection.message.contains("it committed at version 20, and was answered"), "{objection:?}");
}

#[test]
fn the_highest_read_version_that_an_answer_had_received_is_known() {
    // The first attempt of the first read reads at version 5, the second one at version 9.
    let run = |retried_until: Nanos, called: Nanos| {
        let mut run = Run::default();
        run.get(0, None, Some(5), (100, 200));
        run.attempt(0, 9, None, retried_until);
        run.get(1, None, Some(8), (called, 400));
        run
    };
    run(190, 201).is_rejected("but version 9 was known to be committed");
    assert!(run(190, 200).judge().is_ok());
    assert!(run(201, 201).judge().is_ok(), "it did not have it when it returned");
    let mut risky = run(190, 201);
    risky.story.history.attempts[1].as_mut().expect("an attempt").fresh = false;
    assert!(risky.judge().is_ok(), "a version that the client chose shows nothing");
}

#[test]
fn what_a_read_that_does_not_fit_changes_in_the_model_is_undone() {
    let mut run = Run { workload: Register { notes: true, ..Register::default() }, ..Run::default() };
    run.get(0, Some("a"), Some(5), (100, 500));
    run.attempt(0, 10, None, 450);
    run.set(1, "a", 10, [100, 150, 200]);
    // It does not fit at version 5, where nobody may read what it noted.
    run.get(1, None, Some(6), (100, 500));
    assert!(run.judge().is_ok(), "{:?}", run.judge());
}

/// A set of the first client that is reported to have failed, and commits at this version.
fn failed_but_committed(run: &mut Run, version: Version, when: Nanos) {
    run.set(0, "late", version, [when, when + 50, when + 100]);
    run.ends(0, Outcome::Failed(Error::NOT_COMMITTED));
}

#[test]
fn the_contradiction_with_the_earliest_place_is_the_finding() {
    let mut read_before_commit = Run::default();
    read_before_commit.set(0, "a", 10, [100, 150, 200]);
    read_before_commit.operation(0, Op::Get, (500, 600)).answers(0, Some("y"));
    read_before_commit.attempt(0, 19, Some((20, 550)), 600);
    read_before_commit.get(1, Some("x"), Some(10), (300, 400));
    let mut later_client_first = Run::default();
    later_client_first.set(0, "a", 10, [100, 150, 200]);
    later_client_first.set(0, "b", 20, [300, 350, 400]);
    later_client_first.get(0, Some("y"), Some(20), (500, 600));
    later_client_first.get(1, Some("x"), Some(10), (220, 290));
    let mut before_what_has_no_place = Run::default();
    before_what_has_no_place.set(0, "a", 10, [100, 150, 200]);
    failed_but_committed(&mut before_what_has_no_place, 20, 500);
    before_what_has_no_place.get(1, Some("x"), Some(10), (300, 400));
    for run in [read_before_commit, later_client_first, before_what_has_no_place] {
        run.is_rejected("operation 0 of client 1 (Get), which read at version 10: read Some(\"x\")");
    }
}

#[test]
fn a_read_that_may_still_fit_is_not_the_finding() {
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.operation(0, Op::Get, (500, 600)).answers(0, Some("y"));
    run.attempt(0, 19, Some((20, 550)), 600);
    // It does not fit at version 10, and nobody knows about version 30.
    run.get(1, Some("x"), Some(10), (300, 800));
    run.attempt(1, 30, None, 800);
    run.is_rejected("operation 1 of client 0 (Get), which committed at version 20");
}

#[test]
fn what_has_no_place_is_the_finding_if_nothing_contradicts_before() {
    let mut failed = Run::default();
    failed.set(0, "a", 10, [100, 150, 200]);
    failed_but_committed(&mut failed, 20, 500);
    failed.get(1, Some("x"), Some(20), (700, 800));
    failed.is_rejected("operation 1 of client 0 (Set(\"late\")): it was reported to have failed");
    // The first effect is as real as the second one.
    let mut twice = Run::default();
    twice.set(0, "a", 10, [100, 150, 500]);
    twice.attempt(0, 29, Some((30, 450)), 500);
    twice.get(1, Some("a"), Some(20), (300, 400));
    twice.get(1, Some("x"), Some(40), (600, 700));
    twice.is_rejected("operation 0 of client 0 (Set(\"a\")): took effect 2 times");
}

#[test]
fn what_a_client_reads_to_prepare_is_no_place() {
    let judged = |prepares| {
        let mut run = Run::default();
        run.set(0, "a", 10, [100, 150, 200]);
        run.set(0, "b", 20, [300, 350, 400]);
        run.get(1, Some("b"), Some(10), (250, 500));
        run.story.history.attempts[2].as_mut().expect("an attempt").prepares = prepares;
        run.judge().is_ok()
    };
    assert_eq!([false, true].map(judged), [false, true]);
}
