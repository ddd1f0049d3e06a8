//! What the storage servers hold when a run is over, shard by shard, for comparing replicas.

use super::StorageDisk;
use crate::{proto::KeyRange, rt::MILLISECOND, world::World};
use bytes::Bytes;
use std::sync::Arc;

/// What one storage server holds of one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The server's name.
    pub server: String,
    /// The shard.
    pub range: KeyRange,
    /// Its rows, in order.
    pub rows: Vec<(Bytes, Bytes)>,
}

/// Waits until every server has applied what is committed now and no shard moves any more. It takes
/// for ever on a cluster that is not healed.
pub async fn settle(world: &World, disks: &[Arc<StorageDisk>]) {
    let committed = world.history.lock().committed().last().map_or(0, |entry| entry.version);
    let is_settled = || world.shards.lock().is_settled() && disks.iter().all(|d| d.version() >= committed);
    while !is_settled() {
        world.clock.sleep(10 * MILLISECOND).await;
    }
}

/// What each member of each shard's team holds at the last version it has applied: on a settled cluster
/// that nobody writes to, these versions hold the same (one server may be a recovery's jump ahead of
/// another, so that no single version need be readable on both). A member that cannot say is shown
/// without a row.
pub fn replicas(world: &World, disks: &[Arc<StorageDisk>]) -> Vec<Replica> {
    let map = world.shards.lock();
    let members =
        map.shards().iter().flat_map(|shard| shard.team.iter().map(|member| (&shard.range, *member)));
    members
        .map(|(range, member)| {
            let disk = &disks[usize::from(member)];
            let rows = disk.snapshot(range, disk.version()).unwrap_or_default();
            Replica {
                server: format!("storage {member}"),
                range: range.clone(),
                rows: rows.into_iter().map(|row| (row.key, row.value)).collect(),
            }
        })
        .collect()
}
