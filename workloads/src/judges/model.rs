//! Model: the workload's sequential model, replayed in commit order, gives the answers that
//! clients got.
//!
//! An operation stands where its writing transaction committed, or, if none did, where one of its
//! transactions read: which one gave the answer only the layer knows, that may have looked again to make
//! sure that an earlier attempt is without effect. A transaction that the workload calls no effect does
//! not count. An operation that was reported to have no effect must have none; one whose outcome is
//! unknown may have one.

use super::{Truth, waiting::Timing};
use crate::{
    runner::Operation,
    workload::{Outcome, Step, Workload},
};
use shaketable_sim::{
    history::History,
    proto::{Mutation, Version},
};
use std::collections::BTreeMap;

/// Replays the operations. `operations` is each client's list as it went. Gives the final model.
pub fn judge<W: Workload>(
    workload: &W,
    plan: &[Vec<W::Op>],
    operations: &[Vec<Operation<W::Answer>>],
    history: &History,
    truth: &Truth,
) -> Result<W::Model, String> {
    /// Where an operation stands: behind everything of lower version and order.
    type Place = (Version, u32);
    /// Where an effect stands, what its transaction read at, and what it wrote.
    type Effect<'a> = (Place, Option<Version>, &'a [Mutation]);
    let mut effects: BTreeMap<(usize, usize), Vec<Effect<'_>>> = BTreeMap::new();
    let mut looks: BTreeMap<(usize, usize), Vec<Version>> = BTreeMap::new();
    for entry in &truth.entries {
        for tx in &entry.transactions {
            let Some(attempt) = tx.attempt.and_then(|id| history.attempts[id.0 as usize].as_ref()) else {
                continue;
            };
            if let Some(operation) = attempt.operation
                && workload.is_effect(&tx.mutations)
            {
                let key = (attempt.client.0 as usize, operation as usize);
                let place = (entry.version, u32::from(tx.batch_index));
                effects.entry(key).or_default().push((place, attempt.read_version, &tx.mutations));
            }
        }
    }
    for attempt in history.attempts.iter().flatten() {
        if let (Some(operation), Some(version)) = (attempt.operation, attempt.read_version) {
            looks.entry((attempt.client.0 as usize, operation as usize)).or_default().push(version);
        }
    }
    let mut order = Vec::new();
    for (client, list) in operations.iter().enumerate() {
        for (index, operation) in list.iter().enumerate() {
            let key = (client, index);
            let answer = match &operation.outcome {
                Some(Outcome::Answered(answer)) => Some(answer),
                _ => None,
            };
            let places = effects.get(&key).map_or(&[][..], Vec::as_slice);
            if let (Some(Outcome::GaveUp(error)), Some(((version, _), ..))) =
                (&operation.outcome, places.first())
            {
                return Err(format!(
                    "client {client} was told that its operation {index} ({:?}) failed with {error} and has no \
                     effect, but it committed at version {version}",
                    plan[client][index]
                ));
            }
            if W::ONE_EFFECT && places.len() > 1 {
                return Err(format!(
                    "operation {index} of client {client} ({:?}) took effect {} times: at versions {}",
                    plan[client][index],
                    places.len(),
                    places.iter().map(|((v, _), ..)| v.to_string()).collect::<Vec<_>>().join(", ")
                ));
            }
            for (place, read_version, mutations) in places {
                order.push((*place, client, index, answer, true, *read_version, *mutations));
            }
            if let (true, Some(answer), Some(versions)) = (places.is_empty(), answer, looks.get_mut(&key)) {
                versions.sort_unstable();
                versions.dedup();
                let looks = versions
                    .iter()
                    .map(|v| ((*v, u32::MAX), client, index, Some(answer), false, Some(*v), &[][..]));
                order.extend(looks);
            }
        }
    }
    order.sort_by_key(|(place, client, index, ..)| (*place, *client, *index));
    let timing = Timing::of(history, truth);
    let mut model = workload.model();
    // Operations without effect: what does not fit, `None` once a look has fitted.
    let mut unfit: BTreeMap<(usize, usize), Option<String>> = BTreeMap::new();
    for ((version, batch), client, index, answer, committed, read_version, mutations) in order {
        let op = &plan[client][index];
        let stamp = committed.then(|| versionstamp(version, batch));
        let Operation { called, returned, .. } = operations[client][index];
        let timing = &timing;
        let step = Step {
            client,
            index,
            op,
            answer,
            committed,
            stamp,
            read_version,
            mutations,
            called,
            returned,
            timing,
        };
        let fits = workload.step(&mut model, &step).map_err(|why| {
            let how = if committed { "committed" } else { "read" };
            format!("operation {index} of client {client} ({op:?}), which {how} at version {version}: {why}")
        });
        match fits {
            Err(why) if committed => return Err(why),
            Err(why) => drop(unfit.entry((client, index)).or_insert(Some(why))),
            Ok(()) if committed => {}
            Ok(()) => drop(unfit.insert((client, index), None)),
        }
    }
    unfit.into_values().flatten().next().map_or(Ok(model), Err)
}

/// Eight bytes of commit version, two of batch order, big-endian.
fn versionstamp(version: Version, batch: u32) -> [u8; 10] {
    let mut stamp = [0; 10];
    stamp[..8].copy_from_slice(&version.to_be_bytes());
    stamp[8..].copy_from_slice(&(batch as u16).to_be_bytes());
    stamp
}
