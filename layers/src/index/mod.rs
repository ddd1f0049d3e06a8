//! A table of records with secondary indexes, some of which cover what a lookup wants to know.
//!
//! # Promise
//!
//! * At every version each index is exactly the projection of the records: an entry for each record
//!   that has a key in it, and none besides. One function writes records and entries, and it learns
//!   what to remove from the stored record, which it reads serializably, not from its caller.
//! * There is at most one record with an id; [`Table::set`] replaces it, and says what it replaced.
//! * A record without a key in an index (`None`) has no entry there, on every path alike.
//! * A lookup answers all entries, over as many batches as it takes, ordered by id. A covering index
//!   answers without reading the records, and a range of keys is one range read.
//! * Two writes of one record conflict; writes of different records do not, whatever they share.
//! * What does not fit FoundationDB's limits is refused by name before anything is written.
//! * In the transaction of a [`Session`](crate::once::Session) a write is applied exactly once; [`Old`] is
//!   how what it replaced is recorded.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | set, delete | the record | the record, and the entries that change | writers of the record |
//! | get | the record | – | writers of the record |
//! | find, find_covered, find_page, find_between | one range of the index | – | writers whose entries come to or leave the range |
//!
//! ```
//! use shaketable_layers::{index::{Error, users::{User, Users}}, tx::Transaction};
//!
//! async fn move_house<T: Transaction>(tx: &T, users: &Users, id: &str) -> Result<Vec<String>, Error> {
//!     if let Some(user) = users.get_user(tx, id).await? {
//!         users.set_user(tx, &User { zipcode: Some("94110".into()), ..user }).await?;
//!     }
//!     // Sees the move already, and will never see the old zip code again.
//!     users.get_user_ids_in_region(tx, "94110").await
//! }
//! ```
//!
//! [`users`] is the table of the simple index recipe: users by id, found by zip code and by name.
//!
//! # What it does not do
//!
//! * It does not enforce uniqueness of index keys, nor index several values of one record in one index.
//! * It does not build an index over records that are already there: an index declared later misses
//!   them until they are set again. Removing a declaration leaves its entries behind.
//! * It does not check that two processes declare the same indexes; records written by one that lacks
//!   an index are missing in it.
//! * A lookup that would read more than [`READ_LIMIT`](crate::limits::READ_LIMIT) bytes is refused;
//!   [`find_page`](Table::find_page) and [`records_page`](Table::records_page) read any number, a few at a time.

mod error;
mod keys;
mod ops;
pub mod users;

pub use error::Error;
pub use keys::{Index, MAX_RECORD_BYTES, Record, covers_nothing};
pub use ops::{IndexKey, Old, Table};
