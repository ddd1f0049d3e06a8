//! Workloads behind a trait object, for the command and for other tools that accept any workload.

use crate::run::real;
use crate::{
    describe::workload::{Bug, Workload},
    run::plan::{Demands, Plan, PlanError},
    run::runner::Observer,
    run::runner::{self, RunResult},
    search::explore::{PlanOnSmallestCluster, Subject},
    search::foreign::{Foreign, Memory, Wrong},
    search::shrink::{Progress, Shrunk, shrink_plan},
    search::when::{Effort, when},
};
use futures::future::LocalBoxFuture;
use shaketable_reports::{Moment, When};
use shaketable_sim::{config::ClusterBug, seed::Seed};
use std::{marker::PhantomData, ops::Range};

/// A workload of any type.
pub trait Entry: Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// A description of what it shakes, in one line.
    fn about(&self) -> &'static str;
    /// Its planted bugs.
    fn bugs(&self) -> &'static [Bug];
    /// The bugs planted in the cluster that it shows, in addition to those that every workload shows.
    fn cluster_bugs(&self) -> &'static [ClusterBug] {
        &[]
    }
    /// The claims that its sweep must reach.
    fn points(&self) -> &'static [&'static str];
    /// Whether its runs can be longer than usual ([`Demands::scale`]).
    fn grows(&self) -> bool;
    /// Draws the plan of a seed and performs it.
    fn run(&self, seed: Seed, demands: &Demands, keep_trace: bool) -> RunResult;
    /// Like [`run`](Entry::run), and keeps the plan.
    fn run_kept(&self, seed: Seed, demands: &Demands, keep_trace: bool) -> Kept<'_>;
    /// Draws the plan of a seed and performs it. `observer` sees the run at its end.
    fn observe(&self, seed: Seed, demands: &Demands, observer: Observer<'_>) -> RunResult;
    /// Draws the plan of a seed. The future performs it on a real cluster; [`real::run`] takes it.
    fn run_on<'a>(
        &self,
        open: real::Open<'a>,
        site: &'a real::Site,
        seed: Seed,
        demands: &Demands,
        conditions: real::Conditions<'a>,
    ) -> LocalBoxFuture<'a, Result<RunResult, real::RunError>>;
    /// The plan of a seed as a repro file.
    fn plan(&self, seed: Seed, demands: &Demands) -> String;
    /// A summary of the plan of a seed, in a few lines: of what a real cluster performs of it, if it is
    /// there.
    fn summary(&self, seed: Seed, demands: &Demands, site: Option<&real::Site>) -> String;
    /// Reads the head of a repro file.
    fn head(&self, repro: &str) -> Result<Head, PlanError>;
    /// Shrinks the plan of a repro file. `should_continue` is called after each run, and ends the search with
    /// `false`. `None` if the run passes.
    fn shrink(
        &self,
        repro: &str,
        should_continue: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Option<Shrunk>, PlanError>;
    /// How often the plan of a repro file, which fails, fails with other chance from each of these moments
    /// on. `None` if it passes, or if it could not be run once for each moment.
    fn when(
        &self,
        repro: &str,
        moments: &[Moment],
        effort: &mut Effort<'_>,
    ) -> Result<Option<When>, PlanError>;
    /// Performs the plan of a repro file.
    fn replay(&self, repro: &str, keep_trace: bool) -> Result<RunResult, PlanError>;
    /// The plan of a seed, to be explored. Of the demands, only the planted bugs count.
    fn subject(&self, seed: Seed, demands: &Demands) -> Box<dyn Subject>;
    /// Does its operations on foreign bytes, in these cases: what [`Foreign::run`] returns.
    fn foreign(&self, cases: Range<u64>, memory: Memory) -> Vec<Wrong>;
}

/// A run with its plan.
pub struct Kept<'a> {
    /// Its result.
    pub result: RunResult,
    /// A summary of the plan, in a few lines.
    pub summary: String,
    /// The plan as a repro file.
    pub plan: Box<dyn FnOnce() -> String + 'a>,
}

/// The head of a repro file.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// The seed from which it was drawn.
    pub seed: u64,
    /// The demands with which it was drawn.
    pub demands: Demands,
    /// A summary of its plan, in a few lines.
    pub summary: String,
}

/// The entry of the workload `W`.
struct EntryOf<W>(PhantomData<fn() -> W>);

/// Returns the entry of a workload.
pub fn entry<W: Workload>() -> Box<dyn Entry> {
    Box::new(EntryOf::<W>(PhantomData))
}

impl<W: Workload> Entry for EntryOf<W> {
    fn name(&self) -> &'static str {
        W::NAME
    }
    fn about(&self) -> &'static str {
        W::ABOUT
    }
    fn bugs(&self) -> &'static [Bug] {
        W::bugs()
    }
    fn cluster_bugs(&self) -> &'static [ClusterBug] {
        W::cluster_bugs()
    }
    fn points(&self) -> &'static [&'static str] {
        W::points()
    }
    fn grows(&self) -> bool {
        W::draw(&mut Seed(0).stream("workload"), None).length().is_some()
    }
    fn run(&self, seed: Seed, demands: &Demands, keep_trace: bool) -> RunResult {
        runner::run(&Plan::draw::<W>(seed, demands), keep_trace)
    }
    fn run_kept(&self, seed: Seed, demands: &Demands, keep_trace: bool) -> Kept<'_> {
        let plan = Plan::draw::<W>(seed, demands);
        let (result, summary) = (runner::run(&plan, keep_trace), plan.summary(false));
        Kept { result, summary, plan: Box::new(move || plan.to_json()) }
    }
    fn observe(&self, seed: Seed, demands: &Demands, observer: Observer<'_>) -> RunResult {
        runner::observe(&Plan::draw::<W>(seed, demands), observer)
    }
    fn run_on<'a>(
        &self,
        open: real::Open<'a>,
        site: &'a real::Site,
        seed: Seed,
        demands: &Demands,
        conditions: real::Conditions<'a>,
    ) -> LocalBoxFuture<'a, Result<RunResult, real::RunError>> {
        let plan = site.drawn(|| Plan::draw::<W>(seed, demands));
        Box::pin(async move { real::perform(&plan, open, site, conditions).await })
    }
    fn plan(&self, seed: Seed, demands: &Demands) -> String {
        Plan::draw::<W>(seed, demands).to_json()
    }
    fn summary(&self, seed: Seed, demands: &Demands, site: Option<&real::Site>) -> String {
        match site {
            None => Plan::draw::<W>(seed, demands).summary(false),
            Some(site) => site.drawn(|| Plan::draw::<W>(seed, demands)).summary(true),
        }
    }
    fn head(&self, repro: &str) -> Result<Head, PlanError> {
        let plan = Plan::from_json::<W>(repro)?;
        Ok(Head { seed: plan.seed, summary: plan.summary(false), demands: plan.demands })
    }
    fn shrink(
        &self,
        repro: &str,
        should_continue: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Option<Shrunk>, PlanError> {
        Ok(shrink_plan(Plan::from_json::<W>(repro)?, should_continue))
    }
    fn when(
        &self,
        repro: &str,
        moments: &[Moment],
        effort: &mut Effort<'_>,
    ) -> Result<Option<When>, PlanError> {
        let plan = Plan::from_json::<W>(repro)?;
        let drawn = Plan::draw::<W>(Seed(plan.seed), &plan.demands);
        Ok(when(&plan, &drawn, moments, effort))
    }
    fn replay(&self, repro: &str, keep_trace: bool) -> Result<RunResult, PlanError> {
        Ok(runner::run(&Plan::from_json::<W>(repro)?, keep_trace))
    }
    fn subject(&self, seed: Seed, demands: &Demands) -> Box<dyn Subject> {
        PlanOnSmallestCluster::drawn(|demands| Plan::draw::<W>(seed, demands), demands)
    }
    fn foreign(&self, cases: Range<u64>, memory: Memory) -> Vec<Wrong> {
        Foreign::<W>::new().cases(cases).memory(memory).run()
    }
}
