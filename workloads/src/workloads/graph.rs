//! `graph`: users become friends, follow each other, part again and leave, and ask who is near them.
//!
//! Few users, so that edges meet, with names that are alike but for their type.

use crate::{
    sabotage::graph as sabotage,
    specimen::{self, At, Specimen, UNRECORDED},
    workload::{Bug, Outcome},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable_layers::{
    graph::{Error, Graph as Layer},
    id::Id,
    once::Session,
    tx::{self, Database, Env, Isolation::Serializable, RangeOption, Transaction},
};
use shaketable_sim::seed::Stream;
use std::collections::BTreeSet;

flaws! {
    Unrecorded = UNRECORDED, "a friend is added again after an unknown result without an operation record", "a blind write done twice";
    Untidy = "untidy", "friends of friends include the friends", "the guide's getFriendsOfFriends";
    Torn = "torn", "each user's friends are read in a transaction of their own", "the guide's getFriendsOfFriends, which is not transactional";
    OneSided = "one-sided", "a friendship ends for the one who ends it", "an undirected edge stored twice";
    StillFollowed = "still-followed", "unfollowing removes the edge with the follower only", "a directed edge stored twice";
    SelfEdge = "self-edge", "users follow themselves", "the guide's followUser";
    Untyped = "untyped", "a user who was read from the database is looked up as bytes", "the guide's getFriends, where bytes are no text";
    EdgesStay = "edges-stay", "a user is removed, and not the others' edges", "a removal of what is stored under a name";
    SnapshotRemoval = "snapshot-removal", "a removal reads the user's edges at snapshot isolation", "reads that decide a write outside conflict detection";
}

/// The users' subspace.
pub(crate) fn space() -> Subspace {
    Subspace::from("users")
}

/// The users that are drawn.
fn users() -> Vec<Id> {
    vec![
        "a".into(),
        Bytes::from_static(b"a").into(),
        0.into(),
        "".into(),
        "a\0".into(),
        i64::MAX.into(),
        Bytes::from_static(b"\xff\0").into(),
        "followedBy".into(),
    ]
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Graph {
    /// Of [`users`], how many there are.
    users: usize,
    flaw: Option<Flaw>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Makes two friends.
    AddFriend(Id, Id),
    /// Ends a friendship.
    RemoveFriend(Id, Id),
    /// Makes the first follow the second.
    Follow(Id, Id),
    /// Makes the first follow the second no more.
    Unfollow(Id, Id),
    /// Removes a user.
    RemoveUser(Id),
    /// Reads whether two are friends.
    AreFriends(Id, Id),
    /// Reads whether the first follows the second.
    Follows(Id, Id),
    /// Reads a user's friends.
    Friends(Id),
    /// Reads their friends.
    FriendsOfFriends(Id),
    /// Reads whom a user follows.
    Following(Id),
    /// Reads who follows a user.
    Followers(Id),
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// So many edges are gone.
    Removed(u64),
    /// Whether there is such an edge.
    Is(bool),
    /// Users.
    Users(BTreeSet<Id>),
}

/// The edges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// Each pair in both orders.
    friends: BTreeSet<(Id, Id)>,
    /// Follower and followed.
    follows: BTreeSet<(Id, Id)>,
}

fn transposed(edges: &BTreeSet<(Id, Id)>) -> BTreeSet<(Id, Id)> {
    edges.iter().map(|(u, v)| (v.clone(), u.clone())).collect()
}

/// Who is at the other end of a user's edges.
fn ends(edges: &BTreeSet<(Id, Id)>, user: &Id) -> BTreeSet<Id> {
    edges.iter().filter(|(u, _)| u == user).map(|(_, v)| v.clone()).collect()
}

fn pair(u: &Id, v: &Id) -> Result<(Id, Id), Error> {
    if u == v { Err(Error::SelfEdge(u.clone())) } else { Ok((u.clone(), v.clone())) }
}

impl Model {
    fn friends_of_friends(&self, user: &Id) -> BTreeSet<Id> {
        let friends = ends(&self.friends, user);
        let theirs = friends.iter().flat_map(|friend| ends(&self.friends, friend));
        theirs.filter(|id| id != user && !friends.contains(id)).collect()
    }
}

/// The key schema read from the other end.
fn read(rows: &[tx::KeyValue]) -> Result<Model, String> {
    let (mut friends, mut follows, mut followed) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for row in rows {
        let parts = space().unpack::<(Id, String, Id)>(&row.key);
        let edges = match parts.as_ref().map(|(_, kind, _)| kind.as_str()) {
            Ok("friendsWith") => &mut friends,
            Ok("hasFollowed") => &mut follows,
            Ok("followedBy") => &mut followed,
            _ => return Err(format!("{} is no edge", row.key.escape_ascii())),
        };
        if !row.value.is_empty() {
            return Err(format!("the edge {} has a value", row.key.escape_ascii()));
        }
        edges.extend(parts.map(|(u, _, v)| (u, v)));
    }
    if let Some((u, v)) = friends.difference(&transposed(&friends)).next() {
        return Err(format!("{u} is a friend of {v}, who is no friend of {u}"));
    }
    if let Some((u, v)) = follows.symmetric_difference(&transposed(&followed)).next() {
        return Err(format!("only one of the two knows that {u} follows {v}"));
    }
    if let Some((u, _)) = friends.union(&follows).find(|(u, v)| u == v) {
        return Err(format!("{u} is connected with itself"));
    }
    Ok(Model { friends, follows })
}

impl Specimen for Graph {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "graph";
    const ABOUT: &'static str = "friends and followers, and the friends of friends";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &["graph: friends are friends of each other", "graph: a removal reaches others' edges"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Graph {
        Graph { users: rng.range(3..users().len() as u64 + 1) as usize, flaw: bug.and_then(Flaw::named) }
    }

    fn keys(&self) -> Vec<Bytes> {
        users()[..self.users].iter().map(|user| space().pack(&(user,)).into()).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let users = users()[..self.users].to_vec();
        let user = move || select(users.clone());
        let two = || (user(), user());
        prop_oneof![
            8 => two().prop_map(|(u, v)| Op::AddFriend(u, v)),
            3 => two().prop_map(|(u, v)| Op::RemoveFriend(u, v)),
            6 => two().prop_map(|(u, v)| Op::Follow(u, v)),
            3 => two().prop_map(|(u, v)| Op::Unfollow(u, v)),
            2 => user().prop_map(Op::RemoveUser),
            1 => two().prop_map(|(u, v)| Op::AreFriends(u, v)),
            1 => two().prop_map(|(u, v)| Op::Follows(u, v)),
            2 => user().prop_map(Op::Friends),
            6 => user().prop_map(Op::FriendsOfFriends),
            2 => user().prop_map(Op::Following),
            2 => user().prop_map(Op::Followers),
        ]
        .boxed()
    }

    fn is_look(op: &Op) -> bool {
        use Op::*;
        match op {
            AddFriend(..) | RemoveFriend(..) | Follow(..) | Unfollow(..) | RemoveUser(_) => false,
            AreFriends(..) | Follows(..) | Friends(_) | FriendsOfFriends(_) | Following(_) | Followers(_) => {
                true
            }
        }
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        use Op::*;
        matches!(op, AddFriend(..) | RemoveFriend(..) | Follow(..) | Unfollow(..))
    }

    async fn perform<T: Transaction>(&self, tx: &T, _: &Env, op: &Op) -> Result<Answer, Error> {
        if let Some(flaw) = self.flaw
            && let Some(answer) = sabotage::perform(flaw, tx, op).await
        {
            return answer;
        }
        let graph = Layer::new(space());
        Ok(match op {
            Op::AddFriend(u, v) => {
                graph.add_friend(tx, u, v).await?;
                Answer::Written
            }
            Op::RemoveFriend(u, v) => {
                graph.remove_friend(tx, u, v).await?;
                Answer::Written
            }
            Op::Follow(u, v) => {
                graph.follow(tx, u, v).await?;
                Answer::Written
            }
            Op::Unfollow(u, v) => {
                graph.unfollow(tx, u, v).await?;
                Answer::Written
            }
            Op::RemoveUser(user) => Answer::Removed(graph.remove_user(tx, user).await?),
            Op::AreFriends(u, v) => Answer::Is(graph.are_friends(tx, u, v, Serializable).await?),
            Op::Follows(u, v) => Answer::Is(graph.follows(tx, u, v, Serializable).await?),
            Op::Friends(user) => Answer::Users(graph.friends(tx, user, Serializable).await?),
            Op::FriendsOfFriends(user) => {
                Answer::Users(graph.friends_of_friends(tx, user, Serializable).await?)
            }
            Op::Following(user) => Answer::Users(graph.following(tx, user, Serializable).await?),
            Op::Followers(user) => Answer::Users(graph.followers(tx, user, Serializable).await?),
        })
    }

    async fn divert<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        match (self.flaw, ops) {
            (Some(Flaw::Torn), [Op::FriendsOfFriends(user)]) => {
                let torn = sabotage::friends_of_friends(session.database(), user).await;
                Some(torn.map_or_else(Outcome::GaveUp, |users| {
                    Outcome::Answered(specimen::Answer::Done(vec![Answer::Users(users)]))
                }))
            }
            _ => None,
        }
    }

    fn model(&self) -> Model {
        Model::default()
    }

    fn replay(&self, model: &mut Model, op: &Op, _: &At) -> Result<Answer, Error> {
        Ok(match op {
            Op::AddFriend(u, v) => {
                model.friends.extend([pair(u, v)?, pair(v, u)?]);
                Answer::Written
            }
            Op::RemoveFriend(u, v) => {
                let (one, other) = (pair(u, v)?, pair(v, u)?);
                model.friends.retain(|edge| *edge != one && *edge != other);
                Answer::Written
            }
            Op::Follow(u, v) => {
                model.follows.insert(pair(u, v)?);
                Answer::Written
            }
            Op::Unfollow(u, v) => {
                model.follows.remove(&pair(u, v)?);
                Answer::Written
            }
            Op::RemoveUser(user) => {
                let friends = ends(&model.friends, user).len();
                let (before, away) = (model.follows.len(), |(u, v): &(Id, Id)| u != user && v != user);
                model.friends.retain(away);
                model.follows.retain(away);
                Answer::Removed((friends + before - model.follows.len()) as u64)
            }
            Op::AreFriends(u, v) => Answer::Is(model.friends.contains(&(u.clone(), v.clone()))),
            Op::Follows(u, v) => Answer::Is(model.follows.contains(&(u.clone(), v.clone()))),
            Op::Friends(user) => Answer::Users(ends(&model.friends, user)),
            Op::FriendsOfFriends(user) => Answer::Users(model.friends_of_friends(user)),
            Op::Following(user) => Answer::Users(ends(&model.follows, user)),
            Op::Followers(user) => Answer::Users(ends(&transposed(&model.follows), user)),
        })
    }

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Model, String>> {
        let rows = tx.get_range_all(RangeOption::from(space().range()), Serializable).await?;
        Ok(read(&rows))
    }
}
