//! Online builds: an index over a store that has records becomes complete while the store is used.
//!
//! An index that is being built is write-only: saves and deletes keep it up to date, queries do not use it. A
//! build goes through the records in batches, each in a transaction of its own. The [`RangeSet`] in
//! [`Part::Ranges`] has the ranges of primary keys that are done; it changes in the transaction that writes
//! the entries. A build can therefore be interrupted at any time, by the death of its process too, and be
//! continued by any other. A batch whose commit has an unknown result is done or not, and the next attempt
//! sees which. Several builders can work on an index at the same time: each takes a range that is missing,
//! and if two take the same one, one of them has to try again with another.
//!
//! # Saves during a build
//!
//! Of an index that is [idempotent](super::IndexMaintainer::is_idempotent), every save writes the entries,
//! and the builder writes them again when it comes to the record. Of the others, counts and sums for example,
//! a save changes the index only if the record's primary key is in a range that is done; otherwise the
//! builder counts the record later, as it is then. The save conflicts with a builder that adds just this key,
//! and the builder, which reads the records serializably, with every save in its batch.
//!
//! # The end of a build
//!
//! An index becomes readable when its ranges have all primary keys, in the transaction that reads that they
//! do. A unique index over records that violate it becomes [`IndexState::ReadableUniquePending`], with its
//! violations recorded; when they are resolved, [`mark_index_readable`](RecordStore::mark_index_readable)
//! makes it readable.

use super::{
    IndexAt, IndexState,
    range_set::{FIRST, LAST, Range, RangeSet},
};
use crate::{
    cursor::{Continuation, Cursor, Endpoint, Limits, Next, Spent, Stop, TupleRange},
    error::Error,
    store::{Part, RecordStore, StoredRecord},
    value::Tuple,
};
use shaketable_tx::{ConflictRangeType, Isolation, Transaction, reachable, sometimes};

/// The bytes of records that one batch reads, at most, besides the record with which they are reached.
const BATCH_BYTES: usize = 1_000_000;

/// How many of the missing ranges a builder chooses from.
const CHOICE: usize = 16;

/// One batch of a build: which part it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The number of records, at most.
    pub records: usize,
    /// Chooses the range and its end: builders with different numbers seldom take the same records.
    pub choice: u64,
}

/// What a batch has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The records that it has read.
    pub records: usize,
    /// Whether nothing was missing any more, before this batch.
    pub complete: bool,
}

impl<T: Transaction> IndexAt<'_, T> {
    /// The ranges of primary keys that are in the index, while it is being built.
    pub fn ranges(&self) -> RangeSet {
        RangeSet::new(self.space(Part::Ranges))
    }

    /// Writes the entries of records that are in the index's missing part of a range, and adds the range.
    async fn build(&self, records: &[StoredRecord], range: (&[u8], &[u8])) -> Result<(), Error> {
        let (tx, maintainer) = (self.transaction()?, self.store.maintainer(self.index)?);
        let missing = self.ranges().missing(tx, range, usize::MAX, Isolation::Serializable).await?;
        let is_partly = missing.first().is_none_or(|(begin, end)| (&begin[..], &end[..]) != range);
        if is_partly {
            reachable!("record: a batch meets records that are in one of its indexes already");
        }
        for record in records {
            let key = record.primary_key.pack();
            if missing.iter().any(|(begin, end)| *begin <= key && key < *end) {
                maintainer.check(*self, None, Some(record)).await?;
                maintainer.update(*self, None, Some(record)).await?;
            }
        }
        self.ranges().insert(tx, range).await?;
        Ok(())
    }
}

/// The key after all rows of a record, and before those of the next one.
fn after(primary_key: &Tuple) -> Vec<u8> {
    [&primary_key.pack()[..], LAST].concat()
}

/// The primary keys of a range of a range set.
fn primary_keys((begin, end): (&[u8], &[u8])) -> TupleRange {
    // No packed tuple is another one followed by 0xff.
    let exact = |key: &[u8]| Tuple::unpack(key).filter(|tuple| !tuple.is_empty());
    let before = |key: &[u8]| key.strip_suffix(LAST).and_then(exact);
    let low = match exact(begin) {
        Some(first) => Endpoint::Inclusive(first),
        None => before(begin).map_or(Endpoint::Open, Endpoint::Exclusive),
    };
    let high = match exact(end) {
        Some(last) => Endpoint::Exclusive(last),
        None => before(end).map_or(Endpoint::Open, Endpoint::Inclusive),
    };
    TupleRange { low, high }
}

impl<T: Transaction> RecordStore<T> {
    /// Begins or continues builds: indexes that are disabled become write-only, and empty. The others stay as
    /// they are. Returns whether any of them has to be built.
    pub async fn begin_index_builds(&self, indexes: &[&str]) -> Result<bool, Error> {
        let store = self.writing().await?;
        let mut wanted = false;
        for name in indexes {
            if store.index_state(name)? == IndexState::Disabled {
                store.begin_anew(name, IndexState::WriteOnly)?;
            }
            wanted |= store.index_state(name)? == IndexState::WriteOnly;
        }
        Ok(wanted)
    }

    /// Builds a part of the indexes among these that are write-only, all of them with the same records.
    pub async fn build_indexes(&self, indexes: &[&str], batch: Batch) -> Result<Progress, Error> {
        let store = self.writing().await?;
        let mut building = Vec::new();
        for name in indexes {
            if store.index_state(name)? == IndexState::WriteOnly {
                building.push(IndexAt { store: &store, index: self.index(name)? });
            }
        }
        let Some((begin, end)) = store.missing_range(&building, batch.choice).await? else {
            return Ok(Progress { records: 0, complete: true });
        };
        sometimes!(begin != FIRST && end != LAST, "record: a batch lies between others");
        let reverse = batch.choice & 1 == 1;
        let (records, done) = store.read_batch((&begin, &end), reverse, batch.records).await?;
        let (begin, end) = match records.last() {
            Some(last) if !done && reverse => (last.primary_key.pack(), end),
            Some(last) if !done => (begin, after(&last.primary_key)),
            _ => (begin, end),
        };
        // A bound that is no key of a record: the records that were read are on its other side.
        if begin > end {
            return Err(Error::foreign("a range of an index build", if reverse { &end } else { &begin }));
        }
        // Reading the records conflicts with changes to them. A save between the last row that was read and
        // the end of the range must conflict as well.
        let rows = self.keyspace().part(Part::Records);
        let row = |key: &[u8]| [rows.bytes(), key].concat();
        let tx = store.context().transaction()?;
        tx.add_conflict_range(&row(&begin), &row(&end), ConflictRangeType::Read)?;
        for at in &building {
            at.build(&records, (&begin, &end)).await?;
        }
        Ok(Progress { records: records.len(), complete: false })
    }

    /// One of the ranges that an index misses: the first index that misses any.
    async fn missing_range(&self, indexes: &[IndexAt<'_, T>], choice: u64) -> Result<Option<Range>, Error> {
        let tx = self.context().transaction()?;
        for at in indexes {
            let mut missing = at.ranges().missing(tx, (FIRST, LAST), CHOICE, Isolation::Snapshot).await?;
            if !missing.is_empty() {
                let chosen = (choice >> 1) % missing.len() as u64;
                return Ok(Some(missing.swap_remove(chosen as usize)));
            }
        }
        Ok(None)
    }

    /// The first records of a range, or the last ones, and whether these are all.
    async fn read_batch(
        &self,
        range: (&[u8], &[u8]),
        reverse: bool,
        records: usize,
    ) -> Result<(Vec<StoredRecord>, bool), Error> {
        let limits = Limits { scanned: Some(records.max(1)), bytes: Some(BATCH_BYTES), ..Limits::default() };
        let mut cursor =
            self.scan_records(primary_keys(range), reverse, Continuation::Start, &Spent::new(limits))?;
        let mut records = Vec::new();
        loop {
            match cursor.next().await? {
                Next::Row(record, _) => records.push(record),
                Next::Stopped(stop, _) => return Ok((records, stop == Stop::Exhausted)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundationdb_tuple::Subspace;

    #[test]
    fn ranges_of_keys_are_ranges_of_primary_keys() {
        let space = Subspace::from_bytes(b"s".to_vec());
        let keys: Vec<Vec<u8>> = [1i64, 255, 256, 65_535].map(|key| Tuple::from(key).pack()).to_vec();
        let ends = keys.iter().cloned().chain(keys.iter().map(|key| [key, LAST].concat()));
        for end in ends {
            let row = [b"s", &end[..]].concat();
            assert_eq!(primary_keys((FIRST, &end)).keys(&space).1, row);
            assert_eq!(primary_keys((&end, LAST)).keys(&space), (row, b"s\xff".to_vec()));
        }
    }
}
