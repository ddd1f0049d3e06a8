//! `graph`: users become friends, follow each other, part again and leave, and ask who is near them.
//!
//! Few users, so that edges meet, with names that are alike but for their type, and one so long that it can be
//! connected with some of the others only. In some seeds a user has a crowd of friends from the start: more
//! than are asked at once for theirs.

mod planted;

use bytes::Bytes;
use foundationdb_tuple::Subspace;
use proptest::{option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    specimen::{self, At, DEFERRED, KEPT_VERSION, NOT_AWAITED, REMEMBERED, Specimen, UNRECORDED, UNWRITTEN},
    workload::{Bug, Outcome},
};
use shaketable_layers::{
    graph::{Error, Graph as Layer},
    id::Id,
    limits,
    once::Session,
    tx::{
        self, Database, Env,
        Isolation::{self, Serializable},
        RangeOption, Transaction,
    },
};
use shaketable_sim::seed::Stream;
use std::collections::BTreeSet;

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "a friend is added again after an unknown result without an operation record", "a blind write done twice";
    Unwritten = UNWRITTEN, "an edge is acknowledged and never committed", "a write-behind cache";
    Deferred = DEFERRED, "an edge is acknowledged at once and committed with the client's next one", "batching without a wait";
    NotAwaited = NOT_AWAITED, "the commit is begun and not waited for", "fire and forget";
    Remembered = REMEMBERED, "a client that asks again gets what it remembers", "a cache that nobody invalidates";
    KeptVersion = KEPT_VERSION, "a client reads at a version that it keeps for a second", "a read version shared between transactions";
    Untidy = "untidy", "friends of friends include the friends", "the guide's getFriendsOfFriends";
    Torn = "torn", "each user's friends are read in a transaction of their own", "the guide's getFriendsOfFriends, which is not transactional";
    OneSided = "one-sided", "a friendship ends for the one who ends it", "an undirected edge stored twice";
    StillFollowed = "still-followed", "unfollowing removes the edge with the follower only", "a directed edge stored twice";
    SelfEdge = "self-edge", "users follow themselves", "the guide's followUser";
    Untyped = "untyped", "a user who was read from the database is looked up as bytes", "the guide's getFriends, where bytes are no text";
    EdgesStay = "edges-stay", "a user is removed, and not the others' edges", "a removal of what is stored under a name";
    FirstFriends = "first-friends", "only the first sixteen friends are asked for theirs", "a bound on what is read at once, taken for one on what is read";
    PageAgain = "page-again", "a page begins with the user that the page before ended with", "a bound that is inclusive instead of exclusive";
    PageTurned = "page-turned", "a page of followers names those whom the user follows", "a directed edge read from its other end";
    BothUnfollow = "both-unfollow", "unfollowing ends the edge of the other direction too", "a directed edge taken for an undirected one";
    SnapshotRemoval = "snapshot-removal", "a removal reads the user's edges at snapshot isolation", "reads that decide a write outside conflict detection";
    TheirsAtSnapshot = "theirs-at-snapshot", "the friends of friends are read at snapshot, and the friends as asked for", "an isolation that is not passed on";
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
        long(),
        "ab".into(),
        (-1).into(),
        Bytes::new().into(),
    ]
}

/// A user whose edges with `"a"` have keys of the largest size, so that those with longer names are refused.
fn long() -> Id {
    let others = space().pack(&("", Kind::Following.name(), "a")).len();
    Id::from("x".repeat(tx::KEY_SIZE_LIMIT - others))
}

/// The user who has a crowd of friends, in some seeds.
const STAR: &str = "a";

/// A user of the crowd, and a friend of that one who is no friend of anybody else.
fn of_crowd(n: i64) -> [Id; 2] {
    [(10_000 + n).into(), (20_000 + n).into()]
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Graph {
    /// Of [`users`], how many there are.
    users: usize,
    /// How many friends [`STAR`] has at first.
    crowd: i64,
    planted: Option<Planted>,
}

/// A kind of edges, as seen from a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Friends.
    Friends,
    /// Whom the user follows.
    Following,
    /// Who follows the user.
    Followers,
}

impl Kind {
    /// As keys name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Friends => "friendsWith",
            Kind::Following => "hasFollowed",
            Kind::Followers => "followedBy",
        }
    }
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
    /// Reads so many of a user's edges of a kind, from the first one on or after a user.
    Page(Kind, Id, Option<Id>, usize),
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
    /// Users in their order.
    Page(Vec<Id>),
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

/// Refuses an edge that nobody can ask for.
fn fits(u: &Id, kind: Kind, v: &Id) -> Result<(), Error> {
    Ok(limits::key(&space().pack(&(u, kind.name(), v)))?)
}

/// An edge that can be stored: both its keys fit.
fn pair(u: &Id, [kind, mirrored]: [Kind; 2], v: &Id) -> Result<(Id, Id), Error> {
    if u == v {
        return Err(Error::SelfEdge(u.clone()));
    }
    fits(u, kind, v)?;
    fits(v, mirrored, u)?;
    Ok((u.clone(), v.clone()))
}

/// A friendship, as each of the two sees it.
const FRIENDS: [Kind; 2] = [Kind::Friends, Kind::Friends];

/// What following is to either end.
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

/// The key schema read from the other end.
fn read(rows: &[tx::KeyValue]) -> Result<Model, String> {
    let (mut friends, mut follows, mut followed) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for row in rows {
        let parts = space().unpack::<(Id, String, Id)>(&row.key);
        let edges = match parts.as_ref().map(|(_, kind, _)| kind.as_str()) {
            Ok(name) if name == Kind::Friends.name() => &mut friends,
            Ok(name) if name == Kind::Following.name() => &mut follows,
            Ok(name) if name == Kind::Followers.name() => &mut followed,
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

impl Graph {
    /// What is there before the clients are.
    fn first(&self) -> Model {
        let mut model = Model::default();
        for n in 0..self.crowd {
            let [friend, theirs] = of_crowd(n);
            model.friends.extend([(STAR.into(), friend.clone()), (friend, theirs)]);
        }
        model.friends.extend(transposed(&model.friends));
        model
    }
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
        Graph {
            users: rng.range(3..users().len() as u64 + 1) as usize,
            crowd: if rng.chance(0.3) { rng.range(15..40) as i64 } else { 0 },
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        users()[..self.users].iter().map(|user| space().pack(&(user,)).into()).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let users = users()[..self.users].to_vec();
        let user = move || select(users.clone());
        let two = || (user(), user());
        let kind = select(vec![Kind::Friends, Kind::Following, Kind::Followers]);
        // Where there is a crowd, those who are in it are drawn now and then.
        let crowd = self.crowd;
        let after = {
            let user = user.clone();
            move || match crowd {
                0 => user().boxed(),
                crowd => prop_oneof![user(), (0..crowd).prop_map(|n| of_crowd(n)[0].clone())].boxed(),
            }
        };
        let page = (kind, after(), option::of(after()), prop_oneof![8 => 0..6usize, 1 => Just(100)]);
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

    fn is_look(op: &Op) -> bool {
        use Op::*;
        match op {
            AddFriend(..) | RemoveFriend(..) | Follow(..) | Unfollow(..) | RemoveUser(_) => false,
            AreFriends(..) | Follows(..) | Friends(_) | FriendsOfFriends(_) | Following(_) | Followers(_)
            | Page(..) => true,
        }
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        use Op::*;
        matches!(op, AddFriend(..) | RemoveFriend(..) | Follow(..) | Unfollow(..))
    }

    async fn setup<D: Database>(&self, db: &D) -> Result<(), tx::Error> {
        let write = |tx: D::Transaction, _| async move {
            for (u, v) in self.first().friends {
                tx.set(&space().pack(&(u, Kind::Friends.name(), v)), b"");
            }
            Ok::<_, tx::Error>(())
        };
        db.run(write).await.map_err(|e| e.error)
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        Self::is_look(op) && self.planted.is_none_or(|planted| planted == Planted::TheirsAtSnapshot)
    }

    async fn perform<T: Transaction>(
        &self,
        tx: &T,
        _: &Env,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Error> {
        if let Some(planted) = self.planted
            && let Some(answer) = planted::perform(planted, tx, op, isolation).await
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
            Op::AreFriends(u, v) => Answer::Is(graph.are_friends(tx, u, v, isolation).await?),
            Op::Follows(u, v) => Answer::Is(graph.follows(tx, u, v, isolation).await?),
            Op::Friends(user) => Answer::Users(graph.friends(tx, user, isolation).await?),
            Op::FriendsOfFriends(user) => Answer::Users(graph.friends_of_friends(tx, user, isolation).await?),
            Op::Following(user) => Answer::Users(graph.following(tx, user, isolation).await?),
            Op::Followers(user) => Answer::Users(graph.followers(tx, user, isolation).await?),
            Op::Page(kind, user, after, limit) => {
                let (after, limit) = (after.as_ref(), *limit);
                Answer::Page(match kind {
                    Kind::Friends => graph.friends_page(tx, user, after, limit, isolation).await?,
                    Kind::Following => graph.following_page(tx, user, after, limit, isolation).await?,
                    Kind::Followers => graph.followers_page(tx, user, after, limit, isolation).await?,
                })
            }
        })
    }

    async fn divert<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        match (self.planted, ops) {
            (Some(Planted::Torn), [Op::FriendsOfFriends(user)]) => {
                let torn = planted::friends_of_friends(session.database(), user).await;
                Some(torn.map_or_else(Outcome::GaveUp, |users| {
                    Outcome::Answered(specimen::Answer::Done(vec![Answer::Users(users)]))
                }))
            }
            _ => None,
        }
    }

    fn model(&self) -> Model {
        self.first()
    }

    fn replay(&self, model: &mut Model, op: &Op, _: &At) -> Result<Answer, Error> {
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

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Model, String>> {
        let rows = tx.get_range_all(RangeOption::from(space().range()), Serializable).await?;
        Ok(read(&rows))
    }
}
