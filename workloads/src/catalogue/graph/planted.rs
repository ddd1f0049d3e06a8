//! A graph done wrong, one bug at a time.

use crate::catalogue::graph::{Answer, Kind, Op, Planted, space};
use shaketable_layers::{
    graph::{Error, Graph},
    id::Id,
    tx::{
        self, Database,
        Isolation::{self, Serializable, Snapshot},
        RangeOption, RetryError, Transaction,
    },
};
use std::{collections::BTreeSet, time::Duration};

/// Does a call that the bug touches; `None` when it leaves this one as it is.
pub async fn perform<T: Transaction>(
    planted: Planted,
    tx: &T,
    op: &Op,
    isolation: Isolation,
) -> Option<Result<Answer, Error>> {
    let graph = Graph::new(space());
    Some(match (planted, op) {
        (Planted::Untidy, Op::FriendsOfFriends(user)) => untidy(tx, user).await.map(Answer::Users),
        (Planted::TheirsAtSnapshot, Op::FriendsOfFriends(user)) => {
            theirs_at_snapshot(tx, user, isolation).await.map(Answer::Users)
        }
        (Planted::FirstFriends, Op::FriendsOfFriends(user)) => {
            first_friends(tx, user).await.map(Answer::Users)
        }
        (Planted::PageAgain, Op::Page(Kind::Friends, user, Some(after), limit @ 1..)) => {
            let page = graph.friends(tx, user, Serializable).await;
            page.map(|all| Answer::Page(all.into_iter().filter(|id| id >= after).take(*limit).collect()))
        }
        (Planted::PageTurned, Op::Page(Kind::Followers, user, after, limit)) => {
            graph.following_page(tx, user, after.as_ref(), *limit, Serializable).await.map(Answer::Page)
        }
        (Planted::BothUnfollow, Op::Unfollow(u, v)) => match graph.unfollow(tx, u, v).await {
            Ok(()) => graph.unfollow(tx, v, u).await.map(|()| Answer::Written),
            Err(e) => Err(e),
        },
        (Planted::Untyped, Op::FriendsOfFriends(user)) => untyped(tx, user).await.map(Answer::Users),
        (Planted::OneSided, Op::RemoveFriend(u, v)) if u != v => {
            tx.clear(&space().pack(&(u, "friendsWith", v)));
            Ok(Answer::Written)
        }
        (Planted::StillFollowed, Op::Unfollow(u, v)) if u != v => {
            tx.clear(&space().pack(&(u, "hasFollowed", v)));
            Ok(Answer::Written)
        }
        (Planted::SelfEdge, Op::Follow(u, v)) if u == v => {
            tx.set(&space().pack(&(u, "hasFollowed", v)), b"");
            tx.set(&space().pack(&(v, "followedBy", u)), b"");
            Ok(Answer::Written)
        }
        (Planted::EdgesStay, Op::RemoveUser(user)) => {
            let own = space().subspace(&(user,)).range();
            let edges = tx.get_range_all(RangeOption::from(own.clone()), Serializable).await;
            tx.clear_range(&own.0, &own.1);
            edges.map(|edges| Answer::Removed(edges.len() as u64)).map_err(Error::Fdb)
        }
        (Planted::SnapshotRemoval, Op::RemoveUser(user)) => {
            let removed = async {
                let friends = graph.friends(tx, user, Snapshot).await?;
                let following = graph.following(tx, user, Snapshot).await?;
                let followers = graph.followers(tx, user, Snapshot).await?;
                friends.iter().for_each(|v| tx.clear(&space().pack(&(v, "friendsWith", user))));
                following.iter().for_each(|v| tx.clear(&space().pack(&(v, "followedBy", user))));
                followers.iter().for_each(|v| tx.clear(&space().pack(&(v, "hasFollowed", user))));
                let (begin, end) = space().subspace(&(user,)).range();
                tx.clear_range(&begin, &end);
                Ok(Answer::Removed((friends.len() + following.len() + followers.len()) as u64))
            };
            removed.await
        }
        _ => return None,
    })
}

/// The guide's `getFriendsOfFriends`: the user is taken out, the friends are not.
async fn untidy<T: Transaction>(tx: &T, user: &Id) -> Result<BTreeSet<Id>, Error> {
    let graph = Graph::new(space());
    let mut second = BTreeSet::new();
    for friend in graph.friends(tx, user, Serializable).await? {
        second.extend(graph.friends(tx, &friend, Serializable).await?);
    }
    second.remove(user);
    Ok(second)
}

/// The friends of as many friends as are asked at once.
async fn first_friends<T: Transaction>(tx: &T, user: &Id) -> Result<BTreeSet<Id>, Error> {
    let graph = Graph::new(space());
    let friends = graph.friends(tx, user, Serializable).await?;
    let mut second = BTreeSet::new();
    for friend in friends.iter().take(16) {
        second.extend(graph.friends(tx, friend, Serializable).await?);
    }
    second.retain(|id| id != user && !friends.contains(id));
    Ok(second)
}

/// What the database gives back has no type: a friend's friends are looked up under bytes.
async fn untyped<T: Transaction>(tx: &T, user: &Id) -> Result<BTreeSet<Id>, Error> {
    let graph = Graph::new(space());
    let friends = graph.friends(tx, user, Serializable).await?;
    let mut second = BTreeSet::new();
    for friend in &friends {
        let looked_up = match friend {
            Id::Text(text) => Id::Bytes(text.clone().into()),
            other => other.clone(),
        };
        second.extend(graph.friends(tx, &looked_up, Serializable).await?);
    }
    second.retain(|id| id != user && !friends.contains(id));
    Ok(second)
}

/// The friends of friends, of whom each is asked in a transaction of its own, one after the other.
pub async fn friends_of_friends<D: Database>(db: &D, user: &Id) -> Result<BTreeSet<Id>, tx::Error> {
    let friends = friends(db, user).await?;
    let mut second = BTreeSet::new();
    for friend in &friends {
        db.env().sleep(Duration::from_millis(40)).await;
        second.extend(self::friends(db, friend).await?);
    }
    second.retain(|id| id != user && !friends.contains(id));
    Ok(second)
}

async fn friends<D: Database>(db: &D, user: &Id) -> Result<BTreeSet<Id>, tx::Error> {
    let ran = db.run(|tx, _| async move { Graph::new(space()).friends(&tx, user, Serializable).await }).await;
    ran.map_err(|e| e.error.fdb().unwrap_or(tx::Error::INTERNAL_ERROR))
}

/// Friends of friends, found with two isolations.
async fn theirs_at_snapshot<T: Transaction>(
    tx: &T,
    user: &Id,
    isolation: Isolation,
) -> Result<BTreeSet<Id>, Error> {
    let graph = Graph::new(space());
    let friends = graph.friends(tx, user, isolation).await?;
    let mut second = BTreeSet::new();
    for friend in &friends {
        second.extend(graph.friends(tx, friend, Snapshot).await?);
    }
    second.retain(|id| id != user && !friends.contains(id));
    Ok(second)
}
