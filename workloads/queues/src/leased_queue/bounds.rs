//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{MOST, below, fill, refused, space},
    cluster::on_cluster,
};
use shaketable_layers::{
    leased_queue::{Error, LeasedQueue},
    queue::ItemId,
};
use shaketable_tx::{Database, Isolation::Serializable};
use std::time::Duration;

shared::refused_calls! {
    [below(0), below(2)],
    "len": |tx| LeasedQueue::new(space()).len(&tx, MOST, Serializable),
    "leases": |tx| LeasedQueue::new(space()).leases(&tx, None, MOST, Serializable),
}

#[test]
fn both_halves_of_a_length_are_counted_together() {
    on_cluster(|db| async move {
        let db = &db;
        // Sixty of a hundred rows on either side.
        for below in [below(0), below(1)] {
            fill(db, &below, 0..60).await;
        }
        let len = async |most| {
            shared::ended!(db, |tx| async { LeasedQueue::new(space()).len(&tx, most, Serializable).await })
        };
        assert_eq!(len(49).await, Ok((49, 49)));
        assert_eq!(len(60).await.map(drop), refused());
    });
}

#[test]
fn every_lease_that_ends_is_counted() {
    on_cluster(|db| async move {
        let (queue, db) = (&LeasedQueue::new(space()), &db);
        let enqueued = db.run(|tx, _| async move {
            for n in 0..3 {
                queue.enqueue(&tx, ItemId([n; 16]), b"").await?;
            }
            Ok::<_, Error>(())
        });
        enqueued.await.expect("three items");
        for _ in 0..3 {
            db.run(|tx, _| async move { queue.claim(&tx).await }).await.expect("a claim");
        }
        for ended in [3, 0] {
            assert_eq!(queue.expire_unchanged(db, Duration::from_secs(1), 2).await, Ok(ended));
        }
    });
}
