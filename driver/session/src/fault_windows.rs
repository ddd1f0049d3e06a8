//! The run's fault windows: faults for a run of unknown length.
//!
//! A run of a workload has one plan of faults, because its length is known. The length of a program's run is
//! not, so virtual time is divided into windows of equal length, and faults are drawn anew for each window.
//! The rates of the errors that the contract allows are drawn once, for the whole run. With some rates, a
//! transaction of hundreds of reads hardly ever reaches its commit: after some minutes the run has rests, of
//! some windows each, in which no fault of any family occurs. A rest is longer than any transaction, so that
//! a program that retries as it should comes to an end.

use crate::settings::Settings;
use shaketable_sim::{
    faults::{self, Family, FaultPlan},
    rt::{self, Nanos, SECOND, Task},
    seed::Seed,
    world::World,
};
use std::{ops::Range, sync::Arc};

/// The length of a window.
const WINDOW: Nanos = 4 * SECOND;

/// How many windows there are before the first rest: one to three minutes. Programs that are not stopped by
/// their faults have ended by then.
const BEFORE_THE_FIRST: Range<u64> = 15..46;

/// How many windows a rest has. A transaction lives for five seconds, and its next attempt begins a second
/// later: the shortest rest has room for one that it met at any moment, and for a whole one after that.
const REST: Range<u64> = 3..6;

/// How many windows with faults there are between two rests.
const BETWEEN: Range<u64> = 2..5;

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

/// For each window, from the first, whether it belongs to a rest.
fn rests(seed: Seed) -> impl Iterator<Item = bool> {
    let mut lengths = seed.stream("rests from faults");
    let first = lengths.range(BEFORE_THE_FIRST);
    let rest_and_faults = std::iter::repeat_with(move || [(true, REST), (false, BETWEEN)])
        .flatten()
        .map(move |(is_rest, windows)| (is_rest, lengths.range(windows)));
    std::iter::once((false, first))
        .chain(rest_and_faults)
        .flat_map(|(is_rest, windows)| std::iter::repeat_n(is_rest, windows as usize))
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
        for is_rest in rests(settings.seed).skip(1) {
            world.clock.sleep(WINDOW).await;
            let plan = draw(&settings, Seed(seeds.u64()));
            world.faults.switch(!is_rest);
            match is_rest {
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
    use std::collections::BTreeSet;

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
    fn no_fault_occurs_in_a_rest_and_some_in_every_other_window() {
        let counts = faults_of_windows(80);
        let calm: Vec<bool> = counts.iter().map(|count| *count == 0).collect();
        let expected: Vec<bool> = rests(Seed(1)).take(80).collect();
        assert_eq!(calm, expected, "{counts:?}");
    }

    #[test]
    fn rests_begin_within_minutes_and_have_room_for_a_transaction_whenever_it_begins() {
        let seconds = |windows: usize| windows as u64 * WINDOW / SECOND;
        for seed in 0..200 {
            let windows: Vec<bool> = rests(Seed(seed)).take(1_000).collect();
            let lengths: Vec<_> = windows.chunk_by(|a, b| a == b).map(|part| (part[0], part.len())).collect();
            assert!(!lengths[0].0 && (60..=180).contains(&seconds(lengths[0].1)), "{lengths:?}");
            for (is_rest, length) in &lengths[1..lengths.len() - 1] {
                match is_rest {
                    true => assert!(seconds(*length) > 5 + 1 + 5, "{lengths:?}"),
                    false => assert!(seconds(*length) <= 16, "{lengths:?}"),
                }
            }
        }
        let firsts: BTreeSet<_> = (0..20).map(|seed| rests(Seed(seed)).position(|rest| rest)).collect();
        assert!(firsts.len() > 10, "each seed has its own: {firsts:?}");
    }
}
