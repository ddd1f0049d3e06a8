//! What a storage server keeps when it restarts.

use super::state::State;
use crate::{
    config::ClusterBug,
    proto::{KeyRange, Version},
    shards::ShardMap,
};
use parking_lot::Mutex;
use shaketable_tx::KeyValue;

/// A storage server's disk, together with the server's memory: both are one [`State`], which a restart resets
/// to what was durable.
#[derive(Debug)]
pub struct StorageDisk {
    pub(super) server: u16,
    pub(super) state: Mutex<State>,
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
