//! A log takes long to make entries durable.

use super::{
    Dosage, Family, FaultFamily,
    victims::{self, Struck},
};
use crate::{
    rt::MILLISECOND,
    world::{Class, World},
};
use std::sync::Arc;

/// The family. The amount is the delay in milliseconds.
pub struct SlowLogSync;

fn set(world: &World, strike: &Struck, milliseconds: f64) -> bool {
    let Some(victim) = victims::one(&[Class::Log], strike) else { return false };
    world.tunables.machine(victim).set_sync_delay((milliseconds * MILLISECOND as f64) as u64);
    true
}

impl FaultFamily for SlowLogSync {
    fn family(&self) -> Family {
        Family::SlowLogSync
    }
    fn promise(&self) -> &'static str {
        "Commits take as long as the slowest log; none is acknowledged earlier."
    }
    fn budget(&self) -> &'static str {
        "One log per strike, at most 200 ms per sync, for at most two seconds."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Timed { strikes: 1..4, lasts: 50..2_000, amount: 1.0..200.0 }
    }
    fn strike(&self, world: &Arc<World>, strike: &Struck) -> bool {
        set(world, strike, strike.amount)
    }
    fn end(&self, world: &Arc<World>, strike: &Struck) {
        set(world, strike, 0.0);
    }
}
