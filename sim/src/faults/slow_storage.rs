//! A storage server replies slowly.

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
pub struct SlowStorage;

fn set(world: &World, strike: &Struck, milliseconds: f64) -> bool {
    let Some(victim) = victims::one(&[Class::Storage], strike) else { return false };
    world.tunables.machine(victim).set_read_delay((milliseconds * MILLISECOND as f64) as u64);
    true
}

impl FaultFamily for SlowStorage {
    fn family(&self) -> Family {
        Family::SlowStorage
    }
    fn promise(&self) -> &'static str {
        "Reads take longer; a read version may become too old in the meantime."
    }
    fn budget(&self) -> &'static str {
        "One storage server per strike, at most 60 ms per read, for at most two seconds."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Timed { strikes: 1..4, lasts: 50..2_000, amount: 1.0..60.0 }
    }
    fn strike(&self, world: &Arc<World>, strike: &Struck) -> bool {
        set(world, strike, strike.amount)
    }
    fn end(&self, world: &Arc<World>, strike: &Struck) {
        set(world, strike, 0.0);
    }
}
