//! A graph's operations: inside a transaction, and exactly once.

use super::{
    Error,
    keys::{self, Kind},
};
use crate::{
    id::Id,
    limits, sometimes,
    tx::{Isolation, RangeOption, Transaction, key_after},
};
use foundationdb_tuple::Subspace;
use futures::future::try_join_all;
use std::collections::BTreeSet;

/// The users below a subspace of its own, and what connects them.
#[derive(Clone, Debug)]
pub struct Graph {
    users: Subspace,
}

impl Graph {
    /// The graph below `users`, which nothing else may use.
    pub fn new(users: Subspace) -> Graph {
        crate::called!();
        Graph { users }
    }

    /// Makes two users friends. Friends stay friends.
    pub async fn add_friend<T: Transaction>(&self, tx: &T, one: &Id, other: &Id) -> Result<(), Error> {
        crate::called!();
        self.connect(tx, one, Kind::FriendsWith, other)
    }

    /// Ends a friendship, for both. Where there is none, nothing happens.
    pub async fn remove_friend<T: Transaction>(&self, tx: &T, one: &Id, other: &Id) -> Result<(), Error> {
        crate::called!();
        self.disconnect(tx, one, Kind::FriendsWith, other)
    }

    /// Makes `follower` follow `followed`.
    pub async fn follow<T: Transaction>(&self, tx: &T, follower: &Id, followed: &Id) -> Result<(), Error> {
        crate::called!();
        self.connect(tx, follower, Kind::HasFollowed, followed)
    }

    /// Makes `follower` follow `followed` no more.
    pub async fn unfollow<T: Transaction>(&self, tx: &T, follower: &Id, followed: &Id) -> Result<(), Error> {
        crate::called!();
        self.disconnect(tx, follower, Kind::HasFollowed, followed)
    }

    /// Removes a user: every edge, at both ends. Answers how many there were.
    pub async fn remove_user<T: Transaction>(&self, tx: &T, user: &Id) -> Result<u64, Error> {
        crate::called!();
        let below = keys::user(&self.users, user);
        let rows = tx.get_range_all(RangeOption::from(below.range()), Isolation::Serializable).await?;
        let mut mirrors = Vec::with_capacity(rows.len());
        for row in &rows {
            let (kind, other) = keys::end(&self.users, user, &row.key)?;
            mirrors.push(keys::edge(&self.users, &other, kind.mirrored(), user));
        }
        let (begin, end) = below.range();
        let cleared = mirrors.iter().map(|key| limits::clear(key, &key_after(key))).sum::<usize>();
        limits::transaction(cleared + limits::clear(&begin, &end))?;
        for key in &mirrors {
            tx.clear(key);
        }
        sometimes!(mirrors.len() > 1, "graph: a removal reaches others' edges");
        tx.clear_range(&begin, &end);
        Ok(rows.len() as u64)
    }

    /// Whether two users are friends.
    pub async fn are_friends<T: Transaction>(
        &self,
        tx: &T,
        one: &Id,
        other: &Id,
        isolation: Isolation,
    ) -> Result<bool, Error> {
        crate::called!();
        let key = keys::edge(&self.users, one, Kind::FriendsWith, other);
        Ok(tx.get(&key, isolation).await?.is_some())
    }

    /// Whether `follower` follows `followed`.
    pub async fn follows<T: Transaction>(
        &self,
        tx: &T,
        follower: &Id,
        followed: &Id,
        isolation: Isolation,
    ) -> Result<bool, Error> {
        crate::called!();
        let key = keys::edge(&self.users, follower, Kind::HasFollowed, followed);
        Ok(tx.get(&key, isolation).await?.is_some())
    }

    /// A user's friends.
    pub async fn friends<T: Transaction>(
        &self,
        tx: &T,
        user: &Id,
        isolation: Isolation,
    ) -> Result<BTreeSet<Id>, Error> {
        crate::called!();
        self.ends(tx, user, Kind::FriendsWith, isolation).await
    }

    /// The friends of a user's friends who are neither friends of the user nor the user.
    pub async fn friends_of_friends<T: Transaction>(
        &self,
        tx: &T,
        user: &Id,
        isolation: Isolation,
    ) -> Result<BTreeSet<Id>, Error> {
        crate::called!();
        let friends = self.friends(tx, user, isolation).await?;
        let theirs = try_join_all(friends.iter().map(|friend| self.friends(tx, friend, isolation))).await?;
        let mut second: BTreeSet<Id> = theirs.into_iter().flatten().collect();
        let reached = second.len();
        second.retain(|id| id != user && !friends.contains(id));
        sometimes!(reached > second.len() + 1, "graph: friends are friends of each other");
        Ok(second)
    }

    /// Whom a user follows.
    pub async fn following<T: Transaction>(
        &self,
        tx: &T,
        user: &Id,
        isolation: Isolation,
    ) -> Result<BTreeSet<Id>, Error> {
        crate::called!();
        self.ends(tx, user, Kind::HasFollowed, isolation).await
    }

    /// Who follows a user.
    pub async fn followers<T: Transaction>(
        &self,
        tx: &T,
        user: &Id,
        isolation: Isolation,
    ) -> Result<BTreeSet<Id>, Error> {
        crate::called!();
        self.ends(tx, user, Kind::FollowedBy, isolation).await
    }

    fn connect<T: Transaction>(&self, tx: &T, user: &Id, kind: Kind, other: &Id) -> Result<(), Error> {
        for key in keys::both(&self.users, user, kind, other)? {
            tx.set(&key, b"");
        }
        Ok(())
    }

    fn disconnect<T: Transaction>(&self, tx: &T, user: &Id, kind: Kind, other: &Id) -> Result<(), Error> {
        for key in keys::both(&self.users, user, kind, other)? {
            tx.clear(&key);
        }
        Ok(())
    }

    async fn ends<T: Transaction>(
        &self,
        tx: &T,
        user: &Id,
        kind: Kind,
        isolation: Isolation,
    ) -> Result<BTreeSet<Id>, Error> {
        let range = RangeOption::from(keys::edges(&self.users, user, kind).range());
        let rows = tx.get_range_all(range, isolation).await?;
        rows.iter().map(|row| Ok(keys::end(&self.users, user, &row.key)?.1)).collect()
    }
}

once_forms! { impl Graph, Error {
    add_friend_once = add_friend(one: &Id, other: &Id) -> ();
    remove_friend_once = remove_friend(one: &Id, other: &Id) -> ();
    follow_once = follow(follower: &Id, followed: &Id) -> ();
    unfollow_once = unfollow(follower: &Id, followed: &Id) -> ();
    remove_user_once = remove_user(user: &Id) -> u64;
} }
