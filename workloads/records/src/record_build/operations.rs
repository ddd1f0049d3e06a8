//! The operations of the workload and their answers as plain data, and how they are drawn.

use super::{
    RecordBuild,
    layout::{DAMAGED, RANK, UNIQUE, definitions},
    plain::{Record, parts},
};
use proptest::{
    collection::vec,
    prelude::*,
    sample::{select, subsequence},
};
use serde::{Deserialize, Serialize};

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Saves and deletes in one transaction.
    Write(Vec<Act>),
    /// Builds indexes in batches of this many records until they are readable. The builder dies when it was
    /// polled this many times.
    Build(Vec<usize>, usize, Option<u64>),
    /// Does one batch of a build.
    Batch(Vec<usize>, usize, u64),
    /// Sets the state of an index.
    Mark(usize, Mark),
    /// Scrubs an index.
    Scrub(Scrubbing),
    /// Removes the entry of a record from an index, or adds an entry that its record does not have.
    Damage(usize, i64, bool),
}

/// One of several calls in a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Saves a record.
    Save(Record),
    /// Deletes a record.
    Delete(i64),
    /// Deletes all records.
    DeleteAll,
    /// Deletes the records whose primary keys begin with no column at all: every one, index by index.
    DeleteWhere,
}

/// A state that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mark {
    /// Not written.
    Disabled,
    /// Written, and to be built.
    WriteOnly,
    /// Readable, if it is complete.
    Readable,
}

/// A scrub of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scrubbing {
    pub(super) index: usize,
    /// Whether it looks for entries without records, instead of records without entries.
    pub(super) dangling: bool,
    pub(super) repair: bool,
    pub(super) limit: usize,
}

/// What an operation returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Whether each call found a record; a save has always done something.
    Wrote(Vec<bool>),
    /// Refused, because another record has the key of this one in the unique index.
    Taken(i64),
    /// The state of each index now.
    States(Vec<i64>),
    /// Refused: an index is not complete.
    Incomplete,
    /// The builder has died.
    Died,
    /// The index could not be scrubbed in its state.
    Unscrubbed,
    /// Nothing that the model checks.
    Done,
}

impl RecordBuild {
    /// A record.
    fn record(&self) -> impl Strategy<Value = Record> + use<> {
        let value = |most: i64| proptest::option::weighted(0.85, 0..most);
        let fields = [value(2), value(self.values), value(self.codes), value(self.values)];
        (1..=2u32, 0..self.records, fields, parts()).prop_map(|(of, id, fields, parts)| Record {
            of,
            id,
            fields,
            parts,
        })
    }

    /// Draws the operations of a client.
    pub(super) fn drawn(&self) -> BoxedStrategy<Vec<Op>> {
        let places: Vec<usize> = (0..definitions().len()).collect();
        let some = || subsequence(places.clone(), 1..=places.len());
        let place = || 0..definitions().len();
        let [writes, builds, marks, scrubs] = self.mix;
        let act = prop_oneof![
            12 => self.record().prop_map(Act::Save),
            6 => (0..self.records).prop_map(Act::Delete),
            1 => Just(Act::DeleteAll),
            1 => Just(Act::DeleteWhere),
        ];
        let mark = prop_oneof![
            2 => Just(Mark::Disabled),
            1 => Just(Mark::WriteOnly),
            1 => Just(Mark::Readable),
        ];
        // Those are scrubbed most of which entries are damaged.
        let damaged = || prop_oneof![2 => select(DAMAGED.to_vec()), 1 => Just(RANK), 2 => Just(UNIQUE)];
        let scrubbed = prop_oneof![3 => damaged(), 2 => place()];
        let repairs = proptest::bool::weighted(0.8);
        let scrubbing = (scrubbed, any::<bool>(), repairs, 1..9usize)
            .prop_map(|(index, dangling, repair, limit)| Scrubbing { index, dangling, repair, limit });
        let batch = 1..=self.batch;
        let polls = proptest::option::weighted(0.5, 1..80u64);
        let damages = u32::from(self.damages);
        let damage =
            (damaged(), 0..self.records, any::<bool>()).prop_map(|(index, id, removes)| match index {
                // What an entry adds to a ranked set is not written behind the layer's back.
                RANK => Op::Damage(index, id, true),
                // A save is not refused for the sake of an entry that is gone.
                UNIQUE => Op::Damage(index, id, false),
                _ => Op::Damage(index, id, removes),
            });
        let op = prop_oneof![
            8 * writes => vec(act, 1..4).prop_map(Op::Write),
            2 * builds => (some(), batch.clone(), polls).prop_map(|(of, batch, polls)| Op::Build(of, batch, polls)),
            3 * builds => (some(), batch, any::<u64>()).prop_map(|(of, batch, n)| Op::Batch(of, batch, n % 64)),
            2 * marks => (place(), mark).prop_map(|(index, mark)| Op::Mark(index, mark)),
            scrubs * (1 + 4 * damages) => scrubbing.prop_map(Op::Scrub),
            10 * damages => damage,
        ];
        vec(op, self.operations.clone()).boxed()
    }
}
