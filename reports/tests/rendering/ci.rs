//! What CI systems read: JUnit, Markdown, annotations, and the list of failures.

use crate::planted_bugs::bugs;
use crate::samples::small::{COMMIT, document, failed_and_shrunk, failing, run, sweep, violated, workload};
use crate::schema;
use insta::assert_snapshot;
use shaketable_reports::{
    Body, BugReport, BugsReport, Conclusion, Ending, FailureList, RunReport, Sighting, SweepReport, Verdict,
    WorkloadReport, annotations, junit, markdown, text,
};

/// A sweep with what CI systems must be shown: failures of all kinds, one that was not kept, names and texts
/// with markup, and a workload that is vacuous.
fn for_ci() -> SweepReport {
    let mut report = failing();
    report.fresh = Some("2026-11-23".into());
    report.require_points = true;
    let harness = Verdict::Harness { judge: "durable".into(), message: "`a` <b> & \u{1b}[1m |".into() };
    let broken = &mut report.workloads[1];
    broken.failures[3] = run(91, harness);
    (broken.violated, broken.harness) = (3, 1);
    broken.failing_seeds.push(92);
    let mut vacuous = WorkloadReport {
        vacuous: vec!["conflicts".into(), "retries".into()],
        missed_points: vec!["the queue was empty".into()],
        ..workload("leased_queue", 200)
    };
    vacuous.counters.waits = 0;
    report.workloads.push(vacuous);
    report.outcome = SweepReport::outcome_of(report.ending, &report.workloads);
    report
}

pub fn junit(body: Body) -> String {
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
fn a_list_of_failures_has_an_entry_for_each() {
    let seen = |commit: &str, date: &str| Sighting { commit: commit.into(), date: date.into() };
    let (first, later) = (seen("a", "2026-11-20T02:00:00Z"), seen("b", "2026-11-23T02:00:00Z"));
    let mut list = FailureList::default();
    assert_eq!(list.add(&failing(), None, &later), (4, 4));
    let mut again = failing();
    again.workloads[1].failures = vec![failed_and_shrunk(), RunReport { seed: 4, ..failed_and_shrunk() }];
    assert_eq!(list.add(&again, None, &first), (2, 1), "an older report may be added later");
    let mut last = failing();
    last.workloads[1]
        .failures
        .iter_mut()
        .for_each(|run| run.plan = Some(serde_json::json!({"seed": run.seed})));
    assert_eq!(list.add(&last, None, &later), (4, 0));
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
    assert_eq!(list.add(&again, None, &later), (1, 1));

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
