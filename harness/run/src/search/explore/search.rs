//! Runs the cases of an exploration in waves. The cases of a wave depend on the requests that the runs of the
//! wave before it made.

use super::{
    Accesses, Subject,
    case::{Case, Part},
    orders, outcome,
    scene::{Kinds, Stage},
};
use crate::{
    judge::finding::{Finding, Kind, Verdict, deciding},
    run::{
        pool::{self, Update},
        runner::Observation,
    },
};
use parking_lot::Mutex;
use shaketable_sim::{faults::Step, seed::Seed};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

/// How many plans are explored at a time: single outcomes and orders of two are run for these first, and then
/// for the next plans.
const AT_A_TIME: usize = 3;

/// The numbers of cases of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The cases that are known.
    pub known: u64,
    /// Those that were run.
    pub ran: u64,
    /// Those of them in which the outcome or the order was impossible: the operation ended earlier, its
    /// transactions have no time limit, or it waits for an operation that was held back.
    pub impossible: u64,
    /// Those of them that failed.
    pub failed: u64,
}

/// A run that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The part.
    pub part: Part,
    /// The seed of the plan.
    pub seed: Seed,
    /// The outcomes or the order of its case, as text.
    pub what: String,
    /// The finding that decides its verdict.
    pub finding: Finding,
    /// Its plan as a repro file.
    pub repro: String,
}

/// The result of an exploration.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// How much of each part was run.
    pub tallies: BTreeMap<Part, Tally>,
    /// The first failure of each kind of finding, in the order of the cases.
    pub failures: Vec<Failure>,
    /// The kinds of operations that were explored, and those that were drawn.
    pub kinds: (usize, usize),
    /// The most severe verdict.
    pub verdict: Verdict,
    /// Whether it was ended before everything was run.
    pub stopped: bool,
}

impl Found {
    /// Whether a case failed other than the whole plan of a seed.
    fn is_explored(&self) -> bool {
        self.failures.iter().any(|failure| failure.part != Part::Whole)
    }
}

/// The progress of an exploration: cases run, cases known, failures.
pub type Done = (u64, u64, u64);

/// An exploration of some plans.
pub struct Exploration<'a> {
    /// The plans.
    pub subjects: &'a [Box<dyn Subject>],
    /// The number of threads.
    pub jobs: usize,
    /// Whether it ends at the first failure.
    pub only_first: bool,
    /// Whether no further run is to be started.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// The results of running a case.
struct Ran {
    finding: Option<Finding>,
    verdict: Verdict,
    is_met: bool,
    made: Vec<Step>,
    accesses: Option<Accesses>,
    /// The cases that follow, now and in the second half.
    next: Vec<Case>,
    second: Vec<Case>,
}

impl Exploration<'_> {
    /// Explores the plans. `update` is called from time to time.
    pub fn perform(&self, update: &mut dyn FnMut(Done)) -> Found {
        let mut search = Search { of: self, found: Found::default(), update };
        search.perform();
        search.found
    }

    fn run(&self, case: &Case) -> Ran {
        let subject = self.subjects[case.subject].as_ref();
        // The requests of a plan without faults are recorded on demand.
        let accesses = Mutex::new(None);
        let see = |run: &Observation<'_>| *accesses.lock() = Some(Accesses::of(run.history));
        let result = match case.part {
            Part::Whole => subject.observe(&case.sketch, &see),
            part => subject.run(&case.sketch, part == Part::Plain),
        };
        let (mut next, mut second) = (Vec::new(), Vec::new());
        match case.part {
            Part::Plain => next = outcome::single(subject, case, &result),
            Part::Outcome => {
                next = outcome::later(subject, case, &result);
                second = outcome::second(subject, case, &result);
            }
            Part::Whole | Part::Order | Part::TwoOutcomes | Part::OrderOfThree => {}
        }
        Ran {
            finding: deciding(&result.findings).cloned(),
            verdict: result.verdict(),
            is_met: outcome::is_met(case, &result) && result.requests.overdue == 0,
            made: outcome::made(&case.sketch, &result),
            accesses: accesses.into_inner(),
            next,
            second,
        }
    }
}

/// The case of a whole plan, which shows what its operations read and write.
fn whole(number: usize, subject: &dyn Subject) -> Case {
    let mut sketch = subject.empty();
    for (kept, shown) in sketch.operations.iter_mut().zip(subject.operations()) {
        *kept = (0..shown.len()).collect();
    }
    Case { part: Part::Whole, ..Case::plain(number, sketch) }
}

/// A group of operations, and the indices of the cases in which they are done one after another.
struct Group {
    case: Case,
    serial: std::ops::Range<usize>,
}

struct Search<'a> {
    of: &'a Exploration<'a>,
    found: Found,
    update: &'a mut dyn FnMut(Done),
}

impl Search<'_> {
    fn perform(&mut self) {
        let subjects: Vec<(usize, &dyn Subject)> =
            self.of.subjects.iter().map(AsRef::as_ref).enumerate().collect();
        let (mut kinds, mut stages, mut second) = (Kinds::default(), Vec::new(), Vec::new());
        for subjects in subjects.chunks(AT_A_TIME) {
            let new = self.stages(subjects);
            second.extend(self.singles(&new, &mut kinds));
            stages.extend(new);
        }
        self.found.kinds = kinds.counts();
        let mut cases = Vec::new();
        let groups = of_groups(&stages, Part::OrderOfThree, &mut cases);
        let ran = self.wave(&cases);
        let orders = self.orders(&groups, Part::OrderOfThree, &ran);
        // Both parts get a share of the time that is left.
        self.wave(&alternating(second, orders));
    }

    /// Runs the whole plans of subjects, for what their operations read and write.
    fn stages<'s>(&mut self, subjects: &[(usize, &'s dyn Subject)]) -> Vec<Stage<'s>> {
        let wholes: Vec<Case> = subjects.iter().map(|(number, subject)| whole(*number, *subject)).collect();
        let ran = self.wave(&wholes);
        let stage = |((number, subject), ran): (&(usize, &'s dyn Subject), Option<Ran>)| {
            let accesses = ran.and_then(|ran| ran.accesses).unwrap_or_default();
            Stage::new(*number, *subject, accesses)
        };
        subjects.iter().zip(ran).map(stage).collect()
    }

    /// Runs every outcome alone, and every order of two operations. Returns the cases of two outcomes.
    fn singles(&mut self, stages: &[Stage<'_>], kinds: &mut Kinds) -> Vec<Case> {
        let scenes = |stage: &Stage<'_>| [stage.outcomes(kinds), stage.alone(kinds)].concat();
        let mut cases: Vec<Case> = stages.iter().flat_map(scenes).collect();
        let groups = of_groups(stages, Part::Order, &mut cases);
        let ran = self.wave(&cases);
        let mut cases = next(&ran);
        cases.extend(self.orders(&groups, Part::Order, &ran));
        let mut second = Vec::new();
        while !cases.is_empty() {
            let ran = self.wave(&cases);
            cases = next(&ran);
            second.extend(ran.into_iter().flatten().flat_map(|ran| ran.second));
        }
        second
    }

    /// Runs cases, and counts them. The results are those of the cases that were run.
    fn wave(&mut self, cases: &[Case]) -> Vec<Option<Ran>> {
        for case in cases {
            self.found.tallies.entry(case.part).or_default().known += 1;
        }
        let mut ran: Vec<Option<Ran>> = cases.iter().map(|_| None).collect();
        let (explore, failed) = (self.of, AtomicBool::new(self.found.is_explored()));
        let ends = || (explore.only_first && failed.load(Ordering::Relaxed)) || (explore.stop)();
        let known: u64 = self.found.tallies.values().map(|tally| tally.known).sum();
        let before: u64 = self.found.tallies.values().map(|tally| tally.ran).sum();
        let mut failures: u64 = self.found.tallies.values().map(|tally| tally.failed).sum();
        let mut done = 0;
        let update = &mut self.update;
        let started = pool::run(
            cases.len() as u64,
            explore.jobs,
            ends,
            |n| {
                let ran = explore.run(&cases[n as usize]);
                if ran.finding.is_some() && cases[n as usize].part != Part::Whole {
                    failed.store(true, Ordering::Relaxed);
                }
                ran
            },
            |now| {
                if let Update::Done(n, result) = now {
                    done += 1;
                    failures += u64::from(result.finding.is_some());
                    ran[n as usize] = Some(result);
                }
                update((before + done, known, failures));
            },
        );
        self.found.stopped |= started < cases.len() as u64;
        for (case, ran) in cases.iter().zip(&ran) {
            if let Some(ran) = ran {
                self.count(case, ran);
            }
        }
        ran
    }

    fn count(&mut self, case: &Case, ran: &Ran) {
        let tally = self.found.tallies.entry(case.part).or_default();
        tally.ran += 1;
        tally.impossible += u64::from(!ran.is_met);
        self.found.verdict = self.found.verdict.max(ran.verdict);
        let Some(finding) = &ran.finding else { return };
        tally.failed += 1;
        let failures = &self.found.failures;
        let is_known = |kind: Kind| failures.iter().any(|failure| failure.finding.kind == kind);
        let is_wanted = match self.of.only_first {
            true if case.part == Part::Whole => failures.is_empty(),
            true => !self.found.is_explored(),
            false => !is_known(finding.kind),
        };
        if is_wanted {
            let subject = self.of.subjects[case.subject].as_ref();
            self.found.failures.push(Failure {
                part: case.part,
                seed: subject.seed(),
                what: case.to_string(),
                finding: finding.clone(),
                repro: subject.repro(&case.sketch),
            });
        }
    }

    /// The orders of groups whose serial cases were run.
    fn orders(&mut self, groups: &[Group], part: Part, ran: &[Option<Ran>]) -> Vec<Case> {
        let mut cases = Vec::new();
        for Group { case, serial } in groups {
            let runs: Vec<Vec<Step>> =
                ran[serial.clone()].iter().flatten().map(|ran| ran.made.clone()).collect();
            if runs.len() < serial.len() {
                continue;
            }
            let (number, orders) = orders::orders(case, part, &orders::requests(case, &runs));
            let listed = (orders.len() + serial.len()) as u64;
            let missing = number.saturating_sub(listed);
            self.found.tallies.entry(part).or_default().known += missing;
            cases.extend(orders);
        }
        cases
    }
}

/// The groups of all subjects; their serial cases are added.
fn of_groups(stages: &[Stage<'_>], part: Part, cases: &mut Vec<Case>) -> Vec<Group> {
    let mut groups = Vec::new();
    for case in stages.iter().flat_map(|stage| stage.groups(part)) {
        let from = cases.len();
        cases.extend(orders::one_after_another(&case, part));
        groups.push(Group { case, serial: from..cases.len() });
    }
    groups
}

fn next(ran: &[Option<Ran>]) -> Vec<Case> {
    ran.iter().flatten().flat_map(|ran| ran.next.iter().cloned()).collect()
}

/// The items of two lists, in turns.
fn alternating<T>(a: Vec<T>, b: Vec<T>) -> Vec<T> {
    let (mut a, mut b) = (a.into_iter(), b.into_iter());
    let mut both = Vec::new();
    loop {
        match (a.next(), b.next()) {
            (None, None) => return both,
            (one, other) => both.extend(one.into_iter().chain(other)),
        }
    }
}
