//! What of the truth was decided, and what can have been seen, at each moment of a run.
//!
//! An operation takes effect, or looks, somewhere between its call and its return. From below its place is
//! bounded by what was acknowledged before the call; from above by what had become durable before the return.

use super::Truth;
use shaketable_layers::tx::Error;
use shaketable_sim::{
    history::{AttemptId, History, Told},
    proto::Version,
    rt::Nanos,
};

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
pub struct Timeline {
    /// By time, ascending; the highest version so far.
    decided: Vec<(Nanos, Decided)>,
    /// Versions ascending, each with the moment from which it can have been seen.
    visible: Vec<(Version, Nanos)>,
}

impl Timeline {
    /// The timeline of a run. `answers` are further moments at which a version was known to be committed.
    pub fn of(history: &History, truth: &Truth, answers: impl Iterator<Item = (Nanos, Version)>) -> Timeline {
        let mut decided: Vec<(Nanos, Decided)> =
            answers.map(|(at, version)| (at, Decided { version, by: None })).collect();
        for (i, attempt) in history.attempts.iter().enumerate() {
            let (id, Some(attempt)) = (AttemptId(i as u32), attempt) else { continue };
            let version = match attempt.told {
                Told::Committed { version, .. } => Some(version),
                Told::Failed(Error::COMMIT_UNKNOWN_RESULT) if attempt.settles => {
                    truth.place(id).map(|(version, _)| version)
                }
                _ => None,
            };
            decided.extend(version.map(|version| (attempt.ended, Decided { version, by: Some(id) })));
        }
        decided.sort();
        let mut latest: Option<Decided> = None;
        for (_, known) in &mut decided {
            latest = latest.max(Some(*known));
            *known = latest.unwrap_or(*known);
        }
        let sent = |id: AttemptId| history.attempts.get(id.0 as usize)?.as_ref()?.commit_sent;
        let durable: std::collections::BTreeMap<Version, Nanos> =
            history.durable.iter().map(|((_, version), at)| (*version, *at)).collect();
        let visible = truth.entries.iter().map(|entry| {
            // A version is given when every transaction of its batch has been sent.
            let sent = || entry.transactions.iter().filter_map(|tx| sent(tx.attempt?)).max();
            (entry.version, durable.get(&entry.version).copied().or_else(sent).unwrap_or(0))
        });
        Timeline { decided, visible: visible.collect() }
    }

    /// The highest version that was decided before `now`.
    pub fn decided_before(&self, now: Nanos) -> Option<Decided> {
        let until = self.decided.partition_point(|(at, _)| *at < now);
        self.decided[..until].last().map(|(_, known)| *known)
    }

    /// The highest version that can have been seen by `now`: the one just before the first that became
    /// visible later.
    pub fn seen_by(&self, now: Nanos) -> Version {
        let later = self.visible.iter().find(|(_, from)| *from > now);
        later.map_or(Version::MAX, |(version, _)| version - 1)
    }
}
