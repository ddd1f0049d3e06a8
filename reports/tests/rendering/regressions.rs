//! Regressions, for people and for CI systems.

use crate::ci::junit;
use crate::samples::small::{COMMIT, document, run, sweep, violated, workload};
use insta::assert_snapshot;
use shaketable_reports::{
    Body, Conclusion, Regression, RegressionReport, RegressionsReport, Replayed, RunReport, SweepReport,
    WorkloadRegressions, annotations, json, markdown, text,
};

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
