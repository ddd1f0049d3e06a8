//! Keys that operations wrote, and that no operation, audit or check read: nobody would notice if they were
//! wrong, or remained for ever.

use super::{
    entry,
    guidelines::UNREAD,
    hot::target,
    place::Names,
    traffic::{Observed, Tried},
};
use bytes::Bytes;
use shaketable_reports::{AdviceEntry, Severity, text::count};
use shaketable_sim::{
    judges::{
        SESSIONS,
        writes::{point, spans},
    },
    proto::{KeyRange, Mutation},
};
use std::collections::{BTreeMap, BTreeSet};

/// The most keys of a run of which each is looked at.
const MOST: usize = 10_000;

/// The keys that nobody read, and the kinds that wrote them; and the keys that somebody read in one of the
/// runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Unread {
    unread: BTreeMap<Bytes, BTreeSet<String>>,
    read: BTreeSet<Bytes>,
}

impl Unread {
    pub(super) fn observe(&mut self, run: &Observed<'_>, tried: &[Tried<'_>]) {
        let mut written: BTreeMap<Bytes, BTreeSet<String>> = BTreeMap::new();
        for one in tried.iter().filter(|one| one.attempt.operation.is_some()) {
            for mutation in one.committed.unwrap_or_default() {
                let (Mutation::Set(key, _) | Mutation::Atomic(key, ..)) = mutation else { continue };
                if !key.starts_with(SESSIONS) && written.len() < MOST {
                    written.entry(target(mutation).0.begin).or_default().insert(one.kind.to_owned());
                }
            }
        }
        let attempts = run.history.attempts.iter().flatten();
        let mut read: Vec<KeyRange> = attempts
            .flat_map(|attempt| {
                [spans(attempt), attempt.watches.iter().map(|key| point(key)).collect()].concat()
            })
            .collect();
        read.sort_by(|a, b| a.begin.cmp(&b.begin));
        // Both are in order: the furthest end of the ranges that begin before a key decides.
        let mut read = read.into_iter().peekable();
        let mut until = Bytes::new();
        for (key, kinds) in written {
            while let Some(range) = read.next_if(|range| range.begin <= key) {
                until = until.max(range.end);
            }
            match key < until {
                true => drop(self.read.insert(key)),
                false => self.unread.entry(key).or_default().extend(kinds),
            }
        }
        self.settle();
    }

    pub(super) fn merge(&mut self, other: &Unread) {
        self.read.extend(other.read.iter().cloned());
        for (key, kinds) in &other.unread {
            self.unread.entry(key.clone()).or_default().extend(kinds.iter().cloned());
        }
        self.settle();
    }

    /// A key that is read in one run is not one that nobody reads.
    fn settle(&mut self) {
        let Unread { unread, read } = self;
        unread.retain(|key, _| !read.contains(key));
    }

    /// The keys, from which names are told.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.unread.keys().chain(&self.read).map(|key| &key[..])
    }

    /// An entry for similar keys.
    pub(super) fn advise(&self, names: &Names) -> Vec<AdviceEntry> {
        let mut similar: BTreeMap<String, (u64, BTreeSet<&str>)> = BTreeMap::new();
        for (key, kinds) in &self.unread {
            let (keys, by) = similar.entry(names.range(&point(key))).or_default();
            *keys += 1;
            by.extend(kinds.iter().map(String::as_str));
        }
        // Data in keys, such as versionstamps, differ from run to run: similar keys are read.
        for key in &self.read {
            similar.remove(&names.range(&point(key)));
        }
        let of = |(name, (keys, by)): (String, (u64, BTreeSet<&str>))| {
            let by: Vec<&str> = by.into_iter().collect();
            let many = if keys > 1 { format!(" ({} keys)", count(keys)) } else { String::new() };
            let measured = format!(
                "{name}, written by {}, was read by no operation, audit or check{many}",
                by.join(", ")
            );
            entry("never read", Severity::Look, None, measured, (keys as f64, "keys"), UNREAD)
        };
        similar.into_iter().map(of).collect()
    }
}
