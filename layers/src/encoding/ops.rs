//! A map from ordered keys to values; operations within a transaction.

use super::{Column, Error, Part, keys};
use crate::{
    limits, read,
    tx::{Isolation, RangeOption, Transaction, key_after, strinc},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;

/// A map whose keys are ordered by its columns, in its own subspace.
#[derive(Clone, Debug)]
pub struct Ordered {
    subspace: Subspace,
    columns: Vec<Column>,
}

/// The parts of a key, and its value.
pub type Row = (Vec<Part>, Bytes);

impl Ordered {
    /// The map in `subspace`, which must not be used for anything else.
    pub fn new(subspace: Subspace, columns: Vec<Column>) -> Result<Ordered, Error> {
        columns.iter().try_for_each(Column::check)?;
        Ok(Ordered { subspace, columns })
    }

    /// Sets the value of a key.
    pub async fn set<T: Transaction>(&self, tx: &T, key: &[Part], value: &[u8]) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let key = keys::key(&self.subspace, &self.columns, key)?;
        limits::row(&key, value)?;
        tx.set(&key, value);
        Ok(())
    }

    /// The value of a key, if there is one.
    pub async fn get<T: Transaction>(
        &self,
        tx: &T,
        key: &[Part],
        isolation: Isolation,
    ) -> Result<Option<Bytes>, Error> {
        let tx = &tx.reading().await;
        Ok(tx.get(&keys::key(&self.subspace, &self.columns, key)?, isolation).await?)
    }

    /// Removes a key.
    pub async fn delete<T: Transaction>(&self, tx: &T, key: &[Part]) -> Result<(), Error> {
        let tx = &tx.writing().await;
        tx.clear(&keys::key(&self.subspace, &self.columns, key)?);
        Ok(())
    }

    /// The rows whose keys begin with these parts, in order; all rows if `prefix` is empty. Reads everything
    /// at once: use [`page`](Ordered::page) for more rows than one transaction can read within its time
    /// limit.
    pub async fn under<T: Transaction>(
        &self,
        tx: &T,
        prefix: &[Part],
        isolation: Isolation,
    ) -> Result<Vec<Row>, Error> {
        let tx = &tx.reading().await;
        let (begin, end) = self.range(prefix)?;
        self.rows(tx, RangeOption::new(begin, end), isolation).await
    }

    /// Up to `most` rows of those [`under`](Ordered::under) the prefix, in order: the first ones, or those
    /// after the key `after`, which need not exist.
    pub async fn page<T: Transaction>(
        &self,
        tx: &T,
        prefix: &[Part],
        after: Option<&[Part]>,
        most: usize,
        isolation: Isolation,
    ) -> Result<Vec<Row>, Error> {
        let tx = &tx.reading().await;
        let (mut begin, end) = self.range(prefix)?;
        if let Some(after) = after {
            begin = begin.max(key_after(&keys::key(&self.subspace, &self.columns, after)?));
        }
        if most == 0 || begin >= end {
            return Ok(Vec::new());
        }
        self.rows(tx, RangeOption::new(begin, end).limit(most), isolation).await
    }

    /// The rows from the first key that begins with `from` to the last key before those that begin with `to`,
    /// in order. None if `from` sorts after `to`.
    pub async fn between<T: Transaction>(
        &self,
        tx: &T,
        from: &[Part],
        to: &[Part],
        isolation: Isolation,
    ) -> Result<Vec<Row>, Error> {
        let tx = &tx.reading().await;
        let begin = keys::prefix(&self.subspace, &self.columns, from)?;
        let end = keys::prefix(&self.subspace, &self.columns, to)?;
        if begin >= end {
            return Ok(Vec::new());
        }
        self.rows(tx, RangeOption::new(begin, end), isolation).await
    }

    /// The range of the keys that begin with these parts.
    fn range(&self, prefix: &[Part]) -> Result<(Bytes, Bytes), Error> {
        let begin = keys::prefix(&self.subspace, &self.columns, prefix)?;
        // Ends at the next prefix rather than at this one followed by 0xff, since an integer may begin with
        // 0xff.
        let end = strinc(&begin).unwrap_or(Bytes::from_static(b"\xff"));
        Ok((begin.into(), end))
    }

    async fn rows<T: Transaction>(
        &self,
        tx: &T,
        range: RangeOption,
        isolation: Isolation,
    ) -> Result<Vec<Row>, Error> {
        let rows = read::all::<_, Error>(tx, range, isolation).await?;
        rows.into_iter()
            .map(|row| Ok((keys::parts(&self.subspace, &self.columns, &row.key)?, row.value)))
            .collect()
    }
}
