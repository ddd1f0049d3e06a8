//! A complete cluster: builds its machines, and shuts them down.

use crate::{
    controller::{self, Assets, ControllerDisk},
    data_distribution,
    ids::{Endpoint, NodeId},
    log::LogDisk,
    proto::Message,
    storage::{self, Replica, StorageDisk},
    worker,
    world::{Class, World},
};
use std::sync::Arc;

/// A running cluster.
pub struct Cluster {
    world: Arc<World>,
    controller: Endpoint,
    storage: Vec<Arc<StorageDisk>>,
}

impl Cluster {
    /// Builds the cluster that the world's configuration describes. Returns when its first
    /// generation accepts commits.
    pub async fn start(world: Arc<World>) -> Cluster {
        let cluster = Cluster::build(world);
        cluster.wait_for_generation().await;
        cluster
    }

    /// Builds the cluster, which recovers meanwhile: its clients wait for its first generation.
    pub fn build(world: Arc<World>) -> Cluster {
        let config = &world.config;
        let stateless =
            1 + config.resolver_boundaries.len() as u16 + 1 + config.commit_proxies + config.grv_proxies;
        let workers = add_workers(&world, Class::Stateless, "worker", stateless + config.spares);
        let log_machines = add_workers(&world, Class::Log, "log", config.logs.max(1) + config.spares.min(1));
        let controller = add_controller(&world, workers, log_machines);
        let storage = storage::add_servers(&world, controller);
        data_distribution::add(&world, controller);
        Cluster { world, controller, storage }
    }

    /// The state that the cluster's machines share.
    pub fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// The endpoint from which clients request the current generation's proxies; it does not change when the
    /// controller restarts.
    pub fn controller(&self) -> Endpoint {
        self.controller
    }

    /// The storage servers' disks, by number.
    pub fn storage(&self) -> &[Arc<StorageDisk>] {
        &self.storage
    }

    /// Waits until every storage server has applied everything committed so far and no shard is moving. While
    /// faults prevent that, it waits forever.
    pub async fn settle(&self) {
        storage::settle(&self.world, &self.storage).await;
    }

    /// The content of every replica of every shard, all at one version; intended for a settled cluster.
    pub fn final_state(&self) -> Vec<Replica> {
        storage::replicas(&self.world, &self.storage)
    }

    /// Waits until a generation accepts commits.
    async fn wait_for_generation(&self) {
        let supervisor = NodeId(0);
        let ask = || {
            let request = |reply| Message::GetClientInfo { known: 0, reply };
            self.world.net.call(supervisor, self.controller, request)
        };
        while ask().await.is_err() {}
    }

    /// Kills every machine and drops all references, so that the world's memory is freed. Tasks of the
    /// supervisor that refer to the world must have ended.
    pub async fn shutdown(self) {
        self.world.end_tasks();
        for node in self.world.nodes() {
            self.world.kill(node);
        }
        self.world.net.close();
        // The executor drops the killed tasks before any timer fires.
        self.world.clock.sleep(1_000).await;
        self.world.net.close();
        self.world.forget_machines();
    }
}

/// Adds machines on which roles can be recruited.
fn add_workers(world: &Arc<World>, class: Class, name: &str, count: u16) -> Vec<Endpoint> {
    (0..count)
        .map(|i| {
            let disk = Arc::new(LogDisk::default());
            world.add_machine_with_endpoint(class, &format!("{name} {i}"), move |world, home| {
                worker::run(world, home, disk.clone())
            })
        })
        .collect()
}

fn add_controller(world: &Arc<World>, workers: Vec<Endpoint>, log_machines: Vec<Endpoint>) -> Endpoint {
    let disk = Arc::new(ControllerDisk::default());
    world.add_machine_with_endpoint(Class::Controller, "controller", move |world, home| {
        let (workers, log_machines) = (workers.clone(), log_machines.clone());
        controller::run(world, Assets { home, disk: disk.clone(), workers, log_machines })
    })
}
