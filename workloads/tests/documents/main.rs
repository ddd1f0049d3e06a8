//! The examples of FoundationDB's own guides and recipes, implemented with the layers, one file per topic.

mod arrays;
mod blobs;
mod bounds;
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

#[path = "../cluster/mod.rs"]
mod cluster;

use foundationdb_tuple::Subspace;
use shaketable_sim::{client::SimDatabase, faults::FaultPlan};
use shaketable_tx::{
    Database,
    once::{Session, Slots},
};
use std::future::Future;

/// Runs `body` as a client of a calm, initially empty cluster.
pub fn on_cluster<F: Future<Output = ()> + 'static>(
    body: impl Fn(SimDatabase) -> F + Send + Sync + Clone + 'static,
) {
    cluster::under(FaultPlan::default(), move |machine| body(machine.open()));
}

/// A transaction that the test commits itself.
pub fn begin(db: &SimDatabase) -> <SimDatabase as Database>::Transaction {
    db.create_transaction().expect("a transaction")
}

/// A client's session, for operations that take effect exactly once.
pub async fn session(db: &SimDatabase) -> Session<SimDatabase> {
    Session::open(db, &Slots::new(Subspace::from("sessions")), 0).await.expect("a calm cluster answers")
}
