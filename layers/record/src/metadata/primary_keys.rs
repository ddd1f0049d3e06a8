//! Whether the records of several types can be stored together.
//!
//! The key of each row of a record is its primary key, followed by a number. A record whose primary key
//! begins with that of another would be among the other's rows, or next to them in an order that is not that
//! of the primary keys. That cannot happen between primary keys of the same number of columns, and if one of
//! the columns is never the same, such as the record type's key.

use super::{MetaDataError, RecordMetaData, RecordType};
use crate::{
    expression::{FanType, KeyExpression, NullStandin, resolve},
    value::{Tuple, Value},
};
use foundationdb_tuple::Element;
use prost_reflect::{Cardinality, FieldDescriptor};

/// Refuses types whose records could be stored among each other's rows.
pub(super) fn validate(meta_data: &RecordMetaData) -> Result<(), MetaDataError> {
    for shorter in meta_data.types.values() {
        for longer in meta_data.types.values() {
            if may_begin_with(shorter, longer) {
                let (shorter, longer) = (shorter.name.clone(), longer.name.clone());
                return Err(MetaDataError::PrimaryKeys { shorter, longer });
            }
        }
    }
    Ok(())
}

/// Whether the primary key of a record may be that of a record of another type, followed by something else.
fn may_begin_with(shorter: &RecordType, longer: &RecordType) -> bool {
    let (first, second) = (shorter.primary_key.column_expressions(), longer.primary_key.column_expressions());
    let differ = first.iter().zip(&second).any(|(a, b)| never_same((a, shorter), (b, longer)));
    first.len() < second.len() && !differ
}

impl RecordMetaData {
    /// How many of a tuple's columns may be the whole primary key of a record, if there are more columns: the
    /// tuple is then in no primary key.
    pub(crate) fn beyond_primary_key(&self, tuple: &Tuple) -> Option<usize> {
        self.types.values().find_map(|of| {
            let columns = of.primary_key.columns();
            (columns < tuple.len() && may_begin(of, tuple)).then_some(columns)
        })
    }

    /// Whether a record may have this primary key.
    pub(crate) fn may_be_primary_key(&self, tuple: &Tuple) -> bool {
        self.types.values().any(|of| of.primary_key.columns() == tuple.len() && may_begin(of, tuple))
    }
}

/// Whether the first columns of a tuple may be the primary key of a record of this type.
fn may_begin(of: &RecordType, tuple: &Tuple) -> bool {
    let columns = of.primary_key.column_expressions();
    columns.iter().zip(tuple.elements()).all(|(column, value)| match constant(column, of) {
        Some(constant) => Tuple::from(constant.clone()) == Tuple::from(value.clone()),
        None if matches!(value, Element::Nil) => !is_never_null(column, of),
        None => kind(column, of).is_none_or(|kind| kind == kind_of(value)),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    Text,
    Other,
}

fn kind_of(value: &Value) -> Kind {
    match value {
        Element::Int(_) | Element::BigInt(_) => Kind::Integer,
        Element::String(_) => Kind::Text,
        _ => Kind::Other,
    }
}

/// The value of a column that has the same value in all records of the type.
fn constant<'a>(column: &'a KeyExpression, of: &'a RecordType) -> Option<&'a Value> {
    match column {
        KeyExpression::RecordType => Some(&of.key),
        KeyExpression::Literal(value) => Some(value),
        _ => None,
    }
}

/// Whether two columns have different values in all records.
fn never_same((a, of_a): (&KeyExpression, &RecordType), (b, of_b): (&KeyExpression, &RecordType)) -> bool {
    match (constant(a, of_a), constant(b, of_b)) {
        (Some(a), Some(b)) => Tuple::from(a.clone()) != Tuple::from(b.clone()),
        (Some(Element::Nil), _) | (_, Some(Element::Nil)) => false,
        (Some(a), None) => kind(b, of_b).is_some_and(|kind| kind != kind_of(a)),
        (None, Some(b)) => kind(a, of_a).is_some_and(|kind| kind != kind_of(b)),
        (None, None) => {
            let kinds = kind(a, of_a).zip(kind(b, of_b));
            kinds.is_some_and(|(a, b)| a != b) && (is_never_null(a, of_a) || is_never_null(b, of_b))
        }
    }
}

/// The kind of a column's values, if it is known.
fn kind(column: &KeyExpression, of: &RecordType) -> Option<Kind> {
    use prost_reflect::Kind as Field;
    let (field, fan) = resolve(column, &of.message)?;
    Some(match field.kind() {
        _ if fan != FanType::None => Kind::Other,
        Field::String => Kind::Text,
        Field::Bytes | Field::Bool | Field::Float | Field::Double => Kind::Other,
        Field::Message(wrapper) => match wrapper.name() {
            "NullableInt32" | "NullableInt64" => Kind::Integer,
            "NullableString" => Kind::Text,
            _ => Kind::Other,
        },
        _ => Kind::Integer,
    })
}

/// Whether the column has a value in all records: saves refuse messages without their required fields.
fn is_never_null(column: &KeyExpression, of: &RecordType) -> bool {
    let KeyExpression::Field(field) = column else { return false };
    let is_required = |found: FieldDescriptor| found.cardinality() == Cardinality::Required;
    field.fan == FanType::None
        && (field.null == NullStandin::NotNull
            || of.message.get_field_by_name(&field.name).is_some_and(is_required))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        expression::{concat, field, literal},
        metadata::compile,
    };

    /// The meta-data of a type with primary key `short`, and one with the other as primary key.
    fn build(longer: KeyExpression, shorter: KeyExpression) -> Result<RecordMetaData, MetaDataError> {
        let file = compile(
            r#"
            syntax = "proto2";
            message Short { optional int64 id = 1; required bytes other = 2; }
            message Long { optional int64 id = 1; optional string name = 2; optional int32 number = 3; }
            message RecordTypeUnion { optional Short _Short = 1; optional Long _Long = 2; }
            "#,
        );
        let mut builder = RecordMetaData::builder();
        builder.set_records(&file?)?;
        builder.record_type("Short")?.set_primary_key(shorter);
        builder.record_type("Long")?.set_primary_key(longer);
        builder.build()
    }

    #[test]
    fn primary_keys_are_compatible_unless_one_could_begin_with_the_other() {
        let id = || KeyExpression::from(field("id"));
        let refused = build(concat(["id", "name"]), id()).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the primary keys of Short and Long are not compatible: that of a Long may be that of a Short with further \
             columns; give them the same number of columns, or begin both with the record type's key"
        );
        assert!(build(concat([id(), KeyExpression::RecordType]), id()).is_err());
        assert!(build(id(), id()).is_ok());
        // Both may be null, unless one of them is required.
        assert!(build(concat(["name", "number"]), id()).is_err());
        assert!(build(concat(["name", "number"]), field("other").into()).is_ok());
        assert!(build(concat([field("name").not_null(), field("number")]), id()).is_ok());
        let typed = |columns: &[&str]| {
            let columns = columns.iter().map(|name| KeyExpression::from(*name));
            concat([KeyExpression::RecordType].into_iter().chain(columns))
        };
        assert!(build(typed(&["id", "number"]), typed(&["id"])).is_ok());
        // The key of the type Long is 2, which may be the id of a Short.
        assert!(build(typed(&["id"]), id()).is_err());
        let named = |columns: &[&str]| {
            let columns = columns.iter().map(|name| KeyExpression::from(*name));
            concat([literal("long")].into_iter().chain(columns))
        };
        assert!(build(named(&["id"]), id()).is_ok());
    }
}
