//! Calls the judges with the recorded data of a run.

use super::testbed::{AUDITOR, CHECKER};
use crate::{
    describe::erased::{AnyModel, AnyValue},
    describe::misfit::Misfit,
    describe::workload::Operation,
    judge::finding::{Finding, Kind, Objection},
    judge::panics,
    judge::{
        self, Evidence, Judge, Replica, Truth,
        audits::{Audits, Broken, Search},
        model::Mismatch,
        times::{Times, ended},
    },
    run::plan::Plan,
};
use shaketable_sim::{history::History, judges::Early, proto::Version, rt::Nanos};
use std::{collections::BTreeSet, panic::AssertUnwindSafe};

/// The results of the judges.
pub(super) struct Judged {
    /// All findings so far.
    pub(super) findings: Vec<Finding>,
    /// The number of versions audited.
    pub(super) audited: u64,
    /// The number of waits judged.
    pub(super) waits: u64,
    /// The sequential model after the last operation, if every answer fits and nothing that is stored
    /// differs.
    pub(super) model: Option<AnyModel>,
}

/// The operations of each client, and those that did not end by themselves: client and operation.
type Performed<'a> = (&'a [Vec<Operation<AnyValue>>], &'a BTreeSet<(usize, usize)>);

/// Judges a run. Audits start at `set_up_at`, the version of the last commit of the setup. `findings` are
/// those of the run so far, and `broken_at` is the version of the failing audit among them: the history
/// completes their witnesses.
pub(super) fn judge(
    plan: &Plan,
    (history, early): (&History, Early),
    (operations, dropped): Performed<'_>,
    replicas: &[Replica],
    set_up_at: Version,
    mut findings: Vec<Finding>,
    broken_at: Option<Version>,
) -> Judged {
    let truth = Truth::of(history);
    let evidence = Evidence { history, truth: &truth, replicas };
    let so_far = findings.len();
    let mut early = Some(early);
    for judge in Judge::ALL {
        let judgement = match early.take_if(|_| judge == Judge::Serializable) {
            Some(early) => early.end(&evidence),
            None => judge.judge(&evidence),
        };
        findings.extend(judgement.err().map(|objection| Finding::of(judge.into(), *objection)));
    }
    let (workload, plan) = (&plan.configuration, &plan.operations);
    let times = Times::of(history, &truth);
    let replay = |beside: judge::model::Beside<'_>| {
        judge::model::judge(workload, plan, operations, history, &truth, beside)
    };
    let mut audits = Audits::new(workload, &times, set_up_at, broken_at);
    let model = caught(|| replay(&mut |place, model| audits.advance(place, Some(model))), &mut findings);
    let (model, waits) = model.unzip();
    let conflicts = caught(|| judge::conflict_free::judge(workload, plan, history, &truth), &mut findings);
    findings.extend(conflicts.and_then(Result::err).map(|why| {
        let at = ended(history, &why.witness.attempts);
        Finding::of(Kind::ConflictFree, *why).at(at)
    }));
    let audits = caught(|| audits.finish(), &mut findings);
    let (audited, audits, differs) = audits.unwrap_or((0, Ok(()), None));
    let rebuilt = audits.err().map(|broken| *broken);
    let rebuilt = complete(&mut findings[..so_far], broken_at, rebuilt, &times);
    findings
        .extend(rebuilt.map(|broken| Finding::of(Kind::Audit, broken.objection).at(times.at(broken.since))));
    let model = match (model, differs) {
        (Some(Ok(_)), Some(differs)) => {
            let mut search = Search::new(workload, &times, differs);
            let found = caught(
                || {
                    let _ = replay(&mut |place, model| search.advance(place, model));
                    search.finish()
                },
                &mut findings,
            );
            findings.extend(
                found.flatten().map(|it| Finding::of(Kind::Check, it.objection).at(times.at(it.since))),
            );
            None
        }
        (Some(Ok(model)), None) => Some(model),
        (Some(Err(mismatch)), _) => {
            findings.push(match mismatch {
                Mismatch::Layer(why, at) => Finding::of(Kind::Model, *why).at(times.at(at)),
                Mismatch::Model(why, at) => Finding::of(Kind::WorkloadModel, *why).at(times.at(at)),
            });
            None
        }
        (None, _) => None,
    };
    let describe =
        |(client, index): (usize, usize)| judge::model::describe((client, index), &plan[client][index]);
    let given_up = |(client, index): (usize, usize)| {
        dropped.contains(&(client, index)) || workload.is_given_up(&plan[client][index])
    };
    let returned = |kind, why: Objection| {
        let returned = |(client, index): &(usize, usize)| operations[*client][*index].returned;
        let at = why.witness.operations.iter().map(returned).min();
        Finding::of(kind, why).at(at.unwrap_or(Nanos::MAX))
    };
    let certain = judge::certain::judge(operations, given_up, history, describe);
    findings.extend(certain.err().map(|why| returned(Kind::Unexplained, *why)));
    let overwritten = caught(|| judge::overwritten::judge(workload, plan, history, &truth), &mut findings);
    findings.extend(overwritten.and_then(Result::err).map(|why| {
        let at = ended(history, &why.witness.attempts);
        Finding::of(Kind::Overwritten, *why).at(at)
    }));
    let slow = caught(|| judge::slow::judge(workload, plan, operations, history), &mut findings);
    findings.extend(slow.and_then(Result::err).map(|why| returned(Kind::Slow, *why)));
    let unexplained = judge::unexplained::judge(operations, given_up, history, describe);
    findings.extend(unexplained.err().map(|why| returned(Kind::Unexplained, *why)));
    Judged { findings, audited, waits: waits.unwrap_or_default(), model }
}

/// Completes findings that were made before the history was known: who should have woken the operations that
/// wait, and who broke what the auditor of the cluster found broken. That one is told with the version and
/// the transaction from which on it is broken, if the rebuilt states show it; what remains of them is
/// returned.
fn complete(
    findings: &mut [Finding],
    broken_at: Option<Version>,
    mut rebuilt: Option<Broken>,
    times: &Times<'_>,
) -> Option<Broken> {
    let Times { history, truth, .. } = times;
    for finding in findings {
        match (finding.kind, broken_at) {
            (Kind::Live, _) => {
                let witness = judge::live::with_wakers(finding.witness.clone(), history, truth);
                *finding = finding.clone().with(witness);
            }
            (Kind::Audit, Some(looked)) => {
                let shown = rebuilt.take_if(|rebuilt| rebuilt.since <= looked);
                *finding = match shown {
                    Some(Broken { since, objection }) => {
                        Finding::of(Kind::Audit, objection).at(times.at(since))
                    }
                    None => {
                        let witness = judge::observed(history, truth, AUDITOR, Some(looked));
                        finding.clone().with(witness).at(times.at(looked))
                    }
                };
            }
            _ => {}
        }
    }
    rebuilt
}

/// The finding of a final database that differs from the model.
pub(super) fn differs(misfit: Misfit, history: &History) -> Finding {
    let truth = Truth::of(history);
    let (message, said) = (misfit.to_string(), misfit.said());
    let mut witness = match misfit.operation {
        Some(operation) => judge::of_operation(history, &truth, operation),
        None => judge::observed(history, &truth, CHECKER, None),
    };
    if let Some((expected, found)) = misfit.sides {
        (witness.expected, witness.found) = (Some(expected), Some(found));
    }
    Finding::new(Kind::Check, message).saying(said).with(witness)
}

/// Runs the workload's part of a judge. A panic in it is a finding about the workload.
fn caught<T>(judge: impl FnOnce() -> T, findings: &mut Vec<Finding>) -> Option<T> {
    match std::panic::catch_unwind(AssertUnwindSafe(judge)) {
        Ok(judged) => Some(judged),
        Err(panic) => {
            findings.push(Finding::panicked(Kind::Panic, "", &panics::caught(&*panic)));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        judge::finding::{Objection, Witness},
        judge::story::Story,
    };
    use bytes::Bytes;
    use shaketable_sim::{
        history::Call,
        ids::{AttemptId, ClientId},
        proto::{KeyRange, Mutation},
    };
    use shaketable_tx::{Isolation, KeySelector};

    fn write(key: &'static str) -> Vec<Mutation> {
        vec![Mutation::Set(key.into(), "1".into())]
    }

    /// Attempts 0, 1 and 2 set `a`, `b` and `a`, the setup sets `c`, `d` and `d2`, and attempt 4 clears `d`
    /// and `d2`. Then the final check reads `a`, `b`, `c` and the keys from `d` on, and the auditor reads `a`
    /// at version 15 and `b` at version 20.
    fn story() -> Story {
        let mut story = Story::default();
        let get = |key: &'static str| Call::Get {
            key: key.into(),
            isolation: Isolation::Serializable,
            answer: Some(None),
        };
        let ids = [0, 1, 2, 3, 4].map(|_| story.attempt(0, Vec::new()).0);
        story.history.attempts[3].as_mut().expect("an attempt").operation = None;
        let clear = Mutation::ClearRange(KeyRange::new("d", "e"));
        let writes =
            [write("a"), write("b"), write("a"), [write("c"), write("d"), write("d2")].concat(), vec![clear]];
        for (number, (id, mutations)) in ids.into_iter().zip(writes).enumerate() {
            story.log(10 * number as Version + 10, vec![(Some(id), 0, mutations)]);
        }
        let range = Call::GetRange {
            begin: KeySelector::first_greater_or_equal("d"),
            end: KeySelector::first_greater_or_equal("z"),
            limit: 0,
            reverse: false,
            isolation: Isolation::Serializable,
            answer: Some((Vec::new().into(), false)),
        };
        for (client, version, calls) in [
            (CHECKER, 60, vec![get("b"), get("a"), get("c"), range]),
            (AUDITOR, 15, vec![get("a")]),
            (AUDITOR, 20, vec![get("b")]),
        ] {
            let attempt = story.attempt(version, calls).1;
            (attempt.client, attempt.operation) = (client, None);
        }
        story
    }

    fn witness(attempts: &[u32], keys: &[&'static str]) -> Witness {
        Witness {
            attempts: attempts.iter().copied().map(AttemptId).collect(),
            keys: keys.iter().copied().map(Bytes::from).collect(),
            ..Witness::default()
        }
    }

    #[test]
    fn a_different_database_names_who_wrote_last_what_the_check_read() {
        let found = differs("it differs".into(), &story().history).witness;
        // Of the keys that were cleared, which the check did not find, the first one stands for all.
        assert_eq!(found, witness(&[1, 2, 4], &["a", "b", "d"]));
        let misfit = Misfit::new("1 is not 2".to_owned(), "2".to_owned(), "1".to_owned());
        let found = differs(misfit, &story().history).witness;
        assert_eq!((found.expected, found.found), (Some("2".to_owned()), Some("1".to_owned())));
        // The check names an operation: the first one, whose second attempt does not commit, or one that has
        // no effect.
        let mut story = story();
        let (_, second) = story.attempt(10, Vec::new());
        (second.client, second.operation) = (ClientId(0), Some(0));
        let (_, lost) = story.attempt(10, write("z").into_iter().map(Call::Write).collect());
        (lost.client, lost.operation) = (ClientId(3), Some(7));
        for (key, attempts, keys) in [((0, 0), &[0], &["a"]), ((3, 7), &[9], &["z"])] {
            let misfit = Misfit::of_operation(key.0, key.1, "it does not fit".to_owned());
            let found = differs(misfit, &story.history).witness;
            assert_eq!(found, Witness { operations: vec![key], ..witness(attempts, keys) });
        }
    }

    #[test]
    fn a_failing_audit_of_the_cluster_names_who_broke_the_invariant() {
        let story = story();
        let truth = Truth::of(&story.history);
        let times = Times::of(&story.history, &truth);
        let of = |broken_at, rebuilt: Option<Version>| {
            let objection = Objection {
                message: "from there on".to_owned(),
                witness: witness(&[9], &["z"]),
                ..Objection::default()
            };
            let rebuilt = rebuilt.map(|since| Broken { since, objection });
            let mut findings = [Finding::new(Kind::Audit, "it"), Finding::new(Kind::Panic, "it")];
            let remains = complete(&mut findings, Some(broken_at), rebuilt, &times).is_some();
            assert_eq!(findings[1].witness, Witness::default());
            let [Finding { message, witness, .. }, _] = findings;
            (message, witness, remains)
        };
        let told = |message: &str, witness, remains| (message.to_owned(), witness, remains);
        assert_eq!(of(20, Some(20)), told("from there on", witness(&[9], &["z"]), false));
        // The rebuilt states are sound up to there.
        assert_eq!(of(20, Some(21)), told("it", witness(&[1], &["b"]), true));
        assert_eq!(of(15, None), told("it", witness(&[0], &["a"]), false));
    }

    #[test]
    fn an_operation_that_waits_is_completed_with_who_should_have_woken_it() {
        let mut story = story();
        let (_, waits) = story.attempt(10, Vec::new());
        (waits.client, waits.operation) = (ClientId(7), Some(3));
        let get = Call::Get { key: "b".into(), isolation: Isolation::Snapshot, answer: Some(None) };
        waits.calls = vec![get];
        let truth = Truth::of(&story.history);
        let mut findings = [Finding::new(Kind::Live, "it").with(Witness::operation(7, 3))];
        let times = Times::of(&story.history, &truth);
        assert!(complete(&mut findings, None, None, &times).is_none());
        let woken = Witness { operations: vec![(7, 3)], ..witness(&[1], &["b"]) };
        assert_eq!(findings[0].witness, woken);
    }
}
