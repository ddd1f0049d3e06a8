//! Exploring: certainty beside chance. For plans of a few operations, every outcome of every commit and every
//! order of the read versions and commits of two operations is run, instead of drawing some of them.
//!
//! *Outcomes*: each commit of a few concurrent operations has, one at a time, each outcome that the contract
//! allows: refused, unknown and applied, unknown and not applied (also for good), landing late, the death of
//! the client before and after. Each operation is also dropped after each of its first 64 polls. Then a
//! second outcome follows each first one.
//!
//! *Orders*: for each pair of kinds of operations of two clients, the orders of the read versions and commits
//! of their first four transactions, at most 100
//! ([`FaultPlan::order`](shaketable_sim::faults::FaultPlan::order)). Then the same for three clients.
//!
//! The operations are those that a seed draws. The whole plan of a seed is run first, and shows which keys
//! each of them reads and writes ([`Accesses`]): pairs are made of operations that conflict, after those that
//! made their data and before those that read what they wrote. A [`Subject`] runs what a [`Sketch`] leaves of
//! its plan, on the smallest cluster and without any other fault, so that the exploration does not depend on
//! the workload's types. What it covers is determined by the seeds; nothing in it is left to chance.

mod accesses;
mod case;
mod few;
mod orders;
mod outcome;
mod scene;
mod search;

pub use accesses::Accesses;
pub use case::{Case, Part};
pub(crate) use few::Few;
pub use search::{Done, Exploration, Failure, Found, Tally};

use crate::{run::plan::Sketch, run::runner::Observer, run::runner::RunResult};
use shaketable_sim::seed::Seed;

/// The plan of a seed, of whose operations a few are run at a time.
pub trait Subject: Send + Sync {
    /// The seed from which the run's numbers are drawn.
    fn seed(&self) -> Seed;

    /// The plan without operations and without faults.
    fn empty(&self) -> Sketch;

    /// The operations of each client as text, in the form of Rust's debug output.
    fn operations(&self) -> Vec<Vec<String>>;

    /// Runs what a sketch leaves of the plan.
    fn run(&self, sketch: &Sketch, keep_trace: bool) -> RunResult;

    /// Runs what a sketch leaves of the plan. `observer` sees the run at its end.
    fn observe(&self, sketch: &Sketch, observer: Observer<'_>) -> RunResult;

    /// The plan of a sketch as a repro file.
    fn repro(&self, sketch: &Sketch) -> String;
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_sim::{config::ClusterConfig, faults::FaultPlan};

    /// A sketch of no operations.
    pub(super) fn empty(clients: usize) -> Sketch {
        Sketch {
            operations: vec![Vec::new(); clients],
            faults: FaultPlan::default(),
            cluster: ClusterConfig::smallest(),
            pause: 0,
            schedule: 0,
            configuration: None,
        }
    }
}
