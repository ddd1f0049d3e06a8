//! Makes a plan's strikes happen at their times, and undoes everything.

use super::{FaultPlan, Strike, catalogue};
use crate::{
    net::NodeId,
    rt::Nanos,
    trace::Kind,
    world::{Class, World},
};
use std::sync::Arc;

/// Begins to strike: the plan's times count from now, and nothing strikes once faults are switched
/// off.
pub fn begin(world: &Arc<World>, plan: &FaultPlan) {
    if plan.strikes.is_empty() {
        return;
    }
    let from = world.clock.now();
    // Beginnings and ends in one order of time; at one moment ends come first.
    let mut moments: Vec<(Nanos, bool, Strike)> = Vec::new();
    for strike in &plan.strikes {
        moments.push((from + strike.at, true, strike.clone()));
        moments.push((from + strike.at + strike.duration, false, strike.clone()));
    }
    moments.sort_by_key(|(at, begins, strike)| (*at, *begins, strike.family));
    world.spawn(drive(world.clone(), moments));
}

async fn drive(world: Arc<World>, moments: Vec<(Nanos, bool, Strike)>) {
    for (at, begins, strike) in moments {
        world.clock.sleep_until(at).await;
        if !world.faults.are_on() {
            return;
        }
        let Some(family) = catalogue().find(|f| f.family() == strike.family) else { continue };
        if !begins {
            family.end(&world, &strike);
        } else if family.strike(&world, &strike) {
            world.faults.count(strike.family);
            world.event(NodeId(0), Kind::Fault, strike.family as u64, u64::from(strike.target));
        }
    }
}

/// Ends every fault: links are mended, dead machines started, paused ones resumed, clocks set, the
/// database unlocked. To be called after faults were switched off.
pub fn heal(world: &World) {
    world.net.heal();
    world.tunables.heal(world.config.window);
    for class in [Class::Controller, Class::Stateless, Class::Log, Class::Storage, Class::Client] {
        for node in world.machines(class) {
            world.set_skew(node, 0);
            world.resume(node);
            world.start(node);
        }
    }
}
