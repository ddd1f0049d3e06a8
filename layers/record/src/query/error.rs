//! Why a query was refused.

use crate::expression::ExpressionError;

/// Why a query cannot be planned. `path` is the field, with those that it is nested in: `flower.color`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The meta-data has no such record type.
    #[error("there is no record type {0}")]
    UnknownRecordType(String),
    /// A queried record type has no such field.
    #[error("{record_type} has no field {path}")]
    NoField {
        /// The record type.
        record_type: String,
        /// The field.
        path: String,
    },
    /// A field is compared with a value of another type.
    #[error("{path} is {wanted}: it cannot be compared with {found}")]
    Type {
        /// What is compared.
        path: String,
        /// Its type.
        wanted: &'static str,
        /// The value that it is compared with.
        found: String,
    },
    /// Only strings and bytes start with something.
    #[error("{path} is neither a string nor bytes: it starts with nothing")]
    StartsWith {
        /// What is compared.
        path: String,
    },
    /// `matches` needs a field that is a message.
    #[error("field {path} is not a message: it has no fields to match")]
    NotMessage {
        /// The field.
        path: String,
    },
    /// A comparison needs a field that is not a message.
    #[error("field {path} is a message: match a field of it")]
    NotScalar {
        /// The field.
        path: String,
    },
    /// `one_of_them` needs a repeated field.
    #[error("field {path} is not repeated: it has no elements")]
    NotRepeated {
        /// The field.
        path: String,
    },
    /// A repeated field is compared by its elements.
    #[error("field {path} is repeated: compare one of its elements")]
    Repeated {
        /// The field.
        path: String,
    },
    /// A sort, a result, a rank or a key does not fit a queried record type.
    #[error("{record_type}: {reason}")]
    Expression {
        /// The record type.
        record_type: String,
        /// Why.
        reason: ExpressionError,
    },
    /// The key expression of a comparison has other than one column.
    #[error("{expression} has {columns} columns: compare one")]
    Columns {
        /// The expression.
        expression: String,
        /// Its columns.
        columns: usize,
    },
    /// A rank, a version or a record type belongs to a record, not to a message in it.
    #[error("{operand} is not in {path}: compare it outside")]
    Nested {
        /// What is compared.
        operand: String,
        /// The field whose message it is compared in.
        path: String,
    },
    /// Too many conditions in one another.
    #[error("the condition is nested deeper than {limit}")]
    Depth {
        /// The limit.
        limit: usize,
    },
    /// A version that is not committed cannot be compared: its place among the others is not known.
    #[error("an incomplete version cannot be compared")]
    IncompleteVersion,
    /// No index that can be used is a rank index of this expression, on all queried types.
    #[error("no readable rank index of {0} is on all queried record types")]
    NoRankIndex(String),
    /// Nothing gives the order that is asked for.
    #[error("no index gives this order: {0}")]
    NoOrder(String),
}
