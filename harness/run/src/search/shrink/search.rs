//! The search for the smallest plan that fails.

use super::{Claim, Size, Sketch, Subject};
use crate::run::runner::RunResult;
use shaketable_sim::seed::Seed;
use std::collections::BTreeSet;

/// How many schedules are tried for a candidate from which much was removed.
pub(super) const FEW: usize = 3;
/// How many schedules are tried for each candidate from which one element was removed.
pub(super) const LAST: usize = 6;
/// How many schedules are tried for a candidate that would gain much.
pub(super) const MANY: usize = 12;
/// The most values between one that passes and one that fails that are tried in a row without success.
const MOST_FAILED_TRIES: usize = 6;

/// If more than [`SMALL_PLAN`] operations remain: by which factor the number of schedules is raised, and for
/// how many runs at most.
const EFFORT: (usize, u64) = (4, 300);
/// A plan with at most this many operations is easily understood.
const SMALL_PLAN: u64 = 4;

/// The schedules with which a candidate of this size is tried after one element was removed: its own schedule
/// first, then others.
pub fn schedules(own: u64, size: Size) -> impl Iterator<Item = u64> {
    tried(own, size, LAST)
}

/// The first `count` schedules for a candidate. They follow from its size, so that it is not tried with
/// others later.
fn tried(own: u64, size: Size, count: usize) -> impl Iterator<Item = u64> {
    let others = Seed(size.operations * 1_000 + size.faults).stream("schedules");
    std::iter::once(own).chain((1..count).scan(others, |others, _| Some(others.u64())))
}

/// How far a search is.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Runs so far.
    pub replays: u64,
    /// The smallest plan so far.
    pub size: Size,
}

/// The result of a search.
pub struct SearchResult {
    /// What remains.
    pub sketch: Sketch,
    /// Its run.
    pub result: RunResult,
    /// Runs.
    pub replays: u64,
    /// Whether nothing more can be removed.
    pub is_minimal: bool,
    /// The kinds of operations that the finding named at first, and no longer names.
    pub left_out: Vec<&'static str>,
}

/// Shrinks a subject whose run fails. `should_continue` is called after each run and before other long work;
/// the search ends when it returns `false`, with the smallest plan so far. Returns `None` if the run of the
/// whole plan passes.
pub fn shrink(
    subject: &mut dyn Subject,
    should_continue: &mut dyn FnMut(&Progress) -> bool,
) -> Option<SearchResult> {
    let whole = subject.whole();
    let result = subject.run(&whole);
    let claim = Claim::of(&result.findings)?;
    let (key, passed) = (subject.key(&whole), BTreeSet::new());
    let mut search = Search {
        subject,
        claim,
        replays: 1,
        best: whole,
        key,
        result,
        passed,
        effort_until: 0,
        minimal: None,
        stopped: false,
        should_continue,
    };
    search.decide();
    search.perform();
    let Search { best, result, replays, minimal, key, claim, .. } = search;
    let left_out = claim.left_out(&result.findings);
    Some(SearchResult { sketch: best, result, replays, is_minimal: minimal == Some(key), left_out })
}

pub(super) struct Search<'a> {
    pub(super) subject: &'a mut dyn Subject,
    pub(super) claim: Claim,
    replays: u64,
    pub(super) best: Sketch,
    /// The key of the best.
    key: u64,
    pub(super) result: RunResult,
    /// The keys of candidates that do not fail with the claim.
    passed: BTreeSet<u64>,
    /// How many runs may have been made while more schedules than usual are tried for what is taken away.
    effort_until: u64,
    /// The key of the best from which nothing can be taken away.
    minimal: Option<u64>,
    /// Whether the search is to end.
    pub(super) stopped: bool,
    should_continue: &'a mut dyn FnMut(&Progress) -> bool,
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
        if !faults.is_empty() {
            self.fails(self.best.without(&faults), MANY);
        }
        self.simplify_cluster();
        self.keep_witness();
        self.keep_one();
        // Much at once first: what remains runs faster.
        self.take_ends();
        self.take_clients();
        self.take_all_in_groups();
        if self.best.size().operations > SMALL_PLAN {
            self.effort_until = self.replays + EFFORT.1;
            self.take_all_in_groups();
        }
        self.simplify_schedule();
        self.take_all();
    }

    fn take_all_in_groups(&mut self) {
        self.take_groups(Sketch::operations);
        self.take_groups(Sketch::faults);
        self.take_all();
    }

    /// How many schedules are tried where it is usually this many.
    pub(super) fn schedules(&self, usual: usize) -> usize {
        if self.replays < self.effort_until { usual * EFFORT.0 } else { usual }
    }

    /// Takes away and simplifies whatever can be, until nothing can.
    fn take_all(&mut self) {
        loop {
            let before = self.best.clone();
            self.take_singles(Sketch::faults);
            self.take_singles(Sketch::operations);
            self.simplify_cluster();
            // Simple values collide more often, so that fewer operations may do.
            let is_simpler = self.simplify_values();
            self.simplify_configuration();
            if self.stopped {
                return;
            }
            if self.best == before && !is_simpler {
                self.minimal = Some(self.key);
                return;
            }
        }
    }

    /// Reports the progress, and ends the search if the caller asks for that.
    pub(super) fn report_progress(&mut self) {
        self.stopped |= !(self.should_continue)(&Progress { replays: self.replays, size: self.best.size() });
    }

    /// Records that a candidate does not fail with the claim.
    pub(super) fn refuse(&mut self, candidate: &Sketch) {
        self.passed.insert(self.subject.key(candidate));
    }

    /// Whether a candidate is known not to fail with the claim.
    pub(super) fn is_refused(&self, candidate: &Sketch) -> bool {
        self.passed.contains(&self.subject.key(candidate))
    }

    /// Runs a candidate with up to `schedules` schedules, the present one first. If one fails with the claim,
    /// the candidate is the best from now on. What was run before is not run again.
    pub(super) fn fails(&mut self, candidate: Sketch, schedules: usize) -> bool {
        if candidate.operations.iter().all(Vec::is_empty) {
            return false;
        }
        for schedule in tried(candidate.schedule, candidate.size(), schedules) {
            if self.stopped {
                return false;
            }
            let candidate = Sketch { schedule, ..candidate.clone() };
            let key = self.subject.key(&candidate);
            if key == self.key {
                self.best = candidate;
                return true;
            }
            if self.passed.contains(&key) {
                continue;
            }
            let result = self.subject.run(&candidate);
            self.replays += 1;
            let fails = self.claim.is_in(&result.findings);
            if fails {
                self.subject.keep(&candidate);
                (self.best, self.key, self.result) = (candidate, key, result);
            } else {
                self.passed.insert(key);
            }
            self.report_progress();
            if fails {
                return true;
            }
        }
        false
    }

    /// Makes the values of the remaining operations simpler, one after the other. Returns whether any became
    /// simpler.
    fn simplify_values(&mut self) -> bool {
        let before = self.key;
        for client in 0..self.best.operations.len() {
            let remaining = self.best.operations[client].clone();
            if remaining.is_empty() {
                continue;
            }
            let (mut changed, mut failed_tries) = (self.subject.simplify(client, &remaining), 0);
            while changed {
                // Complicated to its end, a value is the one that has failed last.
                let is_tried = failed_tries < MOST_FAILED_TRIES && !self.stopped;
                let fails = is_tried && self.fails(self.best.clone(), FEW);
                failed_tries = if fails { 0 } else { failed_tries + 1 };
                changed = match fails {
                    true => self.subject.simplify(client, &remaining),
                    false => self.subject.complicate(client),
                };
                if !changed && !fails && !self.stopped {
                    // The value after it.
                    failed_tries = 0;
                    changed = self.subject.simplify(client, &remaining);
                }
            }
        }
        self.key != before
    }
}
