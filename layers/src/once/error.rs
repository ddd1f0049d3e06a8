//! Why the exactly-once mechanism could not let an operation through.

use super::OpId;
use crate::tx::{self, RetryError};

/// What can stop an operation, beside the layer's own reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// FoundationDB's error.
    #[error(transparent)]
    Fdb(#[from] tx::Error),
    /// Another session has opened this client's slot since; this one can do nothing more.
    #[error("a later session of this client has taken over")]
    Superseded,
    /// The future of this operation was dropped, and nobody has asked for its fate since: nothing was begun. Ask
    /// with [`Session::resolve`](super::Session::resolve), then begin again.
    #[error("{0} was dropped, and its fate has not been asked for")]
    Unread(OpId),
    /// The operation was resolved as not applied, by this process or another, and never will be.
    #[error("the operation was resolved as not applied")]
    Fenced,
    /// The answer does not fit into a slot; nothing was written.
    #[error("an answer of {bytes} bytes exceeds the {limit} that a slot can hold")]
    AnswerTooLarge {
        /// The encoded answer's size.
        bytes: usize,
        /// The largest size that fits.
        limit: usize,
    },
    /// The answer contains more than one incomplete versionstamp; nothing was written.
    #[error("an answer can contain one versionstamp of its own transaction, not several")]
    ManyStamps,
    /// The slot does not hold what this version of the layer writes, or the answer has another type.
    #[error("the slot's content cannot be read")]
    Unreadable,
}

impl RetryError for Error {
    fn fdb(&self) -> Option<tx::Error> {
        match self {
            Error::Fdb(e) => Some(*e),
            _ => None,
        }
    }
}
