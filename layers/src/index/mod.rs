//! A table of records with secondary indexes, read by key and by range of keys, including covering indexes
//! that answer lookups without reading the records.
//!
//! # Promise
//!
//! * At every version each index is exactly the projection of the records: it has an entry for each record
//!   that has a key in it, and no others. A single function writes records and entries, and determines the
//!   entries to remove from the stored record, which it reads serializably, not from information given by its
//!   caller.
//! * There is at most one record with an id; [`Table::set`] replaces it and returns the replaced record.
//! * A record without a key in an index (`None`) has no entry there, regardless of how it was written.
//! * A lookup returns all entries, in as many batches as needed, ordered by id. A covering index returns
//!   results without reading the records, and a range of keys is one range read.
//! * Two writes of one record conflict; writes of different records do not, even if they have the same index
//!   keys.
//! * Data that exceeds FoundationDB's limits is refused with a specific error before anything is written.
//! * In the transaction of a [`Session`](crate::once::Session) a write is applied exactly once; [`Old`] is
//!   the form in which the replaced record is recorded.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | set, delete | the record | the record, and the entries that change | writers of the record |
//! | get | the record | – | writers of the record |
//! | find, find_covered, find_page, find_between | one range of the index | – | writers whose entries enter or leave the range |
//!
//! ```
//! use shaketable_layers::index::{Error, users::{User, Users}};
//! use shaketable_tx::Transaction;
//!
//! async fn move_house<T: Transaction>(tx: &T, users: &Users, id: &str) -> Result<Vec<String>, Error> {
//!     if let Some(user) = users.get_user(tx, id).await? {
//!         users.set_user(tx, &User { zipcode: Some("94110".into()), ..user }).await?;
//!     }
//!     // Sees the move already, and no longer finds the user under the old zip code.
//!     users.get_user_ids_in_region(tx, "94110").await
//! }
//! ```
//!
//! [`users`] is the table of the simple index recipe: users by id, found by zip code and by name.
//!
//! # What it does not do
//!
//! * It does not enforce uniqueness of index keys, nor index several values of one record in one index.
//! * It does not build an index over existing records: an index declared later lacks them until they are set
//!   again. Removing a declaration leaves its entries in the database.
//! * It does not check that two processes declare the same indexes; records written by a process that lacks
//!   an index are missing in that index.
//! * A lookup that would read more than [`READ_LIMIT`](crate::limits::READ_LIMIT) bytes is refused;
//!   [`find_page`](Table::find_page) and [`records_page`](Table::records_page) read any number of records in
//!   pages.

mod error;
mod keys;
mod ops;
pub mod users;

pub use error::Error;
pub use keys::{Index, MAX_RECORD_BYTES, Record, covers_nothing};
pub use ops::{IndexKey, Old, Table};
