//! Operations on vectors and matrices.

use super::{Error, MAX_SCAN, keys};
use crate::{
    reachable, read,
    tx::{Isolation, RangeOption, Transaction},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use futures::future::join;

/// A vector in its own subspace.
#[derive(Clone, Debug)]
pub struct Vector {
    subspace: Subspace,
    default: Bytes,
}

/// A vector of vectors, the rows, in its own subspace.
#[derive(Clone, Debug)]
pub struct Matrix {
    subspace: Subspace,
    default: Bytes,
}

/// A stored element.
struct Stored {
    index: i64,
    value: Bytes,
}

impl Vector {
    /// The vector in `subspace`, which must not be used for anything else. Its holes read as empty values.
    pub fn new(subspace: Subspace) -> Vector {
        Vector::with_default(subspace, Bytes::new())
    }

    /// The vector in `subspace`, whose holes read as `default`. All clients must use the same default.
    pub fn with_default(subspace: Subspace, default: impl Into<Bytes>) -> Vector {
        Vector { subspace, default: default.into() }
    }

    /// The element at `index`. A hole reads as the default; fails with [`Error::OutOfRange`] at or beyond the
    /// size.
    pub async fn get<T: Transaction>(
        &self,
        tx: &T,
        index: i64,
        isolation: Isolation,
    ) -> Result<Bytes, Error> {
        let tx = &tx.reading().await;
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

    /// Sets the element at `index`. Beyond the end, the vector grows to contain it, and the elements in
    /// between are holes. Reads nothing.
    pub async fn set<T: Transaction>(&self, tx: &T, index: i64, value: &[u8]) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let key = keys::element(&self.subspace, index)?;
        keys::fits(&key, value)?;
        tx.set(&key, value);
        Ok(())
    }

    /// Appends an element, and returns its index.
    ///
    /// The read of the end is serializable: of two concurrent pushes, one is retried and sees the other's
    /// element.
    pub async fn push<T: Transaction>(&self, tx: &T, value: &[u8]) -> Result<i64, Error> {
        let tx = &tx.writing().await;
        let index = self.size(tx, Isolation::Serializable).await?;
        self.set(tx, index, value).await?;
        Ok(index)
    }

    /// Removes and returns the last element; `None` if there is none.
    pub async fn pop<T: Transaction>(&self, tx: &T) -> Result<Option<Bytes>, Error> {
        let tx = &tx.writing().await;
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
        let tx = &tx.reading().await;
        Ok(self.last(tx, 1, isolation).await?.pop().map(|stored| stored.value))
    }

    /// The number of elements, including holes.
    pub async fn size<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<i64, Error> {
        let tx = &tx.reading().await;
        // Indexes are below the maximum, so that the size does not overflow.
        Ok(self.last(tx, 1, isolation).await?.pop().map_or(0, |stored| stored.index + 1))
    }

    /// Whether there is no element.
    pub async fn is_empty<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<bool, Error> {
        Ok(self.size(tx, isolation).await? == 0)
    }

    /// Swaps two elements, both of which must exist.
    pub async fn swap<T: Transaction>(&self, tx: &T, one: i64, other: i64) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let read = |index| self.get(tx, index, Isolation::Serializable);
        // Of two refusals, the first one's counts, whichever read ends first.
        let (first, second) = join(read(one), read(other)).await;
        let (first, second) = (first?, second?);
        if one == other {
            return Ok(());
        }
        let rows =
            [(keys::element(&self.subspace, one)?, second), (keys::element(&self.subspace, other)?, first)];
        // Before any write: the default of a hole may be too long to be stored.
        for (key, value) in &rows {
            keys::fits(key, value)?;
        }
        rows.iter().for_each(|(key, value)| tx.set(key, value));
        Ok(())
    }

    /// Makes the vector `size` elements long: elements beyond are removed, missing ones are holes.
    pub async fn resize<T: Transaction>(&self, tx: &T, size: i64) -> Result<(), Error> {
        let tx = &tx.writing().await;
        self.cut(tx, size, true).await
    }

    /// Removes the elements from index `size` on. Does nothing if the vector is not longer.
    pub async fn truncate<T: Transaction>(&self, tx: &T, size: i64) -> Result<(), Error> {
        let tx = &tx.writing().await;
        self.cut(tx, size, false).await
    }

    /// The elements from index `start` up to but excluding `end` (or to the end), with holes as the default.
    /// A range that extends beyond the size ends there.
    ///
    /// More than [`MAX_SCAN`] elements are refused.
    pub async fn scan<T: Transaction>(
        &self,
        tx: &T,
        start: i64,
        end: Option<i64>,
        isolation: Isolation,
    ) -> Result<Vec<Bytes>, Error> {
        let tx = &tx.reading().await;
        let rows = self.stored(tx, start, end, isolation).await?;
        let behind = rows.last().map_or(start, |(index, _)| index + 1);
        // The last element is stored: the indexes after the last row are a hole only if an element follows.
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

    /// The stored elements, from index `start` up to but excluding `end` (or to the end), with their indexes:
    /// for vectors with large holes.
    pub async fn stored<T: Transaction>(
        &self,
        tx: &T,
        start: i64,
        end: Option<i64>,
        isolation: Isolation,
    ) -> Result<Vec<(i64, Bytes)>, Error> {
        let tx = &tx.reading().await;
        let begin = keys::from(&self.subspace, keys::counts(start)?);
        let end = match end.map(keys::counts).transpose()? {
            Some(end) if end <= start => return Ok(Vec::new()),
            Some(end) => keys::from(&self.subspace, end),
            None => keys::end(&self.subspace),
        };
        let rows = read::all::<_, Error>(tx, RangeOption::new(begin, end), isolation).await?;
        rows.into_iter().map(|row| Ok((keys::index(&self.subspace, &row.key)?, row.value))).collect()
    }

    /// Removes everything from index `size` on. If the element before it is missing, and the vector `grows`
    /// or was longer, stores the default there so that the size is right.
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

    /// The first stored element at or after `index`.
    async fn first_from<T: Transaction>(
        &self,
        tx: &T,
        index: i64,
        isolation: Isolation,
    ) -> Result<Option<Stored>, Error> {
        let range = RangeOption::new(keys::from(&self.subspace, index), keys::end(&self.subspace));
        Ok(self.some(tx, range.limit(1), isolation).await?.pop())
    }

    /// The last stored elements, in descending order.
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
    /// The matrix in `subspace`, which must not be used for anything else. Its holes read as empty values.
    pub fn new(subspace: Subspace) -> Matrix {
        Matrix::with_default(subspace, Bytes::new())
    }

    /// The matrix in `subspace`, whose holes read as `default`.
    pub fn with_default(subspace: Subspace, default: impl Into<Bytes>) -> Matrix {
        Matrix { subspace, default: default.into() }
    }

    /// A row, which is a vector. It may have no elements yet.
    pub fn row(&self, row: i64) -> Result<Vector, Error> {
        keys::element(&self.subspace, row)?;
        Ok(Vector::with_default(self.subspace.subspace(&(row,)), self.default.clone()))
    }

    /// The number of rows: up to the last row that has an element.
    pub async fn rows<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<i64, Error> {
        let tx = &tx.reading().await;
        let range = RangeOption::from(self.subspace.range()).reversed().limit(1);
        let last = read::all::<_, Error>(tx, range, isolation).await?.pop();
        last.map_or(Ok(0), |row| Ok(keys::place(&self.subspace, &row.key)?.0 + 1))
    }

    /// Removes the rows from index `rows` on.
    pub async fn truncate<T: Transaction>(&self, tx: &T, rows: i64) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let begin = keys::from(&self.subspace, keys::counts(rows)?);
        tx.clear_range(&begin, &keys::end(&self.subspace));
        Ok(())
    }
}
