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

impl Words for Plain {}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::story::Story;
    use bytes::Bytes;
    use shaketable_sim::{
        faults::Family,
        history::Call,
        ids::NodeId,
        proto::Mutation,
        trace::{Event, Kind},
    };
    use shaketable_tx::Isolation;

    #[test]
    fn the_databases_of_a_program_are_clients_with_one_operation() {
        let write = Mutation::Set("a".into(), "2".into());
        let read = Call::Get {
            key: "a".into(),
            isolation: Isolation::Serializable,
            answer: Some(Some(Bytes::from("2"))),
        };
        let mut story = Story::default();
        let (first, attempt) = story.attempt(1, vec![Call::Write(write.clone())]);
        (attempt.client, attempt.operation, attempt.version_requested, attempt.ended) =
            (ClientId(3), None, 7, 9);
        let (_, attempt) = story.attempt(2, vec![read]);
        (attempt.client, attempt.operation) = (ClientId(4), None);
        story.attempt(0, Vec::new()).1.client = RESTORER;
        story.log(2, vec![(Some(first), 0, vec![write])]);
        let fault = Event { at: 8, node: NodeId(2), kind: Kind::Fault, a: Family::ALL[0] as u64, b: 0 };
        let end = End {
            hash: (0, 0),
            events: vec![fault],
            is_quiescence_unknown: false,
            virtual_time: 20,
            faults: BTreeMap::new(),
        };
        let machines = BTreeMap::from([(NodeId(2), "log-1".to_owned())]);
        let told = of_program(
            Recording { history: story.history, machines, errors: BTreeMap::new() },
            &end,
            "program",
            "fails",
        );
        let operations: Vec<_> = told
            .operations
            .iter()
            .map(|of| (of.client, &*of.call, of.called, of.returned, &*of.outcome))
            .collect();
        assert_eq!(operations, [(3, "program", 7, Some(20), "fails"), (4, "program", 0, Some(20), "fails")]);
        assert!(told.transactions[..2].iter().all(|of| of.operation == Some(0)));
        assert_eq!(told.transactions[1].calls[0].rows[0].writer, Some(first.0));
        assert_eq!(told.events[0].machine.as_deref(), Some("log-1"));
    }
}
