//! Faults for as long as the run lasts.
//!
//! A run of a workload has a plan of faults for a known time. Nobody knows how long a program runs: each
//! window of virtual time draws its own strikes. The rates of the errors that the contract allows are drawn
//! once.

use crate::settings::Settings;
use shaketable_sim::{
    faults::{self, Family, FaultPlan},
    rt::{Nanos, SECOND},
    seed::Seed,
    world::World,
};
use std::sync::Arc;

/// The length of a window.
const WINDOW: Nanos = 4 * SECOND;

/// Families that make no sense here: the client is the program, which cannot be killed, and operations are
/// the program's own. The C client returns 1022 only for a commit with an idempotency id that has expired,
/// days later: a program that ends with it tells its author nothing.
const NOT_HERE: &[Family] = &[Family::ClientDeath, Family::DroppedOperation, Family::UnknownFatal];

/// The plan of the first window, and the rates of all.
pub fn plan(settings: &Settings) -> FaultPlan {
    draw(settings, settings.seed)
}

fn draw(settings: &Settings, seed: Seed) -> FaultPlan {
    let without = [NOT_HERE, &settings.without[..]].concat();
    FaultPlan::draw(seed, settings.faults, WINDOW, &without)
}

/// Switches faults on, and begins each window at its time.
pub fn begin(world: &Arc<World>, settings: Settings, first: FaultPlan) {
    world.faults.switch(true);
    faults::begin(world, &first);
    if first == FaultPlan::default() {
        return;
    }
    let all = world.clone();
    world.spawn(async move {
        let mut seeds = settings.seed.stream("windows of faults");
        loop {
            all.clock.sleep(WINDOW).await;
            if !all.faults.are_on() {
                return;
            }
            faults::begin(&all, &draw(&settings, Seed(seeds.u64())));
        }
    });
}
