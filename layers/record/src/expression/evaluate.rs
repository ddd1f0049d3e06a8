//! Evaluating expressions on records.

use super::{FanType, Field, Functions, KeyExpression, NullStandin, scalar::scalar};
use crate::{
    value::{IntoValue, Shown, Tuple, Value},
    version::RecordVersion,
};
use foundationdb_tuple::Element;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage, Value as ProtoValue};
use std::{borrow::Cow, collections::BTreeMap, fmt};

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

/// Why an expression cannot be evaluated. Meta-data is validated when it is built, so that only a function, a
/// message of another type, or a record with too many combinations of its lists fails.
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
    /// The record has more keys than one transaction could write.
    #[error("a key expression has {keys} keys in one record; the limit is {limit}")]
    TooManyKeys {
        /// How many, at least.
        keys: usize,
        /// The limit.
        limit: usize,
    },
    /// Too many conditions in one another.
    #[error("the condition is nested deeper than {limit}")]
    Depth {
        /// The limit.
        limit: usize,
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
        self.within(subject, NullStandin::Null)
    }

    /// The keys in a message of the record; `absent` stands for the fields of a message that is absent.
    fn within(&self, subject: Subject<'_>, absent: NullStandin) -> Result<Vec<Evaluated>, EvaluateError> {
        match self {
            KeyExpression::Empty => Ok(vec![Evaluated(Vec::new())]),
            KeyExpression::Field(field) => field.evaluate(subject, absent),
            KeyExpression::Nest { parent, child } => nest(parent, child, subject, absent),
            KeyExpression::Concat(parts) => {
                let mut keys = vec![Evaluated(Vec::new())];
                for part in parts {
                    let right = part.within(subject, absent)?;
                    within_limit(keys.len().saturating_mul(right.len()))?;
                    keys = keys
                        .iter()
                        .flat_map(|left| right.iter().map(|key| Evaluated([&left.0[..], &key.0].concat())))
                        .collect();
                }
                Ok(keys)
            }
            KeyExpression::Group { whole, .. } => whole.within(subject, absent),
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
                for key in arguments.within(subject, absent)? {
                    keys.extend(function.call(name, &key)?);
                }
                Ok(keys)
            }
        }
    }
}

/// The most keys of one record: so many rows of an index are more than a transaction holds. The combinations
/// of several lists would otherwise exhaust the memory.
const KEYS: usize = 250_000;

fn within_limit(keys: usize) -> Result<(), EvaluateError> {
    match keys > KEYS {
        true => Err(EvaluateError::TooManyKeys { keys, limit: KEYS }),
        false => Ok(()),
    }
}

/// One key of one column.
fn one(column: Column) -> Result<Vec<Evaluated>, EvaluateError> {
    Ok(vec![Evaluated(vec![column])])
}

/// A message's field by its name, and its value if it is present. The key and the value of an entry of a map
/// always are.
pub(crate) fn field_of<'a>(
    message: &'a DynamicMessage,
    name: &str,
) -> Result<(FieldDescriptor, Option<Cow<'a, ProtoValue>>), EvaluateError> {
    let descriptor = message.descriptor();
    let field = descriptor.get_field_by_name(name).ok_or_else(|| wrong(message, name))?;
    let present = descriptor.is_map_entry() || message.has_field(&field);
    let value = present.then(|| message.get_field(&field));
    Ok((field, value))
}

fn wrong(message: &DynamicMessage, field: &str) -> EvaluateError {
    EvaluateError::Field { message: message.descriptor().full_name().into(), field: field.into() }
}

impl Field {
    fn evaluate(&self, subject: Subject<'_>, absent: NullStandin) -> Result<Vec<Evaluated>, EvaluateError> {
        let Some(message) = subject.message else { return self.absent(absent) };
        let (field, value) = field_of(message, &self.name)?;
        let element = |value: &ProtoValue| scalar(value).ok_or_else(|| wrong(message, &self.name));
        match (self.fan, value.as_deref()) {
            (FanType::None, Some(value)) => one(Column::Value(element(value)?)),
            (FanType::None, None) if self.null == NullStandin::NotNull => {
                one(Column::Value(element(&message.get_field(&field))?))
            }
            (FanType::None, None) => one(Column::Null(self.null)),
            (_, None) => self.list(Vec::new()),
            (_, Some(ProtoValue::List(values))) => {
                self.list(values.iter().map(element).collect::<Result<_, _>>()?)
            }
            (_, Some(_)) => Err(wrong(message, &self.name)),
        }
    }

    /// The keys of a repeated field with these values.
    fn list(&self, values: Vec<Value>) -> Result<Vec<Evaluated>, EvaluateError> {
        match self.fan {
            FanType::FanOut => {
                Ok(values.into_iter().map(|value| Evaluated(vec![Column::Value(value)])).collect())
            }
            FanType::Concatenate if values.is_empty() && self.null != NullStandin::NotNull => {
                one(Column::Null(self.null))
            }
            _ => one(Column::Value(Element::Tuple(values))),
        }
    }

    /// The keys if the message that the field is in is absent. A field that cannot be null by itself, because
    /// its message tells whether it is present, is null as the message is.
    fn absent(&self, message: NullStandin) -> Result<Vec<Evaluated>, EvaluateError> {
        match (self.fan, self.null) {
            (FanType::FanOut, _) => Ok(Vec::new()),
            (_, NullStandin::NotNull) => one(Column::Null(message)),
            (_, null) => one(Column::Null(null)),
        }
    }
}

fn nest(
    parent: &Field,
    child: &KeyExpression,
    subject: Subject<'_>,
    absent: NullStandin,
) -> Result<Vec<Evaluated>, EvaluateError> {
    let without = |absent| match parent.fan {
        FanType::FanOut => Ok(Vec::new()),
        _ => child.within(Subject { message: None, ..subject }, absent),
    };
    let Some(message) = subject.message else { return without(absent) };
    let (field, value) = field_of(message, &parent.name)?;
    let mut keys = Vec::new();
    match (parent.fan, value.as_deref()) {
        (FanType::None | FanType::FanOut, None) => return without(parent.null),
        (FanType::None, Some(ProtoValue::Message(inner))) => return in_message(child, inner, subject),
        (FanType::FanOut, Some(ProtoValue::List(values))) => {
            for value in values {
                let inner = value.as_message().ok_or_else(|| wrong(message, &parent.name))?;
                keys.extend(in_message(child, inner, subject)?);
            }
        }
        (FanType::FanOut, Some(ProtoValue::Map(entries))) => {
            for entry in map_entries(&field, entries) {
                keys.extend(in_message(child, &entry, subject)?);
            }
        }
        _ => return Err(wrong(message, &parent.name)),
    }
    Ok(keys)
}

fn in_message(
    child: &KeyExpression,
    message: &DynamicMessage,
    subject: Subject<'_>,
) -> Result<Vec<Evaluated>, EvaluateError> {
    child.evaluate(Subject { message: Some(message), ..subject })
}

/// The entries of a map as messages, ordered by their keys: a map is unordered.
pub(crate) fn map_entries<'a>(
    field: &FieldDescriptor,
    entries: impl IntoIterator<Item = (&'a MapKey, &'a ProtoValue)>,
) -> Vec<DynamicMessage> {
    let Kind::Message(entry) = field.kind() else { return Vec::new() };
    let entries: BTreeMap<&MapKey, &ProtoValue> = entries.into_iter().collect();
    let message = |(key, value): (&MapKey, &ProtoValue)| {
        let mut message = DynamicMessage::new(entry.clone());
        message.set_field(&entry.map_entry_key_field(), key.clone().into());
        message.set_field(&entry.map_entry_value_field(), value.clone());
        message
    };
    entries.into_iter().map(message).collect()
}
