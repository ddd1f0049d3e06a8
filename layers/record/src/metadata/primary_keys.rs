//! Whether the records of several types can be stored together.
//!
//! The key of each row of a record is its primary key, followed by an integer. A record whose primary key is that of
//! another, followed by an integer, would be among the other's rows. That cannot happen between primary keys of the same
//! number of columns, if the column that follows is not an integer, and if one of the columns before it is never the same,
//! such as the record type's key.

use super::{MetaDataError, RecordMetaData, RecordType};
use crate::{
    expression::{FanType, KeyExpression, resolve},
    value::{Tuple, Value},
};
use foundationdb_tuple::Element;

/// Refuses types of which one could have records among the rows of the other's.
pub(super) fn validate(meta_data: &RecordMetaData) -> Result<(), MetaDataError> {
    for shorter in meta_data.types.values() {
        for longer in meta_data.types.values() {
            if let Some(column) = column_taken_for_a_row(shorter, longer) {
                return Err(MetaDataError::PrimaryKeys {
                    shorter: shorter.name.clone(),
                    longer: longer.name.clone(),
                    column: column.to_string(),
                });
            }
        }
    }
    Ok(())
}

/// The column of the longer primary key that could be the number of a row of the other one.
fn column_taken_for_a_row(shorter: &RecordType, longer: &RecordType) -> Option<KeyExpression> {
    let first = shorter.primary_key.column_expressions();
    let mut second = longer.primary_key.column_expressions();
    let differ = first.iter().zip(&second).any(|(a, b)| never_same((a, shorter), (b, longer)));
    match first.len() < second.len() && !differ && may_be(Kind::Integer, &second[first.len()], longer) {
        true => Some(second.swap_remove(first.len())),
        false => None,
    }
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

/// Whether two columns have different values in all records. Both may be null if neither is constant.
fn never_same((a, of_a): (&KeyExpression, &RecordType), (b, of_b): (&KeyExpression, &RecordType)) -> bool {
    match (constant(a, of_a), constant(b, of_b)) {
        (Some(a), Some(b)) => Tuple::from(a.clone()) != Tuple::from(b.clone()),
        (Some(Element::Nil), _) | (_, Some(Element::Nil)) | (None, None) => false,
        (Some(a), None) => !may_be(kind_of(a), b, of_b),
        (None, Some(b)) => !may_be(kind_of(b), a, of_a),
    }
}

/// Whether a column may have a value of this kind.
fn may_be(kind: Kind, column: &KeyExpression, of: &RecordType) -> bool {
    use prost_reflect::Kind as Field;
    if let Some(value) = constant(column, of) {
        return kind_of(value) == kind;
    }
    let Some((field, fan)) = resolve(column, &of.message) else { return true };
    kind == match field.kind() {
        _ if fan != FanType::None => Kind::Other,
        Field::String => Kind::Text,
        Field::Bytes | Field::Bool | Field::Float | Field::Double => Kind::Other,
        Field::Message(wrapper) => match wrapper.name() {
            "NullableInt32" | "NullableInt64" => Kind::Integer,
            "NullableString" => Kind::Text,
            _ => Kind::Other,
        },
        _ => Kind::Integer,
    }
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
            message Short { optional int64 id = 1; }
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
    fn primary_keys_are_compatible_unless_one_could_be_a_row_of_the_other() {
        let id = || KeyExpression::from(field("id"));
        let refused = build(concat(["id", "number"]), id()).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the primary keys of Short and Long are not compatible: number of Long, an integer, could be the number of a \
             row of a Short"
        );
        assert!(build(concat([id(), KeyExpression::RecordType]), id()).is_err());
        assert!(build(concat(["id", "name"]), id()).is_ok());
        assert!(build(concat(["id", "name", "number"]), id()).is_ok());
        assert!(build(id(), id()).is_ok());
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
