//! A vector's operations.

use super::{Error, MAX_SCAN, keys};
use crate::{
    reachable, read,
    tx::{Isolation, RangeOption, Transaction},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;

/// A vector below a subspace of its own.
#[derive(Clone, Debug)]
pub struct Vector {
    subspace: Subspace,
    default: Bytes,
}

/// A vector of vectors below a subspace of its own: its rows.
#[derive(Clone, Debug)]
pub struct Matrix {
    subspace: Subspace,
    default: Bytes,
}

/// An element that is stored.
struct Stored {
    index: i64,
    value: Bytes,
}

impl Vector {
    /// The vector below `subspace`, which nothing else may use. Its holes read as empty values.
    pub fn new(subspace: Subspace) -> Vector {
        crate::called!();
        Vector::with_default(subspace, Bytes::new())
    }

    /// The vector below `subspace`, holes of which read as `default`. Everybody must give the same one.
    pub fn with_default(subspace: Subspace, default: impl Into<Bytes>) -> Vector {
        crate::called!();
        Vector { subspace, default: default.into() }
    }

    /// The element at `index`. A hole reads as the default; at or behind the size, [`Error::OutOfRange`].
    pub async fn get<T: Transaction>(
        &self,
        tx: &T,
        index: i64,
        isolation: Isolation,
    ) -> Result<Bytes, Error> {
        crate::called!();
        keys::element(&self.subspace, index)?;
        match self.first_from(tx, index, isolation).await? {
            Some(found) if found.index == index => Ok(found.value),
            Some(_) => {
                reachable!("vector: a hole is read");
                Ok(self.default.clone())
            }
            None => Err(Error::OutOfRange { index, size: self.size(tx, isolation).await? }),
        }
    }

    /// Sets the element at `index`. Behind the end, the vector grows to hold it, and what lies in between are
    /// holes. Reads nothing.
    pub async fn set<T: Transaction>(&self, tx: &T, index: i64, value: &[u8]) -> Result<(), Error> {
        crate::called!();
        let key = keys::element(&self.subspace, index)?;
        keys::fits(&key, value)?;
        tx.set(&key, value);
        Ok(())
    }

    /// Appends an element, and says at which index.
    ///
    /// The read of the end is serializable: of two pushes at once, one is done again and finds the other's.
    pub async fn push<T: Transaction>(&self, tx: &T, value: &[u8]) -> Result<i64, Error> {
        crate::called!();
        let index = self.size(tx, Isolation::Serializable).await?;
        self.set(tx, index, value).await?;
        Ok(index)
    }

    /// Removes the last element and answers it; `None` when there is none.
    pub async fn pop<T: Transaction>(&self, tx: &T) -> Result<Option<Bytes>, Error> {
        crate::called!();
        let mut last = self.last(tx, 2, Isolation::Serializable).await?.into_iter();
        let Some(popped) = last.next() else {
            reachable!("vector: a pop finds nothing");
            return Ok(None);
        };
        if let Some(before) = popped.index.checked_sub(1).filter(|before| *before >= 0)
            && last.next().is_none_or(|stored| stored.index != before)
        {
            reachable!("vector: a pop uncovers a hole");
            self.fill(tx, before)?;
        }
        tx.clear(&keys::from(&self.subspace, popped.index));
        Ok(Some(popped.value))
    }

    /// The last element; `None` when there is none.
    pub async fn back<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<Option<Bytes>, Error> {
        crate::called!();
        Ok(self.last(tx, 1, isolation).await?.pop().map(|stored| stored.value))
    }

    /// How many elements there are, holes included.
    pub async fn size<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<i64, Error> {
        crate::called!();
        // An index leaves room for the size.
        Ok(self.last(tx, 1, isolation).await?.pop().map_or(0, |stored| stored.index + 1))
    }

    /// Whether there is no element.
    pub async fn is_empty<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<bool, Error> {
        crate::called!();
        Ok(self.size(tx, isolation).await? == 0)
    }

    /// Exchanges two elements, both of which must be there.
    pub async fn swap<T: Transaction>(&self, tx: &T, one: i64, other: i64) -> Result<(), Error> {
        crate::called!();
        let first = self.get(tx, one, Isolation::Serializable).await?;
        let second = self.get(tx, other, Isolation::Serializable).await?;
        if one != other {
            self.set(tx, one, &second).await?;
            self.set(tx, other, &first).await?;
        }
        Ok(())
    }

    /// Makes the vector `size` elements long: what is behind them is removed, what is missing are holes.
    pub async fn resize<T: Transaction>(&self, tx: &T, size: i64) -> Result<(), Error> {
        crate::called!();
        self.cut(tx, size, true).await
    }

    /// Removes the elements from index `size` on. A vector that is not longer stays as it is.
    pub async fn truncate<T: Transaction>(&self, tx: &T, size: i64) -> Result<(), Error> {
        crate::called!();
        self.cut(tx, size, false).await
    }

    /// The elements from index `start` up to but without `end` (or to the end), holes as the default. A range
    /// that reaches behind the size ends there.
    ///
    /// More than [`MAX_SCAN`] elements are refused.
    pub async fn scan<T: Transaction>(
        &self,
        tx: &T,
        start: i64,
        end: Option<i64>,
        isolation: Isolation,
    ) -> Result<Vec<Bytes>, Error> {
        crate::called!();
        let rows = self.stored(tx, start, end, isolation).await?;
        let behind = rows.last().map_or(start, |(index, _)| index + 1);
        // The last element is stored: what is behind the last row is a hole only if something follows it.
        let stop = match end {
            Some(end) if end > behind && self.first_from(tx, end, isolation).await?.is_some() => {
                reachable!("vector: a scan ends in a hole");
                end
            }
            _ => behind,
        };
        let elements = stop - start;
        if elements > MAX_SCAN {
            return Err(Error::ScanTooLong { elements, limit: MAX_SCAN });
        }
        let mut values = vec![self.default.clone(); elements as usize];
        for (index, value) in rows {
            values[(index - start) as usize] = value;
        }
        Ok(values)
    }

    /// The elements that are stored, from index `start` up to but without `end` (or to the end), with their
    /// indexes: what a vector with large holes is read by.
    pub async fn stored<T: Transaction>(
        &self,
        tx: &T,
        start: i64,
        end: Option<i64>,
        isolation: Isolation,
    ) -> Result<Vec<(i64, Bytes)>, Error> {
        crate::called!();
        let begin = keys::from(&self.subspace, keys::counts(start)?);
        let end = match end.map(keys::counts).transpose()? {
            Some(end) if end <= start => return Ok(Vec::new()),
            Some(end) => keys::from(&self.subspace, end),
            None => keys::end(&self.subspace),
        };
        let rows = read::all::<_, Error>(tx, RangeOption::new(begin, end), isolation).await?;
        rows.into_iter().map(|row| Ok((keys::index(&self.subspace, &row.key)?, row.value))).collect()
    }

    /// Removes everything from index `size` on; if the element before it is missing, stores the default there
    /// so that the size is right, if the vector `grows` or was longer.
    async fn cut<T: Transaction>(&self, tx: &T, size: i64, grows: bool) -> Result<(), Error> {
        if let Some(last) = keys::counts(size)?.checked_sub(1).filter(|last| *last >= 0) {
            match self.first_from(tx, last, Isolation::Serializable).await? {
                None if !grows => return Ok(()),
                Some(found) if found.index == last => (),
                found => {
                    if found.is_some() {
                        reachable!("vector: a cut uncovers a hole");
                    }
                    self.fill(tx, last)?;
                }
            }
        }
        tx.clear_range(&keys::from(&self.subspace, size), &keys::end(&self.subspace));
        Ok(())
    }

    /// Stores the default in a hole.
    fn fill<T: Transaction>(&self, tx: &T, index: i64) -> Result<(), Error> {
        let key = keys::element(&self.subspace, index)?;
        keys::fits(&key, &self.default)?;
        tx.set(&key, &self.default);
        Ok(())
    }

    /// The first stored element at or behind `index`.
    async fn first_from<T: Transaction>(
        &self,
        tx: &T,
        index: i64,
        isolation: Isolation,
    ) -> Result<Option<Stored>, Error> {
        let range = RangeOption::new(keys::from(&self.subspace, index), keys::end(&self.subspace));
        Ok(self.some(tx, range.limit(1), isolation).await?.pop())
    }

    /// The last stored elements, from the end.
    async fn last<T: Transaction>(
        &self,
        tx: &T,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<Stored>, Error> {
        let range = RangeOption::new(self.subspace.range().0, keys::end(&self.subspace));
        self.some(tx, range.reversed().limit(limit), isolation).await
    }

    async fn some<T: Transaction>(
        &self,
        tx: &T,
        range: RangeOption,
        isolation: Isolation,
    ) -> Result<Vec<Stored>, Error> {
        let rows = read::all::<_, Error>(tx, range, isolation).await?;
        let stored = rows
            .into_iter()
            .map(|row| Ok(Stored { index: keys::index(&self.subspace, &row.key)?, value: row.value }));
        stored.collect()
    }
}

impl Matrix {
    /// The matrix below `subspace`, which nothing else may use. Its holes read as empty values.
    pub fn new(subspace: Subspace) -> Matrix {
        crate::called!();
        Matrix::with_default(subspace, Bytes::new())
    }

    /// The matrix below `subspace`, holes of which read as `default`.
    pub fn with_default(subspace: Subspace, default: impl Into<Bytes>) -> Matrix {
        crate::called!();
        Matrix { subspace, default: default.into() }
    }

    /// A row, which is a vector. It need not have elements yet.
    pub fn row(&self, row: i64) -> Result<Vector, Error> {
        crate::called!();
        keys::element(&self.subspace, row)?;
        Ok(Vector::with_default(self.subspace.subspace(&(row,)), self.default.clone()))
    }

    /// How many rows there are: up to the last one that has an element.
    pub async fn rows<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<i64, Error> {
        crate::called!();
        let range = RangeOption::from(self.subspace.range()).reversed().limit(1);
        let last = read::all::<_, Error>(tx, range, isolation).await?.pop();
        last.map_or(Ok(0), |row| Ok(keys::place(&self.subspace, &row.key)?.0 + 1))
    }

    /// Removes the rows from `rows` on.
    pub async fn truncate<T: Transaction>(&self, tx: &T, rows: i64) -> Result<(), Error> {
        crate::called!();
        let begin = keys::from(&self.subspace, keys::counts(rows)?);
        tx.clear_range(&begin, &keys::end(&self.subspace));
        Ok(())
    }
}
