//! The results for planted bugs: which were caught, by which judge, and how long it took.

use crate::{
    run::Conclusion,
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
    /// What the judge found.
    pub message: String,
    /// The run's event hash, 16 hexadecimal digits.
    pub event_hash: String,
    /// The command line that reproduces the run.
    pub replay: String,
    /// What remained of the run when it was shrunk, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shrunk: Option<Shrunk>,
}

/// What remained of a run that was shrunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shrunk {
    /// Operations.
    pub operations: u64,
    /// Clients with an operation.
    pub clients: u64,
    /// Strikes and other faults.
    pub faults: u64,
    /// Runs of the search.
    pub replays: u64,
    /// CPU time of the search, nanoseconds.
    pub cpu_ns: u64,
    /// Whether nothing more could be taken away; `false` if a limit ended the search.
    pub is_minimal: bool,
    /// The kinds of operations that the finding named at first, and no longer names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What decides in which order things happen in it.
    #[serde(default)]
    pub schedule: Schedule,
    /// The families of its faults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub families: Vec<String>,
    /// How the run of its repro file differs from the run that was found, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
}

/// What decides in which order things happen in a run that was shrunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// The plan alone: every message, and every access of a disk, takes the same time whenever it is made.
    Even,
    /// The plan alone: it has an order of read versions and commits.
    Ordered,
    /// Delays that are drawn from the seed.
    #[default]
    Drawn,
}

/// One planted bug.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BugReport {
    /// The place where it is planted: a workload's name, or `cluster`.
    pub place: String,
    /// Its name.
    pub bug: String,
    /// A description of the bug.
    pub about: String,
    /// The number of runs, including the one that caught it.
    pub runs: u64,
    /// The CPU time of these runs, nanoseconds.
    pub cpu_ns: u64,
    /// The catch; `None` if it was missed or not reached.
    pub caught: Option<Catch>,
    /// What went wrong instead of a catch: a judge of the wrong kind objected.
    pub wrong_judge: Option<String>,
    /// Whether a run on a real cluster accused the cluster, and said nothing of the layer that explains it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accuses_cluster: bool,
    /// What it takes to show the bug that only a simulated cluster has, if a real one did not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_simulated: Option<String>,
}

/// The results for all planted bugs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BugsReport {
    /// The fault profile: calm, standard or storm.
    pub faults: String,
    /// The seeds to try for each bug: from the first up to, but excluding, the second.
    pub seeds: Range<u64>,
    /// Whether the runs used a real cluster, on which the condition of a bug need not occur.
    #[serde(default)]
    pub real: bool,
    /// Why it ended.
    pub ending: Ending,
    /// Every bug, in catalogue order.
    pub bugs: Vec<BugReport>,
    /// The cost of the command.
    pub cost: Cost,
}

impl BugsReport {
    /// The number of bugs caught.
    pub fn caught(&self) -> usize {
        self.bugs.iter().filter(|b| b.caught.is_some()).count()
    }

    /// Whether more seeds were to be tried for this bug when the command ended early.
    pub fn is_left(&self, bug: &BugReport) -> bool {
        bug.caught.is_none()
            && bug.wrong_judge.is_none()
            && bug.only_simulated.is_none()
            && self.ending != Ending::Complete
            && bug.runs < self.max_runs()
    }

    /// The maximum number of seeds that are tried for a bug.
    pub fn max_runs(&self) -> u64 {
        self.seeds.end.saturating_sub(self.seeds.start)
    }

    /// The number of bugs for which seeds are left to try.
    pub fn left(&self) -> usize {
        self.bugs.iter().filter(|bug| self.is_left(bug)).count()
    }

    /// The number of bugs that were not caught although every seed was tried, or a judge of the wrong kind
    /// objected.
    pub fn missed(&self) -> usize {
        let is_missed =
            |bug: &&BugReport| bug.caught.is_none() && bug.only_simulated.is_none() && !self.is_left(bug);
        self.bugs.iter().filter(is_missed).count()
    }

    /// The number of bugs not caught that a real cluster cannot show.
    pub fn only_simulated(&self) -> usize {
        self.bugs.iter().filter(|bug| bug.only_simulated.is_some()).count()
    }

    /// The number of bugs with runs that accuse a real cluster.
    pub fn accuses_cluster(&self) -> usize {
        self.bugs.iter().filter(|bug| bug.accuses_cluster).count()
    }

    /// Missing one bug is a failure; on a real cluster, only missing all of them is, or an objection of a
    /// judge of the wrong kind. A real cluster that is accused may be at fault, whatever else was caught.
    pub fn outcome(&self) -> Conclusion {
        match self.bugs.len() {
            _ if self.ending == Ending::Lost || self.different().next().is_some() => Conclusion::Harness,
            _ if self.accuses_cluster() > 0 => Conclusion::Harness,
            0 => Conclusion::Vacuous,
            n if self.caught() == n => Conclusion::Passed,
            _ if self.missed() > 0 && !self.is_sufficient() => Conclusion::Violated,
            _ if self.ending == Ending::Interrupted => Conclusion::Interrupted,
            _ if self.caught() == 0 => Conclusion::Vacuous,
            _ => Conclusion::Passed,
        }
    }

    /// Whether a real cluster has shown as many of the bugs as can be expected.
    fn is_sufficient(&self) -> bool {
        self.real
            && matches!(self.ending, Ending::Complete | Ending::Budget)
            && self.caught() > 0
            && self.bugs.iter().all(|bug| bug.wrong_judge.is_none())
    }

    /// What remained of the runs that were shrunk.
    pub fn shrunk(&self) -> impl Iterator<Item = &Shrunk> {
        self.bugs.iter().filter_map(|bug| bug.caught.as_ref()?.shrunk.as_ref())
    }

    /// The bugs whose run was shrunk to a repro file that gives another run, and how it differs.
    pub fn different(&self) -> impl Iterator<Item = (&BugReport, &str)> {
        self.bugs.iter().filter_map(|bug| {
            let shrunk = bug.caught.as_ref()?.shrunk.as_ref()?;
            Some((bug, shrunk.difference.as_deref()?))
        })
    }

    /// The median, the 90th percentile and the maximum of a number of what remained of the runs that were
    /// shrunk; `None` if none was.
    pub fn quantiles_shrunk(&self, number: impl Fn(&Shrunk) -> u64) -> Option<[u64; 3]> {
        let mut values: Vec<u64> = self.shrunk().map(number).collect();
        values.sort_unstable();
        let at = |percent: usize| values.get((values.len() * percent).div_ceil(100).checked_sub(1)?).copied();
        Some([at(50)?, at(90)?, at(100)?])
    }

    /// The median number of runs until a catch, over the bugs caught.
    pub fn median_runs(&self) -> Option<u64> {
        median(self.bugs.iter().filter(|b| b.caught.is_some()).map(|b| b.runs).collect())
    }

    /// The median CPU time until a catch, nanoseconds, over the bugs caught. It is not known of runs on a
    /// real cluster, whose client has threads of its own.
    pub fn median_cpu_ns(&self) -> Option<u64> {
        if self.real {
            return None;
        }
        median(self.bugs.iter().filter(|b| b.caught.is_some()).map(|b| b.cpu_ns).collect())
    }
}

/// The lower median.
fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}
