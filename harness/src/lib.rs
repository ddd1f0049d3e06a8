//! Shakes FoundationDB layers on a simulated cluster, reproducibly from a seed.
//!
//! [`workload`] says what a workload is, [`specimen`] what suffices for a layer whose operations each are one
//! transaction; [`plan`] draws a run from a seed as plain data; [`runner`] performs it on a simulated cluster;
//! [`judges`] read its history, each making one claim; [`real`] performs it on a real cluster. [`Shake`] runs a
//! workload from an ordinary test.

mod macros;

pub mod calm;
#[cfg(feature = "command")]
pub mod command;
pub mod determinism;
pub mod entry;
pub mod judges;
pub mod looks;
pub mod models;
mod pass_on;
pub mod plan;
pub mod real;
pub mod runner;
pub mod seeds;
pub mod sessions;
pub mod shake;
pub mod specimen;
pub mod strategies;
pub mod workload;

pub use shake::Shake;
pub use workload::{Bug, Outcome, Step, Workload};
