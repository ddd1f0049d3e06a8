//! Sparse tables: values in cells, kept in the orders in which they are read.
//!
//! # Promise
//!
//! * A cell holds what was set last; an unassigned one costs nothing. An empty value is a value.
//! * [`Table`] has rows and columns. It is kept by row, by column, or both ways, and what begins an order
//!   is read by one range read. [`Grid`] has any number of dimensions and the orders it is given: only
//!   those that are needed, not all there could be.
//! * All orders hold the same cells at every version: the view by row is the transpose of the view by
//!   column.
//! * Setting a row replaces it: columns that are not given are gone, from every order.
//! * Labels have types ([`Label`](crate::label::Label)): row `"1"` is not row 1.
//! * Cells that are set or deleted one by one never conflict with each other.
//!
//! # What it does not do
//!
//! * It reads nothing in an order that it does not keep: [`Error::NoOrder`], rather than all cells.
//! * Orders do not share a subspace, or stand in that of another ([`Error::Overlap`]).
//! * It does not split values: one above 100,000 bytes is refused, and so is a row whose cells do not fit
//!   into a transaction together.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | set or delete a cell | – | 1 an order | readers of the cell |
//! | get a cell | 1 key | – | writers of the cell |
//! | get a row, a slice, a page of it | 1 range | – | writers in the row |
//! | set or delete a row, one order | – | 1 range, 1 a cell | readers in the row |
//! | set or delete a row, more orders | 1 range | 1 range, 1 a cell and order | readers and writers in the row |
//!
//! ```
//! use shaketable_layers::{table::{Error, Table}, tx::{Isolation, Transaction}};
//!
//! async fn stock<T: Transaction>(tx: &T, table: &Table) -> Result<usize, Error> {
//!     table.set_cell(tx, &"bolts".into(), &"Oslo".into(), b"12").await?;
//!     let everything_in_oslo = table.get_column(tx, &"Oslo".into(), Isolation::Serializable).await?;
//!     Ok(everything_in_oslo.len())
//! }
//! ```

mod error;
mod keys;
mod ops;

pub use error::Error;
pub use keys::Order;
pub use ops::{Cells, Grid, Line, Table};
