//! `vector`: the rows of a matrix are vectors, pushed, popped, swapped, cut and scanned.
//!
//! Few rows, so that pushes meet; indexes that leave holes; a default that is not always empty; and in some
//! seeds an element so far out that nothing can be pushed behind it, and no scan answers with all.

mod planted;

use bytes::Bytes;
use foundationdb_tuple::Subspace;
use proptest::{option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    specimen::{
        self, At, Content, DEFERRED, KEPT_VERSION, NOT_AWAITED, REMEMBERED, Specimen, UNRECORDED, UNWRITTEN,
    },
    strategies,
    workload::{Bug, Outcome},
};
use shaketable_layers::{
    limits,
    once::Session,
    tx::{
        self, Database, Env,
        Isolation::{self, Serializable},
        RangeOption, Transaction,
    },
    vector::{self, Error, MAX_SCAN, MAX_VALUE_BYTES, Matrix},
};
use shaketable_sim::seed::Stream;
use std::collections::BTreeMap;

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "a push is retried after an unknown result without an operation record", "the recipe's vector_push";
    Unwritten = UNWRITTEN, "a push is acknowledged and never committed", "a write-behind cache";
    Deferred = DEFERRED, "a push is acknowledged at once and committed with the client's next one", "batching without a wait";
    NotAwaited = NOT_AWAITED, "the commit is begun and not waited for", "fire and forget";
    Remembered = REMEMBERED, "a client that asks again gets what it remembers", "a cache that nobody invalidates";
    KeptVersion = KEPT_VERSION, "a client reads at a version that it keeps for a second", "a read version shared between transactions";
    SnapshotPush = "snapshot-push", "a push reads the size at snapshot isolation", "two pushes at one index";
    SizeElsewhere = "size-elsewhere", "a push asks for the size in a transaction of its own", "a published vector's push, which does not hand its transaction on";
    ScanChildren = "scan-children", "a scan reads what is below the key of its first element", "the recipe's vector_scan";
    NegativeIndex = "negative-index", "a negative index is taken", "the recipe's vector_set";
    SwapBehind = "swap-behind", "a swap takes the size for an index", "a published vector's bound check, off by one";
    HoleIsAbsent = "hole-is-absent", "what is behind the end reads as a hole does", "the recipe's vector_get, on a sparse vector";
    PopHole = "pop-hole", "a pop over a hole takes the hole too", "a sparse vector's size, read from its last key";
    TruncateHole = "truncate-hole", "a truncation to a hole makes the vector shorter than asked", "the recipe's vector_truncate, on a sparse vector";
    ResizeHole = "resize-hole", "a vector that grows gets no last element", "a sparse vector's size, taken for what was asked for";
    TruncateGrows = "truncate-grows", "a truncation behind the end makes the vector longer", "a resize taken for a truncation";
    RowStays = "row-stays", "a truncation of the matrix leaves the first of the rows that go", "a bound that is exclusive instead of inclusive";
    StoredBehind = "stored-behind", "a read of what is stored takes the element at its end too", "a bound that is inclusive instead of exclusive";
    SizeCounts = "size-counts", "the size is the number of elements stored", "a vector taken for a dense one";
    ScanConflicts = "scan-conflicts", "a scan that is asked for at snapshot is read serializably", "an isolation that is not passed on";
}

/// The indexes and sizes that are drawn.
const INDEXES: [i64; 12] = [0, 1, 2, 3, 5, 12, 40, -1, i64::MIN, i64::MAX, i64::MAX - 1, i64::MAX - 2];

/// The last index: the size is one more.
const LAST: i64 = i64::MAX - 1;

/// Of these, how many are small.
const SMALL: usize = 7;

/// The matrix' subspace.
pub(crate) fn space() -> Subspace {
    Subspace::from("vector")
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Vector {
    rows: i64,
    /// What holes read as: so many bytes.
    default: usize,
    /// Of [`INDEXES`], how many are used.
    indexes: usize,
    planted: Option<Planted>,
}

/// One call on a row. Values are so many bytes of a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Op {
    /// The row.
    pub row: i64,
    /// What is done with it.
    pub call: Call,
}

/// What is done with a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Call {
    /// Appends.
    Push(u8, usize),
    /// Removes the last element.
    Pop,
    /// Sets an element.
    Set(i64, u8, usize),
    /// Exchanges two.
    Swap(i64, i64),
    /// Makes it so long.
    Resize(i64),
    /// Makes it at most so long.
    Truncate(i64),
    /// Removes the rows from that one on.
    TruncateRows(i64),
    /// Reads an element.
    Get(i64),
    /// Reads the last element.
    Back,
    /// Reads the size.
    Size,
    /// Reads whether there is no element.
    IsEmpty,
    /// Reads elements.
    Scan(i64, Option<i64>),
    /// Reads the elements that are stored from here on: those that are not the default, for a hole that was
    /// filled is stored.
    Stored(i64, Option<i64>),
    /// Reads how many rows there are.
    Rows,
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// An element, if there is one.
    Value(Option<Content>),
    /// An index or a size.
    Number(i64),
    /// Whether it is so.
    Is(bool),
    /// Elements.
    Scan(Vec<Content>),
    /// Elements with their indexes.
    Stored(Vec<(i64, Content)>),
}

/// One row: its size, and the elements that are not the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    size: i64,
    elements: BTreeMap<i64, Content>,
}

/// Rows that have elements.
pub type Model = BTreeMap<i64, Row>;

fn counts(index: i64) -> Result<i64, Error> {
    if index < 0 { Err(Error::Negative(index)) } else { Ok(index) }
}

fn is_index(index: i64) -> Result<(), Error> {
    if counts(index)? == i64::MAX { Err(Error::Full) } else { Ok(()) }
}

impl Row {
    fn inside(&self, index: i64) -> Result<(), Error> {
        is_index(index)?;
        match index < self.size {
            true => Ok(()),
            false => Err(Error::OutOfRange { index, size: self.size }),
        }
    }

    fn put(&mut self, index: i64, value: Content, default: &Content) {
        self.size = self.size.max(index + 1);
        match value == *default {
            true => drop(self.elements.remove(&index)),
            false => drop(self.elements.insert(index, value)),
        }
    }

    fn take(&mut self, index: i64, default: &Content) -> Content {
        self.elements.remove(&index).unwrap_or_else(|| default.clone())
    }

    fn resize(&mut self, size: i64) {
        self.size = size;
        self.elements.split_off(&size);
    }

    /// The elements in a range that are not the default.
    fn between(&self, start: i64, end: Option<i64>) -> Result<Vec<(i64, Content)>, Error> {
        counts(start)?;
        let end = end.map_or(Ok(i64::MAX), counts)?;
        let within = self.elements.iter().filter(|(index, _)| (start..end).contains(*index));
        Ok(within.map(|(index, value)| (*index, value.clone())).collect())
    }

    fn scan(&self, start: i64, end: Option<i64>, default: &Content) -> Result<Vec<Content>, Error> {
        let within = self.between(start, end)?;
        let elements = (end.unwrap_or(i64::MAX).min(self.size) - start).max(0);
        if elements > MAX_SCAN {
            return Err(Error::ScanTooLong { elements, limit: MAX_SCAN });
        }
        let mut all = vec![default.clone(); elements as usize];
        for (index, value) in within {
            all[(index - start) as usize] = value;
        }
        Ok(all)
    }
}

impl Vector {
    pub(crate) fn matrix(&self) -> Matrix {
        match self.default {
            0 => Matrix::new(space()),
            bytes => Matrix::with_default(space(), vec![b'd'; bytes]),
        }
    }

    /// A row: by the matrix, and where holes are empty, as the vector that the key schema says it is.
    pub(crate) fn row(&self, row: i64) -> Result<vector::Vector, Error> {
        let of_matrix = self.matrix().row(row)?;
        Ok(if self.default == 0 { vector::Vector::new(space().subspace(&(row,))) } else { of_matrix })
    }

    pub(crate) fn default(&self) -> Content {
        Content::of(b'd', self.default)
    }

    /// What the layer says of a value before it writes.
    fn fits(&self, row: i64, index: i64, byte: u8, length: usize) -> Result<Content, Error> {
        is_index(index)?;
        limits::value_up_to(MAX_VALUE_BYTES, &space().pack(&(row, index)), &vec![byte; length])?;
        Ok(Content::of(byte, length))
    }

    /// The key schema read from the other end.
    fn read(&self, rows: &[tx::KeyValue]) -> Result<Model, String> {
        let mut model = Model::new();
        for stored in rows {
            let place = space().unpack::<(i64, i64)>(&stored.key);
            let Ok((row @ 0.., index @ 0..=LAST)) = place else {
                return Err(format!("{} is no element's key", stored.key.escape_ascii()));
            };
            model.entry(row).or_default().put(index, Content::from(&stored.value), &self.default());
        }
        Ok(model)
    }
}

impl Specimen for Vector {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "vector";
    const ABOUT: &'static str = "sparse vectors, the rows of a matrix, grow, shrink and are scanned";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "vector: a hole is read",
            "vector: a pop finds nothing",
            "vector: a pop uncovers a hole",
            "vector: a cut uncovers a hole",
            "vector: a scan ends in a hole",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Vector {
        Vector {
            rows: rng.range(1..4) as i64,
            default: rng.range(0..3) as usize,
            indexes: *rng.pick(&[3, SMALL, SMALL, SMALL + 2, INDEXES.len()]),
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let place = |row| INDEXES[..SMALL].iter().map(move |i| space().pack(&(row, *i)).into());
        (0..self.rows).flat_map(place).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let indexes = &INDEXES[..self.indexes];
        let index = || select(indexes);
        let end = || option::of(select(indexes));
        let byte = any::<u8>;
        let length = || {
            let limit = strategies::lengths(60, MAX_VALUE_BYTES);
            prop_oneof![8 => 0..4usize, 6 => limit, 1 => Just(2_000), 1 => Just(99_970)]
        };
        // Rows that nobody fills, and those that are none.
        let row = || prop_oneof![60 => 0..self.rows, 1 => select(&[-1, i64::MAX, i64::MAX - 1, 256][..])];
        let rows = || prop_oneof![8 => 0..=self.rows, 1 => select(&[-1, i64::MAX, i64::MIN][..])];
        let call = prop_oneof![
            8 => (byte(), length()).prop_map(|(b, n)| Call::Push(b, n)),
            4 => Just(Call::Pop),
            4 => (index(), byte(), length()).prop_map(|(i, b, n)| Call::Set(i, b, n)),
            3 => (index(), index()).prop_map(|(i, j)| Call::Swap(i, j)),
            2 => index().prop_map(Call::Resize),
            2 => index().prop_map(Call::Truncate),
            1 => rows().prop_map(Call::TruncateRows),
            3 => index().prop_map(Call::Get),
            1 => Just(Call::Back),
            1 => Just(Call::Size),
            1 => Just(Call::IsEmpty),
            4 => (index(), end()).prop_map(|(i, end)| Call::Scan(i, end)),
            1 => (index(), end()).prop_map(|(i, end)| Call::Stored(i, end)),
            1 => Just(Call::Rows),
        ];
        (row(), call).prop_map(|(row, call)| Op { row, call }).boxed()
    }

    fn is_look(op: &Op) -> bool {
        use Call::*;
        matches!(op.call, Get(_) | Back | Size | IsEmpty | Scan(..) | Stored(..) | Rows)
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op.call, Call::Set(..))
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        Self::is_look(op) && self.planted.is_none_or(|planted| planted == Planted::ScanConflicts)
    }

    async fn perform<T: Transaction>(
        &self,
        tx: &T,
        _: &Env,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Error> {
        if let Some(planted) = self.planted
            && let Some(answer) = planted::perform(planted, self, tx, op).await
        {
            return answer;
        }
        let isolation = planted::isolation(self.planted, op, isolation);
        let matrix = self.matrix();
        let row = self.row(op.row)?;
        let value = |byte: &u8, length: &usize| vec![*byte; *length];
        Ok(match &op.call {
            Call::Push(byte, length) => Answer::Number(row.push(tx, &value(byte, length)).await?),
            Call::Pop => Answer::Value(row.pop(tx).await?.as_ref().map(Content::from)),
            Call::Set(index, byte, length) => {
                row.set(tx, *index, &value(byte, length)).await?;
                Answer::Written
            }
            Call::Swap(one, other) => {
                row.swap(tx, *one, *other).await?;
                Answer::Written
            }
            Call::Resize(size) => {
                row.resize(tx, *size).await?;
                Answer::Written
            }
            Call::Truncate(size) => {
                row.truncate(tx, *size).await?;
                Answer::Written
            }
            Call::TruncateRows(rows) => {
                matrix.truncate(tx, *rows).await?;
                Answer::Written
            }
            Call::Get(index) => Answer::Value(Some(Content::from(&row.get(tx, *index, isolation).await?))),
            Call::Back => Answer::Value(row.back(tx, isolation).await?.as_ref().map(Content::from)),
            Call::Size => Answer::Number(row.size(tx, isolation).await?),
            Call::IsEmpty => Answer::Is(row.is_empty(tx, isolation).await?),
            Call::Scan(start, end) => {
                let elements = row.scan(tx, *start, *end, isolation).await?;
                Answer::Scan(elements.iter().map(Content::from).collect())
            }
            Call::Stored(start, end) => {
                let stored = row.stored(tx, *start, *end, isolation).await?.into_iter();
                let contents = stored.map(|(index, value)| (index, Content::from(&value)));
                Answer::Stored(contents.filter(|(_, value)| *value != self.default()).collect())
            }
            Call::Rows => Answer::Number(matrix.rows(tx, isolation).await?),
        })
    }

    async fn divert<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        match (self.planted, ops) {
            (Some(Planted::SizeElsewhere), [Op { row, call: Call::Push(byte, length) }]) => {
                Some(planted::push_elsewhere(self, session, *row, &vec![*byte; *length]).await)
            }
            _ => None,
        }
    }

    fn model(&self) -> Model {
        Model::new()
    }

    fn replay(&self, model: &mut Model, op: &Op, _: &At) -> Result<Answer, Error> {
        let default = self.default();
        is_index(op.row)?;
        match op.call {
            Call::Rows => {
                return Ok(Answer::Number(model.last_key_value().map_or(0, |(row, _)| row + 1)));
            }
            Call::TruncateRows(rows) => {
                model.split_off(&counts(rows)?);
                return Ok(Answer::Written);
            }
            _ => (),
        }
        let row = model.entry(op.row).or_default();
        let answer = match &op.call {
            Call::Push(byte, length) => {
                let index = row.size;
                row.put(index, self.fits(op.row, index, *byte, *length)?, &default);
                Answer::Number(index)
            }
            Call::Pop => Answer::Value((row.size > 0).then(|| {
                row.size -= 1;
                row.take(row.size, &default)
            })),
            Call::Set(index, byte, length) => {
                row.put(*index, self.fits(op.row, *index, *byte, *length)?, &default);
                Answer::Written
            }
            Call::Swap(one, other) => {
                row.inside(*one)?;
                row.inside(*other)?;
                let (first, second) = (row.take(*one, &default), row.elements.get(other).cloned());
                row.put(*other, first.clone(), &default);
                row.put(*one, if one == other { first } else { second.unwrap_or(default.clone()) }, &default);
                Answer::Written
            }
            Call::Resize(size) => {
                row.resize(counts(*size)?);
                Answer::Written
            }
            Call::Truncate(size) => {
                row.resize(counts(*size)?.min(row.size));
                Answer::Written
            }
            Call::Get(index) => {
                row.inside(*index)?;
                Answer::Value(Some(row.elements.get(index).cloned().unwrap_or(default)))
            }
            Call::Back => Answer::Value(
                (row.size > 0).then(|| row.elements.get(&(row.size - 1)).cloned().unwrap_or(default)),
            ),
            Call::Size => Answer::Number(row.size),
            Call::IsEmpty => Answer::Is(row.size == 0),
            Call::Scan(start, end) => Answer::Scan(row.scan(*start, *end, &default)?),
            Call::Stored(start, end) => Answer::Stored(row.between(*start, *end)?),
            Call::TruncateRows(_) | Call::Rows => Answer::Written,
        };
        if row.size == 0 {
            model.remove(&op.row);
        }
        Ok(answer)
    }

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Model, String>> {
        let rows = tx.get_range_all(RangeOption::from(space().range()), Serializable).await?;
        Ok(self.read(&rows))
    }
}
