//! Regressions: plans that once failed, which every sweep replays before its seeds.

use crate::run::{Conclusion, RunReport};
use serde::{Deserialize, Serialize};

/// What a plan once broke: the field `regression` of a repro file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Regression {
    /// The judge that objected; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
    /// What the judge found, shortened to one line.
    #[serde(default)]
    pub message: String,
    /// The version of the program that added the plan.
    #[serde(default)]
    pub version: String,
    /// The commit of the program that added the plan.
    #[serde(default)]
    pub commit: String,
    /// A note of its user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Regression {
    /// What broke, in one line.
    pub fn what(&self) -> String {
        let judge = self.judge.as_deref().unwrap_or("unknown");
        match (self.message.as_str(), &self.note) {
            ("", None) => judge.to_owned(),
            ("", Some(note)) => format!("{judge} ({note})"),
            (message, None) => format!("{judge}: {message}"),
            (message, Some(note)) => format!("{judge}: {message} ({note})"),
        }
    }
}

/// What became of a regression when it was replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum Replayed {
    /// No judge objected.
    Passed {
        /// The faults of the plan that no longer happen in its run. Without them the plan tests less than it
        /// did.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unmet: Vec<String>,
    },
    /// A judge objected.
    Failed {
        /// The run.
        run: Box<RunReport>,
    },
    /// The plan cannot be replayed: it has another version, or operations that no longer decode.
    Unreadable {
        /// Why, in one line.
        why: String,
        /// Whether this fails the sweep.
        fails: bool,
    },
}

/// One regression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegressionReport {
    /// The path of its file.
    pub file: String,
    /// What it once broke, if its file says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regression: Option<Regression>,
    /// What became of it.
    #[serde(flatten)]
    pub replayed: Replayed,
}

impl RegressionReport {
    /// The outcome of a command that replays only this plan.
    pub fn outcome(&self) -> Conclusion {
        match &self.replayed {
            Replayed::Passed { .. } | Replayed::Unreadable { fails: false, .. } => Conclusion::Passed,
            Replayed::Failed { run } => run.verdict.outcome(),
            Replayed::Unreadable { fails: true, .. } => Conclusion::Violated,
        }
    }

    /// The run, if a judge objected.
    pub fn failure(&self) -> Option<&RunReport> {
        match &self.replayed {
            Replayed::Failed { run } => Some(run),
            _ => None,
        }
    }
}

/// The regressions of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadRegressions {
    /// The workload's name.
    pub workload: String,
    /// Its regressions, by the names of their files.
    pub regressions: Vec<RegressionReport>,
}

/// Regressions that were replayed without a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegressionsReport {
    /// Their folder.
    pub folder: String,
    /// Each workload.
    pub workloads: Vec<WorkloadRegressions>,
    /// The worst outcome.
    pub outcome: Conclusion,
}

impl RegressionsReport {
    /// The report of these regressions.
    pub fn new(folder: String, workloads: Vec<WorkloadRegressions>) -> RegressionsReport {
        let all = workloads.iter().flat_map(|workload| &workload.regressions);
        let outcome = all.map(RegressionReport::outcome).max().unwrap_or(Conclusion::Passed);
        RegressionsReport { folder, workloads, outcome }
    }
}
