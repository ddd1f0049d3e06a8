//! Why a queue operation did not happen.

use crate::{
    once,
    tx::{self, RetryError},
};

/// What a queue operation can fail with; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// FoundationDB's error.
    #[error(transparent)]
    Fdb(#[from] tx::Error),
    /// The exactly-once mechanism let the operation not through.
    #[error(transparent)]
    Once(#[from] once::Error),
    /// The value is longer than [`MAX_VALUE_BYTES`](super::MAX_VALUE_BYTES).
    #[error("a value of {bytes} bytes exceeds the {limit} of a queue")]
    ValueTooLarge {
        /// The value's size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The read came to items that this very transaction has enqueued in commit order: they have no
    /// key before the commit.
    #[error("items enqueued in commit order cannot be read by their own transaction")]
    OwnItemsUnreadable,
    /// The subspace holds a key that is none of this queue's, or of one in the other order.
    #[error("a key in the queue's subspace is not an item of its order")]
    ForeignKey,
    /// Index order has come to the largest index.
    #[error("no index is left")]
    IndexesExhausted,
}

impl RetryError for Error {
    fn fdb(&self) -> Option<tx::Error> {
        match self {
            Error::Fdb(e) => Some(*e),
            Error::Once(e) => e.fdb(),
            _ => None,
        }
    }
}
