//! Systematic exploration. For small groups of operations, every outcome of every commit and the orders of
//! read versions and commits are enumerated and run, instead of drawing some of them at random.
//!
//! *Outcomes*: each commit of a few concurrent operations has, one at a time, each outcome that the contract
//! allows: refused; unknown, applied or not, with an error that is to be retried or with a final one; applied
//! late; the client dies before or after it. Each operation is also dropped after each of its first 64 polls.
//! Then each first outcome is combined with a second one.
//!
//! *Orders*: for each pair of kinds of operations of two clients, the orders of the read versions and commits
//! of their first four transactions, at most 100
//! ([`FaultPlan::order`](shaketable_sim::faults::FaultPlan::order)). Then the same for three clients.
//!
//! The operations are those that a seed draws. The whole plan of a seed is run first, and shows which keys
//! each of them reads and writes ([`Accesses`]): pairs are made of operations that conflict. Before a
//! pair come the operations that wrote its data, and after it those that read what it wrote. A [`Subject`]
//! runs the part of its plan that a [`Sketch`] keeps, on the smallest cluster and without any other fault, so
//! that the exploration does not depend on the workload's types. The seeds determine completely what is
//! covered.

mod accesses;
mod case;
mod orders;
mod outcome;
mod planned;
mod scene;
mod search;

pub use accesses::Accesses;
pub use case::{Case, Part};
pub(crate) use planned::PlanOnSmallestCluster;
pub use search::{Done, Exploration, Failure, Found, Tally};

use crate::{run::plan::Sketch, run::runner::Observer, run::runner::RunResult};
use shaketable_sim::seed::Seed;

/// The plan of a seed, of which a few operations are run at a time.
pub trait Subject: Send + Sync {
    /// The seed from which the run's numbers are drawn.
    fn seed(&self) -> Seed;

    /// The plan without operations and without faults.
    fn empty(&self) -> Sketch;

    /// The operations of each client as text, in the form of Rust's debug output.
    fn operations(&self) -> Vec<Vec<String>>;

    /// Runs the part of the plan that a sketch keeps.
    fn run(&self, sketch: &Sketch, keep_trace: bool) -> RunResult;

    /// Runs the part of the plan that a sketch keeps. `observer` sees the run at its end.
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
