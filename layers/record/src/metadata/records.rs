//! Reading a file of records: its union, its record types, and what is refused in them.

use super::{
    MetaDataError, Usage,
    options::{self, RecordTypeOptions},
};
use prost_reflect::{FieldDescriptor, FileDescriptor, Kind, MessageDescriptor};
use std::collections::{BTreeMap, BTreeSet};

/// The name of the union where no message has the usage UNION.
const UNION_NAME: &str = "RecordTypeUnion";

/// The records of a file.
pub(super) struct Records {
    pub union: MessageDescriptor,
    /// The record types, by name.
    pub types: BTreeMap<String, UnionType>,
}

/// A message of the union.
pub(super) struct UnionType {
    pub message: MessageDescriptor,
    /// The field that new records are written to: the one named `_Type`, or the one with the largest number.
    pub field: FieldDescriptor,
    /// The numbers of all of its fields.
    pub numbers: BTreeSet<u32>,
    pub options: RecordTypeOptions,
}

/// Reads a file.
pub(super) fn read(file: &FileDescriptor) -> Result<Records, MetaDataError> {
    let union = union(file)?;
    let types = types(&union)?;
    let reached = |message: &MessageDescriptor| types.values().any(|found| found.message == *message);
    for message in file.messages().filter(|message| !reached(message)) {
        if options::of_message(&message)?.used_as() == Usage::Record && message != union {
            return Err(MetaDataError::NotInUnion { message: message.full_name().into() });
        }
    }
    let records = types.values().map(|found| found.message.clone());
    refuse_unsigned(records.chain(file.messages().filter(|message| *message != union)))?;
    Ok(Records { union, types })
}

fn union(file: &FileDescriptor) -> Result<MessageDescriptor, MetaDataError> {
    let mut union: Option<MessageDescriptor> = None;
    for message in file.messages() {
        let usage = options::of_message(&message)?.used_as();
        let named = message.name() == UNION_NAME;
        if named && matches!(usage, Usage::Nested) {
            return Err(MetaDataError::Usage { message: message.full_name().into(), usage });
        }
        if !named && usage != Usage::Union {
            continue;
        }
        if let Some(first) = &union {
            let (first, second) = (first.full_name().into(), message.full_name().into());
            return Err(MetaDataError::TwoUnions { first, second });
        }
        union = Some(message);
    }
    union.ok_or_else(|| MetaDataError::NoUnion { file: file.name().into() })
}

fn types(union: &MessageDescriptor) -> Result<BTreeMap<String, UnionType>, MetaDataError> {
    let name = || union.full_name().to_owned();
    let mut oneofs = union.oneofs().filter(|oneof| !oneof.is_synthetic());
    if let Some(first) = oneofs.next()
        && (oneofs.next().is_some() || first.fields().len() != union.fields().len())
    {
        return Err(MetaDataError::UnionOneof { union: name() });
    }
    let mut types = BTreeMap::new();
    for field in union.fields() {
        let message = message_of(union, &field)?;
        let options = options::of_message(&message)?;
        let usage = options.used_as();
        if !matches!(usage, Usage::Unset | Usage::Record) || message.name() == UNION_NAME {
            let (path, message) = (path(union, &field), message.full_name().into());
            return Err(MetaDataError::UnionFieldUsage { path, message, usage });
        }
        let number = field.number();
        let found = types.entry(message.name().to_owned()).or_insert_with(|| UnionType {
            message: message.clone(),
            field: field.clone(),
            numbers: BTreeSet::new(),
            options,
        });
        if found.message != message {
            return Err(MetaDataError::TwoRecordTypes { name: message.name().into() });
        }
        found.numbers.insert(number);
        let canonical = format!("_{}", message.name());
        if field.name() == canonical || (found.field.name() != canonical && number > found.field.number()) {
            found.field = field;
        }
    }
    match types.is_empty() {
        true => Err(MetaDataError::EmptyUnion { union: name() }),
        false => Ok(types),
    }
}

fn message_of(
    union: &MessageDescriptor,
    field: &FieldDescriptor,
) -> Result<MessageDescriptor, MetaDataError> {
    match field.kind() {
        _ if field.is_list() || field.is_map() => {
            Err(MetaDataError::UnionFieldRepeated { path: path(union, field) })
        }
        Kind::Message(message) if !field.is_group() => Ok(message),
        _ => Err(MetaDataError::UnionFieldNotMessage { path: path(union, field) }),
    }
}

fn path(message: &MessageDescriptor, field: &FieldDescriptor) -> String {
    format!("{}.{}", message.name(), field.name())
}

/// Refuses unsigned integers in these messages and in all that are nested in them. A message that contains
/// itself is visited once.
fn refuse_unsigned(messages: impl Iterator<Item = MessageDescriptor>) -> Result<(), MetaDataError> {
    let mut visited = BTreeSet::new();
    for message in messages {
        let mut pending = vec![(message.name().to_owned(), message)];
        while let Some((path, message)) = pending.pop() {
            if !visited.insert(message.full_name().to_owned()) {
                continue;
            }
            for field in message.fields() {
                let path = format!("{path}.{}", field.name());
                match field.kind() {
                    Kind::Message(inner) => pending.push((path, inner)),
                    kind @ (Kind::Uint32 | Kind::Uint64 | Kind::Fixed32 | Kind::Fixed64) => {
                        return Err(MetaDataError::Unsigned {
                            path,
                            kind: format!("{kind:?}").to_lowercase(),
                        });
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(())
}
