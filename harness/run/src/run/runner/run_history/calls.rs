//! Calls of a transaction: where, what was read or written, and who had written it.

use super::known::Known;
use crate::describe::sessions;
use bytes::Bytes;
use shaketable_reports::{Access, CallEntry, RowEntry};
use shaketable_sim::{
    history::{Aside, Attempt, Call},
    proto::{KeyRange, Mutation},
};
use shaketable_tx::{ConflictRangeType, Isolation, MutationType, show};
use std::collections::BTreeSet;

/// The most rows of one read that are kept.
const MOST_ROWS: usize = 32;

/// What a transaction itself has written so far.
#[derive(Default)]
pub(super) struct Own {
    keys: BTreeSet<Bytes>,
    cleared: Vec<KeyRange>,
}

impl Own {
    pub(super) fn add(&mut self, call: &Call) {
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

pub(super) fn of_call(
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
            at: at(cleared, known),
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
                    ..RowEntry::default()
                }],
                answered: true,
                shared: known.shared.contains(at),
                bookkeeping: sessions::has(at),
                ..CallEntry::default()
            }
        }
    }
}

/// A call that neither reads nor writes.
pub(super) fn of_aside(aside: &Aside, known: &Known<'_>) -> CallEntry {
    // What they say is of interest whoever else touches it: a conflict range that misses what others write
    // is what a reader looks for.
    let told =
        |access, at: String| CallEntry { access, at, answered: true, shared: true, ..CallEntry::default() };
    match aside {
        Aside::ConflictRange(kind, range) => {
            let access = match kind {
                ConflictRangeType::Read => Access::ReadConflict,
                ConflictRangeType::Write => Access::WriteConflict,
            };
            let bookkeeping = sessions::has(&range.begin);
            CallEntry { shared: !bookkeeping, bookkeeping, ..told(access, at(range, known)) }
        }
        Aside::Option(option) => {
            let row = |value| RowEntry { key: option.name(), value: Some(value), ..RowEntry::default() };
            let rows = option.described().map(row).into_iter().collect();
            CallEntry { rows, ..told(Access::Option, option.name()) }
        }
        Aside::ReadVersion(version) => told(Access::ReadVersion, version.to_string()),
        Aside::Watch(key) => told(Access::Watch, known.key(key)),
    }
}

/// A range in words; one of a single key is that key.
fn at(range: &KeyRange, known: &Known<'_>) -> String {
    match range.end.strip_suffix(b"\0") == Some(&range.begin) {
        true => known.key(&range.begin),
        false => show::range(&range.begin, &range.end),
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
