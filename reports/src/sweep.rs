//! A sweep: many seeds for some workloads.

use crate::{
    distribution::Distribution,
    regressions::RegressionReport,
    run::{Conclusion, Counters, Outcomes, PointReport, RunReport, Scale},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, ops::Range};

/// Why a sweep ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Every seed was run.
    #[default]
    Complete,
    /// The budget was used up.
    Budget,
    /// The command was interrupted.
    Interrupted,
    /// The real cluster no longer responds.
    Lost,
    /// The file of the report can no longer be written.
    Unwritable,
}

/// The cost of an activity. It differs between machines and between runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time, nanoseconds.
    pub cpu_ns: u64,
    /// Wall-clock time, nanoseconds.
    pub wall_ns: u64,
    /// The process's peak resident size so far, bytes; 0 if the system does not report it.
    pub peak_memory: u64,
}

impl Cost {
    /// The combined cost of this and a subsequent activity.
    pub fn and(self, other: Cost) -> Cost {
        Cost {
            cpu_ns: self.cpu_ns.saturating_add(other.cpu_ns),
            wall_ns: self.wall_ns.saturating_add(other.wall_ns),
            peak_memory: self.peak_memory.max(other.peak_memory),
        }
    }
}

/// A sweep over one workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadReport {
    /// The workload's name.
    pub workload: String,
    /// The number of seeds run.
    pub runs: u64,
    /// Which seeds, as half-open ranges. The ranges of a shard include seeds of other shards.
    pub ran: Vec<Range<u64>>,
    /// Runs in which no judge objected.
    pub passed: u64,
    /// Runs in which an invariant of the workload was violated.
    pub violated: u64,
    /// Runs that were stuck.
    pub stuck: u64,
    /// Runs in which the harness itself was at fault.
    pub harness: u64,
    /// Seeds whose runs did not pass, ascending.
    pub failing_seeds: Vec<u64>,
    /// The first of these in full, in the order of their seeds.
    pub failures: Vec<RunReport>,
    /// Seeds that were run twice for comparison.
    pub run_twice: u64,
    /// The number of them whose second run differed.
    pub differing: u64,
    /// Counters, summed.
    pub counters: Counters,
    /// How its operations ended, by kind, summed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outcomes: BTreeMap<String, Outcomes>,
    /// Faults delivered, by family, summed.
    pub faults_delivered: BTreeMap<String, u64>,
    /// Coverage points, by name.
    pub points: Vec<PointReport>,
    /// What this sweep required to happen and did not: the descriptive names of counters that are zero, and
    /// the kinds of operations of which none was done.
    pub vacuous: Vec<String>,
    /// The names of coverage points that this sweep required to be reached and that were not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed_points: Vec<String>,
    /// Its regressions, which are not among the runs, by the names of their files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regressions: Vec<RegressionReport>,
    /// The virtual time from the call of an operation to its answer, microseconds.
    #[serde(default, skip_serializing_if = "Distribution::is_empty")]
    pub latencies: Distribution,
    /// The attempts at transactions of an operation, with those after a conflict or another error.
    #[serde(default, skip_serializing_if = "Distribution::is_empty")]
    pub attempts: Distribution,
    /// Virtual time, summed, nanoseconds.
    pub virtual_ns: u64,
    /// CPU time, summed, nanoseconds.
    pub cpu_ns: u64,
}

impl WorkloadReport {
    /// The worst outcome of its runs and of its regressions, taking vacuous sweeps into account.
    pub fn outcome(&self) -> Conclusion {
        let regressions = self.regressions.iter().map(RegressionReport::outcome).max();
        self.outcome_of_runs().max(regressions.unwrap_or(Conclusion::Passed))
    }

    fn outcome_of_runs(&self) -> Conclusion {
        if self.harness > 0 {
            Conclusion::Harness
        } else if self.failed() > 0 {
            Conclusion::Violated
        } else if self.vacuous.is_empty() && self.missed_points.is_empty() {
            Conclusion::Passed
        } else {
            Conclusion::Vacuous
        }
    }

    /// Runs that did not pass.
    pub fn failed(&self) -> u64 {
        self.violated + self.stuck + self.harness
    }

    /// What this sweep required and did not see, as sentences without their subject; empty if it saw
    /// everything.
    pub fn shortfall(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.vacuous.is_empty() {
            lines.push(format!("saw no {}", self.vacuous.join(", no ")));
        }
        lines.extend(self.missed_points.iter().map(|point| format!("never reached: {point}")));
        lines
    }

    /// Adds regressions.
    pub fn add_regressions(&mut self, regressions: impl IntoIterator<Item = RegressionReport>) {
        self.regressions.extend(regressions);
        self.regressions.sort_by(|one, other| one.file.cmp(&other.file));
    }

    /// Adds the figures of other runs: numbers of runs and of events, and distributions. Seeds, failures and
    /// points are left alone.
    pub fn add_figures(&mut self, other: &WorkloadReport) {
        for (sum, n) in [
            (&mut self.runs, other.runs),
            (&mut self.passed, other.passed),
            (&mut self.violated, other.violated),
            (&mut self.stuck, other.stuck),
            (&mut self.harness, other.harness),
            (&mut self.run_twice, other.run_twice),
            (&mut self.differing, other.differing),
            (&mut self.virtual_ns, other.virtual_ns),
            (&mut self.cpu_ns, other.cpu_ns),
        ] {
            *sum = sum.saturating_add(n);
        }
        self.counters.add(&other.counters);
        self.latencies.add(&other.latencies);
        self.attempts.add(&other.attempts);
        self.add_outcomes(other.outcomes.iter().map(|(kind, of_kind)| (&**kind, of_kind)));
        for (family, n) in &other.faults_delivered {
            let sum = self.faults_delivered.entry(family.clone()).or_default();
            *sum = sum.saturating_add(*n);
        }
    }

    /// Adds how operations ended, by kind.
    pub fn add_outcomes<'a>(&mut self, outcomes: impl IntoIterator<Item = (&'a str, &'a Outcomes)>) {
        for (kind, of_kind) in outcomes {
            match self.outcomes.get_mut(kind) {
                Some(sum) => sum.add(of_kind),
                None => drop(self.outcomes.insert(kind.to_owned(), *of_kind)),
            }
        }
    }

    /// How the operations of all kinds ended.
    pub fn ended(&self) -> Outcomes {
        let mut sum = Outcomes::default();
        self.outcomes.values().for_each(|of_kind| sum.add(of_kind));
        sum
    }

    /// Runs per core and minute, at this sweep's speed.
    pub fn runs_per_core_minute(&self) -> f64 {
        per_core_minute(self.runs + self.run_twice, self.cpu_ns)
    }
}

/// The rate per core and minute if `count` took `cpu_ns`; 0 if nothing was measured.
pub(crate) fn per_core_minute(count: u64, cpu_ns: u64) -> f64 {
    if cpu_ns == 0 { 0.0 } else { count as f64 * 60e9 / cpu_ns as f64 }
}

/// A sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepReport {
    /// The fault profile: calm, standard or storm.
    pub faults: String,
    /// Fault families that were switched off.
    pub without: Vec<String>,
    /// How many times as long as usual its runs were.
    #[serde(default, skip_serializing_if = "Scale::is_usual")]
    pub scale: Scale,
    /// The planted bug that was switched on, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bug: Option<String>,
    /// Whether it used a real cluster.
    #[serde(default)]
    pub real: bool,
    /// The requested seeds: from the first up to, but excluding, the second.
    pub seeds: Range<u64>,
    /// The text from which the seeds were drawn, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<String>,
    /// Whether every coverage point had to be reached.
    #[serde(default)]
    pub require_points: bool,
    /// How many of the first seeds, of all shards together, were to be run twice.
    #[serde(default)]
    pub run_twice: u64,
    /// The folder of the regressions that were replayed before the seeds, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regressions: Option<String>,
    /// Whether a regression that cannot be replayed fails the sweep.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict_regressions: bool,
    /// The shard of the seeds that belongs to this sweep: its number, from 1, and the number of shards.
    pub shard: Option<(u64, u64)>,
    /// The number of threads.
    pub jobs: u64,
    /// Why it ended.
    pub ending: Ending,
    /// The outcome over all workloads.
    pub outcome: Conclusion,
    /// Each workload, in the requested order.
    pub workloads: Vec<WorkloadReport>,
    /// The cost of the sweep.
    pub cost: Cost,
}

impl SweepReport {
    /// The worst outcome of all workloads. An interrupted sweep may have missed failures.
    pub fn outcome_of(ending: Ending, workloads: &[WorkloadReport]) -> Conclusion {
        let worst = workloads.iter().map(WorkloadReport::outcome).max().unwrap_or(Conclusion::Vacuous);
        match ending {
            Ending::Interrupted => worst.max(Conclusion::Interrupted),
            _ => worst,
        }
    }

    /// Its speed, with the unit. What a run on a real cluster takes of a processor is mostly the cluster's
    /// and its client's, which the figures of workloads do not have.
    pub fn speed(&self) -> (f64, &'static str) {
        match self.real {
            true => (per_core_minute(self.runs(), self.cost.wall_ns), "seeds per minute"),
            false => (self.total().runs_per_core_minute(), "seeds per core minute"),
        }
    }

    /// The number of runs of all workloads.
    pub fn runs(&self) -> u64 {
        self.workloads.iter().map(|w| w.runs).sum()
    }

    /// All failures that were kept in full, workload by workload.
    pub fn failures(&self) -> impl Iterator<Item = &RunReport> {
        self.workloads.iter().flat_map(|w| &w.failures)
    }

    /// All regressions, workload by workload.
    pub fn regressions(&self) -> Vec<&RegressionReport> {
        self.workloads.iter().flat_map(|w| &w.regressions).collect()
    }

    /// The sum of all workloads, with the name `all`. Failures and points are omitted.
    pub fn total(&self) -> WorkloadReport {
        let mut total = WorkloadReport { workload: "all".to_owned(), ..WorkloadReport::default() };
        self.workloads.iter().for_each(|w| total.add_figures(w));
        total
    }
}
