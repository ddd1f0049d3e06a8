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

use serde::{Deserialize, Serialize};
use shaketable_sim::history::History;

/// What a judge found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The judge's name.
    pub judge: String,
    /// Whether it convicts the harness rather than the workload's layer.
    pub harness: bool,
    /// What it found.
    pub message: String,
}

impl Finding {
    /// A finding about the workload's layer.
    pub fn layer(judge: &str, message: impl Into<String>) -> Finding {
        Finding { judge: judge.to_owned(), harness: false, message: cut(message.into()) }
    }

    /// A finding about the simulated cluster.
    pub fn harness(judge: &str, message: impl Into<String>) -> Finding {
        Finding { judge: judge.to_owned(), harness: true, message: cut(message.into()) }
    }
}

/// A message as long as a person reads it: at most 2,000 characters.
fn cut(mut message: String) -> String {
    const LONGEST: usize = 2_000;
    if let Some((at, _)) = message.char_indices().nth(LONGEST) {
        let rest = message[at..].chars().count();
        message.truncate(at);
        message += &format!("… ({rest} characters more)");
    }
    message
}

/// What the judges of the cluster read.
pub struct Evidence<'a> {
    /// Everything recorded.
    pub history: &'a History,
    /// What committed.
    pub truth: &'a Truth,
    /// What each storage server holds at the end.
    pub replicas: &'a [Replica],
}

/// A judge of the cluster.
pub struct ClusterJudge {
    /// Its name.
    pub name: &'static str,
    /// What it claims of every run.
    pub claim: &'static str,
    /// Judges.
    pub judge: fn(&Evidence<'_>) -> Result<(), String>,
}

/// The judges of the cluster.
pub const CLUSTER: &[ClusterJudge] =
    &[serializable::JUDGE, real_time::JUDGE, durable::JUDGE, convergent::JUDGE];

/// A key or value as a person reads it: printable ASCII as it is, the rest escaped, cut at 64 bytes.
pub(crate) fn show(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(64)];
    let rest = if cut.len() < bytes.len() { format!("… ({} bytes)", bytes.len()) } else { String::new() };
    format!("\"{}{rest}\"", cut.escape_ascii())
}
