//! A [`Subject`] of the shrinker that is a plan of a workload.

use super::{
    Progress, Reduced, Shrunk, Sketch, Subject,
    sampled_values::SampledValues,
    search::{SearchResult, shrink},
    values::Values,
};
use crate::{
    describe::erased::AnyValue,
    describe::strict,
    run::plan::{self, Drawn, Plan},
    run::runner::{self, RunResult},
};
use serde_json::Value;
use shaketable_sim::{
    faults::{Profile, Step},
    seed::Seed,
    trace::hash_bytes,
};

/// How many other configurations are drawn, to collect simpler values for the parts of the configuration.
const CONFIGURATIONS: u64 = 30;
/// How many lists of operations are drawn from a strategy as samples.
const SAMPLES: u64 = 8;

/// A plan, and the value trees of its operations.
struct Planned {
    plan: Plan,
    values: Vec<Option<Values<AnyValue>>>,
    /// The smallest plan so far.
    kept: Plan,
}

/// Shrinks a plan. `should_continue` is called after each run, and ends the search with `false`. `None` if
/// the run passes.
pub(crate) fn shrink_plan(plan: Plan, should_continue: &mut dyn FnMut(&Progress) -> bool) -> Option<Shrunk> {
    let mut subject = Planned::new(plan);
    shrink(&mut subject, should_continue).map(|found| subject.shrunk(found))
}

impl Planned {
    fn new(plan: Plan) -> Planned {
        let trees = plan::trees(Seed(plan.seed), &plan.configuration);
        let values = trees.into_iter().zip(&plan.operations).map(|(drawn, operations)| match drawn? {
            Drawn::List(tree) => Values::whole(tree, operations),
            Drawn::Beside(trees) => Values::each(trees, operations),
        });
        let values = values.collect();
        Planned { kept: plan.clone(), plan, values }
    }

    /// The plan of a sketch.
    fn plan_of(&self, sketch: &Sketch) -> Plan {
        self.plan.cut(sketch, |client, index| {
            let simpler = self.values[client].as_ref().and_then(|values| values.of(index));
            simpler.unwrap_or(&self.plan.operations[client][index]).clone()
        })
    }

    /// The plan that was found.
    fn shrunk(&self, found: SearchResult) -> Shrunk {
        Shrunk {
            repro: self.kept.to_json(),
            before: self.whole().size(),
            after: found.sketch.size(),
            result: found.result,
            replays: found.replays,
            is_minimal: found.is_minimal,
            left_out: found.left_out.into_iter().map(str::to_owned).collect(),
            schedule: found.sketch.what_decides(),
        }
    }
}

impl Subject for Planned {
    fn whole(&self) -> Sketch {
        Sketch {
            operations: self.plan.operations.iter().map(|list| (0..list.len()).collect()).collect(),
            faults: self.plan.faults.clone(),
            cluster: self.plan.cluster.clone(),
            pause: self.plan.pause,
            schedule: self.plan.schedule.unwrap_or(self.plan.seed),
            configuration: None,
        }
    }

    fn profile(&self) -> Profile {
        self.plan.demands.profile
    }

    fn key(&self, sketch: &Sketch) -> u64 {
        let mut key = hash_bytes(0, format!("{sketch:?}").as_bytes());
        for (values, kept) in self.values.iter().zip(&sketch.operations) {
            let hashes = values.iter().flat_map(|values| kept.iter().map(|index| values.hash_of(*index)));
            key = hashes.fold(key, |key, hash| hash_bytes(key, &hash.to_be_bytes()));
        }
        key
    }

    fn requests(&self, sketch: &Sketch) -> Vec<Step> {
        runner::run(&self.plan_of(sketch), true).requests.made
    }

    fn configurations(&self) -> (Value, Vec<Value>) {
        let bug = self.plan.demands.bug.as_deref();
        let workload = &self.plan.configuration;
        let drawn = |seed| strict::plain(&workload.redrawn(&mut Seed(seed).stream("workload"), bug));
        (strict::plain(&self.plan.configuration), (0..CONFIGURATIONS).map(drawn).collect())
    }

    fn configured(&self, sketch: &Sketch, value: Value) -> Option<Sketch> {
        let configuration = self.plan.configuration.reconfigured(&value)?;
        let clients = sketch.fewer_clients(configuration.clients())?;
        // An operation that has the number of its client in it keeps it: no other client has it.
        let names = clients.clone();
        let sketch = Sketch { configuration: Some(Reduced { value, clients }), ..sketch.clone() };
        let candidate = self.plan_of(&sketch);
        candidate.check().ok()?;
        let sample = |seed| {
            let list = |(client, planned): (&usize, &Vec<AnyValue>)| match planned.is_empty() {
                true => Vec::new(),
                false => plan::listed(Seed(seed), &candidate.configuration, *client)
                    .map_or_else(Vec::new, |tree| tree.current()),
            };
            let operations = names.iter().zip(&candidate.operations).map(list).collect();
            operations_of(&Plan { operations, ..candidate.clone() })
        };
        is_promised(&operations_of(&candidate), &(0..SAMPLES).map(sample).collect::<Vec<_>>())
            .then_some(sketch)
    }

    fn run(&self, sketch: &Sketch) -> RunResult {
        runner::run(&self.plan_of(sketch), false)
    }

    fn keep(&mut self, sketch: &Sketch) {
        self.kept = self.plan_of(sketch);
    }

    fn simplify(&mut self, client: usize, remaining: &[usize]) -> bool {
        self.values[client].as_mut().is_some_and(|values| values.simplify(remaining))
    }

    fn complicate(&mut self, client: usize) -> bool {
        self.values[client].as_mut().is_some_and(Values::complicate)
    }
}

/// The operations of a plan as JSON.
fn operations_of(plan: &Plan) -> Value {
    strict::plain(&plan.operations)
}

/// Whether the operations of each client resemble the samples.
fn is_promised(operations: &Value, samples: &[Value]) -> bool {
    let mut lists = operations.as_array().into_iter().flatten().enumerate();
    let holds = |(client, list)| {
        SampledValues::of(samples.iter().filter_map(|sample| sample.get(client))).contains(list)
    };
    lists.all(holds)
}
