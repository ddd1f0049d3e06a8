//! The contract suite on a calm simulated cluster.

use bytes::Bytes;
use parking_lot::Mutex;
use shaketable_fidelity::contract::{self, CaseResult};
use shaketable_sim::{
    client::SimDatabase,
    cluster::Cluster,
    config::ClusterConfig,
    faults::{Family, FaultPlan},
    ids::ClientId,
    rt,
    rt::SECOND,
    seed::Seed,
    world::{Class, World},
};
use std::sync::Arc;

/// The verdicts of the cases whose name contains `filter`, run by a client on its own machine.
fn run(seed: Seed, config: ClusterConfig, filter: &'static str) -> Vec<CaseResult> {
    run_beside(FaultPlan::default(), seed, config, filter)
}

/// Like `run`, beside faults.
fn run_beside(plan: FaultPlan, seed: Seed, config: ClusterConfig, filter: &'static str) -> Vec<CaseResult> {
    rt::simulate(seed, async move {
        let world = World::new(seed, config, &plan, false);
        world.faults.switch(true);
        let cluster = Cluster::start(world.clone()).await;
        let controller = cluster.controller();
        let verdicts = Arc::new(Mutex::new(None));
        let answer = verdicts.clone();
        world.add_machine(Class::Client, "client", move |world, node| {
            let answer = answer.clone();
            async move {
                let db = SimDatabase::new(world, node, ClientId(0), controller);
                let verdicts = contract::run_all(&db, b"contract/", filter).await;
                *answer.lock() = Some(verdicts);
            }
        });
        loop {
            if let Some(verdicts) = verdicts.lock().take() {
                break verdicts;
            }
            world.clock.sleep(SECOND).await;
        }
    })
}

/// Checks that no promise is broken.
fn judge(verdicts: &[CaseResult], cluster: &str) {
    let broken: Vec<String> = verdicts
        .iter()
        .filter_map(|v| Some(format!("{}: {}\n    {}", v.name, v.promise, v.result.as_ref().err()?)))
        .collect();
    let (n, of) = (broken.len(), verdicts.len());
    assert!(broken.is_empty(), "{n} of {of} promises on {cluster}:\n{}", broken.join("\n"));
}

#[test]
fn the_smallest_cluster_keeps_every_promise() {
    judge(&run(Seed(1), ClusterConfig::smallest(), ""), "the smallest cluster");
}

/// The keys `suffix` of every case.
fn keys_of_cases(suffix: &str) -> Vec<Bytes> {
    let count = contract::cases().len();
    (0..count).map(|number| format!("contract/{number:03}.0/{suffix}").into()).collect()
}

#[test]
fn clusters_with_several_of_each_role_keep_every_promise() {
    let keys = [keys_of_cases("c"), keys_of_cases("d\0"), keys_of_cases("m")].concat();
    for seed in 0..3 {
        let config = ClusterConfig::draw(Seed(seed), &keys);
        judge(&run(Seed(seed), config, ""), &format!("the cluster of seed {seed}"));
    }
}

#[test]
fn shards_that_split_every_cases_keys_keep_every_promise() {
    let config = ClusterConfig {
        storage_servers: 3,
        replicas: 2,
        resolvers: 2,
        resolver_boundaries: vec!["contract/300.0/c".into()],
        shard_boundaries: keys_of_cases("d"),
        ..ClusterConfig::smallest()
    };
    judge(&run(Seed(1), config, ""), "a cluster of many shards");
}

/// A promise about calls holds whatever becomes of a commit.
#[test]
fn many_calls_do_not_depend_on_the_luck_of_their_commit() {
    for seed in 0..4 {
        let plan = FaultPlan { rates: [(Family::UnknownNotCommitted, 0.9)].into(), ..FaultPlan::default() };
        let verdicts = run_beside(plan, Seed(seed), ClusterConfig::smallest(), "commits/many-calls");
        judge(&verdicts, &format!("the cluster of seed {seed}"));
    }
}
