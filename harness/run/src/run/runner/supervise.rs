//! The frame of a run on any testbed: panics become findings, and claims are recorded.

use super::RunResult;
use crate::{
    judge::finding::{self, Finding, Kind, Witness},
    judge::panics,
};
use shaketable_sim::{judges::Said, rt::Nanos};
use shaketable_tx::points::{self, Part};
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
        let Part { operation, moment } = claim.part;
        let witness = operation.map(|(client, index)| Witness::operation(client, index));
        let said = Said { name: claim.name.to_owned(), why: claim.message.clone() };
        let finding = Finding::new(Kind::Always, claim.message).saying(said);
        finding.with(witness.unwrap_or_default()).at(moment.unwrap_or(Nanos::MAX))
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
            always!(2 > 3, "2 is not more than 3");
            let part = || Part { operation: Some((2, 5)), moment: Some(7) };
            points::in_part(part, operation).now_or_never().expect("nothing to wait for");
            let found = |kind: Kind, at| Finding::new(kind, kind.name()).at(at);
            let findings = vec![found(Kind::Audit, 6), found(Kind::Model, 8)];
            Ok::<_, Infallible>(RunResult { findings, ..RunResult::default() })
        };
        let Ok(result) = supervised(run);
        let found: Vec<_> = result.findings.into_iter().map(|it| (it.kind, it.witness)).collect();
        let expected = [
            (Kind::Audit, Witness::default()),
            (Kind::Always, Witness::operation(2, 5)),
            (Kind::Model, Witness::default()),
            (Kind::Always, Witness::default()),
        ];
        assert_eq!(found, expected);
    }
}
