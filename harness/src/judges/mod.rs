//! The judges: each reads what a run left behind and makes one claim.
//!
//! Four judge the simulated cluster itself, on every seed: [`serializable`], [`real_time`],
//! [`durable`], [`convergent`]. What they find is the harness's own fault, never the layer's. The
//! others judge the workload: [`model`], [`audits`], [`conflict_free`], [`live`]. Whether a sweep was vacuous is judged over all its
//! runs, by [`vacuous`].

#[cfg(test)]
pub(crate) mod alarms;
pub mod audits;
pub mod conflict_free;
pub mod convergent;
pub mod durable;
mod keyspace;
pub mod live;
pub mod model;
pub mod real_time;
pub mod serializable;
mod snapshot;
mod timeline;
mod truth;
pub mod vacuous;
pub mod waiting;

pub use keyspace::Keyspace;
pub use shaketable_sim::storage::Replica;
pub use snapshot::Snapshot;
pub use timeline::{Decided, Timeline};
pub use truth::Truth;

use crate::finding::Kind;
use shaketable_sim::history::History;

/// What the judges of the cluster read.
pub struct Evidence<'a> {
    /// Everything recorded.
    pub history: &'a History,
    /// What committed.
    pub truth: &'a Truth,
    /// What each storage server holds at the end.
    pub replicas: &'a [Replica],
}

/// A judge of the cluster. Its error says what contradicts its claim.
pub type ClusterJudge = fn(&Evidence<'_>) -> Result<(), String>;

/// The judges of the cluster, each with the kind of its finding.
pub const CLUSTER: &[(Kind, ClusterJudge)] = &[
    (Kind::Serializable, serializable::judge),
    (Kind::RealTime, real_time::judge),
    (Kind::Durable, durable::judge),
    (Kind::Convergent, convergent::judge),
];

/// A key or value as a person reads it: printable ASCII as it is, the rest escaped, cut at 64 bytes.
pub(crate) fn show(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(64)];
    let rest = if cut.len() < bytes.len() { format!("… ({} bytes)", bytes.len()) } else { String::new() };
    format!("\"{}{rest}\"", cut.escape_ascii())
}
