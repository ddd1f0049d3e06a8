//! A record as it is stored.

use crate::{
    expression::Subject,
    metadata::{RecordMetaData, RecordType},
    value::Tuple,
    version::RecordVersion,
};
use prost_reflect::DynamicMessage;
use std::sync::Arc;

/// A record that was saved or loaded.
#[derive(Clone, Debug, PartialEq)]
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

impl StoredRecord {
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
