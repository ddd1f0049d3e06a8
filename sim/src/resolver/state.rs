//! Conflict detection: when each key of the resolver's partition was last written.
//!
//! FoundationDB's rules (`fdbserver/SkipList.cpp`): a transaction conflicts if one of its read ranges
//! intersects a write range of a transaction that committed after its read version, or of an accepted earlier
//! transaction of its batch. It is too old if its read version is before the window and it has a read range.

use crate::{
    config::ClusterBug,
    proto::{CommitData, KeyRange, Resolution, Version},
};
use bytes::Bytes;
use shaketable_tx::key_after;
use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::Arc,
};

/// How soon the resolver with the planted bug forgets a write, versions.
const EARLY: Version = 3_000;

/// The conflict window of a resolver's partition of the keyspace.
pub struct ConflictSet {
    share: KeyRange,
    /// The first version from which conflicts are known.
    oldest: Version,
    /// The version of the last write of each key, as a step function: a step extends from its key to the key
    /// of the next step. Keys before the first step, and steps up to `oldest`, count as never written.
    steps: BTreeMap<Bytes, Version>,
    /// The writes in the window, in order. When a write leaves the window, the steps at its boundaries can be
    /// merged with those before them, unless these are newer: in that case a write that is still in the
    /// window ends there too.
    writes: VecDeque<(Version, Bytes, Bytes)>,
    /// The planted bug of the cluster, which may be one of resolvers.
    pub bug: Option<ClusterBug>,
}

impl ConflictSet {
    /// A resolver for the keys of `share` that knows every conflict from version `oldest` on.
    pub fn new(share: KeyRange, oldest: Version) -> ConflictSet {
        ConflictSet { share, oldest, steps: BTreeMap::new(), writes: VecDeque::new(), bug: None }
    }

    /// Decides on a batch at `version`, and records the writes of its accepted transactions. Read versions
    /// before `oldest` are too old from now on. Neither version may decrease.
    pub fn resolve(
        &mut self,
        version: Version,
        oldest: Version,
        transactions: &[Arc<CommitData>],
    ) -> Vec<Resolution> {
        self.oldest = self.oldest.max(oldest);
        let resolutions = transactions
            .iter()
            .map(|transaction| {
                let resolution = self.check(version, transaction);
                if resolution == Resolution::Committed {
                    for range in &transaction.write_ranges {
                        let begin = Ord::max(&range.begin, &self.share.begin);
                        let mut end = Ord::min(&range.end, &self.share.end).clone();
                        if self.has(ClusterBug::ResolverNarrowsWrites) {
                            end = end.min(key_after(begin));
                        }
                        if *begin < end {
                            self.write(begin.clone(), end, version);
                        }
                    }
                }
                resolution
            })
            .collect();
        self.expire();
        resolutions
    }

    fn has(&self, bug: ClusterBug) -> bool {
        self.bug == Some(bug)
    }

    fn check(&self, version: Version, transaction: &CommitData) -> Resolution {
        let mine = |range: &&KeyRange| {
            let is_here = range.intersects(&self.share) && !range.is_empty();
            is_here && (!self.has(ClusterBug::ResolverSplitsRanges) || self.share.contains(&range.begin))
        };
        let takes_old = self.has(ClusterBug::ResolverTakesOld);
        if !takes_old
            && transaction.read_version < self.oldest
            && transaction.read_ranges.iter().any(|r| mine(&r))
        {
            return Resolution::TooOld;
        }
        let mut conflicts = transaction
            .read_ranges
            .iter()
            .enumerate()
            .filter(|(_, range)| mine(range) && self.written(range, transaction.read_version, version));
        let Some((first, _)) = conflicts.next() else { return Resolution::Committed };
        if !transaction.report_conflicting_keys {
            return Resolution::Conflict(Vec::new());
        }
        Resolution::Conflict(
            std::iter::once(first).chain(conflicts.map(|(i, _)| i)).map(|i| i as u32).collect(),
        )
    }

    /// Whether a key of the range was written after `read_version`, or by the batch at `version`.
    fn written(&self, range: &KeyRange, read_version: Version, version: Version) -> bool {
        let later = |(_, written): (&Bytes, &Version)| {
            *written > self.oldest
                && (*written > read_version || *written == version)
                && !(self.has(ClusterBug::ResolverIgnoresBatch) && *written == version)
                && !(self.has(ClusterBug::ResolverForgetsEarly) && *written < version - EARLY)
        };
        let begin: &[u8] = Ord::max(&range.begin, &self.share.begin);
        let at = (Bound::Unbounded, Bound::Included(begin));
        if self.steps.range::<[u8], _>(at).next_back().is_some_and(later) {
            return true;
        }
        if self.has(ClusterBug::ResolverIgnoresRanges) {
            return false;
        }
        let end: &[u8] = Ord::min(&range.end, &self.share.end);
        if begin >= end {
            return false;
        }
        let mut steps = self.steps.range::<[u8], _>((Bound::Excluded(begin), Bound::Excluded(end)));
        if self.has(ClusterBug::ResolverForgetsEnd) {
            steps.next_back();
        }
        steps.any(later)
    }

    fn write(&mut self, begin: Bytes, end: Bytes, version: Version) {
        // The step after the range keeps its previous version.
        let before = |steps: &BTreeMap<Bytes, Version>, key: &[u8]| {
            steps
                .range::<[u8], _>((Bound::Unbounded, Bound::Included(key)))
                .next_back()
                .map(|(key, version)| (key.clone(), *version))
        };
        let step = before(&self.steps, &end);
        let forgets = self.has(ClusterBug::ResolverForgetsStep);
        if step.as_ref().is_none_or(|(key, _)| *key != end) {
            self.steps.insert(end.clone(), if forgets { 0 } else { step.map_or(0, |(_, version)| version) });
        }
        let inside = (Bound::Excluded(&begin[..]), Bound::Excluded(&end[..]));
        while let Some((key, _)) = self.steps.range::<[u8], _>(inside).next() {
            let key = key.clone();
            self.steps.remove(&key);
        }
        self.steps.insert(begin.clone(), version);
        self.writes.push_back((version, begin, end));
    }

    /// Merges steps that no transaction can conflict with any more.
    fn expire(&mut self) {
        while self.writes.front().is_some_and(|(version, ..)| *version <= self.oldest) {
            let Some((_, begin, end)) = self.writes.pop_front() else { return };
            self.merge(&begin);
            self.merge(&end);
        }
    }

    /// Removes the step at `key` if both it and the one before it have left the window.
    fn merge(&mut self, key: &Bytes) {
        let mut upto = self.steps.range::<[u8], _>((Bound::Unbounded, Bound::Included(&key[..]))).rev();
        let old = upto.next().is_some_and(|(k, version)| k == key && *version <= self.oldest);
        let before = upto.next();
        let merges_newer = self.has(ClusterBug::ResolverMergesNewer);
        if old && before.is_none_or(|(_, version)| *version <= self.oldest || merges_newer) {
            self.steps.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Records every accepted write and compares each read range with each of them.
    struct BruteForce {
        share: KeyRange,
        oldest: Version,
        writes: Vec<(Version, KeyRange)>,
    }

    impl BruteForce {
        fn resolve(
            &mut self,
            version: Version,
            oldest: Version,
            batch: &[Arc<CommitData>],
        ) -> Vec<Resolution> {
            self.oldest = self.oldest.max(oldest);
            let clip = |r: &KeyRange| {
                let clipped = KeyRange::new(
                    r.begin.clone().max(self.share.begin.clone()),
                    r.end.clone().min(self.share.end.clone()),
                );
                (!r.is_empty() && !clipped.is_empty()).then_some(clipped)
            };
            let mut resolutions = Vec::new();
            for t in batch {
                if t.read_version < self.oldest && t.read_ranges.iter().any(|r| clip(r).is_some()) {
                    resolutions.push(Resolution::TooOld);
                    continue;
                }
                let mut conflicts = Vec::new();
                for (i, range) in t.read_ranges.iter().enumerate() {
                    let Some(range) = clip(range) else { continue };
                    let later = |v: Version| v > t.read_version || v == version;
                    if self.writes.iter().any(|(v, w)| later(*v) && w.intersects(&range)) {
                        conflicts.push(i as u32);
                    }
                }
                if conflicts.is_empty() {
                    let writes = t.write_ranges.iter().filter_map(clip);
                    self.writes.extend(writes.map(|range| (version, range)));
                    resolutions.push(Resolution::Committed);
                } else {
                    conflicts.truncate(if t.report_conflicting_keys { usize::MAX } else { 0 });
                    resolutions.push(Resolution::Conflict(conflicts));
                }
            }
            resolutions
        }
    }

    fn key() -> impl Strategy<Value = Bytes> {
        prop::collection::vec(prop::sample::select(vec![0u8, 1, 7, 0xff]), 0..3).prop_map(Bytes::from)
    }

    fn ranges() -> impl Strategy<Value = Vec<KeyRange>> {
        let range = (key(), key(), any::<bool>()).prop_map(|(a, b, point)| match point {
            true => KeyRange::new(a.clone(), shaketable_tx::key_after(&a)),
            false => KeyRange { begin: a, end: b },
        });
        prop::collection::vec(range, 0..4)
    }

    fn transaction() -> impl Strategy<Value = (Version, Arc<CommitData>)> {
        (0..40i64, ranges(), ranges(), any::<bool>()).prop_map(|(age, read_ranges, write_ranges, report)| {
            let data = CommitData {
                read_ranges,
                write_ranges,
                report_conflicting_keys: report,
                ..CommitData::default()
            };
            (age, Arc::new(data))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]
        #[test]
        fn agrees_with_brute_force(
            share in (key(), key()),
            whole in any::<bool>(),
            batches in prop::collection::vec((1..10i64, prop::collection::vec(transaction(), 0..5)), 1..12),
        ) {
            let share = match whole {
                true => KeyRange::new("", &b"\xff\xff"[..]),
                false => KeyRange {
                    begin: share.0.clone().min(share.1.clone()),
                    end: shaketable_tx::key_after(&share.0.max(share.1)),
                },
            };
            let mut set = ConflictSet::new(share.clone(), 100);
            let mut brute = BruteForce { share, oldest: 100, writes: Vec::new() };
            let mut version = 100;
            for (step, batch) in batches {
                version += step;
                let batch: Vec<_> = batch
                    .into_iter()
                    .map(|(age, mut data)| {
                        Arc::make_mut(&mut data).read_version = version + 3 - age;
                        data
                    })
                    .collect();
                let oldest = version - 25;
                let resolutions = set.resolve(version, oldest, &batch);
                prop_assert_eq!(resolutions, brute.resolve(version, oldest, &batch));
            }
            // Writes that have left the window leave no data.
            set.resolve(version + 100, version + 50, &[]);
            prop_assert!(set.steps.is_empty(), "{:?}", set.steps);
            prop_assert!(set.writes.is_empty());
        }
    }
}
