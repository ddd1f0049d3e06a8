//! Operations on multimaps, within a transaction.

use super::{Error, keys};
use crate::{
    label::Label,
    limits, nesting, read, sometimes,
    tx::{Isolation, KeySelector, KeyValue, MutationType, RangeOption, Transaction},
};
use foundationdb_tuple::Subspace;

/// A set of values under each index, in its own subspace.
#[derive(Clone, Debug)]
pub struct Multimap {
    subspace: Subspace,
}

/// A count of each value under each index, in its own subspace.
#[derive(Clone, Debug)]
pub struct Multiset {
    subspace: Subspace,
}

impl Multimap {
    /// The multimap in `subspace`, which must not be used for anything else.
    pub fn new(subspace: Subspace) -> Multimap {
        Multimap { subspace }
    }

    /// Adds a value to an index; does nothing if it is already there.
    pub async fn add<T: Transaction>(&self, tx: &T, index: &Label, value: &Label) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let key = keys::pair(&self.subspace, index, value);
        limits::key(&key)?;
        nesting::check(&key[self.subspace.bytes().len()..])?;
        tx.set(&key, b"");
        Ok(())
    }

    /// Removes a value from an index; does nothing if it is not there.
    pub async fn remove<T: Transaction>(&self, tx: &T, index: &Label, value: &Label) -> Result<(), Error> {
        let tx = &tx.writing().await;
        tx.clear(&keys::pair(&self.subspace, index, value));
        Ok(())
    }

    /// Removes all values from an index.
    pub async fn remove_all<T: Transaction>(&self, tx: &T, index: &Label) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let (begin, end) = keys::under(&self.subspace, index).range();
        tx.clear_range(&begin, &end);
        Ok(())
    }

    /// Whether a value is stored under an index.
    pub async fn is_element<T: Transaction>(
        &self,
        tx: &T,
        index: &Label,
        value: &Label,
        isolation: Isolation,
    ) -> Result<bool, Error> {
        let tx = &tx.reading().await;
        // The stored value is empty: only its existence matters.
        Ok(tx.get(&keys::pair(&self.subspace, index, value), isolation).await?.is_some())
    }

    /// The values under an index, in order: up to `most` (at least one) after the value `after`. If fewer
    /// than `most` are returned, they are the last ones.
    pub async fn get<T: Transaction>(
        &self,
        tx: &T,
        index: &Label,
        after: Option<&Label>,
        most: usize,
        isolation: Isolation,
    ) -> Result<Vec<Label>, Error> {
        let tx = &tx.reading().await;
        let after = after.map(|value| keys::pair(&self.subspace, index, value));
        let rows = rows(tx, &keys::under(&self.subspace, index), after, most, isolation).await?;
        rows.iter().map(|row| Ok(keys::member(&self.subspace, row)?.1)).collect()
    }

    /// All indexes with their values, in order: up to `most` (at least one) after the pair `after`. If fewer
    /// than `most` are returned, they are the last ones.
    pub async fn all<T: Transaction>(
        &self,
        tx: &T,
        after: Option<(&Label, &Label)>,
        most: usize,
        isolation: Isolation,
    ) -> Result<Vec<(Label, Label)>, Error> {
        let tx = &tx.reading().await;
        let after = after.map(|(index, value)| keys::pair(&self.subspace, index, value));
        let rows = rows(tx, &self.subspace, after, most, isolation).await?;
        rows.iter().map(|row| keys::member(&self.subspace, row)).collect()
    }
}

impl Multiset {
    /// The multiset in `subspace`, which must not be used for anything else.
    pub fn new(subspace: Subspace) -> Multiset {
        Multiset { subspace }
    }

    /// Adds `copies` copies of a value to an index, without reading the current count.
    pub async fn add<T: Transaction>(
        &self,
        tx: &T,
        index: &Label,
        value: &Label,
        copies: u32,
    ) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let key = keys::pair(&self.subspace, index, value);
        limits::key(&key)?;
        nesting::check(&key[self.subspace.bytes().len()..])?;
        // Adding zero to an absent key would create it.
        if copies > 0 {
            tx.atomic_op(&key, &i64::from(copies).to_le_bytes(), MutationType::Add);
        }
        Ok(())
    }

    /// Removes `copies` copies of a value from an index, or none if there are fewer. Returns the number left.
    pub async fn remove<T: Transaction>(
        &self,
        tx: &T,
        index: &Label,
        value: &Label,
        copies: u32,
    ) -> Result<u64, Error> {
        let tx = &tx.writing().await;
        let have = self.count(tx, index, value, Isolation::Serializable).await?;
        let left = have.checked_sub(copies.into());
        sometimes!(left.is_none(), "multimap: there are fewer copies than are to be removed");
        let left = left.ok_or(Error::TooFew { have, asked: copies })?;
        if copies > 0 {
            let key = keys::pair(&self.subspace, index, value);
            tx.atomic_op(&key, &(-i64::from(copies)).to_le_bytes(), MutationType::Add);
            tx.atomic_op(&key, &0i64.to_le_bytes(), MutationType::CompareAndClear);
            sometimes!(left == 0, "multimap: the last copy takes its key along");
        }
        Ok(left)
    }

    /// Removes all copies of all values from an index.
    pub async fn remove_all<T: Transaction>(&self, tx: &T, index: &Label) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let (begin, end) = keys::under(&self.subspace, index).range();
        tx.clear_range(&begin, &end);
        Ok(())
    }

    /// The number of copies of a value under an index.
    pub async fn count<T: Transaction>(
        &self,
        tx: &T,
        index: &Label,
        value: &Label,
        isolation: Isolation,
    ) -> Result<u64, Error> {
        let tx = &tx.reading().await;
        let key = keys::pair(&self.subspace, index, value);
        tx.get(&key, isolation).await?.map_or(Ok(0), |copies| keys::copies(&key, &copies))
    }

    /// The values under an index, in order, with the number of copies of each: up to `most` (at least one)
    /// after the value `after`. If fewer than `most` are returned, they are the last ones.
    pub async fn get<T: Transaction>(
        &self,
        tx: &T,
        index: &Label,
        after: Option<&Label>,
        most: usize,
        isolation: Isolation,
    ) -> Result<Vec<(Label, u64)>, Error> {
        let tx = &tx.reading().await;
        let after = after.map(|value| keys::pair(&self.subspace, index, value));
        let rows = rows(tx, &keys::under(&self.subspace, index), after, most, isolation).await?;
        let value = |row: &KeyValue| {
            Ok((keys::parts(&self.subspace, &row.key)?.1, keys::copies(&row.key, &row.value)?))
        };
        rows.iter().map(value).collect()
    }

    /// All indexes with their values, in order, with the number of copies of each: up to `most` (at least
    /// one) after the pair `after`. If fewer than `most` are returned, they are the last ones.
    pub async fn all<T: Transaction>(
        &self,
        tx: &T,
        after: Option<(&Label, &Label)>,
        most: usize,
        isolation: Isolation,
    ) -> Result<Vec<((Label, Label), u64)>, Error> {
        let tx = &tx.reading().await;
        let after = after.map(|(index, value)| keys::pair(&self.subspace, index, value));
        let rows = rows(tx, &self.subspace, after, most, isolation).await?;
        let pair = |row: &KeyValue| {
            Ok((keys::parts(&self.subspace, &row.key)?, keys::copies(&row.key, &row.value)?))
        };
        rows.iter().map(pair).collect()
    }
}

/// The first rows of a subspace, or those after one of its keys.
async fn rows<T: Transaction>(
    tx: &T,
    subspace: &Subspace,
    after: Option<Vec<u8>>,
    most: usize,
    isolation: Isolation,
) -> Result<Vec<KeyValue>, Error> {
    let mut range = RangeOption::from(subspace.range()).limit(most.max(1));
    if let Some(after) = after {
        range.begin = KeySelector::first_greater_than(after);
    }
    read::all(tx, range, isolation).await
}
