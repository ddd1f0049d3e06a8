//! Singly linked lists: nodes with attributes, each with a link to the next node.
//!
//! # Promise
//!
//! * A walk from the first node visits every node once, and ends. Concurrent insertions and removals, even of
//!   adjacent nodes, leave one intact list: no node is cut off, and no removed node reappears.
//! * A removed node leaves nothing in the database: its value, its link and its attributes are removed
//!   together, and nothing can be set on a removed node.
//! * An [`Id`](crate::id::Id) keeps its type: the id in a link finds its node. An id occurs in the list at
//!   most once.
//! * An absent or empty link is the end.
//! * Through [`Session::apply`](crate::once::Session::apply) operations take effect exactly once. Without it,
//!   use [`remove_next_node_if`](List::remove_next_node_if), which takes the expected node: when repeated, it
//!   is refused instead of removing a second node.
//! * A walk visits at most [`MAX_WALK`] nodes, because each takes a round trip and a transaction is limited
//!   to five seconds; a longer walk is refused. The next walk starts after the last node of this one.
//!
//! # What it does not do
//!
//! * It has no positions: finding the tenth node takes a walk of ten steps. A vector has positions.
//! * It cannot be walked backwards: the previous node is not stored.
//! * It has no attribute named `next`: the link is stored under that name.
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
//! | walk | 2 keys per node, sequentially | – | every change of a link on the way |
//!
//! ```
//! use shaketable_layers::{id::Id, list::{Error, List}};
//! use shaketable_tx::{Isolation, Transaction};
//!
//! async fn leave_out_the_second<T: Transaction>(tx: &T, line: &List) -> Result<Vec<Id>, Error> {
//!     line.push_front(tx, &"smith".into(), b"").await?;
//!     line.push_front(tx, &"jones".into(), b"").await?;
//!     line.set_attribute(tx, &"jones".into(), "since", b"noon").await?;
//!     // Smith is removed, and the node after Smith now follows Jones.
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

/// The maximum number of nodes that a walk visits.
pub const MAX_WALK: usize = 1_000;
