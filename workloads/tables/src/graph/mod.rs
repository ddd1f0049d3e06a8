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
mod model;
mod operations;
mod planted;

pub use model::Model;
pub use operations::{Answer, Kind, Op};

use crate::shared::{self, draw_edge_ids};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use model::{read, transposed};
use operations::{STAR, of_crowd, users};
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    specimen::{self, At, Specimen},
    weakened::Span,
    workload::{Bug, Outcome},
};
use shaketable_layers::{
    graph::{Error, Graph as Layer},
    id::Id,
};
use shaketable_sim::seed::Stream;
use shaketable_tx::{self as tx, Database, Db, Env, Isolation, Transaction, Tx, once::Session};

/// The users' subspace.
fn space() -> Subspace {
    Subspace::from("users")
}

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Graph {
    /// How many of [`users`] are used.
    users: usize,
    /// Ids that are used beside them.
    edges: Vec<Id>,
    /// The number of friends that [`STAR`] has at first.
    crowd: i64,
    planted: Option<Planted>,
}

impl Graph {
    /// The content of the database before the first operation.
    fn first(&self) -> Model {
        let mut model = Model::default();
        for n in 0..self.crowd {
            let [friend, theirs] = of_crowd(n);
            model.friends.extend([(STAR.into(), friend.clone()), (friend, theirs)]);
        }
        model.friends.extend(transposed(&model.friends));
        model
    }

    /// Performs a call correctly.
    async fn right(&self, tx: &Tx, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
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
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Graph>>()
}

impl Specimen for Graph {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "graph";
    const ABOUT: &'static str = "friends and followers, and the friends of friends";
    const CHECKS_LIMITS: bool = true;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &["graph: friends are friends of each other", "graph: a removal reaches others' edges"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Graph {
        Graph {
            users: rng.range(3..users().len() as u64 + 1) as usize,
            edges: draw_edge_ids(rng),
            crowd: if rng.chance(0.3) { rng.range(15..40) as i64 } else { 0 },
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        users()[..self.users].iter().map(|user| space().pack(&(user,)).into()).collect()
    }

    fn subspaces(&self) -> Vec<Span> {
        vec![space().range()]
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        self.drawn()
    }

    fn is_read_only(op: &Op) -> bool {
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

    async fn setup(&self, db: &Db) -> Result<(), tx::Error> {
        let write = |tx: Tx, _| async move {
            for (u, v) in self.first().friends {
                tx.set(&space().pack(&(u, Kind::Friends.name(), v)), b"");
            }
            Ok::<_, tx::Error>(())
        };
        db.run(write).await.map_err(|e| e.error)
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        Self::is_read_only(op) && self.planted.is_none_or(|planted| planted == Planted::TheirsAtSnapshot)
    }

    async fn perform(&self, tx: &Tx, _: &Env, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        match self.planted {
            Some(planted) => planted::perform(planted, self, tx, op, isolation).await,
            None => self.right(tx, op, isolation).await,
        }
    }

    async fn apply_planted(
        &self,
        session: &mut Session<Db>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        match (self.planted, ops) {
            (Some(Planted::Incomplete), [Op::FriendsOfFriends(user)]) => {
                let torn = planted::friends_of_friends(session.database(), user).await;
                Some(torn.map_or_else(Outcome::Failed, |users| {
                    Outcome::Answered(specimen::Answer::Done(vec![Answer::Users(users)]))
                }))
            }
            _ => None,
        }
    }

    fn takes_turns(&self) -> bool {
        self.planted.is_none()
    }

    fn model(&self) -> Model {
        self.first()
    }

    fn replay(&self, model: &mut Model, op: &Op, _: &At) -> Result<Answer, Error> {
        self.replayed(model, op)
    }

    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Model, Misfit>> {
        let rows = shared::rows(tx, &space()).await?;
        Ok(read(&rows).map_err(Misfit::from))
    }
}
