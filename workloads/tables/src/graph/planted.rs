//! Planted bugs: a graph implemented or used wrongly.

use super::{Answer, Graph, Op, space};
use shaketable::specimen::{
    DEFERRED, INTERLEAVED, KEPT_VERSION, NOT_AWAITED, REMEMBERED, UNRECORDED, UNWRITTEN,
};
use shaketable_layers::{
    graph::{self, Error},
    id::Id,
};
use shaketable_tx::{
    self as tx, Database, Db,
    Isolation::{self, Serializable, Snapshot},
    RetryError, Transaction, Tx,
};
use std::{collections::BTreeSet, time::Duration};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "a user is removed while another call of the transaction makes a friend", "two futures in one transaction";
    Unrecorded = UNRECORDED, "a friend is added again after an unknown result without an operation record", "a blind write done twice";
    Unwritten = UNWRITTEN, "an edge is acknowledged and never committed", "a write-behind cache";
    Deferred = DEFERRED, "an edge is acknowledged at once and committed with the client's next one", "batching without a wait";
    NotAwaited = NOT_AWAITED, "the commit is started and not awaited", "fire and forget";
    Remembered = REMEMBERED, "a client that repeats a read gets the answer that it remembers", "a cache that is never invalidated";
    KeptVersion = KEPT_VERSION, "a client reads at a version that it keeps for up to a second", "a read version shared between transactions";
    Untidy = "untidy", "friends of friends include the friends", "the guide's getFriendsOfFriends";
    Incomplete = "torn", "each user's friends are read in a separate transaction", "the guide's getFriendsOfFriends, which is not transactional";
    SelfEdge = "self-edge", "users follow themselves", "the guide's followUser";
    Untyped = "untyped", "a user who was read from the database is looked up as bytes", "the guide's getFriends, where bytes are no text";
    FirstFriends = "first-friends", "only the friends of the first sixteen friends are read", "a bound on concurrency, taken for a bound on the result";
    TheirsAtSnapshot = "theirs-at-snapshot", "the friends of friends are read at snapshot, and the friends at the requested isolation", "an isolation that is not passed on";
    SignedByte = "signed-byte", "an id from 128 to 255 is stored as a negative number", "a cast that wraps";
    Narrowed = "narrowed", "an id that does not fit into 32 bits is cut off", "a cast that truncates";
    FriendsEnd = "friends-end", "friends are listed up to the text U+FFFF", "a range that ends at a constant";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform(
    planted: Planted,
    workload: &Graph,
    tx: &Tx,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let graph = graph::Graph::new(space());
    match (planted, op) {
        (
            Planted::Untidy | Planted::TheirsAtSnapshot | Planted::FirstFriends | Planted::Untyped,
            Op::FriendsOfFriends(user),
        ) => second_degree(planted, tx, user, isolation).await.map(Answer::Users),
        (Planted::SignedByte, Op::Follow(u, Id::Int(v @ 128..=255))) => {
            workload.right(tx, &Op::Follow(u.clone(), Id::Int(v - 256)), isolation).await
        }
        (Planted::Narrowed, Op::Follow(u, Id::Int(v))) => {
            workload.right(tx, &Op::Follow(u.clone(), Id::Int((*v as i32).into())), isolation).await
        }
        (Planted::SelfEdge, Op::Follow(u, v)) if u == v => {
            tx.set(&space().pack(&(u, "hasFollowed", v)), b"");
            tx.set(&space().pack(&(v, "followedBy", u)), b"");
            Ok(Answer::Written)
        }
        (Planted::FriendsEnd, Op::Friends(user)) => {
            let known = |id: &Id| !matches!(id, Id::Text(text) if text.contains('\u{10ffff}'));
            let all = graph.friends(tx, user, isolation).await?;
            Ok(Answer::Users(all.into_iter().filter(known).collect()))
        }
        _ => workload.right(tx, op, isolation).await,
    }
}

/// The friends of friends, with the bug.
async fn second_degree(
    planted: Planted,
    tx: &Tx,
    user: &Id,
    isolation: Isolation,
) -> Result<BTreeSet<Id>, Error> {
    let graph = graph::Graph::new(space());
    let friends = graph.friends(tx, user, isolation).await?;
    // As many as are read concurrently.
    let most = if planted == Planted::FirstFriends { 16 } else { friends.len() };
    let theirs = if planted == Planted::TheirsAtSnapshot { Snapshot } else { isolation };
    let mut second = BTreeSet::new();
    for friend in friends.iter().take(most) {
        let looked_up = match (planted, friend) {
            // Ids that are read have lost their type.
            (Planted::Untyped, Id::Text(text)) => Id::Bytes(text.clone().into()),
            (_, friend) => friend.clone(),
        };
        second.extend(graph.friends(tx, &looked_up, theirs).await?);
    }
    second.retain(|id| id != user && (planted == Planted::Untidy || !friends.contains(id)));
    Ok(second)
}

/// The friends of friends, each friend's in a separate transaction, one after the other.
pub async fn friends_of_friends(db: &Db, user: &Id) -> Result<BTreeSet<Id>, tx::Error> {
    let (mut near, mut far) = (BTreeSet::new(), BTreeSet::from([user.clone()]));
    for _ in 0..2 {
        near = std::mem::take(&mut far);
        for id in &near {
            db.env().sleep(Duration::from_millis(40)).await;
            let read = db
                .run(|tx, _| async move { graph::Graph::new(space()).friends(&tx, id, Serializable).await });
            far.extend(read.await.map_err(|e| e.error.fdb().unwrap_or(tx::Error::INTERNAL_ERROR))?);
        }
    }
    far.retain(|id| id != user && !near.contains(id));
    Ok(far)
}
