//! The same workloads on a real cluster, whose inner state is not accessible.
//!
//! A run uses one prefix ([`Site`]) and touches no key outside of it: its clients get a
//! [`Prefixed`](prefixed::Prefixed) database. The clients record the history: each call with its result. Each
//! transaction that writes also writes a versionstamped key, which shows whether it committed ([`log`]).
//! The judges read this history like that of a simulated run. Only conflict ranges are missing, because the C
//! client does not expose them; therefore conflict-free operations are not judged.
//!
//! The tests run it on the simulated cluster.

mod attempt;
#[cfg(test)]
mod late;
mod log;
mod prefixed;
mod recorded;
mod room;
mod site;
mod testbed;

pub use prefixed::Space;
pub use room::key_room;
pub use site::Site;
pub use testbed::run;
pub use testbed::{Conditions, RunError, perform};

use crate::judge::finding::Kind;
use shaketable_tx::{Db, Error};

/// The judges whose evidence a real cluster does not give: conflict ranges, and the ends of all waits.
pub const NOT_JUDGED: &[Kind] = &[Kind::ConflictFree, Kind::Unexplained];

/// Opens a database of the real cluster for one client.
pub type Open<'a> = &'a (dyn Fn() -> Result<Db, Error> + Sync);
