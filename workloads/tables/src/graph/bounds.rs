//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{MOST, below, refused, space, store},
    cluster::on_cluster,
};
use shaketable_layers::{graph::Graph, id::Id};
use shaketable_tx::{Database, DatabaseOption, Isolation::Serializable};

shared::refused_calls! {
    [below(("u", "friendsWith")), below(("u", "hasFollowed")), below(("u", "followedBy"))],
    "friends": |tx| Graph::new(space()).friends(&tx, &"u".into(), Serializable),
    "friends_page": |tx| Graph::new(space()).friends_page(&tx, &"u".into(), None, MOST, Serializable),
    "friends_of_friends": |tx| Graph::new(space()).friends_of_friends(&tx, &"u".into(), Serializable),
    "following": |tx| Graph::new(space()).following(&tx, &"u".into(), Serializable),
    "followers": |tx| Graph::new(space()).followers(&tx, &"u".into(), Serializable),
    "remove_user": |tx| Graph::new(space()).remove_user(&tx, &"u".into()),
}

#[test]
fn friends_of_more_friends_than_can_be_asked_are_refused() {
    on_cluster(|db| async move {
        let edge = |u: i64, v: i64| (below((u, "friendsWith", v)).into_bytes(), Vec::new());
        store(&db, (0..9_000).flat_map(|n| [edge(-1, n), edge(n, 100_000 + n)])).await;
        let second = async || {
            let (db, user) = (db.clone(), Id::from(-1));
            let user = &user;
            shared::ended!(db, |tx| Graph::new(space()).friends_of_friends(&tx, user, Serializable))
                .map(|users| users.len())
        };
        // Within the lifetime of a transaction.
        db.set_option(DatabaseOption::TransactionRetryLimit(0)).expect("an option");
        assert_eq!(second().await, Ok(9_000));
        store(&db, (9_000..10_000).map(|n| edge(-1, n))).await;
        assert_eq!(second().await.map(drop), refused());
    });
}
