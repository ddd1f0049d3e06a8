//! The indexes of the workload, and what they should contain, computed from plain records.

use super::{
    plain::{Fields, Record},
    schema::{Schema, packed},
};
use foundationdb_tuple::{Element, Versionstamp};
use shaketable_record::index::aggregate::Aggregate;
use std::collections::BTreeMap;

/// How an index keeps its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An entry for each key.
    Value,
    /// An entry by the record's version.
    Version,
    /// An entry for each key, and a ranked set for each group.
    Rank,
    /// The number of keys in a group.
    Count,
    /// The number of saves in a group.
    CountUpdates,
    /// The sum of a group.
    Sum,
    /// The least value that a group ever had.
    MinEver,
    /// The greatest one.
    MaxEver,
    /// An entry for each text, with its letters in reverse order: the workload's own.
    Backwards,
}

/// One index.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub name: &'static str,
    /// Under which its entries are stored: its place in the order in which indexes are added.
    pub number: i64,
    pub kind: Kind,
    pub types: &'static [&'static str],
    /// Whether it is added for all types, instead of for each of them.
    pub is_universal: bool,
    pub unique: bool,
    pub clears_zero: bool,
    /// Whether the later meta-data adds it.
    pub is_later: bool,
    /// Whether the later meta-data removes it.
    pub is_removed: bool,
}

const BOTH: &[&str] = &["Item", "Note"];
const ITEM: &[&str] = &["Item"];
const NOTE: &[&str] = &["Note"];

/// All indexes, by their numbers.
pub(super) fn definitions(schema: &Schema) -> Vec<Definition> {
    let index = |name, kind, types| Definition {
        name,
        number: 0,
        kind,
        types,
        is_universal: false,
        unique: false,
        clears_zero: false,
        is_later: false,
        is_removed: false,
    };
    let universal = |name, kind| Definition { is_universal: true, ..index(name, kind, BOTH) };
    let mut all = vec![
        Definition { unique: true, ..index("sku", Kind::Value, BOTH) },
        Definition { unique: true, ..index("owner_slot", Kind::Value, ITEM) },
        universal("tags", Kind::Value),
        index("parts", Kind::Value, ITEM),
        index("tag_list", Kind::Value, ITEM),
        index("code", Kind::Value, NOTE),
        Definition { is_removed: true, ..index("slot", Kind::Value, ITEM) },
        Definition { clears_zero: true, ..universal("tag_count", Kind::Count) },
        universal("rank_sum", Kind::Sum),
        index("updates", Kind::CountUpdates, NOTE),
        index("rank_min", Kind::MinEver, ITEM),
        universal("rank_max", Kind::MaxEver),
        universal("id_max", Kind::MaxEver),
        index("backwards", Kind::Backwards, BOTH),
        universal("ranking", Kind::Rank),
    ];
    if schema.versions {
        all.push(universal("version", Kind::Version));
    }
    all.push(Definition { is_later: true, ..universal("rank", Kind::Value) });
    (1..).zip(&mut all).for_each(|(number, index)| index.number = number);
    all.retain(|_| schema.indexed);
    all
}

/// One key of a record in an index.
#[derive(Clone, Debug)]
pub(super) struct Key {
    /// Its columns.
    pub columns: Vec<Element<'static>>,
    /// Whether a unique index allows it once only: no column is a null that may be there more than once.
    pub is_compared: bool,
}

fn text(text: &str) -> Element<'static> {
    Element::String(text.to_owned().into())
}

fn or_null(value: Option<Element<'static>>) -> Element<'static> {
    value.unwrap_or(Element::Nil)
}

impl Definition {
    /// Whether it is an index of entries, rather than of groups.
    pub fn has_entries(&self) -> bool {
        matches!(self.kind, Kind::Value | Kind::Version | Kind::Rank | Kind::Backwards)
    }

    /// What it computes, if it is one of aggregates.
    pub fn aggregate(&self) -> Option<Aggregate> {
        Some(match self.kind {
            Kind::Count => Aggregate::Count,
            Kind::CountUpdates => Aggregate::CountUpdates,
            Kind::Sum => Aggregate::Sum,
            Kind::MinEver => Aggregate::MinEver,
            Kind::MaxEver => Aggregate::MaxEver,
            _ => return None,
        })
    }

    /// How many of the columns are aggregated.
    pub fn grouped(&self) -> usize {
        usize::from(matches!(self.kind, Kind::Rank | Kind::Sum | Kind::MinEver | Kind::MaxEver))
    }

    /// The keys of a record, in the order in which they are evaluated. One key may be there more than once.
    pub fn keys(&self, schema: &Schema, record: &Record, version: Option<&[u8; 12]>) -> Vec<Key> {
        if !self.types.contains(&record.type_name()) {
            return Vec::new();
        }
        let prefix = || schema.primary_key(record).into_iter().take(schema.prefix);
        let key = |(columns, is_compared): (Vec<_>, bool)| Key {
            columns: prefix().chain(columns).collect(),
            is_compared,
        };
        self.own_keys(record, version).into_iter().map(key).collect()
    }

    fn own_keys(&self, record: &Record, version: Option<&[u8; 12]>) -> Vec<(Vec<Element<'static>>, bool)> {
        let one = |value: Option<Element<'static>>| {
            let is_present = value.is_some();
            vec![(vec![or_null(value)], is_present)]
        };
        let sku = record.sku.as_deref();
        match (self.name, &record.fields) {
            ("sku", _) => one(sku.map(text)),
            ("backwards", _) => {
                let reversed = sku.map(|sku| text(&sku.chars().rev().collect::<String>()));
                reversed.map(|reversed| (vec![reversed], true)).into_iter().collect()
            }
            ("owner_slot", Fields::Item { owner, slot, .. }) => {
                let slot = or_null(slot.map(|slot| Element::Int(slot.into())));
                vec![(vec![or_null(owner.as_deref().map(text)), slot], owner.is_some())]
            }
            ("tags" | "tag_count", _) => record.tags.iter().map(|tag| (vec![text(tag)], true)).collect(),
            ("parts", Fields::Item { parts, .. }) => parts
                .iter()
                .map(|part| {
                    let size = or_null(part.size.map(|size| Element::Int(size.into())));
                    (vec![or_null(part.kind.as_deref().map(text)), size], true)
                })
                .collect(),
            ("tag_list", _) => {
                let tags: Vec<_> = record.tags.iter().map(|tag| text(tag)).collect();
                one((!tags.is_empty()).then_some(Element::Tuple(tags)))
            }
            ("code", Fields::Note { flag, color, code }) => {
                let code = or_null(code.clone().map(|code| Element::Bytes(code.into())));
                let color = or_null(color.map(|color| Element::Int(color.into())));
                vec![(vec![code, or_null(flag.map(Element::Bool)), color], true)]
            }
            ("slot", Fields::Item { slot, .. }) => one(Some(Element::Int(slot.unwrap_or(0).into()))),
            ("updates", Fields::Note { color, .. }) => one(color.map(|color| Element::Int(color.into()))),
            ("rank_sum" | "rank_min" | "rank_max" | "rank" | "ranking", _) => {
                one(record.rank.map(Element::Int))
            }
            ("id_max", _) => one(Some(Element::Int(record.place.id))),
            ("version", _) => one(version.map(|version| Element::Versionstamp(Versionstamp::from(*version)))),
            _ => Vec::new(),
        }
    }

    /// The rows of the entries of a record below the index's subspace, each with its columns, without those
    /// that the primary key adds.
    pub fn entries(
        &self,
        schema: &Schema,
        record: &Record,
        version: Option<&[u8; 12]>,
    ) -> BTreeMap<Vec<u8>, Key> {
        let primary_key = schema.primary_key(record);
        let row = |key: Key| (packed(&[&key.columns[..], &primary_key].concat()), key);
        self.keys(schema, record, version).into_iter().map(row).collect()
    }

    /// What a record contributes to the groups of an index of aggregates, by their packed columns.
    pub fn contributions(&self, schema: &Schema, record: &Record) -> BTreeMap<Vec<u8>, Contribution> {
        let mut groups: BTreeMap<Vec<u8>, Contribution> = BTreeMap::new();
        for key in self.keys(schema, record, None) {
            let (group, grouped) = key.columns.split_at(key.columns.len() - self.grouped());
            let one = match (self.kind, grouped) {
                (_, [Element::Nil]) => continue,
                (Kind::Sum, [Element::Int(number)]) => Contribution::Number(*number),
                (Kind::MinEver | Kind::MaxEver, value) => Contribution::Value(packed(value)),
                _ => Contribution::Number(1),
            };
            let group = groups.entry(packed(group));
            group.and_modify(|sum| sum.add(&one)).or_insert(one);
        }
        groups
    }
}

/// What a record contributes to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Contribution {
    /// A summand.
    Number(i64),
    /// A packed value, of which the least or the greatest is kept. A record has one.
    Value(Vec<u8>),
}

impl Contribution {
    fn add(&mut self, other: &Contribution) {
        if let (Contribution::Number(sum), Contribution::Number(number)) = (self, other) {
            *sum = sum.wrapping_add(*number);
        }
    }
}
