//! A simulated FoundationDB cluster on madsim, its faults and its history.
//!
//! A run is one call of [`rt::simulate`]: one seed, one virtual clock, one order of events. In it,
//! [`Cluster::start`](cluster::Cluster::start) builds machines that exchange messages over [`net`], with
//! FoundationDB's structure: sequencer, GRV proxies, commit proxies, resolvers, transaction logs, storage
//! servers and a controller. [`client`] implements the contract of `shaketable_layers::tx` on top of it. The
//! run is recorded in [`history`] (which judges read) and in [`trace`] (by which determinism is checked).

#[cfg(not(madsim))]
compile_error!(
    "shaketable-sim needs madsim's simulated runtime: put `[build] rustflags = [\"--cfg\", \"madsim\"]` into .cargo/config.toml"
);

#[cfg(madsim)]
pub mod atomic;
#[cfg(madsim)]
pub mod client;
#[cfg(madsim)]
pub mod cluster;
#[cfg(madsim)]
pub mod commit_proxy;
#[cfg(madsim)]
pub mod config;
#[cfg(madsim)]
pub mod controller;
#[cfg(madsim)]
pub mod data_distribution;
#[cfg(madsim)]
pub mod faults;
#[cfg(madsim)]
pub mod gathering;
#[cfg(madsim)]
pub mod grv_proxy;
#[cfg(madsim)]
pub mod history;
#[cfg(madsim)]
mod idempotency;
#[cfg(madsim)]
pub mod log;
#[cfg(madsim)]
pub mod net;
#[cfg(madsim)]
pub mod proto;
#[cfg(madsim)]
pub mod resolver;
#[cfg(madsim)]
pub mod rt;
#[cfg(madsim)]
pub mod seed;
#[cfg(madsim)]
pub mod sequencer;
#[cfg(madsim)]
pub mod storage;
#[cfg(madsim)]
pub mod trace;
#[cfg(madsim)]
pub mod tunables;
#[cfg(madsim)]
pub mod worker;
#[cfg(madsim)]
pub mod world;
