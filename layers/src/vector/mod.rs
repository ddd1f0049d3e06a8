//! Vectors: elements under consecutive indexes, with a size; appended, popped, scanned and truncated.
//!
//! # Promise
//!
//! * The size is one more than the last index. Elements are adjacent in the order of their indexes: a scan is
//!   one range read, and so is a look at the end.
//! * A vector is sparse. Setting an element behind the end makes it longer, and the elements in between are
//!   *holes*: they cost nothing and read as the default. Reading at or behind the size is refused with
//!   [`Error::OutOfRange`], so that a hole and the end are never taken for each other.
//! * Two pushes never share an index: a push reads the end serializably. A truncation or a pop that uncovers
//!   a hole stores the default there, so that the size is exactly what was asked for.
//! * Negative indexes and sizes are refused.
//! * [`Matrix`] composes vectors into more dimensions: each row is a vector with a size of its own. A row, or
//!   any other structure, may also be pointed to from an element.
//! * Through [`Session::apply`](crate::once::Session::apply) operations take effect exactly once.
//!
//! # What it does not do
//!
//! * Pushes are not concurrent: all of them read the same end, and of two at once one is done again. Where
//!   many append and nobody needs indexes, a queue in commit order is conflict free.
//! * It does not insert or remove in the middle: elements do not move. A linked list does.
//! * It does not remember its default: that is the caller's, and every caller must give the same.
//! * Values have at most [`MAX_VALUE_BYTES`], a little less than FoundationDB takes, so that a pop can be
//!   recorded with its answer. A scan answers with at most [`MAX_SCAN`] elements, however many of them
//!   are holes; [`stored`](Vector::stored) reads without them. Either reads
//!   at most [`READ_LIMIT`](crate::limits::READ_LIMIT) bytes: more are read as several ranges.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | get | 1 row | – | writers of the element, and of the hole it is in |
//! | set | – | 1 | readers of the element, and of the size |
//! | push | 1 row from the end | 1 | every change of the size |
//! | pop | 2 rows from the end | 1 or 2 | changes of the last two elements and of the size |
//! | size, back, is empty | 1 row from the end | – | every change of the size |
//! | swap | 2 rows | 2 | writers of both elements |
//! | truncate, resize | 1 row | a range, and 0 or 1 | every change of the size |
//! | scan, stored | 1 range; 1 row more if it ends in a hole | – | writers of the range |
//!
//! ```
//! use shaketable_layers::{tx::{Isolation, Transaction}, vector::{Error, Vector}};
//!
//! async fn three_words<T: Transaction>(tx: &T, words: &Vector) -> Result<Vec<bytes::Bytes>, Error> {
//!     words.resize(tx, 0).await?;
//!     words.push(tx, b"a").await?;
//!     // The element between is a hole: it reads as the default.
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

/// The longest value, in bytes: what an answer can hold, less the byte that says that there is one.
pub const MAX_VALUE_BYTES: usize = crate::once::MAX_ANSWER_BYTES - 1;

/// With how many elements a scan answers at most.
pub const MAX_SCAN: i64 = 1_000_000;
