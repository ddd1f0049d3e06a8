//! Why an operation on records was refused.

use crate::{expression::EvaluateError, metadata::MetaDataError, query::QueryError, value::Tuple};
use shaketable_tx::{self as tx, RetryError, limits::TooLarge, once};

/// Why an operation was refused. Except for an error of FoundationDB, which the retry loop handles, nothing
/// has been written by the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A FoundationDB error; the retry loop decides whether to retry.
    #[error(transparent)]
    Fdb(#[from] tx::Error),
    /// The exactly-once mechanism refused the operation.
    #[error(transparent)]
    Once(#[from] once::Error),
    /// A key, a value or the transaction would exceed FoundationDB's limits.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The entry of an index would exceed FoundationDB's limits.
    #[error("index {index}: {too_large}")]
    EntryTooLarge {
        /// The index.
        index: String,
        /// The limit.
        too_large: TooLarge,
    },
    /// The context was committed or closed.
    #[error("the record context is closed")]
    Closed,
    /// The context belongs to a retry loop, which commits it.
    #[error("this record context is committed by the retry loop that it belongs to")]
    NotOwned,
    /// The message is of a type that is not in the meta-data.
    #[error("{0} is not a record type of the meta-data")]
    UnknownType(String),
    /// A message cannot be stored as a record of its type.
    #[error("the message cannot be a {record_type}: {reason}")]
    Message {
        /// The record type.
        record_type: String,
        /// Why.
        reason: String,
    },
    /// The meta-data has no such index.
    #[error("the meta-data has no index {0}")]
    UnknownIndex(String),
    /// No maintainer is registered for an index's type.
    #[error("index {index}: no maintainer is registered for type {kind}")]
    UnknownIndexType {
        /// The index.
        index: String,
        /// Its type.
        kind: String,
    },
    /// An expression could not be evaluated.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// Meta-data was refused.
    #[error(transparent)]
    MetaData(Box<MetaDataError>),
    /// No meta-data is saved in the subspace.
    #[error("no meta-data is saved in this subspace")]
    NoMetaData,
    /// The primary key of a record did not evaluate to one key.
    #[error("the primary key of {record_type} evaluates to {keys} keys instead of one")]
    PrimaryKey {
        /// The record's type.
        record_type: String,
        /// How many.
        keys: usize,
    },
    /// A record with this primary key exists.
    #[error("a record with primary key {0} exists")]
    Exists(Tuple),
    /// No record with this primary key exists.
    #[error("no record with primary key {0} exists")]
    NotFound(Tuple),
    /// The record with this primary key is of another type.
    #[error("the record with primary key {primary_key} is of type {found}, not {wanted}")]
    TypeChanged {
        /// The primary key.
        primary_key: Tuple,
        /// The type of the stored record.
        found: String,
        /// The type of the record that was to replace it.
        wanted: String,
    },
    /// Another record has the same key in a unique index.
    #[error("index {index}: key {key} of record {primary_key} is taken by record {existing}")]
    NotUnique {
        /// The index.
        index: String,
        /// The key.
        key: Tuple,
        /// The record that was to be saved.
        primary_key: Tuple,
        /// The record that has the key.
        existing: Tuple,
    },
    /// The store was last opened with later meta-data.
    #[error("the store has version {store} of the meta-data, later than {given}")]
    StaleMetaData {
        /// The store's version.
        store: i32,
        /// The version it was opened with.
        given: i32,
    },
    /// An index cannot be maintained.
    #[error("index {index} is not valid: {reason}")]
    InvalidIndex {
        /// The index.
        index: String,
        /// Why.
        reason: String,
    },
    /// The store was last opened by a later version of the application.
    #[error("the store has version {store} of the application, later than {given}")]
    StaleUserVersion {
        /// The store's version.
        store: i32,
        /// The version it was opened with.
        given: i32,
    },
    /// The store has a format that this version does not know.
    #[error("the store has format {found}; this version knows up to {known}")]
    NewerFormat {
        /// The store's format.
        found: i32,
        /// The latest known format.
        known: i32,
    },
    /// There is no store in the subspace.
    #[error("there is no record store in this subspace")]
    NoStore,
    /// There is a store in the subspace.
    #[error("there is a record store in this subspace")]
    StoreExists,
    /// The subspace holds rows, but no store's header.
    #[error("the subspace of the record store has rows, but no header")]
    NoHeader,
    /// A stored row is not what this layer writes.
    #[error("not of this layer's schema: {what} at {key}")]
    Foreign {
        /// What should be there.
        what: &'static str,
        /// The row's key, printable.
        key: String,
    },
    /// The bytes of a record are torn, or of another type.
    #[error("record {primary_key} cannot be read: {reason}")]
    Torn {
        /// Its primary key.
        primary_key: Tuple,
        /// Why.
        reason: String,
    },
    /// The index cannot be used for this: it is not readable, or its type has no such scan.
    #[error("index {index}: {reason}")]
    IndexState {
        /// The index.
        index: String,
        /// Why.
        reason: String,
    },
    /// A continuation is torn, or belongs to another call.
    #[error("the continuation does not belong to this {0}")]
    Continuation(&'static str),
    /// More records were saved in one transaction than versions can number.
    #[error("more than 65,535 record versions in one transaction")]
    TooManyVersions,
    /// A version was given for a store that keeps none, or one that is incomplete.
    #[error("a version cannot be saved: {0}")]
    Version(&'static str),
    /// The query is not valid.
    #[error("query: {0}")]
    Query(String),
    /// The query does not fit the meta-data, or cannot be planned.
    #[error("query: {0}")]
    InvalidQuery(#[from] QueryError),
}

impl Error {
    /// A stored row is not what this layer writes.
    pub(crate) fn foreign(what: &'static str, key: &[u8]) -> Error {
        Error::Foreign { what, key: format!("\"{}\"", key.escape_ascii()) }
    }
}

impl From<MetaDataError> for Error {
    fn from(error: MetaDataError) -> Error {
        Error::MetaData(Box::new(error))
    }
}

impl RetryError for Error {
    fn fdb(&self) -> Option<tx::Error> {
        match self {
            Error::Fdb(error) => Some(*error),
            Error::Once(error) => error.fdb(),
            _ => None,
        }
    }
}
