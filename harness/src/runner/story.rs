//! The story of a small run: its transactions in commit order, a column for each client, with what they read and who had
//! written it, what they wrote, the faults that hit them, and how they ended.
//!
//! Only what matters for the contradiction is shown: transactions of operations, and the keys that are written by one
//! transaction and read or written by another.

use super::transcript::{Entry, conflict, final_outcome, key, of_event, outcome, range, value};
use crate::{
    judges::Truth,
    plan::Plan,
    workload::{Operation, Workload},
};
use bytes::Bytes;
use shaketable_layers::tx::{Error, Isolation};
use shaketable_sim::{
    history::{Attempt, AttemptId, Call, ClientId, History, Reported},
    net::NodeId,
    proto::{KeyRange, Mutation, Version},
    rt::Nanos,
    trace::{Event, Kind},
};
use std::collections::{BTreeMap, BTreeSet};

/// The number of characters of a line.
const WIDTH: usize = 112;
/// The narrowest column of a client. With more clients, the transactions are listed one below the other.
const NARROWEST: usize = 36;
/// The most reads and writes of a transaction that are shown, and the most characters of each line of the chart.
const MOST_CALLS: usize = 8;
const MOST_CHARACTERS: usize = 140;

/// An operation in the words of the workload.
struct Told {
    client: u16,
    index: u32,
    called: Nanos,
    returned: Nanos,
    what: String,
    how: String,
}

/// A part of the chart: lines of a client, or of the cluster.
struct Cell {
    at: Nanos,
    client: Option<u16>,
    lines: Vec<String>,
}

/// Tells the story of a run on a simulated cluster. `machine` returns the name of a machine of the cluster.
pub(super) fn story<W: Workload>(
    plan: &Plan<W>,
    operations: &[Vec<Operation<W::Answer>>],
    history: &History,
    events: &[Event],
    machine: &dyn Fn(NodeId) -> String,
) -> String {
    let mut told = Vec::new();
    for (client, (list, planned)) in operations.iter().zip(&plan.operations).enumerate() {
        for (index, (operation, op)) in list.iter().zip(planned).enumerate() {
            told.push(Told {
                client: client as u16,
                index: index as u32,
                called: operation.called,
                returned: operation.returned,
                what: format!("{op:?}"),
                how: operation.outcome.as_ref().map_or_else(|| "does not end".to_owned(), outcome),
            });
        }
    }
    chart(&told, history, events, machine)
}

fn chart(
    operations: &[Told],
    history: &History,
    events: &[Event],
    machine: &dyn Fn(NodeId) -> String,
) -> String {
    let clients: Vec<u16> =
        operations.iter().map(|told| told.client).collect::<BTreeSet<_>>().into_iter().collect();
    let mut cells = cells(operations, history, events, machine);
    cells.sort_by_key(|cell| cell.at);
    let width = WIDTH / clients.len().max(1);
    match width >= NARROWEST {
        true => in_columns(&clients, width, &cells),
        false => in_turn(&cells),
    }
}

fn in_columns(clients: &[u16], width: usize, cells: &[Cell]) -> String {
    let header: String =
        clients.iter().map(|client| format!("{:<width$}", format!("client {client}"))).collect();
    let mut text = format!("{:>8}  {}\n", "ms", header.trim_end());
    for cell in cells {
        let column = cell.client.and_then(|client| clients.iter().position(|one| *one == client));
        let room = column.map_or(WIDTH, |_| width - 2);
        let lines = cell.lines.iter().flat_map(|line| wrapped(line, room));
        for (number, line) in lines.enumerate() {
            let time = if number == 0 { format!("{:.3}", cell.at as f64 / 1e6) } else { String::new() };
            let indent = column.unwrap_or(0) * width;
            text += format!("{time:>8}  {:indent$}{line}", "").trim_end();
            text.push('\n');
        }
    }
    text
}

fn in_turn(cells: &[Cell]) -> String {
    let mut text = String::new();
    for cell in cells {
        let who = cell.client.map_or_else(String::new, |client| format!("client {client}: "));
        for (number, line) in cell.lines.iter().flat_map(|line| wrapped(line, WIDTH - 12)).enumerate() {
            text += &match number {
                0 => format!("{:>8.3}  {who}{line}\n", cell.at as f64 / 1e6),
                _ => format!("{:>8}    {line}\n", ""),
            };
        }
    }
    text
}

/// The lines of a line, which is truncated if it is very long. Its further lines are indented.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let line = &brief(line);
    let mut shown: String = line.chars().take(MOST_CHARACTERS).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    let indent = " ".repeat(line.len() - line.trim_start().len() + 2);
    let options = textwrap::Options::new(width).subsequent_indent(&indent);
    textwrap::wrap(&shown, options).into_iter().map(std::borrow::Cow::into_owned).collect()
}

/// The text with only the beginning of each long sequence of escaped bytes.
fn brief(text: &str) -> String {
    const ESCAPED: usize = 4;
    const MOST: usize = 6;
    let (mut shown, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("\\x") {
        shown += &rest[..at];
        rest = &rest[at..];
        let is_escaped = |bytes: &[u8]| bytes.len() == ESCAPED && bytes.starts_with(b"\\x");
        let length = ESCAPED * rest.as_bytes().chunks(ESCAPED).take_while(|bytes| is_escaped(bytes)).count();
        let length = length.max(2);
        match length > MOST * ESCAPED {
            true => shown = shown + &rest[..3 * ESCAPED] + "…",
            false => shown += &rest[..length],
        }
        rest = &rest[length..];
    }
    shown + rest
}

fn cells(
    operations: &[Told],
    history: &History,
    events: &[Event],
    machine: &dyn Fn(NodeId) -> String,
) -> Vec<Cell> {
    let truth = Truth::of(history);
    let shown: Vec<(usize, &Attempt)> = history
        .attempts
        .iter()
        .enumerate()
        .filter_map(|(id, attempt)| Some((id, attempt.as_ref()?)))
        .filter(|(_, attempt)| {
            let is = |told: &Told| {
                ClientId(told.client) == attempt.client && Some(told.index) == attempt.operation
            };
            operations.iter().any(is)
        })
        .collect();
    let matters = Matters::of(history, &shown);
    let mut cells: Vec<Cell> = Vec::new();
    for told in operations {
        cells.push(Cell {
            at: told.called,
            client: Some(told.client),
            lines: vec![format!("{}: {}", told.index, told.what)],
        });
        cells.push(Cell {
            at: told.returned,
            client: Some(told.client),
            lines: vec![format!("{} {}", told.index, told.how)],
        });
    }
    for (id, attempt) in &shown {
        let at = effect(*id, attempt, history, &truth);
        let lines = attempt_lines(*id, attempt, history, &truth, &matters);
        cells.push(Cell { at, client: Some(attempt.client.0), lines });
    }
    let client_of = |event: &Event| machine(event.node).strip_prefix("client-")?.parse::<u16>().ok();
    let last = operations.iter().map(|told| told.returned).max().unwrap_or(0);
    for event in
        events.iter().filter(|event| !matches!(event.kind, Kind::Act | Kind::Resume) && event.at <= last)
    {
        let is_shown = |client: &u16| operations.iter().any(|told| told.client == *client);
        let client = client_of(event);
        if let Some(Entry { at, text, .. }) = of_event(event, machine)
            && client.as_ref().is_none_or(is_shown)
        {
            cells.push(Cell { at, client, lines: vec![format!("! {text}")] });
        }
    }
    cells
}

/// When an attempt took effect: when it became durable, or when it ended.
fn effect(id: usize, attempt: &Attempt, history: &History, truth: &Truth) -> Nanos {
    let place = truth.place(AttemptId(id as u32));
    let durable = |(version, _): (Version, u16)| {
        history.durable.iter().find(|((_, durable), _)| *durable == version).map(|(_, at)| *at)
    };
    place.and_then(durable).unwrap_or(attempt.ended)
}

/// Which keys matter, and who wrote them.
struct Matters {
    /// The keys that several attempts touch, one of which writes.
    keys: BTreeSet<Bytes>,
    /// By key and version, who wrote it: what is known of committed writes.
    writers: BTreeMap<Bytes, Vec<(Version, String)>>,
}

impl Matters {
    fn of(history: &History, shown: &[(usize, &Attempt)]) -> Matters {
        let truth = Truth::of(history);
        let mut writers: BTreeMap<Bytes, Vec<(Version, String)>> = BTreeMap::new();
        for entry in &truth.entries {
            for tx in &entry.transactions {
                let attempt = tx.attempt.and_then(|id| history.attempts.get(id.0 as usize)?.as_ref());
                let who = attempt.map_or_else(String::new, |attempt| match attempt.operation {
                    Some(operation) => format!("client {}, {operation}", attempt.client.0),
                    None => "before".to_owned(),
                });
                for mutation in &tx.mutations {
                    if let Mutation::Set(key, _) | Mutation::Atomic(key, ..) = mutation {
                        writers.entry(key.clone()).or_default().push((entry.version, who.clone()));
                    }
                }
            }
        }
        let mut touched: BTreeMap<Bytes, (BTreeSet<usize>, bool)> = BTreeMap::new();
        for (id, attempt) in shown {
            // The records of exactly-once sessions matter to no other client.
            let keys = attempt.calls.iter().flat_map(keys_of).filter(|(key, _)| !is_of_sessions(key));
            for (key, writes) in keys {
                let touched = touched.entry(key).or_default();
                touched.0.insert(*id);
                touched.1 |= writes;
            }
        }
        let keys = touched.into_iter().filter(|(_, (by, written))| *written && by.len() > 1);
        Matters { keys: keys.map(|(key, _)| key).collect(), writers }
    }

    fn is_in(&self, range: &KeyRange) -> bool {
        self.keys.range(range.begin.clone()..).next().is_some_and(|key| *key < range.end)
    }

    /// Who wrote the value that a read at a version saw.
    fn writer(&self, key: &Bytes, at: Option<Version>) -> String {
        let writes = self.writers.get(key).into_iter().flatten();
        let last = writes.take_while(|(version, _)| at.is_none_or(|at| *version <= at)).last();
        last.filter(|(_, who)| !who.is_empty()).map_or_else(String::new, |(_, who)| format!(" [{who}]"))
    }
}

/// Whether a key is in the subspace in which workloads keep their sessions.
fn is_of_sessions(key: &[u8]) -> bool {
    key.starts_with(&foundationdb_tuple::pack(&("sessions",)))
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

fn attempt_lines(
    id: usize,
    attempt: &Attempt,
    history: &History,
    truth: &Truth,
    matters: &Matters,
) -> Vec<String> {
    let mut lines = Vec::new();
    let at =
        attempt.read_version.map_or_else(|| "no read version".to_owned(), |at| format!("at version {at}"));
    lines.push(format!("  transaction {id}, {at}"));
    let calls: Vec<String> =
        attempt.calls.iter().filter_map(|call| call_line(call, attempt.read_version, matters)).collect();
    let more = calls.len().saturating_sub(MOST_CALLS);
    lines.extend(calls.into_iter().take(MOST_CALLS));
    if more > 0 {
        lines.push(format!("    … {more} more"));
    }
    let end = match attempt.reported {
        Reported::Nothing if attempt.commit_sent.is_some() => {
            format!("dropped during its commit{}", final_outcome(id, truth))
        }
        Reported::Nothing => "dropped".to_owned(),
        Reported::ReadOnly => "ends, read-only".to_owned(),
        Reported::Committed { version, .. } => format!("commits at version {version}"),
        Reported::Failed(Error::NOT_COMMITTED) => {
            format!("{}{}", Error::NOT_COMMITTED, conflict(attempt, history, truth))
        }
        Reported::Failed(error) if error.leaves_commit_unknown() && attempt.commit_sent.is_some() => {
            format!("{error}{}", final_outcome(id, truth))
        }
        Reported::Failed(error) => error.to_string(),
    };
    lines.push(format!("  => {end}"));
    lines
}

/// A read or a write of a key that matters.
fn call_line(call: &Call, at: Option<Version>, matters: &Matters) -> Option<String> {
    let snapshot = |isolation: &Isolation| match isolation {
        Isolation::Snapshot => " (snapshot)",
        Isolation::Serializable => "",
    };
    let shows = |key: &Bytes| matters.keys.contains(key);
    match call {
        Call::Get { key: read, isolation, answer } if shows(read) => {
            let found = match answer {
                None => "no reply".to_owned(),
                Some(None) => "nothing".to_owned(),
                Some(Some(found)) => value(found) + &matters.writer(read, at),
            };
            Some(format!("    reads{} {} = {found}", snapshot(isolation), key(read)))
        }
        Call::GetRange { begin, end, isolation, answer: Some((rows, _)), .. } => {
            let found: Vec<String> = rows
                .iter()
                .filter(|row| shows(&row.key))
                .map(|row| {
                    format!("{} = {}{}", key(&row.key), value(&row.value), matters.writer(&row.key, at))
                })
                .collect();
            let of = KeyRange::new(begin.key.clone(), end.key.clone());
            match found.is_empty() {
                true if rows.is_empty() && of.begin < of.end && matters.is_in(&of) => {
                    Some(format!("    reads{} {}: nothing", snapshot(isolation), range(&of)))
                }
                true => None,
                false => Some(format!("    reads{} {}", snapshot(isolation), found.join("; "))),
            }
        }
        Call::GetKey { isolation, answer: Some(found), .. } if shows(found) => {
            Some(format!("    finds{} the key {}", snapshot(isolation), key(found)))
        }
        Call::Write(Mutation::Set(at, to)) if shows(at) => {
            Some(format!("    sets {} = {}", key(at), value(to)))
        }
        Call::Write(Mutation::Atomic(at, operand, op)) if shows(at) => {
            Some(format!("    {op:?} {} {}", key(at), value(operand)))
        }
        Call::Write(Mutation::ClearRange(cleared)) if matters.is_in(cleared) => {
            Some(format!("    clears {}", range(cleared)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sequences_of_bytes_are_cut() {
        assert_eq!(brief(r"a\x01\x02b\\x"), r"a\x01\x02b\\x");
        assert_eq!(brief(&format!(r"(7, b{}, é)", r"\xff".repeat(16))), r"(7, b\xff\xff\xff…, é)");
        assert_eq!(brief(r"\x"), r"\x");
    }

    #[test]
    fn lines_are_wrapped_below_their_beginning() {
        assert_eq!(wrapped("  reads a b c", 10), ["  reads a", "    b c"]);
        assert!(wrapped(&"word ".repeat(100), 80).last().is_some_and(|line| line.ends_with('…')));
    }
}
