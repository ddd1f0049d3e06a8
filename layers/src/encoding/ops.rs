//! A map from ordered keys to values, inside a transaction.

use super::{Column, Error, Part, keys};
use crate::{
    limits, read,
    tx::{Isolation, RangeOption, Transaction, key_after, strinc},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;

/// A map whose keys have the order of their columns, below a subspace of its own.
#[derive(Clone, Debug)]
pub struct Ordered {
    subspace: Subspace,
    columns: Vec<Column>,
}

/// A key's parts, and its value.
pub type Row = (Vec<Part>, Bytes);

impl Ordered {
    /// The map below `subspace`, which nothing else may use.
    pub fn new(subspace: Subspace, columns: Vec<Column>) -> Result<Ordered, Error> {
        crate::called!();
        columns.iter().try_for_each(Column::check)?;
        Ok(Ordered { subspace, columns })
    }

    /// Puts a value under a key.
    pub async fn set<T: Transaction>(&self, tx: &T, key: &[Part], value: &[u8]) -> Result<(), Error> {
        crate::called!();
        let key = keys::key(&self.subspace, &self.columns, key)?;
        limits::row(&key, value)?;
        tx.set(&key, value);
        Ok(())
    }

    /// The value under a key, if there is one.
    pub async fn get<T: Transaction>(
        &self,
        tx: &T,
        key: &[Part],
        isolation: Isolation,
    ) -> Result<Option<Bytes>, Error> {
        crate::called!();
        Ok(tx.get(&keys::key(&self.subspace, &self.columns, key)?, isolation).await?)
    }

    /// Removes a key.
    pub async fn delete<T: Transaction>(&self, tx: &T, key: &[Part]) -> Result<(), Error> {
        crate::called!();
        tx.clear(&keys::key(&self.subspace, &self.columns, key)?);
        Ok(())
    }

    /// What is under keys that begin with these parts, in order; everything when there are none. All of it at
    /// once: what takes longer to read than a transaction lives is for [`page`](Ordered::page).
    pub async fn under<T: Transaction>(
        &self,
        tx: &T,
        prefix: &[Part],
        isolation: Isolation,
    ) -> Result<Vec<Row>, Error> {
        crate::called!();
        let (begin, end) = self.range(prefix)?;
        self.rows(tx, RangeOption::new(begin, end), isolation).await
    }

    /// Up to `most` rows of those [`under`](Ordered::under) the prefix, in order: the first ones, or those behind
    /// the key `after`, which may be gone.
    pub async fn page<T: Transaction>(
        &self,
        tx: &T,
        prefix: &[Part],
        after: Option<&[Part]>,
        most: usize,
        isolation: Isolation,
    ) -> Result<Vec<Row>, Error> {
        crate::called!();
        let (mut begin, end) = self.range(prefix)?;
        if let Some(after) = after {
            begin = begin.max(key_after(&keys::key(&self.subspace, &self.columns, after)?));
        }
        if most == 0 || begin >= end {
            return Ok(Vec::new());
        }
        self.rows(tx, RangeOption::new(begin, end).limit(most), isolation).await
    }

    /// What is under keys from the first one that begins with these parts to the last one before those, in
    /// order. Nothing when they are the other way round.
    pub async fn between<T: Transaction>(
        &self,
        tx: &T,
        from: &[Part],
        to: &[Part],
        isolation: Isolation,
    ) -> Result<Vec<Row>, Error> {
        crate::called!();
        let begin = keys::prefix(&self.subspace, &self.columns, from)?;
        let end = keys::prefix(&self.subspace, &self.columns, to)?;
        if begin >= end {
            return Ok(Vec::new());
        }
        self.rows(tx, RangeOption::new(begin, end), isolation).await
    }

    /// Where the keys are that begin with these parts.
    fn range(&self, prefix: &[Part]) -> Result<(Bytes, Bytes), Error> {
        let begin = keys::prefix(&self.subspace, &self.columns, prefix)?;
        // Up to the next prefix, not to 0xff behind this one: with that an integer may begin.
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
