//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::{Graph, space};
use crate::shared::edge_ids;
use bytes::Bytes;
use proptest::{option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{real::key_room, strategies};
use shaketable_layers::id::Id;
use shaketable_tx::{self as tx};
use std::collections::BTreeSet;

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Makes two users friends.
    AddFriend(Id, Id),
    /// Ends a friendship.
    RemoveFriend(Id, Id),
    /// Makes the first follow the second.
    Follow(Id, Id),
    /// Ends that the first follows the second.
    Unfollow(Id, Id),
    /// Removes a user.
    RemoveUser(Id),
    /// Reads whether two users are friends.
    AreFriends(Id, Id),
    /// Reads whether the first follows the second.
    Follows(Id, Id),
    /// Reads a user's friends.
    Friends(Id),
    /// Reads the friends of a user's friends.
    FriendsOfFriends(Id),
    /// Reads the users whom a user follows.
    Following(Id),
    /// Reads the followers of a user.
    Followers(Id),
    /// Reads up to this many of a user's edges of a kind, from the first one on or after a user.
    Page(Kind, Id, Option<Id>, usize),
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// The number of edges that were removed.
    Removed(u64),
    /// Whether the edge exists.
    Is(bool),
    /// Users.
    Users(BTreeSet<Id>),
    /// Users, in order.
    Page(Vec<Id>),
}

/// A kind of edges, as seen from a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Friends.
    Friends,
    /// The users whom the user follows.
    Following,
    /// The users who follow the user.
    Followers,
}

impl Kind {
    /// Its name in keys.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Friends => "friendsWith",
            Kind::Following => "hasFollowed",
            Kind::Followers => "followedBy",
        }
    }
}

/// The users that are drawn.
pub(super) fn users() -> Vec<Id> {
    vec![
        "a".into(),
        Bytes::from_static(b"a").into(),
        0.into(),
        "".into(),
        "a\0".into(),
        i64::MAX.into(),
        Bytes::from_static(b"\xff\0").into(),
        "a\u{10ffff}".into(),
        "followedBy".into(),
        long(),
        "ab".into(),
        (-1).into(),
        Bytes::new().into(),
    ]
}

/// A user whose edges with `"a"` have keys of the maximum size, so that edges with longer names are refused.
fn long() -> Id {
    let others = space().pack(&("", Kind::Following.name(), "a")).len();
    Id::from("x".repeat(tx::KEY_SIZE_LIMIT - others - key_room()))
}

/// The user who has many friends, in some seeds.
pub(super) const STAR: &str = "a";

/// A friend of [`STAR`], and a friend of that friend who has no other friends.
pub(super) fn of_crowd(n: i64) -> [Id; 2] {
    [(10_000 + n).into(), (20_000 + n).into()]
}

impl Graph {
    /// Draws one call.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let users = [&users()[..self.users], &self.edges].concat();
        let user = move || strategies::mostly(select(users.clone()), edge_ids());
        let two = || (user(), user());
        let kind = select(vec![Kind::Friends, Kind::Following, Kind::Followers]);
        // In these seeds, the many friends are drawn too.
        let crowd = self.crowd;
        let after = {
            let user = user.clone();
            move || match crowd {
                0 => user().boxed(),
                crowd => prop_oneof![user(), (0..crowd).prop_map(|n| of_crowd(n)[0].clone())].boxed(),
            }
        };
        let limit = prop_oneof![8 => 0..6usize, 1 => strategies::counts(crowd as usize), 1 => Just(100)];
        let page = (kind, after(), option::of(after()), limit);
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
            4 => page.prop_map(|(kind, user, after, limit)| Op::Page(kind, user, after, limit)),
        ]
        .boxed()
    }
}
