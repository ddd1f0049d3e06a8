//! Shakes FoundationDB layers on a simulated cluster, reproducibly from a seed.
//!
//! There are three ways in. [`invariants!`](macro@invariants) takes operations and what must always hold. A [`specimen::Specimen`] adds a
//! sequential model, which every answer is compared with. A [`Workload`] is free in how a client does an operation:
//! several transactions, watches, waiting. [`prelude`] has the names that all of them need.
//!
//! [`plan`] draws a run from a seed as plain data; [`runner`] performs it on a simulated cluster;
//! [`judges`] read its history, each making one claim; [`real`] performs it on a real cluster. [`Shake`] runs a
//! workload from an ordinary test.

mod macros;

pub mod calm;
#[cfg(feature = "command")]
pub mod command;
pub mod determinism;
pub mod entry;
pub mod finding;
pub mod invariants;
pub mod judges;
pub mod looks;
pub mod models;
pub mod panics;
mod pass_on;
pub mod plan;
mod pool;
pub mod prelude;
pub mod real;
pub mod runner;
pub mod seeds;
pub mod sessions;
pub mod shake;
pub mod specimen;
#[cfg(feature = "state-machine")]
pub mod state_machine;
pub mod strategies;
pub mod workload;

pub use invariants::{Guarded, Invariants};
pub use shake::Shake;
pub use workload::{Bug, Outcome, Step, Workload};

/// What this crate's macros name.
#[doc(hidden)]
pub mod __private {
    pub use proptest::strategy::{BoxedStrategy, Just, Strategy, Union};
    pub use serde;
    pub use shaketable_layers::tx::Transaction;
}
