//! Records and indexes as plain data: what is stored for a record, and what an index should have for it,
//! computed without the layer's expressions.

use crate::record_shared::meta_data;
use foundationdb_tuple::{Element, Versionstamp, pack};
use parking_lot::Mutex;
use proptest::strategy::Strategy;
use prost::Message;
use serde::{Deserialize, Serialize};
use shaketable_record::{
    expression::{KeyExpression, concat, field},
    index::rank::COUNT_DUPLICATES,
    metadata::{self, RecordMetaDataBuilder, index_types},
    prost_reflect::FileDescriptor,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    slice,
};

/// The record types, in the order of their fields in the union, which are numbered from 1. In other
/// [shapes](Shape) they have other names.
pub(crate) const TYPES: [&str; 3] = ["Item", "Note", "Memo"];

/// The fields of a record beside its number, all of them optional.
pub(crate) const FIELDS: [&str; 4] = ["shelf", "tag", "code", "score"];

/// The place of the field that may say that it has an index.
pub(crate) const INLINE: usize = 1;

/// The field with a list, which comes with the last one of the others.
const LIST: &str = "parts";

/// A record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its type: the number of its field in the union.
    pub(crate) of: u32,
    /// Its primary key.
    pub(crate) id: i64,
    /// The values of its fields.
    pub(crate) fields: [Option<i64>; 4],
    /// Its list, which messages with all fields have.
    pub(crate) parts: Vec<i64>,
}

/// The list of a record: some values more than once.
pub(crate) fn parts() -> impl Strategy<Value = Vec<i64>> + use<> {
    proptest::collection::vec(0..4i64, 0..4)
}

/// The message of a record. All types have the same fields.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Row {
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
    #[prost(int64, repeated, packed = "false", tag = "6")]
    parts: Vec<i64>,
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
    /// Its message.
    pub(crate) fn row(&self) -> Row {
        let [shelf, tag, code, score] = self.fields;
        Row { id: Some(self.id), shelf, tag, code, score, parts: self.parts.clone() }
    }

    /// The record of the type with this name that has this message, where the types have these names.
    pub(crate) fn of_row(names: &[&str], type_name: &str, row: &Row) -> Option<Record> {
        let of = names.iter().position(|name| *name == type_name)? as u32 + 1;
        Some(row.record(of, row.id?))
    }

    /// The record in a stored union message, if it is exactly that record's.
    pub(crate) fn of_stored(bytes: &[u8]) -> Option<Record> {
        let union = Union::decode(bytes).ok()?;
        let (of, row) = match union.clone() {
            Union { item: Some(row), note: None, memo: None } => (1, row),
            Union { item: None, note: Some(row), memo: None } => (2, row),
            Union { item: None, note: None, memo: Some(row) } => (3, row),
            _ => return None,
        };
        (union.encode_to_vec() == bytes).then_some(row.record(of, row.id?))
    }
}

impl Row {
    fn record(&self, of: u32, id: i64) -> Record {
        let fields = [self.shelf, self.tag, self.code, self.score];
        Record { of, id, fields, parts: self.parts.clone() }
    }
}

/// A record with its version, if it has one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    pub record: Record,
    pub version: Option<[u8; 12]>,
}

/// A column of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Column {
    /// The field with this place in the list of fields.
    Field(usize),
    /// Each value of the list: the record has a key for each of them.
    Part,
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
    pub(crate) name: String,
    /// Under which its rows are stored.
    pub(crate) number: i64,
    /// How it keeps its keys.
    pub(crate) kind: Kind,
    /// Its columns.
    pub(crate) columns: Vec<Column>,
    /// The numbers of the record types that it is on; all if there are none.
    pub(crate) types: Vec<u32>,
}

impl Definition {
    /// The index for the layer's meta-data.
    pub(crate) fn index(&self) -> metadata::Index {
        let column = |column: &Column| match column {
            Column::Field(place) => field(FIELDS[*place]).into(),
            Column::Part => field(LIST).fan_out().into(),
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

    /// Adds the index to meta-data in which the types have these names.
    pub(crate) fn add(&self, builder: &mut RecordMetaDataBuilder, names: &[&str]) {
        let names = self.types.iter().map(|of| names[*of as usize - 1]);
        let added = match self.types.is_empty() {
            true => builder.add_index(None, self.index()),
            false => builder.add_multi_type_index(names, self.index()),
        };
        added.expect("the index is valid");
    }

    /// Whether its rows are entries of records, rather than of groups.
    pub(crate) fn has_entries(&self) -> bool {
        !matches!(self.kind, Kind::Count | Kind::Sum)
    }

    /// Whether it may have a record's entry before a build has come to the record.
    pub(crate) fn is_idempotent(&self) -> bool {
        !matches!(self.kind, Kind::Count | Kind::Sum | Kind::Rank(true))
    }

    /// The keys of a record; none if the index is not on records of its type.
    fn keys(&self, kept: &Kept) -> Vec<Vec<Element<'static>>> {
        if !self.types.is_empty() && !self.types.contains(&kept.record.of) {
            return Vec::new();
        }
        self.columns.iter().fold(vec![Vec::new()], |keys, column| {
            let values = column.values(kept);
            let longer = |key: &Vec<_>, value: &Element<'static>| [&key[..], slice::from_ref(value)].concat();
            keys.iter().flat_map(|key| values.iter().map(move |value| longer(key, value))).collect()
        })
    }

    /// The rows of a record's entries below the index's subspace. Equal keys of a record are one entry.
    pub(crate) fn entries(&self, kept: &Kept) -> BTreeSet<Vec<u8>> {
        let row = |mut key: Vec<Element<'static>>| {
            key.push(Element::Int(kept.record.id));
            pack(&key)
        };
        self.keys(kept).into_iter().map(row).collect()
    }

    /// What a record adds to which groups of an index of aggregates, by the groups' packed columns.
    pub(crate) fn contributions(&self, kept: &Kept) -> Vec<(Vec<u8>, i64)> {
        let contribution = |mut group: Vec<Element<'static>>| match self.kind {
            Kind::Sum => match group.pop()? {
                Element::Int(number) => Some((pack(&group), number)),
                _ => None,
            },
            _ => Some((pack(&group), 1)),
        };
        self.keys(kept).into_iter().filter_map(contribution).collect()
    }
}

impl Column {
    /// The elements that a record has in this column.
    fn values(self, kept: &Kept) -> Vec<Element<'static>> {
        let stamp = |version| Element::Versionstamp(Versionstamp::from(version));
        match self {
            Column::Field(place) => vec![kept.record.fields[place].map_or(Element::Nil, Element::Int)],
            Column::Part => kept.record.parts.iter().copied().map(Element::Int).collect(),
            Column::Version => vec![kept.version.map_or(Element::Nil, stamp)],
        }
    }
}

/// The packed primary key of a record.
pub(crate) fn primary_key(id: i64) -> Vec<u8> {
    pack(&(id,))
}

/// How often the message that is in all records can be changed: see [`Shape::widened`].
pub(crate) const WIDEST: usize = 4;

/// What the messages of records are like.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape {
    /// The names of the types, by their numbers from 1 on.
    pub names: Vec<&'static str>,
    /// The number of fields beside the primary key.
    pub fields: usize,
    /// The numbers of the types whose field [`INLINE`] says that it has an index.
    pub indexed: BTreeSet<u32>,
    /// How often the message that is in all of them was changed as it may be; at most [`WIDEST`].
    pub widened: usize,
}

impl Shape {
    /// The first types, with their first fields.
    pub(crate) fn first(types: usize, fields: usize) -> Shape {
        Shape { names: TYPES[..types].to_vec(), fields, indexed: BTreeSet::new(), widened: 0 }
    }

    /// The file that describes the records.
    pub(crate) fn file(&self) -> FileDescriptor {
        static FILES: Mutex<BTreeMap<Shape, FileDescriptor>> = Mutex::new(BTreeMap::new());
        FILES.lock().entry(self.clone()).or_insert_with(|| meta_data::file(&self.text())).clone()
    }

    /// The same file, in whose text one thing takes the place of another, where that is first.
    pub(crate) fn edited_file(&self, from: &str, to: &str) -> FileDescriptor {
        let text = self.text();
        let at = text.find(from).expect("the text has it");
        meta_data::file(&[&text[..at], to, &text[at + from.len()..]].concat())
    }

    /// The text of the file. No record has anything in `extra`: how it changes is what matters.
    fn text(&self) -> String {
        let key = "optional int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true];";
        let messages = (1..).zip(&self.names).map(|(of, name)| {
            let field = |place| self.field(of, place);
            let list = (self.fields == FIELDS.len()).then(|| format!("repeated int64 {LIST} = 6;"));
            let fields: String = (0..self.fields).map(field).chain(list).collect();
            format!("message {name} {{ {key} {fields} optional Extra extra = 7; }}")
        });
        let member = |(of, name): (usize, &&str)| format!("optional {name} _{name} = {of};");
        let members: String = (1..).zip(&self.names).map(member).collect();
        let messages: String = messages.collect();
        let (count, more, values, past) = match self.widened {
            0 => ("int32", "", "", ""),
            1 => ("int64", "", "", ""),
            2 => ("int64", "optional bytes more = 6;", "", ""),
            3 => ("int64", "optional bytes more = 6;", "HUGE = 2;", ""),
            _ => ("int64", "optional bytes more = 6;", "HUGE = 2;", ", deprecated = true"),
        };
        format!(
            "syntax = \"proto2\"; import \"record_metadata_options.proto\"; {messages}
            option (com.apple.foundationdb.record.schema).store_record_versions = true;
            enum Size {{ SMALL = 0; LARGE = 1; {values} }}
            message Extra {{
                optional Size size = 1;
                optional Extra inner = 2;
                optional int64 old = 4 [deprecated = true];
                optional {count} count = 3 [default = 4{past}];
                repeated string notes = 5;
                {more}
            }}
            message RecordTypeUnion {{ {members} }}"
        )
    }

    /// The field with this place, of the type with this number.
    fn field(&self, of: u32, place: usize) -> String {
        let option = match place == INLINE && self.indexed.contains(&of) {
            true => " [(com.apple.foundationdb.record.field).index = {}]",
            false => "",
        };
        format!("optional int64 {} = {}{option};", FIELDS[place], place + 2)
    }

    /// Meta-data of these records, and of these indexes.
    pub(crate) fn meta_data(&self, definitions: &[Definition]) -> RecordMetaDataBuilder {
        let mut builder = meta_data::builder(&self.file());
        definitions.iter().for_each(|definition| definition.add(&mut builder, &self.names));
        builder
    }
}
