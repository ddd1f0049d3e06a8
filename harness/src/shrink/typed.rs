//! A plan whose operations have types as the subject of the shrinker.

use super::{Shrunk, Sketch, Subject, search::Found, values::Values};
use crate::{
    plan::{Plan, tree},
    runner::{self, RunResult},
    workload::Workload,
};
use shaketable_sim::seed::Seed;

/// A plan, and the value trees of its operations.
pub(crate) struct Typed<W: Workload> {
    plan: Plan<W>,
    values: Vec<Option<Values<W::Op>>>,
}

impl<W: Workload> Typed<W> {
    pub(crate) fn new(plan: Plan<W>) -> Typed<W> {
        let values = plan.operations.iter().enumerate().map(|(client, operations)| {
            let strategy = plan.configuration.operations(client);
            tree(Seed(plan.seed), client, strategy).and_then(|tree| Values::new(tree, operations))
        });
        let values = values.collect();
        Typed { plan, values }
    }

    /// The plan of a sketch.
    fn plan_of(&self, sketch: &Sketch) -> Plan<W> {
        self.plan.cut(sketch, |client, index| {
            let simpler = self.values[client].as_ref().and_then(|values| values.of(index));
            simpler.unwrap_or(&self.plan.operations[client][index]).clone()
        })
    }

    /// The plan that was found.
    pub(crate) fn shrunk(&self, found: Found) -> Shrunk {
        Shrunk {
            repro: self.plan_of(&found.sketch).to_json(),
            before: self.whole().size(),
            after: found.sketch.size(),
            result: found.result,
            replays: found.replays,
            is_minimal: found.is_minimal,
        }
    }
}

impl<W: Workload> Subject for Typed<W> {
    fn whole(&self) -> Sketch {
        Sketch {
            operations: self.plan.operations.iter().map(|list| (0..list.len()).collect()).collect(),
            faults: self.plan.faults.clone(),
            cluster: self.plan.cluster.clone(),
            pause: self.plan.pause,
            schedule: self.plan.schedule.unwrap_or(self.plan.seed),
        }
    }

    fn run(&self, sketch: &Sketch) -> RunResult {
        runner::run(&self.plan_of(sketch), false)
    }

    fn simplify(&mut self, client: usize, remaining: &[usize]) -> bool {
        self.values[client].as_mut().is_some_and(|values| values.simplify(remaining))
    }

    fn complicate(&mut self, client: usize) -> bool {
        self.values[client].as_mut().is_some_and(Values::complicate)
    }
}
