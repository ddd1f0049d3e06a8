//! Multimaps: several values under each index, as a set or with a count for each value.
//!
//! # Promise
//!
//! * [`Multimap`] holds each pair of an index and a value once, however often it is added: one removal undoes
//!   any number of additions. [`Multiset`] counts: the number of copies is the number added minus the number
//!   removed, and never negative.
//! * Everything under an index is adjacent: it is one range read, in the order of the values' labels.
//! * Additions never conflict with each other, in either type, nor do the removals of a [`Multimap`].
//! * A value with no copies left has no key.
//! * Through a session of [`once`](crate::once) operations take effect exactly once. A bare addition to a
//!   [`Multiset`] whose result is unknown must not be repeated: it would be counted twice.
//!
//! # What it does not do
//!
//! * It does not find indexes by a value; a relation can be stored in both directions.
//! * It stores values in keys: an index and a value together must fit into 10,000 bytes, minus the prefix.
//! * It does not store the number of values under an index; list them to count them.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | add, remove of a set | – | 1 | readers of the pair |
//! | add of a multiset | – | 1 atomic | readers of the pair |
//! | remove of a multiset | 1 key | 2 atomic | writers of the pair |
//! | remove all | – | 1 range | readers under the index |
//! | is element, count | 1 key | – | writers of the pair |
//! | get | 1 range | – | writers under the index |
//!
//! ```
//! use shaketable_layers::multimap::{Error, Multimap};
//! use shaketable_tx::{Isolation, Transaction};
//!
//! async fn classes<T: Transaction>(tx: &T, enroll: &Multimap) -> Result<usize, Error> {
//!     let student = "s1".into();
//!     enroll.add(tx, &student, &"2:00 chem lab".into()).await?;
//!     enroll.add(tx, &student, &"2:00 chem lab".into()).await?;
//!     Ok(enroll.get(tx, &student, None, 100, Isolation::Serializable).await?.len())
//! }
//! ```

mod error;
mod keys;
mod ops;

pub use error::Error;
pub use ops::{Multimap, Multiset};
