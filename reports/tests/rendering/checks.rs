//! Texts on advice, benchmarks, recordings and the contract.

use crate::samples::small::COMMIT;
use insta::assert_snapshot;
use shaketable_reports::{
    AdviceEntry, AdviceReport, BenchReport, Body, Compared, Comparison, Conclusion, ConformanceReport,
    ContractCase, ContractReport, Cost, Difference, Document, Ending, Figure, FileReport, Impossible, Ratio,
    SCHEMA, Severity, WorkloadAdvice, json, text,
};

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
            figure("queue, standard", 5.0, "commits per CPU second", None, false, "10 clients"),
            figure("start and end of an empty run", 1.24, "CPU ms", Some(5.0), true, ""),
            figure("peak memory", 301.5, "MB", Some(300.0), true, ""),
            figure("virtual seconds per CPU second", 0.0, "", None, false, ""),
        ],
        comparison: None,
        cost: Cost { cpu_ns: 60_000_000_000, wall_ns: 61_000_000_000, peak_memory: 0 },
    };
    assert_snapshot!(text::bench(&report, COMMIT));
}

#[test]
fn a_comparison() {
    let ratio = Ratio { ours: 4_321.0, theirs: 87.5, median: 49.383, lowest: 0.9995, highest: 50.0 };
    let row = |workload: &str, ratio| Compared { workload: workload.into(), ratio };
    let comparison = Comparison {
        program: "/bin/shaketable-old".into(),
        commit: "0123456".into(),
        seeds: 0..40,
        rounds: 6,
        workloads: vec![row("cycle", Some(ratio.clone())), row("new", None)],
        all: Some(ratio),
    };
    let report = BenchReport {
        processors: 2,
        figures: Vec::new(),
        comparison: Some(comparison),
        cost: Cost { cpu_ns: 60_000_000_000, wall_ns: 61_000_000_000, peak_memory: 0 },
    };
    assert_snapshot!(text::bench(&report, COMMIT));
}

pub fn conformance() -> ConformanceReport {
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

pub fn contract() -> ContractReport {
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
