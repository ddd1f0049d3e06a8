//! The run's fault windows: faults for a run of unknown length.
//!
//! A run of a workload has one plan of faults, because its length is known. The length of a program's run is
//! not, so virtual time is divided into windows of equal length, and faults are drawn anew for each window.
//! The rates of the errors that the contract allows are drawn once, for the whole run. With some rates, a
//! transaction of hundreds of reads hardly ever reaches its commit: after some minutes, every second window
//! is without faults, so that a program that retries as it should comes to an end.

use crate::settings::Settings;
use shaketable_sim::{
    faults::{self, Family, FaultPlan},
    rt::{self, Nanos, SECOND, Task},
    seed::Seed,
    world::World,
};
use std::sync::Arc;

/// The length of a window.
const WINDOW: Nanos = 4 * SECOND;

/// How many windows with faults there are before the first without. Five minutes: programs that are not
/// stopped by their faults have ended by then.
const UNBROKEN: u64 = 75;

/// Families that cannot be used here. The client is the program, which cannot be killed, and operations are
/// the program's own. The C client returns 1022 only for a commit whose idempotency id has expired, which
/// takes days: a program that fails with 1022 would not show its author a likely bug.
const NOT_HERE: &[Family] =
    &[Family::ClientDeath, Family::Departure, Family::DroppedOperation, Family::UnknownFatal];

/// The plan of the first window, and the rates of all.
pub fn plan(settings: &Settings) -> FaultPlan {
    draw(settings, settings.seed)
}

fn draw(settings: &Settings, seed: Seed) -> FaultPlan {
    let without = [NOT_HERE, &settings.without[..]].concat();
    FaultPlan::draw(seed, settings.faults, WINDOW, &without)
}

/// Whether no faults occur in the window with this number.
fn is_calm(window: u64) -> bool {
    window >= UNBROKEN && (window - UNBROKEN).is_multiple_of(2)
}

/// Switches faults on, and draws the faults of each window when it begins. What occurs stays as it is when
/// the task is dropped. Without faults there is no task.
pub fn begin(world: &Arc<World>, settings: Settings, first: FaultPlan) -> Option<Task> {
    world.faults.switch(true);
    faults::begin(world, &first);
    if first == FaultPlan::default() {
        return None;
    }
    let world = world.clone();
    Some(rt::spawn_task(async move {
        let mut seeds = settings.seed.stream("windows of faults");
        for window in 1.. {
            world.clock.sleep(WINDOW).await;
            let plan = draw(&settings, Seed(seeds.u64()));
            world.faults.switch(!is_calm(window));
            match is_calm(window) {
                true => faults::heal(&world),
                false => faults::begin(&world, &plan),
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Environment;
    use shaketable_sim::{
        cluster::Cluster, config::ClusterConfig, faults::Profile, ids::ClientId, rt::MILLISECOND,
    };

    /// The time between two opportunities for faults.
    const STEP: Nanos = 10 * MILLISECOND;

    /// How often faults occurred in each of the first windows.
    fn faults_of_windows(windows: u64) -> Vec<u64> {
        let environment = Environment { faults: Some(Profile::Storm), ..Environment::default() };
        let settings = environment.settings(Some(Seed(1)));
        rt::simulate(settings.seed, async {
            let plan = plan(&settings);
            let config = ClusterConfig::draw(settings.seed, &[]);
            let world = World::new(settings.seed, config, &plan, false);
            let cluster = Cluster::start(world.clone()).await;
            let windows_of_faults = begin(&world, settings, plan);
            let begun = world.clock.now();
            let delivered = || world.faults.delivered().values().sum::<u64>();
            let mut counts = Vec::new();
            for window in 0..windows {
                // From a little after its beginning, which another task has to reach.
                world.clock.sleep_until(begun + window * WINDOW + STEP).await;
                let before = delivered();
                for moment in 2..WINDOW / STEP {
                    world.clock.sleep_until(begun + window * WINDOW + moment * STEP).await;
                    Family::ALL.iter().for_each(|family| drop(world.faults.occurs(ClientId(0), *family)));
                }
                counts.push(delivered() - before);
            }
            drop(windows_of_faults);
            cluster.shutdown().await;
            counts
        })
    }

    #[test]
    fn every_second_window_is_calm_after_five_minutes() {
        let counts = faults_of_windows(UNBROKEN + 10);
        let calm: Vec<usize> = (0..counts.len()).filter(|window| counts[*window] == 0).collect();
        assert_eq!(calm, [75, 77, 79, 81, 83]);
    }
}
