//! The score over planted bugs: which were caught, by whom, and how long it took.

use crate::{
    run::Outcome,
    sweep::{Cost, Ending},
};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The run that caught a planted bug.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catch {
    /// The workload in whose run it was caught.
    pub workload: String,
    /// The seed.
    pub seed: u64,
    /// The judge.
    pub judge: String,
    /// What it saw.
    pub message: String,
    /// The run's event hash, 16 hexadecimal digits.
    pub event_hash: String,
    /// The command line that reproduces the run.
    pub replay: String,
}

/// One planted bug.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BugReport {
    /// Where it is planted: a workload's name, or `cluster`.
    pub place: String,
    /// Its name.
    pub bug: String,
    /// What is wrong.
    pub about: String,
    /// Runs made, the catching one included.
    pub runs: u64,
    /// CPU time of these, nanoseconds.
    pub cpu_ns: u64,
    /// The catch; none when it was missed or not reached.
    pub caught: Option<Catch>,
    /// What went wrong instead of a catch: a judge of the wrong kind rang.
    pub mistaken: Option<String>,
}

/// The score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BugsReport {
    /// The fault profile: calm, standard or storm.
    pub faults: String,
    /// The seeds to try on each bug: from the first, up to the second without it.
    pub seeds: Range<u64>,
    /// Whether they ran on a real cluster, which need not do what a bug waits for.
    #[serde(default)]
    pub real: bool,
    /// Why it ended.
    pub ending: Ending,
    /// Every bug, in catalogue order.
    pub bugs: Vec<BugReport>,
    /// What it cost.
    pub cost: Cost,
}

impl BugsReport {
    /// How many were caught.
    pub fn caught(&self) -> usize {
        self.bugs.iter().filter(|b| b.caught.is_some()).count()
    }

    /// Whether a bug was to be tried on more seeds when somebody asked to end.
    pub fn is_left(&self, bug: &BugReport) -> bool {
        bug.caught.is_none()
            && bug.mistaken.is_none()
            && self.ending != Ending::Complete
            && bug.runs < self.most()
    }

    /// How many seeds are tried on a bug at most.
    pub fn most(&self) -> u64 {
        self.seeds.end.saturating_sub(self.seeds.start)
    }

    /// How many are left to be tried.
    pub fn left(&self) -> usize {
        self.bugs.iter().filter(|bug| self.is_left(bug)).count()
    }

    /// How many were tried on every seed, or came to a judge that is mistaken, and were not caught.
    pub fn missed(&self) -> usize {
        self.bugs.iter().filter(|bug| bug.caught.is_none() && !self.is_left(bug)).count()
    }

    /// Missing one bug is a failure of the whole; on a real cluster only missing them all is one, or a judge
    /// that is mistaken.
    pub fn outcome(&self) -> Outcome {
        match self.bugs.len() {
            _ if self.ending == Ending::Lost => Outcome::Harness,
            0 => Outcome::Vacuous,
            n if self.caught() == n => Outcome::Passed,
            _ if self.missed() > 0 && !self.is_content() => Outcome::Violated,
            _ if self.ending == Ending::Interrupted => Outcome::Interrupted,
            _ if self.caught() == 0 => Outcome::Vacuous,
            _ => Outcome::Passed,
        }
    }

    /// Whether what a real cluster has shown of the bugs is all that can be asked of it.
    fn is_content(&self) -> bool {
        self.real
            && matches!(self.ending, Ending::Complete | Ending::Budget)
            && self.caught() > 0
            && self.bugs.iter().all(|bug| bug.mistaken.is_none())
    }

    /// The median number of runs to a catch, over those caught.
    pub fn median_runs(&self) -> Option<u64> {
        median(self.bugs.iter().filter(|b| b.caught.is_some()).map(|b| b.runs).collect())
    }

    /// The median CPU time to a catch, nanoseconds, over those caught.
    pub fn median_cpu_ns(&self) -> Option<u64> {
        median(self.bugs.iter().filter(|b| b.caught.is_some()).map(|b| b.cpu_ns).collect())
    }
}

/// The lower median.
fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}
