//! Management through special keys, and the keys in which the cluster describes itself.

use super::*;

const LOCK: &[u8] = b"\xff\xff/management/db_locked";
const UID: &[u8] = b"0123456789abcdef0123456789abcdef";

/// A transaction that may write special keys.
fn manager(db: &SimDatabase) -> SimTransaction {
    let tx = db.create_transaction().expect("a transaction");
    tx.set_option(TransactionOption::SpecialKeySpaceEnableWrites).expect("an option");
    tx
}

/// The rows of the keys that begin so, in a new transaction that reads system keys.
async fn rows(db: &SimDatabase, prefix: &[u8]) -> Vec<(Bytes, Bytes)> {
    let tx = db.create_transaction().expect("a transaction");
    tx.set_option(TransactionOption::ReadSystemKeys).expect("an option");
    tx.set_option(TransactionOption::LockAware).expect("an option");
    let range = RangeOption::new(prefix.to_vec(), strinc(prefix).expect("an end"));
    let rows = tx.get_range_all(range, Isolation::Snapshot).await.expect("rows");
    rows.into_iter().map(|row| (row.key.slice(prefix.len()..), row.value)).collect()
}

#[test]
fn a_locked_database_refuses_all_but_lock_aware_transactions_until_it_is_unlocked() {
    with(&[], |_, db| async move {
        let before = set(&db, b"before");
        before.get_read_version().await.expect("a version");
        let lock = manager(&db);
        lock.set(LOCK, UID);
        assert_eq!(lock.get(LOCK, Isolation::Snapshot).await, Ok(Some(UID.into())), "its own write");
        lock.commit().await.expect("a calm commit");

        let locked = Err(Error::DATABASE_LOCKED);
        assert_eq!(set(&db, b"after").commit().await, locked, "it gets no read version");
        assert_eq!(before.commit().await, locked, "the proxy refuses it");
        let aware = set(&db, b"aware");
        aware.set_option(TransactionOption::LockAware).expect("an option");
        aware.commit().await.expect("a calm commit");
        let status = db.create_transaction().expect("a transaction");
        let status = status.get(b"\xff\xff/status/json", Isolation::Snapshot).await.expect("a document");
        let status: serde_json::Value = serde_json::from_slice(&status.expect("one")).expect("JSON");
        assert_eq!(status["cluster"]["database_lock_state"]["locked"], true);
        let read = manager(&db);
        assert_eq!(read.get(LOCK, Isolation::Snapshot).await, Ok(Some(UID.into())));

        let other = manager(&db);
        other.set(LOCK, &[b'7'; 32]);
        assert_eq!(other.commit().await, locked, "another holds it");
        let wrong = manager(&db);
        wrong.set(LOCK, b"short");
        assert_eq!(wrong.commit().await, Err(Error::SPECIAL_KEYS_API_FAILURE));
        let message = wrong.get(b"\xff\xff/error_message", Isolation::Snapshot).await.expect("a message");
        let message: serde_json::Value = serde_json::from_slice(&message.expect("one")).expect("JSON");
        assert_eq!(message["command"], "lock");
        assert_eq!(message["message"], "Invalid UID hex string: short");
        let same = manager(&db);
        same.set(LOCK, UID);
        same.commit().await.expect("the holder may ask again");

        let unlock = manager(&db);
        unlock.clear(LOCK);
        unlock.commit().await.expect("a calm commit");
        set(&db, b"unlocked").commit().await.expect("a calm commit");
        assert_eq!(value(&db).await.as_deref(), Some(&b"unlocked"[..]));
    });
}

#[test]
fn the_lock_holds_across_a_recovery() {
    with(&[], |world, db| async move {
        let lock = manager(&db);
        lock.set(LOCK, UID);
        lock.commit().await.expect("a calm commit");
        for class in [Class::Stateless, Class::Log, Class::Controller] {
            let machines = world.machines(class);
            machines.iter().for_each(|node| world.kill(*node));
            world.clock.sleep(SECOND).await;
            machines.iter().for_each(|node| world.start(*node));
            assert_eq!(set(&db, b"after").commit().await, Err(Error::DATABASE_LOCKED), "{class:?}");
        }
    });
}

#[test]
fn several_proxies_obey_a_lock_from_its_version_on() {
    // Batches of one transaction, on three proxies, in which one locks and others follow at once.
    let config = ClusterConfig { commit_proxies: 3, commit_batch_max: 1, ..ClusterConfig::smallest() };
    for seed in 0..30 {
        with_cluster(Seed(seed), config.clone(), &[], |world, db| async move {
            let lock = manager(&db);
            lock.set(LOCK, UID);
            let others: Vec<_> = (0..20).map(|_| set(&db, b"value")).collect();
            for tx in &others {
                tx.get_read_version().await.expect("a version");
            }
            let locked = lock.commit();
            let commits = futures::future::join_all(others.iter().map(Transaction::commit));
            let (locked, commits) = futures::join!(locked, commits);
            locked.expect("a calm commit");
            let at = lock.get_committed_version().expect("a version");
            for (tx, committed) in others.iter().zip(commits) {
                match committed {
                    Ok(()) => assert!(tx.get_committed_version().expect("a version") < at, "it came later"),
                    Err(e) => assert_eq!(e, Error::DATABASE_LOCKED),
                }
            }
            let _ = world;
        });
    }
}

#[test]
fn the_map_of_shards_follows_data_distribution() {
    let config = ClusterConfig {
        storage_servers: 3,
        replicas: 2,
        shard_boundaries: vec![Bytes::from_static(b"g"), Bytes::from_static(b"p")],
        ..ClusterConfig::smallest()
    };
    with_cluster(Seed(5), config, &[], |world, db| async move {
        let begins =
            |rows: &[(Bytes, Bytes)]| -> Vec<Bytes> { rows.iter().map(|row| row.0.clone()).collect() };
        let before = rows(&db, b"\xff/keyServers/").await;
        assert_eq!(begins(&before), [&b""[..], b"g", b"p", b"\xff\xff"]);
        let servers = rows(&db, b"\xff/serverList/").await;
        assert_eq!(servers.len(), 3);
        // A protocol version, then the servers, and those to which the shard moves.
        let team = |value: &Bytes| -> BTreeSet<Bytes> {
            assert_eq!(value[8..12], [2, 0, 0, 0], "two servers");
            assert_eq!(value[44..], [0; 4], "no others");
            [value.slice(12..28), value.slice(28..44)].into()
        };
        let known: BTreeSet<Bytes> = servers.into_iter().map(|row| row.0).collect();
        assert!(before[..3].iter().all(|row| team(&row.1).is_subset(&known)));

        let reader = db.create_transaction().expect("a transaction");
        reader.set_option(TransactionOption::ReadSystemKeys).expect("an option");
        let old = reader.get(b"\xff/keyServers/g", Isolation::Snapshot).await.expect("a row");
        assert!(
            world.shards.lock().request_move(1, vec![0, 2])
                || world.shards.lock().request_move(1, vec![0, 1])
        );
        while !world.shards.lock().is_settled() {
            world.clock.sleep(SECOND / 10).await;
        }
        let after = rows(&db, b"\xff/keyServers/").await;
        assert_eq!(begins(&after), begins(&before));
        assert_ne!(team(&after[1].1), team(&before[1].1), "it has moved");
        assert_eq!(after[2], before[2], "and no other");
        let again = reader.get(b"\xff/keyServers/g", Isolation::Snapshot).await.expect("a row");
        assert_eq!(again, old, "the snapshot stays");
        let tx = db.create_transaction().expect("a transaction");
        let addresses = tx.get_addresses_for_key(b"h").await.expect("addresses");
        assert_eq!(addresses.len(), 2);
    });
}

#[test]
fn an_excluded_server_is_listed_and_stays_in_progress_and_the_last_ones_are_refused() {
    let config = ClusterConfig { storage_servers: 2, ..ClusterConfig::smallest() };
    with_cluster(Seed(6), config, &[], |_, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        let first = tx.get_addresses_for_key(b"k").await.expect("addresses").pop().expect("one");
        let key = |address: &str| format!("excluded/{address}");
        let excluded = |name: String| [&b"\xff\xff/management/"[..], name.as_bytes()].concat();
        let all = manager(&db);
        all.set(&excluded(key("10.0.0.1")), b"");
        (0..20).for_each(|n| all.set(&excluded(key(&format!("10.0.0.{n}"))), b""));
        assert_eq!(all.commit().await, Err(Error::SPECIAL_KEYS_API_FAILURE), "no server would be left");
        let one = manager(&db);
        one.set(&excluded(key(&first)), b"ignored");
        one.commit().await.expect("one server is left");
        let name = Bytes::from(first.clone());
        assert_eq!(rows(&db, b"\xff\xff/management/excluded/").await, [(name.clone(), Bytes::new())]);
        assert_eq!(rows(&db, b"\xff\xff/management/in_progress_exclusion/").await, [(name, Bytes::new())]);
        let lost = manager(&db);
        lost.set(&excluded(format!("failed/{first}")), b"");
        assert_eq!(lost.commit().await, Err(Error::SPECIAL_KEYS_API_FAILURE), "its data would be lost");
        let forced = manager(&db);
        forced.set(b"\xff\xff/management/options/failed/force", b"");
        forced.set(&excluded(format!("failed/{first}")), b"");
        forced.commit().await.expect("it is forced");
        let wrong = manager(&db);
        wrong.set(&excluded(key("nowhere")), b"");
        assert_eq!(wrong.commit().await, Err(Error::SPECIAL_KEYS_API_FAILURE));
        let back = manager(&db);
        back.clear_range(b"\xff\xff/management/excluded/", b"\xff\xff/management/excluded0");
        back.commit().await.expect("a calm commit");
        assert_eq!(rows(&db, b"\xff\xff/management/excluded/").await, []);
    });
}

#[test]
fn what_is_set_is_read_again() {
    with(&[], |_, db| async move {
        let set = async |name: &str, value: &[u8]| {
            let tx = manager(&db);
            tx.set(&[b"\xff\xff/", name.as_bytes()].concat(), value);
            tx.commit().await
        };
        let get = async |name: &str| {
            let tx = db.create_transaction().expect("a transaction");
            tx.get(&[b"\xff\xff/", name.as_bytes()].concat(), Isolation::Snapshot).await.expect("a value")
        };
        assert_eq!(set("management/maintenance/zone", b"100").await, Ok(()));
        assert_eq!(get("management/maintenance/zone").await.as_deref(), Some(&b"99"[..]));
        assert_eq!(set("management/consistency_check_suspended", b"").await, Ok(()));
        assert_eq!(get("management/consistency_check_suspended").await.as_deref(), Some(&b""[..]));
        assert_eq!(get("management/data_distribution/mode").await.as_deref(), Some(&b"-1"[..]));
        assert_eq!(set("management/data_distribution/mode", b"0").await, Ok(()));
        assert_eq!(get("management/data_distribution/mode").await.as_deref(), Some(&b"0"[..]));
        assert_eq!(
            set("management/data_distribution/mode", b"7").await,
            Err(Error::SPECIAL_KEYS_API_FAILURE)
        );
        let number = foundationdb_tuple::pack(&(5,));
        assert_eq!(set("global_config/config/limit", &number).await, Ok(()));
        assert_eq!(get("global_config/config/limit").await.as_deref(), Some(&b"5"[..]));
        let processes = rows(&db, b"\xff\xff/configuration/process/class_type/").await;
        assert!(processes.iter().all(|(_, class)| class == "unset"));
        let address = String::from_utf8_lossy(&processes[0].0).into_owned();
        let class = format!("configuration/process/class_type/{address}");
        assert_eq!(set(&class, b"storage").await, Ok(()));
        assert_eq!(get(&class).await.as_deref(), Some(&b"storage"[..]));
        let source = format!("configuration/process/class_source/{address}");
        assert_eq!(get(&source).await.as_deref(), Some(&b"set_class"[..]));
        assert_eq!(set(&class, b"default").await, Ok(()));
        assert_eq!(get(&class).await.as_deref(), Some(&b"unset"[..]));
    });
}

#[test]
fn reading_special_keys_draws_nothing_and_sends_nothing() {
    let seen = |reads: bool| {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = told.clone();
        with(&[], move |world, db| {
            let tell = tell.clone();
            async move {
                let tx = db.create_transaction().expect("a transaction");
                let keys: &[&[u8]] = &[b"status/json", b"cluster_id", b"connection_string", b"tracing/token"];
                for key in keys.iter().filter(|_| reads) {
                    let key = [b"\xff\xff/", *key].concat();
                    tx.get(&key, Isolation::Snapshot).await.expect("a value").expect("one");
                    let range = RangeOption::new(&b"\xff\xff/metrics/"[..], &b"\xff\xff/metrics0"[..]);
                    tx.get_range_all(range, Isolation::Snapshot).await.expect("rows");
                }
                for _ in 0..5 {
                    set(&db, b"value").commit().await.expect("a calm commit");
                    tell.lock().push((world.clock.now(), world.trace.hash()));
                }
            }
        });
        std::mem::take(&mut *told.lock())
    };
    assert_eq!(seen(false), seen(true));
}
