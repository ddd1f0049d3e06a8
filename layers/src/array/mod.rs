//! Sparse arrays of one or more dimensions: values under integer indexes.
//!
//! # Promise
//!
//! * A cell holds what was set last; one that was never set, or was cleared, holds nothing and costs
//!   nothing. An empty value is a value.
//! * Cells are adjacent in the order of their indexes, the first index slowest: a row of a matrix, or a
//!   run of cells, is one range read.
//! * [`Array`]'s functions compose with anything else in their transaction. Through
//!   [`Session::apply`](crate::once::Session::apply) they take effect exactly once; a blind set whose
//!   repetition does no harm is cheaper with [`converging`](crate::once::converging).
//! * A read of more than [`READ_LIMIT`](crate::limits::READ_LIMIT) bytes is refused: [`Array::page`] reads
//!   any number of cells, a few at a time.
//!
//! # What it does not do
//!
//! * It has no length and no bounds: a vector has both.
//! * It does not split values: one above 100,000 bytes is refused.
//! * Reading by a later index alone reads everything: store the cells in that order too.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | set, clear | – | 1 | readers of the cell |
//! | get | 1 key | – | writers of the cell |
//! | cells, page | 1 range | – | writers of the range |
//!
//! ```
//! use shaketable_layers::{array::{Array, Error}, tx::{Isolation, Transaction}};
//!
//! async fn hottest_noon<T: Transaction>(tx: &T, temperatures: &Array) -> Result<Option<i64>, Error> {
//!     temperatures.set(tx, &[12, 0], b"31").await?;
//!     // All that was measured at noon, whatever the minute.
//!     let noon = temperatures.cells(tx, &[12], Isolation::Serializable).await?;
//!     Ok(noon.into_iter().map(|(index, _)| index[1]).max())
//! }
//! ```

mod error;
mod keys;
mod ops;

pub use error::Error;
pub use ops::Array;
