//! Some machines cannot reach the others.

use super::{
    Dosage, Family, FaultFamily,
    victims::{self, Struck},
};
use crate::{
    ids::NodeId,
    seed::Seed,
    world::{Class, World},
};
use std::sync::Arc;

/// The family. The amount is the fraction of machines on the smaller side.
pub struct Partition;

/// The share of partial partitions: the controller and half of the machines of clients and of the transaction
/// system cannot reach each other, and the others reach both. A client among them goes on with a generation
/// that was followed by another.
const PARTIAL: f64 = 0.3;

/// The two sides: drawn only from the strike, so that its end restores the same links.
fn sides(strike: &Struck) -> (Vec<NodeId>, Vec<NodeId>) {
    let mut nodes = strike.machines(victims::ALL_MACHINES);
    let mut chance = Seed(u64::from(strike.target)).stream("partition");
    chance.shuffle(&mut nodes);
    if chance.chance(PARTIAL) {
        let controller = strike.machines(&[Class::Controller]);
        let cut = [strike.machines(&[Class::Stateless]), strike.machines(victims::CLIENTS)].concat();
        nodes.retain(|node| cut.contains(node));
        nodes.truncate(nodes.len().div_ceil(2));
        return (controller, nodes);
    }
    let few = ((nodes.len() as f64 * strike.amount) as usize).clamp(1, nodes.len().max(1));
    let many = nodes.split_off(few.min(nodes.len()));
    (nodes, many)
}

fn set(world: &World, strike: &Struck, cut: bool) -> bool {
    let (few, many) = sides(strike);
    for a in &few {
        for b in &many {
            world.net.cut(*a, *b, cut);
            world.net.cut(*b, *a, cut);
        }
    }
    !few.is_empty() && !many.is_empty()
}

impl FaultFamily for Partition {
    fn family(&self) -> Family {
        Family::Partition
    }
    fn promise(&self) -> &'static str {
        "The side with the controller continues, after a recovery if a role of the generation is on the other; the \
         other side acknowledges nothing, also if it still reaches logs and storage servers."
    }
    fn budget(&self) -> &'static str {
        "At most half of the machines are cut off, for at most a second and a half; links are restored automatically."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Timed { strikes: 1..3, lasts: 20..1_500, amount: 0.05..0.5 }
    }
    fn strike(&self, world: &Arc<World>, strike: &Struck) -> bool {
        set(world, strike, true)
    }
    fn end(&self, world: &Arc<World>, strike: &Struck) {
        set(world, strike, false);
    }
}
