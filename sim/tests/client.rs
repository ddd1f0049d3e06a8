//! The results that the contract allows a client to get, and what must hold nevertheless.

use bytes::Bytes;
use parking_lot::Mutex;
use shaketable_layers::tx::{
    Database, DatabaseOption, Error, Isolation, KeySelector, MutationType, RangeOption, Transaction,
    TransactionOption, key_after, strinc,
};
use shaketable_sim::{
    client::{SimDatabase, SimTransaction},
    cluster::Cluster,
    config::ClusterConfig,
    faults::{Family, FaultPlan},
    history::{Attempt, Call, ClientId, Reported},
    rt::{self, MILLISECOND, SECOND},
    seed::{Seed, Stream},
    world::{Class, World},
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

#[test]
fn options_of_a_database_are_taken_within_their_limits() {
    with(&[], |_, db| async move {
        use DatabaseOption::{LocationCacheSize, MaxWatches, TestCausalReadRisky};
        let limits = [(LocationCacheSize as fn(i32) -> _, 0, 7), (MaxWatches, 0, 1_000_000)];
        for (option, least, most) in limits.into_iter().chain([(TestCausalReadRisky as fn(i32) -> _, 0, 100)])
        {
            for (value, taken) in [(least - 1, false), (least, true), (most, true)] {
                assert_eq!(db.set_option(option(value)).is_ok(), taken, "{:?}", option(value));
            }
        }
        for (option, beyond) in [(MaxWatches as fn(i32) -> _, 1_000_001), (TestCausalReadRisky, 101)] {
            assert_eq!(db.set_option(option(beyond)), Err(Error::INVALID_OPTION_VALUE));
        }
    });
}

#[test]
fn a_body_receives_the_number_of_its_attempt() {
    with(&[], |_, db| async move {
        let failing = |last: u32| {
            let db = db.clone();
            async move {
                let told = Arc::new(Mutex::new(Vec::new()));
                let notes = told.clone();
                let ran = db.run(move |_, attempt| {
                    notes.lock().push(attempt.number);
                    async move {
                        match attempt.number < last {
                            true => Err(Error::NOT_COMMITTED),
                            false => Err(Error::CLIENT_INVALID_OPERATION),
                        }
                    }
                });
                let failed: Result<(), _> = ran.await;
                (told.lock().clone(), failed.map_err(|e| (e.error, e.attempts, e.maybe_committed)))
            }
        };
        let failure = |attempts| Err((Error::CLIENT_INVALID_OPERATION, attempts, false));
        assert_eq!(failing(0).await, (vec![0], failure(1)));
        assert_eq!(failing(3).await, (vec![0, 1, 2, 3], failure(4)));
    });
}

/// The attempts recorded so far.
fn attempts(world: &World) -> Vec<Attempt> {
    world.history.lock().attempts.iter().flatten().cloned().collect()
}

#[test]
fn an_unknown_result_that_committed_has_committed_before_it_is_reported() {
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
fn an_unknown_result_that_did_not_commit_never_does() {
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
fn after_a_fatal_unknown_result_the_commit_may_or_may_not_have_happened() {
    with(&[Family::UnknownFatal], |world, db| async move {
        let mut seen = [0, 0];
        for n in 0..40u8 {
            world.faults.switch(true);
            let tx = set(&db, &[n]);
            assert_eq!(tx.commit().await, Err(Error::COMMIT_UNKNOWN_RESULT_FATAL));
            let fatal = Error::COMMIT_UNKNOWN_RESULT_FATAL;
            assert_eq!(tx.on_error(fatal).await, Err(fatal), "it is not retried");
            world.faults.switch(false);
            world.clock.sleep(6 * SECOND).await;
            let happened = value(&db).await.as_deref() == Some(&[n][..]);
            seen[usize::from(happened)] += 1;
        }
        assert!(seen.iter().all(|seen| *seen > 5), "{seen:?}");
    });
}

#[test]
fn an_unknown_result_is_often_reported_after_others_had_time_to_act() {
    for family in [Family::UnknownCommitted, Family::UnknownNotCommitted] {
        with(&[family], |world, db| async move {
            world.faults.switch(true);
            let mut times = Vec::new();
            for _ in 0..40 {
                let began = world.clock.now();
                assert_eq!(set(&db, b"1").commit().await, Err(Error::COMMIT_UNKNOWN_RESULT));
                times.push(world.clock.now() - began);
            }
            let late = times.iter().filter(|time| **time > 50 * MILLISECOND).count();
            assert!((8..32).contains(&late), "{times:?}");
        });
    }
}

#[test]
fn commits_at_the_edge_of_the_window_are_taken_or_too_old() {
    let seen = Arc::new(Mutex::new([0, 0]));
    for seed in 0..5 {
        let seen = seen.clone();
        with_seed(Seed(seed), &[Family::WindowEdge], move |world, db| {
            let seen = seen.clone();
            async move {
                for _ in 0..8 {
                    world.faults.switch(true);
                    let tx = set(&db, b"1");
                    tx.get(b"k", Isolation::Serializable).await.expect("a calm read");
                    let began = world.clock.now();
                    let committed = tx.commit().await;
                    let took = world.clock.now() - began;
                    assert!((4 * SECOND..6 * SECOND).contains(&took), "{took}");
                    match committed {
                        Ok(()) => seen.lock()[0] += 1,
                        Err(Error::TRANSACTION_TOO_OLD) => seen.lock()[1] += 1,
                        Err(e) => panic!("{e}"),
                    }
                }
            }
        });
    }
    let seen = seen.lock();
    assert!(seen.iter().all(|seen| *seen > 5), "taken, too old: {seen:?}");
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
fn an_idempotency_id_is_found_after_a_thousand_others_and_after_failed_searches() {
    let rates = [(Family::UnknownCommitted, 1.0), (Family::TooOld, 0.9)];
    with_cluster(Seed(3), ClusterConfig::smallest(), &rates, |world, db| async move {
        let tx = set(&db, b"1");
        tx.set_option(TransactionOption::AutomaticIdempotency).expect("an option");
        let read = tx.get_read_version().await.expect("a version");
        // A lookup reads a thousand rows: those that committed since, and then this one.
        let others = db.create_transaction().expect("a transaction");
        others.set_option(TransactionOption::AccessSystemKeys).expect("an option");
        for place in 0..1_100_u16 {
            let key = [&b"\xff\x02/idmp/"[..], &read.to_be_bytes(), &place.to_be_bytes()].concat();
            others.set(&key, b"another's");
        }
        others.commit().await.expect("a calm commit");
        world.faults.switch(true);
        assert_eq!(tx.commit().await, Ok(()));
        world.faults.switch(false);
        assert!(tx.get_committed_version().expect("a version") > read);
        assert_eq!(value(&db).await.as_deref(), Some(&b"1"[..]));
    });
}

#[test]
fn a_versionstamp_that_is_waited_for_comes_with_the_commit() {
    with(&[Family::SpuriousConflict], |world, db| async move {
        for refused in [false, true] {
            world.faults.switch(refused);
            let tx = set(&db, b"1");
            let (first, second) = (tx.get_versionstamp(), tx.get_versionstamp());
            // Both are polled before there is a commit, and are pending.
            let (first, second, committed) = futures::join!(first, second, tx.commit());
            assert_eq!(first, second);
            match refused {
                true => assert_eq!(
                    (first, committed),
                    (Err(Error::TRANSACTION_INVALID_VERSION), Err(Error::NOT_COMMITTED))
                ),
                false => {
                    let version = tx.get_committed_version().expect("a version");
                    assert_eq!(first.expect("a stamp")[..8], version.to_be_bytes());
                }
            }
        }
    });
}

#[test]
fn refused_commits_do_not_happen() {
    for (family, error) in [
        (Family::SpuriousConflict, Error::NOT_COMMITTED),
        (Family::ProxyMemory, Error::COMMIT_PROXY_MEMORY_LIMIT_EXCEEDED),
        (Family::GrvMemory, Error::GRV_PROXY_MEMORY_LIMIT_EXCEEDED),
        (Family::Throttled, Error::TRANSACTION_THROTTLED_HOT_SHARD),
        (Family::RangeLocked, Error::TRANSACTION_REJECTED_RANGE_LOCKED),
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
fn a_read_version_is_throttled_by_priority_and_by_tag() {
    let options: [(Option<TransactionOption>, &'static [Error]); 3] = [
        (None, &[]),
        (Some(TransactionOption::PriorityBatch), &[Error::BATCH_TRANSACTION_THROTTLED]),
        (Some(TransactionOption::Tag("t".into())), &[Error::TAG_THROTTLED, Error::PROXY_TAG_THROTTLED]),
    ];
    for (option, errors) in options {
        with(&[Family::Throttled], move |world, db| {
            let option = option.clone();
            async move {
                world.faults.switch(true);
                let tx = db.create_transaction().expect("a transaction");
                option.iter().for_each(|option| tx.set_option(option.clone()).expect("an option"));
                let error = tx.get_read_version().await.err();
                match errors {
                    [] => assert_eq!(error, None),
                    _ => assert!(error.is_some_and(|error| errors.contains(&error)), "{error:?}"),
                }
            }
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
            // A read of the transaction's own write sends no request.
            assert_eq!(tx.get(b"k", Isolation::Serializable).await.map(|v| v.is_some()), Ok(true));
            assert_eq!(tx.get(b"other", Isolation::Serializable).await, Err(error));
            assert_eq!(tx.commit().await, Err(error));
            assert_eq!(tx.on_error(error).await, Ok(()));
        });
    }
}

#[test]
fn one_row_batches_lose_no_row() {
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
        // A batch that has only one row loses none.
        let tx = db.create_transaction().expect("a transaction");
        let last = RangeOption::new(&[4][..], &b"\xff"[..]);
        let batch = tx.get_range(&last, 1, Isolation::Serializable).await.expect("a batch");
        assert_eq!((batch.rows.len(), batch.more), (1, false));
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

/// The writes of a transaction to the key that it watches.
type Writes = &'static [fn(&SimTransaction)];

#[test]
fn a_watch_fires_at_once_when_its_own_transaction_makes_the_value_another() {
    const SAME: fn(&SimTransaction) = |tx| tx.set(b"k", b"old");
    const OTHER: fn(&SimTransaction) = |tx| tx.set(b"k", b"new");
    const CLEAR: fn(&SimTransaction) = |tx| tx.clear(b"k");
    const ATOMIC: fn(&SimTransaction) = |tx| tx.atomic_op(b"k", b"", MutationType::AppendIfFits);
    const ELSEWHERE: fn(&SimTransaction) = |tx| tx.set(b"l", b"new");
    // Whether the watch has read its key before, what is written then, and whether that fires the watch.
    let cases: [(bool, Writes, bool); 12] = [
        (true, &[SAME], false),
        (true, &[SAME, SAME], false),
        (true, &[OTHER], true),
        (true, &[SAME, OTHER], true),
        (true, &[CLEAR], true),
        // The resulting value is not known.
        (true, &[ATOMIC], true),
        (true, &[ELSEWHERE], false),
        (false, &[SAME], false),
        // The first write is compared with the value that the watch reads later, the next write with the
        // first.
        (false, &[OTHER], true),
        (false, &[OTHER, SAME], true),
        (false, &[SAME, SAME], false),
        (false, &[ATOMIC], true),
    ];
    with(&[], move |world, db| async move {
        set(&db, b"old").commit().await.expect("a calm commit");
        for (number, (has_read, writes, fires)) in cases.into_iter().enumerate() {
            let tx = db.create_transaction().expect("a transaction");
            let mut watch = tx.watch(b"k");
            if has_read {
                assert_eq!(world.clock.timeout(SECOND, &mut watch).await, None, "case {number}");
            }
            writes.iter().for_each(|write| write(&tx));
            let fired = world.clock.timeout(SECOND, &mut watch).await;
            assert_eq!(fired, fires.then_some(Ok(())), "case {number}");
        }
    });
}

#[test]
fn a_key_of_the_greatest_length_can_be_watched() {
    with(&[], |_, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        let watch = tx.watch(&[b'x'; 10_000]);
        tx.commit().await.expect("a calm commit");
        let writer = db.create_transaction().expect("a transaction");
        writer.set(&[b'x'; 10_000], b"");
        writer.commit().await.expect("a calm commit");
        assert_eq!(watch.await, Ok(()));
    });
}

#[test]
fn only_a_switch_of_the_cluster_is_retried_as_one() {
    with(&[], |_, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        tx.atomic_op(b"a", &[0; 14], MutationType::SetVersionstampedValue);
        assert_eq!(tx.get(b"a", Isolation::Serializable).await, Err(Error::ACCESSED_UNREADABLE));
        let refused = tx.on_error(Error::CLUSTER_VERSION_CHANGED).await;
        assert_eq!(refused, Err(Error::CLUSTER_VERSION_CHANGED), "no call has returned this error");
    });
}

#[test]
fn a_watch_that_nobody_waits_for_any_more_is_not_outstanding() {
    with(&[], |world, db| async move {
        db.set_option(DatabaseOption::MaxWatches(1)).expect("an option");
        let tx = db.create_transaction().expect("a transaction");
        let mut first = tx.watch(b"k");
        assert_eq!(world.clock.timeout(SECOND, &mut first).await, None);
        assert_eq!(world.clock.timeout(SECOND, tx.watch(b"l")).await, Some(Err(Error::TOO_MANY_WATCHES)));
        drop(first);
        assert_eq!(world.clock.timeout(SECOND, tx.watch(b"l")).await, None, "its transaction has not ended");
    });
}

#[test]
fn a_watch_outlives_the_errors_of_a_server_that_lags() {
    // Whether the server lags so far behind its window that it rejects the request immediately.
    for is_behind in [false, true] {
        with(&[], move |world, db| async move {
            let server = world.tunables.machine(world.machines(Class::Storage)[0]);
            let tx = db.create_transaction().expect("a transaction");
            let mut watch = tx.watch(b"k");
            assert_eq!(world.clock.timeout(SECOND, &mut watch).await, None, "it has read its key");
            tx.set(b"l", b"1");
            server.set_apply_lag(4 * SECOND);
            assert_eq!(tx.commit().await, Ok(()));
            if is_behind {
                world.tunables.set_window(1_000);
            }
            assert_eq!(world.clock.timeout(3 * SECOND, &mut watch).await, None);
            world.tunables.heal(world.config.window);
            set(&db, b"1").commit().await.expect("a calm commit");
            assert_eq!(world.clock.timeout(20 * SECOND, &mut watch).await, Some(Ok(())));
        });
    }
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
        assert!(matches!(first.reported, Reported::Committed { version: v, .. } if v == version));
        assert!(matches!(&first.calls[..], [
            Call::Get { answer: Some(None), .. },
            Call::Write(_),
            Call::GetRange { answer: Some((rows, _)), .. },
        ] if rows.len() == 1));
        assert!(first.read_version.is_some_and(|v| v < version) && first.commit_sent.is_some());
        assert!(first.read_ranges.iter().any(|r| r.contains(b"k")));
        assert_eq!((recorded[1].reported, recorded[1].calls.len()), (Reported::Nothing, 1));
        // The log contains the number of the attempt.
        let logged = world.history.lock();
        let mut transactions = logged.committed().flat_map(|entry| &entry.transactions);
        assert!(transactions.any(|t| t.attempt.is_some_and(|id| id.0 == 0)));
    });
}

#[test]
fn an_attempt_is_in_the_history_once_it_has_done_anything() {
    with(&[], |world, db| async move {
        let recorded = async |does: &dyn Fn(&SimTransaction), asks: bool| {
            let before = attempts(&world).len();
            let tx = db.create_transaction().expect("a transaction");
            does(&tx);
            if asks {
                tx.get_read_version().await.expect("a version");
            }
            drop(tx);
            attempts(&world).len() - before
        };
        let write = |tx: &SimTransaction| tx.set(b"k", b"1");
        assert_eq!(recorded(&|_| {}, false).await, 0);
        assert_eq!(recorded(&|_| {}, true).await, 1);
        assert_eq!(recorded(&write, false).await, 1);
        assert_eq!(recorded(&write, true).await, 1);
    });
}

#[test]
#[should_panic(expected = "it loops without end")]
fn a_transaction_that_is_called_without_end_is_stopped() {
    with(&[], |_, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        (0..200_000).for_each(|_| tx.set(b"k", b""));
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

/// The read version of a transaction that accepts a cached one.
async fn cached_version(db: &SimDatabase) -> i64 {
    let tx = db.create_transaction().expect("a transaction");
    tx.set_option(TransactionOption::UseGrvCache).expect("the option");
    tx.get_read_version().await.expect("a version")
}

#[test]
fn a_cached_read_version_is_old_but_not_older_than_own_commits() {
    with(&[Family::UnknownCommitted], |world, db| async move {
        let other = SimDatabase::new(world.clone(), db.node(), ClientId(1), {
            let controller = world.machines(Class::Controller)[0];
            world.address(controller).expect("the controller's address")
        });
        let read = cached_version(&db).await;
        assert_eq!(cached_version(&db).await, read, "from the cache");
        let tx = set(&other, b"theirs");
        tx.commit().await.expect("a calm commit");
        let theirs = tx.get_committed_version().expect("a version");
        assert!(cached_version(&db).await < theirs, "what others commit is not seen yet");

        let tx = set(&db, b"own");
        tx.commit().await.expect("a calm commit");
        let own = tx.get_committed_version().expect("a version");
        assert_eq!(cached_version(&db).await, own);

        // The cache does not contain a commit whose reply was lost, but the transaction that settled it was a
        // commit as well.
        world.faults.switch(true);
        assert_eq!(set(&db, b"lost").commit().await, Err(Error::COMMIT_UNKNOWN_RESULT));
        world.faults.switch(false);
        let settled = cached_version(&db).await;
        assert!(settled > own);
        let committed = async |value: &[u8]| {
            let tx = set(&other, value);
            tx.commit().await.expect("a calm commit");
            tx.get_committed_version().expect("a version")
        };
        let theirs = committed(b"again").await;
        assert_eq!(cached_version(&db).await, settled);
        world.clock.sleep(SECOND / 5).await;
        assert!(cached_version(&db).await >= theirs, "a cached version lasts for a tenth of a second");

        let theirs = committed(b"once more").await;
        let tx = db.create_transaction().expect("a transaction");
        tx.set_option(TransactionOption::UseGrvCache).expect("the option");
        tx.set_option(TransactionOption::SkipGrvCache).expect("the option");
        assert!(tx.get_read_version().await.expect("a version") >= theirs, "not from the cache");
    });
}

#[test]
fn a_clients_clock_never_runs_backwards() {
    with(&[], |world, db| async move {
        let node = db.node();
        let mut before = db.env().now();
        for seconds in [60, 0, -60, 30, -60, 0, 10] {
            world.set_skew(node, seconds * SECOND as i64);
            for _ in 0..5 {
                let now = db.env().now();
                assert!(now >= before, "{before:?} was shown, and then {now:?}");
                before = now;
                world.clock.sleep(SECOND / 10).await;
            }
        }
        assert!(before > std::time::Duration::from_secs(60), "it was ahead");
    });
}

#[test]
fn mapped_ranges_lead_to_rows() {
    use foundationdb_tuple::pack;
    with(&[Family::OneRowBatches], |world, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        for n in 0..30_i64 {
            tx.set(&pack(&("index", n % 7, n)), &pack(&(n, "value")));
            for part in 0..3_i64 {
                tx.set(&pack(&("record", n, part)), &pack(&(n * part,)));
            }
        }
        for n in 0..2_100_i64 {
            tx.set(&pack(&("record", 100, n)), b"");
        }
        tx.set(&pack(&("many", 100)), b"");
        tx.commit().await.expect("a calm commit");

        let all = |name: &str| {
            let begin = pack(&(name,));
            RangeOption::new(begin.clone(), shaketable_layers::tx::strinc(&begin).expect("an end"))
        };
        let by_key = pack(&("record", "{K[2]}", "{...}"));
        let by_value = pack(&("record", "{V[0]}", "{...}"));
        for (mapper, one_row) in [(&by_key, false), (&by_value, false), (&by_key, true)] {
            world.faults.switch(one_row);
            let tx = db.create_transaction().expect("a transaction");
            let (mut range, mut seen) = (all("index"), 0);
            for iteration in 1.. {
                let batch = tx.get_mapped_range(&range, mapper, iteration, Isolation::Serializable).await;
                let batch = batch.expect("a batch");
                for row in &batch.rows {
                    let (_, _, n): (String, i64, i64) =
                        foundationdb_tuple::unpack(&row.parent.key).expect("a key");
                    assert_eq!(row.parent.value, pack(&(n, "value")));
                    assert_eq!(row.begin, pack(&("record", n)));
                    let part = |row: &shaketable_layers::tx::KeyValue| (row.key.to_vec(), row.value.to_vec());
                    let found: Vec<_> = row.rows.iter().map(part).collect();
                    let expected = (0..3).map(|p: i64| (pack(&("record", n, p)), pack(&(n * p,))));
                    assert_eq!(found, expected.collect::<Vec<_>>());
                }
                seen += batch.rows.len();
                assert!(!batch.rows.is_empty() || !batch.more);
                let Some(last) = batch.rows.last().filter(|_| batch.more) else { break };
                range.begin = shaketable_layers::tx::KeySelector::first_greater_than(last.parent.key.clone());
            }
            assert_eq!(seen, 30);
            world.faults.switch(false);
            // Another client adds a row to the range to which the last row maps.
            let theirs = db.create_transaction().expect("a transaction");
            theirs.set(&pack(&("record", 29, 7)), b"");
            theirs.commit().await.expect("a calm commit");
            tx.set(b"write", b"");
            assert_eq!(tx.commit().await, Err(Error::NOT_COMMITTED));
            let theirs = db.create_transaction().expect("a transaction");
            theirs.clear(&pack(&("record", 29, 7)));
            theirs.commit().await.expect("a calm commit");
        }

        let tx = db.create_transaction().expect("a transaction");
        let mapper = pack(&("record", "{K[1]}", "{...}"));
        let batch =
            tx.get_mapped_range(&all("many"), &mapper, 1, Isolation::Serializable).await.expect("a batch");
        assert_eq!(batch.rows[0].rows.len(), 2_000, "as many as a storage server looks up");
    });
}

#[test]
fn a_mapped_batch_ends_when_its_bytes_are_used_up() {
    use foundationdb_tuple::pack;
    with(&[], |_, db| async move {
        // Small rows that map to large ones.
        let (tx, large) = (db.create_transaction().expect("a transaction"), vec![7; 2_000]);
        for n in 0..60_i64 {
            tx.set(&pack(&("index", n)), b"");
            tx.set(&pack(&("record", n)), &large);
        }
        tx.commit().await.expect("a calm commit");
        let begin = pack(&("index",));
        let range = RangeOption::new(begin.clone(), shaketable_layers::tx::strinc(&begin).expect("an end"));
        let mapper = pack(&("record", "{K[1]}", "{...}"));
        let tx = db.create_transaction().expect("a transaction");
        let before = tx.get_total_cost().await.expect("a cost");
        let batch = tx.get_mapped_range(&range, &mapper, 1, Isolation::Serializable).await.expect("a batch");
        // The first iteration requests 4,096 bytes; ten rows are mapped before they are counted.
        assert_eq!((batch.rows.len(), batch.more), (10, true));
        let read = |rows: usize, each: usize| rows * each;
        let bytes = read(10, pack(&("index", 1)).len()) + read(10, 2_000);
        let cost = tx.get_total_cost().await.expect("a cost") - before;
        assert!(cost >= bytes as i64, "{cost} for {bytes} bytes");

        // Rows that are not small: only a fraction of the bytes is available for them.
        let tx = db.create_transaction().expect("a transaction");
        (0..60_i64).for_each(|n| tx.set(&pack(&("heavy", n)), &large[..200]));
        tx.commit().await.expect("a calm commit");
        let begin = pack(&("heavy",));
        let range = RangeOption::new(begin.clone(), shaketable_layers::tx::strinc(&begin).expect("an end"));
        let tx = db.create_transaction().expect("a transaction");
        let batch = tx.get_mapped_range(&range, &mapper, 1, Isolation::Serializable).await.expect("a batch");
        assert_eq!((batch.rows.len(), batch.more), (4, true));
        assert_eq!(tx.get_total_cost().await, Ok(3 * 4_096), "of both, keys and values");

        // Small rows that map to small ones: the primary rows end the batch.
        let tx = db.create_transaction().expect("a transaction");
        for n in 0..60_i64 {
            tx.set(&pack(&("light", n)), b"");
            tx.set(&pack(&("small", n)), b"small");
        }
        tx.commit().await.expect("a calm commit");
        let begin = pack(&("light",));
        let range = RangeOption::new(begin.clone(), shaketable_layers::tx::strinc(&begin).expect("an end"));
        let mapper = pack(&("small", "{K[1]}", "{...}"));
        let tx = db.create_transaction().expect("a transaction");
        let batch = tx.get_mapped_range(&range, &mapper, 1, Isolation::Serializable).await.expect("a batch");
        assert_eq!((batch.rows.len(), batch.more), (25, true));
    });
}

#[test]
fn split_points_may_be_asked_for_up_to_the_end_of_the_keyspace() {
    with(&[], |_, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        let points = tx.get_range_split_points(b"", b"\xff", 1_000_000).await;
        assert_eq!(points.map(|points| points.len()), Ok(2));
        let beyond = tx.get_range_split_points(b"", b"\xff\x01", 1_000_000).await;
        assert_eq!(beyond.map(|points| points.len()), Err(Error::KEY_OUTSIDE_LEGAL_RANGE));
    });
}

#[test]
fn of_the_system_keys_only_reads_of_the_metadata_version_may_be_made_to_conflict() {
    use shaketable_layers::tx::ConflictRangeType::{Read, Write};
    with(&[], |_, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        let (begin, end) = (b"\xff/metadataVersion", b"\xff/metadataVersion\0");
        assert_eq!(tx.add_conflict_range(begin, end, Read), Ok(()));
        assert_eq!(tx.add_conflict_range(begin, end, Write), Err(Error::KEY_OUTSIDE_LEGAL_RANGE));
        assert_eq!(tx.add_conflict_range(b"\xff/a", b"\xff/b", Read), Err(Error::KEY_OUTSIDE_LEGAL_RANGE));
    });
}

const READ_CONFLICTS: &[u8] = b"\xff\xff/transaction/read_conflict_range/";
const WRITE_CONFLICTS: &[u8] = b"\xff\xff/transaction/write_conflict_range/";

/// The ranges that the special keys list.
async fn listed(tx: &SimTransaction, module: &'static [u8]) -> Vec<(Bytes, Bytes)> {
    let range = RangeOption::new(module, strinc(module).expect("an end"));
    let rows = tx.get_range_all(range, Isolation::Snapshot).await.expect("boundaries");
    let boundary = |row: &shaketable_layers::tx::KeyValue| row.key.slice(module.len()..);
    rows.chunks(2).map(|pair| (boundary(&pair[0]), boundary(&pair[1]))).collect()
}

/// A transaction with read-your-writes disabled, and with these options.
fn native(db: &SimDatabase, options: &[TransactionOption]) -> SimTransaction {
    let tx = db.create_transaction().expect("a transaction");
    tx.set_option(TransactionOption::ReadYourWritesDisable).expect("an option");
    options.iter().for_each(|option| tx.set_option(option.clone()).expect("an option"));
    tx
}

/// Up to two of three letters, so that keys coincide.
fn drawn_key(rng: &mut Stream) -> Bytes {
    (0..rng.below(3)).map(|_| b'a' + rng.below(3) as u8).collect()
}

fn drawn_selector(rng: &mut Stream) -> KeySelector {
    let offset = if rng.chance(0.4) { 1 } else { rng.below(11) as i32 - 5 };
    KeySelector::new(drawn_key(rng), rng.chance(0.3), offset)
}

/// The key to which a selector resolves among these keys.
fn named(keys: &BTreeSet<Bytes>, selector: &KeySelector) -> Bytes {
    let below = |key: &&Bytes| **key < selector.key || selector.or_equal && **key == selector.key;
    match keys.iter().filter(below).count() as i64 + i64::from(selector.offset) - 1 {
        at if at < 0 => Bytes::new(),
        at => keys.iter().nth(at as usize).cloned().unwrap_or(Bytes::from_static(b"\xff\xff")),
    }
}

/// The keys of a range in the order of the read.
fn between(keys: &BTreeSet<Bytes>, range: &RangeOption) -> Vec<Bytes> {
    let end = |selector: &KeySelector| match selector.offset {
        // An end that is a key need not exist.
        1 if selector.or_equal => key_after(&selector.key),
        1 => selector.key.clone(),
        _ => named(keys, selector),
    };
    let (from, to) = (end(&range.begin), end(&range.end));
    let mut found: Vec<Bytes> = keys.iter().filter(|key| from <= **key && **key < to).cloned().collect();
    if range.reverse {
        found.reverse();
    }
    found
}

/// The expected result of a read among these keys.
type Again = Box<dyn Fn(&BTreeSet<Bytes>) -> Vec<Bytes> + Send>;

/// Each read, its result and its conflict ranges are included in the snapshot: a conflict range that is too
/// large, or a batch with less information than possible, is not visible in any result.
#[test]
fn reads_past_own_writes_answer_as_a_plain_map_and_conflict_on_all_that_could_change_it() {
    const STORES: usize = 12;
    const READS: usize = 16;
    let shards = ["ab", "b", "bc"].map(Bytes::from).to_vec();
    let config = ClusterConfig { shard_boundaries: shards, ..ClusterConfig::smallest() };
    let told = Arc::new(Mutex::new(String::new()));
    let tell = told.clone();
    with_cluster(Seed(3), config, &[], move |_, db| {
        let tell = tell.clone();
        async move {
            let mut rng = Seed(5).stream("native reads");
            for _ in 0..STORES {
                let keys: BTreeSet<Bytes> = (0..rng.below(10)).map(|_| drawn_key(&mut rng)).collect();
                let tx = db.create_transaction().expect("a transaction");
                tx.clear_range(b"", b"\xff");
                keys.iter().for_each(|key| tx.set(key, b"value"));
                tx.commit().await.expect("a calm commit");
                let mut lines = format!("{}\n", words(&keys));
                for _ in 0..READS {
                    let tx = native(&db, &[]);
                    let (begin, end) = (drawn_selector(&mut rng), drawn_selector(&mut rng));
                    let again: Again;
                    let answer = if rng.chance(0.3) {
                        let key = tx.get_key(&begin, Isolation::Serializable).await.expect("a key");
                        write!(lines, "  key {}", word(&begin)).expect("a string takes it");
                        again =
                            Box::new(move |keys| vec![named(keys, &begin).min(Bytes::from_static(b"\xff"))]);
                        vec![key]
                    } else {
                        let limit = rng.chance(0.5).then(|| 1 + rng.below(4) as usize);
                        let mut range = RangeOption { begin, end, limit, ..RangeOption::new("", "") };
                        range.reverse = rng.chance(0.5);
                        let batch = tx.get_range(&range, 1, Isolation::Serializable).await.expect("a batch");
                        let (direction, more) = (
                            if range.reverse { "back" } else { "on" },
                            if batch.more { ", more" } else { "" },
                        );
                        let limit = limit.map_or("all".to_owned(), |limit| limit.to_string());
                        let (begin, end) = (word(&range.begin), word(&range.end));
                        write!(lines, "  {begin} to {end} {direction}, {limit}{more}")
                            .expect("a string takes it");
                        let rows: Vec<Bytes> = batch.rows.into_iter().map(|row| row.key).collect();
                        let part = if batch.more { rows.len() } else { usize::MAX };
                        again = Box::new(move |keys| between(keys, &range).into_iter().take(part).collect());
                        rows
                    };
                    assert_eq!(answer, again(&keys), "{lines}");
                    let conflicts = listed(&tx, READ_CONFLICTS).await;
                    let ranges: Vec<String> = conflicts
                        .iter()
                        .map(|(a, b)| format!("{}..{}", a.escape_ascii(), b.escape_ascii()))
                        .collect();
                    writeln!(lines, " = {} [{}]", words(&answer), ranges.join(" "))
                        .expect("a string takes it");
                    for _ in 0..20 {
                        let mut changed = keys.clone();
                        for _ in 0..3 {
                            let key = drawn_key(&mut rng);
                            if !conflicts.iter().any(|(begin, end)| *begin <= key && key < *end)
                                && !changed.remove(&key)
                            {
                                changed.insert(key);
                            }
                        }
                        assert_eq!(answer, again(&changed), "among {changed:?}\n{lines}");
                    }
                }
                tell.lock().push_str(&lines);
            }
        }
    });
    insta::assert_snapshot!(told.lock());
}

/// A selector as one word: its key, and its offset.
fn word(selector: &KeySelector) -> String {
    let equal = if selector.or_equal { "=" } else { "" };
    format!("'{}'{equal}{:+}", selector.key.escape_ascii(), selector.offset)
}

fn words<'a>(keys: impl IntoIterator<Item = &'a Bytes>) -> String {
    let keys: Vec<String> = keys.into_iter().map(|key| format!("'{}'", key.escape_ascii())).collect();
    keys.join(" ")
}

#[test]
fn keys_and_ranges_may_lead_to_either_end_of_all_keys() {
    use TransactionOption::ReadSystemKeys;
    with(&[], |_, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        ["b", "c", "d"].iter().for_each(|key| tx.set(key.as_bytes(), b""));
        tx.commit().await.expect("a calm commit");
        let at = |key: &'static [u8], offset| KeySelector::new(key, false, offset);
        let system = &[ReadSystemKeys][..];
        // Options, a selector, the key to which it resolves, and the resulting conflict range.
        for (options, selector, key, (begin, end)) in [
            (&[][..], at(b"a", 0), &b""[..], (&b""[..], &b"a"[..])),
            (&[], at(b"c", -5), b"", (b"", b"c")),
            (&[], at(b"c", 9), b"\xff", (b"c", b"\xff\xff\0")),
            (system, at(b"c", 9), b"\xff\xff", (b"c", b"\xff\xff\0")),
            (system, at(b"\xff\xff", 1), b"\xff\xff", (b"\xff\xff", b"\xff\xff\0")),
            (system, at(b"\xff\xff", 0), b"d", (b"d", b"\xff\xff")),
            (system, KeySelector::new(&b"\xff\xff"[..], true, 0), b"d", (b"d", b"\xff\xff\0")),
            (system, at(b"\xff\xff", -1), b"c", (b"c", b"\xff\xff")),
        ] {
            let tx = native(&db, options);
            assert_eq!(
                tx.get_key(&selector, Isolation::Serializable).await.as_deref(),
                Ok(key),
                "{selector:?}"
            );
            let conflicts = listed(&tx, READ_CONFLICTS).await;
            assert_eq!(conflicts, [(Bytes::from_static(begin), Bytes::from_static(end))], "{selector:?}");
        }
        // Both ends of a range, its limit (0 for none), whether it is read in reverse, its rows and its
        // conflict range.
        for (options, begin, end, limit, reverse, rows, conflict) in [
            (&[][..], at(b"a", 1), at(b"c", 9), 0, false, "bcd", (&b"a"[..], &b"\xff\xff"[..])),
            (&[], at(b"a", 1), at(b"c", 9), 2, false, "bc", (b"a", b"c\0")),
            (&[], at(b"c", -5), at(b"d", 1), 0, false, "bc", (b"", b"d")),
            (&[], at(b"c", -5), at(b"d", 1), 1, true, "c", (b"c", b"d")),
            (&[], at(b"", -5), at(b"d", 1), 1, false, "b", (b"", b"b\0")),
            (system, at(b"a", 1), at(b"c", 9), 0, false, "bcd", (b"a", b"\xff\xff")),
            (system, at(b"a", 1), at(b"\xff\xff", 1), 0, true, "dcb", (b"a", b"\xff\xff")),
        ] {
            let tx = native(&db, options);
            let range = RangeOption {
                limit: (limit > 0).then_some(limit),
                reverse,
                begin,
                end,
                ..RangeOption::new("", "")
            };
            let batch = tx.get_range(&range, 1, Isolation::Serializable).await.expect("a batch");
            let keys: Vec<u8> = batch.rows.iter().map(|row| row.key[0]).collect();
            assert_eq!((String::from_utf8_lossy(&keys), batch.more), (rows.into(), limit > 0), "{range:?}");
            let (begin, end) = (Bytes::from_static(conflict.0), Bytes::from_static(conflict.1));
            let conflicts = listed(&tx, READ_CONFLICTS).await;
            let covered = conflicts.iter().any(|range| *range == (begin.clone(), end.clone()));
            assert!(covered, "{range:?} conflicts on {conflicts:?}");
        }
    });
}

#[test]
fn the_result_of_every_read_is_in_the_history() {
    with(&[], |world, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        tx.set(b"a", b"1");
        tx.set(b"b", b"2");
        tx.commit().await.expect("a calm commit");
        let tx = db.create_transaction().expect("a transaction");
        let isolation = Isolation::Serializable;
        tx.get(b"a", isolation).await.expect("a value");
        tx.get_key(&KeySelector::first_greater_than("a"), isolation).await.expect("a key");
        tx.get_range(&RangeOption::new("a", "c"), 1, isolation).await.expect("a batch");
        drop(tx);
        let recorded = attempts(&world).pop().expect("an attempt");
        let [
            Call::Get { answer: Some(value), .. },
            Call::GetKey { answer: Some(key), .. },
            Call::GetRange { answer: Some((rows, _)), .. },
        ] = &recorded.calls[..]
        else {
            panic!("a result is missing: {:?}", recorded.calls)
        };
        assert_eq!((value.as_deref(), &key[..], rows.len()), (Some(&b"1"[..]), &b"b"[..], 2));
    });
}

#[test]
fn a_mapped_read_is_in_the_history_and_conflicts_as_far_as_its_selectors_led() {
    use foundationdb_tuple::pack;
    with(&[], |world, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        for n in 0..3_i64 {
            tx.set(&pack(&("index", n)), b"");
            tx.set(&pack(&("a record", n, "part")), b"");
        }
        tx.commit().await.expect("a calm commit");
        let index = |n: i64| Bytes::from(pack(&("index", n)));
        let begin = KeySelector::first_greater_or_equal(pack(&("index",)));
        let beyond = KeySelector::new(index(1), false, 9);
        let mapper = pack(&("a record", "{K[1]}", "{...}"));
        // A limit (0 for none), whether it is read in reverse, its rows, and the end of the resulting
        // conflict range.
        for (limit, reverse, rows, end) in [
            (0, false, &[0, 1, 2][..], Bytes::from_static(b"\xff")),
            (2, false, &[0, 1], key_after(&index(1))),
            (0, true, &[2, 1, 0], key_after(&index(2))),
        ] {
            let tx = db.create_transaction().expect("a transaction");
            let limit = (limit > 0).then_some(limit);
            let range = RangeOption {
                begin: begin.clone(),
                end: beyond.clone(),
                limit,
                reverse,
                ..RangeOption::new("", "")
            };
            let batch =
                tx.get_mapped_range(&range, &mapper, 1, Isolation::Serializable).await.expect("a batch");
            let found: Vec<Bytes> = batch.rows.iter().map(|row| row.parent.key.clone()).collect();
            let wanted: Vec<Bytes> = rows.iter().map(|n| index(*n)).collect();
            assert_eq!((found, batch.more), (wanted.clone(), limit.is_some()));
            let last = listed(&tx, READ_CONFLICTS).await.pop();
            assert_eq!(last, Some((begin.key.clone(), end)), "limit {limit:?}, reverse {reverse}");
            drop(tx);
            // First the range, then those to which its rows map.
            let recorded = attempts(&world).pop().expect("an attempt");
            let read: Vec<(Vec<Bytes>, usize, bool)> = recorded
                .calls
                .iter()
                .filter_map(|call| match call {
                    Call::GetRange { answer: Some((rows, _)), limit, reverse, .. } => {
                        Some((rows.iter().map(|row| row.key.clone()).collect(), *limit, *reverse))
                    }
                    _ => None,
                })
                .collect();
            let record = |n: &i64| (vec![Bytes::from(pack(&("a record", *n, "part")))], 0, false);
            let all: Vec<_> = std::iter::once((wanted, limit.unwrap_or(0), reverse))
                .chain(rows.iter().map(record))
                .collect();
            assert_eq!(read, all);
        }
    });
}

#[test]
fn after_the_commit_a_versionstamped_key_is_listed_where_it_landed() {
    with(&[], |_, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        let key = [&b"p"[..], &[0; 10], b"s", &1_u32.to_le_bytes()].concat();
        tx.atomic_op(&key, b"", MutationType::SetVersionstampedKey);
        let stamp = tx.get_versionstamp();
        let before = listed(&tx, WRITE_CONFLICTS).await;
        tx.commit().await.expect("a calm commit");
        let landed = Bytes::from([&b"p"[..], &stamp.await.expect("a stamp"), b"s"].concat());
        assert_eq!(listed(&tx, WRITE_CONFLICTS).await, [(landed.clone(), key_after(&landed))]);
        assert!(before[0].0 < landed && landed < before[0].1, "anywhere before: {before:?}");
    });
}

#[test]
fn lock_aware_transactions_commit_on_a_locked_database() {
    with(&[], |world, db| async move {
        let unaware = db.create_transaction().expect("a transaction");
        unaware.get_read_version().await.expect("a read version");
        unaware.set(b"a", b"1");
        world.tunables.set_locked(true);
        assert_eq!(unaware.commit().await, Err(Error::DATABASE_LOCKED));
        let aware = db.create_transaction().expect("a transaction");
        aware.set_option(TransactionOption::LockAware).expect("an option");
        aware.set(b"a", b"2");
        assert_eq!(aware.commit().await, Ok(()));
    });
}

#[test]
fn after_an_unknown_result_the_transaction_can_no_longer_commit() {
    // What makes sure of it is a second transaction that writes, as far as conflicts are concerned, the same key.
    with(&[Family::UnknownNotCommitted], |world, db| async move {
        let reader = db.create_transaction().expect("a transaction");
        reader.get(b"k", Isolation::Serializable).await.expect("a read");
        world.faults.switch(true);
        let writer = db.create_transaction().expect("a transaction");
        writer.get(b"k", Isolation::Serializable).await.expect("a read");
        writer.set(b"k", b"1");
        assert_eq!(writer.commit().await, Err(Error::COMMIT_UNKNOWN_RESULT));
        world.faults.switch(false);
        reader.set(b"other", b"1");
        assert_eq!(reader.commit().await, Err(Error::NOT_COMMITTED));
    });
}

#[test]
fn the_size_of_an_empty_range_may_be_requested() {
    with(&[], |_, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        assert_eq!(tx.get_estimated_range_size_bytes(b"a", b"a").await, Ok(0));
        assert_eq!(tx.get_estimated_range_size_bytes(b"b", b"a").await, Err(Error::INVERTED_RANGE));
    });
}

#[test]
fn a_read_past_own_writes_returns_no_key_of_the_system() {
    with(&[], |_, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        tx.set_option(TransactionOption::AccessSystemKeys).expect("an option");
        [&b"a"[..], b"b", b"\xff", b"\xff/x"].into_iter().for_each(|key| tx.set(key, b""));
        tx.commit().await.expect("a commit");
        let tx = native(&db, &[]);
        let range = RangeOption {
            begin: KeySelector::first_greater_or_equal(&b"a"[..]),
            end: KeySelector::new(&b"a"[..], false, 4),
            ..RangeOption::new(&b"a"[..], &b"b"[..])
        };
        let rows = tx.get_range_all(range, Isolation::Serializable).await.expect("a read");
        assert_eq!(rows.iter().map(|row| &row.key[..]).collect::<Vec<_>>(), [b"a", b"b"]);
    });
}
