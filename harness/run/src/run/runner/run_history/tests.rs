//! What a run of two clients becomes.

use super::*;
use crate::{
    judge::finding::{Kind as Accuser, Witness},
    judge::story::Story,
    run::runner::testbed::SETTER,
};
use bytes::Bytes;
use shaketable_reports::{Access, CallEntry, EventKind, Fate};
use shaketable_sim::{
    faults::Family,
    history::{Aside, Call, Reported},
    ids::{AttemptId, ClientId},
    proto::{KeyRange, Mutation},
    trace::Kind,
};
use shaketable_tx::{
    ConflictRangeType, Error, Isolation, KeySelector, KeyValue, MutationType, TransactionOption,
};

/// A layer that names one key.
struct Named;

impl Words for Named {
    fn key(&self, key: &[u8]) -> Option<String> {
        (key == b"a").then(|| "the counter".to_owned())
    }
    fn value(&self, key: &[u8], value: &[u8]) -> Option<String> {
        (key == b"a").then(|| format!("count {}", value.escape_ascii()))
    }
}

fn get(key: &'static str, answer: Option<&'static str>) -> Call {
    Call::Get { key: key.into(), isolation: Isolation::Serializable, answer: Some(answer.map(Bytes::from)) }
}

fn range(begin: &'static str, end: &'static str, rows: &[(&'static str, &'static str)]) -> Call {
    let rows = rows.iter().map(|(key, value)| KeyValue { key: (*key).into(), value: (*value).into() });
    Call::GetRange {
        begin: KeySelector::first_greater_or_equal(begin),
        end: KeySelector::first_greater_or_equal(end),
        limit: 0,
        reverse: false,
        isolation: Isolation::Snapshot,
        answer: Some((rows.collect(), false)),
    }
}

fn set(key: &'static str, value: &'static str) -> Call {
    Call::Write(Mutation::Set(key.into(), value.into()))
}

/// The setup writes a and b; one attempt adds to a and has an unknown result; another one reads, and
/// clears b.
fn history() -> RunHistory {
    let mut story = Story::default();
    let writes = |pairs: &[(&'static str, &'static str)]| -> Vec<Mutation> {
        pairs.iter().map(|(key, value)| Mutation::Set((*key).into(), (*value).into())).collect()
    };
    let (setup, attempt) = story.attempt(0, vec![set("a", "1"), set("b", "1")]);
    (attempt.client, attempt.operation) = (SETTER, None);
    attempt.reported = Reported::Committed { version: 1, batch_index: 0 };
    let (first, attempt) = story.attempt(1, vec![get("a", Some("1")), set("a", "2"), get("a", Some("2"))]);
    attempt.reported = Reported::Failed(Error::COMMIT_UNKNOWN_RESULT);
    attempt.commit_sent = Some(5);
    let cleared = Mutation::ClearRange(KeyRange::new("b", "b\0"));
    let calls = vec![range("a", "c", &[("a", "2"), ("b", "1")]), Call::Write(cleared.clone())];
    let (second, attempt) = story.attempt(2, calls);
    (attempt.client, attempt.operation) = (ClientId(1), Some(0));
    attempt.reported = Reported::Committed { version: 3, batch_index: 0 };
    let (_, attempt) = story.attempt(3, vec![get("b", None), range("b", "c", &[])]);
    attempt.asides = vec![(2, Aside::Watch("a".into()))];
    attempt.reported = Reported::ReadOnly;
    let (_, attempt) = story.attempt(0, Vec::new());
    attempt.client = CHECKER;
    story.log(1, vec![(Some(setup), 0, writes(&[("a", "1"), ("b", "1")]))]);
    story.log(2, vec![(Some(first), 0, writes(&[("a", "2")]))]);
    story.log(3, vec![(Some(second), 0, vec![cleared])]);
    let event = |at, node, kind, a| Event { at, node: NodeId(node), kind, a, b: 0 };
    let events = [
        event(3, 2, Kind::Fault, Family::ALL[0] as u64),
        event(4, 7, Kind::Kill, 0),
        event(6, 0, Kind::RecoveryBegin, 2),
        event(8, 0, Kind::RecoveryBegin, 3),
        event(9, 7, Kind::Start, 1),
        event(10, 0, Kind::RecoveryEnd, 3),
        event(11, 7, Kind::Pause, 0),
    ];
    let machine = |node: NodeId| if node == NodeId(2) { "client-1".to_owned() } else { "log-1".to_owned() };
    let recorded = Recorded { history: &story.history, events: &events, ended: 20, machine: &machine };
    of_entries(Vec::new(), &Named, &recorded)
}

#[test]
fn reads_name_their_writers() {
    let told = history();
    assert_eq!(told.transactions.len(), 4, "the checker is no part of it");
    let writers = |id: usize| -> Vec<(String, Option<String>, Option<u32>)> {
        let rows = told.transactions[id].calls.iter().flat_map(|call| &call.rows);
        rows.map(|row| (row.key.clone(), row.value.clone(), row.writer)).collect()
    };
    let counter = |count: &str, writer| ("the counter".to_owned(), Some(format!("count {count}")), writer);
    assert_eq!(writers(1), [counter("1", Some(0)), counter("2", None), counter("2", Some(1))]);
    let b = |value: Option<&str>, writer| ("\"b\"".to_owned(), value.map(str::to_owned), writer);
    assert_eq!(writers(2), [counter("2", Some(1)), b(Some("\"1\""), Some(0))]);
    assert_eq!(writers(3), [b(None, Some(2))], "who cleared it");
}

#[test]
fn calls_say_their_limits_and_leave_out_the_offsets_of_versionstamps() {
    let mut story = Story::default();
    let Call::GetRange { begin, end, isolation, answer, .. } = range("a", "c", &[]) else { unreachable!() };
    let atomic = |key: &'static [u8], operand: &'static [u8], op| {
        Call::Write(Mutation::Atomic(Bytes::from_static(key), Bytes::from_static(operand), op))
    };
    story.attempt(
        1,
        vec![
            range("a", "c", &[]),
            Call::GetRange { begin, end, limit: 2, reverse: true, isolation, answer },
            atomic(b"key\x03\0\0\0", b"value", MutationType::SetVersionstampedKey),
            atomic(b"key", b"value\x05\0\0\0", MutationType::SetVersionstampedValue),
            atomic(b"key", b"val", MutationType::SetVersionstampedValue),
            atomic(b"key", b"operand", MutationType::ByteMax),
        ],
    );
    let machine = |_| String::new();
    let recorded = Recorded { history: &story.history, events: &[], ended: 20, machine: &machine };
    let told = of_entries(Vec::new(), &Named, &recorded);
    let calls = told.transactions[0].calls.iter();
    let shown = |call: &CallEntry| {
        let value = call.rows.first().and_then(|row| row.value.clone()).unwrap_or_default();
        format!("{} {value}", call.at)
    };
    assert_eq!(
        calls.map(shown).collect::<Vec<_>>(),
        [
            "\"a\" to \"c\" ",
            "\"a\" to \"c\", at most 2, reverse ",
            "\"key\" \"value\"",
            "\"key\" \"value\"",
            "\"key\" \"val\"",
            "\"key\" \"operand\"",
        ]
    );
}

#[test]
fn what_neither_reads_nor_writes_is_told_where_it_is_called() {
    let mut story = Story::default();
    let (_, attempt) = story.attempt(1, vec![get("a", None), set("b", "1")]);
    let range =
        |kind, begin: &'static str, end: &'static str| Aside::ConflictRange(kind, KeyRange::new(begin, end));
    attempt.asides = vec![
        (0, Aside::Option(TransactionOption::Timeout(500))),
        (0, Aside::ReadVersion(1)),
        (1, range(ConflictRangeType::Read, "a", "a\0")),
        (1, Aside::Watch("a".into())),
        (1, range(ConflictRangeType::Read, "b", "d")),
        (1, Aside::Option(TransactionOption::NextWriteNoWriteConflictRange)),
        (2, range(ConflictRangeType::Write, "a", "c")),
    ];
    story.attempt(2, vec![set("c", "2")]);
    let machine = |_| String::new();
    let recorded = Recorded { history: &story.history, events: &[], ended: 20, machine: &machine };
    let told = of_entries(Vec::new(), &Named, &recorded);
    let calls = told.transactions[0].calls.iter().map(|call| (call.access, call.at.as_str(), call.shared));
    assert_eq!(
        calls.collect::<Vec<_>>(),
        [
            (Access::Option, "timeout", true),
            (Access::ReadVersion, "1", true),
            (Access::Get, "the counter", false),
            (Access::ReadConflict, "the counter", true),
            (Access::Watch, "the counter", true),
            (Access::ReadConflict, "\"b\" to \"d\"", true),
            (Access::Option, "next_write_no_write_conflict_range", true),
            (Access::Set, "\"b\"", false),
            (Access::WriteConflict, "\"a\" to \"c\"", true),
        ]
    );
    let values = told.transactions[0].calls.iter().filter(|call| call.access == Access::Option);
    let values: Vec<_> = values.map(|call| call.rows.first().and_then(|row| row.value.as_deref())).collect();
    assert_eq!(values, [Some("500"), None]);
}

#[test]
fn what_became_of_a_transaction_is_told() {
    let told = history();
    let fates: Vec<_> = told.transactions.iter().map(|tx| (tx.client, tx.fate, tx.version)).collect();
    assert_eq!(
        fates,
        [
            (None, Fate::Committed, Some(1)),
            (Some(0), Fate::UnknownCommitted, Some(2)),
            (Some(1), Fate::Committed, Some(3)),
            (Some(0), Fate::ReadOnly, None),
        ]
    );
    let shared = |id: usize| -> Vec<bool> { told.transactions[id].calls.iter().map(|c| c.shared).collect() };
    assert_eq!(shared(1), [true, true, true]);
    assert_eq!(shared(3), [true; 3], "an empty range whose key another one cleared, and a watch");
    let watch = told.transactions[3].calls.last().map(|call| (call.access, call.at.as_str()));
    assert_eq!(watch, Some((Access::Watch, "the counter")));
}

#[test]
fn conditions_last_until_they_end() {
    let told = history();
    let events: Vec<_> =
        told.events.iter().map(|e| (e.kind, e.at, e.until, e.client, e.machine.as_deref())).collect();
    assert_eq!(
        events,
        [
            (EventKind::Fault, 3, None, Some(1), Some("client-1")),
            (EventKind::Dead, 4, Some(9), None, Some("log-1")),
            (EventKind::Recovery, 6, Some(10), None, None),
            (EventKind::Paused, 11, None, None, Some("log-1")),
        ]
    );
}

#[test]
fn the_witness_is_that_of_the_deciding_finding() {
    let of = |attempts: Vec<AttemptId>| Witness {
        attempts,
        operations: vec![(1, 2)],
        keys: vec!["a".into(), "b".into()],
        ..Witness::default()
    };
    let findings = [
        Finding::new(Accuser::Live, "it waits").with(of(vec![AttemptId(9)])),
        Finding::new(Accuser::Model, "it is wrong").with(of(vec![AttemptId(4)])),
    ];
    let mut told = RunHistory::default();
    explain(&mut told, &findings, &Named);
    let shown = told.witness;
    assert_eq!((&shown.transactions[..], &shown.operations[..]), (&[4][..], &[(1, 2)][..]));
    assert_eq!(shown.keys, ["the counter", "\"b\""]);
}
