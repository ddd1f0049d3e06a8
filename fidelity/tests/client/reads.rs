//! Reads, read versions and the options that change them.

use super::*;

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

/// The servers are not asked one after the other: each of them would wait for the version.
#[test]
fn a_version_of_the_future_fails_once_one_server_has_waited_for_it() {
    let config = ClusterConfig { storage_servers: 3, replicas: 3, ..ClusterConfig::smallest() };
    with_cluster(Seed(3), config, &[], |world, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        tx.set_read_version(1 << 60);
        let before = world.clock.now();
        assert_eq!(tx.get(b"k", Isolation::Serializable).await, Err(Error::FUTURE_VERSION));
        let waited = world.clock.now() - before;
        assert!((SECOND..3 * SECOND / 2).contains(&waited), "{waited} ns");
    });
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

/// The read version of a transaction that accepts a cached one.
#[test]
fn every_batch_of_a_range_is_charged_by_its_pages() {
    with(&[], |_, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        tx.set(b"a", &[b'v'; 5_000]);
        tx.set(b"b", b"v");
        tx.commit().await.expect("a calm commit");
        let tx = db.create_transaction().expect("a transaction");
        for cost in [2, 3] {
            let range = match cost {
                2 => RangeOption::new("a", "b"),
                _ => RangeOption::new("b", "c"),
            };
            tx.get_range(&range, 1, Isolation::Snapshot).await.expect("a batch");
            assert_eq!(tx.get_total_cost().await, Ok(cost * 4_096));
        }
    });
}

/// A location that is not cached is asked for again, which takes time.
#[test]
fn a_client_caches_as_many_locations_as_it_is_told() {
    let config = ClusterConfig { shard_boundaries: vec!["m".into()], ..ClusterConfig::smallest() };
    with_cluster(Seed(3), config, &[], |world, db| async move {
        let mut durations = Vec::new();
        for size in [100, 1] {
            db.set_option(DatabaseOption::LocationCacheSize(size)).expect("an option");
            let tx = db.create_transaction().expect("a transaction");
            tx.get(b"a", Isolation::Snapshot).await.expect("nothing");
            tx.get(b"z", Isolation::Snapshot).await.expect("nothing");
            let before = world.clock.now();
            for n in 0..10 {
                tx.get(&[b'b', n], Isolation::Snapshot).await.expect("nothing");
                tx.get(&[b'y', n], Isolation::Snapshot).await.expect("nothing");
            }
            durations.push(world.clock.now() - before);
        }
        assert!(durations[1] > durations[0] * 5 / 4, "{durations:?}");
    });
}

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
    use shaketable_tx::ConflictRangeType::{Read, Write};
    with(&[], |_, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        let (begin, end) = (b"\xff/metadataVersion", b"\xff/metadataVersion\0");
        assert_eq!(tx.add_conflict_range(begin, end, Read), Ok(()));
        assert_eq!(tx.add_conflict_range(begin, end, Write), Err(Error::KEY_OUTSIDE_LEGAL_RANGE));
        assert_eq!(tx.add_conflict_range(b"\xff/a", b"\xff/b", Read), Err(Error::KEY_OUTSIDE_LEGAL_RANGE));
    });
}
