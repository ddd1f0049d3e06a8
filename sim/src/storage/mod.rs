//! Storage servers: sharded, replicated, multi-version, fed from the logs.
//!
//! [`state`] is what a server holds, [`versions`] the map under it;
//! `serve` is the loop that
//! connects it with logs, clients, controller and data distributor.

pub mod sample;
pub mod state;
pub mod versions;
