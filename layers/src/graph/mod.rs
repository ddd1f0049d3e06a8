//! Graphs of users: mutual friends, and followers.
//!
//! # Promise
//!
//! * Friendship is undirected: adding or removing it changes both users, in one transaction.
//! * Following is directed and can be read from both ends: the users that a user follows, and the users that
//!   follow a user, are read from the same edges.
//! * [`friends_of_friends`](Graph::friends_of_friends) is read in one transaction, at one version: the users
//!   one step away from a friend, excluding the friends and the user.
//! * [`remove_user`](Graph::remove_user) leaves no edge at any other user.
//! * A user cannot be connected with themselves: [`Error::SelfEdge`].
//! * Adding and removing edges requires no read. Two such operations never conflict.
//! * Through [`Session::apply`](crate::once::Session::apply) operations take effect exactly once.
//! * A call that would read more than [`READ_LIMIT`](crate::limits::READ_LIMIT) bytes of edges is refused;
//!   for the friends of friends, the edges of the user and of all friends count together.
//!   [`friends_page`](Graph::friends_page), [`following_page`](Graph::following_page) and
//!   [`followers_page`](Graph::followers_page) read any number of edges in pages.
//!
//! # What it does not do
//!
//! * It keeps no list of users: a user exists through edges, and may get new ones after a removal.
//! * It does not split large operations: a user is removed in one transaction. A removal that does not fit
//!   into one transaction is refused before anything is written.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | add and remove friend, follow, unfollow | – | 2 | readers of either user's edges |
//! | are friends, follows | 1 key | – | writers of the edge |
//! | friends, following, followers, and their pages | 1 range | – | writers of the user's edges of that kind |
//! | friends of friends | 1 range, and 1 for each friend, 16 at once | – | writers of all of these |
//! | remove user | 1 range | a range, and 1 for each edge | writers of the user's edges |
//!
//! ```
//! use shaketable_layers::{graph::{Error, Graph}, id::Id};
//! use shaketable_tx::{Isolation, Transaction};
//! use std::collections::BTreeSet;
//!
//! async fn introduce<T: Transaction>(tx: &T, users: &Graph) -> Result<BTreeSet<Id>, Error> {
//!     let (alice, bob, carol) = ("alice".into(), "bob".into(), "carol".into());
//!     users.add_friend(tx, &alice, &bob).await?;
//!     users.add_friend(tx, &bob, &carol).await?;
//!     users.follow(tx, &carol, &alice).await?;
//!     // Carol, whom Alice can reach through Bob.
//!     users.friends_of_friends(tx, &alice, Isolation::Serializable).await
//! }
//! ```

mod error;
mod keys;
mod ops;

pub use error::Error;
pub use ops::Graph;
