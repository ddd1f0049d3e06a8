//! `graph`: users become friends, follow each other, end both, and leave; queries read a user's friends,
//! followers and friends of friends.
//!
//! There are few users, so that edges meet. Their names differ only in their type, and one is so long that
//! edges with some of the others are refused. In some seeds a user has many friends from the beginning, more
//! than the number whose friends are read concurrently. In half of the runs there are a few names at the
//! edges of types, lengths and texts.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;
mod planted;

use crate::shared::{self, draw_edge_ids, edge_ids};
use foundationdb_tuple::Subspace;
use proptest::option;
use shaketable::{prelude::*, real::key_room, strategies};
use shaketable_layers::{
    graph::{Error, Graph as Layer},
    id::Id,
};
use shaketable_tx::{KEY_SIZE_LIMIT, KeyValue, limits};
use std::collections::BTreeSet;

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Graph {
    /// How many of [`users`] are used.
    users: usize,
    /// Ids that are used beside them.
    edges: Vec<Id>,
    /// The number of friends that [`STAR`] has at first.
    crowd: i64,
}

/// Friends and followers, and the friends of friends.
#[shaketable::workload(name = "graph", model = Edges, planted, promises(turns, limits))]
impl Graph {
    fn draw(rng: &mut Stream) -> Graph {
        Graph {
            users: rng.range(3..users().len() as u64 + 1) as usize,
            edges: draw_edge_ids(rng),
            crowd: if rng.chance(0.3) { rng.range(15..40) as i64 } else { 0 },
        }
    }

    fn points() -> &'static [&'static str] {
        &["graph: friends are friends of each other", "graph: a removal reaches others' edges"]
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        users()[..self.users].iter().map(|user| space().pack(&(user,))).collect()
    }

    fn subspaces(&self) -> [(Vec<u8>, Vec<u8>); 1] {
        [space().range()]
    }

    fn layer(&self) -> Layer {
        Layer::new(space())
    }

    #[draws(u, v, user)]
    fn user(&self) -> BoxedStrategy<Id> {
        strategies::mostly(select([&users()[..self.users], &self.edges].concat()), edge_ids()).boxed()
    }

    /// A user; one of the many friends too, if there are any.
    fn end(&self) -> BoxedStrategy<Id> {
        match self.crowd {
            0 => self.user(),
            crowd => prop_oneof![self.user(), (0..crowd).prop_map(|n| of_crowd(n)[0].clone())].boxed(),
        }
    }

    #[draws(kind)]
    fn kind() -> impl Strategy<Value = Kind> {
        select(vec![Kind::Friends, Kind::Following, Kind::Followers])
    }

    async fn setup(&self, tx: &Tx) -> Result<(), Error> {
        for (u, v) in self.model().friends {
            tx.set(&space().pack(&(u, Kind::Friends.name(), v)), b"");
        }
        Ok(())
    }

    #[write(weight = 8, blind)]
    async fn add_friend(&self, tx: &Tx, u: &Id, v: &Id) -> Result<(), Error> {
        self.layer().add_friend(tx, u, v).await
    }

    #[write(weight = 3, blind)]
    async fn remove_friend(&self, tx: &Tx, u: &Id, v: &Id) -> Result<(), Error> {
        self.layer().remove_friend(tx, u, v).await
    }

    #[write(weight = 6, blind)]
    async fn follow(&self, tx: &Tx, u: &Id, v: &Id) -> Result<(), Error> {
        self.layer().follow(tx, u, v).await
    }

    #[write(weight = 3, blind)]
    async fn unfollow(&self, tx: &Tx, u: &Id, v: &Id) -> Result<(), Error> {
        self.layer().unfollow(tx, u, v).await
    }

    #[write(weight = 2)]
    async fn remove_user(&self, tx: &Tx, user: &Id) -> Result<u64, Error> {
        self.layer().remove_user(tx, user).await
    }

    #[read]
    async fn are_friends(&self, tx: &Tx, isolation: Isolation, u: &Id, v: &Id) -> Result<bool, Error> {
        self.layer().are_friends(tx, u, v, isolation).await
    }

    #[read]
    async fn follows(&self, tx: &Tx, isolation: Isolation, u: &Id, v: &Id) -> Result<bool, Error> {
        self.layer().follows(tx, u, v, isolation).await
    }

    #[read(weight = 6)]
    async fn friends_of_friends(
        &self,
        tx: &Tx,
        isolation: Isolation,
        user: &Id,
    ) -> Result<BTreeSet<Id>, Error> {
        self.layer().friends_of_friends(tx, user, isolation).await
    }

    #[read(weight = 6)]
    async fn ends(
        &self,
        tx: &Tx,
        isolation: Isolation,
        kind: Kind,
        user: &Id,
    ) -> Result<BTreeSet<Id>, Error> {
        match kind {
            Kind::Friends => self.layer().friends(tx, user, isolation).await,
            Kind::Following => self.layer().following(tx, user, isolation).await,
            Kind::Followers => self.layer().followers(tx, user, isolation).await,
        }
    }

    #[read(weight = 4)]
    async fn page(
        &self,
        tx: &Tx,
        isolation: Isolation,
        kind: Kind,
        #[draw(self.end())] user: &Id,
        #[draw(option::of(self.end()))] after: Option<Id>,
        #[draw(prop_oneof![8 => 0..6usize, 1 => strategies::counts(self.crowd as usize), 1 => Just(100)])]
        limit: usize,
    ) -> Result<Vec<Id>, Error> {
        match kind {
            Kind::Friends => self.layer().friends_page(tx, user, after.as_ref(), limit, isolation).await,
            Kind::Following => self.layer().following_page(tx, user, after.as_ref(), limit, isolation).await,
            Kind::Followers => self.layer().followers_page(tx, user, after.as_ref(), limit, isolation).await,
        }
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Result<Edges, String>> {
        Ok(read(&shared::rows(tx, &space()).await?))
    }

    /// The content of the database before the first operation.
    fn model(&self) -> Edges {
        let mut edges = Edges::default();
        for n in 0..self.crowd {
            let [friend, theirs] = of_crowd(n);
            edges.friends.extend([(STAR.into(), friend.clone()), (friend, theirs)]);
        }
        edges.friends.extend(transposed(&edges.friends));
        edges
    }
}

/// The model: the edges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edges {
    /// Each pair, in both orders.
    friends: BTreeSet<(Id, Id)>,
    /// Follower and followed.
    follows: BTreeSet<(Id, Id)>,
}

impl Edges {
    fn add_friend(&mut self, u: &Id, v: &Id) -> Result<(), Error> {
        self.friends.extend([pair(u, FRIENDS, v)?, pair(v, FRIENDS, u)?]);
        Ok(())
    }

    fn remove_friend(&mut self, u: &Id, v: &Id) -> Result<(), Error> {
        let (one, other) = (pair(u, FRIENDS, v)?, pair(v, FRIENDS, u)?);
        self.friends.retain(|edge| *edge != one && *edge != other);
        Ok(())
    }

    fn follow(&mut self, u: &Id, v: &Id) -> Result<(), Error> {
        self.follows.insert(pair(u, FOLLOWS, v)?);
        Ok(())
    }

    fn unfollow(&mut self, u: &Id, v: &Id) -> Result<(), Error> {
        self.follows.remove(&pair(u, FOLLOWS, v)?);
        Ok(())
    }

    fn remove_user(&mut self, user: &Id) -> Result<u64, Error> {
        let friends = ends(&self.friends, user).len();
        let (before, away) = (self.follows.len(), |(u, v): &(Id, Id)| u != user && v != user);
        self.friends.retain(away);
        self.follows.retain(away);
        Ok((friends + before - self.follows.len()) as u64)
    }

    fn are_friends(&self, u: &Id, v: &Id) -> Result<bool, Error> {
        fits(u, Kind::Friends, v)?;
        Ok(self.friends.contains(&(u.clone(), v.clone())))
    }

    fn follows(&self, u: &Id, v: &Id) -> Result<bool, Error> {
        fits(u, Kind::Following, v)?;
        Ok(self.follows.contains(&(u.clone(), v.clone())))
    }

    fn friends_of_friends(&self, user: &Id) -> Result<BTreeSet<Id>, Error> {
        let friends = ends(&self.friends, user);
        let theirs = friends.iter().flat_map(|friend| ends(&self.friends, friend));
        Ok(theirs.filter(|id| id != user && !friends.contains(id)).collect())
    }

    fn ends(&self, kind: Kind, user: &Id) -> Result<BTreeSet<Id>, Error> {
        Ok(match kind {
            Kind::Friends => ends(&self.friends, user),
            Kind::Following => ends(&self.follows, user),
            Kind::Followers => ends(&transposed(&self.follows), user),
        })
    }

    fn page(&self, kind: Kind, user: &Id, after: Option<Id>, limit: usize) -> Result<Vec<Id>, Error> {
        let mut ends = self.ends(kind, user)?;
        if let Some(after) = after {
            fits(user, kind, &after)?;
            ends.retain(|id| *id > after);
        }
        Ok(ends.into_iter().take(limit).collect())
    }
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
    fn name(self) -> &'static str {
        match self {
            Kind::Friends => "friendsWith",
            Kind::Following => "hasFollowed",
            Kind::Followers => "followedBy",
        }
    }
}

/// The kind of a friendship, and of a follow edge, seen from each of the two.
const FRIENDS: [Kind; 2] = [Kind::Friends, Kind::Friends];
const FOLLOWS: [Kind; 2] = [Kind::Following, Kind::Followers];

/// The users' subspace.
fn space() -> Subspace {
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
    Id::from("x".repeat(KEY_SIZE_LIMIT - others - key_room()))
}

/// The user who has many friends, in some seeds.
const STAR: &str = "a";

/// A friend of [`STAR`], and a friend of that friend who has no other friends.
fn of_crowd(n: i64) -> [Id; 2] {
    [(10_000 + n).into(), (20_000 + n).into()]
}

fn transposed(edges: &BTreeSet<(Id, Id)>) -> BTreeSet<(Id, Id)> {
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

/// Reads rows back by the key schema, as a model.
fn read(rows: &[KeyValue]) -> Result<Edges, String> {
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
    Ok(Edges { friends, follows })
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Graph>>()
}
