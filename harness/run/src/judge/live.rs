//! Live: after faults have ended, every pending operation finishes within a time limit.

use super::{
    Judgement, Truth,
    writes::{END, LAST, Writes, spans},
};
use crate::{
    describe::erased::AnyValue,
    describe::workload::Operation,
    judge::finding::{Objection, Witness},
};
use shaketable_sim::{history::History, judges::Said, rt::Nanos};
use std::collections::BTreeSet;

/// The time limit after faults have ended, nanoseconds of virtual time.
pub const BOUND: Nanos = 60 * shaketable_sim::rt::SECOND;

/// Claims that no client waits. The error lists what each waiting client waits for. `planned` has the
/// operations of each client, and `unfinished` the clients that neither finished nor left.
pub fn judge(
    operations: &[Vec<Operation<AnyValue>>],
    planned: &[Vec<AnyValue>],
    unfinished: &BTreeSet<usize>,
    now: Nanos,
) -> Judgement {
    let (mut waiting, mut witness) = (Vec::new(), Witness::default());
    for (client, (list, planned)) in operations.iter().zip(planned).enumerate() {
        match list.last() {
            Some(op) if op.outcome.is_none() => {
                witness.operations.push((client, list.len() - 1));
                waiting.push(format!(
                    "client {client} has waited for its operation {} ({:?}) for {:.3} s",
                    list.len() - 1,
                    planned[list.len() - 1],
                    now.saturating_sub(op.called) as f64 / 1e9
                ));
            }
            _ if list.len() < planned.len() && unfinished.contains(&client) => {
                waiting.push(format!(
                    "client {client} waits to open its session after {} operations",
                    list.len()
                ));
            }
            _ => {}
        }
    }
    match waiting.is_empty() {
        true => Ok(()),
        false => {
            // How many clients wait is of no interest.
            let what = if witness.operations.is_empty() { "a session" } else { "an operation" };
            Err(Box::new(Objection { message: waiting.join("; "), said: Said::named(what), witness }))
        }
    }
}

/// The witness with, for each operation that waits, the transaction that should have woken it: the first one
/// that changed something that the operation had read in its last transaction.
pub(crate) fn with_wakers(mut witness: Witness, history: &History, truth: &Truth) -> Witness {
    let writes = Writes::of(history, truth);
    for (client, index) in witness.operations.clone() {
        let mut attempts = history.attempts.iter().flatten();
        let last = attempts.rfind(|attempt| {
            (usize::from(attempt.client.0), attempt.operation) == (client, Some(index as u32))
        });
        let Some((last, version)) = last.and_then(|last| Some((last, last.read_version?))) else { continue };
        let mut changes = writes.between(&spans(last), (version, LAST), END);
        let is_other = |attempt: usize| {
            let attempt = history.attempts[attempt].as_ref();
            attempt.is_some_and(|by| (by.client, by.operation) != (last.client, last.operation))
        };
        changes.retain(|(_, by)| is_other(by.0 as usize));
        if let Some((_, first)) = changes.last().cloned() {
            changes.retain(|(_, by)| *by == first);
            witness.add(changes);
        }
    }
    witness
}
