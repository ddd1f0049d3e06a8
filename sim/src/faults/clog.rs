//! Messages between two machines are delayed, in one direction or both.

use super::{
    Dosage, Family, FaultFamily,
    victims::{self, Struck},
};
use crate::world::World;
use std::sync::Arc;

/// The family. An amount below 0.5 clogs one direction, otherwise both.
pub struct Clog;

impl FaultFamily for Clog {
    fn family(&self) -> Family {
        Family::Clog
    }
    fn promise(&self) -> &'static str {
        "Messages arrive late and in order. A machine that cannot be reached may be considered dead."
    }
    fn budget(&self) -> &'static str {
        "One pair of machines per strike, for at most a second and a half."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Timed { strikes: 1..6, lasts: 5..1_500, amount: 0.0..1.0 }
    }
    fn strike(&self, world: &Arc<World>, strike: &Struck) -> bool {
        let Some((from, to)) = victims::two(victims::ALL_MACHINES, strike) else { return false };
        let until = world.clock.now() + strike.duration;
        world.net.clog(from, to, until);
        if strike.amount > 0.5 {
            world.net.clog(to, from, until);
        }
        true
    }
}
