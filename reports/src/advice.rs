//! Advice: what the documents' guidelines say about the traffic of a workload.

use crate::sweep::{Cost, Ending};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How a measured number compares with its guideline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// It follows the guideline.
    Fine,
    /// It deserves a look.
    Look,
    /// It exceeds a limit, or the guideline by far.
    Over,
}

impl Severity {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Fine => "fine",
            Severity::Look => "look",
            Severity::Over => "over",
        }
    }
}

/// A measured number and its guideline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdviceEntry {
    /// What it is about: `hot key`, `conflicts`, `growth`, ...
    pub topic: String,
    /// How it compares with the guideline.
    pub severity: Severity,
    /// The kind of operations, if it is about one.
    pub kind: Option<String>,
    /// What was measured, in a sentence without a full stop.
    pub measured: String,
    /// The number, by which entries are compared.
    pub number: f64,
    /// The unit of the number.
    pub unit: String,
    /// What the guideline says.
    pub guideline: String,
    /// The document and the section of the guideline.
    pub source: String,
}

/// The advice for one workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadAdvice {
    /// Its name.
    pub workload: String,
    /// The planted bug that was switched on.
    pub bug: Option<String>,
    /// The runs.
    pub runs: u64,
    /// The runs with a finding of a judge.
    pub failed: u64,
    /// The number of clients: the smallest and the largest of a run.
    pub clients: (u64, u64),
    /// Their operations in all runs.
    pub operations: u64,
    /// The operations a second of virtual time: of all runs, and of the busiest one.
    pub rates: (f64, f64),
    /// The entries, the most important ones first.
    pub entries: Vec<AdviceEntry>,
}

impl WorkloadAdvice {
    /// The entries that deserve a look or exceed a limit.
    pub fn noted(&self) -> impl Iterator<Item = &AdviceEntry> {
        self.entries.iter().filter(|entry| entry.severity > Severity::Fine)
    }
}

/// The advice for some workloads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdviceReport {
    /// The seeds: from the first up to, but excluding, the second.
    pub seeds: Range<u64>,
    /// The fault profile.
    pub faults: String,
    /// Why it ended.
    pub ending: Ending,
    /// The advice, in catalogue order.
    pub workloads: Vec<WorkloadAdvice>,
    /// The cost of the command.
    pub cost: Cost,
}
