//! `array`: cells of a sparse matrix are set, cleared and read, one at a time and row by row.
//!
//! There are few cells, so that clients meet. Indexes are on both sides of the points where the tuple layer
//! needs another byte. Values have lengths from zero to the limit, and one byte more. A few indexes are
//! invalid for every array.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;
mod planted;

use crate::shared;
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use planted::{BUGS, Planted};
use proptest::{option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    specimen::{At, Content, Specimen},
    strategies,
    weakened::Span,
    workload::Bug,
};
use shaketable_layers::array::{self, Error};
use shaketable_sim::seed::Stream;
use shaketable_tx::{self as tx, Env, Isolation, Tx, limits};
use std::collections::BTreeMap;

/// The indexes that are drawn in each dimension: on both sides of where an index needs another byte, and the
/// largest ones.
const INDEXES: [i64; 14] =
    [0, 1, 9, 10, 256, i64::MAX, 255, 65_536, i64::MAX - 1, 127, 128, 65_535, 1 << 32, (1 << 32) - 1];

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Array {
    dimensions: usize,
    /// The first of [`INDEXES`] that are used, and their number.
    indexes: (usize, usize),
    /// The maximum length of values, in bytes.
    longest: usize,
    planted: Option<Planted>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Sets a cell to this byte, repeated this many times.
    Set(Vec<i64>, u8, usize),
    /// Clears a cell.
    Clear(Vec<i64>),
    /// Reads a cell.
    Get(Vec<i64>),
    /// Reads the cells below a prefix.
    Cells(Vec<i64>),
    /// Reads up to this many of the cells below a prefix, from the first one on or after an index.
    Page(Vec<i64>, Option<Vec<i64>>, usize),
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// The cell's value.
    Value(Option<Content>),
    /// The cells.
    Cells(Cells),
}

/// Cells, in order.
pub type Cells = Vec<(Vec<i64>, Content)>;

fn space() -> Subspace {
    Subspace::from("array")
}

fn array(dimensions: usize) -> array::Array {
    match dimensions {
        1 => array::Array::new(space()),
        _ => array::Array::with_dimensions(space(), dimensions),
    }
}

fn contents(cells: Vec<(Vec<i64>, Bytes)>) -> Cells {
    cells.into_iter().map(|(index, value)| (index, Content::from(&value))).collect()
}

impl Array {
    /// The indexes that are drawn.
    fn drawn_indexes(&self) -> Vec<i64> {
        let (first, count) = self.indexes;
        INDEXES.into_iter().cycle().skip(first).take(count).collect()
    }

    /// Refuses an index that the array refuses before it reads a cell.
    fn accepts(&self, index: &[i64]) -> Result<(), Error> {
        if index.len() != self.dimensions {
            return Err(Error::WrongDimensions { given: index.len(), dimensions: self.dimensions });
        }
        not_negative(index)
    }

    /// The cells below a prefix, or the reason why the array refuses the prefix.
    fn below(&self, model: &Stored, prefix: &[i64]) -> Result<Cells, Error> {
        if prefix.len() >= self.dimensions {
            return Err(Error::WrongDimensions { given: prefix.len(), dimensions: self.dimensions });
        }
        not_negative(prefix)?;
        let below = model.iter().filter(|(index, _)| index.starts_with(prefix));
        Ok(below.map(|(index, value)| (index.clone(), value.clone())).collect())
    }

    /// Reads rows back by the key schema, as a model.
    fn read(&self, rows: &[tx::KeyValue]) -> Result<Stored, String> {
        let cell = |row: &tx::KeyValue| match space().unpack::<Vec<i64>>(&row.key) {
            Ok(index) if self.accepts(&index).is_ok() => Ok((index, Content::from(&row.value))),
            _ => Err(format!("{} is not the key of a cell", row.key.escape_ascii())),
        };
        rows.iter().map(cell).collect()
    }

    /// Performs a call correctly.
    async fn right(&self, tx: &Tx, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
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
                Answer::Value(array.get(tx, index, isolation).await?.as_ref().map(Content::from))
            }
            Op::Cells(prefix) => Answer::Cells(contents(array.cells(tx, prefix, isolation).await?)),
            Op::Page(prefix, after, limit) => {
                let page = array.page(tx, prefix, after.as_deref(), *limit, isolation).await?;
                Answer::Cells(contents(page))
            }
        })
    }
}

fn not_negative(index: &[i64]) -> Result<(), Error> {
    index.iter().find(|i| **i < 0).map_or(Ok(()), |i| Err(Error::NegativeIndex(*i)))
}

/// Cells by their index.
type Stored = BTreeMap<Vec<i64>, Content>;

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Array>>()
}

impl Specimen for Array {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Stored;

    const NAME: &'static str = "array";
    const ABOUT: &'static str = "cells of a sparse matrix, read alone and by the row";
    const CHECKS_LIMITS: bool = true;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Array {
        Array {
            dimensions: rng.range(1..4) as usize,
            indexes: (rng.index(INDEXES.len()), rng.range(2..10) as usize),
            longest: *rng.pick(&[8, 200, 3_000]),
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        self.drawn_indexes().iter().map(|i| space().pack(&(*i,)).into()).collect()
    }

    fn subspaces(&self) -> Vec<Span> {
        vec![space().range()]
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let (dimensions, indexes) = (self.dimensions, self.drawn_indexes());
        let indexes = move || select(indexes.clone());
        let row_index = indexes.clone();
        let cell = move || proptest::collection::vec(indexes(), dimensions);
        let row = move || proptest::collection::vec(row_index(), 0..dimensions);
        // An index that every array refuses; some of these are prefixes.
        let mut negative = vec![0; dimensions];
        negative[dimensions - 1] = -1;
        let odd = vec![negative, vec![i64::MIN; dimensions], vec![0; dimensions + 1], Vec::new(), vec![-1]];
        let odd = move || select(odd.clone());
        let some = {
            let cell = cell.clone();
            move || prop_oneof![30 => cell(), 1 => odd()]
        };
        let prefix = move || prop_oneof![30 => row(), 1 => cell(), 1 => Just(vec![-1])];
        let most = prop_oneof![1 => Just(0), 8 => shared::page_sizes()];
        let length = strategies::value_lengths(self.longest);
        prop_oneof![
            8 => (some(), any::<u8>(), length).prop_map(|(i, byte, n)| Op::Set(i, byte, n)),
            3 => some().prop_map(Op::Clear),
            4 => some().prop_map(Op::Get),
            3 => prefix().prop_map(Op::Cells),
            3 => (prefix(), option::of(some()), most).prop_map(|(p, after, n)| Op::Page(p, after, n)),
        ]
        .boxed()
    }

    fn is_read_only(op: &Op) -> bool {
        matches!(op, Op::Get(_) | Op::Cells(_) | Op::Page(..))
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Set(..) | Op::Clear(_))
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        Self::is_read_only(op) && self.planted.is_none_or(|planted| planted == Planted::CellsAtSnapshot)
    }

    async fn perform(&self, tx: &Tx, _: &Env, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        match self.planted {
            Some(planted) => planted::perform(planted, self, tx, op, isolation).await,
            None => self.right(tx, op, isolation).await,
        }
    }

    fn takes_turns(&self) -> bool {
        self.planted.is_none()
    }

    fn model(&self) -> Self::Model {
        BTreeMap::new()
    }

    fn replay(&self, model: &mut Self::Model, op: &Op, _: &At) -> Result<Answer, Error> {
        Ok(match op {
            Op::Set(index, byte, length) => {
                self.accepts(index)?;
                limits::row(&space().pack(index), &vec![*byte; *length])?;
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
            Op::Cells(prefix) => Answer::Cells(self.below(model, prefix)?),
            Op::Page(prefix, after, limit) => {
                let mut cells = self.below(model, prefix)?;
                if let Some(after) = after {
                    self.accepts(after)?;
                    cells.retain(|(index, _)| index > after);
                }
                cells.truncate(*limit);
                Answer::Cells(cells)
            }
        })
    }

    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Self::Model, Misfit>> {
        let rows = shared::rows(tx, &space()).await?;
        Ok(self.read(&rows).map_err(Misfit::from))
    }
}
