//! Scrubbing: whether an index has the entries of all records, and no others.
//!
//! An index can differ from its records only by a fault: a maintainer that was wrong in an earlier release,
//! rows that something else wrote. Scrubbing goes through the records and looks for their entries
//! ([`Scrub::Missing`]), or through the entries and looks for their records ([`Scrub::Dangling`]), in
//! batches, and repairs what it finds if it is asked to.
//!
//! # Conflicts
//!
//! A batch reads the records and the entries serializably, in the transaction that repairs: if one of them is
//! saved or deleted at the same time, either the batch sees that or it conflicts, and is done again. It never
//! removes an entry that a save has just written.
//!
//! Indexes with entries are scrubbed: types `value`, `rank` and `version`. Of an index of ranks the entries
//! are scrubbed, and its ranked sets are repaired with them. Aggregates have no entries, and custom indexes
//! are left alone: [`Error::IndexState`].

use super::{
    IndexAt, IndexEntry, IndexScan, IndexState, rank,
    value::{record_violation, resolve_violation},
};
use crate::{
    cursor::{BoxCursor, Continuation, Cursor, Limits, Next, Spent, Stop, TupleRange},
    error::Error,
    metadata::index_types,
    store::{Part, RecordStore, StoredRecord},
    value::Tuple,
};
use shaketable_tx::{Isolation, Transaction, reachable};
use std::collections::BTreeSet;

/// What a scrub looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scrub {
    /// Records without one of their entries.
    Missing,
    /// Entries without their record, or that their record does not have.
    Dangling,
}

/// What one batch of a scrub has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Scrubbed {
    /// The entries that are missing or dangling. The values are empty.
    pub found: Vec<IndexEntry>,
    /// How many records or entries were looked at.
    pub scanned: usize,
    /// Where the next batch begins; [`Continuation::End`] after the last one.
    pub continuation: Continuation,
}

impl<T: Transaction> RecordStore<T> {
    /// Looks at up to `limit` records, or entries, of a readable index, and repairs what it finds if `repair`
    /// is set. `from` is the continuation of the batch before. Entries of versions that this transaction has
    /// written itself are not found: scrub in a transaction of its own.
    pub async fn scrub_index(
        &self,
        index: &str,
        scrub: Scrub,
        repair: bool,
        from: Continuation,
        limit: usize,
    ) -> Result<Scrubbed, Error> {
        let store = self.writing().await?;
        let at = IndexAt { store: &store, index: self.index(index)? };
        at.check_scrub()?;
        let spent = Spent::new(Limits { scanned: Some(limit.max(1)), ..Limits::default() });
        let all = TupleRange::all();
        match scrub {
            Scrub::Missing => {
                let mut records = store.scan_records(all, false, from, &spent)?;
                let mut scrubbed = Scrubbed::new();
                while let Some(record) = scrubbed.next(&mut records).await? {
                    for entry in at.missing_of(&record).await? {
                        if repair {
                            at.add(&record, &entry).await?;
                        }
                        scrubbed.found.push(entry);
                    }
                }
                Ok(scrubbed)
            }
            Scrub::Dangling => {
                let scan = IndexScan::ByValue;
                let mut entries = store.scan_index_in_any_state(index, scan, all, false, from, &spent)?;
                let mut scrubbed = Scrubbed::new();
                while let Some(entry) = scrubbed.next(&mut entries).await? {
                    if at.is_dangling(&entry).await? {
                        if repair {
                            at.remove(&entry).await?;
                        }
                        scrubbed.found.push(entry);
                    }
                }
                Ok(scrubbed)
            }
        }
    }
}

impl Scrubbed {
    fn new() -> Scrubbed {
        Scrubbed { found: Vec::new(), scanned: 0, continuation: Continuation::Start }
    }

    /// The next row of the batch.
    async fn next<R: Send>(&mut self, cursor: &mut BoxCursor<R>) -> Result<Option<R>, Error> {
        match cursor.next().await? {
            Next::Row(row, after) => {
                self.scanned += 1;
                self.continuation = after;
                Ok(Some(row))
            }
            Next::Stopped(Stop::Exhausted, _) => {
                self.continuation = Continuation::End;
                Ok(None)
            }
            Next::Stopped(_, from) => {
                self.continuation = from;
                Ok(None)
            }
        }
    }
}

impl<T: Transaction> IndexAt<'_, T> {
    fn check_scrub(&self) -> Result<(), Error> {
        const SCRUBBED: [&str; 3] = [index_types::VALUE, index_types::RANK, index_types::VERSION];
        let refused = |reason: String| Err(Error::IndexState { index: self.index.name.clone(), reason });
        if !SCRUBBED.contains(&self.index.kind.as_str()) {
            return refused(format!("an index of type {} has no entries to scrub", self.index.kind));
        }
        match self.store.index_state(&self.index.name)? {
            IndexState::Readable | IndexState::ReadableUniquePending => Ok(()),
            state => refused(format!("it is {state}, and need not have the entries of all records")),
        }
    }

    /// The row of an entry.
    pub(crate) fn row_of(&self, entry: &IndexEntry) -> Vec<u8> {
        let key = entry.key.followed_by(&entry.primary_key);
        [self.space(Part::Indexes).bytes(), &key.pack()].concat()
    }

    /// The entries that a record needs.
    fn entries_of(&self, record: &StoredRecord) -> Result<BTreeSet<Tuple>, Error> {
        Ok(self.keys(record)?.iter().map(|key| key.tuple()).collect())
    }

    async fn missing_of(&self, record: &StoredRecord) -> Result<Vec<IndexEntry>, Error> {
        let mut missing = Vec::new();
        for key in self.entries_of(record)? {
            let primary_key = record.primary_key.clone();
            let entry = IndexEntry { key, primary_key, value: Tuple::empty() };
            let row = self.transaction()?.get(&self.row_of(&entry), Isolation::Serializable).await?;
            if row.is_none() {
                reachable!("record: a scrub finds a missing entry");
                missing.push(entry);
            }
        }
        Ok(missing)
    }

    async fn is_dangling(&self, entry: &IndexEntry) -> Result<bool, Error> {
        let dangling = match self.store.load_record(&entry.primary_key).await? {
            None => true,
            Some(record) => !self.entries_of(&record)?.contains(&entry.key),
        };
        if dangling {
            reachable!("record: a scrub finds a dangling entry");
        }
        Ok(dangling)
    }

    async fn add(&self, record: &StoredRecord, entry: &IndexEntry) -> Result<(), Error> {
        self.store.maintainer(self.index)?.check(*self, None, Some(record)).await?;
        for key in self.keys(record)?.into_iter().filter(|key| key.tuple() == entry.key) {
            record_violation(*self, &self.entry(key, &record.primary_key)).await?;
        }
        self.transaction()?.set(&self.row_of(entry), b"");
        self.repair_rank(entry).await
    }

    async fn remove(&self, entry: &IndexEntry) -> Result<(), Error> {
        self.transaction()?.clear(&self.row_of(entry));
        resolve_violation(*self, &entry.key, &entry.primary_key).await?;
        self.repair_rank(entry).await
    }

    async fn repair_rank(&self, entry: &IndexEntry) -> Result<(), Error> {
        match self.index.kind == index_types::RANK {
            true => rank::repair(*self, &entry.key).await,
            false => Ok(()),
        }
    }
}
