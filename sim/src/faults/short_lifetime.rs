//! Read versions live for a fraction of five seconds.

use super::{Dosage, Family, FaultFamily, victims::Struck};
use crate::{proto::Version, world::World};
use std::sync::Arc;

/// The family. The amount is the remaining fraction of the window.
pub struct ShortLifetime;

impl FaultFamily for ShortLifetime {
    fn family(&self) -> Family {
        Family::ShortLifetime
    }
    fn promise(&self) -> &'static str {
        "A transaction that outlives the window fails with transaction_too_old, and is certainly not committed."
    }
    fn budget(&self) -> &'static str {
        "The window is at least a tenth of a second, for at most three seconds."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Timed { strikes: 1..3, lasts: 200..3_000, amount: 0.02..0.2 }
    }
    fn strike(&self, world: &Arc<World>, strike: &Struck) -> bool {
        world.tunables.set_window((world.config.window as f64 * strike.amount) as Version);
        true
    }
    fn end(&self, world: &Arc<World>, _: &Struck) {
        world.tunables.set_window(world.config.window);
    }
}
