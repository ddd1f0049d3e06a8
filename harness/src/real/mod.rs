//! The same workloads on a real cluster, whose inner state is not accessible.
//!
//! A run uses one prefix ([`Site`]) and touches no key outside of it: its clients get a
//! [`Prefixed`](prefixed::Prefixed) database. The history is recorded by the clients: each call and its result, and in
//! each transaction that writes a versionstamped key that shows that it committed ([`recorded`]). The judges read
//! that history as they read a simulated one. Only conflict ranges are missing, which the C client does not
//! expose, so that conflict-free operations are not judged.
//!
//! This module is generic over the backend: the tests run it on the simulated cluster.

mod prefixed;
mod recorded;
mod site;
mod testbed;

pub use prefixed::Space;
pub use site::Site;
#[cfg(feature = "fdb-client")]
pub use testbed::run;
pub use testbed::{Conditions, RunError, perform};

/// Opens a database of the real cluster for one client.
#[cfg(feature = "fdb-client")]
pub type Open<'a> =
    &'a (dyn Fn() -> Result<shaketable_layers::fdb::FdbDatabase, shaketable_layers::tx::Error> + Sync);
