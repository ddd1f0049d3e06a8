//! The search for the smallest plan that fails.

use super::{Claim, Sketch, Subject, sketch::Element};
use crate::runner::RunResult;
use shaketable_sim::{config::ClusterConfig, seed::Seed};

/// Schedules that are tried for a candidate from which much was taken.
const FEW: usize = 3;
/// Schedules that are tried before faults are known to be needed.
const MANY: usize = 12;
/// Schedules that are tried for each candidate from which one element was taken, near the end.
const LAST: usize = 6;
/// Times that single elements are taken away, each time all of them.
const ROUNDS: usize = 4;

/// How far a search is.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Runs so far.
    pub replays: u64,
    /// The smallest plan so far.
    pub size: super::Size,
}

/// The result of a search.
pub struct Found {
    /// What remains.
    pub sketch: Sketch,
    /// Its run.
    pub result: RunResult,
    /// Runs.
    pub replays: u64,
    /// Whether nothing more can be taken away.
    pub is_minimal: bool,
}

/// Shrinks a subject whose run fails. `goes_on` is called after each run; the search ends when it returns `false`, with
/// the smallest plan so far. Returns `None` if the run of the whole plan passes.
pub fn shrink(subject: &mut dyn Subject, goes_on: &mut dyn FnMut(&Progress) -> bool) -> Option<Found> {
    let whole = subject.whole();
    let result = subject.run(&whole);
    let claim = Claim::of(&result.findings)?;
    let mut search = Search { subject, claim, replays: 1, best: whole, result, stopped: false, goes_on };
    search.decide();
    search.perform();
    let Search { best, result, replays, stopped, .. } = search;
    Some(Found { sketch: best, result, replays, is_minimal: !stopped })
}

struct Search<'a> {
    subject: &'a mut dyn Subject,
    claim: Claim,
    replays: u64,
    best: Sketch,
    result: RunResult,
    /// Whether it is to end.
    stopped: bool,
    goes_on: &'a mut dyn FnMut(&Progress) -> bool,
}

impl Search<'_> {
    /// Replaces rates with the decisions of the run that failed. Its run is the same.
    fn decide(&mut self) {
        let mut decided = self.best.clone();
        decided.faults.rates.clear();
        decided.faults.decisions = self.result.decisions.clone();
        self.fails(decided, 1);
    }

    fn perform(&mut self) {
        let faults = self.best.faults();
        let calm = self.best.without(&faults);
        if !faults.is_empty() {
            self.fails(calm, MANY);
        }
        self.simplify_cluster();
        // Groups of operations first: what remains runs faster.
        self.take_groups(Sketch::operations);
        self.take_groups(Sketch::faults);
        for _ in 0..ROUNDS {
            let before = self.best.size();
            self.take_singles(Sketch::faults);
            self.take_singles(Sketch::operations);
            self.simplify_cluster();
            // Simple values collide more often, so that fewer operations may do.
            let simpler = self.simplify_values();
            if (self.best.size() == before && !simpler) || self.stopped {
                return;
            }
        }
    }

    /// Runs a candidate with up to `schedules` schedules, the present one first. If one fails with the claim, the candidate
    /// is the best from now on.
    fn fails(&mut self, candidate: Sketch, schedules: usize) -> bool {
        if candidate.operations.iter().all(Vec::is_empty) {
            return false;
        }
        for attempt in 0..schedules {
            if self.stopped {
                return false;
            }
            let schedule = match attempt {
                0 => candidate.schedule,
                _ => Seed(self.replays).stream("schedules").u64(),
            };
            let candidate = Sketch { schedule, ..candidate.clone() };
            let result = self.subject.run(&candidate);
            self.replays += 1;
            let fails = self.claim.is_in(&result.findings);
            if fails {
                (self.best, self.result) = (candidate, result);
            }
            self.stopped = !(self.goes_on)(&Progress { replays: self.replays, size: self.best.size() });
            if fails {
                return true;
            }
        }
        false
    }

    fn simplify_cluster(&mut self) {
        let cluster = &self.best.cluster;
        let smallest = ClusterConfig {
            cluster_bug: cluster.cluster_bug,
            window: cluster.window,
            versions_per_second: cluster.versions_per_second,
            ..ClusterConfig::smallest()
        };
        if self.best.cluster != smallest {
            let candidate = Sketch { cluster: smallest, ..self.best.clone() };
            self.fails(candidate, FEW);
        }
        if self.best.pause > 0 {
            let candidate = Sketch { pause: 0, ..self.best.clone() };
            self.fails(candidate, FEW);
        }
    }

    /// Takes groups of elements away, from halves down to pairs.
    fn take_groups(&mut self, elements: fn(&Sketch) -> Vec<Element>) {
        let mut size = elements(&self.best).len().div_ceil(2);
        while size > 1 {
            let mut from = 0;
            loop {
                let left = elements(&self.best);
                let Some(group) = left.get(from..(from + size).min(left.len())).filter(|g| !g.is_empty())
                else {
                    break;
                };
                let candidate = self.best.without(group);
                if !self.fails(candidate, FEW) {
                    from += size;
                }
                if self.stopped {
                    return;
                }
            }
            size = size.div_ceil(2);
            if size == 1 {
                break;
            }
        }
    }

    /// Takes each element away alone.
    fn take_singles(&mut self, elements: fn(&Sketch) -> Vec<Element>) {
        for element in elements(&self.best) {
            // It may have gone with another one.
            if elements(&self.best).contains(&element) {
                let candidate = self.best.without(std::slice::from_ref(&element));
                self.fails(candidate, LAST);
            }
            if self.stopped {
                return;
            }
        }
    }

    /// Makes the values of the remaining operations simpler, one after the other. Returns whether any became simpler.
    fn simplify_values(&mut self) -> bool {
        let mut simpler = false;
        for client in 0..self.best.operations.len() {
            let remaining = self.best.operations[client].clone();
            if remaining.is_empty() {
                continue;
            }
            let mut changed = self.subject.simplify(client, &remaining);
            while changed {
                let candidate = self.best.clone();
                changed = if !self.stopped && self.fails(candidate, FEW) {
                    simpler = true;
                    self.subject.simplify(client, &remaining)
                } else {
                    self.subject.complicate(client)
                };
            }
        }
        simpler
    }
}
