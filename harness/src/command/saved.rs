//! The saved report of a sweep, which is read again to continue the sweep or to merge it with other shards.

use super::{
    Refusal, refuse,
    resume::{Ran, Share},
};
use shaketable_reports::{Body, SweepReport, WorkloadReport, json};
use shaketable_sim::faults::Family;
use std::path::Path;

/// A report that was read.
pub(super) struct Saved {
    /// The path, for messages.
    pub shown: String,
    /// The version of the program that wrote it.
    pub version: String,
    /// The commit of the program that wrote it.
    pub commit: String,
    /// The report, whose options are possible.
    pub report: SweepReport,
}

impl Saved {
    /// Reads the report of a sweep.
    pub(super) fn read(path: &Path) -> Result<Saved, Refusal> {
        let shown = path.display().to_string();
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => refuse!("cannot read {shown}: {error}"),
        };
        let document = json::parse(&text).map_err(|error| Refusal::Usage(format!("{shown}: {error}")))?;
        let Body::Sweep(report) = document.body else { refuse!("{shown} is not the report of a sweep") };
        if let Err(why) = check(&report) {
            refuse!("{shown} was not written by this program: {why}");
        }
        Ok(Saved { shown, version: document.version, commit: document.commit, report })
    }

    /// What was run, by workload, in the order of the report.
    pub(super) fn ran(&self) -> Result<Vec<Ran>, Refusal> {
        let share = Share::new(&self.report.seeds, self.report.shard);
        let ran = |workload: &WorkloadReport| {
            let known = workload.faults_delivered.keys().all(|name| Family::named(name).is_some());
            (known && adds_up(workload)).then(|| Ran::of(workload, &share)).flatten()
        };
        match self.report.workloads.iter().map(ran).collect() {
            Some(ran) => Ok(ran),
            None => refuse!("{} contradicts itself: it was not written by this program", self.shown),
        }
    }
}

/// Whether the numbers of runs agree with each other.
fn adds_up(workload: &WorkloadReport) -> bool {
    let failed = [workload.violated, workload.stuck, workload.harness].map(u128::from).iter().sum::<u128>();
    failed + u128::from(workload.passed) == u128::from(workload.runs)
        && failed == workload.failing_seeds.len() as u128
}

/// Checks that the options of a sweep are possible.
fn check(report: &SweepReport) -> Result<(), &'static str> {
    if report.seeds.is_empty() {
        return Err("it has no seeds");
    }
    if report.shard.is_some_and(|(number, of)| number == 0 || number > of) {
        return Err("its shard is impossible");
    }
    let mut names: Vec<&str> = report.workloads.iter().map(|w| w.workload.as_str()).collect();
    names.sort_unstable();
    if names.is_empty() || names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("it has no workloads, or one of them twice");
    }
    Ok(())
}
