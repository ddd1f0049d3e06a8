//! The entries of an index of values: their keys, what a change of a record does to them, and their scan.

use super::{IndexAt, IndexEntry};
use crate::{
    cursor::{BoxCursor, Continuation, Cursor, KeyValueCursor, Next, Row, Scan, Spent, Stop, TupleRange},
    error::Error,
    expression::Evaluated,
    store::{Part, StoredRecord},
    value::Tuple,
};
use foundationdb_tuple::Subspace;
use futures::future::{BoxFuture, FutureExt};
use shaketable_tx::{KeyValue, Transaction, limits};
use std::collections::BTreeMap;

/// An entry of an index, for one of a record's keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key of its row.
    pub row: Vec<u8>,
    /// The record's key in the index.
    pub key: Evaluated,
    /// The record.
    pub primary_key: Tuple,
}

/// What a change of a record does to the entries of an index. Entries that stay are in neither list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntryChanges {
    /// Those that the old record had and the new one has not.
    pub removed: Vec<Entry>,
    /// Those that the new record has and the old one had not.
    pub added: Vec<Entry>,
}

impl<T: Transaction> IndexAt<'_, T> {
    /// What a change from `old` to `new` does to the index's entries. Two equal keys of a record are one
    /// entry.
    pub fn changes(
        &self,
        old: Option<&StoredRecord>,
        new: Option<&StoredRecord>,
    ) -> Result<EntryChanges, Error> {
        let (mut old, mut new) = (self.entries(old)?, self.entries(new)?);
        let stay: Vec<Vec<u8>> = old.keys().filter(|row| new.contains_key(*row)).cloned().collect();
        for row in &stay {
            old.remove(row);
            new.remove(row);
        }
        Ok(EntryChanges { removed: old.into_values().collect(), added: new.into_values().collect() })
    }

    fn entries(&self, record: Option<&StoredRecord>) -> Result<BTreeMap<Vec<u8>, Entry>, Error> {
        let Some(record) = record else { return Ok(BTreeMap::new()) };
        let entries = self.keys(record)?.into_iter().map(|key| self.entry(key, &record.primary_key));
        Ok(entries.map(|entry| (entry.row.clone(), entry)).collect())
    }

    /// The entry of a record with this key.
    pub(crate) fn entry(&self, key: Evaluated, primary_key: &Tuple) -> Entry {
        let row = [self.space(Part::Indexes).bytes(), &key.tuple().followed_by(primary_key).pack()].concat();
        Entry { row, key, primary_key: primary_key.clone() }
    }

    /// Refuses an entry whose key FoundationDB would refuse, by the index's name.
    pub fn fits(&self, row: &[u8]) -> Result<(), Error> {
        let named = |too_large| Error::EntryTooLarge { index: self.index.name.clone(), too_large };
        limits::key(row).map_err(named)
    }

    /// The rows of the entries with this key: `[begin, end)`.
    pub fn rows_of(&self, key: &Tuple) -> (Vec<u8>, Vec<u8>) {
        TupleRange::all_of(key.clone()).keys(&self.space(Part::Indexes))
    }

    /// The primary key of a row in one of the index's parts, which begins with a key of the index.
    pub(crate) fn split_row(&self, space: &Subspace, row: &[u8]) -> Result<(Tuple, Tuple), Error> {
        let tuple = row.strip_prefix(space.bytes()).and_then(Tuple::unpack);
        let tuple = tuple.ok_or_else(|| Error::foreign("an index entry", row))?;
        Ok(tuple.split_at(self.index.expression.columns()))
    }

    /// The row of a violation of the index's uniqueness.
    pub(crate) fn violation(&self, key: &Tuple, primary_key: &Tuple) -> Vec<u8> {
        let space = self.space(Part::Violations);
        [space.bytes(), &key.followed_by(primary_key).pack()].concat()
    }

    /// The index cannot be scanned in this way.
    pub(crate) fn no_scan(&self, reason: &str) -> Error {
        Error::IndexState { index: self.index.name.clone(), reason: reason.into() }
    }

    /// Removes the entries of all records whose primary keys begin with `prefix`, and the violations of their
    /// keys, if the index's keys begin with these columns. Returns whether they do.
    pub fn delete_entries_where(&self, prefix: &Tuple) -> Result<bool, Error> {
        if !self.begins_with_primary_key(prefix.len()) {
            return Ok(false);
        }
        for part in [Part::Indexes, Part::Violations] {
            let (begin, end) = TupleRange::all_of(prefix.clone()).keys(&self.space(part));
            self.store.context().clear_range(&begin, &end)?;
        }
        Ok(true)
    }

    /// The entries in a range of the index's columns, followed by the primary key.
    pub fn scan_entries(
        &self,
        range: &TupleRange,
        reverse: bool,
        from: Continuation,
        spent: &Spent,
    ) -> Result<BoxCursor<IndexEntry>, Error> {
        self.scan_part(Part::Indexes, "scan of an index", range, reverse, from, spent)
    }

    /// The violations of the index's uniqueness in a range of its columns, followed by the primary key: the
    /// value is the primary key of another record with the key.
    pub(crate) fn scan_violations(
        &self,
        range: &TupleRange,
        reverse: bool,
        from: Continuation,
        spent: &Spent,
    ) -> Result<BoxCursor<IndexEntry>, Error> {
        self.scan_part(Part::Violations, "scan of violations", range, reverse, from, spent)
    }

    fn scan_part(
        &self,
        part: Part,
        what: &'static str,
        range: &TupleRange,
        reverse: bool,
        from: Continuation,
        spent: &Spent,
    ) -> Result<BoxCursor<IndexEntry>, Error> {
        let space = self.space(part);
        let scan = Scan { what, space: &space, range, reverse, from: &from, prefixes: false };
        Ok(Box::new(EntryCursor {
            rows: KeyValueCursor::new(self.store.context(), &scan)?,
            space,
            columns: self.index.expression.columns(),
            spent: spent.clone(),
            at: from,
            begun: false,
        }))
    }
}

/// The entries of an index.
struct EntryCursor<T: Transaction> {
    rows: KeyValueCursor<T>,
    space: Subspace,
    columns: usize,
    spent: Spent,
    at: Continuation,
    /// Whether an entry was read.
    begun: bool,
}

impl<T: Transaction> EntryCursor<T> {
    async fn next(&mut self) -> Result<Next<IndexEntry>, Error> {
        if self.begun
            && let Some(stop) = self.spent.reached()
        {
            return Ok(Next::Stopped(stop, self.at.clone()));
        }
        let Some(Row::Stored(row)) = self.rows.next(&self.spent).await? else {
            return Ok(Next::Stopped(Stop::Exhausted, Continuation::End));
        };
        self.begun = true;
        self.spent.count(row.key.len() + row.value.len());
        self.at = self.rows.after(&row.key);
        let entry = self.entry(&row).ok_or_else(|| Error::foreign("an index entry", &row.key))?;
        Ok(Next::Row(entry, self.at.clone()))
    }

    fn entry(&self, row: &KeyValue) -> Option<IndexEntry> {
        let tuple = Tuple::unpack(row.key.strip_prefix(self.space.bytes())?)?;
        let (key, primary_key) = tuple.split_at(self.columns);
        (key.len() == self.columns && !primary_key.is_empty()).then_some(())?;
        Some(IndexEntry { key, primary_key, value: Tuple::unpack(&row.value)? })
    }
}

impl<T: Transaction> Cursor for EntryCursor<T> {
    type Row = IndexEntry;

    fn next(&mut self) -> BoxFuture<'_, Result<Next<IndexEntry>, Error>> {
        EntryCursor::next(self).boxed()
    }
}
