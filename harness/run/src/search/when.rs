//! When a failure became certain: a plan that fails is run again and again with
//! [other chance](shaketable_sim::chance) from a moment on, for moments of its run.
//!
//! Until the moment each run is the one that failed. From then on, chance is that of the plan's seed, with
//! other numbers: durations and faults come as the seed draws them for the whole run, also where the plan has
//! constant durations, decisions or an order, as a shrunk one. Operations, timed faults and machines are the
//! plan's. A run fails if the same judge makes the same [`Claim`].

use super::shrink::Claim;
use crate::run::{
    plan::Plan,
    pool::{self, Update},
    runner,
};
use shaketable_reports::{Moment, When};
use shaketable_sim::{chance::Reseed, rt::Nanos, seed::Seed};
use std::{
    collections::BTreeMap,
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
};

/// How many times a plan is run for each moment.
const RUNS: usize = 25;
/// The most moments that are looked at first.
const MOST: usize = 24;
/// How many more are looked at at once, where the failure became certain.
const MORE: usize = 8;

/// What the runs may take, and who is told of them.
pub struct Effort<'a> {
    /// The number of threads.
    pub jobs: usize,
    /// The CPU time after which no further run starts, nanoseconds.
    pub cpu: u64,
    /// Whether no further run may start.
    pub stops: &'a (dyn Fn() -> bool + Sync),
    /// Is called from time to time, with the number of runs so far.
    pub progress: &'a mut dyn FnMut(u64),
}

impl Effort<'_> {
    /// The most runs, unless the moment at which the failure became certain is between those looked at first.
    pub fn most_runs(moments: usize) -> u64 {
        (moments.min(MOST) * RUNS) as u64
    }
}

/// How often a plan that fails, fails with the chance of another one, from each of these moments on. `None`
/// if it passes, or if it could not be run once for each moment.
pub(crate) fn when(plan: &Plan, drawn: &Plan, moments: &[Moment], effort: &mut Effort<'_>) -> Option<When> {
    let claim = Claim::of(&runner::run(plan, false).findings)?;
    let mut numbers = plan.run_seed().stream("other chance");
    let seeds: Vec<Seed> = (0..RUNS).map(|_| Seed(numbers.u64())).collect();
    let fails = |from: Nanos, run: usize| {
        let (cluster, rates) = (drawn.cluster.clone(), drawn.faults.rates.clone());
        let chance = Reseed { from, seed: seeds[run], cluster, rates };
        claim.is_in(&runner::run_otherwise(plan, false, chance).findings)
    };
    Search { moments, fails, spent: AtomicU64::new(0), runs: 0, effort }.search()
}

struct Search<'a, 'b, F> {
    moments: &'a [Moment],
    /// Whether the run fails with the chance of this number from a time on.
    fails: F,
    /// The CPU time so far.
    spent: AtomicU64,
    /// The runs so far.
    runs: u64,
    effort: &'a mut Effort<'b>,
}

impl<F: Fn(Nanos, usize) -> bool + Sync> Search<'_, '_, F> {
    fn search(mut self) -> Option<When> {
        let first = spread(0..self.moments.len(), MOST);
        let (runs, failed) = self.ask(&first, RUNS);
        if runs == 0 {
            return None;
        }
        let mut found: BTreeMap<usize, u64> = first.into_iter().zip(failed).collect();
        loop {
            let moment = |(n, failed): (&usize, &u64)| Moment { failed: *failed, ..self.moments[*n].clone() };
            let when = When { runs: runs as u64, moments: found.iter().map(moment).collect() };
            let more = spread(unknown(&when, &found), MORE);
            // The same runs as for the other moments, or none.
            let (asked, failed) = if more.is_empty() { (0, Vec::new()) } else { self.ask(&more, runs) };
            if asked < runs {
                return Some(when);
            }
            found.extend(more.into_iter().zip(failed));
        }
    }

    /// Runs the plan with chance of each number, for each of these moments. Returns with how many numbers it
    /// was run for all of them, and how often it failed with those.
    fn ask(&mut self, moments: &[usize], runs: usize) -> (usize, Vec<u64>) {
        let mut failed = vec![0; moments.len()];
        for run in 0..runs {
            let mut these = vec![0; moments.len()];
            let (spent, effort) = (&self.spent, &mut *self.effort);
            let is_over = || (effort.stops)() || spent.load(Ordering::Relaxed) >= effort.cpu;
            let work = |n: u64| {
                let began = pool::cpu();
                // What happens at a moment is before it; the run itself begins at 0.
                let from = self.moments[moments[n as usize]].at;
                let fails = (self.fails)(if from > 0 { from + 1 } else { 0 }, run);
                spent.fetch_add(pool::cpu() - began, Ordering::Relaxed);
                fails
            };
            let done = pool::run(moments.len() as u64, effort.jobs, is_over, work, |update| {
                if let Update::Done(n, fails) = update {
                    these[n as usize] = u64::from(fails);
                    self.runs += 1;
                }
                (effort.progress)(self.runs);
            });
            if done < moments.len() as u64 {
                return (run, failed);
            }
            failed.iter_mut().zip(these).for_each(|(sum, fails)| *sum += fails);
        }
        (runs, failed)
    }
}

/// The moments between the last one at which it was not certain and the first one at which it was.
fn unknown(when: &When, found: &BTreeMap<usize, u64>) -> Range<usize> {
    let asked: Vec<usize> = found.keys().copied().collect();
    match when.certain() {
        None | Some(0) => 0..0,
        Some(n) => asked[n - 1] + 1..asked[n],
    }
}

/// At most so many numbers of a range, evenly spread, with its first and its last one.
fn spread(range: Range<usize>, most: usize) -> Vec<usize> {
    let count = range.len().min(most);
    let at = |n: usize| range.start + n * (range.len() - 1) / (count - 1).max(1);
    (0..count).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(count: u64) -> Vec<Moment> {
        (0..count).map(|n| Moment { at: n * 10, ..Moment::default() }).collect()
    }

    /// Searches where a run fails if `fails` says so of the moment's number and the number of the chance.
    fn found(
        count: u64,
        (jobs, cpu): (usize, u64),
        stops: &(dyn Fn() -> bool + Sync),
        fails: impl Fn(u64, usize) -> bool + Sync,
    ) -> (Option<When>, u64) {
        let mut runs = 0;
        let mut progress = |so_far| runs = so_far;
        let mut effort = Effort { jobs, cpu, stops, progress: &mut progress };
        let moments = moments(count);
        let fails = |from: Nanos, run| {
            assert!(from == 0 || from % 10 == 1, "{from}: right after a moment");
            fails(from / 10, run)
        };
        let search =
            Search { moments: &moments, fails, spent: AtomicU64::new(0), runs: 0, effort: &mut effort };
        (search.search(), runs)
    }

    #[test]
    fn the_moment_of_certainty_is_found_among_many() {
        for certain in [1, 2, 7, 8, 500, 998, 999] {
            let (when, runs) = found(1_000, (2, u64::MAX), &|| false, |n, run| n >= certain || run == 3);
            let when = when.expect("it ran");
            let at = when.certain().expect("it is certain");
            assert_eq!((when.moments[at].at, when.moments[at - 1].failed), (certain * 10, 1), "{certain}");
            assert!(runs <= 2_000, "{runs}");
            assert_eq!((when.moments[0].at, when.moments.last().map(|m| m.at)), (0, Some(9_990)));
        }
    }

    #[test]
    fn a_table_does_not_depend_on_the_number_of_threads() {
        let fails = |n: u64, run: usize| (n * 7 + run as u64 * 13) % 20 < n;
        let with = |jobs| found(50, (jobs, u64::MAX), &|| false, fails);
        assert_eq!(with(1), with(4));
        assert_eq!(with(1).0.expect("it ran").moments.len(), 24 + 1, "between two of the first");
    }

    #[test]
    fn what_ends_early_has_as_many_runs_for_each_moment() {
        let asked = AtomicU64::new(0);
        let stops = || asked.fetch_add(1, Ordering::Relaxed) >= 60;
        let (when, runs) = found(24, (1, u64::MAX), &stops, |_, _| true);
        assert_eq!((when.map(|when| when.runs), runs), (Some(2), 24 + 24 + 10));
        assert_eq!(found(24, (1, 0), &|| false, |_, _| true), (None, 0));
        assert_eq!(found(24, (1, u64::MAX), &|| true, |_, _| true), (None, 0));
    }
}
