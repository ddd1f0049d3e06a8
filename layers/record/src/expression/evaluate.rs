//! Evaluating expressions on records.

use super::{FanType, Field, Functions, KeyExpression, NullStandin, scalar::scalar};
use crate::{
    value::{IntoValue, Shown, Tuple, Value},
    version::RecordVersion,
};
use foundationdb_tuple::Element;
use prost_reflect::{DynamicMessage, FieldDescriptor, ReflectMessage, Value as ProtoValue};
use std::{borrow::Cow, fmt};

/// What an expression is evaluated on.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The record, or a message in it; absent below a field that is absent.
    pub message: Option<&'a DynamicMessage>,
    /// The key of the record's type.
    pub record_type: &'a Value,
    /// The record's version, if it has one.
    pub version: Option<&'a RecordVersion>,
    /// The functions that the expression may call.
    pub functions: &'a Functions,
}

/// One column of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// A value.
    Value(Value),
    /// Nothing, and how a unique index treats that.
    Null(NullStandin),
}

/// One key: what an expression gives for a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated(Vec<Column>);

/// Why an expression cannot be evaluated. Meta-data is validated when it is built, so that only a function, or a message
/// of another type, fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    /// The message has no field of this name, or it has another type than the expression needs.
    #[error("{message} has no field {field} of the type that the key expression needs")]
    Field {
        /// The message's full name.
        message: String,
        /// The field.
        field: String,
    },
    /// No function is registered under this name.
    #[error("no function {0} is registered")]
    NoFunction(String),
    /// A function failed.
    #[error("function {name}: {reason}")]
    Function {
        /// Its name.
        name: String,
        /// Why it failed.
        reason: String,
    },
}

impl Evaluated {
    /// A key with these columns.
    pub fn new(columns: Vec<Column>) -> Evaluated {
        Evaluated(columns)
    }

    /// Its columns.
    pub fn columns(&self) -> &[Column] {
        &self.0
    }

    /// As a tuple, with null for what is absent.
    pub fn tuple(&self) -> Tuple {
        self.0.iter().map(Column::value).collect()
    }

    /// Whether a column is a null that a unique index allows more than once.
    pub fn has_non_unique_null(&self) -> bool {
        self.0.contains(&Column::Null(NullStandin::Null))
    }

    /// The first `length` columns, and the others.
    pub fn split_at(&self, length: usize) -> (Evaluated, Evaluated) {
        let (first, rest) = self.0.split_at(length.min(self.0.len()));
        (Evaluated(first.to_vec()), Evaluated(rest.to_vec()))
    }
}

impl fmt::Display for Evaluated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.tuple(), f)
    }
}

impl Column {
    /// The value, null if there is none.
    pub fn value(&self) -> Value {
        match self {
            Column::Value(value) => value.clone(),
            Column::Null(_) => Element::Nil,
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Shown(&self.value()), f)
    }
}

impl KeyExpression {
    /// The keys of a record, in order.
    pub fn evaluate(&self, subject: Subject<'_>) -> Result<Vec<Evaluated>, EvaluateError> {
        let one = |part| Ok(vec![Evaluated(vec![part])]);
        match self {
            KeyExpression::Empty => Ok(vec![Evaluated(Vec::new())]),
            KeyExpression::Field(field) => field.evaluate(subject),
            KeyExpression::Nest { parent, child } => nest(parent, child, subject),
            KeyExpression::Concat(parts) => {
                let mut keys = vec![Evaluated(Vec::new())];
                for part in parts {
                    let right = part.evaluate(subject)?;
                    keys = keys
                        .iter()
                        .flat_map(|left| right.iter().map(|key| Evaluated([&left.0[..], &key.0].concat())))
                        .collect();
                }
                Ok(keys)
            }
            KeyExpression::Group { whole, .. } => whole.evaluate(subject),
            KeyExpression::Version => one(match subject.version {
                Some(version) => Column::Value(version.clone().into_value()),
                None => Column::Null(NullStandin::Null),
            }),
            KeyExpression::RecordType => one(Column::Value(subject.record_type.clone())),
            KeyExpression::Literal(Element::Nil) => one(Column::Null(NullStandin::Null)),
            KeyExpression::Literal(value) => one(Column::Value(value.clone())),
            KeyExpression::Function { name, arguments } => {
                let function =
                    subject.functions.get(name).ok_or_else(|| EvaluateError::NoFunction(name.clone()))?;
                let mut keys = Vec::new();
                for key in arguments.evaluate(subject)? {
                    keys.extend(function.call(name, &key)?);
                }
                Ok(keys)
            }
        }
    }
}

/// A message's field by its name.
pub(crate) fn field_of<'a>(
    message: &'a DynamicMessage,
    name: &str,
) -> Result<(FieldDescriptor, Option<Cow<'a, ProtoValue>>), EvaluateError> {
    let field = message.descriptor().get_field_by_name(name).ok_or_else(|| wrong(message, name))?;
    let value = message.has_field(&field).then(|| message.get_field(&field));
    Ok((field, value))
}

fn wrong(message: &DynamicMessage, field: &str) -> EvaluateError {
    EvaluateError::Field { message: message.descriptor().full_name().into(), field: field.into() }
}

impl Field {
    fn evaluate(&self, subject: Subject<'_>) -> Result<Vec<Evaluated>, EvaluateError> {
        let one = |part| Ok(vec![Evaluated(vec![part])]);
        let null = Column::Null(self.null);
        let Some(message) = subject.message else {
            return match self.fan {
                FanType::FanOut => Ok(Vec::new()),
                _ => one(null),
            };
        };
        let (field, value) = field_of(message, &self.name)?;
        let element = |value: &ProtoValue| scalar(value).ok_or_else(|| wrong(message, &self.name));
        match self.fan {
            FanType::None => match value {
                Some(value) => one(Column::Value(element(&value)?)),
                // A message that wraps a scalar is absent like a message, whatever its scalar is.
                None if self.null == NullStandin::NotNull => {
                    one(Column::Value(element(&message.get_field(&field))?))
                }
                None => one(null),
            },
            fan => {
                let values = match value.as_deref() {
                    None => Vec::new(),
                    Some(ProtoValue::List(values)) => {
                        values.iter().map(element).collect::<Result<Vec<_>, _>>()?
                    }
                    Some(_) => return Err(wrong(message, &self.name)),
                };
                match fan {
                    FanType::FanOut => {
                        Ok(values.into_iter().map(|value| Evaluated(vec![Column::Value(value)])).collect())
                    }
                    FanType::Concatenate if values.is_empty() => one(null),
                    _ => one(Column::Value(Element::Tuple(values))),
                }
            }
        }
    }
}

fn nest(
    parent: &Field,
    child: &KeyExpression,
    subject: Subject<'_>,
) -> Result<Vec<Evaluated>, EvaluateError> {
    let within = |message| child.evaluate(Subject { message, ..subject });
    let Some(message) = subject.message else {
        return match parent.fan {
            FanType::FanOut => Ok(Vec::new()),
            _ => within(None),
        };
    };
    let (_, value) = field_of(message, &parent.name)?;
    match (parent.fan, value.as_deref()) {
        (FanType::None, None) => within(None),
        (FanType::None, Some(ProtoValue::Message(inner))) => within(Some(inner)),
        (FanType::FanOut, None) => Ok(Vec::new()),
        (FanType::FanOut, Some(ProtoValue::List(inner))) => {
            let mut keys = Vec::new();
            for inner in inner {
                let ProtoValue::Message(inner) = inner else { return Err(wrong(message, &parent.name)) };
                keys.extend(within(Some(inner))?);
            }
            Ok(keys)
        }
        _ => Err(wrong(message, &parent.name)),
    }
}
