//! The text of regressions: a check of them, and their part of a sweep's report.

use super::{COLUMNS, Details, fill, plural, run};
use crate::{
    regressions::{RegressionReport, RegressionsReport, Replayed},
    run::Conclusion,
};

/// The maximum number of failures that are printed in full; the report file contains all.
const FAILURES_IN_FULL: usize = 3;

/// Renders a check of regressions as text.
pub fn regressions(report: &RegressionsReport, commit: &str) -> String {
    let all: Vec<&RegressionReport> = report.workloads.iter().flat_map(|w| &w.regressions).collect();
    let mut out: String = all.iter().filter_map(|one| unmet(one)).collect();
    let verdict = match report.outcome {
        _ if all.is_empty() => return format!("There are no regressions in {}.\n", report.folder),
        Conclusion::Passed => "PASSED",
        Conclusion::Harness => "HARNESS FAULT",
        _ => "FAILED",
    };
    if !out.is_empty() {
        out.push('\n');
    }
    out += &format!("{verdict}: {}", summary(&all));
    out + &failures(&all, commit)
}

/// The faults that a regression no longer meets.
fn unmet(one: &RegressionReport) -> Option<String> {
    match &one.replayed {
        Replayed::Passed { unmet } if !unmet.is_empty() => {
            let line = format!("{} passes, but no longer meets: {}", one.file, unmet.join(", "));
            Some(fill(&line, COLUMNS, ""))
        }
        _ => None,
    }
}

/// How many regressions passed, and each that did not, in a line.
pub(crate) fn summary(all: &[&RegressionReport]) -> String {
    let total = plural(all.len() as u64, "regression", "regressions");
    let count = |is: fn(&Replayed) -> bool| all.iter().filter(|one| is(&one.replayed)).count() as u64;
    let failed = count(|replayed| matches!(replayed, Replayed::Failed { .. }));
    let unreadable = count(|replayed| matches!(replayed, Replayed::Unreadable { .. }));
    let mut parts = Vec::new();
    if failed > 0 {
        parts.push(format!("{failed} failed again"));
    }
    if unreadable > 0 {
        parts.push(format!("{unreadable} cannot be replayed"));
    }
    let mut out = match (all.len(), parts.is_empty()) {
        (0, _) => return String::new(),
        (_, true) => format!("{total} passed.\n"),
        _ => format!("of {total}, {}.\n", parts.join(" and ")),
    };
    for one in all {
        if let Some(line) = line(one) {
            out += &format!("  {line}\n");
        }
    }
    out
}

/// What is wrong with a regression, in one line.
fn line(one: &RegressionReport) -> Option<String> {
    match &one.replayed {
        Replayed::Passed { .. } => None,
        Replayed::Failed { run } => {
            Some(format!("{} failed again: {}", one.file, run.verdict.judge().unwrap_or_default()))
        }
        Replayed::Unreadable { why, .. } => Some(format!("{} cannot be replayed: {why}", one.file)),
    }
}

/// The first failures in full.
pub(crate) fn failures(all: &[&RegressionReport], commit: &str) -> String {
    let failed = all.iter().filter_map(|one| Some((one, one.failure()?)));
    let block =
        |(one, run): (&&RegressionReport, _)| format!("\n{}", failure(one, run, commit, Details::Brief));
    failed.take(FAILURES_IN_FULL).map(block).collect()
}

/// What failed again, in one line.
pub(crate) fn headline(one: &RegressionReport) -> String {
    let what = one.failure().map_or(String::new(), run::headline);
    format!("REGRESSION {}: {what}", one.file)
}

/// The block of a regression that failed again. The replay line comes last.
pub(crate) fn failure(
    one: &RegressionReport,
    run: &crate::RunReport,
    commit: &str,
    details: Details,
) -> String {
    let once = one
        .regression
        .as_ref()
        .map(|once| fill(&format!("it once broke: {}", once.what()), COLUMNS - 2, "  "));
    format!("REGRESSION {}\n{}{}", one.file, once.unwrap_or_default(), super::failure(run, commit, details))
}
