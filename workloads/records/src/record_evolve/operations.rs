//! What operations are given and what they return, as plain data, and how it is drawn.

use super::{Record, RecordEvolve};
use crate::record_build::plain::parts;
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};

/// One of several calls in a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Saves a record, without what the client's meta-data does not have.
    Save(Record),
    /// Deletes a record.
    Delete(i64),
    /// Loads a record.
    Load(i64),
    /// Reads all records.
    Scan,
}

/// What a call returned. Versions of the meta-data are given by their places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActAnswer {
    /// The version with which the store was opened.
    With(usize),
    /// It was saved.
    Saved,
    /// Whether there was a record to delete.
    Deleted(bool),
    /// The record, if there is one.
    Loaded(Option<Record>),
    /// The numbers of all records.
    Scanned(Vec<i64>),
    /// The version that is saved.
    Latest(usize),
    /// The version that the client has, and whether it could be saved.
    Own(usize, bool),
}

/// What an operation returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// What each call returned.
    Told(Vec<ActAnswer>),
    /// Refused: the store was opened with later meta-data than the client's, which has this version.
    Stale(usize),
    /// Refused: another record has the key of this one in a unique index.
    Taken(i64),
    /// The indexes were built.
    Built,
    /// An index could not be finished.
    Incomplete,
    /// The builder has died.
    Died,
}

impl RecordEvolve {
    /// Draws the calls of a transaction.
    pub(super) fn acts(&self) -> BoxedStrategy<Vec<Act>> {
        let value = |most: i64| proptest::option::weighted(0.85, 0..most);
        let fields = [value(2), value(self.values), value(self.codes), value(self.values)];
        let record = (1..=3u32, 0..self.records, fields, parts())
            .prop_map(|(of, id, fields, parts)| Record { of, id, fields, parts });
        let act = prop_oneof![
            8 => record.prop_map(Act::Save),
            3 => (0..self.records).prop_map(Act::Delete),
            2 => (0..self.records).prop_map(Act::Load),
            1 => Just(Act::Scan),
        ];
        vec(act, 0..4).boxed()
    }
}
