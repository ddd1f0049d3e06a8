//! An operator locks the database for a while.

use super::{Dosage, Family, FaultFamily, victims::Struck};
use crate::world::World;
use std::sync::Arc;

/// The family.
pub struct Locked;

impl FaultFamily for Locked {
    fn family(&self) -> Family {
        Family::Locked
    }
    fn promise(&self) -> &'static str {
        "Transactions that are not lock-aware fail with database_locked without committing, and may be retried."
    }
    fn budget(&self) -> &'static str {
        "For at most 800 ms; unlocked automatically."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Timed { strikes: 1..3, lasts: 10..800, amount: 0.0..1.0 }
    }
    fn strike(&self, world: &Arc<World>, _: &Struck) -> bool {
        world.tunables.set_locked(true);
        true
    }
    fn end(&self, world: &Arc<World>, _: &Struck) {
        world.tunables.set_locked(false);
    }
}
