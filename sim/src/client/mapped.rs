//! Mapped ranges: a range of the snapshot, and the ranges that its rows map to.
//!
//! FoundationDB's storage servers perform the mapping; here the client does, with the same results. As in
//! FoundationDB, the transaction's own writes are not merged in: reading one is an error
//! (`ReadYourWrites.actor.cpp`, `addConflictRangeAndMustUnmodified`).

use super::{
    conflict,
    guard::guarded,
    keys::{ALL_END, SPECIAL_END},
    limits::{Limits, REPLY_BYTE_LIMIT},
    range::{Batch, Fetch},
    selector::Selector,
    sizes,
    transaction::{Inner, SimTransaction, State},
    version::{Awaited, read_version},
    write::is_special,
    write_map::Segment,
};
use crate::{
    history::Call,
    proto::{KeyRange, Version},
};
use bytes::Bytes;
use shaketable_tx::{
    Error, Isolation, KeySelector, KeyValue, MappedBatch, MappedRow, Mapper, RangeOption, Result, strinc,
};
use std::{future::Future, sync::Arc};

/// The maximum number of rows read from a range that a row maps to (`QUICK_GET_KEY_VALUES_LIMIT`).
const SECONDARY_ROWS: i64 = 2_000;
/// The number of rows that are mapped before the byte limit is checked (`MAX_PARALLEL_QUICK_GET_VALUE`).
const AT_ONCE: usize = 10;
/// The rows themselves may take one part in this many of the requested bytes
/// (`FRACTION_INDEX_BYTELIMIT_PREFETCH`).
const ROWS_PART: i64 = 5;

/// A mapped range read that has been issued.
struct Asked {
    inner: Arc<Inner>,
    epoch: u32,
    begin: Selector,
    end: Selector,
    limits: Limits,
    reverse: bool,
    max: Bytes,
    version: Awaited,
}

/// Its result: the rows, and for each row the range that it maps to.
struct MappedRows {
    batch: Batch,
    secondary: Vec<(KeyRange, Batch)>,
}

impl Asked {
    async fn read(&self, mapper: &[u8]) -> Result<MappedRows> {
        let version = self.version.clone().get().await?;
        let connection = &self.inner.client.connection;
        let mut end = self.end.clone();
        if self.reverse && end.offset > 1 {
            let key = KeySelector { key: end.key, or_equal: false, offset: end.offset };
            end = Selector::first_at(connection.key(key, version).await?.min(self.max.clone()));
        }
        let mut limits = self.limits;
        let bytes = limits.bytes.unwrap_or(REPLY_BYTE_LIMIT).min(REPLY_BYTE_LIMIT);
        limits.bytes = Some(bytes / ROWS_PART);
        let fetch = Fetch { begin: self.begin.clone(), end, limits, reverse: self.reverse };
        let mut batch = connection.range(fetch, version).await?;
        let mapper = Mapper::parse(mapper)?;
        let mut secondary = Vec::new();
        let mut left = bytes;
        for rows in batch.rows.chunks(AT_ONCE) {
            if left <= 0 {
                break;
            }
            for row in rows {
                let (range, found) = self.secondary(mapper.prefix(row)?, version).await?;
                left -= sizes::rows(std::slice::from_ref(row)) + sizes::rows(&found.rows);
                secondary.push((range, found));
            }
        }
        if secondary.len() < batch.rows.len() {
            batch.rows.truncate(secondary.len());
            (batch.more, batch.read_through, batch.read_through_end) = (true, None, self.reverse);
            batch.read_to_begin &= !self.reverse;
        }
        Ok(MappedRows { batch, secondary })
    }

    /// Reads all keys that start with `prefix`.
    async fn secondary(&self, prefix: Bytes, version: Version) -> Result<(KeyRange, Batch)> {
        let range = KeyRange { end: strinc(&prefix).unwrap_or(ALL_END), begin: prefix };
        let fetch = Fetch {
            begin: Selector::first_at(range.begin.clone()),
            end: Selector::first_at(range.end.clone()),
            limits: Limits { rows: Some(SECONDARY_ROWS), min_rows: 1, bytes: None },
            reverse: false,
        };
        let batch = self.inner.client.connection.range(fetch, version).await?;
        Ok((range, batch))
    }

    /// Adds the read ranges to the conflict ranges, and the reads to the history.
    fn note(&self, state: &mut State, found: &MappedRows) -> Result<()> {
        let primary = conflict::of_range(&self.begin, &self.end, self.reverse, &found.batch, &self.max);
        state.read_unwritten(primary)?;
        for (range, batch) in &found.secondary {
            let (begin, end) =
                (Selector::first_at(range.begin.clone()), Selector::first_at(range.end.clone()));
            state.read_unwritten(conflict::of_range(&begin, &end, false, batch, &self.max))?;
        }
        let (begin, end) = (&self.begin, &self.end);
        let plain = |s: &Selector| KeySelector { key: s.key.clone(), or_equal: false, offset: s.offset };
        state.note_range(plain(begin), plain(end), self.reverse, &found.batch);
        for (range, batch) in &found.secondary {
            let at = |key: &Bytes| KeySelector::first_greater_or_equal(key.clone());
            state.note_range(at(&range.begin), at(&range.end), false, batch);
        }
        Ok(())
    }
}

impl State {
    /// Adds a range that was read without the transaction's own writes to the read conflict ranges; 2039 if
    /// it includes one of them.
    fn read_unwritten(&mut self, range: KeyRange) -> Result<()> {
        let size = sizes::range(range.begin.len(), range.end.len());
        let (mut parts, mut met) = (Vec::new(), false);
        let mut cursor = self.writes.cursor_at(&range.begin);
        while cursor.begins_before(&range.end) {
            met = cursor.segment() != Segment::Unmodified;
            if met {
                break;
            }
            parts.push(KeyRange {
                begin: cursor.begin().to_bytes().max(range.begin.clone()),
                end: cursor.end().to_bytes().min(range.end.clone()),
            });
            cursor.next();
        }
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            self.size += size;
            self.reads.insert(part);
        }
        if met { Err(Error::GET_MAPPED_RANGE_READS_YOUR_WRITES) } else { Ok(()) }
    }

    fn note_range(&mut self, begin: KeySelector, end: KeySelector, reverse: bool, batch: &Batch) {
        let limit = if batch.more { batch.rows.len() } else { 0 };
        let isolation = Isolation::Serializable;
        let call = Call::GetRange { begin, end, limit, reverse, isolation, answer: None };
        let call = self.record.read(call, self.options.own_writes());
        self.record.rows(call, &batch.rows, batch.more);
    }
}

impl SimTransaction {
    pub(super) fn do_get_mapped_range(
        &self,
        range: &RangeOption,
        mapper: &[u8],
        iteration: usize,
        isolation: Isolation,
    ) -> impl Future<Output = Result<MappedBatch>> + Send + use<> {
        let asked = self.ask_mapped(range, mapper, iteration, isolation);
        let mapper = Bytes::copy_from_slice(mapper);
        async move {
            let Some(asked) = asked? else { return Ok(MappedBatch::default()) };
            let found = guarded(&asked.inner, asked.epoch, asked.read(&mapper)).await?;
            let mut state = asked.inner.state.lock();
            state.check(&asked.inner.client, asked.epoch)?;
            state.cost += sizes::read_cost(
                found.batch.rows.iter().map(|row| row.key.len() + row.value.len()).sum::<usize>()
                    + found
                        .secondary
                        .iter()
                        .map(|(_, batch)| sizes::rows(&batch.rows) as usize)
                        .sum::<usize>(),
            );
            let round_trips = state.record.round_trips();
            state.record.replied(round_trips);
            asked.note(&mut state, &found)?;
            drop(state);
            let MappedRows { batch, secondary } = found;
            let row = |(parent, (range, found)): (KeyValue, (KeyRange, Batch))| MappedRow {
                parent,
                begin: range.begin,
                end: range.end,
                rows: found.rows,
            };
            Ok(MappedBatch {
                rows: batch.rows.into_iter().zip(secondary).map(row).collect(),
                more: batch.more,
            })
        }
    }

    /// The read to be performed, if any.
    fn ask_mapped(
        &self,
        range: &RangeOption,
        mapper: &[u8],
        iteration: usize,
        isolation: Isolation,
    ) -> Result<Option<Asked>> {
        if Mapper::parse(mapper) == Err(Error::UNSUPPORTED_OPERATION) {
            return Err(Error::UNSUPPORTED_OPERATION);
        }
        let limits = Limits::of(range, iteration)?;
        let mut state = self.0.state.lock();
        state.deferred()?;
        let (begin, end) = (&range.begin.key, &range.end.key);
        if is_special(begin) && *end >= ALL_END && *end <= SPECIAL_END {
            return Err(Error::CLIENT_INVALID_OPERATION);
        }
        state.enter(&self.0.client)?;
        let max = state.max_read();
        if *begin > max || *end > max {
            return Err(Error::KEY_OUTSIDE_LEGAL_RANGE);
        }
        let (begin, end) = (Selector::plain(&range.begin), Selector::plain(&range.end));
        if begin.offset >= end.offset && begin.key >= end.key {
            return Ok(None);
        }
        if isolation == Isolation::Snapshot || state.options.ryw_disabled {
            return Err(Error::UNSUPPORTED_OPERATION);
        }
        let version = read_version(&self.0, &mut state, false);
        let (inner, epoch) = (self.0.clone(), state.epoch);
        Ok(Some(Asked { inner, epoch, begin, end, limits, reverse: range.reverse, max, version }))
    }
}
