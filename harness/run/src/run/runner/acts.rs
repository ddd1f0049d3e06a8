//! The four acts of a run, on any [`Testbed`]: *setup*, *hurt*, *heal* and *check*.

use super::{
    Act, Job, Participants, RunResult, Testbed,
    count::{count, outcomes},
    judging::{Judged, differs, judge},
    performed::performed,
    phase,
    testbed::{CHECKER, SETTER},
};
use crate::{
    describe::erased::{AnyModel, AnyValue},
    describe::workload::Operation,
    judge::finding::{Accused, Finding, Kind, Verdict, is_of_call},
    judge::{self, Replica},
    run::plan::Plan,
};
use shaketable_reports::Counters;
use shaketable_sim::{history::History, judges::Said, rt::Nanos};
use shaketable_tx::{
    Db, Error,
    points::{self, Part},
};
use std::sync::Arc;

/// Performs a plan on a fresh testbed. The result does not include the claims of layers and workloads yet.
pub(crate) async fn perform<T: Testbed>(plan: &Plan, testbed: T) -> Result<RunResult, T::Lost> {
    // Setup. The workload writes its initial data on a calm cluster, without clients and without faults.
    // Every later version must satisfy the invariants.
    let mut findings = set_up(plan, &testbed).await?;
    let set_up_at = testbed.latest_commit();

    // Hurt. The clients do their operations, the auditor reads the invariants, and faults strike. The act
    // ends when all clients are done or the plan's time has elapsed.
    testbed.begin(Act::Hurt);
    let participants = Participants::of(plan);
    testbed.start(&participants)?;
    let bound = testbed.bound() * Nanos::from(u32::from(plan.demands.scale));
    testbed.fill(&participants, bound).await?;
    testbed.wait(&participants, plan.hurt).await?;

    // Heal. Faults stop, and everything that they broke works again. Every client must now finish within a
    // time limit, which grows with its operations; a client that does not is stuck.
    testbed.begin(Act::Heal);
    testbed.wait(&participants, bound).await?;

    // Check. No client is running and no commit can take effect any more, so the database is final. The
    // judges read the history, and the final check compares the database with the model.
    testbed.begin(Act::Check);
    let late = !participants.are_done();
    testbed.quiesce(late).await?;
    let (operations, dropped) = (participants.operations(), participants.ended());
    findings.extend(participants.findings());
    if late {
        findings.push(stuck(plan, &operations, &participants, &testbed));
    }
    let replicas = final_state(&testbed, &mut findings).await?;
    let (mut audited, broken) = {
        let mut audits = participants.audits.lock();
        (audits.evaluated, audits.broken.take())
    };
    let broken_at = broken.as_ref().map(|broken| broken.version);
    findings.extend(broken.map(|broken| broken.finding()));
    let early = testbed.early();
    let judged = testbed.history(|history| {
        let work = (&operations[..], &dropped);
        phase::judge(|| judge(plan, (history, early), work, &replicas, set_up_at, findings, broken_at))
    });
    let Judged { mut findings, audited: rebuilt, waits, model } = judged;
    audited += rebuilt;
    if let Some(model) = model {
        findings.extend(final_check(plan, &testbed, model, &findings).await?);
        // After everything that reads: who reads where a neighbour would be owns the whole database.
        findings.extend(testbed.history(|history| phase::judge(|| neighbours(plan, history))));
    }
    findings.iter_mut().for_each(|finding| finding.calls(&plan.operations));
    let (counters, performed, outcomes) = testbed.history(|history| {
        let summed = || {
            let counters = count(history, &operations, audited);
            (counters, performed(history, &operations), outcomes(plan, &operations))
        };
        phase::judge(summed)
    });
    let counters = Counters { waits, ..counters };
    let result = RunResult { findings, counters, outcomes, performed, ..RunResult::default() };
    Ok(testbed.close(plan, &operations, &replicas, result).await)
}

/// The finding of an operation that changes keys of other applications.
fn neighbours(plan: &Plan, history: &History) -> Option<Finding> {
    let describe = |(client, index): (usize, usize)| {
        judge::model::describe((client, index), &plan.operations[client][index])
    };
    let judged = judge::neighbours::judge(plan.configuration.subspaces(), history, describe);
    judged.err().map(|why| {
        let at = judge::times::ended(history, &why.witness.attempts);
        Finding::of(Kind::Neighbours, *why).at(at)
    })
}

async fn set_up<T: Testbed>(plan: &Plan, testbed: &T) -> Result<Vec<Finding>, T::Lost> {
    let workload = plan.configuration.clone();
    let owned = judge::neighbours::Owned::of(workload.subspaces());
    let setup = move |db: Db| {
        let (workload, owned) = (workload.clone(), owned.clone());
        let part = || Part { operation: None, moment: Some(0) };
        async move {
            if let Some(owned) = owned {
                owned.plant(&db).await?;
            }
            points::in_part(part, phase::set_up_task(workload.setup(&db))).await
        }
    };
    Ok(match testbed.undisturbed(SETTER, "setting up", setup).await? {
        Job::Done(()) => Vec::new(),
        Job::Failed(error) => vec![failed_setup(error).at(0)],
        Job::Panicked(panicked) => vec![Finding::panicked(Kind::Panic, "in setup: ", &panicked).at(0)],
        Job::TooLong => {
            vec![Finding::new(Kind::Setup, "the workload's setup does not finish on a calm cluster").at(0)]
        }
    })
}

/// The finding of a setup that ended with an error, without faults and without other clients. Only errors
/// that no call deserves accuse the cluster.
fn failed_setup(error: Error) -> Finding {
    let of_cluster = error.is_maybe_committed()
        || matches!(
            error,
            Error::FUTURE_VERSION
                | Error::PROCESS_BEHIND
                | Error::DATABASE_LOCKED
                | Error::COMMIT_PROXY_MEMORY_LIMIT_EXCEEDED
                | Error::GRV_PROXY_MEMORY_LIMIT_EXCEEDED
                | Error::INTERNAL_ERROR
        );
    match of_cluster {
        true => failed(Kind::CalmCluster, "the setup fails without a fault", error),
        false if is_of_call(error) => {
            failed(Kind::Setup, "the workload's setup asks for what FoundationDB refuses", error)
        }
        false => failed(Kind::Setup, "the workload's setup fails on a calm cluster", error),
    }
}

/// The finding about what ended with an error.
fn failed(kind: Kind, what: &str, error: Error) -> Finding {
    Finding::new(kind, format!("{what}: {error}")).saying(Said::named(format!("{what}: {}", error.code())))
}

/// The finding about clients that are not done.
fn stuck<T: Testbed>(
    plan: &Plan,
    operations: &[Vec<Operation<AnyValue>>],
    participants: &Participants,
    testbed: &T,
) -> Finding {
    let unfinished = participants.unfinished();
    let waits = judge::live::judge(operations, &plan.operations, &unfinished, testbed.now());
    match waits {
        Err(objection) => Finding::of(Kind::Live, *objection),
        Ok(()) => Finding::new(Kind::Live, "a client did not finish"),
    }
    .at(testbed.now())
}

/// The final contents of the cluster's replicas. They are empty if the cluster does not settle, which is a
/// finding.
async fn final_state<T: Testbed>(testbed: &T, findings: &mut Vec<Finding>) -> Result<Vec<Replica>, T::Lost> {
    Ok(testbed.final_state().await?.unwrap_or_else(|why| {
        findings.push(Finding::new(Kind::Settle, why));
        Vec::new()
    }))
}

/// Compares the final database with the final model. Does nothing if the cluster or the workload failed or a
/// client is stuck: the comparison would only report the same problem again.
async fn final_check<T: Testbed>(
    plan: &Plan,
    testbed: &T,
    model: AnyModel,
    findings: &[Finding],
) -> Result<Option<Finding>, T::Lost> {
    let says_it_all =
        |finding: &Finding| finding.kind.accused() != Accused::Layer || finding.verdict() == Verdict::Stuck;
    if findings.iter().any(says_it_all) {
        return Ok(None);
    }
    let (workload, model, ended) = (plan.configuration.clone(), Arc::new(model), testbed.now());
    let check = move |db: Db| {
        let (workload, model) = (workload.clone(), model.clone());
        let part = move || Part { operation: None, moment: Some(ended) };
        async move { points::in_part(part, phase::judge_task(workload.check(&db, &model))).await }
    };
    let found = match testbed.undisturbed(CHECKER, "checking", check).await? {
        Job::Done(Ok(())) => None,
        Job::Done(Err(why)) => Some(testbed.history(|history| differs(why, history))),
        Job::Failed(error) => Some(failed(Kind::Check, "cannot read the database", error)),
        Job::Panicked(panicked) => Some(Finding::panicked(Kind::Panic, "in the final check: ", &panicked)),
        Job::TooLong => Some(Finding::new(Kind::Live, "the final check does not finish")),
    };
    // Nothing shows since when it differs.
    Ok(found.map(|found| found.at(ended)))
}
