//! The report of a run: what the cluster did to the program.

use crate::{
    keys,
    settings::{Settings, profile_name},
};
use shaketable_layers::tx::Error;
use shaketable_sim::{
    faults::Family,
    history::{Attempt, AttemptId, Call, History, Reported},
    proto::{KeyRange, Mutation},
    rt::{MILLISECOND, Nanos},
    trace::Event,
    world::World,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// How many writes of an unknown result, and how many keys of conflicts, are listed.
const LISTED: usize = 20;

/// How the line of a report begins that accuses the simulated cluster, and not the program.
pub const ACCUSED: &str = "SIMULATED CLUSTER FAILED: ";

/// The line of a report that accuses the simulated cluster: nothing else that the run shows can be relied on.
pub fn accused(report: &str) -> Option<&str> {
    report.lines().find(|line| line.starts_with(ACCUSED))
}

/// The report of a run whose simulator panicked.
pub fn of_panic(settings: &Settings, panic: &str) -> String {
    let panic = panic.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{ACCUSED}the simulator panicked: {panic}\nagain: {}\n", settings.again())
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
}

/// What a run has come to when its program ends, before the cluster is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The hash of all events, and their number. Runs that were equal have equal hashes.
    pub hash: (u64, u64),
    /// The events, if the settings keep them.
    pub events: Vec<Event>,
    /// Whether the program was called back, and its threads never rested or the system does not tell when they do: the
    /// seed alone does not determine the run.
    pub is_restless: bool,
    /// The virtual time.
    pub virtual_time: Nanos,
    /// Faults, with their numbers.
    pub faults: BTreeMap<Family, u64>,
}

impl End {
    /// How it is now.
    pub fn of(world: &World, is_restless: bool) -> End {
        End {
            hash: world.trace.hash(),
            events: world.trace.take(),
            is_restless,
            virtual_time: world.clock.now(),
            faults: world.faults.delivered(),
        }
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
    /// The errors of commits and of attempts that ended otherwise, with their numbers.
    pub errors: BTreeMap<Error, usize>,
    /// Commits whose result the program was not told.
    pub unknown: Vec<UnknownResult>,
    /// Where the read conflict ranges of refused transactions begin, most frequent first.
    pub hot_keys: Vec<(String, usize)>,
}

impl Report {
    /// The report of a run that has ended and was judged.
    pub fn of(settings: &Settings, world: &World, end: End, objections: Vec<String>) -> Report {
        let history = world.history.lock();
        let committed: BTreeSet<AttemptId> = history
            .committed()
            .flat_map(|entry| &entry.transactions)
            .filter_map(|transaction| transaction.attempt)
            .collect();
        let attempts = || history.attempts.iter().enumerate().filter_map(|(n, a)| Some((n, a.as_ref()?)));
        let mut errors = BTreeMap::new();
        let mut successes = 0;
        for (_, attempt) in attempts() {
            match attempt.reported {
                Reported::Failed(error) => *errors.entry(error).or_default() += 1,
                Reported::ReadOnly | Reported::Committed { .. } => successes += 1,
                Reported::Nothing => {}
            }
        }
        let unknown =
            attempts().filter_map(|(number, attempt)| unknown(number, attempt, &committed)).collect();
        Report {
            settings: settings.clone(),
            end,
            objections,
            attempts: history.attempts.len(),
            committed: successes,
            errors,
            unknown,
            hot_keys: hot_keys(&history),
        }
    }
}

/// The unknown result of an attempt, if it has one.
fn unknown(number: usize, attempt: &Attempt, committed: &BTreeSet<AttemptId>) -> Option<UnknownResult> {
    let Reported::Failed(error) = attempt.reported else { return None };
    if attempt.commit_sent.is_none() || !error.leaves_commit_unknown() {
        return None;
    }
    let writes = attempt.calls.iter().filter_map(|call| match call {
        Call::Write(mutation) => Some(describe(mutation)),
        _ => None,
    });
    Some(UnknownResult {
        attempt: number,
        at: attempt.ended,
        error,
        is_committed: committed.contains(&AttemptId(number as u32)),
        writes: writes.take(LISTED).collect(),
    })
}

fn describe(mutation: &Mutation) -> String {
    match mutation {
        Mutation::Set(key, _) => format!("set {}", keys::show(key)),
        Mutation::ClearRange(range) => format!("clear {}", keys::show_range(&range.begin, &range.end)),
        Mutation::Atomic(key, _, operation) => format!("{operation:?} {}", keys::show(key)),
    }
}

fn hot_keys(history: &History) -> Vec<(String, usize)> {
    let refused = history.attempts.iter().flatten();
    let refused = refused.filter(|a| a.reported == Reported::Failed(Error::NOT_COMMITTED));
    let mut keys: BTreeMap<String, usize> = BTreeMap::new();
    // The range that a transaction has of its own, so that it conflicts with its retry, is nobody's key.
    let is_own = |range: &KeyRange| range.begin.starts_with(b"\xff/SC/");
    for range in refused.flat_map(|attempt| &attempt.read_ranges).filter(|range| !is_own(range)) {
        *keys.entry(keys::show_range(&range.begin, &range.end)).or_default() += 1;
    }
    let mut keys: Vec<_> = keys.into_iter().collect();
    keys.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    keys.truncate(LISTED);
    keys
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { seed, faults: profile, .. } = &self.settings;
        writeln!(f, "shaketable: seed {}, faults {}", seed.0, profile_name(*profile))?;
        for objection in &self.objections {
            writeln!(f, "{ACCUSED}{}", objection.split_whitespace().collect::<Vec<_>>().join(" "))?;
        }
        if self.objections.is_empty() {
            writeln!(f, "the cluster kept FoundationDB's promises, as its judges found")?;
        }
        let End { hash: (hash, events), virtual_time, faults, .. } = &self.end;
        writeln!(f, "events: {events}, hash {hash:016x}")?;
        if self.end.is_restless {
            writeln!(f, "not determined by the seed alone: it is not known when the program rests")?;
        }
        writeln!(f, "virtual time: {} ms", virtual_time / MILLISECOND)?;
        writeln!(f, "attempts: {}, {} committed", self.attempts, self.committed)?;
        for (error, times) in &self.errors {
            writeln!(f, "  {times} times {error}")?;
        }
        writeln!(f, "faults: {}", faults.values().sum::<u64>())?;
        for (family, times) in faults {
            writeln!(f, "  {times} times {}", family.name())?;
        }
        writeln!(f, "unknown results: {}", self.unknown.len())?;
        for result in &self.unknown {
            let truth = if result.is_committed { "committed" } else { "not committed" };
            let at = result.at / MILLISECOND;
            writeln!(f, "  attempt {} at {at} ms: {}, and it is {truth}", result.attempt, result.error)?;
            result.writes.iter().try_for_each(|write| writeln!(f, "    {write}"))?;
        }
        if !self.hot_keys.is_empty() {
            writeln!(f, "keys of conflicts:")?;
        }
        for (key, times) in &self.hot_keys {
            writeln!(f, "  {times} times {key}")?;
        }
        writeln!(f, "again: {}", self.settings.again())
    }
}
