//! Snapshots of all output for people and machines, from made-up reports.

mod schema;

use insta::assert_snapshot;
use shaketable_reports::{
    BenchReport, Body, BugReport, BugsReport, Catch, Conclusion, ConformanceReport, ContractCase,
    ContractReport, Cost, Counters, Difference, Document, Ending, ExploreReport, ExploredFailure,
    ExploredPart, ExploredWorkload, Figure, FileReport, FindingReport, Impossible, PointReport, RunReport,
    SCHEMA, Schedule, Shrunk, SweepReport, Verdict, WorkloadReport, annotations, json, junit, markdown,
    run::LOST, text,
};
use std::collections::BTreeMap;

const COMMIT: &str = "0123456789ab";

fn counters(scale: u64) -> Counters {
    Counters {
        operations: 5_100 * scale,
        unknown_operations: 12 * scale,
        attempts: 6_300 * scale,
        committed: 4_012 * scale,
        conflicts: 811 * scale,
        unknown_committed: 42 * scale,
        unknown_not_committed: 37 * scale,
        late_landings: 9 * scale,
        retries: 1_204 * scale,
        faults: 350 * scale,
        audits: 240 * scale,
        recoveries: 3 * scale,
    }
}

fn families(scale: u64) -> BTreeMap<String, u64> {
    ["clog", "client-death", "kill", "late-landing", "one-row-batches", "partition", "unknown-committed"]
        .into_iter()
        .zip(1..)
        .map(|(family, n)| (family.to_owned(), n * 10 * scale))
        .collect()
}

fn finding(judge: &str, message: &str) -> FindingReport {
    FindingReport { judge: judge.into(), message: message.into() }
}

fn run(seed: u64, verdict: Verdict) -> RunReport {
    RunReport {
        workload: "queue".into(),
        seed,
        faults: "standard".into(),
        without: vec!["clog".into()],
        bug: Some("recipe-dequeue".into()),
        repro: None,
        other_findings: match verdict {
            Verdict::Stuck { .. } => {
                (0..7).map(|n| finding("answer", &format!("operation {n} is wrong"))).collect()
            }
            Verdict::Violated { .. } => vec![finding("check", "item 4 is left over")],
            _ => Vec::new(),
        },
        verdict,
        event_hash: "00c0ffee12345678".into(),
        events: 48_211,
        virtual_ns: 12_345_678_901,
        counters: counters(1),
        faults_delivered: families(1),
        configuration: "4 clients, 80 operations\n2 logs, 3 storage servers, 2 copies".into(),
        replay: format!(
            "shaketable replay queue {seed} --faults standard --without clog --bug recipe-dequeue"
        ),
        plan: None,
        shrunk: None,
        history: None,
    }
}

fn violated() -> Verdict {
    Verdict::Violated {
        judge: "model".into(),
        message: "operation 17 of client 2: dequeue answered item 9\n\nthe model answers item 4".into(),
    }
}

fn workload(name: &str, runs: u64) -> WorkloadReport {
    WorkloadReport {
        workload: name.into(),
        runs,
        passed: runs,
        counters: counters(runs),
        faults_delivered: families(runs),
        points: vec![
            PointReport { name: "seats are never negative".into(), passed: 9, held: 9 },
            PointReport { name: "the queue was empty".into(), passed: 5, held: 0 },
            PointReport { name: "the sixth class".into(), passed: 0, held: 0 },
        ],
        virtual_ns: runs * 12_000_000_000,
        cpu_ns: runs * 31_000_000,
        ..WorkloadReport::default()
    }
}

fn sweep(outcome: Conclusion, workloads: Vec<WorkloadReport>) -> SweepReport {
    SweepReport {
        faults: "standard".into(),
        real: false,
        bug: None,
        without: Vec::new(),
        seeds: 0..200,
        fresh: None,
        require_points: false,
        run_twice: 0,
        shard: None,
        jobs: 2,
        ending: Ending::Complete,
        outcome,
        workloads,
        cost: Cost { cpu_ns: 12_400_000_000, wall_ns: 6_300_000_000, peak_memory: 101_500_000 },
    }
}

fn failing() -> SweepReport {
    let seeds = [3, 17, 90, 91];
    let broken = WorkloadReport {
        passed: 196,
        violated: 3,
        stuck: 1,
        failing_seeds: seeds.to_vec(),
        failures: vec![
            run(3, violated()),
            run(17, Verdict::Stuck { message: "client 2 waits for get_range of operation 44".into() }),
            run(90, violated()),
            run(91, violated()),
        ],
        ..workload("queue", 200)
    };
    sweep(Conclusion::Violated, vec![workload("cycle", 200), broken])
}

fn document(body: Body) -> Document {
    Document { schema: SCHEMA, version: "0.1.0".into(), commit: COMMIT.into(), body }
}

#[test]
fn a_sweep_that_passed() {
    let mut report = sweep(Conclusion::Passed, vec![workload("cycle", 200), workload("queue", 200)]);
    report.workloads.iter_mut().for_each(|w| w.run_twice = 20);
    assert_snapshot!(text::sweep(&report, COMMIT));
}

#[test]
fn a_sweep_that_failed() {
    assert_snapshot!(text::sweep(&failing(), COMMIT));
}

#[test]
fn a_vacuous_shard_whose_budget_ran_out() {
    let mut quiet = workload("index", 3);
    quiet.vacuous = vec!["conflicts".into(), "late landings".into()];
    quiet.points.clear();
    let mut report = sweep(Conclusion::Vacuous, vec![quiet]);
    report.shard = Some((2, 8));
    report.ending = Ending::Budget;
    report.without = vec!["kill".into(), "late-landing".into()];
    assert_snapshot!(text::sweep(&report, COMMIT));
}

#[test]
fn an_interrupted_sweep_before_its_first_run() {
    let mut report = sweep(Conclusion::Vacuous, vec![WorkloadReport::default()]);
    report.workloads[0].workload = "cycle".into();
    report.ending = Ending::Interrupted;
    report.cost = Cost::default();
    assert_snapshot!(text::sweep(&report, COMMIT));
}

#[test]
fn a_sweep_whose_harness_failed() {
    let verdict = Verdict::Harness {
        judge: "determinism".into(),
        message: "the second run differs at event 1,204".into(),
    };
    let broken = WorkloadReport {
        passed: 199,
        harness: 1,
        run_twice: 200,
        differing: 1,
        failing_seeds: vec![5],
        failures: vec![run(5, verdict)],
        ..workload("queue", 200)
    };
    assert_snapshot!(text::sweep(&sweep(Conclusion::Harness, vec![broken]), COMMIT));
}

#[test]
fn the_outcome_is_the_worst_of_a_workload() {
    let mut w = workload("queue", 10);
    assert_eq!(w.outcome(), Conclusion::Passed);
    w.vacuous = vec!["conflicts".into()];
    assert_eq!(w.outcome(), Conclusion::Vacuous);
    w.stuck = 1;
    assert_eq!(w.outcome(), Conclusion::Violated);
    w.harness = 1;
    assert_eq!(w.outcome(), Conclusion::Harness);
    assert!([Conclusion::Passed, Conclusion::Vacuous, Conclusion::Violated, Conclusion::Harness].is_sorted());
}

#[test]
fn a_replay_that_passed() {
    let mut run = run(7, Verdict::Passed);
    run.bug = None;
    run.repro = Some("small.json".into());
    assert_snapshot!(text::replay(&run, COMMIT));
}

#[test]
fn a_replay_that_failed() {
    assert_snapshot!(text::replay(&run(7, violated()), COMMIT));
}

fn bug(place: &str, name: &str, runs: u64, caught: Option<Catch>) -> BugReport {
    BugReport {
        place: place.into(),
        bug: name.into(),
        about: "what is wrong".into(),
        runs,
        cpu_ns: runs * 30_000_000,
        caught,
        wrong_judge: None,
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

fn bugs() -> BugsReport {
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
            schedule,
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
    let workloads = vec![
        explored("queue", Some("dequeue-as-printed"), vec![found("outcome", false)]),
        explored("signup", Some("snapshot-seats"), vec![found("order", false)]),
        explored("index", Some("unread-old-zip"), Vec::new()),
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

#[test]
fn a_benchmark() {
    let figure = |name: &str, value, unit: &str, reach, at_most, profile: &str| Figure {
        name: name.into(),
        value,
        unit: unit.into(),
        reach,
        at_most,
        profile: profile.into(),
    };
    let report = BenchReport {
        processors: 2,
        figures: vec![
            figure(
                "cycle, calm",
                21_456.0,
                "commits per CPU second",
                Some(20_000.0),
                false,
                "10 clients\n1 log",
            ),
            figure("cycle, standard", 8_456.0, "commits per CPU second", Some(10_000.0), false, "10 clients"),
            figure("start and end of an empty run", 1.24, "CPU ms", Some(5.0), true, ""),
            figure("peak memory", 301.5, "MB", Some(300.0), true, ""),
            figure("virtual seconds per CPU second", 0.0, "", None, false, ""),
        ],
        cost: Cost { cpu_ns: 60_000_000_000, wall_ns: 61_000_000_000, peak_memory: 0 },
    };
    assert_snapshot!(text::bench(&report, COMMIT));
}

fn conformance() -> ConformanceReport {
    let file = |name: &str, cases, equal| FileReport {
        file: name.into(),
        cases,
        equal,
        impossible: Vec::new(),
        differences: Vec::new(),
    };
    let mut atomic = file("atomic.jsonl", 600, 598);
    atomic.impossible = vec![Impossible { case: "atomic-9".into(), reason: "waits for real time".into() }];
    atomic.differences = vec![Difference {
        case: "atomic-17".into(),
        step: Some(3),
        what: "get 61".into(),
        expected: "null".into(),
        actual: "62".into(),
    }];
    ConformanceReport { files: vec![atomic, file("ryw.jsonl", 1_500, 1_500)] }
}

#[test]
fn a_conformance_check() {
    assert_eq!(conformance().outcome(), Conclusion::Harness);
    assert_snapshot!("conformance_different", text::conformance(&conformance()));
    let mut report = conformance();
    report.files.remove(0);
    assert_eq!(report.outcome(), Conclusion::Passed);
    assert_snapshot!("conformance_equal", text::conformance(&report));
    report.files.clear();
    assert_eq!(report.outcome(), Conclusion::Vacuous);
    assert_snapshot!("conformance_empty", text::conformance(&report));
}

fn contract() -> ContractReport {
    let case = |name: &str, broken: Option<&str>| ContractCase {
        name: name.into(),
        promise: "Of two writers of what the other has read, one conflicts.".into(),
        broken: broken.map(str::to_owned),
    };
    let broken = Some("the second commit: promised [not_committed (1020)], seen success");
    ContractReport {
        cases: vec![
            case("errors/retry/limit", None),
            case("reads/conflict/read", broken),
            case("reads/conflict/write", None),
        ],
    }
}

#[test]
fn a_contract() {
    assert_eq!(contract().outcome(), Conclusion::Harness);
    assert_snapshot!("contract_broken", text::contract(&contract()));
    let mut report = contract();
    report.cases.remove(1);
    assert_eq!(report.outcome(), Conclusion::Passed);
    assert_snapshot!("contract_kept", text::contract(&report));
    report.cases.clear();
    assert_eq!(report.outcome(), Conclusion::Vacuous);
    assert_snapshot!("contract_empty", text::contract(&report));
}

#[test]
fn a_sweep_whose_cluster_was_lost() {
    let report = SweepReport { ending: Ending::Lost, ..failing() };
    assert!(text::sweep(&report, COMMIT).contains("\nThe cluster was lost; no further seed was run.\n"));
    let verdict = Verdict::Harness { judge: LOST.into(), message: "no answer within 30 s".into() };
    assert!(text::replay(&run(7, verdict), COMMIT).starts_with("CLUSTER LOST queue, seed 7\n  no answer"));
}

#[test]
fn json_of_a_failing_sweep() {
    let mut report = failing();
    report.workloads.remove(0);
    report.workloads[0].failures.truncate(2);
    assert_snapshot!(json::render(&document(Body::Sweep(report))));
}

/// A sweep with what CI systems must be shown: failures of all kinds, one that was not kept, names and texts with
/// markup, and a workload that is vacuous.
fn for_ci() -> SweepReport {
    let mut report = failing();
    report.fresh = Some("2026-11-23".into());
    report.require_points = true;
    let harness = Verdict::Harness { judge: "durable".into(), message: "`a` <b> & \u{1b}[1m |".into() };
    let broken = &mut report.workloads[1];
    broken.failures[3] = run(91, harness);
    (broken.violated, broken.harness) = (3, 1);
    broken.failing_seeds.push(92);
    let vacuous = WorkloadReport {
        vacuous: vec!["conflicts".into(), "retries".into()],
        missed_points: vec!["the queue was empty".into()],
        ..workload("leased_queue", 200)
    };
    report.workloads.push(vacuous);
    report.outcome = SweepReport::outcome_of(report.ending, &report.workloads);
    report
}

fn junit(body: Body) -> String {
    let text = junit::render(&document(body)).expect("it can be written").expect("it has a form for JUnit");
    assert_eq!(schema::check(&text), Ok(()), "{text}");
    text
}

#[test]
fn a_sweep_for_ci() {
    assert_snapshot!("ci_junit", junit(Body::Sweep(for_ci())));
    assert_snapshot!("ci_markdown", markdown::render(&document(Body::Sweep(for_ci()))).expect("a summary"));
    assert_snapshot!("ci_annotations", annotations::render(&Body::Sweep(for_ci())));
    assert_snapshot!("ci_text", text::sweep(&for_ci(), COMMIT));
}

#[test]
fn planted_bugs_for_ci() {
    let mut report = bugs();
    // One is missed, one is blamed on the wrong side, and one is caught.
    report.bugs[0] = BugReport { runs: 200, caught: None, ..report.bugs[0].clone() };
    let wrong_judge = Some("seed 7 was blamed on the cluster by durable: <lost>".into());
    report.bugs[1] = BugReport { caught: None, wrong_judge, ..report.bugs[1].clone() };
    assert_snapshot!("ci_bugs_junit", junit(Body::Bugs(report.clone())));
    assert_snapshot!(
        "ci_bugs_markdown",
        markdown::render(&document(Body::Bugs(report.clone()))).expect("a summary")
    );
    assert_snapshot!("ci_bugs_annotations", annotations::render(&Body::Bugs(report)));
    let early = BugsReport {
        ending: Ending::Budget,
        bugs: vec![BugReport { runs: 3, caught: None, ..bugs().bugs[0].clone() }],
        ..bugs()
    };
    assert!(junit(Body::Bugs(early.clone())).contains("<skipped message=\"not done\""));
    assert_eq!(annotations::render(&Body::Bugs(early)), "");
}

#[test]
fn a_sweep_that_ended_early_is_an_error_for_ci() {
    for ending in [Ending::Lost, Ending::Interrupted, Ending::Unwritable] {
        let report = SweepReport { ending, ..sweep(Conclusion::Passed, vec![workload("cycle", 200)]) };
        assert!(junit(Body::Sweep(report.clone())).contains("errors=\"1\""), "{ending:?}");
        assert!(annotations::render(&Body::Sweep(report)).starts_with("::error title=ended early::"));
    }
    let report =
        SweepReport { ending: Ending::Budget, ..sweep(Conclusion::Passed, vec![workload("cycle", 200)]) };
    assert!(junit(Body::Sweep(report.clone())).contains("errors=\"0\""));
    assert_eq!(annotations::render(&Body::Sweep(report)), "");
}

#[test]
fn annotations_are_at_most_ten_lines() {
    let mut report = failing();
    report.workloads[1].failures = (0..40).map(|seed| run(seed, violated())).collect();
    let lines = annotations::render(&Body::Sweep(report));
    assert_eq!(lines.lines().count(), 10);
    assert!(lines.ends_with("::error title=31 more::The report has all of them.\n"), "{lines}");
}

#[test]
fn a_failure_gives_the_replay_line_of_another_seed() {
    let line = "shaketable replay queue 44 --faults standard --without clog --bug recipe-dequeue";
    assert_eq!(run(3, violated()).replay_of(44).as_deref(), Some(line));
    let repro = RunReport { replay: "shaketable replay small.json".into(), ..run(3, violated()) };
    assert_eq!(repro.replay_of(44), None);
}

#[test]
fn every_report_reads_back_as_it_was_written() {
    let large = RunReport { seed: u64::MAX, ..run(1, violated()) };
    let bench = BenchReport { processors: 2, figures: Vec::new(), cost: Cost::default() };
    for body in [
        Body::Sweep(failing()),
        Body::Replay(Box::new(large)),
        Body::Bugs(bugs()),
        Body::Bench(bench),
        Body::Conformance(conformance()),
        Body::Contract(contract()),
    ] {
        let document = document(body);
        assert_eq!(json::parse(&json::render(&document)), Ok(document));
    }
}

#[test]
fn an_incomplete_or_foreign_report_is_refused_in_one_line() {
    let whole = json::render(&document(Body::Bugs(bugs())));
    let foreign = whole.replace(&format!("\"schema\": {SCHEMA}"), "\"schema\": 99");
    for text in [&whole[..whole.len() / 2], "", "{}", &foreign] {
        let refusal = json::parse(text).expect_err("must be refused");
        assert_eq!(refusal.lines().count(), 1, "{refusal}");
    }
    assert_eq!(
        json::parse(&foreign),
        Err(format!("report of schema 99, this program reads schema {SCHEMA}"))
    );
}
