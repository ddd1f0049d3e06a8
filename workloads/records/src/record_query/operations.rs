//! What operations are given and what they return, as plain data, and how it is drawn.

use super::Queries;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable_record::cursor::Limits;

/// A change of an index's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// It is disabled.
    Disable,
    /// It is empty, and written from now on.
    Write,
    /// It is built, with this number of records at a time, and readable.
    Build(usize),
}

/// How the pages of a query are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pages {
    /// In which transactions.
    pub way: Way,
    /// What ends a page.
    pub size: Size,
    /// The pause before each page but the first, in milliseconds.
    pub pause: u64,
}

/// In which transactions pages are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// All in one.
    Together,
    /// Each in one of its own, at one read version.
    Pinned,
    /// Each in one of its own, which sees what was written meanwhile.
    Moving,
}

/// What ends a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Size {
    /// This number of rows.
    Rows(usize),
    /// This number of entries and records that are read.
    Scanned(usize),
    /// This number of bytes that are read, or of rows.
    Bytes(usize, usize),
}

impl Size {
    /// As limits of a cursor.
    pub fn limits(self) -> Limits {
        match self {
            Size::Rows(rows) => Limits::rows(rows),
            Size::Scanned(scanned) => Limits { scanned: Some(scanned), ..Limits::default() },
            Size::Bytes(bytes, rows) => Limits { rows: Some(rows), bytes: Some(bytes), ..Limits::default() },
        }
    }
}

/// A row of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The record's number.
    pub id: i64,
    /// Whether it was made of an entry.
    pub partial: bool,
    /// A hash of the columns that were asked for, and, if it is whole, of the record and its version.
    pub content: u64,
}

/// A page of rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The read version.
    pub version: i64,
    /// The rows.
    pub rows: Vec<Row>,
    /// Whether it has as many rows as it may have, and nothing else limits it.
    pub full: bool,
}

/// How the reading of pages ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// All rows were read.
    Complete,
    /// The read version has become too old.
    TooOld,
    /// An index of the plan is no longer readable.
    Changed,
}

/// What a plan has, as far as it matters to its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// It removes duplicates, which it does within one continuation.
    pub distinct: bool,
    /// It merges scans, each of which has a position of its own.
    pub merged: bool,
    /// It leaves out records after they were found.
    pub filtered: bool,
}

/// What a query has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The read version of `rows` and of `scan`.
    pub version: i64,
    /// The plan, for the reader of a failure.
    pub plan: String,
    /// What the plan has.
    pub shape: Shape,
    /// The rows of the plan.
    pub rows: Vec<Row>,
    /// The rows of the query without its order, planned as if all indexes were disabled; `None` if that
    /// cannot be planned, because the query compares with ranks.
    pub scan: Option<Vec<Row>>,
    /// The rows of the plan in pages.
    pub pages: Vec<Page>,
    /// How the pages ended.
    pub end: End,
}

/// What an operation returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Whether each of the records existed before.
    Were(Vec<bool>),
    /// The state that the index has now.
    State(String),
    /// At this read version no index had the order or the rank that the query asks for.
    NoIndex(i64, String),
    /// What was found.
    Found(Box<Found>),
}

impl Queries {
    /// Draws how pages are read.
    pub(super) fn pages(&self) -> BoxedStrategy<Pages> {
        let size = prop_oneof![
            4 => (1..4usize).prop_map(Size::Rows),
            1 => (1..6usize).prop_map(Size::Scanned),
            1 => (1..5usize, 1..5usize).prop_map(|(bytes, rows)| Size::Bytes(64 * bytes, rows)),
        ];
        let way = prop_oneof![Just(Way::Together), Just(Way::Pinned), Just(Way::Moving)];
        let pause = prop_oneof![2 => Just(0), 1 => Just(self.pause)];
        (way, size, pause).prop_map(|(way, size, pause)| Pages { way, size, pause }).boxed()
    }
}

impl Change {
    /// Draws a change.
    pub(super) fn drawn() -> impl Strategy<Value = Change> {
        let build = prop_oneof![Just(Change::Build(2)), Just(Change::Build(100))];
        prop_oneof![1 => Just(Change::Disable), 1 => Just(Change::Write), 4 => build]
    }
}
