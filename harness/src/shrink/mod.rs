//! The shrinker: cuts the plan of a failing run down to what the failure needs.
//!
//! First the faults that rates gave become decisions ([`shaketable_sim::faults::Decision`]), so that each can be taken
//! away alone. Then operations, decisions, strikes, the cluster's topology and pauses are taken away, in groups and one by
//! one, until none can be, and the values inside operations are simplified with proptest's value trees, so that they
//! keep what their strategies promise. A candidate counts if its run fails with the same [`Claim`].
//!
//! Taking something away shifts the times of all messages. Where the order of two transactions matters, the same plan
//! therefore fails under one schedule and passes under another: a candidate is tried with several
//! ([`Plan::schedule`](crate::plan::Plan::schedule)), and keeps the one under which it failed.
//!
//! The search does not depend on the workload's types, and is compiled once; a [`Subject`] runs its candidates.

mod claim;
mod search;
mod sketch;
mod typed;
mod values;

pub use claim::Claim;
pub use search::{Progress, shrink};
pub use sketch::Sketch;
pub(crate) use typed::Typed;

use crate::runner::RunResult;
pub use shaketable_reports::Size;

/// What is shrunk: the operations of a plan, with their types.
pub trait Subject {
    /// The plan as it is: nothing is taken away.
    fn whole(&self) -> Sketch;

    /// Runs what a sketch leaves of the plan.
    fn run(&self, sketch: &Sketch) -> RunResult;

    /// Makes one value within the remaining operations of a client simpler. Returns whether there was one.
    fn simplify(&mut self, client: usize, remaining: &[usize]) -> bool;

    /// Takes the last simplification of a client's values back, or makes it smaller. Returns whether the values differ
    /// from those before the call.
    fn complicate(&mut self, client: usize) -> bool;
}

/// A plan that was shrunk.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The plan as a repro file.
    pub repro: String,
    /// What failed in it.
    pub result: RunResult,
    /// The sizes of the plan before.
    pub before: Size,
    /// Its sizes now.
    pub after: Size,
    /// How many runs it took.
    pub replays: u64,
    /// Whether nothing more can be taken away; `false` if the search was ended.
    pub is_minimal: bool,
}
