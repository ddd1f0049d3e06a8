//! A record as it is stored.

use crate::{
    error::Error,
    expression::Subject,
    metadata::{RecordMetaData, RecordType},
    value::Tuple,
    version::RecordVersion,
};
use prost::Message;
use prost_reflect::{DynamicMessage, ReflectMessage};
use std::{fmt, sync::Arc};

/// A record that was saved or loaded.
#[derive(Clone, PartialEq)]
pub struct StoredRecord {
    /// Where it is stored.
    pub primary_key: Tuple,
    /// Its type.
    pub record_type: Arc<RecordType>,
    /// The record.
    pub message: DynamicMessage,
    /// When it was last written; `None` if it was written before the store kept versions.
    pub version: Option<RecordVersion>,
    /// How many rows hold it, with its version.
    pub rows: usize,
    /// The bytes of their keys.
    pub key_bytes: usize,
    /// The bytes of their values.
    pub value_bytes: usize,
}

impl fmt::Debug for StoredRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredRecord")
            .field("primary_key", &self.primary_key)
            .field("record_type", &self.record_type.name)
            .field("message", &format_args!("{{{}}}", self.message))
            .field("version", &self.version)
            .field("rows", &self.rows)
            .field("key_bytes", &self.key_bytes)
            .field("value_bytes", &self.value_bytes)
            .finish()
    }
}

impl StoredRecord {
    /// The record as a message of a type of its own. Fails with [`Error::TypeChanged`] if it is of another
    /// record type.
    pub fn to_message<M: ReflectMessage + Default>(&self) -> Result<M, Error> {
        let wanted = M::default().descriptor();
        match wanted.full_name() == self.record_type.message.full_name() {
            true => self.transcode(),
            false => Err(Error::TypeChanged {
                primary_key: self.primary_key.clone(),
                found: self.record_type.name.clone(),
                wanted: wanted.name().into(),
            }),
        }
    }

    /// The record's fields as a message without a descriptor, which must fit the record's type. Fails with
    /// [`Error::Message`] if its fields have other types.
    pub fn transcode<M: Message + Default>(&self) -> Result<M, Error> {
        self.message
            .transcode_to()
            .map_err(|e| Error::Message { record_type: self.record_type.name.clone(), reason: e.to_string() })
    }

    /// What key expressions are evaluated on.
    pub fn subject<'a>(&'a self, meta_data: &'a RecordMetaData) -> Subject<'a> {
        Subject {
            message: Some(&self.message),
            record_type: &self.record_type.key,
            version: self.version.as_ref(),
            functions: meta_data.functions(),
        }
    }
}
