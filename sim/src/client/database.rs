//! The database handle: the state shared by all transactions of a client.

use super::{
    connection::{Connection, ReadVersions},
    options::{Options, default_of},
    special_keys::HealthCache,
    transaction::{Inner, SimTransaction},
    watch,
    write_map::WriteMap,
};
use crate::{
    config::ClusterBug,
    faults::Cut,
    history::Open,
    ids::{ClientId, Endpoint, NodeId},
    rt::{self, Nanos},
    told::Ending,
    trace::Kind,
    world::World,
};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use shaketable_tx::{Database, DatabaseOption, Env, Environment, Error, Result, TransactionOption, Turns};
use std::{
    any::Any,
    sync::{
        Arc, Weak,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
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

/// What the transactions that a client creates belong to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Label {
    /// The operation.
    pub operation: Option<u32>,
    /// Whether the client only prepares for it.
    pub prepares: bool,
}

impl Label {
    /// The label of the next life of a transaction with this label, which begins while the client has this
    /// other one.
    pub fn renewed(self, now: Label) -> Label {
        Label { prepares: self.prepares && now.prepares, ..self }
    }
}

/// The state shared by all transactions of a client.
pub struct Client {
    /// Its connection.
    pub connection: Arc<Connection>,
    /// Its number in the history.
    pub id: ClientId,
    /// What it does now.
    pub label: Arc<Mutex<Label>>,
    /// Defaults of its transactions.
    pub defaults: Mutex<Defaults>,
    /// The number of outstanding watches.
    pub watches: watch::Count,
    /// The number of attempts that have a number and have not ended.
    pub attempts: AtomicI64,
    /// An empty write map, shared by new transactions.
    pub empty_writes: Arc<WriteMap>,
    /// The number of lives of its transactions.
    pub lives: AtomicU64,
    /// What it knows about the health of the cluster.
    pub health: Mutex<HealthCache>,
}

impl Client {
    fn new(connection: Arc<Connection>, id: ClientId, label: Arc<Mutex<Label>>) -> Arc<Client> {
        Arc::new(Client {
            connection,
            id,
            label,
            defaults: Mutex::new(Defaults { options: Vec::new(), snapshot_ryw: 1, max_watches: 10_000 }),
            watches: AtomicI64::new(0),
            attempts: AtomicI64::new(0),
            empty_writes: Arc::default(),
            lives: AtomicU64::new(0),
            health: Mutex::default(),
        })
    }

    /// Whether the cluster has this planted bug.
    pub fn has(&self, bug: ClusterBug) -> bool {
        self.connection.world.has(bug)
    }

    /// Virtual time.
    pub fn now(&self) -> Nanos {
        self.connection.world.clock.now()
    }

    /// Notes what is open when an operation has ended.
    fn left_open(&self, operation: u32) {
        let open = |count: &AtomicI64| count.load(Ordering::Relaxed).max(0) as u64;
        let open = Open { transactions: open(&self.attempts), watches: open(&self.watches) };
        if open != Open::default() {
            self.connection.world.history.lock().open.insert((self.id, operation), open);
        }
    }

    /// Notes how a call ended for the operation that made its transaction, and for the one that goes on.
    pub fn told(&self, operation: Option<u32>, ending: Ending) {
        let of = [operation, self.label.lock().operation];
        if of != [None, None] {
            self.connection.world.history.lock().told(self.id, of, ending);
        }
    }
}

/// Defaults of a client's transactions.
pub struct Defaults {
    /// The options with which each of them starts.
    pub options: Vec<TransactionOption>,
    /// Their snapshot counter.
    pub snapshot_ryw: i32,
    /// The maximum number of outstanding watches.
    pub max_watches: i64,
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
        let label = Label { operation, prepares: true };
        let before = std::mem::replace(&mut *self.0.client.label.lock(), label);
        if let Some(ended) = before.operation {
            faults.end_operation(self.0.client.id, ended);
            self.0.client.left_open(ended);
        }
        if let Some(operation) = operation {
            faults.begin_operation(self.0.client.id, operation);
        }
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
        self.0.set_option(option).inspect_err(|error| self.0.client.told(None, Ending::Error(*error)))
    }

    fn set_option_raw(&self, code: i32, value: Option<&[u8]>) -> Result<()> {
        let option = DatabaseOption::from_raw(code, value);
        self.set_option(option.inspect_err(|error| self.0.client.told(None, Ending::Error(*error)))?)
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
