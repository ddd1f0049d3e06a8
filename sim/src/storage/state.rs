//! The content of a storage server, as a pure state: its shards, their rows at every version of the window,
//! and how much of that is on disk.
//!
//! The disk is not a second copy. It is the same rows at the durable version, so that a restart is a rollback
//! to that version, and making more durable advances it. Therefore, pruning keeps what the durable version
//! needs as well as what the window needs.

use super::{sample::sampled_size, versions::VersionedMap};
use crate::{
    atomic,
    config::ClusterBug,
    proto::{GetKeyValuesReply, KeyRange, LogEntry, Mutation, ResolvedKey, Version, WRONG_SHARD_SERVER},
};
use bytes::Bytes;
use shaketable_tx::{Error, KeySelector, KeyValue, MutationType, Result, VALUE_SIZE_LIMIT, key_after};
use std::sync::Arc;

/// The size of a row in a reply in addition to its bytes: two pointers with lengths (`sizeof(KeyValueRef)`).
const ROW_OVERHEAD: usize = 24;

/// A storage server's state.
#[derive(Debug, Default)]
pub struct State {
    data: VersionedMap,
    shards: Vec<HeldShard>,
    version: Version,
    oldest: Version,
    known_committed: Version,
    durable: Version,
    /// The planted bug of the cluster, which may be one of storage servers.
    bug: Option<ClusterBug>,
}

/// A shard that the server holds or fetches.
#[derive(Clone, Debug)]
struct HeldShard {
    range: KeyRange,
    /// The version at which it was fetched: the oldest version at which it can be read.
    since: Version,
    /// Entries that wait for the rows at `since`; `None` once these are available.
    fetching: Option<Vec<Arc<LogEntry>>>,
}

/// The state of a shard on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// The server does not have it.
    Not,
    /// The server is fetching it at this version.
    Fetching(Version),
    /// It can be read, but a restart would lose it.
    InMemory,
    /// It is on disk.
    Durably,
}

/// Whether a read at a version can be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readable {
    /// Now.
    Now,
    /// Once the version is applied.
    Later,
    /// Never again: 1007.
    TooOld,
}

impl State {
    /// The state of a server that starts with these shards, all empty at version 0.
    pub fn new<'a>(ranges: impl IntoIterator<Item = &'a KeyRange>) -> State {
        let held = |range: &KeyRange| HeldShard { range: range.clone(), since: 0, fetching: None };
        State { shards: ranges.into_iter().map(held).collect(), ..State::default() }
    }

    /// The state of a server with this planted bug of the cluster.
    pub fn with_bug(self, bug: Option<ClusterBug>) -> State {
        State { bug, ..self }
    }

    fn has(&self, bug: ClusterBug) -> bool {
        self.bug == Some(bug)
    }

    /// The last applied version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The oldest readable version.
    pub fn oldest(&self) -> Version {
        self.oldest
    }

    /// The version from which a restart continues.
    pub fn durable(&self) -> Version {
        self.durable
    }

    /// Loses everything that is not on disk.
    pub fn restart(&mut self) {
        self.data.rollback(self.durable);
        self.shards.retain(|s| s.fetching.is_none() && s.since <= self.durable);
        self.version = self.durable;
        self.oldest = self.durable;
        self.known_committed = self.durable;
    }

    /// Makes everything up to `version` durable, except for versions that a recovery could still undo.
    pub fn make_durable(&mut self, version: Version) {
        self.durable = version.min(self.known_committed).min(self.version).max(self.durable);
        self.data.prune(self.keep());
    }

    /// Undoes every version after `to`. Shards that were fetched after it must be fetched again.
    pub fn rollback(&mut self, to: Version) {
        if self.version <= to {
            return;
        }
        if !self.has(ClusterBug::StorageKeepsRolledBack) {
            self.data.rollback(to);
        }
        self.version = to;
        self.known_committed = self.known_committed.min(to);
        // Only a recovery that forgets commits goes back to before a version that was known to be committed.
        self.durable = self.durable.min(to);
        self.shards.retain_mut(|shard| {
            if let Some(buffered) = &mut shard.fetching {
                buffered.retain(|entry| entry.version <= to);
            }
            shard.since <= to
        });
    }

    /// The oldest version that a read, a rollback or a restart can need.
    fn keep(&self) -> Version {
        self.oldest.min(self.durable)
    }

    /// Applies the entry that follows the current version; `window` is the number of versions kept for reads.
    pub fn apply(&mut self, entry: &Arc<LogEntry>, window: Version, bug: Option<ClusterBug>) {
        assert_eq!(entry.previous, self.version, "entries are applied without gaps");
        if !entry.transactions.is_empty() && bug != Some(ClusterBug::StorageSkipsVersion) {
            for shard in &mut self.shards {
                if let Some(buffered) = &mut shard.fetching {
                    buffered.push(entry.clone());
                }
            }
            let keep = self.keep();
            let planted = self.bug;
            let mut each =
                |m: &Mutation| apply(&mut self.data, &self.shards, m, entry.version, keep, planted);
            match bug {
                Some(ClusterBug::ReplicaReorders) => mutations(entry).rev().for_each(&mut each),
                _ => mutations(entry).for_each(&mut each),
            }
        }
        self.version = entry.version;
        self.known_committed = self.known_committed.max(entry.known_committed.min(entry.version));
        self.oldest = self.oldest.max(self.version - window);
        self.data.prune(self.keep());
    }

    /// The state of a shard on the server.
    pub fn holds(&self, range: &KeyRange) -> Holds {
        match self.shards.iter().find(|s| s.range == *range) {
            None => Holds::Not,
            Some(HeldShard { fetching: Some(_), since, .. }) => Holds::Fetching(*since),
            Some(shard) if shard.since <= self.durable => Holds::Durably,
            Some(_) => Holds::InMemory,
        }
    }

    /// Starts to fetch a shard at the last applied version, which is returned; a fetch in progress is
    /// abandoned. From now on, entries after that version are buffered for the shard.
    pub fn begin_fetch(&mut self, range: &KeyRange) -> Version {
        self.forget(range);
        let fetching = Some(Vec::new());
        self.shards.push(HeldShard { range: range.clone(), since: self.version, fetching });
        self.version
    }

    /// Adds the shard's rows at the version `since`: the shard can be read from then on.
    pub fn end_fetch(&mut self, range: &KeyRange, since: Version, rows: Vec<KeyValue>) {
        let (keep, bug) = (self.keep(), self.bug);
        let fetched = self.shards.iter_mut().find(|s| s.range == *range && s.since == since);
        let Some(shard) = fetched else { return };
        let Some(mut buffered) = shard.fetching.take() else { return };
        let kept =
            if bug == Some(ClusterBug::StorageFetchesLess) { rows.len().max(1) - 1 } else { rows.len() };
        if bug == Some(ClusterBug::StorageLosesFetched) {
            buffered.clear();
        }
        for row in rows.into_iter().take(kept) {
            self.data.set(&row.key, row.value, since, keep);
        }
        let only = [shard.clone()];
        for entry in buffered {
            for mutation in mutations(&entry) {
                apply(&mut self.data, &only, mutation, entry.version, keep, bug);
            }
        }
    }

    /// Drops a shard, on disk as well.
    pub fn forget(&mut self, range: &KeyRange) {
        let before = self.shards.len();
        self.shards.retain(|s| s.range != *range);
        if self.shards.len() < before {
            self.data.forget(range);
        }
    }

    /// The shards that are being fetched, with their versions.
    pub fn fetching(&self) -> impl Iterator<Item = (&KeyRange, Version)> {
        self.shards.iter().filter(|s| s.fetching.is_some()).map(|s| (&s.range, s.since))
    }

    /// Whether a read at a version can be executed now, later or never.
    pub fn readable(&self, version: Version) -> Readable {
        match version {
            v if v < self.oldest || v < 0 => Readable::TooOld,
            v if v <= self.version || self.has(ClusterBug::StorageReadsEarly) => Readable::Now,
            _ => Readable::Later,
        }
    }

    /// The readable shard for which `inside` returns true; 1001 if there is none.
    fn shard(&self, inside: impl Fn(&KeyRange) -> bool) -> Result<&HeldShard> {
        // There are only a few shards: checking each is as fast as searching.
        self.shards.iter().find(|s| s.fetching.is_none() && inside(&s.range)).ok_or(WRONG_SHARD_SERVER)
    }

    /// Like [`shard`](Self::shard), for a read at a version: 1007 if the shard was fetched later.
    fn shard_at(&self, version: Version, inside: impl Fn(&KeyRange) -> bool) -> Result<&HeldShard> {
        let shard = self.shard(inside)?;
        if version < shard.since { Err(Error::TRANSACTION_TOO_OLD) } else { Ok(shard) }
    }

    /// A key's value at a readable version.
    pub fn get(&self, key: &[u8], version: Version) -> Result<Option<&Bytes>> {
        self.shard_at(version, |range| range.contains(key))?;
        if self.has(ClusterBug::StorageReadsLatest) {
            return Ok(self.data.latest(key));
        }
        Ok(self.data.get(key, version))
    }

    /// A key's value at the last applied version.
    pub fn latest(&self, key: &[u8]) -> Result<Option<&Bytes>> {
        self.shard(|range| range.contains(key))?;
        Ok(self.data.latest(key))
    }

    /// Resolves a selector at a readable version, as far as possible within one shard.
    pub fn get_key(&self, selector: &KeySelector, version: Version) -> Result<ResolvedKey> {
        let KeySelector { key, or_equal, offset } = selector;
        let beyond = |key: &Bytes, offset| ResolvedKey::Beyond(KeySelector::new(key.clone(), false, offset));
        if *offset > 0 {
            let shard = self.shard_at(version, |range| range.contains(key))?;
            let range = KeyRange { begin: key.clone(), end: shard.range.end.clone() };
            let mut left = *offset;
            for (found, _) in self.data.rows(&range, version) {
                if *or_equal && found == key && !self.has(ClusterBug::StorageCountsEqual) {
                    continue;
                }
                left -= 1;
                if left == 0 {
                    return Ok(ResolvedKey::Found(found.clone()));
                }
            }
            let skipped = i32::from(self.has(ClusterBug::StorageMissesBorder));
            Ok(beyond(&shard.range.end, left + skipped))
        } else {
            // Keys before the base key determine the result, so the shard that ends at the base key is
            // suitable.
            let inside = |range: &KeyRange| range.begin < *key && *key <= range.end;
            let whole =
                |range: &KeyRange| if key.is_empty() { range.begin.is_empty() } else { inside(range) };
            let shard = match or_equal {
                true => self.shard_at(version, |range| range.contains(key))?,
                false => self.shard_at(version, whole)?,
            };
            let range = KeyRange { begin: shard.range.begin.clone(), end: excluded_from(key, *or_equal) };
            let mut left = *offset;
            for (found, _) in self.data.rows(&range, version).rev() {
                if left == 0 {
                    return Ok(ResolvedKey::Found(found.clone()));
                }
                left += 1;
            }
            // Relative to the boundary, the key before it has offset 0, as it had relative to the base key.
            Ok(beyond(&shard.range.begin, left))
        }
    }

    /// The rows of a range within one shard at a readable version. Returns at least one row if there is one;
    /// `more` is set if a limit was reached, even with the last row.
    pub fn get_key_values(
        &self,
        range: &KeyRange,
        version: Version,
        limit: usize,
        limit_bytes: usize,
        reverse: bool,
    ) -> Result<GetKeyValuesReply> {
        self.shard_at(version, |shard| shard.begin <= range.begin && range.end <= shard.end)?;
        let mut rows = self.data.rows(range, version);
        let mut reply = GetKeyValuesReply::default();
        let mut bytes = 0;
        while let Some((key, value)) = if reverse { rows.next_back() } else { rows.next() } {
            if reverse && *key == range.begin && self.has(ClusterBug::StorageCutsReverse) {
                break;
            }
            bytes += key.len() + value.len() + ROW_OVERHEAD;
            reply.rows.push(KeyValue { key: key.clone(), value: value.clone() });
            if reply.rows.len() >= limit || bytes >= limit_bytes {
                reply.more = !self.has(ClusterBug::StorageHidesMore);
                break;
            }
        }
        Ok(reply)
    }

    /// The approximate number of bytes of a range on this server.
    pub fn storage_metrics(&self, range: &KeyRange) -> Result<i64> {
        Ok(self.sample(range)?.map(|(_, size)| size).sum())
    }

    /// Keys within a range that split it into chunks of about `chunk_size` sampled bytes.
    pub fn split_points(&self, range: &KeyRange, chunk_size: i64) -> Result<Vec<Bytes>> {
        let mut points = Vec::new();
        let mut size = 0;
        for (key, sampled) in self.sample(range)?.filter(|(_, size)| *size > 0) {
            if size >= chunk_size.max(1) {
                points.push(key.clone());
                size = 0;
            }
            size += sampled;
        }
        Ok(points)
    }

    fn sample(&self, range: &KeyRange) -> Result<impl Iterator<Item = (&Bytes, i64)>> {
        self.shard(|shard| shard.begin <= range.begin && range.end <= shard.end)?;
        Ok(self.data.rows(range, self.version).map(|(key, value)| (key, sampled_size(key, value))))
    }

    /// Every row of a range at a version, to compare replicas; `None` if the server does not hold the range
    /// or cannot read at that version.
    pub fn snapshot(&self, range: &KeyRange, version: Version) -> Option<Vec<KeyValue>> {
        let whole = self.get_key_values(range, version, usize::MAX, usize::MAX, false);
        whole.ok().filter(|_| self.readable(version) == Readable::Now).map(|reply| reply.rows)
    }
}

/// The first key that is excluded: the base key, or the one after it.
fn excluded_from(key: &Bytes, or_equal: bool) -> Bytes {
    if or_equal { key_after(key) } else { key.clone() }
}

/// The entry's mutations in the order in which they take effect.
fn mutations(entry: &LogEntry) -> impl DoubleEndedIterator<Item = &Mutation> {
    entry.transactions.iter().flat_map(|t| &t.mutations)
}

fn apply(
    data: &mut VersionedMap,
    shards: &[HeldShard],
    mutation: &Mutation,
    at: Version,
    keep: Version,
    bug: Option<ClusterBug>,
) {
    let held = || shards.iter().filter(|s| s.fetching.is_none());
    match mutation {
        Mutation::Set(key, value) => {
            if held().any(|s| s.range.contains(key)) {
                data.set(key, value.clone(), at, keep);
            }
        }
        Mutation::ClearRange(range) => {
            for shard in held().filter(|s| s.range.intersects(range)) {
                let begin = (&shard.range.begin).max(&range.begin).clone();
                let mut end = (&shard.range.end).min(&range.end).clone();
                if bug == Some(ClusterBug::StorageClearsLess) {
                    let within = KeyRange { begin: begin.clone(), end: end.clone() };
                    let last = data.rows(&within, at).next_back().map(|(key, _)| key.clone());
                    end = last.filter(|key| *key > begin).unwrap_or(end);
                }
                data.clear_range(&KeyRange { begin, end }, at, keep);
            }
        }
        Mutation::Atomic(key, operand, op) => {
            if held().any(|s| s.range.contains(key)) {
                let before = data.latest(key);
                let fills = *op == MutationType::AppendIfFits
                    && before.map_or(0, Bytes::len) + operand.len() == VALUE_SIZE_LIMIT;
                if fills && bug == Some(ClusterBug::StorageAppendsLess) {
                    return;
                }
                match atomic::apply(*op, before, operand) {
                    Some(value) => data.set(key, value, at, keep),
                    None => data.clear(key, at, keep),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::LoggedTransaction;
    use proptest::prelude::*;
    use shaketable_tx::MutationType;
    use std::collections::BTreeMap;

    type Rows = BTreeMap<Bytes, Bytes>;

    fn key(k: u8) -> Bytes {
        Bytes::from(vec![b'a' + k])
    }

    fn all() -> [KeyRange; 3] {
        [KeyRange::new("", "d"), KeyRange::new("d", "i"), KeyRange::new("i", "\u{7f}")]
    }

    fn entry(previous: Version, version: Version, mutations: Vec<Mutation>) -> Arc<LogEntry> {
        let transactions = vec![LoggedTransaction { attempt: None, batch_index: 0, mutations }];
        Arc::new(LogEntry { previous, version, known_committed: previous, transactions })
    }

    fn mutation() -> impl Strategy<Value = Mutation> {
        prop_oneof![
            (0..14u8, 0..9u8).prop_map(|(k, v)| Mutation::Set(key(k), key(v))),
            (0..14u8, 0..14u8).prop_map(|(a, b)| Mutation::ClearRange(KeyRange::new(key(a), key(b)))),
            (0..14u8, 0..9u8).prop_map(|(k, v)| Mutation::Atomic(key(k), key(v), MutationType::Add)),
            (0..14u8, 0..9u8).prop_map(|(k, v)| Mutation::Atomic(
                key(k),
                key(v),
                MutationType::CompareAndClear
            )),
        ]
    }

    fn batches() -> impl Strategy<Value = Vec<Vec<Mutation>>> {
        prop::collection::vec(prop::collection::vec(mutation(), 0..5), 1..30)
    }

    fn model(rows: &mut Rows, mutations: &[Mutation]) {
        for mutation in mutations {
            match mutation {
                Mutation::Set(k, v) => drop(rows.insert(k.clone(), v.clone())),
                Mutation::ClearRange(range) => rows.retain(|k, _| !range.contains(k)),
                Mutation::Atomic(k, operand, op) => match atomic::apply(*op, rows.get(k), operand) {
                    Some(v) => drop(rows.insert(k.clone(), v)),
                    None => drop(rows.remove(k)),
                },
            }
        }
    }

    fn rows_of(state: &State, version: Version) -> Rows {
        all()
            .iter()
            .flat_map(|shard| state.snapshot(shard, version).expect("held and readable"))
            .map(|row| (row.key, row.value))
            .collect()
    }

    /// Resolves a selector across the shards as a client does.
    fn resolve(state: &State, selector: KeySelector, version: Version) -> Option<Bytes> {
        let mut selector = selector;
        loop {
            match state.get_key(&selector, version).expect("held") {
                ResolvedKey::Found(key) => return Some(key),
                ResolvedKey::Beyond(next) => {
                    let ends = if next.offset > 0 { next.key == all()[2].end } else { next.key.is_empty() };
                    if ends {
                        return None;
                    }
                    assert_ne!(next, selector, "each step gets somewhere");
                    selector = next;
                }
            }
        }
    }

    /// Resolves the selector by its definition.
    fn resolved(rows: &Rows, selector: &KeySelector) -> Option<Bytes> {
        let before =
            rows.keys().filter(|k| **k < selector.key || selector.or_equal && **k == selector.key).count();
        let at = before as i64 + i64::from(selector.offset) - 1;
        usize::try_from(at).ok().and_then(|at| rows.keys().nth(at).cloned())
    }

    proptest! {
        /// Compares rows, limits and selectors at every version of the window with copies of a plain map.
        #[test]
        fn reads_agree_with_a_plain_map(
            batches in batches(), window in 1..12i64, base in 0..14u8, or_equal: bool, offset in -6..7i32,
            limit in 1..5usize, reverse: bool,
        ) {
            let mut state = State::new(&all());
            let mut states = vec![Rows::new()];
            for (i, batch) in batches.into_iter().enumerate() {
                let mut rows = states[i].clone();
                model(&mut rows, &batch);
                states.push(rows);
                state.apply(&entry(i as Version, i as Version + 1, batch), window, None);
                if i % 4 == 3 {
                    state.make_durable(i as Version - 2);
                }
            }
            for version in state.oldest()..=state.version() {
                prop_assert_eq!(state.readable(version), Readable::Now);
                let rows = &states[version as usize];
                prop_assert_eq!(&rows_of(&state, version), rows);
                let selector = KeySelector::new(key(base), or_equal, offset);
                prop_assert_eq!(resolve(&state, selector.clone(), version), resolved(rows, &selector));
                let range = KeyRange::new("d", key(8));
                let inside: Vec<_> = rows.iter().filter(|(k, _)| range.contains(k)).collect();
                let reply = state.get_key_values(&range, version, limit, usize::MAX, reverse).expect("held");
                let expected: Vec<_> = if reverse {
                    inside.iter().rev().take(limit).collect()
                } else {
                    inside.iter().take(limit).collect()
                };
                prop_assert!(reply.rows.iter().map(|r| (&r.key, &r.value)).eq(expected.into_iter().copied()));
                prop_assert_eq!(reply.more, inside.len() >= limit);
            }
            prop_assert_eq!(state.readable(state.oldest() - 1), Readable::TooOld);
        }

        /// A restart returns to the durable version, a rollback to the requested version; both continue from
        /// there.
        #[test]
        fn restarts_and_rollbacks_leave_the_past_intact(
            first in batches(), second in batches(), durable in 0..30i64, to in 0..30i64, restart: bool,
        ) {
            let mut state = State::new(&all());
            let mut states = vec![Rows::new()];
            for batch in first {
                let version = state.version();
                let mut rows = states[version as usize].clone();
                model(&mut rows, &batch);
                states.push(rows);
                state.apply(&entry(version, version + 1, batch), 10, None);
                if state.version() == durable + 3 {
                    state.make_durable(durable);
                }
            }
            if restart {
                state.restart();
                prop_assert_eq!(state.version(), state.durable());
            } else {
                state.rollback(to.max(state.durable()));
            }
            let mut rows = states[state.version() as usize].clone();
            if state.readable(state.version()) == Readable::Now {
                prop_assert_eq!(&rows_of(&state, state.version()), &rows);
            }
            let mut previous = state.version();
            for batch in second {
                model(&mut rows, &batch);
                state.apply(&entry(previous, previous + 1_000, batch), 10, None);
                previous += 1_000;
            }
            prop_assert_eq!(&rows_of(&state, previous), &rows);
        }

        /// A shard fetched from another server, while entries are arriving, equals that server's shard: even
        /// if both roll back to an earlier version before its rows are received.
        #[test]
        fn a_fetched_shard_equals_its_source(
            batches in batches(), begin in 0..30usize, end in 0..40usize, rollback in 0..40usize,
        ) {
            let [a, b, c] = all();
            let mut source = State::new(&all());
            let mut fetcher = State::new([&a, &c]);
            let mut fetch = None;
            for (i, batch) in batches.into_iter().enumerate() {
                if i == begin {
                    fetch = Some((fetcher.begin_fetch(&b), source.snapshot(&b, source.version()).expect("held")));
                    prop_assert_eq!(fetcher.get(&key(4), fetcher.version()), Err(WRONG_SHARD_SERVER));
                }
                let entry = entry(i as Version, i as Version + 1, batch);
                source.apply(&entry, 100, None);
                fetcher.apply(&entry, 100, None);
                if i >= end && let Some((since, rows)) = fetch.take() {
                    fetcher.end_fetch(&b, since, rows);
                }
            }
            let to = rollback as Version;
            source.rollback(to);
            fetcher.rollback(to);
            if let Some((since, rows)) = fetch.take() {
                fetcher.end_fetch(&b, since, rows);
            }
            let at = source.version();
            let begun = begin < 30 && fetcher.holds(&b) != Holds::Not;
            if begun {
                prop_assert_eq!(fetcher.snapshot(&b, at), source.snapshot(&b, at));
            } else {
                prop_assert_eq!(fetcher.snapshot(&b, at), None);
                prop_assert!(begin as Version > to.min(at) || at as usize <= begin);
            }
            prop_assert_eq!(fetcher.snapshot(&a, at), source.snapshot(&a, at));
        }
    }

    #[test]
    fn what_is_not_durable_is_gone_after_a_restart_and_what_is_stays() {
        let [a, b, _] = all();
        let mut state = State::new([&a]);
        state.apply(&entry(0, 10, vec![Mutation::Set(key(0), key(1))]), 100, None);
        state.apply(&entry(10, 20, vec![Mutation::Set(key(0), key(2))]), 100, None);
        let since = state.begin_fetch(&b);
        state.end_fetch(&b, since, vec![KeyValue::new(key(5), key(5))]);
        assert_eq!(state.holds(&b), Holds::InMemory);
        state.make_durable(20);
        assert_eq!(state.durable(), 10, "version 20 is not known to be committed");
        state.restart();
        assert_eq!((state.version(), state.holds(&b)), (10, Holds::Not));
        assert_eq!(state.get(&key(0), 10), Ok(Some(&key(1))));
        state.forget(&a);
        assert_eq!(state.get(&key(0), 10), Err(WRONG_SHARD_SERVER));
    }

    #[test]
    fn a_reordered_batch_differs_and_a_skipped_one_is_missing() {
        let write = |bug| {
            let mut state = State::new(&all());
            let writes = vec![Mutation::Set(key(0), key(1)), Mutation::Set(key(0), key(2))];
            state.apply(&entry(0, 1, writes), 100, bug);
            state.get(&key(0), 1).expect("held").cloned()
        };
        assert_eq!(write(None), Some(key(2)));
        assert_eq!(write(Some(ClusterBug::ReplicaReorders)), Some(key(1)));
        assert_eq!(write(Some(ClusterBug::StorageSkipsVersion)), None);
    }
}
