//! A sweep that still goes on: what `watch` shows.

use crate::{history::Size, run::RunReport, sweep::SweepReport};
use serde::{Deserialize, Serialize};

/// What a sweep does at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// It replays the regressions.
    #[default]
    Regressions,
    /// It runs seeds.
    Runs,
    /// It shrinks failures.
    Shrinking,
    /// It has ended.
    Ended,
}

/// A sweep at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchReport {
    /// What the sweep does.
    pub stage: Stage,
    /// Real time since its start, nanoseconds.
    pub elapsed_ns: u64,
    /// The real time after which no further seed is started, nanoseconds, if there is a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ns: Option<u64>,
    /// How many seeds each workload has in the whole sweep.
    pub seeds: u64,
    /// The report that the sweep would have if it were interrupted now; once it has ended, its report. The
    /// failures are in `findings` instead, and of each workload's failing seeds only the first
    /// [`SEEDS_KEPT`] are listed.
    pub sweep: SweepReport,
    /// How many coverage points had been reached, at the start and whenever there was another one.
    pub coverage: Vec<Reached>,
    /// The failures that are kept, in the order in which they were found.
    pub findings: Vec<WatchedFinding>,
}

/// The most failing seeds that a [`WatchReport`] lists for a workload.
pub const SEEDS_KEPT: usize = 100;

/// How many coverage points of all workloads had been reached at a moment of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// The runs that had ended.
    pub runs: u64,
    /// Real time since the start of the sweep, nanoseconds.
    pub elapsed_ns: u64,
    /// The points that had been reached.
    pub points: u64,
}

/// A failure of a sweep that goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchedFinding {
    /// The runs that had ended when it was found, its own included.
    pub runs: u64,
    /// Real time from the start of the sweep until it was found, nanoseconds.
    pub elapsed_ns: u64,
    /// Its report, without its plan and without what remained of it.
    pub run: RunReport,
    /// How far it has been shrunk, if that has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shrinking: Option<Shrinking>,
}

/// How far a failing run has been shrunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shrinking {
    /// How many runs the search has done.
    pub runs: u64,
    /// The size of the plan at first.
    pub before: Size,
    /// The size of the smallest plan so far that fails.
    pub now: Size,
    /// How the search stands.
    pub state: ShrinkState,
}

/// How the search for a smaller plan stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShrinkState {
    /// It goes on.
    Searching,
    /// Nothing more can be taken away.
    Minimal,
    /// It was ended before that.
    Stopped,
    /// The run did not fail again.
    NotRepeated,
}

impl WatchReport {
    /// The number of runs of all workloads if every seed is run.
    pub fn all_runs(&self) -> u64 {
        self.seeds.saturating_mul(self.sweep.workloads.len() as u64)
    }

    /// How much of the sweep is done, from 0 to 1: of its runs or of its budget, whichever is more.
    pub fn share(&self) -> f64 {
        let of = |n: u64, all: u64| if all == 0 { 0.0 } else { (n as f64 / all as f64).min(1.0) };
        let runs = of(self.sweep.runs(), self.all_runs());
        self.budget_ns.map_or(runs, |budget| runs.max(of(self.elapsed_ns, budget)))
    }
}
