//! Staged queues.

use crate::{Layer, calls::Calls, session, space, written};
use shaketable_layers::{
    queue::ItemId,
    staged_queue::{Error, Request, RequestState, Row, StagedQueue},
};
use shaketable_sim::client::{SimDatabase, SimTransaction};
use shaketable_tx::{
    Isolation::{Serializable, Snapshot},
    RangeOption, Transaction,
    once::Outcome,
};
use std::time::Duration;

pub struct StagedQueues(StagedQueue);

const PATIENCE: Duration = Duration::from_secs(1);

impl StagedQueues {
    /// A current or former request.
    async fn request(&self, tx: &SimTransaction) -> Result<Option<Request>, Error> {
        let StagedQueues(queue) = self;
        let rows = tx.get_range_all(RangeOption::from(queue.subspace().range()), Serializable).await?;
        // Rows that are not of this queue are left to other calls to find.
        Ok(rows.iter().find_map(|row| match queue.row(row) {
            Ok(Row::Request(request)) => Some(request),
            _ => None,
        }))
    }
}

impl Layer for StagedQueues {
    const NAME: &'static str = "staged_queue";

    fn new() -> StagedQueues {
        StagedQueues(StagedQueue::new(space()))
    }

    async fn write(&self, db: &SimDatabase) {
        let StagedQueues(queue) = self;
        let ids = (0..7u8).map(|id| ItemId([id; 16]));
        for (at, id) in ids.enumerate() {
            written(db, |tx| async move {
                match at {
                    0 | 3.. => queue.enqueue(&tx, id, b"value").await.map(drop),
                    _ => queue.register(&tx, id).await.map(drop),
                }
            })
            .await;
            if at == 2 {
                // One of two requests is given the only item, the other none.
                written(db, |tx| async move { queue.fulfil(&tx, 9).await }).await;
            }
        }
        for id in [[7; 16], [8; 16]] {
            written(db, |tx| async move { queue.register(&tx, ItemId(id)).await }).await;
        }
    }

    async fn call(&self, calls: &mut Calls) {
        let StagedQueues(queue) = self;
        let new = ItemId([9; 16]);
        calls.tx("StagedQueue::enqueue", |tx| async move { queue.enqueue(&tx, new, b"new").await }).await;
        calls.tx("StagedQueue::take", |tx| async move { queue.take(&tx, new).await }).await;
        calls.tx("StagedQueue::register", |tx| async move { queue.register(&tx, new).await }).await;
        for most in [1, 100] {
            calls.tx("StagedQueue::fulfil", |tx| async move { queue.fulfil(&tx, most).await }).await;
        }
        let turn = |tx| async move {
            let Some(request) = self.request(&tx).await? else { return Ok(None) };
            Ok::<_, Error>(Some(queue.state(&tx, request, Serializable).await?))
        };
        calls.tx("StagedQueue::state", turn).await;
        let collect = |tx| async move {
            let Some(request) = self.request(&tx).await? else { return Ok(None) };
            queue.fulfil(&tx, 100).await?;
            Ok::<_, Error>(Some(queue.collect(&tx, request).await?))
        };
        calls.tx("StagedQueue::collect", collect).await;
        let leave = |tx| async move {
            let Some(request) = self.request(&tx).await? else { return Ok(None) };
            Ok::<_, Error>(Some(queue.leave(&tx, request).await?))
        };
        calls.tx("StagedQueue::leave", leave).await;
        let reclaim = |tx| async move {
            for ticket in queue.parked(&tx, Serializable).await? {
                queue.reclaim(&tx, ticket).await?;
            }
            // An item that was returned can be read.
            queue.peek(&tx, Serializable).await
        };
        calls.tx("StagedQueue::reclaim", reclaim).await;
        calls.tx("StagedQueue::parked", |tx| async move { queue.parked(&tx, Snapshot).await }).await;
        calls.tx("StagedQueue::peek", |tx| async move { queue.peek(&tx, Snapshot).await }).await;
        calls.tx("StagedQueue::len", |tx| async move { queue.len(&tx, Snapshot).await }).await;
        let rows = |tx: SimTransaction| async move {
            let rows = tx.get_range_all(RangeOption::from(queue.subspace().range()), Snapshot).await?;
            rows.iter().map(|row| queue.row(row)).collect::<Result<Vec<_>, _>>()
        };
        calls.tx("StagedQueue::row", rows).await;

        let db = &calls.db.clone();
        let mut session = session(db).await;
        calls
            .once("StagedQueue::dequeue_within", async { queue.dequeue_within(&mut session, PATIENCE).await })
            .await;
        let given_up = async {
            let Outcome::Applied(RequestState::Waiting(request)) = queue.start_dequeue(&mut session).await
            else {
                return Ok(None);
            };
            Ok::<_, Error>(Some(queue.give_up(&mut session, request).await?))
        };
        calls.call("StagedQueue::give_up", given_up).await;
        let taken = async {
            let Outcome::Applied(RequestState::Waiting(request)) = queue.start_dequeue(&mut session).await
            else {
                return Ok(None);
            };
            Ok::<_, Error>(Some(queue.wait(&mut session, request).await?))
        };
        calls.call("StagedQueue::wait", taken).await;
        calls.once("StagedQueue::dequeue", async { queue.dequeue(&mut session).await }).await;
        calls
            .once("StagedQueue::enqueue_once", async { queue.enqueue_once(&mut session, b"new").await })
            .await;
        calls.run("StagedQueue::fulfil_all", async { queue.fulfil_all(db).await }).await;
        calls
            .run("StagedQueue::reclaim_unchanged", async { queue.reclaim_unchanged(db, PATIENCE).await })
            .await;
    }
}
