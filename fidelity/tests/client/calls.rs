//! Calls: how many of them a transaction takes, what it frees, and the order of answers.

use super::*;
use futures::{FutureExt, StreamExt, TryFutureExt, stream::FuturesUnordered};
use shaketable_sim::{
    client::ReadVersions,
    ids::Endpoint,
    judges::{Evidence, Judge, Truth},
};
use shaketable_tx::{ConflictRangeType, StreamingMode};
use std::pin::pin;

/// The number of calls that programs make in one transaction.
const MANY: u32 = 250_000;

/// A transaction that makes one kind of call, with different keys, and commits, or is too large.
fn many(expected: Result<(), Error>, kind: impl Fn(&SimTransaction, &[u8]) + Send + Sync + Clone + 'static) {
    with(&[], move |_, db| {
        let kind = kind.clone();
        async move {
            let tx = db.create_transaction().expect("a transaction");
            tx.set_option(TransactionOption::Timeout(60_000)).expect("an option");
            tx.set(b"k", b"1");
            // In no order.
            (0..MANY)
                .for_each(|n| kind(&tx, &[b"k", &n.wrapping_mul(2_654_435_761).to_be_bytes()[..]].concat()));
            assert_eq!(tx.commit().await, expected);
        }
    });
}

#[test]
fn a_transaction_takes_any_number_of_calls() {
    let large = Err(Error::TRANSACTION_TOO_LARGE);
    many(Ok(()), |tx, _| tx.set(b"k", b"2"));
    many(large, |tx, key| tx.set(key, b"2"));
    many(large, |tx, key| tx.clear(key));
    many(large, |tx, key| tx.clear_range(key, &key_after(key)));
    many(large, |tx, key| tx.atomic_op(key, b"1", MutationType::Add));
    many(large, |tx, key| {
        let key = [key, &[0; 10], &5u32.to_le_bytes()].concat();
        tx.atomic_op(&key, b"", MutationType::SetVersionstampedKey);
    });
    for kind in [ConflictRangeType::Read, ConflictRangeType::Write] {
        many(Ok(()), move |tx, key| tx.add_conflict_key(key, kind).expect("a legal key"));
    }
    many(Ok(()), |tx, _| {
        let read = tx.get(b"k", Isolation::Serializable).now_or_never();
        assert!(read.is_some_and(|read| read.is_ok()), "it is its own write");
    });
}

#[test]
#[should_panic(expected = "it loops without waiting")]
fn a_loop_of_calls_that_never_waits_is_stopped() {
    with(&[], |_, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        loop {
            tx.set(b"k", b"");
        }
    });
}

#[test]
#[should_panic(expected = "it loops without end")]
fn a_loop_of_calls_that_waits_is_stopped() {
    with(&[], |world, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        loop {
            (0..100_000)
                .for_each(|_| tx.add_conflict_range(b"k", b"k", ConflictRangeType::Read).expect("no keys"));
            world.clock.sleep(1).await;
        }
    });
}

/// The bytes that the history keeps of writes.
fn kept(world: &World) -> usize {
    let written = |call: &Call| if let Call::Write(mutation) = call { mutation.bytes() } else { 0 };
    attempts(world).iter().flat_map(|attempt| &attempt.calls).map(written).sum()
}

/// A transaction that will not be committed is nothing to any judge but for its reads.
#[test]
fn transactions_that_are_not_committed_free_their_writes() {
    with(&[], |world, db| async move {
        let fill = |tx: &SimTransaction| (0..20u8).for_each(|n| tx.set(&[n], &[n; 100_000]));
        let begin = || db.create_transaction().expect("a transaction");
        for end in [SimTransaction::reset, SimTransaction::cancel] {
            let tx = begin();
            fill(&tx);
            end(&tx);
        }
        fill(&begin());
        let tx = begin();
        tx.set_option(TransactionOption::SizeLimit(1_000)).expect("an option");
        fill(&tx);
        assert_eq!(tx.commit().await, Err(Error::TRANSACTION_TOO_LARGE));
        assert_eq!(kept(&world), 0);
        // A read that follows is judged by what was written before it.
        let tx = begin();
        fill(&tx);
        tx.get(b"a", Isolation::Snapshot).await.expect("a calm read");
        fill(&tx);
        tx.reset();
        assert_eq!(kept(&world), 2_000_020);
        let tx = begin();
        tx.get(b"a", Isolation::Snapshot).await.expect("a calm read");
        (0..6).for_each(|_| fill(&tx));
        tx.get(b"b", Isolation::Snapshot).await.expect("a calm read");
        tx.reset();
        assert_eq!(kept(&world), 2_000_020, "more than any transaction may write");
        let last = attempts(&world).pop().expect("an attempt");
        assert_eq!(last.calls.len(), 1, "its first read");
        set(&db, &[1; 90_000]).commit().await.expect("a calm commit");
        assert_eq!(kept(&world), 2_000_020 + 90_001);
    });
}

/// The order in which a versionstamp and its commit are answered to tasks of their own.
#[test]
fn a_versionstamp_is_told_before_its_commit() {
    with(&[], |world, db| async move {
        for n in 0..200u32 {
            let tx = set(&db, &n.to_be_bytes());
            let told = Arc::new(Mutex::new(Vec::new()));
            let (first, second) = (told.clone(), told.clone());
            let (stamp, commit) = (tx.get_versionstamp(), tx.commit());
            let stamped = rt::spawn_task(async move {
                let answer = stamp.await;
                first.lock().push(("stamp", answer.is_ok()));
            });
            let committed = rt::spawn_task(async move {
                let answer = commit.await;
                second.lock().push(("commit", answer.is_ok()));
            });
            while told.lock().len() < 2 {
                world.clock.sleep(MILLISECOND).await;
            }
            assert_eq!(*told.lock(), [("stamp", true), ("commit", true)]);
            drop((stamped, committed));
        }
    });
}

/// Waiting for a versionstamp without waiting for it must not hold up the commit.
#[test]
fn a_versionstamp_that_nobody_receives_delays_no_commit() {
    with(&[], |world, db| async move {
        let tx = set(&db, b"1");
        let mut stamp = tx.get_versionstamp();
        assert!((&mut stamp).now_or_never().is_none());
        let began = world.clock.now();
        tx.commit().await.expect("a calm commit");
        assert!(world.clock.now() - began < 20 * MILLISECOND);
        assert!(stamp.now_or_never().is_some_and(|stamp| stamp.is_ok()));
    });
}

#[test]
fn answers_of_one_task_come_in_the_same_order() {
    with(&[], |_, db| async move {
        let tx = set(&db, b"1");
        let stamp = tx.get_versionstamp().map_ok(|_| "stamp").boxed();
        let commit = tx.commit().map_ok(|()| "commit").boxed();
        let answers: FuturesUnordered<_> = [stamp, commit].into_iter().collect();
        let order: Vec<_> = answers.map(|answer| answer.expect("a calm commit")).collect().await;
        assert_eq!(order, ["stamp", "commit"]);
    });
}

#[test]
fn the_databases_of_a_process_share_the_cached_read_version() {
    with(&[], |world, db| async move {
        let controller = world.machines(Class::Controller)[0];
        let controller: Endpoint = world.address(controller).expect("the controller's address");
        let versions = ReadVersions::default();
        let open =
            || SimDatabase::of_process(world.clone(), db.node(), ClientId(1), controller, versions.clone());
        let (one, two) = (open(), open());
        for n in 0..20u8 {
            let tx = set(&one, &[n]);
            tx.commit().await.expect("a calm commit");
            let tx = two.create_transaction().expect("a transaction");
            tx.set_option(TransactionOption::UseGrvCache).expect("the option");
            assert_eq!(tx.get(b"k", Isolation::Snapshot).await, Ok(Some(Bytes::copy_from_slice(&[n]))));
        }
    });
}

/// A range over own writes is read in several steps. One that is in flight at `on_error` goes on during the
/// backoff, and asks for the read version of the next attempt, also if the application has dropped it.
#[test]
fn a_read_in_flight_gets_the_next_attempt_an_old_read_version() {
    for drops in [false, true] {
        with(&[], move |world, db| async move {
            let mut older = [0, 0];
            for round in 0..20 {
                let is_read = round % 2 == 0;
                let tx = db.create_transaction().expect("a transaction");
                tx.get_read_version().await.expect("a version");
                (0..200).step_by(2).for_each(|n| tx.set(format!("k{n:04}").as_bytes(), b"own"));
                let range =
                    RangeOption { mode: StreamingMode::Exact, ..RangeOption::new("k", "l").limit(500) };
                let read = is_read.then(|| tx.get_range(&range, 1, Isolation::Snapshot));
                let mut read = read.map(Box::pin);
                if let Some(read) = &mut read {
                    assert!(futures::poll!(read).is_pending());
                }
                if drops {
                    read = None;
                }
                let retried = async {
                    let read = async {
                        // It may end before the backoff does.
                        if let Some(read) = read {
                            drop(read.await);
                        }
                    };
                    let (retried, ()) =
                        futures::future::join(tx.on_error(Error::TRANSACTION_TOO_OLD), read).await;
                    retried.expect("it is retried");
                };
                let mut acknowledged = 0;
                let mut retried = pin!(retried);
                while futures::poll!(&mut retried).is_pending() {
                    let other = set(&db, b"1");
                    other.commit().await.expect("a calm commit");
                    acknowledged = other.get_committed_version().expect("a version");
                }
                let next = tx.get_read_version().await.expect("a version");
                older[usize::from(is_read)] += usize::from(next < acknowledged);
                tx.reset();
            }
            assert!(older[0] == 0 && older[1] == 10, "{older:?} of 10, drops {drops}");
            let history = world.history.lock();
            let truth = Truth::of(&history);
            let evidence = Evidence { history: &history, truth: &truth, replicas: &[] };
            let judged = Judge::RealTime.judge(&evidence).map_err(|objection| objection.message);
            assert_eq!(judged, Ok(()));
        });
    }
}

/// As in FoundationDB's client: the actor that backs off is cancelled, and it cancels the transaction.
#[test]
fn a_dropped_on_error_cancels_the_transaction() {
    with(&[], |_, db| async move {
        let tx = set(&db, b"1");
        let mut retried = Box::pin(tx.on_error(Error::NOT_COMMITTED));
        assert!(futures::poll!(&mut retried).is_pending());
        drop(retried);
        assert_eq!(tx.commit().await, Err(Error::TRANSACTION_CANCELLED));
        tx.reset();
        tx.set(b"k", b"2");
        assert_eq!(tx.commit().await, Ok(()));
    });
}
