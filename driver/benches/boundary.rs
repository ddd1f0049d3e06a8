//! What the C interface costs: small transactions per second of wall time, one after another, on a calm
//! cluster.
//!
//! Each reads a key, sets it and commits. They are made through the transaction trait, through the C
//! interface within the simulation (embedded), through the C interface by a thread that blocks for the
//! simulation's (threaded), and by one that callbacks wake, with one or with 64 transactions in progress.

#![allow(clippy::print_stdout, reason = "a program that prints")]

#[path = "../tests/simulated/mod.rs"]
mod simulated;

use fdb_c::{
    abi::network::{fdb_run_network, fdb_select_api_version_impl, fdb_setup_network, fdb_stop_network},
    embedded,
};
use futures::{executor::block_on, future::join_all};
use shaketable_tx::{Database, Isolation, Transaction};
use simulated::{Handle, Job, run};
use std::{
    thread,
    time::{Duration, Instant},
};

/// How many transactions are measured each time.
const TRANSACTIONS: u32 = 20_000;
/// How often; the fastest counts.
const TIMES: usize = 3;

fn key(n: u32) -> [u8; 4] {
    (n % 1_000).to_be_bytes()
}

const BY_TRAIT: Job = |_, db| {
    Box::pin(async move {
        for n in 0..TRANSACTIONS {
            let tx = db.create_transaction().expect("it always creates one");
            tx.get(&key(n), Isolation::Serializable).await.expect("the cluster is calm");
            tx.set(&key(n), b"v");
            tx.commit().await.expect("nothing conflicts");
        }
    })
};

const EMBEDDED: Job = |_, db| {
    Box::pin(async move {
        let handle = Handle(embedded::pointer(&db).as_ptr());
        for n in 0..TRANSACTIONS {
            let tx = handle.begin().expect("there is a client");
            assert_eq!(tx.get(&key(n)).error().await, 0);
            tx.set(&key(n));
            assert_eq!(tx.commit().error().await, 0);
        }
        handle.destroy();
    })
};

fn threaded(handle: Handle) {
    for n in 0..TRANSACTIONS {
        let tx = handle.begin().expect("there is a network");
        assert_eq!(tx.get(&key(n)).block(), 0);
        tx.set(&key(n));
        assert_eq!(tx.commit().block(), 0);
    }
}

/// One thread has `jobs` transactions in progress at a time.
fn called_back(handle: Handle, jobs: u32) {
    let job = |first: u32| async move {
        for n in (first..TRANSACTIONS).step_by(jobs as usize) {
            let tx = handle.begin().expect("there is a network");
            assert_eq!(tx.get(&key(n)).error().await, 0);
            tx.set(&key(n));
            assert_eq!(tx.commit().error().await, 0);
        }
    };
    block_on(join_all((0..jobs).map(job)));
}

/// The shortest time that some work took.
#[expect(clippy::disallowed_methods, reason = "the wall is what is measured")]
fn shortest(work: impl Fn()) -> Duration {
    let timed = || {
        let began = Instant::now();
        work();
        began.elapsed()
    };
    (0..TIMES).map(|_| timed()).min().unwrap_or_default()
}

fn main() {
    let by_trait = shortest(|| drop(run(1, &[BY_TRAIT])));
    let embedded = shortest(|| drop(run(1, &[EMBEDDED])));
    assert_eq!((fdb_select_api_version_impl(740, 740), fdb_setup_network()), (0, 0));
    let network = thread::spawn(|| fdb_run_network());
    let handle = Handle::create();
    let blocking = shortest(|| threaded(handle));
    let [one, many] = [1, 64].map(|jobs| shortest(|| called_back(handle, jobs)));
    handle.destroy();
    fdb_stop_network();
    assert_eq!(network.join().expect("it does not panic"), 0);
    println!("transactions that read a key, set it and commit: {TRANSACTIONS}, the fastest of {TIMES}");
    let times = [("trait", by_trait), ("embedded", embedded), ("threaded", blocking)];
    for (name, time) in times.into_iter().chain([("callbacks", one), ("of 64", many)]) {
        let rate = f64::from(TRANSACTIONS) / time.as_secs_f64();
        let share = time.as_secs_f64() / by_trait.as_secs_f64();
        println!("{name:>9}  {rate:>7.0} per second, {share:.2} times the time through the trait");
    }
}
