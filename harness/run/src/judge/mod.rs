//! The judges: each one makes one claim about the recorded data of a run.
//!
//! Those of [`shaketable_sim::judges`] check the simulated cluster itself on every seed: [`serializable`],
//! [`real_time`], [`durable`] and [`convergent`]. Their findings accuse the harness and never the layer. The
//! others check the workload: [`model`], [`audits`], [`conflict_free`], [`overwritten`], [`live`], [`slow`],
//! [`neighbours`], [`unexplained`] and [`certain`].
//! [`vacuous`] judges all runs of a sweep together.

#[cfg(test)]
mod alarms;
pub mod audits;
pub mod certain;
pub mod conflict_free;
pub mod finding;
pub mod live;
pub mod model;
pub mod neighbours;
pub mod overwritten;
pub mod panics;
pub mod slow;
mod snapshot;
#[doc(hidden)]
pub mod story;
pub mod times;
pub mod unexplained;
pub mod vacuous;
mod witness;
mod witnesses;

pub(crate) use shaketable_sim::judges::writes;
pub use shaketable_sim::judges::{
    Evidence, Judge, Judgement, Keyspace, KnownCommit, Replica, Timeline, Truth, Undo, convergent, durable,
    real_time, serializable,
};
pub use snapshot::Snapshot;
pub(crate) use witness::observed;
pub(crate) use witnesses::of as of_operation;
