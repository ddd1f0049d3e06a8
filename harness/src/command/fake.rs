//! A workload for tests that needs no cluster: a function of the seed determines how its runs end.

use crate::run::plan::Sketch;
use crate::search::entry::{Entry, Head, Kept};
use crate::search::explore::Subject;
use crate::{
    describe::workload::Bug,
    judge::finding::{Finding, Kind, Verdict},
    run::plan::{self, Demands, PlanError},
    run::real,
    run::runner::{Observation, Observer, RunResult},
    search::shrink::{Progress, Shrunk, Size},
};
use futures::future::{LocalBoxFuture, ready};
use serde::Deserialize;
use serde_json::json;
use shaketable_reports::Counters;
use shaketable_sim::{
    config::ClusterConfig,
    faults::{Family, FaultPlan, Request, Requests, Step},
    history::History,
    ids::ClientId,
    seed::Seed,
};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

/// How a run of a seed ends.
pub(super) type Ends = fn(u64, &Demands) -> Verdict;

/// The workload.
pub(super) struct Fake {
    name: &'static str,
    ends: Ends,
    /// The interval, in runs, at which a run has a different event hash; 0 for never.
    differs_every: u64,
    runs: AtomicU64,
}

/// A workload with this name, whose runs end as `ends` determines.
pub(super) fn fake(name: &'static str, ends: Ends) -> Box<dyn Entry> {
    Box::new(Fake { name, ends, differs_every: 0, runs: AtomicU64::new(0) })
}

/// A workload that is not deterministic: one in `differs_every` runs has a different event hash.
pub(super) fn nondeterministic(name: &'static str, differs_every: u64) -> Box<dyn Entry> {
    Box::new(Fake { name, ends: |_, _| Verdict::Passed, differs_every, runs: AtomicU64::new(0) })
}

impl Entry for Fake {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        "nothing"
    }
    fn bugs(&self) -> &'static [Bug] {
        &[
            Bug { name: "early", about: "rings soon", source: "a test", only_simulated: None },
            Bug { name: "late", about: "rings late", source: "a test", only_simulated: None },
        ]
    }
    fn points(&self) -> &'static [&'static str] {
        &["met", "never met"]
    }
    fn grows(&self) -> bool {
        self.name == "sound"
    }
    fn run(&self, seed: Seed, demands: &Demands, _keep_trace: bool) -> RunResult {
        let run = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
        let found = match (self.ends)(seed.0, demands) {
            Verdict::Passed => None,
            Verdict::Violated => Some(Kind::Model),
            Verdict::Stuck => Some(Kind::Live),
            Verdict::Harness => Some(Kind::Durable),
        };
        let finding = |kind| Finding::new(kind, format!("seed {} is bad", seed.0));
        RunResult {
            findings: found.map(finding).into_iter().collect(),
            counters: Counters {
                committed: 10,
                audits: 2,
                conflicts: 3,
                retries: 4,
                unknown_committed: 1,
                unknown_not_committed: 1,
                faults: seed.0 + 1,
                ..Counters::default()
            },
            faults: BTreeMap::from([(shaketable_sim::faults::Family::Kill, seed.0 + 1)]),
            event_hash: match self.differs_every {
                every if every > 0 && run.is_multiple_of(every) => 1,
                _ => seed.0,
            },
            events: 100,
            virtual_time: 2_000_000_000,
            points: BTreeMap::from([("met", Default::default())]),
            ..RunResult::default()
        }
    }
    fn run_kept(&self, seed: Seed, demands: &Demands, keep_trace: bool) -> Kept<'_> {
        let (result, plan) = (self.run(seed, demands, keep_trace), self.plan(seed, demands));
        Kept { result, summary: self.summary(seed, demands, None), plan: Box::new(|| plan) }
    }
    fn observe(&self, seed: Seed, demands: &Demands, observer: Observer<'_>) -> RunResult {
        observer(&Observation { history: &History::default(), done: &[Vec::new()] });
        self.run(seed, demands, false)
    }
    fn run_on<'a>(
        &self,
        _open: real::Open<'a>,
        _site: &'a real::Site,
        seed: Seed,
        demands: &Demands,
        _conditions: real::Conditions<'a>,
    ) -> LocalBoxFuture<'a, Result<RunResult, real::RunError>> {
        Box::pin(ready(Ok(self.run(seed, demands, false))))
    }
    fn plan(&self, seed: Seed, demands: &Demands) -> String {
        json!({
            "schema": plan::SCHEMA,
            "workload": self.name,
            "seed": seed.0,
            "demands": demands,
            "operations": [["Read", "Write"], ["Write"]],
            "faults": FaultPlan::default(),
        })
        .to_string()
    }
    fn summary(&self, seed: Seed, _demands: &Demands, _site: Option<&real::Site>) -> String {
        format!("drawn from {}", seed.0)
    }
    fn head(&self, repro: &str) -> Result<Head, PlanError> {
        let plan = FakePlan::read(repro)?;
        Ok(Head {
            seed: plan.seed,
            summary: self.summary(Seed(plan.seed), &plan.demands, None),
            demands: plan.demands,
        })
    }
    fn shrink(
        &self,
        repro: &str,
        should_continue: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Option<Shrunk>, PlanError> {
        let result = self.replay(repro, false)?;
        let size = |operations| Size { operations, clients: 1, faults: 0 };
        let is_minimal = should_continue(&Progress { replays: 1, size: size(9) });
        let shrunk = Shrunk {
            repro: repro.to_owned(),
            result,
            before: size(9),
            after: size(1),
            replays: 1,
            schedule: crate::search::shrink::Schedule::Even,
            is_minimal,
            left_out: Vec::new(),
        };
        Ok(Some(shrunk).filter(|shrunk| shrunk.result.verdict() != Verdict::Passed))
    }
    fn when(
        &self,
        _repro: &str,
        moments: &[shaketable_reports::Moment],
        _effort: &mut crate::search::when::Effort<'_>,
    ) -> Result<Option<shaketable_reports::When>, PlanError> {
        Ok(Some(shaketable_reports::When { runs: 1, moments: moments.to_vec() }))
    }
    fn foreign(
        &self,
        _cases: std::ops::Range<u64>,
        _memory: crate::search::foreign::Memory,
    ) -> Vec<crate::search::foreign::Wrong> {
        Vec::new()
    }
    fn subject(&self, seed: Seed, demands: &Demands) -> Box<dyn Subject> {
        Box::new(FakeSubject {
            name: self.name,
            seed,
            fails: (self.ends)(seed.0, demands) == Verdict::Violated,
        })
    }
    fn replay(&self, repro: &str, keep_trace: bool) -> Result<RunResult, PlanError> {
        let plan = FakePlan::read(repro)?;
        Ok(self.run(Seed(plan.seed), &plan.demands, keep_trace))
    }
}

/// What a fake reads of its plan.
#[derive(Deserialize)]
struct FakePlan {
    seed: u64,
    demands: Demands,
    #[serde(rename = "operations")]
    _operations: Vec<Vec<FakeOperation>>,
}

#[derive(Deserialize)]
enum FakeOperation {
    Read,
    Write,
}

impl FakePlan {
    fn read(repro: &str) -> Result<FakePlan, PlanError> {
        serde_json::from_str(repro).map_err(|error| PlanError::Incomplete(error.to_string()))
    }
}

/// The plan of a fake workload: two clients with two operations each, of one transaction. A commit that is
/// applied and unknown, or a commit between the requests of another client's transaction, fails if `fails`.
struct FakeSubject {
    name: &'static str,
    seed: Seed,
    fails: bool,
}

impl Subject for FakeSubject {
    fn seed(&self) -> Seed {
        self.seed
    }
    fn empty(&self) -> Sketch {
        Sketch {
            operations: vec![Vec::new(); if self.name == "empty" { 0 } else { 2 }],
            faults: FaultPlan::default(),
            cluster: ClusterConfig::smallest(),
            pause: 0,
            schedule: self.seed.0,
            configuration: None,
        }
    }
    fn operations(&self) -> Vec<Vec<String>> {
        let list = || vec!["Read(1)".to_owned(), "Write(1)".to_owned()];
        if self.name == "empty" { Vec::new() } else { vec![list(), list()] }
    }
    fn run(&self, sketch: &Sketch, _keep_trace: bool) -> RunResult {
        let unknown =
            sketch.faults.decisions.iter().any(|decision| decision.family == Family::UnknownCommitted);
        let finding = Finding::new(Kind::Model, "it happened twice");
        let step = |client: usize, operation: usize, request| Step {
            client: ClientId(client as u16),
            operation: operation as u32,
            request,
            index: 0,
        };
        let of = |(client, kept): (usize, &Vec<usize>)| -> Vec<Step> {
            let both = [Request::ReadVersion, Request::Commit];
            (0..kept.len()).flat_map(|at| both.map(|request| step(client, at, request))).collect()
        };
        RunResult {
            findings: (unknown && self.fails).then_some(finding).into_iter().collect(),
            decisions: sketch.renumbered().decisions,
            requests: Requests {
                made: sketch.operations.iter().enumerate().flat_map(of).collect(),
                overdue: 0,
            },
            ..RunResult::default()
        }
    }
    fn observe(&self, sketch: &Sketch, _observer: Observer<'_>) -> RunResult {
        self.run(sketch, false)
    }
    fn repro(&self, _sketch: &Sketch) -> String {
        "a plan".to_owned()
    }
}
