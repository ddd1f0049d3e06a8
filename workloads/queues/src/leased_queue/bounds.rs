//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{MOST, below, fill, refused, space},
    cluster::on_cluster,
};
use shaketable_layers::leased_queue::LeasedQueue;
use shaketable_tx::Isolation::Serializable;

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
