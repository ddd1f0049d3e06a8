//! A first-in, first-out queue whose items are processed under a lease: claimed at least once, acknowledged
//! at most once.
//!
//! A worker [claims](LeasedQueue::claim) the first item, works, [renews](LeasedQueue::renew) the lease if the
//! work takes long, and [acknowledges](LeasedQueue::acknowledge) the item. If the worker dies, the lease
//! ends, and the item becomes available to other workers again.
//!
//! # Promise
//!
//! * Every enqueued item is claimed at least once, if workers claim, and *acknowledged at most once*:
//!   enqueued = acknowledged + waiting + claimed, at every version.
//! * One worker at a time holds an item. A worker that has lost the lease is refused ([`Error::Lost`]) by
//!   every operation that requires it, however late it calls: a claim has a token, greater than those of all
//!   earlier claims, and acknowledging, renewing and releasing compare it in their transaction. Work done in
//!   the transaction of the acknowledgement is therefore done once per item; outside of the database, the
//!   token serves as a fencing token.
//! * Items are claimed in the order in which their enqueues committed. An item that was given back returns to
//!   its original position: before all items that were enqueued after it.
//! * A lease that is renewed in time is not taken away. This involves no clocks, and no time is stored: a
//!   process that takes an item back must have seen its lease unchanged for the lease's whole duration, by
//!   its own timer, started after it read the lease ([`expire_unchanged`](LeasedQueue::expire_unchanged)). A
//!   worker starts its timer *before* it claims or renews, and therefore assumes an earlier end than any
//!   other process. Inaccurate or jumping clocks have no effect; a timer that runs fast ends a lease early,
//!   and the token still protects the item in that case.
//! * Enqueues never conflict with each other, nor with a claim unless the claim finds nothing.
//!
//! # What it does not do
//!
//! * Leases do not end by themselves: call [`expire_unchanged`](LeasedQueue::expire_unchanged) periodically,
//!   from any process, with the same duration everywhere.
//! * Work with effects outside of the database transaction may be done more than once.
//! * It does not give up on an item: [`Hold::token`] is the number of claims so far, and a worker that
//!   considers it too high may acknowledge the item and store it elsewhere, in one transaction.
//! * Claims do not scale beyond about one per round trip, as the dequeues of a [`queue`](crate::queue).
//! * A transaction cannot claim items that it enqueued itself: [`Error::OwnUnreadable`].
//! * Values above [`MAX_VALUE_BYTES`] are refused, not split.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | enqueue | – | 1 | claims that find nothing |
//! | claim | 1 range of one row, 1 key | 3 | other claims, items given back before it |
//! | renew | 1 key | 1 | ending this lease |
//! | acknowledge | 1 key | 2 | ending this lease |
//! | release, expire | 2 keys | 3 | renewing or ending this lease, claims |
//!
//! ```
//! use shaketable_layers::leased_queue::{Error, Hold, LeasedQueue};
//! use shaketable_tx::Transaction;
//!
//! /// Sends the letter when the job is done: exactly once, however often the job was claimed.
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
