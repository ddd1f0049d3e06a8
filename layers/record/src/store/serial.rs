//! Records as bytes: a union message with one field set, which says the record's type.

use crate::{
    error::Error,
    metadata::{RecordMetaData, RecordType},
    value::Tuple,
};
use bytes::{Bytes, BytesMut};
use prost::{
    Message,
    encoding::{WireType, encode_key, encode_varint},
};
use prost_reflect::{Cardinality, DynamicMessage, FieldDescriptor, Value};
use std::sync::Arc;

/// A message as one of a record type of the meta-data, which has its own descriptors. The bytes are read
/// back: what is saved can be loaded. Fails with [`Error::Message`] if they cannot be, or if a required field
/// is absent.
pub(super) fn adopt(record_type: &RecordType, encoded: &[u8]) -> Result<DynamicMessage, Error> {
    let refused = |reason: String| Error::Message { record_type: record_type.name.clone(), reason };
    let message =
        DynamicMessage::decode(record_type.message.clone(), encoded).map_err(|e| refused(e.to_string()))?;
    match missing(&message) {
        Some(field) => Err(refused(format!("the required field {} is absent", field.full_name()))),
        None => Ok(message),
    }
}

/// A required field that is absent, at any depth.
fn missing(message: &DynamicMessage) -> Option<FieldDescriptor> {
    let is_missing =
        |field: &FieldDescriptor| field.cardinality() == Cardinality::Required && !message.has_field(field);
    let within = |value: &Value| match value {
        Value::Message(inner) => missing(inner),
        Value::List(values) => values.iter().filter_map(Value::as_message).find_map(missing),
        Value::Map(entries) => entries.values().filter_map(Value::as_message).find_map(missing),
        _ => None,
    };
    let own = message_descriptor(message).fields().find(is_missing);
    own.or_else(|| message.fields().find_map(|(_, value)| within(value)))
}

/// The union message with this record. The same record always has the same bytes.
pub(super) fn encode(record_type: &RecordType, message: &DynamicMessage) -> Bytes {
    let encoded = canonical(message);
    let mut union = BytesMut::with_capacity(encoded.len() + 12);
    encode_field(record_type.union_field.number(), &encoded, &mut union);
    union.freeze()
}

/// The record in a union message.
pub(super) fn decode(
    meta_data: &RecordMetaData,
    primary_key: &Tuple,
    bytes: Bytes,
) -> Result<(Arc<RecordType>, DynamicMessage), Error> {
    let torn = |reason: String| Error::Torn { primary_key: primary_key.clone(), reason };
    let mut union =
        DynamicMessage::decode(meta_data.union().clone(), bytes).map_err(|e| torn(e.to_string()))?;
    if let Some(unknown) = union.unknown_fields().next() {
        return Err(torn(format!("the union of the meta-data has no field {}", unknown.number())));
    }
    let mut fields = union.take_fields();
    let (Some((field, Value::Message(message))), None) = (fields.next(), fields.next()) else {
        return Err(torn("it is not one record".into()));
    };
    let found = meta_data.record_type_of(&message_of(&field).ok_or_else(|| torn("it is no message".into()))?);
    let record_type = found.ok_or_else(|| torn(format!("{} is not a record type", field.full_name())))?;
    Ok((record_type.clone(), message))
}

fn message_of(field: &FieldDescriptor) -> Option<prost_reflect::MessageDescriptor> {
    field.kind().as_message().cloned()
}

fn encode_field(number: u32, bytes: &[u8], out: &mut BytesMut) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// A message's bytes, with the entries of maps in the order of their keys: maps have no order of their own,
/// but what is stored must not depend on the process that stores it.
fn canonical(message: &DynamicMessage) -> Vec<u8> {
    if !message.fields().any(|(_, value)| has_map(value)) {
        return message.encode_to_vec();
    }
    let mut out = BytesMut::new();
    let alone = |field: &FieldDescriptor, value: Value| {
        let mut one = DynamicMessage::new(message_descriptor(message));
        one.set_field(field, value);
        one.encode_to_vec()
    };
    for (field, value) in message.fields() {
        match value {
            Value::Map(entries) => {
                let mut keys: Vec<_> = entries.keys().collect();
                keys.sort();
                for key in keys {
                    let entry = [(key.clone(), entries[key].clone())];
                    out.extend_from_slice(&alone(&field, Value::Map(entry.into_iter().collect())));
                }
            }
            Value::Message(inner) if has_map(value) && !field.is_group() => {
                encode_field(field.number(), &canonical(inner), &mut out);
            }
            Value::List(values) if has_map(value) && !field.is_group() => {
                let inner = values.iter().filter_map(Value::as_message);
                inner.for_each(|inner| encode_field(field.number(), &canonical(inner), &mut out));
            }
            _ => out.extend_from_slice(&alone(&field, value.clone())),
        }
    }
    let mut rest = DynamicMessage::new(message_descriptor(message));
    message.extensions().for_each(|(extension, value)| rest.set_extension(&extension, value.clone()));
    out.extend_from_slice(&rest.encode_to_vec());
    message.unknown_fields().for_each(|field| field.encode(&mut out));
    out.to_vec()
}

fn message_descriptor(message: &DynamicMessage) -> prost_reflect::MessageDescriptor {
    prost_reflect::ReflectMessage::descriptor(message)
}

/// Whether a value is or has a map of more than one entry.
fn has_map(value: &Value) -> bool {
    match value {
        Value::Map(entries) => entries.len() > 1 || entries.values().any(has_map),
        Value::Message(message) => message.fields().any(|(_, value)| has_map(value)),
        Value::List(values) => values.iter().any(has_map),
        _ => false,
    }
}
