//! A plan whose operations have types as the subject of an exploration.

use super::Subject;
use crate::{
    plan::{Demands, Plan},
    runner::{self, RunResult},
    shrink::Sketch,
    workload::Workload,
};
use shaketable_sim::{
    config::ClusterConfig,
    faults::{FaultPlan, Profile},
    rt::{Nanos, SECOND},
    seed::Seed,
};

/// The maximum duration of the act *hurt*, nanoseconds: every request of the plan is to be made within it.
const HURT: Nanos = 60 * SECOND;

/// The plan of a seed on the smallest cluster.
pub(crate) struct Few<W: Workload>(Plan<W>);

impl<W: Workload> Few<W> {
    /// The plan of a seed with the planted bugs of these demands. The outcomes and orders come from the exploration.
    pub(crate) fn draw(seed: Seed, demands: &Demands) -> Few<W> {
        let demands = Demands {
            profile: Profile::Standard,
            bug: demands.bug.clone(),
            cluster_bug: demands.cluster_bug,
            without: Vec::new(),
        };
        let mut plan = Plan::draw(seed, &demands);
        plan.cluster = ClusterConfig { cluster_bug: demands.cluster_bug, ..ClusterConfig::smallest() };
        plan.faults = FaultPlan::default();
        (plan.pause, plan.hurt) = (0, HURT);
        Few(plan)
    }

    fn plan_of(&self, sketch: &Sketch) -> Plan<W> {
        self.0.cut(sketch, |client, index| self.0.operations[client][index].clone())
    }
}

impl<W: Workload> Subject for Few<W> {
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
        let shown = |list: &Vec<W::Op>| list.iter().map(|op| format!("{op:?}")).collect();
        self.0.operations.iter().map(shown).collect()
    }

    fn run(&self, sketch: &Sketch, keep_trace: bool) -> RunResult {
        runner::run(&self.plan_of(sketch), keep_trace)
    }

    fn observe(&self, sketch: &Sketch) -> RunResult {
        runner::run_with_accesses(&self.plan_of(sketch))
    }

    fn repro(&self, sketch: &Sketch) -> String {
        self.plan_of(sketch).to_json()
    }
}
