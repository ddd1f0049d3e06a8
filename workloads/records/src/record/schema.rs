//! The meta-data of the records, for the layer.

use super::{
    indexes::{Definition, Kind, definitions},
    plain::{Place, Record},
};
use crate::record_shared::meta_data::{self, set_primary_key};
use foundationdb_tuple::{Element, pack};
use parking_lot::Mutex;
use prost_reflect::FileDescriptor;
use serde::{Deserialize, Serialize};
use shaketable_record::{
    expression::{KeyExpression, NullStandin, concat, field, literal},
    index::aggregate::CLEAR_WHEN_ZERO,
    metadata::{Index, RecordMetaData, RecordMetaDataBuilder, index_types},
    value::Tuple,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

/// The records as a `.proto` file.
const RECORDS: &str = r#"
syntax = "proto2";
enum Color { RED = 0; GREEN = 7; BLUE = 300; }
message Part { optional string kind = 1; optional int32 size = 2; }
message Item {
    optional string shelf = 1;
    optional int64 id = 2;
    optional string sku = 3;
    optional string owner = 4;
    optional int32 slot = 5;
    repeated string tags = 6;
    repeated Part parts = 7;
    optional int64 rank = 8;
    optional bytes body = 9;
    optional Part seat = 10;
}
message Note {
    optional string shelf = 1;
    optional int64 id = 2;
    optional string sku = 3;
    optional int32 rank = 4;
    optional bool flag = 5;
    optional Color color = 6;
    optional bytes code = 7;
    repeated string tags = 8;
    optional bytes body = 9;
}
message RecordTypeUnion { optional Item _Item = 1; optional Note _Note = 2; }
"#;

/// The type of the index that the workload maintains itself.
pub(super) const BACKWARDS: &str = "backwards";

/// What distinguishes the meta-data of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Schema {
    /// Whether the primary key begins with the record's type, so that the types do not share their keys.
    pub(super) typed: bool,
    /// With how many columns of the primary key the keys of all indexes begin: records can be deleted by as
    /// many.
    pub(super) prefix: usize,
    /// Whether records have versions.
    pub(super) versions: bool,
    /// Whether a record may take several rows.
    pub(super) splits: bool,
    /// Whether there are indexes. Without them records can be deleted by any columns.
    pub(super) indexed: bool,
    /// A mistake in the meta-data, or in the maintainers of indexes.
    pub(super) mistake: Option<Mistake>,
}

/// What is planted in the meta-data, or in the maintainers of indexes, by the name of the bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    /// The primary key begins with a constant instead of the record's type.
    ConstantType,
    /// A slot that is absent is like an owner that is absent.
    NullNotUnique,
    /// A slot in a message that is absent is like an owner that is absent.
    AbsentNotUnique,
    /// An absent slot is indexed as null.
    NullForDefault,
    /// The words of a record are one key.
    ListForFanOut,
    /// Each word of a record is a key, where all of them should be one.
    FanOutForList,
    /// The option is missing with which groups without records are cleared.
    ZeroKept,
    /// An index of updates is one of counts.
    CountForUpdates,
    /// The maintainer of an index of the greatest value sets the last one.
    LastForMax,
    /// The application's own maintainer ignores deletions.
    OwnNotDeleted,
}

impl Schema {
    /// The columns of a record's primary key.
    pub(super) fn primary_key(&self, record: &Record) -> Vec<Element<'static>> {
        self.key_of(record.type_key(), &record.place)
    }

    /// The columns of the primary key of a record of this type.
    pub(super) fn key_of(&self, type_key: i64, place: &Place) -> Vec<Element<'static>> {
        let place = [Element::String(place.shelf.clone().into()), Element::Int(place.id)];
        let typed = self.typed.then_some(Element::Int(type_key));
        typed.into_iter().chain(place).collect()
    }

    /// The meta-data, and the later one: one index is removed, another one is added.
    pub(super) fn meta_data(&self) -> [Arc<RecordMetaData>; 2] {
        static BUILT: Mutex<BTreeMap<Schema, [Arc<RecordMetaData>; 2]>> = Mutex::new(BTreeMap::new());
        BUILT.lock().entry(*self).or_insert_with(|| self.build()).clone()
    }

    /// The version of the meta-data, or of the later one.
    pub(super) fn version(&self, later: bool) -> i32 {
        self.meta_data()[usize::from(later)].version()
    }

    fn build(&self) -> [Arc<RecordMetaData>; 2] {
        static FILE: LazyLock<FileDescriptor> = LazyLock::new(|| meta_data::file(RECORDS));
        let mut builder = meta_data::builder(&FILE);
        builder.set_split_long_records(self.splits).expect("a version");
        builder.set_store_record_versions(self.versions).expect("a version");
        builder.register_index_type(BACKWARDS);
        set_primary_key(&mut builder, &["Item", "Note"], concat(self.primary_key_columns()));
        let all = definitions(self);
        all.iter().filter(|index| !index.is_later).for_each(|index| self.add(&mut builder, index));
        let first = builder.build().expect("the meta-data is valid");
        let mut builder = first.to_builder();
        for index in all.iter().filter(|index| index.is_removed) {
            builder.remove_index(index.name).expect("the index was added");
        }
        all.iter().filter(|index| index.is_later).for_each(|index| self.add(&mut builder, index));
        let later = builder.build().expect("the meta-data is valid");
        [first, later].map(|built| meta_data::stored(&built))
    }

    fn primary_key_columns(&self) -> Vec<KeyExpression> {
        let record_type = match self.mistake {
            Some(Mistake::ConstantType) => literal(1i64),
            _ => KeyExpression::RecordType,
        };
        let typed = self.typed.then_some(record_type);
        typed.into_iter().chain(["shelf".into(), "id".into()]).collect()
    }

    fn add(&self, builder: &mut RecordMetaDataBuilder, definition: &Definition) {
        let prefix = concat(self.primary_key_columns().into_iter().take(self.prefix));
        let own = self.expression(definition.name);
        let grouped = match definition.kind {
            Kind::Count | Kind::CountUpdates => Some(0),
            Kind::Rank | Kind::Sum | Kind::MinEver | Kind::MaxEver => Some(1),
            _ => None,
        };
        let whole = concat([prefix, own]);
        let expression = match grouped {
            Some(grouped) => whole.group_last(grouped),
            None => whole,
        };
        let mut index = Index::new(definition.name, expression).kind(match definition.kind {
            Kind::Value => index_types::VALUE,
            Kind::Version => index_types::VERSION,
            Kind::Rank => index_types::RANK,
            Kind::Count => index_types::COUNT,
            Kind::CountUpdates if self.mistake == Some(Mistake::CountForUpdates) => index_types::COUNT,
            Kind::CountUpdates => index_types::COUNT_UPDATES,
            Kind::Sum => index_types::SUM,
            Kind::MinEver => index_types::MIN_EVER,
            Kind::MaxEver => index_types::MAX_EVER,
            Kind::Backwards => BACKWARDS,
        });
        index.unique = definition.unique;
        if definition.clears_zero && self.mistake != Some(Mistake::ZeroKept) {
            index = index.option(CLEAR_WHEN_ZERO, "true");
        }
        let added = match definition.types {
            ["Item", "Note"] if definition.is_universal => builder.add_index(None, index),
            types => builder.add_multi_type_index(types.iter().copied(), index),
        };
        added.expect("the index is valid");
    }

    /// The expression of an index, without the columns of the primary key with which it begins.
    fn expression(&self, name: &str) -> KeyExpression {
        let nested = concat(["kind", "size"]);
        let slot_is_null = match self.mistake {
            Some(Mistake::NullNotUnique | Mistake::AbsentNotUnique) => NullStandin::Null,
            _ => NullStandin::NullUnique,
        };
        match name {
            // Null as the message is that it is in.
            "owner_slot" if self.typed => {
                let slot = field("seat").null(slot_is_null).nest(field("size").not_null());
                concat([field("owner").into(), slot])
            }
            "owner_slot" => concat([field("owner"), field("slot").null(slot_is_null)]),
            "tags" if self.mistake == Some(Mistake::ListForFanOut) => field("tags").concatenate().into(),
            "tags" | "tag_count" => field("tags").fan_out().into(),
            "parts" => field("parts").fan_out().nest(nested),
            "tag_list" if self.mistake == Some(Mistake::FanOutForList) => field("tags").fan_out().into(),
            "tag_list" => field("tags").concatenate().into(),
            "code" => concat(["code", "flag", "color"]),
            "slot" if self.mistake == Some(Mistake::NullForDefault) => field("slot").into(),
            "slot" => field("slot").not_null().into(),
            "updates" => field("color").into(),
            "id_max" => field("id").into(),
            "rank_sum" | "rank_min" | "rank_max" | "rank" | "ranking" => field("rank").into(),
            "version" => KeyExpression::Version,
            _ => field("sku").into(),
        }
    }
}

/// A tuple of the layer with these elements.
pub(super) fn tuple(elements: &[Element<'static>]) -> Tuple {
    elements.iter().cloned().collect()
}

/// The packed elements.
pub(super) fn packed(elements: &[Element<'static>]) -> Vec<u8> {
    pack(&elements.to_vec())
}
