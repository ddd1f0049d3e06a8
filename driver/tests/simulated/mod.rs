//! Clients of a calm simulated cluster, and handles of the C interface as a program keeps them.

#![allow(dead_code, reason = "each program that has this module uses a part of it")]

use fdb_c::abi::{
    database::{FDBDatabase, fdb_create_database, fdb_database_create_transaction, fdb_database_destroy},
    future::{
        FDBFuture, fdb_future_block_until_ready, fdb_future_destroy, fdb_future_get_error,
        fdb_future_set_callback,
    },
    transaction::{
        FDBTransaction, fdb_transaction_commit, fdb_transaction_destroy, fdb_transaction_get,
        fdb_transaction_set, fdb_transaction_watch,
    },
};
use futures::{channel::oneshot, future::LocalBoxFuture};
use parking_lot::Mutex;
use shaketable_sim::{
    client::SimDatabase,
    cluster::Cluster,
    config::ClusterConfig,
    faults::FaultPlan,
    ids::{ClientId, NodeId},
    rt::{self, MILLISECOND},
    seed::Seed,
    world::{Class, World},
};
use std::{
    ffi::{c_int, c_void},
    ptr,
    sync::Arc,
};

/// What a client does with its database, in a world with other machines.
pub type Job = fn(Arc<World>, SimDatabase) -> LocalBoxFuture<'static, ()>;

/// Runs jobs one after another, each as a client of its own, and returns the hash of all events and the
/// clients' transactions.
pub fn run(seed: u64, jobs: &'static [Job]) -> ((u64, u64), Vec<Option<ClientId>>) {
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
                    job(world, db.clone()).await;
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
pub struct Handle(pub *mut FDBDatabase);

// SAFETY: handles of databases may be used by any thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// A handle without a client.
    pub fn create() -> Handle {
        let mut database = ptr::null_mut();
        // SAFETY: the pointer is valid for a write.
        assert_eq!(unsafe { fdb_create_database(ptr::null(), &mut database) }, 0);
        Handle(database)
    }

    /// A transaction, or the error.
    pub fn begin(self) -> Result<Open, c_int> {
        let mut transaction = ptr::null_mut();
        // SAFETY: the database is alive, and the pointer is valid for a write.
        match unsafe { fdb_database_create_transaction(self.0, &mut transaction) } {
            0 => Ok(Open(transaction)),
            error => Err(error),
        }
    }

    /// Destroys it.
    pub fn destroy(self) {
        // SAFETY: the tests destroy a handle once, and do not use it afterwards.
        unsafe { fdb_database_destroy(self.0) }
    }
}

/// A transaction that is destroyed with this.
pub struct Open(pub *mut FDBTransaction);

// SAFETY: transactions may be used by any thread.
unsafe impl Send for Open {}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: it is destroyed here and nowhere else.
        unsafe { fdb_transaction_destroy(self.0) }
    }
}

/// A future that is destroyed with this.
pub struct Future(pub *mut FDBFuture);

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
    pub async fn error(&self) -> c_int {
        let (sender, woken) = oneshot::channel::<()>();
        let parameter: *mut oneshot::Sender<()> = Box::into_raw(Box::new(sender));
        // SAFETY: the future is alive, and `wake` takes this parameter.
        assert_eq!(unsafe { fdb_future_set_callback(self.0, Some(wake), parameter.cast()) }, 0);
        woken.await.expect("each callback is called");
        // SAFETY: the future is alive.
        unsafe { fdb_future_get_error(self.0) }
    }

    /// Blocks until it is ready, and returns what that returned.
    pub fn block(&self) -> c_int {
        // SAFETY: the future is alive.
        unsafe { fdb_future_block_until_ready(self.0) }
    }
}

impl Open {
    /// Reads a key.
    pub fn get(&self, key: &[u8]) -> Future {
        // SAFETY: the transaction is open, and the key is readable.
        Future(unsafe { fdb_transaction_get(self.0, key.as_ptr(), key.len() as c_int, 0) })
    }

    /// Sets a key.
    pub fn set(&self, key: &[u8]) {
        // SAFETY: the transaction is open, and key and value are readable.
        unsafe { fdb_transaction_set(self.0, key.as_ptr(), key.len() as c_int, key.as_ptr(), 1) }
    }

    /// Commits.
    pub fn commit(&self) -> Future {
        // SAFETY: the transaction is open.
        Future(unsafe { fdb_transaction_commit(self.0) })
    }

    /// Watches a key.
    pub fn watch(&self, key: &[u8]) -> Future {
        // SAFETY: the transaction is open, and the key is readable.
        Future(unsafe { fdb_transaction_watch(self.0, key.as_ptr(), key.len() as c_int) })
    }
}
