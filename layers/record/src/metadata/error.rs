//! Why meta-data was refused.

use super::{EvolutionError, Usage};
use crate::expression::{ExpressionBytesError, ExpressionError};

/// Why meta-data was refused when it was built or read. Fields are named with their path: the record type and
/// the fields that lead to them, `Restaurant.reviews.rating`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetaDataError {
    /// A `.proto` file does not compile.
    #[error("{0}")]
    Proto(String),
    /// The record options of a file, a message or a field have another form.
    #[error("the record options of {of} cannot be read")]
    Options {
        /// What they are of.
        of: String,
    },
    /// The builder was given no records, or twice.
    #[error("the builder needs one file of records: call set_records once, before anything else")]
    Records,
    /// A field is an unsigned integer.
    #[error("field {path} is of the unsigned type {kind}, which a key cannot hold in order")]
    Unsigned {
        /// The field.
        path: String,
        /// Its type.
        kind: String,
    },
    /// No message of the file is the union.
    #[error("{file} has no union: a message named RecordTypeUnion, or with the usage UNION")]
    NoUnion {
        /// The file.
        file: String,
    },
    /// Two messages of the file are the union.
    #[error("both {first} and {second} are the union")]
    TwoUnions {
        /// One.
        first: String,
        /// The other.
        second: String,
    },
    /// The union has no fields.
    #[error("the union {union} has no record types")]
    EmptyUnion {
        /// The union.
        union: String,
    },
    /// A field of the union is not a message.
    #[error("field {path} of the union is not a message")]
    UnionFieldNotMessage {
        /// The field.
        path: String,
    },
    /// A field of the union is repeated.
    #[error("field {path} of the union is repeated")]
    UnionFieldRepeated {
        /// The field.
        path: String,
    },
    /// A field of the union is of a message that is not used for records.
    #[error("field {path} of the union is of the message {message}, which has the usage {usage:?}")]
    UnionFieldUsage {
        /// The field.
        path: String,
        /// Its message.
        message: String,
        /// What the message is used for.
        usage: Usage,
    },
    /// The union has alternatives beside other fields, or two sets of them.
    #[error("the union {union} may have one oneof with all its fields, or none")]
    UnionOneof {
        /// The union.
        union: String,
    },
    /// A message with the usage RECORD is not in the union.
    #[error("the message {message} has the usage RECORD, but the union has no field of it")]
    NotInUnion {
        /// The message.
        message: String,
    },
    /// A message cannot have this usage.
    #[error("the message {message} cannot have the usage {usage:?}")]
    Usage {
        /// The message.
        message: String,
        /// The usage.
        usage: Usage,
    },
    /// Two messages of the union have the same name, in different packages.
    #[error("two record types are named {name}")]
    TwoRecordTypes {
        /// The name.
        name: String,
    },
    /// There is no such record type.
    #[error("there is no record type {name}")]
    UnknownRecordType {
        /// The name.
        name: String,
    },
    /// A record type has no primary key.
    #[error("record type {record_type} has no primary key")]
    NoPrimaryKey {
        /// The record type.
        record_type: String,
    },
    /// Two fields of a record type have the option `primary_key`.
    #[error("record type {record_type} has two primary keys: {first} and {second}")]
    TwoPrimaryKeys {
        /// The record type.
        record_type: String,
        /// One field.
        first: String,
        /// The other.
        second: String,
    },
    /// The primary key does not fit its records.
    #[error("the primary key of {record_type}: {error}")]
    PrimaryKey {
        /// The record type.
        record_type: String,
        /// Why.
        error: ExpressionError,
    },
    /// A record could have several primary keys, or none.
    #[error("the primary key of {record_type} can fan out to other than one key: {path}")]
    PrimaryKeyFansOut {
        /// The record type.
        record_type: String,
        /// The field or function that does.
        path: String,
    },
    /// Records of one type could be among the rows of a record of another type.
    #[error(
        "the primary keys of {shorter} and {longer} are not compatible: that of a {longer} may be that of a {shorter} with \
         further columns; give them the same number of columns, or begin both with the record type's key"
    )]
    PrimaryKeys {
        /// The record type with fewer columns in its primary key.
        shorter: String,
        /// The other record type.
        longer: String,
    },
    /// The primary key has no columns.
    #[error("the primary key of {record_type} has no columns")]
    PrimaryKeyEmpty {
        /// The record type.
        record_type: String,
    },
    /// The primary key contains the record's version, which changes.
    #[error("the primary key of {record_type} contains the record's version")]
    PrimaryKeyVersion {
        /// The record type.
        record_type: String,
    },
    /// Two record types have the same key.
    #[error("record types {first} and {second} have the same key {key}")]
    TwoRecordTypeKeys {
        /// One.
        first: String,
        /// The other.
        second: String,
        /// The key.
        key: String,
    },
    /// The key of a record type is null, or of a type that meta-data cannot store.
    #[error("the key of record type {record_type} cannot be {key}")]
    RecordTypeKey {
        /// The record type.
        record_type: String,
        /// The key.
        key: String,
    },
    /// Two indexes have the same name.
    #[error("two indexes are named {name}")]
    TwoIndexes {
        /// The name.
        name: String,
    },
    /// There is no such index.
    #[error("there is no index {name}")]
    UnknownIndex {
        /// The name.
        name: String,
    },
    /// The type of an index is not one of this crate's, and not declared.
    #[error("index {index} is of the unknown type {kind}")]
    UnknownIndexType {
        /// The index.
        index: String,
        /// Its type.
        kind: String,
    },
    /// An index is on no record type.
    #[error("index {index} is on no record type")]
    IndexWithoutTypes {
        /// The index.
        index: String,
    },
    /// The expression of an index does not fit the records.
    #[error("index {index} on {record_type}: {error}")]
    Index {
        /// The index.
        index: String,
        /// The record type.
        record_type: String,
        /// Why.
        error: ExpressionError,
    },
    /// An index does not have what its type needs.
    #[error("index {index} of type {kind} {rule}")]
    IndexRule {
        /// The index.
        index: String,
        /// Its type.
        kind: String,
        /// What it needs.
        rule: IndexRule,
    },
    /// Two indexes, present or former, are stored under the same number.
    #[error("indexes {first} and {second} are stored under the same number {number}")]
    TwoSubspaceKeys {
        /// One.
        first: String,
        /// The other.
        second: String,
        /// The number.
        number: i64,
    },
    /// A version is later than another that it cannot be later than.
    #[error("{what} {name}: {earlier} is version {found}, later than {later}, which is {limit}")]
    Version {
        /// What has the version: an index, a former index, a record type.
        what: &'static str,
        /// Its name.
        name: String,
        /// Which version.
        earlier: &'static str,
        /// That version.
        found: i32,
        /// The version that it may not exceed.
        later: &'static str,
        /// That version.
        limit: i32,
    },
    /// No further version or number is left.
    #[error("the meta-data has no next {0}")]
    Exhausted(&'static str),
    /// Stored meta-data cannot be read.
    #[error("stored meta-data is torn: {0}")]
    Torn(String),
    /// An expression of stored meta-data cannot be read.
    #[error("the expression of {of}: {error}")]
    Expression {
        /// What it is of.
        of: String,
        /// Why.
        error: ExpressionBytesError,
    },
    /// Stored meta-data has something that this crate does not have.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The meta-data cannot follow the one that is stored.
    #[error(transparent)]
    Evolution(#[from] EvolutionError),
}

/// What the type of an index needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexRule {
    /// No groups.
    #[error("cannot be grouped")]
    NotGrouped,
    /// Columns that are grouped.
    #[error("needs at least one grouped column")]
    Grouped,
    /// One grouped column.
    #[error("needs exactly one grouped column, not {0}")]
    OneGrouped(usize),
    /// All columns as the group.
    #[error("needs all its columns to be the group, but {0} are grouped: use group_last(0)")]
    NoneGrouped(usize),
    /// An integer as the last column.
    #[error("needs an integer as its last column")]
    Integer,
    /// The record's version in one column.
    #[error("needs the record's version in exactly one column, not {0}")]
    OneVersion(usize),
    /// The record's version in no column.
    #[error("cannot contain the record's version")]
    NoVersion,
    /// Records with versions.
    #[error("needs meta-data that stores record versions")]
    StoredVersions,
    /// No uniqueness.
    #[error("cannot be unique")]
    NotUnique,
}
