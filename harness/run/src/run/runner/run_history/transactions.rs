//! Transactions, with what they called and what became of them.

use super::{
    calls::{Own, of_aside, of_call},
    known::Known,
};
use crate::{
    judge::Truth,
    run::runner::{
        ends::{end, refusal},
        testbed::SETTER,
    },
};
use shaketable_reports::{Fate, TransactionEntry};
use shaketable_sim::{
    history::{Attempt, History, Reported},
    ids::AttemptId,
};
use shaketable_tx::Error;

pub(super) fn transaction(
    id: u32,
    attempt: &Attempt,
    history: &History,
    truth: &Truth,
    known: &Known<'_>,
) -> TransactionEntry {
    let place = truth.place(AttemptId(id));
    let durable = place.and_then(|(version, _)| {
        history.durable.iter().find(|((_, durable), _)| *durable == version).map(|(_, at)| *at)
    });
    let refusal = (attempt.reported == Reported::Failed(Error::NOT_COMMITTED))
        .then(|| refusal(attempt, history, truth))
        .flatten();
    let mut own = Own::default();
    let mut asides = attempt.asides.iter().peekable();
    let mut calls = Vec::with_capacity(attempt.calls.len() + attempt.asides.len());
    for (number, call) in attempt.calls.iter().enumerate() {
        while let Some((_, aside)) = asides.next_if(|(before, _)| *before <= number) {
            calls.push(of_aside(aside, known));
        }
        let read = of_call((number, call), id, attempt, &own, known);
        match calls.last_mut().filter(|_| attempt.is_of_watch(number)) {
            // The program does not see what the watch reads.
            Some(watch) => watch.rows = read.rows,
            None => calls.push(read),
        }
        own.add(call);
    }
    calls.extend(asides.map(|(_, aside)| of_aside(aside, known)));
    TransactionEntry {
        id,
        client: (attempt.client != SETTER).then_some(attempt.client.0),
        operation: attempt.operation,
        began: attempt.version_requested.min(attempt.ended),
        read_version: attempt.read_version,
        calls,
        commit_sent: attempt.commit_sent,
        durable,
        ended: attempt.ended,
        fate: fate(attempt, place.is_some()),
        version: place.map(|(version, _)| version),
        end: end(id as usize, attempt, history, truth),
        refused_by: refusal.and_then(|refusal| refusal.by).map(|by| by.0),
        thread: attempt.origin.map(|origin| origin.thread),
        after: known.before(AttemptId(id)),
    }
}

fn fate(attempt: &Attempt, committed: bool) -> Fate {
    match attempt.reported {
        Reported::Committed { .. } => Fate::Committed,
        Reported::ReadOnly => Fate::ReadOnly,
        Reported::Failed(Error::NOT_COMMITTED) => Fate::Conflict,
        Reported::Failed(_) if committed => Fate::UnknownCommitted,
        Reported::Failed(error) if error.leaves_commit_unknown() && attempt.commit_sent.is_some() => {
            Fate::UnknownNotCommitted
        }
        Reported::Failed(_) => Fate::Failed,
        Reported::Nothing if committed => Fate::DroppedCommitted,
        Reported::Nothing => Fate::Dropped,
    }
}
