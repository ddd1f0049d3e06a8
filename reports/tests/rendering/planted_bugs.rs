//! Texts on planted bugs: a catch run and an exploration.

use crate::samples::small::COMMIT;
use insta::assert_snapshot;
use shaketable_reports::{
    BugReport, BugsReport, Catch, Conclusion, Cost, Ending, ExploreReport, ExploredFailure, ExploredPart,
    ExploredWorkload, Schedule, Shrunk, text,
};

fn bug(place: &str, name: &str, runs: u64, caught: Option<Catch>) -> BugReport {
    BugReport {
        place: place.into(),
        bug: name.into(),
        about: "what is wrong".into(),
        runs,
        cpu_ns: runs * 30_000_000,
        caught,
        wrong_judge: None,
        accuses_cluster: false,
        only_simulated: None,
    }
}

fn catch(workload: &str, seed: u64, judge: &str, bug: &str) -> Option<Catch> {
    Some(Catch {
        workload: workload.into(),
        seed,
        judge: judge.into(),
        message: "two students in one seat".into(),
        event_hash: "00c0ffee12345678".into(),
        replay: format!("shaketable replay {workload} {seed} --faults standard --bug {bug}"),
        shrunk: None,
    })
}

pub fn bugs() -> BugsReport {
    BugsReport {
        faults: "standard".into(),
        seeds: 0..200,
        real: false,
        ending: Ending::Complete,
        bugs: vec![
            bug("queue", "recipe-dequeue", 3, catch("queue", 2, "model", "recipe-dequeue")),
            bug("signup", "snapshot-seats", 12, catch("signup", 11, "audits", "snapshot-seats")),
            bug("cluster", "log-answers-early", 40, catch("cycle", 39, "durable", "log-answers-early")),
        ],
        cost: Cost { cpu_ns: 1_650_000_000, ..Cost::default() },
    }
}

#[test]
fn all_planted_bugs_caught() {
    assert_eq!(bugs().outcome(), Conclusion::Passed);
    assert_snapshot!(text::bugs(&bugs(), COMMIT));
}

/// The planted bugs with what remains of the runs that caught them.
fn shrunk_bugs() -> BugsReport {
    let mut report = bugs();
    let schedules = [Schedule::Even, Schedule::Ordered, Schedule::Drawn];
    for ((bug, schedule), n) in report.bugs.iter_mut().zip(schedules).zip(1..) {
        bug.caught.as_mut().expect("it was caught").shrunk = Some(Shrunk {
            operations: n * n,
            clients: n,
            faults: n - 1,
            replays: 400 * n,
            cpu_ns: 150_000_000 * n,
            is_minimal: n < 3,
            left_out: (3..n).map(|_| "Get".to_owned()).collect(),
            schedule,
            families: (1..n).map(|_| "unknown-committed".to_owned()).collect(),
            difference: None,
        });
    }
    report
}

#[test]
fn what_remains_of_the_runs_that_caught_planted_bugs() {
    let mut report = shrunk_bugs();
    assert_eq!(report.outcome(), Conclusion::Passed);
    assert_eq!(report.quantiles_shrunk(|shrunk| shrunk.operations), Some([4, 9, 9]));
    assert_eq!(bugs().quantiles_shrunk(|shrunk| shrunk.operations), None);
    assert_snapshot!(text::bugs(&report, COMMIT));
    let shrunk = report.bugs[1].caught.as_mut().and_then(|caught| caught.shrunk.as_mut());
    shrunk.expect("it was shrunk").difference = Some("check objects, and audits did".into());
    assert_eq!(report.outcome(), Conclusion::Harness);
    assert_snapshot!("a_shrunk_plan_that_gives_another_run", text::bugs(&report, COMMIT));
}

#[test]
fn a_planted_bug_missed() {
    let mut report = bugs();
    report.bugs[1].caught = None;
    report.bugs[1].wrong_judge = Some("seed 11: convergent rang, which judges the cluster".into());
    report.bugs.push(bug("index", "unread-old-zip", 17, None));
    report.ending = Ending::Interrupted;
    assert_eq!(report.outcome(), Conclusion::Violated);
    assert_snapshot!(text::bugs(&report, COMMIT));
}

#[test]
fn a_real_cluster_need_not_reach_every_planted_bug() {
    let mut report = BugsReport { real: true, seeds: 0..20, ..bugs() };
    report.bugs.truncate(2);
    report.bugs.push(bug("index", "unread-old-zip", 20, None));
    let dropped = BugReport {
        only_simulated: Some("dropped-operation".to_owned()),
        ..bug("queue", "forgets-pending", 20, None)
    };
    report.bugs.push(dropped);
    assert_eq!(report.outcome(), Conclusion::Passed);
    assert_snapshot!(text::bugs(&report, COMMIT));
    let outcome = |change: &dyn Fn(&mut BugsReport)| {
        let mut changed = report.clone();
        change(&mut changed);
        changed.outcome()
    };
    assert_eq!(outcome(&|report| report.real = false), Conclusion::Violated);
    assert_eq!(
        outcome(&|report| report.bugs[2].wrong_judge = Some("the cluster's".into())),
        Conclusion::Violated
    );
    let accused = |report: &mut BugsReport| {
        report.bugs.truncate(1);
        report.bugs[0].accuses_cluster = true;
    };
    assert_eq!(outcome(&accused), Conclusion::Harness, "although each bug is caught");
    assert_eq!(outcome(&|report| report.bugs.drain(..2).for_each(drop)), Conclusion::Violated);
    assert_eq!(outcome(&|report| report.ending = Ending::Interrupted), Conclusion::Violated);
    assert_eq!(outcome(&|report| report.ending = Ending::Lost), Conclusion::Harness);
}

#[test]
fn no_planted_bug_is_vacuous() {
    let report = BugsReport { bugs: Vec::new(), ..bugs() };
    assert_eq!(report.outcome(), Conclusion::Vacuous);
    assert_snapshot!(text::bugs(&report, COMMIT));
}

fn explored(workload: &str, bug: Option<&str>, failures: Vec<ExploredFailure>) -> ExploredWorkload {
    let part = |part: &str, ran| ExploredPart {
        part: part.into(),
        known: ran * 2,
        ran,
        impossible: ran / 10,
        failed: if part == "order" { failures.len() as u64 } else { 0 },
    };
    ExploredWorkload {
        workload: workload.into(),
        bug: bug.map(str::to_owned),
        kinds: 4,
        kinds_drawn: 5,
        parts: vec![part("plain", 8), part("outcome", 584), part("order", 435), part("two-outcomes", 21_111)],
        failures: failures.clone(),
        stopped: true,
        drawn: None,
        cpu_ns: 7_000_000_000,
    }
}

fn found(part: &str, harness: bool) -> ExploredFailure {
    ExploredFailure {
        part: part.into(),
        seed: 3,
        what: "operation 2 of client 0 and operation 3 of client 1 in the order: 0 reads, 1 reads, 1 commits, 0 commits"
            .into(),
        judge: "model".into(),
        message: "two students in one seat".into(),
        harness,
        replay: Some("shaketable replay target/shaketable/explore-signup-0.json".into()),
    }
}

#[test]
fn an_exploration() {
    let cost = Cost { cpu_ns: 1_650_000_000, ..Cost::default() };
    let workloads = vec![explored("queue", None, Vec::new()), explored("signup", None, Vec::new())];
    let passed = ExploreReport { seeds: 0..4, bugs: false, ending: Ending::Budget, workloads, cost };
    assert_eq!(passed.outcome(), Conclusion::Passed);
    let mut failed = passed.clone();
    failed.workloads[1] = explored("signup", None, vec![found("order", false)]);
    assert_eq!(failed.outcome(), Conclusion::Violated);
    assert_snapshot!(text::explore(&failed, COMMIT));
    let with = |change: fn(&mut ExploreReport)| {
        let mut changed = passed.clone();
        change(&mut changed);
        changed.outcome()
    };
    assert_eq!(with(|report| report.ending = Ending::Interrupted), Conclusion::Interrupted);
    assert_eq!(with(|report| report.workloads.clear()), Conclusion::Vacuous);
    assert_eq!(
        with(|report| report.workloads.iter_mut().for_each(|w| w.parts.truncate(1))),
        Conclusion::Vacuous
    );
    let accused = with(|report| report.workloads[0].failures.push(found("outcome", true)));
    assert_eq!(accused, Conclusion::Harness);
}

#[test]
fn planted_bugs_that_are_explored() {
    let mut caught = shrunk_bugs().bugs.into_iter().filter_map(|bug| bug.caught);
    let mut left = |workload, bug| ExploredWorkload {
        drawn: caught.next(),
        ..explored(workload, Some(bug), Vec::new())
    };
    let workloads = vec![
        explored("queue", Some("dequeue-as-printed"), vec![found("outcome", false)]),
        explored("signup", Some("snapshot-seats"), vec![found("order", false)]),
        left("index", "unread-old-zip"),
        left("index", "starts-alike"),
        left("log", "deaf-after-error"),
        left("log", "watches-once"),
    ];
    let report = ExploreReport {
        seeds: 0..4,
        bugs: true,
        ending: Ending::Complete,
        workloads,
        cost: Cost { cpu_ns: 1_650_000_000, ..Cost::default() },
    };
    assert_eq!(report.outcome(), Conclusion::Passed);
    assert_snapshot!(text::explore(&report, COMMIT));
}
