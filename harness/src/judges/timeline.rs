//! What of the truth was decided, and what can have been seen, at each moment of a run.
//!
//! An operation takes effect, or looks, somewhere between its call and its return. From below its place is
//! bounded by what was acknowledged before the call; from above by what had become durable before the return.

use super::Truth;
use shaketable_sim::{
    history::{AttemptId, History},
    proto::Version,
    rt::Nanos,
};
use std::collections::BTreeMap;

/// A version that somebody knew to be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decided {
    /// The version.
    pub version: Version,
    /// The attempt that was acknowledged, or reported unknown with its outcome decided; `None` for what an
    /// operation's answer shows.
    pub by: Option<AttemptId>,
}

/// When versions were decided and could be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// By time, ascending; the highest version so far.
    decided: Vec<(Nanos, Decided)>,
    /// Versions ascending, each with the moment from which it can have been seen.
    visible: Vec<(Version, Nanos)>,
}

impl Timeline {
    /// The timeline of a run.
    pub fn of(history: &History, truth: &Truth) -> Timeline {
        let acknowledged = truth.decided(history).into_iter();
        let acknowledged = acknowledged.map(|(at, version, by)| (at, Decided { version, by: Some(by) }));
        let sent = |id: AttemptId| history.attempts.get(id.0 as usize)?.as_ref()?.commit_sent;
        let durable: BTreeMap<Version, Nanos> =
            history.durable.iter().map(|((_, version), at)| (*version, *at)).collect();
        let visible = truth.entries.iter().map(|entry| {
            // A version is given when every transaction of its batch has been sent.
            let sent = || entry.transactions.iter().filter_map(|tx| sent(tx.attempt?)).max();
            (entry.version, durable.get(&entry.version).copied().or_else(sent).unwrap_or(0))
        });
        Timeline { visible: visible.collect(), ..Timeline::decided(acknowledged) }
    }

    /// With further moments at which a version was known to be committed, because an answer shows it.
    pub fn with(self, answers: impl Iterator<Item = (Nanos, Version)>) -> Timeline {
        let answers = answers.map(|(at, version)| (at, Decided { version, by: None }));
        let decided = self.decided.into_iter().chain(answers);
        Timeline { visible: self.visible, ..Timeline::decided(decided) }
    }

    /// The timeline of what was decided at these moments, with everything visible from the beginning.
    pub(super) fn decided(decided: impl Iterator<Item = (Nanos, Decided)>) -> Timeline {
        let mut decided: Vec<_> = decided.collect();
        decided.sort();
        let mut latest: Option<Decided> = None;
        for (_, known) in &mut decided {
            latest = latest.max(Some(*known));
            *known = latest.unwrap_or(*known);
        }
        Timeline { decided, visible: Vec::new() }
    }

    /// The highest version that was decided before `now`.
    pub fn decided_before(&self, now: Nanos) -> Option<Decided> {
        let until = self.decided.partition_point(|(at, _)| *at < now);
        self.decided[..until].last().map(|(_, known)| *known)
    }

    /// When it was known at the latest that everything up to `version` is decided.
    pub fn decided_since(&self, version: Version) -> Option<Nanos> {
        let since = self.decided.partition_point(|(_, known)| known.version < version);
        self.decided.get(since).map(|(at, _)| *at)
    }

    /// The highest version that can have been seen by `now`: the one just before the first that became
    /// visible later.
    pub fn seen_by(&self, now: Nanos) -> Version {
        let later = self.visible.iter().find(|(_, from)| *from > now);
        later.map_or(Version::MAX, |(version, _)| version - 1)
    }
}
