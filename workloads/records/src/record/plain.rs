//! The records of the workload as plain data, and the messages as which they are stored.

use prost::Message;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The numbers of the colors.
pub(super) const COLORS: [i32; 3] = [0, 7, 300];
/// A part of an item.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Message, Serialize, Deserialize)]
pub struct Part {
    /// Its kind.
    #[prost(string, optional, tag = "1")]
    pub kind: Option<String>,
    /// Its size.
    #[prost(int32, optional, tag = "2")]
    pub size: Option<i32>,
}

/// An item as it is stored.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ItemRow {
    #[prost(string, optional, tag = "1")]
    shelf: Option<String>,
    #[prost(int64, optional, tag = "2")]
    id: Option<i64>,
    #[prost(string, optional, tag = "3")]
    sku: Option<String>,
    #[prost(string, optional, tag = "4")]
    owner: Option<String>,
    #[prost(int32, optional, tag = "5")]
    slot: Option<i32>,
    #[prost(string, repeated, tag = "6")]
    tags: Vec<String>,
    #[prost(message, repeated, tag = "7")]
    parts: Vec<Part>,
    #[prost(int64, optional, tag = "8")]
    rank: Option<i64>,
    #[prost(bytes = "vec", optional, tag = "9")]
    body: Option<Vec<u8>>,
    /// Has the slot, for an index of the fields of a message that may be absent.
    #[prost(message, optional, tag = "10")]
    seat: Option<Part>,
}

/// A note as it is stored.
#[derive(Clone, PartialEq, Message)]
pub(super) struct NoteRow {
    #[prost(string, optional, tag = "1")]
    shelf: Option<String>,
    #[prost(int64, optional, tag = "2")]
    id: Option<i64>,
    #[prost(string, optional, tag = "3")]
    sku: Option<String>,
    #[prost(int32, optional, tag = "4")]
    rank: Option<i32>,
    #[prost(bool, optional, tag = "5")]
    flag: Option<bool>,
    #[prost(int32, optional, tag = "6")]
    color: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "7")]
    code: Option<Vec<u8>>,
    #[prost(string, repeated, tag = "8")]
    tags: Vec<String>,
    #[prost(bytes = "vec", optional, tag = "9")]
    body: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct UnionRow {
    #[prost(message, optional, tag = "1")]
    item: Option<ItemRow>,
    #[prost(message, optional, tag = "2")]
    note: Option<NoteRow>,
}

/// Where a record is stored: its shelf and its number. Records of both types share these keys, unless the
/// primary key begins with the type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The shelf.
    pub shelf: String,
    /// The number on the shelf.
    pub id: i64,
}

/// A body of equal bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// The byte.
    pub byte: u8,
    /// How many there are.
    pub length: usize,
}

impl Body {
    fn bytes(&self) -> Vec<u8> {
        vec![self.byte; self.length]
    }

    fn of(bytes: &[u8]) -> Option<Body> {
        let body = Body { byte: bytes.first().copied().unwrap_or_default(), length: bytes.len() };
        (body.bytes() == bytes).then_some(body)
    }
}

/// A record. The fields that both types have come first.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Where it is stored.
    pub place: Place,
    /// Unique among all records.
    pub sku: Option<String>,
    /// Any number of words, each of which it can be found by.
    pub tags: Vec<String>,
    /// What is summed up.
    pub rank: Option<i64>,
    /// What fills a record.
    pub body: Option<Body>,
    /// The fields of its type.
    pub fields: Fields,
}

/// The fields that only one type of records has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fields {
    /// Of an item.
    Item {
        /// With the slot, unique among items.
        owner: Option<String>,
        /// With the owner, unique among items, also if there is none.
        slot: Option<i32>,
        /// Messages within the record.
        parts: Vec<Part>,
    },
    /// Of a note.
    Note {
        /// True or false.
        flag: Option<bool>,
        /// An enumeration's number.
        color: Option<i32>,
        /// Bytes.
        code: Option<Vec<u8>>,
    },
}

/// In short: long texts are cut.
impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sku = self.sku.as_ref().map(|sku| (sku.len(), sku.chars().take(12).collect::<String>()));
        let tags: Vec<_> = self.tags.iter().map(|tag| (tag.len(), tag.get(..8).unwrap_or(tag))).collect();
        write!(
            f,
            "{:?} sku {sku:?} tags {tags:?} rank {:?} body {:?} {:?}",
            self.place, self.rank, self.body, self.fields
        )
    }
}

impl Record {
    /// The name of its type.
    pub fn type_name(&self) -> &'static str {
        match self.fields {
            Fields::Item { .. } => "Item",
            Fields::Note { .. } => "Note",
        }
    }

    /// The number of its field in the union.
    pub(super) fn type_key(&self) -> i64 {
        match self.fields {
            Fields::Item { .. } => 1,
            Fields::Note { .. } => 2,
        }
    }

    /// The union message with this record, as it is stored.
    pub(super) fn stored(&self) -> Vec<u8> {
        let mut union = UnionRow::default();
        match &self.fields {
            Fields::Item { .. } => union.item = Some(self.item()),
            Fields::Note { .. } => union.note = Some(self.note()),
        }
        union.encode_to_vec()
    }

    /// The record in a union message, if it is exactly that record's.
    pub(super) fn of_stored(bytes: &[u8]) -> Option<Record> {
        let record = match UnionRow::decode(bytes).ok()? {
            UnionRow { item: Some(item), note: None } => Record::of_item(item)?,
            UnionRow { item: None, note: Some(note) } => Record::of_note(note)?,
            _ => return None,
        };
        (record.stored() == bytes).then_some(record)
    }

    /// This record with a body that makes its stored bytes that many.
    pub(super) fn sized(mut self, bytes: usize) -> Record {
        self.body = Some(Body { byte: b's', length: bytes });
        let over = self.stored().len() - bytes;
        self.body = Some(Body { byte: b's', length: bytes - over });
        self
    }

    /// The message of an item.
    pub(super) fn item(&self) -> ItemRow {
        let mut row = ItemRow {
            shelf: Some(self.place.shelf.clone()),
            id: Some(self.place.id),
            sku: self.sku.clone(),
            tags: self.tags.clone(),
            rank: self.rank,
            body: self.body.as_ref().map(Body::bytes),
            ..ItemRow::default()
        };
        if let Fields::Item { owner, slot, parts } = &self.fields {
            (row.owner, row.slot, row.parts) = (owner.clone(), *slot, parts.clone());
            row.seat = slot.map(|slot| Part { kind: None, size: Some(slot) });
        }
        row
    }

    /// The message of a note. A rank is one of 32 bits.
    pub(super) fn note(&self) -> NoteRow {
        let mut row = NoteRow {
            shelf: Some(self.place.shelf.clone()),
            id: Some(self.place.id),
            sku: self.sku.clone(),
            tags: self.tags.clone(),
            rank: self.rank.map(|rank| rank as i32),
            body: self.body.as_ref().map(Body::bytes),
            ..NoteRow::default()
        };
        if let Fields::Note { flag, color, code } = &self.fields {
            (row.flag, row.color, row.code) = (*flag, *color, code.clone());
        }
        row
    }

    pub(super) fn of_item(row: ItemRow) -> Option<Record> {
        Some(Record {
            place: Place { shelf: row.shelf?, id: row.id? },
            sku: row.sku,
            tags: row.tags,
            rank: row.rank,
            body: row.body.map_or(Some(None), |body| Body::of(&body).map(Some))?,
            fields: Fields::Item { owner: row.owner, slot: row.slot, parts: row.parts },
        })
    }

    pub(super) fn of_note(row: NoteRow) -> Option<Record> {
        Some(Record {
            place: Place { shelf: row.shelf?, id: row.id? },
            sku: row.sku,
            tags: row.tags,
            rank: row.rank.map(i64::from),
            body: row.body.map_or(Some(None), |body| Body::of(&body).map(Some))?,
            fields: Fields::Note { flag: row.flag, color: row.color, code: row.code },
        })
    }
}
