//! Runs a workload to observe its traffic.

use super::Traffic;
use crate::{
    judge::finding::Verdict,
    run::plan::Demands,
    run::{
        pool::{self, Update},
        runner::Observation,
    },
    search::entry::Entry,
};
use parking_lot::Mutex;
use shaketable_reports::WorkloadAdvice;
use shaketable_sim::seed::Seed;
use std::{collections::BTreeMap, ops::Range};

/// What to run for its traffic.
pub struct Asked<'a> {
    /// The seeds.
    pub seeds: Range<u64>,
    /// The demands on each run.
    pub demands: &'a Demands,
    /// The number of threads.
    pub jobs: usize,
    /// Whether to start no further run.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// Runs the seeds of a workload, and says what the guidelines say about their traffic. `tick` is called now
/// and then, with whether a run has ended. If it is stopped, the advice is about the seeds that were run.
pub fn advise(entry: &dyn Entry, asked: &Asked<'_>, tick: &mut dyn FnMut(bool)) -> WorkloadAdvice {
    let mut found = BTreeMap::new();
    let run = |piece: u64| {
        let traffic = Mutex::new(None);
        let see = |run: &Observation<'_>| *traffic.lock() = Some(Traffic::of(run));
        let result = entry.observe(Seed(asked.seeds.start + piece), asked.demands, &see);
        (result.verdict() != Verdict::Passed, traffic.into_inner())
    };
    let pieces = asked.seeds.end - asked.seeds.start;
    pool::run(pieces, asked.jobs, asked.stop, run, |update| match update {
        Update::Done(piece, result) => {
            found.insert(piece, result);
            tick(true);
        }
        Update::Tick => tick(false),
    });
    // In the order of the seeds, whichever thread was first.
    let mut traffic = Traffic::default();
    found.values().filter_map(|(_, of_run)| of_run.as_ref()).for_each(|of_run| traffic.merge(of_run));
    let bug = asked.demands.bug.as_deref().or(asked.demands.cluster_bug.map(|bug| bug.name()));
    WorkloadAdvice {
        failed: found.values().filter(|(failed, _)| *failed).count() as u64,
        ..traffic.advice(entry.name(), bug)
    }
}
