//! The examples that FoundationDB's own guides and recipes print, done with the layers, one file a topic.

mod arrays;
mod blobs;
mod bulk;
mod classes;
mod counters;
mod directories;
mod documents;
mod entities;
mod graphs;
mod hierarchies;
mod indexes;
mod indirection;
mod logs;
mod multimaps;
mod populations;
mod queues;
mod tables;
mod unknown_results;
mod vectors;

use foundationdb_tuple::Subspace;
use parking_lot::Mutex;
use shaketable_layers::{
    once::{Session, Slots},
    tx::Database,
};
use shaketable_sim::{
    client::SimDatabase,
    cluster::Cluster,
    config::ClusterConfig,
    faults::FaultPlan,
    history::ClientId,
    rt::{self, SECOND},
    seed::Seed,
    world::{Class, World},
};
use std::{future::Future, sync::Arc};

/// Runs `body` as a client of a calm, empty cluster.
pub fn on_cluster<F: Future<Output = ()> + 'static>(
    body: impl Fn(SimDatabase) -> F + Send + Sync + Clone + 'static,
) {
    rt::simulate(Seed(3), async move {
        let world = World::new(Seed(3), ClusterConfig::smallest(), &FaultPlan::default(), false);
        let cluster = Cluster::start(world.clone()).await;
        let controller = cluster.controller();
        let done = Arc::new(Mutex::new(false));
        let end = done.clone();
        world.add_machine(Class::Client, "client", move |world, node| {
            let (body, end) = (body.clone(), end.clone());
            async move {
                body(SimDatabase::new(world.clone(), node, ClientId(0), controller)).await;
                *end.lock() = true;
            }
        });
        for _ in 0..600 {
            if *done.lock() {
                return;
            }
            world.clock.sleep(SECOND / 10).await;
        }
        panic!("the client does not end");
    });
}

/// A transaction that the test commits itself.
pub fn begin(db: &SimDatabase) -> <SimDatabase as Database>::Transaction {
    db.create_transaction().expect("a transaction")
}

/// The session of a client, for operations that take effect exactly once.
pub async fn session(db: &SimDatabase) -> Session<SimDatabase> {
    Session::open(db, &Slots::new(Subspace::from("sessions")), 0).await.expect("a calm cluster answers")
}
