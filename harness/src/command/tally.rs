//! The results of a workload's runs so far.

use super::{
    report,
    resume::{Earlier, Ran, Share},
    sweep::OneRun,
};
use crate::{
    judge::{finding::Verdict, vacuous},
    run::plan::Demands,
    search::entry::Entry,
};
use shaketable_reports::{RegressionReport, RunReport, WorkloadReport};
use shaketable_sim::faults::Family;
use std::collections::BTreeMap;

/// The number of failures per workload that are kept in full.
pub(super) const FAILURES_KEPT: usize = 10;

/// The results of a workload's runs so far.
#[derive(Default)]
pub(super) struct Tally {
    /// The figures; seeds, failures and points are beside them.
    report: WorkloadReport,
    ran: Ran,
    points: BTreeMap<String, (u64, u64)>,
    failing: Vec<u64>,
    failures: BTreeMap<u64, RunReport>,
}

/// What one more run has changed, beside the figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// How many points it was the first to reach.
    pub reached: u64,
    /// Whether it failed, and its failure is kept.
    pub is_kept: bool,
}

impl Tally {
    /// The results of the earlier part of a sweep, by workload.
    pub(super) fn of(earlier: &Earlier) -> Vec<Tally> {
        let tally = |(report, ran): (&WorkloadReport, &Ran)| Tally {
            ran: ran.clone(),
            points: report.points.iter().map(|p| (p.name.clone(), (p.passed, p.held))).collect(),
            failing: report.failing_seeds.clone(),
            failures: report.failures.iter().map(|failure| (failure.seed, failure.clone())).collect(),
            report: WorkloadReport { failures: Vec::new(), ..report.clone() },
        };
        earlier.report.workloads.iter().zip(&earlier.workloads).map(tally).collect()
    }

    /// The figures so far.
    pub(super) fn figures(&self) -> &WorkloadReport {
        &self.report
    }

    /// How many points were reached.
    pub(super) fn reached(&self) -> u64 {
        self.points.values().filter(|(_, held)| *held > 0).count() as u64
    }

    /// The failures that are kept, by seed.
    pub(super) fn failures(&self) -> &BTreeMap<u64, RunReport> {
        &self.failures
    }

    /// Adds regressions.
    pub(super) fn add_regressions(&mut self, replayed: Vec<RegressionReport>) {
        self.report.add_regressions(replayed);
    }

    /// Adds a run of a seed, which has this place in the share.
    pub(super) fn add(&mut self, place: u64, seed: u64, ran: OneRun) -> Change {
        let mut change = Change::default();
        self.ran.insert(place);
        let report = &mut self.report;
        report.runs += 1;
        report.run_twice += u64::from(ran.twice);
        report.differing += u64::from(ran.differed);
        report.virtual_ns += ran.result.virtual_time;
        report.cpu_ns += ran.cpu;
        match ran.result.verdict() {
            Verdict::Passed => report.passed += 1,
            Verdict::Violated => report.violated += 1,
            Verdict::Stuck => report.stuck += 1,
            Verdict::Harness => report.harness += 1,
        }
        report.counters.add(&ran.result.counters);
        report.add_outcomes(ran.result.outcomes.iter().map(|(kind, of_kind)| (*kind, of_kind)));
        let performed = &ran.result.performed;
        performed.latencies.iter().for_each(|latency| report.latencies.record(latency / 1_000));
        performed.attempts.iter().for_each(|attempts| report.attempts.record(u64::from(*attempts)));
        for (family, n) in &ran.result.faults {
            *report.faults_delivered.entry(family.name().to_owned()).or_default() += n;
        }
        for (name, seen) in &ran.result.points {
            if !self.points.contains_key(*name) {
                self.points.insert((*name).to_owned(), (0, 0));
            }
            if let Some(sum) = self.points.get_mut(*name) {
                change.reached += u64::from(sum.1 == 0 && seen.held > 0);
                *sum = (sum.0 + seen.passed, sum.1 + seen.held);
            }
        }
        if let Some(failure) = ran.failure {
            self.failing.push(seed);
            self.failures.insert(seed, failure);
            if self.failures.len() > FAILURES_KEPT {
                self.failures.pop_last();
            }
            change.is_kept = self.failures.contains_key(&seed);
        }
        change
    }

    /// The report without the failures, and with at most so many failing seeds, of a sweep that demands this.
    pub(super) fn report(
        &self,
        entry: &dyn Entry,
        demands: &Demands,
        share: &Share,
        simulated: bool,
        most_seeds: usize,
    ) -> WorkloadReport {
        let mut failing_seeds = self.failing.clone();
        failing_seeds.sort_unstable();
        failing_seeds.truncate(most_seeds);
        let delivered =
            |family: Family| self.report.faults_delivered.get(family.name()).copied().unwrap_or(0);
        let demands = simulated.then(|| demands.faults());
        let outcomes = self.report.outcomes.iter().map(|(kind, of_kind)| (&**kind, of_kind));
        let vacuous = vacuous::judge(&self.report.counters, outcomes, delivered, demands, self.report.runs);
        WorkloadReport {
            workload: entry.name().to_owned(),
            ran: self.ran.seeds(share),
            points: report::points(entry.points(), &self.points),
            vacuous,
            failing_seeds,
            ..self.report.clone()
        }
    }
}
