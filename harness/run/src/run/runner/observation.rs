//! What a run shows to whoever observes it.

use crate::{
    describe::{
        erased::AnyValue,
        workload::{Operation, Outcome},
    },
    run::plan::Plan,
};
use shaketable_sim::{history::History, rt::Nanos};
use shaketable_tx::Error;

/// A run at its end.
#[derive(Clone, Copy)]
pub struct Observation<'a> {
    /// What its clients and logs recorded.
    pub history: &'a History,
    /// The operations of each client that were called, in order.
    pub done: &'a [Vec<Done>],
}

/// Receives a run at its end. Called once, or not at all if the run fails early.
pub type Observer<'a> = &'a (dyn Fn(&Observation<'_>) + Sync);

/// An operation that was called.
#[derive(Clone, Debug)]
pub struct Done {
    /// Its kind: see [`kind`].
    pub kind: String,
    /// Whether operations of this kind need not succeed.
    pub is_rare: bool,
    /// How it ended.
    pub ended: Ended,
    /// The length of its answer as text, if it has one.
    pub answer: Option<u64>,
    /// When it was called.
    pub called: Nanos,
    /// When it returned.
    pub returned: Nanos,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was done.
    Done,
    /// The layer refused it.
    Refused,
    /// It failed with this error; `None` if it broke a promise of the layer.
    Failed(Option<Error>),
    /// Its outcome is unknown, or it did not end.
    Unknown,
}

/// The operations that were called.
pub(super) fn done(plan: &Plan, operations: &[Vec<Operation<AnyValue>>]) -> Vec<Vec<Done>> {
    let of_client = |(list, planned): (&Vec<Operation<AnyValue>>, &Vec<AnyValue>)| {
        let of = |(operation, op): (&Operation<AnyValue>, &AnyValue)| {
            let kind = kind(&format!("{op:?}"));
            Done {
                is_rare: plan.configuration.rare_kinds().contains(&&*kind),
                kind,
                ended: match &operation.outcome {
                    Some(Outcome::Answered(answer)) if plan.configuration.is_refusal(answer) => {
                        Ended::Refused
                    }
                    Some(Outcome::Answered(_)) => Ended::Done,
                    Some(Outcome::Failed(error)) => Ended::Failed(Some(*error)),
                    Some(Outcome::Violated(_)) => Ended::Failed(None),
                    Some(Outcome::Unknown(_)) | None => Ended::Unknown,
                },
                answer: match &operation.outcome {
                    Some(Outcome::Answered(answer)) => Some(format!("{answer:?}").len() as u64),
                    _ => None,
                },
                called: operation.called,
                returned: operation.returned,
            }
        };
        list.iter().zip(planned).map(of).collect()
    };
    operations.iter().zip(&plan.operations).map(of_client).collect()
}

/// The name of an operation's kind: of its variant, by its debug output. Operations that do several things at
/// once are one kind.
pub fn kind(shown: &str) -> String {
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(list) = shown.strip_prefix('[') else { return name(shown) };
    let mut depth = 0;
    let mut is_several = false;
    for c in list.strip_suffix(']').unwrap_or(list).chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => is_several = true,
            _ => {}
        }
    }
    if is_several || list == "]" { "several".to_owned() } else { name(list) }
}
