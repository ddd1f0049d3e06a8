//! The data modeling guide, "Indirection": a singly linked list.

use crate::shared::cluster::{begin, on_cluster, session};
use foundationdb_tuple::{Subspace, pack};
use shaketable_layers::{
    id::Id,
    list::{Error, List, MAX_WALK},
};
use shaketable_tx::{
    self as tx,
    Isolation::Serializable,
    Transaction, Tx,
    once::Outcome::{Applied, Refused},
};

/// Without a prefix: its keys are those printed in the guide, `("node", nodeID, attribute)`.
fn list() -> List {
    List::new(Subspace::all())
}

fn ids<const N: usize>(names: [&str; N]) -> Vec<Id> {
    names.map(Id::from).into()
}

async fn walk(tx: &Tx) -> Vec<Id> {
    let nodes = list().walk(tx, None, 100, Serializable).await.expect("a list");
    nodes.into_iter().map(|node| node.id).collect()
}

/// The nodes a, b and c, of which b has an attribute.
async fn three(tx: &Tx) -> Result<(), Error> {
    list().push_front(tx, &"a".into(), b"").await?;
    list().insert_after(tx, &"a".into(), &"c".into(), b"").await?;
    list().insert_after(tx, &"a".into(), &"b".into(), b"").await?;
    list().set_attribute(tx, &"b".into(), "color", b"red").await
}

#[test]
fn remove_next_node_links_over_the_node_and_clears_everything_about_it() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        three(&tx).await.unwrap();
        assert_eq!(walk(&tx).await, ids(["a", "b", "c"]));
        let next = pack(&("node", "a", "next"));
        assert_eq!(tx.get(&next, Serializable).await.unwrap().as_deref(), Some(&pack(&"b")[..]));
        assert_eq!(list().remove_next_node(&tx, &"a".into()).await, Ok(Some("b".into())));
        assert_eq!(tx.get(&next, Serializable).await.unwrap().as_deref(), Some(&pack(&"c")[..]));
        for gone in [pack(&("node", "b")), pack(&("node", "b", "next")), pack(&("node", "b", "color"))] {
            assert_eq!(tx.get(&gone, Serializable).await, Ok(None));
        }
        assert_eq!(walk(&tx).await, ids(["a", "c"]));
        tx.commit().await.unwrap();
    });
}

#[test]
fn the_end_is_an_empty_link_or_none() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        three(&tx).await.unwrap();
        let last = pack(&("node", "c", "next"));
        assert_eq!(tx.get(&last, Serializable).await.unwrap().as_deref(), Some(&b""[..]));
        assert_eq!(list().remove_next_node(&tx, &"c".into()).await, Ok(None));
        // Another program has omitted the link.
        tx.clear(&last);
        assert_eq!(list().remove_next_node(&tx, &"c".into()).await, Ok(None));
        assert_eq!(walk(&tx).await, ids(["a", "b", "c"]));
        assert_eq!(list().remove_next_node(&tx, &"b".into()).await, Ok(Some("c".into())));
        assert_eq!(walk(&tx).await, ids(["a", "b"]));
    });
}

#[test]
fn the_structure_is_maintained_when_clients_modify_it_at_once() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        three(&tx).await.unwrap();
        tx.commit().await.unwrap();
        // One client removes b, after a; the other removes c, after b.
        let (one, other) = (begin(&db), begin(&db));
        assert_eq!(list().remove_next_node(&one, &"a".into()).await, Ok(Some("b".into())));
        assert_eq!(list().remove_next_node(&other, &"b".into()).await, Ok(Some("c".into())));
        assert_eq!(one.commit().await, Ok(()));
        assert_eq!(other.commit().await, Err(tx::Error::NOT_COMMITTED));
        assert_eq!(other.on_error(tx::Error::NOT_COMMITTED).await, Ok(()));
        let gone = list().remove_next_node(&other, &"b".into()).await;
        assert_eq!(gone, Err(Error::NoSuchNode("b".into())));
        assert_eq!(walk(&begin(&db)).await, ids(["a", "c"]));
    });
}

#[test]
fn a_removal_that_names_the_node_removes_no_second_one() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        three(&tx).await.unwrap();
        let (node, b) = (Id::from("a"), Id::from("b"));
        assert_eq!(list().remove_next_node_if(&tx, &node, Some(&b)).await, Ok(()));
        let again = list().remove_next_node_if(&tx, &node, Some(&b)).await;
        assert_eq!(again, Err(Error::NextChanged { node, expected: Some(b), found: Some("c".into()) }));
        assert_eq!(walk(&tx).await, ids(["a", "c"]));
    });
}

#[test]
fn walks_say_what_is_wrong_with_a_list_that_others_wrote() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        three(&tx).await.unwrap();
        tx.set(&pack(&("node", "c", "next")), &pack(&"a"));
        let walked = list().walk(&tx, None, 100, Serializable).await;
        assert_eq!(walked, Err(Error::Cycle("a".into())));
        tx.set(&pack(&("node", "c", "next")), &pack(&"d"));
        let walked = list().walk(&tx, None, 100, Serializable).await;
        assert_eq!(walked, Err(Error::Dangling("d".into())));
        assert_eq!(list().remove_next_node(&tx, &"c".into()).await, Err(Error::Dangling("d".into())));
        let key = pack(&("node", "c", "next"));
        tx.set(&key, b"c");
        let walked = list().walk(&tx, None, 100, Serializable).await;
        assert_eq!(walked, Err(Error::Foreign(key.into())));
    });
}

#[test]
fn a_removal_is_recorded_with_the_node_it_removed() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        three(&tx).await.unwrap();
        tx.commit().await.unwrap();
        let (mut session, a) = (session(&db).await, &Id::from("a"));
        let removed = session.apply(|tx| async move { list().remove_next_node(&tx, a).await }).await;
        assert_eq!(removed, Applied(Some("b".into())));
        let refused = session.apply(|tx| async move {
            list().push_front(&tx, &"z".into(), b"").await?;
            list().push_front(&tx, a, b"").await
        });
        assert_eq!(refused.await, Refused(Error::NodeExists(a.clone())));
        let removed = session.apply(|tx| async move { list().remove_first(&tx).await }).await;
        assert_eq!(removed, Applied(Some("a".into())));
        assert_eq!(walk(&begin(&db)).await, ids(["c"]));
    });
}

#[test]
fn a_walk_that_does_not_end_in_time_is_refused_and_shorter_ones_go_on() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        for n in 0..=MAX_WALK as i64 {
            list().push_front(&tx, &n.into(), b"").await.unwrap();
        }
        let refused = list().walk(&tx, None, usize::MAX, Serializable).await;
        assert_eq!(refused, Err(Error::WalkTooLong(MAX_WALK)));
        let most = list().walk(&tx, None, MAX_WALK, Serializable).await.unwrap();
        assert_eq!((most.len(), &most[0].id), (MAX_WALK, &Id::from(MAX_WALK as i64)));
        let rest = list().walk(&tx, Some(&1.into()), usize::MAX, Serializable).await.unwrap();
        assert_eq!(rest.iter().map(|node| &node.id).collect::<Vec<_>>(), [&Id::from(0)]);
    });
}
