//! Shakes FoundationDB layers on a simulated cluster, reproducibly from a seed.
//!
#![doc = include_str!("guide.md")]
// What is public can be named from outside.
#![cfg_attr(feature = "command", warn(unreachable_pub))]

pub mod advice;
#[cfg(feature = "command")]
pub mod command;
pub mod prelude;

// The rooms below these are another crate, and are named here as if they were in this one.
use shaketable_run::{describe, run, search};

#[doc(no_inline)]
pub use judge::{finding, panics};
pub use shaketable_macros::{planted, workload};
#[doc(hidden)]
pub use shaketable_run::__private;
#[cfg(any(feature = "embedded", feature = "fdb-client"))]
#[doc(inline)]
pub use shaketable_run::foundationdb;
#[doc(inline)]
pub use shaketable_run::specimen::table;
#[doc(inline)]
pub use shaketable_run::{
    Bug, Foreign, Guarded, Invariants, Misfit, Outcome, Shake, Staleness, Step, Workload, allocations,
    beside, calm, determinism, entry, erased, explore, foreign, invariants, isolation, judge, models, plan,
    planted_bugs, real, regressions, runner, seeds, sessions, shake, shrink, specimen, strategies, waiting,
    weakened, when, workload,
};
