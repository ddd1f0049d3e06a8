//! A machine stops for a while, like a process that is paging or being debugged.

use super::{
    Dosage, Family, FaultFamily,
    victims::{self, Struck},
};
use crate::world::World;
use std::sync::Arc;

/// The family.
pub struct Pause;

impl FaultFamily for Pause {
    fn family(&self) -> Family {
        Family::Pause
    }
    fn promise(&self) -> &'static str {
        "Nothing is lost; the machine's messages are late, and if it is considered dead in the meantime, its \
         generation ends and its later messages have no effect."
    }
    fn budget(&self) -> &'static str {
        "One machine or client at a time, for at most a second and a half."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Timed { strikes: 1..4, lasts: 5..1_500, amount: 0.0..1.0 }
    }
    fn strike(&self, world: &Arc<World>, strike: &Struck) -> bool {
        match victims::one(victims::ALL_MACHINES, strike) {
            Some(victim) if world.is_up(victim) => {
                world.pause(victim);
                true
            }
            _ => false,
        }
    }
    fn end(&self, world: &Arc<World>, strike: &Struck) {
        if let Some(victim) = victims::one(victims::ALL_MACHINES, strike) {
            world.resume(victim);
        }
    }
}
