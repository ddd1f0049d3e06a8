//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{MOST, below, refused, space},
    cluster::on_cluster,
};
use shaketable_layers::{
    queue::ItemId,
    staged_queue::{Error, StagedQueue},
};
use shaketable_tx::{Database, DatabaseOption, Isolation::Serializable};
use std::time::Duration;

shared::refused_calls! {
    [below(0), below(2)],
    "len": |tx| StagedQueue::new(space()).len(&tx, Serializable),
    "parked": |tx| StagedQueue::new(space()).parked(&tx, Serializable),
}

#[test]
fn many_large_items_are_handed_out_and_taken_back_a_few_at_a_time() {
    on_cluster(|db| async move {
        let (staged, db) = (&StagedQueue::new(space()), &db);
        db.set_option(DatabaseOption::TransactionRetryLimit(3)).expect("an option");
        let id = |n: u128| ItemId(n.to_be_bytes());
        for part in (0..120).collect::<Vec<u128>>().chunks(40) {
            let enqueued = shared::ended!(db, |tx| async {
                for n in part {
                    staged.enqueue(&tx, id(*n), &[7; 90_000]).await?;
                    staged.register(&tx, id(1_000 + *n)).await?;
                }
                Ok::<_, Error>(())
            });
            assert_eq!(enqueued, Ok(()));
        }
        let mut served = Vec::new();
        while served.iter().sum::<usize>() < 120 {
            served.push(shared::ended!(db, |tx| staged.fulfil(&tx, MOST)).expect("some are served"));
        }
        assert!(served.iter().all(|some| (1..=11).contains(some)), "{served:?}");
        let parked = shared::ended!(db, |tx| staged.parked(&tx, Serializable)).map(drop);
        assert_eq!(parked, refused());
        let back = staged.reclaim_unchanged(db, Duration::from_secs(1)).await;
        assert_eq!(back, Ok(120));
        assert_eq!(shared::ended!(db, |tx| staged.parked(&tx, Serializable)), Ok(Vec::new()));
    });
}

#[test]
fn no_request_is_told_that_there_is_nothing_where_only_a_read_ended() {
    on_cluster(|db| async move {
        let (staged, db) = (&StagedQueue::new(space()), &db);
        for part in (0..250).collect::<Vec<u128>>().chunks(125) {
            let enqueued = shared::ended!(db, |tx| async {
                for n in part {
                    let id = ItemId(n.to_be_bytes());
                    staged.enqueue(&tx, id, &[7; 5_000]).await?;
                    staged.register(&tx, id).await?;
                }
                Ok::<_, Error>(())
            });
            assert_eq!(enqueued, Ok(()));
        }
        let served = shared::ended!(db, |tx| staged.fulfil(&tx, MOST)).expect("some are served");
        assert!(served < 200, "{served} were served");
        // Each of them has an item.
        assert_eq!(shared::ended!(db, |tx| staged.len(&tx, Serializable)), Ok(250 - served));
    });
}
