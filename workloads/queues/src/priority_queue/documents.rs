//! The recipe for priority queues: its keys, and its order within a priority.

use crate::shared::cluster::{applied, begin, keys, on_cluster, session};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use shaketable_layers::{
    priority_queue::{End, Error, PriorityQueue},
    queue::ItemId,
};
use shaketable_tx::{Database, Isolation::Serializable, Transaction, TransactionOption};

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
            Ok::<_, Error>((
                queue.peek_min(&tx, Serializable).await?,
                queue.peek_max(&tx, Serializable).await?,
            ))
        });
        let (min, max) = last.await.expect("a look");
        assert_eq!(min, max);
        assert_eq!(min.expect("an item").value, "e");
    });
}

#[test]
fn whose_snapshots_ignore_its_own_writes_pops_one_item_after_the_other() {
    on_cluster(|db| async move {
        let queue = &PriorityQueue::new(Subspace::from("P"));
        let pushed = db.run(|tx, _| async move {
            for (n, priority) in [(1, 7), (2, 7), (3, -1)] {
                queue.push(&tx, ItemId([n; 16]), priority, &[n]).await?;
            }
            Ok::<_, Error>(())
        });
        pushed.await.expect("three items");
        let tx = begin(&db);
        tx.set_option(TransactionOption::SnapshotRywDisable).expect("an option");
        for expected in [Some(1), Some(2), Some(3), None] {
            let popped = queue.pop_max(&tx).await.expect("a look");
            assert_eq!(popped.map(|item| item.value[0]), expected);
        }
    });
}
