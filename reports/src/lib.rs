//! The reports of shaketable for people and CI systems: plain data of a run, a sweep, a sweep that goes on,
//! the results for planted bugs, a benchmark, a conformance check and a test of the contract, with their
//! renderers.
//!
//! This crate does not depend on how a run is performed. The data is what [`json`] writes and reads; all
//! other renderers use the same data without adding to it, so that a new one can be applied to saved reports.

pub mod advice;
pub mod annotations;
pub mod bench;
pub mod bugs;
pub mod conformance;
pub mod contract;
pub mod distribution;
pub mod document;
pub mod explore;
pub mod failures;
pub mod history;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod regressions;
pub mod run;
pub mod sweep;
pub mod text;
pub mod watch;
pub mod when;

pub use advice::{AdviceEntry, AdviceReport, Severity, WorkloadAdvice};
pub use bench::{BenchReport, Compared, Comparison, Figure, Ratio};
pub use bugs::{BugReport, BugsReport, Catch, Schedule, Shrunk};
pub use conformance::{ConformanceReport, Difference, FileReport, Impossible};
pub use contract::{ContractCase, ContractReport};
pub use distribution::{Bucket, Distribution};
pub use document::{Body, Document, SCHEMA};
pub use explore::{ExploreReport, ExploredFailure, ExploredPart, ExploredWorkload};
pub use failures::{FailureEntry, FailureList, Sighting};
pub use history::{
    Access, CallEntry, EventEntry, EventKind, Fate, OperationEntry, RowEntry, RunHistory, ShrunkRun, Size,
    TransactionEntry, WitnessEntry,
};
pub use regressions::{Regression, RegressionReport, RegressionsReport, Replayed, WorkloadRegressions};
pub use run::{
    Conclusion, Counters, ErrorReport, FindingReport, Outcomes, PointReport, ProgramReport, RunReport, Scale,
    Verdict,
};
pub use sweep::{Cost, Ending, SweepReport, WorkloadReport};
pub use watch::{Reached, ShrinkState, Shrinking, Stage, WatchReport, WatchedFinding};
pub use when::{Moment, When};
