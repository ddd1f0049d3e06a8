//! A simulated cluster with one client, for tests that act as that client. The tests of several crates share
//! it; a program that does not call it has nothing of it.

use crate::rows;
use bytes::Bytes;
use foundationdb_tuple::Subspace;
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
use shaketable_tx::{
    Database, Db, Tx,
    once::{Outcome, Session, Slots},
};
use std::{
    fmt::Debug,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU16, Ordering},
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
        let done = Arc::new(AtomicBool::new(false));
        let end = done.clone();
        world.faults.switch(true);
        faults::begin(&world, &plan);
        world.add_machine(Class::Observer, "client", move |world, node| {
            let (body, end) = (body.clone(), end.clone());
            async move {
                // On the heap: without optimization, a future is moved once for each function that it passes
                // through.
                Box::pin(body(Machine { world, node, controller, opened: Arc::default() })).await;
                end.store(true, Ordering::Relaxed);
            }
        });
        for _ in 0..6_000 {
            if done.load(Ordering::Relaxed) {
                return;
            }
            world.clock.sleep(SECOND / 10).await;
        }
        panic!("the client does not end");
    });
}

/// Runs `body` as a client of a calm, initially empty cluster.
///
/// The database has no type: a layer's functions are then those that its workload has compiled already.
pub fn on_cluster<F: Future<Output = ()> + 'static>(body: impl Fn(Db) -> F + Send + Sync + Clone + 'static) {
    under(FaultPlan::default(), move |machine| body(Db::new(machine.open())));
}

/// A transaction that the test commits itself.
pub fn begin(db: &Db) -> Tx {
    db.create_transaction().expect("a transaction")
}

/// A client's session, for operations that take effect exactly once.
pub async fn session(db: &Db) -> Session<Db> {
    Session::open(db, &Slots::new(Subspace::from("sessions")), 0).await.expect("a calm cluster answers")
}

/// The answer of an operation that must take effect.
pub fn applied<A, E: Debug>(outcome: Outcome<A, E>) -> A {
    match outcome {
        Outcome::Applied(answer) => answer,
        Outcome::Refused(e) => panic!("{e:?}"),
        Outcome::Unknown(op) => panic!("{op} is unknown"),
    }
}

/// All keys of a subspace.
pub async fn keys(db: &Db, of: Subspace) -> Vec<Bytes> {
    let of = &of;
    let rows = db.run(|tx, _| async move { rows(&tx, of).await }).await.expect("a look");
    rows.into_iter().map(|row| row.key).collect()
}
