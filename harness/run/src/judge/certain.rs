//! Certain: an operation with an unknown outcome has a transaction whose outcome was in doubt. If each of its
//! transactions that wrote was refused with an error that [rules a commit
//! out](shaketable_tx::Error::means_not_committed), the layer knew that there is no effect. It did not if the
//! last error is one that leaves it open, such as a timeout: a retry may have met that.

use super::Judgement;
use crate::{
    describe::erased::AnyValue,
    describe::workload::{Operation, Outcome},
    judge::finding::{Objection, Witness},
};
use shaketable_sim::{
    history::{Attempt, Call, History, Reported},
    ids::AttemptId,
    judges::Said,
};
use shaketable_tx::Error;
use std::collections::BTreeMap;

/// An operation: its client, and its index in the client's list.
type Key = (usize, usize);

/// Claims that every unknown outcome was in doubt. `given_up` says which operations were dropped, by the run
/// or by their client on purpose, and `describe` names an operation.
pub fn judge(
    operations: &[Vec<Operation<AnyValue>>],
    given_up: impl Fn(Key) -> bool,
    history: &History,
    describe: impl Fn(Key) -> String,
) -> Judgement {
    let each = operations.iter().enumerate().flat_map(|(client, list)| {
        list.iter().enumerate().map(move |(index, operation)| ((client, index), operation))
    });
    let mut unknown: BTreeMap<Key, (Error, Vec<AttemptId>)> = each
        .filter_map(|(key, operation)| match operation.outcome {
            Some(Outcome::Unknown(error)) if !given_up(key) && is_no_doubt(error) => {
                Some((key, (error, Vec::new())))
            }
            _ => None,
        })
        .collect();
    for (id, attempt) in history.numbered().filter(|(_, attempt)| writes(attempt)) {
        let Some(operation) = attempt.operation else { continue };
        let key = (usize::from(attempt.client.0), operation as usize);
        match attempt.reported {
            Reported::Failed(error) if error.means_not_committed() => {
                unknown.entry(key).and_modify(|(_, refused)| refused.push(id));
            }
            _ => drop(unknown.remove(&key)),
        }
    }
    unknown.retain(|_, (_, refused)| !refused.is_empty());
    let more = match unknown.len().saturating_sub(1) {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    // The one whose transaction was refused first.
    let first = unknown.into_iter().min_by_key(|(_, (_, refused))| refused.first().copied());
    let Some((key, (error, attempts))) = first else { return Ok(()) };
    let last = attempts.last().and_then(|id| history.attempt(*id)).map(|attempt| attempt.reported);
    let refusal = match last {
        Some(Reported::Failed(error)) => error,
        _ => error,
    };
    let message = format!(
        "{} has an unknown outcome with {error}, but it certainly has no effect: its last transaction that wrote \
         failed with {refusal}, and no other may have committed{more}",
        describe(key)
    );
    let said = Said::named(format!("no doubt, with {}", error.code()));
    let witness = Witness { attempts, ..Witness::operation(key.0, key.1) };
    Err(Box::new(Objection { message, said, witness }))
}

/// Whether an error raises no doubt by itself. After 1021 a commit has its end, so that its transaction has
/// it in the history.
fn is_no_doubt(error: Error) -> bool {
    error.means_not_committed() || error == Error::COMMIT_UNKNOWN_RESULT
}

fn writes(attempt: &Attempt) -> bool {
    attempt.commit_sent.is_some() || attempt.calls.iter().any(|call| matches!(call, Call::Write(_)))
}
