//! Data distribution: the assignment of shards to storage servers, and moving shards between them.

mod serve;

pub use serve::add;

use crate::{
    proto::{KeyRange, Location},
    world::{Class, World},
};

/// The shards that intersect `range` with their replicas' addresses, in order (from its end if `reverse`), at
/// most `limit`: a commit proxy's reply to `GetKeyLocations`.
pub fn locations(world: &World, range: &KeyRange, limit: usize, reverse: bool) -> Vec<Location> {
    let nodes = world.machines(Class::Storage);
    let map = world.shards.lock();
    map.intersecting(range, limit, reverse)
        .map(|shard| Location {
            range: shard.range.clone(),
            servers: shard
                .team
                .iter()
                .filter_map(|server| world.address(*nodes.get(usize::from(*server))?))
                .collect(),
        })
        .collect()
}
