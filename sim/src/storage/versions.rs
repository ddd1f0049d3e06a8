//! A sorted multi-version map: keys to values at every version of a window.
//!
//! Each key has a chain of its writes in version order, in which a clear is an absent value. Reading at a
//! version finds the last write at or before it; rolling back removes later writes. Writes that are not
//! visible at any version of the window are dropped while writing, so that no separate sweep is needed.

use crate::proto::{KeyRange, Version};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, VecDeque, btree_map::Entry},
    ops::Bound,
};

/// Keys to values at every version since the last prune.
#[derive(Clone, Debug, Default)]
pub struct VersionedMap {
    keys: BTreeMap<Bytes, Chain>,
    /// Clears, in version order: their keys may be dropped once no reader can see the previous values.
    cleared: VecDeque<(Version, Bytes)>,
}

/// The writes of one key, in version order.
#[derive(Clone, Debug)]
struct Chain {
    writes: Vec<(Version, Option<Bytes>)>,
    /// The length at which to look for writes that are no longer visible.
    prune_at: usize,
}

/// Below this length a chain is not worth pruning.
const SHORT: usize = 8;

impl Chain {
    fn at(&self, version: Version) -> Option<&Bytes> {
        // Readers mostly need one of the last few writes.
        let last = self.writes.iter().rev().take(SHORT).find(|(v, _)| *v <= version);
        let write = match last {
            Some(write) => write,
            None => self.writes[..self.writes.partition_point(|(v, _)| *v <= version)].last()?,
        };
        write.1.as_ref()
    }

    fn latest(&self) -> Option<&Bytes> {
        self.writes.last()?.1.as_ref()
    }

    fn push(&mut self, version: Version, value: Option<Bytes>, keep: Version) {
        if let Some(last) = self.writes.last_mut()
            && last.0 == version
        {
            last.1 = value;
            return;
        }
        if self.writes.len() >= self.prune_at {
            let seen = self.writes.partition_point(|(v, _)| *v <= keep).saturating_sub(1);
            self.writes.drain(..seen);
            self.prune_at = (self.writes.len() * 2).max(SHORT);
        }
        self.writes.push((version, value));
    }
}

/// The bounds of a range for a map's `range`; an empty range if they are inverted.
fn bounds(range: &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    let begin: &[u8] = &range.begin;
    (Bound::Included(begin), Bound::Excluded(begin.max(&range.end)))
}

impl VersionedMap {
    /// The key's value at a version.
    pub fn get(&self, key: &[u8], version: Version) -> Option<&Bytes> {
        self.keys.get(key)?.at(version)
    }

    /// The key's value after every write.
    pub fn latest(&self, key: &[u8]) -> Option<&Bytes> {
        self.keys.get(key)?.latest()
    }

    /// The rows of a range at a version, in order.
    pub fn rows(
        &self,
        range: &KeyRange,
        version: Version,
    ) -> impl DoubleEndedIterator<Item = (&Bytes, &Bytes)> + '_ {
        self.keys
            .range::<[u8], _>(bounds(range))
            .filter_map(move |(key, chain)| chain.at(version).map(|value| (key, value)))
    }

    /// Sets a key at a version not lower than any written before. No read or rollback will go below `keep`.
    pub fn set(&mut self, key: &Bytes, value: Bytes, version: Version, keep: Version) {
        match self.keys.entry(key.clone()) {
            Entry::Occupied(mut chain) => chain.get_mut().push(version, Some(value), keep),
            Entry::Vacant(slot) => {
                slot.insert(Chain { writes: vec![(version, Some(value))], prune_at: SHORT });
            }
        }
    }

    /// Clears a key, with the same conditions.
    pub fn clear(&mut self, key: &Bytes, version: Version, keep: Version) {
        if let Some(chain) = self.keys.get_mut(key)
            && chain.latest().is_some()
        {
            chain.push(version, None, keep);
            self.cleared.push_back((version, key.clone()));
        }
    }

    /// Clears a range, with the same conditions.
    pub fn clear_range(&mut self, range: &KeyRange, version: Version, keep: Version) {
        for (key, chain) in self.keys.range_mut::<[u8], _>(bounds(range)) {
            if chain.latest().is_some() {
                chain.push(version, None, keep);
                self.cleared.push_back((version, key.clone()));
            }
        }
    }

    /// Drops the keys that were cleared at or before `keep` and not set since.
    pub fn prune(&mut self, keep: Version) {
        while let Some((_, key)) = self.cleared.pop_front_if(|(version, _)| *version <= keep) {
            if self
                .keys
                .get(&key)
                .is_some_and(|c| c.writes.last().is_some_and(|w| w.0 <= keep && w.1.is_none()))
            {
                self.keys.remove(&key);
            }
        }
    }

    /// Removes every write after `version`.
    pub fn rollback(&mut self, version: Version) {
        let mut cleared = Vec::new();
        self.keys.retain(|key, chain| {
            let kept = chain.writes.partition_point(|(v, _)| *v <= version);
            chain.writes.truncate(kept);
            if let Some((at, None)) = chain.writes.last() {
                cleared.push((*at, key.clone()));
            }
            kept > 0
        });
        cleared.sort();
        self.cleared = cleared.into();
    }

    /// Drops a range at all versions.
    pub fn forget(&mut self, range: &KeyRange) {
        let doomed: Vec<Bytes> =
            self.keys.range::<[u8], _>(bounds(range)).map(|(key, _)| key.clone()).collect();
        for key in doomed {
            self.keys.remove(&key);
        }
        self.cleared.retain(|(_, key)| !range.contains(key));
    }

    /// The number of keys with a chain: those that are visible at a kept version.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no key has a chain.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug)]
    enum Step {
        Set(u8, u8),
        Clear(u8),
        ClearRange(u8, u8),
        Next(u8),
        Keep(u8),
        Rollback(u8),
        Forget(u8, u8),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            8 => (0..12u8, any::<u8>()).prop_map(|(k, v)| Step::Set(k, v)),
            3 => (0..12u8).prop_map(Step::Clear),
            2 => (0..12u8, 0..12u8).prop_map(|(a, b)| Step::ClearRange(a, b)),
            6 => (1..4u8).prop_map(Step::Next),
            2 => (0..20u8).prop_map(Step::Keep),
            1 => (0..20u8).prop_map(Step::Rollback),
            1 => (0..12u8, 0..12u8).prop_map(|(a, b)| Step::Forget(a, b)),
        ];
        prop::collection::vec(step, 0..120)
    }

    fn key(k: u8) -> Bytes {
        Bytes::from(vec![k])
    }

    proptest! {
        /// Compares with a complete copy of the map for every version.
        #[test]
        fn every_kept_version_reads_as_it_was(steps in steps()) {
            let mut map = VersionedMap::default();
            let mut states = BTreeMap::from([(0, BTreeMap::<Bytes, Bytes>::new())]);
            let (mut version, mut keep) = (1, 0);
            states.insert(1, BTreeMap::new());
            for step in steps {
                let now = states.get_mut(&version).expect("the state of the current version");
                match step {
                    Step::Set(k, v) => {
                        map.set(&key(k), key(v), version, keep);
                        now.insert(key(k), key(v));
                    }
                    Step::Clear(k) => {
                        map.clear(&key(k), version, keep);
                        now.remove(&key(k));
                    }
                    Step::ClearRange(a, b) => {
                        let range = KeyRange::new(key(a), key(b));
                        map.clear_range(&range, version, keep);
                        now.retain(|k, _| !range.contains(k));
                    }
                    Step::Next(by) => {
                        let state = now.clone();
                        version += Version::from(by);
                        states.insert(version, state);
                    }
                    Step::Keep(back) => {
                        keep = keep.max(version - Version::from(back));
                        map.prune(keep);
                    }
                    Step::Rollback(back) => {
                        let to = keep.max(version - Version::from(back));
                        map.rollback(to);
                        states.retain(|v, _| *v <= to);
                        let last = states.values().next_back().expect("version 0").clone();
                        version = to;
                        states.insert(version, last);
                    }
                    Step::Forget(a, b) => {
                        let range = KeyRange::new(key(a), key(b));
                        map.forget(&range);
                        states.values_mut().for_each(|s| s.retain(|k, _| !range.contains(k)));
                    }
                }
            }
            let all = KeyRange::new(Bytes::new(), key(255));
            for at in keep..=version {
                let expected = states.range(..=at).next_back().expect("version 0").1;
                let rows: Vec<_> = map.rows(&all, at).collect();
                prop_assert_eq!(&rows, &expected.iter().collect::<Vec<_>>());
                let mut back: Vec<_> = map.rows(&all, at).rev().collect();
                back.reverse();
                prop_assert_eq!(rows, back);
                for k in 0..12 {
                    prop_assert_eq!(map.get(&key(k), at), expected.get(&key(k)));
                }
            }
            for k in 0..12 {
                prop_assert_eq!(map.latest(&key(k)), states[&version].get(&key(k)));
            }
            map.prune(version);
            prop_assert_eq!(map.len(), states[&version].len(), "what was cleared is gone in the end");
            prop_assert_eq!(map.is_empty(), states[&version].is_empty());
        }
    }

    #[test]
    fn a_chain_does_not_outgrow_its_window() {
        let mut map = VersionedMap::default();
        for version in 1..10_000 {
            map.set(&key(1), key(2), version, version - 20);
        }
        assert!(map.keys[&key(1)].writes.len() < 60);
    }

    #[test]
    fn a_chain_of_visible_writes_is_searched_each_time_it_has_doubled() {
        let mut map = VersionedMap::default();
        for version in 1..100 {
            map.set(&key(1), key(2), version, 0);
        }
        assert_eq!(map.keys[&key(1)].prune_at, 16 * SHORT);
    }
}
