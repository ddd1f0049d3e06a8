//! A client's cache of the locations of shards.

use crate::proto::Location;
use bytes::Bytes;
use std::{
    collections::BTreeMap,
    ops::Bound::{Excluded, Included, Unbounded},
    sync::Arc,
};

/// Cached shards, which do not overlap.
#[derive(Debug)]
pub struct Locations {
    shards: BTreeMap<Bytes, Arc<Location>>,
    capacity: usize,
}

impl Default for Locations {
    fn default() -> Self {
        Locations { shards: BTreeMap::new(), capacity: 100_000 }
    }
}

impl Locations {
    /// Limits the cache to `capacity` shards from now on.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity.max(1);
        self.shrink();
    }

    /// The shard that holds `key`, or the keys just before it.
    pub fn find(&self, key: &[u8], before: bool) -> Option<&Arc<Location>> {
        let bound = if before { Excluded(key) } else { Included(key) };
        let (_, location) = self.shards.range::<[u8], _>((Unbounded, bound)).next_back()?;
        let end = &location.range.end[..];
        (key < end || (before && key == end)).then_some(location)
    }

    /// Adds a shard, and removes those that overlap it.
    pub fn insert(&mut self, location: Location) -> Arc<Location> {
        let overlapping: Vec<Bytes> = self
            .shards
            .range::<[u8], _>((Unbounded, Excluded(&location.range.end[..])))
            .rev()
            .take_while(|(_, known)| known.range.end > location.range.begin)
            .map(|(begin, _)| begin.clone())
            .collect();
        for begin in overlapping {
            self.shards.remove(&begin);
        }
        let location = Arc::new(location);
        self.shards.insert(location.range.begin.clone(), location.clone());
        self.shrink();
        location
    }

    /// Removes a shard whose location has turned out to be wrong.
    pub fn forget(&mut self, location: &Arc<Location>) {
        if self.shards.get(&location.range.begin).is_some_and(|known| Arc::ptr_eq(known, location)) {
            self.shards.remove(&location.range.begin);
        }
    }

    fn shrink(&mut self) {
        while self.shards.len() > self.capacity {
            self.shards.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::KeyRange;

    #[test]
    fn a_shard_is_found_by_its_keys_and_by_its_end() {
        let mut locations = Locations::default();
        let shard =
            |a: &'static str, b: &'static str| Location { range: KeyRange::new(a, b), servers: Vec::new() };
        locations.insert(shard("a", "c"));
        locations.insert(shard("c", "e"));
        let begin = |key: &str, before| locations.find(key.as_bytes(), before).map(|l| l.range.begin.clone());
        assert_eq!(begin("c", false).as_deref(), Some(&b"c"[..]));
        assert_eq!(begin("c", true).as_deref(), Some(&b"a"[..]));
        assert_eq!(begin("e", true).as_deref(), Some(&b"c"[..]));
        assert_eq!(begin("e", false), None);
        assert_eq!(begin("a", true), None);
        locations.insert(shard("b", "d"));
        assert!(locations.find(b"a", false).is_none());
        assert!(locations.find(b"d", false).is_none());
    }
}
