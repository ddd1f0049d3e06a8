//! Reports as JUnit XML, for CI systems that list tests: a workload is a suite, and each failing seed a test
//! case with its finding, its story if it was shrunk, and the line that replays it. Each regression is a case
//! as well.
//!
//! The first case of a suite stands for the sweep as a whole, so that a suite without failing seeds is not
//! empty. It fails if the sweep of its workload was vacuous or ended early by itself.

use crate::{
    bugs::{BugReport, BugsReport},
    document::{Body, Document},
    regressions::{RegressionReport, Replayed},
    run::{RunReport, Verdict},
    sweep::{Ending, SweepReport, WorkloadReport},
    text,
};
use quick_junit::{NonSuccessKind, Property, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};
use std::time::Duration;

/// The name of the case that stands for the sweep as a whole.
pub const SWEEP: &str = "sweep";

/// The document as JUnit XML, ending with a line feed. Returns `None` for reports other than those of sweeps
/// and of planted bugs.
///
/// # Errors
///
/// The library's error if it cannot represent the document.
pub fn render(document: &Document) -> Result<Option<String>, SerializeError> {
    let mut report = Report::new("shaketable");
    match &document.body {
        Body::Sweep(sweep) => {
            report.set_time(Duration::from_nanos(sweep.cost.wall_ns));
            report.add_test_suites(sweep.workloads.iter().map(|w| suite(sweep, w, &document.commit)));
        }
        Body::Bugs(bugs) => {
            report.set_time(Duration::from_nanos(bugs.cost.wall_ns));
            report.add_test_suites(places(bugs).into_iter().map(|place| planted(bugs, place)));
        }
        Body::Watch(_)
        | Body::Replay(_)
        | Body::Explore(_)
        | Body::Advice(_)
        | Body::Regressions(_)
        | Body::Bench(_)
        | Body::Conformance(_)
        | Body::Contract(_) => {
            return Ok(None);
        }
    }
    let text = report.to_string()?;
    // The library counts skipped cases in the root also, where the schema has no such attribute.
    let (root, rest) = text.split_once("<testsuite ").unwrap_or((&text, ""));
    let root = match root.split_once(" skipped=\"") {
        Some((before, after)) => [before, after.split_once('"').map_or(after, |(_, after)| after)].concat(),
        None => root.to_owned(),
    };
    let rest = if rest.is_empty() { String::new() } else { format!("<testsuite {rest}") };
    Ok(Some(format!("{}\n", format!("{root}{rest}").trim_end())))
}

fn suite(sweep: &SweepReport, workload: &WorkloadReport, commit: &str) -> TestSuite {
    let mut suite = TestSuite::new(workload.workload.as_str());
    suite.set_time(Duration::from_nanos(workload.cpu_ns));
    for (name, value) in [
        ("requested", text::sweep::head(sweep, commit).join(", ")),
        ("runs", workload.runs.to_string()),
        ("passed", workload.passed.to_string()),
        ("operations done", workload.ended().share()),
        ("operations not done", text::sweep::others(workload)),
    ] {
        suite.add_property(Property::new(name, value));
    }
    let mut whole = TestCase::new(SWEEP, whole(sweep.ending, workload));
    whole.set_classname(workload.workload.as_str());
    suite.add_test_case(whole);
    suite.add_test_cases(workload.regressions.iter().map(|one| regression(&workload.workload, one, commit)));
    for seed in &workload.failing_seeds {
        let kept = workload.failures.iter().find(|failure| failure.seed == *seed);
        let status = match kept {
            Some(run) => finding(run, commit),
            None => not_kept(workload, *seed),
        };
        let mut case = TestCase::new(format!("seed {seed}"), status);
        case.set_classname(workload.workload.as_str());
        suite.add_test_case(case);
    }
    suite
}

/// A status other than a success.
fn objection(kind: NonSuccessKind, of: &str, message: &str, description: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(of).set_message(message).set_description(description);
    status
}

/// The status of a workload's sweep as a whole, apart from its failing seeds.
fn whole(ending: Ending, workload: &WorkloadReport) -> TestCaseStatus {
    let shortfall = workload.shortfall();
    let why = text::sweep::ending(ending).trim_end();
    match ending {
        Ending::Interrupted | Ending::Lost | Ending::Unwritable => {
            objection(NonSuccessKind::Error, "ended early", why, why)
        }
        Ending::Complete | Ending::Budget if shortfall.is_empty() => TestCaseStatus::success(),
        Ending::Complete | Ending::Budget => {
            objection(NonSuccessKind::Failure, "vacuous", &shortfall.join("; "), &shortfall.join("\n"))
        }
    }
}

/// The case of a regression.
fn regression(workload: &str, one: &RegressionReport, commit: &str) -> TestCase {
    let status = match &one.replayed {
        Replayed::Passed { .. } => TestCaseStatus::success(),
        Replayed::Failed { run } => {
            objection_to(run, &text::regressions::failure(one, run, commit, text::Details::All))
        }
        Replayed::Unreadable { why, fails: true } => {
            objection(NonSuccessKind::Failure, "unreadable", why, &format!("{}: {why}", one.file))
        }
        Replayed::Unreadable { why, fails: false } => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(why.as_str());
            status
        }
    };
    let mut case = TestCase::new(format!("regression {}", one.file), status);
    case.set_classname(workload);
    case
}

/// The status of a failing seed: the finding in one line, what remained of the run when it was shrunk, and
/// everything known about the run.
fn finding(run: &RunReport, commit: &str) -> TestCaseStatus {
    let story = text::run::shrunk(run).map_or(String::new(), |story| format!("{story}\n"));
    objection_to(run, &(story + &text::failure(run, commit, text::Details::All)))
}

/// The status of a run that did not pass.
fn objection_to(run: &RunReport, description: &str) -> TestCaseStatus {
    let kind = match run.verdict {
        Verdict::Harness { .. } => NonSuccessKind::Error,
        _ => NonSuccessKind::Failure,
    };
    let message = run.verdict.message().and_then(|message| message.lines().next()).unwrap_or_default();
    objection(kind, run.verdict.judge().unwrap_or_default(), message, description)
}

/// The status of a failing seed whose run was not kept in full.
fn not_kept(workload: &WorkloadReport, seed: u64) -> TestCaseStatus {
    let only_harness = workload.violated + workload.stuck == 0;
    let kind = if only_harness { NonSuccessKind::Error } else { NonSuccessKind::Failure };
    let line = workload.failures.iter().find_map(|failure| failure.replay_of(seed)).unwrap_or_default();
    let message = "one of the failures after those that were kept in full";
    objection(kind, "not kept", message, &format!("{message}\nreplay with\n{line}\n"))
}

/// The places of planted bugs, in their order.
fn places(report: &BugsReport) -> Vec<&str> {
    let mut places: Vec<&str> = Vec::new();
    for bug in &report.bugs {
        if !places.contains(&bug.place.as_str()) {
            places.push(&bug.place);
        }
    }
    places
}

/// The suite of the bugs planted in a place: a bug that was caught is a test that passed.
fn planted(report: &BugsReport, place: &str) -> TestSuite {
    let mut suite = TestSuite::new(place);
    let bugs: Vec<&BugReport> = report.bugs.iter().filter(|bug| bug.place == place).collect();
    let cpu = bugs.iter().fold(0u64, |sum, bug| sum.saturating_add(bug.cpu_ns));
    suite.set_time(Duration::from_nanos(cpu));
    for bug in bugs {
        let mut case = TestCase::new(bug.bug.as_str(), status(report, bug));
        case.set_classname(place).set_time(Duration::from_nanos(bug.cpu_ns));
        if let Some(catch) = &bug.caught {
            case.set_system_out(format!("{}: {}\n{}\n", catch.judge, catch.message, catch.replay));
        }
        suite.add_test_case(case);
    }
    suite
}

fn status(report: &BugsReport, bug: &BugReport) -> TestCaseStatus {
    match text::bugs::state(bug, report) {
        _ if bug.caught.is_some() => TestCaseStatus::success(),
        state @ ("not done" | "not met") => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(state);
            status
        }
        _ => {
            let message = format!("not caught in {}", text::plural(bug.runs, "seed", "seeds"));
            let wrong = bug.wrong_judge.as_ref().map_or(String::new(), |wrong| format!("\n{wrong}"));
            objection(
                NonSuccessKind::Failure,
                "missed",
                &message,
                &format!("{}\n{message}{wrong}", bug.about),
            )
        }
    }
}
