//! Neighbours: no operation changes keys of other applications.
//!
//! One cluster has the keys of many layers, and where those of a layer begin and end is known to the layer
//! alone. Two keys are nobody's whose layer has a subspace: one before all of them, and one behind. A write
//! of one of them, or a cleared range with it, would destroy the rows of whoever is there: a range that
//! begins with nothing, or ends at the end of the database, does. A layer that owns the whole database reads
//! there: then it may.

use super::{
    Judgement,
    writes::{point, spans},
};
use crate::judge::finding::{Objection, Witness};
use bytes::Bytes;
use shaketable_sim::{
    history::{Attempt, History},
    proto::{KeyRange, Mutation},
};
use shaketable_tx::show;

/// The keys of neighbours: before and behind those of any layer with a subspace.
const NEIGHBOURS: [&[u8]; 2] = [b"\x00", b"\xfe\xff\xff\xff"];

/// Claims that no operation changes a neighbour's key. `describe` names an operation: its client and index.
pub fn judge(history: &History, describe: impl Fn((usize, usize)) -> String) -> Judgement {
    let mut entries: Vec<_> = history.committed().collect();
    entries.sort_by_key(|entry| entry.version);
    for tx in entries.into_iter().flat_map(|entry| &entry.transactions) {
        let Some((id, by)) = tx.attempt.and_then(|id| Some((id, history.attempt(id)?))) else { continue };
        let Some(operation) = by.operation.map(|index| (usize::from(by.client.0), index as usize)) else {
            continue;
        };
        for mutation in &tx.mutations {
            let (what, range) = match mutation {
                Mutation::Set(key, _) | Mutation::Atomic(key, ..) => ("writes", point(key)),
                Mutation::ClearRange(range) => ("clears", range.clone()),
            };
            let Some(key) = NEIGHBOURS.into_iter().find(|key| range.contains(key)) else { continue };
            if history.attempts.iter().flatten().any(|attempt| reads(attempt, key)) {
                continue;
            }
            let message = format!(
                "{} {what} {}, and {} in it is not the layer's: no operation, audit or check reads it",
                describe(operation),
                show::range(&range.begin, &range.end),
                show::key(key),
            );
            let witness = Witness {
                operations: vec![operation],
                attempts: vec![id],
                keys: vec![Bytes::from_static(key)],
                ..Witness::default()
            };
            return Err(Box::new(Objection { message, witness, ..Objection::default() }));
        }
    }
    Ok(())
}

fn reads(attempt: &Attempt, key: &[u8]) -> bool {
    spans(attempt).iter().any(|span: &KeyRange| span.contains(key))
}
