//! A nested keyspace: one value of objects, lists and leaves, each leaf a key of its own.
//!
//! # Promise
//!
//! * Every JSON value that was put at a path is read from there as it was: 1 and 1.0, 0.0 and -0.0, integers
//!   of 64 bits with and without a sign, texts and names with zero bytes or none at all. What is not there
//!   and what is empty differ.
//! * What was written last holds. A leaf is part of its key, yet an old one never stays beside a new one, nor
//!   a marker beside members, nor a list's end behind a shorter list. Therefore a read never fails.
//! * [`Hierarchy::insert`] brings a stream of objects together in one keyspace, member by member; any part of
//!   it is one range read.
//! * [`Hierarchy`]'s functions compose with anything else in their transaction, and take effect exactly once
//!   inside a [session](crate::once).
//! * A write through something that has no members, or past a list's end, is refused by name; so is a path
//!   with its leaf above 10,000 bytes, and everything else that FoundationDB refuses, before anything is
//!   written.
//!
//! # What it does not do
//!
//! * Objects come together, lists do not: a list takes the place of another. Null is a value and removes
//!   nothing.
//! * It keeps no order of members but that of their names.
//! * Leaves are short, for they are in the key: [`document`](crate::document) has them in the value.
//! * Numbers are those that serde_json holds without `arbitrary_precision`: an integer beyond 64 bits becomes
//!   a double where JSON is read.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | insert | 1 row for each object in it, 2 where its first member is new; the path, as replace | a row for each leaf | writers of the rows read |
//! | replace | nothing at the root, 1 row where something is there, else 1 more for each step up to something | 1 clear, a row for each leaf | writers of the rows read |
//! | remove a member | up to 3 rows | 1 clear, a marker behind the last | writers of the rows read |
//! | remove an element | 1 row and all behind it | all behind it | writers of the list from there |
//! | get | 1 range | – | writers of the range |
//!
//! ```
//! use serde_json::json;
//! use shaketable_layers::{hierarchy::{Error, Hierarchy}, tx::{Isolation, Transaction}};
//!
//! async fn colleagues<T: Transaction>(tx: &T, users: &Hierarchy) -> Result<Option<String>, Error> {
//!     users.insert(tx, &[], &json!({"user": {"jones": {"group": ["sales", "service"]}}})).await?;
//!     users.insert(tx, &[], &json!({"user": {"jones": {"friendOf": "smith"}}})).await?;
//!     // Both objects told of one user.
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
