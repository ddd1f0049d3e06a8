//! Scans of records in the order of their primary keys, and of indexes.

use super::{Part, RecordStore, StoredRecord, rows::Found};
use crate::{
    cursor::{
        BoxCursor, Continuation, Cursor, CursorExt, Endpoint, KeyValueCursor, Next, Row, Scan, Spent, Stop,
        TupleRange,
    },
    error::Error,
    index::{IndexAt, IndexEntry, IndexScan, Violation},
    value::Tuple,
};
use futures::future::{BoxFuture, FutureExt};
use shaketable_tx::Transaction;

/// What a scan does with a record that cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnTorn {
    /// It ends with the error.
    #[default]
    Fail,
    /// The error is a row, and the scan goes on after it.
    Skip,
}

impl<T: Transaction> RecordStore<T> {
    /// The records whose primary keys are in a range, in the order of the primary keys, or in reverse. Reads
    /// are serializable. A record that is split over several rows counts once. Fails with
    /// [`Error::Continuation`] if the continuation belongs to another call; the cursor fails with
    /// [`Error::Torn`] at a record that cannot be read.
    pub fn scan_records(
        &self,
        range: TupleRange,
        reverse: bool,
        from: Continuation,
        spent: &Spent,
    ) -> Result<BoxCursor<StoredRecord>, Error> {
        let records = RecordCursor::new(self, &range, reverse, from, spent, OnTorn::Fail)?;
        Ok(records.filter_map(|record| record.map(Some)))
    }

    /// As [`scan_records`](RecordStore::scan_records); with [`OnTorn::Skip`] the error for a record that
    /// cannot be read, [`Error::Torn`] with its primary key, is a row.
    pub fn scan_records_or_torn(
        &self,
        range: TupleRange,
        reverse: bool,
        from: Continuation,
        spent: &Spent,
        torn: OnTorn,
    ) -> Result<BoxCursor<Result<StoredRecord, Error>>, Error> {
        Ok(Box::new(RecordCursor::new(self, &range, reverse, from, spent, torn)?))
    }

    /// The entries of an index in a range, in its order, or in reverse. Fails with [`Error::UnknownIndex`],
    /// with [`Error::IndexState`] if the index is not readable or has no such scan, and with
    /// [`Error::Continuation`] if the continuation belongs to another call. The cursor fails with
    /// [`Error::IndexState`] once this transaction has made the index unreadable.
    pub fn scan_index(
        &self,
        index: &str,
        scan: IndexScan,
        range: TupleRange,
        reverse: bool,
        from: Continuation,
        spent: &Spent,
    ) -> Result<BoxCursor<IndexEntry>, Error> {
        self.scannable(index)?;
        let entries = self.scan_index_in_any_state(index, scan, range, reverse, from, spent)?;
        Ok(Box::new(Scannable { entries, store: self.clone(), index: index.into() }))
    }

    /// Fails with [`Error::IndexState`] if an index cannot be scanned.
    fn scannable(&self, index: &str) -> Result<(), Error> {
        match self.index_state(index)? {
            state if state.is_scannable() => Ok(()),
            state => Err(Error::IndexState { index: index.into(), reason: format!("it is {state}") }),
        }
    }

    /// The violations of a unique index that was built over records with equal keys, in a range of its
    /// columns, followed by the primary key. There are some while the index is write-only, and if it is
    /// [readable with that pending](crate::index::IndexState::ReadableUniquePending): each of the records
    /// with the same key has one. They are resolved when all of these records but one are deleted or get
    /// other keys; see [`mark_index_readable`](RecordStore::mark_index_readable). Fails with
    /// [`Error::UnknownIndex`], and with [`Error::Continuation`] if the continuation belongs to another call.
    pub fn scan_violations(
        &self,
        index: &str,
        range: TupleRange,
        reverse: bool,
        from: Continuation,
        spent: &Spent,
    ) -> Result<BoxCursor<Violation>, Error> {
        let at = IndexAt { store: self, index: self.index(index)? };
        let rows = at.scan_violations(&range, reverse, from, spent)?;
        Ok(rows.map(|IndexEntry { key, primary_key, value }| Violation { key, primary_key, existing: value }))
    }

    /// As [`scan_index`](RecordStore::scan_index), also if the index is not readable: for its maintenance.
    pub(crate) fn scan_index_in_any_state(
        &self,
        index: &str,
        scan: IndexScan,
        range: TupleRange,
        reverse: bool,
        from: Continuation,
        spent: &Spent,
    ) -> Result<BoxCursor<IndexEntry>, Error> {
        let index = self.index(index)?;
        self.maintainer(index)?.scan(IndexAt { store: self, index }, scan, range, reverse, from, spent)
    }
}

/// The entries of an index for as long as it can be scanned: after a change of its state in the same
/// transaction it may have none of them.
struct Scannable<T: Transaction> {
    entries: BoxCursor<IndexEntry>,
    store: RecordStore<T>,
    index: String,
}

impl<T: Transaction> Cursor for Scannable<T> {
    type Row = IndexEntry;

    fn next(&mut self) -> BoxFuture<'_, Result<Next<IndexEntry>, Error>> {
        async move {
            let next = self.entries.next().await?;
            // The state may have changed while the read was under way.
            self.store.scannable(&self.index)?;
            Ok(next)
        }
        .boxed()
    }
}

/// The same range of primary keys, with ends that are not between the rows of a record. A tuple that has a
/// whole primary key and more comes after it.
fn whole_records<T: Transaction>(store: &RecordStore<T>, range: &TupleRange) -> TupleRange {
    let whole = |tuple: &Tuple| Some(tuple.split_at(store.meta_data.beyond_primary_key(tuple)?).0);
    let tuple = |end: &Endpoint| match end {
        Endpoint::Open => None,
        Endpoint::Inclusive(tuple) | Endpoint::Exclusive(tuple) => whole(tuple),
    };
    TupleRange {
        low: tuple(&range.low).map_or_else(|| range.low.clone(), Endpoint::Exclusive),
        high: tuple(&range.high).map_or_else(|| range.high.clone(), Endpoint::Inclusive),
    }
}

/// Records, put together from their rows.
struct RecordCursor<T: Transaction> {
    store: RecordStore<T>,
    rows: KeyValueCursor<T>,
    /// The first row of the next record.
    ahead: Option<Row>,
    spent: Spent,
    torn: OnTorn,
    at: Continuation,
    /// Whether a record was read.
    begun: bool,
}

impl<T: Transaction> RecordCursor<T> {
    fn new(
        store: &RecordStore<T>,
        range: &TupleRange,
        reverse: bool,
        from: Continuation,
        spent: &Spent,
        torn: OnTorn,
    ) -> Result<RecordCursor<T>, Error> {
        let space = &store.keyspace.part(Part::Records);
        let what = "scan of records";
        let range = &whole_records(store, range);
        let scan = Scan { what, space, range, reverse, from: &from, prefixes: true };
        Ok(RecordCursor {
            store: store.clone(),
            rows: KeyValueCursor::new(&store.context, &scan)?,
            ahead: None,
            spent: spent.clone(),
            torn,
            at: from,
            begun: false,
        })
    }

    async fn row(&mut self) -> Result<Option<Row>, Error> {
        match self.ahead.take() {
            Some(row) => Ok(Some(row)),
            None => self.rows.next(&self.spent).await,
        }
    }

    async fn next(&mut self) -> Result<Next<Result<StoredRecord, Error>>, Error> {
        loop {
            if self.begun
                && let Some(stop) = self.spent.reached()
            {
                return Ok(Next::Stopped(stop, self.at.clone()));
            }
            let Some(first) = self.row().await? else {
                return Ok(Next::Stopped(Stop::Exhausted, Continuation::End));
            };
            let (primary_key, _, length) = self.store.row_of(first.key())?;
            let prefix = first.key().slice(..length);
            let (mut found, mut bytes, mut torn) = (Found::default(), 0, Ok(()));
            let mut next = Some(first);
            while let Some(row) = next {
                let (of, last, of_length) = self.store.row_of(row.key())?;
                if row.key()[..of_length] != prefix[..] {
                    self.ahead = Some(row);
                    break;
                }
                bytes += row.bytes();
                match row {
                    Row::Version(key, version) => found.written(key.len(), version),
                    Row::Stored(row) => torn = torn.and(found.row(&of, last, row.key.len(), row.value)),
                }
                next = self.row().await?;
            }
            self.at = self.rows.after(&prefix);
            let record = match torn.and_then(|()| found.bytes(&primary_key)) {
                // The transaction has deleted it.
                Ok(None) => continue,
                Ok(Some(bytes)) => self.store.stored(primary_key, found, bytes),
                Err(error) => Err(error),
            };
            self.begun = true;
            self.spent.count(bytes);
            return match record {
                Err(error) if self.torn == OnTorn::Fail => Err(error),
                record => Ok(Next::Row(record, self.at.clone())),
            };
        }
    }
}

impl<T: Transaction> Cursor for RecordCursor<T> {
    type Row = Result<StoredRecord, Error>;

    fn next(&mut self) -> BoxFuture<'_, Result<Next<Self::Row>, Error>> {
        RecordCursor::next(self).boxed()
    }
}
