//! A client dies during an operation, and is followed by another incarnation.

use super::{
    Dosage, Family, FaultFamily,
    victims::{self, Struck},
};
use crate::world::World;
use std::sync::Arc;

/// The family.
pub struct ClientDeath;

impl FaultFamily for ClientDeath {
    fn family(&self) -> Family {
        Family::ClientDeath
    }
    fn promise(&self) -> &'static str {
        "A commit in flight may have happened, or may happen until its read version leaves the window; its result is \
         reported to no client."
    }
    fn budget(&self) -> &'static str {
        "Clients hold no data. Each comes back within half a second."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Timed { strikes: 1..6, lasts: 1..500, amount: 0.0..1.0 }
    }
    fn strike(&self, world: &Arc<World>, strike: &Struck) -> bool {
        match victims::one(victims::CLIENTS, strike) {
            Some(victim) if world.is_up(victim) => {
                world.kill(victim);
                true
            }
            _ => false,
        }
    }
    fn end(&self, world: &Arc<World>, strike: &Struck) {
        if let Some(victim) = victims::one(victims::CLIENTS, strike) {
            world.start(victim);
        }
    }
}
