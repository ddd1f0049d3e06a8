//! A link loses messages.

use super::{
    Dosage, Family, FaultFamily,
    victims::{self, Struck},
};
use crate::world::World;
use std::sync::Arc;

/// The family. The amount is the fraction of messages that are lost.
pub struct Loss;

fn set(world: &World, strike: &Struck, loss: f64) -> bool {
    let Some((a, b)) = victims::two(victims::ALL_MACHINES, strike) else { return false };
    world.net.lose(a, b, loss);
    world.net.lose(b, a, loss);
    true
}

impl FaultFamily for Loss {
    fn family(&self) -> Family {
        Family::Loss
    }
    fn promise(&self) -> &'static str {
        "The caller detects a lost request or reply after some time, and cannot determine its fate."
    }
    fn budget(&self) -> &'static str {
        "One pair of machines per strike, at most half of their messages, for at most two seconds."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Timed { strikes: 1..6, lasts: 50..2_000, amount: 0.01..0.5 }
    }
    fn strike(&self, world: &Arc<World>, strike: &Struck) -> bool {
        set(world, strike, strike.amount)
    }
    fn end(&self, world: &Arc<World>, strike: &Struck) {
        set(world, strike, 0.0);
    }
}
