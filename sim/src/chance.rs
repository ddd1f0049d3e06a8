//! Other chance: what a run's future would be with other luck. The run is the same, to the byte, up to a
//! moment of virtual time. From then on its streams give the numbers of another seed.
//!
//! Only the streams of [`Seed::run_stream`] do that: delays, which messages are lost, which faults of a
//! family with a rate come, pauses of clients, and what a client draws. The order of tasks that are ready at
//! one instant, which the runtime draws, changes with them. What a plan determines stays: operations, timed
//! faults, deaths of clients, the machines.
//!
//! A plan may have determined in place of chance: constant durations, decisions, an order of requests, as the
//! shrinker makes them. After the moment, durations are drawn from the ranges of another cluster, faults come
//! by rates, and decisions and the order are void.
//!
//! No event and no timer is added: each stream looks at the clock when a number is drawn.

use crate::{
    config::ClusterConfig,
    faults::Family,
    rt::{self, Nanos},
    seed::{self, Later, Seed, Stream},
};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The chance of a run from a moment on.
#[derive(Clone, Debug)]
pub struct Reseed {
    /// The moment, nanoseconds of virtual time: what is drawn before it is drawn as ever.
    pub from: Nanos,
    /// The seed of the numbers.
    pub seed: Seed,
    /// The cluster with the [durations](ClusterConfig::durations). Nothing else of it counts.
    pub cluster: ClusterConfig,
    /// The rates of faults.
    pub rates: BTreeMap<Family, f64>,
}

/// The other chance of this thread's run.
#[derive(Debug)]
pub(crate) struct Other {
    pub(crate) chance: Reseed,
    has_begun: AtomicBool,
}

thread_local! {
    static OTHER: RefCell<Option<Arc<Other>>> = const { RefCell::new(None) };
}

/// Performs a run with other chance, if one is given. The run must begin and end within the call.
pub fn with<T>(chance: Option<Reseed>, run: impl FnOnce() -> T) -> T {
    /// Ends the other chance also when the run panics.
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            OTHER.take();
            seed::set_later(None);
        }
    }
    let other = chance.map(|chance| Arc::new(Other { chance, has_begun: AtomicBool::new(false) }));
    seed::set_later(other.clone().map(|other| other as Arc<dyn Later>));
    OTHER.set(other);
    let _end = End;
    run()
}

/// A duration from the cluster's own range, or from the range of the other cluster if the stream's numbers
/// are those of another seed already.
pub(crate) fn duration(
    rng: &mut Stream,
    own: &Range<u64>,
    of: impl FnOnce(&ClusterConfig) -> &Range<u64>,
) -> u64 {
    let other = if rng.has_turned() { other() } else { None };
    let range = other.as_ref().map_or(own, |other| of(&other.chance.cluster));
    rng.range(range.clone())
}

/// The other chance of this thread's run, if it has one.
pub(crate) fn other() -> Option<Arc<Other>> {
    OTHER.with_borrow(Clone::clone)
}

impl Later for Other {
    fn seed(&self) -> Option<Seed> {
        self.has_begun().then_some(self.chance.seed)
    }
}

impl Other {
    /// Whether the moment has come.
    pub(crate) fn has_begun(&self) -> bool {
        if rt::elapsed() < self.chance.from {
            return false;
        }
        if !self.has_begun.swap(true, Ordering::Relaxed) {
            rt::reorder(self.chance.seed);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::{Clock, simulate};

    fn chance(from: Nanos, seed: u64) -> Reseed {
        let cluster = ClusterConfig { log_sync: 7..8, ..ClusterConfig::smallest() };
        Reseed { from, seed: Seed(seed), cluster, rates: BTreeMap::new() }
    }

    /// Numbers of a stream of chance, of a stream of the plan, and durations, one of each per 10,000 ns.
    fn drawn(other: Option<Reseed>) -> Vec<(u64, u64, u64)> {
        let run = async {
            let clock = Clock::current();
            let (mut luck, mut plan) = (Seed(1).run_stream("it"), Seed(1).stream("it"));
            let mut drawn = Vec::new();
            for at in 0..20 {
                clock.sleep_until(1_000_000 + 10_000 * at).await;
                drawn.push((
                    luck.u64(),
                    plan.u64(),
                    duration(&mut luck, &(3..4), |cluster| &cluster.log_sync),
                ));
            }
            drawn
        };
        with(other, || simulate(Seed(1), run))
    }

    #[test]
    fn numbers_are_others_from_the_moment_on() {
        let own = drawn(None);
        let turned = own.iter().filter(|(luck, plan, _)| luck != plan).count();
        assert!(turned > 0, "the streams differ after the first duration");
        let other = drawn(Some(chance(1_095_000, 5)));
        let same = own.iter().zip(&other).take_while(|(own, other)| own == other).count();
        assert_eq!(same, 10);
        for (own, other) in own.iter().zip(&other).skip(same) {
            assert!(own.0 != other.0 && own.1 == other.1 && (own.2, other.2) == (3, 7), "{own:?} {other:?}");
        }
        assert_eq!(drawn(Some(chance(1_095_000, 5))), other);
        assert_ne!(drawn(Some(chance(1_095_000, 6))), other);
        assert_eq!(drawn(Some(chance(Nanos::MAX, 5))), own);
        assert_eq!(drawn(None), own, "nothing is left of it");
    }
}
