//! Key expressions: functions from a record to the keys under which an index, or the store itself, keeps it.
//!
//! An expression has a fixed number of columns ([`KeyExpression::columns`]) and evaluates to a list of keys,
//! each with a value in every column. [`field`] has one column; [`concat()`] has the columns of its parts one
//! after another, with every combination of their keys, the first part varying slowest; `nest` evaluates its
//! child in a field's message and adds no column of its own.
//!
//! ```
//! use shaketable_record::expression::{concat, field};
//!
//! // One key for each review: the review's rating, then the restaurant's name.
//! let expression = concat([field("reviews").fan_out().nest("rating"), field("name").into()]);
//! assert_eq!(expression.columns(), 2);
//! assert_eq!(expression.to_string(), r#"(reviews[].rating, name)"#);
//! ```

mod evaluate;
mod function;
pub(crate) mod proto;
mod scalar;
#[cfg(test)]
pub(crate) mod tests;
mod validate;

pub(crate) use evaluate::field_of;
pub use evaluate::{Column, EvaluateError, Evaluated, Subject};
pub use function::{Function, Functions};
pub use proto::ExpressionBytesError;
pub(crate) use scalar::is_scalar;
pub use scalar::{is_nullable_wrapper, scalar};
pub use validate::ExpressionError;
pub(crate) use validate::resolve;

use crate::value::{IntoValue, Shown, Value};
use std::fmt;

/// What an expression does with a field that is repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FanType {
    /// The field is not repeated.
    #[default]
    None,
    /// One key for each value; no key if there is no value.
    FanOut,
    /// One key with all values as a nested list; null if there is no value.
    Concatenate,
    /// One key with all values as a nested list, which is empty if there is no value: what Java's Record
    /// Layer does for [`Concatenate`](FanType::Concatenate), where its documentation has null.
    ConcatenateOrEmpty,
}

/// What stands for a field that is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NullStandin {
    /// Null. A unique index allows it more than once.
    #[default]
    Null,
    /// Null. A unique index treats it like any other value.
    NullUnique,
    /// The default value of the field's type, like any other value: for fields that do not record whether
    /// they are present.
    NotNull,
}

/// A field of a message, and how it is evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in the `.proto` file.
    pub name: String,
    /// What is done if it is repeated.
    pub fan: FanType,
    /// What stands for it if it is absent.
    pub null: NullStandin,
}

/// A function from a record to a list of keys.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyExpression {
    /// One key without columns.
    Empty,
    /// One column: the value of a field.
    Field(Field),
    /// The columns of `child`, evaluated in the message that is the field's value.
    Nest {
        /// A field of a message type.
        parent: Field,
        /// Evaluated in that message; all of its columns are null if the message is absent.
        child: Box<KeyExpression>,
    },
    /// The columns of all parts, in order.
    Concat(Vec<KeyExpression>),
    /// The columns of `whole`, of which the last `grouped` are what an index of groups aggregates or ranks,
    /// and the others are the group.
    Group {
        /// All columns.
        whole: Box<KeyExpression>,
        /// How many of the last columns are grouped.
        grouped: usize,
    },
    /// One column: the record's version.
    Version,
    /// One column: the key of the record's type.
    RecordType,
    /// One column: always this value.
    Literal(Value),
    /// The columns of a function's results.
    Function {
        /// The name under which it is registered.
        name: String,
        /// Evaluated first: the function is called with each of the keys.
        arguments: Box<KeyExpression>,
    },
}

/// The value of the field `name`, which is not repeated unless [`fan_out`](Field::fan_out) or
/// [`concatenate`](Field::concatenate) is called.
pub fn field(name: impl Into<String>) -> Field {
    Field { name: name.into(), fan: FanType::None, null: NullStandin::Null }
}

/// The columns of all parts, in order. The keys are all combinations of the parts' keys.
pub fn concat<E: Into<KeyExpression>>(parts: impl IntoIterator<Item = E>) -> KeyExpression {
    KeyExpression::Concat(parts.into_iter().map(Into::into).collect())
}

/// The values of several fields, none of which is repeated.
pub fn concatenate_fields<'a>(names: impl IntoIterator<Item = &'a str>) -> KeyExpression {
    concat(names)
}

/// Calls the function that is registered under `name` with the keys of `arguments`.
pub fn function(name: impl Into<String>, arguments: impl Into<KeyExpression>) -> KeyExpression {
    KeyExpression::Function { name: name.into(), arguments: Box::new(arguments.into()) }
}

/// Always this value.
pub fn literal(value: impl IntoValue) -> KeyExpression {
    KeyExpression::Literal(value.into_value())
}

impl Field {
    /// For a repeated field: one key for each value.
    pub fn fan_out(self) -> Field {
        Field { fan: FanType::FanOut, ..self }
    }

    /// For a repeated field: one key with all values as a nested list, null if there is none.
    pub fn concatenate(self) -> Field {
        Field { fan: FanType::Concatenate, ..self }
    }

    /// All values of this repeated field as one list, which is empty if there is no value.
    pub fn concatenate_or_empty(self) -> Field {
        Field { fan: FanType::ConcatenateOrEmpty, ..self }
    }

    /// What stands for the field if it is absent.
    pub fn null(self, null: NullStandin) -> Field {
        Field { null, ..self }
    }

    /// An absent field has the default value of its type.
    pub fn not_null(self) -> Field {
        self.null(NullStandin::NotNull)
    }

    /// Evaluates `child` in the message that is this field's value.
    pub fn nest(self, child: impl Into<KeyExpression>) -> KeyExpression {
        KeyExpression::Nest { parent: self, child: Box::new(child.into()) }
    }

    /// This field, grouped by other columns.
    pub fn group_by(self, group: impl Into<KeyExpression>) -> KeyExpression {
        KeyExpression::from(self).group_by(group)
    }

    /// This field, in one group of everything.
    pub fn ungrouped(self) -> KeyExpression {
        KeyExpression::from(self).ungrouped()
    }
}

impl KeyExpression {
    /// This expression, grouped by the columns of `group`: those of `group` first.
    pub fn group_by(self, group: impl Into<KeyExpression>) -> KeyExpression {
        let grouped = self.columns();
        KeyExpression::Group { whole: Box::new(concat([group.into(), self])), grouped }
    }

    /// This expression, of which the last `grouped` columns are grouped by the others.
    pub fn group_last(self, grouped: usize) -> KeyExpression {
        KeyExpression::Group { whole: Box::new(self), grouped }
    }

    /// The expression without records: one group of everything.
    pub fn ungrouped(self) -> KeyExpression {
        let grouped = self.columns();
        self.group_last(grouped)
    }

    /// The number of values in each of its keys. A function has one.
    pub fn columns(&self) -> usize {
        match self {
            KeyExpression::Empty => 0,
            KeyExpression::Field(_)
            | KeyExpression::Version
            | KeyExpression::RecordType
            | KeyExpression::Literal(_)
            | KeyExpression::Function { .. } => 1,
            KeyExpression::Nest { child, .. } => child.columns(),
            KeyExpression::Concat(parts) => parts.iter().map(KeyExpression::columns).sum(),
            KeyExpression::Group { whole, .. } => whole.columns(),
        }
    }

    /// How many of the columns are the group: of a [`Group`](KeyExpression::Group) all but the grouped ones,
    /// of any other expression all but the last.
    pub fn grouping_columns(&self) -> usize {
        match self {
            KeyExpression::Group { whole, grouped } => whole.columns().saturating_sub(*grouped),
            _ => self.columns().saturating_sub(1),
        }
    }

    /// Whether a record may have several keys, or none.
    pub fn creates_duplicates(&self) -> bool {
        match self {
            KeyExpression::Field(field) => field.fan == FanType::FanOut,
            KeyExpression::Nest { parent, child } => {
                parent.fan == FanType::FanOut || child.creates_duplicates()
            }
            KeyExpression::Concat(parts) => parts.iter().any(KeyExpression::creates_duplicates),
            KeyExpression::Group { whole, .. } => whole.creates_duplicates(),
            KeyExpression::Function { .. } => true,
            _ => false,
        }
    }

    /// Whether this is the same expression; also if a literal is a number that does not equal itself.
    pub(crate) fn is_same(&self, other: &KeyExpression) -> bool {
        match (self.to_bytes(), other.to_bytes()) {
            (Ok(this), Ok(other)) => this == other,
            _ => self == other,
        }
    }

    /// How many of the columns are the record's version.
    pub fn version_columns(&self) -> usize {
        match self {
            KeyExpression::Version => 1,
            KeyExpression::Nest { child, .. } => child.version_columns(),
            KeyExpression::Concat(parts) => parts.iter().map(KeyExpression::version_columns).sum(),
            KeyExpression::Group { whole, .. } => whole.version_columns(),
            _ => 0,
        }
    }

    /// An expression of one column for each column, in order; a nested one is nested in the same fields. The
    /// planner compares these with what a query asks for.
    pub fn column_expressions(&self) -> Vec<KeyExpression> {
        match self {
            KeyExpression::Empty => Vec::new(),
            KeyExpression::Concat(parts) => {
                parts.iter().flat_map(KeyExpression::column_expressions).collect()
            }
            KeyExpression::Group { whole, .. } => whole.column_expressions(),
            KeyExpression::Nest { parent, child } => {
                let nested = |column: KeyExpression| parent.clone().nest(column);
                child.column_expressions().into_iter().map(nested).collect()
            }
            one => vec![one.clone()],
        }
    }
}

impl From<Field> for KeyExpression {
    fn from(field: Field) -> KeyExpression {
        KeyExpression::Field(field)
    }
}

impl From<&str> for Field {
    fn from(name: &str) -> Field {
        field(name)
    }
}

impl From<&str> for KeyExpression {
    fn from(name: &str) -> KeyExpression {
        field(name).into()
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fan = match self.fan {
            FanType::None => "",
            FanType::FanOut => "[]",
            FanType::Concatenate => "[*]",
            FanType::ConcatenateOrEmpty => "[*, empty]",
        };
        let null = match self.null {
            NullStandin::Null => "",
            NullStandin::NullUnique => "?unique",
            NullStandin::NotNull => "!",
        };
        write!(f, "{}{fan}{null}", self.name)
    }
}

/// In short: `(parent_path, reviews[].rating)`.
impl fmt::Display for KeyExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyExpression::Empty => f.write_str("()"),
            KeyExpression::Field(field) => fmt::Display::fmt(field, f),
            KeyExpression::Nest { parent, child } => write!(f, "{parent}.{child}"),
            KeyExpression::Concat(parts) => {
                f.write_str("(")?;
                for (i, part) in parts.iter().enumerate() {
                    write!(f, "{}{part}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
            KeyExpression::Group { whole, grouped } => write!(f, "{whole} grouping the last {grouped}"),
            KeyExpression::Version => f.write_str("version"),
            KeyExpression::RecordType => f.write_str("record type"),
            KeyExpression::Literal(value) => fmt::Display::fmt(&Shown(value), f),
            KeyExpression::Function { name, arguments } => write!(f, "{name}({arguments})"),
        }
    }
}
