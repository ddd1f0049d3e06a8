//! The frame of a run on any testbed: panics become findings, and claims are recorded.

use super::RunResult;
use crate::{
    finding::{Finding, Kind, Witness},
    panics,
};
use shaketable_layers::points;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Performs a run, and records the claims that layers and workloads make in it. A panic that was not caught
/// elsewhere is a finding about the simulator.
pub(crate) fn supervised<E>(perform: impl FnOnce() -> Result<RunResult, E>) -> Result<RunResult, E> {
    points::install();
    let performed = panics::recorded(|| catch_unwind(AssertUnwindSafe(perform)));
    let recorder = points::take();
    let mut result = match performed {
        Ok(performed) => performed?,
        Err(panic) => {
            let finding = Finding::new(Kind::HarnessPanic, panics::message(&*panic));
            RunResult { findings: vec![finding], ..RunResult::default() }
        }
    };
    result.points = recorder.points;
    result.findings.extend(recorder.broken.into_iter().map(|claim| {
        let witness = claim.operation.map(|(client, index)| Witness::operation(client, index));
        Finding::new(Kind::Always, claim.message).with(witness.unwrap_or_default())
    }));
    Ok(result)
}
