//! A [`Subject`] that is a plan of a workload on the smallest cluster, without faults.

use super::Subject;
use crate::{
    describe::erased::AnyValue,
    run::plan::Sketch,
    run::plan::{Demands, Plan},
    run::runner::Observer,
    run::runner::{self, RunResult},
};
use shaketable_sim::{
    config::ClusterConfig,
    faults::{FaultPlan, Profile},
    rt::{Nanos, SECOND},
    seed::Seed,
};

/// The maximum duration of the act *hurt*, nanoseconds. It is long, so that all requests of the plan are made
/// within it.
const HURT: Nanos = 60 * SECOND;

/// A plan of a seed that runs on the smallest cluster.
pub(crate) struct PlanOnSmallestCluster(Plan);

impl PlanOnSmallestCluster {
    /// Draws a plan with the planted bugs of these demands, and removes its faults: the exploration adds the
    /// outcomes and orders that it tries.
    pub(crate) fn drawn(draw: impl Fn(&Demands) -> Plan, demands: &Demands) -> Box<dyn Subject> {
        let demands = Demands {
            profile: Profile::Standard,
            bug: demands.bug.clone(),
            cluster_bug: demands.cluster_bug,
            mutant: demands.mutant,
            ..Demands::default()
        };
        let mut plan = draw(&demands);
        plan.cluster = ClusterConfig { cluster_bug: demands.cluster_bug, ..ClusterConfig::smallest() };
        plan.faults = FaultPlan::default();
        (plan.pause, plan.hurt) = (0, HURT);
        Box::new(PlanOnSmallestCluster(plan))
    }

    fn plan_of(&self, sketch: &Sketch) -> Plan {
        self.0.cut(sketch, |client, index| self.0.operations[client][index].clone())
    }
}

impl Subject for PlanOnSmallestCluster {
    fn seed(&self) -> Seed {
        self.0.run_seed()
    }

    fn empty(&self) -> Sketch {
        Sketch {
            operations: vec![Vec::new(); self.0.operations.len()],
            faults: FaultPlan::default(),
            cluster: self.0.cluster.clone(),
            pause: self.0.pause,
            schedule: self.0.run_seed().0,
            configuration: None,
        }
    }

    fn operations(&self) -> Vec<Vec<String>> {
        let shown = |list: &Vec<AnyValue>| list.iter().map(|op| format!("{op:?}")).collect();
        self.0.operations.iter().map(shown).collect()
    }

    fn run(&self, sketch: &Sketch, keep_trace: bool) -> RunResult {
        runner::run(&self.plan_of(sketch), keep_trace)
    }

    fn observe(&self, sketch: &Sketch, observer: Observer<'_>) -> RunResult {
        runner::observe(&self.plan_of(sketch), observer)
    }

    fn repro(&self, sketch: &Sketch) -> String {
        self.plan_of(sketch).to_json()
    }
}
