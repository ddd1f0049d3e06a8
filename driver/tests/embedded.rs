//! Embedded mode through the C interface: whose client a handle stands for, and what is refused within a
//! simulation.

mod simulated;

use fdb_c::{
    abi::{
        database::{fdb_database_get_server_protocol, fdb_database_set_option},
        network::{fdb_select_api_version_impl, fdb_setup_network},
    },
    embedded,
};
use parking_lot::Mutex;
use shaketable_sim::{client::SimDatabase, ids::ClientId, rt::MILLISECOND};
use shaketable_tx::{Database, Isolation, Transaction};
use simulated::{Future, Handle, Job, Open, run};
use std::{ffi::c_int, thread};

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
            let (limit, long) = (32_i64.to_le_bytes(), b"a key that is longer than the limit");
            // SAFETY: the database is alive, and the value is readable. 503: the limit of the size of
            // transactions.
            assert_eq!(unsafe { fdb_database_set_option(handle.0, 503, limit.as_ptr(), 8) }, 0);
            assert_eq!(write(handle, long).await, 2101, "transaction_too_large");
            let too_low = 3_i64.to_le_bytes();
            // SAFETY: as above.
            assert_eq!(unsafe { fdb_database_set_option(handle.0, 503, too_low.as_ptr(), 8) }, 0);
            assert_eq!(write(handle, b"k").await, 2006, "invalid_option_value");
            assert_eq!(write(Handle(embedded::pointer(&db).as_ptr()), long).await, 0);
            handle.destroy();
        })
    };
    let (_, clients) = run(1, Box::leak(Box::new([job])));
    assert!(clients.len() >= 3 && clients.iter().flatten().all(|client| *client == ClientId(0)));
}

static LIMITED: Mutex<Option<Handle>> = Mutex::new(None);

#[test]
fn an_option_of_a_handle_holds_for_the_clients_of_later_runs() {
    let job: Job = |_, _| {
        Box::pin(async move {
            let handle = *LIMITED.lock().get_or_insert_with(|| {
                let (handle, limit) = (Handle::create(), 32_i64.to_le_bytes());
                // SAFETY: the database is alive, and the value is readable. 503: the limit of the size of
                // transactions.
                assert_eq!(unsafe { fdb_database_set_option(handle.0, 503, limit.as_ptr(), 8) }, 0);
                handle
            });
            assert_eq!(write(handle, b"a key that is longer than the limit").await, 2101);
        })
    };
    let jobs: &[Job] = Box::leak(Box::new([job]));
    (0..3).for_each(|seed| drop(run(seed, jobs)));
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
