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
use foundationdb_tuple::Subspace;
use proptest::option;
use shaketable::{prelude::*, specimen::Content, strategies};
use shaketable_layers::array::{Array as Layer, Error};
use shaketable_tx::{KeyValue, limits};
use std::collections::BTreeMap;

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Array {
    dimensions: usize,
    /// The first of [`INDEXES`] that are used, and their number.
    indexes: (usize, usize),
    /// The maximum length of values, in bytes.
    longest: usize,
}

/// Cells of a sparse matrix, read alone and by the row.
#[shaketable::workload(name = "array", model = Model, planted, promises(turns, limits), risky_read)]
impl Array {
    fn draw(rng: &mut Stream) -> Array {
        Array {
            dimensions: rng.range(1..4) as usize,
            indexes: (rng.index(INDEXES.len()), rng.range(2..10) as usize),
            longest: *rng.pick(&[8, 200, 3_000]),
        }
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        self.drawn_indexes().iter().map(|i| space().pack(&(*i,))).collect()
    }

    fn subspaces(&self) -> [(Vec<u8>, Vec<u8>); 1] {
        [space().range()]
    }

    fn layer(&self) -> Layer {
        match self.dimensions {
            1 => Layer::new(space()),
            dimensions => Layer::with_dimensions(space(), dimensions),
        }
    }

    /// The indexes that are drawn.
    fn drawn_indexes(&self) -> Vec<i64> {
        let (first, count) = self.indexes;
        INDEXES.into_iter().cycle().skip(first).take(count).collect()
    }

    fn cell(&self) -> BoxedStrategy<Vec<i64>> {
        vec(select(self.drawn_indexes()), self.dimensions).boxed()
    }

    #[draws(index)]
    fn index(&self) -> BoxedStrategy<Vec<i64>> {
        // Indexes that every array refuses; some of these are prefixes.
        let mut negative = vec![0; self.dimensions];
        negative[self.dimensions - 1] = -1;
        let (lowest, long) = (vec![i64::MIN; self.dimensions], vec![0; self.dimensions + 1]);
        let odd = vec![negative, lowest, long, Vec::new(), vec![-1]];
        prop_oneof![30 => self.cell(), 1 => select(odd)].boxed()
    }

    #[draws(prefix)]
    fn prefix(&self) -> BoxedStrategy<Vec<i64>> {
        let row = vec(select(self.drawn_indexes()), 0..self.dimensions);
        prop_oneof![30 => row, 1 => self.cell(), 1 => Just(vec![-1])].boxed()
    }

    /// Sets a cell to this byte, repeated this many times.
    #[write(weight = 8, blind)]
    async fn set(
        &self,
        tx: &Tx,
        index: Vec<i64>,
        #[draw(any::<u8>())] byte: u8,
        #[draw(strategies::value_lengths(self.longest))] length: usize,
    ) -> Result<(), Error> {
        self.layer().set(tx, &index, &vec![byte; length]).await
    }

    #[write(weight = 3, blind)]
    async fn clear(&self, tx: &Tx, index: Vec<i64>) -> Result<(), Error> {
        self.layer().clear(tx, &index).await
    }

    #[read(weight = 4)]
    async fn get(&self, tx: &Tx, isolation: Isolation, index: Vec<i64>) -> Result<Option<Content>, Error> {
        Ok(self.layer().get(tx, &index, isolation).await?.as_ref().map(Content::from))
    }

    #[read(weight = 3)]
    async fn cells(&self, tx: &Tx, isolation: Isolation, prefix: Vec<i64>) -> Result<Cells, Error> {
        Ok(contents(self.layer().cells(tx, &prefix, isolation).await?))
    }

    #[read(weight = 3)]
    async fn page(
        &self,
        tx: &Tx,
        isolation: Isolation,
        prefix: Vec<i64>,
        #[draw(option::of(self.index()))] after: Option<Vec<i64>>,
        #[draw(prop_oneof![1 => Just(0), 8 => shared::page_sizes()])] limit: usize,
    ) -> Result<Cells, Error> {
        Ok(contents(self.layer().page(tx, &prefix, after.as_deref(), limit, isolation).await?))
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Result<Model, String>> {
        Ok(self.model().read(&shared::rows(tx, &space()).await?))
    }

    fn model(&self) -> Model {
        Model { dimensions: self.dimensions, cells: BTreeMap::new() }
    }
}

/// The model: cells by their index.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    dimensions: usize,
    cells: BTreeMap<Vec<i64>, Content>,
}

impl Model {
    fn set(&mut self, index: Vec<i64>, byte: u8, length: usize) -> Result<(), Error> {
        self.accepts(&index)?;
        limits::row(&space().pack(&index), &vec![byte; length])?;
        self.cells.insert(index, Content::of(byte, length));
        Ok(())
    }

    fn clear(&mut self, index: Vec<i64>) -> Result<(), Error> {
        self.accepts(&index)?;
        self.cells.remove(&index);
        Ok(())
    }

    fn get(&self, index: Vec<i64>) -> Result<Option<Content>, Error> {
        self.accepts(&index)?;
        Ok(self.cells.get(&index).cloned())
    }

    fn cells(&self, prefix: Vec<i64>) -> Result<Cells, Error> {
        if prefix.len() >= self.dimensions {
            return Err(Error::WrongDimensions { given: prefix.len(), dimensions: self.dimensions });
        }
        not_negative(&prefix)?;
        let below = self.cells.iter().filter(|(index, _)| index.starts_with(&prefix));
        Ok(below.map(|(index, value)| (index.clone(), value.clone())).collect())
    }

    fn page(&self, prefix: Vec<i64>, after: Option<Vec<i64>>, limit: usize) -> Result<Cells, Error> {
        let mut cells = self.cells(prefix)?;
        if let Some(after) = after {
            self.accepts(&after)?;
            cells.retain(|(index, _)| *index > after);
        }
        cells.truncate(limit);
        Ok(cells)
    }

    /// Refuses an index that the array refuses before it reads a cell.
    fn accepts(&self, index: &[i64]) -> Result<(), Error> {
        if index.len() != self.dimensions {
            return Err(Error::WrongDimensions { given: index.len(), dimensions: self.dimensions });
        }
        not_negative(index)
    }

    /// With the cells of these rows, which are read back by the key schema.
    fn read(mut self, rows: &[KeyValue]) -> Result<Model, String> {
        for row in rows {
            match space().unpack::<Vec<i64>>(&row.key) {
                Ok(index) if self.accepts(&index).is_ok() => {
                    self.cells.insert(index, Content::from(&row.value))
                }
                _ => return Err(format!("{} is not the key of a cell", row.key.escape_ascii())),
            };
        }
        Ok(self)
    }
}

/// Cells, in order.
type Cells = Vec<(Vec<i64>, Content)>;

fn contents(cells: Vec<(Vec<i64>, Bytes)>) -> Cells {
    cells.into_iter().map(|(index, value)| (index, Content::from(&value))).collect()
}

fn not_negative(index: &[i64]) -> Result<(), Error> {
    index.iter().find(|i| **i < 0).map_or(Ok(()), |i| Err(Error::NegativeIndex(*i)))
}

/// The indexes that are drawn in each dimension: on both sides of where an index needs another byte, and the
/// largest ones.
const INDEXES: [i64; 14] =
    [0, 1, 9, 10, 256, i64::MAX, 255, 65_536, i64::MAX - 1, 127, 128, 65_535, 1 << 32, (1 << 32) - 1];

/// The array's subspace.
fn space() -> Subspace {
    Subspace::from("array")
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Array>>()
}
