//! What a person or a CI system reads of shaketable: plain data of a run, a sweep, a score over
//! planted bugs, a benchmark, a conformance check and a test of the contract, and its renderers.
//!
//! Nothing here knows how a run is made. The data is what [`json`] writes and reads back; every
//! other renderer takes the same data and adds nothing to it, so that one can be written later from
//! a saved report alone.

pub mod bench;
pub mod bugs;
pub mod conformance;
pub mod contract;
pub mod document;
pub mod json;
pub mod run;
pub mod sweep;
pub mod text;

pub use bench::{BenchReport, Figure};
pub use bugs::{BugReport, BugsReport, Catch};
pub use conformance::{ConformanceReport, Difference, FileReport, Impossible};
pub use contract::{ContractCase, ContractReport};
pub use document::{Body, Document, SCHEMA};
pub use run::{Counters, FindingReport, Outcome, PointReport, RunReport, Verdict};
pub use sweep::{Cost, Ending, SweepReport, WorkloadReport};
