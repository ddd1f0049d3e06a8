//! The outcomes that are tried: each result of a commit that the contract allows, and dropped operations.

use super::{
    Subject,
    case::{Case, Part},
};
use crate::{run::plan::Sketch, run::runner::RunResult};
use shaketable_sim::{
    faults::{Cut, Death, Decision, Family, Request, Step, draws},
    ids::ClientId,
    rt::{MILLISECOND, SECOND},
    seed::Seed,
};
use std::fmt;

/// How a commit ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Refused without a conflict.
    Refused,
    /// Its result is unknown; `late`: other clients have time to act before that is known.
    Unknown { applied: bool, late: bool },
    /// Its result is unknown, and it is not to be tried again: `commit_unknown_result_fatal`.
    Fatal { applied: bool },
    /// `cluster_version_changed`, and it is not sent.
    Changed,
    /// `transaction_timed_out` or, without `timeout`, `cluster_version_changed`; it lands soon or, with
    /// `late`, after seconds.
    Lands { timeout: bool, late: bool },
    /// The client dies before it is sent, or after it was answered.
    Dies { after: bool },
}

/// Every end of a commit.
const ENDS: [End; 14] = [
    End::Refused,
    End::Unknown { applied: true, late: false },
    End::Unknown { applied: true, late: true },
    End::Unknown { applied: false, late: false },
    End::Unknown { applied: false, late: true },
    End::Fatal { applied: true },
    End::Fatal { applied: false },
    End::Changed,
    End::Lands { timeout: false, late: false },
    End::Lands { timeout: false, late: true },
    End::Lands { timeout: true, late: false },
    End::Lands { timeout: true, late: true },
    End::Dies { after: false },
    End::Dies { after: true },
];

impl End {
    /// The fault family, and its position in the order in which a client considers the families at a commit.
    /// The first one that occurs ends the commit.
    fn family(self) -> Option<(usize, Family)> {
        match self {
            End::Refused => Some((0, Family::SpuriousConflict)),
            End::Fatal { .. } => Some((1, Family::UnknownFatal)),
            End::Unknown { applied: false, .. } => Some((2, Family::UnknownNotCommitted)),
            End::Unknown { applied: true, .. } => Some((3, Family::UnknownCommitted)),
            End::Lands { timeout: true, .. } => Some((4, Family::LateLanding)),
            End::Changed | End::Lands { timeout: false, .. } => Some((5, Family::ClusterVersionChanged)),
            End::Dies { .. } => None,
        }
    }

    /// The positions in the seed's random draws at which the draws give this end.
    fn draws(self, seed: Seed) -> Option<Vec<u64>> {
        let Some((_, family)) = self.family() else { return Some(Vec::new()) };
        let lands = |late: bool| {
            draws::position(seed, family, |chance| {
                let delay = draws::landing_delay(chance, 5 * SECOND);
                if late { (SECOND..3 * SECOND).contains(&delay) } else { delay < 20 * MILLISECOND }
            })
        };
        let is_sent = |sent| draws::position(seed, family, |chance| draws::is_sent(chance) == sent);
        match self {
            End::Refused | End::Dies { .. } => Some(Vec::new()),
            End::Unknown { late, .. } => draws::position(seed, family, |chance| {
                let delay = draws::result_delay(chance);
                if late { delay > 50 * MILLISECOND } else { delay == 0 }
            })
            .map(|at| vec![at]),
            End::Fatal { applied } => Some(vec![is_sent(applied)?]),
            End::Changed => Some(vec![is_sent(false)?]),
            End::Lands { timeout: true, late } => Some(vec![lands(late)?]),
            End::Lands { timeout: false, late } => Some(vec![is_sent(true)?, lands(late)?]),
        }
    }

    fn about(self) -> &'static str {
        match self {
            End::Refused => "is refused (1020)",
            End::Unknown { applied: true, late: false } => "is applied, and unknown (1021)",
            End::Unknown { applied: true, late: true } => "is applied, and unknown (1021) after a while",
            End::Unknown { applied: false, late: false } => "is not applied, and unknown (1021)",
            End::Unknown { applied: false, late: true } => "is not applied, and unknown (1021) after a while",
            End::Fatal { applied: true } => "is applied, and unknown for good (1022)",
            End::Fatal { applied: false } => "is not applied, and unknown for good (1022)",
            End::Changed => "is not sent (1039)",
            End::Lands { timeout: false, late: false } => "lands soon after its error (1039)",
            End::Lands { timeout: false, late: true } => "lands seconds after its error (1039)",
            End::Lands { timeout: true, late: false } => "lands soon after its error (1031)",
            End::Lands { timeout: true, late: true } => "lands seconds after its error (1031)",
            End::Dies { after: false } => "is not sent: its client dies",
            End::Dies { after: true } => "is applied, and its client dies",
        }
    }
}

/// An operation is dropped after 1 poll, after 2 polls and so on, in one run each. The runs are added in
/// batches of this many, until the operation completes before it is dropped.
const POLLS: u64 = 8;
/// The largest number of polls after which an operation is dropped.
const MOST_POLLS: u64 = 64;

/// A fault of one operation. Indices of operations are those in the whole plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A commit ends in this way.
    Commit(Step, End),
    /// The operation is dropped after this many polls, and its client continues.
    Dropped { client: ClientId, operation: u32, polls: u64 },
}

impl Outcome {
    /// Adds the outcome to a sketch that contains the outcomes `before`. `None` if the seed has no position
    /// at which the random draws give this outcome.
    fn add(self, subject: &dyn Subject, sketch: &mut Sketch, before: &[Outcome]) -> Option<()> {
        match self {
            Outcome::Commit(step, End::Dies { after }) => sketch.faults.deaths.push(Death { step, after }),
            Outcome::Commit(step, end) => {
                let (place, family) = end.family()?;
                // A decision counts the opportunities of its family. An earlier commit of the operation that
                // already has a fault of a preceding family gives this family no opportunity.
                let comes_first = |earlier: &&Outcome| match earlier {
                    Outcome::Commit(of, end) => {
                        (of.client, of.operation) == (step.client, step.operation)
                            && end.family().is_some_and(|(first, _)| first < place)
                    }
                    Outcome::Dropped { .. } => false,
                };
                let hidden = before.iter().filter(comes_first).count() as u32;
                sketch.faults.decisions.push(Decision {
                    client: step.client,
                    operation: Some(step.operation),
                    family,
                    opportunity: step.index.checked_sub(hidden)?,
                    draws: end.draws(subject.seed())?,
                });
            }
            Outcome::Dropped { client, operation, polls } => {
                let family = Family::DroppedOperation;
                let wanted = Cut::Polls(polls);
                let at = draws::position(subject.seed(), family, |chance| draws::cut(chance) == wanted)?;
                let operation = Some(operation);
                sketch.faults.decisions.push(Decision {
                    client,
                    operation,
                    family,
                    opportunity: 0,
                    draws: vec![at],
                });
            }
        }
        Some(())
    }

    /// The operation: its client and its index.
    fn operation(self) -> (ClientId, u32) {
        match self {
            Outcome::Commit(step, _) => (step.client, step.operation),
            Outcome::Dropped { client, operation, .. } => (client, operation),
        }
    }

    /// The outcome as text, with the index of the operation in the sketch.
    pub(super) fn shown(self, sketch: &Sketch) -> impl fmt::Display {
        let (client, operation) = self.operation();
        let of = format!("operation {} of client {}", sketch.new_index(client, operation), client.0);
        match self {
            Outcome::Commit(step, end) => format!("commit {} of {of} {}", step.index, end.about()),
            Outcome::Dropped { polls, .. } => format!("{of} is dropped at poll {polls}"),
        }
    }
}

/// The requests that a run made, with the indices that the operations have in the whole plan.
pub(super) fn made(sketch: &Sketch, result: &RunResult) -> Vec<Step> {
    let whole = |step: &Step| {
        let kept = sketch.operations.get(usize::from(step.client.0))?;
        Some(Step { operation: *kept.get(step.operation as usize)? as u32, ..*step })
    };
    result.requests.made.iter().filter_map(whole).collect()
}

/// The case in which something more happens.
fn also(subject: &dyn Subject, case: &Case, part: Part, outcome: Outcome) -> Option<Case> {
    let mut new = Case { part, ..case.clone() };
    outcome.add(subject, &mut new.sketch, &case.outcomes)?;
    new.outcomes.push(outcome);
    Some(new)
}

/// The cases of one outcome, from the run without one. `explored` are the operations to which something
/// happens.
pub(super) fn single(subject: &dyn Subject, case: &Case, result: &RunResult) -> Vec<Case> {
    let made = made(&case.sketch, result);
    let is_explored =
        |step: &&Step| case.explored.contains(&(usize::from(step.client.0), step.operation as usize));
    let commits = made.iter().filter(|step| step.request == Request::Commit).filter(is_explored);
    let ends = commits.flat_map(|step| ENDS.map(|end| Outcome::Commit(*step, end)));
    let dropped =
        case.explored.iter().flat_map(|(client, index)| dropped(ClientId(*client as u16), *index as u32, 0));
    ends.chain(dropped).filter_map(|outcome| also(subject, case, Part::Outcome, outcome)).collect()
}

/// The next times at which an operation is dropped.
fn dropped(client: ClientId, operation: u32, after: u64) -> impl Iterator<Item = Outcome> {
    (after + 1..=(after + POLLS).min(MOST_POLLS)).map(move |polls| Outcome::Dropped {
        client,
        operation,
        polls,
    })
}

/// The cases of the same operation, dropped later, if it was not done by then.
pub(super) fn later(subject: &dyn Subject, case: &Case, result: &RunResult) -> Vec<Case> {
    match case.outcomes[..] {
        [Outcome::Dropped { client, operation, polls }] if polls % POLLS == 0 && is_met(case, result) => {
            let mut plain = Case { outcomes: Vec::new(), ..case.clone() };
            plain.sketch.faults.decisions.clear();
            let outcomes = dropped(client, operation, polls);
            outcomes.filter_map(|outcome| also(subject, &plain, Part::Outcome, outcome)).collect()
        }
        _ => Vec::new(),
    }
}

/// The cases of two outcomes, from the run with the first one: the second one is the end of a later commit.
pub(super) fn second(subject: &dyn Subject, case: &Case, result: &RunResult) -> Vec<Case> {
    // If the first one did not happen, the second one would be the first.
    let [first] = case.outcomes[..] else { return Vec::new() };
    if !is_met(case, result) {
        return Vec::new();
    }
    let made = made(&case.sketch, result);
    let later = match first {
        Outcome::Commit(step, _) => {
            made.iter().position(|made| *made == step).map_or(&[][..], |at| &made[at + 1..])
        }
        Outcome::Dropped { client, operation, .. } => {
            let at = made.iter().rposition(|made| (made.client, made.operation) == (client, operation));
            at.map_or(&[][..], |at| &made[at + 1..])
        }
    };
    let commits = later.iter().filter(|step| step.request == Request::Commit);
    let outcomes = commits.flat_map(|step| ENDS.map(|end| Outcome::Commit(*step, end)));
    outcomes.filter_map(|outcome| also(subject, case, Part::TwoOutcomes, outcome)).collect()
}

/// Whether everything that was to happen has happened in a run.
pub(super) fn is_met(case: &Case, result: &RunResult) -> bool {
    let wanted = case.sketch.renumbered();
    let delivered = |family| result.faults.get(&family).copied().unwrap_or(0);
    let decided = |decision: &Decision| match decision.family {
        Family::DroppedOperation => delivered(Family::DroppedOperation) > 0,
        _ => result.decisions.iter().any(|met| {
            (met.client, met.operation, met.family, met.opportunity)
                == (decision.client, decision.operation, decision.family, decision.opportunity)
        }),
    };
    wanted.decisions.iter().all(decided) && delivered(Family::ClientDeath) == wanted.deaths.len() as u64
}
