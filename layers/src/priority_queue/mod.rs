//! A double-ended queue of byte strings with integer priorities, first in, first out within a priority.
//!
//! # Promise
//!
//! * [`pop_min`](PriorityQueue::pop_min) takes an item with the lowest priority,
//!   [`pop_max`](PriorityQueue::pop_max) one with the highest. Every pushed item is popped at most once, and
//!   none is lost.
//! * Among items with the same priority *both* ends take the one that was pushed first: if a push was
//!   acknowledged before another was called, its item leaves first. Items of concurrent pushes may leave in
//!   any order; those of one transaction leave in the order of the calls.
//! * Pushes never conflict with each other. A pop conflicts with a push only if the pushed item would have
//!   been popped instead: an item with a priority nearer to that end, or any item if the pop found none. Two
//!   pops of one item conflict, and one of them retries.
//! * [`change`](PriorityQueue::change) moves an item to another priority in one step: no reader sees it at
//!   both priorities or at neither. The item is placed after the existing ones.
//! * The functions can be combined with others in one transaction. In the transaction of a
//!   [`Session`](crate::once::Session) they are applied exactly once, and their results are recorded.
//!
//! # What it does not do
//!
//! * Pops do not scale: all pops at one end compete for the same item.
//! * It does not find an item by its id: to change a priority later, keep the [`Place`] that the push
//!   returned, and the one that each change returns.
//! * Priorities are integers. FoundationDB sorts every integer before every float, regardless of their
//!   values, so that a queue with both would not be ordered by priority.
//! * Counts start again at 0 whenever a priority has no item; they do not identify items.
//! * With snapshot read-your-writes disabled (option 601), several items pushed by one transaction tie, and
//!   its `pop_max` and `peek_max` do not see its own pushes.
//! * Values above [`MAX_VALUE_BYTES`] are refused, not split.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | push | 1 range of one row, at snapshot | 1 | pops whose item it precedes |
//! | pop min, peek min | 1 range of one row | 1 (a peek: none) | changes at and before the item |
//! | pop max, peek max | 2 ranges of one row | 1 (a peek: none) | changes at and before the item within its priority, and of higher ones |
//! | change | 1 key, 1 range of one row at snapshot | 2 | pops and changes of the item |
//! | items, len; items_page | everything; the page | – | every change of what is read |
//!
//! ```
//! use shaketable_layers::{priority_queue::{Error, PriorityQueue}, queue::ItemId};
//! use shaketable_tx::{Isolation, Transaction};
//!
//! /// The patient with the most urgent operation goes first; ids are drawn before the retry loop.
//! async fn triage<T: Transaction>(tx: &T, patients: &PriorityQueue, ids: [ItemId; 2]) -> Result<(), Error> {
//!     patients.push(tx, ids[0], -1, b"a sprained ankle").await?;
//!     let bed = patients.push(tx, ids[1], 0, b"a headache").await?;
//!     patients.change(tx, bed, 10).await?;
//!     let next = patients.peek_max(tx, Isolation::Serializable).await?;
//!     assert_eq!(next.unwrap().value, "a headache");
//!     Ok(())
//! }
//! ```

mod error;
mod keys;
mod ops;

pub use error::Error;
pub use keys::{MAX_VALUE_BYTES, Place};
pub use ops::{End, Item, PriorityQueue};
