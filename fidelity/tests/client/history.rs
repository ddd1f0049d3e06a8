//! What of an attempt is recorded in the history.

use super::*;

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
fn reads_at_once_are_one_round_trip_and_cached_reads_are_none() {
    with(&[], |world, db| async move {
        let get = |tx: &SimTransaction, key: &'static [u8]| tx.get(key, Isolation::Serializable);
        let tx = db.create_transaction().expect("a transaction");
        let at_once = futures::future::try_join(get(&tx, b"a"), get(&tx, b"b"));
        at_once.await.expect("two reads");
        get(&tx, b"a").await.expect("a cached read");
        get(&tx, b"c").await.expect("a read after them");
        let range = RangeOption::new(&b"d"[..], &b"e"[..]);
        tx.get_range(&range, 1, Isolation::Snapshot).await.expect("a range after it");
        let _watch = tx.watch(b"a");
        tx.commit().await.expect("a read-only commit");
        let attempts = attempts(&world);
        let [attempt] = &attempts[..] else { panic!("one attempt: {attempts:?}") };
        assert_eq!((attempt.round_trips, attempt.watches().count()), (3, 1));
    });
}
