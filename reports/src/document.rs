//! The envelope around every report that is written to a file.

use crate::{
    AdviceReport, BenchReport, BugsReport, ConformanceReport, ContractReport, ExploreReport,
    RegressionsReport, RunReport, SweepReport, WatchReport, WorkloadAdvice,
};
use serde::{Deserialize, Serialize};

/// The version of the reports' schema. It is incremented when a field changes its meaning or is removed;
/// adding fields does not change it.
pub const SCHEMA: u32 = 3;

/// The content of a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "kebab-case")]
pub enum Body {
    /// A sweep over seeds.
    Sweep(SweepReport),
    /// A sweep that goes on.
    Watch(WatchReport),
    /// One run that was replayed.
    Replay(Box<RunReport>),
    /// The results for planted bugs.
    Bugs(BugsReport),
    /// Explorations.
    Explore(ExploreReport),
    /// Advice on traffic.
    Advice(AdviceReport),
    /// Regressions.
    Regressions(RegressionsReport),
    /// Figures.
    Bench(BenchReport),
    /// A comparison with recordings.
    Conformance(ConformanceReport),
    /// The promises of the contract.
    Contract(ContractReport),
}

/// A report with its identification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The [`SCHEMA`] of the program that wrote it.
    pub schema: u32,
    /// Version of the program.
    pub version: String,
    /// Commit of the project that the program was built from.
    pub commit: String,
    /// Advice on the traffic of the workloads in the report, if it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<WorkloadAdvice>,
    /// The report.
    #[serde(flatten)]
    pub body: Body,
}
