//! The rules of record types and their fields.

use super::EvolutionError;
use crate::{
    metadata::{RecordMetaData, RecordType},
    value::{Shown, Tuple},
};
use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, Value as ProtoValue};
use std::collections::{BTreeMap, BTreeSet};

/// Checks the record types; returns the new name of each old one.
pub(super) fn validate(
    old: &RecordMetaData,
    new: &RecordMetaData,
) -> Result<BTreeMap<String, String>, EvolutionError> {
    let renamed = names(old, new)?;
    let mut visited = BTreeSet::new();
    for before in old.types.values() {
        let dropped = || EvolutionError::RecordTypeDropped(before.name.clone());
        let name = renamed.get(&before.name).ok_or_else(dropped)?;
        let after = new.types.get(name).ok_or_else(dropped)?;
        message(&mut visited, before.name.clone(), &before.message, &after.message)?;
        record_type(before, after)?;
    }
    let kept: BTreeSet<&String> = renamed.values().collect();
    for added in new.types.values().filter(|added| !kept.contains(&added.name)) {
        if added.since_version <= old.version {
            return Err(EvolutionError::NewRecordType {
                record_type: added.name.clone(),
                since: added.since_version,
                old: old.version,
            });
        }
    }
    Ok(renamed)
}

/// The new name of each old record type: those of the union's fields with the same number.
fn names(old: &RecordMetaData, new: &RecordMetaData) -> Result<BTreeMap<String, String>, EvolutionError> {
    let mut renamed: BTreeMap<String, String> = BTreeMap::new();
    let mut came_from: BTreeMap<String, String> = BTreeMap::new();
    for before in old.union.fields() {
        let Kind::Message(message) = before.kind() else { continue };
        let old = message.name().to_owned();
        let dropped = || EvolutionError::RecordTypeDropped(old.clone());
        let Kind::Message(message) = new.union.get_field(before.number()).ok_or_else(dropped)?.kind() else {
            return Err(dropped());
        };
        let new = message.name().to_owned();
        if let Some(first) = renamed.insert(old.clone(), new.clone()).filter(|first| *first != new) {
            return Err(EvolutionError::RecordTypeSplit { old, first, second: new });
        }
        if let Some(first) = came_from.insert(new.clone(), old.clone()).filter(|first| *first != old) {
            return Err(EvolutionError::RecordTypesMerged { first, second: old, new });
        }
    }
    Ok(renamed)
}

fn record_type(old: &RecordType, new: &RecordType) -> Result<(), EvolutionError> {
    let record_type = new.name.clone();
    if !old.primary_key.is_same(&new.primary_key) {
        let (old, new) = (old.primary_key.to_string(), new.primary_key.to_string());
        return Err(EvolutionError::PrimaryKey { record_type, old, new });
    }
    if Tuple::from(old.key.clone()) != Tuple::from(new.key.clone()) {
        let (old, new) = (Shown(&old.key).to_string(), Shown(&new.key).to_string());
        return Err(EvolutionError::RecordTypeKey { record_type, old, new });
    }
    match (old.since_version, new.since_version) {
        (old, new) if old != new => Err(EvolutionError::SinceVersion { record_type, old, new }),
        _ => Ok(()),
    }
}

/// Checks a message and those nested in it. `visited` has the pairs that were checked: a message can contain
/// itself.
fn message(
    visited: &mut BTreeSet<(String, String)>,
    path: String,
    old: &MessageDescriptor,
    new: &MessageDescriptor,
) -> Result<(), EvolutionError> {
    let mut pending = vec![(path, old.clone(), new.clone())];
    while let Some((path, old, new)) = pending.pop() {
        if !visited.insert((old.full_name().into(), new.full_name().into())) {
            continue;
        }
        if old.parent_file().syntax() != new.parent_file().syntax() {
            return Err(EvolutionError::Syntax { message: path });
        }
        for before in old.fields() {
            let path = format!("{path}.{}", before.name());
            let Some(after) = new.get_field(before.number()) else {
                return Err(EvolutionError::FieldDropped { path });
            };
            field(&path, &before, &after)?;
            if let (Kind::Message(before), Kind::Message(after)) = (before.kind(), after.kind()) {
                pending.push((path, before, after));
            }
        }
        let is_new = |field: &FieldDescriptor| old.get_field(field.number()).is_none();
        if let Some(field) = new.fields().find(|field| is_new(field) && field.is_required()) {
            return Err(EvolutionError::RequiredField { path: format!("{path}.{}", field.name()) });
        }
    }
    Ok(())
}

fn field(path: &str, old: &FieldDescriptor, new: &FieldDescriptor) -> Result<(), EvolutionError> {
    let path = || path.to_owned();
    if old.name() != new.name() {
        return Err(EvolutionError::FieldRenamed { path: path(), new: new.name().into() });
    }
    if !is_same_type(old, new) {
        let (old, new) = (type_name(old), type_name(new));
        return Err(EvolutionError::FieldType { path: path(), old, new });
    }
    if label(old) != label(new) {
        return Err(EvolutionError::FieldLabel { path: path(), old: label(old), new: label(new) });
    }
    if let (Kind::Enum(old), Kind::Enum(new)) = (old.kind(), new.kind()) {
        values(path, &old, &new)?;
    }
    if is_deprecated(old) && !is_deprecated(new) {
        return Err(EvolutionError::FieldUndeprecated { path: path() });
    }
    match has_same_default(old, new) {
        true => Ok(()),
        false => Err(EvolutionError::FieldDefault { path: path() }),
    }
}

fn values(
    path: impl Fn() -> String,
    old: &EnumDescriptor,
    new: &EnumDescriptor,
) -> Result<(), EvolutionError> {
    match old.values().find(|value| new.get_value(value.number()).is_none()) {
        Some(value) => Err(EvolutionError::EnumValueDropped { path: path(), value: value.name().into() }),
        None => Ok(()),
    }
}

/// Whether values of the old type are read, and are elements of keys, as values of the new one.
fn is_same_type(old: &FieldDescriptor, new: &FieldDescriptor) -> bool {
    match (old.kind(), new.kind()) {
        (Kind::Int32, Kind::Int64) | (Kind::Sint32, Kind::Sint64) => true,
        (Kind::Message(_), Kind::Message(_)) => old.is_group() == new.is_group(),
        (Kind::Enum(_), Kind::Enum(_)) => true,
        (old, new) => old == new,
    }
}

fn type_name(field: &FieldDescriptor) -> String {
    match field.kind() {
        Kind::Message(_) if field.is_group() => "group".into(),
        Kind::Message(_) => "message".into(),
        Kind::Enum(_) => "enum".into(),
        kind => format!("{kind:?}").to_lowercase(),
    }
}

fn label(field: &FieldDescriptor) -> &'static str {
    match () {
        () if field.is_map() => "map",
        () if field.is_list() => "repeated",
        () if field.is_required() => "required",
        () if field.supports_presence() => "optional",
        () => "without presence",
    }
}

fn is_deprecated(field: &FieldDescriptor) -> bool {
    field.field_descriptor_proto().options.as_ref().is_some_and(|options| options.deprecated())
}

/// A default that is not written is that of the type.
fn has_same_default(old: &FieldDescriptor, new: &FieldDescriptor) -> bool {
    let number = |value: ProtoValue| match value {
        ProtoValue::I32(value) => ProtoValue::I64(value.into()),
        other => other,
    };
    match (old.default_value(), new.default_value()) {
        (ProtoValue::F32(old), ProtoValue::F32(new)) => old.to_bits() == new.to_bits(),
        (ProtoValue::F64(old), ProtoValue::F64(new)) => old.to_bits() == new.to_bits(),
        (ProtoValue::Message(_), ProtoValue::Message(_)) => true,
        (old, new) => number(old) == number(new),
    }
}
