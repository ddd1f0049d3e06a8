//! Operations on counters.

use super::{Error, Part, keys};
use crate::{
    read, sometimes,
    tx::{Isolation, MutationType, RangeOption, Transaction},
};
use foundationdb_tuple::Subspace;

/// A counter stored in a single key.
#[derive(Clone, Debug)]
pub struct Counter {
    key: Vec<u8>,
}

/// A counter that is the sum of several keys.
#[derive(Clone, Debug)]
pub struct SplitCounter {
    subspace: Subspace,
    parts: u32,
}

impl Counter {
    /// The counter stored at the prefix of `subspace` itself.
    pub fn new(subspace: Subspace) -> Counter {
        Counter { key: subspace.into_bytes() }
    }

    /// Changes the counter without reading it.
    pub async fn add<T: Transaction>(&self, tx: &T, by: i64) -> Result<(), Error> {
        let tx = &tx.writing().await;
        tx.atomic_op(&self.key, &by.to_le_bytes(), MutationType::Add);
        Ok(())
    }

    /// Changes the counter if the result is in `least..=most`, and returns the result.
    pub async fn add_within<T: Transaction>(
        &self,
        tx: &T,
        by: i64,
        least: i64,
        most: i64,
    ) -> Result<i64, Error> {
        let tx = &tx.writing().await;
        let after = within(self.get(tx, Isolation::Serializable).await?, by, least, most)?;
        self.add(tx, by).await?;
        Ok(after)
    }

    /// Sets the value of the counter.
    pub async fn set<T: Transaction>(&self, tx: &T, value: i64) -> Result<(), Error> {
        let tx = &tx.writing().await;
        tx.set(&self.key, &value.to_le_bytes());
        Ok(())
    }

    /// The value of the counter.
    pub async fn get<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<i64, Error> {
        let tx = &tx.reading().await;
        tx.get(&self.key, isolation).await?.map_or(Ok(0), |value| keys::value(&self.key, &value))
    }
}

impl SplitCounter {
    /// The counter in `subspace`, which must not be used for anything else, with `parts` parts.
    pub fn new(subspace: Subspace, parts: u32) -> SplitCounter {
        SplitCounter { subspace, parts }
    }

    /// Changes the counter in this part, without reading it.
    pub async fn add<T: Transaction>(&self, tx: &T, part: Part, by: i64) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let key = keys::part(&self.subspace, part, self.parts);
        tx.atomic_op(&key, &by.to_le_bytes(), MutationType::Add);
        Ok(())
    }

    /// Changes the counter in this part if the result is in `least..=most`, and returns the result. Reads all
    /// parts serializably: a decision based on fewer would not be exact.
    pub async fn add_within<T: Transaction>(
        &self,
        tx: &T,
        part: Part,
        by: i64,
        least: i64,
        most: i64,
    ) -> Result<i64, Error> {
        let tx = &tx.writing().await;
        let after = within(self.get(tx, Isolation::Serializable).await?, by, least, most)?;
        self.add(tx, part, by).await?;
        Ok(after)
    }

    /// Sets the value of the counter in one part, and clears all other parts, regardless of which client
    /// wrote them.
    pub async fn set<T: Transaction>(&self, tx: &T, value: i64) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let (begin, end) = self.subspace.range();
        tx.clear_range(&begin, &end);
        tx.set(&keys::part(&self.subspace, Part(0), self.parts), &value.to_le_bytes());
        Ok(())
    }

    /// The value of the counter: the sum of all existing parts.
    pub async fn get<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<i64, Error> {
        let tx = &tx.reading().await;
        let rows = read::all::<_, Error>(tx, RangeOption::from(self.subspace.range()), isolation).await?;
        sometimes!(rows.len() > 2, "counter: a counter has several parts");
        keys::sum(&self.subspace, &rows)
    }
}

/// The value after a change that must stay in bounds.
fn within(value: i64, by: i64, least: i64, most: i64) -> Result<i64, Error> {
    let after = value.checked_add(by).filter(|after| (least..=most).contains(after));
    sometimes!(after.is_none(), "counter: a change would leave the bounds");
    after.ok_or(Error::OutOfBounds { value, by, least, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_belong_to_what_is_allowed() {
        let out = |value, by| Err(Error::OutOfBounds { value, by, least: 0, most: 3 });
        assert_eq!(within(1, -1, 0, 3), Ok(0));
        assert_eq!(within(0, -1, 0, 3), out(0, -1));
        assert_eq!(within(2, 1, 0, 3), Ok(3));
        assert_eq!(within(3, 1, 0, 3), out(3, 1));
        assert_eq!(within(-5, 6, 0, 3), Ok(1));
        let error = within(i64::MAX, 1, i64::MIN, i64::MAX).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{} changed by 1 is not in {}..={}", i64::MAX, i64::MIN, i64::MAX)
        );
    }
}
