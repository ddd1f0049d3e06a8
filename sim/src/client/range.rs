//! A range read over the transaction's own writes and the snapshot, as a state machine.
//!
//! [`RangeRead::advance`] walks the segments until the batch is complete or it reaches an unknown segment;
//! the caller fetches that and calls again. The requests, the ends of batches and the values of `more` are
//! the same as in FoundationDB's client, because layers and conflict ranges depend on them.

mod backward;
mod forward;

use super::{
    keys::{ALL_END, Edge},
    limits::Limits,
    segments::{Kind, Segments},
    selector::{Reached, Selector},
    snapshot_cache::SnapshotCache,
    write_map::WriteMap,
};
use bytes::Bytes;
use shaketable_tx::{KeyValue, Result, key_after};

/// The result of a range read, and how far it has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The rows, in the requested order.
    pub rows: Vec<KeyValue>,
    /// Whether rows may remain after the last one.
    pub more: bool,
    /// The batch begins at the beginning of the keyspace.
    pub read_to_begin: bool,
    /// The batch ends at the end of the keyspace.
    pub read_through_end: bool,
    /// If `more` is set: everything up to this key (down to it, in reverse) has been read.
    pub read_through: Option<Bytes>,
}

/// A range of the snapshot to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// The begin of the range.
    pub begin: Selector,
    /// The end of the range.
    pub end: Selector,
    /// The limits.
    pub limits: Limits,
    /// Whether to read from the end.
    pub reverse: bool,
}

/// What a range read needs next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: this is the result.
    Done(Batch),
    /// A range of the snapshot, to be passed to [`RangeRead::fetched`].
    Fetch(Fetch),
    /// The key of a selector, including the transaction's own writes, to be passed to
    /// [`RangeRead::resolved`].
    Resolve(Selector),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not started.
    Start,
    /// The far end's selector is before the near one: it is being resolved.
    Inverted,
    /// Walking.
    Walk,
    /// The walk has ended; the far end is being resolved to cut the batch there.
    Closing,
}

/// A range read in progress.
#[derive(Debug)]
pub struct RangeRead {
    begin: Selector,
    end: Selector,
    limits: Limits,
    reverse: bool,
    /// The end of the keys that the transaction may read.
    max: Bytes,
    phase: Phase,
    rows: Vec<KeyValue>,
    more: bool,
    reached: Reached,
    begin_offset: i32,
    end_offset: i32,
    additional: i64,
    rows_beyond_limit: i64,
    requests: u32,
    resolved: Option<Bytes>,
    pending: Option<(Selector, Selector)>,
}

type Known<'a> = (&'a SnapshotCache, &'a WriteMap);

impl RangeRead {
    /// A read of the range between two selectors, limited to keys before `max`.
    pub fn new(begin: Selector, end: Selector, limits: Limits, reverse: bool, max: Bytes) -> RangeRead {
        RangeRead {
            begin_offset: begin.offset,
            end_offset: end.offset,
            begin,
            end,
            limits,
            reverse,
            max,
            phase: Phase::Start,
            rows: Vec::new(),
            more: false,
            reached: Reached::default(),
            additional: 0,
            rows_beyond_limit: 0,
            requests: 0,
            resolved: None,
            pending: None,
        }
    }

    /// The read that resolves a selector; see [`key_of`].
    pub fn of_key(selector: Selector, max: Bytes) -> RangeRead {
        if selector.offset > 0 {
            let end = Selector::first_at(max.clone());
            return RangeRead::new(selector, end, Limits::ONE, false, max);
        }
        let end = Selector { offset: selector.offset + 1, ..selector };
        RangeRead::new(Selector::first_at(Bytes::new()), end, Limits::ONE, true, max)
    }

    /// Advances as far as possible. Fails with 1036 if it reaches an unreadable segment.
    pub fn advance(&mut self, known: Known<'_>) -> Result<Step> {
        if self.reverse { self.backward(known) } else { self.forward(known) }
    }

    /// Sets the key requested by [`Step::Resolve`].
    pub fn resolved(&mut self, key: Bytes) {
        self.reached.begin |= key.is_empty();
        self.reached.end |= key == self.max;
        self.resolved = Some(key);
    }

    /// Adds the result of [`Step::Fetch`] to the cache.
    pub fn fetched(&mut self, cache: &mut SnapshotCache, batch: Batch) {
        let Some((begin, end)) = self.pending.take() else { return };
        let (begin, end) = known_range(&batch, &begin, &end, self.reverse);
        let mut rows = batch.rows;
        if self.reverse {
            rows.reverse();
        }
        cache.insert_range(begin, end, rows);
    }

    fn fetch(&mut self, begin: Selector, end: Selector, offset: i32) -> Step {
        let limits = self.limits.for_request(self.additional, i64::from(offset), self.requests);
        self.requests += 1;
        self.additional = 0;
        self.pending = Some((begin.clone(), end.clone()));
        Step::Fetch(Fetch { begin, end, limits, reverse: self.reverse })
    }

    fn clear_limit(&self) -> i64 {
        if self.requests > 0 { 1 << self.requests.min(20) } else { 0 }
    }

    /// Takes the row of a segment, or counts it if the limits are reached.
    fn take(&mut self, row: Option<(Bytes, Bytes)>) {
        let Some((key, value)) = row else { return };
        if self.limits.is_reached() {
            self.rows_beyond_limit += 1;
            return;
        }
        let row = KeyValue { key, value };
        self.limits.take(&row);
        self.rows.push(row);
    }

    /// No rows, without information about the ends.
    fn nothing(&self) -> Result<Step> {
        Ok(Step::Done(Batch::default()))
    }

    /// No rows, but ends were reached.
    fn empty_with_ends(&self) -> Result<Step> {
        Ok(Step::Done(Batch {
            read_to_begin: self.reached.begin,
            read_through_end: self.reached.end,
            ..Batch::default()
        }))
    }

    /// Whether the selectors are inverted, regardless of the keys between them.
    fn is_inverted(&self) -> bool {
        self.begin_offset >= self.end_offset && self.begin.key >= self.end.key
    }

    /// Cuts the batch at the far end, if that is a key by now.
    fn finish(&mut self) -> Result<Step> {
        let mut more = self.more || self.limits.is_reached();
        let far = if self.reverse { &self.begin } else { &self.end };
        if far.is_key() {
            let keep = match self.reverse {
                true => self.rows.partition_point(|row| row.key >= far.key),
                false => self.rows.partition_point(|row| row.key < far.key),
            };
            more &= keep == self.rows.len();
            self.rows.truncate(keep);
        }
        Ok(Step::Done(Batch {
            rows: std::mem::take(&mut self.rows),
            more,
            read_to_begin: self.reached.begin && !(self.reverse && more),
            read_through_end: self.reached.end && (self.reverse || !more),
            read_through: None,
        }))
    }
}

/// The key found by a read created with [`RangeRead::of_key`].
pub fn key_of(batch: &Batch, forward: bool, max: &Bytes) -> Bytes {
    match (forward, batch.read_to_begin, batch.read_through_end, batch.rows.first()) {
        (true, true, ..) => Bytes::new(),
        (true, _, true, _) | (true, _, _, None) | (false, _, true, _) => max.clone(),
        (false, true, ..) | (false, _, _, None) => Bytes::new(),
        (_, _, _, Some(row)) => row.key.clone(),
    }
}

/// The range of the snapshot that is known after a reply; it is inverted if nothing is.
fn known_range(batch: &Batch, begin: &Selector, end: &Selector, reverse: bool) -> (Bytes, Bytes) {
    let complete = !batch.more;
    let mut from = match begin.offset <= 1 && (complete || !reverse) {
        true => begin.key.clone(),
        false => ALL_END,
    };
    let mut to = match end.offset >= 1 && (complete || reverse) {
        true => end.key.clone(),
        false => Bytes::new(),
    };
    // FoundationDB's client also takes a batch that ended at a shard's boundary for one that has read to the
    // beginning, if its begin selector is before every key, and then misses the rows of the lower shards.
    if batch.read_to_begin && !(reverse && batch.more) {
        from = Bytes::new();
    }
    if batch.read_through_end {
        to = ALL_END;
    }
    if let (Some(first), Some(last)) = (batch.rows.first(), batch.rows.last()) {
        match (reverse, &batch.read_through) {
            (false, Some(read)) => to = to.max(read.clone()),
            (false, None) => to = to.max(key_after(&last.key)),
            (true, Some(read)) => from = from.min(read.clone()),
            (true, None) if complete => from = from.min(last.key.clone()),
            (true, None) => from = last.key.clone(),
        }
        if reverse {
            if first.key >= to {
                to = key_after(&first.key);
            }
        } else {
            from = from.min(first.key.clone());
        }
    }
    (from, to)
}

/// Moves `it`, which is at an unknown segment, over unknown segments, rows and empty single keys to the last
/// unknown segment before anything else, by at most `limit` segments and not beyond `end`. Returns the number
/// of empty keys that it passed.
fn skip_uncached(it: &mut Segments<'_>, end: &Segments<'_>, mut limit: i64, back: bool) -> Result<i64> {
    let (mut near, mut far) = edges(it, back);
    let mut empty = 0;
    while !it.is(end) && limit > 0 {
        limit -= 1;
        if it.is_unreadable() || it.kind()? == Kind::Empty {
            if it.is_unreadable() || !single(near, far, back) {
                break;
            }
            empty += 1;
        } else {
            near = far;
        }
        step(it, back);
        far = edges(it, back).1;
    }
    while it.is_unreadable() || it.kind()? != Kind::Unknown {
        step(it, !back);
    }
    Ok(empty)
}

/// The number of empty single keys that follow `it` before any other known segment, at most `most`.
fn count_uncached(mut it: Segments<'_>, end: Edge<'_>, most: i64, back: bool) -> Result<i64> {
    let mut empty = 0;
    if most <= 0 {
        return Ok(0);
    }
    let (mut near, mut far) = edges(&it, back);
    while if back { far > end } else { far < end } {
        if it.is_unreadable() || it.kind()? == Kind::Empty {
            if it.is_unreadable() || !single(near, far, back) {
                return Ok(empty);
            }
            empty += 1;
            if empty >= most {
                return Ok(most);
            }
        } else {
            near = far;
        }
        step(&mut it, back);
        far = edges(&it, back).1;
    }
    Ok(empty)
}

/// The edge from which a walk comes, and the edge to which it goes.
fn edges<'a>(it: &Segments<'a>, back: bool) -> (Edge<'a>, Edge<'a>) {
    if back { (it.end(), it.begin()) } else { (it.begin(), it.end()) }
}

fn single(near: Edge<'_>, far: Edge<'_>, back: bool) -> bool {
    if back { near.is_key_after(far) } else { far.is_key_after(near) }
}

fn step(it: &mut Segments<'_>, back: bool) {
    if back { it.prev() } else { it.next() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reversed_batch_that_ends_at_a_shard_has_not_read_what_is_below() {
        let row = KeyValue { key: "c".into(), value: "1".into() };
        let batch = Batch {
            rows: vec![row],
            more: true,
            read_to_begin: true,
            read_through: Some("b".into()),
            ..Batch::default()
        };
        let (begin, end) = (Selector::first_at(Bytes::new()), Selector::first_at("d".into()));
        let before_every_key = Selector { offset: 0, ..begin };
        assert_eq!(known_range(&batch, &before_every_key, &end, true), ("b".into(), "d".into()));
    }
}
