//! Priority queues.

use crate::{Layer, calls::Calls, space, written};
use shaketable_layers::{
    priority_queue::{End, Error, Place, PriorityQueue},
    queue::ItemId,
};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::Isolation::{Serializable, Snapshot};

pub struct PriorityQueues(PriorityQueue);

const PRIORITIES: [i64; 6] = [0, -5, 3, 300, i64::MAX, i64::MIN];

impl Layer for PriorityQueues {
    const NAME: &'static str = "priority_queue";

    fn new() -> PriorityQueues {
        PriorityQueues(PriorityQueue::new(space()))
    }

    async fn write(&self, db: &SimDatabase) {
        let PriorityQueues(queue) = self;
        for id in 0..9 {
            let priority = PRIORITIES[usize::from(id % 3)];
            written(db, |tx| async move { queue.push(&tx, ItemId([id; 16]), priority, b"value").await })
                .await;
        }
    }

    async fn call(&self, calls: &mut Calls) {
        let PriorityQueues(queue) = self;
        for priority in PRIORITIES {
            let push = |tx| async move { queue.push(&tx, ItemId([9; 16]), priority, b"new").await };
            calls.tx("PriorityQueue::push", push).await;
            let change = |tx| async move {
                for item in queue.items(&tx, Serializable).await? {
                    queue.change(&tx, item.place, priority).await?;
                }
                Ok::<_, Error>(())
            };
            calls.tx("PriorityQueue::change", change).await;
        }
        calls.tx("PriorityQueue::pop_min", |tx| async move { queue.pop_min(&tx).await }).await;
        calls.tx("PriorityQueue::pop_max", |tx| async move { queue.pop_max(&tx).await }).await;
        calls
            .tx("PriorityQueue::peek_min", |tx| async move { queue.peek_min(&tx, Serializable).await })
            .await;
        calls.tx("PriorityQueue::peek_max", |tx| async move { queue.peek_max(&tx, Snapshot).await }).await;
        calls
            .tx("PriorityQueue::is_empty", |tx| async move { queue.is_empty(&tx, Serializable).await })
            .await;
        calls.tx("PriorityQueue::len", |tx| async move { queue.len(&tx, Serializable).await }).await;
        calls.tx("PriorityQueue::items", |tx| async move { queue.items(&tx, Serializable).await }).await;
        calls
            .pages("PriorityQueue::items_page", async |tx, after: Option<Place>| {
                let page = queue.items_page(&tx, after, 1, Serializable).await;
                page.map(|page| page.last().map(|item| item.place))
            })
            .await;
        for end in [End::Min, End::Max] {
            calls
                .tx("PriorityQueue::peek", |tx| async move { queue.peek(&tx, end, Serializable).await })
                .await;
            let pop_all = |tx| async move {
                // Each pop removes an item.
                let mut popped = Vec::new();
                while let Some(item) = queue.pop(&tx, end).await? {
                    assert!(popped.len() < 100, "{popped:?}");
                    popped.push(item);
                }
                Ok::<_, Error>(popped)
            };
            calls.tx("PriorityQueue::pop", pop_all).await;
        }
    }
}
