//! Slow: an operation ends within its time limit as long as the cluster serves others.

use super::Judgement;
use crate::{
    describe::erased::{AnyValue, AnyWorkload},
    describe::workload::Operation,
    judge::finding::{Objection, Witness},
    judge::model::describe,
};
use shaketable_sim::{
    history::{Attempt, Call, History, Reported},
    rt::{MILLISECOND, Nanos},
};

/// After what time without a success the cluster is not known to have served anybody, nanoseconds.
const SERVES: Nanos = 500 * MILLISECOND;

/// Judges the operations for which their workload gives a limit.
pub fn judge(
    workload: &AnyWorkload,
    plan: &[Vec<AnyValue>],
    operations: &[Vec<Operation<AnyValue>>],
    history: &History,
) -> Judgement {
    let mut ends: Option<Vec<(Nanos, usize)>> = None;
    let mut first: Option<(Nanos, Box<Objection>)> = None;
    for (client, list) in operations.iter().enumerate() {
        for (index, operation) in list.iter().enumerate() {
            let op = &plan[client][index];
            let Some(limit) = workload.time_limit(op) else { continue };
            let limit = u64::try_from(limit.as_nanos()).unwrap_or(Nanos::MAX);
            let took = operation.returned.saturating_sub(operation.called);
            let late_from = operation.called.saturating_add(limit);
            let is_earlier = first.as_ref().is_none_or(|(earliest, _)| late_from < *earliest);
            if operation.outcome.is_none() || took <= limit || !is_earlier {
                continue;
            }
            let ends = ends.get_or_insert_with(|| successes(history));
            let served = served(ends, client, operation.called, operation.returned);
            if served > limit {
                let seconds = |nanos: Nanos| format!("{:.3} s", nanos as f64 / 1e9);
                let message = format!(
                    "{} took {}, of which the cluster served others for at least {}; its limit is {}",
                    describe((client, index), op),
                    seconds(took),
                    seconds(served),
                    seconds(limit),
                );
                let witness = Witness {
                    expected: Some(format!("an end within {}", seconds(limit))),
                    found: Some(seconds(took)),
                    ..Witness::operation(client, index)
                };
                first = Some((late_from, Box::new(Objection { message, witness, ..Objection::default() })));
            }
        }
    }
    first.map_or(Ok(()), |(_, objection)| Err(objection))
}

/// When attempts succeeded, ascending, and of which client. An audit only reads.
fn successes(history: &History) -> Vec<(Nanos, usize)> {
    let is_success = |attempt: &Attempt| match attempt.reported {
        Reported::Committed { .. } | Reported::ReadOnly => true,
        Reported::Nothing => !attempt.calls.is_empty() && attempt.calls.iter().all(Call::is_answered),
        Reported::Failed(_) => false,
    };
    let attempts = history.numbered().filter(|(_, attempt)| is_success(attempt));
    let mut ends: Vec<_> =
        attempts.map(|(_, attempt)| (attempt.ended, usize::from(attempt.client.0))).collect();
    ends.sort_unstable();
    ends
}

/// For how much of a time the cluster served others than this client, nanoseconds.
fn served(ends: &[(Nanos, usize)], client: usize, from: Nanos, until: Nanos) -> Nanos {
    let others = ends.iter().filter(|(_, other)| *other != client).map(|(at, _)| *at);
    let during = others.filter(|at| (from..=until).contains(at));
    let (_, served) = during.fold((from, 0), |(last, sum), at| (at, sum + (at - last).min(SERVES)));
    served
}
