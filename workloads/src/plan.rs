//! A run as plain data: drawn from a seed, printed, saved as a repro file, edited and replayed.

use crate::workload::Workload;
use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde::{Deserialize, Serialize};
use shaketable_sim::{
    config::{ClusterConfig, Sabotage},
    faults::{Family, FaultPlan, Profile},
    rt::{MILLISECOND, Nanos},
    seed::Seed,
};

/// The version of a repro file's schema. A file of another version is refused.
pub const SCHEMA: u32 = 1;

/// What a sweep asks of each of its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Demands {
    /// How hard to shake.
    pub profile: Profile,
    /// Families left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Family>,
    /// A planted bug of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bug: Option<String>,
    /// A planted defect of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sabotage: Option<Sabotage>,
}

/// Everything that decides a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Plan<W: Workload> {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The workload's name.
    pub workload: String,
    /// The seed: what the plan was drawn from, and what the run's own chances are drawn from.
    pub seed: u64,
    /// What was asked for.
    pub demands: Demands,
    /// The workload's configuration.
    pub configuration: W,
    /// Each client's operations.
    pub operations: Vec<Vec<W::Op>>,
    /// The mean pause between two operations of a client, nanoseconds.
    pub pause: Nanos,
    /// How long the act `hurt` lasts at most, nanoseconds.
    pub hurt: Nanos,
    /// The cluster.
    pub cluster: ClusterConfig,
    /// The faults.
    pub faults: FaultPlan,
}

impl<W: Workload> Plan<W> {
    /// The plan of a seed.
    pub fn draw(seed: Seed, demands: &Demands) -> Plan<W> {
        let mut rng = seed.stream("plan");
        let configuration = W::draw(&mut seed.stream("workload"), demands.bug.as_deref());
        let operations: Vec<Vec<W::Op>> = (0..configuration.clients())
            .map(|client| generate(seed, client, configuration.operations(client)))
            .collect();
        let hurt = rng.range(500..4_000) * MILLISECOND;
        let longest = operations.iter().map(Vec::len).max().unwrap_or(0) as u64;
        // Some clients hurry, so that they collide; some dawdle, so that every strike meets work.
        let pause = if rng.chance(0.5) { 0 } else { hurt / longest.max(1) };
        let mut cluster = ClusterConfig::draw(seed, &configuration.keys());
        cluster.sabotage = demands.sabotage;
        let faults = FaultPlan::default();
        Plan {
            schema: SCHEMA,
            workload: W::NAME.to_owned(),
            seed: seed.0,
            demands: demands.clone(),
            configuration,
            operations,
            pause,
            hurt,
            cluster,
            faults,
        }
    }
}

/// One value of a strategy, drawn from the seed's own ChaCha stream for this client.
fn generate<T>(seed: Seed, client: usize, strategy: impl Strategy<Value = Vec<T>>) -> Vec<T> {
    let mut key = [0; 32];
    seed.stream(&format!("operations-{client}")).fill(&mut key);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &key);
    let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
    // Only a strategy with filters can fail to generate; it then has no operations for this seed.
    strategy.new_tree(&mut runner).map(|tree| tree.current()).unwrap_or_default()
}
