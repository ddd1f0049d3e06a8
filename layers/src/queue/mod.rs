//! A first-in, first-out queue of byte strings, by index or in commit order.
//!
//! # Promise
//!
//! * Every enqueued item is dequeued at most once, and none is lost: enqueued = dequeued + remaining, at
//!   every version.
//! * [`Order::Index`], the order of the recipe: an item's key consists of one more than the last index, read
//!   at snapshot, and a suffix drawn for the operation. If the enqueue of one item was *acknowledged before
//!   another's was called*, the first leaves first. Items of concurrent enqueues may leave in any order.
//! * [`Order::Commit`]: an item's key contains the versionstamp of its transaction. Items leave in the order
//!   in which their enqueues *committed*, without exception.
//! * In both orders, items enqueued by one transaction leave in the order of the calls.
//! * Enqueues never conflict with each other, nor with a dequeue unless the dequeue finds the queue empty.
//!   Two dequeues of one item conflict, and one of them retries.
//! * The functions can be combined with others in one transaction. In the transaction of a
//!   [`Session`](crate::once::Session) they are applied exactly once, and their results are recorded.
//!
//! # What it does not do
//!
//! * Dequeues do not scale: all of them compete for the same first item, so about one succeeds per round
//!   trip. A [`staged_queue`](crate::staged_queue) serves many at a time. There is also no lease and no
//!   acknowledgement, as a [`leased_queue`](crate::leased_queue) has: the queue does not track items after
//!   their dequeue.
//! * It maintains no length: [`len`](Queue::len) counts. A counter would be one key that every enqueue and
//!   every dequeue writes, and its value would be outdated by the time a reader acts on it.
//! * A call within a transaction is applied as often as its transaction commits. A caller that retries after
//!   an unknown result without [`once`](crate::once) enqueues twice, or loses the item that the first attempt
//!   took.
//! * In commit order a transaction cannot read items that it enqueued itself, which have no key yet: reads
//!   that reach them fail with [`Error::OwnItemsUnreadable`]. With snapshot read-your-writes disabled (option
//!   601) several items of one transaction tie in index order.
//! * In index order, indexes start again at 1 whenever the queue is empty; they do not identify items.
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
//! The keys are described in the module `keys`.
//!
//! ```
//! use shaketable_layers::queue::{Error, Item, ItemId, Position, Queue};
//! use shaketable_tx::{Database, once::{Outcome, Session}};
//!
//! // Exactly once: after an unknown result, `resolve` returns the fate of the session's last operation. The
//! // id is drawn once, however often the transaction is retried.
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
