//! A first-in, first-out queue of byte strings, in either of two orders.
//!
//! # Promise
//!
//! * Every item enqueued is dequeued at most once, and none is lost: enqueued = dequeued + remaining, at
//!   every version.
//! * [`Order::Index`], the recipe's order: an item's key is one more than the last index, read at
//!   snapshot, and a suffix drawn for the operation. If the enqueue of one item was *acknowledged before
//!   another's was called*, the first leaves first. Items whose enqueues overlap may leave in any order.
//! * [`Order::Commit`]: an item's key is the versionstamp of its transaction. Items leave in the order in
//!   which their enqueues *committed*, with no exception.
//! * In both, items enqueued by one transaction leave in the order of the calls.
//! * Enqueues never conflict with each other, nor with a dequeue unless that finds the queue empty. Two
//!   dequeues of one item conflict, and one of them retries.
//! * The functions compose with anything else in their transaction. In that of a
//!   [`Session`](crate::once::Session) they are applied exactly once, and what they answer is recorded.
//!
//! # What it does not do
//!
//! * Dequeues do not scale: all of them want the same first item, so about one succeeds per round trip.
//!   A [`staged_queue`](crate::staged_queue) serves many at a time. There is no lease and no acknowledgement
//!   either, as a [`leased_queue`](crate::leased_queue) has: an item that was dequeued is the caller's.
//! * It maintains no length: [`len`](Queue::len) counts. A counter would be one key that every enqueue and
//!   every dequeue writes, for a number that has changed when its reader acts upon it.
//! * A transaction-level call is as often applied as its transaction commits. Whoever retries after an
//!   unknown result without [`once`](crate::once) enqueues twice or loses what the first attempt took.
//! * In commit order a transaction cannot look at what it enqueued itself, which has no key yet: reading
//!   up to there is [`Error::OwnItemsUnreadable`]. With snapshot read-your-writes disabled (option 601)
//!   several items of one transaction tie in index order.
//! * In index order indexes begin again at 1 whenever the queue is empty; they are no identity.
//! * Commit order holds within one cluster: versionstamps of another cluster do not continue it.
//! * Values above [`MAX_VALUE_BYTES`] are refused, not split.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | enqueue, in index order | the last item, at snapshot | one key | a dequeue that found the queue empty |
//! | enqueue, in commit order | a read version | one key | a dequeue that found the queue empty |
//! | dequeue | the first item | one key | dequeues; of an empty queue: enqueues |
//! | peek, is_empty | the first item | – | as a dequeue, when serializable |
//! | len, items, items_page | all items; those of the page | – | every change, when serializable |
//!
//! The keys are drawn in the module `keys`.
//!
//! ```
//! use shaketable_layers::{
//!     once::{Outcome, Session},
//!     queue::{Error, Item, ItemId, Position, Queue},
//!     tx::Database,
//! };
//!
//! // Exactly once: `resolve` tells after an unknown result what became of the session's last operation.
//! // The id is drawn once, however often the transaction is retried.
//! async fn pass_on<D: Database>(
//!     session: &mut Session<D>,
//!     queue: &Queue,
//! ) -> (Outcome<Position, Error>, Outcome<Option<Item>, Error>) {
//!     let id = ItemId::draw(session.database().env());
//!     let enqueued = session.apply(|tx| async move { queue.enqueue(&tx, id, b"order 66").await }).await;
//!     (enqueued, session.apply(|tx| async move { queue.dequeue(&tx).await }).await)
//! }
//! ```

mod error;
mod keys;
mod ops;

pub use error::Error;
pub use keys::{ItemId, MAX_VALUE_BYTES, Order, Position};
pub use ops::{Item, Queue};
