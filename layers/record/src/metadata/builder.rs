//! Building meta-data: from a file of records with its options, and with calls for what options cannot say.

mod load;
mod record_type;

pub use record_type::RecordTypeBuilder;

use super::{Extensions, FormerIndex, Index, MetaDataError, RecordMetaData, RecordType, index_types};
use crate::expression::{Function, KeyExpression};
use prost_reflect::MessageDescriptor;
use std::{collections::BTreeMap, fmt, sync::Arc};

/// Builds [`RecordMetaData`]. Each index that is added, changed or removed, and each change of an option, is
/// a new version of the meta-data.
///
/// ```
/// use shaketable_record::{expression::{concatenate_fields, field}, metadata::{Index, RecordMetaData, compile}};
///
/// let file = compile(r#"
///     syntax = "proto2";
///     import "record_metadata_options.proto";
///     message Restaurant {
///         required int64 rest_no = 1 [(com.apple.foundationdb.record.field).primary_key = true];
///         optional string name = 2 [(com.apple.foundationdb.record.field).index = {}];
///         repeated Review reviews = 3;
///     }
///     message Review { optional int32 rating = 1; }
///     message Node { optional string parent_path = 1; optional string child_name = 2; }
///     message RecordTypeUnion { optional Restaurant _Restaurant = 1; optional Node _Node = 2; }
/// "#)?;
/// let mut builder = RecordMetaData::builder();
/// builder.set_records(&file)?;
/// builder.record_type("Node")?.set_primary_key(concatenate_fields(["parent_path", "child_name"]));
/// builder.add_index(Some("Restaurant"), Index::new("review_rating", field("reviews").fan_out().nest("rating")))?;
/// let meta_data = builder.build()?;
/// assert_eq!(meta_data.version(), 2);
/// assert!(meta_data.index("Restaurant$name").is_some());
/// # Ok::<(), shaketable_record::metadata::MetaDataError>(())
/// ```
#[derive(Clone)]
pub struct RecordMetaDataBuilder {
    pub(super) union: Option<MessageDescriptor>,
    pub(super) types: BTreeMap<String, RecordTypeBuilder>,
    pub(super) indexes: BTreeMap<String, Index>,
    pub(super) index_types: BTreeMap<String, Vec<String>>,
    pub(super) former: Vec<FormerIndex>,
    pub(super) split_long_records: bool,
    pub(super) store_record_versions: bool,
    pub(super) version: i32,
    pub(super) subspace_counter: i64,
    pub(super) extensions: Extensions,
}

impl fmt::Debug for RecordMetaDataBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordMetaDataBuilder")
            .field("version", &self.version)
            .field("union", &self.union.as_ref().map(|union| union.full_name()))
            .field("types", &self.types)
            .field("indexes", &self.indexes)
            .field("former", &self.former)
            .finish_non_exhaustive()
    }
}

impl Default for RecordMetaDataBuilder {
    fn default() -> Self {
        RecordMetaDataBuilder {
            union: None,
            types: BTreeMap::new(),
            indexes: BTreeMap::new(),
            index_types: BTreeMap::new(),
            former: Vec::new(),
            split_long_records: true,
            store_record_versions: false,
            version: 0,
            subspace_counter: 0,
            extensions: Extensions::default(),
        }
    }
}

impl RecordMetaDataBuilder {
    /// A record type, to set its primary key. Fails with [`MetaDataError::UnknownRecordType`] if there is
    /// none of this name.
    pub fn record_type(&mut self, name: &str) -> Result<&mut RecordTypeBuilder, MetaDataError> {
        let unknown = || MetaDataError::UnknownRecordType { name: name.into() };
        self.types.get_mut(name).ok_or_else(unknown)
    }

    /// Adds an index on one record type; on all types, also those that are added later, if `record_type` is
    /// `None`.
    pub fn add_index(&mut self, record_type: Option<&str>, index: Index) -> Result<&mut Self, MetaDataError> {
        match record_type {
            Some(name) => self.add_multi_type_index([name], index),
            None => self.place_index(None, index),
        }
    }

    /// Adds an index on several record types.
    pub fn add_multi_type_index<'a>(
        &mut self,
        record_types: impl IntoIterator<Item = &'a str>,
        index: Index,
    ) -> Result<&mut Self, MetaDataError> {
        let mut names: Vec<String> = record_types.into_iter().map(str::to_owned).collect();
        names.sort();
        names.dedup();
        if names.is_empty() {
            return Err(MetaDataError::IndexWithoutTypes { index: index.name });
        }
        for name in &names {
            self.record_type(name)?;
        }
        self.place_index(Some(names), index)
    }

    fn place_index(&mut self, types: Option<Vec<String>>, index: Index) -> Result<&mut Self, MetaDataError> {
        if self.union.is_none() {
            return Err(MetaDataError::Records);
        }
        if self.indexes.contains_key(&index.name) {
            return Err(MetaDataError::TwoIndexes { name: index.name });
        }
        let mut index = normal(index);
        if index.last_modified_version <= 0 {
            index.last_modified_version = self.next_version()?;
        }
        self.version = self.version.max(index.last_modified_version);
        if index.added_version <= 0 {
            index.added_version = index.last_modified_version;
        }
        if index.subspace_key == 0 {
            index.subspace_key =
                self.subspace_counter.checked_add(1).ok_or(MetaDataError::Exhausted("index number"))?;
        }
        self.subspace_counter = self.subspace_counter.max(index.subspace_key);
        if let Some(types) = types {
            self.index_types.insert(index.name.clone(), types);
        }
        self.indexes.insert(index.name.clone(), index);
        Ok(self)
    }

    /// Gives the index of this name another definition, on the same record types. Stores build its entries
    /// again.
    pub fn change_index(&mut self, index: Index) -> Result<&mut Self, MetaDataError> {
        let Some(old) = self.indexes.get(&index.name) else {
            return Err(MetaDataError::UnknownIndex { name: index.name });
        };
        let (subspace_key, added_version) = (old.subspace_key, old.added_version);
        let last_modified_version = self.next_version()?;
        let changed = Index { subspace_key, added_version, last_modified_version, ..normal(index) };
        self.indexes.insert(changed.name.clone(), changed);
        Ok(self)
    }

    /// Removes an index. Stores remove its entries, and its number is not used again.
    pub fn remove_index(&mut self, name: &str) -> Result<&mut Self, MetaDataError> {
        let unknown = || MetaDataError::UnknownIndex { name: name.into() };
        let removed = self.indexes.remove(name).ok_or_else(unknown)?;
        self.index_types.remove(name);
        let removed_version = self.next_version()?;
        self.former.push(FormerIndex {
            name: removed.name,
            subspace_key: removed.subspace_key,
            added_version: removed.added_version,
            removed_version,
        });
        Ok(self)
    }

    /// Sets whether every record that is saved gets a version.
    pub fn set_store_record_versions(&mut self, store: bool) -> Result<&mut Self, MetaDataError> {
        if store != self.store_record_versions {
            self.next_version()?;
            self.store_record_versions = store;
        }
        Ok(self)
    }

    /// Sets whether a record may take more than one row. It may, unless this is called; in Java's Record
    /// Layer it may not unless it is said. Stored meta-data always says it.
    pub fn set_split_long_records(&mut self, split: bool) -> Result<&mut Self, MetaDataError> {
        if split != self.split_long_records {
            self.next_version()?;
            self.split_long_records = split;
        }
        Ok(self)
    }

    /// Sets the version of the meta-data.
    pub fn set_version(&mut self, version: i32) -> &mut Self {
        self.version = version;
        self
    }

    /// The version that meta-data built now has.
    pub fn version(&self) -> i32 {
        self.version
    }

    fn next_version(&mut self) -> Result<i32, MetaDataError> {
        self.version = self.version.checked_add(1).ok_or(MetaDataError::Exhausted("version"))?;
        Ok(self.version)
    }

    /// Registers a function that expressions can call.
    pub fn register_function(&mut self, name: impl Into<String>, function: Function) -> &mut Self {
        self.extensions.functions.register(name, function);
        self
    }

    /// Declares a type of indexes that the application maintains: any other type that this crate does not
    /// know is refused.
    pub fn register_index_type(&mut self, kind: impl Into<String>) -> &mut Self {
        self.extensions.index_types.insert(kind.into());
        self
    }

    /// Replaces all functions and types of indexes that the application adds.
    pub fn set_extensions(&mut self, extensions: Extensions) -> &mut Self {
        self.extensions = extensions;
        self
    }

    /// The meta-data, which is validated: its expressions fit the records, and each index has what its type
    /// needs.
    pub fn build(&self) -> Result<RecordMetaData, MetaDataError> {
        let meta_data = self.assemble()?;
        super::validate::validate(&meta_data)?;
        Ok(meta_data)
    }

    /// The meta-data, not validated.
    pub(super) fn assemble(&self) -> Result<RecordMetaData, MetaDataError> {
        let mut types = BTreeMap::new();
        for (name, found) in &self.types {
            let no_key = || MetaDataError::NoPrimaryKey { record_type: name.clone() };
            let built = RecordType {
                name: name.clone(),
                message: found.message.clone(),
                union_field: found.union_field.clone(),
                primary_key: found.primary_key.clone().ok_or_else(no_key)?,
                key: found.key(),
                since_version: found.since_version,
            };
            types.insert(name.clone(), Arc::new(built));
        }
        let indexes = self.indexes.iter().map(|(name, index)| (name.clone(), Arc::new(index.clone())));
        Ok(RecordMetaData {
            version: self.version,
            union: self.union.clone().ok_or(MetaDataError::Records)?,
            types,
            indexes: indexes.collect(),
            index_types: self.index_types.clone(),
            former: self.former.clone(),
            split_long_records: self.split_long_records,
            store_record_versions: self.store_record_versions,
            subspace_counter: self.subspace_counter,
            extensions: Arc::new(self.extensions.clone()),
        })
    }
}

impl RecordMetaData {
    /// Builds meta-data.
    pub fn builder() -> RecordMetaDataBuilder {
        RecordMetaDataBuilder::default()
    }

    /// The meta-data of a `.proto` file whose options say everything.
    ///
    /// ```
    /// use shaketable_record::metadata::RecordMetaData;
    ///
    /// let meta_data = RecordMetaData::from_proto(r#"
    ///     syntax = "proto3";
    ///     import "record_metadata_options.proto";
    ///     package example;
    ///     message Order {
    ///         int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true];
    ///         string flower = 2 [(com.apple.foundationdb.record.field).index = {}];
    ///     }
    ///     message RecordTypeUnion { Order _Order = 1; }
    /// "#)?;
    /// assert_eq!(meta_data.record_types().count(), 1);
    /// # Ok::<(), shaketable_record::metadata::MetaDataError>(())
    /// ```
    pub fn from_proto(text: &str) -> Result<RecordMetaData, MetaDataError> {
        RecordMetaData::builder().set_records(&super::compile(text)?)?.build()
    }

    /// A builder of the versions after this one.
    pub fn to_builder(&self) -> RecordMetaDataBuilder {
        let builder = |found: &Arc<RecordType>| RecordTypeBuilder {
            message: found.message.clone(),
            union_field: found.union_field.clone(),
            numbers: self.union_numbers(&found.message),
            primary_key: Some(found.primary_key.clone()),
            key: Some(found.key.clone()),
            since_version: found.since_version,
        };
        RecordMetaDataBuilder {
            union: Some(self.union.clone()),
            types: self.types.iter().map(|(name, found)| (name.clone(), builder(found))).collect(),
            indexes: self.indexes.iter().map(|(name, index)| (name.clone(), (**index).clone())).collect(),
            index_types: self.index_types.clone(),
            former: self.former.clone(),
            split_long_records: self.split_long_records,
            store_record_versions: self.store_record_versions,
            version: self.version,
            subspace_counter: self.subspace_counter,
            extensions: (*self.extensions).clone(),
        }
    }
}

/// The index in the form that is stored: a unique one is not an option, and one that ranks or aggregates its
/// last column says so.
fn normal(mut index: Index) -> Index {
    if let Some(unique) = index.options.remove(index_types::UNIQUE_OPTION) {
        index.unique |= unique.eq_ignore_ascii_case("true");
    }
    let grouped = [index_types::RANK, index_types::SUM, index_types::MIN_EVER, index_types::MAX_EVER];
    if grouped.contains(&&*index.kind) && !matches!(index.expression, KeyExpression::Group { .. }) {
        index.expression = index.expression.group_last(1);
    }
    index
}
