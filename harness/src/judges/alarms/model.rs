//! The judges of a workload are shown histories of a register, sound and broken ones.

use super::{Story, set};
use crate::{
    judges::{Truth, audits, conflict_free, model},
    workload::Operation,
    workload::{Outcome, Step, Workload},
};
use bytes::Bytes;
use proptest::strategy::{BoxedStrategy, Just, Strategy};
use serde::{Deserialize, Serialize};
use shaketable_layers::tx::{self, Database, Error, Isolation, Transaction};
use shaketable_sim::{
    history::{ClientId, Reported},
    proto::{KeyRange, Mutation, Version},
    rt::Nanos,
    seed::Stream,
};

/// One register, of which reads may be old, answers may be early, and writes promise not to conflict, if it says so.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Register {
    stale: bool,
    late: bool,
    free: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Op {
    Set(String),
    Get,
}

impl Workload for Register {
    type Op = Op;
    /// What was read.
    type Answer = Option<String>;
    type Session<D: Database> = ();
    /// What it holds, and the stamp of its last write.
    type Model = (Option<String>, Option<[u8; 10]>);

    const NAME: &'static str = "register";
    const ABOUT: &'static str = "one register";

    fn draw(_: &mut Stream, _: Option<&str>) -> Register {
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
        self.free && matches!(op, Op::Set(_))
    }
    fn may_read_stale(&self, _: &Op) -> bool {
        self.stale
    }
    fn may_land_late(&self, _: &Option<String>) -> bool {
        self.late
    }
    async fn open<D: Database>(&self, _: &D, _: usize) -> tx::Result<()> {
        Ok(())
    }
    async fn apply<D: Database>(&self, _: &mut (), _: &Op) -> Outcome<Option<String>> {
        Outcome::Answered(None)
    }
    fn model(&self) -> Self::Model {
        (None, None)
    }
    fn step(&self, (holds, stamp): &mut Self::Model, step: &Step<'_, Self>) -> Result<(), String> {
        match (step.op, step.answer) {
            (Op::Set(value), _) if step.committed => {
                assert_eq!(step.mutations.len(), 1);
                (*holds, *stamp) = (Some(value.clone()), step.stamp);
            }
            (Op::Get, Some(read)) if read != holds => return Err(format!("read {read:?}, holds {holds:?}")),
            (Op::Set(_), Some(_)) => return Err("nothing was committed".into()),
            _ => {}
        }
        Ok(())
    }
    async fn audit<D: Database>(&self, tx: &D::Transaction) -> tx::Result<Result<(), String>> {
        let broken = tx.get(b"broken", Isolation::Serializable).await?;
        Ok(broken.map_or(Ok(()), |_| Err("it is broken".into())))
    }
    async fn check<D: Database>(&self, _: &D, _: &Self::Model) -> tx::Result<Result<(), String>> {
        Ok(Ok(()))
    }
}

/// The register's history: what each of two clients did.
#[derive(Default)]
struct Run {
    workload: Register,
    story: Story,
    plan: [Vec<Op>; 2],
    operations: [Vec<Operation<Option<String>>>; 2],
}

impl Run {
    fn operation(&mut self, client: usize, op: Op, (called, returned): (Nanos, Nanos)) -> &mut Self {
        self.plan[client].push(op);
        self.operations[client].push(Operation { called, returned, outcome: Some(Outcome::Answered(None)) });
        self
    }

    fn ends(&mut self, client: usize, outcome: Outcome<Option<String>>) -> &mut Self {
        self.operations[client].last_mut().expect("an operation").outcome = Some(outcome);
        self
    }

    fn answers(&mut self, client: usize, read: Option<&str>) -> &mut Self {
        self.ends(client, Outcome::Answered(read.map(str::to_owned)))
    }

    /// An attempt of the client's last operation that read at this version; committed at another one, it wrote
    /// and was durable from then on.
    fn attempt(
        &mut self,
        client: usize,
        read: Version,
        committed: Option<(Version, Nanos)>,
        ended: Nanos,
    ) -> &mut Self {
        let operation = self.plan[client].len() - 1;
        let value = match &self.plan[client][operation] {
            Op::Set(value) => value.clone(),
            Op::Get => "by a get".to_owned(),
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

    /// A set at `version`, called, durable and answered at these times.
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

    fn judge(&self) -> Result<<Register as Workload>::Model, String> {
        let truth = Truth::of(&self.story.history);
        let judged = model::judge(&self.workload, &self.plan, &self.operations, &self.story.history, &truth);
        judged.map_err(|unfit| match unfit {
            model::Unfit::Layer(why) => why,
            model::Unfit::Model(why) => panic!("{why}"),
        })
    }

    fn is_refused(&self, why: &str) {
        let said = self.judge().expect_err("it is not sound");
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_register_that_is_read_as_it_was_written_stands() {
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.get(1, Some("a"), Some(10), (300, 400));
    run.set(0, "b", 20, [410, 450, 500]);
    run.get(1, Some("b"), Some(20), (600, 700));
    let (holds, stamp) = run.judge().expect("sound");
    assert_eq!(holds.as_deref(), Some("b"));
    assert_eq!(stamp, Some([0, 0, 0, 0, 0, 0, 0, 20, 0, 0]));
}

#[test]
fn a_read_of_another_value_is_heard_wherever_it_was_read() {
    for at in [Some(10), None] {
        let mut run = Run::default();
        run.set(0, "a", 10, [100, 150, 200]);
        run.get(1, Some("b"), at, (300, 400));
        run.is_refused("read Some(\"b\"), holds Some(\"a\")");
    }
}

#[test]
fn an_answer_without_a_trace_is_from_between_its_call_and_its_return() {
    let during = |called, returned, read| {
        let mut run = Run::default();
        run.set(0, "a", 10, [100, 150, 200]);
        run.set(0, "b", 20, [300, 350, 400]);
        run.set(0, "c", 30, [500, 550, 600]);
        run.get(1, Some(read), None, (called, returned));
        run
    };
    // Acknowledged at 400 and 600, seen by others from 350 and 550 on.
    for (called, returned, read) in [(390, 560, "a"), (390, 560, "b"), (390, 560, "c"), (401, 540, "b")] {
        during(called, returned, read).judge().unwrap_or_else(|why| panic!("{called} {returned}: {why}"));
    }
    during(401, 560, "a").is_refused("neither read nor wrote");
    during(390, 549, "c").is_refused("neither read nor wrote");
}

#[test]
fn what_was_acknowledged_before_the_call_is_read() {
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.set(0, "b", 20, [300, 350, 400]);
    run.get(1, Some("a"), Some(15), (401, 500));
    run.is_refused("read at version 15, but version 20 (attempt 1) was known to be committed");
    run.workload.stale = true;
    assert!(run.judge().is_ok());
    // Called before the answer was there, it may be older.
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.set(0, "b", 20, [300, 350, 400]);
    run.get(1, Some("a"), Some(15), (400, 500));
    assert!(run.judge().is_ok());
}

#[test]
fn an_operation_is_judged_by_the_looks_that_it_may_have_answered_from() {
    // Two attempts: the first one read before what was acknowledged.
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.get(1, Some("a"), Some(5), (201, 300));
    run.attempt(1, 10, None, 290);
    assert!(run.judge().is_ok());
    run.answers(1, None);
    run.is_refused("read None, holds Some(\"a\")");
}

#[test]
fn what_an_answer_shows_is_committed_for_everybody() {
    // The set's client never hears of it; somebody reads it, and somebody else does not, later.
    let told = |late: bool, called: Nanos| {
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
    told(false, 301).is_refused("but version 10 was known to be committed");
    assert!(told(false, 300).judge().is_ok());
    assert!(told(true, 301).judge().is_ok());
}

#[test]
fn an_effect_is_durable_when_it_is_acknowledged_and_counts_once() {
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 201, 200]);
    run.is_refused("before version 10 was durable");
    run.workload.late = true;
    assert!(run.judge().is_ok());
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 200, 200]);
    assert!(run.judge().is_ok());
    // The next version is not visible yet.
    run.set(1, "b", 11, [100, 900, 1_000]);
    assert!(run.judge().is_ok());
    run.attempt(0, 19, Some((20, 200)), 200);
    run.is_refused("took effect 2 times: at versions 10, 20");
}

#[test]
fn who_gave_up_has_no_effect_and_who_answered_has_one() {
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.ends(0, Outcome::GaveUp(Error::NOT_COMMITTED));
    run.is_refused("has no effect, but it committed at version 10");
    let mut run = Run::default();
    run.operation(0, Op::Set("a".to_owned()), (100, 200));
    run.is_refused("nothing was committed");
    run.ends(0, Outcome::GaveUp(Error::NOT_COMMITTED));
    assert!(run.judge().is_ok());
    run.ends(0, Outcome::Unknown(Error::COMMIT_UNKNOWN_RESULT));
    assert!(run.judge().is_ok());
}

#[test]
fn operations_that_promise_not_to_conflict_read_nothing_that_others_write() {
    let tell = |free: bool, client: u16, read: (&'static str, &'static str)| {
        let mut run = Run { workload: Register { free, ..Register::default() }, ..Run::default() };
        run.set(0, "a", 10, [100, 150, 200]);
        run.set(1, "b", 20, [100, 150, 200]);
        let mine = usize::from(client);
        let attempt = run.story.history.attempts[mine].as_mut().expect("an attempt");
        attempt.read_ranges = vec![KeyRange::new(read.0, read.1)];
        let truth = Truth::of(&run.story.history);
        conflict_free::judge(&run.workload, &run.plan, &run.story.history, &truth)
    };
    for client in [0, 1] {
        assert!(tell(true, client, ("r", "s")).unwrap_err().contains("they can conflict"));
        assert_eq!(tell(false, client, ("r", "s")), Ok(()));
        assert_eq!(tell(true, client, ("s", "t")), Ok(()));
        assert_eq!(tell(true, client, ("a", "register")), Ok(()));
    }
    // What it writes itself it may read.
    let mut run = Run { workload: Register { free: true, ..Register::default() }, ..Run::default() };
    run.set(0, "a", 10, [100, 150, 200]);
    run.story.history.attempts[0].as_mut().expect("an attempt").read_ranges = vec![KeyRange::new("r", "s")];
    let truth = Truth::of(&run.story.history);
    assert_eq!(conflict_free::judge(&run.workload, &run.plan, &run.story.history, &truth), Ok(()));
}

#[test]
fn an_audit_names_the_first_version_that_breaks_an_invariant() {
    let tell = |broken: std::ops::Range<Version>, from: Version| {
        let mut story = Story::default();
        for version in 1..=200 {
            let clear = Mutation::ClearRange(KeyRange::new("broken", "broken\0"));
            let state = if broken.contains(&version) { set("broken", "") } else { clear };
            story.log(version * 10, vec![(None, 0, vec![set("a", "1")]), (None, 1, vec![state])]);
        }
        audits::judge(&Register::default(), &Truth::of(&story.history), from)
    };
    let (audited, judged) = tell(0..0, 0);
    assert_eq!((audited, judged), (41, Ok(())));
    assert_eq!(tell(0..0, 1_990), (2, Ok(())));
    assert_eq!(tell(0..0, 2_000), (1, Ok(())));
    // Broken from then on, wherever the audits fall.
    for first in [1, 2, 77, 199, 200] {
        let why = tell(first..201, 0).1.unwrap_err();
        assert_eq!(why, format!("from version {}: it is broken", first * 10));
    }
    // What was mended before the first audit is none of its business.
    assert_eq!(tell(1..9, 95).1, Ok(()));
    assert!(tell(1..10, 95).1.unwrap_err().contains("it is broken"));
}
