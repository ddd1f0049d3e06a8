//! The judges of the simulated cluster: each makes one claim about the recorded data of a run, whatever the
//! program was that used the cluster. Their objections accuse the simulator.

mod appends;
mod combine;
pub mod convergent;
pub mod durable;
mod early;
mod keyspace;
mod objection;
mod ongoing;
pub mod real_time;
pub mod serializable;
mod timeline;
mod truth;
pub mod writes;

pub use crate::storage::Replica;
pub use appends::{Appends, Joined, may_join};
pub use combine::combine;
pub use early::Early;
pub use keyspace::{Keyspace, Undo};
pub use objection::{Objection, Said, Witness, truncated};
pub use ongoing::{Ongoing, final_at};
pub use timeline::{KnownCommit, Timeline};
pub use truth::Truth;

use crate::history::History;

/// Keys that begin so are records of the sessions of clients, which a witness names only if it has no others:
/// the tuple `("sessions", ..)`.
pub const SESSIONS: &[u8] = b"\x02sessions\0";

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judge {
    /// [`serializable`]
    Serializable,
    /// [`real_time`]
    RealTime,
    /// [`durable`]
    Durable,
    /// [`convergent`]
    Convergent,
}

impl Judge {
    /// All of them, in the order of their findings.
    pub const ALL: [Judge; 4] = [Judge::Serializable, Judge::RealTime, Judge::Durable, Judge::Convergent];

    /// What it claims, in a few words.
    pub const fn claim(self) -> &'static str {
        match self {
            Judge::Serializable => "transactions are serializable",
            Judge::RealTime => "a transaction sees what was acknowledged before it began",
            Judge::Durable => "acknowledged commits are kept",
            Judge::Convergent => "replicas are identical",
        }
    }

    /// Its judgement.
    pub fn judge(self, evidence: &Evidence<'_>) -> Judgement {
        match self {
            Judge::Serializable => serializable::judge(evidence),
            Judge::RealTime => real_time::judge(evidence),
            Judge::Durable => durable::judge(evidence),
            Judge::Convergent => convergent::judge(evidence),
        }
    }
}
