//! JSON documents under ids: each leaf a key-value pair of its own, so that any part is one range read.
//!
//! # Promise
//!
//! * A document is read as it was written, and so is each part of it, as a [`hierarchy`](crate::hierarchy)
//!   promises. It may be an object, a list or a leaf. What is not there and what is empty differ.
//! * An id is a number or a text, 1 is not "1", and names one document. [`Documents::insert`] never touches a
//!   document that is there; a `doc_id` inside a document is always its own.
//! * An id that nobody gave is drawn by [`Documents::identify`], once for each operation and not for each
//!   attempt.
//! * A text is as long as a transaction takes: longer ones than a value should hold are stored in pieces. A
//!   path above 10,000 bytes, and a document too large for a transaction, is refused before anything is
//!   written.
//! * An index on a path holds exactly the documents that have a leaf there, at every version.
//! * [`Documents`]' functions compose with anything else in their transaction, and take effect exactly once
//!   inside a [session](crate::once).
//!
//! # What it does not do
//!
//! * One document is inserted in one transaction: 10,000,000 bytes with what FoundationDB counts beside them,
//!   some 150 for each leaf.
//! * Merging is by members: lists are replaced, and null is a value that removes nothing (unlike RFC 7396).
//! * An index holds one leaf of each document: none for each element of a list, and no order among texts that
//!   agree in their first 1,000 bytes. It needs transactions that read their own writes.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | insert | 1 row | 1 clear, a row for each leaf | writers of the first row |
//! | replace | – | 1 clear, a row for each leaf | – |
//! | patch, merge, remove | as in a hierarchy | as in a hierarchy | writers of the rows read |
//! | get | 1 range | – | writers of the range |
//! | find | 1 range; the leaf of each document where it is a text above 1,000 bytes | – | writers of that leaf's entries |
//! | each index, with any write | its leaf | up to 2 rows | writers of its leaf |
//!
//! ```
//! use serde_json::json;
//! use shaketable_layers::{document::{Documents, Error, Id}, tx::{Isolation, Transaction}};
//!
//! async fn verify<T: Transaction>(tx: &T, documents: &Documents, id: &Id) -> Result<Option<String>, Error> {
//!     let verified = json!({"verified": true});
//!     documents.merge(tx, id, &["profile".into()], &verified).await?;
//!     // Only this part of the document is read.
//!     let email = documents.get(tx, id, &["profile".into(), "email".into()], Isolation::Serializable).await?;
//!     Ok(email.and_then(|email| Some(email.as_str()?.to_owned())))
//! }
//! ```

mod error;
mod keys;
mod ops;

pub use error::Error;
pub use keys::{DOC_ID, Id, MAX_ID_BYTES};
pub use ops::Documents;
