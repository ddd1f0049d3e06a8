//! What the contract allows a client to be told, and what must be true all the same.

use bytes::Bytes;
use parking_lot::Mutex;
use shaketable_layers::tx::{
    Database, DatabaseOption, Error, Isolation, MutationType, RangeOption, Transaction, TransactionOption,
};
use shaketable_sim::{
    client::SimDatabase,
    cluster::Cluster,
    config::ClusterConfig,
    faults::{Family, FaultPlan},
    history::{Attempt, Call, ClientId, Told},
    rt::{self, SECOND},
    seed::Seed,
    world::{Class, World},
};
use std::{collections::BTreeMap, future::Future, sync::Arc};

/// Runs `body` as a client of a calm cluster whose client meets these families at every occasion
/// while faults are on. They are off at first.
fn with<F: Future<Output = ()> + 'static>(
    families: &[Family],
    body: impl Fn(Arc<World>, SimDatabase) -> F + Send + Sync + Clone + 'static,
) {
    let rates: BTreeMap<Family, f64> = families.iter().map(|family| (*family, 1.0)).collect();
    let plan = FaultPlan { rates, ..FaultPlan::default() };
    rt::simulate(Seed(3), async move {
        let world = World::new(Seed(3), ClusterConfig::smallest(), &plan, false);
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
        for _ in 0..600 {
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

/// The attempts recorded so far.
fn attempts(world: &World) -> Vec<Attempt> {
    world.history.lock().attempts.iter().flatten().cloned().collect()
}

#[test]
fn an_unknown_result_that_happened_has_happened_when_it_is_told() {
    with(&[Family::UnknownCommitted], |world, db| async move {
        world.faults.switch(true);
        let tx = set(&db, b"1");
        assert_eq!(tx.commit().await, Err(Error::COMMIT_UNKNOWN_RESULT));
        assert_eq!(tx.on_error(Error::COMMIT_UNKNOWN_RESULT).await, Ok(()));
        world.faults.switch(false);
        assert_eq!(value(&db).await.as_deref(), Some(&b"1"[..]));
    });
}

#[test]
fn an_unknown_result_that_did_not_happen_never_will() {
    with(&[Family::UnknownNotCommitted], |world, db| async move {
        world.faults.switch(true);
        assert_eq!(set(&db, b"1").commit().await, Err(Error::COMMIT_UNKNOWN_RESULT));
        world.faults.switch(false);
        assert_eq!(value(&db).await, None);
        world.clock.sleep(6 * SECOND).await;
        assert_eq!(value(&db).await, None);
    });
}

#[test]
fn a_commit_that_timed_out_may_land_later() {
    with(&[Family::LateLanding], |world, db| async move {
        db.set_option(DatabaseOption::TransactionTimeout(1_000)).expect("an option");
        world.faults.switch(true);
        let tx = set(&db, b"1");
        assert_eq!(tx.commit().await, Err(Error::TRANSACTION_TIMED_OUT));
        assert_eq!(tx.on_error(Error::TRANSACTION_TIMED_OUT).await, Err(Error::TRANSACTION_TIMED_OUT));
        world.faults.switch(false);
        let before = value(&db).await;
        world.clock.sleep(6 * SECOND).await;
        assert_eq!((before, value(&db).await.as_deref()), (None, Some(&b"1"[..])));
    });
}

#[test]
fn a_commit_never_times_out_without_a_timeout() {
    with(&[Family::LateLanding], |world, db| async move {
        world.faults.switch(true);
        assert_eq!(set(&db, b"1").commit().await, Ok(()));
    });
}

#[test]
fn a_changed_cluster_version_is_retried_only_where_it_was_met() {
    with(&[Family::ClusterVersionChanged], |world, db| async move {
        world.faults.switch(true);
        let tx = set(&db, b"1");
        assert_eq!(tx.commit().await, Err(Error::CLUSTER_VERSION_CHANGED));
        assert_eq!(tx.on_error(Error::CLUSTER_VERSION_CHANGED).await, Ok(()));
        world.faults.switch(false);
        let plain = set(&db, b"2");
        assert_eq!(plain.on_error(Error::CLUSTER_VERSION_CHANGED).await, Err(Error::CLUSTER_VERSION_CHANGED));
    });
}

#[test]
fn an_idempotency_id_resolves_unknown_results() {
    with(&[Family::UnknownCommitted], |world, db| async move {
        world.faults.switch(true);
        let tx = db.create_transaction().expect("a transaction");
        tx.set_option(TransactionOption::AutomaticIdempotency).expect("an option");
        tx.atomic_op(b"k", &[&[0; 10][..], &[0; 4]].concat(), MutationType::SetVersionstampedValue);
        let stamp = tx.get_versionstamp();
        assert_eq!(tx.commit().await, Ok(()));
        world.faults.switch(false);
        let version = tx.get_committed_version().expect("a version");
        let stamp = stamp.await.expect("a stamp");
        assert_eq!(stamp[..8], version.to_be_bytes());
        assert_eq!(value(&db).await.as_deref(), Some(&stamp[..]));
    });
    with(&[Family::UnknownCommitted], |world, db| async move {
        db.set_option(DatabaseOption::TransactionAutomaticIdempotency).expect("an option");
        world.faults.switch(true);
        assert_eq!(set(&db, b"1").commit().await, Ok(()));
    });
    with(&[Family::UnknownNotCommitted], |world, db| async move {
        world.faults.switch(true);
        let tx = set(&db, b"1");
        tx.set_option(TransactionOption::AutomaticIdempotency).expect("an option");
        assert_eq!(tx.commit().await, Err(Error::TRANSACTION_TOO_OLD));
    });
}

#[test]
fn refused_commits_do_not_happen() {
    for (family, error) in [
        (Family::SpuriousConflict, Error::NOT_COMMITTED),
        (Family::ProxyMemory, Error::COMMIT_PROXY_MEMORY_LIMIT_EXCEEDED),
        (Family::GrvMemory, Error::GRV_PROXY_MEMORY_LIMIT_EXCEEDED),
        (Family::Throttled, Error::TRANSACTION_THROTTLED_HOT_SHARD),
    ] {
        with(&[family], move |world, db| async move {
            world.faults.switch(true);
            assert_eq!(set(&db, b"1").commit().await, Err(error));
            world.faults.switch(false);
            assert_eq!(value(&db).await, None);
        });
    }
}

#[test]
fn reads_fail_as_the_contract_allows_and_the_commit_with_them() {
    for (family, error) in [
        (Family::TooOld, Error::TRANSACTION_TOO_OLD),
        (Family::FutureVersion, Error::FUTURE_VERSION),
        (Family::ProcessBehind, Error::PROCESS_BEHIND),
    ] {
        with(&[family], move |world, db| async move {
            world.faults.switch(true);
            let tx = set(&db, b"1");
            // What the transaction wrote itself nobody is asked for.
            assert_eq!(tx.get(b"k", Isolation::Serializable).await.map(|v| v.is_some()), Ok(true));
            assert_eq!(tx.get(b"other", Isolation::Serializable).await, Err(error));
            assert_eq!(tx.commit().await, Err(error));
            assert_eq!(tx.on_error(error).await, Ok(()));
        });
    }
}

#[test]
fn one_row_batches_hide_no_row() {
    with(&[Family::OneRowBatches], |world, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        (0..5u8).for_each(|k| tx.set(&[k], b""));
        tx.commit().await.expect("a calm commit");
        world.faults.switch(true);
        let tx = db.create_transaction().expect("a transaction");
        let all = RangeOption::new(&b""[..], &b"\xff"[..]);
        let batch = tx.get_range(&all, 1, Isolation::Serializable).await.expect("a batch");
        assert_eq!((batch.rows.len(), batch.more), (1, true));
        let rows = tx.get_range_all(all.reversed(), Isolation::Serializable).await.expect("rows");
        assert_eq!(rows.len(), 5);
    });
}

#[test]
fn watches_fire_early_late_and_with_errors() {
    with(&[Family::EarlyWatch], |world, db| async move {
        world.faults.switch(true);
        let tx = db.create_transaction().expect("a transaction");
        let watch = tx.watch(b"k");
        tx.commit().await.expect("a read-only commit");
        assert_eq!(watch.await, Ok(()));
    });
    with(&[Family::SpuriousWatch], |world, db| async move {
        world.faults.switch(true);
        let tx = db.create_transaction().expect("a transaction");
        let watch = tx.watch(b"k");
        tx.commit().await.expect("a read-only commit");
        assert!(watch.await.is_err());
    });
    with(&[Family::LateWatch], |world, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        let watch = tx.watch(b"k");
        tx.commit().await.expect("a read-only commit");
        world.faults.switch(true);
        set(&db, b"1").commit().await.expect("watches are late, commits are not");
        let before = world.clock.now();
        assert_eq!(watch.await, Ok(()));
        assert!(world.clock.now() > before + SECOND / 100);
    });
}

#[test]
fn every_attempt_leaves_its_calls_in_the_history() {
    with(&[], |world, db| async move {
        db.set_operation(Some(7));
        let tx = db.create_transaction().expect("a transaction");
        assert_eq!(tx.get(b"k", Isolation::Serializable).await, Ok(None));
        tx.set(b"k", b"1");
        let all = RangeOption::new(&b""[..], &b"\xff"[..]);
        assert_eq!(tx.get_range(&all, 1, Isolation::Snapshot).await.map(|b| b.rows.len()), Ok(1));
        tx.commit().await.expect("a calm commit");
        let version = tx.get_committed_version().expect("a version");
        let dropped = db.create_transaction().expect("a transaction");
        assert_eq!(dropped.get(b"k", Isolation::Serializable).await.map(|v| v.is_some()), Ok(true));
        drop(dropped);

        let recorded = attempts(&world);
        assert_eq!(recorded.len(), 2);
        let first = &recorded[0];
        assert_eq!((first.client, first.operation, first.fresh), (ClientId(0), Some(7), true));
        assert!(matches!(first.told, Told::Committed { version: v, .. } if v == version));
        assert!(matches!(&first.calls[..], [
            Call::Get { answer: Some(None), .. },
            Call::Write(_),
            Call::GetRange { answer: Some((rows, false)), .. },
        ] if rows.len() == 1));
        assert!(first.read_version.is_some_and(|v| v < version) && first.commit_sent.is_some());
        assert!(first.read_ranges.iter().any(|r| r.contains(b"k")));
        assert_eq!((recorded[1].told, recorded[1].calls.len()), (Told::Nothing, 1));
        // The log knows which attempt it was.
        let logged = world.history.lock();
        let mut transactions = logged.committed().flat_map(|entry| &entry.transactions);
        assert!(transactions.any(|t| t.attempt.is_some_and(|id| id.0 == 0)));
    });
}

#[test]
fn a_read_version_by_hand_promises_nothing_fresh() {
    with(&[], |world, db| async move {
        let version =
            db.create_transaction().expect("a transaction").get_read_version().await.expect("a version");
        let tx = db.create_transaction().expect("a transaction");
        tx.set_read_version(version);
        assert_eq!(tx.get(b"k", Isolation::Serializable).await, Ok(None));
        drop(tx);
        assert_eq!(attempts(&world).last().map(|a| (a.fresh, a.read_version)), Some((false, Some(version))));
    });
}
