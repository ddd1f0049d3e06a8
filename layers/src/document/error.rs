//! Errors of document operations.

use super::Id;
use crate::hierarchy;

layer_error! {
    /// Why an operation on documents failed; nothing was changed.
    pub enum Error {
        /// A document with this id exists already, and an insert does not replace it.
        #[error("there is a document {0} already")]
        Exists(Id),
        /// There is no document with this id that could be changed.
        #[error("there is no document {0}")]
        Missing(Id),
        /// A `doc_id` in a document is neither an unsigned integer nor a text.
        #[error("{0} is not a valid document id")]
        NotAnId(String),
        /// The document would contain a `doc_id` other than its own id.
        #[error("the document {id} would contain the doc_id {inside}")]
        OtherId {
            /// The document's id.
            id: Id,
            /// The id that it would contain.
            inside: String,
        },
        /// The id is longer than [`MAX_ID_BYTES`](super::MAX_ID_BYTES).
        #[error("an id of {0} bytes exceeds the limit of {limit}", limit = super::MAX_ID_BYTES)]
        LongId(usize),
        /// No index is declared on this path.
        #[error("there is no index on {0:?}")]
        NoIndex(String),
        /// An error within the document.
        #[error("{0}")]
        Inside(hierarchy::Error),
    }
}

impl From<hierarchy::Error> for Error {
    fn from(error: hierarchy::Error) -> Error {
        match error {
            hierarchy::Error::Fdb(e) => Error::Fdb(e),
            hierarchy::Error::Once(e) => Error::Once(e),
            hierarchy::Error::TooLarge(e) => Error::TooLarge(e),
            hierarchy::Error::Foreign(key) => Error::Foreign(key),
            inside => Error::Inside(inside),
        }
    }
}
