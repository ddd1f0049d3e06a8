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
    rt::{self, MILLISECOND, SECOND},
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
    with_seed(Seed(3), families, body);
}

/// The same with a seed of its own.
fn with_seed<F: Future<Output = ()> + 'static>(
    seed: Seed,
    families: &[Family],
    body: impl Fn(Arc<World>, SimDatabase) -> F + Send + Sync + Clone + 'static,
) {
    let rates: BTreeMap<Family, f64> = families.iter().map(|family| (*family, 1.0)).collect();
    let plan = FaultPlan { rates, ..FaultPlan::default() };
    rt::simulate(seed, async move {
        let world = World::new(seed, ClusterConfig::smallest(), &plan, false);
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
fn a_body_is_told_which_attempt_it_is() {
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
fn after_a_fatal_unknown_result_the_commit_has_happened_or_has_not() {
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
fn an_unknown_result_is_often_told_late_enough_for_others_to_work_before() {
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

/// A transaction that may read at a cached version, and that version.
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

        // Of a commit whose answer was lost the cache knows nothing, but what settled it was a commit as well.
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
            // Somebody else adds a row to what the last one led to.
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
        // Rows that are small, and lead to rows that are not.
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
        // The first iteration asks for 4,096 bytes; ten rows are mapped before they are counted.
        assert_eq!((batch.rows.len(), batch.more), (10, true));
        let read = |rows: usize, each: usize| rows * each;
        let bytes = read(10, pack(&("index", 1)).len()) + read(10, 2_000);
        let cost = tx.get_total_cost().await.expect("a cost") - before;
        assert!(cost >= bytes as i64, "{cost} for {bytes} bytes");

        // Rows that are not small: only a part of the bytes is for them.
        let tx = db.create_transaction().expect("a transaction");
        (0..60_i64).for_each(|n| tx.set(&pack(&("heavy", n)), &large[..200]));
        tx.commit().await.expect("a calm commit");
        let begin = pack(&("heavy",));
        let range = RangeOption::new(begin.clone(), shaketable_layers::tx::strinc(&begin).expect("an end"));
        let tx = db.create_transaction().expect("a transaction");
        let batch = tx.get_mapped_range(&range, &mapper, 1, Isolation::Serializable).await.expect("a batch");
        assert_eq!((batch.rows.len(), batch.more), (4, true));
        assert_eq!(tx.get_total_cost().await, Ok(3 * 4_096), "of both, keys and values");
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
