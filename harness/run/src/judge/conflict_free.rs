//! Conflict-free: operations that the layer promises not to conflict with each other cannot conflict.
//!
//! A conflict may be rare, or explained by a fault. This judge therefore compares the serializable reads of
//! the attempts of such operations with the writes of other clients' transactions, regardless of when they
//! happened.

use super::{Judgement, Truth};
use crate::{
    describe::erased::{AnyValue, AnyWorkload},
    judge::finding::{Objection, Witness},
};
use bytes::Bytes;
use shaketable_sim::{
    history::History,
    ids::AttemptId,
    proto::{KeyRange, Mutation},
};
use shaketable_tx::{key_after, show};
use std::collections::BTreeMap;

/// Judges the attempts of the operations that the workload calls conflict-free.
pub fn judge(workload: &AnyWorkload, plan: &[Vec<AnyValue>], history: &History, truth: &Truth) -> Judgement {
    let free: Vec<Vec<bool>> =
        plan.iter().map(|list| list.iter().map(|op| workload.is_conflict_free(op)).collect()).collect();
    if !free.iter().flatten().any(|free| *free) {
        return Ok(());
    }
    conflicts(&free, history, truth, &|client, operation| {
        format!("operation {operation} of client {client} ({:?})", plan[client][operation])
    })
}

/// Judges the operations that are marked in `free`, by client.
fn conflicts(
    free: &[Vec<bool>],
    history: &History,
    truth: &Truth,
    describe: &dyn Fn(usize, usize) -> String,
) -> Judgement {
    let promised = |client: usize, operation: Option<u32>| {
        let operation = operation? as usize;
        free.get(client)?.get(operation)?.then_some(operation)
    };
    // The writes of these operations, by begin key.
    let mut written: BTreeMap<Bytes, Vec<(KeyRange, usize, usize, AttemptId)>> = BTreeMap::new();
    for tx in truth.entries.iter().flat_map(|entry| &entry.transactions) {
        let Some((id, attempt)) =
            tx.attempt.and_then(|id| Some((id, history.attempts[id.0 as usize].as_ref()?)))
        else {
            continue;
        };
        let client = attempt.client.0 as usize;
        let Some(operation) = promised(client, attempt.operation) else { continue };
        for mutation in &tx.mutations {
            let range = match mutation {
                Mutation::Set(key, _) | Mutation::Atomic(key, ..) => {
                    KeyRange::new(key.clone(), key_after(key))
                }
                Mutation::ClearRange(range) => range.clone(),
            };
            written.entry(range.begin.clone()).or_default().push((range, client, operation, id));
        }
    }
    for (id, attempt) in history.attempts.iter().enumerate() {
        let Some(attempt) = attempt else { continue };
        let client = attempt.client.0 as usize;
        let Some(operation) = promised(client, attempt.operation) else { continue };
        for read in &attempt.read_ranges {
            let met = written
                .range(..read.end.clone())
                .flat_map(|(_, writes)| writes)
                .filter(|(range, other, ..)| *other != client && range.intersects(read))
                .min_by_key(|(.., by)| *by);
            if let Some((range, other, theirs, by)) = met {
                let message = format!(
                    "{} reads {} serializably, and {} writes {}: they can conflict, and promise not to",
                    describe(client, operation),
                    show::range(&read.begin, &read.end),
                    describe(*other, *theirs),
                    show::key(&range.begin),
                );
                let witness = Witness {
                    operations: vec![(client, operation), (*other, *theirs)],
                    attempts: vec![AttemptId(id as u32), *by],
                    keys: common(read, range),
                    ..Witness::default()
                };
                return Err(Box::new(Objection { message, witness, ..Objection::default() }));
            }
        }
    }
    Ok(())
}

/// What two ranges have in common: a key, or the two ends of a range.
fn common(one: &KeyRange, other: &KeyRange) -> Vec<Bytes> {
    let begin = one.begin.clone().max(other.begin.clone());
    let end = one.end.clone().min(other.end.clone());
    if end == key_after(&begin) { vec![begin] } else { vec![begin, end] }
}
