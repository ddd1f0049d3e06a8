//! The database handle of a client.

use super::{
    connection::{Connection, ReadVersions},
    options::{Options, default_of},
    shared::{Client, Label},
    transaction::{Inner, SimTransaction},
};
use crate::{
    endings::Ending,
    faults::Cut,
    history::Origin,
    ids::{ClientId, Endpoint, NodeId},
    rt::{self, Nanos},
    trace::Kind,
    world::World,
};
use futures::future::BoxFuture;
use shaketable_tx::{Database, DatabaseOption, Env, Environment, Error, Result, Turns};
use std::{
    any::Any,
    sync::{Arc, Weak},
    time::Duration,
};

/// The maximum of `max_watches` (`ABSOLUTE_MAX_WATCHES`).
const ABSOLUTE_MAX_WATCHES: i64 = 1_000_000;

/// A simulated client's database: a cheap handle whose clones refer to the same client.
#[derive(Clone)]
pub struct SimDatabase(Arc<Shared>);

/// A [`SimDatabase`] that may be gone.
#[derive(Clone)]
pub struct WeakDatabase(Weak<Shared>);

impl WeakDatabase {
    /// Whether it is this one.
    pub fn is(&self, db: &SimDatabase) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&db.0))
    }

    /// Whether nobody holds it any more.
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

struct Shared {
    client: Arc<Client>,
    env: Env,
}

/// Time according to the client's machine, and randomness from the client's own stream.
struct MachineEnvironment {
    connection: Arc<Connection>,
}

impl Environment for MachineEnvironment {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.connection.world.local_time(self.connection.node))
    }

    fn fill(&self, bytes: &mut [u8]) {
        self.connection.draw(|chance| chance.fill(bytes));
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX);
        Box::pin(self.connection.world.clock.sleep(nanos))
    }
}

impl SimDatabase {
    /// The database as seen by client `client` on machine `node`; `controller` provides the proxies'
    /// endpoints. Must be called on that machine: the client's background tasks run there.
    pub fn new(world: Arc<World>, node: NodeId, client: ClientId, controller: Endpoint) -> SimDatabase {
        SimDatabase::of_process(world, node, client, controller, ReadVersions::default())
    }

    /// Like [`new`](SimDatabase::new), for a process that may have several clients: its databases share
    /// `versions`.
    pub fn of_process(
        world: Arc<World>,
        node: NodeId,
        client: ClientId,
        controller: Endpoint,
        versions: ReadVersions,
    ) -> SimDatabase {
        // Each incarnation has a new stream: if it repeated its predecessor's ids, it would not be a
        // different client.
        let chance = world.seed.run_stream(&format!("client-{}-{}", client.0, world.clock.now()));
        let connection = Connection::new(world, node, client, controller, chance, versions);
        let env = Env::new(MachineEnvironment { connection: connection.clone() });
        let client = Client::new(connection, client, Arc::default());
        let shared = Arc::new(Shared { client, env });
        let kept: Weak<Shared> = Arc::downgrade(&shared);
        rt::set_machine_local(kept);
        SimDatabase(shared)
    }

    /// The database that was created last on the machine whose task is being polled, if anybody holds it.
    pub fn current() -> Option<SimDatabase> {
        let kept: Arc<dyn Any + Send + Sync> = rt::machine_local()?;
        kept.downcast().ok().map(SimDatabase)
    }

    /// Another database of the same client, with options and watches of its own: what a program gets that
    /// opens its database again.
    pub fn reopened(&self) -> SimDatabase {
        let Shared { client, env } = &*self.0;
        let client = Client::new(client.connection.clone(), client.id, client.label.clone());
        SimDatabase(Arc::new(Shared { client, env: env.clone() }))
    }

    /// Adds a program's call of its client library to the event stream, so that two runs whose programs
    /// differ have different events from that call on.
    pub fn called(&self, digest: u64) {
        let connection = &self.0.client.connection;
        connection.world.event(connection.node, Kind::Library, digest, 0);
    }

    /// A reference that does not keep it.
    pub fn downgrade(&self) -> WeakDatabase {
        WeakDatabase(Arc::downgrade(&self.0))
    }

    /// The client's machine.
    pub fn node(&self) -> NodeId {
        self.0.client.connection.node
    }

    /// Where to drop the operation that has begun; `None` to let it finish.
    pub fn cut(&self) -> Option<Cut> {
        self.0.client.connection.world.faults.cut(self.0.client.id)
    }

    /// Labels the transactions created from now on with their operation. Until [`prepared`](Self::prepared)
    /// they only prepare for it.
    pub fn set_operation(&self, operation: Option<u32>) {
        let faults = &self.0.client.connection.world.faults;
        let label = Label { operation, prepares: true, origin: None };
        let before = std::mem::replace(&mut *self.0.client.label.lock(), label);
        if let Some(ended) = before.operation {
            faults.end_operation(self.0.client.id, ended);
            self.0.client.left_open(ended);
        }
        if let Some(operation) = operation {
            faults.begin_operation(self.0.client.id, operation);
        }
    }

    /// Labels the transactions created from now on with where in a program they come from.
    pub fn set_origin(&self, origin: Option<Origin>) {
        self.0.client.label.lock().origin = origin;
    }

    /// The client has prepared for its operation, and does it from now on.
    pub fn prepared(&self) {
        self.0.client.label.lock().prepares = false;
    }
}

impl Database for SimDatabase {
    type Transaction = SimTransaction;

    fn create_transaction(&self) -> Result<SimTransaction> {
        Ok(SimTransaction(Inner::new(self.0.client.clone()), Turns::default()))
    }

    fn set_option(&self, option: DatabaseOption) -> Result<()> {
        self.0.set_option(option).inspect_err(|error| self.0.client.note_ending(None, Ending::Error(*error)))
    }

    fn set_option_raw(&self, code: i32, value: Option<&[u8]>) -> Result<()> {
        let option = DatabaseOption::from_raw(code, value);
        self.set_option(option.inspect_err(|error| self.0.client.note_ending(None, Ending::Error(*error)))?)
    }

    fn env(&self) -> &Env {
        &self.0.env
    }
}

impl Shared {
    fn set_option(&self, option: DatabaseOption) -> Result<()> {
        let client = &self.client;
        if let Some(default) = default_of(&option) {
            // An invalid value is rejected now, not when a transaction is created.
            Options::new(0).set(&default)?;
            client.defaults.lock().options.push(default);
            return Ok(());
        }
        match option {
            DatabaseOption::LocationCacheSize(size) if size >= 0 => {
                client.connection.set_location_capacity(size as usize);
            }
            DatabaseOption::MaxWatches(n) if (0..=ABSOLUTE_MAX_WATCHES).contains(&i64::from(n)) => {
                client.defaults.lock().max_watches = i64::from(n);
            }
            DatabaseOption::LocationCacheSize(_) | DatabaseOption::MaxWatches(_) => {
                return Err(Error::INVALID_OPTION_VALUE);
            }
            // In the simulation all machines are equally near, and risky read versions are never verified.
            DatabaseOption::MachineId(_) | DatabaseOption::DatacenterId(_) => {}
            DatabaseOption::TestCausalReadRisky(percent) if (0..=100).contains(&percent) => {}
            DatabaseOption::TestCausalReadRisky(_) => return Err(Error::INVALID_OPTION_VALUE),
            DatabaseOption::SnapshotRywEnable => client.defaults.lock().snapshot_ryw += 1,
            DatabaseOption::SnapshotRywDisable => client.defaults.lock().snapshot_ryw -= 1,
            _ => return Err(Error::INVALID_OPTION),
        }
        Ok(())
    }
}
