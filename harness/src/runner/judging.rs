//! Calls the judges with the recorded data of a run.

use crate::{
    finding::{Finding, Kind},
    judges::{self, Evidence, Replica, Truth, model::Mismatch},
    panics,
    plan::Plan,
    workload::{Operation, Workload},
};
use shaketable_sim::{history::History, proto::Version};
use std::panic::AssertUnwindSafe;

/// The results of the judges.
pub(super) struct Judged<M> {
    /// Their findings.
    pub(super) findings: Vec<Finding>,
    /// The number of versions audited.
    pub(super) audited: u64,
    /// The sequential model after the last operation, if every answer fits.
    pub(super) model: Option<M>,
}

/// Judges a run. Audits start at `set_up_at`, the version of the last commit of the setup.
pub(super) fn judge<W: Workload>(
    plan: &Plan<W>,
    history: &History,
    operations: &[Vec<Operation<W::Answer>>],
    replicas: &[Replica],
    set_up_at: Version,
) -> Judged<W::Model> {
    let truth = Truth::of(history);
    let evidence = Evidence { history, truth: &truth, replicas };
    let mut findings = Vec::new();
    for (kind, judge) in judges::CLUSTER {
        findings.extend(judge(&evidence).err().map(|why| Finding::new(*kind, why)));
    }
    let (workload, plan) = (&plan.configuration, &plan.operations);
    let model = caught(|| judges::model::judge(workload, plan, operations, history, &truth), &mut findings);
    let conflicts = caught(|| judges::conflict_free::judge(workload, plan, history, &truth), &mut findings);
    findings.extend(conflicts.and_then(Result::err).map(|why| Finding::new(Kind::ConflictFree, why)));
    let audits = caught(|| judges::audits::judge(workload, &truth, set_up_at), &mut findings);
    let (audited, audits) = audits.unwrap_or((0, Ok(())));
    findings.extend(audits.err().map(|why| Finding::new(Kind::Audit, why)));
    let model = match model {
        Some(Ok(model)) => Some(model),
        Some(Err(unfit)) => {
            findings.push(match unfit {
                Mismatch::Layer(why) => Finding::new(Kind::Model, why),
                Mismatch::Model(why) => Finding::new(Kind::WorkloadModel, why),
            });
            None
        }
        None => None,
    };
    Judged { findings, audited, model }
}

/// Runs the workload's part of a judge. A panic in it is a finding about the workload.
fn caught<T>(judge: impl FnOnce() -> T, findings: &mut Vec<Finding>) -> Option<T> {
    match std::panic::catch_unwind(AssertUnwindSafe(judge)) {
        Ok(judged) => Some(judged),
        Err(panic) => {
            findings.push(Finding::new(Kind::Panic, panics::message(&*panic)));
            None
        }
    }
}
