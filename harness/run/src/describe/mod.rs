//! How a layer is described: its operations, what must hold, and how a client calls it. Everything else uses
//! these descriptions; they know nothing of runs.

pub mod beside;
pub mod erased;
#[cfg(any(feature = "embedded", feature = "fdb-client"))]
pub mod foundationdb;
pub mod invariants;
pub mod isolation;
pub(crate) mod kinds;
mod macros;
pub(crate) mod misfit;
pub mod models;
pub(crate) mod pass_on;
pub mod sessions;
pub mod specimen;
pub mod strategies;
pub(crate) mod strict;
pub mod waiting;
pub mod weakened;
pub mod workload;
