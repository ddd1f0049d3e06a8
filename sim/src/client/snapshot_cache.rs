//! The part of its snapshot that a transaction has cached: ranges of the keyspace whose rows it has read.
//!
//! A second read of a cached key sends no request. The cache also affects where a batch of a range read ends;
//! therefore its segments are those of FoundationDB (`fdbclient/SnapshotCache.h`).

use super::keys::Edge;
use bytes::Bytes;
use shaketable_tx::KeyValue;
use std::{
    collections::BTreeMap,
    ops::Bound::{Excluded, Included, Unbounded},
};

/// A known range: it contains exactly these rows.
#[derive(Clone, Debug)]
struct Known {
    end: Bytes,
    rows: Vec<KeyValue>,
}

/// Sentinels at both ends of the keyspace: known, and empty.
static FIRST: Known = Known { end: Bytes::new(), rows: Vec::new() };
static LAST: Known = Known { end: Bytes::from_static(b"\xff\xff\x00"), rows: Vec::new() };
const LAST_KEY: &[u8] = b"\xff\xff";

/// The kind of the segment at a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Not read yet.
    Unknown,
    /// Read, without a row.
    Empty,
    /// A row.
    Row,
}

/// The known ranges of a snapshot.
#[derive(Clone, Debug, Default)]
pub struct SnapshotCache {
    known: BTreeMap<Bytes, Known>,
}

impl SnapshotCache {
    /// What is known about one key: `None` if nothing, otherwise its value.
    pub fn get(&self, key: &[u8]) -> Option<Option<&Bytes>> {
        let (_, known) = self.known.range::<[u8], _>((Unbounded, Included(key))).next_back()?;
        if key >= &known.end[..] {
            return None;
        }
        let found = known.rows.binary_search_by(|row| row.key[..].cmp(key)).ok();
        Some(found.map(|i| &known.rows[i].value))
    }

    /// Adds the value of one key, whose range is `[key, after)`. Ranges that are already known do not change.
    pub fn insert(&mut self, key: Bytes, after: Bytes, value: Option<Bytes>) {
        if self.get(&key).is_none() {
            let rows = value.map(|value| KeyValue { key: key.clone(), value }).into_iter().collect();
            self.known.insert(key, Known { end: after, rows });
        }
    }

    /// Adds `[begin, end)` with exactly these rows, in ascending order. Ranges that are already known do not
    /// change.
    pub fn insert_range(&mut self, mut begin: Bytes, mut end: Bytes, mut rows: Vec<KeyValue>) {
        if let Some((from, known)) = self.known.range(..=begin.clone()).next_back()
            && *from != begin
        {
            begin = begin.max(known.end.clone());
            rows.drain(..rows.partition_point(|row| row.key < begin));
        }
        if let Some((from, known)) = self.known.range(..=end.clone()).next_back()
            && end < known.end
        {
            end = from.clone();
            rows.truncate(rows.partition_point(|row| row.key < end));
        }
        if begin >= end {
            return;
        }
        while let Some((key, _)) =
            self.known.range::<[u8], _>((Included(&begin[..]), Excluded(&end[..]))).next()
        {
            let key = key.clone();
            self.known.remove(&key);
        }
        self.known.insert(begin, Known { end, rows });
    }

    fn entry(&self, key: &[u8]) -> (&[u8], &Known) {
        match self.known.range::<[u8], _>((Unbounded, Included(key))).next_back() {
            _ if key >= LAST_KEY => (LAST_KEY, &LAST),
            Some((begin, known)) => (begin, known),
            None => (&[], &FIRST),
        }
    }

    fn entry_after(&self, key: &[u8]) -> (&[u8], &Known) {
        match self.known.range::<[u8], _>((Excluded(key), Unbounded)).next() {
            Some((begin, known)) => (begin, known),
            None => (LAST_KEY, &LAST),
        }
    }

    fn entry_before(&self, key: &[u8]) -> (&[u8], &Known) {
        match self.known.range::<[u8], _>((Unbounded, Excluded(key))).next_back() {
            Some((begin, known)) => (begin, known),
            None => (&[], &FIRST),
        }
    }

    /// A cursor at the segment that contains `key`.
    pub fn cursor_at(&self, key: &[u8]) -> CacheCursor<'_> {
        let (begin, known) = self.entry(key);
        if key >= &known.end[..] {
            let (begin, known) = self.entry_after(begin);
            return CacheCursor { cache: self, begin, known, place: 0 };
        }
        let row = known.rows.partition_point(|row| row.key[..] < *key);
        let on = known.rows.get(row).is_some_and(|r| r.key[..] == *key);
        CacheCursor { cache: self, begin, known, place: row * 2 + 1 + usize::from(on) }
    }
}

/// A position in the segments of a [`SnapshotCache`]. Segments cover the keyspace without gaps.
#[derive(Clone, Copy)]
pub struct CacheCursor<'a> {
    cache: &'a SnapshotCache,
    begin: &'a [u8],
    known: &'a Known,
    /// 0 is the unknown range before `known`; after that, its gaps (odd) and rows (even) alternate.
    place: usize,
}

impl<'a> CacheCursor<'a> {
    /// The segment's kind.
    pub fn segment(&self) -> Segment {
        match self.place {
            0 => Segment::Unknown,
            n if n % 2 == 1 => Segment::Empty,
            _ => Segment::Row,
        }
    }

    /// The row at the cursor.
    pub fn row(&self) -> Option<&'a KeyValue> {
        (self.segment() == Segment::Row).then(|| &self.known.rows[self.place / 2 - 1])
    }

    /// The begin of the segment.
    pub fn begin(&self) -> Edge<'a> {
        match self.place {
            0 => Edge::at(&self.cache.entry_before(self.begin).1.end),
            1 => Edge::at(self.begin),
            n => Edge { key: &self.known.rows[(n - 2) / 2].key, after: n % 2 == 1 },
        }
    }

    /// The end of the segment.
    pub fn end(&self) -> Edge<'a> {
        match self.place {
            0 => Edge::at(self.begin),
            n if n == self.known.rows.len() * 2 + 1 => Edge::at(&self.known.end),
            n => Edge { key: &self.known.rows[(n - 1) / 2].key, after: n % 2 == 0 },
        }
    }

    /// Moves to the next segment.
    pub fn next(&mut self) {
        let end = self.end();
        loop {
            self.place += 1;
            if self.place == self.known.rows.len() * 2 + 2 {
                (self.begin, self.known) = self.cache.entry_after(self.begin);
                self.place = 0;
            }
            if self.end() != end || self.begin == LAST_KEY && self.place == 1 {
                return;
            }
        }
    }

    /// Moves to the previous segment. Must not be called at the beginning of the keyspace.
    pub fn prev(&mut self) {
        let begin = self.begin();
        loop {
            if self.place == 0 {
                (self.begin, self.known) = self.cache.entry_before(self.begin);
                self.place = self.known.rows.len() * 2 + 1;
            } else {
                self.place -= 1;
            }
            if self.begin() != begin || self.begin.is_empty() && self.place <= 1 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn no_unknown_segment_follows_a_range_known_to_the_last_key() {
        for known in ["", "a"] {
            let mut cache = SnapshotCache::default();
            cache.insert_range(known.into(), Bytes::from_static(LAST_KEY), vec![KeyValue::new("b", "value")]);
            let mut cursor = cache.cursor_at(b"");
            let mut segments = Vec::new();
            while cursor.begin() < Edge::at(LAST_KEY) {
                segments.push((cursor.begin().to_bytes(), cursor.segment()));
                cursor.next();
            }
            let inside = [("a", Segment::Empty), ("b", Segment::Row), ("b\0", Segment::Empty)];
            let mut expected = inside.map(|(key, segment)| (Bytes::from(key), segment)).to_vec();
            match known {
                "" => expected[0].0 = Bytes::new(),
                _ => expected.insert(0, (Bytes::new(), Segment::Unknown)),
            }
            assert_eq!(segments, expected);
            // The keys end there, and that is known.
            for cursor in [cursor, cache.cursor_at(LAST_KEY)] {
                assert_eq!((cursor.begin(), cursor.segment()), (Edge::at(LAST_KEY), Segment::Empty));
            }
        }
    }

    proptest! {
        #[test]
        fn inserted_ranges_are_known(
            inserts in prop::collection::vec((0u8..30, 0u8..30), 1..12),
            truth in prop::collection::btree_map(0u8..30, any::<u8>(), 0..20),
        ) {
            let key = |k: u8| Bytes::copy_from_slice(&[k]);
            let mut cache = SnapshotCache::default();
            let mut known = BTreeMap::new();
            for (a, b) in inserts {
                let (a, b) = (a.min(b), a.max(b) + 1);
                let rows = truth.range(a..b).map(|(k, v)| KeyValue::new(key(*k), key(*v))).collect();
                cache.insert_range(key(a), key(b), rows);
                known.extend((a..b).map(|k| (k, ())));
            }
            for k in 0..31 {
                let got = cache.get(&[k]).map(|v| v.map(|v| v[0]));
                let expected = known.contains_key(&k).then(|| truth.get(&k).copied());
                prop_assert_eq!(got, expected);
                let cursor = cache.cursor_at(&[k]);
                prop_assert!(cursor.begin() <= Edge::at(&[k]) && Edge::at(&[k]) < cursor.end());
            }
            // Walking forward and back over all segments visits the same edges.
            let mut cursor = cache.cursor_at(b"");
            let mut edges = vec![cursor.begin().to_bytes()];
            while cursor.end() < Edge::at(LAST_KEY) {
                cursor.next();
                prop_assert_eq!(cursor.begin().to_bytes() > edges[edges.len() - 1], true);
                edges.push(cursor.begin().to_bytes());
            }
            while let Some(edge) = edges.pop() {
                prop_assert_eq!(cursor.begin().to_bytes(), edge);
                if !edges.is_empty() {
                    cursor.prev();
                }
            }
        }
    }
}
