//! A storage server applies entries late.

use super::{
    Dosage, Family, FaultFamily,
    victims::{self, Struck},
};
use crate::{
    rt::MILLISECOND,
    world::{Class, World},
};
use std::sync::Arc;

/// The family. The amount is the lag in milliseconds.
pub struct LaggingStorage;

fn set(world: &World, strike: &Struck, milliseconds: f64) -> bool {
    let Some(victim) = victims::one(&[Class::Storage], strike) else { return false };
    world.tunables.machine(victim).set_apply_lag((milliseconds * MILLISECOND as f64) as u64);
    true
}

impl FaultFamily for LaggingStorage {
    fn family(&self) -> Family {
        Family::LaggingStorage
    }
    fn promise(&self) -> &'static str {
        "Reads at a version not yet reached wait, or fail with future_version or process_behind; none is stale."
    }
    fn budget(&self) -> &'static str {
        "One storage server per strike, at most 1.2 s late, for at most two seconds."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Timed { strikes: 1..4, lasts: 50..2_000, amount: 5.0..1_200.0 }
    }
    fn strike(&self, world: &Arc<World>, strike: &Struck) -> bool {
        set(world, strike, strike.amount)
    }
    fn end(&self, world: &Arc<World>, strike: &Struck) {
        set(world, strike, 0.0);
    }
}
