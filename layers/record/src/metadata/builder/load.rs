//! What a builder takes from a file of records: its record types, and what their options say.

use super::{RecordMetaDataBuilder, RecordTypeBuilder};
use crate::{
    expression::{KeyExpression, field},
    metadata::{
        Index, MetaDataError,
        options::{self, FieldOptions, RecordTypeOptions},
        records::{self, Records, UnionType},
    },
};
use prost_reflect::{FieldDescriptor, FileDescriptor, MessageDescriptor};
use std::collections::BTreeMap;

impl RecordMetaDataBuilder {
    /// Takes the records of a file, with what its options say about primary keys, indexes and versions; the
    /// index of a field is named `Type$field`. The file can be [compiled](crate::metadata::compile) at run
    /// time, or come from a descriptor set that was compiled with the application.
    pub fn set_records(&mut self, file: &FileDescriptor) -> Result<&mut Self, MetaDataError> {
        if self.union.is_some() {
            return Err(MetaDataError::Records);
        }
        let mut next = self.clone();
        for (name, found) in next.place_records(file)? {
            let mut added = RecordTypeBuilder::new(found);
            added.primary_key = inline_primary_key(&added.message)?;
            next.types.insert(name.clone(), added);
            next.add_inline_indexes(&name, None)?;
        }
        next.read_schema_options(file)?;
        *self = next;
        Ok(self)
    }

    /// Takes another file for the same records, as the next version: a record type is the one with the same
    /// field of the union. The builder keeps what it has for these types; the new types' options are read,
    /// and so is an index of a field that neither is nor was an index.
    pub fn update_records(&mut self, file: &FileDescriptor) -> Result<&mut Self, MetaDataError> {
        if self.union.is_none() {
            return Err(MetaDataError::Records);
        }
        let mut next = self.clone();
        let version = next.next_version()?;
        let old = std::mem::take(&mut next.types);
        let mut renamed = BTreeMap::new();
        let mut updated_types = Vec::new();
        for (name, found) in next.place_records(file)? {
            let same = old.values().find(|old| !old.numbers.is_disjoint(&found.numbers));
            let mut updated = RecordTypeBuilder::new(found);
            match same {
                Some(old) => {
                    renamed.insert(old.message.name().to_owned(), name.clone());
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
            updated_types.push((name, same.map(|old| &old.message)));
        }
        next.rename_in_indexes(&renamed);
        for (name, before) in updated_types {
            next.add_inline_indexes(&name, before)?;
        }
        next.read_schema_options(file)?;
        *self = next;
        Ok(self)
    }

    /// Takes the record types of a file, without what its options say.
    pub(in crate::metadata) fn place_types(&mut self, file: &FileDescriptor) -> Result<(), MetaDataError> {
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

    /// Renames types in the lists of the indexes, all at once: a type may get the name that another one had.
    fn rename_in_indexes(&mut self, renamed: &BTreeMap<String, String>) {
        for names in self.index_types.values_mut() {
            for name in names.iter_mut() {
                if let Some(new) = renamed.get(name) {
                    name.clone_from(new);
                }
            }
            names.sort();
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

    /// Adds the indexes of a type's fields, except for those of fields that had an index in the message
    /// `before`, whatever the type was called then.
    fn add_inline_indexes(
        &mut self,
        record_type: &str,
        before: Option<&MessageDescriptor>,
    ) -> Result<(), MetaDataError> {
        let message = self.record_type(record_type)?.message.clone();
        for field in message.fields() {
            let Some(option) = options::of_field(&field)?.any_index() else { continue };
            let former = before.and_then(|before| before.get_field(field.number()));
            if former
                .map(|former| options::of_field(&former))
                .transpose()?
                .is_some_and(|it| it.any_index().is_some())
            {
                continue;
            }
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
