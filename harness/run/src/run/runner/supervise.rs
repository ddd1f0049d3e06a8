//! The frame of a run on any testbed: panics become findings, and claims are recorded.

use super::RunResult;
use crate::{
    judge::finding::{self, Finding, Kind, Witness},
    judge::panics,
};
use shaketable_sim::judges::Said;
use shaketable_tx::points;
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
            let finding = Finding::panicked(Kind::HarnessPanic, "", &panics::caught(&*panic));
            RunResult { findings: vec![finding], ..RunResult::default() }
        }
    };
    result.points = recorder.points;
    result.findings.extend(recorder.broken.into_iter().map(|claim| {
        let witness = claim.operation.map(|(client, index)| Witness::operation(client, index));
        let said = Said { name: claim.name.to_owned(), why: claim.message.clone() };
        Finding::new(Kind::Always, claim.message).saying(said).with(witness.unwrap_or_default())
    }));
    finding::in_order(&mut result.findings);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use shaketable_tx::always;
    use std::convert::Infallible;

    #[test]
    fn a_broken_claim_is_a_finding_about_the_operation_that_made_it() {
        let run = || {
            let operation = async { always!(1 > 2, "1 is not more than 2") };
            points::in_operation((2, 5), operation).now_or_never().expect("nothing to wait for");
            always!(2 > 3, "2 is not more than 3");
            Ok::<_, Infallible>(RunResult::default())
        };
        let Ok(result) = supervised(run);
        let witnesses: Vec<Witness> = result.findings.into_iter().map(|finding| finding.witness).collect();
        assert_eq!(witnesses, [Witness::operation(2, 5), Witness::default()]);
    }
}
