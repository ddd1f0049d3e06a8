//! A nested keyspace: one value made of objects, lists and leaves, with one key for each leaf, so that any
//! subtree is one range read.
//!
//! # Promise
//!
//! * Every JSON value is read from its path exactly as it was put there: 1 and 1.0, 0.0 and -0.0, signed and
//!   unsigned 64-bit integers, texts and names that are empty or contain zero bytes. Missing and empty values
//!   are distinguished.
//! * A write replaces the old value completely. Although a leaf is part of its key, an old leaf never remains
//!   beside a new one, nor a marker beside members, nor the tail of a longer list after a shorter one.
//!   Therefore a read never fails.
//! * [`Hierarchy::insert`] merges a stream of objects into one keyspace, member by member; any part of it is
//!   one range read.
//! * The functions of [`Hierarchy`] can be combined with others in one transaction, and take effect exactly
//!   once in a [session](crate::once).
//! * A write through a value that has no members, or past the end of a list, is refused with a specific
//!   error, as is a path whose key, including the leaf, exceeds 10,000 bytes. Everything that FoundationDB
//!   would reject is refused before anything is written.
//!
//! # What it does not do
//!
//! * Objects are merged, lists are not: a list replaces another. Null is a value and removes nothing.
//! * It does not preserve the order of members; they are ordered by name.
//! * Leaves must be short, because they are part of the key: [`document`](crate::document) stores them in the
//!   value.
//! * Numbers are those that serde_json supports without `arbitrary_precision`: an integer beyond 64 bits
//!   becomes a double when JSON is parsed.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | insert | 1 row for each object in it, 2 where its first member is new; the path, as replace | a row for each leaf | writers of the rows read |
//! | replace | nothing at the root, 1 row if the path exists, otherwise 1 more for each step up to an existing value | 1 clear, a row for each leaf | writers of the rows read |
//! | remove a member | up to 3 rows | 1 clear, a marker after the last | writers of the rows read |
//! | remove an element | 1 row and all rows after it | all rows after it | writers of the list from there |
//! | get | 1 range | – | writers of the range |
//!
//! ```
//! use serde_json::json;
//! use shaketable_layers::hierarchy::{Error, Hierarchy};
//! use shaketable_tx::{Isolation, Transaction};
//!
//! async fn colleagues<T: Transaction>(tx: &T, users: &Hierarchy) -> Result<Option<String>, Error> {
//!     users.insert(tx, &[], &json!({"user": {"jones": {"group": ["sales", "service"]}}})).await?;
//!     users.insert(tx, &[], &json!({"user": {"jones": {"friendOf": "smith"}}})).await?;
//!     // Both objects describe one user.
//!     let jones = users.get(tx, &["user".into(), "jones".into()], Isolation::Serializable).await?;
//!     Ok(jones.and_then(|jones| Some(jones["friendOf"].as_str()?.to_owned())))
//! }
//! ```

mod error;
mod keys;
mod ops;
pub(crate) mod tree;

pub use crate::nesting::MAX_DEPTH;
pub use error::Error;
pub use keys::{EMPTY_ARRAY, EMPTY_OBJECT, Step, Tuple, from_json, from_tuples, to_tuples};
pub(crate) use keys::{check_depth, pointer, push_scalar, scalars, shown};
pub use ops::Hierarchy;
