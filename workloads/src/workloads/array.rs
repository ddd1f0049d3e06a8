//! `array`: cells of a sparse matrix are set, cleared and read, alone and by the row.
//!
//! Few cells, so that clients meet; indexes on both sides of where the tuple layer needs another byte;
//! values from nothing to a few kilobytes; and now and then an index that no array has.

use crate::{
    sabotage::array as sabotage,
    specimen::{
        At, Content, DEFERRED, KEPT_VERSION, NOT_AWAITED, REMEMBERED, RISKY_READ, Specimen, UNRECORDED,
        UNWRITTEN,
    },
    workload::Bug,
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable_layers::{
    array::{self, Error},
    tx::{self, Env, Isolation::Serializable, Transaction},
};
use shaketable_sim::seed::Stream;
use std::collections::BTreeMap;

flaws! {
    Unrecorded = UNRECORDED, "a set is retried after an unknown result without an operation record", "a blind write done twice";
    Unwritten = UNWRITTEN, "a set is acknowledged and never committed", "a write-behind cache";
    Deferred = DEFERRED, "a set is acknowledged at once and committed with the client's next one", "batching without a wait";
    NotAwaited = NOT_AWAITED, "the commit is begun and not waited for", "fire and forget";
    Remembered = REMEMBERED, "a client that asks again gets what it remembers", "a cache that nobody invalidates";
    KeptVersion = KEPT_VERSION, "a client reads at a version that it keeps for a second", "a read version shared between transactions";
    RiskyRead = RISKY_READ, "reads accept a causally risky read version", "an option set for its speed";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole row", "a range that is longer than a batch";
    TextIndex = "text-index", "indexes are stored as decimal text, which sorts 10 before 9", "the naive encoding";
    EmptyIsAbsent = "empty-is-absent", "an empty value reads as an unassigned cell", "absent and empty taken for one";
}

/// The indexes that are drawn in each dimension: where one byte ends and two begin, and the last one.
const INDEXES: [i64; 6] = [0, 1, 9, 10, 256, i64::MAX];

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Array {
    dimensions: usize,
    /// Of [`INDEXES`], how many are used.
    indexes: usize,
    /// Values have up to so many bytes.
    longest: usize,
    flaw: Option<Flaw>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Sets a cell to so many bytes of this number.
    Set(Vec<i64>, u8, usize),
    /// Empties a cell.
    Clear(Vec<i64>),
    /// Reads a cell.
    Get(Vec<i64>),
    /// Reads the cells below a prefix.
    Cells(Vec<i64>),
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// The cell's value.
    Value(Option<Content>),
    /// The cells.
    Cells(Cells),
}

/// Cells in order.
pub type Cells = Vec<(Vec<i64>, Content)>;

pub(crate) fn array(dimensions: usize) -> array::Array {
    array::Array::with_dimensions(Subspace::from("array"), dimensions)
}

pub(crate) fn contents(cells: Vec<(Vec<i64>, Bytes)>) -> Cells {
    cells.into_iter().map(|(index, value)| (index, Content::from(&value))).collect()
}

impl Array {
    /// What the array says of an index before it looks at a cell.
    fn accepts(&self, index: &[i64]) -> Result<(), Error> {
        if index.len() != self.dimensions {
            return Err(Error::WrongDimensions { given: index.len(), dimensions: self.dimensions });
        }
        index.iter().find(|i| **i < 0).map_or(Ok(()), |i| Err(Error::NegativeIndex(*i)))
    }
}

impl Specimen for Array {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = BTreeMap<Vec<i64>, Content>;

    const NAME: &'static str = "array";
    const ABOUT: &'static str = "cells of a sparse matrix, read alone and by the row";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Array {
        Array {
            dimensions: rng.range(1..4) as usize,
            indexes: rng.range(2..INDEXES.len() as u64 + 1) as usize,
            longest: *rng.pick(&[8, 200, 3_000]),
            flaw: bug.and_then(Flaw::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let space = Subspace::from("array");
        INDEXES[..self.indexes].iter().map(|i| space.pack(&(*i,)).into()).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let (dimensions, indexes) = (self.dimensions, &INDEXES[..self.indexes]);
        let cell = move || proptest::collection::vec(select(indexes), dimensions);
        let row = proptest::collection::vec(select(indexes), 0..dimensions);
        let odd = select(vec![vec![-1; dimensions], vec![0; dimensions + 1], Vec::new()]);
        prop_oneof![
            8 => (cell(), any::<u8>(), 0..=self.longest).prop_map(|(i, byte, n)| Op::Set(i, byte, n)),
            3 => cell().prop_map(Op::Clear),
            4 => cell().prop_map(Op::Get),
            4 => row.prop_map(Op::Cells),
            1 => odd.prop_map(|i| Op::Set(i, 0, 1)),
        ]
        .boxed()
    }

    fn is_look(op: &Op) -> bool {
        matches!(op, Op::Get(_) | Op::Cells(_))
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Set(..) | Op::Clear(_))
    }

    async fn perform<T: Transaction>(&self, tx: &T, _: &Env, op: &Op) -> Result<Answer, Error> {
        if let Some(flaw) = self.flaw
            && let Some(answer) = sabotage::perform(flaw, self.dimensions, tx, op).await
        {
            return answer;
        }
        let array = array(self.dimensions);
        Ok(match op {
            Op::Set(index, byte, length) => {
                array.set(tx, index, &vec![*byte; *length]).await?;
                Answer::Written
            }
            Op::Clear(index) => {
                array.clear(tx, index).await?;
                Answer::Written
            }
            Op::Get(index) => {
                Answer::Value(array.get(tx, index, Serializable).await?.as_ref().map(Content::from))
            }
            Op::Cells(prefix) => Answer::Cells(contents(array.cells(tx, prefix, Serializable).await?)),
        })
    }

    fn model(&self) -> Self::Model {
        BTreeMap::new()
    }

    fn replay(&self, model: &mut Self::Model, op: &Op, _: &At) -> Result<Answer, Error> {
        Ok(match op {
            Op::Set(index, byte, length) => {
                self.accepts(index)?;
                model.insert(index.clone(), Content::of(*byte, *length));
                Answer::Written
            }
            Op::Clear(index) => {
                self.accepts(index)?;
                model.remove(index);
                Answer::Written
            }
            Op::Get(index) => {
                self.accepts(index)?;
                Answer::Value(model.get(index).cloned())
            }
            Op::Cells(prefix) => {
                let below = model.iter().filter(|(index, _)| index.starts_with(prefix));
                Answer::Cells(below.map(|(index, value)| (index.clone(), value.clone())).collect())
            }
        })
    }

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Self::Model, String>> {
        if self.flaw == Some(Flaw::TextIndex) {
            return sabotage::stored_as_text(tx).await;
        }
        match array(self.dimensions).cells(tx, &[], Serializable).await {
            Ok(cells) => Ok(Ok(contents(cells).into_iter().collect())),
            Err(Error::Fdb(e)) => Err(e),
            Err(e) => Ok(Err(e.to_string())),
        }
    }
}
