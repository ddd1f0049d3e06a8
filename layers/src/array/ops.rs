//! An array's operations.

use super::{Error, keys};
use crate::{
    limits, read,
    tx::{Isolation, KeyValue, RangeOption, Transaction, key_after},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;

/// A sparse array below a subspace of its own.
#[derive(Clone, Debug)]
pub struct Array {
    subspace: Subspace,
    dimensions: usize,
}

impl Array {
    /// The array of one dimension below `subspace`, which nothing else may use.
    pub fn new(subspace: Subspace) -> Array {
        crate::called!();
        Array::with_dimensions(subspace, 1)
    }

    /// The array of so many dimensions below `subspace`. Their number is part of the data.
    pub fn with_dimensions(subspace: Subspace, dimensions: usize) -> Array {
        crate::called!();
        Array { subspace, dimensions }
    }

    /// Puts a value into a cell.
    pub async fn set<T: Transaction>(&self, tx: &T, index: &[i64], value: &[u8]) -> Result<(), Error> {
        crate::called!();
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
        crate::called!();
        Ok(tx.get(&self.cell(index)?, isolation).await?)
    }

    /// Empties a cell.
    pub async fn clear<T: Transaction>(&self, tx: &T, index: &[i64]) -> Result<(), Error> {
        crate::called!();
        tx.clear(&self.cell(index)?);
        Ok(())
    }

    /// The cells whose index begins with `prefix`, in the order of indexes: all cells when it is empty, a
    /// row of a matrix when it names one.
    pub async fn cells<T: Transaction>(
        &self,
        tx: &T,
        prefix: &[i64],
        isolation: Isolation,
    ) -> Result<Vec<(Vec<i64>, Bytes)>, Error> {
        crate::called!();
        let range = RangeOption::from(self.below(prefix)?);
        self.read(read::all::<_, Error>(tx, range, isolation).await?)
    }

    /// The first `limit` of the cells that [`cells`](Array::cells) gives, or of those after the cell at the
    /// index `after`: the next page begins after the last index of this one. A page that is shorter than
    /// `limit` is the last one.
    pub async fn page<T: Transaction>(
        &self,
        tx: &T,
        prefix: &[i64],
        after: Option<&[i64]>,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<(Vec<i64>, Bytes)>, Error> {
        crate::called!();
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
