//! Sets that know the rank of each element: how many elements come before it.
//!
//! The elements are byte strings that are not empty, in the order of their bytes. The set is a skip list:
//! level 0 has a row for each element, and each further level a row for about one in sixteen of the elements
//! of the level below, as the hash of the element decides. The rows are those of Java's `RankedSet`:
//!
//! | key after the set's subspace | value |
//! |---|---|
//! | `(level, element)` | how many elements there are from this one, included, to the next one of the level: 8 bytes, little-endian |
//! | `(level, "")` | how many elements there are before the first one of the level |
//!
//! # Ties
//!
//! By default an element is in the set once, however often it is added, and must be removed only when nobody
//! needs it any more. With [`Config::count_duplicates`] the set counts how often an element was added, and
//! each time counts for the ranks of later elements.
//!
//! # Conflicts
//!
//! Counts change by atomic additions, and the rows to add to are looked up at snapshot. Adding and removing
//! an element therefore conflict only with
//!
//! * additions and removals of the same element;
//! * a row at level 1 or above that appears between the element and the one that has the count, or the
//!   removal of that one. Only one element in sixteen has such a row;
//! * if the element has such a row itself: all changes to the elements whose counts it splits, about sixteen
//!   at level 1, 256 at level 2 and so on.
//!
//! The rows of the empty element are written when the first element is added, and never read again by an
//! addition, so that additions do not conflict with each other there. Lookups read the rows that lead to the
//! element: a serializable lookup of a rank conflicts with almost all changes to lesser elements, as it has
//! to.

mod config;

pub use config::{Config, Hash, MAX_LEVELS};

use crate::{error::Error, value::Tuple};
use config::FAN;
use foundationdb_tuple::{Element, Subspace};
use futures::{
    TryStreamExt,
    future::{try_join, try_join_all},
};
use shaketable_tx::{
    ConflictRangeType, Isolation, MutationType, RangeOption, StreamingMode, Transaction, key_after,
    limits::{self, TooLarge},
    reachable,
};
use std::pin::pin;

/// A set of byte strings with ranks, in a subspace of its own.
#[derive(Clone, Debug)]
pub struct RankedSet {
    space: Subspace,
    config: Config,
}

/// A row of a level: its element and its count.
type Row = (Vec<u8>, i64);

impl RankedSet {
    /// The set in this subspace.
    pub fn new(space: Subspace, config: Config) -> RankedSet {
        RankedSet { space, config: Config { levels: config.levels.clamp(2, MAX_LEVELS), ..config } }
    }

    /// Adds an element. Returns whether the set has changed: `false` if it has the element and does not count
    /// duplicates.
    pub async fn add<T: Transaction>(&self, tx: &T, element: &[u8]) -> Result<bool, Error> {
        let tx = &tx.writing().await;
        let ((), count) = try_join(self.init(tx), self.count(tx, element, Isolation::Serializable)).await?;
        let present = count > 0;
        if present && !self.config.count_duplicates {
            return Ok(false);
        }
        sum_of(&self.key(0, element), count, 1)?;
        let before = self.before(tx, element, present).await?;
        match present {
            true => {
                reachable!("record: an element of a ranked set is counted once more");
                add(tx, &self.key(0, element), 1);
            }
            false => tx.set(&self.key(0, element), &1i64.to_le_bytes()),
        }
        let hash = self.config.hash.of(element);
        for (level, before) in (1..).zip(before) {
            match present || hash & ((1 << (level * FAN)) - 1) != 0 {
                true => add(tx, &self.key(level, &before), 1),
                false => self.split(tx, level, &before, element).await?,
            }
        }
        Ok(true)
    }

    /// Removes an element, once if duplicates are counted. Returns whether it was there.
    pub async fn remove<T: Transaction>(&self, tx: &T, element: &[u8]) -> Result<bool, Error> {
        self.remove_times(&tx.writing().await, element, |_| 1).await
    }

    /// Removes an element as often as `times` says for its count, which is 1 or more. Returns whether it was
    /// there.
    pub(super) async fn remove_times<T: Transaction>(
        &self,
        tx: &T,
        element: &[u8],
        times: impl FnOnce(i64) -> i64,
    ) -> Result<bool, Error> {
        let count = self.count(tx, element, Isolation::Serializable).await?;
        if count <= 0 {
            return Ok(false);
        }
        let times = times(count).min(count);
        if times <= 0 {
            return Ok(false);
        }
        let duplicate = count > times;
        let before = self.before(tx, element, duplicate).await?;
        let own = match duplicate {
            true => vec![None; before.len()],
            // At each level, whatever the hash says: it may have been another when the element was added.
            false => {
                try_join_all(
                    (1..self.config.levels)
                        .map(|level| self.count_at(tx, level, element, Isolation::Serializable)),
                )
                .await?
            }
        };
        match duplicate {
            true => tx.set(&self.key(0, element), &(count - times).to_le_bytes()),
            false => tx.clear(&self.key(0, element)),
        }
        for (level, (before, own)) in (1..).zip(before.into_iter().zip(own)) {
            if own.is_some() {
                reachable!("record: an element with a row at a higher level is removed from a ranked set");
                tx.clear(&self.key(level, element));
            }
            add(tx, &self.key(level, &before), own.unwrap_or(0).wrapping_sub(times));
        }
        Ok(true)
    }

    /// How often the element is in the set: 0 or 1, unless duplicates are counted.
    pub async fn count<T: Transaction>(
        &self,
        tx: &T,
        element: &[u8],
        isolation: Isolation,
    ) -> Result<i64, Error> {
        Ok(self.count_at(tx, 0, element, isolation).await?.unwrap_or(0))
    }

    /// Whether the element is in the set.
    pub async fn contains<T: Transaction>(
        &self,
        tx: &T,
        element: &[u8],
        isolation: Isolation,
    ) -> Result<bool, Error> {
        Ok(self.count(tx, element, isolation).await? > 0)
    }

    /// How many elements come before this one, which need not be in the set.
    pub async fn rank<T: Transaction>(
        &self,
        tx: &T,
        element: &[u8],
        isolation: Isolation,
    ) -> Result<i64, Error> {
        let tx = &tx.reading().await;
        let (mut rank, mut from) = (0, Vec::new());
        for level in (0..self.config.levels).rev() {
            let end = key_after(&self.key(level, element));
            let range = RangeOption::new(self.key(level, &from), end).mode(StreamingMode::WantAll);
            let mut rows = pin!(tx.get_ranges_keyvalues(range, isolation));
            let mut last = 0;
            while let Some(row) = rows.try_next().await? {
                let (found, count) = self.row(level, &row.key, &row.value)?;
                rank = sum_of(&row.key, rank, std::mem::replace(&mut last, count))?;
                from = found;
            }
            if from == element {
                break;
            }
            if level == 0 {
                rank = sum_of(&self.key(0, &from), rank, last)?;
            }
        }
        Ok(rank)
    }

    /// The element with this rank; `None` beyond the last. With duplicates counted, each has as many ranks as
    /// it was added.
    pub async fn get_nth<T: Transaction>(
        &self,
        tx: &T,
        rank: i64,
        isolation: Isolation,
    ) -> Result<Option<Vec<u8>>, Error> {
        if rank < 0 {
            return Ok(None);
        }
        let tx = &tx.reading().await;
        let (mut left, mut from) = (rank, Vec::new());
        for level in (0..self.config.levels).rev() {
            let (begin, end) = (self.key(level, &from), self.space.subspace(&(level,)).range().1);
            let mut rows = pin!(
                tx.get_ranges_keyvalues(RangeOption::new(begin.clone(), end.clone()), Isolation::Snapshot)
            );
            let (mut read, mut found) = (end, None);
            while let Some(row) = rows.try_next().await? {
                let (element, count) = self.row(level, &row.key, &row.value)?;
                if count > left {
                    (read, found) = (key_after(&row.key).to_vec(), Some(element));
                    break;
                }
                left = sum_of(&row.key, left, count.wrapping_neg())?;
            }
            if isolation == Isolation::Serializable {
                tx.add_conflict_range(&begin, &read, ConflictRangeType::Read)?;
            }
            match found {
                Some(found) => from = found,
                None => return Ok(None),
            }
        }
        Ok(Some(from))
    }

    /// How many elements the set has.
    pub async fn size<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<i64, Error> {
        let tx = &tx.reading().await;
        let top = self.config.levels - 1;
        self.sum(tx, top, self.space.subspace(&(top,)).range(), isolation).await
    }

    /// Refuses an element whose rows would exceed FoundationDB's limits.
    pub fn check(&self, element: &[u8]) -> Result<(), TooLarge> {
        limits::key(&self.key(self.config.levels, element))
    }

    /// The first row whose count is not what the level below has, as `(level, element, count, true count)`;
    /// `None` if the set is consistent. Reads the whole set: for tests.
    pub async fn inconsistency<T: Transaction>(
        &self,
        tx: &T,
    ) -> Result<Option<(u32, Vec<u8>, i64, i64)>, Error> {
        for level in 1..self.config.levels {
            let range = self.space.subspace(&(level,)).range();
            let rows = tx.get_range_all(RangeOption::from(range), Isolation::Serializable).await?;
            let rows: Vec<Row> =
                rows.iter().map(|row| self.row(level, &row.key, &row.value)).collect::<Result<_, _>>()?;
            for (i, (element, count)) in rows.iter().enumerate() {
                let end = match rows.get(i + 1) {
                    Some((next, _)) => self.key(level - 1, next),
                    None => self.space.subspace(&(level - 1,)).range().1,
                };
                let below = (self.key(level - 1, element), end);
                let expected = self.sum(tx, level - 1, below, Isolation::Serializable).await?;
                if *count != expected {
                    return Ok(Some((level, element.clone(), *count, expected)));
                }
            }
        }
        Ok(None)
    }

    /// Writes the rows of the empty element if they are not there. That they are is read at snapshot: a
    /// transaction that finds them must not conflict with the additions to their counts.
    async fn init<T: Transaction>(&self, tx: &T) -> Result<(), Error> {
        if self.count_at(tx, 0, b"", Isolation::Snapshot).await?.is_some() {
            return Ok(());
        }
        reachable!("record: a ranked set is begun");
        for level in 0..self.config.levels {
            if self.count_at(tx, level, b"", Isolation::Serializable).await?.is_none() {
                tx.set(&self.key(level, b""), &0i64.to_le_bytes());
            }
        }
        Ok(())
    }

    /// The element of each level from 1 whose span has this element: the one before it, or itself if
    /// `or_equal` and it has a row there.
    async fn before<T: Transaction>(
        &self,
        tx: &T,
        element: &[u8],
        or_equal: bool,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let levels = 1..self.config.levels;
        try_join_all(levels.map(|level| self.before_at(tx, level, element, or_equal))).await
    }

    async fn before_at<T: Transaction>(
        &self,
        tx: &T,
        level: u32,
        element: &[u8],
        or_equal: bool,
    ) -> Result<Vec<u8>, Error> {
        let key = self.key(level, element);
        let end = match or_equal {
            true => key_after(&key).to_vec(),
            false => key.clone(),
        };
        let range = RangeOption::new(self.key(level, b""), end).limit(1).reversed();
        let rows = tx.get_range_all(range, Isolation::Snapshot).await?;
        let Some(row) = rows.first() else {
            return Err(Error::foreign("a row of a ranked set", &key));
        };
        let (before, _) = self.row(level, &row.key, &row.value)?;
        if row.key != key {
            // An element that gets a row in between has the span from then on. That the count changes does
            // not matter.
            tx.add_conflict_range(&key_after(&row.key), &key, ConflictRangeType::Read)?;
        }
        // Whoever removes it removes its row here too.
        tx.add_conflict_key(&self.key(0, &before), ConflictRangeType::Read)?;
        Ok(before)
    }

    /// Gives the new element a row at this level, and the rest of the span of the one before it.
    async fn split<T: Transaction>(
        &self,
        tx: &T,
        level: u32,
        before: &[u8],
        element: &[u8],
    ) -> Result<(), Error> {
        reachable!("record: an element of a ranked set gets a row at a higher level");
        let span = self.count_at(tx, level, before, Isolation::Serializable).await?.unwrap_or(0);
        let below = (self.key(level - 1, before), self.key(level - 1, element));
        let left = self.sum(tx, level - 1, below, Isolation::Serializable).await?;
        let own = self.key(level, element);
        let right = sum_of(&own, sum_of(&own, span, 1)?, left.wrapping_neg())?;
        tx.set(&self.key(level, before), &left.to_le_bytes());
        tx.set(&own, &right.to_le_bytes());
        Ok(())
    }

    async fn sum<T: Transaction>(
        &self,
        tx: &T,
        level: u32,
        range: (Vec<u8>, Vec<u8>),
        isolation: Isolation,
    ) -> Result<i64, Error> {
        let mut rows = pin!(tx.get_ranges_keyvalues(RangeOption::from(range), isolation));
        let mut sum = 0;
        while let Some(row) = rows.try_next().await? {
            sum = sum_of(&row.key, sum, self.row(level, &row.key, &row.value)?.1)?;
        }
        Ok(sum)
    }

    async fn count_at<T: Transaction>(
        &self,
        tx: &T,
        level: u32,
        element: &[u8],
        isolation: Isolation,
    ) -> Result<Option<i64>, Error> {
        let key = self.key(level, element);
        tx.get(&key, isolation).await?.map(|value| count(&key, &value)).transpose()
    }

    fn key(&self, level: u32, element: &[u8]) -> Vec<u8> {
        self.space.pack(&(level, element))
    }

    fn row(&self, level: u32, key: &[u8], value: &[u8]) -> Result<Row, Error> {
        let prefix = self.space.pack(&(level,));
        let tuple = key.strip_prefix(&prefix[..]).and_then(Tuple::unpack);
        match tuple.map(|tuple| tuple.into_iter().collect::<Vec<_>>()).as_deref() {
            Some([Element::Bytes(element)]) => Ok((element.to_vec(), count(key, value)?)),
            _ => Err(Error::foreign("a row of a ranked set", key)),
        }
    }
}

/// Adds to a count, which is there.
fn add<T: Transaction>(tx: &T, key: &[u8], count: i64) {
    tx.atomic_op(key, &count.to_le_bytes(), MutationType::Add);
}

fn count(key: &[u8], value: &[u8]) -> Result<i64, Error> {
    let bytes = value.try_into().map_err(|_| Error::foreign("the count of a ranked set", key))?;
    Ok(i64::from_le_bytes(bytes))
}

/// The sum of two counts; fails with [`Error::Foreign`] if they are not those of a set.
fn sum_of(key: &[u8], one: i64, other: i64) -> Result<i64, Error> {
    one.checked_add(other).ok_or_else(|| Error::foreign("a count of a ranked set", key))
}
