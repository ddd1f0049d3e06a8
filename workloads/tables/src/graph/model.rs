//! The sequential model: edges; and how rows are read back as a model.

use super::{Answer, Graph, Kind, Op, space};
use shaketable_layers::{graph::Error, id::Id};
use shaketable_tx::{self as tx, limits};
use std::collections::BTreeSet;

/// The edges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// Each pair, in both orders.
    pub(super) friends: BTreeSet<(Id, Id)>,
    /// Follower and followed.
    follows: BTreeSet<(Id, Id)>,
}

pub(super) fn transposed(edges: &BTreeSet<(Id, Id)>) -> BTreeSet<(Id, Id)> {
    edges.iter().map(|(u, v)| (v.clone(), u.clone())).collect()
}

/// The users at the other end of a user's edges.
fn ends(edges: &BTreeSet<(Id, Id)>, user: &Id) -> BTreeSet<Id> {
    edges.iter().filter(|(u, _)| u == user).map(|(_, v)| v.clone()).collect()
}

/// Refuses an edge whose key is too long.
fn fits(u: &Id, kind: Kind, v: &Id) -> Result<(), Error> {
    Ok(limits::key(&space().pack(&(u, kind.name(), v)))?)
}

/// An edge that can be stored, because both of its keys fit.
fn pair(u: &Id, [kind, mirrored]: [Kind; 2], v: &Id) -> Result<(Id, Id), Error> {
    if u == v {
        return Err(Error::SelfEdge(u.clone()));
    }
    fits(u, kind, v)?;
    fits(v, mirrored, u)?;
    Ok((u.clone(), v.clone()))
}

/// The kind of a friendship, seen from each of the two.
const FRIENDS: [Kind; 2] = [Kind::Friends, Kind::Friends];

/// The kind of a follow edge, seen from the follower and from the followed.
const FOLLOWS: [Kind; 2] = [Kind::Following, Kind::Followers];

impl Model {
    fn ends(&self, kind: Kind, user: &Id) -> BTreeSet<Id> {
        match kind {
            Kind::Friends => ends(&self.friends, user),
            Kind::Following => ends(&self.follows, user),
            Kind::Followers => ends(&transposed(&self.follows), user),
        }
    }

    fn friends_of_friends(&self, user: &Id) -> BTreeSet<Id> {
        let friends = ends(&self.friends, user);
        let theirs = friends.iter().flat_map(|friend| ends(&self.friends, friend));
        theirs.filter(|id| id != user && !friends.contains(id)).collect()
    }
}

impl Graph {
    /// Performs one call on the model.
    pub(super) fn replayed(&self, model: &mut Model, op: &Op) -> Result<Answer, Error> {
        Ok(match op {
            Op::AddFriend(u, v) => {
                model.friends.extend([pair(u, FRIENDS, v)?, pair(v, FRIENDS, u)?]);
                Answer::Written
            }
            Op::RemoveFriend(u, v) => {
                let (one, other) = (pair(u, FRIENDS, v)?, pair(v, FRIENDS, u)?);
                model.friends.retain(|edge| *edge != one && *edge != other);
                Answer::Written
            }
            Op::Follow(u, v) => {
                model.follows.insert(pair(u, FOLLOWS, v)?);
                Answer::Written
            }
            Op::Unfollow(u, v) => {
                model.follows.remove(&pair(u, FOLLOWS, v)?);
                Answer::Written
            }
            Op::RemoveUser(user) => {
                let friends = ends(&model.friends, user).len();
                let (before, away) = (model.follows.len(), |(u, v): &(Id, Id)| u != user && v != user);
                model.friends.retain(away);
                model.follows.retain(away);
                Answer::Removed((friends + before - model.follows.len()) as u64)
            }
            Op::AreFriends(u, v) => {
                fits(u, Kind::Friends, v)?;
                Answer::Is(model.friends.contains(&(u.clone(), v.clone())))
            }
            Op::Follows(u, v) => {
                fits(u, Kind::Following, v)?;
                Answer::Is(model.follows.contains(&(u.clone(), v.clone())))
            }
            Op::Friends(user) => Answer::Users(model.ends(Kind::Friends, user)),
            Op::FriendsOfFriends(user) => Answer::Users(model.friends_of_friends(user)),
            Op::Following(user) => Answer::Users(model.ends(Kind::Following, user)),
            Op::Followers(user) => Answer::Users(model.ends(Kind::Followers, user)),
            Op::Page(kind, user, after, limit) => {
                let mut ends = model.ends(*kind, user);
                if let Some(after) = after {
                    fits(user, *kind, after)?;
                    ends.retain(|id| id > after);
                }
                Answer::Page(ends.into_iter().take(*limit).collect())
            }
        })
    }
}

/// Reads rows back by the key schema, as a model.
pub(super) fn read(rows: &[tx::KeyValue]) -> Result<Model, String> {
    let (mut friends, mut follows, mut followed) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for row in rows {
        let parts = space().unpack::<(Id, String, Id)>(&row.key);
        let edges = match parts.as_ref().map(|(_, kind, _)| kind.as_str()) {
            Ok(name) if name == Kind::Friends.name() => &mut friends,
            Ok(name) if name == Kind::Following.name() => &mut follows,
            Ok(name) if name == Kind::Followers.name() => &mut followed,
            _ => return Err(format!("{} is not an edge", row.key.escape_ascii())),
        };
        if !row.value.is_empty() {
            return Err(format!("the edge {} has a value", row.key.escape_ascii()));
        }
        edges.extend(parts.map(|(u, _, v)| (u, v)));
    }
    if let Some((u, v)) = friends.difference(&transposed(&friends)).next() {
        return Err(format!("{u} is a friend of {v}, but {v} is not a friend of {u}"));
    }
    if let Some((u, v)) = follows.symmetric_difference(&transposed(&followed)).next() {
        return Err(format!("that {u} follows {v} is stored on one side only"));
    }
    if let Some((u, _)) = friends.union(&follows).find(|(u, v)| u == v) {
        return Err(format!("{u} has an edge to itself"));
    }
    Ok(Model { friends, follows })
}
