//! Whether a query fits the meta-data, found out before it is planned.

use super::{
    comparison::Comparison,
    component::{Operand, QueryComponent},
    error::QueryError,
    record_query::RecordQuery,
};
use crate::{
    expression::{FanType, Field, KeyExpression, is_nullable_wrapper, is_scalar},
    metadata::{RecordMetaData, RecordType},
    value::{Shown, Value},
};
use foundationdb_tuple::Element;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use shaketable_tx::nesting::MAX_DEPTH;
use std::sync::Arc;

/// A query that fits the meta-data.
pub(super) struct Valid<'a> {
    /// The queried record types.
    pub types: Vec<&'a Arc<RecordType>>,
    /// The condition; record types are compared by their keys.
    pub filter: Option<QueryComponent>,
}

/// Checks a query, for each of its record types.
pub(super) fn validate<'a>(
    query: &RecordQuery,
    meta_data: &'a RecordMetaData,
) -> Result<Valid<'a>, QueryError> {
    if query.filter.as_ref().is_some_and(|filter| filter.is_deeper_than(MAX_DEPTH)) {
        return Err(QueryError::Depth { limit: MAX_DEPTH });
    }
    let named = |name: &String| {
        meta_data.record_type(name).ok_or_else(|| QueryError::UnknownRecordType(name.clone()))
    };
    let mut types = match query.record_types.is_empty() {
        true => meta_data.record_types().collect(),
        false => query.record_types.iter().map(named).collect::<Result<Vec<_>, _>>()?,
    };
    types.sort_by(|left, right| left.name.cmp(&right.name));
    types.dedup_by(|left, right| left.name == right.name);
    for record_type in &types {
        let place = Place { record_type, meta_data, path: Vec::new() };
        if let Some(filter) = &query.filter {
            place.check(filter, &record_type.message)?;
        }
        let expressions = query.sort.iter().chain(query.required_results.iter().flatten());
        expressions
            .into_iter()
            .try_for_each(|expression| place.expression(expression, &record_type.message))?;
    }
    let filter = query.filter.as_ref().map(|filter| by_type_key(filter, meta_data)).transpose()?;
    Ok(Valid { types, filter })
}

/// The condition with the keys of record types for their names.
fn by_type_key(component: &QueryComponent, meta_data: &RecordMetaData) -> Result<QueryComponent, QueryError> {
    let each = |parts: &Vec<QueryComponent>| {
        parts.iter().map(|part| by_type_key(part, meta_data)).collect::<Result<Vec<_>, _>>()
    };
    Ok(match component {
        QueryComponent::And(parts) => QueryComponent::And(each(parts)?),
        QueryComponent::Or(parts) => QueryComponent::Or(each(parts)?),
        QueryComponent::Not(inner) => QueryComponent::Not(Box::new(by_type_key(inner, meta_data)?)),
        QueryComponent::Compare { operand: Operand::RecordType, comparison } => {
            let key = |value: &Value| match value {
                Element::String(name) => match meta_data.record_type(name) {
                    Some(found) => Ok(found.key.clone()),
                    None => Err(QueryError::UnknownRecordType(name.clone().into_owned())),
                },
                _ => Ok(Element::Nil),
            };
            let comparison = match comparison {
                Comparison::Equals(name) => Comparison::Equals(key(name)?),
                Comparison::NotEquals(name) => Comparison::NotEquals(key(name)?),
                Comparison::In(names) => Comparison::In(names.iter().map(key).collect::<Result<_, _>>()?),
                other => other.clone(),
            };
            QueryComponent::Compare { operand: Operand::RecordType, comparison }
        }
        other => other.clone(),
    })
}

/// Where in the records of a type a component is.
struct Place<'a> {
    record_type: &'a RecordType,
    meta_data: &'a RecordMetaData,
    path: Vec<&'a str>,
}

impl Place<'_> {
    fn check(&self, component: &QueryComponent, message: &MessageDescriptor) -> Result<(), QueryError> {
        match component {
            QueryComponent::And(parts) | QueryComponent::Or(parts) => {
                parts.iter().try_for_each(|part| self.check(part, message))
            }
            QueryComponent::Not(inner) => self.check(inner, message),
            QueryComponent::Compare { operand, comparison } => self.compare(operand, comparison, message),
            QueryComponent::Matches { field, component } => self.matches(field, false, component, message),
            QueryComponent::OneMatches { field, component, .. } => {
                self.matches(field, true, component, message)
            }
        }
    }

    fn matches(
        &self,
        name: &str,
        repeated: bool,
        component: &QueryComponent,
        message: &MessageDescriptor,
    ) -> Result<(), QueryError> {
        let field = self.field(name, repeated, message)?;
        match field.kind() {
            Kind::Message(inner) if !field.is_map() && !is_nullable_wrapper(&inner) => {
                let path = self.path.iter().copied().chain([name]).collect();
                Place { record_type: self.record_type, meta_data: self.meta_data, path }
                    .check(component, &inner)
            }
            _ => Err(QueryError::NotMessage { path: self.path_of(name) }),
        }
    }

    fn compare(
        &self,
        operand: &Operand,
        comparison: &Comparison,
        message: &MessageDescriptor,
    ) -> Result<(), QueryError> {
        let outside = || match self.path.is_empty() {
            true => Ok(()),
            false => Err(QueryError::Nested { operand: operand.to_string(), path: self.path.join(".") }),
        };
        match operand {
            Operand::Field(field) => self.scalar(field, false, comparison, message),
            Operand::OneOf { field, .. } => self.scalar(field, true, comparison, message),
            Operand::Rank(expression) => {
                outside()?;
                self.expression(expression, message)?;
                fits(operand, ColumnType::Int, comparison)
            }
            Operand::Version => {
                outside()?;
                fits(operand, ColumnType::Version, comparison)?;
                let incomplete =
                    |value: &Value| matches!(value, Element::Versionstamp(v) if !v.is_complete());
                match comparison.comparands().iter().any(incomplete) {
                    true => Err(QueryError::IncompleteVersion),
                    false => Ok(()),
                }
            }
            Operand::RecordType => {
                outside()?;
                fits(operand, ColumnType::TypeName, comparison)
            }
            Operand::Key(expression) => {
                self.expression(expression, message)?;
                let columns = expression.columns();
                if columns != 1 {
                    return Err(QueryError::Columns { expression: expression.to_string(), columns });
                }
                match ColumnType::of(expression, message) {
                    Some(kind) => fits(operand, kind, comparison),
                    None => Ok(()),
                }
            }
        }
    }

    fn scalar(
        &self,
        field: &Field,
        repeated: bool,
        comparison: &Comparison,
        message: &MessageDescriptor,
    ) -> Result<(), QueryError> {
        let path = self.path_of(&field.name);
        let found = self.field(&field.name, repeated, message)?;
        match ColumnType::of_field(&found) {
            Some(kind) => fits_path(path, kind, comparison),
            None => Err(QueryError::NotScalar { path }),
        }
    }

    fn field(
        &self,
        name: &str,
        repeated: bool,
        message: &MessageDescriptor,
    ) -> Result<FieldDescriptor, QueryError> {
        let path = || self.path_of(name);
        let found = message.get_field_by_name(name).ok_or_else(|| QueryError::NoField {
            record_type: self.record_type.name.clone(),
            path: path(),
        })?;
        match (found.is_list(), repeated) {
            (true, false) => Err(QueryError::Repeated { path: path() }),
            (false, true) => Err(QueryError::NotRepeated { path: path() }),
            _ => Ok(found),
        }
    }

    fn expression(&self, expression: &KeyExpression, message: &MessageDescriptor) -> Result<(), QueryError> {
        let record_type = || self.record_type.name.clone();
        expression
            .validate(message, self.meta_data.functions())
            .map_err(|reason| QueryError::Expression { record_type: record_type(), reason })
    }

    fn path_of(&self, name: &str) -> String {
        self.path.iter().copied().chain([name]).collect::<Vec<_>>().join(".")
    }
}

/// The type of the values in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnType {
    Bool,
    Int,
    Float,
    Double,
    String,
    Bytes,
    Uuid,
    Version,
    List,
    TypeName,
}

impl ColumnType {
    fn of_field(field: &FieldDescriptor) -> Option<ColumnType> {
        Some(match field.kind() {
            _ if !is_scalar(field) => return None,
            Kind::Bool => ColumnType::Bool,
            Kind::Float => ColumnType::Float,
            Kind::Double => ColumnType::Double,
            Kind::String => ColumnType::String,
            Kind::Bytes => ColumnType::Bytes,
            Kind::Message(wrapper) if wrapper.name() == "UUID" => ColumnType::Uuid,
            Kind::Message(wrapper) => return ColumnType::of_field(&wrapper.get_field_by_name("value")?),
            _ => ColumnType::Int,
        })
    }

    /// Of an expression of one column; `None` if it is not known before it is evaluated.
    fn of(expression: &KeyExpression, message: &MessageDescriptor) -> Option<ColumnType> {
        match expression {
            KeyExpression::Field(field) => match field.fan {
                FanType::None | FanType::FanOut => {
                    ColumnType::of_field(&message.get_field_by_name(&field.name)?)
                }
                FanType::Concatenate | FanType::ConcatenateOrEmpty => Some(ColumnType::List),
            },
            KeyExpression::Nest { parent, child } => match message.get_field_by_name(&parent.name)?.kind() {
                Kind::Message(inner) => ColumnType::of(child, &inner),
                _ => None,
            },
            KeyExpression::Version => Some(ColumnType::Version),
            KeyExpression::Group { whole, .. } => ColumnType::of(whole, message),
            _ => None,
        }
    }

    fn has(self, value: &Value) -> bool {
        matches!(
            (self, value),
            (_, Element::Nil)
                | (ColumnType::Bool, Element::Bool(_))
                | (ColumnType::Int, Element::Int(_))
                | (ColumnType::Float, Element::Float(_))
                | (ColumnType::Double, Element::Double(_))
                | (ColumnType::String | ColumnType::TypeName, Element::String(_))
                | (ColumnType::Bytes, Element::Bytes(_))
                | (ColumnType::Uuid, Element::Uuid(_))
                | (ColumnType::Version, Element::Versionstamp(_))
                | (ColumnType::List, Element::Tuple(_))
        )
    }

    fn name(self) -> &'static str {
        match self {
            ColumnType::Bool => "a Boolean",
            ColumnType::Int => "an integer",
            ColumnType::Float => "a 32-bit floating-point number",
            ColumnType::Double => "a 64-bit floating-point number",
            ColumnType::String => "a string",
            ColumnType::Bytes => "bytes",
            ColumnType::Uuid => "a UUID",
            ColumnType::Version => "a version",
            ColumnType::List => "a list",
            ColumnType::TypeName => "the name of a record type",
        }
    }
}

fn fits(operand: &Operand, kind: ColumnType, comparison: &Comparison) -> Result<(), QueryError> {
    fits_path(operand.to_string(), kind, comparison)
}

/// Refuses a value of another type, and an order of what has none.
fn fits_path(path: String, kind: ColumnType, comparison: &Comparison) -> Result<(), QueryError> {
    if let Some(value) = comparison.comparands().iter().find(|value| !kind.has(value)) {
        return Err(QueryError::Type { path, wanted: kind.name(), found: Shown(value).to_string() });
    }
    let starts = matches!(comparison, Comparison::StartsWith(_));
    if starts && !matches!(kind, ColumnType::String | ColumnType::Bytes) {
        return Err(QueryError::StartsWith { path });
    }
    let ordered = matches!(
        comparison,
        Comparison::Less(_)
            | Comparison::LessOrEqual(_)
            | Comparison::Greater(_)
            | Comparison::GreaterOrEqual(_)
    );
    match ordered && kind == ColumnType::TypeName {
        true => Err(QueryError::Type { path, wanted: kind.name(), found: "an order".into() }),
        false => Ok(()),
    }
}
