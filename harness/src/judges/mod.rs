//! The judges: each one makes one claim about the recorded data of a run.
//!
//! Four judges check the simulated cluster itself on every seed: [`serializable`], [`real_time`], [`durable`] and
//! [`convergent`]. Their findings accuse the harness and never the layer. The others check the workload: [`model`],
//! [`audits`], [`conflict_free`] and [`live`]. [`vacuous`] judges all runs of a sweep together.

#[cfg(test)]
pub(crate) mod alarms;
pub mod audits;
pub mod conflict_free;
pub mod convergent;
pub mod durable;
mod keyspace;
pub mod live;
mod misfit;
pub mod model;
pub mod real_time;
pub mod serializable;
mod snapshot;
mod timeline;
mod truth;
mod unfit;
pub mod vacuous;
pub mod waiting;
mod witness;
mod writes;

pub use keyspace::Keyspace;
pub(crate) use misfit::of as of_operation;
pub use shaketable_sim::storage::Replica;
pub use snapshot::Snapshot;
pub use timeline::{KnownCommit, Timeline};
pub use truth::Truth;
pub use unfit::Unfit;
pub(crate) use witness::observed;

use crate::finding::{Kind, Objection};
use shaketable_sim::history::History;

/// The data that the judges of the cluster read.
pub struct Evidence<'a> {
    /// The history.
    pub history: &'a History,
    /// What committed.
    pub truth: &'a Truth,
    /// The final contents of each storage server.
    pub replicas: &'a [Replica],
}

/// What a judge says about a run. The error has what contradicts its claim.
pub type Judgement = Result<(), Box<Objection>>;

/// A judge of the cluster.
pub type ClusterJudge = fn(&Evidence<'_>) -> Judgement;

/// The judges of the cluster, each with the kind of its finding.
pub const CLUSTER: &[(Kind, ClusterJudge)] = &[
    (Kind::Serializable, serializable::judge),
    (Kind::RealTime, real_time::judge),
    (Kind::Durable, durable::judge),
    (Kind::Convergent, convergent::judge),
];

/// A key or value in readable form: printable ASCII unchanged, other bytes escaped, truncated after 64 bytes.
pub(crate) fn show(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(64)];
    let rest = if cut.len() < bytes.len() { format!("… ({} bytes)", bytes.len()) } else { String::new() };
    format!("\"{}{rest}\"", cut.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::show;

    #[test]
    fn bytes_are_shown_up_to_the_sixty_fourth() {
        assert_eq!(show(b"a\xff"), r#""a\xff""#);
        assert_eq!(show(&[b'x'; 64]), format!("\"{}\"", "x".repeat(64)));
        assert_eq!(show(&[b'x'; 65]), format!("\"{}… (65 bytes)\"", "x".repeat(64)));
    }
}
