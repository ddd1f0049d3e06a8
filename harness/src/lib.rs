//! Shakes FoundationDB layers on a simulated cluster, reproducibly from a seed.
//!
#![doc = include_str!("guide.md")]
// What is public can be named from outside.
#![cfg_attr(feature = "command", warn(unreachable_pub))]

#[cfg(feature = "command")]
pub mod command;
mod describe;
pub mod judge;
pub mod prelude;
mod run;
mod search;
mod tell;

#[cfg(any(feature = "embedded", feature = "fdb-client"))]
pub use describe::foundationdb;
pub use describe::{
    erased,
    invariants::{self, Guarded, Invariants},
    isolation,
    misfit::Misfit,
    models, sessions, specimen, strategies, waiting, weakened,
    workload::{self, Bug, Outcome, Step, Workload},
};
pub use judge::{finding, panics};
pub use run::{allocations, calm, plan, real, regressions, runner};
pub use search::{
    determinism, entry, explore,
    foreign::{self, Foreign},
    seeds,
    shake::{self, Shake},
    shrink, when,
};
pub use tell::advice;

/// What this crate's macros name.
#[doc(hidden)]
pub mod __private {
    pub use crate::describe::{sessions::set_up, specimen::stored};
    pub use bytes::Bytes;
    pub use proptest::strategy::{BoxedStrategy, Just, Strategy, Union};
    pub use serde;
    pub use shaketable_sim::seed::Stream;
    pub use shaketable_tx::{self as tx, Database, Env, Isolation, RunError, Transaction};
}
