//! A machine's clock is inaccurate: it jumps forward, or runs slowly. It never runs backwards, like a
//! monotonic clock.

use super::{
    Dosage, Family, FaultFamily,
    victims::{self, Struck},
};
use crate::{rt::MILLISECOND, world::World};
use std::sync::Arc;

/// The family. The amount is the number of seconds ahead, negative for late.
pub struct ClockSkew;

fn set(world: &World, strike: &Struck, seconds: f64) -> bool {
    let Some(victim) = victims::one(victims::ALL_MACHINES, strike) else { return false };
    world.set_skew(victim, (seconds * 1e3) as i64 * MILLISECOND as i64);
    true
}

impl FaultFamily for ClockSkew {
    fn family(&self) -> Family {
        Family::ClockSkew
    }
    fn promise(&self) -> &'static str {
        "No promise of FoundationDB depends on synchronized clocks; a layer's promises must not either."
    }
    fn budget(&self) -> &'static str {
        "At most a minute ahead or late until the strike ends; then it is corrected at a quarter of its rate."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Timed { strikes: 1..4, lasts: 100..3_000, amount: -60.0..60.0 }
    }
    fn strike(&self, world: &Arc<World>, strike: &Struck) -> bool {
        set(world, strike, strike.amount)
    }
    fn end(&self, world: &Arc<World>, strike: &Struck) {
        set(world, strike, 0.0);
    }
}
