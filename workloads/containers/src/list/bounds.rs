//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{below, refused, space},
    cluster::on_cluster,
};
use shaketable_layers::{
    id::Id,
    list::{Error, List},
};
use shaketable_tx::Isolation::Serializable;

shared::refused_calls! {
    [below(("node", "n"))],
    "attributes": |tx| async {
        let (list, node) = (List::new(space()), Id::from("n"));
        list.push_front(&tx, &node, b"").await?;
        list.attributes(&tx, &node, Serializable).await
    },
}

#[test]
fn a_walk_along_large_values_is_refused_and_goes_on_in_steps() {
    on_cluster(|db| async move {
        let (list, db) = (&List::new(space()), &db);
        for part in (0..102).collect::<Vec<i64>>().chunks(50) {
            let pushed = shared::ended!(db, |tx| async {
                for n in part {
                    list.push_front(&tx, &Id::from(-*n), &[7; 99_000]).await?;
                }
                Ok::<_, Error>(())
            });
            assert_eq!(pushed, Ok(()));
        }
        let walk = async |after: Option<i64>, limit| {
            let after = &after.map(Id::from);
            shared::ended!(db, |tx| list.walk(&tx, after.as_ref(), limit, Serializable))
                .map(|nodes| nodes.len())
        };
        assert_eq!(walk(None, 102).await.map(drop), refused());
        assert_eq!(walk(None, 100).await, Ok(100));
        assert_eq!(walk(Some(-2), 102).await, Ok(2));
    });
}
