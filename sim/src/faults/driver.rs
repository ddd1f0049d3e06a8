//! Applies a plan's faults at their times, and ends all faults.

use super::{FaultPlan, Strike, catalogue, order};
use crate::{
    ids::NodeId,
    rt::Nanos,
    trace::Kind,
    world::{Class, World},
};
use std::sync::Arc;

/// Starts applying faults: the plan's times count from now, and no fault occurs once faults are switched off.
pub fn begin(world: &Arc<World>, plan: &FaultPlan) {
    if !plan.deaths.is_empty() {
        world.spawn(order::drive(world.clone()));
    }
    if plan.strikes.is_empty() {
        return;
    }
    let from = world.clock.now();
    // Starts and ends in time order; at the same instant, ends come first.
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

/// Ends every fault: links are restored, dead machines started, paused ones resumed, clocks reset, the
/// database unlocked. Must be called after faults were switched off.
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
