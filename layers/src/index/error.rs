//! Errors of operations on an indexed table.

use crate::{
    limits::TooLarge,
    once,
    tx::{self, RetryError},
};

/// Why an operation on a table failed; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A FoundationDB error.
    #[error(transparent)]
    Fdb(#[from] tx::Error),
    /// The exactly-once mechanism refused the operation.
    #[error(transparent)]
    Once(#[from] once::Error),
    /// The call would read more than one call may read.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The record and its id are larger than [`MAX_RECORD_BYTES`](super::MAX_RECORD_BYTES).
    #[error("a record of {bytes} bytes exceeds the limit of {limit}")]
    RecordTooLarge {
        /// The size of the packed id and the record.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The record's key, or its entry's key in an index, is longer than FoundationDB allows.
    #[error("a key of {bytes} bytes in `{index}` exceeds the limit of {limit}")]
    KeyTooLarge {
        /// The index, or `records`.
        index: &'static str,
        /// The key's size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The record's id, or its key in an index, is nested deeper than
    /// [`MAX_DEPTH`](crate::nesting::MAX_DEPTH).
    #[error("a key in `{0}` is nested deeper than {limit}", limit = crate::nesting::MAX_DEPTH)]
    TooDeep(&'static str),
    /// The part of the record that the index covers is larger than a value of FoundationDB may be.
    #[error("{bytes} bytes covered by `{index}` exceed the limit of {limit}")]
    CoveredTooLarge {
        /// The index.
        index: &'static str,
        /// The covered value's size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// No index with that name is declared.
    #[error("the table has no index `{0}`")]
    UnknownIndex(&'static str),
    /// The table's subspace holds a row that this table did not write.
    #[error("`{0}` holds a row that this table did not write")]
    Foreign(&'static str),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foundationdb_errors_are_retried_wherever_they_occur() {
        let conflict = tx::Error::NOT_COMMITTED;
        for (error, fdb) in [
            (Error::from(conflict), Some(conflict)),
            (Error::from(once::Error::from(conflict)), Some(conflict)),
            (Error::from(once::Error::Superseded), None),
            (Error::UnknownIndex("name"), None),
        ] {
            assert_eq!(error.fdb(), fdb, "{error}");
        }
    }
}
