//! Sparse arrays of one or more dimensions: values under integer indexes.
//!
//! # Promise
//!
//! * A cell holds the value that was set last; a cell that was never set, or was cleared, holds nothing and
//!   takes no space. An empty value is a value.
//! * Cells are stored in the order of their indexes, the first index varying slowest: a row of a matrix, or a
//!   range of cells, is one range read.
//! * [`Array`]'s functions can be combined with others in one transaction. Through
//!   [`Session::apply`](crate::once::Session::apply) they take effect exactly once; a blind set that may be
//!   repeated is cheaper with [`converging`](crate::once::converging).
//! * A read of more than [`READ_LIMIT`](crate::limits::READ_LIMIT) bytes is refused: [`Array::page`] reads
//!   any number of cells in pages.
//!
//! # What it does not do
//!
//! * It has no length and no bounds; use a vector for these.
//! * It does not split values: a value above 100,000 bytes is refused.
//! * Reading by a later index alone reads the whole array: store the cells in that order as well.
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
//! use shaketable_layers::array::{Array, Error};
//! use shaketable_tx::{Isolation, Transaction};
//!
//! async fn hottest_noon<T: Transaction>(tx: &T, temperatures: &Array) -> Result<Option<i64>, Error> {
//!     temperatures.set(tx, &[12, 0], b"31").await?;
//!     // All temperatures measured at noon, at any minute.
//!     let noon = temperatures.cells(tx, &[12], Isolation::Serializable).await?;
//!     Ok(noon.into_iter().map(|(index, _)| index[1]).max())
//! }
//! ```

mod error;
mod keys;
mod ops;

pub use error::Error;
pub use ops::Array;
