//! Meta-data: the types of a store's records, their primary keys, and its indexes.
//!
//! [`RecordMetaData`] is built by a [`RecordMetaDataBuilder`] from the descriptor of a `.proto` file, which
//! [`compile`] makes from text.

mod builder;
mod error;
mod evolution;
mod extensions;
mod files;
mod options;
mod primary_keys;
mod proto;
mod records;
mod store;
#[cfg(test)]
mod tests;
mod validate;

pub use builder::{RecordMetaDataBuilder, RecordTypeBuilder};
pub use error::{IndexRule, MetaDataError};
pub use evolution::{EvolutionError, IndexChange};
pub use extensions::Extensions;
pub use options::{PROTO_FILES, Usage, compile, compile_files};
pub use store::{MetaDataProvider, MetaDataStore};

use crate::{
    expression::{Functions, KeyExpression},
    value::Value,
};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

/// The types of indexes that this crate maintains, by name, as they are written in a `.proto` file. Other
/// types are maintained by what an application registers.
pub mod index_types {
    /// One entry for each key of each record.
    pub const VALUE: &str = "value";
    /// As [`VALUE`], and the rank of each score in its group.
    pub const RANK: &str = "rank";
    /// Entries that have the record's version in one column.
    pub const VERSION: &str = "version";
    /// The number of keys in each group.
    pub const COUNT: &str = "count";
    /// How often a key was written in each group. Deleting a record does not reduce it.
    pub const COUNT_UPDATES: &str = "count_updates";
    /// The sum of the grouped column in each group.
    pub const SUM: &str = "sum";
    /// The least tuple that was ever written in each group: `min_ever_tuple` of Java's Record Layer, where
    /// this name stands for an index of numbers.
    pub const MIN_EVER: &str = "min_ever";
    /// The greatest tuple that was ever written in each group: `max_ever_tuple` of Java's Record Layer.
    pub const MAX_EVER: &str = "max_ever";
    /// All of them.
    pub const ALL: [&str; 8] = [VALUE, RANK, VERSION, COUNT, COUNT_UPDATES, SUM, MIN_EVER, MAX_EVER];
    /// The setting of an index that stands for [`Index::unique`](super::Index::unique) in stored meta-data.
    pub(crate) const UNIQUE_OPTION: &str = "unique";
}

/// An index: an expression, evaluated on the records of some types, and the way its keys are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// Its name, unique in the meta-data.
    pub name: String,
    /// What is evaluated on each record.
    pub expression: KeyExpression,
    /// How the keys are kept: one of [`index_types`], or a type that the application maintains.
    pub kind: String,
    /// Whether two records may not have the same key.
    pub unique: bool,
    /// Further settings, by name, for the maintainer.
    pub options: BTreeMap<String, String>,
    /// The number under which its entries are stored; the builder assigns it.
    pub subspace_key: i64,
    /// The version of the meta-data that added it.
    pub added_version: i32,
    /// The version of the meta-data that changed it last: entries of stores that are older must be built
    /// again.
    pub last_modified_version: i32,
}

impl Index {
    /// A [`VALUE`](index_types::VALUE) index.
    pub fn new(name: impl Into<String>, expression: impl Into<KeyExpression>) -> Index {
        Index {
            name: name.into(),
            expression: expression.into(),
            kind: index_types::VALUE.into(),
            unique: false,
            options: BTreeMap::new(),
            subspace_key: 0,
            added_version: 0,
            last_modified_version: 0,
        }
    }

    /// This index, of another type.
    pub fn kind(self, kind: impl Into<String>) -> Index {
        Index { kind: kind.into(), ..self }
    }

    /// This index, in which two records may not have the same key.
    pub fn unique(self) -> Index {
        Index { unique: true, ..self }
    }

    /// This index, with a setting for its maintainer.
    pub fn option(mut self, name: impl Into<String>, value: impl Into<String>) -> Index {
        self.options.insert(name.into(), value.into());
        self
    }
}

/// An index that the meta-data no longer has. Its entries in a store are removed when the store is next
/// opened, and its number is not used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormerIndex {
    /// The name it had.
    pub name: String,
    /// The number under which its entries were stored.
    pub subspace_key: i64,
    /// The version of the meta-data that added it.
    pub added_version: i32,
    /// The version of the meta-data that removed it.
    pub removed_version: i32,
}

/// A type of records.
#[derive(Clone, PartialEq)]
pub struct RecordType {
    /// The name of its message.
    pub name: String,
    /// Its message.
    pub message: MessageDescriptor,
    /// The field of the union that holds records of this type.
    pub union_field: FieldDescriptor,
    /// Where its records are stored.
    pub primary_key: KeyExpression,
    /// What [`KeyExpression::RecordType`] evaluates to: by default the number of the union's field.
    pub key: Value,
    /// The version of the meta-data that added it; 0 for the first.
    pub since_version: i32,
}

// The descriptor of a message that contains itself, and a message with one, have no end when they are shown.
impl fmt::Debug for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, message, union_field, primary_key, key, since_version } = self;
        f.debug_struct("RecordType")
            .field("name", name)
            .field("message", &message.full_name())
            .field("union_field", &union_field.number())
            .field("primary_key", primary_key)
            .field("key", key)
            .field("since_version", since_version)
            .finish()
    }
}

/// The types of a store's records and its indexes. It does not change; share it in an [`Arc`].
#[derive(Clone)]
pub struct RecordMetaData {
    pub(crate) version: i32,
    pub(crate) union: MessageDescriptor,
    pub(crate) types: BTreeMap<String, Arc<RecordType>>,
    pub(crate) indexes: BTreeMap<String, Arc<Index>>,
    /// The record types of each index by its name; an index that is not here is on all types.
    pub(crate) index_types: BTreeMap<String, Vec<String>>,
    pub(crate) former: Vec<FormerIndex>,
    pub(crate) split_long_records: bool,
    pub(crate) store_record_versions: bool,
    /// The last number that was given to an index.
    pub(crate) subspace_counter: i64,
    pub(crate) extensions: Arc<Extensions>,
}

impl fmt::Debug for RecordMetaData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordMetaData")
            .field("version", &self.version)
            .field("union", &self.union.full_name())
            .field("types", &self.types)
            .field("indexes", &self.indexes)
            .field("index_types", &self.index_types)
            .field("former", &self.former)
            .field("split_long_records", &self.split_long_records)
            .field("store_record_versions", &self.store_record_versions)
            .field("subspace_counter", &self.subspace_counter)
            .field("extensions", &self.extensions)
            .finish()
    }
}

impl RecordMetaData {
    /// Its version. A store opens with the version it was last opened with, or a later one.
    pub fn version(&self) -> i32 {
        self.version
    }

    /// The message with one field for each type of records.
    pub fn union(&self) -> &MessageDescriptor {
        &self.union
    }

    /// The record types, by name.
    pub fn record_types(&self) -> impl Iterator<Item = &Arc<RecordType>> {
        self.types.values()
    }

    /// The record type with this name.
    pub fn record_type(&self, name: &str) -> Option<&Arc<RecordType>> {
        self.types.get(name)
    }

    /// The record type whose message this is, by its full name.
    pub fn record_type_of(&self, message: &MessageDescriptor) -> Option<&Arc<RecordType>> {
        self.types.get(message.name()).filter(|found| found.message.full_name() == message.full_name())
    }

    /// All indexes, by name.
    pub fn indexes(&self) -> impl Iterator<Item = &Arc<Index>> {
        self.indexes.values()
    }

    /// The index with this name.
    pub fn index(&self, name: &str) -> Option<&Arc<Index>> {
        self.indexes.get(name)
    }

    /// Whether the index has entries for records of this type.
    pub fn is_index_of(&self, index: &Index, record_type: &str) -> bool {
        self.index_types.get(&index.name).is_none_or(|types| types.iter().any(|name| name == record_type))
    }

    /// The indexes that have entries for records of this type.
    pub fn indexes_of(&self, record_type: &str) -> impl Iterator<Item = &Arc<Index>> {
        self.indexes.values().filter(move |index| self.is_index_of(index, record_type))
    }

    /// The record types of an index; `None` if it is on all types.
    pub fn types_of(&self, index: &Index) -> Option<&[String]> {
        self.index_types.get(&index.name).map(Vec::as_slice)
    }

    /// The indexes that were removed.
    pub fn former_indexes(&self) -> &[FormerIndex] {
        &self.former
    }

    /// Whether every record that is saved gets a version.
    pub fn stores_record_versions(&self) -> bool {
        self.store_record_versions
    }

    /// Whether a record may take more than one row.
    pub fn splits_long_records(&self) -> bool {
        self.split_long_records
    }

    /// The functions that its expressions can call.
    pub fn functions(&self) -> &Functions {
        &self.extensions.functions
    }

    /// What the application adds: functions, and types of indexes that it maintains itself.
    pub fn extensions(&self) -> &Arc<Extensions> {
        &self.extensions
    }

    /// The numbers of the union's fields that hold records of a type; new records are written to
    /// [`RecordType::union_field`].
    pub(crate) fn union_numbers(&self, message: &MessageDescriptor) -> BTreeSet<u32> {
        let is_of = |field: &FieldDescriptor| matches!(field.kind(), Kind::Message(of) if of == *message);
        self.union.fields().filter(is_of).map(|field| field.number()).collect()
    }
}
