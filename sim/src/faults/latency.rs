//! A link becomes slow.

use super::{
    Dosage, Family, FaultFamily,
    victims::{self, Struck},
};
use crate::{rt::MILLISECOND, world::World};
use std::sync::Arc;

/// The family. The amount is the number of milliseconds added to each message.
pub struct Latency;

fn set(world: &World, strike: &Struck, slow: f64) -> bool {
    let Some((a, b)) = victims::two(victims::ALL_MACHINES, strike) else { return false };
    let slow = (slow * MILLISECOND as f64) as u64;
    world.net.slow(a, b, slow);
    world.net.slow(b, a, slow);
    true
}

impl FaultFamily for Latency {
    fn family(&self) -> Family {
        Family::Latency
    }
    fn promise(&self) -> &'static str {
        "Everything works, but later."
    }
    fn budget(&self) -> &'static str {
        "One pair of machines per strike, at most 80 ms in each direction, for at most two seconds."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Timed { strikes: 1..6, lasts: 50..2_000, amount: 1.0..80.0 }
    }
    fn strike(&self, world: &Arc<World>, strike: &Struck) -> bool {
        set(world, strike, strike.amount)
    }
    fn end(&self, world: &Arc<World>, strike: &Struck) {
        set(world, strike, 0.0);
    }
}
