//! A first-in, first-out queue for very many dequeues at a time.
//!
//! All dequeues of a plain [`queue`](crate::queue) want the same first item, so that about one succeeds per
//! round trip. Here a dequeue that meets others does not try again: it registers a request, at a key of its
//! own, and waits. Whoever waits serves all requests there are, in one transaction.
//!
//! # Promise
//!
//! * Every item enqueued leaves at most once, and none is lost, whatever happens to the commits and to the
//!   clients: an item that was parked for a client that has died comes back.
//! * Items are handed out in the order in which their enqueues *committed*, to requests in the order in which
//!   *they* committed. Nobody who comes later is served before a request that stands. An item that comes back
//!   is in its old place again: before all that were enqueued after it.
//! * "There is none" is the truth at the moment of the answer's transaction.
//! * Enqueues never conflict with each other, registrations neither, and neither of them with a fulfilment
//!   unless that finds the queue empty.
//! * [`dequeue`](StagedQueue::dequeue) and its parts that take a session are exactly once
//!   ([`once`](crate::once)). A dequeue whose future is dropped loses nothing: the session's next one from the
//!   same queue goes on with it. [`dequeue_within`](StagedQueue::dequeue_within) gives up cleanly: with what it
//!   was given, or with no request left behind.
//! * [`fulfil`](StagedQueue::fulfil) and [`reclaim`](StagedQueue::reclaim) may be
//!   done by anybody, any number of times: whatever they find done they leave alone.
//!
//! # What it does not do
//!
//! * It does not know that a client is dead. Whoever calls
//!   [`reclaim_unchanged`](StagedQueue::reclaim_unchanged) watches what is parked for as long as he likes; a
//!   client that was only slow finds its request gone, and asks anew. No clock is read or stored.
//! * Nobody reclaims by himself: call it now and then, from any process.
//! * Until it is reclaimed, an item parked for a dead client is not in the queue: others may be told that
//!   there is none.
//! * A transaction cannot dequeue what it enqueued itself: [`Error::OwnUnreadable`].
//! * Values above [`MAX_VALUE_BYTES`] are refused, not split.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | enqueue | – | 1 | who finds the queue empty |
//! | take, nobody waits | 2 ranges of one row | 1 | takes, fulfilments, registrations |
//! | take, others wait; register | 1 range of one row; – | 1 | takes |
//! | fulfil *n* | 2 ranges of *n* rows | 3 *n* | takes, other fulfilments |
//! | collect | 1 or 2 keys | 1 | a reclaim of the same item |
//! | leave | 2 keys | 1 | a fulfilment of the same request |
//! | reclaim | 1 key | 2 | a collection of the same item |
//!
//! ```
//! use shaketable_layers::{once::{Outcome, Session}, staged_queue::{Error, StagedQueue}, tx::Database};
//! use std::time::Duration;
//!
//! async fn work<D: Database>(session: &mut Session<D>, jobs: &StagedQueue) -> Result<(), Error> {
//!     while let Outcome::Applied(Some(job)) = jobs.dequeue(session).await {
//!         println!("{:?}", job.value);
//!     }
//!     // Now and then somebody looks after what the dead have left.
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
pub use ops::{Served, StagedQueue, Taken, Turn};
