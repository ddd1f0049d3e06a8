//! A first-in, first-out queue for a large number of concurrent dequeues, which do not conflict on the first
//! item.
//!
//! All dequeues of a plain [`queue`](crate::queue) compete for the same first item, so that about one
//! succeeds per round trip. In this queue, a dequeue that conflicts with others does not retry: it registers
//! a request, at its own key, and waits. Every waiting client serves all existing requests, in one
//! transaction.
//!
//! # Promise
//!
//! * Every enqueued item leaves at most once, and none is lost, regardless of failed commits and clients: an
//!   item that was parked for a client that has died can be returned to the queue.
//! * Items are handed out in the order in which their enqueues *committed*, to requests in the order in which
//!   the requests *committed*. No later request is served before an existing one. An item that is returned
//!   has its old position again: before all items that were enqueued after it.
//! * The result "no item" is correct at the version of the transaction that determined it.
//! * Enqueues never conflict with each other, nor do registrations, and neither conflicts with a fulfilment
//!   unless the fulfilment finds the queue empty.
//! * [`dequeue`](StagedQueue::dequeue) and the parts of it that take a session take effect exactly once
//!   ([`once`](crate::once)). A dequeue whose future is dropped loses nothing: the session's next dequeue
//!   from the same queue continues it. [`dequeue_within`](StagedQueue::dequeue_within) gives up cleanly: it
//!   returns the item that it was given, or removes its request.
//! * [`fulfil`](StagedQueue::fulfil) and [`reclaim`](StagedQueue::reclaim) may be called by any process, any
//!   number of times: they do not change what is already done.
//!
//! # What it does not do
//!
//! * It does not detect dead clients. The caller of [`reclaim_unchanged`](StagedQueue::reclaim_unchanged)
//!   chooses for how long parked items are observed; a client that was only slow finds its request gone, and
//!   makes a new one. No clock is read or stored.
//! * Nothing is reclaimed automatically: call it periodically, from any process.
//! * Until it is reclaimed, an item parked for a dead client is not in the queue: other clients may get the
//!   result that there is none.
//! * A transaction cannot dequeue what it enqueued itself: [`Error::OwnUnreadable`].
//! * Values above [`MAX_VALUE_BYTES`] are refused, not split.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | enqueue | – | 1 | calls that find the queue empty |
//! | take without waiting requests | 2 ranges of one row | 1 | takes, fulfilments, registrations |
//! | take with waiting requests; register | 1 range of one row; – | 1 | takes |
//! | fulfil *n* | 2 ranges of *n* rows | 3 *n* | takes, other fulfilments |
//! | collect | 1 or 2 keys | 1 | a reclaim of the same item |
//! | leave | 2 keys | 1 | a fulfilment of the same request |
//! | reclaim | 1 key | 2 | a collection of the same item |
//!
//! ```
//! use shaketable_layers::staged_queue::{Error, StagedQueue};
//! use shaketable_tx::{Database, once::{Outcome, Session}};
//! use std::time::Duration;
//!
//! async fn work<D: Database>(session: &mut Session<D>, jobs: &StagedQueue) -> Result<(), Error> {
//!     while let Outcome::Applied(Some(job)) = jobs.dequeue(session).await {
//!         println!("{:?}", job.value);
//!     }
//!     // From time to time, return items that were parked for dead clients.
//!     let db = session.database().clone();
//!     jobs.reclaim_unchanged(&db, Duration::from_secs(60)).await.map_err(|e| e.error)?;
//!     Ok(())
//! }
//! ```

mod error;
mod keys;
mod ops;
mod wait;

pub use crate::queue::MAX_VALUE_BYTES;
pub use error::Error;
pub use keys::{Registered, Request, Row};
pub use ops::{RequestState, Served, StagedQueue, Taken};
