//! Shakes FoundationDB layers on a simulated cluster, reproducibly from a seed.
//!
#![doc = include_str!("guide.md")]

mod macros;

pub mod advice;
pub mod calm;
#[cfg(feature = "command")]
pub mod command;
pub mod determinism;
pub mod entry;
pub mod erased;
pub mod explore;
pub mod finding;
#[cfg(any(feature = "embedded", feature = "fdb-client"))]
pub mod foundationdb;
pub mod invariants;
pub mod isolation;
pub mod judges;
mod kinds;
pub mod models;
pub mod panics;
mod pass_on;
pub mod plan;
mod pool;
pub mod prelude;
pub mod real;
pub mod regressions;
pub mod runner;
pub mod seeds;
pub mod sessions;
pub mod shake;
pub mod shrink;
pub mod specimen;
#[cfg(feature = "state-machine")]
pub mod state_machine;
pub mod strategies;
pub mod weakened;
pub mod workload;

pub use invariants::{Guarded, Invariants};
pub use shake::Shake;
pub use workload::{Bug, Outcome, Step, Workload};

/// What this crate's macros name.
#[doc(hidden)]
pub mod __private {
    pub use proptest::strategy::{BoxedStrategy, Just, Strategy, Union};
    pub use serde;
    pub use shaketable_tx::Transaction;
}
