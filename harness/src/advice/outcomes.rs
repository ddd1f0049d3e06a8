//! Outcomes: operations that are rarely done, fail where a retry is safe, are slow, or leave nothing.

use super::{
    entry,
    guidelines::{CALLERS, CONFLICT_RETRY, FINISH, NO_EFFECT, RARELY},
    traffic::{Observed, Tried, named},
    units::{share, time},
};
use crate::run::runner::Ended;
use shaketable_reports::{AdviceEntry, Severity, text::count};
use shaketable_sim::{judges::SESSIONS, proto::Mutation, rt::Nanos};
use shaketable_tx::Error;
use std::collections::{BTreeMap, BTreeSet};

/// The fewest operations of a kind that say something.
const FEWEST: u64 = 20;
/// The least share of a kind that is done without a note, per cent.
const RARE: u64 = 10;
/// The share of operations without an effect that is noted, per cent.
const EMPTY: u64 = 50;
/// The longest operation without a note, nanoseconds.
const SLOW: Nanos = 5_000_000_000;
/// The mean time of an operation outside of transactions that is noted, nanoseconds.
const OUTSIDE: Nanos = 500_000_000;

/// The operations of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OfKind {
    all: u64,
    done: u64,
    refused: u64,
    failed: u64,
    /// Those that failed with a conflict.
    conflicts: u64,
    is_rare: bool,
    /// Those that took long, and the longest.
    slow: u64,
    longest: Nanos,
    /// The time of all, and that of their transactions.
    time: Nanos,
    within: Nanos,
    /// Those that wrote, and those of them that wrote nothing but the record of their session.
    wrote: u64,
    empty: u64,
}

/// How the operations of a run or of several ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcomes(BTreeMap<String, OfKind>);

fn is_of_session(mutation: &Mutation) -> bool {
    match mutation {
        Mutation::Set(key, _) | Mutation::Atomic(key, ..) => key.starts_with(SESSIONS),
        Mutation::ClearRange(range) => range.begin.starts_with(SESSIONS),
    }
}

impl Outcomes {
    pub(super) fn observe(&mut self, run: &Observed<'_>, tried: &[Tried<'_>]) {
        for done in run.done.iter().flatten() {
            let of_kind = self.0.entry(named(done).to_owned()).or_default();
            let took = done.returned.saturating_sub(done.called);
            of_kind.all += 1;
            of_kind.is_rare |= done.is_rare;
            of_kind.slow += u64::from(took > SLOW);
            of_kind.longest = of_kind.longest.max(took);
            of_kind.time += took;
            match done.ended {
                Ended::Done => of_kind.done += 1,
                Ended::Refused => of_kind.refused += 1,
                Ended::Failed(error) => {
                    of_kind.failed += 1;
                    of_kind.conflicts += u64::from(error == Some(Error::NOT_COMMITTED));
                }
                Ended::Unknown => {}
            }
        }
        // The operations that wrote, and whether only their session.
        let (mut wrote, mut effects) = (BTreeMap::new(), BTreeSet::new());
        for one in tried {
            let Some(operation) = one.operation() else { continue };
            let of_kind = self.0.entry(one.kind.to_owned()).or_default();
            of_kind.within += one.time();
            if let Some(mutations) = one.committed {
                wrote.insert(operation, one.kind);
                if !mutations.iter().all(is_of_session) {
                    effects.insert(operation);
                }
            }
        }
        let is_done =
            |operation: (u16, u32)| run.done(operation).is_some_and(|done| done.ended == Ended::Done);
        for (operation, kind) in wrote.into_iter().filter(|(operation, _)| is_done(*operation)) {
            let of_kind = self.0.entry(kind.to_owned()).or_default();
            of_kind.wrote += 1;
            of_kind.empty += u64::from(!effects.contains(&operation));
        }
    }

    pub(super) fn merge(&mut self, other: &Outcomes) {
        for (kind, other) in &other.0 {
            let sum = self.0.entry(kind.clone()).or_default();
            sum.all += other.all;
            sum.done += other.done;
            sum.refused += other.refused;
            sum.failed += other.failed;
            sum.conflicts += other.conflicts;
            sum.is_rare |= other.is_rare;
            sum.slow += other.slow;
            sum.longest = sum.longest.max(other.longest);
            sum.time += other.time;
            sum.within += other.within;
            sum.wrote += other.wrote;
            sum.empty += other.empty;
        }
    }

    pub(super) fn advise(&self) -> Vec<AdviceEntry> {
        let topics = [OfKind::conflicts, OfKind::rarely, OfKind::slow, OfKind::outside, OfKind::empty];
        let of_topic = |of: &fn(&OfKind, &str) -> Option<AdviceEntry>| {
            self.0.iter().filter_map(|(kind, outcomes)| of(outcomes, kind)).collect::<Vec<_>>()
        };
        topics.iter().flat_map(of_topic).collect()
    }
}

impl OfKind {
    fn conflicts(&self, kind: &str) -> Option<AdviceEntry> {
        let measured = format!(
            "{kind} failed with not_committed in {} of its operations ({}): a retry had been safe",
            share(self.conflicts, self.all),
            count(self.conflicts)
        );
        let number = (self.conflicts as f64, "operations");
        let of = || entry("returned conflicts", Severity::Look, Some(kind), measured, number, CONFLICT_RETRY);
        (self.conflicts > 0).then(of)
    }

    fn rarely(&self, kind: &str) -> Option<AdviceEntry> {
        if self.is_rare || self.all < FEWEST || self.done * 100 >= self.all * RARE {
            return None;
        }
        let measured = format!(
            "{} of {} operations {kind} were done: {} were refused, {} failed, {} are unknown",
            share(self.done, self.all),
            count(self.all),
            count(self.refused),
            count(self.failed),
            count(self.all - self.done - self.refused - self.failed),
        );
        let number = (self.done as f64 * 100.0 / self.all as f64, "% of operations");
        Some(entry("rarely done", Severity::Look, Some(kind), measured, number, RARELY))
    }

    fn slow(&self, kind: &str) -> Option<AdviceEntry> {
        let measured = format!(
            "{} of {} operations {kind} took longer than {}, at most {}",
            share(self.slow, self.all),
            count(self.all),
            time(SLOW),
            time(self.longest),
        );
        let number = (self.longest as f64 / 1e9, "s");
        (self.slow > 0)
            .then(|| entry("slow operations", Severity::Look, Some(kind), measured, number, FINISH))
    }

    fn outside(&self, kind: &str) -> Option<AdviceEntry> {
        let mean = self.time.saturating_sub(self.within) / self.all.max(1);
        let measured =
            format!("{kind} spends {} of an operation outside of transactions, on average", time(mean));
        let number = (mean as f64 / 1e9, "s");
        let of =
            || entry("time outside of transactions", Severity::Look, Some(kind), measured, number, CALLERS);
        (mean >= OUTSIDE).then(of)
    }

    fn empty(&self, kind: &str) -> Option<AdviceEntry> {
        // What never writes anything else need not.
        if self.wrote < FEWEST || self.empty == self.wrote || self.empty * 100 < self.wrote * EMPTY {
            return None;
        }
        let measured = format!(
            "{} of the operations {kind} that were done wrote nothing but the record of their session",
            share(self.empty, self.wrote)
        );
        let number = (self.empty as f64 * 100.0 / self.wrote as f64, "% of operations");
        Some(entry("no effect", Severity::Look, Some(kind), measured, number, NO_EFFECT))
    }
}
