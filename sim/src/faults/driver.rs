//! Applies a plan's faults at their times, and ends all faults.

use super::{
    catalogue::catalogue,
    strikes::{FaultPlan, Strike},
    turn,
    victims::Struck,
};
use crate::{
    ids::NodeId,
    rt::Nanos,
    trace::Kind,
    world::{Class, World},
};
use std::{collections::BTreeMap, sync::Arc};

/// Starts applying faults: the plan's times count from now, and nothing begins or ends by it once faults are
/// switched off, also if they are switched on again.
pub fn begin(world: &Arc<World>, plan: &FaultPlan) {
    if plan.kills_at_requests() {
        world.spawn(turn::drive(world.clone()));
    }
    if plan.strikes.is_empty() {
        return;
    }
    let from = world.clock.now();
    // Starts and ends in time order; at the same instant, ends come first.
    let mut moments: Vec<(Nanos, bool, usize)> = Vec::new();
    for (number, strike) in plan.strikes.iter().enumerate() {
        moments.push((from + strike.at, true, number));
        moments.push((from + strike.at + strike.duration, false, number));
    }
    moments.sort_by_key(|(at, begins, number)| (*at, *begins, plan.strikes[*number].family));
    world.spawn(drive(world.clone(), plan.strikes.clone(), moments));
}

async fn drive(world: Arc<World>, strikes: Vec<Strike>, moments: Vec<(Nanos, bool, usize)>) {
    let last = world.faults.since_now();
    let mut begun: BTreeMap<usize, Struck> = BTreeMap::new();
    for (at, begins, number) in moments {
        world.clock.sleep_until(at).await;
        if !last(&world.faults) {
            return;
        }
        let strike = match begins {
            true => Struck::now(&world, strikes[number].clone()),
            false => match begun.remove(&number) {
                Some(struck) => struck,
                None => continue,
            },
        };
        let Some(family) = catalogue().find(|f| f.family() == strike.family) else { continue };
        if !begins {
            family.end(&world, &strike);
            continue;
        }
        if family.strike(&world, &strike) {
            world.faults.count(strike.family);
            world.event(NodeId(0), Kind::Fault, strike.family as u64, u64::from(strike.target));
        }
        begun.insert(number, strike);
    }
}

/// Ends every fault: links are restored, dead machines started, paused ones resumed, clocks reset, the
/// database unlocked. Must be called after faults were switched off.
pub fn heal(world: &World) {
    world.net.heal();
    world.tunables.heal(world.config.window);
    for class in
        [Class::Controller, Class::Stateless, Class::Log, Class::Storage, Class::Client, Class::Auditor]
    {
        for node in world.machines(class) {
            world.set_skew(node, 0);
            world.resume(node);
            world.start(node);
        }
    }
}
