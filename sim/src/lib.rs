//! A simulated FoundationDB cluster on madsim, its faults and its history.
//!
//! A run is one call of [`rt::simulate`]: one seed, one virtual clock, one order of events. In it,
//! [`Cluster::start`](cluster::Cluster::start) builds machines that exchange messages over [`net`], with
//! FoundationDB's structure: sequencer, GRV proxies, commit proxies, resolvers, transaction logs, storage
//! servers and a controller. [`client`] implements the contract of `shaketable_tx` on top of it. The
//! run is recorded in [`history`] (which judges read) and in [`trace`] (by which determinism is checked).

#[cfg(not(madsim))]
const _: () = match option_env!("RUSTFLAGS") {
    None => panic!(
        "shaketable-sim needs madsim's simulated runtime: put `[build] rustflags = [\"--cfg\", \"madsim\"]` into .cargo/config.toml"
    ),
    Some(_) => panic!(
        "shaketable-sim needs madsim's simulated runtime: the environment variable RUSTFLAGS replaces the rustflags of .cargo/config.toml; unset it, or add `--cfg madsim` to it"
    ),
};

#[cfg(madsim)]
pub mod atomic;
#[cfg(madsim)]
mod batcher;
#[cfg(madsim)]
pub mod chance;
#[cfg(madsim)]
pub mod client;
#[cfg(madsim)]
pub mod cluster;
#[cfg(madsim)]
mod commit_proxy;
#[cfg(madsim)]
pub mod config;
#[cfg(madsim)]
mod controller;
#[cfg(madsim)]
mod data_distribution;
#[cfg(madsim)]
mod database_lock;
#[cfg(madsim)]
pub mod endings;
#[cfg(madsim)]
pub mod faults;
#[cfg(madsim)]
mod grv_proxy;
#[cfg(madsim)]
pub mod history;
#[cfg(madsim)]
mod idempotency;
pub mod ids;
#[cfg(madsim)]
pub mod judges;
#[cfg(madsim)]
mod log;
#[cfg(madsim)]
pub mod net;
#[cfg(madsim)]
pub mod proto;
#[cfg(madsim)]
mod reply;
#[cfg(madsim)]
mod resolver;
#[cfg(madsim)]
pub mod rt;
#[cfg(madsim)]
pub mod seed;
#[cfg(madsim)]
mod sequencer;
mod shards;
#[cfg(madsim)]
pub mod storage;
#[cfg(madsim)]
mod system_keys;
#[cfg(madsim)]
pub mod trace;
#[cfg(madsim)]
mod tunables;
#[cfg(madsim)]
mod worker;
#[cfg(madsim)]
pub mod world;
