//! A sweep while it goes on: its results so far, which other threads may read.
//!
//! A sweep adds to them what its report needs anyway, and notes when a coverage point was reached first and
//! when a failure was found. Whoever wants to see them has them made into a report; until then that costs
//! nothing.

use super::{
    cost,
    sweep::{OneRun, Sweep},
    tally::Tally,
};
use crate::search::shrink;
use parking_lot::Mutex;
use shaketable_reports::{
    Cost, Ending, Reached, RegressionReport, RunReport, ShrinkState, Shrinking, ShrunkRun, Stage,
    WatchReport, WatchedFinding, WorkloadReport, watch::SEEDS_KEPT,
};
use std::{collections::BTreeMap, time::Duration};

/// The results of a sweep so far.
pub(super) struct Live {
    meter: cost::Meter,
    state: Mutex<State>,
}

struct State {
    stage: Stage,
    /// How often anything has changed.
    changes: u64,
    /// The runs of all workloads.
    runs: u64,
    tallies: Vec<Tally>,
    /// The points that were reached, by time. It grows as often as there are points.
    coverage: Vec<Reached>,
    /// The failures that were kept when they were found, in that order.
    found: Vec<Found>,
    /// The searches for smaller plans: of the failure with this seed of the workload at this place.
    shrinking: BTreeMap<(usize, u64), Shrinking>,
    /// Once the sweep has ended: why, and what it cost.
    ended: Option<(Ending, Cost)>,
}

struct Found {
    workload: usize,
    seed: u64,
    runs: u64,
    elapsed_ns: u64,
}

impl Live {
    /// A sweep that begins, or goes on where an earlier part of it ended.
    pub(super) fn new(sweep: &Sweep) -> Live {
        let tallies: Vec<Tally> = match &sweep.earlier {
            Some(earlier) => Tally::of(earlier),
            None => sweep.entries.iter().map(|_| Tally::default()).collect(),
        };
        let runs = tallies.iter().map(|tally| tally.figures().runs).sum();
        let points = tallies.iter().map(Tally::reached).sum();
        let (mut found, mut shrinking) = (Vec::new(), BTreeMap::new());
        for (workload, tally) in tallies.iter().enumerate() {
            for (seed, failure) in tally.failures() {
                found.push(Found { workload, seed: *seed, runs: 0, elapsed_ns: 0 });
                shrinking.extend(failure.shrunk.as_ref().map(|shrunk| ((workload, *seed), searched(shrunk))));
            }
        }
        let state = State {
            stage: Stage::Regressions,
            changes: 0,
            runs,
            tallies,
            coverage: vec![Reached { runs, elapsed_ns: 0, points }],
            found,
            shrinking,
            ended: None,
        };
        Live { meter: cost::Meter::start(), state: Mutex::new(state) }
    }

    /// The runs of each workload, and how many of them failed.
    pub(super) fn runs(&self) -> Vec<(u64, u64)> {
        let runs = |tally: &Tally| (tally.figures().runs, tally.figures().failed());
        self.state.lock().tallies.iter().map(runs).collect()
    }

    /// How often anything has changed.
    pub(super) fn changes(&self) -> u64 {
        self.state.lock().changes
    }

    fn change<T>(&self, by: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        state.changes += 1;
        by(&mut state)
    }

    /// Begins another stage.
    pub(super) fn enter(&self, stage: Stage) {
        self.change(|state| state.stage = stage);
    }

    /// Adds the regressions of each workload.
    pub(super) fn add_regressions(&self, replayed: Vec<Vec<RegressionReport>>) {
        self.change(|state| {
            state.tallies.iter_mut().zip(replayed).for_each(|(tally, of_it)| tally.add_regressions(of_it));
        });
    }

    /// Adds a run of a workload: the seed at this place of the share.
    pub(super) fn add(&self, workload: usize, place: u64, seed: u64, ran: OneRun) {
        self.change(|state| {
            state.runs += 1;
            let change = state.tallies[workload].add(place, seed, ran);
            if change.reached == 0 && !change.is_kept {
                return;
            }
            let (runs, elapsed_ns) = (state.runs, self.meter.wall());
            if change.reached > 0 {
                let points = state.coverage.last().map_or(0, |last| last.points) + change.reached;
                state.coverage.push(Reached { runs, elapsed_ns, points });
            }
            if change.is_kept {
                state.found.push(Found { workload, seed, runs, elapsed_ns });
            }
        });
    }

    /// Says how far the search for a smaller plan is.
    pub(super) fn searches(&self, workload: usize, seed: u64, progress: &shrink::Progress) {
        let shrink::Progress { replays: runs, size: now } = *progress;
        let begun = Shrinking { runs, before: now, now, state: ShrinkState::Searching };
        self.change(|state| {
            let shrinking = state.shrinking.entry((workload, seed)).or_insert(begun);
            (shrinking.runs, shrinking.now) = (runs, now);
        });
    }

    /// Says what came of the search for a smaller plan: `None` if the run did not fail again.
    pub(super) fn shrunk(&self, workload: usize, seed: u64, shrunk: Option<&ShrunkRun>) {
        let nothing = Shrinking {
            runs: 1,
            before: Default::default(),
            now: Default::default(),
            state: ShrinkState::NotRepeated,
        };
        let ended = shrunk.map_or(nothing, searched);
        self.change(|state| state.shrinking.insert((workload, seed), ended));
    }

    /// The report of each workload.
    pub(super) fn workloads(&self, sweep: &Sweep) -> Vec<WorkloadReport> {
        let state = self.state.lock();
        let mut workloads = state.workloads(sweep, usize::MAX);
        for (workload, tally) in workloads.iter_mut().zip(&state.tallies) {
            workload.failures = tally.failures().values().cloned().collect();
        }
        workloads
    }

    /// Says that the sweep has ended, and returns what it cost.
    pub(super) fn end(&self, ending: Ending) -> Cost {
        let cost = self.meter.cost();
        self.change(|state| (state.stage, state.ended) = (Stage::Ended, Some((ending, cost))));
        cost
    }

    /// What the sweep has cost so far.
    pub(super) fn cost(&self) -> Cost {
        self.meter.cost()
    }

    /// What there is to see at the moment.
    pub(super) fn now(&self, sweep: &Sweep) -> WatchReport {
        let state = self.state.lock();
        let (ending, cost) = state.ended.unwrap_or_else(|| (Ending::Interrupted, self.meter.cost()));
        let finding = |found: &Found| {
            let run = state.tallies[found.workload].failures().get(&found.seed)?;
            Some(WatchedFinding {
                runs: found.runs,
                elapsed_ns: found.elapsed_ns,
                run: RunReport { plan: None, shrunk: None, history: None, ..run.clone() },
                shrinking: state.shrinking.get(&(found.workload, found.seed)).copied(),
            })
        };
        WatchReport {
            stage: state.stage,
            elapsed_ns: cost.wall_ns,
            budget_ns: sweep.budget.map(nanoseconds),
            seeds: sweep.share().len(),
            sweep: sweep.report(state.workloads(sweep, SEEDS_KEPT), ending, cost),
            coverage: state.coverage.clone(),
            findings: state.found.iter().filter_map(finding).collect(),
        }
    }
}

impl State {
    /// The report of each workload, without its failures, and with at most so many failing seeds.
    fn workloads(&self, sweep: &Sweep, most_seeds: usize) -> Vec<WorkloadReport> {
        let tallies = sweep.entries.iter().map(AsRef::as_ref).zip(&self.tallies);
        tallies.map(|(entry, tally)| sweep.report_of(entry, tally, most_seeds)).collect()
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A search that has ended.
fn searched(shrunk: &ShrunkRun) -> Shrinking {
    Shrinking {
        runs: shrunk.replays,
        before: shrunk.before,
        now: shrunk.after,
        state: if shrunk.is_minimal { ShrinkState::Minimal } else { ShrinkState::Stopped },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        command::{
            fake::fake,
            interrupt::Interrupt,
            resume::{Earlier, Ran},
        },
        judge::finding::Verdict,
        run::runner::RunResult,
    };
    use shaketable_reports::{Conclusion, Size, SweepReport};

    fn sweep() -> Sweep {
        let broken =
            fake("broken", |seed, _| if seed % 4 == 2 { Verdict::Violated } else { Verdict::Passed });
        let entries = vec![fake("sound", |_, _| Verdict::Passed), broken];
        Sweep { shrink_budget: Some(Duration::from_secs(10)), ..Sweep::plain(entries, 0..8) }
    }

    /// What there is to see before each run is added, and in the end; with the report.
    fn states(sweep: &Sweep) -> (Vec<WatchReport>, SweepReport) {
        let live = Live::new(sweep);
        let mut states = Vec::new();
        let report = sweep.watched(&Interrupt::default(), &live, |_, _| states.push(live.now(sweep)));
        states.push(live.now(sweep));
        (states, report)
    }

    fn seeds(state: &WatchReport) -> Vec<u64> {
        state.findings.iter().map(|finding| finding.run.seed).collect()
    }

    #[test]
    fn a_sweep_is_seen_run_by_run() {
        let sweep = sweep();
        let (states, report) = states(&sweep);
        let runs: Vec<u64> = states.iter().map(|state| state.sweep.runs()).collect();
        assert_eq!(runs, (0..=16).collect::<Vec<_>>());
        let (last, earlier) = states.split_last().expect("states");
        for state in earlier {
            assert_eq!((state.stage, state.sweep.ending), (Stage::Runs, Ending::Interrupted));
            assert_eq!((state.seeds, state.sweep.workloads.len()), (8, 2));
            assert!(state.findings.iter().all(|finding| finding.shrinking.is_none()));
        }
        // Seed 2 of the second workload is the sixth run.
        assert_eq!((seeds(&states[5]), seeds(&states[6]), seeds(last)), (vec![], vec![2], vec![2, 6]));
        assert_eq!((states[6].findings[0].runs, states[6].sweep.outcome), (6, Conclusion::Violated));
        // The last state is the report, whose failures are beside it.
        assert_eq!((last.stage, last.elapsed_ns), (Stage::Ended, report.cost.wall_ns));
        let mut whole = report;
        for failure in whole.workloads[1].failures.drain(..).zip(&last.findings) {
            let (failure, finding) = failure;
            assert_eq!(RunReport { plan: None, shrunk: None, ..failure }, finding.run);
        }
        assert_eq!(last.sweep, whole);
        let size = |operations| Size { operations, clients: 1, faults: 0 };
        let minimal = Shrinking { runs: 1, before: size(9), now: size(1), state: ShrinkState::Minimal };
        assert_eq!(last.findings[0].shrinking, Some(minimal));
        assert_eq!(last.findings[1].shrinking, None, "only the first is shrunk");
    }

    #[test]
    fn a_search_is_seen_while_it_goes_on() {
        let sweep = sweep();
        let live = Live::new(&sweep);
        let failing = |seed| OneRun {
            failure: states(&sweep).1.workloads[1].failures.first().cloned(),
            ..run(seed, 0)
        };
        live.add(1, 2, 2, failing(2));
        let size = |operations| Size { operations, clients: 3, faults: 1 };
        let seen = || live.now(&sweep).findings[0].shrinking;
        assert_eq!(seen(), None);
        for (replays, operations) in [(1, 80), (9, 7)] {
            live.searches(1, 2, &shrink::Progress { replays, size: size(operations) });
        }
        let so_far = Shrinking { runs: 9, before: size(80), now: size(7), state: ShrinkState::Searching };
        assert_eq!(seen(), Some(so_far));
        live.shrunk(1, 2, None);
        assert_eq!(seen().map(|search| search.state), Some(ShrinkState::NotRepeated));
        let changes = live.changes();
        live.now(&sweep);
        assert_eq!(live.changes(), changes, "to look changes nothing");
        live.enter(Stage::Shrinking);
        assert!(live.changes() > changes);
    }

    /// A run that evaluates a point, and finds it true so often.
    fn run(seed: u64, held: u64) -> OneRun {
        let seen = shaketable_tx::points::Seen { passed: 3, held };
        let result =
            RunResult { points: BTreeMap::from([("met", seen)]), virtual_time: seed, ..RunResult::default() };
        OneRun { result, failure: None, twice: false, differed: false, cpu: 0, allocations: 0 }
    }

    #[test]
    fn coverage_rises_when_a_point_is_reached_first() {
        let sweep = sweep();
        let live = Live::new(&sweep);
        for (workload, held) in [(0, 0), (0, 2), (0, 2), (1, 0), (1, 1), (0, 7)] {
            live.add(workload, 0, 0, run(0, held));
        }
        let coverage = live.now(&sweep).coverage;
        let points: Vec<_> = coverage.iter().map(|at| (at.runs, at.points)).collect();
        assert_eq!(points, [(0, 0), (2, 1), (5, 2)]);
    }

    #[test]
    fn of_many_failing_seeds_the_first_are_listed() {
        let sweep = Sweep::plain(vec![fake("broken", |_, _| Verdict::Violated)], 0..250);
        let live = Live::new(&sweep);
        let report = sweep.watched(&Interrupt::default(), &live, |_, _| {});
        let now = live.now(&sweep);
        assert_eq!(now.sweep.workloads[0].failing_seeds, (0..SEEDS_KEPT as u64).collect::<Vec<_>>());
        assert_eq!((now.sweep.workloads[0].violated, now.findings.len()), (250, 10));
        assert_eq!(report.workloads[0].failing_seeds.len(), 250);
    }

    #[test]
    fn a_sweep_that_is_continued_begins_with_what_was_found() {
        let (_, report) = states(&sweep());
        let share = sweep().share();
        let ran = report.workloads.iter().map(|w| Ran::of(w, &share).expect("as it was written")).collect();
        let sweep = Sweep { seeds: 0..12, ..sweep() }.continuing(Earlier { report, workloads: ran });
        let (states, report) = states(&sweep);
        assert_eq!(states[0].coverage[0], Reached { runs: 16, elapsed_ns: 0, points: 0 });
        assert_eq!((states[0].sweep.runs(), seeds(&states[0])), (16, vec![2, 6]));
        assert_eq!(states[0].findings[0].shrinking.map(|search| search.state), Some(ShrinkState::Minimal));
        let found: Vec<u64> =
            states.last().expect("states").findings.iter().map(|found| found.runs).collect();
        assert_eq!((found, report.runs()), (vec![0, 0, 22], 24));
    }
}
