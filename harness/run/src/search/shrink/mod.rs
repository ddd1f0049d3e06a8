//! The shrinker: reduces the plan of a failing run to what the failure needs.
//!
//! First the faults that were drawn by rates are written as decisions ([`shaketable_sim::faults::Decision`]),
//! so that each can be removed alone. Then operations, decisions, strikes, the cluster's topology and pauses
//! are removed, in groups and one by one, until nothing more can be removed. The values inside operations are
//! simplified with proptest's value trees, so that they remain values of their strategies. A candidate is
//! accepted if its run fails with the same [`Claim`]: the same judge objects, in the name of the same
//! invariant, to the same kinds of operations, in words and with a difference of the same form, so that the
//! search does not change to another bug. It may name fewer kinds of operations, which is told. No candidate
//! is run twice.
//!
//! The workload's configuration is simplified as JSON, with values that other seeds draw. The remaining
//! operations must be ones that the simpler configuration can draw. Clients without an operation are removed
//! if there is a configuration without them.
//!
//! Removing something shifts the times of all messages. Where the order of two transactions matters, the same
//! plan may therefore fail under one schedule and pass under another: a candidate is tried with several
//! schedules ([`Plan::schedule`](crate::run::plan::Plan::schedule)), and keeps the one under which it failed.
//! In the end the schedule itself is simplified: messages and disk accesses take constant times. If
//! the failure needs another order than the one that results, read versions and commits are made in the
//! [order](shaketable_sim::faults::FaultPlan::order) of the run that failed, as far as the failure needs it.
//!
//! A [`Subject`] runs the candidates of the search.

mod claim;
mod conditions;
mod configuration;
mod form;
mod planned;
mod sampled_values;
mod search;
mod take;
#[cfg(test)]
mod tests;
mod values;

pub use claim::Claim;
pub(crate) use planned::shrink_plan;
pub use search::{Progress, schedules, shrink};
pub use shaketable_reports::Schedule;

pub use crate::run::plan::{Reduced, Sketch};
use crate::run::runner::RunResult;
use serde_json::Value;
pub use shaketable_reports::Size;
use shaketable_sim::faults::{Profile, Step};

/// The plan that is shrunk, and how its candidates are run.
pub trait Subject {
    /// The plan as it is: nothing is taken away.
    fn whole(&self) -> Sketch;

    /// The fault profile that the plan demands.
    fn profile(&self) -> Profile;

    /// Runs the part of the plan that a sketch keeps.
    fn run(&self, sketch: &Sketch) -> RunResult;

    /// A hash of the part of the plan that a sketch keeps. Equal plans have equal hashes.
    fn key(&self, sketch: &Sketch) -> u64;

    /// The requests that the run of a sketch makes, in the order in which they are made.
    fn requests(&self, sketch: &Sketch) -> Vec<Step>;

    /// The configuration of the whole plan as JSON, and what other seeds draw.
    fn configurations(&self) -> (Value, Vec<Value>);

    /// A sketch with another configuration. `None` if there is no such configuration, or if its strategy
    /// could not draw the remaining operations. May panic for an impossible configuration.
    fn configured(&self, sketch: &Sketch, configuration: Value) -> Option<Sketch>;

    /// Records that a sketch, with the current values of the operations, is the smallest plan so far. Undoing
    /// a later simplification need not restore these values.
    fn keep(&mut self, sketch: &Sketch);

    /// Makes one value within the remaining operations of a client simpler. Returns whether there was one.
    fn simplify(&mut self, client: usize, remaining: &[usize]) -> bool;

    /// Undoes the last simplification of a client's values, or makes it smaller. Returns whether the
    /// values differ from those before the call.
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
    /// The kinds of operations that the finding named at first, and no longer names.
    pub left_out: Vec<String>,
    /// What decides in which order things happen.
    pub schedule: Schedule,
}
