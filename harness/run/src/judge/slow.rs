//! Slow: no operation takes longer than its workload allows, of the time in which the cluster served others.
//! [`live`](super::live) sees a client that never finishes; this sees one that finishes too late.

use super::Judgement;
use crate::{
    describe::erased::{AnyValue, AnyWorkload},
    describe::workload::Operation,
    judge::finding::{Objection, Witness},
};
use shaketable_sim::{
    history::{History, Reported},
    ids::ClientId,
    rt::{Nanos, SECOND},
};

/// When the cluster served whom.
pub struct Served {
    /// The ends of transactions that committed or read, and their clients, ascending.
    ends: Vec<(Nanos, ClientId)>,
    /// When faults had ended. From then on the cluster serves everybody.
    healed: Nanos,
}

impl Served {
    /// The successful transactions of a run.
    pub fn of(history: &History) -> Served {
        let served = |attempt: &&shaketable_sim::history::Attempt| {
            matches!(attempt.reported, Reported::ReadOnly | Reported::Committed { .. })
        };
        let attempts = history.attempts.iter().flatten().filter(served);
        let mut ends: Vec<_> = attempts.map(|attempt| (attempt.ended, attempt.client)).collect();
        ends.sort_unstable();
        Served { ends, healed: history.faulty.map_or(0, |(_, until)| until) }
    }

    /// How much of this time the cluster served others than `client`: all of it after faults had ended, and
    /// before that the seconds, counted from its beginning, in which a transaction of another one succeeded.
    pub fn others(&self, client: usize, from: Nanos, until: Nanos) -> Nanos {
        let mut sum = until.saturating_sub(from.max(self.healed));
        let until = until.min(self.healed);
        let mut begin = from;
        while begin < until {
            let end = until.min(begin + SECOND);
            let first = self.ends.partition_point(|(ended, _)| *ended < begin);
            let mut within = self.ends[first..].iter().take_while(|(ended, _)| *ended < end);
            if within.any(|(_, by)| usize::from(by.0) != client) {
                sum += end - begin;
            }
            begin = end;
        }
        sum
    }
}

/// Claims that every operation that ended by itself took at most as long as its workload
/// [allows](crate::describe::workload::Workload::longest). `given_up` says which did not end by themselves,
/// and `describe` names an operation. The finding is the operation that was late first.
pub fn judge(
    workload: &AnyWorkload,
    plan: &[Vec<AnyValue>],
    operations: &[Vec<Operation<AnyValue>>],
    given_up: impl Fn((usize, usize)) -> bool,
    history: &History,
    describe: impl Fn((usize, usize)) -> String,
) -> Judgement {
    let mut served = None;
    let mut first: Option<(Nanos, (usize, usize), Nanos, Nanos)> = None;
    for (client, (list, planned)) in operations.iter().zip(plan).enumerate() {
        for (index, (operation, op)) in list.iter().zip(planned).enumerate() {
            let Some(longest) = workload.longest(op) else { continue };
            let longest = longest.as_nanos().try_into().unwrap_or(Nanos::MAX);
            let took = operation.returned.saturating_sub(operation.called);
            if operation.outcome.is_none() || took <= longest || given_up((client, index)) {
                continue;
            }
            let served = served.get_or_insert_with(|| Served::of(history));
            let late_by = operation.called + longest;
            let took = served.others(client, operation.called, operation.returned);
            if took > longest && first.is_none_or(|(earliest, ..)| late_by < earliest) {
                first = Some((late_by, (client, index), took, longest));
            }
        }
    }
    let Some((_, key, took, longest)) = first else { return Ok(()) };
    let seconds = |time: Nanos| format!("{:.3} s", time as f64 / 1e9);
    let message = format!(
        "{} took {} in which the cluster served others, and its workload allows {}",
        describe(key),
        seconds(took),
        seconds(longest)
    );
    let sides = (Some(format!("at most {}", seconds(longest))), Some(seconds(took)));
    let witness = Witness { expected: sides.0, found: sides.1, ..Witness::operation(key.0, key.1) };
    Err(Box::new(Objection { message, witness }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::story::Story;

    /// Client 1 commits at each of these times, and faults end at four seconds.
    fn served(times: &[Nanos]) -> Served {
        let mut story = Story::default();
        for at in times {
            let (_, attempt) = story.attempt(0, Vec::new());
            (attempt.client, attempt.ended) = (ClientId(1), *at);
            attempt.reported = Reported::Committed { version: 1, batch_index: 0 };
        }
        let (_, refused) = story.attempt(0, Vec::new());
        (refused.client, refused.ended) = (ClientId(2), 7 * SECOND / 2);
        refused.reported = Reported::Failed(shaketable_tx::Error::NOT_COMMITTED);
        story.history.faulty = Some((0, 4 * SECOND));
        Served::of(&story.history)
    }

    #[test]
    fn only_the_time_counts_in_which_others_were_served() {
        let half = SECOND / 2;
        let served = served(&[3 * half, half, half + 1]);
        assert_eq!(served.others(0, 0, 2 * SECOND), 2 * SECOND);
        assert_eq!(served.others(1, 0, 2 * SECOND), 0, "itself");
        assert_eq!(served.others(0, 2 * SECOND, 4 * SECOND), 0, "a refusal serves nobody");
        assert_eq!(served.others(0, 2 * SECOND, 6 * SECOND), 2 * SECOND, "after faults have ended");
        assert_eq!(served.others(1, 5 * SECOND, 6 * SECOND), SECOND);
        assert_eq!(served.others(0, half, half + half), half, "a part of a second");
    }
}
