//! Whether meta-data can follow other meta-data: a store that was written with the old one must be readable
//! with the new one, and must be able to tell which of its indexes to build or to remove.
//!
//! The rules are those of Java's Record Layer, where it allows an index to be built again:
//!
//! * The version grows with every change.
//! * A record type keeps its field in the union, its primary key, its key and the version that added it. It
//!   may get another name, but cannot be dropped: delete its records instead. A new type says which version
//!   added it.
//! * A field keeps its name, its number, its label, and its type, except that a variable-length integer of 32
//!   bits may become one of 64. A deprecated field stays so. No field is dropped, none that is new is
//!   required, and no value of an enumeration is dropped.
//! * An index that is changed has a later `last_modified_version`; one that is removed becomes a former
//!   index, which stays, and whose number is not used again.
//! * Versions of records, and records of several rows, are not turned off.

mod indexes;
mod records;

use super::RecordMetaData;

/// Why meta-data cannot follow other meta-data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvolutionError {
    /// The version is not later, but something changed.
    #[error("the meta-data has version {new}, which is not later than {old}")]
    VersionNotLater {
        /// The old version.
        old: i32,
        /// The new version.
        new: i32,
    },
    /// Record versions are no longer stored.
    #[error("record versions are no longer stored")]
    RecordVersionsDropped,
    /// Records can no longer take several rows.
    #[error("long records are no longer split")]
    SplitDropped,
    /// A record type is no longer in the union.
    #[error("record type {0} was dropped")]
    RecordTypeDropped(String),
    /// A record type became two.
    #[error("record type {old} became both {first} and {second}")]
    RecordTypeSplit {
        /// The old type.
        old: String,
        /// One new type.
        first: String,
        /// The other.
        second: String,
    },
    /// Two record types became one.
    #[error("record types {first} and {second} both became {new}")]
    RecordTypesMerged {
        /// One old type.
        first: String,
        /// The other.
        second: String,
        /// The new type.
        new: String,
    },
    /// The syntax of a message's file changed, and with it how absent fields are stored.
    #[error("the syntax of {message} changed")]
    Syntax {
        /// The message, with the path to it.
        message: String,
    },
    /// A field was dropped.
    #[error("field {path} was dropped")]
    FieldDropped {
        /// The field.
        path: String,
    },
    /// A field has another name.
    #[error("field {path} was renamed to {new}")]
    FieldRenamed {
        /// The field.
        path: String,
        /// Its new name.
        new: String,
    },
    /// A field has another type.
    #[error("the type of field {path} changed from {old} to {new}")]
    FieldType {
        /// The field.
        path: String,
        /// The old type.
        old: String,
        /// The new type.
        new: String,
    },
    /// A field has another label.
    #[error("field {path} changed from {old} to {new}")]
    FieldLabel {
        /// The field.
        path: String,
        /// The old label.
        old: &'static str,
        /// The new label.
        new: &'static str,
    },
    /// A field is no longer deprecated.
    #[error("field {path} is no longer deprecated")]
    FieldUndeprecated {
        /// The field.
        path: String,
    },
    /// A field that is absent has another default value.
    #[error("the default value of field {path} changed")]
    FieldDefault {
        /// The field.
        path: String,
    },
    /// A new field is required: older records do not have it.
    #[error("field {path} is new and required")]
    RequiredField {
        /// The field.
        path: String,
    },
    /// A value of an enumeration was dropped.
    #[error("value {value} of the enumeration of field {path} was dropped")]
    EnumValueDropped {
        /// The field.
        path: String,
        /// The value's name.
        value: String,
    },
    /// A record type has another primary key.
    #[error("the primary key of {record_type} changed from {old} to {new}")]
    PrimaryKey {
        /// The record type.
        record_type: String,
        /// The old primary key.
        old: String,
        /// The new primary key.
        new: String,
    },
    /// A record type has another key.
    #[error("the key of record type {record_type} changed from {old} to {new}")]
    RecordTypeKey {
        /// The record type.
        record_type: String,
        /// The old key.
        old: String,
        /// The new key.
        new: String,
    },
    /// A record type says that another version added it.
    #[error("the since_version of record type {record_type} changed from {old} to {new}")]
    SinceVersion {
        /// The record type.
        record_type: String,
        /// The old version.
        old: i32,
        /// The new version.
        new: i32,
    },
    /// A new record type does not say which version added it, or names one that is not later than the old
    /// meta-data.
    #[error("record type {record_type} is new, but its since_version is {since}, not later than {old}")]
    NewRecordType {
        /// The record type.
        record_type: String,
        /// Its version; 0 if it has none.
        since: i32,
        /// The version of the old meta-data.
        old: i32,
    },
    /// An index is gone and is not a former index.
    #[error("index {0} was dropped without becoming a former index")]
    IndexDropped(String),
    /// An index has another name.
    #[error("index {old} was renamed to {new}")]
    IndexRenamed {
        /// The old name.
        old: String,
        /// The new name.
        new: String,
    },
    /// A new index says that it was added or changed at a version that is not later than the old meta-data:
    /// stores would not build it.
    #[error("index {index} is new, but of version {version}, not later than {old}")]
    NewIndex {
        /// The index.
        index: String,
        /// Its version.
        version: i32,
        /// The version of the old meta-data.
        old: i32,
    },
    /// An index says that another version added it.
    #[error("the added_version of index {index} changed from {old} to {new}")]
    AddedVersion {
        /// The index.
        index: String,
        /// The old version.
        old: i32,
        /// The new version.
        new: i32,
    },
    /// An index was changed at a version that is not later than the old meta-data.
    #[error(
        "index {index} was last modified at version {new}; it was at {old}, and meta-data of {last} had it"
    )]
    ModifiedVersion {
        /// The index.
        index: String,
        /// The version at which it was modified before.
        old: i32,
        /// The version at which it was modified now.
        new: i32,
        /// The version of the old meta-data.
        last: i32,
    },
    /// An index changed without a later `last_modified_version`.
    #[error("the {change} of index {index} changed without a later last_modified_version")]
    IndexChanged {
        /// The index.
        index: String,
        /// What changed.
        change: IndexChange,
    },
    /// The number of a former index is used again.
    #[error("index {index} has the number {number} of a former index")]
    NumberReused {
        /// The index.
        index: String,
        /// The number.
        number: i64,
    },
    /// A former index is gone.
    #[error("former index {0} was dropped")]
    FormerIndexDropped(String),
    /// A former index is not what it was, or not what the index was.
    #[error("former index {name} differs from what it was")]
    FormerIndexChanged {
        /// Its name.
        name: String,
    },
    /// A former index was removed at a version that is not later than the old meta-data, or its index's last
    /// change; or an index that the old meta-data does not have was added before it.
    #[error(
        "former index {name} was added at version {added} and removed at {removed}, which is not later than {old}"
    )]
    FormerIndexVersion {
        /// Its name.
        name: String,
        /// The version that added it.
        added: i32,
        /// The version that removed it.
        removed: i32,
        /// The version that it must be later than.
        old: i32,
    },
}

/// What changed in an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexChange {
    /// Its type.
    #[error("type")]
    Kind,
    /// Its record types, by other than a type that is new.
    #[error("record types")]
    RecordTypes,
    /// Its expression.
    #[error("expression")]
    Expression,
    /// It became unique.
    #[error("uniqueness")]
    Unique,
    /// Its settings.
    #[error("options")]
    Options,
}

impl RecordMetaData {
    /// Refuses meta-data that cannot follow `old` in the stores that were opened with it. The same meta-data
    /// can follow itself.
    pub fn validate_evolution(&self, old: &RecordMetaData) -> Result<(), EvolutionError> {
        if self.version == old.version && self.to_bytes().ok() == old.to_bytes().ok() {
            return Ok(());
        }
        if self.version <= old.version {
            return Err(EvolutionError::VersionNotLater { old: old.version, new: self.version });
        }
        if old.store_record_versions && !self.store_record_versions {
            return Err(EvolutionError::RecordVersionsDropped);
        }
        if old.split_long_records && !self.split_long_records {
            return Err(EvolutionError::SplitDropped);
        }
        let renamed = records::validate(old, self)?;
        indexes::validate(old, self, &renamed)
    }
}
