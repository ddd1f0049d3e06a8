//! Leased queues.

use crate::{Layer, calls::Calls, session, space, written};
use shaketable_layers::{
    leased_queue::{Error, Hold, LeasedQueue, Row},
    queue::{ItemId, Position},
};
use shaketable_sim::client::{SimDatabase, SimTransaction};
use shaketable_tx::{
    Isolation::{Serializable, Snapshot},
    RangeOption, Transaction,
};
use std::time::Duration;

pub struct LeasedQueues(LeasedQueue);

impl LeasedQueues {
    /// The lease of the first item with a held lease.
    async fn first(&self, tx: &SimTransaction) -> Result<Hold, Error> {
        let leases = self.0.leases(tx, None, 100, Serializable).await?;
        let no_item = Position::Commit { stamp: [1; 10], rank: 2, id: ItemId([3; 16]) };
        Ok(leases.held.first().map_or(Hold { position: no_item, token: 1 }, |lease| lease.hold))
    }
}

impl Layer for LeasedQueues {
    const NAME: &'static str = "leased_queue";

    fn new() -> LeasedQueues {
        LeasedQueues(LeasedQueue::new(space()))
    }

    async fn write(&self, db: &SimDatabase) {
        let LeasedQueues(queue) = self;
        for id in 0..4 {
            written(db, |tx| async move { queue.enqueue(&tx, ItemId([id; 16]), b"value").await }).await;
        }
        for _ in 0..2 {
            written(db, |tx| async move { queue.claim(&tx).await }).await;
        }
        written(db, |tx| async move { queue.release(&tx, self.first(&tx).await?).await }).await;
        written(db, |tx| async move { queue.renew(&tx, self.first(&tx).await?).await }).await;
    }

    async fn call(&self, calls: &mut Calls) {
        let LeasedQueues(queue) = self;
        let enqueue = |tx| async move { queue.enqueue(&tx, ItemId([9; 16]), b"new").await };
        calls.tx("LeasedQueue::enqueue", enqueue).await;
        calls.tx("LeasedQueue::claim", |tx| async move { queue.claim(&tx).await }).await;
        let renew = |tx| async move {
            let before = queue.leases(&tx, None, 100, Serializable).await?.held.first().copied();
            let renewed = queue.renew(&tx, self.first(&tx).await?).await?;
            assert!(before.is_some_and(|before| renewed > before.revision), "{renewed} after {before:?}");
            Ok::<_, Error>(renewed)
        };
        calls.tx("LeasedQueue::renew", renew).await;
        let acknowledge = |tx| async move { queue.acknowledge(&tx, self.first(&tx).await?).await };
        calls.tx("LeasedQueue::acknowledge", acknowledge).await;
        let release = |tx| async move { queue.release(&tx, self.first(&tx).await?).await };
        calls.tx("LeasedQueue::release", release).await;
        let expire = |tx| async move {
            for lease in queue.leases(&tx, None, 100, Serializable).await?.held {
                queue.expire(&tx, lease).await?;
            }
            Ok::<_, Error>(())
        };
        calls.tx("LeasedQueue::expire", expire).await;
        calls.tx("LeasedQueue::len", |tx| async move { queue.len(&tx, 100, Snapshot).await }).await;
        let rows = |tx: SimTransaction| async move {
            let rows = tx.get_range_all(RangeOption::from(queue.subspace().range()), Snapshot).await?;
            rows.iter().map(|row| queue.row(row)).collect::<Result<Vec<_>, _>>()
        };
        calls.tx("LeasedQueue::row", rows).await;
        calls
            .pages("LeasedQueue::leases", async |tx, after: Option<Position>| {
                queue.leases(&tx, after, 1, Serializable).await.map(|page| page.next)
            })
            .await;
        let claim_all = |tx: SimTransaction| async move {
            let rows = tx.get_range_all(RangeOption::from(queue.subspace().range()), Snapshot).await?;
            // Each claim removes an item from the waiting ones, and has a unique token.
            let mut claims = Vec::new();
            while let Some(claim) = queue.claim(&tx).await? {
                assert!(claims.len() < 100, "{claims:?}");
                for row in &rows {
                    if let Ok(Row::Lease(lease, _)) = queue.row(row) {
                        assert_ne!(lease.hold, claim.hold);
                    }
                }
                claims.push(claim);
            }
            Ok::<_, Error>(claims)
        };
        calls.tx("LeasedQueue::claim", claim_all).await;
        let db = &calls.db.clone();
        let unchanged = async { queue.expire_unchanged(db, Duration::from_secs(1), 1).await };
        calls.run("LeasedQueue::expire_unchanged", unchanged).await;
        let mut session = session(db).await;
        calls
            .once("LeasedQueue::enqueue_once", async { queue.enqueue_once(&mut session, b"new").await })
            .await;
    }
}
