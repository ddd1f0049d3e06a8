//! Records and indexes as plain data: what is stored for a record, and what an index should have for it, computed
//! without the layer's expressions.

use crate::catalogue::record_shared::meta_data;
use foundationdb_tuple::{Element, Versionstamp, pack};
use parking_lot::Mutex;
use prost::Message;
use serde::{Deserialize, Serialize};
use shaketable_record::{
    expression::{KeyExpression, concat, field},
    index::rank::COUNT_DUPLICATES,
    metadata::{self, RecordMetaDataBuilder, index_types},
    prost_reflect::FileDescriptor,
};
use std::collections::BTreeMap;

/// The record types, in the order of their fields in the union, which are numbered from 1.
pub(in crate::catalogue) const TYPES: [&str; 3] = ["Item", "Note", "Memo"];

/// The fields of a record beside its number, all of them optional.
pub(in crate::catalogue) const FIELDS: [&str; 4] = ["shelf", "tag", "code", "score"];

/// A record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its type: the number of its field in the union.
    pub(in crate::catalogue) of: u32,
    /// Its primary key.
    pub(in crate::catalogue) id: i64,
    /// The values of its fields.
    pub(in crate::catalogue) fields: [Option<i64>; 4],
}

/// The message of a record. All types have the same fields.
#[derive(Clone, PartialEq, Message)]
pub(in crate::catalogue) struct Row {
    #[prost(int64, optional, tag = "1")]
    id: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    shelf: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    tag: Option<i64>,
    #[prost(int64, optional, tag = "4")]
    code: Option<i64>,
    #[prost(int64, optional, tag = "5")]
    score: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Union {
    #[prost(message, optional, tag = "1")]
    item: Option<Row>,
    #[prost(message, optional, tag = "2")]
    note: Option<Row>,
    #[prost(message, optional, tag = "3")]
    memo: Option<Row>,
}

impl Record {
    /// The name of its type.
    pub(in crate::catalogue) fn type_name(&self) -> &'static str {
        TYPES[self.of as usize - 1]
    }

    /// Its message.
    pub(in crate::catalogue) fn row(&self) -> Row {
        let [shelf, tag, code, score] = self.fields;
        Row { id: Some(self.id), shelf, tag, code, score }
    }

    /// The record of the type with this name that has this message. Both are of the workload.
    pub(in crate::catalogue) fn of_row(type_name: &str, row: &Row) -> Option<Record> {
        let of = TYPES.iter().position(|name| *name == type_name)? as u32 + 1;
        Some(Record { of, id: row.id?, fields: [row.shelf, row.tag, row.code, row.score] })
    }

    /// The record in a stored union message, if it is exactly that record's.
    pub(in crate::catalogue) fn of_stored(bytes: &[u8]) -> Option<Record> {
        let union = Union::decode(bytes).ok()?;
        let (of, row) = match union.clone() {
            Union { item: Some(row), note: None, memo: None } => (1, row),
            Union { item: None, note: Some(row), memo: None } => (2, row),
            Union { item: None, note: None, memo: Some(row) } => (3, row),
            _ => return None,
        };
        let fields = [row.shelf, row.tag, row.code, row.score];
        (union.encode_to_vec() == bytes).then_some(Record { of, id: row.id?, fields })
    }
}

/// A record with its version, if it has one.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::catalogue) struct Kept {
    pub record: Record,
    pub version: Option<[u8; 12]>,
}

/// A column of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Column {
    /// The field with this place in the list of fields.
    Field(usize),
    /// The record's version.
    Version,
}

/// How an index keeps its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// An entry for each record.
    Value,
    /// Also, two records may not have the same key.
    Unique,
    /// The number of records in each group.
    Count,
    /// The sum of the last column in each group.
    Sum,
    /// Also, the ranks of the last column in each group; whether equal scores count separately.
    Rank(bool),
    /// An entry by the record's version.
    Version,
}

/// An index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// Its name.
    pub(in crate::catalogue) name: String,
    /// Under which its rows are stored.
    pub(in crate::catalogue) number: i64,
    /// How it keeps its keys.
    pub(in crate::catalogue) kind: Kind,
    /// Its columns.
    pub(in crate::catalogue) columns: Vec<Column>,
    /// The numbers of the record types that it is on; all if there are none.
    pub(in crate::catalogue) types: Vec<u32>,
}

impl Definition {
    /// The index for the layer's meta-data.
    pub(in crate::catalogue) fn index(&self) -> metadata::Index {
        let column = |column: &Column| match column {
            Column::Field(place) => field(FIELDS[*place]).into(),
            Column::Version => KeyExpression::Version,
        };
        let expression = concat(self.columns.iter().map(column));
        let (kind, expression) = match self.kind {
            Kind::Value | Kind::Unique => (index_types::VALUE, expression),
            Kind::Count => (index_types::COUNT, expression.group_last(0)),
            Kind::Sum => (index_types::SUM, expression.group_last(1)),
            Kind::Rank(_) => (index_types::RANK, expression.group_last(1)),
            Kind::Version => (index_types::VERSION, expression),
        };
        let index = metadata::Index::new(&*self.name, expression).kind(kind);
        match self.kind {
            Kind::Unique => index.unique(),
            Kind::Rank(true) => index.option(COUNT_DUPLICATES, "true"),
            _ => index,
        }
    }

    /// Adds the index to meta-data.
    pub(in crate::catalogue) fn add(&self, builder: &mut RecordMetaDataBuilder) {
        let names = self.types.iter().map(|of| TYPES[*of as usize - 1]);
        let added = match self.types.is_empty() {
            true => builder.add_index(None, self.index()),
            false => builder.add_multi_type_index(names, self.index()),
        };
        added.expect("the index is valid");
    }

    /// Whether its rows are entries of records, rather than of groups.
    pub(in crate::catalogue) fn has_entries(&self) -> bool {
        !matches!(self.kind, Kind::Count | Kind::Sum)
    }

    /// Whether it may have a record's entry before a build has come to the record.
    pub(in crate::catalogue) fn is_idempotent(&self) -> bool {
        !matches!(self.kind, Kind::Count | Kind::Sum | Kind::Rank(true))
    }

    /// The key of a record; none if the index is not on records of its type.
    pub(in crate::catalogue) fn key(&self, kept: &Kept) -> Option<Vec<Element<'static>>> {
        if !self.types.is_empty() && !self.types.contains(&kept.record.of) {
            return None;
        }
        let column = |column: &Column| match column {
            Column::Field(place) => kept.record.fields[*place].map(Element::Int),
            Column::Version => kept.version.map(|version| Element::Versionstamp(Versionstamp::from(version))),
        };
        Some(self.columns.iter().map(|of| column(of).unwrap_or(Element::Nil)).collect())
    }

    /// The row of a record's entry below the index's subspace.
    pub(in crate::catalogue) fn entry(&self, kept: &Kept) -> Option<Vec<u8>> {
        let mut entry = self.key(kept)?;
        entry.push(Element::Int(kept.record.id));
        Some(pack(&entry))
    }

    /// What a record adds to which group of an index of aggregates, by the group's packed columns.
    pub(in crate::catalogue) fn contribution(&self, kept: &Kept) -> Option<(Vec<u8>, i64)> {
        let mut group = self.key(kept)?;
        match self.kind {
            Kind::Sum => match group.pop()? {
                Element::Int(number) => Some((pack(&group), number)),
                _ => None,
            },
            _ => Some((pack(&group), 1)),
        }
    }
}

/// The packed primary key of a record.
pub(in crate::catalogue) fn primary_key(id: i64) -> Vec<u8> {
    pack(&(id,))
}

/// The file that describes the first record types, with their first fields.
pub(in crate::catalogue) fn file(types: usize, fields: usize) -> FileDescriptor {
    static FILES: Mutex<BTreeMap<(usize, usize), FileDescriptor>> = Mutex::new(BTreeMap::new());
    FILES.lock().entry((types, fields)).or_insert_with(|| compiled(types, fields, "int64")).clone()
}

/// The same file, with a last field of fewer bits.
pub(in crate::catalogue) fn narrowed_file(types: usize, fields: usize) -> FileDescriptor {
    compiled(types, fields, "int32")
}

fn compiled(types: usize, fields: usize, last: &str) -> FileDescriptor {
    let field = |(place, name): (usize, &&str)| {
        let kind = if place + 1 == fields { last } else { "int64" };
        format!("optional {kind} {name} = {};", place + 2)
    };
    let fields: String = FIELDS.iter().take(fields).enumerate().map(field).collect();
    let key = "optional int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true];";
    let message = |name: &&str| format!("message {name} {{ {key} {fields} }}");
    let member = |(place, name): (usize, &&str)| format!("optional {name} _{name} = {};", place + 1);
    let messages: String = TYPES.iter().take(types).map(message).collect();
    let members: String = TYPES.iter().take(types).enumerate().map(member).collect();
    let text = format!(
        "syntax = \"proto2\"; import \"record_metadata_options.proto\"; {messages}
        message RecordTypeUnion {{ {members} }}"
    );
    meta_data::file(&text)
}

/// Meta-data of the first record types, with their first fields, and of these indexes.
pub(in crate::catalogue) fn meta_data(
    types: usize,
    fields: usize,
    definitions: &[Definition],
) -> RecordMetaDataBuilder {
    let mut builder = meta_data::builder(&file(types, fields));
    builder.set_store_record_versions(true).expect("a version");
    definitions.iter().for_each(|definition| definition.add(&mut builder));
    builder
}
