//! Singly linked lists: nodes with attributes, each with a link to the next one.
//!
//! # Promise
//!
//! * Walking from the first node meets every node once, and ends. Concurrent insertions and removals,
//!   of neighbours too, leave one list: no node is cut off, none comes back.
//! * A removed node leaves nothing behind: its value, its link and its attributes go together, and nothing
//!   can be set on a node that is gone.
//! * An [`Id`](crate::id::Id) keeps its type: what a link holds is found again. One id is in the list once.
//! * A link that is absent or empty is the end.
//! * Through [`Session::apply`](crate::once::Session::apply) operations take effect exactly once. Without it,
//!   [`remove_next_node_if`](List::remove_next_node_if) names the node that is meant: repeated, it is refused
//!   and removes no second one.
//! * A walk meets at most [`MAX_WALK`] nodes, for each takes a round trip and a transaction has five seconds;
//!   a longer one is refused. The next walk begins after the last node of this one.
//!
//! # What it does not do
//!
//! * It has no positions: finding the tenth node is a walk of ten steps. A vector has positions.
//! * It has no way back: what comes before a node is not stored.
//! * It keeps nothing called `next` as an attribute: the link is stored under that name.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | push front | 2 keys | 3 | changes of the first node, and of the id |
//! | insert after | 3 keys | 3 | changes of the node's link, and of the id |
//! | remove first, remove next | 3 keys | 1, and a range | changes of both links |
//! | next, contains, value, attribute | 1 or 2 keys | – | writers of these |
//! | set value, set or clear attribute | 1 key | 1 | the node's removal, and set value |
//! | attributes | 1 range | – | every change of the node |
//! | walk | 2 keys a node, one node after the other | – | every change of a link on the way |
//!
//! ```
//! use shaketable_layers::{id::Id, list::{Error, List}, tx::{Isolation, Transaction}};
//!
//! async fn leave_out_the_second<T: Transaction>(tx: &T, line: &List) -> Result<Vec<Id>, Error> {
//!     line.push_front(tx, &"smith".into(), b"").await?;
//!     line.push_front(tx, &"jones".into(), b"").await?;
//!     line.set_attribute(tx, &"jones".into(), "since", b"noon").await?;
//!     // Smith goes, and whoever came behind comes behind Jones now.
//!     line.remove_next_node(tx, &"jones".into()).await?;
//!     let nodes = line.walk(tx, None, 100, Isolation::Serializable).await?;
//!     Ok(nodes.into_iter().map(|node| node.id).collect())
//! }
//! ```

mod error;
mod keys;
mod ops;

pub use error::Error;
pub use keys::NEXT;
pub use ops::{List, Node};

/// How many nodes a walk meets at most.
pub const MAX_WALK: usize = 1_000;
