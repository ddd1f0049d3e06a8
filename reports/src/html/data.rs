//! The data of a time line, which the scripts of a page draw: the history of a run as JSON, with each text
//! once.

use super::room::Share;
use crate::{
    history::{
        Access, CallEntry, EventEntry, EventKind, Fate, OperationEntry, RowEntry, RunHistory,
        TransactionEntry,
    },
    text::{cut, plural},
    when::When,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How much of a history is embedded.
#[derive(Clone, Copy)]
struct Detail {
    /// The most rows of a read or a write.
    rows: usize,
    /// The most characters of a text.
    characters: usize,
    /// Whether reads and writes are embedded.
    has_calls: bool,
}

/// From the most detail to the least. Keys are filtered by what is embedded, so that calls are kept as long
/// as possible.
const DETAILS: [Detail; 6] = [
    Detail { rows: 1_000, characters: 20_000, has_calls: true },
    Detail { rows: 100, characters: 2_000, has_calls: true },
    Detail { rows: 12, characters: 400, has_calls: true },
    Detail { rows: 4, characters: 120, has_calls: true },
    Detail { rows: 1, characters: 60, has_calls: true },
    Detail { rows: 0, characters: 60, has_calls: false },
];

/// The data of a history.
pub struct Embedded {
    /// JSON that is safe inside of a `script` element.
    pub json: String,
    /// What was left out, as a sentence; empty if nothing was.
    pub left_out: String,
}

/// The least bytes of an operation, a transaction or an event.
const LEAST: usize = 24;

/// The history with as much detail as there is room for, and how often its plan fails with other chance;
/// `None` if there is no room for it.
pub fn embed(history: &RunHistory, when: Option<&When>, share: &Share<'_>) -> Option<Embedded> {
    let items = history.operations.len() + history.transactions.len() + history.events.len();
    if share.left() < items.saturating_mul(LEAST) {
        return None;
    }
    DETAILS.iter().find_map(|detail| {
        let mut writer =
            Writer { detail: *detail, texts: Vec::new(), places: BTreeMap::new(), rows: 0, cut: 0 };
        let mut value = writer.history(history);
        if let Some(When { runs, moments }) = when {
            let moments: Vec<_> = moments.iter().map(|moment| (moment.at, moment.failed)).collect();
            value["when"] = json!({ "runs": runs, "moments": moments });
        }
        let json = safe(&value);
        share.take(json.len()).then(|| Embedded { json, left_out: writer.left_out() })
    })
}

/// JSON in which no text can end a `script` element or begin a comment.
fn safe(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Writes a history, and counts what is left out.
struct Writer<'a> {
    detail: Detail,
    texts: Vec<&'a str>,
    places: BTreeMap<&'a str, usize>,
    rows: u64,
    cut: u64,
}

impl<'a> Writer<'a> {
    fn history(&mut self, history: &'a RunHistory) -> Value {
        let operations: Vec<Value> = history.operations.iter().map(|op| self.operation(op)).collect();
        let transactions: Vec<Value> = history.transactions.iter().map(|tr| self.transaction(tr)).collect();
        let events: Vec<Value> = history.events.iter().map(|event| self.event(event)).collect();
        let witness = &history.witness;
        let keys: Vec<usize> = witness.keys.iter().map(|key| self.text(key)).collect();
        json!({
            "ended": history.ended,
            "operations": operations,
            "transactions": transactions,
            "events": events,
            "witness": {
                "operations": witness.operations,
                "transactions": witness.transactions,
                "keys": keys,
            },
            "texts": self.texts,
        })
    }

    /// The place of a text.
    fn text(&mut self, text: &'a str) -> usize {
        let shown = cut(text, self.detail.characters);
        self.cut += u64::from(shown.len() < text.len());
        *self.places.entry(shown).or_insert_with(|| {
            self.texts.push(shown);
            self.texts.len() - 1
        })
    }

    fn operation(&mut self, op: &'a OperationEntry) -> Value {
        let (call, outcome) = (self.text(&op.call), self.text(&op.outcome));
        json!([op.client, op.index, call, op.called, op.returned, outcome])
    }

    fn transaction(&mut self, tr: &'a TransactionEntry) -> Value {
        let end = self.text(&tr.end);
        let calls: Vec<Value> = match self.detail.has_calls {
            true => tr.calls.iter().map(|call| self.call(call)).collect(),
            false => Vec::new(),
        };
        json!([
            tr.id,
            tr.client,
            tr.operation,
            tr.began,
            tr.read_version.map(version),
            tr.commit_sent,
            tr.durable,
            tr.ended,
            fate(tr.fate),
            tr.version.map(version),
            end,
            tr.refused_by,
            calls,
            tr.thread,
            tr.after,
        ])
    }

    fn call(&mut self, call: &'a CallEntry) -> Value {
        let (name, at) = (self.text(name(call)), self.text(&call.at));
        let rows: Vec<Value> = call.rows.iter().take(self.detail.rows).map(|row| self.row(row)).collect();
        let left_out = (call.rows.len() - rows.len()) as u64;
        self.rows += left_out;
        let access = call.access;
        let flags = [access.is_read(), call.snapshot, call.answered, call.bookkeeping, access.is_write()];
        json!([name, at, bits(&flags), rows, call.more.saturating_add(left_out)])
    }

    fn row(&mut self, row: &'a RowEntry) -> Value {
        let key = self.text(&row.key);
        let value = row.value.as_ref().map(|value| self.text(value));
        json!([key, value, row.writer, bits(&[row.shared])])
    }

    fn event(&mut self, event: &'a EventEntry) -> Value {
        let text = self.text(&event.text);
        let machine = event.machine.as_ref().map(|machine| self.text(machine));
        json!([kind(event.kind), event.at, event.until, event.client, machine, text])
    }

    fn left_out(&self) -> String {
        let mut what = Vec::new();
        if !self.detail.has_calls {
            what.push("the reads and writes of all transactions".to_owned());
        }
        if self.rows > 0 {
            what.push(plural(self.rows, "row of a large read", "rows of large reads"));
        }
        if self.cut > 0 {
            what.push(plural(self.cut, "end of a long text", "ends of long texts"));
        }
        match what.as_slice() {
            [] => String::new(),
            [most @ .., last] if !most.is_empty() => format!("{} and {last}", most.join(", ")),
            [only, ..] => only.clone(),
        }
    }
}

/// Versions are texts: a number of JavaScript has too few digits for them.
fn version(version: i64) -> String {
    version.to_string()
}

fn bits(flags: &[bool]) -> u8 {
    flags.iter().enumerate().map(|(n, flag)| u8::from(*flag) << n).sum()
}

fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Committed => "committed",
        Fate::ReadOnly => "read-only",
        Fate::Conflict => "conflict",
        Fate::UnknownCommitted => "unknown-committed",
        Fate::UnknownNotCommitted => "unknown-not-committed",
        Fate::Failed => "failed",
        Fate::DroppedCommitted => "dropped-committed",
        Fate::Dropped => "dropped",
    }
}

fn kind(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Fault => "fault",
        EventKind::Dead => "dead",
        EventKind::Paused => "paused",
        EventKind::Recovery => "recovery",
        EventKind::Act => "act",
    }
}

fn name(call: &CallEntry) -> &str {
    match call.access {
        Access::Get => "get",
        Access::GetKey => "get_key",
        Access::GetRange => "get_range",
        Access::Set => "set",
        Access::Clear => "clear",
        Access::Atomic if !call.atomic.is_empty() => &call.atomic,
        Access::Atomic => "atomic_op",
        Access::Watch => "watch",
        Access::ReadConflict => "add_read_conflict_range",
        Access::WriteConflict => "add_write_conflict_range",
        Access::Option => "set_option",
        Access::ReadVersion => "set_read_version",
    }
}
