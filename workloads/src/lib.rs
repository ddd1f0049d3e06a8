//! Concurrent workloads that shake FoundationDB layers and check their invariants, replayable from
//! a seed.
//!
//! [`workload`] says what a workload is; [`plan`] draws a run from a seed as plain data;
//! [`runner`] performs it on a simulated cluster; [`judges`] read its history, each making one
//! claim; [`real`] performs it on a cluster that nobody can look into; [`catalogue`] lists the
//! workloads that come with the `shaketable` command. [`Shake`] is how a crate of one's own runs a
//! workload from an ordinary test.

mod beside;
pub mod calm;
pub mod catalogue;
pub mod conformance;
pub mod determinism;
pub mod judges;
mod looks;
pub mod models;
mod pass_on;
pub mod plan;
pub mod real;
pub mod runner;
mod sabotage;
pub mod seeds;
mod sessions;
pub mod shake;
pub mod specimen;
pub mod strategies;
pub mod workload;
pub mod workloads;

pub use shake::Shake;
pub use workload::{Bug, Outcome, Step, Workload};
