//! Tests of the witnesses of the judges of the cluster: each names exactly what contradicts the claim.

use super::{Story, between, get, get_key, range, rows, set, witness};
use crate::{
    describe::erased::AnyValue,
    describe::workload::Operation,
    judge::finding::Witness,
    judge::{Replica, Truth, convergent, durable, live, real_time, serializable},
};
use bytes::Bytes;
use shaketable_sim::{
    history::{Call, Reported},
    ids::NodeId,
    proto::{KeyRange, LogEntry, LoggedTransaction, Mutation},
};
use shaketable_tx::{Isolation, KeySelector};
use std::sync::Arc;

/// Attempts 0 and 1 set `a` at versions 10 and 20, attempt 2 sets `b` at version 15, and attempt 3 does these
/// calls at version
/// 20. If `committed` is set, attempt 4 clears `a` at version 30 in the transaction before attempt 3.
fn read(committed: bool, calls: Vec<Call>) -> Witness {
    let mut story = Story::default();
    let [first, second, other] = [0, 1, 2].map(|_| story.attempt(0, Vec::new()).0);
    let (reader, _) = story.attempt(20, calls);
    let (last, _) = story.attempt(0, Vec::new());
    story.log(10, vec![(Some(first), 0, vec![set("a", "1")])]);
    story.log(15, vec![(Some(other), 0, vec![set("b", "1")])]);
    story.log(20, vec![(Some(second), 0, vec![set("a", "2")])]);
    if committed {
        let clear = vec![Mutation::ClearRange(KeyRange::new("a", "b"))];
        story.log(30, vec![(Some(last), 0, clear), (Some(reader), 1, Vec::new())]);
    }
    story.witness(serializable::judge, &[])
}

#[test]
fn a_wrong_read_names_its_attempt_the_key_and_who_wrote_what_it_should_have_seen() {
    let sides = Some(("\"2\"", "\"1\""));
    assert_eq!(read(false, vec![get("a", Some("1"))]), witness(&[1, 3], &["a"], sides));
    let sides = Some(("nothing", "\"2\""));
    assert_eq!(read(true, vec![get("a", Some("2"))]), witness(&[3, 4], &["a"], sides));
    // Nobody wrote this key.
    let sides = Some(("nothing", "\"7\""));
    assert_eq!(read(false, vec![get("c", Some("7"))]), witness(&[3], &["c"], sides));
    // The attempt itself wrote it.
    let own = vec![Call::Write(set("a", "own")), get("a", Some("2"))];
    assert_eq!(read(false, own), witness(&[3], &["a"], Some(("\"own\"", "\"2\""))));
    let after = get_key(KeySelector::first_greater_than("a"), "c");
    assert_eq!(read(false, vec![after]), witness(&[2, 3], &["b", "c"], Some(("\"b\"", "\"c\""))));
}

#[test]
fn a_wrong_range_names_the_keys_at_which_it_differs() {
    let missed = range(&[("a", "2")], false);
    let sides = Some(("\"b\" = \"1\"", "no further row"));
    assert_eq!(read(false, vec![missed]), witness(&[2, 3], &["b"], sides));
    let skipped = range(&[("b", "1")], false);
    let sides = Some(("\"a\" = \"2\"", "\"b\" = \"1\""));
    assert_eq!(read(false, vec![skipped]), witness(&[1, 2, 3], &["a", "b"], sides));
    let beyond = rows(between("b", "z"), (0, false), (&["b", "c"], false));
    let sides = Some(("no further row", "\"c\" = \"1\""));
    assert_eq!(read(false, vec![beyond]), witness(&[3], &["c"], sides));
    let more = Call::GetRange {
        begin: KeySelector::first_greater_or_equal("a"),
        end: KeySelector::first_greater_or_equal("z"),
        limit: 1,
        reverse: false,
        isolation: Isolation::Serializable,
        answer: match range(&[("a", "2"), ("b", "1")], true) {
            Call::GetRange { answer, .. } => answer,
            _ => None,
        },
    };
    assert_eq!(read(false, vec![more]), witness(&[2, 3], &["b"], Some(("at most 1 rows", "2 rows"))));
}

#[test]
fn a_stale_read_version_names_both_attempts() {
    let mut story = Story::default();
    let (id, first) = story.attempt(0, Vec::new());
    (first.reported, first.ended) = (Reported::Committed { version: 20, batch_index: 0 }, 100);
    story.log(20, vec![(Some(id), 0, vec![set("a", "1")])]);
    story.attempt(20, Vec::new());
    story.attempt(19, Vec::new()).1.version_requested = 101;
    let sides = Some(("a read version of at least 20", "read version 19"));
    assert_eq!(story.witness(real_time::judge, &[]), witness(&[0, 2], &[], sides));
}

fn replica(server: &str, rows: &[(&'static str, &'static str)]) -> Replica {
    Replica {
        server: server.to_owned(),
        range: KeyRange::new("", "\u{7f}"),
        rows: rows.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
    }
}

#[test]
fn a_lost_commit_names_its_attempt_and_what_it_wrote() {
    let durable = |logged: Option<u16>| {
        let mut story = Story::default();
        let record = Bytes::from(foundationdb_tuple::pack(&("sessions", 7)));
        let record = Mutation::Set(record, "answer".into());
        let writes = [set("b", "1"), record, set("a", "1")].map(Call::Write);
        story.attempt(0, vec![get("c", None)]);
        let (id, attempt) = story.attempt(0, writes.to_vec());
        attempt.reported = Reported::Committed { version: 10, batch_index: 1 };
        story.log(10, logged.map(|order| (Some(id), order, vec![set("a", "1")])).into_iter().collect());
        story.witness(durable::judge, &[])
    };
    let reported = "version 10, order 1";
    assert_eq!(durable(None), witness(&[1], &["a", "b"], Some((reported, "not in the log"))));
    assert_eq!(durable(Some(2)), witness(&[1], &["a", "b"], Some((reported, "version 10, order 2"))));
}

#[test]
fn a_wrong_log_names_the_attempts_in_it() {
    let story = |places: [(i64, u16); 2], same: bool| {
        let mut story = Story::default();
        let ids = [0, 1, 2].map(|_| story.attempt(0, Vec::new()).0);
        let second = if same { ids[0] } else { ids[1] };
        let first = (Some(ids[0]), places[0].1, vec![set("a", "1"), set("b", "1")]);
        let second = (Some(second), places[1].1, vec![set("a", "1")]);
        match places[0].0 == places[1].0 {
            true => story.log(10, vec![first, second]),
            false => {
                story.log(places[0].0, vec![first]);
                story.log(places[1].0, vec![second]);
            }
        }
        story
    };
    let twice = story([(10, 0), (20, 0)], true);
    assert_eq!(twice.witness(durable::judge, &[]), witness(&[0], &["a", "b"], None));
    let same_stamp = story([(10, 0), (10, 0)], false);
    assert_eq!(same_stamp.witness(durable::judge, &[]), witness(&[0, 1], &[], None));
    let mut disagrees = story([(10, 0), (20, 0)], false);
    let transactions = vec![LoggedTransaction { attempt: None, batch_index: 0, mutations: Vec::new() }];
    let entry = LogEntry { previous: 10, version: 20, known_committed: 10, transactions };
    disagrees.history.log_durable(1, NodeId(2), &Arc::new(entry), 0);
    assert_eq!(disagrees.witness(durable::judge, &[]), witness(&[1], &[], None));
}

#[test]
fn a_replica_that_differs_names_the_key_and_both_values() {
    let mut story = Story::default();
    let [first, second] = [0, 1].map(|_| story.attempt(0, Vec::new()).0);
    story.log(10, vec![(Some(first), 0, vec![set("a", "1"), set("b", "1")])]);
    story.log(20, vec![(Some(second), 0, vec![set("b", "2")])]);
    let durable = |rows: &[_]| story.witness(durable::judge, &[replica("storage-0", rows)]);
    let sides = Some(("\"b\" = \"2\"", "\"b\" = \"1\""));
    assert_eq!(durable(&[("a", "1"), ("b", "1")]), witness(&[1], &["b"], sides));
    let sides = Some(("\"a\" = \"1\"", "\"b\" = \"2\""));
    assert_eq!(durable(&[("b", "2")]), witness(&[0], &["a"], sides));
    let convergent = |one: &[_], other: &[_]| {
        story.witness(convergent::judge, &[replica("storage-0", one), replica("storage-1", other)])
    };
    let sides = Some(("storage-0 has \"1\"", "storage-1 has \"2\""));
    assert_eq!(convergent(&[("a", "1")], &[("a", "2")]), witness(&[], &["a"], sides));
    let sides = Some(("storage-0 has nothing", "storage-1 has \"1\""));
    assert_eq!(convergent(&[("a", "1")], &[("a", "1"), ("b", "1")]), witness(&[], &["b"], sides));
}

#[test]
fn an_operation_that_waits_is_named_with_who_should_have_woken_it() {
    let pending = || Operation { called: 0, returned: 0, outcome: None };
    let planned = || vec![AnyValue::new(())];
    let operations = [vec![], vec![pending()], vec![pending()]];
    let waits = live::judge(&operations, &[vec![], planned(), planned()], &[1, 2].into(), 1).unwrap_err();
    assert_eq!(waits.witness.operations, [(1, 0), (2, 0)]);
    let mut story = Story::default();
    let mut attempt = |client: u16, version, calls| {
        let (id, attempt) = story.attempt(version, calls);
        (attempt.client.0, attempt.operation) = (client, Some(0));
        id
    };
    // Client 1 waits for a change of `a`, and client 2 for one of `z`, which it only changed itself.
    attempt(1, 5, vec![get("x", None)]);
    attempt(1, 10, vec![get("a", None)]);
    let own = attempt(2, 10, vec![get("z", None)]);
    let [earlier, waker, later] = [(); 3].map(|()| attempt(0, 0, Vec::new()));
    story.log(10, vec![(Some(earlier), 0, vec![set("a", "1")])]);
    story.log(20, vec![(Some(own), 0, vec![set("x", "1"), set("z", "1")])]);
    story.log(30, vec![(Some(waker), 0, vec![set("a", "2"), set("b", "1")])]);
    story.log(40, vec![(Some(later), 0, vec![set("a", "3")])]);
    let found = live::with_wakers(waits.witness, &story.history, &Truth::of(&story.history));
    let woken = Witness { operations: vec![(1, 0), (2, 0)], ..witness(&[waker.0], &["a"], None) };
    assert_eq!(found, woken);
}
