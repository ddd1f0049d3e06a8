//! What can go wrong in class scheduling: refusals, which are answers, and failures, which are not.

use crate::{
    limits::TooLarge,
    once,
    tx::{self, RetryError},
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Why an operation was refused. A refused operation has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// No class of that name is offered.
    #[error("unknown class")]
    UnknownClass,
    /// Every seat of the class is taken.
    #[error("no remaining seats")]
    NoRemainingSeats,
    /// The student takes [`MAX_CLASSES`](super::MAX_CLASSES) classes already.
    #[error("too many classes")]
    TooManyClasses,
    /// A switch away from a class that the student does not take.
    #[error("not taking the old class")]
    NotTakingOld,
    /// A switch to a class that the student takes already: it would leave one class fewer.
    #[error("already taking the new class")]
    AlreadyTakingNew,
    /// A switch from a class to itself.
    #[error("the old class and the new class are the same")]
    SameClass,
    /// A name of more than [`MAX_NAME`](super::keys::MAX_NAME) bytes.
    #[error("name too long")]
    NameTooLong,
    /// More than [`MAX_INIT`](super::MAX_INIT) classes to be added at once.
    #[error("too many classes at once")]
    TooManyAtOnce,
}

/// Why an operation did not give its answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The operation was refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// More than one call reads.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// FoundationDB's error, for the retry loop to judge.
    #[error(transparent)]
    Fdb(#[from] tx::Error),
    /// The session that should have applied it exactly once could not.
    #[error(transparent)]
    Once(#[from] once::Error),
    /// A key or its value is not of the schema: somebody else writes here.
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
    fn what_foundationdb_said_is_what_a_retry_loop_hears_however_deep_it_is() {
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
