//! Queues and priority queues: the recipes' keys, and the order that they promise.

use crate::{on_cluster, session};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use shaketable_layers::{
    priority_queue::{End, PriorityQueue},
    queue::{ItemId, Order, Queue},
    staged_queue::{self, StagedQueue},
};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::{
    self as tx, Database, DatabaseOption, Isolation::Serializable, KEY_SIZE_LIMIT, RangeOption, Transaction,
    once::Outcome,
};

fn applied<A, E: std::fmt::Debug>(outcome: Outcome<A, E>) -> A {
    match outcome {
        Outcome::Applied(answer) => answer,
        Outcome::Refused(e) => panic!("{e:?}"),
        Outcome::Unknown(op) => panic!("{op} is unknown"),
    }
}

async fn keys(db: &SimDatabase, of: Subspace) -> Vec<Bytes> {
    let range = &RangeOption::from(of.range());
    let rows = db.run(|tx, _| async move { tx.get_range_all(range.clone(), Serializable).await });
    rows.await.expect("a look").into_iter().map(|row| row.key).collect()
}

#[test]
fn a_queue_is_first_in_first_out_under_index_and_random() {
    on_cluster(|db| async move {
        let (q, mut session) = (Subspace::from("Q"), session(&db).await);
        let queue = &Queue::new(q.clone(), Order::Index);
        for value in ["first", "second", ""] {
            let id = ItemId::draw(db.env());
            let value = value.as_bytes();
            applied(session.apply(|tx| async move { queue.enqueue(&tx, id, value).await }).await);
        }
        let indexes = keys(&db, q.clone()).await.into_iter().map(|key| {
            let (index, random): (i64, TupleBytes<'_>) = q.unpack(&key).expect("the recipe's key");
            assert_eq!(random.len(), 16);
            index
        });
        assert_eq!(indexes.collect::<Vec<_>>(), [1, 2, 3]);
        for value in ["first", "second", ""] {
            let item = applied(session.apply(|tx| async move { queue.dequeue(&tx).await }).await);
            assert_eq!(item.expect("an item").value, value);
        }
        assert_eq!(applied(session.apply(|tx| async move { queue.dequeue(&tx).await }).await), None);
    });
}

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

#[test]
fn count_preserves_insertion_order_within_a_priority_at_both_ends() {
    on_cluster(|db| async move {
        let (p, mut session) = (Subspace::from("P"), session(&db).await);
        let queue = &PriorityQueue::new(p.clone());
        for (value, priority) in [("a", 5), ("b", -1), ("c", 5), ("d", -1), ("e", 0)] {
            let (id, value) = (ItemId::draw(db.env()), value.as_bytes());
            applied(session.apply(|tx| async move { queue.push(&tx, id, priority, value).await }).await);
        }
        let counts = keys(&db, p.clone()).await.into_iter().map(|key| {
            let (priority, count, _): (i64, i64, TupleBytes<'_>) = p.unpack(&key).expect("the recipe's key");
            (priority, count)
        });
        assert_eq!(counts.collect::<Vec<_>>(), [(-1, 0), (-1, 1), (0, 0), (5, 0), (5, 1)]);
        for (end, value) in [(End::Max, "a"), (End::Min, "b"), (End::Max, "c"), (End::Min, "d")] {
            let item = applied(session.apply(|tx| async move { queue.pop(&tx, end).await }).await);
            assert_eq!(item.expect("an item").value, value);
        }
        let last = db.run(|tx, _| async move {
            Ok::<_, shaketable_layers::priority_queue::Error>((
                queue.peek_min(&tx, Serializable).await?,
                queue.peek_max(&tx, Serializable).await?,
            ))
        });
        let (min, max) = last.await.expect("a look");
        assert_eq!(min, max);
        assert_eq!(min.expect("an item").value, "e");
    });
}

/// Registers a request of another client, so that no dequeue is served immediately.
async fn crowded(db: &SimDatabase, queue: &StagedQueue) {
    let id = ItemId::draw(db.env());
    let registered = db.run(|tx, _| async move { queue.register(&tx, id).await });
    registered.await.expect("a request");
}

#[test]
fn a_request_is_given_up_only_so_often() {
    on_cluster(|db| async move {
        let (queue, mut session) = (StagedQueue::new(Subspace::from("S")), session(&db).await);
        crowded(&db, &queue).await;
        let asked = queue.start_dequeue(&mut session).await;
        let Outcome::Applied(staged_queue::RequestState::Waiting(request)) = asked else {
            panic!("{asked:?}")
        };
        // From now on, no transaction can finish.
        db.set_option(DatabaseOption::TransactionTimeout(1)).expect("an option");
        let given_up = queue.give_up(&mut session, request).await;
        assert_eq!(given_up, Err(staged_queue::Error::Fdb(tx::Error::TRANSACTION_TIMED_OUT)));
    });
}

#[test]
fn a_queue_whose_keys_would_be_too_long_refuses_its_items() {
    on_cluster(|db| async move {
        let tx = crate::begin(&db);
        // A position adds about 38 bytes to the subspace, and its queue two.
        let long = StagedQueue::new(Subspace::from_bytes(vec![b'q'; KEY_SIZE_LIMIT - 30]));
        let refused = long.enqueue(&tx, ItemId([1; 16]), b"value").await;
        assert!(matches!(refused, Err(staged_queue::Error::TooLarge(_))), "{refused:?}");
        let longest = StagedQueue::new(Subspace::from_bytes(vec![b'q'; KEY_SIZE_LIMIT - 60]));
        longest.enqueue(&tx, ItemId([1; 16]), b"value").await.expect("it fits");
        tx.commit().await.expect("as the cluster says");
    });
}
