//! Meta-data that cannot follow other meta-data: a version of the meta-data with one change that breaks one
//! rule of evolution. The changes are made in the file of the records, with the builder, or in the encoded
//! meta-data, where the builder has no way to make them.

use super::chain::{Link, Placed};
use crate::record_build::plain::Shape;
use prost::Message;
use serde::{Deserialize, Serialize};
use shaketable_record::{
    expression::{KeyExpression, concat},
    metadata::{RecordMetaData, RecordMetaDataBuilder, index_types},
};
use std::mem;

/// Declares [`Wrong`], and the list of all of it.
macro_rules! wrongs {
    ($($(#[$about:meta])* $name:ident,)*) => {
        /// Why meta-data cannot follow other meta-data.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Wrong {
            $($(#[$about])* $name,)*
        }

        impl Wrong {
            /// All of them.
            pub const ALL: &[Wrong] = &[$(Wrong::$name,)*];
        }
    };
}

wrongs! {
    /// A field has fewer bits.
    Narrowed,
    /// An index lost a record type, and does not say that it was changed.
    TypeTaken,
    /// An index is gone, and is no former index.
    Shorter,
    /// An index has another expression, and does not say that it was changed.
    Altered,
    /// A former index is gone, or an index is, under the version that is saved.
    Unraised,
    /// A field has another name.
    FieldRenamed,
    /// A field is gone.
    FieldDropped,
    /// A field has another type.
    FieldType,
    /// A field is no longer repeated.
    FieldSingle,
    /// A field of a message in a message is repeated.
    FieldRepeated,
    /// A field is new and required.
    FieldRequired,
    /// A value of an enumeration is gone.
    EnumValueDropped,
    /// A field is no longer deprecated.
    Undeprecated,
    /// A field that is absent has another value.
    OtherDefault,
    /// The records have another primary key.
    PrimaryKey,
    /// A record type has another key.
    TypeKey,
    /// A record type says that another version added it.
    SinceVersion,
    /// A record type is new, and says that an older version added it.
    NewTypeOlder,
    /// Versions of records are not stored any more.
    VersionsDropped,
    /// An index has another name.
    IndexRenamed,
    /// An index says that a later version added it.
    AddedLater,
    /// An index was changed at a version that stores have had.
    ModifiedBefore,
    /// An index is of another type, and does not say that it was changed.
    IndexKind,
    /// An index is unique, and does not say that it was changed.
    IndexUnique,
    /// An index has other options, and does not say that it was changed.
    IndexOptions,
    /// An index has one more record type, and does not say that it was changed.
    TypeGiven,
    /// An index is new, and says that an older version added it.
    NewIndexOlder,
    /// A former index is gone.
    FormerDropped,
    /// A former index is not what it was.
    FormerChanged,
    /// An index is removed, and its former index says that another version added it.
    FormerOfOther,
    /// An index was removed at a version that stores have had.
    RemovedBefore,
    /// A former index was added at a version that had no such index.
    FormerUnknown,
}

impl Wrong {
    /// What takes the place of what in the text of the file of records.
    fn in_text(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Wrong::Narrowed => ("optional int64 shelf", "optional int32 shelf"),
            Wrong::FieldRenamed => ("notes = 5", "remarks = 5"),
            Wrong::FieldDropped => ("repeated string notes = 5;", ""),
            Wrong::FieldType => ("repeated string notes", "repeated bytes notes"),
            Wrong::FieldSingle => ("repeated string notes", "optional string notes"),
            Wrong::FieldRepeated => ("optional Extra inner", "repeated Extra inner"),
            Wrong::FieldRequired => ("optional Extra inner", "required int64 must = 9; optional Extra inner"),
            Wrong::EnumValueDropped => ("LARGE = 1;", ""),
            Wrong::Undeprecated => ("[deprecated = true]", ""),
            Wrong::OtherDefault => ("default = 4", "default = 5"),
            _ => return None,
        })
    }
}

/// The expression, with the number of the record before it.
fn preceded(expression: KeyExpression) -> KeyExpression {
    match expression {
        KeyExpression::Group { whole, grouped } => {
            concat([KeyExpression::from("id"), *whole]).group_last(grouped)
        }
        expression => concat([KeyExpression::from("id"), expression]),
    }
}

impl Link {
    /// Meta-data that cannot follow this version. Where this version has nothing that could be wrong in this
    /// way, it is wrong in another one.
    pub fn wrong(&self, wrong: Wrong) -> RecordMetaData {
        let changed = match wrong {
            Wrong::Shorter | Wrong::Altered | Wrong::Unraised => None,
            _ => match wrong.in_text() {
                Some((from, to)) => Some(self.with_text(from, to)),
                None => self.built(wrong).or_else(|| self.encoded(wrong)),
            },
        };
        changed.unwrap_or_else(|| self.with_another_index(wrong))
    }

    /// With another file of records.
    fn with_text(&self, from: &str, to: &str) -> RecordMetaData {
        let mut builder = self.meta_data.to_builder();
        builder.update_records(&self.shape.edited_file(from, to)).expect("the records are valid");
        builder.build().expect("valid meta-data")
    }

    /// What the builder can say.
    fn built(&self, wrong: Wrong) -> Option<RecordMetaData> {
        let (mut builder, names) = (self.meta_data.to_builder(), &self.shape.names);
        let version = self.meta_data.version();
        match wrong {
            Wrong::PrimaryKey => {
                let primary_key = concat([KeyExpression::RecordType, "id".into()]);
                for name in names {
                    builder.record_type(name).ok()?.set_primary_key(primary_key.clone());
                }
            }
            Wrong::TypeKey => {
                builder.record_type(names[0]).ok()?.set_record_type_key(99i64);
            }
            Wrong::SinceVersion => {
                let since = self.meta_data.record_type(names[0])?.since_version;
                builder.record_type(names[0]).ok()?.set_since_version(since + 1);
            }
            Wrong::NewTypeOlder => {
                let mut shape: Shape = self.shape.clone();
                shape.names.push("Newest");
                builder.update_records(&shape.file()).ok()?;
                builder.record_type("Newest").ok()?.set_since_version(version);
            }
            Wrong::VersionsDropped => drop(builder.set_store_record_versions(false).ok()?),
            _ => return None,
        }
        builder.set_version(version + 1);
        builder.build().ok()
    }

    /// What only the encoded meta-data can say.
    fn encoded(&self, wrong: Wrong) -> Option<RecordMetaData> {
        let mut row = MetaDataRow::of(&self.meta_data);
        row.version = row.version.map(|version| version + 1);
        row.spoil(wrong, &self.shape.names)?;
        RecordMetaData::from_bytes(&row.encode_to_vec(), self.meta_data.extensions()).ok()
    }

    /// An index is gone or has another expression.
    fn with_another_index(&self, wrong: Wrong) -> RecordMetaData {
        let edit = |at, (mut index, types): Placed| match wrong {
            _ if at > 0 => Some((index, types)),
            Wrong::Altered => {
                index.expression = preceded(index.expression);
                Some((index, types))
            }
            _ => None,
        };
        let mut builder: RecordMetaDataBuilder = self.rebuilt(edit);
        if wrong != Wrong::Unraised {
            builder.set_version(self.meta_data.version() + 1);
        }
        builder.build().expect("valid meta-data")
    }
}

/// The message `MetaData` of Java's Record Layer; what no change is in is bytes.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MetaDataRow {
    #[prost(bytes = "vec", optional, tag = "1")]
    records: Option<Vec<u8>>,
    #[prost(message, repeated, tag = "2")]
    indexes: Vec<IndexRow>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    record_types: Vec<Vec<u8>>,
    #[prost(bool, optional, tag = "4")]
    split_long_records: Option<bool>,
    #[prost(int32, optional, tag = "5")]
    version: Option<i32>,
    #[prost(message, repeated, tag = "6")]
    former_indexes: Vec<FormerIndexRow>,
    #[prost(bool, optional, tag = "8")]
    store_record_versions: Option<bool>,
    #[prost(bytes = "vec", repeated, tag = "9")]
    dependencies: Vec<Vec<u8>>,
    #[prost(int64, optional, tag = "10")]
    subspace_key_counter: Option<i64>,
    #[prost(bool, optional, tag = "11")]
    uses_subspace_key_counter: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
struct IndexRow {
    #[prost(string, repeated, tag = "1")]
    record_types: Vec<String>,
    #[prost(string, optional, tag = "3")]
    name: Option<String>,
    #[prost(bytes = "vec", optional, tag = "4")]
    expression: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "5")]
    subspace_key: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "6")]
    last_modified_version: Option<i32>,
    #[prost(string, optional, tag = "8")]
    kind: Option<String>,
    #[prost(message, repeated, tag = "9")]
    options: Vec<OptionRow>,
    #[prost(int32, optional, tag = "10")]
    added_version: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct OptionRow {
    #[prost(string, optional, tag = "1")]
    key: Option<String>,
    #[prost(string, optional, tag = "2")]
    value: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct FormerIndexRow {
    #[prost(string, optional, tag = "3")]
    name: Option<String>,
    #[prost(bytes = "vec", optional, tag = "5")]
    subspace_key: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "6")]
    removed_version: Option<i32>,
    #[prost(int32, optional, tag = "10")]
    added_version: Option<i32>,
}

impl MetaDataRow {
    pub(super) fn of(meta_data: &RecordMetaData) -> MetaDataRow {
        let bytes = meta_data.to_bytes().expect("valid meta-data");
        MetaDataRow::decode(&bytes[..]).expect("the message of the meta-data")
    }

    /// Makes the unique index one that is not. A builder would say that it was changed.
    pub(super) fn drop_uniqueness(&mut self) {
        let options = self.indexes.iter_mut().flat_map(|index| &mut index.options);
        let is_unique = |option: &&mut OptionRow| option.key.as_deref() == Some("unique");
        options.filter(is_unique).for_each(|option| option.value = Some("none".into()));
    }

    /// Breaks a rule, in meta-data that says that it is of the next version. `types` are the record types.
    fn spoil(&mut self, wrong: Wrong, types: &[&str]) -> Option<()> {
        let version = self.version?;
        let option = |key: &str, value: &str| OptionRow { key: Some(key.into()), value: Some(value.into()) };
        match wrong {
            Wrong::IndexRenamed => self.indexes.first_mut()?.name = Some("another name".into()),
            Wrong::AddedLater => {
                let index = self.indexes.first_mut()?;
                index.added_version = Some(version);
                index.last_modified_version = Some(version);
            }
            Wrong::ModifiedBefore => {
                let modified = |index: &&mut IndexRow| index.last_modified_version < Some(version - 1);
                let index = self.indexes.iter_mut().find(modified)?;
                index.last_modified_version = Some(version - 1);
            }
            Wrong::IndexKind => {
                let index = self.of_kind(index_types::COUNT)?;
                index.kind = Some(index_types::COUNT_UPDATES.into());
            }
            Wrong::IndexUnique => {
                let index = self.of_kind(index_types::VALUE).filter(|index| index.options.is_empty())?;
                index.options.push(option("unique", "true"));
            }
            Wrong::IndexOptions => {
                let index = self.of_kind(index_types::RANK)?;
                index.options = match index.options.is_empty() {
                    true => vec![option("rankCountDuplicates", "true")],
                    false => Vec::new(),
                };
            }
            Wrong::TypeTaken => {
                // An index that names no type is of all.
                let is_of_all = |index: &&mut IndexRow| index.record_types.is_empty();
                let index = self.indexes.iter_mut().find(is_of_all).filter(|_| types.len() > 1)?;
                index.record_types.push(types[0].to_owned());
            }
            Wrong::TypeGiven => {
                let types: Vec<_> =
                    self.indexes.iter().flat_map(|index| index.record_types.clone()).collect();
                let is_less = |index: &IndexRow, name: &String| {
                    !index.record_types.is_empty() && !index.record_types.contains(name)
                };
                let index =
                    self.indexes.iter_mut().find(|index| types.iter().any(|name| is_less(index, name)))?;
                let name = types.into_iter().find(|name| is_less(index, name))?;
                index.record_types.push(name);
            }
            Wrong::NewIndexOlder => {
                let mut index = self.indexes.first()?.clone();
                index.name = Some("a new one".into());
                index.subspace_key = Some(self.next_number()?);
                index.added_version = Some(version - 1);
                index.last_modified_version = Some(version);
                self.indexes.push(index);
            }
            Wrong::FormerDropped => drop(self.former_indexes.pop()?),
            Wrong::FormerChanged => {
                self.former_indexes.first_mut()?.name = Some("another name".into());
            }
            Wrong::FormerOfOther => {
                let mut former = self.remove_index(version)?;
                former.added_version = former.added_version.map(|added| added + 1);
                self.former_indexes.push(former);
            }
            Wrong::RemovedBefore => {
                let former = self.remove_index(version - 1)?;
                self.former_indexes.push(former);
            }
            Wrong::FormerUnknown => {
                let subspace_key = Some(self.next_number()?);
                let (added, removed) = (Some(version - 1), Some(version));
                let name = Some("unknown".into());
                self.former_indexes.push(FormerIndexRow {
                    name,
                    subspace_key,
                    added_version: added,
                    removed_version: removed,
                });
            }
            _ => return None,
        }
        Some(())
    }

    fn of_kind(&mut self, kind: &str) -> Option<&mut IndexRow> {
        self.indexes.iter_mut().find(|index| index.kind.as_deref() == Some(kind))
    }

    /// The number of an index that is new.
    fn next_number(&mut self) -> Option<Vec<u8>> {
        let number = self.subspace_key_counter? + 1;
        self.subspace_key_counter = Some(number);
        Some(foundationdb_tuple::pack(&(number,)))
    }

    /// What remains of the first index.
    fn remove_index(&mut self, removed: i32) -> Option<FormerIndexRow> {
        let first = self.indexes.first_mut().map(mem::take)?;
        self.indexes.remove(0);
        Some(FormerIndexRow {
            name: first.name,
            subspace_key: first.subspace_key,
            removed_version: Some(removed),
            added_version: first.added_version,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::chain::{CHAINS, chain},
        *,
    };
    use std::collections::BTreeMap;

    #[test]
    fn what_is_wrong_breaks_the_rule_that_it_names() {
        let mut why: BTreeMap<String, usize> = BTreeMap::new();
        for link in (0..CHAINS).step_by(4).flat_map(|number| chain(number).to_vec()) {
            assert_eq!(
                MetaDataRow::of(&link.meta_data).encode_to_vec(),
                link.meta_data.to_bytes().expect("valid meta-data")
            );
            for wrong in Wrong::ALL.iter().copied() {
                let refused = link.wrong(wrong).validate_evolution(&link.meta_data);
                let Err(refused) = refused else { panic!("{wrong:?} {:?}", link.shape) };
                let refused = format!("{refused:?}");
                let rule = refused.split([' ', '(']).next().unwrap_or_default().to_owned();
                *why.entry(format!("{wrong:?} {rule}")).or_default() += 1;
            }
        }
        for rule in [
            "Narrowed FieldType",
            "FieldRenamed FieldRenamed",
            "FieldDropped FieldDropped",
            "FieldType FieldType",
            "FieldSingle FieldLabel",
            "FieldRepeated FieldLabel",
            "FieldRequired RequiredField",
            "EnumValueDropped EnumValueDropped",
            "Undeprecated FieldUndeprecated",
            "OtherDefault FieldDefault",
            "PrimaryKey PrimaryKey",
            "TypeKey RecordTypeKey",
            "SinceVersion SinceVersion",
            "NewTypeOlder NewRecordType",
            "VersionsDropped RecordVersionsDropped",
            "IndexRenamed IndexRenamed",
            "AddedLater AddedVersion",
            "ModifiedBefore ModifiedVersion",
            "IndexKind IndexChanged",
            "IndexUnique IndexChanged",
            "IndexOptions IndexChanged",
            "TypeTaken IndexChanged",
            "TypeGiven IndexChanged",
            "NewIndexOlder NewIndex",
            "FormerDropped FormerIndexDropped",
            "FormerChanged FormerIndexChanged",
            "FormerOfOther FormerIndexChanged",
            "RemovedBefore FormerIndexVersion",
            "FormerUnknown FormerIndexVersion",
        ] {
            assert!(why.get(rule).is_some_and(|count| *count > 5), "{rule}: {why:#?}");
        }
    }
}
