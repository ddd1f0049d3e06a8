//! The content of the storage servers at the end of a run, shard by shard, to compare replicas.

use super::StorageDisk;
use crate::{proto::KeyRange, rt::MILLISECOND, world::World};
use bytes::Bytes;
use std::sync::Arc;

/// The content of one shard on one storage server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The server's name.
    pub server: String,
    /// The shard.
    pub range: KeyRange,
    /// Its rows, in order.
    pub rows: Vec<(Bytes, Bytes)>,
}

/// Waits until every server has applied everything committed so far and no shard is moving. On a cluster that
/// is not healed, it may wait forever.
pub async fn settle(world: &World, disks: &[Arc<StorageDisk>]) {
    // The data distributor commits as well.
    let committed = || {
        let history = world.history.lock();
        history.committed().last().map_or(history.judged, |entry| entry.version)
    };
    let is_settled = || {
        let committed = committed();
        world.shards.lock().is_settled() && disks.iter().all(|d| d.version() >= committed)
    };
    while !is_settled() {
        world.clock.sleep(10 * MILLISECOND).await;
    }
}

/// The content of each shard on each member of its team, at the last version that the member has applied: on
/// a settled cluster without writes, the content at these versions is the same (one server may be a
/// recovery's jump ahead of another, so that there may be no single version that is readable on both). A
/// member that cannot be read is shown without rows.
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
