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
