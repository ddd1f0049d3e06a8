//! Which versions were known to be committed, and which could be visible, at each time of a run.
//!
//! An operation takes effect, or reads, at some time between its call and its return. The lower bound of its
//! place is what was acknowledged before the call; the upper bound is what was durable before the return.

use super::Truth;
use crate::{history::History, ids::AttemptId, proto::Version, rt::Nanos};
use std::collections::BTreeMap;

/// A version that a client knew to be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownCommit {
    /// The version.
    pub version: Version,
    /// The attempt that was acknowledged, or that was reported as unknown when its outcome was final; `None`
    /// if the answer of an operation shows the version.
    pub by: Option<AttemptId>,
}

/// When versions were known to be committed, and when they could be visible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The highest known version so far, by time, ascending.
    decided: Vec<(Nanos, KnownCommit)>,
    /// The versions, ascending, each with the earliest time from which on it, and every lower one, could be
    /// visible.
    visible: Vec<(Version, Nanos)>,
}

impl Timeline {
    /// The timeline of a run.
    pub fn of(history: &History, truth: &Truth) -> Timeline {
        let acknowledged = truth.decided(history).into_iter();
        let acknowledged = acknowledged.map(|(at, version, by)| (at, KnownCommit { version, by: Some(by) }));
        let sent = |id: AttemptId| history.attempt(id)?.commit_sent;
        let durable: BTreeMap<Version, Nanos> =
            history.durable.iter().map(|((_, version), at)| (*version, *at)).collect();
        let mut latest = 0;
        let visible = truth.entries.iter().map(|entry| {
            // A batch gets its version after all of its transactions have been sent.
            let sent = || entry.transactions.iter().filter_map(|tx| sent(tx.attempt?)).max();
            latest = durable.get(&entry.version).copied().or_else(sent).unwrap_or(0).max(latest);
            (entry.version, latest)
        });
        Timeline { visible: visible.collect(), ..Timeline::known(acknowledged) }
    }

    /// Adds what was known at an earlier time.
    pub fn after(self, known: Option<(Nanos, KnownCommit)>) -> Timeline {
        let decided = self.decided.into_iter().chain(known);
        Timeline { visible: self.visible, ..Timeline::known(decided) }
    }

    /// Adds times at which a version was known to be committed because an answer shows it.
    pub fn with(self, answers: impl Iterator<Item = (Nanos, Version)>) -> Timeline {
        let answers = answers.map(|(at, version)| (at, KnownCommit { version, by: None }));
        let decided = self.decided.into_iter().chain(answers);
        Timeline { visible: self.visible, ..Timeline::known(decided) }
    }

    /// A timeline with these known versions, in which every version is visible from the start.
    pub fn known(decided: impl Iterator<Item = (Nanos, KnownCommit)>) -> Timeline {
        let mut decided: Vec<_> = decided.collect();
        decided.sort();
        let mut latest: Option<KnownCommit> = None;
        for (_, known) in &mut decided {
            latest = latest.max(Some(*known));
            *known = latest.unwrap_or(*known);
        }
        Timeline { decided, visible: Vec::new() }
    }

    /// The highest version that was known to be committed before `now`.
    pub fn known_before(&self, now: Nanos) -> Option<KnownCommit> {
        let until = self.decided.partition_point(|(at, _)| *at < now);
        self.decided[..until].last().map(|(_, known)| *known)
    }

    /// The time at which `version` or a higher one was first known to be committed.
    pub fn decided_since(&self, version: Version) -> Option<Nanos> {
        let since = self.decided.partition_point(|(_, known)| known.version < version);
        self.decided.get(since).map(|(at, _)| *at)
    }

    /// The highest version that could be visible at `now`: one less than the first version that became
    /// visible later.
    pub fn seen_by(&self, now: Nanos) -> Version {
        let later = self.visible.get(self.visible.partition_point(|(_, from)| *from <= now));
        later.map_or(Version::MAX, |(version, _)| version - 1)
    }
}
