//! A sweep: workloads over many seeds, on several threads, with what it reports.

use super::{
    args::REPLAYS,
    backend::Backend,
    choose, cost,
    interrupt::Interrupt,
    live::Live,
    output::{Outputs, SAVE_EVERY, Watch},
    progress::Progress,
    regressions::Regressions,
    report::{self, Origin},
    resume::{Earlier, Share},
    shrink::{self, Limits},
    tally::Tally,
};
use crate::{
    judge::finding,
    run::{
        plan::Demands,
        pool::{self, Update},
        runner::RunResult,
    },
    search::{determinism, entry::Entry},
};
use shaketable_reports::{Cost, Ending, RunReport, Scale, Stage, SweepReport, WorkloadReport};
use shaketable_sim::seed::Seed;
use std::{
    borrow::Cow,
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Of a sweep that goes on for long, which seeds are longer than usual: beyond the first ones, one in so
/// many.
const USUAL_AT_FIRST: u64 = 100;
const ONE_IS_LONG_IN: u64 = 50;

/// A sweep.
pub(super) struct Sweep {
    /// The workloads.
    pub entries: Vec<Box<dyn Entry>>,
    /// The demands on each run.
    pub demands: Demands,
    /// The seeds of all shards together.
    pub seeds: Range<u64>,
    /// The text from which the seeds were drawn, if they were.
    pub fresh: Option<String>,
    /// Whether every coverage point must be reached.
    pub require_points: bool,
    /// The number of the shard, starting at 1, and the number of shards.
    pub shard: Option<(u64, u64)>,
    /// The number of seeds of all shards together, from the first one on, that are run twice.
    pub run_twice: u64,
    /// The number of threads.
    pub jobs: usize,
    /// The time, in real time, after which no further run is started.
    pub budget: Option<Duration>,
    /// The backend of the runs.
    pub backend: Backend,
    /// The regressions that are replayed first.
    pub regressions: Regressions,
    /// The earlier part of a sweep that is continued.
    pub earlier: Option<Earlier>,
    /// The CPU time for which the first failure of each workload is shrunk; `None` for not at all.
    pub shrink_budget: Option<Duration>,
    /// Where the report goes.
    pub outputs: Outputs,
    /// The interval at which the report so far is written as JSON, nanoseconds.
    pub save_every: u64,
}

/// One run of a sweep.
pub(super) struct OneRun {
    pub(super) result: RunResult,
    /// The full report of a run that did not pass.
    pub(super) failure: Option<RunReport>,
    /// Whether it was run twice.
    pub(super) twice: bool,
    /// Whether the second run differed.
    pub(super) differed: bool,
    /// CPU time, nanoseconds.
    pub(super) cpu: u64,
    /// The requests for memory, of both runs if it was run twice.
    pub(super) allocations: u64,
}

impl Sweep {
    /// A sweep of these seeds on simulated clusters, on one thread, without anything that a user can ask for
    /// beyond that.
    pub(super) fn plain(entries: Vec<Box<dyn Entry>>, seeds: Range<u64>) -> Sweep {
        Sweep {
            entries,
            demands: Demands::default(),
            seeds,
            fresh: None,
            require_points: false,
            shard: None,
            run_twice: 0,
            jobs: 1,
            budget: None,
            backend: Backend::Simulated,
            regressions: Regressions::default(),
            earlier: None,
            shrink_budget: None,
            outputs: Outputs::default(),
            save_every: SAVE_EVERY,
        }
    }

    /// The sweep as the remaining part of an earlier one.
    pub(super) fn continuing(self, earlier: Earlier) -> Sweep {
        Sweep { earlier: Some(earlier), ..self }
    }

    /// The seeds of this shard.
    pub(super) fn share(&self) -> Share {
        Share::new(&self.seeds, self.shard)
    }

    /// The demands on the run of a seed. Some layers are wrong only after many operations: a sweep with a
    /// budget of time, or of seeds that change from night to night, has some runs that are ten times as long.
    fn demands_on(&self, entry: &dyn Entry, seed: u64) -> Cow<'_, Demands> {
        let place = seed - self.seeds.start;
        let is_long = (self.budget.is_some() || self.fresh.is_some())
            && self.backend.is_simulated()
            && self.demands.scale.is_usual()
            && place >= USUAL_AT_FIRST
            && place % ONE_IS_LONG_IN == ONE_IS_LONG_IN - 1
            && entry.grows();
        match is_long {
            true => Cow::Owned(Demands { scale: Scale::LONG, ..self.demands.clone() }),
            false => Cow::Borrowed(&self.demands),
        }
    }

    /// The index in the share and the workload of a piece. Workloads take turns, so that a sweep that ends
    /// early has run each of them equally often.
    fn piece(&self, piece: u64) -> (u64, usize) {
        let workloads = self.entries.len() as u64;
        (piece / workloads, (piece % workloads) as usize)
    }

    /// Whether a piece was done by the earlier part of the sweep.
    fn was_done(&self, piece: u64) -> bool {
        let (place, workload) = self.piece(piece);
        self.earlier.as_ref().is_some_and(|earlier| earlier.workloads[workload].contains(place))
    }

    /// Runs the seeds and adds up their results.
    pub(super) fn perform(&self, interrupt: &Interrupt) -> SweepReport {
        self.observed(interrupt, |_, _| {})
    }

    /// Like [`perform`](Sweep::perform). `observer` sees each run, and the place of its workload.
    pub(super) fn observed(
        &self,
        interrupt: &Interrupt,
        observer: impl FnMut(usize, &OneRun),
    ) -> SweepReport {
        self.watched(interrupt, &Live::new(self), observer)
    }

    /// Like [`observed`](Sweep::observed). `live` has the results so far.
    pub(super) fn watched(
        &self,
        interrupt: &Interrupt,
        live: &Live,
        mut observer: impl FnMut(usize, &OneRun),
    ) -> SweepReport {
        let deadline = self.budget.map(cost::deadline);
        let over_budget = || deadline.is_some_and(cost::is_past);
        let share = self.share();
        let pieces = share.len().saturating_mul(self.entries.len() as u64);
        let parts: Vec<_> = self.entries.iter().map(|e| (e.name(), share.len())).collect();
        let mut progress = Progress::new(&parts, ("run", "runs"), "failed");
        for (workload, (runs, failed)) in live.runs().into_iter().enumerate() {
            progress.resume(workload, runs, failed);
        }
        live.add_regressions(self.regressions.replay(&self.entries, self.jobs, || interrupt.is_set()));
        live.enter(Stage::Runs);
        let unwritable = AtomicBool::new(false);
        let mut watch = Watch::start(&self.outputs, &unwritable).saving_every(self.save_every);
        let done = pool::run(
            pieces,
            self.jobs,
            || {
                interrupt.is_set()
                    || over_budget()
                    || self.backend.is_lost()
                    || unwritable.load(Ordering::Relaxed)
            },
            |piece| if self.was_done(piece) { None } else { self.one(piece, interrupt) },
            |update| {
                watch.tick_saving(|| self.so_far(live));
                match update {
                    Update::Tick => progress.tick(),
                    // The piece was done before, or it was interrupted.
                    Update::Done(_, None) => {}
                    Update::Done(piece, Some(ran)) => {
                        let (place, workload) = self.piece(piece);
                        progress.done(workload, ran.failure.is_none());
                        observer(workload, &ran);
                        live.add(workload, place, share.seed(place), ran);
                    }
                }
            },
        );
        progress.end();
        let mut workloads = live.workloads(self);
        self.shrink_failures(&mut workloads, interrupt, live);
        let ending = match done {
            _ if self.backend.is_lost() => Ending::Lost,
            done if done == pieces && (self.backend.is_simulated() || !interrupt.is_set()) => {
                Ending::Complete
            }
            _ if interrupt.is_set() => Ending::Interrupted,
            _ if unwritable.load(Ordering::Relaxed) => Ending::Unwritable,
            _ => Ending::Budget,
        };
        self.report(workloads, ending, live.end(ending))
    }

    /// The report of a sweep that goes on, from which `--resume` continues it.
    fn so_far(&self, live: &Live) -> SweepReport {
        self.report(live.workloads(self), Ending::Interrupted, live.cost())
    }

    /// The report of a workload, without its failures, and with at most so many failing seeds.
    pub(super) fn report_of(&self, entry: &dyn Entry, tally: &Tally, most_seeds: usize) -> WorkloadReport {
        let simulated = self.backend.is_simulated();
        let mut report = tally.report(entry, &self.demands, &self.share(), simulated, most_seeds);
        report.missed_points = Vec::new();
        if self.require_points {
            report.missed_points = report::unreached(&report.points);
        }
        report
    }

    /// The report of the sweep that ends so. `cost` is that of its last part.
    pub(super) fn report(&self, workloads: Vec<WorkloadReport>, ending: Ending, cost: Cost) -> SweepReport {
        SweepReport {
            faults: choose::name_of(self.demands.profile).to_owned(),
            without: self.demands.without.iter().map(|f| f.name().to_owned()).collect(),
            scale: self.demands.scale,
            real: !self.backend.is_simulated(),
            bug: choose::planted(&self.demands).map(str::to_owned),
            seeds: self.seeds.clone(),
            fresh: self.fresh.clone(),
            require_points: self.require_points,
            shard: self.shard,
            run_twice: self.run_twice,
            regressions: self.regressions.folder.clone(),
            strict_regressions: self.regressions.strict,
            jobs: self.jobs as u64,
            ending,
            outcome: SweepReport::outcome_of(ending, &workloads),
            workloads,
            cost: self.earlier.as_ref().map_or(cost, |earlier| earlier.report.cost.and(cost)),
        }
    }

    /// Shrinks the first failure of each workload, unless that was done before.
    fn shrink_failures(&self, workloads: &mut [WorkloadReport], interrupt: &Interrupt, live: &Live) {
        let Some(budget) = self.shrink_budget.filter(|_| self.backend.is_simulated()) else { return };
        let is_left = |w: &WorkloadReport| w.failures.first().is_some_and(|failure| failure.shrunk.is_none());
        let left: Vec<usize> = (0..workloads.len()).filter(|n| is_left(&workloads[*n])).collect();
        if left.is_empty() || interrupt.is_set() {
            return;
        }
        live.enter(Stage::Shrinking);
        let seeds: Vec<u64> = left.iter().map(|n| workloads[*n].failures[0].seed).collect();
        let plan = |n: &usize| {
            let failure = &workloads[*n].failures[0];
            let demands = Demands { scale: failure.scale, ..self.demands.clone() };
            self.entries[*n].plan(Seed(failure.seed), &demands)
        };
        let plans: Vec<String> = left.iter().map(plan).collect();
        let mut progress =
            Progress::new(&[("shrinking", left.len() as u64)], ("failure", "failures"), "not shrunk");
        let shrink = |place: u64| {
            let limits = Limits::new(REPLAYS, budget, interrupt);
            let place = place as usize;
            shrink::shrunk_plan(self.entries[left[place]].as_ref(), &plans[place], &mut |so_far| {
                live.searches(left[place], seeds[place], so_far);
                limits.allow(so_far.replays)
            })
        };
        pool::run(
            left.len() as u64,
            self.jobs,
            || interrupt.is_set(),
            shrink,
            |update| match update {
                Update::Tick => progress.tick(),
                Update::Done(place, shrunk) => {
                    progress.done(0, shrunk.is_some());
                    let place = place as usize;
                    live.shrunk(left[place], seeds[place], shrunk.as_ref());
                    let failure = &mut workloads[left[place]].failures[0];
                    failure.plan = serde_json::from_str(&plans[place]).ok();
                    failure.shrunk = shrunk.map(Box::new);
                }
            },
        );
        progress.end();
    }

    /// Performs one run. Returns `None` if it was interrupted.
    fn one(&self, piece: u64, interrupt: &Interrupt) -> Option<OneRun> {
        let (place, workload) = self.piece(piece);
        let (seed, entry) = (self.share().seed(place), self.entries[workload].as_ref());
        let before = (cost::thread_cpu(), pool::allocations());
        let twice = seed - self.seeds.start < self.run_twice;
        let demands = &*self.demands_on(entry, seed);
        let mut result = self.backend.run(entry, Seed(seed), demands, &|| interrupt.is_set())?;
        let mut differed = false;
        if twice {
            let second = entry.run(Seed(seed), demands, false);
            if !determinism::same(&result, &second) {
                differed = true;
                let again = || entry.run(Seed(seed), demands, true);
                result.findings.insert(0, determinism::explained(again));
            }
        }
        let failure = (result.verdict() != finding::Verdict::Passed).then(|| {
            let origin = Origin::of(entry.name(), seed, demands, &self.backend);
            origin.report(&result, self.backend.summary(entry, Seed(seed), demands))
        });
        let (cpu, allocations) = (cost::thread_cpu() - before.0, pool::allocations() - before.1);
        Some(OneRun { result, failure, twice, differed, cpu, allocations })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::fake::{fake, nondeterministic};
    use crate::command::files::Files;
    use crate::judge::finding::Verdict;
    use shaketable_reports::Conclusion;

    fn sweep(seeds: Range<u64>, shard: Option<(u64, u64)>) -> Sweep {
        let entries = vec![fake("one", |_, _| Verdict::Passed), fake("two", |_, _| Verdict::Passed)];
        Sweep { shard, ..Sweep::plain(entries, seeds) }
    }

    #[test]
    fn some_runs_of_a_sweep_that_goes_on_for_long_are_long() {
        let wrong_in_the_end = |_, demands: &Demands| match demands.scale.is_usual() {
            true => Verdict::Passed,
            false => Verdict::Violated,
        };
        let entries = || vec![fake("sound", wrong_in_the_end), fake("cannot grow", wrong_in_the_end)];
        let failing = |sweep: Sweep| {
            let report = sweep.perform(&Interrupt::default());
            assert!(report.workloads[1].failing_seeds.is_empty());
            let replays = report.workloads[0].failures.iter();
            assert!(
                replays
                    .clone()
                    .all(|f| f.replay.ends_with(&format!("sound {} --faults standard --scale 10", f.seed)))
            );
            report.workloads[0].failing_seeds.clone()
        };
        let plain = || Sweep::plain(entries(), 7..307);
        assert!(failing(plain()).is_empty());
        let long = vec![156, 206, 256, 306];
        assert_eq!(failing(Sweep { budget: Some(Duration::from_secs(600)), ..plain() }), long);
        assert_eq!(failing(Sweep { fresh: Some("tonight".to_owned()), ..plain() }), long);
        let shard = Sweep { fresh: Some("tonight".to_owned()), shard: Some((2, 2)), ..plain() };
        assert_eq!(failing(shard), long, "the same as in the whole sweep");
    }

    #[test]
    fn shards_divide_the_seeds() {
        let seeds_of = |shard| {
            let sweep = sweep(10..31, shard);
            let step = sweep.entries.len() as u64;
            let share = sweep.share();
            (0..share.len()).map(|k| share.seed(sweep.piece(k * step).0)).collect::<Vec<_>>()
        };
        let mut all: Vec<u64> = (1..=4).flat_map(|number| seeds_of(Some((number, 4)))).collect();
        all.sort_unstable();
        assert_eq!(all, (10..31).collect::<Vec<_>>());
        assert_eq!(seeds_of(None), (10..31).collect::<Vec<_>>());
        assert_eq!(sweep(0..2, Some((3, 4))).share().len(), 0);
    }

    #[test]
    fn a_sweep_over_all_possible_seeds_does_not_overflow() {
        assert_eq!(sweep(0..u64::MAX, None).share().len(), u64::MAX);
        assert_eq!(sweep(u64::MAX - 1..u64::MAX, None).share().seed(0), u64::MAX - 1);
    }

    fn over(entries: Vec<Box<dyn Entry>>, seeds: u64, jobs: usize) -> Sweep {
        Sweep { entries, jobs, ..sweep(0..seeds, None) }
    }

    /// A report without its costs.
    fn without_cost(mut report: SweepReport) -> SweepReport {
        report.cost = Default::default();
        report.jobs = 0;
        report.workloads.iter_mut().for_each(|w| w.cpu_ns = 0);
        report
    }

    fn mixed() -> Vec<Box<dyn Entry>> {
        let ends = |seed: u64, _: &Demands| match seed % 20 {
            3 => Verdict::Violated,
            7 => Verdict::Stuck,
            _ => Verdict::Passed,
        };
        vec![fake("sound", |_, _| Verdict::Passed), fake("broken", ends)]
    }

    #[test]
    fn a_report_does_not_depend_on_the_number_of_jobs() {
        let one = without_cost(over(mixed(), 300, 1).perform(&Interrupt::default()));
        assert_eq!(without_cost(over(mixed(), 300, 7).perform(&Interrupt::default())), one);
        assert_eq!((one.outcome, one.ending), (Conclusion::Violated, Ending::Complete));
        let [sound, broken] = &one.workloads[..] else { panic!("two workloads") };
        assert_eq!((sound.runs, sound.passed, sound.failed()), (300, 300, 0));
        assert_eq!((broken.passed, broken.violated, broken.stuck), (270, 15, 15));
        assert_eq!(broken.failing_seeds.len(), 30);
        let kept: Vec<u64> = broken.failures.iter().map(|f| f.seed).collect();
        assert_eq!(kept, [3, 7, 23, 27, 43, 47, 63, 67, 83, 87]);
        assert_eq!(broken.failures[1].configuration, "drawn from 7");
        assert_eq!(sound.faults_delivered["kill"], (1..=300).sum::<u64>());
        assert_eq!(sound.points.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["met", "never met"]);
    }

    #[test]
    fn the_first_failure_of_each_workload_is_shrunk() {
        let mut sweep = over(mixed(), 60, 2);
        let without = sweep.perform(&Interrupt::default());
        assert!(without.failures().all(|failure| failure.shrunk.is_none() && failure.plan.is_none()));
        sweep.shrink_budget = Some(Duration::from_secs(10));
        let report = sweep.perform(&Interrupt::default());
        let [first, later @ ..] = &report.workloads[1].failures[..] else { panic!("failures") };
        let shrunk = first.shrunk.as_ref().expect("it is shrunk");
        let plan = first.plan.as_ref().expect("its plan");
        assert_eq!((&plan["seed"], &shrunk.plan["seed"]), (&3.into(), &3.into()));
        assert_eq!((shrunk.after.operations, shrunk.is_minimal), (1, true));
        assert_eq!(shrunk.message, "seed 3 is bad");
        assert!(later.iter().all(|failure| failure.shrunk.is_none() && failure.plan.is_none()));
        sweep.shrink_budget = Some(Duration::ZERO);
        let report = sweep.perform(&Interrupt::default());
        let shrunk = report.workloads[1].failures[0].shrunk.as_ref().expect("one run was allowed");
        assert!(!shrunk.is_minimal, "the budget ended the search");
    }

    #[test]
    fn a_harness_fault_outweighs_a_violation() {
        let ends = |seed: u64, _: &Demands| if seed == 5 { Verdict::Harness } else { Verdict::Violated };
        let report = over(vec![fake("both", ends)], 10, 2).perform(&Interrupt::default());
        assert_eq!((report.outcome, report.outcome.exit_code()), (Conclusion::Harness, 3));
    }

    #[test]
    fn runs_that_are_not_identical_are_not_the_fault_of_the_harness_unless_something_shows_it() {
        let mut sweep = over(vec![nondeterministic("nondeterministic", 7)], 10, 1);
        assert_eq!(sweep.perform(&Interrupt::default()).outcome, Conclusion::Passed);
        sweep.run_twice = 10;
        let report = sweep.perform(&Interrupt::default());
        let workload = &report.workloads[0];
        assert_eq!(report.outcome, Conclusion::Violated);
        assert!(workload.run_twice == 10 && (1..10).contains(&workload.differing), "{}", workload.differing);
        assert_eq!(workload.failures[0].verdict.judge(), Some("determinism"));
    }

    #[test]
    fn a_point_that_was_not_reached_makes_a_sweep_vacuous_if_points_are_required() {
        let mut sweep = over(mixed(), 3, 1);
        assert_eq!(sweep.perform(&Interrupt::default()).outcome, Conclusion::Passed);
        sweep.require_points = true;
        let report = sweep.perform(&Interrupt::default());
        assert_eq!((report.outcome, report.outcome.exit_code()), (Conclusion::Vacuous, 4));
        let missed: Vec<_> = report.workloads.iter().map(|w| w.missed_points.concat()).collect();
        assert_eq!(missed, ["metnever met", "metnever met"], "the runs of a fake pass points and reach none");
    }

    #[test]
    fn the_first_seeds_of_all_shards_together_run_twice() {
        let twice = |shard| {
            let sweep = Sweep { run_twice: 10, ..sweep(5..100, shard) };
            sweep.perform(&Interrupt::default()).workloads[0].run_twice
        };
        assert_eq!(twice(None), 10);
        assert_eq!([1, 2, 3, 4].map(|number| twice(Some((number, 4)))), [3, 3, 2, 2]);
    }

    #[test]
    fn an_interrupted_sweep_starts_no_run() {
        let report = over(mixed(), 300, 2).perform(&Interrupt::already());
        assert_eq!(
            (report.ending, report.outcome, report.runs()),
            (Ending::Interrupted, Conclusion::Interrupted, 0)
        );
    }

    #[test]
    fn what_a_killed_sweep_has_saved_is_continued() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report.json");
        let mut sweep = over(mixed(), 60, 2);
        sweep.save_every = 0;
        let files = Files { json: Some(&path), ..Files::default() };
        sweep.outputs = Outputs::check(files).expect("writable");
        let (mut runs, mut saved) = (0, String::new());
        let whole = sweep.observed(&Interrupt::default(), |_, _| {
            runs += 1;
            // What a process leaves that is killed now.
            if runs == 70 {
                saved = std::fs::read_to_string(&path).expect("it is saved");
            }
        });
        std::fs::write(&path, saved).expect("written");
        let earlier = Earlier::read(&path).expect("a report");
        assert_eq!(earlier.report.runs(), 69);
        let rest = over(mixed(), 60, 2).continuing(earlier).perform(&Interrupt::default());
        assert_eq!(without_cost(rest), without_cost(whole));
    }

    #[test]
    fn a_budget_ends_a_sweep_after_the_seeds_under_way() {
        let mut sweep = over(mixed(), u64::MAX, 2);
        sweep.budget = Some(Duration::from_millis(50));
        let report = sweep.perform(&Interrupt::default());
        assert_eq!(report.ending, Ending::Budget);
        assert!(report.runs() > 0);
        let [sound, broken] = &report.workloads[..] else { panic!("two workloads") };
        assert!(sound.runs.abs_diff(broken.runs) <= 1, "workloads take turns");
    }
}
