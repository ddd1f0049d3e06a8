//! Made-up reports for text and machines: sweeps, a failure that was shrunk, planted bugs.

use super::{counters, families};
use shaketable_reports::{
    Access, Body, CallEntry, Conclusion, Cost, Document, Ending, EventEntry, EventKind, Fate, FindingReport,
    OperationEntry, Outcomes, PointReport, RowEntry, RunHistory, RunReport, SCHEMA, Scale, ShrunkRun, Size,
    SweepReport, TransactionEntry, Verdict, WitnessEntry, WorkloadReport,
};

pub const COMMIT: &str = "0123456789ab";

fn finding(judge: &str, message: &str) -> FindingReport {
    FindingReport { judge: judge.into(), message: message.into() }
}

pub fn run(seed: u64, verdict: Verdict) -> RunReport {
    RunReport {
        workload: "queue".into(),
        seed,
        faults: "standard".into(),
        without: vec!["clog".into()],
        scale: Scale::USUAL,
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
        event_hash: Some("00c0ffee12345678".into()),
        events: 48_211,
        virtual_ns: Some(12_345_678_901),
        counters: counters(1),
        faults_delivered: families(1),
        configuration: "4 clients, 80 operations\n2 logs, 3 storage servers, 2 copies".into(),
        replay: format!(
            "shaketable replay queue {seed} --faults standard --without clog --bug recipe-dequeue"
        ),
        plan: None,
        shrunk: None,
        history: None,
        program: None,
    }
}

pub fn violated() -> Verdict {
    Verdict::Violated {
        judge: "model".into(),
        message: "operation 17 of client 2: dequeue answered item 9\n\nthe model answers item 4".into(),
    }
}

pub fn workload(name: &str, runs: u64) -> WorkloadReport {
    WorkloadReport {
        workload: name.into(),
        runs,
        passed: runs,
        counters: counters(runs),
        outcomes: [
            (
                "Pop".into(),
                Outcomes { done: 40 * runs, refused: 3 * runs, unknown: runs, ..Outcomes::default() },
            ),
            ("Push".into(), Outcomes { done: 50 * runs, failed: runs, ..Outcomes::default() }),
        ]
        .into(),
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

pub fn sweep(outcome: Conclusion, workloads: Vec<WorkloadReport>) -> SweepReport {
    SweepReport {
        faults: "standard".into(),
        real: false,
        bug: None,
        without: Vec::new(),
        scale: Scale::USUAL,
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

pub fn failing() -> SweepReport {
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

pub fn document(body: Body) -> Document {
    Document { schema: SCHEMA, version: "0.1.0".into(), commit: COMMIT.into(), advice: Vec::new(), body }
}

/// Two clients add to a counter. The first one does it twice: its first attempt has an unknown result, and
/// committed.
pub fn history() -> RunHistory {
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
        ..RowEntry::default()
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
            ..TransactionEntry::default()
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
        is_program: false,
    }
}

pub fn shrunk() -> ShrunkRun {
    ShrunkRun {
        plan: serde_json::json!({ "seed": 7 }),
        before: Size { operations: 80, clients: 4, faults: 1 },
        after: Size { operations: 2, clients: 2, faults: 1 },
        replays: 117,
        is_minimal: true,
        left_out: vec!["Get".to_owned(), "Put".to_owned()],
        message: "the counter is 12, and should be 11".into(),
        event_hash: "00c0ffee87654321".into(),
        history: history(),
        when: None,
    }
}

/// A failure that was shrunk.
pub fn failed_and_shrunk() -> RunReport {
    let mut shrunk = shrunk();
    shrunk.history.operations[0].call = "Add <1>".into();
    RunReport { shrunk: Some(Box::new(shrunk)), ..run(3, violated()) }
}
