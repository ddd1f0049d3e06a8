//! Operations on arrays.

use super::{Error, keys};
use crate::{
    limits, read,
    tx::{Isolation, KeyValue, RangeOption, Transaction, key_after},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;

/// A sparse array in its own subspace.
#[derive(Clone, Debug)]
pub struct Array {
    subspace: Subspace,
    dimensions: usize,
}

impl Array {
    /// The one-dimensional array in `subspace`, which must not be used for anything else.
    pub fn new(subspace: Subspace) -> Array {
        Array::with_dimensions(subspace, 1)
    }

    /// The array with `dimensions` dimensions in `subspace`. All users of the data must use the same number.
    pub fn with_dimensions(subspace: Subspace, dimensions: usize) -> Array {
        Array { subspace, dimensions }
    }

    /// Sets the value of a cell.
    pub async fn set<T: Transaction>(&self, tx: &T, index: &[i64], value: &[u8]) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let key = self.cell(index)?;
        limits::row(&key, value)?;
        tx.set(&key, value);
        Ok(())
    }

    /// The value of a cell, if it has one.
    pub async fn get<T: Transaction>(
        &self,
        tx: &T,
        index: &[i64],
        isolation: Isolation,
    ) -> Result<Option<Bytes>, Error> {
        let tx = &tx.reading().await;
        Ok(tx.get(&self.cell(index)?, isolation).await?)
    }

    /// Clears a cell.
    pub async fn clear<T: Transaction>(&self, tx: &T, index: &[i64]) -> Result<(), Error> {
        let tx = &tx.writing().await;
        tx.clear(&self.cell(index)?);
        Ok(())
    }

    /// The cells whose index begins with `prefix`, in the order of indexes: all cells if it is empty, a row
    /// of a matrix if it is the row's index.
    pub async fn cells<T: Transaction>(
        &self,
        tx: &T,
        prefix: &[i64],
        isolation: Isolation,
    ) -> Result<Vec<(Vec<i64>, Bytes)>, Error> {
        let tx = &tx.reading().await;
        let range = RangeOption::from(self.below(prefix)?);
        self.read(read::all::<_, Error>(tx, range, isolation).await?)
    }

    /// The first `limit` of the cells that [`cells`](Array::cells) returns, or of those after the index
    /// `after`: pass the last index of a page to read the next one. A page shorter than `limit` is the last
    /// one.
    pub async fn page<T: Transaction>(
        &self,
        tx: &T,
        prefix: &[i64],
        after: Option<&[i64]>,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<(Vec<i64>, Bytes)>, Error> {
        let tx = &tx.reading().await;
        let (mut begin, end) = self.below(prefix)?;
        if let Some(after) = after {
            begin = begin.max(key_after(&self.cell(after)?).into());
        }
        self.read(read::page::<_, Error>(tx, (begin, end), limit, isolation).await?)
    }

    /// The range of the cells whose index begins with `prefix`.
    fn below(&self, prefix: &[i64]) -> Result<(Vec<u8>, Vec<u8>), Error> {
        match prefix.len() < self.dimensions {
            true => Ok(keys::under(&self.subspace, prefix)?.range()),
            false => Err(self.wrong(prefix)),
        }
    }

    fn read(&self, rows: Vec<KeyValue>) -> Result<Vec<(Vec<i64>, Bytes)>, Error> {
        rows.into_iter()
            .map(|row| Ok((keys::index(&self.subspace, self.dimensions, &row.key)?, row.value)))
            .collect()
    }

    fn cell(&self, index: &[i64]) -> Result<Vec<u8>, Error> {
        if index.len() != self.dimensions {
            return Err(self.wrong(index));
        }
        let key = keys::under(&self.subspace, index)?.into_bytes();
        limits::key(&key)?;
        Ok(key)
    }

    fn wrong(&self, index: &[i64]) -> Error {
        Error::WrongDimensions { given: index.len(), dimensions: self.dimensions }
    }
}
