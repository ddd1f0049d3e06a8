//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{MOST, below, fill, refused, space},
    cluster::on_cluster,
};
use shaketable_layers::log::Log;
use shaketable_tx::Isolation::Serializable;
use std::time::Duration;

shared::refused_calls! {
    [below(0)],
    "scan": |tx| Log::new(space()).scan(&tx, None, MOST, Serializable),
}

#[test]
fn a_tail_that_asks_for_more_than_it_can_have_does_not_wait_for_it() {
    on_cluster(|db| async move {
        fill(&db, &below(0), 0..102).await;
        let tail = Log::new(space()).tail(&db, None, MOST, Duration::from_secs(1)).await;
        assert_eq!(tail.map(drop).map_err(|e| (e.error.to_string(), e.attempts)), refused());
    });
}
