//! A simulated cluster with one client, for tests that act as that client.

use parking_lot::Mutex;
use shaketable_sim::{
    client::SimDatabase,
    cluster::Cluster,
    config::ClusterConfig,
    faults::{self, FaultPlan},
    ids::{ClientId, Endpoint, NodeId},
    rt::{self, SECOND},
    seed::Seed,
    world::{Class, World},
};
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
};

/// The client's machine.
#[derive(Clone)]
pub struct Machine {
    world: Arc<World>,
    node: NodeId,
    controller: Endpoint,
    opened: Arc<AtomicU16>,
}

impl Machine {
    /// A database with its own options and randomness.
    pub fn open(&self) -> SimDatabase {
        let client = ClientId(self.opened.fetch_add(1, Ordering::Relaxed));
        SimDatabase::new(self.world.clone(), self.node, client, self.controller)
    }

    /// Cuts the client off: none of its messages arrive any more.
    #[allow(dead_code, reason = "not every test loses its cluster")]
    pub fn cut_off(&self) {
        (0..100).for_each(|other| self.world.net.cut(self.node, NodeId(other), true));
    }
}

/// Runs `body` as a client of the smallest cluster, initially empty, with these faults.
pub fn under<F: Future<Output = ()> + 'static>(
    plan: FaultPlan,
    body: impl Fn(Machine) -> F + Send + Sync + Clone + 'static,
) {
    rt::simulate(Seed(3), async move {
        let world = World::new(Seed(3), ClusterConfig::smallest(), &plan, false);
        let cluster = Cluster::start(world.clone()).await;
        let controller = cluster.controller();
        let done = Arc::new(Mutex::new(false));
        let end = done.clone();
        world.faults.switch(true);
        faults::begin(&world, &plan);
        world.add_machine(Class::Observer, "client", move |world, node| {
            let (body, end) = (body.clone(), end.clone());
            async move {
                // On the heap: without optimization, a future is moved once for each function that it passes
                // through.
                Box::pin(body(Machine { world, node, controller, opened: Arc::default() })).await;
                *end.lock() = true;
            }
        });
        for _ in 0..6_000 {
            if *done.lock() {
                return;
            }
            world.clock.sleep(SECOND / 10).await;
        }
        panic!("the client does not end");
    });
}
