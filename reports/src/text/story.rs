//! The story of a small run: its attempts at transactions in commit order, a column for each client, with
//! what they read and who had written it, what they wrote, the faults that hit them, and how they ended.
//!
//! Only what matters for the contradiction is shown: transactions of operations, the keys that several
//! transactions touch, one of which writes, the keys of the witness, and what the transactions of the witness
//! write. Other writes and rows are counted in their place. If that is more than a screen, transactions that
//! neither write such a key nor belong to the witness are left out.

use super::{plural, shortened};
use crate::{
    history::{
        Access, CallEntry, EventEntry, EventKind, Fate, OperationEntry, RowEntry, RunHistory,
        TransactionEntry, WitnessEntry,
    },
    when::milliseconds,
};
use std::collections::{BTreeMap, BTreeSet};

/// The number of characters of a line.
const WIDTH: usize = 112;
/// The narrowest column of a client. With more clients, the transactions are listed one below the other.
const NARROWEST: usize = 36;
/// The most reads and writes of a transaction that are shown.
const MOST_CALLS: usize = 8;
/// The most rows of a read that are shown.
const MOST_ROWS: usize = 6;
/// The most characters of a line before it is wrapped.
const MOST_CHARACTERS: usize = 140;
/// The number of lines of a screen. A longer story is thinned out.
const SCREEN: usize = 60;

/// A part of the chart: lines of a client, or of the cluster.
struct Cell {
    at: u64,
    client: Option<u16>,
    lines: Vec<String>,
}

/// Tells the story of a run.
pub fn story(history: &RunHistory) -> String {
    let whole = chart(history, |_| true);
    // In the run of a program, who meets what a commit of unknown result has written matters, and so does
    // what each client saw last.
    let (mut unknown, mut last) = (BTreeSet::new(), BTreeMap::new());
    for tx in history.transactions.iter().filter(|_| history.is_program) {
        last.insert(tx.client, tx.id);
        if matches!(tx.fate, Fate::UnknownCommitted | Fate::DroppedCommitted) {
            unknown.insert(tx.id);
        }
    }
    let meets = |call: &CallEntry| {
        call.rows.iter().any(|row| row.writer.is_some_and(|writer| unknown.contains(&writer)))
    };
    let matters = |tx: &TransactionEntry| {
        history.witness.transactions.contains(&tx.id)
            || tx.calls.iter().any(|call| (call.shared && decides(call.access)) || meets(call))
            || tx.calls.iter().any(|call| call.named && call.access.is_write())
            || last.get(&tx.client) == Some(&tx.id)
    };
    let is_left_out = |tx: &&TransactionEntry| is_of_operation(tx) && !matters(tx);
    let left_out = history.transactions.iter().filter(is_left_out).count();
    let mut text = match whole.lines().count() > SCREEN && left_out > 0 {
        true => {
            let left_out = plural(left_out as u64, "transaction", "transactions");
            chart(history, matters) + &format!("\n{left_out} without a write that matters: left out\n")
        }
        false => whole,
    };
    if !(history.witness.operations.is_empty() && history.witness.transactions.is_empty()) {
        let what = if history.is_program { "is pointed at by the report" } else { "contradicts the claim" };
        text += &format!("\n* {what}\n");
    }
    text += &difference(&history.witness);
    text
}

/// Tells everything that happened in a run, by time: operations, every read and write of their transactions
/// and of the setup's, how they ended, and the events of the cluster.
pub fn transcript(history: &RunHistory) -> String {
    let writers = Writers::of(history);
    let who = |client: Option<u16>| client.map_or_else(|| "setup".to_owned(), |n| format!("client {n}"));
    let mut entries: Vec<(u64, String, Vec<String>)> = Vec::new();
    for event in &history.events {
        let who = if event.kind == EventKind::Fault { "fault" } else { "cluster" };
        let client = event.client.filter(|_| event.kind == EventKind::Fault);
        let place = client.map_or_else(String::new, |client| format!(" at client {client}"));
        entries.push((event.at, who.to_owned(), vec![of_event(event) + &place]));
    }
    for OperationEntry { client, index, call, called, .. } in &history.operations {
        entries.push((*called, who(Some(*client)), vec![format!("operation {index} begins: {call}")]));
    }
    for tx in &history.transactions {
        let operation = tx.operation.map_or_else(String::new, |index| format!(" of operation {index}"));
        let mut lines =
            vec![format!("  attempt {}{}{operation}, {}", tx.id, origin(tx, "attempt "), version(tx))];
        lines.extend(tx.calls.iter().flat_map(|call| every_row(call, tx.id, &writers)));
        lines.push(format!("    => {}{}", tx.end, later(tx)));
        entries.push((tx.ended, who(tx.client), lines));
    }
    for OperationEntry { client, index, returned, outcome, .. } in &history.operations {
        let at = returned.unwrap_or(history.ended);
        entries.push((at, who(Some(*client)), vec![format!("operation {index} {outcome}")]));
    }
    // A stable sort: at equal times an operation begins, then its attempts end, then it returns.
    entries.sort_by_key(|(at, ..)| *at);
    let mut text = String::new();
    for (at, who, lines) in entries {
        for (number, line) in lines.iter().enumerate() {
            text += &match number {
                0 => format!("{:>11.6} s  {who:<10}  {line}\n", at as f64 / 1e9),
                _ => format!("{:27}{line}\n", ""),
            };
        }
    }
    text
}

/// An attempt in one line: what it read and wrote of these keys, what else it wrote, and how it ended.
pub(super) fn in_one_line(history: &RunHistory, tx: &TransactionEntry, keys: &BTreeSet<&str>) -> String {
    let names = history.transactions.iter().map(|tx| (tx.id, format!("T{}", tx.id))).collect();
    let writers = Writers { names, witness: keys.clone(), read: BTreeSet::new() };
    let calls = calls(tx, true, &writers);
    let calls = calls
        .iter()
        .map(|call| shortened(&brief(call.trim()), MOST_CHARACTERS))
        .collect::<Vec<_>>()
        .join("; ");
    let client = tx.client.map_or_else(|| "the setup".to_owned(), |client| format!("client {client}"));
    let origin = origin(tx, "T");
    format!("T{} of {client}{origin}, {}: {calls} => {}{}", tx.id, version(tx), tx.end, later(tx))
}

/// A call with all rows that are known of it.
fn every_row(call: &CallEntry, id: u32, writers: &Writers<'_>) -> Vec<String> {
    if call.access != Access::GetRange || call.rows.is_empty() {
        return of_call(call, id, writers).into_iter().collect();
    }
    let rows = plural(call.rows.len() as u64 + call.more, "row", "rows");
    let snapshot = if call.snapshot { " (snapshot)" } else { "" };
    let mut lines = vec![format!("    reads{snapshot} {}: {rows}", call.at)];
    lines.extend(call.rows.iter().map(|row| format!("        {} = {}", row.key, found(row, id, writers))));
    if call.more > 0 {
        lines.push(format!("        … {}", plural(call.more, "more row", "more rows")));
    }
    lines
}

/// What the judge expected and what it found, one below the other.
fn difference(witness: &WitnessEntry) -> String {
    match (&witness.expected, &witness.found) {
        (Some(expected), Some(found)) => format!("\nexpected  {expected}\nfound     {found}\n"),
        _ => String::new(),
    }
}

/// Whether a call can matter to other transactions.
fn decides(access: Access) -> bool {
    access.is_write() || matches!(access, Access::Watch | Access::WriteConflict)
}

fn is_of_operation(tx: &TransactionEntry) -> bool {
    tx.client.is_some() && tx.operation.is_some()
}

fn chart(history: &RunHistory, shows: impl Fn(&TransactionEntry) -> bool) -> String {
    let clients: BTreeSet<u16> = history.operations.iter().map(|operation| operation.client).collect();
    let clients: Vec<u16> = clients.into_iter().collect();
    let mut cells = cells(history, shows);
    cells.sort_by_key(|cell| cell.at);
    let width = WIDTH / clients.len().max(1);
    match width >= NARROWEST {
        true => in_columns(&clients, width, &cells),
        false => in_turn(&cells),
    }
}

/// The width of the times.
fn time_width(cells: &[Cell]) -> usize {
    cells.iter().map(|cell| milliseconds(cell.at).len()).max().unwrap_or(0).max(8)
}

fn in_columns(clients: &[u16], width: usize, cells: &[Cell]) -> String {
    let times = time_width(cells);
    let header: String =
        clients.iter().map(|client| format!("{:<width$}", format!("client {client}"))).collect();
    let mut text = format!("{:>times$}  {}\n", "ms", header.trim_end());
    for cell in cells {
        let column = cell.client.and_then(|client| clients.iter().position(|one| *one == client));
        let room = column.map_or(WIDTH, |_| width - 2);
        let lines = cell.lines.iter().flat_map(|line| wrapped(line, room));
        for (number, line) in lines.enumerate() {
            let time = if number == 0 { milliseconds(cell.at) } else { String::new() };
            let indent = column.unwrap_or(0) * width;
            text += format!("{time:>times$}  {:indent$}{line}", "").trim_end();
            text.push('\n');
        }
    }
    text
}

fn in_turn(cells: &[Cell]) -> String {
    let mut text = String::new();
    let times = time_width(cells);
    for cell in cells {
        let who = cell.client.map_or_else(String::new, |client| format!("client {client}: "));
        for (number, line) in cell.lines.iter().flat_map(|line| wrapped(line, WIDTH - 12)).enumerate() {
            text += &match number {
                0 => format!("{:>times$}  {who}{line}\n", milliseconds(cell.at)),
                _ => format!("{:>times$}    {line}\n", ""),
            };
        }
    }
    text
}

/// The lines of a line, which is truncated if it is very long. Its further lines are indented.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let shown = shortened(&brief(line), MOST_CHARACTERS);
    let indent = " ".repeat(line.len() - line.trim_start().len() + 2);
    let options = textwrap::Options::new(width).subsequent_indent(&indent);
    textwrap::wrap(&shown, options).into_iter().map(std::borrow::Cow::into_owned).collect()
}

/// The text with only the beginning of each long run of one character or of escaped bytes.
pub(crate) fn brief(text: &str) -> String {
    const MOST: usize = 6;
    let mut shown = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        // One unit is an escaped byte, or a character, which may have four bytes as well.
        let escaped = is_escaped(rest);
        let unit = if escaped { 4 } else { first.len_utf8() };
        let repeats = |piece: &[u8]| {
            if escaped { is_escaped_bytes(piece) } else { piece == &rest.as_bytes()[..unit] }
        };
        let length = unit * rest.as_bytes().chunks(unit).take_while(|piece| repeats(piece)).count();
        let is_kept = length <= MOST * unit || first == ' ' || first.is_ascii_digit();
        shown += if is_kept { &rest[..length] } else { &rest[..3 * unit] };
        rest = &rest[length..];
        if !is_kept {
            shown.push('…');
            // It was cut before.
            rest = rest.strip_prefix('…').unwrap_or(rest);
        }
    }
    shown
}

fn is_escaped(text: &str) -> bool {
    text.as_bytes().get(..4).is_some_and(is_escaped_bytes)
}

/// Whether this is a byte in the form of `\x0f`.
fn is_escaped_bytes(bytes: &[u8]) -> bool {
    bytes.len() == 4 && bytes.starts_with(b"\\x") && bytes[2..].iter().all(u8::is_ascii_hexdigit)
}

fn cells(history: &RunHistory, shows: impl Fn(&TransactionEntry) -> bool) -> Vec<Cell> {
    let writers = Writers::of(history).with_reads(history.transactions.iter().filter(|tx| shows(tx)));
    let mut by_operation: BTreeMap<_, Vec<&TransactionEntry>> = BTreeMap::new();
    for tx in history.transactions.iter().filter(|tx| shows(tx)) {
        by_operation.entry((tx.client, tx.operation)).or_default().push(tx);
    }
    let mut cells: Vec<Cell> = Vec::new();
    // In the order in which a client did them, which counts at equal times.
    for operation in &history.operations {
        let OperationEntry { client, index, call, called, returned, outcome } = operation;
        let of = |at: u64, lines: Vec<String>| Cell { at, client: Some(*client), lines };
        let marked = if history.witness.operations.contains(&(*client, *index)) { "*" } else { "" };
        cells.push(of(*called, vec![format!("{marked}{index}: {call}")]));
        for tx in by_operation.get(&(Some(*client), Some(*index))).into_iter().flatten() {
            let lines = transaction(tx, history.witness.transactions.contains(&tx.id), &writers);
            // A program learns of a commit later, and may have gone on meanwhile.
            let at = if history.is_program { tx.ended } else { tx.durable.unwrap_or(tx.ended) };
            cells.push(of(at, lines));
        }
        cells.push(of(returned.unwrap_or(history.ended), vec![format!("{marked}{index} {outcome}")]));
    }
    // The setup is of interest only as a witness.
    let of_setup =
        |tx: &&TransactionEntry| tx.client.is_none() && history.witness.transactions.contains(&tx.id);
    for tx in history.transactions.iter().filter(of_setup) {
        let mut lines = transaction(tx, true, &writers);
        lines.insert(0, "setup".to_owned());
        cells.push(Cell { at: tx.durable.unwrap_or(tx.ended), client: None, lines });
    }
    let last = history.operations.iter().map(|operation| operation.returned.unwrap_or(history.ended)).max();
    let clients: BTreeSet<u16> = history.operations.iter().map(|operation| operation.client).collect();
    for event in history.events.iter().filter(|event| event.kind != EventKind::Act && Some(event.at) <= last)
    {
        if event.client.is_some_and(|client| !clients.contains(&client)) {
            continue;
        }
        let lines = vec![format!("! {}", of_event(event))];
        cells.push(Cell { at: event.at, client: event.client, lines });
    }
    cells
}

/// An event, with the machine where a fault struck unless it is a client's, and how long it lasted.
fn of_event(event: &EventEntry) -> String {
    if event.kind == EventKind::Act {
        return format!("-- {} --", event.text);
    }
    let lasted = event.until.map_or_else(String::new, |until| {
        format!(", for {} ms", milliseconds(until.saturating_sub(event.at)))
    });
    let place = match (&event.machine, event.kind, event.client) {
        (Some(machine), EventKind::Fault, None) => format!(" at {machine}"),
        _ => String::new(),
    };
    format!("{}{place}{lasted}", event.text)
}

/// Who wrote, in words, by transaction, the keys that the judge points at, and what others read: the writer
/// and the key of each row that a read of the story shows.
struct Writers<'a> {
    names: BTreeMap<u32, String>,
    witness: BTreeSet<&'a str>,
    read: BTreeSet<(u32, &'a str)>,
}

impl<'a> Writers<'a> {
    fn of(history: &'a RunHistory) -> Writers<'a> {
        let who = |tx: &TransactionEntry| match (tx.client, tx.operation) {
            (Some(_), Some(_)) if history.is_program => format!("attempt {}", tx.id),
            (Some(client), Some(operation)) => format!("client {client}, operation {operation}"),
            (Some(client), None) => format!("client {client}"),
            (None, _) => "setup".to_owned(),
        };
        Writers {
            names: history.transactions.iter().map(|tx| (tx.id, who(tx))).collect(),
            witness: history.witness.keys.iter().map(String::as_str).collect(),
            read: BTreeSet::new(),
        }
    }

    /// With what these transactions read of others.
    fn with_reads(mut self, shown: impl Iterator<Item = &'a TransactionEntry>) -> Writers<'a> {
        let mut read = BTreeSet::new();
        for tx in shown {
            for call in tx.calls.iter().filter(|call| call.access.is_read() && self.matters(call)) {
                let rows = self.rows(call).filter(|row| row.writer != Some(tx.id));
                read.extend(rows.filter_map(|row| Some((row.writer?, row.key.as_str()))));
            }
        }
        self.read = read;
        self
    }

    fn is_witness(&self, key: &str) -> bool {
        self.witness.contains(key)
    }

    /// Whether a call touches a key that matters.
    fn matters(&self, call: &CallEntry) -> bool {
        call.shared || self.is_pointed_at(call)
    }

    /// Whether the claim or the judge points at a call.
    fn is_pointed_at(&self, call: &CallEntry) -> bool {
        let rows = || call.rows.iter().any(|row| self.is_witness(&row.key));
        call.named || self.is_witness(&call.at) || rows()
    }

    /// Whether a call of a transaction is never left out: the claim or the judge points at it, or the story
    /// shows who read what it wrote.
    fn is_needed(&self, call: &CallEntry, id: u32) -> bool {
        let is_read = |key: &str| self.read.contains(&(id, key));
        let read = || is_read(&call.at) || call.rows.iter().any(|row| is_read(&row.key));
        self.is_pointed_at(call) || (call.access.is_write() && read())
    }

    /// The rows of a read that are shown: those that the claim or the judge points at, and the first of those
    /// that several transactions touch.
    fn rows<'c>(&self, call: &'c CallEntry) -> impl Iterator<Item = &'c RowEntry> + use<'c> {
        let is_pointed_at = |row: &RowEntry| row.named || self.is_witness(&row.key);
        let all = || call.rows.iter().enumerate();
        let mut shown: BTreeSet<usize> =
            all().filter(|(_, row)| is_pointed_at(row)).map(|(place, _)| place).collect();
        let is_single = call.access != Access::GetRange;
        let others = all().filter(|(_, row)| (row.shared || is_single) && !is_pointed_at(row));
        let room = MOST_ROWS.saturating_sub(shown.len());
        shown.extend(others.map(|(place, _)| place).take(room));
        let rows = &call.rows;
        shown.into_iter().map(move |place| &rows[place])
    }

    /// Who had written a row that `reader` read.
    fn named(&self, row: &RowEntry, reader: u32) -> String {
        match row.writer {
            Some(writer) if writer == reader => " [itself]".to_owned(),
            Some(writer) => self.names.get(&writer).map_or_else(String::new, |who| format!(" [{who}]")),
            None => String::new(),
        }
    }
}

fn transaction(tx: &TransactionEntry, is_witness: bool, writers: &Writers<'_>) -> Vec<String> {
    let mark = if is_witness { "* " } else { "  " };
    let mut lines = vec![format!("{mark}attempt {}{}, {}", tx.id, origin(tx, "attempt "), version(tx))];
    lines.extend(calls(tx, is_witness, writers));
    lines.push(format!("  => {}{}", tx.end, later(tx)));
    lines
}

/// Where in a program an attempt comes from; `name` comes before the number of another one.
fn origin(tx: &TransactionEntry, name: &str) -> String {
    let thread = tx.thread.map_or_else(String::new, |thread| format!(", thread {thread}"));
    let after = tx.after.map_or_else(String::new, |before| format!(", again after {name}{before}"));
    thread + &after
}

fn version(tx: &TransactionEntry) -> String {
    tx.read_version.map_or_else(|| "no read version".to_owned(), |at| format!("at version {at}"))
}

/// How long after its client gave it up a commit became durable.
fn later(tx: &TransactionEntry) -> String {
    match (tx.fate, tx.durable) {
        (Fate::UnknownCommitted | Fate::DroppedCommitted, Some(durable)) if durable > tx.ended => {
            format!(" {} ms later", milliseconds(durable - tx.ended))
        }
        _ => String::new(),
    }
}

/// The calls of a transaction that matter, and all writes of a witness as far as there is room. What is left
/// out is counted in its place, except reads that do not matter.
fn calls(tx: &TransactionEntry, is_witness: bool, writers: &Writers<'_>) -> Vec<String> {
    let theirs = || tx.calls.iter().filter(|call| !call.bookkeeping);
    let told: Vec<(bool, &CallEntry, String)> = theirs()
        .filter_map(|call| {
            let matters = writers.matters(call);
            let line = of_call(call, tx.id, writers).filter(|_| matters || call.access.is_write())?;
            Some((matters, call, line))
        })
        .collect();
    let first = |most: usize, is_such: &dyn Fn(bool, Access) -> bool| -> BTreeSet<usize> {
        let such = told.iter().enumerate().filter(|(_, (matters, call, _))| is_such(*matters, call.access));
        such.map(|(place, _)| place).take(most).collect()
    };
    let is_aside = |access: Access| !access.is_read() && !access.is_write();
    let mut shown = first(MOST_CALLS, &|matters, access| matters && !is_aside(access));
    if is_witness {
        shown.extend(first(MOST_CALLS - shown.len(), &|matters, access| !matters && !is_aside(access)));
    }
    shown.extend(first(MOST_CALLS, &|matters, access| matters && is_aside(access)));
    let needed = told.iter().enumerate().filter(|(_, (_, call, _))| writers.is_needed(call, tx.id));
    shown.extend(needed.map(|(place, _)| place));
    let (mut lines, mut left_out) = (Vec::new(), LeftOut::default());
    for (place, (_, call, line)) in told.into_iter().enumerate() {
        if shown.contains(&place) {
            lines.extend(left_out.take());
            lines.push(line);
        } else {
            left_out.add(call.access);
        }
    }
    lines.extend(left_out.take());
    lines
}

/// Calls in a row that are left out.
#[derive(Default)]
struct LeftOut {
    reads: u64,
    writes: u64,
    others: u64,
}

impl LeftOut {
    fn add(&mut self, access: Access) {
        *match (access.is_read(), access.is_write()) {
            (true, _) => &mut self.reads,
            (_, true) => &mut self.writes,
            _ => &mut self.others,
        } += 1;
    }

    fn take(&mut self) -> Option<String> {
        let LeftOut { reads, writes, others } = std::mem::take(self);
        let of = |n: u64, one, many| (n > 0).then(|| plural(n, one, many));
        let each = [
            of(reads, "more read", "more reads"),
            of(writes, "more write", "more writes"),
            of(others, "other call", "other calls"),
        ];
        let each: Vec<String> = each.into_iter().flatten().collect();
        (!each.is_empty()).then(|| format!("    … {}", each.join(" and ")))
    }
}

/// The value of a row, and who had written it.
fn found(row: &RowEntry, id: u32, writers: &Writers<'_>) -> String {
    row.value.as_deref().unwrap_or("nothing").to_owned() + &writers.named(row, id)
}

/// A read or a write; `None` for a read of a range of which no row matters.
fn of_call(call: &CallEntry, id: u32, writers: &Writers<'_>) -> Option<String> {
    let snapshot = if call.snapshot { " (snapshot)" } else { "" };
    let found = |row: &RowEntry| found(row, id, writers);
    match (call.access, &call.rows[..]) {
        (access, _) if access.is_read() && !call.answered => {
            Some(format!("    reads{snapshot} {}: no reply", call.at))
        }
        (Access::Get, [row]) => Some(format!("    reads{snapshot} {} = {}", call.at, found(row))),
        (Access::GetKey, [row]) => Some(format!("    resolves{snapshot} {} to {}", call.at, row.key)),
        (Access::GetRange, rows) => {
            let each = writers.rows(call).map(|row| format!("{} = {}", row.key, found(row)));
            let mut each: Vec<String> = each.collect();
            let more = (rows.len() - each.len()) as u64 + call.more;
            if more > 0 && !each.is_empty() {
                each.push(plural(more, "more row", "more rows"));
            }
            match (rows.is_empty(), each.is_empty()) {
                (true, _) => Some(format!("    reads{snapshot} {}: nothing", call.at)),
                (false, true) => None,
                (false, false) => Some(format!("    reads{snapshot} {}", each.join("; "))),
            }
        }
        (Access::Set, [row]) => Some(format!("    sets {} = {}", call.at, found(row))),
        (Access::Clear, _) => Some(format!("    clears {}", call.at)),
        (Access::Watch, []) => Some(format!("    watches {}", call.at)),
        (Access::Watch, [row, ..]) => Some(format!("    watches {}, now {}", call.at, found(row))),
        (Access::ReadConflict, _) => Some(format!("    adds read conflict range {}", call.at)),
        (Access::WriteConflict, _) => Some(format!("    adds write conflict range {}", call.at)),
        (Access::Option, rows) => {
            let value = rows.iter().find_map(|row| row.value.as_deref());
            Some(
                format!("    sets option {}", call.at)
                    + &value.map_or(String::new(), |to| format!(" = {to}")),
            )
        }
        (Access::ReadVersion, _) => Some(format!("    sets read version {}", call.at)),
        (Access::Atomic, [row]) => Some(format!("    {} {} {}", call.atomic, call.at, found(row))),
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
        assert_eq!(brief(&format!("\"{}b\"    1", "a".repeat(7))), "\"aaa…b\"    1");
        assert_eq!(brief("ääääää"), "ääääää");
        assert_eq!(brief(&format!("a{}b", "😀".repeat(7))), "a😀😀😀…b");
        assert_eq!(brief("1000000000 xxxxxxx… (7 bytes)"), "1000000000 xxx… (7 bytes)");
    }

    /// A transaction that reads a key, and writes a shared one between two that nobody else touches.
    fn entry(id: u32) -> TransactionEntry {
        let row =
            |key: &str| RowEntry { key: key.to_owned(), value: Some("1".to_owned()), ..RowEntry::default() };
        let call = |access, key: &str, shared| CallEntry {
            access,
            at: key.to_owned(),
            rows: vec![row(key)],
            answered: true,
            shared,
            ..CallEntry::default()
        };
        let calls = vec![
            call(Access::Get, "own", false),
            call(Access::Set, "a", false),
            call(Access::Set, "b", true),
            call(Access::Set, "c", false),
            call(Access::Set, "d", false),
        ];
        TransactionEntry { id, client: Some(0), operation: Some(0), calls, ..TransactionEntry::default() }
    }

    #[test]
    fn a_witness_shows_all_its_writes_and_others_count_what_is_left_out() {
        let history = RunHistory { transactions: vec![entry(1)], ..RunHistory::default() };
        let writers = Writers::of(&history);
        let told = |tx: &TransactionEntry, is_witness| calls(tx, is_witness, &writers);
        let set = |key: &str| format!("    sets {key} = 1");
        let counted = ["    … 1 more write".to_owned(), set("b"), "    … 2 more writes".to_owned()];
        assert_eq!(told(&entry(1), false), counted);
        assert_eq!(told(&entry(1), true), ["a", "b", "c", "d"].map(set));
        // What matters comes first where there is no room for all.
        let mut long = entry(1);
        long.calls = [entry(1).calls, entry(1).calls, entry(1).calls].concat();
        let lines = told(&long, true);
        assert_eq!(lines.iter().filter(|line| **line == set("b")).count(), 3);
        assert_eq!(lines.len(), MOST_CALLS + 2);
        assert_eq!(lines.last().map(String::as_str), Some("    … 2 more writes"));
    }

    /// A transaction that sets twelve keys that several touch.
    fn busy() -> TransactionEntry {
        let set = |n: usize| {
            let key = format!("k{n}");
            let row = RowEntry { key: key.clone(), value: Some("1".to_owned()), ..RowEntry::default() };
            CallEntry { access: Access::Set, at: key, rows: vec![row], shared: true, ..CallEntry::default() }
        };
        TransactionEntry { calls: (0..12).map(set).collect(), ..entry(1) }
    }

    #[test]
    fn what_the_claim_names_or_a_later_read_shows_is_not_left_out() {
        let lines = |busy: TransactionEntry, later: Option<RowEntry>| {
            let read = later.map(|row| CallEntry {
                access: Access::Get,
                at: row.key.clone(),
                rows: vec![row],
                answered: true,
                shared: true,
                ..CallEntry::default()
            });
            let reader = TransactionEntry { calls: read.into_iter().collect(), ..entry(2) };
            let history = RunHistory { transactions: vec![busy, reader], ..RunHistory::default() };
            let writers = Writers::of(&history).with_reads(history.transactions.iter());
            calls(&history.transactions[0], false, &writers)
        };
        let sets = |lines: &[String]| lines.iter().filter(|line| line.contains("sets")).count();
        let first = lines(busy(), None);
        assert_eq!(
            (sets(&first), first.last().map(String::as_str)),
            (MOST_CALLS, Some("    … 4 more writes"))
        );
        let mut named = busy();
        named.calls[10].named = true;
        let named = lines(named, None);
        assert_eq!(named[MOST_CALLS..], ["    … 2 more writes", "    sets k10 = 1", "    … 1 more write"]);
        let row = |writer| RowEntry {
            key: "k11".to_owned(),
            value: Some("1".to_owned()),
            writer,
            ..RowEntry::default()
        };
        let read = lines(busy(), Some(row(Some(1))));
        assert_eq!(read[MOST_CALLS..], ["    … 3 more writes", "    sets k11 = 1"]);
        assert_eq!(lines(busy(), Some(row(Some(3)))), first, "another one had written it");
    }

    #[test]
    fn what_neither_reads_nor_writes_has_room_of_its_own() {
        let option = |name: &str| CallEntry {
            access: Access::Option,
            at: name.to_owned(),
            shared: true,
            ..CallEntry::default()
        };
        let mut tx = busy();
        tx.calls.insert(0, option("lock_aware"));
        tx.calls.extend((0..10).map(|n| option(&format!("tag{n}"))));
        let history = RunHistory { transactions: vec![tx], ..RunHistory::default() };
        let lines = calls(&history.transactions[0], false, &Writers::of(&history));
        assert_eq!(lines[0], "    sets option lock_aware");
        assert_eq!(lines.iter().filter(|line| line.contains("sets k")).count(), MOST_CALLS);
        assert_eq!(lines.iter().filter(|line| line.contains("sets option tag")).count(), MOST_CALLS - 1);
        assert_eq!(lines.last().map(String::as_str), Some("    … 3 other calls"));
    }

    #[test]
    fn a_row_that_the_claim_names_is_shown_among_many() {
        let row =
            |n: usize, named| RowEntry { key: format!("k{n}"), shared: true, named, ..RowEntry::default() };
        let call = CallEntry {
            access: Access::GetRange,
            rows: (0..20).map(|n| row(n, n == 15)).collect(),
            answered: true,
            shared: true,
            ..CallEntry::default()
        };
        let history = RunHistory::default();
        let line = of_call(&call, 1, &Writers::of(&history)).expect("rows that matter");
        assert!(line.contains("k4 = nothing; k15 = nothing; 14 more rows"), "{line}");
    }

    #[test]
    fn lines_are_wrapped_below_their_beginning() {
        assert_eq!(wrapped("  reads a b c", 10), ["  reads a", "    b c"]);
        assert!(wrapped(&"word ".repeat(100), 80).last().is_some_and(|line| line.ends_with('…')));
    }
}
