//! What is damaged: the rows that a calm run of the workload has stored at one of its versions.

use super::bytes::Damages;
use crate::{
    describe::{
        erased::{AnyValue, AnyWorkload},
        sessions,
        workload::Workload,
    },
    judge::{Keyspace, finding::Verdict},
    run::{
        plan::{Demands, Plan},
        runner,
    },
};
use parking_lot::Mutex;
use shaketable_sim::{
    faults::Profile,
    history::History,
    proto::LogEntry,
    seed::{Seed, Stream},
};
use shaketable_tx::KeyValue;
use std::{collections::BTreeMap, sync::Arc};

/// How many runs are tried until one stores something.
const MOST_SEEDS: u64 = 10;

/// One in this many stores damages the slots of sessions, and the others all that is the layer's own.
const STORES_PER_SESSIONS: u64 = 6;

/// Stored rows, and the operations of the run that stored them.
pub(super) struct Store {
    /// What it was drawn from.
    pub(super) number: u64,
    pub(super) workload: AnyWorkload,
    /// The operations with their clients, by kind: one that is drawn rarely is done as often as another one.
    pub(super) operations: Vec<Vec<(usize, AnyValue)>>,
    pub(super) rows: Vec<KeyValue>,
    pub(super) damages: Damages,
}

impl Store {
    /// What the first of a few runs stores that stores anything. The error says why there is nothing to
    /// damage.
    pub(super) fn draw<W: Workload>(number: u64) -> Result<Store, String> {
        let seeds = (0..MOST_SEEDS).map(|n| Seed(number + (n << 32)));
        let found = seeds.map(|seed| Store::of::<W>(number, seed)).find_map(Result::transpose);
        found.unwrap_or_else(|| Err(format!("{MOST_SEEDS} calm runs store nothing but sessions")))
    }

    /// What the run of a seed stores; `None` if it stores nothing but sessions.
    fn of<W: Workload>(number: u64, seed: Seed) -> Result<Option<Store>, String> {
        let plan = Plan::draw::<W>(seed, &Demands { profile: Profile::Calm, ..Demands::default() });
        let stored = Mutex::new(Vec::new());
        let result = runner::observe(&plan, &|seen| {
            *stored.lock() = rows(seen.history, &mut seed.stream("foreign store"));
        });
        if result.verdict() != Verdict::Passed {
            let findings: Vec<&str> = result.findings.iter().map(|f| &f.message[..]).collect();
            let findings = findings.join("; ");
            return Err(format!("the calm run of seed {} does not pass: {findings}", seed.0));
        }
        let rows = stored.into_inner();
        if rows.is_empty() {
            return Ok(None);
        }
        let of_sessions = number % STORES_PER_SESSIONS == STORES_PER_SESSIONS - 1;
        let damaged = |row: &&KeyValue| sessions::has(&row.key) == of_sessions;
        let damaged: Vec<KeyValue> = rows.iter().filter(damaged).cloned().collect();
        let damages = Damages::new(if damaged.is_empty() { &rows } else { &damaged });
        let workload = plan.configuration;
        let mut operations: BTreeMap<&'static str, Vec<(usize, AnyValue)>> = BTreeMap::new();
        for (client, list) in plan.operations.into_iter().enumerate() {
            for op in list {
                for kind in workload.kinds(&op) {
                    operations.entry(kind).or_default().push((client, op.clone()));
                }
            }
        }
        if operations.is_empty() {
            return Ok(None);
        }
        let operations = operations.into_values().collect();
        Ok(Some(Store { number, workload, operations, rows, damages }))
    }
}

/// The rows at a drawn version, in the second half of those at which there are any besides sessions': at its
/// end a run may have removed all others.
fn rows(history: &History, draws: &mut Stream) -> Vec<KeyValue> {
    let entries: Vec<_> = history.committed().filter(|entry| !entry.transactions.is_empty()).collect();
    let mut state = Keyspace::default();
    let has_rows = |(at, entry): (usize, &&Arc<LogEntry>)| {
        apply(&mut state, entry);
        user_rows(&state).any(|row| !sessions::has(&row.key)).then_some(at)
    };
    let filled: Vec<usize> = entries.iter().enumerate().filter_map(has_rows).collect();
    if filled.is_empty() {
        return Vec::new();
    }
    let last = *draws.pick(&filled[filled.len() / 2..]);
    let mut state = Keyspace::default();
    entries[..=last].iter().for_each(|entry| apply(&mut state, entry));
    user_rows(&state).collect()
}

fn apply(state: &mut Keyspace, entry: &LogEntry) {
    entry.transactions.iter().flat_map(|tx| &tx.mutations).for_each(|mutation| state.apply(mutation, None));
}

fn user_rows(state: &Keyspace) -> impl Iterator<Item = KeyValue> {
    let rows = state.0.iter().map(|(key, value)| KeyValue { key: key.clone(), value: value.clone() });
    rows.take_while(|row| row.key.first() != Some(&0xff))
}
