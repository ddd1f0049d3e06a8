//! Overwritten: a transaction that has seen nothing at a key, at snapshot, does not replace what another
//! operation has written there in the meantime. What that one wrote is lost, although both were done.
//!
//! A workload may say that [its last writer wins](crate::describe::workload::Workload::may_overwrite). One
//! with a model does so by default, because its model tells what is lost.

use super::{
    Judgement, Truth,
    writes::{point, scanned},
};
use crate::{
    describe::erased::{AnyValue, AnyWorkload},
    judge::finding::{Objection, Witness},
    judge::model::describe,
};
use bytes::Bytes;
use shaketable_sim::{
    history::{Attempt, Call, History},
    ids::AttemptId,
    proto::{KeyRange, Mutation, Version},
};
use shaketable_tx::{Isolation, show};

/// A write of an operation.
struct Set<'a> {
    at: Version,
    by: AttemptId,
    value: &'a Bytes,
}

/// Judges the committed transactions of the operations that may not overwrite.
pub fn judge(workload: &AnyWorkload, plan: &[Vec<AnyValue>], history: &History, truth: &Truth) -> Judgement {
    let operation = |attempt: &Attempt| {
        let key = (usize::from(attempt.client.0), attempt.operation? as usize);
        Some((key, plan.get(key.0)?.get(key.1)?))
    };
    for (number, entry) in truth.entries.iter().enumerate() {
        for (place, tx) in entry.transactions.iter().enumerate() {
            let Some((id, attempt)) = tx.attempt.and_then(|id| Some((id, history.attempt(id)?))) else {
                continue;
            };
            let Some((key, op)) = operation(attempt).filter(|(_, op)| !workload.may_overwrite(op)) else {
                continue;
            };
            let empty = seen_empty(attempt);
            if empty.is_empty() {
                continue;
            }
            let since = attempt.read_version.unwrap_or(Version::MAX);
            let from = truth.entries.partition_point(|entry| entry.version <= since);
            for mutation in &tx.mutations {
                let Mutation::Set(written, value) = mutation else { continue };
                let is_guarded = attempt.read_ranges.iter().any(|range| range.contains(written));
                if is_guarded || !empty.iter().any(|range| range.contains(written)) {
                    continue;
                }
                let earlier = truth.entries[from..number]
                    .iter()
                    .flat_map(|entry| entry.transactions.iter().map(|tx| (entry.version, tx)));
                let beside = entry.transactions[..place].iter().map(|tx| (entry.version, tx));
                let lost = last_set(earlier.chain(beside), written).filter(|set| set.value != value);
                let Some(set) = lost else { continue };
                let Some((other, theirs)) = history.attempt(set.by).and_then(operation) else { continue };
                if other == key {
                    continue;
                }
                let message = format!(
                    "{}, which committed at version {}, overwrote {}: it had seen nothing there, at snapshot, and {} \
                     had written it at version {} in the meantime, which is lost",
                    describe(key, op),
                    entry.version,
                    show::key(written),
                    describe(other, theirs),
                    set.at,
                );
                let witness = Witness {
                    operations: vec![key, other],
                    attempts: vec![id, set.by],
                    keys: vec![written.clone()],
                    ..Witness::default()
                };
                return Err(Box::new(Objection { message, witness, ..Objection::default() }));
            }
        }
    }
    Ok(())
}

/// The last of these transactions' writes of a key, if it left a value of its own there.
fn last_set<'a>(
    transactions: impl Iterator<Item = (Version, &'a shaketable_sim::proto::LoggedTransaction)>,
    key: &Bytes,
) -> Option<Set<'a>> {
    let mut last = None;
    for (at, tx) in transactions {
        for mutation in &tx.mutations {
            match mutation {
                Mutation::Set(set, value) if set == key => {
                    last = tx.attempt.map(|by| Set { at, by, value });
                }
                Mutation::Atomic(changed, ..) if changed == key => last = None,
                Mutation::ClearRange(range) if range.contains(key) => last = None,
                _ => {}
            }
        }
    }
    last
}

/// The ranges in which an attempt saw nothing, at snapshot.
fn seen_empty(attempt: &Attempt) -> Vec<KeyRange> {
    let mut empty = Vec::new();
    for call in &attempt.calls {
        match call {
            Call::Get { key, isolation: Isolation::Snapshot, answer: Some(None) } => empty.push(point(key)),
            Call::GetRange {
                begin,
                end,
                reverse,
                isolation: Isolation::Snapshot,
                answer: Some((rows, more)),
                ..
            } => {
                // Between the rows, and on both sides of them.
                let KeyRange { begin, end } =
                    scanned(KeyRange::new(begin.key.clone(), end.key.clone()), rows, *reverse, *more);
                let mut keys: Vec<KeyRange> = rows.iter().map(|row| point(&row.key)).collect();
                keys.sort_by(|a, b| a.begin.cmp(&b.begin));
                let begins = std::iter::once(begin).chain(keys.iter().map(|row| row.end.clone()));
                let ends = keys.iter().map(|row| row.begin.clone()).chain([end.clone()]);
                let between = begins.zip(ends).filter(|(begin, end)| begin < end);
                empty.extend(between.map(|(begin, end)| KeyRange { begin, end }));
            }
            Call::GetKey { selector, isolation: Isolation::Snapshot, answer: Some(found) }
                if matches!(selector.offset, 0 | 1) =>
            {
                let (low, high) = (found.min(&selector.key), found.max(&selector.key));
                let after = point(low).end;
                if after < *high {
                    empty.push(KeyRange { begin: after, end: high.clone() });
                }
            }
            _ => {}
        }
    }
    empty
}
