//! `shaketable regressions check`: replays regressions without a sweep.

use super::{FOLDER, refuse_damaged, replay, select};
use crate::command::{
    Refusal, choose,
    conclude::{processors, settle},
    interrupt::Interrupt,
    output::{self, Target},
    program, refuse,
};
use clap::Args;
use shaketable_reports::{
    Body, Conclusion, RegressionReport, RegressionsReport, Replayed, WorkloadRegressions, text,
};
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(crate) struct RegressionsCheckArguments {
    /// The workloads [default: all]
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// The folder with a folder for each workload [default: tests/regressions]
    #[arg(long, value_name = "DIR")]
    pub regressions: Option<PathBuf>,
    /// Fail if a regression cannot be replayed because its version or its operations have changed
    #[arg(long)]
    pub strict_regressions: bool,
    /// The number of threads [default: one per processor]
    #[arg(long, value_name = "N", value_parser = choose::jobs)]
    pub jobs: Option<usize>,
    /// Write the report as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Replays the regressions, and prints and writes the report.
pub(super) fn check(arguments: &RegressionsCheckArguments) -> Result<Conclusion, Refusal> {
    let json = Target::check_named(arguments.json.as_deref())?;
    let (folder, entries, files) = select(arguments.regressions.as_deref(), &arguments.workloads)?;
    let shown = folder.map_or(FOLDER.to_owned(), |folder| folder.shown());
    // A check that checks nothing must not look like one that holds.
    if files.iter().all(Vec::is_empty) {
        refuse!("there are no regressions in {shown}");
    }
    refuse_damaged(&files)?;
    let interrupt = Interrupt::listen()?;
    let jobs = arguments.jobs.unwrap_or_else(processors);
    let replayed = replay(&entries, &files, arguments.strict_regressions, jobs, || interrupt.is_set());
    let workloads =
        entries.iter().zip(replayed).filter(|(_, regressions)| !regressions.is_empty()).map(
            |(entry, regressions)| WorkloadRegressions { workload: entry.name().to_owned(), regressions },
        );
    let report = RegressionsReport::new(shown.clone(), workloads.collect());
    let (done, all) = (
        report.workloads.iter().map(|w| w.regressions.len()).sum::<usize>() as u64,
        files.iter().map(Vec::len).sum::<usize>() as u64,
    );
    let interrupted = (done < all).then(|| {
        let all = text::plural(all, "regression", "regressions");
        interrupt.refusal(&format!("after {} of {all}", text::count(done)))
    });
    let outcome = report.outcome;
    let is_unreadable = |one: &RegressionReport| matches!(one.replayed, Replayed::Unreadable { .. });
    let is_vain = done > 0 && report.workloads.iter().flat_map(|w| &w.regressions).all(is_unreadable);
    let printed = text::regressions(&report, program().commit);
    let written = output::publish(&printed, json.as_ref(), Body::Regressions(report));
    let vain = (is_vain && outcome == Conclusion::Passed)
        .then(|| Refusal::Usage(format!("none of the regressions in {shown} can be replayed")));
    settle(outcome, written, interrupted.or(vain))
}
