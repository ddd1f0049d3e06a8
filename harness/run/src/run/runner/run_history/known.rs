//! Who wrote each key, and which keys several transactions touch.

use super::Words;
use crate::{describe::sessions, judge::Truth};
use bytes::Bytes;
use shaketable_reports::RowEntry;
use shaketable_sim::{
    history::{Call, History},
    ids::AttemptId,
    proto::{KeyRange, Mutation, Version},
};
use shaketable_tx::show;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of all transactions together: who wrote each key, and which keys several of them touch.
pub(super) struct Known<'a> {
    words: &'a dyn Words,
    /// By key, the versions at which it was set, and by which attempt.
    sets: BTreeMap<Bytes, Vec<(Version, Option<AttemptId>)>>,
    /// The ranges that were cleared, by ascending version.
    clears: Vec<(Version, KeyRange, Option<AttemptId>)>,
    /// The keys that several attempts of operations touch, one of which writes.
    pub(super) shared: BTreeSet<Bytes>,
    /// The attempt before each one at the same transaction of a program.
    before: BTreeMap<AttemptId, AttemptId>,
}

impl<'a> Known<'a> {
    pub(super) fn of(history: &History, truth: &Truth, words: &'a dyn Words) -> Known<'a> {
        let mut sets: BTreeMap<Bytes, Vec<(Version, Option<AttemptId>)>> = BTreeMap::new();
        let mut clears = Vec::new();
        for entry in &truth.entries {
            for tx in &entry.transactions {
                for mutation in &tx.mutations {
                    match mutation {
                        Mutation::Set(key, _) | Mutation::Atomic(key, ..) => {
                            sets.entry(key.clone()).or_default().push((entry.version, tx.attempt));
                        }
                        Mutation::ClearRange(range) => {
                            clears.push((entry.version, range.clone(), tx.attempt))
                        }
                    }
                }
            }
        }
        Known { words, sets, clears, shared: shared(history), before: before(history) }
    }

    /// The attempt before this one at the same transaction of a program.
    pub(super) fn before(&self, attempt: AttemptId) -> Option<u32> {
        self.before.get(&attempt).map(|before| before.0)
    }

    /// The attempt that had written or cleared a key at a version.
    pub(super) fn writer(&self, key: &Bytes, at: Option<Version>) -> Option<u32> {
        let at = at.unwrap_or(Version::MAX);
        let set = self.sets.get(key).and_then(|sets| sets.iter().rev().find(|(version, _)| *version <= at));
        let is_hit = |(version, range, _): &&(Version, KeyRange, _)| *version <= at && range.contains(key);
        let clear = self.clears.iter().rev().find(is_hit).map(|(version, _, by)| (*version, *by));
        let last = set.copied().into_iter().chain(clear).max_by_key(|(version, _)| *version);
        last.and_then(|(_, by)| by).map(|by| by.0)
    }

    pub(super) fn key(&self, at: &[u8]) -> String {
        self.words.key(at).unwrap_or_else(|| show::key(at))
    }

    pub(super) fn row(&self, at: &Bytes, of: Option<&[u8]>, writer: Option<u32>) -> RowEntry {
        let shown = |of: &[u8]| self.words.value(at, of).unwrap_or_else(|| show::value(of));
        let shared = self.shared.contains(at);
        RowEntry { key: self.key(at), value: of.map(shown), writer, shared, ..RowEntry::default() }
    }

    /// Whether a shared key lies in a range.
    pub(super) fn is_shared(&self, range: &KeyRange) -> bool {
        self.shared.range(range.begin.clone()..).next().is_some_and(|key| *key < range.end)
    }
}

fn before(history: &History) -> BTreeMap<AttemptId, AttemptId> {
    let mut last = BTreeMap::new();
    let of_programs =
        history.numbered().filter_map(|(id, attempt)| Some((id, attempt.client, attempt.origin?)));
    let pairs = of_programs
        .filter_map(|(id, client, origin)| Some((id, last.insert((client, origin.transaction), id)?)));
    pairs.collect()
}

/// The keys that several attempts of operations touch, one of which writes. A range read touches the keys
/// that it finds, and those that others write within its range, as does a conflict range that is added. The
/// records of exactly-once sessions matter to no other client.
fn shared(history: &History) -> BTreeSet<Bytes> {
    let mut touched: BTreeMap<Bytes, (BTreeSet<usize>, bool)> = BTreeMap::new();
    let of_operations = || {
        let attempts = history.attempts.iter().enumerate();
        attempts.filter_map(|(id, attempt)| Some((id, attempt.as_ref().filter(|a| a.operation.is_some())?)))
    };
    for (id, attempt) in of_operations() {
        for (key, writes) in attempt.calls.iter().flat_map(keys_of).filter(|(key, _)| !sessions::has(key)) {
            let touched = touched.entry(key).or_default();
            touched.0.insert(id);
            touched.1 |= writes;
        }
    }
    for (id, attempt) in of_operations() {
        let added = attempt.added_ranges().cloned();
        let ranges = attempt.calls.iter().filter_map(range_of).chain(added);
        for range in ranges.filter(|range| range.begin < range.end) {
            for (by, _) in touched.range_mut(range.begin..range.end).map(|(_, touched)| touched) {
                by.insert(id);
            }
        }
    }
    let shared = touched.into_iter().filter(|(_, (by, written))| *written && by.len() > 1);
    shared.map(|(key, _)| key).collect()
}

/// The range that a range read or a clear spans.
fn range_of(call: &Call) -> Option<KeyRange> {
    match call {
        Call::GetRange { begin, end, .. } => Some(KeyRange::new(begin.key.clone(), end.key.clone())),
        Call::Write(Mutation::ClearRange(range)) => Some(range.clone()),
        _ => None,
    }
}

/// The keys that a call touches, and whether it writes them.
fn keys_of(call: &Call) -> Vec<(Bytes, bool)> {
    match call {
        Call::Get { key, .. } => vec![(key.clone(), false)],
        Call::GetKey { answer, .. } => answer.iter().map(|key| (key.clone(), false)).collect(),
        Call::GetRange { answer, .. } => {
            let rows = answer.iter().flat_map(|(rows, _)| rows.iter());
            rows.map(|row| (row.key.clone(), false)).collect()
        }
        Call::Write(Mutation::Set(key, _) | Mutation::Atomic(key, ..)) => vec![(key.clone(), true)],
        Call::Write(Mutation::ClearRange(range)) => vec![(range.begin.clone(), true)],
    }
}
