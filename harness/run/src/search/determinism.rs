//! Checks that two runs of one seed are identical: the same events and the same final keyspace. Of two that
//! are not, it finds who began.
//!
//! A client that was told the same in both runs and asks for something else has begun: whatever the cluster
//! did before was the same. Only if the first event that differs comes before any such request is it the
//! simulator that does not repeat.

use crate::{
    judge::finding::{Finding, Kind, Witness},
    run::runner::RunResult,
};
use shaketable_reports::{Access, CallEntry, OperationEntry, RowEntry, RunHistory, TransactionEntry};
use shaketable_sim::trace::Event;
use std::collections::BTreeSet;

const CAUSES: &str = "What usually does it in a layer or its workload: a static, the address of a value, the order \
                      of a hash map, a thread, a clock or random numbers of the machine";

/// How many seeds of a sweep are run twice unless it says otherwise, the first ones: what one run leaves
/// behind for the next in a static shows in the second run of the first seed.
pub const USUALLY_TWICE: u64 = 2;

/// Whether two runs have the same events (by hash), findings and counters.
pub fn same(one: &RunResult, other: &RunResult) -> bool {
    (one.event_hash, one.events) == (other.event_hash, other.events)
        && one.findings == other.findings
        && one.counters == other.counters
        && one.faults == other.faults
}

/// Whether a finding is about runs that differ.
pub(crate) fn is_about(finding: &Finding) -> bool {
    matches!(finding.kind, Kind::Determinism | Kind::Repeatable)
}

/// Why two runs of a plan were not identical: what differs first in two further ones, which `run` makes with
/// their events.
pub fn explained(run: impl Fn() -> RunResult) -> Finding {
    let (one, other) = (run(), run());
    let at = first_difference(&one.trace, &other.trace);
    let began = match (&one.history, &other.history) {
        (Some(one), Some(other)) => first_request(one, other),
        _ => None,
    };
    let event = |result: &RunResult| at.and_then(|at| result.trace.get(at).copied());
    let time = event(&one).into_iter().chain(event(&other)).map(|event| event.at).min();
    match (began, at) {
        (Some(began), _) if time.is_none_or(|time| began.at <= time) => began.finding(),
        (_, Some(at)) => {
            let show =
                |event: Option<Event>| event.map_or("the end of the run".to_owned(), |e| e.to_string());
            let message = format!(
                "two runs of the seed differ: event {at} is `{}` in one and `{}` in the other, and until then \
                 every client had asked for the same",
                show(event(&one)).trim(),
                show(event(&other)).trim()
            );
            Finding::new(Kind::Repeatable, message)
        }
        _ if same(&one, &other) => {
            let message = format!(
                "two runs of the seed differ, and two further ones do not, as if something that outlives a run \
                 decided. {CAUSES}"
            );
            Finding::new(Kind::Determinism, message)
        }
        _ => {
            let message = format!(
                "two runs of the seed have the same events, but different findings or counters: the workload's \
                 model, checks or claims differ. {CAUSES}"
            );
            Finding::new(Kind::Determinism, message)
        }
    }
}

/// The number of the first event that differs.
fn first_difference(one: &[Event], other: &[Event]) -> Option<usize> {
    let at = one.iter().zip(other).position(|(a, b)| a != b);
    at.or_else(|| (one.len() != other.len()).then(|| one.len().min(other.len())))
}

/// What a client asked for or answered in one run and not in the other, though it had been told the same.
#[derive(Debug, PartialEq)]
struct Began {
    at: u64,
    /// `None` for the setup.
    client: Option<u16>,
    operation: Option<u32>,
    /// Who did it.
    who: String,
    what: String,
}

impl Began {
    fn finding(self) -> Finding {
        let Began { client, operation, who, what, .. } = self;
        let message =
            format!("two runs of the seed differ, in what {who} {what}; it had been told the same. {CAUSES}");
        let witness =
            client.zip(operation).map(|(client, index)| Witness::operation(client.into(), index as usize));
        Finding::new(Kind::Determinism, message).with(witness.unwrap_or_default())
    }
}

/// The first of what the clients asked for.
fn first_request(one: &RunHistory, other: &RunHistory) -> Option<Began> {
    let transactions = one.transactions.iter().map(|tx| tx.client);
    // One that answers from memory makes no transaction.
    let operations = one.operations.iter().map(|entry| Some(entry.client));
    let clients: BTreeSet<Option<u16>> = transactions.chain(operations).collect();
    let of_each = clients.into_iter().filter_map(|client| {
        let (at, operation, what) = of_client(client, one, other)?;
        let of_operation =
            |entry: &&OperationEntry| (Some(entry.client), Some(entry.index)) == (client, operation);
        let who = match (one.operations.iter().find(of_operation), client) {
            (Some(entry), _) => {
                format!("operation {} of client {} ({})", entry.index, entry.client, entry.call)
            }
            (None, Some(client)) => format!("client {client}"),
            (None, None) => "the setup".to_owned(),
        };
        Some(Began { at, client, operation, who, what })
    });
    of_each.min_by_key(|began| (began.at, began.client))
}

/// When a client was the first to differ, in which operation, and by what. `None` if it was not, because it
/// was told something else before, or never differs.
fn of_client(
    client: Option<u16>,
    one: &RunHistory,
    other: &RunHistory,
) -> Option<(u64, Option<u32>, String)> {
    let done = |history: &RunHistory| -> Vec<OperationEntry> {
        history.operations.iter().filter(|entry| Some(entry.client) == client).cloned().collect()
    };
    let answered = done(one).into_iter().zip(done(other)).find(|(a, b)| a != b);
    // What comes after an answer that differs may follow from it.
    let comes_after = |tx: &TransactionEntry| {
        answered.as_ref().is_some_and(|(a, _)| tx.operation.is_some_and(|operation| operation > a.index))
    };
    let attempts = |history: &'_ RunHistory| -> Vec<TransactionEntry> {
        let of_client = history.transactions.iter().filter(|tx| tx.client == client && !comes_after(tx));
        of_client.cloned().collect()
    };
    let (ours, theirs) = (attempts(one), attempts(other));
    for (a, b) in ours.iter().zip(&theirs) {
        let at = a.began.min(b.began);
        if (a.began, a.operation) != (b.began, b.operation) {
            let ms = |began: u64| format!("{:.6} ms", began as f64 / 1e6);
            return Some((at, a.operation, format!("begins at {} and at {}", ms(a.began), ms(b.began))));
        }
        for number in 0..a.calls.len().max(b.calls.len()) {
            match (a.calls.get(number), b.calls.get(number)) {
                (Some(x), Some(y)) if request(x) == request(y) => {
                    if reply(x) != reply(y) {
                        return None;
                    }
                }
                (x, y) => {
                    let show = |call: Option<&CallEntry>| call.map_or("nothing more".to_owned(), shown);
                    return Some((
                        at,
                        a.operation,
                        format!("asks for: {} in one, {} in the other", show(x), show(y)),
                    ));
                }
            }
        }
        if (a.read_version, a.fate, a.version, a.ended) != (b.read_version, b.fate, b.version, b.ended) {
            return None;
        }
    }
    if let Some(more) = ours.get(theirs.len()).or(theirs.get(ours.len())) {
        let first = more.calls.first().map_or("nothing".to_owned(), shown);
        return Some((more.began, more.operation, format!("asks for in one of them only: {first}")));
    }
    let (a, b) = answered.as_ref()?;
    let told = (&a.call, a.called) == (&b.call, b.called);
    told.then(|| {
        (
            a.returned.unwrap_or(a.called),
            Some(a.index),
            format!("{} in one, {} in the other", a.outcome, b.outcome),
        )
    })
}

/// Of a row, what a client knows.
type Known<'a> = (&'a str, Option<&'a str>);

/// Of a row, what a client knows.
fn known(row: &RowEntry) -> Known<'_> {
    (&row.key, row.value.as_deref())
}

/// What a call asks for.
fn request(call: &CallEntry) -> (Access, &str, bool, &str, Vec<Known<'_>>) {
    let rows = if call.access.is_read() { Vec::new() } else { call.rows.iter().map(known).collect() };
    (call.access, &call.atomic, call.snapshot, &call.at, rows)
}

/// What a call returns.
fn reply(call: &CallEntry) -> (bool, u64, Vec<Known<'_>>) {
    let rows = if call.access.is_read() { call.rows.iter().map(known).collect() } else { Vec::new() };
    (call.answered, call.more, rows)
}

/// A call in words.
fn shown(call: &CallEntry) -> String {
    let name = match call.access {
        Access::Get => "get",
        Access::GetKey => "get_key",
        Access::GetRange => "get_range",
        Access::Set => "set",
        Access::Clear => "clear",
        Access::Atomic => &call.atomic,
        Access::Watch => "watch",
        Access::ReadConflict => "add a read conflict range",
        Access::WriteConflict => "add a write conflict range",
        Access::Option => "set the option",
        Access::ReadVersion => "set the read version",
    };
    let written = call.rows.first().filter(|_| !call.access.is_read()).and_then(|row| row.value.as_ref());
    format!("{name} {}{}", call.at, written.map_or(String::new(), |value| format!(" = {value}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_sim::{ids::NodeId, trace::Kind as Event_};

    fn set(key: &str, value: &str) -> CallEntry {
        let row = RowEntry { key: key.into(), value: Some(value.into()), ..RowEntry::default() };
        CallEntry { access: Access::Set, at: key.into(), rows: vec![row], ..CallEntry::default() }
    }

    fn get(key: &str, value: &str) -> CallEntry {
        CallEntry { access: Access::Get, answered: true, ..set(key, value) }
    }

    /// A run of one operation each of two clients, at 10 and at 20, with an event at each of these times.
    fn run(calls: [Vec<CallEntry>; 2], events: [u64; 2]) -> RunResult {
        let mut history = RunHistory::default();
        for ((client, began), calls) in [(0u16, 10), (1, 20)].into_iter().zip(calls) {
            let call = "Put".to_owned();
            history.operations.push(OperationEntry {
                client,
                call,
                called: began,
                ..OperationEntry::default()
            });
            history.transactions.push(TransactionEntry {
                client: Some(client),
                operation: Some(0),
                began,
                calls,
                ..TransactionEntry::default()
            });
        }
        let event = |(at, a)| Event { at, node: NodeId(1), kind: Event_::Logged, a, b: 1 };
        let trace = [10, 20].into_iter().zip(events).map(event).collect();
        RunResult {
            history: Some(Box::new(history)),
            trace,
            event_hash: events[0] + events[1],
            ..RunResult::default()
        }
    }

    fn explain(one: &RunResult, other: &RunResult) -> Finding {
        let turn = std::cell::Cell::new(false);
        explained(|| if turn.replace(true) { other.clone() } else { one.clone() })
    }

    #[test]
    fn who_asks_for_something_else_has_begun() {
        let one = run([vec![set("a", "1")], vec![get("a", "1"), set("b", "1")]], [1, 2]);
        // The second client only does what follows from what it was told.
        let other = run([vec![set("a", "2")], vec![get("a", "2"), set("b", "2")]], [3, 4]);
        let finding = explain(&one, &other);
        assert_eq!((finding.kind, &finding.witness), (Kind::Determinism, &Witness::operation(0, 0)));
        let says = "in what operation 0 of client 0 (Put) asks for: set a = 1 in one, set a = 2 in the other";
        assert!(finding.message.contains(says), "{}", finding.message);
    }

    #[test]
    fn the_simulator_is_accused_only_of_what_comes_before_what_clients_ask_for() {
        let one = run([vec![set("a", "1")], vec![set("b", "1")]], [1, 2]);
        let other = |events| run([vec![set("a", "1")], vec![set("b", "2")]], events);
        let kinds = [[1, 3], [3, 2], [1, 2]].map(|events| explain(&one, &other(events)).kind);
        assert_eq!(kinds, [Kind::Determinism, Kind::Repeatable, Kind::Determinism]);
        let told = run([vec![set("a", "1")], vec![get("b", "1")]], [1, 2]);
        let told_otherwise = run([vec![set("a", "1")], vec![get("b", "2")]], [1, 3]);
        let finding = explain(&told, &told_otherwise);
        assert_eq!(finding.kind, Kind::Repeatable);
        assert!(
            finding.message.contains("event 1 is") && finding.message.contains("version 3"),
            "{finding:?}"
        );
        assert!(explain(&one, &one).message.contains("two further ones do not"));
    }

    #[test]
    fn the_first_difference_of_events_is_found() {
        let event = |a| Event { at: 0, node: NodeId(1), kind: Event_::Logged, a, b: 1 };
        assert_eq!(first_difference(&[event(1)], &[event(1)]), None);
        assert_eq!(first_difference(&[event(1), event(2)], &[event(1), event(3)]), Some(1));
        assert_eq!(first_difference(&[event(1)], &[event(1), event(3)]), Some(1));
    }
}
