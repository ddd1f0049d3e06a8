//! What meta-data must be: checked whenever it is built.

use super::{Index, IndexRule, MetaDataError, RecordMetaData, RecordType, index_types};
use crate::{
    expression::{FanType, KeyExpression, proto::Literal, resolve},
    value::{Shown, Tuple},
};
use foundationdb_tuple::Element;
use prost_reflect::{Kind, MessageDescriptor};
use std::collections::BTreeMap;

/// Refuses meta-data that a store could not work with.
pub(super) fn validate(meta_data: &RecordMetaData) -> Result<(), MetaDataError> {
    let mut keys = BTreeMap::new();
    for record_type in meta_data.types.values() {
        primary_key(meta_data, record_type)?;
        at_most(
            ("record type", &record_type.name),
            ("since_version", record_type.since_version),
            ("the meta-data", meta_data.version),
        )?;
        record_type_key(record_type)?;
        if let Some(first) = keys.insert(Tuple::from(record_type.key.clone()), &record_type.name) {
            return Err(MetaDataError::TwoRecordTypeKeys {
                first: first.clone(),
                second: record_type.name.clone(),
                key: Shown(&record_type.key).to_string(),
            });
        }
    }
    super::primary_keys::validate(meta_data)?;
    let mut numbers = BTreeMap::new();
    for index in meta_data.indexes.values() {
        self::index(meta_data, index)?;
        number_of(&mut numbers, &index.name, index.subspace_key)?;
    }
    for former in &meta_data.former {
        let name = ("former index", &*former.name);
        let removed = ("removed_version", former.removed_version);
        at_most(name, ("added_version", former.added_version), removed)?;
        at_most(name, removed, ("the meta-data", meta_data.version))?;
        number_of(&mut numbers, &former.name, former.subspace_key)?;
    }
    Ok(())
}

fn number_of<'a>(
    numbers: &mut BTreeMap<i64, &'a str>,
    name: &'a str,
    number: i64,
) -> Result<(), MetaDataError> {
    match numbers.insert(number, name) {
        None => Ok(()),
        Some(first) => {
            Err(MetaDataError::TwoSubspaceKeys { first: first.into(), second: name.into(), number })
        }
    }
}

/// Refuses a version that is later than the one that limits it.
fn at_most(
    (what, name): (&'static str, &str),
    (earlier, found): (&'static str, i32),
    (later, limit): (&'static str, i32),
) -> Result<(), MetaDataError> {
    match found <= limit {
        true => Ok(()),
        false => Err(MetaDataError::Version { what, name: name.into(), earlier, found, later, limit }),
    }
}

fn record_type_key(record_type: &RecordType) -> Result<(), MetaDataError> {
    match (&record_type.key, Literal::of(&record_type.key)) {
        (Element::Nil, _) | (_, None) => Err(MetaDataError::RecordTypeKey {
            record_type: record_type.name.clone(),
            key: Shown(&record_type.key).to_string(),
        }),
        _ => Ok(()),
    }
}

fn primary_key(meta_data: &RecordMetaData, of: &RecordType) -> Result<(), MetaDataError> {
    let (record_type, key) = (of.name.clone(), &of.primary_key);
    if let Err(error) = key.validate(&of.message, meta_data.functions()) {
        return Err(MetaDataError::PrimaryKey { record_type, error });
    }
    if key.version_columns() > 0 {
        return Err(MetaDataError::PrimaryKeyVersion { record_type });
    }
    if key.columns() == 0 {
        return Err(MetaDataError::PrimaryKeyEmpty { record_type });
    }
    match key.column_expressions().into_iter().find(KeyExpression::creates_duplicates) {
        Some(column) => {
            let path = format!("{record_type}.{column}");
            Err(MetaDataError::PrimaryKeyFansOut { record_type, path })
        }
        None => Ok(()),
    }
}

fn index(meta_data: &RecordMetaData, index: &Index) -> Result<(), MetaDataError> {
    if !meta_data.extensions.has_index_type(&index.kind) {
        return Err(MetaDataError::UnknownIndexType { index: index.name.clone(), kind: index.kind.clone() });
    }
    let types = meta_data.types.values().filter(|found| meta_data.is_index_of(index, &found.name));
    for record_type in types {
        let refused = |error| MetaDataError::Index {
            index: index.name.clone(),
            record_type: record_type.name.clone(),
            error,
        };
        index.expression.validate(&record_type.message, meta_data.functions()).map_err(refused)?;
        rule(index, needs(index, &record_type.message))?;
    }
    if index.kind == index_types::VERSION && !meta_data.store_record_versions {
        rule(index, Err(IndexRule::StoredVersions))?;
    }
    let name = ("index", &*index.name);
    let modified = ("last_modified_version", index.last_modified_version);
    at_most(name, ("added_version", index.added_version), modified)?;
    at_most(name, modified, ("the meta-data", meta_data.version))
}

fn rule(index: &Index, checked: Result<(), IndexRule>) -> Result<(), MetaDataError> {
    checked.map_err(|rule| MetaDataError::IndexRule {
        index: index.name.clone(),
        kind: index.kind.clone(),
        rule,
    })
}

/// What the types of indexes that this crate maintains need of the expression.
fn needs(index: &Index, message: &MessageDescriptor) -> Result<(), IndexRule> {
    let expression = &index.expression;
    let is_group = matches!(expression, KeyExpression::Group { .. });
    let grouped = expression.columns().saturating_sub(expression.grouping_columns());
    let aggregates = match &*index.kind {
        index_types::VALUE | index_types::VERSION if is_group => return Err(IndexRule::NotGrouped),
        index_types::VALUE | index_types::VERSION => false,
        index_types::RANK if grouped == 0 => return Err(IndexRule::Grouped),
        index_types::RANK => false,
        index_types::COUNT | index_types::COUNT_UPDATES if grouped > 0 => {
            return Err(IndexRule::NoneGrouped(grouped));
        }
        index_types::MIN_EVER | index_types::MAX_EVER if grouped == 0 => return Err(IndexRule::Grouped),
        index_types::SUM if grouped != 1 => return Err(IndexRule::OneGrouped(grouped)),
        index_types::SUM if !ends_in_integer(expression, message) => return Err(IndexRule::Integer),
        index_types::SUM
        | index_types::COUNT
        | index_types::COUNT_UPDATES
        | index_types::MIN_EVER
        | index_types::MAX_EVER => true,
        _ => return Ok(()),
    };
    match (&*index.kind, expression.version_columns()) {
        (index_types::VERSION, 1) => {}
        (index_types::VERSION, columns) => return Err(IndexRule::OneVersion(columns)),
        (_, 0) => {}
        _ => return Err(IndexRule::NoVersion),
    }
    match index.unique && (aggregates || index.kind == index_types::VERSION) {
        true => Err(IndexRule::NotUnique),
        false => Ok(()),
    }
}

fn ends_in_integer(expression: &KeyExpression, message: &MessageDescriptor) -> bool {
    let Some(last) = expression.column_expressions().pop() else { return false };
    if let KeyExpression::Literal(value) = &last {
        return matches!(value, Element::Int(_));
    }
    let integer = |kind: Kind| match kind {
        Kind::Message(wrapper) => matches!(wrapper.name(), "NullableInt32" | "NullableInt64"),
        Kind::Int32 | Kind::Int64 | Kind::Sint32 | Kind::Sint64 | Kind::Sfixed32 | Kind::Sfixed64 => true,
        _ => false,
    };
    resolve(&last, message)
        .is_some_and(|(field, fan)| matches!(fan, FanType::None | FanType::FanOut) && integer(field.kind()))
}
