//! Storage servers: sharded, replicated, multi-version, reading from the logs.
//!
//! [`state`] is the content of a server, based on the map in [`versions`]; [`serve`] is the loop that
//! connects it with the logs ([`pull`]), with clients ([`requests`], [`watches`]) and with the data
//! distributor ([`fetch`]).

pub mod disk;
pub mod fetch;
pub mod pull;
mod replicas;
pub mod requests;
pub mod sample;
pub mod serve;
pub mod state;
pub mod versions;
pub mod watches;

pub use disk::StorageDisk;
pub use replicas::{Replica, replicas, settle};

use crate::{
    ids::Endpoint,
    world::{Class, World},
};
use std::sync::Arc;

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
