//! Why an operation on documents did not happen.

use super::Id;
use crate::hierarchy;

layer_error! {
    /// What an operation on documents can fail with; nothing was changed.
    pub enum Error {
        /// There is a document with this id, and an insert replaces none.
        #[error("there is a document {0} already")]
        Exists(Id),
        /// There is no document with this id of which a part could change.
        #[error("there is no document {0}")]
        Missing(Id),
        /// A document's `doc_id` is neither an unsigned integer nor a text.
        #[error("{0} is no document's id")]
        NotAnId(String),
        /// The document would hold a `doc_id` that is not its own.
        #[error("the document {id} would say of itself that it is {inside}")]
        OtherId {
            /// The document's id.
            id: Id,
            /// What it would hold.
            inside: String,
        },
        /// The id is longer than [`MAX_ID_BYTES`](super::MAX_ID_BYTES).
        #[error("an id of {0} bytes exceeds the limit of {limit}", limit = super::MAX_ID_BYTES)]
        LongId(usize),
        /// There is no index on this path.
        #[error("there is no index on {0:?}")]
        NoIndex(String),
        /// What the document's inside says.
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
