//! Key selectors in the form used by reads, and their resolution as far as the cached snapshot and the
//! transaction's own writes allow.

use super::{
    keys::Edge,
    segments::{Kind, Segments},
    snapshot_cache::SnapshotCache,
    write_map::WriteMap,
};
use bytes::Bytes;
use shaketable_tx::{KeySelector, Result, key_after};

/// A selector without `or_equal`: the `offset`-th key at or after `key` (1 is the first), or before
/// it (0 is the last).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// The base key.
    pub key: Bytes,
    /// The number of keys to move.
    pub offset: i32,
}

/// More keys than a database has: a larger offset resolves to the same key, and arithmetic on it could
/// overflow.
const LARGEST_OFFSET: i32 = 1 << 30;

impl Selector {
    /// The first key at or after `key`.
    pub fn first_at(key: Bytes) -> Selector {
        Selector { key, offset: 1 }
    }

    /// The same selector without `or_equal`.
    pub fn plain(selector: &KeySelector) -> Selector {
        let key = match selector.or_equal {
            true => key_after(&selector.key),
            false => selector.key.clone(),
        };
        Selector { key, offset: selector.offset.clamp(-LARGEST_OFFSET, LARGEST_OFFSET) }
    }

    /// Whether it resolves to its base key when it is the end of a range.
    pub fn is_key(&self) -> bool {
        self.offset == 1
    }

    /// Whether its result depends only on keys before the base key.
    pub fn is_backward(&self) -> bool {
        self.offset <= 0
    }
}

/// Whether resolution has reached the ends of the keyspace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reached {
    /// A selector has moved beyond the beginning.
    pub begin: bool,
    /// A selector has moved beyond the end.
    pub end: bool,
}

/// Moves `selector` towards the key to which it resolves, as far as that is known, and returns its segment:
/// that of the resolved key if it was found, otherwise an unknown or unreadable one. A selector that moves
/// beyond an end becomes that end. `offset` is set to the remaining offset, unless the offset was 1 from the
/// start.
pub fn resolve<'a>(
    selector: &mut Selector,
    (cache, writes): (&'a SnapshotCache, &'a WriteMap),
    end: &Bytes,
    reached: &mut Reached,
    offset: &mut i32,
) -> Result<Segments<'a>> {
    let exhausted = selector.offset == 1;
    let end_edge = Edge::at(end);
    let start = Edge::at(b"");
    let mut it = Segments::at(cache, writes, &selector.key);
    if selector.offset <= 0 && it.begin() == Edge::at(&selector.key) && !selector.key.is_empty() {
        it.prev();
    }
    let mut at = None;
    while selector.offset > 1 && it.is_known() && it.end() < end_edge {
        selector.offset -= i32::from(it.kind()? == Kind::Row);
        it.next();
        at = Some(it.begin());
    }
    while selector.offset < 1 && it.is_known() && it.begin() != start {
        if it.kind()? == Kind::Row {
            selector.offset += 1;
            if selector.offset == 1 {
                at = Some(it.begin());
                break;
            }
        }
        it.prev();
        at = Some(it.end());
    }
    if !exhausted {
        *offset = selector.offset;
    }
    if it.is_known() && selector.offset < 1 {
        reached.begin = true;
        *selector = Selector::first_at(Bytes::new());
        return Ok(it);
    }
    if it.is_known() && selector.offset > 1 {
        reached.end = true;
        *selector = Selector::first_at(end.clone());
        return Ok(it);
    }
    while !it.is_unreadable() && it.kind()? == Kind::Empty && it.end() < end_edge {
        it.next();
        at = Some(it.begin());
    }
    if let Some(at) = at {
        selector.key = at.to_bytes();
    }
    Ok(it)
}
