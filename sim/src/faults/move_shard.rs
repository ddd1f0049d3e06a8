//! A shard moves to another team of storage servers.

use super::{Dosage, Family, FaultFamily, victims::Struck};
use crate::{seed::Seed, world::World};
use std::sync::Arc;

/// The family.
pub struct MoveShard;

impl FaultFamily for MoveShard {
    fn family(&self) -> Family {
        Family::MoveShard
    }
    fn promise(&self) -> &'static str {
        "Clients find the shard at its new location; no read misses a part of it."
    }
    fn budget(&self) -> &'static str {
        "The old team drops a shard only after every member of the new one holds it durably."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Timed { strikes: 1..6, lasts: 1..2, amount: 0.0..1.0 }
    }
    fn strike(&self, world: &Arc<World>, strike: &Struck) -> bool {
        let mut servers: Vec<u16> = (0..world.config.storage_servers).collect();
        Seed(u64::from(strike.other)).stream("team").shuffle(&mut servers);
        servers.truncate(usize::from(world.config.replicas.max(1)));
        let mut map = world.shards.lock();
        let shard = strike.target as usize % map.shards().len().max(1);
        map.request_move(shard, servers)
    }
}
