//! The counters of a run.

use crate::{
    describe::erased::AnyValue,
    describe::workload::{Operation, Outcome},
    judge::Truth,
    run::plan::Plan,
};
use shaketable_reports::{Counters, Outcomes};
use shaketable_sim::{
    history::{History, Reported},
    ids::{AttemptId, ClientId},
};
use shaketable_tx::Error;
use std::collections::BTreeMap;

/// The kind of operations whose serialized form has no name.
const UNNAMED: &str = "operation";

/// Counts the contents of the history and of the clients' operations. Recoveries and faults stay at zero: the
/// testbed counts them.
pub(crate) fn count(history: &History, operations: &[Vec<Operation<AnyValue>>], audits: u64) -> Counters {
    let truth = Truth::of(history);
    let mut counters = Counters {
        operations: operations.iter().map(|o| o.len() as u64).sum(),
        audits,
        ..Counters::default()
    };
    let unknown = |o: &&Operation<AnyValue>| matches!(o.outcome, Some(Outcome::Unknown(_)) | None);
    counters.unknown_operations = operations.iter().flatten().filter(unknown).count() as u64;
    counters.committed = truth.entries.iter().map(|e| e.transactions.len() as u64).sum();
    let mut last: BTreeMap<ClientId, u32> = BTreeMap::new();
    for (i, attempt) in history.attempts.iter().enumerate() {
        let Some(attempt) = attempt else { continue };
        counters.attempts += 1;
        if let Some(operation) = attempt.operation {
            counters.watches += attempt.watches().count() as u64;
            counters.retries += u64::from(last.insert(attempt.client, operation) == Some(operation));
        }
        let committed = truth.place(AttemptId(i as u32)).is_some();
        match (attempt.reported, committed) {
            (Reported::Failed(Error::NOT_COMMITTED), _) => counters.conflicts += 1,
            (Reported::Failed(Error::COMMIT_UNKNOWN_RESULT), true) => counters.unknown_committed += 1,
            (Reported::Failed(Error::COMMIT_UNKNOWN_RESULT), false) => counters.unknown_not_committed += 1,
            (Reported::Failed(_) | Reported::Nothing, true) => counters.late_landings += 1,
            _ => {}
        }
    }
    counters
}

/// Counts how the operations that were called ended, by kind.
pub(crate) fn outcomes(
    plan: &Plan,
    operations: &[Vec<Operation<AnyValue>>],
) -> BTreeMap<&'static str, Outcomes> {
    let workload = &plan.configuration;
    let mut outcomes: BTreeMap<&'static str, Outcomes> = BTreeMap::new();
    let each = operations.iter().zip(&plan.operations).flat_map(|(list, planned)| list.iter().zip(planned));
    for (operation, op) in each {
        let how = ended(operation.outcome.as_ref(), |answer| workload.is_refusal(answer));
        let kinds = workload.kinds(op);
        let kinds = if kinds.is_empty() { vec![UNNAMED] } else { kinds };
        kinds.into_iter().for_each(|kind| outcomes.entry(kind).or_default().add(&how));
    }
    for (kind, of_kind) in &mut outcomes {
        of_kind.rare = workload.rare_kinds().contains(kind);
    }
    outcomes
}

/// One operation with this outcome.
fn ended(outcome: Option<&Outcome<AnyValue>>, is_refusal: impl Fn(&AnyValue) -> bool) -> Outcomes {
    let none = Outcomes::default();
    match outcome {
        Some(Outcome::Answered(answer)) if is_refusal(answer) => Outcomes { refused: 1, ..none },
        Some(Outcome::Answered(_)) => Outcomes { done: 1, ..none },
        Some(Outcome::Failed(_) | Outcome::Violated(_)) => Outcomes { failed: 1, ..none },
        Some(Outcome::Unknown(_)) | None => Outcomes { unknown: 1, ..none },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::story::Story;
    use shaketable_sim::{
        ids::ClientId,
        proto::{Mutation, Version},
    };

    /// A history of attempts with these results, versions and operations. Attempts with a version are in the
    /// log; attempts without an operation get one each.
    fn history(attempts: &[(Reported, Option<Version>, Option<u32>)]) -> History {
        let mut story = Story::default();
        for (reported, version, operation) in attempts {
            let (id, attempt) = story.attempt(0, Vec::new());
            attempt.reported = *reported;
            attempt.operation = operation.or(attempt.operation);
            if let Some(version) = version {
                story.log(*version, vec![(Some(id), 0, vec![Mutation::Set("a".into(), "1".into())])]);
            }
        }
        story.history
    }

    fn failed(error: Error) -> Reported {
        Reported::Failed(error)
    }

    #[test]
    fn attempts_are_counted_by_reported_result_and_log() {
        let committed = |version| Reported::Committed { version, batch_index: 0 };
        let history = history(&[
            (committed(1), Some(1), None),
            (failed(Error::NOT_COMMITTED), None, None),
            (failed(Error::COMMIT_UNKNOWN_RESULT), Some(2), None),
            (failed(Error::COMMIT_UNKNOWN_RESULT), None, None),
            (failed(Error::COMMIT_UNKNOWN_RESULT), None, None),
            (failed(Error::TRANSACTION_TIMED_OUT), Some(3), None),
            (failed(Error::TRANSACTION_TIMED_OUT), None, None),
            (failed(Error::TRANSACTION_TOO_OLD), None, None),
            (Reported::Nothing, Some(4), None),
            (Reported::Nothing, None, None),
            (Reported::ReadOnly, None, None),
            (failed(Error::NOT_COMMITTED), None, Some(90)),
            (failed(Error::NOT_COMMITTED), None, Some(90)),
            (committed(5), Some(5), Some(90)),
        ]);
        let operation = |outcome| Operation { called: 0, returned: 1, outcome };
        let operations = [
            vec![operation(Some(Outcome::Answered(AnyValue::new(())))), operation(None)],
            vec![operation(Some(Outcome::Unknown(Error::TRANSACTION_TIMED_OUT)))],
            vec![operation(Some(Outcome::Failed(Error::NOT_COMMITTED)))],
        ];
        let expected = Counters {
            operations: 4,
            unknown_operations: 2,
            committed: 5,
            attempts: 14,
            retries: 2,
            conflicts: 3,
            unknown_committed: 1,
            unknown_not_committed: 2,
            late_landings: 2,
            audits: 7,
            ..Counters::default()
        };
        assert_eq!(count(&history, &operations, 7), expected);
    }

    #[test]
    fn a_retry_is_a_further_attempt_of_the_same_client() {
        let mut story = Story::default();
        // The attempts of several clients take turns in the history.
        for client in [0, 1, 1, 0] {
            let (_, attempt) = story.attempt(0, Vec::new());
            (attempt.client, attempt.operation) = (ClientId(client), Some(0));
        }
        story.attempt(0, Vec::new()).1.operation = None;
        story.attempt(0, Vec::new()).1.operation = None;
        assert_eq!(count(&story.history, &[], 0).retries, 2);
    }

    #[test]
    fn a_commit_whose_result_was_not_awaited_may_land() {
        let land = |reported, change: &dyn Fn(&mut shaketable_sim::history::Attempt)| {
            let mut history = history(&[(reported, None, None)]);
            change(history.attempts[0].as_mut().expect("recorded"));
            history.commits_may_land()
        };
        let as_it_is = |_: &mut _| {};
        assert!(!land(Reported::Nothing, &as_it_is));
        assert!(land(Reported::Nothing, &|attempt| attempt.commit_sent = Some(1)));
        assert!(!land(failed(Error::COMMIT_UNKNOWN_RESULT), &as_it_is));
        assert!(land(failed(Error::COMMIT_UNKNOWN_RESULT), &|attempt| attempt.outcome_is_final = false));
        assert!(land(failed(Error::TRANSACTION_TIMED_OUT), &as_it_is));
        assert!(!land(failed(Error::NOT_COMMITTED), &as_it_is));
        assert!(!land(Reported::ReadOnly, &as_it_is));
        assert!(!land(Reported::Committed { version: 1, batch_index: 0 }, &as_it_is));
        let mut died = History::default();
        died.reserve();
        assert!(died.commits_may_land());
    }
}
