//! The writes of a transaction so far: cleared ranges, written keys with their stacks of operations, write
//! conflict ranges and unreadable ranges, as segments of the keyspace.
//!
//! Segments are those of FoundationDB (`fdbclient/WriteMap.h`), including their boundaries: the approximate
//! size of a transaction depends on them.

use super::keys::{ALL_END, Edge};
pub use super::stack::{Op, Stack};
use crate::proto::KeyRange;
use bytes::Bytes;
use shaketable_tx::MutationType;
use std::{
    collections::{BTreeMap, btree_map},
    ops::Bound::{Excluded, Included, Unbounded},
};

/// Properties of a key or a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Marks {
    conflict: bool,
    unreadable: bool,
}

/// A key at which a segment begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    stack: Stack,
    /// Of the key itself; meaningless without operations.
    own: Marks,
    /// Of the keys that follow, up to the next entry.
    following: Marks,
    following_cleared: bool,
}

impl Entry {
    fn range(cleared: bool, marks: Marks) -> Entry {
        Entry { stack: Stack::Empty, own: marks, following: marks, following_cleared: cleared }
    }
}

static UNTOUCHED: Entry = Entry {
    stack: Stack::Empty,
    own: Marks { conflict: false, unreadable: false },
    following: Marks { conflict: false, unreadable: false },
    following_cleared: false,
};

static NO_KEY: Bytes = Bytes::new();
static ALL_END_KEY: Bytes = ALL_END;
static BEYOND: Bytes = Bytes::from_static(b"\xff\xff\x00");

/// The kind of the segment at a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// A range that was not written.
    Unmodified,
    /// A cleared range.
    Cleared,
    /// A written key whose value is known without the snapshot.
    Independent,
    /// A written key whose value depends on the snapshot.
    Dependent,
}

/// The writes of a transaction. Cloning makes a copy; reads share it until the next write.
#[derive(Clone, Debug, Default)]
pub struct WriteMap {
    entries: BTreeMap<Bytes, Entry>,
    touched: bool,
}

impl WriteMap {
    /// Whether nothing was written and no write conflict range was added.
    pub fn is_empty(&self) -> bool {
        !self.touched
    }

    /// Whether it has no entries at all.
    pub fn is_untouched(&self) -> bool {
        self.entries.is_empty()
    }

    /// Writes `key`. An operation without a conflict range keeps an existing one.
    pub fn mutate(&mut self, key: Bytes, op: Op, add_conflict: bool) {
        self.touched = true;
        let stamped = matches!(
            op,
            Op::Atomic(MutationType::SetVersionstampedKey | MutationType::SetVersionstampedValue, _)
        );
        let replaces = matches!(op, Op::Set(_) | Op::Atomic(MutationType::SetVersionstampedValue, _));
        if let Some(entry) = self.entries.get_mut(&key) {
            let (cleared_here, marks) = match entry.stack.is_empty() {
                true => (entry.following_cleared, entry.following),
                false => (false, entry.own),
            };
            let readable = !marks.unreadable;
            entry.own =
                Marks { conflict: add_conflict || marks.conflict, unreadable: marks.unreadable || stamped };
            if readable && replaces {
                entry.stack = Stack::One(op);
            } else if cleared_here && op.is_dependent() {
                entry.stack = Stack::One(Op::Set(None));
                entry.stack.coalesce(op);
            } else if !entry.own.unreadable && !entry.stack.is_empty() {
                entry.stack.coalesce(op);
            } else {
                entry.stack.push(op);
            }
            return;
        }
        let around = self.floor(&key).1;
        let (marks, cleared) = (around.following, around.following_cleared);
        let mut stack = Stack::Empty;
        if cleared && op.is_dependent() {
            stack.push(Op::Set(None));
            stack.coalesce(op);
        } else {
            stack.push(op);
        }
        let own = Marks { conflict: add_conflict || marks.conflict, unreadable: marks.unreadable || stamped };
        self.entries.insert(key, Entry { stack, own, following: marks, following_cleared: cleared });
    }

    /// Clears `[begin, end)`, which must not be empty.
    pub fn clear(&mut self, begin: Bytes, end: Bytes, add_conflict: bool) {
        self.touched = true;
        if add_conflict {
            let marks = Marks { conflict: true, unreadable: false };
            return self.overwrite(begin, end, Entry::range(true, marks));
        }
        // Existing conflict ranges inside are kept: one cleared entry for each run of them.
        let mut cursor = self.cursor_at(&begin);
        let mut insertions = Vec::new();
        let insert_begin = cursor.segment() != Segment::Cleared || cursor.is_unreadable();
        let mut last = cursor.is_conflict();
        let mut conflict = last;
        if insert_begin {
            insertions.push(begin.clone());
        } else {
            conflict = !conflict;
        }
        while cursor.ends_before(&end) {
            cursor.next();
            if last != cursor.is_conflict() {
                insertions.push(cursor.begin().to_bytes());
                last = cursor.is_conflict();
            }
        }
        if cursor.end() == Edge::at(&end) {
            cursor.next();
        }
        let at_key = cursor.begin() == Edge::at(&end);
        let insert_end = ((cursor.segment() == Segment::Unmodified || cursor.is_unreadable())
            && !(cursor.key_at_begin() && at_key))
            || (cursor.entry.own.conflict
                && !cursor.entry.following.conflict
                && at_key
                && !cursor.key_at_begin());
        let coalesce_end = cursor.segment() == Segment::Cleared
            && at_key
            && cursor.is_conflict() == last
            && !cursor.is_unreadable();
        let end_entry = Entry::range(cursor.segment() == Segment::Cleared, cursor.marks());
        self.remove(&begin, !insert_begin, &end, coalesce_end);
        for key in insertions {
            self.entries.insert(key, Entry::range(true, Marks { conflict, unreadable: false }));
            conflict = !conflict;
        }
        if insert_end {
            self.entries.insert(end, end_entry);
        }
    }

    /// Removes the writes in `[begin, end)` and makes the range unreadable: a versionstamped key may be
    /// stored anywhere in it.
    pub fn make_unreadable(&mut self, begin: Bytes, end: Bytes) {
        let marks = Marks { conflict: false, unreadable: true };
        self.overwrite(begin, end, Entry::range(false, marks));
    }

    /// Makes `[begin, end)` one segment with the properties of `with`, merged with equal neighbours.
    fn overwrite(&mut self, begin: Bytes, end: Bytes, with: Entry) {
        let kind = if with.following_cleared { Segment::Cleared } else { Segment::Unmodified };
        let alike = |c: &WriteCursor<'_>| c.segment() == kind && c.marks() == with.following;
        let mut cursor = self.cursor_at(&begin);
        let insert_begin = !alike(&cursor);
        if cursor.end() == Edge::at(&end) {
            cursor.next();
        } else if cursor.end() < Edge::at(&end) {
            cursor = self.cursor_at(&end);
        }
        let at_key = cursor.begin() == Edge::at(&end);
        // A clear needs no end within cleared keys or before written ones, nor does the other kind.
        let open = match with.following_cleared {
            true => {
                cursor.segment() == Segment::Unmodified || !cursor.is_conflict() || cursor.is_unreadable()
            }
            false => cursor.segment() == Segment::Cleared || cursor.is_conflict() || !cursor.is_unreadable(),
        };
        let insert_end = open && !(cursor.key_at_begin() && at_key);
        let coalesce_end = alike(&cursor) && at_key;
        let end_entry = Entry::range(cursor.segment() == Segment::Cleared, cursor.marks());
        self.remove(&begin, !insert_begin, &end, coalesce_end);
        if insert_begin {
            self.entries.insert(begin, with);
        }
        if insert_end {
            self.entries.insert(end, end_entry);
        }
    }

    /// Adds the write conflict range `[begin, end)`, which must not be empty.
    pub fn add_conflict(&mut self, begin: Bytes, end: Bytes) {
        self.touched = true;
        let full = |e: &Entry| e.following.conflict && e.own.conflict;
        let mut insertions: Vec<(Bytes, Entry)> = Vec::new();
        let mut cursor = self.cursor_at(&begin);
        if !full(cursor.entry) {
            let mut entry = Entry {
                stack: Stack::Empty,
                own: Marks { conflict: true, unreadable: cursor.entry.own.unreadable },
                following: Marks { conflict: true, ..cursor.entry.following },
                following_cleared: cursor.entry.following_cleared,
            };
            if cursor.is_operation() {
                entry.stack = cursor.entry.stack.clone();
            }
            insertions.push((begin, entry));
        }
        while cursor.ends_before(&end) {
            cursor.next();
            if cursor.key_at_begin() && !full(cursor.entry) {
                let mut entry = cursor.entry.clone();
                entry.own.conflict = true;
                entry.following.conflict = true;
                insertions.push((cursor.key.clone(), entry));
            }
        }
        if !full(cursor.entry) {
            let Entry { own, following, following_cleared, .. } = *cursor.entry;
            cursor.next();
            if !cursor.key_at_begin() || cursor.begin() != Edge::at(&end) {
                let entry = Entry {
                    stack: Stack::Empty,
                    own: Marks { conflict: false, ..own },
                    following: Marks { conflict: false, ..following },
                    following_cleared,
                };
                insertions.push((end, entry));
            }
        }
        self.entries.extend(insertions);
    }

    /// Removes the operations on one written key; only used by a planted bug.
    pub fn forget_key(&mut self, which: u64) {
        let written: Vec<Bytes> =
            self.entries.iter().filter(|(_, e)| !e.stack.is_empty()).map(|(key, _)| key.clone()).collect();
        if !written.is_empty() {
            self.entries.remove(&written[(which % written.len() as u64) as usize]);
        }
    }

    /// Removes cleared ranges; only used by a planted bug.
    pub fn forget_clears(&mut self) {
        self.entries.values_mut().for_each(|entry| entry.following_cleared = false);
    }

    fn remove(&mut self, begin: &Bytes, keep_begin: bool, end: &Bytes, with_end: bool) {
        let from = if keep_begin { Excluded(begin.clone()) } else { Included(begin.clone()) };
        let to = if with_end { Included(end.clone()) } else { Excluded(end.clone()) };
        if begin >= end {
            return;
        }
        while let Some((key, _)) = self.entries.range((from.clone(), to.clone())).next() {
            let key = key.clone();
            self.entries.remove(&key);
        }
    }

    fn floor<'a>(&'a self, key: &[u8]) -> (&'a Bytes, &'a Entry) {
        match self.entries.range::<[u8], _>((Unbounded, Included(key))).next_back() {
            _ if *key >= ALL_END_KEY[..] => (&ALL_END_KEY, &UNTOUCHED),
            Some(found) => found,
            None => (&NO_KEY, &UNTOUCHED),
        }
    }

    /// A cursor at the segment that contains `key`.
    pub fn cursor_at(&self, key: &[u8]) -> WriteCursor<'_> {
        let (at, entry) = self.floor(key);
        let after_key = entry.stack.is_empty() || at != key;
        let mut cursor =
            WriteCursor { map: self, key: at, entry, next: (&BEYOND, &UNTOUCHED), rest: None, after_key };
        cursor.next = cursor.following();
        cursor
    }
}

/// A position in the segments of a [`WriteMap`]. Segments cover the keyspace without gaps.
#[derive(Clone)]
pub struct WriteCursor<'a> {
    map: &'a WriteMap,
    key: &'a Bytes,
    entry: &'a Entry,
    next: (&'a Bytes, &'a Entry),
    /// The entries after `next`, so that a walk forward looks no key up. A step back loses them, and the next
    /// step forward searches for them.
    rest: Option<btree_map::Range<'a, Bytes, Entry>>,
    /// Whether the cursor is at the range after the entry's key, rather than at its operations.
    after_key: bool,
}

impl<'a> WriteCursor<'a> {
    /// The segment's kind.
    pub fn segment(&self) -> Segment {
        match (self.after_key, self.entry.following_cleared) {
            (true, true) => Segment::Cleared,
            (true, false) => Segment::Unmodified,
            (false, _) if self.entry.stack.is_dependent() => Segment::Dependent,
            (false, _) => Segment::Independent,
        }
    }

    fn marks(&self) -> Marks {
        if self.after_key { self.entry.following } else { self.entry.own }
    }

    /// Whether the segment is a written key.
    pub fn is_operation(&self) -> bool {
        !self.after_key
    }

    /// Whether a serializable read of the segment takes part in conflict detection: a range that was not
    /// written, or a key whose value depends on the previous one.
    pub fn reads_snapshot(&self) -> bool {
        match self.segment() {
            Segment::Unmodified => true,
            Segment::Dependent => !self.entry.following_cleared,
            Segment::Cleared | Segment::Independent => false,
        }
    }

    /// Whether the segment is in a write conflict range.
    pub fn is_conflict(&self) -> bool {
        self.marks().conflict
    }

    /// Whether the segment may receive a versionstamp at commit.
    pub fn is_unreadable(&self) -> bool {
        self.marks().unreadable
    }

    /// The operations on the key.
    pub fn stack(&self) -> &'a Stack {
        &self.entry.stack
    }

    /// The key with these operations, sharing the map's own bytes.
    pub fn key_bytes(&self) -> Bytes {
        self.key.clone()
    }

    /// The begin of the segment.
    pub fn begin(&self) -> Edge<'a> {
        Edge { key: self.key, after: self.after_key && !self.entry.stack.is_empty() }
    }

    /// The end of the segment.
    pub fn end(&self) -> Edge<'a> {
        if self.after_key { Edge::at(self.next.0) } else { Edge::after(self.key) }
    }

    /// Whether the segment begins before `end` and has keys that exist. Every walk ends at the end of the
    /// keyspace, wherever its own end is.
    pub fn begins_before(&self, end: &[u8]) -> bool {
        *self.key < ALL_END_KEY && self.begin() < Edge::at(end)
    }

    /// Whether another segment whose keys exist begins before `end`.
    fn ends_before(&self, end: &[u8]) -> bool {
        *self.key < ALL_END_KEY && self.end() < Edge::at(end)
    }

    fn key_at_begin(&self) -> bool {
        !self.after_key || self.entry.stack.is_empty()
    }

    fn adjoins_next(&self) -> bool {
        let next = self.next.0;
        next.len() == self.key.len() + 1 && next.starts_with(self.key) && next.ends_with(&[0])
    }

    /// The entry after this one. The end of the keyspace is one, too.
    fn following(&mut self) -> (&'a Bytes, &'a Entry) {
        let (map, key) = (self.map, self.key);
        if *key == ALL_END_KEY {
            return (&BEYOND, &UNTOUCHED);
        }
        let after = || map.entries.range::<[u8], _>((Excluded(&key[..]), Unbounded));
        match self.rest.get_or_insert_with(after).next() {
            Some((key, entry)) if *key < ALL_END_KEY => (key, entry),
            _ => (&ALL_END_KEY, &UNTOUCHED),
        }
    }

    /// Moves to the next segment.
    pub fn next(&mut self) {
        if !self.after_key && !self.adjoins_next() {
            self.after_key = true;
            return;
        }
        (self.key, self.entry) = self.next;
        self.next = self.following();
        self.after_key = self.entry.stack.is_empty();
    }

    /// Moves to the previous segment. Must not be called at the beginning of the keyspace.
    pub fn prev(&mut self) {
        if self.after_key && !self.entry.stack.is_empty() {
            self.after_key = false;
            return;
        }
        let before = self.map.entries.range::<[u8], _>((Unbounded, Excluded(&self.key[..]))).next_back();
        self.next = (self.key, self.entry);
        self.rest = None;
        (self.key, self.entry) = before.unwrap_or((&NO_KEY, &UNTOUCHED));
        self.after_key = self.entry.stack.is_empty() || !self.adjoins_next();
    }
}

/// The write conflict ranges of `map` in `[begin, end)`, in order, joined where they touch.
pub fn conflict_ranges(map: &WriteMap, begin: &Bytes, end: &Bytes) -> Vec<KeyRange> {
    let mut ranges = Vec::new();
    let mut from: Option<Bytes> = None;
    let mut cursor = map.cursor_at(begin);
    while cursor.begins_before(end) {
        match (&from, cursor.is_conflict()) {
            (None, true) => from = Some(cursor.begin().to_bytes().max(begin.clone())),
            (Some(_), false) => {
                let begin = from.take().unwrap_or_default();
                ranges.push(KeyRange { begin, end: cursor.begin().to_bytes() });
            }
            _ => {}
        }
        cursor.next();
    }
    if let Some(begin) = from {
        ranges.push(KeyRange { begin, end: end.clone() });
    }
    ranges
}

/// The end of the whole keyspace, as a bound for [`conflict_ranges`].
pub const EVERYTHING: Bytes = ALL_END;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forget_key_removes_one_written_key_and_no_range() {
        let written = |which| {
            let mut map = WriteMap::default();
            for key in ["a", "x", "y"] {
                map.mutate(key.into(), Op::Set(Some("value".into())), true);
            }
            map.clear("c".into(), "d".into(), true);
            map.forget_key(which);
            let is_there = |key: &&str| map.cursor_at(key.as_bytes()).segment() != Segment::Unmodified;
            ["a", "c", "x", "y"].into_iter().filter(is_there).collect::<String>()
        };
        assert_eq!([0, 1, 2, 3].map(written), ["cxy", "acy", "acx", "cxy"]);
        let mut empty = WriteMap::default();
        empty.forget_key(1);
        assert!(empty.is_untouched());
    }
}
