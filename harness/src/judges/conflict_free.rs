//! Conflict-free: operations that the layer promises not to conflict with each other cannot conflict.
//!
//! A conflict may be rare, or explained by a fault. This judge therefore compares the serializable reads of the
//! attempts of such operations with the writes of other clients' transactions, regardless of when they happened.

use super::{Truth, show};
use crate::workload::Workload;
use bytes::Bytes;
use shaketable_sim::{
    history::History,
    proto::{KeyRange, Mutation},
};
use std::collections::BTreeMap;

/// Judges the attempts of the operations that the workload calls conflict-free.
pub fn judge<W: Workload>(
    workload: &W,
    plan: &[Vec<W::Op>],
    history: &History,
    truth: &Truth,
) -> Result<(), String> {
    let free: Vec<Vec<bool>> =
        plan.iter().map(|list| list.iter().map(|op| workload.is_conflict_free(op)).collect()).collect();
    if !free.iter().flatten().any(|free| *free) {
        return Ok(());
    }
    conflicts(&free, history, truth, &|client, operation| {
        format!("operation {operation} of client {client} ({:?})", plan[client][operation])
    })
}

/// Judges the operations that are marked in `free`, by client. It is compiled once, and not for each workload.
fn conflicts(
    free: &[Vec<bool>],
    history: &History,
    truth: &Truth,
    describe: &dyn Fn(usize, usize) -> String,
) -> Result<(), String> {
    let promised = |client: usize, operation: Option<u32>| {
        let operation = operation? as usize;
        free.get(client)?.get(operation)?.then_some(operation)
    };
    // The writes of these operations, by begin key.
    let mut written: BTreeMap<Bytes, Vec<(KeyRange, usize, usize)>> = BTreeMap::new();
    for tx in truth.entries.iter().flat_map(|entry| &entry.transactions) {
        let Some(attempt) = tx.attempt.and_then(|id| history.attempts[id.0 as usize].as_ref()) else {
            continue;
        };
        let client = attempt.client.0 as usize;
        let Some(operation) = promised(client, attempt.operation) else { continue };
        for mutation in &tx.mutations {
            let range = match mutation {
                Mutation::Set(key, _) | Mutation::Atomic(key, ..) => {
                    KeyRange::new(key.clone(), shaketable_layers::tx::key_after(key))
                }
                Mutation::ClearRange(range) => range.clone(),
            };
            written.entry(range.begin.clone()).or_default().push((range, client, operation));
        }
    }
    for attempt in history.attempts.iter().flatten() {
        let client = attempt.client.0 as usize;
        let Some(operation) = promised(client, attempt.operation) else { continue };
        for read in &attempt.read_ranges {
            let met = written
                .range(..read.end.clone())
                .flat_map(|(_, writes)| writes)
                .find(|(range, other, _)| *other != client && range.intersects(read));
            if let Some((range, other, theirs)) = met {
                return Err(format!(
                    "{} reads {} to {} serializably, and {} writes {}: they can conflict, and promise not to",
                    describe(client, operation),
                    show(&read.begin),
                    show(&read.end),
                    describe(*other, *theirs),
                    show(&range.begin),
                ));
            }
        }
    }
    Ok(())
}
