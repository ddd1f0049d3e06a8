//! A machine of the cluster is killed in its current state and comes back.

use super::{
    Dosage, Family, FaultFamily,
    victims::{self, Struck},
};
use crate::world::World;
use std::sync::Arc;

/// The family.
pub struct Kill;

/// The maximum number of machines down at once: recoveries need machines to recruit.
const MOST_DOWN: usize = 2;

impl FaultFamily for Kill {
    fn family(&self) -> Family {
        Family::Kill
    }
    fn promise(&self) -> &'static str {
        "Acknowledged commits are kept; commits in progress end with an unknown result; a recovery follows if the \
         machine had a role in the current generation."
    }
    fn budget(&self) -> &'static str {
        "At most two machines of the cluster are down at once, each for at most two seconds. Disks survive: no \
         copy of any data is lost."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Timed { strikes: 1..4, lasts: 50..2_000, amount: 0.0..1.0 }
    }
    fn strike(&self, world: &Arc<World>, strike: &Struck) -> bool {
        let machines = strike.machines(victims::CLUSTER);
        if machines.iter().filter(|n| !world.is_up(**n)).count() >= MOST_DOWN {
            return false;
        }
        match victims::one(victims::CLUSTER, strike) {
            Some(victim) if world.is_up(victim) => {
                world.kill(victim);
                true
            }
            _ => false,
        }
    }
    fn end(&self, world: &Arc<World>, strike: &Struck) {
        if let Some(victim) = victims::one(victims::CLUSTER, strike) {
            world.start(victim);
        }
    }
}
