//! Conflict ranges: sets of them, and the range that results from a read.

use super::{
    keys::{ALL_END, Edge, clipped},
    range::Batch,
    selector::Selector,
    sizes,
    write_map::WriteMap,
};
use crate::proto::KeyRange;
use bytes::Bytes;
use shaketable_tx::{KeySelector, key_after};
use std::collections::BTreeMap;

/// A set of keys as ranges: in ascending order, joined where they touch.
#[derive(Clone, Debug, Default)]
pub struct RangeSet(BTreeMap<Bytes, Bytes>);

impl RangeSet {
    /// The ranges.
    pub fn ranges(&self) -> Vec<KeyRange> {
        self.0.iter().map(|(begin, end)| KeyRange::new(begin.clone(), end.clone())).collect()
    }

    /// Adds a range; an empty one has no effect.
    pub fn insert(&mut self, KeyRange { mut begin, mut end }: KeyRange) {
        if begin >= end {
            return;
        }
        // Of the ranges that begin no later than this one ends, the last ones may touch it.
        while let Some((other, until)) = self.0.range::<Bytes, _>(..=&end).next_back()
            && *until >= begin
        {
            let other = other.clone();
            end = end.max(self.0.remove(&other).unwrap_or_default());
            begin = begin.min(other);
        }
        self.0.insert(begin, end);
    }
}

/// Adds the conflict ranges of a serializable read of `range` to `set`: the whole range except for keys that
/// the transaction had written, independently of their previous value, when the read was issued. Returns the
/// increase of the transaction's approximate size.
pub fn add_read(set: &mut RangeSet, writes: &WriteMap, range: KeyRange) -> i64 {
    if range.begin >= range.end {
        return 0;
    }
    let size = sizes::range(range.begin.len(), range.end.len());
    if writes.is_untouched() {
        set.insert(range);
        return size;
    }
    let mut added = 0;
    let mut cursor = writes.cursor_at(&range.begin);
    while cursor.begins_before(&range.end) {
        if cursor.reads_snapshot() {
            let (begin, end) = (cursor.begin(), cursor.end());
            let begin = match begin > Edge::at(&range.begin) {
                true => begin.to_bytes(),
                false => range.begin.clone(),
            };
            let end = match end < Edge::at(&range.end) {
                true => end.to_bytes(),
                false => range.end.clone(),
            };
            if begin < end {
                set.insert(KeyRange { begin, end });
                added += size;
            }
        }
        cursor.next();
    }
    added
}

/// The range read by resolving a selector to `key`.
pub fn of_key(selector: &KeySelector, key: &Bytes) -> KeyRange {
    let base = match selector.or_equal {
        true => key_after(&selector.key),
        false => selector.key.clone(),
    };
    match selector.offset <= 0 {
        true => KeyRange { begin: key.clone(), end: base },
        false => KeyRange { begin: base, end: key_after(key) },
    }
}

/// The range read by a range read that returned `batch`, with the transaction's own writes visible.
pub fn of_range(begin: &Selector, end: &Selector, reverse: bool, batch: &Batch, max: &Bytes) -> KeyRange {
    let (mut from, mut to) = match (begin.key < end.key, reverse) {
        (false, _) => (end.key.clone(), begin.key.clone()),
        // If the batch ended before its range, nothing after the last row can change the result.
        (true, false) if !end.is_backward() && batch.more => (begin.key.clone(), begin.key.clone()),
        (true, true) if begin.offset <= 1 && batch.more => (end.key.clone(), end.key.clone()),
        (true, _) => (begin.key.clone(), end.key.clone()),
    };
    if batch.read_to_begin && begin.is_backward() {
        from = Bytes::new();
    }
    if batch.read_through_end && !end.is_backward() {
        to = max.clone();
    }
    if let (Some(first), Some(last)) = (batch.rows.first(), batch.rows.last()) {
        if reverse {
            from = from.min(last.key.clone());
            if to <= first.key {
                to = key_after(&first.key);
            }
        } else {
            from = from.min(first.key.clone());
            if to <= last.key {
                to = key_after(&last.key);
            }
        }
    }
    KeyRange { begin: from, end: to }
}

/// The range read by a range read that returned `batch`, with read-your-writes disabled.
pub fn of_native_range(begin: &Selector, end: &Selector, reverse: bool, batch: &Batch) -> KeyRange {
    let more = batch.more;
    let mut from = match (&batch.rows[..], reverse) {
        _ if batch.read_to_begin => Bytes::new(),
        ([.., last], true) if !(begin.offset > 0 && (!more || begin.offset > 1)) => last.key.clone(),
        ([first, ..], false) if begin.is_backward() => first.key.clone(),
        _ => begin.key.clone(),
    };
    if end.offset > begin.offset {
        from = from.min(end.key.clone());
    }
    let mut to = match (&batch.rows[..], reverse) {
        _ if batch.read_through_end => ALL_END,
        ([first, ..], true) if end.offset > 1 => key_after(&first.key),
        ([.., last], false) if !(end.offset <= 1 && (!more || end.offset <= 0)) => key_after(&last.key),
        _ => end.key.clone(),
    };
    if begin.offset < end.offset {
        to = to.max(begin.key.clone());
    }
    KeyRange { begin: from, end: to }
}

/// `[begin, end)` with keys that are too long cut; `None` if the result is empty.
pub fn clip(begin: &[u8], end: &[u8]) -> Option<KeyRange> {
    let (begin, end) = (clipped(begin), clipped(end));
    (begin < end).then(|| KeyRange::new(Bytes::copy_from_slice(begin), Bytes::copy_from_slice(end)))
}

/// The smallest key that is in a range of both lists.
pub fn common_key(a: &[KeyRange], b: &[KeyRange]) -> Option<Bytes> {
    let sorted = |list: &[KeyRange]| {
        let mut list: Vec<KeyRange> = list.to_vec();
        list.sort();
        list
    };
    let ascending = |list: &[KeyRange]| list.is_sorted();
    if !ascending(a) || !ascending(b) {
        return common_key(&sorted(a), &sorted(b));
    }
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        if x.end <= y.begin {
            i += 1;
        } else if y.end <= x.begin {
            j += 1;
        } else {
            return Some(x.begin.clone().max(y.begin.clone()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(k: u8) -> Bytes {
        Bytes::copy_from_slice(&[k])
    }

    /// A native range read covers the range to its ends, or to the row where it stopped; beyond an end with
    /// an offset, to the row to which the offset led.
    #[test]
    fn a_native_range_conflicts_as_far_as_it_was_read() {
        let row = |key: &str| shaketable_tx::KeyValue::new(key.to_owned(), "");
        let read = |rows: &[&str], reverse, more, begin_offset, (end, end_offset): (&'static str, i32)| {
            let batch = Batch { rows: rows.iter().map(|key| row(key)).collect(), more, ..Batch::default() };
            let begin = Selector { key: "a".into(), offset: begin_offset };
            let end = Selector { key: end.into(), offset: end_offset };
            let KeyRange { begin, end } = of_native_range(&begin, &end, reverse, &batch);
            (String::from_utf8(begin.to_vec()).unwrap(), String::from_utf8(end.to_vec()).unwrap())
        };
        let range = |begin: &str, end: &str| (begin.to_owned(), end.to_owned());
        let (up, down) = (&["b", "c", "d"][..], &["d", "c", "b"][..]);
        assert_eq!(read(up, false, false, 1, ("z", 1)), range("a", "z"));
        assert_eq!(read(up, false, true, 1, ("z", 1)), range("a", "d\0"));
        assert_eq!(read(up, false, true, 1, ("z", 0)), range("a", "z"));
        assert_eq!(read(up, false, false, 1, ("c", 2)), range("a", "d\0"));
        assert_eq!(read(up, false, false, 0, ("z", 1)), range("b", "z"));
        assert_eq!(read(down, true, false, 1, ("z", 1)), range("a", "z"));
        assert_eq!(read(down, true, true, 1, ("z", 1)), range("b", "z"));
        assert_eq!(read(down, true, true, 2, ("z", 1)), range("a", "z"));
        assert_eq!(read(down, true, false, 0, ("z", 1)), range("b", "z"));
        assert_eq!(read(down, true, false, 1, ("c", 2)), range("a", "d\0"));
        assert_eq!(read(&[], false, false, 1, ("z", 2)), range("a", "z"));
    }

    proptest! {
        #[test]
        fn a_set_holds_the_union(ranges in prop::collection::vec((0u8..40, 0u8..40), 0..20)) {
            let mut set = RangeSet::default();
            let mut all = [false; 40];
            for (a, b) in &ranges {
                set.insert(KeyRange::new(key(*a), key(*b)));
                (*a..*b).for_each(|k| all[k as usize] = true);
            }
            for k in 0..40 {
                prop_assert_eq!(set.ranges().iter().any(|r| r.contains(&[k])), all[k as usize]);
            }
            prop_assert!(set.ranges().windows(2).all(|w| w[0].end < w[1].begin));
        }

        #[test]
        fn a_common_key_is_found_when_there_is_one(
            a in prop::collection::vec((0u8..20, 1u8..4), 0..6),
            b in prop::collection::vec((0u8..20, 1u8..4), 0..6),
        ) {
            let list = |l: &[(u8, u8)]| l.iter().map(|(k, n)| KeyRange::new(key(*k), key(k + n))).collect::<Vec<_>>();
            let (a, b) = (list(&a), list(&b));
            let any = a.iter().any(|x| b.iter().any(|y| x.intersects(y)));
            let found = common_key(&a, &b);
            prop_assert_eq!(found.is_some(), any);
            if let Some(k) = found {
                prop_assert!(a.iter().any(|r| r.contains(&k)) && b.iter().any(|r| r.contains(&k)));
            }
        }
    }
}
