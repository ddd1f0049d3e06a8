//! Expressions as bytes: the protobuf messages of `record_key_expression.proto` of Java's Record Layer, with
//! its field numbers.
//!
//! Two things differ. [`FanType::ConcatenateOrEmpty`] has the number 4, which Java does not know:
//! [`FanType::Concatenate`] has Java's number for its `Concatenate`, although the two treat a list without
//! values differently. And of Java's expressions `Split`, `KeyWithValue`, `List` and `Dimensions` are
//! refused.

use super::{ExpressionError, FanType, Field, KeyExpression, NullStandin};
use crate::value::{IntoValue, Value};
use foundationdb_tuple::Element;
use prost::Message;

/// Why bytes are not an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionBytesError {
    /// They are not a message of this type.
    #[error("the bytes of a key expression are torn: {0}")]
    Torn(String),
    /// A part that every expression of its kind has is missing.
    #[error("the bytes of a key expression have no {0}")]
    Missing(&'static str),
    /// A value that this version does not know.
    #[error("the bytes of a key expression have an unknown {what}: {number}")]
    Unknown {
        /// What has the value.
        what: &'static str,
        /// The value.
        number: i32,
    },
    /// An expression that this crate does not have.
    #[error("key expressions of the kind {0} are not supported")]
    Unsupported(&'static str),
}

type Decoded<T> = Result<T, ExpressionBytesError>;

impl KeyExpression {
    /// As bytes. Fails if a literal is of a type that cannot be written, as validating the expression does.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ExpressionError> {
        Ok(Expression::of(self)?.encode_to_vec())
    }

    /// The expression whose [`to_bytes`](KeyExpression::to_bytes) these are.
    pub fn from_bytes(bytes: &[u8]) -> Result<KeyExpression, ExpressionBytesError> {
        let torn = |error: prost::DecodeError| ExpressionBytesError::Torn(error.to_string());
        Expression::decode(bytes).map_err(torn)?.expression()
    }
}

/// An expression.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Expression {
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Kind {
    #[prost(message, tag = "1")]
    Concat(Parts),
    #[prost(message, tag = "2")]
    Nest(Box<Nesting>),
    #[prost(message, tag = "3")]
    Field(FieldOf),
    #[prost(message, tag = "4")]
    Group(Box<Grouping>),
    #[prost(message, tag = "5")]
    Empty(Nothing),
    #[prost(bytes, tag = "6")]
    Split(Vec<u8>),
    #[prost(message, tag = "7")]
    Version(Nothing),
    #[prost(message, tag = "8")]
    Literal(Literal),
    #[prost(message, tag = "9")]
    Function(Box<Call>),
    #[prost(bytes, tag = "10")]
    KeyWithValue(Vec<u8>),
    #[prost(message, tag = "11")]
    RecordType(Nothing),
    #[prost(bytes, tag = "12")]
    List(Vec<u8>),
    #[prost(bytes, tag = "13")]
    Dimensions(Vec<u8>),
}

#[derive(Clone, PartialEq, prost::Message)]
struct Nothing {}

#[derive(Clone, PartialEq, prost::Message)]
struct Parts {
    #[prost(message, repeated, tag = "1")]
    parts: Vec<Expression>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct FieldOf {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(int32, optional, tag = "2")]
    fan: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    null: Option<i32>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Nesting {
    #[prost(message, optional, tag = "1")]
    parent: Option<FieldOf>,
    #[prost(message, optional, boxed, tag = "2")]
    child: Option<Box<Expression>>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Grouping {
    #[prost(message, optional, boxed, tag = "1")]
    whole: Option<Box<Expression>>,
    #[prost(int32, optional, tag = "3")]
    grouped: Option<i32>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Call {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(message, optional, boxed, tag = "2")]
    arguments: Option<Box<Expression>>,
}

/// A constant; null if no field is set.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Literal {
    #[prost(double, optional, tag = "1")]
    double: Option<f64>,
    #[prost(float, optional, tag = "2")]
    float: Option<f32>,
    #[prost(int64, optional, tag = "3")]
    long: Option<i64>,
    #[prost(bool, optional, tag = "4")]
    bool: Option<bool>,
    #[prost(string, optional, tag = "5")]
    string: Option<String>,
    #[prost(bytes, optional, tag = "6")]
    bytes: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "7")]
    int: Option<i32>,
}

impl Literal {
    /// Of a value; `None` if its type cannot be written.
    pub fn of(value: &Value) -> Option<Literal> {
        let mut literal = Literal::default();
        match value {
            Element::Nil => {}
            Element::Double(value) => literal.double = Some(*value),
            Element::Float(value) => literal.float = Some(*value),
            Element::Int(value) => literal.long = Some(*value),
            Element::Bool(value) => literal.bool = Some(*value),
            Element::String(value) => literal.string = Some(value.to_string()),
            Element::Bytes(value) => literal.bytes = Some(value.to_vec()),
            _ => return None,
        }
        Some(literal)
    }

    /// The value; null if no field is set.
    pub fn value(self) -> Value {
        let long = self.long.or(self.int.map(i64::from)).map(IntoValue::into_value);
        long.or(self.double.map(IntoValue::into_value))
            .or(self.float.map(IntoValue::into_value))
            .or(self.bool.map(IntoValue::into_value))
            .or(self.string.map(IntoValue::into_value))
            .or(self.bytes.map(IntoValue::into_value))
            .unwrap_or(Element::Nil)
    }
}

impl FieldOf {
    fn of(field: &Field) -> FieldOf {
        let fan = match field.fan {
            FanType::None => 1,
            FanType::FanOut => 2,
            FanType::Concatenate => 3,
            FanType::ConcatenateOrEmpty => 4,
        };
        let null = match field.null {
            NullStandin::Null => 1,
            NullStandin::NullUnique => 2,
            NullStandin::NotNull => 3,
        };
        FieldOf { name: Some(field.name.clone()), fan: Some(fan), null: Some(null) }
    }

    fn field(self) -> Decoded<Field> {
        let fan = match self.fan.ok_or(ExpressionBytesError::Missing("fan type"))? {
            1 => FanType::None,
            2 => FanType::FanOut,
            3 => FanType::Concatenate,
            4 => FanType::ConcatenateOrEmpty,
            number => return Err(ExpressionBytesError::Unknown { what: "fan type", number }),
        };
        let null = match self.null.unwrap_or(1) {
            1 => NullStandin::Null,
            2 => NullStandin::NullUnique,
            3 => NullStandin::NotNull,
            number => return Err(ExpressionBytesError::Unknown { what: "null stand-in", number }),
        };
        Ok(Field { name: self.name.ok_or(ExpressionBytesError::Missing("field name"))?, fan, null })
    }
}

impl Expression {
    /// Of an expression. Fails if a literal cannot be written.
    pub fn of(expression: &KeyExpression) -> Result<Expression, ExpressionError> {
        let boxed = |expression: &KeyExpression| Expression::of(expression).map(|it| Some(Box::new(it)));
        let kind = match expression {
            KeyExpression::Empty => Kind::Empty(Nothing {}),
            KeyExpression::Field(field) => Kind::Field(FieldOf::of(field)),
            KeyExpression::Nest { parent, child } => {
                Kind::Nest(Box::new(Nesting { parent: Some(FieldOf::of(parent)), child: boxed(child)? }))
            }
            KeyExpression::Concat(parts) => {
                let parts = parts.iter().map(Expression::of).collect::<Result<_, _>>()?;
                Kind::Concat(Parts { parts })
            }
            KeyExpression::Group { whole, grouped } => {
                let columns = whole.columns();
                let count = i32::try_from(*grouped)
                    .map_err(|_| ExpressionError::Group { grouped: *grouped, columns })?;
                Kind::Group(Box::new(Grouping { whole: boxed(whole)?, grouped: Some(count) }))
            }
            KeyExpression::Version => Kind::Version(Nothing {}),
            KeyExpression::RecordType => Kind::RecordType(Nothing {}),
            KeyExpression::Literal(value) => {
                Kind::Literal(Literal::of(value).ok_or_else(|| ExpressionError::literal(value))?)
            }
            KeyExpression::Function { name, arguments } => {
                Kind::Function(Box::new(Call { name: Some(name.clone()), arguments: boxed(arguments)? }))
            }
        };
        Ok(Expression { kind: Some(kind) })
    }

    /// The expression.
    pub fn expression(self) -> Decoded<KeyExpression> {
        let inner = |expression: Option<Box<Expression>>, what| {
            expression.ok_or(ExpressionBytesError::Missing(what))?.expression().map(Box::new)
        };
        Ok(match self.kind.ok_or(ExpressionBytesError::Missing("kind that is known"))? {
            Kind::Empty(_) => KeyExpression::Empty,
            Kind::Field(field) => KeyExpression::Field(field.field()?),
            Kind::Nest(nesting) => KeyExpression::Nest {
                parent: nesting.parent.ok_or(ExpressionBytesError::Missing("parent field"))?.field()?,
                child: inner(nesting.child, "nested expression")?,
            },
            Kind::Concat(parts) => {
                let parts = parts.parts.into_iter().map(Expression::expression);
                KeyExpression::Concat(parts.collect::<Result<_, _>>()?)
            }
            Kind::Group(grouping) => {
                let number = grouping.grouped.unwrap_or(1);
                let grouped = usize::try_from(number).map_err(|_| ExpressionBytesError::Unknown {
                    what: "number of grouped columns",
                    number,
                })?;
                KeyExpression::Group { whole: inner(grouping.whole, "grouped expression")?, grouped }
            }
            Kind::Version(_) => KeyExpression::Version,
            Kind::RecordType(_) => KeyExpression::RecordType,
            Kind::Literal(value) => KeyExpression::Literal(value.value()),
            Kind::Function(call) => KeyExpression::Function {
                name: call.name.ok_or(ExpressionBytesError::Missing("function name"))?,
                arguments: inner(call.arguments, "arguments")?,
            },
            Kind::Split(_) => return Err(ExpressionBytesError::Unsupported("Split")),
            Kind::KeyWithValue(_) => return Err(ExpressionBytesError::Unsupported("KeyWithValue")),
            Kind::List(_) => return Err(ExpressionBytesError::Unsupported("List")),
            Kind::Dimensions(_) => return Err(ExpressionBytesError::Unsupported("Dimensions")),
        })
    }
}
