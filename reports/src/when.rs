//! When a failure became certain: how often a plan fails if its run has other chance from a moment on.

use crate::{
    history::{EventKind, OperationEntry, RunHistory, TransactionEntry},
    text::{brief, count, plural, shortened},
};
use serde::{Deserialize, Serialize};

/// How often a plan fails with other chance, moment by moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct When {
    /// How many times it was run for each moment, each time with other chance. At least one.
    pub runs: u64,
    /// The moments by time, the first of which is the start of the run.
    pub moments: Vec<Moment>,
}

/// A moment of a run, and how often the plan fails if chance is another one right after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Nanoseconds of virtual time. What happened until then, and what happens at it, is the same in each
    /// run.
    pub at: u64,
    /// What happens at it.
    pub what: String,
    /// How many of the runs failed like the run that is told.
    pub failed: u64,
}

/// From which share of the runs on a rise between two moments is told, per cent. Less may be chance: of 25
/// runs, one share differs from another by as much as 20 per cent often enough.
const CLEAR: u64 = 30;

impl When {
    /// The first moment from which on all runs failed, those of later moments as well. `None` if there is
    /// none.
    pub fn certain(&self) -> Option<usize> {
        let sure = self.moments.iter().rev().take_while(|moment| moment.failed >= self.runs).count();
        (sure > 0).then(|| self.moments.len() - sure)
    }

    /// The first moment, before it was certain, with clearly more failures than the one before.
    fn likely(&self) -> Option<usize> {
        let rise = |n: &usize| self.moments[*n].failed.saturating_sub(self.moments[*n - 1].failed);
        let end = self.certain().unwrap_or(self.moments.len());
        (1..end).find(|n| rise(n) * 100 >= self.runs * CLEAR)
    }

    /// When it became certain and likely, in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let Some(last) = self.moments.last() else { return Vec::new() };
        let of = |n: usize| format!("{} of {}", count(self.moments[n].failed), count(self.runs));
        let at = |n: usize| format!("{} ms: {}", milliseconds(self.moments[n].at), self.moments[n].what);
        let likely = self
            .likely()
            .map(|n| format!("It became likely at {}. {} fail, {} before.", at(n), of(n), of(n - 1)));
        let certain = match self.certain() {
            Some(0) => format!(
                "It was certain from the start: all {} fail, whatever chance does.",
                plural(self.runs, "run", "runs")
            ),
            Some(n) => {
                format!("It became certain at {}. All fail from then on, {} before.", at(n), of(n - 1))
            }
            None => format!(
                "It never became certain: of {}, {} fail with other chance after the last moment.",
                plural(self.runs, "run", "runs"),
                count(last.failed)
            ),
        };
        likely.into_iter().chain([certain]).collect()
    }
}

/// A text, or its beginning.
fn short(text: &str) -> String {
    const MOST: usize = 60;
    shortened(&brief(text), MOST)
}

/// Nanoseconds as milliseconds.
pub(crate) fn milliseconds(at: u64) -> String {
    format!("{:.3}", at as f64 / 1e6)
}

/// The moments of a run at which something happens to its operations, with what happens: the start of the
/// run, calls, beginnings and ends of attempts, faults, and returns. Nothing has failed yet.
pub fn moments(history: &RunHistory) -> Vec<Moment> {
    let first = history.operations.iter().map(|operation| operation.called).min().unwrap_or(0);
    let last =
        history.operations.iter().filter_map(|operation| operation.returned).max().unwrap_or(history.ended);
    let during = |at: u64| (first..=last).contains(&at);
    // Of what happens at one instant the first is told: faults, and then the rest by operation.
    let mut found = vec![(0, "the run begins".to_owned())];
    for event in history.events.iter().filter(|event| event.kind != EventKind::Act && during(event.at)) {
        let client = event.client.map_or_else(String::new, |client| format!("client {client}: "));
        found.push((event.at, format!("{client}! {}", event.text)));
    }
    for operation in &history.operations {
        let OperationEntry { client, index, call, called, returned, outcome } = operation;
        let theirs = |tx: &&TransactionEntry| (tx.client, tx.operation) == (Some(*client), Some(*index));
        found.push((*called, format!("client {client} calls {index}: {}", short(call))));
        history.transactions.iter().filter(theirs).for_each(|tx| found.extend(of_attempt(tx, *client)));
        let end = || format!("client {client}: {index} {}", short(outcome));
        found.extend(returned.map(|at| (at, end())));
    }
    found.sort_by_key(|(at, _)| *at);
    found.dedup_by_key(|(at, _)| *at);
    found.into_iter().map(|(at, what)| Moment { at, what, failed: 0 }).collect()
}

/// The moments of an attempt: its begin, its commit, when that takes effect, and when its client knows how it
/// ended.
fn of_attempt(tx: &TransactionEntry, client: u16) -> impl Iterator<Item = (u64, String)> {
    let does = move |id: u32, what: &str| format!("client {client}: attempt {id} {what}");
    let id = tx.id;
    [
        Some((tx.began, does(id, "begins"))),
        tx.commit_sent.map(|at| (at, does(id, "sends its commit"))),
        tx.durable.map(|at| (at, does(id, "takes effect"))),
        Some((tx.ended, does(id, &short(&tx.end)))),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::EventEntry;

    fn when(failed: &[u64]) -> When {
        let moment = |(n, failed): (usize, &u64)| {
            let at = n as u64 * 1_500_000;
            Moment { at, what: format!("step {n}"), failed: *failed }
        };
        When { runs: 10, moments: failed.iter().enumerate().map(moment).collect() }
    }

    #[test]
    fn a_fault_is_told_before_what_it_hits() {
        let event = |at, kind| EventEntry {
            at,
            kind,
            client: Some(1),
            text: "it strikes".into(),
            ..EventEntry::default()
        };
        let operation =
            OperationEntry { client: 1, called: 5, returned: Some(9), ..OperationEntry::default() };
        let tx = TransactionEntry {
            client: Some(1),
            operation: Some(0),
            began: 5,
            commit_sent: Some(7),
            ended: 8,
            ..TransactionEntry::default()
        };
        let events = vec![
            event(4, EventKind::Fault),
            event(7, EventKind::Fault),
            event(8, EventKind::Act),
            event(10, EventKind::Fault),
        ];
        let history = RunHistory {
            operations: vec![operation],
            transactions: vec![tx],
            events,
            ended: 20,
            ..RunHistory::default()
        };
        let told: Vec<(u64, String)> =
            moments(&history).into_iter().map(|moment| (moment.at, moment.what)).collect();
        let expected = [
            (0, "the run begins"),
            (5, "client 1 calls 0: "),
            (7, "client 1: ! it strikes"),
            (8, "client 1: attempt 0 "),
            (9, "client 1: 0 "),
        ];
        assert_eq!(told, expected.map(|(at, what)| (at, what.to_owned())));
    }

    #[test]
    fn certain_is_the_moment_after_which_all_runs_fail() {
        for (failed, certain, told) in [
            (
                &[10, 10][..],
                Some(0),
                &["It was certain from the start: all 10 runs fail, whatever chance does."][..],
            ),
            (
                &[1, 0, 10, 10],
                Some(2),
                &["It became certain at 3.000 ms: step 2. All fail from then on, 0 of 10 before."],
            ),
            (
                &[1, 10, 5, 7, 9, 10],
                Some(5),
                &[
                    "It became likely at 1.500 ms: step 1. 10 of 10 fail, 1 of 10 before.",
                    "It became certain at 7.500 ms: step 5. All fail from then on, 9 of 10 before.",
                ],
            ),
            (
                &[1, 2, 9],
                None,
                &[
                    "It became likely at 3.000 ms: step 2. 9 of 10 fail, 2 of 10 before.",
                    "It never became certain: of 10 runs, 9 fail with other chance after the last moment.",
                ],
            ),
            (&[], None, &[]),
        ] {
            let when = when(failed);
            assert_eq!(when.certain(), certain, "{failed:?}");
            assert_eq!(when.sentences(), told, "{failed:?}");
        }
    }
}
