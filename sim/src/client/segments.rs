//! The transaction's own writes over the snapshot: the two sequences of segments, walked as one.

use super::{
    keys::Edge,
    snapshot_cache::{self, CacheCursor, SnapshotCache},
    write_map::{self, WriteCursor, WriteMap},
};
use bytes::Bytes;
use shaketable_tx::{Error, Result};
use std::cmp::Ordering;

/// What a read sees in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It must be read from the snapshot first.
    Unknown,
    /// No row.
    Empty,
    /// One key, which holds a row unless `compare_and_clear` has cleared it.
    Row,
}

/// A position in the combined segments. Segments cover the keyspace without gaps.
#[derive(Clone)]
pub struct Segments<'a> {
    cache: CacheCursor<'a>,
    writes: WriteCursor<'a>,
    begin: Ordering,
    end: Ordering,
}

impl<'a> Segments<'a> {
    /// The segment that holds `key`.
    pub fn at(cache: &'a SnapshotCache, writes: &'a WriteMap, key: &[u8]) -> Segments<'a> {
        let (cache, writes) = (cache.cursor_at(key), writes.cursor_at(key));
        Segments {
            begin: cache.begin().cmp(&writes.begin()),
            end: cache.end().cmp(&writes.end()),
            cache,
            writes,
        }
    }

    /// What a read sees here; 1036 if a versionstamp may be stored here at commit.
    pub fn kind(&self) -> Result<Kind> {
        if self.writes.is_unreadable() {
            return Err(Error::ACCESSED_UNREADABLE);
        }
        use snapshot_cache::Segment::{Empty, Row, Unknown};
        use write_map::Segment::{Cleared, Dependent, Independent, Unmodified};
        Ok(match (self.writes.segment(), self.cache.segment()) {
            (Unmodified | Dependent, Unknown) => Kind::Unknown,
            (Unmodified, Empty) | (Cleared, _) => Kind::Empty,
            (Unmodified, Row) | (Independent, _) | (Dependent, Empty | Row) => Kind::Row,
        })
    }

    /// Whether a versionstamp may be stored here at commit.
    pub fn is_unreadable(&self) -> bool {
        self.writes.is_unreadable()
    }

    /// Whether it is known what a read sees here; false for unreadable segments.
    pub fn is_known(&self) -> bool {
        !self.is_unreadable() && self.kind() != Ok(Kind::Unknown)
    }

    /// The row here; `None` if the key is absent after applying the operations. Only for [`Kind::Row`].
    pub fn row(&self) -> Option<(Bytes, Bytes)> {
        let below = self.cache.row();
        if !self.writes.is_operation() {
            return below.map(|row| (row.key.clone(), row.value.clone()));
        }
        let value = self.writes.stack().over(below.map(|row| &row.value))?;
        let key = match below {
            Some(row) => row.key.clone(),
            None => self.writes.begin().to_bytes(),
        };
        Some((key, value))
    }

    /// The begin of the segment.
    pub fn begin(&self) -> Edge<'a> {
        if self.begin.is_le() { self.writes.begin() } else { self.cache.begin() }
    }

    /// The end of the segment.
    pub fn end(&self) -> Edge<'a> {
        if self.end.is_le() { self.cache.end() } else { self.writes.end() }
    }

    /// Moves to the next segment.
    pub fn next(&mut self) {
        if self.end.is_le() {
            self.cache.next();
        }
        if self.end.is_ge() {
            self.writes.next();
        }
        self.begin = self.end.reverse();
        self.end = self.cache.end().cmp(&self.writes.end());
    }

    /// Moves to the previous segment. Must not be called at the beginning of the keyspace.
    pub fn prev(&mut self) {
        if self.begin.is_ge() {
            self.cache.prev();
        }
        if self.begin.is_le() {
            self.writes.prev();
        }
        self.end = self.begin.reverse();
        self.begin = self.cache.begin().cmp(&self.writes.begin());
    }

    /// Whether both are at the same segment.
    pub fn is(&self, other: &Segments<'_>) -> bool {
        self.begin() == other.begin() && self.end() == other.end()
    }
}
