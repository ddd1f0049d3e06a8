//! The recipe for queues of many dequeues: requests that wait, and are served in their order.

use crate::shared::cluster::{applied, begin, keys, on_cluster, session};
use foundationdb_tuple::Subspace;
use shaketable_layers::{
    queue::ItemId,
    staged_queue::{Error, RequestState, StagedQueue},
};
use shaketable_tx::{
    self as tx, Database, DatabaseOption, Db, Isolation::Serializable, KEY_SIZE_LIMIT, Transaction,
    once::Outcome,
};

#[test]
fn a_failed_dequeue_registers_and_is_served_in_its_turn() {
    on_cluster(|db| async move {
        let (queue, mut session) = (StagedQueue::new(Subspace::from("S")), session(&db).await);
        for value in ["first", "second"] {
            applied(queue.enqueue_once(&mut session, value.as_bytes()).await);
        }
        let [first, second] = [1, 2].map(|n| ItemId([n; 16]));
        let queue = &queue;
        let peek = || db.run(|tx, _| async move { queue.peek(&tx, Serializable).await });
        assert_eq!(peek().await.expect("a look").expect("an item").value, "first");
        let early = db.run(|tx, _| async move { queue.register(&tx, first).await });
        early.await.expect("a request");
        // A request is waiting: this one is placed after it, and serves both.
        let late = db.run(|tx, _| async move { queue.take(&tx, second).await });
        late.await.expect("another request");
        assert_eq!(queue.fulfil_all(&db).await, Ok(2));
        let parked = keys(&db, queue.subspace().subspace(&2)).await;
        assert_eq!(parked.len(), 2);
        assert_eq!(peek().await.expect("a look"), None);
        // No result is collected: both items return, in their old order.
        let back = queue.reclaim_unchanged(&db, std::time::Duration::from_secs(1)).await;
        assert_eq!(back, Ok(2));
        for value in ["first", "second"] {
            let item = applied(queue.dequeue(&mut session).await).expect("an item");
            assert_eq!(item.value, value);
        }
        assert_eq!(applied(queue.dequeue(&mut session).await), None);
    });
}

/// Registers a request of another client, so that no dequeue is served immediately.
async fn crowded(db: &Db, queue: &StagedQueue) {
    let id = ItemId::draw(db.env());
    let registered = db.run(|tx, _| async move { queue.register(&tx, id).await });
    registered.await.expect("a request");
}

#[test]
fn a_fulfilment_depends_on_nothing_after_what_it_serves() {
    on_cluster(|db| async move {
        let queue = &StagedQueue::new(Subspace::from("S"));
        let append = async |n: u8| {
            let appended = db.run(|tx, _| async move {
                queue.enqueue(&tx, ItemId([n; 16]), &[n]).await?;
                queue.register(&tx, ItemId([n; 16])).await
            });
            appended.await.expect("an item and a request");
        };
        append(1).await;
        let tx = begin(&db);
        // What the transaction itself appends has no place yet, and there is enough without it.
        queue.enqueue(&tx, ItemId([2; 16]), b"own").await.expect("an item");
        assert_eq!(queue.fulfil(&tx, 9).await, Ok(1));
        append(3).await;
        tx.commit().await.expect("no conflict");
        assert_eq!(queue.fulfil_all(&db).await, Ok(1));
    });
}

#[test]
fn a_request_is_given_up_only_so_often() {
    on_cluster(|db| async move {
        let (queue, mut session) = (StagedQueue::new(Subspace::from("S")), session(&db).await);
        crowded(&db, &queue).await;
        let asked = queue.start_dequeue(&mut session).await;
        let Outcome::Applied(RequestState::Waiting(request)) = asked else { panic!("{asked:?}") };
        // From now on, no transaction can finish.
        db.set_option(DatabaseOption::TransactionTimeout(1)).expect("an option");
        let given_up = queue.give_up(&mut session, request).await;
        assert_eq!(given_up, Err(Error::Fdb(tx::Error::TRANSACTION_TIMED_OUT)));
    });
}

#[test]
fn a_queue_whose_keys_would_be_too_long_refuses_its_items() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        // A position adds about 38 bytes to the subspace, and its queue two.
        let long = StagedQueue::new(Subspace::from_bytes(vec![b'q'; KEY_SIZE_LIMIT - 30]));
        let refused = long.enqueue(&tx, ItemId([1; 16]), b"value").await;
        assert!(matches!(refused, Err(Error::TooLarge(_))), "{refused:?}");
        let longest = StagedQueue::new(Subspace::from_bytes(vec![b'q'; KEY_SIZE_LIMIT - 60]));
        longest.enqueue(&tx, ItemId([1; 16]), b"value").await.expect("it fits");
        tx.commit().await.expect("as the cluster says");
    });
}
