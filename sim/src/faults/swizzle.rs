//! Many machines are clogged one after another and unclogged in a different order.

use super::{
    Dosage, Family, FaultFamily,
    victims::{self, Struck},
};
use crate::{seed::Seed, world::World};
use std::sync::Arc;

/// The family. The amount is the fraction of machines that are clogged.
pub struct Swizzle;

impl FaultFamily for Swizzle {
    fn family(&self) -> Family {
        Family::Swizzle
    }
    fn promise(&self) -> &'static str {
        "Messages arrive late; machines observe failures and returns in different orders, but finally agree."
    }
    fn budget(&self) -> &'static str {
        "At most two thirds of the cluster's machines, each for at most a second."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Timed { strikes: 1..3, lasts: 50..1_000, amount: 0.1..0.66 }
    }
    fn strike(&self, world: &Arc<World>, strike: &Struck) -> bool {
        let mut nodes = strike.machines(victims::CLUSTER);
        let mut rng = Seed(u64::from(strike.target)).stream("swizzle");
        rng.shuffle(&mut nodes);
        nodes.truncate(((nodes.len() as f64 * strike.amount) as usize).max(1));
        let everybody = strike.machines(victims::ALL_MACHINES);
        let any = !nodes.is_empty();
        let step = strike.duration / (2 * nodes.len() as u64).max(1);
        let mut opening: Vec<u64> = (0..nodes.len() as u64).collect();
        rng.shuffle(&mut opening);
        let spawner = world.clone();
        let world = world.clone();
        let (from, half) = (world.clock.now(), strike.duration / 2);
        let last = world.faults.since_now();
        spawner.spawn(async move {
            for (place, (node, opens)) in nodes.into_iter().zip(opening).enumerate() {
                world.clock.sleep_until(from + place as u64 * step).await;
                if !last(&world.faults) {
                    return;
                }
                let until = from + half + opens * step;
                for other in everybody.iter().filter(|n| **n != node) {
                    world.net.clog(node, *other, until);
                    world.net.clog(*other, node, until);
                }
            }
        });
        any
    }
}
