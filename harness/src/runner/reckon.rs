//! What a run's history adds up to: the judges' findings, the verdict, the counters.

use super::{Counters, Operation, RunResult, Verdict, panics};
use crate::{
    judges::{self, Evidence, Finding, Replica, Truth, model::Unfit},
    plan::Plan,
    workload::{Outcome, Workload},
};
use shaketable_layers::{points, tx::Error};
use shaketable_sim::{
    history::{AttemptId, History, Told},
    proto::Version,
};
use std::panic::AssertUnwindSafe;

/// Performs a run, hears the claims that layers and workloads make in it, and gives its verdict. A panic
/// that nobody caught is the harness's.
pub(crate) fn heard<E>(perform: impl FnOnce() -> Result<RunResult, E>) -> Result<RunResult, E> {
    points::install();
    let performed = panics::listen(|| std::panic::catch_unwind(AssertUnwindSafe(perform)));
    let recorder = points::take();
    let mut result = match performed {
        Ok(performed) => performed?,
        Err(panic) => {
            let finding = Finding::harness("panic", panics::words(&*panic));
            RunResult { findings: vec![finding], ..RunResult::default() }
        }
    };
    result.points = recorder.points;
    result.findings.extend(recorder.broken.into_iter().map(|claim| Finding::layer("always", claim)));
    result.verdict = verdict(&result.findings);
    Ok(result)
}

/// How a run ended: the gravest of its findings decides.
fn verdict(findings: &[Finding]) -> Verdict {
    if findings.iter().any(|f| f.harness) {
        Verdict::Harness
    } else if findings.iter().any(|f| f.judge != "live") {
        Verdict::Violated
    } else if findings.is_empty() {
        Verdict::Passed
    } else {
        Verdict::Stuck
    }
}

/// Whether some commit was left to its fate: it may land until its read version has left the window.
/// Not so after 1021, which is told only once the outcome is decided.
pub(crate) fn something_may_land(history: &History) -> bool {
    history.attempts.iter().any(|attempt| match attempt {
        // Its client died before it could record it.
        None => true,
        Some(attempt) => match attempt.told {
            Told::Nothing => attempt.commit_sent.is_some(),
            Told::Failed(Error::COMMIT_UNKNOWN_RESULT) => !attempt.settles,
            Told::Failed(error) => error.leaves_commit_unknown(),
            Told::ReadOnly | Told::Committed { .. } => false,
        },
    })
}

/// Lets the judges read the history. Gives the final model if the workload's model agreed.
pub(crate) fn judge<W: Workload>(
    plan: &Plan<W>,
    history: &History,
    operations: &[Vec<Operation<W::Answer>>],
    replicas: &[Replica],
    sound_from: Version,
    audited: &mut u64,
    findings: &mut Vec<Finding>,
) -> Option<W::Model> {
    let truth = Truth::of(history);
    let evidence = Evidence { history, truth: &truth, replicas };
    for judge in judges::CLUSTER {
        if let Err(why) = (judge.judge)(&evidence) {
            findings.push(Finding::harness(judge.name, why));
        }
    }
    let (workload, plan) = (&plan.configuration, &plan.operations);
    let model = caught(|| judges::model::judge(workload, plan, operations, history, &truth), findings);
    let conflicts = caught(|| judges::conflict_free::judge(workload, plan, history, &truth), findings);
    findings.extend(conflicts.and_then(Result::err).map(|why| Finding::layer("conflict-free", why)));
    let audits = caught(|| judges::audits::judge(workload, &truth, sound_from), findings);
    if let Some((evaluated, audits)) = audits {
        *audited += evaluated;
        findings.extend(audits.err().map(|why| Finding::layer("audit", why)));
    }
    match model? {
        Ok(model) => Some(model),
        Err(unfit) => {
            findings.push(match unfit {
                Unfit::Layer(why) => Finding::layer("model", why),
                Unfit::Model(why) => Finding::harness("workload's model", why),
            });
            None
        }
    }
}

/// What the workload's own judging says; a panic in it is the workload's, not the harness's.
fn caught<T>(judge: impl FnOnce() -> T, findings: &mut Vec<Finding>) -> Option<T> {
    match std::panic::catch_unwind(AssertUnwindSafe(judge)) {
        Ok(judged) => Some(judged),
        Err(panic) => {
            findings.push(Finding::layer("panic", panics::words(&*panic)));
            None
        }
    }
}

/// What clients and logs counted; recoveries and faults are the cluster's to tell.
pub(crate) fn count<A>(history: &History, operations: &[Vec<Operation<A>>], audits: u64) -> Counters {
    let truth = Truth::of(history);
    let mut counters = Counters {
        operations: operations.iter().map(|o| o.len() as u64).sum(),
        audits,
        ..Counters::default()
    };
    let unknown = |o: &&Operation<A>| matches!(o.outcome, Some(Outcome::Unknown(_)) | None);
    counters.unknown_operations = operations.iter().flatten().filter(unknown).count() as u64;
    counters.committed = truth.entries.iter().map(|e| e.transactions.len() as u64).sum();
    let mut last = None;
    for (i, attempt) in history.attempts.iter().enumerate() {
        let Some(attempt) = attempt else { continue };
        counters.attempts += 1;
        let operation = attempt.operation.map(|op| (attempt.client, op));
        counters.retries += u64::from(operation.is_some() && operation == last);
        last = operation;
        let committed = truth.place(AttemptId(i as u32)).is_some();
        match (attempt.told, committed) {
            (Told::Failed(Error::NOT_COMMITTED), _) => counters.conflicts += 1,
            (Told::Failed(Error::COMMIT_UNKNOWN_RESULT), true) => counters.unknown_committed += 1,
            (Told::Failed(Error::COMMIT_UNKNOWN_RESULT), false) => counters.unknown_not_committed += 1,
            (Told::Failed(error), true) if error.leaves_commit_unknown() => counters.late_landings += 1,
            (Told::Nothing, true) => counters.late_landings += 1,
            _ => {}
        }
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judges::alarms::Story;
    use shaketable_sim::{history::ClientId, proto::Mutation};

    /// A history of attempts that were told this, each of its own operation unless it is said; those with a version
    /// are in the log.
    fn history(attempts: &[(Told, Option<Version>, Option<u32>)]) -> History {
        let mut story = Story::default();
        for (told, version, operation) in attempts {
            let (id, attempt) = story.attempt(0, Vec::new());
            attempt.told = *told;
            attempt.operation = operation.or(attempt.operation);
            if let Some(version) = version {
                story.log(*version, vec![(Some(id), 0, vec![Mutation::Set("a".into(), "1".into())])]);
            }
        }
        story.history
    }

    fn failed(error: Error) -> Told {
        Told::Failed(error)
    }

    #[test]
    fn attempts_are_counted_by_what_was_told_and_what_is_true() {
        let committed = |version| Told::Committed { version, batch_index: 0 };
        let history = history(&[
            (committed(1), Some(1), None),
            (failed(Error::NOT_COMMITTED), None, None),
            (failed(Error::COMMIT_UNKNOWN_RESULT), Some(2), None),
            (failed(Error::COMMIT_UNKNOWN_RESULT), None, None),
            (failed(Error::COMMIT_UNKNOWN_RESULT), None, None),
            (failed(Error::TRANSACTION_TIMED_OUT), Some(3), None),
            (failed(Error::TRANSACTION_TIMED_OUT), None, None),
            (failed(Error::TRANSACTION_TOO_OLD), None, None),
            (Told::Nothing, Some(4), None),
            (Told::Nothing, None, None),
            (Told::ReadOnly, None, None),
            (failed(Error::NOT_COMMITTED), None, Some(90)),
            (failed(Error::NOT_COMMITTED), None, Some(90)),
            (committed(5), Some(5), Some(90)),
        ]);
        let operation = |outcome| Operation { called: 0, returned: 1, outcome };
        let operations = [
            vec![operation(Some(Outcome::Answered(()))), operation(None)],
            vec![operation(Some(Outcome::Unknown(Error::TRANSACTION_TIMED_OUT)))],
            vec![operation(Some(Outcome::GaveUp(Error::NOT_COMMITTED)))],
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
    fn another_client_s_operation_of_the_same_number_is_no_retry() {
        let mut story = Story::default();
        for client in [0, 1, 1] {
            let (_, attempt) = story.attempt(0, Vec::new());
            (attempt.client, attempt.operation) = (ClientId(client), Some(0));
        }
        story.attempt(0, Vec::new()).1.operation = None;
        story.attempt(0, Vec::new()).1.operation = None;
        assert_eq!(count::<()>(&story.history, &[], 0).retries, 1);
    }

    #[test]
    fn what_was_left_to_its_fate_may_land() {
        let land = |told, change: &dyn Fn(&mut shaketable_sim::history::Attempt)| {
            let mut history = history(&[(told, None, None)]);
            change(history.attempts[0].as_mut().expect("recorded"));
            something_may_land(&history)
        };
        let as_it_is = |_: &mut _| {};
        assert!(!land(Told::Nothing, &as_it_is));
        assert!(land(Told::Nothing, &|attempt| attempt.commit_sent = Some(1)));
        assert!(!land(failed(Error::COMMIT_UNKNOWN_RESULT), &as_it_is));
        assert!(land(failed(Error::COMMIT_UNKNOWN_RESULT), &|attempt| attempt.settles = false));
        assert!(land(failed(Error::TRANSACTION_TIMED_OUT), &as_it_is));
        assert!(!land(failed(Error::NOT_COMMITTED), &as_it_is));
        assert!(!land(Told::ReadOnly, &as_it_is));
        assert!(!land(Told::Committed { version: 1, batch_index: 0 }, &as_it_is));
        let mut died = History::default();
        died.reserve();
        assert!(something_may_land(&died));
    }

    #[test]
    fn the_gravest_finding_decides() {
        let (live, model) = (Finding::layer("live", "waits"), Finding::layer("model", "lies"));
        let harness = Finding::harness("durable", "lost");
        assert_eq!(verdict(&[]), Verdict::Passed);
        assert_eq!(verdict(std::slice::from_ref(&live)), Verdict::Stuck);
        assert_eq!(verdict(&[live.clone(), model.clone()]), Verdict::Violated);
        assert_eq!(verdict(&[live, model, harness]), Verdict::Harness);
    }
}
