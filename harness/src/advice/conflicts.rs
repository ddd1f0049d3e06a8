//! Conflicts: which kind of operations conflicts with which, over which keys, and what was wasted.

use super::{
    entry,
    guidelines::CONFLICTS,
    place::Names,
    traffic::{Observed, Totals, Traffic, Tried},
    units::{share, time},
};
use crate::run::runner::written;
use shaketable_reports::{
    AdviceEntry, Severity,
    text::{count, plural},
};
use shaketable_sim::{
    history::{Attempt, Reported},
    proto::KeyRange,
    rt::Nanos,
};
use shaketable_tx::Error;
use std::collections::BTreeMap;

/// The least share of the attempts of a kind that conflicts must waste to be noted, per cent.
const NOTED: u64 = 5;
/// The least share of the time of all attempts that conflicts over a range must waste, per cent.
const NOTED_OF_ALL: u64 = 1;
/// The fewest conflicts that are noted.
const FEWEST: u64 = 5;

/// Attempts that were wasted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Waste {
    attempts: u64,
    time: Nanos,
}

impl Waste {
    fn add(&mut self, other: Waste) {
        self.attempts += other.attempts;
        self.time += other.time;
    }
}

/// What conflicted: a kind, what it read, and the kind and the write that came between.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Conflict {
    kind: String,
    read: KeyRange,
    by: String,
    write: KeyRange,
}

/// The conflicts of clients' attempts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Conflicts {
    found: BTreeMap<Conflict, Waste>,
    /// Conflicts that no committed write explains: faults.
    unexplained: Waste,
}

/// Conflicts over the same range, which are shown as one.
#[derive(Default)]
struct Group<'a> {
    waste: Waste,
    /// The kinds that were refused, and those that came between.
    refused: BTreeMap<&'a str, u64>,
    by: BTreeMap<&'a str, u64>,
}

impl Conflicts {
    /// Observes the attempts of a run that were refused with a conflict.
    pub(super) fn observe(&mut self, run: &Observed<'_>, tried: &[Tried<'_>]) {
        for one in tried.iter().filter(|one| one.attempt.reported == Reported::Failed(Error::NOT_COMMITTED)) {
            let waste = Waste { attempts: 1, time: one.time() };
            match found(run, one.attempt) {
                Some((read, by, write)) => {
                    let conflict = Conflict { kind: one.kind.to_owned(), read, by: by.to_owned(), write };
                    self.found.entry(conflict).or_default().add(waste);
                }
                None => self.unexplained.add(waste),
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Conflicts) {
        for (conflict, waste) in &other.found {
            self.found.entry(conflict.clone()).or_default().add(*waste);
        }
        self.unexplained.add(other.unexplained);
    }

    /// The keys that were written.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.found.keys().map(|conflict| &conflict.write.begin[..])
    }

    /// Which kinds conflicted over what, the ranges over which most was wasted first.
    pub(super) fn advise(&self, traffic: &Traffic, names: &Names) -> Vec<AdviceEntry> {
        let mut groups: BTreeMap<(String, String), Group<'_>> = BTreeMap::new();
        for (conflict, waste) in &self.found {
            let of = (names.range(&conflict.read), names.range(&conflict.write));
            let group = groups.entry(of).or_default();
            group.waste.add(*waste);
            *group.refused.entry(&conflict.kind).or_default() += waste.attempts;
            *group.by.entry(&conflict.by).or_default() += waste.attempts;
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse((group.waste.time, group.waste.attempts)));
        let all: u64 = traffic.kinds.values().map(|totals| totals.time).sum();
        let is_noted = |group: &Group<'_>| {
            let many =
                |(kind, n): (&&str, &u64)| *n >= FEWEST && n * 100 >= traffic.totals(kind).attempts * NOTED;
            group.waste.time * 100 >= all * NOTED_OF_ALL && group.refused.iter().any(many)
        };
        let noted = groups.iter().filter(|(_, group)| is_noted(group));
        let mut entries: Vec<AdviceEntry> =
            noted.map(|((read, write), group)| of_group((read, write), group, traffic)).collect();
        if entries.is_empty() {
            let sum = |of: fn(&Totals) -> u64| traffic.kinds.values().map(of).sum::<u64>();
            let (conflicts, attempts) = (sum(|totals| totals.conflicts), sum(|totals| totals.attempts));
            let measured = format!("{} of {} attempts conflicted", count(conflicts), count(attempts));
            let number = (conflicts as f64 * 100.0 / attempts.max(1) as f64, "% of attempts");
            entries.push(entry("conflicts", Severity::Fine, None, measured, number, CONFLICTS));
        }
        entries
    }
}

/// The kinds with the largest numbers.
fn largest<'a>(kinds: &BTreeMap<&'a str, u64>) -> Vec<(&'a str, u64)> {
    let mut kinds: Vec<_> = kinds.iter().map(|(kind, n)| (*kind, *n)).collect();
    kinds.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    kinds
}

/// The first names, and whether there are others.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first, second] => format!("{first} and {second}"),
        [first, second, ..] => format!("{first}, {second} and others"),
    }
}

fn of_group((read, write): (&str, &str), group: &Group<'_>, traffic: &Traffic) -> AdviceEntry {
    let with_share = |(kind, n): &(&str, u64)| {
        format!("{kind} ({} of its attempts)", share(*n, traffic.totals(kind).attempts))
    };
    let refused = largest(&group.refused);
    let shown: Vec<String> = refused.iter().map(with_share).collect();
    let by: Vec<String> = largest(&group.by).iter().map(|(kind, _)| (*kind).to_owned()).collect();
    let all: u64 = traffic.kinds.values().map(|totals| totals.time).sum();
    let measured = format!(
        "{read}, read by {}, was written by {} before the commit{}: {} and {} of virtual time wasted, {} of all",
        listed(&shown),
        listed(&by),
        if read == write { String::new() } else { format!(", as {write}") },
        plural(group.waste.attempts, "attempt", "attempts"),
        time(group.waste.time),
        share(group.waste.time, all),
    );
    let percent = group.waste.time as f64 * 100.0 / all.max(1) as f64;
    let kind = refused.first().map(|(kind, _)| *kind);
    entry("conflicts", Severity::Look, kind, measured, (percent, "% of time"), CONFLICTS)
}

/// The read of an attempt that conflicted, and the kind and the write that came between.
fn found<'a>(run: &Observed<'a>, attempt: &Attempt) -> Option<(KeyRange, &'a str, KeyRange)> {
    let since = attempt.read_version?;
    let later = &run.truth.entries[run.truth.entries.partition_point(|entry| entry.version <= since)..];
    later.iter().flat_map(|entry| &entry.transactions).find_map(|tx| {
        let writes = written(tx, run.history);
        let mut pairs =
            attempt.read_ranges.iter().flat_map(|read| writes.iter().map(move |write| (read, write)));
        let (read, write) = pairs.find(|(read, write)| read.intersects(write))?;
        Some((read.clone(), run.kind(tx.attempt), write.clone()))
    })
}
