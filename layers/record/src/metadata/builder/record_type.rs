//! A record type that is being built.

use crate::{
    expression::KeyExpression,
    metadata::{options::RecordTypeOptions, records::UnionType},
    value::{IntoValue, Value},
};
use prost_reflect::{FieldDescriptor, MessageDescriptor};
use std::{collections::BTreeSet, fmt};

/// A record type in a [`RecordMetaDataBuilder`](super::RecordMetaDataBuilder).
#[derive(Clone)]
pub struct RecordTypeBuilder {
    pub(in crate::metadata) message: MessageDescriptor,
    pub(in crate::metadata) union_field: FieldDescriptor,
    /// The numbers of the union's fields with this message.
    pub(in crate::metadata) numbers: BTreeSet<u32>,
    pub(in crate::metadata) primary_key: Option<KeyExpression>,
    pub(in crate::metadata) key: Option<Value>,
    pub(in crate::metadata) since_version: i32,
}

impl fmt::Debug for RecordTypeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordTypeBuilder")
            .field("message", &self.message.full_name())
            .field("union_fields", &self.numbers)
            .field("primary_key", &self.primary_key)
            .field("key", &self.key)
            .field("since_version", &self.since_version)
            .finish()
    }
}

impl RecordTypeBuilder {
    /// Its message.
    pub fn message(&self) -> &MessageDescriptor {
        &self.message
    }

    /// Sets where its records are stored, instead of what the options of the file say.
    pub fn set_primary_key(&mut self, primary_key: impl Into<KeyExpression>) -> &mut Self {
        self.primary_key = Some(primary_key.into());
        self
    }

    /// Sets what [`KeyExpression::RecordType`] evaluates to, instead of the number of the union's field.
    pub fn set_record_type_key(&mut self, key: impl IntoValue) -> &mut Self {
        self.key = Some(key.into_value());
        self
    }

    /// Sets the version of the meta-data that added the type.
    pub fn set_since_version(&mut self, version: i32) -> &mut Self {
        self.since_version = version;
        self
    }

    pub(super) fn new(found: UnionType) -> RecordTypeBuilder {
        let RecordTypeOptions { since_version, record_type_key, .. } = found.options;
        RecordTypeBuilder {
            message: found.message,
            union_field: found.field,
            numbers: found.numbers,
            primary_key: None,
            key: record_type_key.map(|key| key.value()),
            since_version: since_version.unwrap_or(0),
        }
    }

    pub(in crate::metadata) fn key(&self) -> Value {
        let number = self.numbers.first().copied().unwrap_or(0);
        self.key.clone().unwrap_or_else(|| i64::from(number).into_value())
    }
}
