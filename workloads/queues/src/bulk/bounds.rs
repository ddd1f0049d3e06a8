//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{MOST, below, fill, refused, space},
    cluster::on_cluster,
};
use foundationdb_tuple::Bytes;
use shaketable_layers::bulk::{BuildId, Error, Workspace};
use shaketable_tx::{Database, DatabaseOption, Isolation::Serializable, Transaction};

shared::refused_calls! {
    [below((1,))],
    "observe": |tx| async { Workspace::new(space())?.observe(&tx, None, MOST).await },
}

#[test]
fn builds_under_way_are_observed_by_thousands_and_more_are_refused() {
    on_cluster(|db| async move {
        let workspace = &Workspace::new(space()).expect("a short prefix");
        let build = |n: u128| BuildId(n.to_be_bytes());
        for part in (0..10_000).collect::<Vec<u128>>().chunks(1_000) {
            let begun = shared::ended!(db, |tx| async {
                for n in part {
                    workspace.begin(&tx, build(*n)).await?;
                }
                Ok::<_, Error>(())
            });
            assert_eq!(begun, Ok(()));
        }
        db.set_option(DatabaseOption::TransactionRetryLimit(0)).expect("an option");
        let observe = async |most| shared::ended!(db, |tx| workspace.observe(&tx, None, most));
        assert_eq!(observe(9_000).await.map(|builds| builds.len()), Ok(9_000));
        assert_eq!(observe(10_000).await.map(drop), refused());
    });
}

#[test]
fn what_goes_on_in_batches_takes_fewer_rows_where_they_are_large() {
    on_cluster(|db| async move {
        let workspace = &Workspace::new(space()).expect("a short prefix");
        let build = BuildId([9; 16]);
        let begun = shared::ended!(db, |tx| async {
            workspace.begin(&tx, build).await?;
            workspace.discard(&tx, build).await
        });
        assert_eq!(begun, Ok(true));
        let data = below((2, Bytes::from(&build.0[..])));
        fill(&db, &data, 0..150).await;
        let batch = shared::ended!(db, |tx| workspace.clear_retired(&tx, MOST)).expect("a batch");
        assert!((100..110).contains(&batch.rows) && batch.more, "{batch:?}");
        let rest = workspace.clear_all_retired(&db, MOST).await;
        assert_eq!(rest, Ok(150 - batch.rows));
        let left =
            db.run(|tx, _| async move { tx.get_range_all(space().range().into(), Serializable).await });
        assert_eq!(left.await, Ok(Vec::new()));
    });
}
