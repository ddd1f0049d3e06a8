//! Unexplained: an operation that fails, or whose outcome stays unknown, was told why. A call of one of its
//! transactions ended with the error that it reports, or it gave up a wait, or the run itself ended the
//! operation: it dropped it, or its client died. An error that says that a call was wrong explains nothing:
//! no cluster is the cause of it.

use super::{Judgement, witnesses};
use crate::{
    describe::erased::AnyValue,
    describe::workload::{Operation, Outcome},
    judge::finding::{Objection, Witness},
};
use shaketable_sim::{endings::Met, history::History, ids::ClientId, judges::Said};
use shaketable_tx::Error;

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
    let nothing = Met::default();
    let met =
        |(client, index): Key| history.met.get(&(ClientId(client as u16), index as u32)).unwrap_or(&nothing);
    let each = operations.iter().enumerate().flat_map(|(client, list)| {
        list.iter().enumerate().map(move |(index, operation)| ((client, index), operation))
    });
    let mut unexplained: Vec<_> = each
        .filter_map(|(key, operation)| match operation.outcome {
            Some(Outcome::Failed(error) | Outcome::Unknown(error)) if is_misuse(error) => {
                Some((operation.returned, key, "ended with", error))
            }
            Some(Outcome::Failed(error)) if !explains_failure(met(key), error) => {
                Some((operation.returned, key, "failed with", error))
            }
            Some(Outcome::Unknown(error)) if !explains_unknown(met(key), error) => {
                Some((operation.returned, key, "has an unknown outcome with", error))
            }
            _ => None,
        })
        .filter(|(_, key, ..)| !given_up(*key))
        .collect();
    unexplained.sort_by_key(|(returned, key, ..)| (*returned, *key));
    let Some(&(_, key, how, error)) = unexplained.first() else { return Ok(()) };
    let attempts: Vec<_> = witnesses::of_operation(history, key).map(|(id, _)| id).collect();
    let met = match (attempts.len(), &met(key).errors[..]) {
        _ if is_misuse(error) => "a right call never meets that".to_owned(),
        (0, []) => "it made no transaction".to_owned(),
        (1, []) => "its transaction met no error".to_owned(),
        (n, []) => format!("none of its {n} transactions met an error"),
        (_, errors) => {
            let errors: Vec<String> = errors.iter().map(Error::to_string).collect();
            format!("what its transactions met was {}", errors.join(", "))
        }
    };
    let more = match unexplained.len() - 1 {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    let message = format!("{} {how} {error}, but {met}{more}", describe(key));
    let witness = Witness { attempts, ..Witness::operation(key.0, key.1) };
    Err(Box::new(Objection { message, said: Said::named(format!("{how} {}", error.code())), witness }))
}

/// Whether an error says that a call of the transaction was wrong, whatever happens to the cluster and
/// whatever keys, ranges and sizes it is given: whoever leaves those to FoundationDB lets it refuse.
fn is_misuse(error: Error) -> bool {
    [Error::CLIENT_INVALID_OPERATION, Error::INVALID_MUTATION_TYPE].contains(&error)
}

/// Whoever gave up a wait says so with an error of its own, and not with one that rules a commit out: only
/// the cluster knows of that. A session calls each error that leaves a commit unknown 1021, also once it
/// knows that nothing has happened.
fn explains_failure(met: &Met, error: Error) -> bool {
    let is_settled = error == Error::COMMIT_UNKNOWN_RESULT && leaves_unknown(met);
    met.gave_up && !error.means_not_committed() || met.errors.contains(&error) || is_settled
}

/// After any error that leaves the commit unknown, an outcome is unknown in the words of the layer.
fn explains_unknown(met: &Met, error: Error) -> bool {
    explains_failure(met, error) || leaves_unknown(met)
}

fn leaves_unknown(met: &Met) -> bool {
    met.errors.iter().any(|met| met.leaves_commit_unknown())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_sim::endings::Ending;

    #[test]
    fn a_wait_that_was_given_up_explains_what_its_operation_says_of_it() {
        let (mut history, late) = (History::default(), Error::TRANSACTION_TIMED_OUT);
        let unexplained = |history: &History, errors: [Error; 2]| {
            let failed = |error| Operation { called: 0, returned: 1, outcome: Some(Outcome::Failed(error)) };
            let judged = judge(&[errors.map(failed).to_vec()], |_| false, history, |key| format!("{key:?}"));
            judged.map_err(|why| why.witness.operations)
        };
        // The first operation made the call, and the second gave it up.
        history.note_ending(ClientId(0), [Some(0), Some(1)], Ending::GivenUp);
        assert_eq!(unexplained(&history, [late, late]), Err(vec![(0, 0)]));
        history.note_ending(ClientId(0), [Some(0), None], Ending::Error(late));
        assert_eq!(unexplained(&history, [late, late]), Ok(()));
        // A call that was wrong is the layer's own mistake.
        history.note_ending(ClientId(0), [Some(0), None], Ending::Error(Error::CLIENT_INVALID_OPERATION));
        assert_eq!(unexplained(&history, [Error::CLIENT_INVALID_OPERATION, late]), Err(vec![(0, 0)]));
        // Only the cluster knows of a conflict.
        assert_eq!(unexplained(&history, [late, Error::NOT_COMMITTED]), Err(vec![(0, 1)]));
    }
}
