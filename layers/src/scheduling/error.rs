//! Errors of class scheduling: refusals, which are valid results, and failures, which are not.

use crate::{
    limits::TooLarge,
    once,
    tx::{self, RetryError},
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Why an operation was refused. A refused operation has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// No class with that name is offered.
    #[error("unknown class")]
    UnknownClass,
    /// Every seat of the class is taken.
    #[error("no remaining seats")]
    NoRemainingSeats,
    /// The student takes [`MAX_CLASSES`](super::MAX_CLASSES) classes already.
    #[error("too many classes")]
    TooManyClasses,
    /// A switch from a class that the student does not take.
    #[error("not taking the old class")]
    NotTakingOld,
    /// A switch to a class that the student takes already: it would reduce the number of classes.
    #[error("already taking the new class")]
    AlreadyTakingNew,
    /// A switch from a class to itself.
    #[error("the old class and the new class are the same")]
    SameClass,
    /// A name of more than [`MAX_NAME`](super::keys::MAX_NAME) bytes.
    #[error("name too long")]
    NameTooLong,
    /// More than [`MAX_INIT`](super::MAX_INIT) classes to add at once.
    #[error("too many classes at once")]
    TooManyAtOnce,
}

/// Why an operation returned no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The operation was refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The call would read more than one call may read.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// A FoundationDB error; the retry loop decides whether to retry.
    #[error(transparent)]
    Fdb(#[from] tx::Error),
    /// The exactly-once session could not apply the operation.
    #[error(transparent)]
    Once(#[from] once::Error),
    /// A key or its value does not follow the schema: the subspace contains data of another writer.
    #[error("not of the scheduling schema: {}", key.escape_ascii())]
    Corrupt {
        /// The key in question.
        key: Bytes,
    },
}

impl Error {
    pub(super) fn corrupt(key: &[u8]) -> Error {
        Error::Corrupt { key: Bytes::copy_from_slice(key) }
    }
}

impl RetryError for Error {
    fn fdb(&self) -> Option<tx::Error> {
        match self {
            Error::Fdb(e) => Some(*e),
            Error::Once(once::Error::Fdb(e)) => Some(*e),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_foundationdb_errors_reach_the_retry_loop() {
        let fdb = tx::Error::NOT_COMMITTED;
        for (error, heard) in [
            (Error::Fdb(fdb), Some(fdb)),
            (Error::Once(once::Error::Fdb(fdb)), Some(fdb)),
            (Error::Once(once::Error::Unreadable), None),
            (Error::Refused(Refusal::SameClass), None),
            (Error::corrupt(b"k"), None),
        ] {
            assert_eq!(error.fdb(), heard, "{error}");
        }
    }
}
