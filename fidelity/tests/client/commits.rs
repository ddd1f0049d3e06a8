//! Commits: unknown results, versionstamps, locks, retries.

use super::*;

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

/// A client of one library, which never meets it, gives it back. The multi-version client goes on with a new
/// transaction, whatever became of the old one.
#[test]
fn a_changed_cluster_version_is_always_retried_once_it_was_met() {
    with(&[Family::ClusterVersionChanged, Family::SpuriousWatch], |world, db| async move {
        let changed = Error::CLUSTER_VERSION_CHANGED;
        let plain = set(&db, b"0");
        assert_eq!(plain.on_error(changed).await, Err(changed), "nothing of this client ended with it");
        world.faults.switch(true);
        let tx = set(&db, b"1");
        assert_eq!(tx.commit().await, Err(changed));
        assert_eq!(tx.on_error(changed).await, Ok(()));
        let tx = db.create_transaction().expect("a transaction");
        let watch = tx.watch(b"k");
        tx.commit().await.expect("a read-only commit");
        assert_eq!(watch.await, Err(changed));
        assert_eq!(tx.on_error(changed).await, Ok(()), "a watch ended with it");
        world.faults.switch(false);
        for prepare in [SimTransaction::cancel, SimTransaction::reset] {
            let tx = set(&db, b"2");
            tx.set_option(TransactionOption::RetryLimit(0)).expect("an option");
            prepare(&tx);
            assert_eq!(tx.on_error(changed).await, Ok(()), "nothing ended with it");
            assert_eq!(tx.get(b"l", Isolation::Serializable).await, Ok(None));
        }
    });
}

/// The client closes its old connections before it opens new ones.
#[test]
fn a_commit_that_ended_with_1039_lands_before_a_later_one_or_never() {
    with(&[Family::ClusterVersionChanged], |world, db| async move {
        let mut landed = 0;
        for n in 0..40u8 {
            world.faults.switch(true);
            let tx = db.create_transaction().expect("a transaction");
            tx.set(b"k", &[n]);
            tx.set(b"landed", &[n]);
            assert_eq!(tx.commit().await, Err(Error::CLUSTER_VERSION_CHANGED));
            world.faults.switch(false);
            set(&db, b"later").commit().await.expect("a calm commit");
            world.clock.sleep(6 * SECOND).await;
            assert_eq!(value(&db).await.as_deref(), Some(&b"later"[..]), "{n}");
            let tx = db.create_transaction().expect("a transaction");
            let last = tx.get(b"landed", Isolation::Snapshot).await.expect("a calm read");
            landed += usize::from(last.as_deref() == Some(&[n][..]));
        }
        assert!((8..32).contains(&landed), "{landed} of 40");
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
fn a_key_of_the_greatest_length_can_be_cleared() {
    with(&[], |_, db| async move {
        // Eight bytes more than a key that may be written: the prefix of a tenant.
        for (length, conflicts) in [(10_008, 1), (10_009, 0)] {
            let tx = db.create_transaction().expect("a transaction");
            tx.clear(&vec![b'x'; length]);
            assert_eq!(listed(&tx, WRITE_CONFLICTS).await.len(), conflicts, "{length} bytes");
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
    // What makes sure of it is a second transaction that writes, as far as conflicts are concerned, the same
    // key.
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
