//! Snapshots of all output for people and machines, from made-up reports.

mod schema;

use insta::assert_snapshot;
use shaketable_reports::{
    Access, AdviceEntry, AdviceReport, BenchReport, Body, BugReport, BugsReport, CallEntry, Catch,
    Conclusion, ConformanceReport, ContractCase, ContractReport, Cost, Counters, Difference, Document,
    Ending, EventEntry, EventKind, ExploreReport, ExploredFailure, ExploredPart, ExploredWorkload,
    FailureList, Fate, Figure, FileReport, FindingReport, Impossible, OperationEntry, PointReport,
    Regression, RegressionReport, RegressionsReport, Replayed, RowEntry, RunHistory, RunReport, SCHEMA,
    Schedule, Severity, Shrunk, ShrunkRun, Sighting, Size, SweepReport, TransactionEntry, Verdict,
    WitnessEntry, WorkloadAdvice, WorkloadRegressions, WorkloadReport, annotations, json, junit, markdown,
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
        regressions: None,
        strict_regressions: false,
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
    Document { schema: SCHEMA, version: "0.1.0".into(), commit: COMMIT.into(), advice: Vec::new(), body }
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

/// Two clients add to a counter. The first one does it twice: its first attempt has an unknown result, and committed.
fn history() -> RunHistory {
    let operation = |client, index, call: &str, (called, returned), outcome: &str| OperationEntry {
        client,
        index,
        call: call.into(),
        called,
        returned: Some(returned),
        outcome: outcome.into(),
    };
    let row = |value: &str, writer| RowEntry {
        key: "(\"counter\",)".into(),
        value: Some(value.into()),
        writer,
        shared: true,
    };
    let call = |access, row| CallEntry {
        access,
        at: "(\"counter\",)".into(),
        rows: vec![row],
        answered: true,
        shared: true,
        ..CallEntry::default()
    };
    let transaction =
        |id, client, at: (u64, u64), versions: (i64, i64), calls, fate, end: &str| TransactionEntry {
            id,
            client: Some(client),
            operation: Some(0),
            began: at.0,
            read_version: Some(versions.0),
            calls,
            commit_sent: Some(at.1 - 500_000),
            durable: Some(at.1),
            ended: at.1 + 100_000,
            fate,
            version: Some(versions.1),
            end: end.into(),
            refused_by: None,
        };
    let unknown = "failed: commit_unknown_result (1021); it committed at version 20";
    let add = |from: &str, to: &str, writer| {
        vec![call(Access::Get, row(from, Some(writer))), call(Access::Set, row(to, None))]
    };
    RunHistory {
        operations: vec![
            operation(0, 0, "Add(1)", (1_000_000, 9_000_000), "returns ()"),
            operation(1, 0, "Add(10)", (12_000_000, 15_000_000), "returns ()"),
        ],
        transactions: vec![
            TransactionEntry { id: 0, client: None, fate: Fate::Committed, ..TransactionEntry::default() },
            transaction(
                1,
                0,
                (2_000_000, 4_000_000),
                (10, 20),
                add("0", "1", 0),
                Fate::UnknownCommitted,
                unknown,
            ),
            transaction(
                2,
                0,
                (6_000_000, 8_000_000),
                (20, 30),
                add("1", "2", 1),
                Fate::Committed,
                "committed at version 30",
            ),
            transaction(
                3,
                1,
                (13_000_000, 14_000_000),
                (30, 40),
                add("2", "12", 2),
                Fate::Committed,
                "committed at version 40",
            ),
        ],
        events: vec![
            EventEntry {
                at: 3_600_000,
                client: Some(0),
                machine: Some("client-0".into()),
                text: "unknown-committed".into(),
                ..EventEntry::default()
            },
            EventEntry {
                kind: EventKind::Dead,
                at: 10_000_000,
                until: Some(11_500_000),
                machine: Some("storage-2".into()),
                text: "storage-2 is killed".into(),
                ..EventEntry::default()
            },
            EventEntry {
                kind: EventKind::Act,
                at: 16_000_000,
                text: "check".into(),
                ..EventEntry::default()
            },
        ],
        witness: WitnessEntry {
            operations: vec![(0, 0)],
            transactions: vec![1, 2],
            keys: vec!["(\"counter\",)".into()],
            expected: Some("11".into()),
            found: Some("12".into()),
        },
        ended: 20_000_000,
    }
}

fn shrunk() -> ShrunkRun {
    ShrunkRun {
        plan: serde_json::json!({ "seed": 7 }),
        before: Size { operations: 80, clients: 4, faults: 1 },
        after: Size { operations: 2, clients: 2, faults: 1 },
        replays: 117,
        is_minimal: true,
        message: "the counter is 12, and should be 11".into(),
        event_hash: "00c0ffee87654321".into(),
        history: history(),
    }
}

#[test]
fn a_failure_that_was_shrunk() {
    let failed = RunReport { shrunk: Some(Box::new(shrunk())), ..run(7, violated()) };
    assert_snapshot!(text::replay(&failed, COMMIT));
    let document = document(Body::Replay(Box::new(failed)));
    assert_eq!(json::parse(&json::render(&document)).as_ref(), Ok(&document));
}

#[test]
fn a_story_of_many_clients_has_no_columns() {
    let mut many = history();
    for client in 2..4 {
        let operation = OperationEntry { client, ..many.operations[1].clone() };
        many.operations.push(operation);
    }
    assert_snapshot!(text::story(&many));
}

#[test]
fn a_story_shows_the_keys_of_its_witness_also_if_one_transaction_alone_touches_them() {
    let mut stale = history();
    let mut entry = stale.transactions[3].calls[1].clone();
    (entry.at, entry.shared) = ("(\"entry\",)".into(), false);
    (entry.rows[0].key, entry.rows[0].shared) = (entry.at.clone(), false);
    stale.transactions[3].calls.push(entry);
    assert!(!text::story(&stale).contains("entry"), "{}", text::story(&stale));
    stale.witness.keys.push("(\"entry\",)".into());
    assert!(text::story(&stale).contains("sets (\"entry\",) = 12"), "{}", text::story(&stale));
}

#[test]
fn a_long_story_is_thinned_out() {
    let mut long = history();
    let watch = CallEntry {
        access: Access::Watch,
        at: "(\"counter\",)".into(),
        shared: true,
        ..CallEntry::default()
    };
    long.transactions[3].calls.push(watch);
    for id in 4..40 {
        let mut read = long.transactions[3].clone();
        (read.id, read.fate, read.version) = (id, Fate::ReadOnly, None);
        read.calls.truncate(1);
        long.transactions.push(read);
    }
    let story = text::story(&long);
    assert!(story.lines().count() < 40, "{story}");
    assert!(story.contains("36 transactions without a write that matters: left out"), "{story}");
    assert!(story.contains("attempt 3,") && !story.contains("attempt 4,"), "{story}");
    assert!(story.contains("watches (\"counter\",)"), "{story}");
    long.witness.transactions.push(4);
    assert!(text::story(&long).contains("* attempt 4,"));
    assert!(!text::story(&long).contains("setup\n"), "its writes are named where they are read");
    long.witness.transactions.push(0);
    assert!(text::story(&long).contains("0.000  setup\n          * attempt 0,"), "{}", text::story(&long));
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

fn advice(topic: &str, severity: Severity, measured: &str, guideline: &str) -> AdviceEntry {
    AdviceEntry {
        topic: topic.into(),
        severity,
        kind: None,
        measured: measured.into(),
        number: 1.0,
        unit: "writes/s".into(),
        guideline: guideline.into(),
        source: "FoundationDB documentation, Developer Guide, Minimizing conflicts".into(),
    }
}

#[test]
fn advice_on_traffic() {
    let of = |workload: &str, entries| WorkloadAdvice {
        workload: workload.into(),
        runs: 20,
        clients: (2, 8),
        operations: 4_000,
        rates: (63.21, 1002.4),
        entries,
        ..WorkloadAdvice::default()
    };
    let hot = "a key that is modified more than 10 to 100 times a second calls for another data model";
    let conflicts = "frequent conflicts are inefficient: spread what is updated often over many keys";
    let many = |n: usize, topic: &str| -> Vec<AdviceEntry> {
        (0..n).map(|n| advice(topic, Severity::Look, &format!("{topic} number {n}"), conflicts)).collect()
    };
    let measured =
        "(\"counter\",): up to 191 writes/s; 100 % of Add write it (98 % after a read, 2 % atomically)";
    let counter = vec![
        advice("hot key", Severity::Over, measured, hot),
        advice(
            "conflicts",
            Severity::Look,
            "(\"counter\",), read by Add (17 % of its attempts), was written by Add",
            conflicts,
        ),
        advice("hot key", Severity::Fine, "3 keys", hot),
        advice("value size", Severity::Fine, "12 bytes", hot),
        advice("duration", Severity::Fine, "12 ms", hot),
    ];
    let queue =
        [many(5, "conflicts"), many(2, "round trips"), many(3, "growth"), many(1, "duration")].concat();
    let fine = vec![advice("growth", Severity::Fine, "none", hot)];
    let workloads = vec![
        of("counter", counter),
        WorkloadAdvice {
            bug: Some("snapshot-dequeue".into()),
            failed: 3,
            clients: (4, 4),
            ..of("queue", queue)
        },
        of("log", fine),
        of("table", Vec::new()),
    ];
    let cost = Cost { cpu_ns: 1_650_000_000, ..Cost::default() };
    let report =
        AdviceReport { seeds: 0..20, faults: "calm".into(), ending: Ending::Complete, workloads, cost };
    let shown = text::advice(&report, COMMIT);
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    assert_snapshot!(shown);
    let body = Body::Advice(report);
    let document =
        Document { schema: SCHEMA, version: "1".into(), commit: COMMIT.into(), advice: Vec::new(), body };
    assert_eq!(json::parse(&json::render(&document)), Ok(document));
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

/// Regressions of all kinds.
fn regressions() -> Vec<RegressionReport> {
    let once = |note: Option<&str>| Regression {
        judge: Some("model".into()),
        message: "operation 3 of client 1: dequeue answered item 9; the model answers item 4".into(),
        version: "0.1.0".into(),
        commit: COMMIT.into(),
        note: note.map(str::to_owned),
    };
    let one = |name: &str, note, replayed| RegressionReport {
        file: format!("tests/regressions/queue/{name}.json"),
        regression: Some(once(note)),
        replayed,
    };
    let again = |seed, verdict| {
        let file = format!("tests/regressions/queue/model-{seed}.json");
        let replay = format!("shaketable replay {file}");
        let run = RunReport { bug: None, repro: Some(file), replay, ..run(seed, verdict) };
        Replayed::Failed { run: Box::new(run) }
    };
    let unreadable = |why: &str, fails| Replayed::Unreadable { why: why.into(), fails };
    let unmet = vec!["unknown-committed in operation 1 of client 2".into(), "client-death".into()];
    vec![
        one("model-1", None, Replayed::Passed { unmet: Vec::new() }),
        one("model-2", Some("ours"), Replayed::Passed { unmet }),
        one("model-3", Some("<b>"), again(3, violated())),
        one("model-4", None, unreadable("schema version 1; this program reads version 2", false)),
        one("model-5", None, unreadable("not a complete repro file: <unknown> variant", true)),
    ]
}

#[test]
fn regressions_for_ci() {
    let mut report = sweep(Conclusion::Passed, vec![workload("cycle", 200), workload("queue", 200)]);
    report.workloads[1].add_regressions(regressions());
    report.outcome = SweepReport::outcome_of(report.ending, &report.workloads);
    assert_eq!(report.outcome, Conclusion::Violated);
    assert_snapshot!("regressions_junit", junit(Body::Sweep(report.clone())));
    assert_snapshot!(
        "regressions_markdown",
        markdown::render(&document(Body::Sweep(report.clone()))).expect("a summary")
    );
    assert_snapshot!("regressions_annotations", annotations::render(&Body::Sweep(report.clone())));
    assert_snapshot!("regressions_sweep", text::sweep(&report, COMMIT));
    let read = json::parse(&json::render(&document(Body::Sweep(report.clone())))).expect("a report");
    assert_eq!(read.body, Body::Sweep(report));
}

#[test]
fn a_check_of_regressions() {
    let report = |kept: &[usize]| {
        let all = regressions();
        let regressions = kept.iter().map(|at| all[*at].clone()).collect();
        let workloads = vec![WorkloadRegressions { workload: "queue".into(), regressions }];
        RegressionsReport::new("tests/regressions".into(), workloads)
    };
    for (kept, outcome) in [
        (&[0][..], Conclusion::Passed),
        (&[0, 1, 3], Conclusion::Passed),
        (&[0, 2], Conclusion::Violated),
        (&[4], Conclusion::Violated),
        (&[], Conclusion::Passed),
    ] {
        assert_eq!(report(kept).outcome, outcome, "{kept:?}");
    }
    assert_snapshot!("regressions_check", text::regressions(&report(&[0, 1, 2, 3, 4]), COMMIT));
    assert_eq!(text::regressions(&report(&[0]), COMMIT), "PASSED: 1 regression passed.\n");
    assert_eq!(text::regressions(&report(&[]), COMMIT), "There are no regressions in tests/regressions.\n");
}

/// A failure that was shrunk.
fn failed_and_shrunk() -> RunReport {
    let mut shrunk = shrunk();
    shrunk.history.operations[0].call = "Add <1>".into();
    RunReport { shrunk: Some(Box::new(shrunk)), ..run(3, violated()) }
}

#[test]
fn the_story_of_a_failure_is_shown_to_ci() {
    let mut report = failing();
    report.workloads[1].failures[0] = failed_and_shrunk();
    let junit = junit(Body::Sweep(report.clone()));
    let markdown = markdown::render(&document(Body::Sweep(report))).expect("a summary");
    let told = "shrunk from 80 operations of 4 clients, 1 fault to 2 operations of 2 clients, 1 fault:";
    for text in [&junit, &markdown] {
        let (_, story) = text.split_once(told).unwrap_or_else(|| panic!("no story: {text}"));
        let at = |part: &str| story.find(part).unwrap_or_else(|| panic!("no {part}: {story}"));
        let parts = [at("should be 11"), at("0: Add"), at("0: Add(10)"), at("shaketable replay queue 3 ")];
        assert!(parts.is_sorted(), "{parts:?}");
    }
    assert!(junit.contains("Add &lt;1&gt;"), "{junit}");
}

#[test]
fn a_list_of_failures_has_an_entry_for_each() {
    let seen = |commit: &str, date: &str| Sighting { commit: commit.into(), date: date.into() };
    let (first, later) = (seen("a", "2026-11-20T02:00:00Z"), seen("b", "2026-11-23T02:00:00Z"));
    let mut list = FailureList::default();
    assert_eq!(list.add(&failing(), &later), (4, 4));
    let mut again = failing();
    again.workloads[1].failures = vec![failed_and_shrunk(), RunReport { seed: 4, ..failed_and_shrunk() }];
    assert_eq!(list.add(&again, &first), (2, 1), "an older report may be added later");
    let mut last = failing();
    last.workloads[1]
        .failures
        .iter_mut()
        .for_each(|run| run.plan = Some(serde_json::json!({"seed": run.seed})));
    assert_eq!(list.add(&last, &later), (4, 0));
    assert_eq!(list.failures[2].plan, Some(serde_json::json!({"seed": 17})), "a plan that was not shrunk");
    let seeds: Vec<u64> = list.failures.iter().map(|entry| entry.seed).collect();
    assert_eq!(seeds, [3, 4, 17, 90, 91]);
    let entry = &list.failures[0];
    assert_eq!((entry.count, &entry.first, &entry.last), (3, &first, &later));
    assert_eq!((entry.judge.as_str(), entry.is_shrunk), ("model", true));
    assert_eq!(entry.plan, Some(serde_json::json!({"seed": 7})), "the shrunk plan stays");
    assert_eq!(FailureList::parse(&list.render()), Ok(list.clone()));
    let other_judge = Verdict::Violated { judge: "audit".into(), message: "no".into() };
    again.workloads[1].failures = vec![run(3, other_judge)];
    assert_eq!(list.add(&again, &later), (1, 1));

    let text = list.render();
    for (wrong, why) in [
        (text[..text.len() / 2].to_owned(), "not a list of failures: "),
        (text.replace("\"schema\": 1", "\"schema\": 2"), "list of failures of schema 2, "),
        ("{}".to_owned(), "not a list of failures: missing field `schema`"),
        (text.replace("\"count\"", "\"number\""), "not a list of failures: "),
    ] {
        let error = FailureList::parse(&wrong).expect_err("refused");
        assert!(error.starts_with(why), "{error}");
    }
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
