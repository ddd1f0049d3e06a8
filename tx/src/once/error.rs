//! Errors of the exactly-once mechanism.

use super::OpId;
use crate::RetryError;

/// The reasons for which the mechanism does not apply an operation, in addition to the layer's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A FoundationDB error.
    #[error(transparent)]
    Fdb(#[from] crate::Error),
    /// Another session has opened this client's slot since; this session can do nothing more.
    #[error("a later session of this client has taken over")]
    Superseded,
    /// The future of this operation was dropped, and its fate has not been requested since; no new operation
    /// was begun. Call [`Session::resolve`](super::Session::resolve), then begin again.
    #[error("operation {0} was dropped and has not been resolved")]
    Unresolved(OpId),
    /// The operation was resolved as not applied, by this or another process, and never will be applied.
    #[error("the operation was resolved as not applied")]
    Fenced,
    /// The answer is too large for a slot, or a part of it is longer than the field of its length can tell;
    /// nothing was written.
    #[error("an answer of {bytes} bytes exceeds the {limit} that its place in a slot can hold")]
    AnswerTooLarge {
        /// The size of the encoded answer, or of the part.
        bytes: usize,
        /// The maximum size.
        limit: usize,
    },
    /// The answer contains more than one incomplete versionstamp; nothing was written.
    #[error("an answer can contain one versionstamp of its own transaction, not several")]
    ManyStamps,
    /// The slot's content was not written by this version of the layer, or the answer has another type.
    #[error("the slot's content cannot be read")]
    Unreadable,
}

impl RetryError for Error {
    fn fdb(&self) -> Option<crate::Error> {
        match self {
            Error::Fdb(e) => Some(*e),
            _ => None,
        }
    }
}
