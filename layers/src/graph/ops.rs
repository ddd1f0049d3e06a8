//! Operations on graphs.

use super::{
    Error,
    keys::{self, Kind},
};
use crate::{
    id::Id,
    limits, read, sometimes,
    tx::{Isolation, RangeOption, Transaction, key_after},
};
use foundationdb_tuple::Subspace;
use futures::{StreamExt, TryStreamExt, stream};
use std::{collections::BTreeSet, pin::pin};

/// The users in their own subspace, and the edges between them.
#[derive(Clone, Debug)]
pub struct Graph {
    users: Subspace,
}

impl Graph {
    /// The graph in `users`, which must not be used for anything else.
    pub fn new(users: Subspace) -> Graph {
        Graph { users }
    }

    /// Makes two users friends. Does nothing if they are friends already.
    pub async fn add_friend<T: Transaction>(&self, tx: &T, one: &Id, other: &Id) -> Result<(), Error> {
        let tx = &tx.writing().await;
        self.connect(tx, one, Kind::FriendsWith, other)
    }

    /// Ends a friendship for both users. Does nothing if they are not friends.
    pub async fn remove_friend<T: Transaction>(&self, tx: &T, one: &Id, other: &Id) -> Result<(), Error> {
        let tx = &tx.writing().await;
        self.disconnect(tx, one, Kind::FriendsWith, other)
    }

    /// Makes `follower` follow `followed`.
    pub async fn follow<T: Transaction>(&self, tx: &T, follower: &Id, followed: &Id) -> Result<(), Error> {
        let tx = &tx.writing().await;
        self.connect(tx, follower, Kind::HasFollowed, followed)
    }

    /// Makes `follower` stop following `followed`.
    pub async fn unfollow<T: Transaction>(&self, tx: &T, follower: &Id, followed: &Id) -> Result<(), Error> {
        let tx = &tx.writing().await;
        self.disconnect(tx, follower, Kind::HasFollowed, followed)
    }

    /// Removes a user: every edge, at both ends. Returns the number of edges.
    pub async fn remove_user<T: Transaction>(&self, tx: &T, user: &Id) -> Result<u64, Error> {
        let tx = &tx.writing().await;
        let below = keys::user(&self.users, user);
        let all = RangeOption::from(below.range());
        let rows = read::all::<_, Error>(tx, all, Isolation::Serializable).await?;
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
        let tx = &tx.reading().await;
        let key = keys::edge(&self.users, one, Kind::FriendsWith, other);
        limits::key(&key)?;
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
        let tx = &tx.reading().await;
        let key = keys::edge(&self.users, follower, Kind::HasFollowed, followed);
        limits::key(&key)?;
        Ok(tx.get(&key, isolation).await?.is_some())
    }

    /// A user's friends.
    pub async fn friends<T: Transaction>(
        &self,
        tx: &T,
        user: &Id,
        isolation: Isolation,
    ) -> Result<BTreeSet<Id>, Error> {
        let tx = &tx.reading().await;
        self.ends(tx, user, Kind::FriendsWith, &read::Allowance::new(), isolation).await
    }

    /// The first `limit` of a user's friends, in the order of ids, or of those after `after`: pass the last
    /// id of a page to read the next one. A page shorter than `limit` is the last one.
    pub async fn friends_page<T: Transaction>(
        &self,
        tx: &T,
        user: &Id,
        after: Option<&Id>,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<Id>, Error> {
        let tx = &tx.reading().await;
        self.page(tx, user, Kind::FriendsWith, after, limit, isolation).await
    }

    /// The friends of a user's friends, excluding the user's own friends and the user.
    ///
    /// All edges that it reads count together, and [`READ_COST`](limits::READ_COST) bytes more for each
    /// friend: beyond [`READ_LIMIT`](limits::READ_LIMIT), which is reached with 10,000 friends at the latest,
    /// the call is refused.
    pub async fn friends_of_friends<T: Transaction>(
        &self,
        tx: &T,
        user: &Id,
        isolation: Isolation,
    ) -> Result<BTreeSet<Id>, Error> {
        let tx = &tx.reading().await;
        let allowance = &read::Allowance::new();
        let friends = self.ends(tx, user, Kind::FriendsWith, allowance, isolation).await?;
        allowance.reads(friends.len())?;
        let theirs = |friend| self.ends(tx, friend, Kind::FriendsWith, allowance, isolation);
        let reads: Vec<_> = friends.iter().map(theirs).collect();
        let mut theirs = pin!(stream::iter(reads).buffered(read::AT_ONCE));
        let mut second = BTreeSet::new();
        while let Some(ends) = theirs.try_next().await? {
            second.extend(ends);
        }
        let reached = second.len();
        second.retain(|id| id != user && !friends.contains(id));
        sometimes!(reached > second.len() + 1, "graph: friends are friends of each other");
        Ok(second)
    }

    /// The users that a user follows.
    pub async fn following<T: Transaction>(
        &self,
        tx: &T,
        user: &Id,
        isolation: Isolation,
    ) -> Result<BTreeSet<Id>, Error> {
        let tx = &tx.reading().await;
        self.ends(tx, user, Kind::HasFollowed, &read::Allowance::new(), isolation).await
    }

    /// The first `limit` of the users that a user follows, in the order of ids, or of those after `after`:
    /// pass the last id of a page to read the next one. A page shorter than `limit` is the last one.
    pub async fn following_page<T: Transaction>(
        &self,
        tx: &T,
        user: &Id,
        after: Option<&Id>,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<Id>, Error> {
        let tx = &tx.reading().await;
        self.page(tx, user, Kind::HasFollowed, after, limit, isolation).await
    }

    /// The users that follow a user.
    pub async fn followers<T: Transaction>(
        &self,
        tx: &T,
        user: &Id,
        isolation: Isolation,
    ) -> Result<BTreeSet<Id>, Error> {
        let tx = &tx.reading().await;
        self.ends(tx, user, Kind::FollowedBy, &read::Allowance::new(), isolation).await
    }

    /// The first `limit` of the users that follow a user, in the order of ids, or of those after `after`:
    /// pass the last id of a page to read the next one. A page shorter than `limit` is the last one.
    pub async fn followers_page<T: Transaction>(
        &self,
        tx: &T,
        user: &Id,
        after: Option<&Id>,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<Id>, Error> {
        let tx = &tx.reading().await;
        self.page(tx, user, Kind::FollowedBy, after, limit, isolation).await
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
        allowance: &read::Allowance,
        isolation: Isolation,
    ) -> Result<BTreeSet<Id>, Error> {
        let range = RangeOption::from(keys::edges(&self.users, user, kind).range());
        let rows = allowance.all::<_, Error>(tx, range, isolation).await?;
        rows.iter().map(|row| Ok(keys::end(&self.users, user, &row.key)?.1)).collect()
    }

    async fn page<T: Transaction>(
        &self,
        tx: &T,
        user: &Id,
        kind: Kind,
        after: Option<&Id>,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<Id>, Error> {
        let (mut begin, end) = keys::edges(&self.users, user, kind).range();
        if let Some(after) = after {
            let last = keys::edge(&self.users, user, kind, after);
            limits::key(&last)?;
            begin = key_after(&last).into();
        }
        let rows = read::page::<_, Error>(tx, (begin, end), limit, isolation).await?;
        rows.iter().map(|row| Ok(keys::end(&self.users, user, &row.key)?.1)).collect()
    }
}
