//! The run's fault windows: faults for a run of unknown length.
//!
//! A run of a workload has one plan of faults, because its length is known. The length of a program's run is
//! not, so virtual time is divided into windows of equal length, and faults are drawn anew for each window.
//! The rates of the errors that the contract allows are drawn once, for the whole run.

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

/// Families that cannot be used here. The client is the program, which cannot be killed, and operations are
/// the program's own. The C client returns 1022 only for a commit whose idempotency id has expired, which
/// takes days: a program that fails with 1022 would not show its author a likely bug.
const NOT_HERE: &[Family] = &[Family::ClientDeath, Family::DroppedOperation, Family::UnknownFatal];

/// The plan of the first window, and the rates of all.
pub fn plan(settings: &Settings) -> FaultPlan {
    draw(settings, settings.seed)
}

fn draw(settings: &Settings, seed: Seed) -> FaultPlan {
    let without = [NOT_HERE, &settings.without[..]].concat();
    FaultPlan::draw(seed, settings.faults, WINDOW, &without)
}

/// Switches faults on, and draws the faults of each window when it begins.
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
