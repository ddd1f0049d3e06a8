//! Building meta-data: from a file of records with its options, and with calls for what options cannot say.

use super::{
    Extensions, FormerIndex, Index, MetaDataError, RecordMetaData, RecordType, index_types,
    options::{self, FieldOptions, RecordTypeOptions},
    records::{self, Records, UnionType},
};
use crate::{
    expression::{Function, KeyExpression, field},
    value::{IntoValue, Value},
};
use prost_reflect::{FieldDescriptor, FileDescriptor, MessageDescriptor};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Builds [`RecordMetaData`]. Each index that is added, changed or removed, and each change of an option, is a new version
/// of the meta-data.
///
/// ```
/// use shaketable_record::{expression::{concatenate_fields, field}, metadata::{Index, RecordMetaData, compile}};
///
/// let file = compile(r#"
///     syntax = "proto2";
///     import "record_metadata_options.proto";
///     message Restaurant {
///         optional int64 rest_no = 1 [(com.apple.foundationdb.record.field).primary_key = true];
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
#[derive(Clone, Debug)]
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

/// A record type in a [`RecordMetaDataBuilder`].
#[derive(Clone, Debug)]
pub struct RecordTypeBuilder {
    pub(super) message: MessageDescriptor,
    pub(super) union_field: FieldDescriptor,
    /// The numbers of the union's fields with this message.
    pub(super) numbers: BTreeSet<u32>,
    pub(super) primary_key: Option<KeyExpression>,
    pub(super) key: Option<Value>,
    pub(super) since_version: i32,
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

    fn new(found: UnionType) -> RecordTypeBuilder {
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

    pub(super) fn key(&self) -> Value {
        let number = self.numbers.first().copied().unwrap_or(0);
        self.key.clone().unwrap_or_else(|| i64::from(number).into_value())
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
    /// Takes the records of a file, with what its options say about primary keys, indexes and versions; the index of a
    /// field is named `Type$field`. The file can be [compiled](super::compile) at run time, or come from a descriptor
    /// set that was compiled with the application.
    pub fn set_records(&mut self, file: &FileDescriptor) -> Result<&mut Self, MetaDataError> {
        if self.union.is_some() {
            return Err(MetaDataError::Records);
        }
        let mut next = self.clone();
        for (name, found) in next.place_records(file)? {
            let mut added = RecordTypeBuilder::new(found);
            added.primary_key = inline_primary_key(&added.message)?;
            next.types.insert(name.clone(), added);
            next.add_inline_indexes(&name)?;
        }
        next.read_schema_options(file)?;
        *self = next;
        Ok(self)
    }

    /// Takes another file for the same records, as the next version: a record type is the one with the same field of the
    /// union. The builder keeps what it has for these types; the new types' options are read, and so is an index of a
    /// field that neither is nor was an index.
    pub fn update_records(&mut self, file: &FileDescriptor) -> Result<&mut Self, MetaDataError> {
        if self.union.is_none() {
            return Err(MetaDataError::Records);
        }
        let mut next = self.clone();
        let version = next.next_version()?;
        let old = std::mem::take(&mut next.types);
        for (name, found) in next.place_records(file)? {
            let same = old.values().find(|old| !old.numbers.is_disjoint(&found.numbers));
            let mut updated = RecordTypeBuilder::new(found);
            match same {
                Some(old) => {
                    next.rename_in_indexes(old.message.name(), &name);
                    updated.primary_key.clone_from(&old.primary_key);
                    updated.key.clone_from(&old.key);
                    updated.since_version = old.since_version;
                }
                None => {
                    updated.primary_key = inline_primary_key(&updated.message)?;
                    updated.since_version = version;
                }
            }
            next.types.insert(name.clone(), updated);
            next.add_inline_indexes(&name)?;
        }
        next.read_schema_options(file)?;
        *self = next;
        Ok(self)
    }

    /// Takes the record types of a file, without what its options say.
    pub(super) fn place_types(&mut self, file: &FileDescriptor) -> Result<(), MetaDataError> {
        for (name, mut found) in self.place_records(file)? {
            found.options = RecordTypeOptions::default();
            self.types.insert(name, RecordTypeBuilder::new(found));
        }
        Ok(())
    }

    fn place_records(&mut self, file: &FileDescriptor) -> Result<BTreeMap<String, UnionType>, MetaDataError> {
        let Records { union, types } = records::read(file)?;
        self.union = Some(union);
        Ok(types)
    }

    fn rename_in_indexes(&mut self, old: &str, new: &str) {
        for name in self.index_types.values_mut().flatten().filter(|name| *name == old) {
            new.clone_into(name);
        }
    }

    fn read_schema_options(&mut self, file: &FileDescriptor) -> Result<(), MetaDataError> {
        let options = options::of_file(file)?;
        if let Some(store) = options.store_record_versions {
            self.set_store_record_versions(store)?;
        }
        if let Some(split) = options.split_long_records {
            self.set_split_long_records(split)?;
        }
        Ok(())
    }

    fn add_inline_indexes(&mut self, record_type: &str) -> Result<(), MetaDataError> {
        let message = self.record_type(record_type)?.message.clone();
        for field in message.fields() {
            let Some(option) = options::of_field(&field)?.index else { continue };
            let name = format!("{record_type}${}", field.name());
            if self.indexes.contains_key(&name) || self.former.iter().any(|former| former.name == name) {
                continue;
            }
            let mut index = Index::new(name, inline_expression(&field)).kind(option.kind());
            index.unique = option.unique();
            index.options = option.options.into_iter().map(|option| (option.key, option.value)).collect();
            self.add_index(Some(record_type), index)?;
        }
        Ok(())
    }

    /// A record type, to set its primary key. Fails with [`MetaDataError::UnknownRecordType`] if there is none of this
    /// name.
    pub fn record_type(&mut self, name: &str) -> Result<&mut RecordTypeBuilder, MetaDataError> {
        let unknown = || MetaDataError::UnknownRecordType { name: name.into() };
        self.types.get_mut(name).ok_or_else(unknown)
    }

    /// Adds an index on one record type; on all types, also those that are added later, if `record_type` is `None`.
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

    /// Gives the index of this name another definition, on the same record types. Stores build its entries again.
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

    /// Sets whether a record may take more than one row. It may, unless this is called.
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

    /// Declares a type of indexes that the application maintains: any other type that this crate does not know is
    /// refused.
    pub fn register_index_type(&mut self, kind: impl Into<String>) -> &mut Self {
        self.extensions.index_types.insert(kind.into());
        self
    }

    /// Replaces all functions and types of indexes that the application adds.
    pub fn set_extensions(&mut self, extensions: Extensions) -> &mut Self {
        self.extensions = extensions;
        self
    }

    /// The meta-data, which is validated: its expressions fit the records, and each index has what its type needs.
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

/// The expression of an index or a primary key that is declared at a field.
fn inline_expression(declared: &FieldDescriptor) -> KeyExpression {
    match declared.is_list() || declared.is_map() {
        true => field(declared.name()).fan_out().into(),
        false => field(declared.name()).into(),
    }
}

fn inline_primary_key(message: &MessageDescriptor) -> Result<Option<KeyExpression>, MetaDataError> {
    let mut first: Option<FieldDescriptor> = None;
    for field in message.fields() {
        let FieldOptions { primary_key, .. } = options::of_field(&field)?;
        if !primary_key.unwrap_or(false) {
            continue;
        }
        if let Some(first) = &first {
            let (first, second) = (first.name().into(), field.name().into());
            return Err(MetaDataError::TwoPrimaryKeys { record_type: message.name().into(), first, second });
        }
        first = Some(field);
    }
    Ok(first.as_ref().map(inline_expression))
}

/// The index in the form that is stored: a unique one is not an option, and one that ranks or aggregates its last column
/// says so.
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
