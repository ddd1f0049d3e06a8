//! Sparse tables: values in cells, stored in the orders in which they are read.
//!
//! # Promise
//!
//! * A cell holds the value that was set last; an unset cell takes no space. An empty value is a value.
//! * [`Table`] has rows and columns. It is stored by row, by column, or both, and any prefix of an order is
//!   read by one range read. [`Grid`] has any number of dimensions and only the orders that it is given, not
//!   all possible ones.
//! * All orders contain the same cells at every version: the view by row is the transpose of the view by
//!   column.
//! * Setting a row replaces it: columns that are not given are removed, from every order.
//! * Labels have types ([`Label`](crate::label::Label)): row `"1"` is not row 1.
//! * Setting and deleting individual cells never conflict with each other.
//!
//! # What it does not do
//!
//! * It does not read in an order that it does not store: it returns [`Error::NoOrder`] rather than reading
//!   all cells.
//! * Orders cannot share a subspace, or be stored within that of another ([`Error::Overlap`]).
//! * It does not split values: a value above 100,000 bytes is refused, as is a row whose cells do not fit
//!   into one transaction.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | set or delete a cell | – | 1 per order | readers of the cell |
//! | get a cell | 1 key | – | writers of the cell |
//! | get a row, a slice, a page of it | 1 range | – | writers in the row |
//! | set or delete a row, one order | – | 1 range, 1 per cell | readers in the row |
//! | set or delete a row, more orders | 1 range | 1 range, 1 per cell and order | readers and writers in the row |
//!
//! ```
//! use shaketable_layers::table::{Error, Table};
//! use shaketable_tx::{Isolation, Transaction};
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
