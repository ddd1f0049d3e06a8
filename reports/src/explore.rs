//! Explorations: how many outcomes and orders of a few operations there are, how many were run, and which
//! failed.

use crate::{
    bugs::Catch,
    run::Conclusion,
    sweep::{Cost, Ending},
};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A part of an exploration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExploredPart {
    /// What its runs differ in: `whole` (plans as they are drawn), `plain` (a few operations as they are),
    /// `outcome`, `order`, `two-outcomes` or `order-of-three`.
    pub part: String,
    /// How many there are, as far as the runs have shown.
    pub known: u64,
    /// How many were run.
    pub ran: u64,
    /// In how many of them it could not happen.
    pub impossible: u64,
    /// How many of them failed.
    pub failed: u64,
}

/// A run that failed: the first one of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExploredFailure {
    /// The part.
    pub part: String,
    /// The seed of its plan.
    pub seed: u64,
    /// What happened in it.
    pub what: String,
    /// The judge.
    pub judge: String,
    /// What the judge found.
    pub message: String,
    /// Whether the judge accuses the simulated cluster.
    pub harness: bool,
    /// The command line that replays it; `None` if its plan was not written.
    pub replay: Option<String>,
}

/// The exploration of one workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExploredWorkload {
    /// Its name.
    pub workload: String,
    /// The planted bug that was switched on.
    pub bug: Option<String>,
    /// The kinds of operations to which outcomes happened.
    pub kinds: u64,
    /// The kinds of operations that were drawn.
    pub kinds_drawn: u64,
    /// The parts.
    pub parts: Vec<ExploredPart>,
    /// The failures.
    pub failures: Vec<ExploredFailure>,
    /// Whether its budget or an interrupt ended it.
    pub stopped: bool,
    /// For a planted bug that was not found: a run with drawn faults that catches it, cut down to what it
    /// needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn: Option<Catch>,
    /// Its CPU time, nanoseconds.
    pub cpu_ns: u64,
}

impl ExploredWorkload {
    /// The runs of a part, if it has this name.
    pub fn part(&self, name: &str) -> ExploredPart {
        self.parts.iter().find(|part| part.part == name).cloned().unwrap_or_default()
    }

    /// The sum of a number over all parts.
    pub fn sum(&self, number: impl Fn(&ExploredPart) -> u64) -> u64 {
        self.parts.iter().map(number).sum()
    }

    /// Outcomes and orders that were not run.
    pub fn not_run(&self) -> u64 {
        self.sum(|part| part.known - part.ran)
    }

    /// Outcomes and orders that were run.
    pub fn explored(&self) -> u64 {
        self.sum(|part| if ["whole", "plain"].contains(&part.part.as_str()) { 0 } else { part.ran })
    }

    /// The failure with which a planted bug is found: of what was explored, and not of a whole plan, where
    /// the delays that a seed draws decide.
    pub fn found(&self) -> Option<&ExploredFailure> {
        self.failures.iter().find(|failure| failure.part != "whole")
    }
}

/// The explorations of some workloads, or of planted bugs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExploreReport {
    /// The seeds whose plans were explored: from the first up to, but excluding, the second.
    pub seeds: Range<u64>,
    /// Whether planted bugs are to be found; otherwise no run may fail.
    pub bugs: bool,
    /// Why it ended.
    pub ending: Ending,
    /// The explorations, in catalogue order.
    pub workloads: Vec<ExploredWorkload>,
    /// The cost of the command.
    pub cost: Cost,
}

impl ExploreReport {
    /// A failure without a planted bug, or with a bug that was asked for, violates; a planted bug that is not
    /// found needs more than what was explored, which is not a failure.
    pub fn outcome(&self) -> Conclusion {
        let mut failures = self.workloads.iter().flat_map(|workload| &workload.failures);
        let is_empty = |workload: &ExploredWorkload| workload.explored() == 0 && workload.failures.is_empty();
        match self.workloads.iter().all(is_empty) {
            _ if failures.clone().any(|failure| failure.harness) => Conclusion::Harness,
            _ if !self.bugs && failures.next().is_some() => Conclusion::Violated,
            _ if self.ending == Ending::Interrupted => Conclusion::Interrupted,
            true => Conclusion::Vacuous,
            false => Conclusion::Passed,
        }
    }

    /// The planted bugs that were found.
    pub fn found(&self) -> usize {
        self.workloads.iter().filter_map(ExploredWorkload::found).count()
    }
}
