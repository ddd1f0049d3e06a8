//! The data modeling guide, "Graphs": friends, friends of friends, and followers.

use crate::shared::cluster::{begin, on_cluster, session};
use foundationdb_tuple::{Subspace, pack};
use shaketable_layers::{
    graph::{Error, Graph},
    id::Id,
};
use shaketable_tx::{
    Isolation::Serializable,
    Transaction, Tx,
    limits::{READ_LIMIT, TooLarge},
    once::Outcome::{Applied, Refused},
};
use std::collections::BTreeSet;

fn users() -> Graph {
    Graph::new(Subspace::from("users"))
}

fn ids<const N: usize>(names: [&str; N]) -> BTreeSet<Id> {
    names.map(Id::from).into()
}

async fn befriend(tx: &Tx, pairs: &[(&str, &str)]) {
    for (u, v) in pairs {
        users().add_friend(tx, &(*u).into(), &(*v).into()).await.expect("two users");
    }
}

#[test]
fn a_friendship_is_stored_with_both_users() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        befriend(&tx, &[("alice", "bob"), ("alice", "carol")]).await;
        for key in [("users", "alice", "friendsWith", "bob"), ("users", "bob", "friendsWith", "alice")] {
            assert_eq!(tx.get(&pack(&key), Serializable).await.unwrap().as_deref(), Some(&b""[..]));
        }
        assert_eq!(users().friends(&tx, &"alice".into(), Serializable).await, Ok(ids(["bob", "carol"])));
        assert_eq!(users().friends(&tx, &"bob".into(), Serializable).await, Ok(ids(["alice"])));
        users().remove_friend(&tx, &"bob".into(), &"alice".into()).await.unwrap();
        assert_eq!(users().friends(&tx, &"alice".into(), Serializable).await, Ok(ids(["carol"])));
        assert_eq!(users().are_friends(&tx, &"bob".into(), &"alice".into(), Serializable).await, Ok(false));
    });
}

#[test]
fn friends_of_friends_are_second_degree_connections() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        // Bob and Carol are friends of Alice and of each other; Dave is Bob's friend, Erin is Dave's.
        befriend(&tx, &[("alice", "bob"), ("alice", "carol"), ("bob", "carol")]).await;
        befriend(&tx, &[("bob", "dave"), ("dave", "erin")]).await;
        let second = async |user: &str| users().friends_of_friends(&tx, &user.into(), Serializable).await;
        assert_eq!(second("alice").await, Ok(ids(["dave"])));
        assert_eq!(second("bob").await, Ok(ids(["erin"])));
        assert_eq!(second("erin").await, Ok(ids(["bob"])));
        // A user without friends has no friends of friends either.
        assert_eq!(second("frank").await, Ok(ids([])));
    });
}

#[test]
fn whom_a_user_follows_and_who_follows_are_the_same_edges() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        let (alice, bob, carol) = (&"alice".into(), &"bob".into(), &"carol".into());
        for (u, v) in [(alice, bob), (carol, bob), (bob, alice)] {
            users().follow(&tx, u, v).await.unwrap();
        }
        for key in [("users", "alice", "hasFollowed", "bob"), ("users", "bob", "followedBy", "alice")] {
            assert_eq!(tx.get(&pack(&key), Serializable).await.unwrap().as_deref(), Some(&b""[..]));
        }
        assert_eq!(users().following(&tx, alice, Serializable).await, Ok(ids(["bob"])));
        assert_eq!(users().followers(&tx, bob, Serializable).await, Ok(ids(["alice", "carol"])));
        assert_eq!(users().followers(&tx, carol, Serializable).await, Ok(ids([])));
        users().unfollow(&tx, alice, bob).await.unwrap();
        assert_eq!(users().followers(&tx, bob, Serializable).await, Ok(ids(["carol"])));
        assert_eq!(users().follows(&tx, bob, alice, Serializable).await, Ok(true));
        assert_eq!(users().follow(&tx, bob, bob).await, Err(Error::SelfEdge("bob".into())));
    });
}

#[test]
fn a_user_who_leaves_is_nobodys_friend_and_follows_nobody() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        befriend(&tx, &[("alice", "bob"), ("bob", "carol")]).await;
        users().follow(&tx, &"bob".into(), &"carol".into()).await.unwrap();
        users().follow(&tx, &"alice".into(), &"bob".into()).await.unwrap();
        assert_eq!(users().remove_user(&tx, &"bob".into()).await, Ok(4));
        let all = tx.get_range_all(Subspace::from("users").range().into(), Serializable).await;
        assert_eq!(all, Ok(Vec::new()));
    });
}

#[test]
fn a_removal_that_does_not_fit_into_a_transaction_is_refused_before_it_writes() {
    on_cluster(|db| async move {
        let follow = async |from: usize, to: usize| {
            for some in (from..to).collect::<Vec<_>>().chunks(200) {
                let tx = begin(&db);
                for fan in some {
                    let fan = Id::from(format!("{fan}{}", "x".repeat(4_000)));
                    users().follow(&tx, &fan, &"star".into()).await.unwrap();
                }
                tx.commit().await.unwrap();
            }
        };
        follow(0, 640).await;
        let tx = begin(&db);
        let refused = users().remove_user(&tx, &"star".into()).await;
        assert!(matches!(refused, Err(Error::TooLarge(TooLarge::Transaction { .. }))), "{refused:?}");
        let fan = Id::from(format!("7{}", "x".repeat(4_000)));
        assert_eq!(users().follows(&tx, &fan, &"star".into(), Serializable).await, Ok(true));
        assert_eq!(users().remove_user(&tx, &fan).await, Ok(1));
        tx.commit().await.unwrap();
        // Slightly fewer fit, almost to the last byte.
        let tx = begin(&db);
        for fan in 600..640 {
            let fan = Id::from(format!("{fan}{}", "x".repeat(4_000)));
            users().unfollow(&tx, &fan, &"star".into()).await.unwrap();
        }
        tx.commit().await.unwrap();
        let tx = begin(&db);
        assert_eq!(users().remove_user(&tx, &"star".into()).await, Ok(599));
        assert_eq!(tx.commit().await, Ok(()));
    });
}

#[test]
fn edges_come_and_go_exactly_once() {
    on_cluster(|db| async move {
        let (mut session, alice, bob) = (session(&db).await, &Id::from("alice"), &Id::from("bob"));
        let befriended = session.apply(|tx| async move {
            users().add_friend(&tx, alice, bob).await?;
            users().follow(&tx, bob, alice).await
        });
        assert_eq!(befriended.await, Applied(()));
        let refused = session.apply(|tx| async move { users().follow(&tx, bob, bob).await }).await;
        assert_eq!(refused, Refused(Error::SelfEdge(bob.clone())));
        let removed = session.apply(|tx| async move { users().remove_user(&tx, alice).await }).await;
        assert_eq!(removed, Applied(2));
        assert_eq!(users().friends(&begin(&db), bob, Serializable).await, Ok(ids([])));
    });
}

#[test]
fn many_friends_are_read_in_pages_and_asked_for_theirs_a_few_at_once() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        let (star, at) = (Id::from("star"), Serializable);
        for n in 0..40 {
            users().add_friend(&tx, &star, &n.into()).await.unwrap();
            users().add_friend(&tx, &n.into(), &(100 + n).into()).await.unwrap();
        }
        let second: BTreeSet<Id> = (100..140).map(Id::from).collect();
        assert_eq!(users().friends_of_friends(&tx, &star, at).await, Ok(second));
        let page = async |after: Option<i64>, limit| {
            let after = after.map(Id::from);
            users().friends_page(&tx, &star, after.as_ref(), limit, at).await
        };
        assert_eq!(page(None, 3).await, Ok(vec![0.into(), 1.into(), 2.into()]));
        assert_eq!(page(Some(2), 2).await, Ok(vec![3.into(), 4.into()]));
        assert_eq!(page(Some(38), 2).await, Ok(vec![39.into()]));
        assert_eq!(page(Some(0), 0).await, Ok(vec![]));
    });
}

#[test]
fn more_edges_than_one_transaction_reads_are_refused() {
    on_cluster(|db| async move {
        // Ten friends: the edges of each can be read, but not those of all.
        let name = |n: i64| Id::from(format!("{n:04}{}", "x".repeat(4_900)));
        for friend in 0..10 {
            let tx = begin(&db);
            users().add_friend(&tx, &"star".into(), &friend.into()).await.unwrap();
            for n in 0..210 {
                users().add_friend(&tx, &friend.into(), &name(n)).await.unwrap();
            }
            tx.commit().await.unwrap();
        }
        let tx = begin(&db);
        assert_eq!(users().friends(&tx, &7.into(), Serializable).await.map(|all| all.len()), Ok(211));
        let refused = users().friends_of_friends(&tx, &"star".into(), Serializable).await;
        assert_eq!(refused, Err(Error::TooLarge(TooLarge::Read { limit: READ_LIMIT })));
    });
}
