//! Converts a run into plain data for reports: its operations, its transactions with decoded keys and with
//! the writer of each value that was read, its faults, and the witness of the finding that decides the
//! verdict.

use super::{
    ends::{end, outcome, refusal},
    testbed::{AUDITOR, CHECKER, SETTER},
};
use crate::{
    describe::erased::{AnyValue, AnyWorkload},
    describe::sessions,
    describe::workload::Operation,
    judge::Truth,
    judge::finding::{Finding, deciding},
    run::plan::Plan,
};
use bytes::Bytes;
use shaketable_reports::{
    Access, CallEntry, EventEntry, EventKind, Fate, OperationEntry, RowEntry, RunHistory, TransactionEntry,
    WitnessEntry,
};
use shaketable_session::{
    report::{End, Recording},
    snapshot::RESTORER,
};
use shaketable_sim::{
    faults::Family,
    history::{Attempt, Call, History, Reported},
    ids::{AttemptId, ClientId, NodeId},
    proto::{KeyRange, Mutation, Version},
    rt::Nanos,
    trace::{Event, Kind},
};
use shaketable_tx::{Error, Isolation, MutationType, show};
use std::collections::{BTreeMap, BTreeSet};

/// The most rows of one read that are kept.
const MOST_ROWS: usize = 32;

/// Describes keys and values in the terms of the layer.
pub(super) trait Words {
    /// The description of a key, if the layer has one.
    fn key(&self, key: &[u8]) -> Option<String>;
    /// The description of a key's value, if the layer has one.
    fn value(&self, key: &[u8], value: &[u8]) -> Option<String>;
}

impl Words for AnyWorkload {
    fn key(&self, key: &[u8]) -> Option<String> {
        self.describe_key(key)
    }
    fn value(&self, key: &[u8], value: &[u8]) -> Option<String> {
        self.describe_value(key, value)
    }
}

/// The sources of a run's history.
pub(super) struct Recorded<'a> {
    pub(super) history: &'a History,
    pub(super) events: &'a [Event],
    pub(super) ended: Nanos,
    /// The name of a machine of the cluster.
    pub(super) machine: &'a dyn Fn(NodeId) -> String,
}

/// The history of a run on a simulated cluster.
pub(super) fn run_history(
    plan: &Plan,
    operations: &[Vec<Operation<AnyValue>>],
    recorded: &Recorded<'_>,
) -> RunHistory {
    let mut entries = Vec::new();
    for (client, (list, planned)) in operations.iter().zip(&plan.operations).enumerate() {
        for (index, (operation, op)) in list.iter().zip(planned).enumerate() {
            entries.push(OperationEntry {
                client: client as u16,
                index: index as u32,
                call: format!("{op:?}"),
                called: operation.called,
                returned: operation.outcome.is_some().then_some(operation.returned),
                outcome: operation.outcome.as_ref().map_or_else(|| "does not end".to_owned(), outcome),
            });
        }
    }
    of_entries(entries, &plan.configuration, recorded)
}

/// A layer that describes nothing.
struct Plain;

impl Words for Plain {
    fn key(&self, _: &[u8]) -> Option<String> {
        None
    }
    fn value(&self, _: &[u8], _: &[u8]) -> Option<String> {
        None
    }
}

/// The history of a program: each of its databases is a client, whose one operation is the program.
pub(crate) fn of_program(recording: Recording, end: &End, call: &str, outcome: &str) -> RunHistory {
    let Recording { mut history, machines, .. } = recording;
    let mut clients: BTreeMap<ClientId, Nanos> = BTreeMap::new();
    for attempt in history.attempts.iter_mut().flatten().filter(|attempt| attempt.client != RESTORER) {
        attempt.operation = Some(0);
        let began = attempt.version_requested.min(attempt.ended);
        let first = clients.entry(attempt.client).or_insert(began);
        *first = began.min(*first);
    }
    let operation = |(client, called): (ClientId, Nanos)| OperationEntry {
        client: client.0,
        index: 0,
        call: call.to_owned(),
        called,
        returned: Some(end.virtual_time),
        outcome: outcome.to_owned(),
    };
    let machine = |node| machines.get(&node).cloned().unwrap_or_default();
    let recorded =
        Recorded { history: &history, events: &end.events, ended: end.virtual_time, machine: &machine };
    let operations = clients.into_iter().map(operation).collect();
    RunHistory { is_program: true, ..of_entries(operations, &Plain, &recorded) }
}

/// The history with these operations.
fn of_entries(operations: Vec<OperationEntry>, words: &dyn Words, recorded: &Recorded<'_>) -> RunHistory {
    let history = recorded.history;
    let truth = Truth::of(history);
    let known = Known::of(history, &truth, words);
    let attempts = history.attempts.iter().enumerate().filter_map(|(id, a)| Some((id as u32, a.as_ref()?)));
    let shown = attempts.filter(|(_, attempt)| ![AUDITOR, CHECKER].contains(&attempt.client));
    let transactions = shown.map(|(id, attempt)| transaction(id, attempt, history, &truth, &known)).collect();
    let events = events(recorded.events, recorded.machine);
    RunHistory { operations, transactions, events, ended: recorded.ended, ..RunHistory::default() }
}

/// The witness of the finding that decides the verdict.
pub(super) fn witness(findings: &[Finding], words: &dyn Words) -> WitnessEntry {
    let Some(Finding { witness, .. }) = deciding(findings) else { return WitnessEntry::default() };
    let keys = witness.keys.iter().map(|at| words.key(at).unwrap_or_else(|| show::key(at)));
    WitnessEntry {
        operations: witness.operations.iter().map(|(c, index)| (*c as u16, *index as u32)).collect(),
        transactions: witness.attempts.iter().map(|id| id.0).collect(),
        keys: keys.collect(),
        expected: witness.expected.clone(),
        found: witness.found.clone(),
    }
}

/// What is known of all transactions together: who wrote each key, and which keys several of them touch.
struct Known<'a> {
    words: &'a dyn Words,
    /// By key, the versions at which it was set, and by which attempt.
    sets: BTreeMap<Bytes, Vec<(Version, Option<AttemptId>)>>,
    /// The ranges that were cleared, by ascending version.
    clears: Vec<(Version, KeyRange, Option<AttemptId>)>,
    /// The keys that several attempts of operations touch, one of which writes.
    shared: BTreeSet<Bytes>,
}

impl<'a> Known<'a> {
    fn of(history: &History, truth: &Truth, words: &'a dyn Words) -> Known<'a> {
        let mut sets: BTreeMap<Bytes, Vec<(Version, Option<AttemptId>)>> = BTreeMap::new();
        let mut clears = Vec::new();
        for entry in &truth.entries {
            for tx in &entry.transactions {
                for mutation in &tx.mutations {
                    match mutation {
                        Mutation::Set(key, _) | Mutation::Atomic(key, ..) => {
                            sets.entry(key.clone()).or_default().push((entry.version, tx.attempt));
                        }
                        Mutation::ClearRange(range) => {
                            clears.push((entry.version, range.clone(), tx.attempt))
                        }
                    }
                }
            }
        }
        Known { words, sets, clears, shared: shared(history) }
    }

    /// The attempt that had written or cleared a key at a version.
    fn writer(&self, key: &Bytes, at: Option<Version>) -> Option<u32> {
        let at = at.unwrap_or(Version::MAX);
        let set = self.sets.get(key).and_then(|sets| sets.iter().rev().find(|(version, _)| *version <= at));
        let is_hit = |(version, range, _): &&(Version, KeyRange, _)| *version <= at && range.contains(key);
        let clear = self.clears.iter().rev().find(is_hit).map(|(version, _, by)| (*version, *by));
        let last = set.copied().into_iter().chain(clear).max_by_key(|(version, _)| *version);
        last.and_then(|(_, by)| by).map(|by| by.0)
    }

    fn key(&self, at: &[u8]) -> String {
        self.words.key(at).unwrap_or_else(|| show::key(at))
    }

    fn row(&self, at: &Bytes, of: Option<&[u8]>, writer: Option<u32>) -> RowEntry {
        let shown = |of: &[u8]| self.words.value(at, of).unwrap_or_else(|| show::value(of));
        RowEntry { key: self.key(at), value: of.map(shown), writer, shared: self.shared.contains(at) }
    }

    /// Whether a shared key lies in a range.
    fn is_shared(&self, range: &KeyRange) -> bool {
        self.shared.range(range.begin.clone()..).next().is_some_and(|key| *key < range.end)
    }
}

/// The keys that several attempts of operations touch, one of which writes. A range read touches the keys
/// that it finds, and those that others write within its range. The records of exactly-once sessions matter
/// to no other client.
fn shared(history: &History) -> BTreeSet<Bytes> {
    let mut touched: BTreeMap<Bytes, (BTreeSet<usize>, bool)> = BTreeMap::new();
    let of_operations = || {
        let attempts = history.attempts.iter().enumerate();
        attempts.filter_map(|(id, attempt)| Some((id, attempt.as_ref().filter(|a| a.operation.is_some())?)))
    };
    for (id, attempt) in of_operations() {
        for (key, writes) in attempt.calls.iter().flat_map(keys_of).filter(|(key, _)| !sessions::has(key)) {
            let touched = touched.entry(key).or_default();
            touched.0.insert(id);
            touched.1 |= writes;
        }
    }
    for (id, attempt) in of_operations() {
        for range in attempt.calls.iter().filter_map(range_of).filter(|range| range.begin < range.end) {
            for (by, _) in touched.range_mut(range.begin..range.end).map(|(_, touched)| touched) {
                by.insert(id);
            }
        }
    }
    let shared = touched.into_iter().filter(|(_, (by, written))| *written && by.len() > 1);
    shared.map(|(key, _)| key).collect()
}

/// The range that a range read or a clear spans.
fn range_of(call: &Call) -> Option<KeyRange> {
    match call {
        Call::GetRange { begin, end, .. } => Some(KeyRange::new(begin.key.clone(), end.key.clone())),
        Call::Write(Mutation::ClearRange(range)) => Some(range.clone()),
        _ => None,
    }
}

/// The keys that a call touches, and whether it writes them.
fn keys_of(call: &Call) -> Vec<(Bytes, bool)> {
    match call {
        Call::Get { key, .. } => vec![(key.clone(), false)],
        Call::GetKey { answer, .. } => answer.iter().map(|key| (key.clone(), false)).collect(),
        Call::GetRange { answer, .. } => {
            let rows = answer.iter().flat_map(|(rows, _)| rows.iter());
            rows.map(|row| (row.key.clone(), false)).collect()
        }
        Call::Write(Mutation::Set(key, _) | Mutation::Atomic(key, ..)) => vec![(key.clone(), true)],
        Call::Write(Mutation::ClearRange(range)) => vec![(range.begin.clone(), true)],
    }
}

fn transaction(
    id: u32,
    attempt: &Attempt,
    history: &History,
    truth: &Truth,
    known: &Known<'_>,
) -> TransactionEntry {
    let place = truth.place(AttemptId(id));
    let durable = place.and_then(|(version, _)| {
        history.durable.iter().find(|((_, durable), _)| *durable == version).map(|(_, at)| *at)
    });
    let refusal = (attempt.reported == Reported::Failed(Error::NOT_COMMITTED))
        .then(|| refusal(attempt, history, truth))
        .flatten();
    let mut own = Own::default();
    let calls = attempt.calls.iter().enumerate().map(|(number, call)| {
        let entry = of_call((number, call), id, attempt, &own, known);
        own.add(call);
        entry
    });
    let mut calls: Vec<CallEntry> = calls.collect();
    calls.extend(attempt.watches.iter().map(|key| CallEntry {
        access: Access::Watch,
        at: known.key(key),
        answered: true,
        shared: true,
        ..CallEntry::default()
    }));
    TransactionEntry {
        id,
        client: (attempt.client != SETTER).then_some(attempt.client.0),
        operation: attempt.operation,
        began: attempt.version_requested.min(attempt.ended),
        read_version: attempt.read_version,
        calls,
        commit_sent: attempt.commit_sent,
        durable,
        ended: attempt.ended,
        fate: fate(attempt, place.is_some()),
        version: place.map(|(version, _)| version),
        end: end(id as usize, attempt, history, truth),
        refused_by: refusal.and_then(|refusal| refusal.by).map(|by| by.0),
    }
}

fn fate(attempt: &Attempt, committed: bool) -> Fate {
    match attempt.reported {
        Reported::Committed { .. } => Fate::Committed,
        Reported::ReadOnly => Fate::ReadOnly,
        Reported::Failed(Error::NOT_COMMITTED) => Fate::Conflict,
        Reported::Failed(_) if committed => Fate::UnknownCommitted,
        Reported::Failed(error) if error.leaves_commit_unknown() && attempt.commit_sent.is_some() => {
            Fate::UnknownNotCommitted
        }
        Reported::Failed(_) => Fate::Failed,
        Reported::Nothing if committed => Fate::DroppedCommitted,
        Reported::Nothing => Fate::Dropped,
    }
}

/// What a transaction itself has written so far.
#[derive(Default)]
struct Own {
    keys: BTreeSet<Bytes>,
    cleared: Vec<KeyRange>,
}

impl Own {
    fn add(&mut self, call: &Call) {
        match call {
            Call::Write(Mutation::Set(key, _) | Mutation::Atomic(key, ..)) => {
                self.keys.insert(key.clone());
            }
            Call::Write(Mutation::ClearRange(range)) => self.cleared.push(range.clone()),
            _ => {}
        }
    }

    fn has(&self, key: &Bytes) -> bool {
        self.keys.contains(key) || self.cleared.iter().any(|range| range.contains(key))
    }
}

fn of_call(
    (number, call): (usize, &Call),
    id: u32,
    attempt: &Attempt,
    own: &Own,
    known: &Known<'_>,
) -> CallEntry {
    let sees = attempt.own_writes.at(number);
    let writer = |key: &Bytes, isolation: Isolation| {
        if sees.are_seen(isolation) && own.has(key) {
            Some(id)
        } else {
            known.writer(key, attempt.read_version)
        }
    };
    let is_snapshot = |isolation: &Isolation| *isolation == Isolation::Snapshot;
    match call {
        Call::Get { key, isolation, answer } => CallEntry {
            access: Access::Get,
            snapshot: is_snapshot(isolation),
            at: known.key(key),
            rows: answer
                .iter()
                .map(|found| known.row(key, found.as_deref(), writer(key, *isolation)))
                .collect(),
            answered: answer.is_some(),
            shared: known.shared.contains(key),
            bookkeeping: sessions::has(key),
            ..CallEntry::default()
        },
        Call::GetKey { selector: of, isolation, answer } => CallEntry {
            access: Access::GetKey,
            snapshot: is_snapshot(isolation),
            at: show::selector(of),
            rows: answer.iter().map(|found| known.row(found, None, writer(found, *isolation))).collect(),
            answered: answer.is_some(),
            shared: answer.as_ref().is_some_and(|found| known.shared.contains(found)),
            bookkeeping: sessions::has(&of.key),
            ..CallEntry::default()
        },
        Call::GetRange { begin, end, limit, reverse, isolation, answer } => {
            let rows = answer.as_ref().map_or(&[][..], |(rows, _)| rows);
            let of = |row: &shaketable_tx::KeyValue| {
                known.row(&row.key, Some(&row.value), writer(&row.key, *isolation))
            };
            let within = KeyRange::new(begin.key.clone(), end.key.clone());
            CallEntry {
                access: Access::GetRange,
                snapshot: is_snapshot(isolation),
                at: format!(
                    "{} to {}{}{}",
                    show::selector(begin),
                    show::selector(end),
                    if *limit > 0 { format!(", at most {limit}") } else { String::new() },
                    if *reverse { ", reverse" } else { "" }
                ),
                rows: rows.iter().take(MOST_ROWS).map(of).collect(),
                more: rows.len().saturating_sub(MOST_ROWS) as u64,
                answered: answer.is_some(),
                shared: within.begin < within.end && known.is_shared(&within),
                bookkeeping: sessions::has(&begin.key),
                ..CallEntry::default()
            }
        }
        Call::Write(Mutation::ClearRange(cleared)) => CallEntry {
            access: Access::Clear,
            at: match cleared.end.strip_suffix(b"\0") == Some(&cleared.begin) {
                true => known.key(&cleared.begin),
                false => show::range(&cleared.begin, &cleared.end),
            },
            answered: true,
            shared: known.is_shared(cleared),
            bookkeeping: sessions::has(&cleared.begin),
            ..CallEntry::default()
        },
        Call::Write(Mutation::Set(at, to)) => CallEntry {
            access: Access::Set,
            at: known.key(at),
            rows: vec![known.row(at, Some(to), None)],
            answered: true,
            shared: known.shared.contains(at),
            bookkeeping: sessions::has(at),
            ..CallEntry::default()
        },
        Call::Write(Mutation::Atomic(at, operand, op)) => {
            let (shown, of) = stamped(at, operand, *op);
            CallEntry {
                access: Access::Atomic,
                atomic: format!("{op:?}"),
                at: known.key(shown),
                rows: vec![RowEntry {
                    key: known.key(shown),
                    value: Some(show::value(of)),
                    writer: None,
                    shared: known.shared.contains(at),
                }],
                answered: true,
                shared: known.shared.contains(at),
                bookkeeping: sessions::has(at),
                ..CallEntry::default()
            }
        }
    }
}

/// The key and the operand of an atomic operation, without the offset of a versionstamp in their last four
/// bytes.
fn stamped<'a>(at: &'a [u8], operand: &'a [u8], op: MutationType) -> (&'a [u8], &'a [u8]) {
    let without_offset = |bytes: &'a [u8]| bytes.len().checked_sub(4).map_or(bytes, |end| &bytes[..end]);
    match op {
        MutationType::SetVersionstampedKey => (without_offset(at), operand),
        MutationType::SetVersionstampedValue => (at, without_offset(operand)),
        _ => (at, operand),
    }
}

/// Faults, deaths, pauses, recoveries and acts, in the order in which they began.
fn events(events: &[Event], machine: &dyn Fn(NodeId) -> String) -> Vec<EventEntry> {
    let mut entries: Vec<EventEntry> = Vec::new();
    // The conditions that last: the kind and the machine, and the place of the entry.
    let mut open: BTreeMap<(u8, NodeId), usize> = BTreeMap::new();
    const DEAD: u8 = 0;
    const PAUSED: u8 = 1;
    const RECOVERY: u8 = 2;
    for event in events {
        let name = (event.node != NodeId(0)).then(|| machine(event.node));
        let client = name.as_deref().and_then(|name| name.strip_prefix("client-")?.parse().ok());
        let of = |name: &Option<String>| name.clone().unwrap_or_else(|| "the cluster".to_owned());
        let (kind, text, opens) = match event.kind {
            Kind::Fault => {
                let Some(family) = Family::ALL.iter().find(|family| **family as u64 == event.a) else {
                    continue;
                };
                (EventKind::Fault, family.name().to_owned(), None)
            }
            Kind::Kill => (EventKind::Dead, format!("{} is killed", of(&name)), Some(DEAD)),
            Kind::Pause => (EventKind::Paused, format!("{} is paused", of(&name)), Some(PAUSED)),
            Kind::RecoveryBegin if event.a > 1 => {
                (EventKind::Recovery, "a recovery".to_owned(), Some(RECOVERY))
            }
            Kind::Act => {
                let acts = ["setup", "hurt", "heal", "check"];
                let Some(act) = (event.a as usize).checked_sub(1).and_then(|at| acts.get(at)) else {
                    continue;
                };
                (EventKind::Act, (*act).to_owned(), None)
            }
            Kind::Start | Kind::Resume | Kind::RecoveryEnd => {
                let (closes, node) = match event.kind {
                    Kind::Start => (DEAD, event.node),
                    Kind::Resume => (PAUSED, event.node),
                    _ => (RECOVERY, NodeId(0)),
                };
                if let Some(at) = open.remove(&(closes, node)) {
                    entries[at].until = Some(event.at);
                }
                continue;
            }
            _ => continue,
        };
        if let Some(opens) = opens {
            let node = if opens == RECOVERY { NodeId(0) } else { event.node };
            // A recovery that begins again goes on.
            if opens == RECOVERY && open.contains_key(&(opens, node)) {
                continue;
            }
            open.insert((opens, node), entries.len());
        }
        entries.push(EventEntry { kind, at: event.at, until: None, client, machine: name, text });
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        judge::alarms::Story,
        judge::finding::{Kind as Accuser, Witness},
    };
    use shaketable_tx::{KeySelector, KeyValue};

    /// A layer that names one key.
    struct Named;

    impl Words for Named {
        fn key(&self, key: &[u8]) -> Option<String> {
            (key == b"a").then(|| "the counter".to_owned())
        }
        fn value(&self, key: &[u8], value: &[u8]) -> Option<String> {
            (key == b"a").then(|| format!("count {}", value.escape_ascii()))
        }
    }

    fn get(key: &'static str, answer: Option<&'static str>) -> Call {
        Call::Get {
            key: key.into(),
            isolation: Isolation::Serializable,
            answer: Some(answer.map(Bytes::from)),
        }
    }

    fn range(begin: &'static str, end: &'static str, rows: &[(&'static str, &'static str)]) -> Call {
        let rows = rows.iter().map(|(key, value)| KeyValue { key: (*key).into(), value: (*value).into() });
        Call::GetRange {
            begin: KeySelector::first_greater_or_equal(begin),
            end: KeySelector::first_greater_or_equal(end),
            limit: 0,
            reverse: false,
            isolation: Isolation::Snapshot,
            answer: Some((rows.collect(), false)),
        }
    }

    fn set(key: &'static str, value: &'static str) -> Call {
        Call::Write(Mutation::Set(key.into(), value.into()))
    }

    /// The setup writes a and b; one attempt adds to a and has an unknown result; another one reads, and
    /// clears b.
    fn told() -> RunHistory {
        let mut story = Story::default();
        let writes = |pairs: &[(&'static str, &'static str)]| -> Vec<Mutation> {
            pairs.iter().map(|(key, value)| Mutation::Set((*key).into(), (*value).into())).collect()
        };
        let (setup, attempt) = story.attempt(0, vec![set("a", "1"), set("b", "1")]);
        (attempt.client, attempt.operation) = (SETTER, None);
        attempt.reported = Reported::Committed { version: 1, batch_index: 0 };
        let (first, attempt) =
            story.attempt(1, vec![get("a", Some("1")), set("a", "2"), get("a", Some("2"))]);
        attempt.reported = Reported::Failed(Error::COMMIT_UNKNOWN_RESULT);
        attempt.commit_sent = Some(5);
        let cleared = Mutation::ClearRange(KeyRange::new("b", "b\0"));
        let calls = vec![range("a", "c", &[("a", "2"), ("b", "1")]), Call::Write(cleared.clone())];
        let (second, attempt) = story.attempt(2, calls);
        (attempt.client, attempt.operation) = (ClientId(1), Some(0));
        attempt.reported = Reported::Committed { version: 3, batch_index: 0 };
        let (_, attempt) = story.attempt(3, vec![get("b", None), range("b", "c", &[])]);
        attempt.watches = vec!["a".into()];
        attempt.reported = Reported::ReadOnly;
        let (_, attempt) = story.attempt(0, Vec::new());
        attempt.client = CHECKER;
        story.log(1, vec![(Some(setup), 0, writes(&[("a", "1"), ("b", "1")]))]);
        story.log(2, vec![(Some(first), 0, writes(&[("a", "2")]))]);
        story.log(3, vec![(Some(second), 0, vec![cleared])]);
        let event = |at, node, kind, a| Event { at, node: NodeId(node), kind, a, b: 0 };
        let events = [
            event(3, 2, Kind::Fault, Family::ALL[0] as u64),
            event(4, 7, Kind::Kill, 0),
            event(6, 0, Kind::RecoveryBegin, 2),
            event(8, 0, Kind::RecoveryBegin, 3),
            event(9, 7, Kind::Start, 1),
            event(10, 0, Kind::RecoveryEnd, 3),
            event(11, 7, Kind::Pause, 0),
        ];
        let machine =
            |node: NodeId| if node == NodeId(2) { "client-1".to_owned() } else { "log-1".to_owned() };
        let recorded = Recorded { history: &story.history, events: &events, ended: 20, machine: &machine };
        of_entries(Vec::new(), &Named, &recorded)
    }

    #[test]
    fn the_databases_of_a_program_are_clients_with_one_operation() {
        let mut story = Story::default();
        let (first, attempt) = story.attempt(1, vec![set("a", "2")]);
        (attempt.client, attempt.operation, attempt.version_requested, attempt.ended) =
            (ClientId(3), None, 7, 9);
        let (_, attempt) = story.attempt(2, vec![get("a", Some("2"))]);
        (attempt.client, attempt.operation) = (ClientId(4), None);
        story.attempt(0, Vec::new()).1.client = RESTORER;
        story.log(2, vec![(Some(first), 0, vec![Mutation::Set("a".into(), "2".into())])]);
        let fault = Event { at: 8, node: NodeId(2), kind: Kind::Fault, a: Family::ALL[0] as u64, b: 0 };
        let end = End {
            hash: (0, 0),
            events: vec![fault],
            is_quiescence_unknown: false,
            virtual_time: 20,
            faults: BTreeMap::new(),
        };
        let machines = BTreeMap::from([(NodeId(2), "log-1".to_owned())]);
        let told = of_program(
            Recording { history: story.history, machines, errors: BTreeMap::new() },
            &end,
            "program",
            "fails",
        );
        let operations: Vec<_> = told
            .operations
            .iter()
            .map(|of| (of.client, &*of.call, of.called, of.returned, &*of.outcome))
            .collect();
        assert_eq!(operations, [(3, "program", 7, Some(20), "fails"), (4, "program", 0, Some(20), "fails")]);
        assert!(told.transactions[..2].iter().all(|of| of.operation == Some(0)));
        assert_eq!(told.transactions[1].calls[0].rows[0].writer, Some(first.0));
        assert_eq!(told.events[0].machine.as_deref(), Some("log-1"));
    }

    #[test]
    fn reads_name_their_writers() {
        let told = told();
        assert_eq!(told.transactions.len(), 4, "the checker is no part of it");
        let writers = |id: usize| -> Vec<(String, Option<String>, Option<u32>)> {
            let rows = told.transactions[id].calls.iter().flat_map(|call| &call.rows);
            rows.map(|row| (row.key.clone(), row.value.clone(), row.writer)).collect()
        };
        let counter =
            |count: &str, writer| ("the counter".to_owned(), Some(format!("count {count}")), writer);
        assert_eq!(writers(1), [counter("1", Some(0)), counter("2", None), counter("2", Some(1))]);
        let b = |value: Option<&str>, writer| ("\"b\"".to_owned(), value.map(str::to_owned), writer);
        assert_eq!(writers(2), [counter("2", Some(1)), b(Some("\"1\""), Some(0))]);
        assert_eq!(writers(3), [b(None, Some(2))], "who cleared it");
    }

    #[test]
    fn calls_say_their_limits_and_leave_out_the_offsets_of_versionstamps() {
        let mut story = Story::default();
        let Call::GetRange { begin, end, isolation, answer, .. } = range("a", "c", &[]) else {
            unreachable!()
        };
        let atomic = |key: &'static [u8], operand: &'static [u8], op| {
            Call::Write(Mutation::Atomic(Bytes::from_static(key), Bytes::from_static(operand), op))
        };
        story.attempt(
            1,
            vec![
                range("a", "c", &[]),
                Call::GetRange { begin, end, limit: 2, reverse: true, isolation, answer },
                atomic(b"key\x03\0\0\0", b"value", MutationType::SetVersionstampedKey),
                atomic(b"key", b"value\x05\0\0\0", MutationType::SetVersionstampedValue),
                atomic(b"key", b"val", MutationType::SetVersionstampedValue),
                atomic(b"key", b"operand", MutationType::ByteMax),
            ],
        );
        let machine = |_| String::new();
        let recorded = Recorded { history: &story.history, events: &[], ended: 20, machine: &machine };
        let told = of_entries(Vec::new(), &Named, &recorded);
        let calls = told.transactions[0].calls.iter();
        let shown = |call: &CallEntry| {
            let value = call.rows.first().and_then(|row| row.value.clone()).unwrap_or_default();
            format!("{} {value}", call.at)
        };
        assert_eq!(
            calls.map(shown).collect::<Vec<_>>(),
            [
                "\"a\" to \"c\" ",
                "\"a\" to \"c\", at most 2, reverse ",
                "\"key\" \"value\"",
                "\"key\" \"value\"",
                "\"key\" \"val\"",
                "\"key\" \"operand\"",
            ]
        );
    }

    #[test]
    fn what_became_of_a_transaction_is_told() {
        let told = told();
        let fates: Vec<_> = told.transactions.iter().map(|tx| (tx.client, tx.fate, tx.version)).collect();
        assert_eq!(
            fates,
            [
                (None, Fate::Committed, Some(1)),
                (Some(0), Fate::UnknownCommitted, Some(2)),
                (Some(1), Fate::Committed, Some(3)),
                (Some(0), Fate::ReadOnly, None),
            ]
        );
        let shared =
            |id: usize| -> Vec<bool> { told.transactions[id].calls.iter().map(|c| c.shared).collect() };
        assert_eq!(shared(1), [true, true, true]);
        assert_eq!(shared(3), [true; 3], "an empty range whose key another one cleared, and a watch");
        let watch = told.transactions[3].calls.last().map(|call| (call.access, call.at.as_str()));
        assert_eq!(watch, Some((Access::Watch, "the counter")));
    }

    #[test]
    fn conditions_last_until_they_end() {
        let told = told();
        let events: Vec<_> =
            told.events.iter().map(|e| (e.kind, e.at, e.until, e.client, e.machine.as_deref())).collect();
        assert_eq!(
            events,
            [
                (EventKind::Fault, 3, None, Some(1), Some("client-1")),
                (EventKind::Dead, 4, Some(9), None, Some("log-1")),
                (EventKind::Recovery, 6, Some(10), None, None),
                (EventKind::Paused, 11, None, None, Some("log-1")),
            ]
        );
    }

    #[test]
    fn the_witness_is_that_of_the_deciding_finding() {
        let of = |attempts: Vec<AttemptId>| Witness {
            attempts,
            operations: vec![(1, 2)],
            keys: vec!["a".into(), "b".into()],
            ..Witness::default()
        };
        let findings = [
            Finding::new(Accuser::Live, "it waits").with(of(vec![AttemptId(9)])),
            Finding::new(Accuser::Model, "it is wrong").with(of(vec![AttemptId(4)])),
        ];
        let shown = witness(&findings, &Named);
        assert_eq!((&shown.transactions[..], &shown.operations[..]), (&[4][..], &[(1, 2)][..]));
        assert_eq!(shown.keys, ["the counter", "\"b\""]);
        assert!(witness(&[], &Named).is_empty());
    }
}
