//! Watches.

use super::*;

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

/// A transaction whose watch was dropped while it reads its key: only the transaction still refers to it.
async fn with_a_dropped_watch(world: &World, db: &SimDatabase) -> SimTransaction {
    let tx = db.create_transaction().expect("a transaction");
    let mut watch = tx.watch(b"k");
    std::future::poll_fn(|cx| {
        assert!(watch.as_mut().poll(cx).is_pending(), "the read takes time");
        std::task::Poll::Ready(())
    })
    .await;
    world.clock.sleep(1).await;
    tx
}

#[test]
fn a_dropped_watch_that_reads_its_key_ends_with_the_reset_and_with_a_write() {
    with(&[], |world, db| async move {
        let tx = with_a_dropped_watch(&world, &db).await;
        tx.reset();
        assert_eq!(tx.get(b"k", Isolation::Snapshot).await, Ok(None));
        let tx = with_a_dropped_watch(&world, &db).await;
        tx.set(b"k", b"v");
        assert_eq!(tx.commit().await, Ok(()));
    });
}
