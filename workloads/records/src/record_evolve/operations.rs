//! The operations of the workload and their answers as plain data, and how they are drawn.

use super::{Record, RecordEvolve, wrong::Wrong};
use crate::record_build::plain::parts;
use proptest::{collection::vec, prelude::*, sample::select};
use serde::{Deserialize, Serialize};

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Uses the store with the meta-data that the client has, in one transaction.
    Use(Vec<Act>),
    /// Uses the store with the meta-data that the same transaction loads.
    UseLatest(Vec<Act>),
    /// Replaces the meta-data that is saved by its next version.
    Evolve,
    /// Saves the meta-data that the client has.
    SaveOwn,
    /// Tries to save meta-data that cannot follow what is saved.
    SaveWrong(Wrong),
    /// Loads the meta-data that is saved; the client has it from then on.
    Refresh,
    /// Builds the indexes of the client's meta-data in batches of this many records. The builder dies when it
    /// was polled this many times.
    Build(usize, Option<u64>),
}

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
    /// Draws the operations of a client.
    pub(super) fn drawn(&self) -> BoxedStrategy<Vec<Op>> {
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
        let acts = vec(act, 0..4).boxed();
        let polls = proptest::option::weighted(0.4, 1..80u64);
        let [uses, changes, builds] = self.mix;
        let op = prop_oneof![
            8 * uses => acts.clone().prop_map(Op::Use),
            2 * uses => acts.prop_map(Op::UseLatest),
            3 * changes => Just(Op::Evolve),
            changes => Just(Op::SaveOwn),
            changes => select(Wrong::ALL.to_vec()).prop_map(Op::SaveWrong),
            changes => Just(Op::Refresh),
            3 * builds => (1..=self.batch, polls).prop_map(|(batch, polls)| Op::Build(batch, polls)),
        ];
        vec(op, self.operations.clone()).boxed()
    }
}
