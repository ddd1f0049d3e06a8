//! Whether the entries of an index have all that is asked of the records, and records made of entries.

use super::{
    columns::{Column, ColumnKey, columns},
    component::{Operand, QueryComponent},
    matching::Candidate,
};
use crate::{
    expression::{FanType, Field, KeyExpression, field, is_nullable_wrapper},
    value::{Tuple, Value},
    version::RecordVersion,
};
use foundationdb_tuple::Element;
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage, Value as ProtoValue,
};

/// The expression of each column of an entry that is a field that is not repeated, or the version. `None`
/// unless these are all that `required` and the conditions read.
pub(super) fn covering<'a>(
    candidate: &Candidate,
    required: &[KeyExpression],
    conditions: impl IntoIterator<Item = &'a QueryComponent>,
) -> Option<Vec<Option<KeyExpression>>> {
    let primary_key = candidate.primary_key.as_ref()?;
    let has = candidate.key.iter().chain(primary_key).map(value).collect::<Vec<_>>();
    let mut needed: Vec<Column> = required.iter().flat_map(columns).collect();
    for condition in conditions {
        needs(condition, &[], &mut needed)?;
    }
    let found = |column: &Column| {
        let wanted = value(column);
        matches!(column.key, ColumnKey::Value(KeyExpression::RecordType))
            || wanted.is_some() && has.contains(&wanted)
    };
    needed.iter().all(found).then_some(has)
}

/// The column's expression, if it can be set in a record.
fn value(column: &Column) -> Option<KeyExpression> {
    let ColumnKey::Value(expression) = &column.key else { return None };
    (column.fans.is_empty() && is_path(expression)).then(|| expression.clone())
}

fn is_path(expression: &KeyExpression) -> bool {
    match expression {
        KeyExpression::Field(field) => field.fan == FanType::None,
        KeyExpression::Nest { parent, child } => parent.fan == FanType::None && is_path(child),
        KeyExpression::Version => true,
        _ => false,
    }
}

/// Adds the columns that a condition reads; `None` if it reads more than fields that are not repeated.
fn needs(condition: &QueryComponent, parents: &[Field], needed: &mut Vec<Column>) -> Option<()> {
    match condition {
        QueryComponent::And(parts) | QueryComponent::Or(parts) => {
            parts.iter().try_for_each(|part| needs(part, parents, needed))
        }
        QueryComponent::Not(inner) => needs(inner, parents, needed),
        QueryComponent::Matches { field: name, component } => {
            needs(component, &[parents, &[field(name)]].concat(), needed)
        }
        QueryComponent::Compare { operand, .. } => {
            let one: KeyExpression = match operand {
                Operand::Field(field) => field.clone().into(),
                Operand::Version => KeyExpression::Version,
                Operand::RecordType => KeyExpression::RecordType,
                Operand::Key(expression) => expression.clone(),
                Operand::OneOf { .. } | Operand::Rank(_) => return None,
            };
            let nested = parents.iter().rev().fold(one, |inner, parent| parent.clone().nest(inner));
            needed.extend(columns(&nested));
            Some(())
        }
        QueryComponent::OneMatches { .. } => None,
    }
}

/// The record with the fields that an entry has, and its version; `None` if a value is not of its field's
/// type.
pub(super) fn partial(
    message: &MessageDescriptor,
    columns: &[Option<KeyExpression>],
    values: &Tuple,
) -> Option<(DynamicMessage, Option<RecordVersion>)> {
    let mut record = DynamicMessage::new(message.clone());
    let mut version = None;
    for (column, value) in columns.iter().zip(values.elements()) {
        match (column, value) {
            (None, _) | (_, Element::Nil) => {}
            (Some(KeyExpression::Version), Element::Versionstamp(stamp)) => {
                version = Some(stamp.clone().into())
            }
            (Some(expression), value) => set(&mut record, expression, value)?,
        }
    }
    Some((record, version))
}

fn set(message: &mut DynamicMessage, expression: &KeyExpression, value: &Value) -> Option<()> {
    match expression {
        KeyExpression::Field(one) => {
            let field = message.descriptor().get_field_by_name(&one.name)?;
            message.set_field(&field, proto_value(&field, value)?);
            Some(())
        }
        KeyExpression::Nest { parent, child } => {
            let field = message.descriptor().get_field_by_name(&parent.name)?;
            set(message.get_field_mut(&field).as_message_mut()?, child, value)
        }
        _ => None,
    }
}

/// The value of a field whose element in a key is this one.
fn proto_value(field: &FieldDescriptor, value: &Value) -> Option<ProtoValue> {
    Some(match (field.kind(), value) {
        (Kind::Bool, Element::Bool(value)) => ProtoValue::Bool(*value),
        (Kind::Int64 | Kind::Sint64 | Kind::Sfixed64, Element::Int(value)) => ProtoValue::I64(*value),
        (Kind::Int32 | Kind::Sint32 | Kind::Sfixed32, Element::Int(value)) => {
            ProtoValue::I32(i32::try_from(*value).ok()?)
        }
        (Kind::Enum(_), Element::Int(value)) => ProtoValue::EnumNumber(i32::try_from(*value).ok()?),
        (Kind::Float, Element::Float(value)) => ProtoValue::F32(*value),
        (Kind::Double, Element::Double(value)) => ProtoValue::F64(*value),
        (Kind::String, Element::String(value)) => ProtoValue::String(value.clone().into_owned()),
        (Kind::Bytes, Element::Bytes(value)) => ProtoValue::Bytes(value.to_vec().into()),
        (Kind::Message(wrapper), Element::Uuid(id)) if is_nullable_wrapper(&wrapper) => {
            let mut message = DynamicMessage::new(wrapper.clone());
            let (high, low) = id.as_u64_pair();
            for (name, half) in [("most_significant_bits", high), ("least_significant_bits", low)] {
                message.set_field(&wrapper.get_field_by_name(name)?, ProtoValue::I64(half.cast_signed()));
            }
            ProtoValue::Message(message)
        }
        (Kind::Message(wrapper), value) if is_nullable_wrapper(&wrapper) => {
            let inner = wrapper.get_field_by_name("value")?;
            let value = proto_value(&inner, value)?;
            let mut message = DynamicMessage::new(wrapper);
            message.set_field(&inner, value);
            ProtoValue::Message(message)
        }
        _ => return None,
    })
}
