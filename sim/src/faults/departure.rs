//! A client dies for good: nobody takes up its session, and what it held is nobody's any more.
//!
//! It dies at its next commit, which either is not sent or was applied and answered, so that it dies in the
//! middle of what it does; or at the end of the strike, if it makes none. The amount decides which, from one
//! half on after the commit.

use super::{
    Dosage, Family, FaultFamily,
    victims::{self, Struck},
};
use crate::world::{Class, World};
use std::sync::Arc;

/// The family.
pub struct Departure;

impl FaultFamily for Departure {
    fn family(&self) -> Family {
        Family::Departure
    }
    fn promise(&self) -> &'static str {
        "Nothing of a client remains at the cluster but what it committed."
    }
    fn budget(&self) -> &'static str {
        "One client in a run, two in a storm, and never the last one; none leaves after the act."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Timed { strikes: 1..2, lasts: 200..1_000, amount: 0.0..1.0 }
    }
    // Counted when the client leaves.
    fn strike(&self, world: &Arc<World>, strike: &Struck) -> bool {
        let mut left = strike.machines(&[Class::Client]);
        left.retain(|node| !world.has_left(*node) && !world.faults.is_leaving(*node));
        if let Some(victim) = victims::pick(&left, strike.target).filter(|_| left.len() > 1) {
            world.faults.leaves(victim, strike.amount >= 0.5);
        }
        false
    }
    fn end(&self, world: &Arc<World>, strike: &Struck) {
        strike.machines(&[Class::Client]).into_iter().for_each(|node| world.faults.leaves_now(node));
    }
}
