//! Where a client runs: on a machine of the simulated cluster, or as a task of a process that uses a real
//! cluster.

use shaketable_sim::{
    client::SimDatabase,
    faults::{Cut, Family},
    ids::NodeId,
    rt::Nanos,
    trace::Kind,
    world::World,
};
use shaketable_tx::Db;
use std::{future::Future, sync::Arc};

/// The environment of a client: a database, a clock, and an event stream.
pub(crate) trait Host {
    /// The client's database. Layers and workloads are compiled for this type alone.
    fn database(&self) -> &Db;

    /// Time since the run began.
    fn now(&self) -> Nanos;

    /// Completes after `duration`.
    fn sleep(&self, duration: Nanos) -> impl Future<Output = ()>;

    /// Sets the operation to which transactions created from now on belong. Until
    /// [`prepared`](Host::prepared) they only prepare for it.
    fn set_operation(&self, operation: Option<u32>);

    /// The client has prepared for its operation, and does it from now on.
    fn prepared(&self);

    /// Where to drop the next operation while its client continues; `None` to let it finish.
    fn cut(&self) -> Option<Cut> {
        None
    }

    /// Counts an operation that was dropped.
    fn was_cut(&self) {}

    /// Adds an event to the event stream, if the run has one.
    fn event(&self, kind: Kind, a: u64, b: u64);
}

/// A machine of a simulated cluster.
pub(super) struct Machine {
    world: Arc<World>,
    node: NodeId,
    db: SimDatabase,
    /// The same database without its type.
    any: Db,
}

impl Machine {
    /// A client with this database.
    pub(super) fn new(world: Arc<World>, node: NodeId, db: SimDatabase) -> Machine {
        Machine { world, node, any: Db::new(db.clone()), db }
    }
}

impl Host for Machine {
    fn database(&self) -> &Db {
        &self.any
    }

    fn now(&self) -> Nanos {
        self.world.clock.now()
    }

    fn sleep(&self, duration: Nanos) -> impl Future<Output = ()> {
        self.world.clock.sleep(duration)
    }

    fn set_operation(&self, operation: Option<u32>) {
        self.db.set_operation(operation);
    }

    fn prepared(&self) {
        self.db.prepared();
    }

    fn cut(&self) -> Option<Cut> {
        self.db.cut()
    }

    fn was_cut(&self) {
        self.world.faults.count(Family::DroppedOperation);
        self.event(Kind::Fault, Family::DroppedOperation as u64, 0);
    }

    fn event(&self, kind: Kind, a: u64, b: u64) {
        self.world.event(self.node, kind, a, b);
    }
}
