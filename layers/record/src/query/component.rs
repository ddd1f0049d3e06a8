//! What a query asks for: comparisons of a record's values, combined with and, or and not.

use super::comparison::Comparison;
use crate::{
    expression::{Field, KeyExpression},
    value::IntoValue,
};
use std::fmt;

/// What a comparison with the elements of an empty list is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyList {
    /// Unknown: neither the comparison nor its negation finds the record.
    #[default]
    Unknown,
    /// False: the negation finds the record.
    NoMatches,
}

/// What is compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A field that is not repeated.
    Field(Field),
    /// One of the elements of a repeated field: true if the comparison is true for one; otherwise unknown if
    /// it is for one.
    OneOf {
        /// The field.
        field: Field,
        /// What the comparison is if there is no element.
        empty: EmptyList,
    },
    /// The record's rank in an index of type `rank` with this expression.
    Rank(KeyExpression),
    /// The record's version.
    Version,
    /// The name of the record's type.
    RecordType,
    /// One of the keys of an expression of one column; unknown if it has no key.
    Key(KeyExpression),
}

/// A condition on records, nested at most [`MAX_DEPTH`](shaketable_tx::nesting::MAX_DEPTH) deep. It is true,
/// false or unknown for each record; a query finds those for which it is true.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryComponent {
    /// False if one is false; otherwise unknown if one is unknown. True if there are none.
    And(Vec<QueryComponent>),
    /// True if one is true; otherwise unknown if one is unknown. False if there are none.
    Or(Vec<QueryComponent>),
    /// Unknown if the component is unknown.
    Not(Box<QueryComponent>),
    /// A comparison of a value.
    Compare {
        /// What is compared.
        operand: Operand,
        /// With what.
        comparison: Comparison,
    },
    /// A condition on the message in a field. In an absent message all fields are absent.
    Matches {
        /// The field's name.
        field: String,
        /// The condition.
        component: Box<QueryComponent>,
    },
    /// A condition on one of the messages in a repeated field: true if it is for one; otherwise unknown if it
    /// is for one.
    OneMatches {
        /// The field's name.
        field: String,
        /// What it is if there is no message.
        empty: EmptyList,
        /// The condition.
        component: Box<QueryComponent>,
    },
}

impl QueryComponent {
    /// Whether there are more than so many conditions in one another. It does not recurse.
    pub(super) fn is_deeper_than(&self, limit: usize) -> bool {
        let mut pending = vec![(self, 1)];
        while let Some((component, depth)) = pending.pop() {
            if depth > limit {
                return true;
            }
            match component {
                QueryComponent::And(parts) | QueryComponent::Or(parts) => {
                    pending.extend(parts.iter().map(|part| (part, depth + 1)));
                }
                QueryComponent::Not(inner)
                | QueryComponent::Matches { component: inner, .. }
                | QueryComponent::OneMatches { component: inner, .. } => pending.push((inner, depth + 1)),
                QueryComponent::Compare { .. } => {}
            }
        }
        false
    }
}

/// The conditions of queries.
///
/// ```
/// use shaketable_record::query::Query;
///
/// let cheap_roses = Query::and([
///     Query::field("flower").matches(Query::field("type").equals("ROSE")),
///     Query::field("price").less_than(50),
/// ]);
/// assert_eq!(cheap_roses.to_string(), r#"flower.type = "ROSE" and price < 50"#);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Query;

impl Query {
    /// A field by its name, or as it is in key expressions, where it may be
    /// [`not_null`](crate::expression::Field::not_null).
    pub fn field(field: impl Into<Field>) -> QueryField {
        QueryField(field.into())
    }

    /// All of these.
    pub fn and(components: impl IntoIterator<Item = QueryComponent>) -> QueryComponent {
        QueryComponent::And(components.into_iter().collect())
    }

    /// At least one of these.
    pub fn or(components: impl IntoIterator<Item = QueryComponent>) -> QueryComponent {
        QueryComponent::Or(components.into_iter().collect())
    }

    /// Not this.
    #[allow(clippy::should_implement_trait, reason = "the name that the document gives it; it takes no self")]
    pub fn not(component: QueryComponent) -> QueryComponent {
        QueryComponent::Not(Box::new(component))
    }

    /// The rank of a record in the index of type `rank` that has this expression: a score, or a score in
    /// groups.
    pub fn rank(expression: impl Into<KeyExpression>) -> QueryValue {
        QueryValue(Operand::Rank(expression.into()))
    }

    /// The version of a record.
    pub fn version() -> QueryValue {
        QueryValue(Operand::Version)
    }

    /// The name of a record's type.
    pub fn record_type() -> QueryValue {
        QueryValue(Operand::RecordType)
    }

    /// A key expression of one column. A comparison with it is true if it is for one of its keys.
    pub fn key(expression: impl Into<KeyExpression>) -> QueryValue {
        QueryValue(Operand::Key(expression.into()))
    }
}

/// A field, to be compared.
#[derive(Clone, Debug)]
pub struct QueryField(Field);

/// The elements of a repeated field, to be compared.
#[derive(Clone, Debug)]
pub struct QueryElements {
    field: Field,
    empty: EmptyList,
}

/// A value that is not of one field, to be compared.
#[derive(Clone, Debug)]
pub struct QueryValue(Operand);

impl QueryField {
    /// A condition on the message in this field.
    pub fn matches(self, component: QueryComponent) -> QueryComponent {
        QueryComponent::Matches { field: self.0.name, component: Box::new(component) }
    }

    /// One of the elements of this field, which is repeated. Unknown if there is none.
    pub fn one_of_them(self) -> QueryElements {
        self.one_of_them_with(EmptyList::Unknown)
    }

    /// One of the elements of this field, which is repeated.
    pub fn one_of_them_with(self, empty: EmptyList) -> QueryElements {
        QueryElements { field: self.0, empty }
    }

    fn compare(self, comparison: Comparison) -> QueryComponent {
        QueryComponent::Compare { operand: Operand::Field(self.0), comparison }
    }
}

impl QueryElements {
    /// A condition on one of the messages in the field.
    pub fn matches(self, component: QueryComponent) -> QueryComponent {
        let Self { field, empty } = self;
        QueryComponent::OneMatches { field: field.name, empty, component: Box::new(component) }
    }

    fn compare(self, comparison: Comparison) -> QueryComponent {
        let Self { field, empty } = self;
        QueryComponent::Compare { operand: Operand::OneOf { field, empty }, comparison }
    }
}

impl QueryValue {
    fn compare(self, comparison: Comparison) -> QueryComponent {
        QueryComponent::Compare { operand: self.0, comparison }
    }
}

macro_rules! comparisons {
    ($($type:ty),*) => {$(
        impl $type {
            /// Equal to this value. With null it is unknown.
            pub fn equals(self, value: impl IntoValue) -> QueryComponent {
                self.compare(Comparison::Equals(value.into_value()))
            }

            /// Not equal to this value. With null it is unknown.
            pub fn not_equals(self, value: impl IntoValue) -> QueryComponent {
                self.compare(Comparison::NotEquals(value.into_value()))
            }

            /// Less than this value.
            pub fn less_than(self, value: impl IntoValue) -> QueryComponent {
                self.compare(Comparison::Less(value.into_value()))
            }

            /// Less than or equal to this value.
            pub fn less_or_equal(self, value: impl IntoValue) -> QueryComponent {
                self.compare(Comparison::LessOrEqual(value.into_value()))
            }

            /// Greater than this value.
            pub fn greater_than(self, value: impl IntoValue) -> QueryComponent {
                self.compare(Comparison::Greater(value.into_value()))
            }

            /// Greater than or equal to this value.
            pub fn greater_or_equal(self, value: impl IntoValue) -> QueryComponent {
                self.compare(Comparison::GreaterOrEqual(value.into_value()))
            }

            /// A string that begins with this one, or bytes that begin with these.
            pub fn starts_with(self, prefix: impl IntoValue) -> QueryComponent {
                self.compare(Comparison::StartsWith(prefix.into_value()))
            }

            /// Equal to one of these values.
            pub fn is_in<V: IntoValue>(self, values: impl IntoIterator<Item = V>) -> QueryComponent {
                self.compare(Comparison::In(values.into_iter().map(V::into_value).collect()))
            }

            /// Null. Never unknown, except among the elements of an empty list.
            pub fn is_null(self) -> QueryComponent {
                self.compare(Comparison::IsNull)
            }

            /// Not null. Never unknown, except among the elements of an empty list.
            pub fn not_null(self) -> QueryComponent {
                self.compare(Comparison::NotNull)
            }
        }
    )*};
}
comparisons!(QueryField, QueryElements, QueryValue);

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Field(field) => fmt::Display::fmt(field, f),
            Operand::OneOf { field, .. } => write!(f, "one of {field}"),
            Operand::Rank(expression) => write!(f, "rank of {expression}"),
            Operand::Version => f.write_str("version"),
            Operand::RecordType => f.write_str("record type"),
            Operand::Key(expression) => fmt::Display::fmt(expression, f),
        }
    }
}

/// As a condition is written: `a = 1 and (b < 2 or not c.d is null)`.
impl fmt::Display for QueryComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryComponent::And(parts) if parts.is_empty() => f.write_str("true"),
            QueryComponent::Or(parts) if parts.is_empty() => f.write_str("false"),
            QueryComponent::And(parts) => list(parts, " and ", f),
            QueryComponent::Or(parts) => list(parts, " or ", f),
            QueryComponent::Not(inner) => write!(f, "not {}", NestedComponent(inner)),
            QueryComponent::Compare { operand, comparison } => write!(f, "{operand} {comparison}"),
            QueryComponent::Matches { field, component } => match &**component {
                inner @ (QueryComponent::Compare { operand: Operand::Field(_), .. }
                | QueryComponent::Matches { .. }) => write!(f, "{field}.{inner}"),
                inner => write!(f, "{field} matches {}", NestedComponent(inner)),
            },
            QueryComponent::OneMatches { field, component, .. } => {
                write!(f, "one of {field} matches {}", NestedComponent(component))
            }
        }
    }
}

fn list(parts: &[QueryComponent], between: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (i, part) in parts.iter().enumerate() {
        write!(f, "{}{}", if i > 0 { between } else { "" }, NestedComponent(part))?;
    }
    Ok(())
}

/// A component inside another one.
struct NestedComponent<'a>(&'a QueryComponent);

impl fmt::Display for NestedComponent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            QueryComponent::And(parts) | QueryComponent::Or(parts) if !parts.is_empty() => {
                write!(f, "({})", self.0)
            }
            inner => fmt::Display::fmt(inner, f),
        }
    }
}
