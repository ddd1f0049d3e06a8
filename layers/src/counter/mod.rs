//! Counters: numbers that many clients change at once.
//!
//! # Promise
//!
//! * A counter is the sum of all changes that took effect, at every version. Unset, it is 0.
//! * [`Counter::add`] and [`SplitCounter::add`] never conflict, with each other or with anybody who only
//!   adds. A [`SplitCounter`] spreads them over several keys besides, so that no single one of them is
//!   written more often than a storage server likes (some tens of times a second).
//! * Reads are exact: the value, or the sum of the parts, of one version. The number of parts may differ
//!   between clients and change at any time: nothing is lost by having more or fewer.
//! * [`add_within`](Counter::add_within) changes the counter only if it stays in bounds ("take one, unless
//!   none is left"), and answers what it is then. However many clients try, the bounds hold, as long as
//!   nobody adds without them.
//! * In the transaction of a [`Session`](crate::once::Session) a change takes effect exactly once. A bare
//!   addition whose result is unknown must not be repeated: it would count twice.
//!
//! # What it does not do
//!
//! * A decision within bounds does not scale: it reads the counter serializably, all parts of it, and
//!   conflicts with every change. Split counters suit what is added to often and decided upon rarely.
//! * An addition without bounds does not look: a single key wraps around at 64 bits. A sum of parts that
//!   64 bits do not hold is [`Error::Overflow`].
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
//! use shaketable_layers::{counter::{Error, Part, SplitCounter}, tx::{Isolation, Transaction}};
//!
//! async fn visit<T: Transaction>(tx: &T, visits: &SplitCounter, part: Part) -> Result<i64, Error> {
//!     visits.add(tx, part, 1).await?;
//!     // At snapshot, so that looking at the counter does not make visitors conflict.
//!     visits.get(tx, Isolation::Snapshot).await
//! }
//! ```

mod error;
mod keys;
mod ops;

pub use error::Error;
pub use keys::Part;
pub use ops::{Counter, SplitCounter};
