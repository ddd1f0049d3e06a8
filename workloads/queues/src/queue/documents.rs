//! The recipe for queues: its keys, and its order.

use crate::shared::cluster::{applied, keys, on_cluster, session};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use shaketable_layers::queue::{ItemId, Order, Queue};
use shaketable_tx::Database;

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
