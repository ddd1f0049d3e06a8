//! `vector`: the rows of a matrix are vectors to which elements are pushed and from which they are popped,
//! swapped, cut and scanned.
//!
//! There are few rows, so that pushes meet. Some indexes leave holes, and the default is not always empty; in
//! few seeds it is too long to be stored. In some seeds an element has so high an index that nothing can be
//! pushed after it, and no scan can return everything.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;
mod planted;

use crate::shared;
use foundationdb_tuple::Subspace;
use proptest::option;
use shaketable::{prelude::*, specimen::Content, strategies};
use shaketable_layers::vector::{Error, MAX_SCAN, MAX_VALUE_BYTES, Matrix, Vector as Layer};
use shaketable_tx::{KeyValue, limits};
use std::collections::BTreeMap;

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Vector {
    rows: i64,
    /// The length of the value that holes are read as, in bytes.
    default: usize,
    /// How many of [`INDEXES`] are used.
    indexes: usize,
}

/// Sparse vectors, the rows of a matrix, grow, shrink and are scanned.
#[shaketable::workload(name = "vector", model = Model, planted, promises(turns, limits))]
impl Vector {
    fn draw(rng: &mut Stream) -> Vector {
        Vector {
            rows: rng.range(1..4) as i64,
            default: if rng.chance(0.03) { MAX_VALUE_BYTES + 1 } else { rng.range(0..3) as usize },
            indexes: *rng.pick(&[3, SMALL, SMALL, SMALL + 2, INDEXES.len()]),
        }
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

    fn keys(&self) -> Vec<Vec<u8>> {
        let place = |row| INDEXES[..SMALL].iter().map(move |i| space().pack(&(row, *i)));
        (0..self.rows).flat_map(place).collect()
    }

    fn subspaces(&self) -> [(Vec<u8>, Vec<u8>); 1] {
        [space().range()]
    }

    fn matrix(&self) -> Matrix {
        match self.default {
            0 => Matrix::new(space()),
            bytes => Matrix::with_default(space(), vec![b'd'; bytes]),
        }
    }

    /// A row of the matrix. If holes are empty, it is opened as a vector, whose key schema is the same.
    fn layer(&self, row: i64) -> Result<Layer, Error> {
        let of_matrix = self.matrix().row(row)?;
        Ok(if self.default == 0 { Layer::new(space().subspace(&(row,))) } else { of_matrix })
    }

    fn default(&self) -> Content {
        Content::of(b'd', self.default)
    }

    /// Sometimes a row that is never written, or an invalid one.
    #[draws(row)]
    fn row(&self) -> BoxedStrategy<i64> {
        let far = vec![-1, i64::MAX, i64::MAX - 1, 127, 128, 255, 256, 65_536];
        prop_oneof![60 => 0..self.rows, 1 => select(far)].boxed()
    }

    #[draws(index, other, size, start)]
    fn index(&self) -> BoxedStrategy<i64> {
        select(&INDEXES[..self.indexes]).boxed()
    }

    #[draws(end)]
    fn end(&self) -> BoxedStrategy<Option<i64>> {
        option::of(self.index()).boxed()
    }

    #[draws(byte)]
    fn byte() -> impl Strategy<Value = u8> {
        any::<u8>()
    }

    #[draws(length)]
    fn length() -> impl Strategy<Value = usize> {
        let limit = strategies::lengths(60, MAX_VALUE_BYTES);
        prop_oneof![8 => 0..4usize, 6 => limit, 1 => Just(2_000), 1 => Just(99_970)]
    }

    /// Appends a value: a byte, repeated this many times.
    #[write(weight = 8)]
    async fn push(&self, tx: &Tx, row: i64, byte: u8, length: usize) -> Result<i64, Error> {
        self.layer(row)?.push(tx, &vec![byte; length]).await
    }

    #[write(weight = 4)]
    async fn pop(&self, tx: &Tx, row: i64) -> Result<Option<Content>, Error> {
        Ok(self.layer(row)?.pop(tx).await?.as_ref().map(Content::from))
    }

    #[write(weight = 4, blind)]
    async fn set(&self, tx: &Tx, row: i64, index: i64, byte: u8, length: usize) -> Result<(), Error> {
        self.layer(row)?.set(tx, index, &vec![byte; length]).await
    }

    #[write(weight = 3)]
    async fn swap(&self, tx: &Tx, row: i64, index: i64, other: i64) -> Result<(), Error> {
        self.layer(row)?.swap(tx, index, other).await
    }

    #[write(weight = 2)]
    async fn resize(&self, tx: &Tx, row: i64, size: i64) -> Result<(), Error> {
        self.layer(row)?.resize(tx, size).await
    }

    #[write(weight = 2)]
    async fn truncate(&self, tx: &Tx, row: i64, size: i64) -> Result<(), Error> {
        self.layer(row)?.truncate(tx, size).await
    }

    /// Removes the rows from this one on.
    #[write]
    async fn truncate_rows(
        &self,
        tx: &Tx,
        #[draw(prop_oneof![8 => 0..=self.rows, 1 => select(&[-1, i64::MAX, i64::MIN][..])])] rows: i64,
    ) -> Result<(), Error> {
        self.matrix().truncate(tx, rows).await
    }

    #[read(weight = 3)]
    async fn get(&self, tx: &Tx, isolation: Isolation, row: i64, index: i64) -> Result<Content, Error> {
        Ok(Content::from(&self.layer(row)?.get(tx, index, isolation).await?))
    }

    #[read]
    async fn back(&self, tx: &Tx, isolation: Isolation, row: i64) -> Result<Option<Content>, Error> {
        Ok(self.layer(row)?.back(tx, isolation).await?.as_ref().map(Content::from))
    }

    #[read]
    async fn size(&self, tx: &Tx, isolation: Isolation, row: i64) -> Result<i64, Error> {
        self.layer(row)?.size(tx, isolation).await
    }

    #[read]
    async fn is_empty(&self, tx: &Tx, isolation: Isolation, row: i64) -> Result<bool, Error> {
        self.layer(row)?.is_empty(tx, isolation).await
    }

    #[read(weight = 4)]
    async fn scan(
        &self,
        tx: &Tx,
        isolation: Isolation,
        row: i64,
        start: i64,
        end: Option<i64>,
    ) -> Result<Vec<Content>, Error> {
        Ok(self.layer(row)?.scan(tx, start, end, isolation).await?.iter().map(Content::from).collect())
    }

    /// Reads the elements that are stored. Those with the default value are left out, because a hole that was
    /// filled is stored too.
    #[read]
    async fn stored(
        &self,
        tx: &Tx,
        isolation: Isolation,
        row: i64,
        start: i64,
        end: Option<i64>,
    ) -> Result<Vec<(i64, Content)>, Error> {
        let stored = self.layer(row)?.stored(tx, start, end, isolation).await?.into_iter();
        let contents = stored.map(|(index, value)| (index, Content::from(&value)));
        Ok(contents.filter(|(_, value)| *value != self.default()).collect())
    }

    #[read]
    async fn rows(&self, tx: &Tx, isolation: Isolation) -> Result<i64, Error> {
        self.matrix().rows(tx, isolation).await
    }

    #[stored]
    async fn read_back(&self, tx: &Tx) -> tx::Result<Result<Model, String>> {
        Ok(self.model().read(&shared::rows(tx, &space()).await?))
    }

    fn model(&self) -> Model {
        Model { default: self.default(), rows: BTreeMap::new() }
    }
}

/// The model: the rows that have elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    default: Content,
    rows: BTreeMap<i64, Row>,
}

/// One row: its size, and the elements that are not the default.
#[derive(Clone, Debug, Default, PartialEq)]
struct Row {
    size: i64,
    elements: BTreeMap<i64, Content>,
}

impl Model {
    fn push(&mut self, row: i64, byte: u8, length: usize) -> Result<i64, Error> {
        let index = self.size(row)?;
        self.set(row, index, byte, length)?;
        Ok(index)
    }

    fn pop(&mut self, row: i64) -> Result<Option<Content>, Error> {
        let last = self.back(row)?;
        if last.is_some() {
            self.resize(row, self.size(row)? - 1)?;
        }
        Ok(last)
    }

    fn set(&mut self, row: i64, index: i64, byte: u8, length: usize) -> Result<(), Error> {
        is_index(row)?;
        self.put(row, index, fits(row, index, byte, length)?);
        Ok(())
    }

    fn swap(&mut self, row: i64, index: i64, other: i64) -> Result<(), Error> {
        let (one, two) = (self.get(row, index)?, self.get(row, other)?);
        for (from, to) in [(other, index), (index, other)] {
            if index != other {
                self.fills(row, from, to)?;
            }
        }
        self.put(row, other, one);
        self.put(row, index, two);
        Ok(())
    }

    fn resize(&mut self, row: i64, size: i64) -> Result<(), Error> {
        is_index(row)?;
        if counts(size)? == 0 {
            self.rows.remove(&row);
            return Ok(());
        }
        self.fills(row, size - 1, size - 1)?;
        let row = self.rows.entry(row).or_default();
        row.size = size;
        row.elements.split_off(&size);
        Ok(())
    }

    fn truncate(&mut self, row: i64, size: i64) -> Result<(), Error> {
        let current = self.size(row)?;
        self.resize(row, counts(size)?.min(current))
    }

    fn truncate_rows(&mut self, rows: i64) -> Result<(), Error> {
        self.rows.split_off(&counts(rows)?);
        Ok(())
    }

    fn get(&self, row: i64, index: i64) -> Result<Content, Error> {
        let size = self.size(row)?;
        is_index(index)?;
        match index < size {
            true => Ok(self.element(row, index).unwrap_or(&self.default).clone()),
            false => Err(Error::OutOfRange { index, size }),
        }
    }

    fn back(&self, row: i64) -> Result<Option<Content>, Error> {
        match self.size(row)? {
            0 => Ok(None),
            size => self.get(row, size - 1).map(Some),
        }
    }

    fn size(&self, row: i64) -> Result<i64, Error> {
        is_index(row)?;
        Ok(self.rows.get(&row).map_or(0, |row| row.size))
    }

    fn is_empty(&self, row: i64) -> Result<bool, Error> {
        Ok(self.size(row)? == 0)
    }

    fn scan(&self, row: i64, start: i64, end: Option<i64>) -> Result<Vec<Content>, Error> {
        let stored = self.stored(row, start, end)?;
        let elements = (end.unwrap_or(i64::MAX).min(self.size(row)?) - start).max(0);
        if elements > MAX_SCAN {
            return Err(Error::ScanTooLong { elements, limit: MAX_SCAN });
        }
        let mut all = vec![self.default.clone(); elements as usize];
        for (index, value) in stored {
            all[(index - start) as usize] = value;
        }
        Ok(all)
    }

    fn stored(&self, row: i64, start: i64, end: Option<i64>) -> Result<Vec<(i64, Content)>, Error> {
        is_index(row)?;
        let within = counts(start)?..end.map_or(Ok(i64::MAX), counts)?;
        let all = self.rows.get(&row).into_iter().flat_map(|row| &row.elements);
        let stored = all.filter(|(index, _)| within.contains(*index));
        Ok(stored.map(|(index, value)| (*index, value.clone())).collect())
    }

    fn rows(&self) -> Result<i64, Error> {
        Ok(self.rows.last_key_value().map_or(0, |(row, _)| row + 1))
    }

    fn element(&self, row: i64, index: i64) -> Option<&Content> {
        self.rows.get(&row)?.elements.get(&index)
    }

    /// Refuses to store at `to` the default that is read at `from`, where nothing is stored. If it is too
    /// long, no element equals it.
    fn fills(&self, row: i64, from: i64, to: i64) -> Result<(), Error> {
        match self.element(row, from) {
            Some(_) => Ok(()),
            None => fits(row, to, b'd', self.default.length()).map(drop),
        }
    }

    fn put(&mut self, row: i64, index: i64, value: Content) {
        let row = self.rows.entry(row).or_default();
        row.size = row.size.max(index + 1);
        match value == self.default {
            true => drop(row.elements.remove(&index)),
            false => drop(row.elements.insert(index, value)),
        }
    }

    /// With the elements of these rows, which are read back by the key schema.
    fn read(mut self, rows: &[KeyValue]) -> Result<Model, String> {
        for stored in rows {
            let Ok((row @ 0.., index @ 0..=LAST)) = space().unpack::<(i64, i64)>(&stored.key) else {
                return Err(format!("{} is not the key of an element", stored.key.escape_ascii()));
            };
            self.put(row, index, Content::from(&stored.value));
        }
        Ok(self)
    }
}

/// The last index: the size is one more.
const LAST: i64 = i64::MAX - 1;

/// The indexes and sizes that are drawn.
const INDEXES: [i64; 12] = [0, 1, 2, 3, 5, 12, 40, -1, i64::MIN, i64::MAX, i64::MAX - 1, i64::MAX - 2];

/// How many of these are small.
const SMALL: usize = 7;

/// The subspace of the matrix.
fn space() -> Subspace {
    Subspace::from("vector")
}

fn counts(number: i64) -> Result<i64, Error> {
    if number < 0 { Err(Error::Negative(number)) } else { Ok(number) }
}

fn is_index(index: i64) -> Result<(), Error> {
    if counts(index)? > LAST { Err(Error::Full) } else { Ok(()) }
}

/// Refuses a value that the layer refuses before it writes.
fn fits(row: i64, index: i64, byte: u8, length: usize) -> Result<Content, Error> {
    is_index(index)?;
    limits::value_up_to(MAX_VALUE_BYTES, &space().pack(&(row, index)), &vec![byte; length])?;
    Ok(Content::of(byte, length))
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Vector>>()
}
