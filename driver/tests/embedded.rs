//! Embedded mode through the C interface: whose client a handle stands for, and what is refused within a simulation.

use fdb_c::{
    abi::{
        database::{
            FDBDatabase, fdb_create_database, fdb_database_create_transaction, fdb_database_destroy,
            fdb_database_get_server_protocol, fdb_database_set_option,
        },
        future::{
            FDBFuture, fdb_future_block_until_ready, fdb_future_destroy, fdb_future_get_error,
            fdb_future_set_callback,
        },
        network::{fdb_select_api_version_impl, fdb_setup_network},
        transaction::{
            FDBTransaction, fdb_transaction_commit, fdb_transaction_destroy, fdb_transaction_get,
            fdb_transaction_set, fdb_transaction_watch,
        },
    },
    embedded,
};
use futures::{channel::oneshot, future::LocalBoxFuture};
use parking_lot::Mutex;
use shaketable_layers::tx::{Database, Isolation, Transaction};
use shaketable_sim::{
    client::SimDatabase,
    cluster::Cluster,
    config::ClusterConfig,
    faults::FaultPlan,
    history::ClientId,
    net::NodeId,
    rt::{self, MILLISECOND},
    seed::Seed,
    world::{Class, World},
};
use std::{
    ffi::{c_int, c_void},
    ptr,
    sync::Arc,
    thread,
};

/// What a client does with its database, in a world with other machines.
type Job = fn(Arc<World>, SimDatabase) -> LocalBoxFuture<'static, ()>;

/// Runs jobs one after another, each as a client of its own, and returns the hash of all events and the clients'
/// transactions.
fn run(seed: u64, jobs: &'static [Job]) -> ((u64, u64), Vec<Option<ClientId>>) {
    rt::simulate(Seed(seed), async move {
        let world = World::new(Seed(seed), ClusterConfig::smallest(), &FaultPlan::default(), false);
        let cluster = Cluster::start(world.clone()).await;
        for (number, job) in jobs.iter().enumerate() {
            let (controller, done) = (cluster.controller(), Arc::new(Mutex::new(false)));
            let slot = done.clone();
            world.add_machine(Class::Client, &format!("client-{number}"), move |world, node: NodeId| {
                let slot = slot.clone();
                async move {
                    let db = SimDatabase::new(world.clone(), node, ClientId(number as u16), controller);
                    job(world, db).await;
                    *slot.lock() = true;
                }
            });
            while !*done.lock() {
                world.clock.sleep(MILLISECOND).await;
            }
        }
        let clients = world.history.lock().attempts.iter().map(|a| Some(a.as_ref()?.client)).collect();
        let hash = world.trace.hash();
        cluster.shutdown().await;
        (hash, clients)
    })
}

/// A handle as a program keeps it in a static.
#[derive(Clone, Copy)]
struct Handle(*mut FDBDatabase);

// SAFETY: handles of databases may be used by any thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    fn create() -> Handle {
        let mut database = ptr::null_mut();
        // SAFETY: the pointer is valid for a write.
        assert_eq!(unsafe { fdb_create_database(ptr::null(), &mut database) }, 0);
        Handle(database)
    }

    /// A transaction, or the error.
    fn begin(self) -> Result<Open, c_int> {
        let mut transaction = ptr::null_mut();
        // SAFETY: the database is alive, and the pointer is valid for a write.
        match unsafe { fdb_database_create_transaction(self.0, &mut transaction) } {
            0 => Ok(Open(transaction)),
            error => Err(error),
        }
    }

    fn destroy(self) {
        // SAFETY: the tests destroy a handle once, and do not use it afterwards.
        unsafe { fdb_database_destroy(self.0) }
    }
}

/// A transaction that is destroyed with this.
struct Open(*mut FDBTransaction);

// SAFETY: transactions may be used by any thread.
unsafe impl Send for Open {}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: it is destroyed here and nowhere else.
        unsafe { fdb_transaction_destroy(self.0) }
    }
}

/// A future that is destroyed with this.
struct Future(*mut FDBFuture);

// SAFETY: futures may be used by any thread.
unsafe impl Send for Future {}

impl Drop for Future {
    fn drop(&mut self) {
        // SAFETY: it is destroyed here and nowhere else.
        unsafe { fdb_future_destroy(self.0) }
    }
}

unsafe extern "C" fn wake(_: *mut FDBFuture, parameter: *mut c_void) {
    // SAFETY: `Future::ready` has made the parameter, for one call.
    let sender = unsafe { Box::from_raw(parameter.cast::<oneshot::Sender<()>>()) };
    let _ = sender.send(());
}

impl Future {
    /// Waits until it is ready, and returns its error.
    async fn error(&self) -> c_int {
        let (sender, woken) = oneshot::channel::<()>();
        let parameter: *mut oneshot::Sender<()> = Box::into_raw(Box::new(sender));
        // SAFETY: the future is alive, and `wake` takes this parameter.
        assert_eq!(unsafe { fdb_future_set_callback(self.0, Some(wake), parameter.cast()) }, 0);
        woken.await.expect("each callback is called");
        // SAFETY: the future is alive.
        unsafe { fdb_future_get_error(self.0) }
    }

    fn block(&self) -> c_int {
        // SAFETY: the future is alive.
        unsafe { fdb_future_block_until_ready(self.0) }
    }
}

impl Open {
    fn get(&self, key: &[u8]) -> Future {
        // SAFETY: the transaction is open, and the key is readable.
        Future(unsafe { fdb_transaction_get(self.0, key.as_ptr(), key.len() as c_int, 0) })
    }

    fn set(&self, key: &[u8]) {
        // SAFETY: the transaction is open, and key and value are readable.
        unsafe { fdb_transaction_set(self.0, key.as_ptr(), key.len() as c_int, key.as_ptr(), 1) }
    }

    fn commit(&self) -> Future {
        // SAFETY: the transaction is open.
        Future(unsafe { fdb_transaction_commit(self.0) })
    }

    fn watch(&self, key: &[u8]) -> Future {
        // SAFETY: the transaction is open, and the key is readable.
        Future(unsafe { fdb_transaction_watch(self.0, key.as_ptr(), key.len() as c_int) })
    }
}

/// Writes a key with a handle, and waits for the commit.
async fn write(handle: Handle, key: &'static [u8]) -> c_int {
    let tx = handle.begin().expect("there is a client");
    tx.set(key);
    tx.commit().error().await
}

async fn holds(db: &SimDatabase, key: &[u8]) -> bool {
    let tx = db.create_transaction().expect("it always creates one");
    tx.get(key, Isolation::Serializable).await.expect("the cluster is calm").is_some()
}

#[test]
fn a_handle_of_a_client_is_that_client_and_has_options_of_its_own() {
    let job: Job = |_, db| {
        Box::pin(async move {
            let handle = Handle(embedded::pointer(&db).as_ptr());
            assert_eq!(write(handle, b"k").await, 0);
            assert!(holds(&db, b"k").await);
            let limit = 3_i64.to_le_bytes();
            // SAFETY: the database is alive, and the value is readable. 503: the limit of the size of transactions.
            assert_eq!(unsafe { fdb_database_set_option(handle.0, 503, limit.as_ptr(), 8) }, 0);
            assert_eq!(write(handle, b"k").await, 2006, "the limit is below the smallest");
            assert_eq!(write(Handle(embedded::pointer(&db).as_ptr()), b"k").await, 0);
            handle.destroy();
        })
    };
    let (_, clients) = run(1, Box::leak(Box::new([job])));
    assert!(clients.len() >= 3 && clients.iter().flatten().all(|client| *client == ClientId(0)));
}

static SHARED: Mutex<Option<Handle>> = Mutex::new(None);

#[test]
fn a_handle_without_a_client_stands_for_whoever_is_running_in_this_run_and_the_next() {
    let job: Job = |_, db| {
        Box::pin(async move {
            let handle = *SHARED.lock().get_or_insert_with(Handle::create);
            assert_eq!(write(handle, b"mine").await, 0);
            assert!(holds(&db, b"mine").await);
        })
    };
    let jobs: &[Job] = Box::leak(Box::new([job, job]));
    let runs: Vec<_> = [5, 5, 6].into_iter().map(|seed| run(seed, jobs)).collect();
    assert_eq!(runs[0], runs[1], "the second run of a seed is the first");
    assert_ne!(runs[0].0, runs[2].0);
    assert!(runs[0].1.contains(&Some(ClientId(0))) && runs[0].1.contains(&Some(ClientId(1))));
    let handle = SHARED.lock().expect("it was created");
    assert_eq!(handle.begin().err(), Some(2008), "outside of a run there is no network");
    thread::spawn(move || handle.destroy()).join().expect("any thread may destroy it");
}

#[test]
fn what_would_never_end_is_refused() {
    let job: Job = |_, db| {
        Box::pin(async move {
            let handle = Handle(embedded::pointer(&db).as_ptr());
            let tx = handle.begin().expect("there is a client");
            let read = tx.get(b"k");
            assert_eq!(read.block(), 2026, "blocked_from_network_thread");
            assert_eq!(read.error().await, 0);
            assert_eq!(read.block(), 0);
            let never = Future(fdb_database_get_server_protocol(handle.0, 0x0FDB_00B0_7400_0000));
            assert_eq!(never.block(), 2026);
            assert_eq!(fdb_select_api_version_impl(740, 740), 0);
            assert_eq!(fdb_setup_network(), 2000, "there are no threads");
            handle.destroy();
        })
    };
    run(2, Box::leak(Box::new([job])));
}

/// What a machine that dies leaves behind.
static LEFT: Mutex<Vec<(Open, Future)>> = Mutex::new(Vec::new());

#[test]
fn a_machine_that_dies_takes_its_calls_with_it_and_another_thread_has_none() {
    let dies: Job = |world, db| {
        Box::pin(async move {
            let node = db.node();
            world.clone().spawn(async move {
                world.clock.sleep(500 * MILLISECOND).await;
                world.kill(node);
            });
            let handle = Handle(embedded::pointer(&db).as_ptr());
            let tx = handle.begin().expect("there is a client");
            let watch = tx.watch(b"k");
            assert_eq!(tx.commit().error().await, 0);
            let tx = handle.begin().expect("there is a client");
            handle.destroy();
            LEFT.lock().push((tx, watch));
        })
    };
    let looks: Job = |world, _| {
        Box::pin(async move {
            world.clock.sleep(1_000 * MILLISECOND).await;
            let (tx, watch) = LEFT.lock().pop().expect("it was left");
            assert_eq!(watch.error().await, 1101, "operation_cancelled");
            LEFT.lock().push((tx, watch));
        })
    };
    run(3, Box::leak(Box::new([dies, looks])));
    let (tx, _) = LEFT.lock().pop().expect("it was left");
    let elsewhere = thread::spawn(move || {
        let tx = tx;
        futures::executor::block_on(tx.get(b"k").error())
    });
    assert_eq!(elsewhere.join().expect("it does not panic"), 2000);
}
