//! The history of a program, which has no operations of a plan.

use crate::run::runner::{Recorded, Words, of_entries};
use shaketable_reports::{OperationEntry, RunHistory};
use shaketable_session::{
    report::{End, Recording},
    snapshot::RESTORER,
};
use shaketable_sim::{ids::ClientId, rt::Nanos};
use std::collections::BTreeMap;

/// A layer that describes nothing.
struct Plain;

impl Words for Plain {
    fn key(&self, _: &[u8]) -> Option<String> {
        None
    }
    fn value(&self, _: &[u8], _: &[u8]) -> Option<String> {
        None
    }
}

/// The history of a program: each of its databases is a client, whose one operation is the program.
pub(super) fn of_program(recording: Recording, end: &End, call: &str, outcome: &str) -> RunHistory {
    let Recording { mut history, machines, .. } = recording;
    let mut clients: BTreeMap<ClientId, Nanos> = BTreeMap::new();
    for attempt in history.attempts.iter_mut().flatten().filter(|attempt| attempt.client != RESTORER) {
        attempt.operation = Some(0);
        let began = attempt.version_requested.min(attempt.ended);
        let first = clients.entry(attempt.client).or_insert(began);
        *first = began.min(*first);
    }
    let operation = |(client, called): (ClientId, Nanos)| OperationEntry {
        client: client.0,
        index: 0,
        call: call.to_owned(),
        called,
        returned: Some(end.virtual_time),
        outcome: outcome.to_owned(),
    };
    let machine = |node| machines.get(&node).cloned().unwrap_or_default();
    let recorded =
        Recorded { history: &history, events: &end.events, ended: end.virtual_time, machine: &machine };
    let operations = clients.into_iter().map(operation).collect();
    RunHistory { is_program: true, ..of_entries(operations, &Plain, &recorded) }
}
