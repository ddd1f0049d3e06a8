//! Counters that many clients change concurrently: single, or split over many keys, with changes that keep a
//! bound.
//!
//! # Promise
//!
//! * A counter is the sum of all changes that took effect, at every version. Its initial value is 0.
//! * [`Counter::add`] and [`SplitCounter::add`] never conflict with each other or with other clients that
//!   only add. A [`SplitCounter`] also spreads them over several keys, so that no single key is written too
//!   often for a storage server (some tens of times per second).
//! * Reads are exact: the value, or the sum of the parts, at one version. The number of parts may differ
//!   between clients and may change at any time: nothing is lost with more or fewer parts.
//! * [`add_within`](Counter::add_within) changes the counter only if it stays within bounds ("take one,
//!   unless none is left"), and returns the new value. However many clients try concurrently, the bounds
//!   hold, provided that all changes use them.
//! * In the transaction of a [`Session`](crate::once::Session) a change takes effect exactly once. A bare
//!   addition whose result is unknown must not be repeated: it would be counted twice.
//!
//! # What it does not do
//!
//! * A change within bounds does not scale: it reads all parts of the counter serializably, and conflicts
//!   with every other change. Split counters suit values that are changed often and checked rarely.
//! * An addition without bounds does not check the value: a single key wraps around at 64 bits. A sum of
//!   parts that does not fit in 64 bits is [`Error::Overflow`].
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | add | – | 1 atomic | readers |
//! | set | – | 1 key, or 1 range and 1 key | readers |
//! | get, serializable | 1 key, or 1 range | – | every change |
//! | get, snapshot | 1 key, or 1 range | – | – |
//! | add within bounds | as get | 1 atomic | every change and reader |
//!
//! ```
//! use shaketable_layers::counter::{Error, Part, SplitCounter};
//! use shaketable_tx::{Isolation, Transaction};
//!
//! async fn visit<T: Transaction>(tx: &T, visits: &SplitCounter, part: Part) -> Result<i64, Error> {
//!     visits.add(tx, part, 1).await?;
//!     // Reads at snapshot, so that visitors do not conflict.
//!     visits.get(tx, Isolation::Snapshot).await
//! }
//! ```

mod error;
mod keys;
mod ops;

pub use error::Error;
pub use keys::Part;
pub use ops::{Counter, SplitCounter};
