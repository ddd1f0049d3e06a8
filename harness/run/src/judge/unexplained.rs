//! Unexplained: an operation that fails, or whose outcome stays unknown, met something that explains it. One
//! of its transactions ended with an error or was given up while it waited for an answer, or the run itself
//! ended the operation: it dropped it, or its client died.

use super::{Judgement, witnesses};
use crate::{
    describe::erased::AnyValue,
    describe::workload::{Operation, Outcome},
    judge::finding::{Objection, Witness},
};
use shaketable_sim::{
    history::{Attempt, Call, History, Reported},
    judges::Said,
    rt::{MILLISECOND, Nanos},
};
use shaketable_tx::Error;
use std::collections::BTreeSet;

/// No timeout of a transaction is shorter, nanoseconds: a read takes longer than that.
const SHORTEST_TIMEOUT: Nanos = 5 * MILLISECOND;

/// An operation: its client, and its index in the client's list.
type Key = (usize, usize);

/// Claims that every operation that failed or is unknown is explained. `given_up` says which were dropped, by
/// the run or by their client on purpose, and `describe` names an operation.
pub fn judge(
    operations: &[Vec<Operation<AnyValue>>],
    given_up: impl Fn(Key) -> bool,
    history: &History,
    describe: impl Fn(Key) -> String,
) -> Judgement {
    let attempts = history.attempts.iter().flatten().filter(|attempt| explains(attempt));
    let explained: BTreeSet<Key> = attempts
        .filter_map(|attempt| Some((usize::from(attempt.client.0), attempt.operation? as usize)))
        .collect();
    let each = operations.iter().enumerate().flat_map(|(client, list)| {
        list.iter().enumerate().map(move |(index, operation)| ((client, index), operation))
    });
    let unexplained: Vec<_> = each
        .filter_map(|(key, operation)| match operation.outcome {
            Some(Outcome::Failed(error)) => Some((key, "failed with", error, operation)),
            Some(Outcome::Unknown(error)) => Some((key, "has an unknown outcome with", error, operation)),
            _ => None,
        })
        .filter(|(key, _, error, operation)| {
            // Neither a wait for a read version alone is recorded, nor the end of a watch.
            let waited = operation.returned.saturating_sub(operation.called) >= SHORTEST_TIMEOUT;
            let timed_out = *error == Error::TRANSACTION_TIMED_OUT && waited;
            !given_up(*key) && !explained.contains(key) && !timed_out
        })
        .collect();
    let Some(&(key, how, error, _)) = unexplained.first() else { return Ok(()) };
    let attempts: Vec<_> = witnesses::of_operation(history, key).map(|(id, _)| id).collect();
    let met = match attempts.len() {
        0 => "it made no transaction".to_owned(),
        1 => "its transaction met no error".to_owned(),
        n => format!("none of its {n} transactions met an error"),
    };
    let more = match unexplained.len() - 1 {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    let message = format!("{} {how} {error}, but {met}{more}", describe(key));
    let witness = Witness { attempts, ..Witness::operation(key.0, key.1) };
    Err(Box::new(Objection { message, said: Said::named(format!("{how} {}", error.code())), witness }))
}

/// Whether an attempt met an error, or was given up while it waited.
fn explains(attempt: &Attempt) -> bool {
    let unanswered = |call: &Call| match call {
        Call::Get { answer, .. } => answer.is_none(),
        Call::GetKey { answer, .. } => answer.is_none(),
        Call::GetRange { answer, .. } => answer.is_none(),
        Call::Write(_) => false,
    };
    let waits_for_version = attempt.version_requested > 0 && attempt.read_version.is_none();
    let waits = waits_for_version || attempt.calls.iter().any(unanswered);
    let age = attempt.ended.saturating_sub(attempt.version_requested);
    match attempt.reported {
        // A watch may fail.
        _ if !attempt.watches.is_empty() => true,
        Reported::Committed { .. } | Reported::ReadOnly => false,
        _ if attempt.commit_sent.is_some() => true,
        // The layer may have passed an error of its own to `on_error`. A timeout is no such error if it had
        // the time to elapse.
        Reported::Failed(Error::TRANSACTION_TIMED_OUT) => waits || age >= SHORTEST_TIMEOUT,
        Reported::Failed(_) => true,
        // What is given up in the instant in which it began has not waited.
        Reported::Nothing => waits && age > 0,
    }
}
