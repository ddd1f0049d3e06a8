//! A first-in, first-out queue whose items are worked at under a lease and leave when they are acknowledged.
//!
//! A worker [claims](LeasedQueue::claim) the first item, works, [renews](LeasedQueue::renew) the lease if
//! that takes long, and [acknowledges](LeasedQueue::acknowledge). If he dies the lease ends, and the item is
//! there again for another one.
//!
//! # Promise
//!
//! * Every item enqueued is claimed at least once, unless nobody claims, and *acknowledged at most once*:
//!   enqueued = acknowledged + waiting + claimed, at every version.
//! * One worker at a time holds an item. Whoever has lost it is refused ([`Error::Lost`]) by everything that
//!   needs it, however late he comes: a claim has a token, greater than those of all claims before it, and
//!   acknowledging, renewing and releasing compare it in their transaction. What is done in the transaction
//!   of the acknowledgement is therefore done once an item; outside of the database the token fences.
//! * Items are claimed in the order in which their enqueues committed. One that comes back stands where it
//!   stood: before all that were enqueued after it.
//! * A lease that is renewed in time is not taken away. Nobody looks at a clock for that, and no time is
//!   stored: who wants to take an item back must have seen its lease unchanged for the lease's whole duration
//!   by a timer of his own, begun after he had read it
//!   ([`expire_unchanged`](LeasedQueue::expire_unchanged)). A worker begins *his* timer before he claims or
//!   renews, and so knows of an earlier end than anybody else. Clocks that are off, or jump, change nothing;
//!   a timer that runs fast ends a lease early, and then the token still protects the item.
//! * Enqueues never conflict with each other, nor with a claim unless that finds nothing.
//!
//! # What it does not do
//!
//! * Nobody ends leases by himself: call [`expire_unchanged`](LeasedQueue::expire_unchanged) now and then,
//!   from any process, with the same duration everywhere.
//! * Work that has effects outside of the database's transaction may be done more than once.
//! * It does not give up on an item: [`Hold::token`] says how often it was claimed, and whoever finds that too
//!   often may acknowledge it and put it elsewhere, in one transaction.
//! * Claims do not scale beyond about one a round trip, as the dequeues of a [`queue`](crate::queue).
//! * A transaction cannot claim what it enqueued itself: [`Error::OwnUnreadable`].
//! * Values above [`MAX_VALUE_BYTES`] are refused, not split.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | enqueue | – | 1 | claims that find nothing |
//! | claim | 1 range of one row, 1 key | 3 | other claims, items that come back before it |
//! | renew | 1 key | 1 | whoever ends this lease |
//! | acknowledge | 1 key | 2 | whoever ends this lease |
//! | release, expire | 2 keys | 3 | whoever renews or ends this lease, claims |
//!
//! ```
//! use shaketable_layers::{leased_queue::{Error, Hold, LeasedQueue}, tx::Transaction};
//!
//! /// The letter is out when the job is done, and once, however often it was worked at.
//! async fn finish<T: Transaction>(tx: &T, jobs: &LeasedQueue, hold: Hold, letter: &[u8]) -> Result<(), Error> {
//!     tx.set(b"outbox", letter);
//!     jobs.acknowledge(tx, hold).await
//! }
//! ```

mod error;
mod keys;
mod ops;

pub use error::Error;
pub use keys::{Hold, Lease, Row};
pub use ops::{Claim, LeasedQueue, Leases, MAX_VALUE_BYTES};
