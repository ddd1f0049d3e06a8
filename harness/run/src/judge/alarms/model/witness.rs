//! Tests of the witnesses of the judges of a workload.

use super::{super::witness, Op, Register, Run};
use crate::{
    describe::erased::AnyWorkload,
    describe::workload::Outcome,
    judge::finding::{Finding, Kind, Witness},
    judge::{
        Truth,
        alarms::{Story, set},
        audits, conflict_free,
        times::Times,
    },
};
use shaketable_sim::{
    history::{Call, Reported},
    ids::AttemptId,
    proto::{KeyRange, Mutation},
    rt::SECOND,
};
use shaketable_tx::{Error, Isolation};

impl Run {
    /// What an attempt reads.
    fn reads(&mut self, attempt: usize, key: &'static str) {
        let isolation = Isolation::Snapshot;
        let get = Call::Get { key: key.into(), isolation, answer: Some(None) };
        self.story.history.attempts[attempt].as_mut().expect("an attempt").calls.push(get);
    }
}

/// The witness of an operation, these attempts and keys, and what was expected and found.
fn of((client, index): (usize, usize), attempts: &[u32], keys: &[&'static str]) -> Witness {
    Witness { operations: vec![(client, index)], ..witness(attempts, keys, None) }
}

fn differs(witness: Witness, expected: &str, found: &str) -> Witness {
    Witness { expected: Some(expected.to_owned()), found: Some(found.to_owned()), ..witness }
}

#[test]
fn a_wrong_answer_names_its_operation_and_who_wrote_what_it_read() {
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.set(0, "b", 20, [210, 220, 230]);
    run.get(1, Some("b"), Some(20), (240, 290));
    run.get(1, Some("a"), Some(20), (300, 400));
    run.reads(3, "register");
    run.reads(3, "another key");
    let found = differs(of((1, 1), &[1, 3], &["register"]), "Some(\"b\")", "Some(\"a\")");
    assert_eq!(run.witness(), found);
    // An operation without a transaction.
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.get(1, Some("b"), None, (300, 400));
    assert_eq!(run.witness(), differs(of((1, 0), &[], &[]), "Some(\"a\")", "Some(\"b\")"));
}

#[test]
fn a_wrong_effect_names_what_changed_between_its_read_version_and_its_commit() {
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.set(0, "b", 20, [210, 220, 900]);
    run.operation(1, Op::Get, (100, 400)).answers(1, Some("a")).attempt(1, 10, Some((30, 390)), 400);
    run.reads(2, "register");
    let found = differs(of((1, 0), &[0, 1, 2], &["register"]), "Some(\"b\")", "Some(\"a\")");
    assert_eq!(run.witness(), found);
    // If it read nothing that an operation wrote, it names what it wrote itself.
    run.story.history.attempts[2].as_mut().expect("an attempt").calls.clear();
    let found = differs(of((1, 0), &[2], &["register"]), "Some(\"b\")", "Some(\"a\")");
    assert_eq!(run.witness(), found);
}

#[test]
fn an_effect_that_read_nothing_names_what_its_operation_had_read_before() {
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.set(0, "b", 20, [210, 220, 900]);
    run.operation(1, Op::Get, (100, 400)).answers(1, Some("a")).attempt(1, 10, None, 300);
    run.attempt(1, 25, Some((30, 390)), 400);
    run.reads(2, "register");
    let found = of((1, 0), &[0, 1, 2, 3], &["register"]);
    assert_eq!(run.witness(), differs(found, "Some(\"b\")", "Some(\"a\")"));
}

#[test]
fn an_operation_without_an_effect_names_what_it_would_have_written() {
    let mut run = Run::default();
    run.operation(0, Op::Set("a".to_owned()), (100, 200)).attempt(0, 5, None, 200);
    let attempt = run.story.history.attempts[0].as_mut().expect("an attempt");
    attempt.calls.push(Call::Write(set("register", "a")));
    assert_eq!(run.witness(), of((0, 0), &[0], &["register"]));
}

#[test]
fn an_early_answer_names_its_effect() {
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 201, 200]);
    assert_eq!(run.witness(), of((0, 0), &[0], &[]));
}

#[test]
fn a_second_effect_names_both_attempts_and_what_both_wrote() {
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.attempt(0, 12, None, 200);
    run.attempt(0, 19, Some((20, 190)), 200);
    assert_eq!(run.witness(), of((0, 0), &[0, 2], &["register"]));
}

#[test]
fn a_failed_operation_names_its_effect() {
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.ends(0, Outcome::Failed(Error::NOT_COMMITTED));
    let found = differs(of((0, 0), &[0], &["register"]), "no effect", "a commit at version 10");
    assert_eq!(run.witness(), found);
}

#[test]
fn a_stale_read_names_what_it_missed() {
    let mut run = Run::default();
    run.set(0, "a", 10, [100, 150, 200]);
    run.set(0, "b", 20, [300, 350, 400]);
    run.get(1, Some("a"), Some(15), (401, 500));
    run.reads(2, "register");
    let found = of((1, 0), &[1, 2], &["register"]);
    assert_eq!(run.witness(), differs(found, "a read version of at least 20", "read version 15"));
    // An answer shows that the version is committed.
    let mut run = Run::default();
    run.operation(0, Op::Set("a".to_owned()), (100, 900)).attempt(0, 9, Some((10, 150)), 900);
    run.ends(0, Outcome::Unknown(Error::OPERATION_CANCELLED));
    run.story.history.attempts[0].as_mut().expect("an attempt").reported = Reported::Nothing;
    run.get(1, Some("a"), Some(10), (200, 300));
    run.get(1, None, Some(8), (301, 500));
    let found = of((1, 1), &[0, 2], &[]);
    assert_eq!(run.witness(), differs(found, "a read version of at least 10", "read version 8"));
}

#[test]
fn a_late_answer_names_the_transaction_that_made_it_possible() {
    let mut run = Run { workload: Register { waits: true, ..Register::default() }, ..Run::default() };
    run.set(0, "a", 10, [100, 150, 200]);
    run.set(0, "b", 20, [210, 220, 230]);
    run.get(1, Some("b"), Some(20), (240, 4 * SECOND));
    run.reads(2, "register");
    let found = of((1, 0), &[1, 2], &["register"]);
    assert_eq!(run.witness(), differs(found, "an answer by 1.000 s", "an answer at 4.000 s"));
    // Nothing may be answered before the time limit, whatever was read.
    let mut run = Run { workload: Register { waits: true, ..Register::default() }, ..Run::default() };
    run.get(1, None, Some(20), (240, 4 * SECOND));
    run.reads(0, "register");
    assert_eq!(run.witness(), differs(of((1, 0), &[0], &[]), "5.000 s", "4.000 s"));
}

#[test]
fn operations_that_can_conflict_are_named_with_their_attempts_and_the_keys() {
    let verdict = |read: (&'static str, &'static str), written: Mutation| {
        let workload = Register { conflict_free: true, ..Register::default() };
        let mut run = Run { workload, ..Run::default() };
        run.operation(0, Op::Get, (100, 200)).attempt(0, 9, None, 200);
        run.operation(0, Op::Set("a".to_owned()), (300, 400)).attempt(0, 11, None, 400);
        run.story.log(12, vec![(Some(AttemptId(1)), 0, vec![written])]);
        run.operation(1, Op::Set("b".to_owned()), (100, 200)).attempt(1, 19, None, 200);
        let [.., Some(attempt)] = &mut run.story.history.attempts[..] else { panic!("an attempt") };
        attempt.read_ranges = vec![KeyRange::new(read.0, read.1)];
        let truth = Truth::of(&run.story.history);
        let judged = conflict_free::judge(&run.any(), &run.plan, &run.story.history, &truth);
        Finding::of(Kind::ConflictFree, *judged.unwrap_err()).witness
    };
    let named = |keys| Witness { operations: vec![(0, 1), (1, 0)], ..witness(&[1, 2], keys, None) };
    assert_eq!(verdict(("r", "s"), set("register", "a")), named(&["register"]));
    let cleared = || Mutation::ClearRange(KeyRange::new("c", "g"));
    assert_eq!(verdict(("e", "k"), cleared()), named(&["e", "g"]));
    assert_eq!(verdict(("a", "f"), cleared()), named(&["c", "f"]));
}

#[test]
fn a_broken_invariant_names_who_broke_it_and_what_of_it_the_audit_read() {
    let mut story = Story::default();
    let [first, second, breaks] = [0, 1, 2].map(|_| story.attempt(0, Vec::new()).0);
    story.log(10, vec![(Some(first), 0, vec![set("other", "1")])]);
    story.log(20, vec![(Some(second), 0, vec![set("broken", "1")])]);
    let clear = Mutation::ClearRange(KeyRange::new("broken", "broken\0"));
    story.log(30, vec![(None, 0, vec![clear])]);
    story.log(
        40,
        vec![(None, 0, vec![set("a", "1")]), (Some(breaks), 1, vec![set("broken", "2"), set("b", "1")])],
    );
    let judged = |from| {
        let truth = Truth::of(&story.history);
        let (workload, times) = (AnyWorkload::new(<Register>::default()), Times::of(&story.history, &truth));
        let broken = audits::judge(&workload, &times, from, None).1.unwrap_err();
        (broken.since, Finding::of(Kind::Audit, broken.objection).witness)
    };
    assert_eq!(judged(30), (40, witness(&[2], &["broken"], None)));
    assert_eq!(judged(0), (20, witness(&[1], &["broken"], None)));
    // The setup broke it.
    assert_eq!(judged(40), (40, Witness::default()));
}
