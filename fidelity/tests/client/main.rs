//! The results that the contract allows a client to get, and what must hold nevertheless.

mod calls;
mod commits;
mod history;
mod management;
mod mapped;
mod native;
mod own_writes;
mod reads;
mod special;
mod strange;
mod watches;

use bytes::Bytes;
use parking_lot::Mutex;
use shaketable_sim::{
    client::{SimDatabase, SimTransaction},
    cluster::Cluster,
    config::ClusterConfig,
    faults::{Family, FaultPlan},
    history::{Attempt, Call, Reported},
    ids::ClientId,
    rt::{self, MILLISECOND, SECOND},
    seed::{Seed, Stream},
    world::{Class, World},
};
use shaketable_tx::{
    Database, DatabaseOption, Error, Isolation, KeySelector, MutationType, RangeOption, Transaction,
    TransactionOption, key_after, strinc,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    future::Future,
    sync::Arc,
};

/// Runs `body` as a client of a calm cluster in which these families occur at every opportunity while faults
/// are on. Faults are initially off.
fn with<F: Future<Output = ()> + 'static>(
    families: &[Family],
    body: impl Fn(Arc<World>, SimDatabase) -> F + Send + Sync + Clone + 'static,
) {
    with_seed(Seed(3), families, body);
}

/// Like `with`, with a given seed.
fn with_seed<F: Future<Output = ()> + 'static>(
    seed: Seed,
    families: &[Family],
    body: impl Fn(Arc<World>, SimDatabase) -> F + Send + Sync + Clone + 'static,
) {
    let rates: Vec<_> = families.iter().map(|family| (*family, 1.0)).collect();
    with_cluster(seed, ClusterConfig::smallest(), &rates, body);
}

/// Like `with_seed`, with a given cluster, in which each family occurs with the given rate.
fn with_cluster<F: Future<Output = ()> + 'static>(
    seed: Seed,
    config: ClusterConfig,
    rates: &[(Family, f64)],
    body: impl Fn(Arc<World>, SimDatabase) -> F + Send + Sync + Clone + 'static,
) {
    let rates: BTreeMap<Family, f64> = rates.iter().copied().collect();
    let plan = FaultPlan { rates, ..FaultPlan::default() };
    rt::simulate(seed, async move {
        let world = World::new(seed, config, &plan, false);
        let cluster = Cluster::start(world.clone()).await;
        let controller = cluster.controller();
        let done = Arc::new(Mutex::new(false));
        let end = done.clone();
        world.add_machine(Class::Client, "client", move |world, node| {
            let (body, end) = (body.clone(), end.clone());
            async move {
                let db = SimDatabase::new(world.clone(), node, ClientId(0), controller);
                body(world, db).await;
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

async fn value(db: &SimDatabase) -> Option<Bytes> {
    let read = |tx: <SimDatabase as Database>::Transaction, _| async move {
        tx.get(b"k", Isolation::Snapshot).await
    };
    db.run(read).await.expect("a calm cluster answers")
}

fn set(db: &SimDatabase, value: &[u8]) -> <SimDatabase as Database>::Transaction {
    let tx = db.create_transaction().expect("a transaction");
    tx.set(b"k", value);
    tx
}

/// Clears the cluster's own keys: a selector that leads beyond the user's keys then ends at the end of all
/// keys.
fn clear_system_keys(tx: &SimTransaction) {
    tx.set_option(TransactionOption::AccessSystemKeys).expect("an option");
    tx.clear_range(b"\xff", b"\xff\xff");
}

/// The attempts recorded so far.
fn attempts(world: &World) -> Vec<Attempt> {
    world.history.lock().attempts.iter().flatten().cloned().collect()
}

const READ_CONFLICTS: &[u8] = b"\xff\xff/transaction/read_conflict_range/";

const WRITE_CONFLICTS: &[u8] = b"\xff\xff/transaction/write_conflict_range/";

/// The ranges that the special keys list. A boundary at the end of all keys or behind it is not listed.
async fn listed(tx: &SimTransaction, module: &'static [u8]) -> Vec<(Bytes, Bytes)> {
    let range = RangeOption::new(module, strinc(module).expect("an end"));
    let rows = tx.get_range_all(range, Isolation::Snapshot).await.expect("boundaries");
    let boundary = |row: &shaketable_tx::KeyValue| row.key.slice(module.len()..);
    let end = |pair: &[_]| pair.get(1).map_or(Bytes::from_static(b"\xff\xff"), boundary);
    rows.chunks(2).map(|pair| (boundary(&pair[0]), end(pair))).collect()
}

/// A transaction with read-your-writes disabled, and with these options.
fn native(db: &SimDatabase, options: &[TransactionOption]) -> SimTransaction {
    let tx = db.create_transaction().expect("a transaction");
    tx.set_option(TransactionOption::ReadYourWritesDisable).expect("an option");
    options.iter().for_each(|option| tx.set_option(option.clone()).expect("an option"));
    tx
}
