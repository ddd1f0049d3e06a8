//! A plan as the subject of an exploration.

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

/// The maximum duration of the act *hurt*, nanoseconds: every request of the plan is to be made within it.
const HURT: Nanos = 60 * SECOND;

/// The plan of a seed on the smallest cluster.
pub(crate) struct Few(Plan);

impl Few {
    /// A plan, drawn with the planted bugs of these demands. The outcomes and orders come from the
    /// exploration.
    pub(crate) fn drawn(draw: impl Fn(&Demands) -> Plan, demands: &Demands) -> Box<dyn Subject> {
        let demands = Demands {
            profile: Profile::Standard,
            bug: demands.bug.clone(),
            cluster_bug: demands.cluster_bug,
            without: Vec::new(),
        };
        let mut plan = draw(&demands);
        plan.cluster = ClusterConfig { cluster_bug: demands.cluster_bug, ..ClusterConfig::smallest() };
        plan.faults = FaultPlan::default();
        (plan.pause, plan.hurt) = (0, HURT);
        Box::new(Few(plan))
    }

    fn plan_of(&self, sketch: &Sketch) -> Plan {
        self.0.cut(sketch, |client, index| self.0.operations[client][index].clone())
    }
}

impl Subject for Few {
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
