//! Queues in both orders.

use crate::{Layer, calls::Calls, space, written};
use shaketable_layers::queue::{Error, ItemId, Order, Position, Queue};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::Isolation::{Serializable, Snapshot};

pub struct Queues([Queue; 2]);

impl Layer for Queues {
    const NAME: &'static str = "queue";

    fn new() -> Queues {
        let queue = |number: i64, order| Queue::new(space().subspace(&number), order);
        Queues([queue(0, Order::Index), queue(1, Order::Commit)])
    }

    async fn write(&self, db: &SimDatabase) {
        for queue in &self.0 {
            for id in 0..4 {
                written(db, |tx| async move { queue.enqueue(&tx, ItemId([id; 16]), b"value").await }).await;
            }
        }
    }

    async fn call(&self, calls: &mut Calls) {
        for queue in &self.0 {
            let enqueue = |tx| async move { queue.enqueue(&tx, ItemId([9; 16]), b"new").await };
            calls.tx("Queue::enqueue", enqueue).await;
            calls.tx("Queue::dequeue", |tx| async move { queue.dequeue(&tx).await }).await;
            calls.tx("Queue::peek", |tx| async move { queue.peek(&tx, Serializable).await }).await;
            calls.tx("Queue::is_empty", |tx| async move { queue.is_empty(&tx, Snapshot).await }).await;
            calls.tx("Queue::len", |tx| async move { queue.len(&tx, Serializable).await }).await;
            calls.tx("Queue::items", |tx| async move { queue.items(&tx, Snapshot).await }).await;
            calls
                .pages("Queue::items_page", async |tx, after: Option<Position>| {
                    let page = queue.items_page(&tx, after, 1, Serializable).await;
                    page.map(|page| page.last().map(|item| item.position))
                })
                .await;
            let dequeue_all = |tx| async move {
                // Each dequeue removes an item.
                let mut items = Vec::new();
                while let Some(item) = queue.dequeue(&tx).await? {
                    assert!(items.len() < 100, "{items:?}");
                    items.push(item);
                }
                Ok::<_, Error>(items)
            };
            calls.tx("Queue::dequeue", dequeue_all).await;
        }
    }
}
