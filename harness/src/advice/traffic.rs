//! The traffic of runs: what is extracted from a run's history, and how the traffic of several runs is
//! merged.

use super::{
    conflicts::Conflicts, growth::Growth, hot::Hot, open::LeftOpen, outcomes::Outcomes, place::Names,
    reads::Reads, sizes::Sizes, snapshot::Snapshots, units::rate, unread::Unread,
};
use crate::{
    judge::Truth,
    run::runner::{AUDITOR, Done, Observation},
};
use shaketable_reports::{AdviceEntry, WorkloadAdvice};
use shaketable_sim::{
    history::{Attempt, History, Reported},
    ids::AttemptId,
    judges::{SESSIONS, writes::Place},
    proto::Mutation,
    rt::Nanos,
};
use shaketable_tx::Error;
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::AddAssign,
};

/// The kind of the transactions of clients that belong to no operation.
const BETWEEN: &str = "(between operations)";
/// The kind of operations that do several things in one transaction.
const SEVERAL: &str = "(several at once)";
/// The kind of the transactions of others than clients.
const OTHERS: &str = "(not a client)";

/// The name of the kind of an operation.
pub(super) fn named(done: &Done) -> &str {
    match &*done.kind {
        "" => "operation",
        "several" => SEVERAL,
        kind => kind,
    }
}

/// A run, as the topics observe it.
pub(super) struct Observed<'a> {
    pub(super) history: &'a History,
    pub(super) truth: &'a Truth,
    /// The operations of each client.
    pub(super) done: &'a [Vec<Done>],
    /// From the first call to the last return.
    pub(super) time: Nanos,
}

/// An attempt of a client.
#[derive(Clone, Copy)]
pub(super) struct Tried<'a> {
    pub(super) attempt: &'a Attempt,
    pub(super) kind: &'a str,
    /// The mutations with which it committed.
    pub(super) committed: Option<&'a [Mutation]>,
    /// The place of that commit.
    pub(super) place: Option<Place>,
}

/// Neither a record of a session nor a key of the system.
pub(super) fn is_of_layer(key: &[u8]) -> bool {
    !key.starts_with(SESSIONS) && !key.starts_with(b"\xff")
}

impl<'a> Tried<'a> {
    /// The mutations with which it committed.
    pub(super) fn mutations(&self) -> impl Iterator<Item = &'a Mutation> + use<'a> {
        self.committed.into_iter().flatten()
    }

    /// How long it took from the request of its read version, nanoseconds.
    pub(super) fn time(&self) -> Nanos {
        match self.attempt.read_version {
            Some(_) => self.attempt.ended.saturating_sub(self.attempt.version_requested),
            None => 0,
        }
    }

    /// Whether it did what its operation wanted, in a transaction that writes or only reads.
    pub(super) fn is_complete(&self) -> bool {
        self.committed.is_some() || self.attempt.reported == Reported::ReadOnly
    }

    /// Whether it belongs to an operation that does one thing, and whose costs can be compared with those of
    /// its kind.
    pub(super) fn is_of_one_kind(&self) -> bool {
        self.attempt.operation.is_some() && self.kind != SEVERAL
    }

    /// The client's operation.
    pub(super) fn operation(&self) -> Option<(u16, u32)> {
        Some((self.attempt.client.0, self.attempt.operation?))
    }
}

impl<'a> Observed<'a> {
    /// The kind of what made an attempt.
    pub(super) fn kind(&self, id: Option<AttemptId>) -> &'a str {
        let attempt = id.and_then(|id| self.history.attempts.get(id.0 as usize)?.as_ref());
        attempt.map_or(OTHERS, |attempt| self.kind_of(attempt))
    }

    fn kind_of(&self, attempt: &Attempt) -> &'a str {
        match (attempt.client < AUDITOR, attempt.operation) {
            (true, Some(operation)) => self.done((attempt.client.0, operation)).map_or(BETWEEN, named),
            (true, None) => BETWEEN,
            (false, _) => OTHERS,
        }
    }

    /// A client's operation.
    pub(super) fn done(&self, (client, operation): (u16, u32)) -> Option<&'a Done> {
        self.done.get(usize::from(client))?.get(operation as usize)
    }

    /// The operation that made an attempt.
    pub(super) fn done_by(&self, one: &Tried<'_>) -> Option<&'a Done> {
        self.done(one.operation()?)
    }

    /// The attempts of clients.
    pub(super) fn tried(&self) -> Vec<Tried<'a>> {
        let mut committed: BTreeMap<AttemptId, (Place, &'a [Mutation])> = BTreeMap::new();
        for entry in &self.truth.entries {
            for tx in &entry.transactions {
                let place = (entry.version, u32::from(tx.batch_index));
                committed.extend(tx.attempt.map(|id| (id, (place, &tx.mutations[..]))));
            }
        }
        let attempts = self.history.attempts.iter().enumerate();
        attempts
            .filter_map(|(id, attempt)| Some((AttemptId(id as u32), attempt.as_ref()?)))
            .filter(|(_, attempt)| attempt.client < AUDITOR)
            .map(|(id, attempt)| Tried {
                attempt,
                kind: self.kind_of(attempt),
                committed: committed.get(&id).map(|(_, mutations)| *mutations),
                place: committed.get(&id).map(|(place, _)| *place),
            })
            .collect()
    }
}

/// The attempts and operations of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Operations.
    pub(super) operations: u64,
    /// Operations of which a transaction that writes committed.
    pub(super) writers: u64,
    /// Attempts.
    pub(super) attempts: u64,
    /// The virtual time of the attempts, nanoseconds.
    pub(super) time: Nanos,
    /// Attempts that conflicted.
    pub(super) conflicts: u64,
}

impl AddAssign<&Totals> for Totals {
    fn add_assign(&mut self, other: &Totals) {
        self.operations += other.operations;
        self.writers += other.writers;
        self.attempts += other.attempts;
        self.time += other.time;
        self.conflicts += other.conflicts;
    }
}

/// The traffic of one or more runs of a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    runs: u64,
    /// The smallest and the largest number of clients of a run.
    clients: Option<(u64, u64)>,
    operations: u64,
    time: Nanos,
    busiest: f64,
    pub(super) kinds: BTreeMap<String, Totals>,
    pub(super) hot: Hot,
    pub(super) conflicts: Conflicts,
    pub(super) sizes: Sizes,
    pub(super) reads: Reads,
    pub(super) growth: Growth,
    pub(super) snapshots: Snapshots,
    outcomes: Outcomes,
    open: LeftOpen,
    pub(super) unread: Unread,
}

impl Traffic {
    /// Observes a run.
    pub(crate) fn of(run: &Observation<'_>) -> Traffic {
        let Observation { history, done } = *run;
        let truth = Truth::of(history);
        let all = || done.iter().flatten();
        let first = all().map(|done| done.called).min().unwrap_or(0);
        let last = all().map(|done| done.returned).max().unwrap_or(0);
        let run = Observed { history, truth: &truth, done, time: last.saturating_sub(first) };
        let tried = run.tried();
        let mut traffic = Traffic {
            runs: 1,
            clients: Some((done.len() as u64, done.len() as u64)),
            operations: all().count() as u64,
            time: run.time,
            busiest: rate(all().count() as u64, run.time),
            kinds: totals(&run, &tried),
            ..Traffic::default()
        };
        traffic.hot.observe(&run, &tried);
        traffic.conflicts.observe(&run, &tried);
        traffic.sizes.observe(&tried);
        traffic.reads.observe(&run, &tried);
        traffic.growth.observe(&run, &tried);
        traffic.snapshots.observe(&run, &tried);
        traffic.outcomes.observe(&run, &tried);
        traffic.open.observe(&run);
        traffic.unread.observe(&run, &tried);
        traffic
    }

    /// Adds the traffic of other runs.
    pub fn merge(&mut self, other: &Traffic) {
        self.runs += other.runs;
        self.clients = match (self.clients, other.clients) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        self.operations += other.operations;
        self.time += other.time;
        self.busiest = self.busiest.max(other.busiest);
        for (kind, totals) in &other.kinds {
            *self.kinds.entry(kind.clone()).or_default() += totals;
        }
        self.hot.merge(&other.hot);
        self.conflicts.merge(&other.conflicts);
        self.sizes.merge(&other.sizes);
        self.reads.merge(&other.reads);
        self.growth.merge(&other.growth);
        self.snapshots.merge(&other.snapshots);
        self.outcomes.merge(&other.outcomes);
        self.open.merge(&other.open);
        self.unread.merge(&other.unread);
    }

    /// The totals of a kind.
    pub(super) fn totals(&self, kind: &str) -> Totals {
        self.kinds.get(kind).cloned().unwrap_or_default()
    }

    /// What the guidelines say about it, the most important entries first.
    fn entries(&self) -> Vec<AdviceEntry> {
        let mut names = Names::default();
        self.hot.ranges().chain(self.unread.ranges()).for_each(|range| names.add_range(range));
        self.conflicts.keys().chain(self.snapshots.keys()).for_each(|key| names.add(key));
        let mut entries = self.sizes.refused();
        entries.extend(self.hot.advise(&names));
        entries.extend(self.conflicts.advise(self, &names));
        entries.extend(self.snapshots.advise(self, &names));
        entries.extend(self.outcomes.advise());
        entries.extend(self.open.advise(self));
        entries.extend(self.unread.advise(&names));
        entries.extend(self.growth.advise());
        entries.extend(self.reads.advise());
        entries.extend(self.sizes.advise(&names));
        // A stable sort: the topics are in order of importance.
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.severity));
        entries
    }

    /// The advice on it, for a workload of this name.
    pub fn advice(&self, workload: &str, bug: Option<&str>) -> WorkloadAdvice {
        WorkloadAdvice {
            workload: workload.to_owned(),
            bug: bug.map(str::to_owned),
            runs: self.runs,
            failed: 0,
            clients: self.clients.unwrap_or_default(),
            operations: self.operations,
            rates: (rate(self.operations, self.time), self.busiest),
            entries: self.entries(),
        }
    }
}

fn totals(run: &Observed<'_>, tried: &[Tried<'_>]) -> BTreeMap<String, Totals> {
    let mut kinds: BTreeMap<String, Totals> = BTreeMap::new();
    for done in run.done.iter().flatten() {
        kinds.entry(named(done).to_owned()).or_default().operations += 1;
    }
    let mut writers = BTreeSet::new();
    for tried in tried {
        let totals = kinds.entry(tried.kind.to_owned()).or_default();
        totals.attempts += 1;
        totals.time += tried.time();
        totals.conflicts += u64::from(tried.attempt.reported == Reported::Failed(Error::NOT_COMMITTED));
        let is_first = tried.committed.is_some() && tried.operation().is_some_and(|op| writers.insert(op));
        totals.writers += u64::from(is_first);
    }
    kinds
}
