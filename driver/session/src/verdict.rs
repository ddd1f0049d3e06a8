//! The verdict of the cluster's own judges on a run: it accuses the simulator, and never the program.

use shaketable_sim::{
    cluster::Cluster,
    faults,
    judges::{Evidence, Judge, Replica, Truth},
    rt::{Nanos, SECOND},
    world::{Class, World},
};

/// How long a cluster without faults may take until its storage servers have caught up.
const LONGEST_SETTLE: Nanos = 60 * SECOND;

/// Ends the clients and the faults, lets the cluster settle, and asks every judge. Each sentence contradicts what
/// FoundationDB promises.
pub async fn of(world: &World, cluster: &Cluster) -> Vec<String> {
    world.machines(Class::Client).into_iter().for_each(|client| world.kill(client));
    world.faults.switch(false);
    faults::heal(world);
    if world.history.lock().commits_may_land() {
        // Until the read version of every transaction has left the window.
        let window = world.config.window as u64 * SECOND / world.config.versions_per_second.max(1) as u64;
        world.clock.sleep(window + SECOND).await;
    }
    match world.clock.timeout(LONGEST_SETTLE, cluster.settle()).await {
        Some(()) => judged(world, &cluster.final_state()),
        None => {
            let mut objections = judged(world, &[]);
            objections.push("the storage servers do not catch up without faults".to_owned());
            objections
        }
    }
}

fn judged(world: &World, replicas: &[Replica]) -> Vec<String> {
    let history = world.history.lock();
    let evidence = Evidence { history: &history, truth: &Truth::of(&history), replicas };
    let objection = |judge: Judge| {
        let objection = judge.judge(&evidence).err()?;
        Some(format!("it is not so that {}: {}", judge.claim(), objection.message))
    };
    Judge::ALL.into_iter().filter_map(objection).collect()
}
