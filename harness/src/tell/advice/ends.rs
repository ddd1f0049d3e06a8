//! Ends: operations that take long while the cluster serves others, and kinds of operations that are rarely
//! done.

use super::{
    entry,
    guidelines::{RARE, SLOW, STARVED},
    traffic::{Observed, SEVERAL, Tried, named},
    units::{share, time},
};
use crate::judge::slow::Served;
use shaketable_reports::{AdviceEntry, Outcomes, Severity, text::count};
use shaketable_sim::rt::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// The number of operations of a kind from which their share says something.
const FEWEST: u64 = 100;
/// A kind is rarely done if it is in less than one of so many calls.
const RARELY: u64 = 10;

/// The operations of a kind.
#[derive(Clone, Debug, Default, PartialEq)]
struct OfKind {
    how: Outcomes,
    /// Those that took long, and the time of the longest.
    slow: (u64, Nanos),
}

/// How the operations of a run or of several ended, by kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ends(BTreeMap<String, OfKind>);

impl Ends {
    /// Observes the operations of a run.
    pub(super) fn observe(&mut self, run: &Observed<'_>, tried: &[Tried<'_>]) {
        // What waits for another operation may take as long as that one lets it wait.
        let waits: BTreeSet<_> =
            tried.iter().filter(|one| !one.attempt.watches.is_empty()).filter_map(Tried::operation).collect();
        let mut served = None;
        for (client, list) in run.done.iter().enumerate() {
            for (index, done) in list.iter().enumerate() {
                let of_kind = self.0.entry(named(done).to_owned()).or_default();
                of_kind.how.add(&done.how);
                let took = done.returned.saturating_sub(done.called);
                if took <= SLOW || !done.by_itself || waits.contains(&(client as u16, index as u32)) {
                    continue;
                }
                let served = served.get_or_insert_with(|| Served::of(run.history));
                let took = served.others(client, done.called, done.returned);
                if took > SLOW {
                    of_kind.slow = (of_kind.slow.0 + 1, of_kind.slow.1.max(took));
                }
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Ends) {
        for (kind, other) in &other.0 {
            let of_kind = self.0.entry(kind.clone()).or_default();
            of_kind.how.add(&other.how);
            of_kind.slow = (of_kind.slow.0 + other.slow.0, of_kind.slow.1.max(other.slow.1));
        }
    }

    /// An entry for each kind that is slow, and for each that is rarely done.
    pub(super) fn advise(&self) -> Vec<AdviceEntry> {
        let slow = self.0.iter().filter(|(_, of_kind)| of_kind.slow.0 > 0).map(|(kind, of_kind)| {
            let (n, longest) = of_kind.slow;
            let measured = format!(
                "{kind} took up to {} in which the cluster served others, and more than {} in {} of its calls ({})",
                time(longest),
                time(SLOW),
                share(n, of_kind.how.all()),
                count(n),
            );
            entry("slow", Severity::Look, Some(kind), measured, (longest as f64 / 1e9, "s"), STARVED)
        });
        let rarely = |(kind, of_kind): &(&String, &OfKind)| {
            let how = &of_kind.how;
            how.all() >= FEWEST && how.done * RARELY < how.all() && !how.rare && *kind != SEVERAL
        };
        let rare = self.0.iter().filter(rarely).map(|(kind, OfKind { how, .. })| {
            let (done, others) = (share(how.done, how.all()), how.others());
            let measured = format!("{kind} was done in {done} of {} calls ({others})", count(how.all()));
            let number = (how.done as f64 * 100.0 / how.all() as f64, "%");
            entry("rarely done", Severity::Look, Some(kind), measured, number, RARE)
        });
        slow.chain(rare).collect()
    }
}
