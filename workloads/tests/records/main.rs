//! The Record Layer on a simulated cluster: the examples of its overview, and what could go wrong with
//! records, indexes, versions and ranks.

mod aggregates;
mod builds;
mod custom;
mod deletes;
mod fixture;
mod joined;
mod meta_data;
mod opening;
mod queries;
mod random_queries;
mod range_sets;
mod ranked_sets;
mod ranks;
mod readme;
mod record_versions;
mod saves;
mod scans;
mod schema;
mod scrubs;
mod sessions;
mod splits;
mod storing;
mod uniques;
mod versions;

#[path = "../cluster/mod.rs"]
mod cluster;

use shaketable_sim::{client::SimDatabase, faults::FaultPlan};
use shaketable_tx::Database;
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
