//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::{
    Records,
    indexes::{Definition, definitions},
    plain::{Body, COLORS, Of, Part, Place, Record},
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{real::key_room, strategies};
use shaketable_record::store::RecordExistenceCheck;
use shaketable_sim::trace::hash_bytes;
use std::fmt::Debug;

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Saves a record, with what is required of the record that has its primary key.
    Save(Box<Record>, Check),
    /// Saves a record with a version of the client's own, made of this number.
    SaveAs(Box<Record>, u8),
    /// Deletes the record of this type at a place; the type counts only if primary keys begin with it.
    Delete(Target),
    /// Deletes the records whose primary keys begin with this many columns of a target's, or, with one more
    /// than these are, none.
    DeleteWhere(Target, usize),
    /// Deletes all records.
    DeleteAll,
    /// Loads a record, at snapshot if true.
    Load(Target, bool),
    /// Whether there is a record, at snapshot if true.
    Exists(Target, bool),
    /// Loads the version of a record.
    Version(Target),
    /// Lists the records in a range.
    Scan(Span<Target>),
    /// Lists the entries or groups of an index in a range.
    ScanIndex(String, Span<Box<Record>>),
    /// Evaluates what an index aggregates, over the groups that begin with this many columns of a record's:
    /// of the records of the index's types, or, if true, of those of the record's type.
    Aggregate(String, Box<Record>, usize, bool),
    /// The states of all indexes.
    States,
    /// Disables an index.
    Disable(String),
    /// Opens the store with the later meta-data, which everybody has to use from then on.
    Upgrade,
}

/// A record's type, by its key, and its place.
pub type Target = (i64, Place);

/// What a save requires of the record that has the primary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Check {
    /// Nothing.
    Any,
    /// There is none: an insert.
    Absent,
    /// There is one.
    Present,
    /// If there is one, it is of the same type.
    SameType,
    /// There is one of the same type: an update.
    Update,
}

impl Check {
    pub(super) fn existence(self) -> RecordExistenceCheck {
        match self {
            Check::Any => RecordExistenceCheck::None,
            Check::Absent => RecordExistenceCheck::MustNotExist,
            Check::Present => RecordExistenceCheck::MustExist,
            Check::SameType => RecordExistenceCheck::SameType,
            Check::Update => RecordExistenceCheck::MustExistWithSameType,
        }
    }
}

/// A range, and how it is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span<L> {
    /// Where it begins.
    pub low: End<L>,
    /// Where it ends.
    pub high: End<L>,
    /// Whether it is read from its end.
    pub reverse: bool,
    /// How much one call reads; the following ones continue it.
    pub paging: Paging,
}

/// One end of a range: this many columns of the key of something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End<L> {
    /// No end.
    Open,
    /// Keys that begin with these columns are in the range.
    Inclusive(L, usize),
    /// Keys that begin with these columns are not in the range.
    Exclusive(L, usize),
}

/// How much one call of a scan reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Paging {
    /// Everything.
    All,
    /// That many rows are returned.
    Rows(usize),
    /// That many rows are read.
    Scanned(usize),
    /// About that many bytes are read.
    Bytes(usize),
    /// It reads for that many microseconds.
    Micros(u64),
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The record that was saved or loaded.
    Record(Option<Told>),
    /// Whether there was a record.
    Found(bool),
    /// The version of a record.
    Version(Option<[u8; 12]>),
    /// What was listed.
    Listed(Listed),
    /// The packed value of an aggregate.
    Aggregate(Option<Vec<u8>>),
    /// It is done.
    Done,
    /// The versions of the meta-data and of the application with which the store was opened before.
    Opened(Option<(i32, Option<i32>)>),
}

/// A record as answers contain it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Its primary key, packed.
    pub primary_key: Vec<u8>,
    /// Its type.
    pub of: String,
    /// A hash of the record.
    pub hash: u64,
    /// Its version; the first ten bytes are `0xff` in the transaction that writes it.
    pub version: Option<[u8; 12]>,
    /// How many rows it has, and the bytes of their keys and values.
    pub size: (usize, usize, usize),
}

/// A list of any length, as an answer that fits into a session's slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    count: usize,
    hash: u64,
    start: Vec<String>,
}

/// A list as an answer.
pub(super) fn listed<I: Debug>(items: impl IntoIterator<Item = I>) -> Answer {
    let mut list = Listed { count: 0, hash: 0, start: Vec::new() };
    for item in items {
        let item = format!("{item:?}");
        list.count += 1;
        list.hash = hash_bytes(list.hash, item.as_bytes());
        if list.start.len() < 3 {
            list.start.push(item.chars().take(200).collect());
        }
    }
    Answer::Listed(list)
}

/// A hash of a record.
pub(super) fn hash(record: &Record) -> u64 {
    hash_bytes(0, &record.stored())
}

impl Op {
    /// Whether it never writes.
    pub(super) fn is_read_only(&self) -> bool {
        use Op::*;
        matches!(self, Load(..) | Exists(..) | Version(_) | Scan(_) | ScanIndex(..) | Aggregate(..) | States)
    }
}

fn end<L: Clone + Debug + 'static>(like: BoxedStrategy<L>) -> BoxedStrategy<End<L>> {
    prop_oneof![
        2 => Just(End::Open),
        3 => (like.clone(), 0..5usize).prop_map(|(like, columns)| End::Inclusive(like, columns)),
        3 => (like, 0..5usize).prop_map(|(like, columns)| End::Exclusive(like, columns)),
    ]
    .boxed()
}

fn span<L: Clone + Debug + 'static>(like: BoxedStrategy<L>) -> BoxedStrategy<Span<L>> {
    let paging = prop_oneof![
        3 => Just(Paging::All),
        2 => (1..4usize).prop_map(Paging::Rows),
        2 => (1..4usize).prop_map(Paging::Scanned),
        1 => (1..300usize).prop_map(Paging::Bytes),
        1 => (0..3_000u64).prop_map(Paging::Micros),
    ];
    (end(like.clone()), end(like), any::<bool>(), paging)
        .prop_map(|(low, high, reverse, paging)| Span { low, high, reverse, paging })
        .boxed()
}

impl Records {
    fn text(&self, most: usize) -> BoxedStrategy<String> {
        let texts = &strategies::CONFUSED_TEXT[..most.min(strategies::CONFUSED_TEXT.len())];
        select(texts.to_vec()).prop_map(str::to_owned).boxed()
    }

    fn place(&self) -> BoxedStrategy<Place> {
        let ids = [-1, 0, 1, 255, 256, i64::MAX][..self.ids].to_vec();
        (self.text(self.shelves), select(ids)).prop_map(|(shelf, id)| Place { shelf, id }).boxed()
    }

    /// Draws a record.
    pub(super) fn record(&self) -> BoxedStrategy<Record> {
        let item = (
            option::weighted(0.7, self.text(2)),
            option::weighted(0.5, select(vec![0, 1, 300])),
            vec(
                (option::of(self.text(2)), option::of(select(vec![0, -1, 256])))
                    .prop_map(|(kind, size)| Part { kind, size }),
                0..3,
            ),
        );
        let code = select(strategies::CONFUSED[..4].to_vec()).prop_map(<[u8]>::to_vec);
        let note = (option::of(any::<bool>()), option::of(select(COLORS.to_vec())), option::of(code));
        let of = prop_oneof![
            item.prop_map(|(owner, slot, parts)| Of::Item { owner, slot, parts }),
            note.prop_map(|(flag, color, code)| Of::Note { flag, color, code }),
        ];
        let rank = select(vec![-256, -1, 0, 1, 5, 65_536]);
        let common = (
            self.place(),
            option::weighted(0.6, self.text(self.skus)),
            vec(self.text(3), 0..4),
            option::weighted(0.8, rank),
        );
        let large = self.large;
        (common, of, 0..100u8)
            .prop_map(move |((place, sku, tags, rank), of, odd)| {
                let record = Record { place, sku, tags, rank, body: None, of };
                let body = |length| Some(Body { byte: odd, length });
                match odd {
                    0..2 => Record { sku: Some("k".repeat(9_970 - key_room())), ..record },
                    2..5 => Record { sku: Some("k".repeat(10_000)), ..record },
                    5..7 => Record { tags: vec!["t".repeat(10_000)], ..record },
                    7..14 if large => Record { body: body(250_000), ..record },
                    14..16 if large => record.sized(100_000),
                    16..18 if large => record.sized(100_001),
                    18..25 => Record { body: Some(Body { byte: 0, length: 0 }), ..record },
                    25..50 => Record { body: body(usize::from(odd)), ..record },
                    _ => record,
                }
            })
            .boxed()
    }

    /// The calls about an index, with their weights.
    fn of_indexes(&self, record: BoxedStrategy<Box<Record>>) -> [(u32, BoxedStrategy<Op>); 3] {
        let [.., scan] = self.mix;
        let names = |is: fn(&Definition) -> bool| {
            let all = definitions(&self.schema).into_iter().filter(is);
            select(all.map(|index| index.name.to_owned()).collect::<Vec<_>>())
        };
        let all = || names(|_| true);
        let finds = (all(), span(record.clone())).prop_map(|(index, span)| Op::ScanIndex(index, span));
        let sums = (names(|index| index.aggregate().is_some()), record, 0..5usize, any::<bool>())
            .prop_map(|(index, like, columns, of_one)| Op::Aggregate(index, like, columns, of_one));
        [
            (4 * scan, finds.boxed()),
            (2 * scan, sums.boxed()),
            (2 * u32::from(self.disables), all().prop_map(Op::Disable).boxed()),
        ]
    }

    /// Draws one call.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let record = self.record().prop_map(Box::new).boxed();
        let target = (1..3i64, self.place()).boxed();
        let check = prop_oneof![
            6 => Just(Check::Any),
            self.inserts => Just(Check::Absent),
            1 => Just(Check::Present),
            1 => Just(Check::SameType),
            3 => Just(Check::Update),
        ];
        let [write, remove, read, scan] = self.mix;
        let snapshot = any::<bool>;
        let own = if self.schema.versions { write } else { 0 };
        let upgrade = u32::from(self.upgrades);
        let saves = (record.clone(), check).prop_map(|(record, check)| Op::Save(record, check));
        let saves_as = (record.clone(), any::<u8>()).prop_map(|(record, own)| Op::SaveAs(record, own));
        let loads = (target.clone(), snapshot()).prop_map(|(target, at)| Op::Load(target, at));
        let exists = (target.clone(), snapshot()).prop_map(|(target, at)| Op::Exists(target, at));
        let wheres =
            (target.clone(), 0..5usize).prop_map(|(target, columns)| Op::DeleteWhere(target, columns));
        let mut calls = vec![
            (16 * write, saves.boxed()),
            (own, saves_as.boxed()),
            (6 * remove, target.clone().prop_map(Op::Delete).boxed()),
            (remove, wheres.boxed()),
            (if self.wipes { 3 * remove } else { 1 }, Just(Op::DeleteAll).boxed()),
            (2 * read, loads.boxed()),
            (read, exists.boxed()),
            (read, target.clone().prop_map(Op::Version).boxed()),
            (1, Just(Op::States).boxed()),
            (2 * scan, span(target).prop_map(Op::Scan).boxed()),
            (4 * upgrade, Just(Op::Upgrade).boxed()),
        ];
        if self.schema.indexed {
            calls.extend(self.of_indexes(record));
        }
        calls.retain(|(weight, _)| *weight > 0);
        proptest::strategy::Union::new_weighted(calls).boxed()
    }
}
