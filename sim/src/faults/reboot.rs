//! Every machine of the cluster restarts at once.

use super::{
    Dosage, Family, FaultFamily,
    victims::{self, Struck},
};
use crate::world::World;
use std::sync::Arc;

/// The family.
pub struct Reboot;

impl FaultFamily for Reboot {
    fn family(&self) -> Family {
        Family::Reboot
    }
    fn promise(&self) -> &'static str {
        "Acknowledged commits were durable before, so they are kept; everything in progress ends with an unknown \
         result or is retried."
    }
    fn budget(&self) -> &'static str {
        "Once or twice in a run, for at most half a second. Disks survive."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Timed { strikes: 1..2, lasts: 1..500, amount: 0.0..1.0 }
    }
    fn strike(&self, world: &Arc<World>, strike: &Struck) -> bool {
        let machines = strike.machines(victims::CLUSTER);
        machines.iter().for_each(|node| world.kill(*node));
        !machines.is_empty()
    }
    fn end(&self, world: &Arc<World>, strike: &Struck) {
        strike.machines(victims::CLUSTER).iter().for_each(|node| world.start(*node));
    }
}
