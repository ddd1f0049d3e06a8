//! The same workloads on a cluster that nobody can look into.
//!
//! A run has a prefix of its own ([`Site`]) and touches no other key: what its clients see is a
//! [`Prefixed`](prefixed::Prefixed) database. Its history comes from the clients: each notes what it called and was told, and
//! each transaction that writes says with a versionstamped key that it has committed ([`recorded`]). From
//! that the judges of a simulated run read the same as there, but for the conflict ranges, which only the
//! client inside knows: whether operations are conflict-free is not judged.
//!
//! Nothing here knows a backend: the tests run it on the simulated cluster.

mod prefixed;
mod recorded;
mod run;
mod site;

pub use prefixed::Space;
#[cfg(feature = "fdb-client")]
pub use run::run;
pub use run::{Conditions, RunError, perform};
pub use site::Site;

/// Opens a database of the real cluster for one client.
#[cfg(feature = "fdb-client")]
pub type Open<'a> =
    &'a (dyn Fn() -> Result<shaketable_layers::fdb::FdbDatabase, shaketable_layers::tx::Error> + Sync);
