//! JSON documents with ids, read, replaced, merged and patched as a whole or by path: each leaf is a separate
//! key-value pair, so that any part of a document is one range read.
//!
//! # Promise
//!
//! * A document, and each part of it, is read as it was written, with the guarantees of
//!   [`hierarchy`](crate::hierarchy). It may be an object, a list or a leaf. Missing and empty parts are
//!   distinguished.
//! * An id is a number or a text (1 is not "1") and identifies one document. [`Documents::insert`] never
//!   changes an existing document; a `doc_id` inside a document is always the document's own.
//! * If a document has no id, [`Documents::identify`] draws one, once for each operation rather than for each
//!   attempt.
//! * The length of a text is limited only by the transaction: texts too long for one value are stored in
//!   pieces. A path of more than 10,000 bytes, or a document too large for a transaction, is refused before
//!   anything is written.
//! * An index on a path contains exactly the documents that have a leaf there, at every version.
//! * The functions of [`Documents`] can be combined with others in one transaction, and take effect exactly
//!   once in a [session](crate::once).
//!
//! # What it does not do
//!
//! * A document is inserted in one transaction: at most 10,000,000 bytes, including FoundationDB's overhead
//!   of about 150 bytes per leaf.
//! * Merging works by members: lists are replaced, and null is a value that removes nothing (unlike RFC
//!   7396).
//! * An index contains one leaf of each document: there are no entries for the elements of a list, and no
//!   order among texts that are equal in their first 1,000 bytes. It requires transactions that read their
//!   own writes.
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
//! use shaketable_layers::document::{Documents, Error, Id};
//! use shaketable_tx::{Isolation, Transaction};
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
