//! Made-up reports for pages: a small failure, a run of thousands of events, a sweep, planted bugs.

use super::{counters, families};
use shaketable_reports::{
    Access, AdviceEntry, Body, BugReport, BugsReport, CallEntry, Catch, Conclusion, Cost, Distribution,
    Document, Ending, EventEntry, EventKind, Fate, FindingReport, OperationEntry, PointReport, Reached,
    RowEntry, RunHistory, RunReport, SCHEMA, Scale, Schedule, Severity, ShrinkState, Shrinking, Shrunk,
    ShrunkRun, Size, Stage, SweepReport, TransactionEntry, Verdict, WatchReport, WatchedFinding, When,
    WitnessEntry, WorkloadAdvice, WorkloadReport, when::moments,
};

const MS: u64 = 1_000_000;

fn advice() -> WorkloadAdvice {
    let entry = |severity, topic: &str, measured: &str| AdviceEntry {
        topic: topic.into(),
        severity,
        kind: None,
        measured: measured.into(),
        number: 120.0,
        unit: "writes/s".into(),
        guideline: "a key takes 10 to 100 writes a second".into(),
        source: "Developer Guide, Minimizing conflicts".into(),
    };
    WorkloadAdvice {
        workload: "queue".into(),
        runs: 5,
        entries: vec![
            entry(Severity::Over, "hot key", "(\"queue\", 0): up to 120 writes/s"),
            entry(Severity::Fine, "key size", "11 bytes"),
        ],
        ..WorkloadAdvice::default()
    }
}

pub fn document(body: Body) -> Document {
    Document {
        schema: SCHEMA,
        version: "0.1.0".into(),
        commit: "0123456789ab".into(),
        advice: vec![advice()],
        body,
    }
}

fn row(key: &str, value: &str, writer: Option<u32>) -> RowEntry {
    RowEntry { key: key.into(), value: Some(value.into()), writer, shared: true, ..RowEntry::default() }
}

fn call(access: Access, at: &str, rows: Vec<RowEntry>) -> CallEntry {
    CallEntry { access, at: at.into(), rows, answered: true, ..CallEntry::default() }
}

fn operation(client: u16, index: u32, call: &str, time: (u64, Option<u64>), outcome: &str) -> OperationEntry {
    let (called, returned) = (time.0 * MS, time.1.map(|time| time * MS));
    OperationEntry { client, index, call: call.into(), called, returned, outcome: outcome.into() }
}

fn event(
    kind: EventKind,
    at: u64,
    until: Option<u64>,
    place: (Option<u16>, Option<&str>),
    text: &str,
) -> EventEntry {
    let (client, machine) = (place.0, place.1.map(str::to_owned));
    EventEntry { kind, at: at * MS, until: until.map(|time| time * MS), client, machine, text: text.into() }
}

/// The counter is added to twice, because an unknown result was tried again.
pub fn history() -> RunHistory {
    let counter = r#"("counter", 7)"#;
    let tr = |id, client, operation, began, rest: (u64, u64, u64, Fate, Option<i64>, &str), calls| {
        TransactionEntry {
            id,
            client,
            operation,
            began: began * MS,
            read_version: Some(1_000_000 + began as i64 * 1_000),
            calls,
            commit_sent: Some(rest.0 * MS),
            durable: rest.4.map(|_| rest.1 * MS),
            ended: rest.2 * MS,
            fate: rest.3,
            version: rest.4,
            end: rest.5.into(),
            refused_by: None,
            ..TransactionEntry::default()
        }
    };
    let get = |value, writer| call(Access::Get, counter, vec![row(counter, value, Some(writer))]);
    let set = |value| call(Access::Set, counter, vec![row(counter, value, None)]);
    let session = CallEntry { bookkeeping: true, ..call(Access::Set, r#"("session", 1)"#, Vec::new()) };
    let mut transactions = vec![
        tr(
            0,
            None,
            None,
            10,
            (14, 18, 19, Fate::Committed, Some(1_018_000), "commits at version 1018000"),
            vec![set("4")],
        ),
        tr(
            3,
            Some(1),
            Some(0),
            2_010,
            (
                2_040,
                2_050,
                2_090,
                Fate::UnknownCommitted,
                Some(3_050_000),
                "commit_unknown_result (1021); committed at version 3050000",
            ),
            vec![get("4", 0), set("5"), session],
        ),
        tr(
            4,
            Some(0),
            Some(0),
            2_020,
            (
                2_055,
                2_055,
                2_070,
                Fate::Conflict,
                None,
                "not_committed (1020); (\"counter\", 7) was written at version 3050000 by transaction 3",
            ),
            vec![get("4", 0), set("5")],
        ),
        tr(
            5,
            Some(1),
            Some(0),
            2_100,
            (2_120, 2_131, 2_140, Fate::Committed, Some(3_131_000), "commits at version 3131000"),
            vec![get("5", 3), set("6")],
        ),
        tr(
            6,
            Some(0),
            Some(0),
            2_150,
            (2_160, 2_160, 2_171, Fate::ReadOnly, None, "read only"),
            vec![get("6", 5)],
        ),
    ];
    transactions[2].refused_by = Some(3);
    RunHistory {
        operations: vec![
            operation(0, 0, "Read { counter: 7 }", (2_018, Some(2_172)), "returns 6"),
            operation(1, 0, "Add { counter: 7, by: 1 }", (2_008, Some(2_142)), "returns 6"),
        ],
        transactions,
        events: vec![
            event(EventKind::Act, 0, None, (None, None), "setup"),
            event(EventKind::Act, 2_000, None, (None, None), "hurt"),
            event(
                EventKind::Fault,
                2_041,
                None,
                (Some(1), None),
                "the commit reply is lost: commit_unknown_result (1021)",
            ),
            event(
                EventKind::Dead,
                2_060,
                Some(2_110),
                (None, Some("storage-2")),
                "killed, and started again",
            ),
            event(EventKind::Recovery, 2_062, Some(2_084), (None, None), "recovery to generation 2"),
            event(EventKind::Fault, 2_105, None, (None, Some("log-1")), "the disk is slow"),
            event(EventKind::Act, 3_900, None, (None, None), "heal"),
        ],
        witness: WitnessEntry {
            operations: vec![(1, 0)],
            transactions: vec![3, 5],
            keys: vec![counter.into()],
            expected: Some("operation 0 of client 1: Add { counter: 7, by: 1 } returns 5".into()),
            found: Some("operation 0 of client 1: Add { counter: 7, by: 1 } returns 6".into()),
        },
        ended: 5_200 * MS,
        is_program: false,
    }
}

/// A run with about so many operations, transactions and events, whose witness is in its middle.
pub fn large(events: u32) -> RunHistory {
    let mut state = 1_u64;
    let mut below = move |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let clients = 8_u32;
    let mut history = RunHistory::default();
    let mut now = vec![500_u64; clients as usize];
    let fates = [
        Fate::Committed,
        Fate::Committed,
        Fate::Conflict,
        Fate::ReadOnly,
        Fate::UnknownCommitted,
        Fate::UnknownNotCommitted,
        Fate::Failed,
        Fate::DroppedCommitted,
        Fate::Dropped,
    ];
    for n in 0..events / 2 {
        let client = n % clients;
        let at = &mut now[client as usize];
        let began = *at + below(12);
        let (sent, durable, ended) = (began + 3 + below(6), began + 10 + below(6), began + 17 + below(9));
        *at = ended;
        let fate = fates[below(9) as usize];
        let version = fate.is_in_effect().then_some(10_000_000 + i64::from(n) * 1_000);
        let key = |n: u64| format!("(\"orders\", \"warehouse-{}\", {n})", n % 7);
        let calls = (0..2 + below(4))
            .map(|_| {
                let key = key(below(60));
                let access = [Access::Get, Access::GetRange, Access::Set][below(3) as usize];
                let rows = if access == Access::GetRange { 1 + below(5) } else { 1 };
                let rows = (0..rows).map(|_| {
                    row(&key, &format!("amount {}", below(100_000)), n.checked_sub(1 + below(30) as u32))
                });
                call(access, &key, rows.collect())
            })
            .collect();
        history.transactions.push(TransactionEntry {
            id: n,
            client: Some(client as u16),
            operation: Some(n / clients / 2),
            began: began * MS,
            read_version: Some(9_999_000 + i64::from(n) * 1_000),
            calls,
            commit_sent: Some(sent * MS),
            durable: version.map(|_| durable * MS),
            ended: ended * MS,
            fate,
            version,
            end: version
                .map_or("not_committed (1020)".into(), |version| format!("commits at version {version}")),
            refused_by: None,
            ..TransactionEntry::default()
        });
        if n / clients % 2 == 1 {
            let call = format!("Order {{ warehouse: {}, amount: {} }}", below(7), below(100));
            let first = &history.transactions[(n - clients) as usize];
            let called = first.began / MS;
            history.operations.push(operation(
                client as u16,
                n / clients / 2,
                &call,
                (called, Some(ended)),
                "returns Accepted",
            ));
        }
    }
    let end = now.iter().copied().max().unwrap_or(0);
    for n in 0..u64::from(events) - history.operations.len() as u64 - history.transactions.len() as u64 {
        let (at, machine) = (below(end), format!("storage-{}", n % 5));
        history.events.push(match n % 3 {
            0 => {
                event(EventKind::Fault, at, None, (Some((n % 8) as u16), None), "the reply of a read is late")
            }
            1 => event(EventKind::Fault, at, None, (None, Some(&machine)), "a message is lost"),
            _ => event(EventKind::Dead, at, Some(at + 30), (None, Some(&machine)), "killed"),
        });
    }
    history.events.push(event(
        EventKind::Recovery,
        end / 3,
        Some(end / 3 + 90),
        (None, None),
        "recovery to generation 2",
    ));
    history.events.sort_by_key(|event| event.at);
    let middle = events / 4;
    history.witness.transactions = vec![middle, middle + 3];
    history.witness.operations = vec![((middle % clients) as u16, middle / clients / 2)];
    history.witness.expected = Some("Accepted".into());
    history.witness.found = Some("Refused".into());
    history.ended = (end + 1_000) * MS;
    history
}

pub fn run(workload: &str, seed: u64, message: &str) -> RunReport {
    RunReport {
        workload: workload.into(),
        seed,
        faults: "standard".into(),
        without: vec!["clog".into()],
        scale: Scale::USUAL,
        bug: Some("retry-unknown".into()),
        repro: None,
        verdict: Verdict::Violated { judge: "model".into(), message: message.into() },
        other_findings: vec![FindingReport {
            judge: "check".into(),
            message: "the counter is 6, the model's is 5".into(),
        }],
        event_hash: Some("00c0ffee12345678".into()),
        events: 48_211,
        virtual_ns: Some(12_345_678_901),
        counters: counters(1),
        faults_delivered: families(1),
        configuration: "2 clients, 80 operations\n2 logs, 3 storage servers, 2 copies".into(),
        replay: format!(
            "shaketable replay {workload} {seed} --faults standard --without clog --bug retry-unknown"
        ),
        plan: Some(
            serde_json::json!({ "schema": 2, "workload": workload, "operations": [[{ "Read": 7 }], [{ "Add": [7, 1] }]] }),
        ),
        shrunk: None,
        history: None,
        program: None,
    }
}

const CLAIM: &str = "operation 0 of client 1: Add { counter: 7, by: 1 } returns 6\n\nthe model returns 5";

/// A failure that was shrunk; the whole run is kept as well.
pub fn failure(whole: RunHistory) -> RunReport {
    let mut run = run("counter", 17, CLAIM);
    run.shrunk = Some(Box::new(ShrunkRun {
        plan: serde_json::json!({ "schema": 2, "workload": "counter", "operations": [[{ "Read": 7 }], [{ "Add": [7, 1] }]] }),
        before: Size { operations: 80, clients: 8, faults: 14 },
        after: Size { operations: 2, clients: 2, faults: 1 },
        replays: 212,
        is_minimal: true,
        left_out: Vec::new(),
        message: CLAIM.into(),
        event_hash: "1234567800c0ffee".into(),
        history: history(),
        when: None,
    }));
    run.history = Some(Box::new(whole));
    run
}

/// The same, with when it became certain: as T3 took effect.
pub fn failure_in_time() -> RunReport {
    let mut run = failure(history());
    let mut moments = moments(&history());
    for (n, moment) in moments.iter_mut().enumerate() {
        moment.failed = if moment.at < 2_050 * MS { [2, 3, 2, 6][n.min(3)] } else { 25 };
    }
    if let Some(shrunk) = &mut run.shrunk {
        shrunk.when = Some(When { runs: 25, moments });
    }
    run
}

/// A failure that was not shrunk.
pub fn whole(history: RunHistory) -> RunReport {
    RunReport {
        history: Some(Box::new(history)),
        ..run("orders", 90, "operation 312 of client 2: Order answered Refused\n\nthe model answers Accepted")
    }
}

fn workload(name: &str, runs: u64, slow: u64) -> WorkloadReport {
    let point = |name: &str, passed, held| PointReport { name: name.into(), passed, held };
    WorkloadReport {
        workload: name.into(),
        runs,
        passed: runs,
        counters: counters(runs),
        faults_delivered: families(runs),
        points: vec![
            point("seats are never negative", 9_120, 9_120),
            point("the queue was empty", 512, 0),
            point("a range was read in two batches because a storage server answered with few rows", 77, 12),
        ],
        latencies: (1..4_000)
            .map(|n| slow * (900 + n * n % 7_919) + if n % 50 == 0 { 900_000 } else { 0 })
            .collect(),
        attempts: (1..4_000).map(|n| 1 + n % 3 / 2 + n % 41 / 39 * 5).collect::<Distribution>(),
        virtual_ns: runs * 12_000_000_000,
        cpu_ns: runs * 31_000_000,
        ..WorkloadReport::default()
    }
}

/// A sweep with a failure of each of some workloads.
pub fn sweep(failures: Vec<RunReport>) -> SweepReport {
    let mut workloads = vec![workload("cycle", 200, 3), workload("priority_queue", 200, 9)];
    for failure in failures {
        let [first, second] = [failure.seed, failure.seed + 3];
        let other = RunReport { seed: second, history: None, shrunk: None, plan: None, ..failure.clone() };
        workloads.push(WorkloadReport {
            passed: 198,
            violated: 2,
            failing_seeds: vec![first, second],
            failures: vec![failure.clone(), other],
            ..workload(&failure.workload, 200, 1)
        });
    }
    let outcome = SweepReport::outcome_of(Ending::Complete, &workloads);
    SweepReport {
        faults: "standard".into(),
        real: false,
        bug: None,
        without: Vec::new(),
        scale: Scale::USUAL,
        seeds: 0..200,
        fresh: None,
        require_points: false,
        regressions: None,
        strict_regressions: false,
        run_twice: 0,
        shard: None,
        jobs: 2,
        ending: Ending::Complete,
        outcome,
        workloads,
        cost: Cost { cpu_ns: 12_400_000_000, wall_ns: 6_300_000_000, peak_memory: 101_500_000 },
    }
}

/// Planted bugs: one that is caught at once, some later, one missed.
pub fn bugs() -> BugsReport {
    let bug = |n: u64| BugReport {
        place: format!("workload_{}", n % 5),
        bug: format!("bug-{n}"),
        about: "the dequeue reads the head at snapshot isolation".into(),
        runs: n * n % 97 + 1,
        cpu_ns: n * 40_000_000,
        caught: (n != 4).then(|| Catch {
            workload: format!("workload_{}", n % 5),
            seed: n * n % 97,
            judge: "model".into(),
            message: CLAIM.into(),
            event_hash: "00c0ffee12345678".into(),
            replay: format!(
                "shaketable replay workload_{} {} --faults standard --bug bug-{n}",
                n % 5,
                n * n % 97
            ),
            shrunk: Some(Shrunk {
                operations: 1 + n % 4,
                clients: 1 + n % 2,
                faults: n % 2,
                replays: 90 + n,
                cpu_ns: n * 9_000_000,
                is_minimal: true,
                left_out: Vec::new(),
                schedule: Schedule::Even,
                families: Vec::new(),
                difference: None,
            }),
        }),
        wrong_judge: None,
        accuses_cluster: false,
        only_simulated: None,
    };
    BugsReport {
        faults: "standard".into(),
        seeds: 0..500,
        real: false,
        ending: Ending::Complete,
        bugs: (0..24).map(bug).collect(),
        cost: Cost { cpu_ns: 60_000_000_000, wall_ns: 31_000_000_000, peak_memory: 0 },
    }
}

/// The outcome of a sweep in which nothing failed.
pub fn passing() -> SweepReport {
    let mut report = sweep(Vec::new());
    report.outcome = Conclusion::Passed;
    report
}

/// A sweep that goes on: of its workloads one has not run yet, and one fails.
pub fn watched(stage: Stage) -> WatchReport {
    let mut sweep = sweep(vec![run("counter", 17, CLAIM)]);
    sweep.workloads.iter_mut().for_each(|w| w.failures.clear());
    sweep.workloads[1] = WorkloadReport { workload: "priority_queue".into(), ..WorkloadReport::default() };
    (sweep.ending, sweep.outcome) = match stage {
        Stage::Ended => (Ending::Complete, Conclusion::Violated),
        Stage::Regressions | Stage::Runs | Stage::Shrinking => (Ending::Interrupted, Conclusion::Violated),
    };
    let at = |runs, points| Reached { runs, elapsed_ns: runs * 20 * MS, points };
    let found = |runs, seed, shrinking| WatchedFinding {
        runs,
        elapsed_ns: runs * 20 * MS,
        run: RunReport { plan: None, ..run("counter", seed, CLAIM) },
        shrinking,
    };
    let [before, now] =
        [(80, 8, 14), (12, 3, 2)].map(|(operations, clients, faults)| Size { operations, clients, faults });
    let shrinking = match stage {
        Stage::Regressions | Stage::Runs => None,
        Stage::Shrinking => Some(Shrinking { runs: 57, before, now, state: ShrinkState::Searching }),
        Stage::Ended => Some(Shrinking { runs: 212, before, now, state: ShrinkState::Minimal }),
    };
    WatchReport {
        stage,
        elapsed_ns: 12_345 * MS,
        budget_ns: None,
        seeds: 400,
        sweep,
        coverage: vec![at(0, 0), at(1, 2), at(2, 3), at(37, 4)],
        findings: vec![found(60, 20, None), found(61, 17, shrinking)],
    }
}
