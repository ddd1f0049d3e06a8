//! What operations are given and what they return, as plain data, and how it is drawn.

use super::{
    RecordBuild,
    layout::{DAMAGED, RANK, UNIQUE, definitions},
    plain::{Record, parts},
};
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};

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

/// An entry of an index that is changed behind the layer's back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    pub(super) index: usize,
    pub(super) id: i64,
    /// Whether the entry is removed, or else added.
    pub(super) removes: bool,
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

    /// Draws one of several calls.
    pub(super) fn act(&self) -> BoxedStrategy<Act> {
        let act = prop_oneof![
            12 => self.record().prop_map(Act::Save),
            6 => (0..self.records).prop_map(Act::Delete),
            1 => Just(Act::DeleteAll),
            1 => Just(Act::DeleteWhere),
        ];
        act.boxed()
    }

    /// Draws which entry is damaged, and how.
    pub(super) fn some_damage(&self) -> BoxedStrategy<Damage> {
        let drawn = (damaged(), 0..self.records, any::<bool>());
        let damage = |(index, id, removes)| match index {
            // What an entry adds to a ranked set is not written behind the layer's back.
            RANK => Damage { index, id, removes: true },
            // A save is not refused for the sake of an entry that is gone.
            UNIQUE => Damage { index, id, removes: false },
            _ => Damage { index, id, removes },
        };
        drawn.prop_map(damage).boxed()
    }
}

/// Draws the state that an index gets.
pub(super) fn mark() -> impl Strategy<Value = Mark> {
    prop_oneof![2 => Just(Mark::Disabled), 1 => Just(Mark::WriteOnly), 1 => Just(Mark::Readable)]
}

/// Draws the index that is scrubbed: often one of those most of which entries are damaged.
pub(super) fn some_index() -> impl Strategy<Value = usize> {
    prop_oneof![3 => damaged(), 2 => 0..definitions().len()]
}

/// Draws an index whose entries are damaged.
fn damaged() -> impl Strategy<Value = usize> {
    prop_oneof![2 => select(DAMAGED.to_vec()), 1 => Just(RANK), 2 => Just(UNIQUE)]
}
