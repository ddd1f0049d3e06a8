//! Stands in for the cluster and its client until they land; nothing runs on it.
#![allow(missing_docs)]
use crate::judges::{Keyspace, Replica, Snapshot};
use shaketable_layers::tx::*;
use shaketable_sim::{history::ClientId, net::*, world::World};
use std::sync::Arc;
#[derive(Clone)]
pub struct SimDatabase(Snapshot, NodeId);
impl SimDatabase {
    pub fn new(_w: Arc<World>, n: NodeId, _c: ClientId, _e: Endpoint) -> Self {
        SimDatabase(Snapshot::new(Keyspace::default()), n)
    }
    pub fn node(&self) -> NodeId {
        self.1
    }
    pub fn set_operation(&self, _o: Option<u32>) {}
}
impl Database for SimDatabase {
    type Transaction = Snapshot;
    fn create_transaction(&self) -> Result<Snapshot> {
        self.0.create_transaction()
    }
    fn set_option(&self, o: DatabaseOption) -> Result<()> {
        Database::set_option(&self.0, o)
    }
    fn env(&self) -> &Env {
        self.0.env()
    }
}
pub struct Cluster;
impl Cluster {
    pub async fn start(_w: Arc<World>) -> Cluster {
        Cluster
    }
    pub fn controller(&self) -> Endpoint {
        Endpoint { node: NodeId(0), token: 0 }
    }
    pub async fn settle(&self) {}
    pub fn final_state(&self) -> Vec<Replica> {
        vec![]
    }
    pub async fn shutdown(self) {}
}
pub mod faults {
    pub fn begin(_w: &std::sync::Arc<shaketable_sim::world::World>, _p: &shaketable_sim::faults::FaultPlan) {}
    pub fn heal(_w: &std::sync::Arc<shaketable_sim::world::World>) {}
}
