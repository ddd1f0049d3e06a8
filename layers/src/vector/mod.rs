//! Vectors: elements at consecutive indexes, with a size; elements can be appended, popped, scanned and
//! truncated, and holes have a default.
//!
//! # Promise
//!
//! * The size is one more than the last index. Elements are stored in the order of their indexes: a scan is
//!   one range read, and so is reading the end.
//! * A vector is sparse. Setting an element beyond the end makes the vector longer, and the elements in
//!   between are *holes*: they take no space and read as the default. Reading at or beyond the size is
//!   refused with [`Error::OutOfRange`], so that a hole and the end are never confused.
//! * Two pushes never get the same index: a push reads the end serializably. A truncation or a pop that would
//!   leave a hole at the end stores the default there, so that the size is exactly as requested.
//! * Negative indexes and sizes are refused.
//! * [`Matrix`] combines vectors into more dimensions: each row is a vector with its own size. An element may
//!   also refer to a row or to any other structure.
//! * Through [`Session::apply`](crate::once::Session::apply) operations take effect exactly once.
//!
//! # What it does not do
//!
//! * Pushes are not concurrent: all of them read the same end, and of two concurrent pushes one is retried.
//!   If many clients append and indexes are not needed, a queue in commit order is conflict-free.
//! * It does not insert or remove in the middle: elements do not move. Use a linked list for that.
//! * It does not store its default: the caller provides it, and all callers must use the same.
//! * Values have at most [`MAX_VALUE_BYTES`], slightly less than FoundationDB's limit, so that a pop can be
//!   recorded with its answer. A scan returns at most [`MAX_SCAN`] elements, including holes;
//!   [`stored`](Vector::stored) reads without holes. Either reads at most
//!   [`READ_LIMIT`](crate::limits::READ_LIMIT) bytes: read more in several ranges.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | get | 1 row | – | writers of the element, and of the hole that contains it |
//! | set | – | 1 | readers of the element, and of the size |
//! | push | 1 row from the end | 1 | every change of the size |
//! | pop | 2 rows from the end | 1 or 2 | changes of the last two elements and of the size |
//! | size, back, is empty | 1 row from the end | – | every change of the size |
//! | swap | 2 rows | 2 | writers of both elements |
//! | truncate, resize | 1 row | a range, and 0 or 1 | every change of the size |
//! | scan, stored | 1 range; 1 row more if it ends in a hole | – | writers of the range |
//!
//! ```
//! use shaketable_layers::vector::{Error, Vector};
//! use shaketable_tx::{Isolation, Transaction};
//!
//! async fn three_words<T: Transaction>(tx: &T, words: &Vector) -> Result<Vec<bytes::Bytes>, Error> {
//!     words.resize(tx, 0).await?;
//!     words.push(tx, b"a").await?;
//!     // The element in between is a hole: it reads as the default.
//!     words.set(tx, 2, b"c").await?;
//!     assert_eq!(words.size(tx, Isolation::Serializable).await?, 3);
//!     words.swap(tx, 0, 2).await?;
//!     words.scan(tx, 0, None, Isolation::Serializable).await
//! }
//! ```

mod error;
mod keys;
mod ops;

pub use error::Error;
pub use ops::{Matrix, Vector};

/// The maximum size of a value, in bytes: the maximum of an answer, minus the byte that indicates its
/// presence.
pub const MAX_VALUE_BYTES: usize = crate::once::MAX_ANSWER_BYTES - 1;

/// The maximum number of elements that a scan returns.
pub const MAX_SCAN: i64 = 1_000_000;
