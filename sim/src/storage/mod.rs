//! Storage servers: sharded, replicated, multi-version, reading from the logs.
//!
//! [`state`] is the content of a server, based on the map in [`versions`]; [`serve`] is the loop that
//! connects it with the logs ([`pull`]), with clients ([`requests`], [`watches`]) and with the data
//! distributor ([`fetch`]).

pub mod fetch;
pub mod pull;
mod replicas;
pub mod requests;
pub mod sample;
pub mod serve;
pub mod state;
pub mod versions;
pub mod watches;

pub use replicas::{Replica, replicas, settle};

use crate::{
    config::ClusterBug,
    ids::Endpoint,
    proto::{KeyRange, Version},
    shards::ShardMap,
    world::{Class, World},
};
use parking_lot::Mutex;
use shaketable_tx::KeyValue;
use state::State;
use std::sync::Arc;

/// A storage server's disk, together with the server's memory: both are one [`State`], which a restart resets
/// to what was durable.
#[derive(Debug)]
pub struct StorageDisk {
    server: u16,
    state: Mutex<State>,
}

impl StorageDisk {
    /// The disk of server number `server`, with the shards that the map assigns to it, all empty, and the
    /// planted bug of the cluster.
    pub fn new(server: u16, map: &ShardMap, bug: Option<ClusterBug>) -> StorageDisk {
        StorageDisk { server, state: Mutex::new(State::new(map.held_by(server)).with_bug(bug)) }
    }

    /// The last version that the server has applied.
    pub fn version(&self) -> Version {
        self.state.lock().version()
    }

    /// The approximate number of bytes of a range; 0 if the server does not hold it.
    pub fn bytes(&self, range: &KeyRange) -> i64 {
        self.state.lock().storage_metrics(range).unwrap_or_default()
    }

    /// Every row of a shard at a version, to compare replicas; `None` if the server does not hold the shard
    /// or cannot read at that version.
    pub fn snapshot(&self, shard: &KeyRange, version: Version) -> Option<Vec<KeyValue>> {
        self.state.lock().snapshot(shard, version)
    }
}

/// Adds the storage servers of the world's configuration, which ask `controller` for the logs. Returns their
/// disks, by number.
pub fn add_servers(world: &Arc<World>, controller: Endpoint) -> Vec<Arc<StorageDisk>> {
    (0..world.config.storage_servers.max(1))
        .map(|server| {
            let disk = Arc::new(StorageDisk::new(server, &world.shards.lock(), world.config.cluster_bug));
            let kept = disk.clone();
            world.has_disk(disk.clone());
            world.add_machine_with_endpoint(
                Class::Storage,
                &format!("storage {server}"),
                move |world, home| serve::run(world, home, controller, kept.clone()),
            );
            disk
        })
        .collect()
}
