//! One client on a calm simulated cluster.

use crate::run::pool;
use parking_lot::Mutex;
use shaketable_sim::{
    client::SimDatabase,
    cluster::Cluster,
    config::ClusterConfig,
    faults::FaultPlan,
    ids::ClientId,
    rt::{self, MILLISECOND},
    seed::Seed,
    world::{Class, World},
};
use shaketable_tx::Db;
use std::{future::Future, sync::Arc};

/// Runs `job` as a client of the smallest cluster, which is empty, and returns its result.
pub fn simulate<T, F>(job: impl Fn(Db) -> F + Send + Sync + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T> + 'static,
{
    pool::alone(|| simulate_here(job))
}

/// Like [`simulate`], on the thread of the caller, which has not simulated anything yet.
pub(crate) fn simulate_here<T, F>(job: impl Fn(Db) -> F + Send + Sync + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T> + 'static,
{
    rt::simulate(Seed(0), run(job))
}

async fn run<T, F>(job: impl Fn(Db) -> F + Send + Sync + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T> + 'static,
{
    let world = World::new(Seed(0), ClusterConfig::smallest(), &FaultPlan::default(), false);
    let cluster = Cluster::start(world.clone()).await;
    let (controller, job) = (cluster.controller(), Arc::new(job));
    let result = Arc::new(Mutex::new(None));
    let slot = result.clone();
    world.add_machine(Class::Client, "client", move |world, node| {
        let (job, slot) = (job.clone(), slot.clone());
        async move {
            let db = SimDatabase::new(world, node, ClientId(0), controller);
            // Kept here as well: a job that has no use for it may open the client's database by other means.
            let returned = job(Db::new(db.clone())).await;
            *slot.lock() = Some(returned);
        }
    });
    let returned = loop {
        if let Some(returned) = result.lock().take() {
            break returned;
        }
        world.clock.sleep(100 * MILLISECOND).await;
    };
    cluster.shutdown().await;
    returned
}
