//! Reports as JSON: they read back, and what is incomplete is refused.

use crate::checks::conformance;
use crate::checks::contract;
use crate::planted_bugs::bugs;
use crate::samples::pages::watched;
use crate::samples::small::{document, failing, run, violated};
use insta::assert_snapshot;
use shaketable_reports::{
    BenchReport, Body, Compared, Comparison, Cost, Ratio, RunReport, SCHEMA, Stage, json,
};

#[test]
fn json_of_a_failing_sweep() {
    let mut report = failing();
    report.workloads.remove(0);
    report.workloads[0].failures.truncate(2);
    assert_snapshot!(json::render(&document(Body::Sweep(report))));
}

#[test]
fn every_report_reads_back_as_it_was_written() {
    let large = RunReport { seed: u64::MAX, ..run(1, violated()) };
    let ratio = Ratio::of(&[[1.5, 3.0], [2.0, 0.3]]);
    let comparison = Comparison {
        program: "old".into(),
        commit: "0".into(),
        seeds: 5..15,
        rounds: 2,
        workloads: [None, Some(ratio.clone())].map(|ratio| Compared { workload: "w".into(), ratio }).into(),
        all: Some(ratio),
    };
    let bench = |comparison| {
        Body::Bench(BenchReport { processors: 2, figures: Vec::new(), comparison, cost: Cost::default() })
    };
    for body in [
        Body::Sweep(failing()),
        Body::Watch(watched(Stage::Shrinking)),
        Body::Replay(Box::new(large)),
        Body::Bugs(bugs()),
        bench(None),
        bench(Some(comparison)),
        Body::Conformance(conformance()),
        Body::Contract(contract()),
    ] {
        let document = document(body);
        let line = json::line(&document);
        assert_eq!(line.find('\n'), Some(line.len() - 1));
        assert_eq!(json::parse(&line).as_ref(), Ok(&document));
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
