//! The cursor below all others: the rows of a range of keys, in either direction, in batches.

use super::{Continuation, Positions, Spent, TupleRange};
use crate::{error::Error, store::RecordContext, version::RecordVersion};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use shaketable_tx::{Isolation, KeySelector, KeyValue, RangeOption, Transaction, key_after};
use std::collections::VecDeque;

/// Which rows are scanned, and from where.
pub(crate) struct Scan<'a> {
    /// The kind of the scan.
    pub what: &'static str,
    /// What the range is a part of.
    pub space: &'a Subspace,
    /// The range.
    pub range: &'a TupleRange,
    /// Whether the last row comes first.
    pub reverse: bool,
    /// Where to begin.
    pub from: &'a Continuation,
    /// Whether a position is a primary key, and stands for the rows of its record.
    pub prefixes: bool,
}

/// A row, or one that the transaction itself has written and cannot read: the version of a record.
pub(crate) enum Row {
    /// A row of the database.
    Stored(KeyValue),
    /// The row of a version, by its key; `None` if the transaction has cleared it.
    Version(Bytes, Option<RecordVersion>),
}

impl Row {
    pub fn key(&self) -> &Bytes {
        match self {
            Row::Stored(row) => &row.key,
            Row::Version(key, _) => key,
        }
    }

    /// The bytes of its key and its value.
    pub fn bytes(&self) -> usize {
        match self {
            Row::Stored(row) => row.key.len() + row.value.len(),
            Row::Version(key, _) => key.len(),
        }
    }
}

/// The rows of a range of keys. Reads are serializable: a batch that was read conflicts with later changes,
/// also if not all of its rows were asked for.
///
/// The rows of versions that the transaction itself has written cannot be read (FoundationDB answers 1036,
/// also for a range around them): the range is read in the parts between them.
pub(crate) struct KeyValueCursor<T: Transaction> {
    context: RecordContext<T>,
    positions: Positions,
    prefix: usize,
    reverse: bool,
    /// What has not been read: `[begin, end)`.
    begin: Bytes,
    end: Bytes,
    iteration: usize,
    rows: VecDeque<Row>,
}

impl<T: Transaction> KeyValueCursor<T> {
    /// Fails with [`Error::Continuation`] if the continuation belongs to another scan.
    pub fn new(context: &RecordContext<T>, scan: &Scan<'_>) -> Result<KeyValueCursor<T>, Error> {
        let (mut begin, mut end) = scan.range.keys(scan.space);
        let direction = [u8::from(scan.reverse)];
        let positions = Positions::of(scan.what, &[scan.space.bytes(), &begin, &end, &direction]);
        if let Some(position) = positions.read(scan.from)? {
            let key = [scan.space.bytes(), &position].concat();
            match (scan.reverse, scan.prefixes) {
                (true, _) => end = key,
                (false, true) => begin = [&key[..], &[0xff]].concat(),
                (false, false) => begin = key_after(&key).into(),
            }
        }
        if *scan.from == Continuation::End {
            begin.clone_from(&end);
        }
        Ok(KeyValueCursor {
            context: context.clone(),
            positions,
            prefix: scan.space.bytes().len(),
            reverse: scan.reverse,
            begin: begin.into(),
            end: end.into(),
            iteration: 1,
            rows: VecDeque::new(),
        })
    }

    /// The continuation after the row with this key, or after all rows whose keys begin with it.
    pub fn after(&self, key: &[u8]) -> Continuation {
        self.positions.after(key.get(self.prefix..).unwrap_or_default())
    }

    /// The next row; `None` at the end. If it reads, it reads no more rows than `spent` allows.
    pub async fn next(&mut self, spent: &Spent) -> Result<Option<Row>, Error> {
        loop {
            if let Some(row) = self.rows.pop_front() {
                return Ok(Some(row));
            }
            if self.begin >= self.end {
                return Ok(None);
            }
            let (mut begin, mut end) = (self.begin.clone(), self.end.clone());
            if let Some((key, version)) = self.context.written_between(&begin, &end, self.reverse) {
                let (key, after) = (Bytes::from(key.clone()), key_after(&key));
                match self.reverse {
                    false if key == begin => {
                        self.begin = after;
                        return Ok(Some(Row::Version(key, version)));
                    }
                    true if after == end => {
                        self.end.clone_from(&key);
                        return Ok(Some(Row::Version(key, version)));
                    }
                    false => end = key,
                    true => begin = after,
                }
            }
            self.read(begin, end, spent).await?;
        }
    }

    /// Reads a batch at the near end of what has not been read.
    async fn read(&mut self, begin: Bytes, end: Bytes, spent: &Spent) -> Result<(), Error> {
        let first = KeySelector::first_greater_or_equal;
        let mut range = RangeOption::between(first(begin.clone()), first(end.clone()));
        range.reverse = self.reverse;
        range.limit = spent.left().map(|left| left.max(1));
        let batch =
            self.context.transaction()?.get_range(&range, self.iteration, Isolation::Serializable).await?;
        self.iteration += 1;
        match (batch.more, batch.rows.last(), self.reverse) {
            (false, _, false) => self.begin = end,
            (false, _, true) => self.end = begin,
            (true, Some(last), false) => self.begin = key_after(&last.key),
            (true, Some(last), true) => self.end = last.key.clone(),
            (true, None, _) => {}
        }
        self.rows.extend(batch.rows.into_iter().map(Row::Stored));
        Ok(())
    }
}
