//! The report of a run: what the cluster did, and which errors and unknown results the program received.

use crate::{
    ClusterName,
    settings::{Settings, profile_name},
    snapshot::{RESTORER, Rows},
    stale::Stale,
};
use bytes::Bytes;
use shaketable_sim::{
    faults::Family,
    history::{Attempt, Call, History, Reported},
    ids::{AttemptId, ClientId, NodeId},
    proto::{KeyRange, Mutation},
    rt::{MILLISECOND, Nanos},
    trace::Event,
    world::World,
};
use shaketable_tx::{Error, show};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// How many writes of an unknown result, and how many keys of conflicts, are listed.
const LISTED: usize = 20;

/// How many unknown results are listed, and how many different keys of conflicts are counted.
const COUNTED: usize = 1_000;

/// How many transactions that decided by what was no longer true are told of.
pub const TOLD: usize = 5;

/// What is said before them.
const STALE: &str = "decided by what was no longer true, which FoundationDB does not refuse:";

/// How the line of a report begins that accuses the simulated cluster, and not the program.
pub const ACCUSED: &str = "SIMULATED CLUSTER FAILED: ";

/// Begins the line of a report that has the variables which repeat its run, [`Settings::again`].
pub const AGAIN: &str = "again: ";

/// The line of a report that accuses the simulated cluster: nothing else that the run shows can be relied on.
pub fn accused(report: &str) -> Option<&str> {
    report.lines().find(|line| line.starts_with(ACCUSED))
}

/// What reports add up to, read from their text: that of a process that has ended is all that there is of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Attempts of transactions.
    pub attempts: u64,
    /// Those that committed.
    pub committed: u64,
    /// Those that committed, and wrote.
    pub wrote: u64,
    /// Those that were refused because of a conflict.
    pub conflicts: u64,
    /// Commits whose result the program was not told.
    pub unknown: u64,
    /// Those of them that committed.
    pub unknown_committed: u64,
    /// Faults.
    pub faults: u64,
}

impl Totals {
    /// How the lines begin that have the numbers.
    const ATTEMPTS: &str = "attempts: ";
    const FAULTS: &str = "faults: ";
    const UNKNOWN: &str = "unknown results: ";

    /// Adds the numbers of a report, of all its clusters.
    pub fn add(&mut self, report: &str) {
        let conflict = format!(" times {}", Error::NOT_COMMITTED);
        for line in report.lines() {
            if let Some(numbers) = line.strip_prefix(Self::ATTEMPTS) {
                add_numbers(numbers, [&mut self.attempts, &mut self.committed, &mut self.wrote]);
            } else if let Some(numbers) = line.strip_prefix(Self::UNKNOWN) {
                add_numbers(numbers, [&mut self.unknown, &mut self.unknown_committed]);
            } else if let Some(numbers) = line.strip_prefix(Self::FAULTS) {
                add_numbers(numbers, [&mut self.faults]);
            } else if let Some(number) = line.strip_suffix(&conflict) {
                add_numbers(number, [&mut self.conflicts]);
            }
        }
    }
}

/// Adds the numbers of a line, which commas separate.
fn add_numbers<const N: usize>(line: &str, sums: [&mut u64; N]) {
    for (part, sum) in line.split(',').zip(sums) {
        let number = part.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        *sum += number.unwrap_or_default();
    }
}

/// The report of a run whose simulator panicked.
pub fn of_panic(settings: &Settings, panic: &str) -> String {
    let panic = panic.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{ACCUSED}the simulator panicked: {panic}\n{AGAIN}{}\n", settings.again())
}

/// A commit whose result the program was not told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownResult {
    /// The number of the attempt.
    pub attempt: usize,
    /// When it was reported.
    pub at: Nanos,
    /// The error that was reported.
    pub error: Error,
    /// Whether it is committed.
    pub is_committed: bool,
    /// What it wrote: the first keys.
    pub writes: Vec<String>,
    /// The next attempt at the same transaction, if both committed, and what it did that the first had not
    /// done, or did once more: an operation that does not have the same effect twice.
    pub again: Option<(usize, Vec<String>)>,
}

/// What a run has come to when its program ends, before the cluster is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The hash of all events, and their number. Runs that were equal have equal hashes.
    pub hash: (u64, u64),
    /// The events, if the settings keep them.
    pub events: Vec<Event>,
    /// Whether callbacks waited for answers and it could not be detected when the program was quiescent: its
    /// threads never all slept, or the system does not show it. The seed alone does not determine such a run.
    pub is_quiescence_unknown: bool,
    /// The virtual time.
    pub virtual_time: Nanos,
    /// Faults, with their numbers.
    pub faults: BTreeMap<Family, u64>,
}

impl End {
    /// How it is now.
    pub fn of(world: &World, is_quiescence_unknown: bool) -> End {
        End {
            hash: world.trace.hash(),
            events: world.trace.take(),
            is_quiescence_unknown,
            virtual_time: world.clock.now(),
            faults: world.faults.delivered(),
        }
    }
}

/// Everything that happened in a run, for who tells it. The events are in the [`End`].
pub struct Recording {
    /// Its transactions.
    pub history: History,
    /// The names of the machines that events name.
    pub machines: BTreeMap<NodeId, String>,
    /// The errors that the program was given as answers, with their numbers.
    pub errors: BTreeMap<Error, u64>,
}

impl Recording {
    /// Takes what a run has left.
    pub fn take(world: &World, end: &End) -> Recording {
        let named = end.events.iter().map(|event| (event.node, world.name(event.node)));
        let history = std::mem::take(&mut *world.history.lock());
        Recording { machines: named.collect(), history, errors: BTreeMap::new() }
    }
}

/// What happened in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What determined the run.
    pub settings: Settings,
    /// How it was when the program ended.
    pub end: End,
    /// What the judges of the simulated cluster found against it: nothing, unless the simulator is wrong.
    pub objections: Vec<String>,
    /// Attempts of transactions.
    pub attempts: usize,
    /// Attempts that committed.
    pub committed: usize,
    /// Those of them that wrote.
    pub wrote: usize,
    /// The errors of commits and of attempts that ended otherwise, with their numbers.
    pub errors: BTreeMap<Error, usize>,
    /// The number of commits whose result the program was not told.
    pub unknown: usize,
    /// The number of those of them that committed.
    pub unknown_committed: usize,
    /// The first of them.
    pub unknown_results: Vec<UnknownResult>,
    /// Attempts of which not everything was judged, because they ended after what they read was forgotten.
    pub late: u64,
    /// Where the read conflict ranges of refused transactions begin, most frequent first.
    pub hot_keys: Vec<(String, usize)>,
    /// What was decided by what was no longer true, most telling first.
    pub stale: Vec<Stale>,
    /// The data with which the cluster ended, if the settings ask for it.
    pub rows: Rows,
    /// The further clusters of the run, by their names.
    pub further: Vec<(ClusterName, Report)>,
}

/// What the attempts of a run add up to.
#[derive(Default)]
pub struct Tally {
    committed: usize,
    wrote: usize,
    errors: BTreeMap<Error, usize>,
    unknown: usize,
    unknown_committed: usize,
    unknown_results: Vec<UnknownResult>,
    conflicts: BTreeMap<KeyRange, usize>,
    /// The transactions of unknown results that may be run again: the client and the number, and the place
    /// of the result and the keys that it wrote.
    unsettled: BTreeMap<(ClientId, u64), (usize, BTreeSet<Bytes>)>,
    pub(crate) stale: Vec<Stale>,
    /// The attempts that wrote the data with which the cluster began, and count for nothing else.
    restored: usize,
}

impl Tally {
    /// Adds an attempt that has ended.
    pub fn add(&mut self, id: AttemptId, attempt: &Attempt, is_committed: bool) {
        if attempt.client == RESTORER {
            self.restored += 1;
            return;
        }
        self.settle(id, attempt, is_committed);
        let error = match attempt.reported {
            Reported::Failed(error) => error,
            Reported::ReadOnly | Reported::Committed { .. } => {
                self.committed += 1;
                self.wrote += usize::from(attempt.reported != Reported::ReadOnly);
                return;
            }
            Reported::Nothing => return,
        };
        *self.errors.entry(error).or_default() += 1;
        if error == Error::NOT_COMMITTED {
            self.conflicted(&attempt.read_ranges);
        }
        if attempt.commit_sent.is_some() && error.leaves_commit_unknown() {
            self.unknown += 1;
            self.unknown_committed += usize::from(is_committed);
            if self.unknown_results.len() < COUNTED {
                if let Some(origin) = attempt.origin.filter(|_| is_committed) {
                    let keys = writes(attempt).map(written).cloned().collect();
                    let place = self.unknown_results.len();
                    self.unsettled.insert((attempt.client, origin.transaction), (place, keys));
                }
                self.unknown_results.push(unknown(id, attempt, error, is_committed));
            }
        }
    }

    /// If an attempt follows one of the same transaction whose result is unknown: what both have done.
    fn settle(&mut self, id: AttemptId, attempt: &Attempt, is_committed: bool) {
        let Some(origin) = attempt.origin else { return };
        if !is_committed {
            return;
        }
        let Some((place, keys)) = self.unsettled.remove(&(attempt.client, origin.transaction)) else {
            return;
        };
        let is_new = |mutation: &&Mutation| match mutation {
            Mutation::Atomic(..) => true,
            mutation => !keys.contains(written(mutation)),
        };
        let again: Vec<String> = writes(attempt).filter(is_new).take(LISTED).map(describe).collect();
        if !again.is_empty() {
            self.unknown_results[place].again = Some((id.0 as usize, again));
        }
    }

    fn conflicted(&mut self, ranges: &[KeyRange]) {
        // The range that a transaction has of its own, so that it conflicts with its retry, is nobody's key.
        for range in ranges.iter().filter(|range| !range.begin.starts_with(b"\xff/SC/")) {
            if self.conflicts.len() < COUNTED || self.conflicts.contains_key(range) {
                *self.conflicts.entry(range.clone()).or_default() += 1;
            }
        }
    }

    /// The ranges with most conflicts, most frequent first.
    fn hot_keys(&self) -> Vec<(String, usize)> {
        let mut keys: Vec<_> = self.conflicts.iter().collect();
        keys.sort_by_key(|(_, times)| std::cmp::Reverse(**times));
        keys.truncate(LISTED);
        keys.into_iter().map(|(range, times)| (show::range(&range.begin, &range.end), *times)).collect()
    }
}

impl Report {
    /// The report of a run that has ended and was judged.
    pub fn of(
        settings: &Settings,
        history: &History,
        end: End,
        tally: Tally,
        objections: Vec<String>,
    ) -> Report {
        Report {
            settings: settings.clone(),
            end,
            objections,
            attempts: history.first as usize + history.attempts.len() - tally.restored,
            committed: tally.committed,
            wrote: tally.wrote,
            hot_keys: tally.hot_keys(),
            errors: tally.errors,
            unknown: tally.unknown,
            unknown_committed: tally.unknown_committed,
            unknown_results: tally.unknown_results,
            late: history.late,
            stale: tally.stale,
            rows: Rows::new(),
            further: Vec::new(),
        }
    }
}

/// The unknown result of an attempt.
fn unknown(id: AttemptId, attempt: &Attempt, error: Error, is_committed: bool) -> UnknownResult {
    UnknownResult {
        attempt: id.0 as usize,
        at: attempt.ended,
        error,
        is_committed,
        writes: writes(attempt).map(describe).take(LISTED).collect(),
        again: None,
    }
}

fn writes(attempt: &Attempt) -> impl Iterator<Item = &Mutation> {
    attempt.calls.iter().filter_map(|call| match call {
        Call::Write(mutation) => Some(mutation),
        _ => None,
    })
}

/// The key that a mutation writes; where a range that it clears begins.
fn written(mutation: &Mutation) -> &Bytes {
    match mutation {
        Mutation::Set(key, _) | Mutation::Atomic(key, ..) => key,
        Mutation::ClearRange(range) => &range.begin,
    }
}

fn describe(mutation: &Mutation) -> String {
    match mutation {
        Mutation::Set(key, _) => format!("set {}", show::key(key)),
        Mutation::ClearRange(range) => format!("clear {}", show::range(&range.begin, &range.end)),
        Mutation::Atomic(key, _, operation) => format!("{operation:?} {}", show::key(key)),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { seed, faults: profile, .. } = &self.settings;
        writeln!(f, "shaketable: seed {}, faults {}", seed.0, profile_name(*profile))?;
        self.write_cluster(f)?;
        for (name, report) in &self.further {
            writeln!(f, "cluster {}", name.0.escape_debug())?;
            report.write_cluster(f)?;
        }
        let restored = match self.settings.restored.len() {
            0 => String::new(),
            1 => ", with the row that was restored".to_owned(),
            rows => format!(", with the {rows} rows that were restored"),
        };
        writeln!(f, "{AGAIN}{}{restored}", self.settings.again())
    }
}

impl Report {
    /// What happened in one cluster.
    fn write_cluster(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for objection in &self.objections {
            writeln!(f, "{ACCUSED}{}", objection.split_whitespace().collect::<Vec<_>>().join(" "))?;
        }
        if self.objections.is_empty() {
            writeln!(f, "the cluster kept FoundationDB's promises, as its judges found")?;
        }
        let End { hash: (hash, events), virtual_time, faults, .. } = &self.end;
        writeln!(f, "events: {events}, hash {hash:016x}")?;
        if self.end.is_quiescence_unknown {
            writeln!(f, "not determined by the seed alone: it is not known when the program rests")?;
        }
        writeln!(f, "virtual time: {} ms", virtual_time / MILLISECOND)?;
        writeln!(
            f,
            "{}{}, {} committed, {} of them wrote",
            Totals::ATTEMPTS,
            self.attempts,
            self.committed,
            self.wrote
        )?;
        for (error, times) in &self.errors {
            writeln!(f, "  {times} times {error}")?;
        }
        writeln!(f, "{}{}", Totals::FAULTS, faults.values().sum::<u64>())?;
        for (family, times) in faults {
            writeln!(f, "  {times} times {}", family.name())?;
        }
        if self.late > 0 {
            writeln!(f, "not judged in full: {} that ended after what they read was forgotten", self.late)?;
        }
        if !self.stale.is_empty() {
            writeln!(f, "{STALE}")?;
        }
        for stale in self.stale.iter().take(TOLD) {
            let [first, second] = stale.told(|id| format!("attempt {}", id.0));
            writeln!(f, "  {first}\n    {second}")?;
        }
        if self.stale.len() > TOLD {
            writeln!(f, "  … {} more", self.stale.len() - TOLD)?;
        }
        writeln!(f, "{}{}, {} committed", Totals::UNKNOWN, self.unknown, self.unknown_committed)?;
        for result in &self.unknown_results {
            let truth = if result.is_committed { "committed" } else { "not committed" };
            let at = result.at / MILLISECOND;
            writeln!(f, "  attempt {} at {at} ms: {}, and it is {truth}", result.attempt, result.error)?;
            result.writes.iter().try_for_each(|write| writeln!(f, "    {write}"))?;
            if let Some((attempt, writes)) = &result.again {
                writeln!(f, "    and attempt {attempt} ran it again, and committed as well:")?;
                writes.iter().try_for_each(|write| writeln!(f, "      {write}"))?;
            }
        }
        if self.unknown > self.unknown_results.len() {
            writeln!(f, "  … {} more", self.unknown - self.unknown_results.len())?;
        }
        if !self.hot_keys.is_empty() {
            writeln!(f, "keys of conflicts:")?;
        }
        for (key, times) in &self.hot_keys {
            writeln!(f, "  {times} times {key}")?;
        }
        Ok(())
    }

    /// The reports of all clusters of the run, the first without its name.
    pub fn clusters(&self) -> impl Iterator<Item = (Option<&ClusterName>, &Report)> {
        let further = self.further.iter().map(|(name, report)| (Some(name), report));
        std::iter::once((None, self)).chain(further)
    }
}
