//! Every judge of the cluster is shown a sound history and a broken one, and must tell them apart.

use super::{Evidence, Replica, Truth, convergent, durable, live, real_time, serializable};
use crate::runner::Operation;
use bytes::Bytes;
use shaketable_layers::tx::{Error, Isolation, KeySelector, KeyValue};
use shaketable_sim::{
    history::{Attempt, AttemptId, Call, ClientId, History, Told},
    net::NodeId,
    proto::{KeyRange, LogEntry, LoggedTransaction, Mutation, Version},
};
use std::sync::Arc;

/// A history under construction: one log, one generation.
#[derive(Default)]
struct Story {
    history: History,
    last: Version,
}

impl Story {
    fn attempt(&mut self, read_version: Version, calls: Vec<Call>) -> (AttemptId, &mut Attempt) {
        let id = self.history.reserve();
        let attempt = Attempt {
            client: ClientId(0),
            operation: Some(id.0),
            asked: 0,
            read_version: Some(read_version),
            fresh: true,
            read_your_writes: true,
            snapshot_read_your_writes: true,
            calls,
            commit_sent: None,
            settles: true,
            read_ranges: Vec::new(),
            write_ranges: None,
            told: Told::Nothing,
            ended: 0,
        };
        self.history.record(id, attempt);
        (id, self.history.attempts[id.0 as usize].as_mut().expect("just recorded"))
    }

    fn log(&mut self, version: Version, transactions: Vec<(Option<AttemptId>, u16, Vec<Mutation>)>) {
        let transactions = transactions
            .into_iter()
            .map(|(attempt, batch_index, mutations)| LoggedTransaction { attempt, batch_index, mutations })
            .collect();
        let entry = LogEntry { previous: self.last, version, known_committed: self.last, transactions };
        self.last = version;
        self.history.log_durable(1, NodeId(1), &Arc::new(entry), 0);
    }

    fn judge(
        &self,
        judge: fn(&Evidence<'_>) -> Result<(), String>,
        replicas: &[Replica],
    ) -> Result<(), String> {
        let truth = Truth::of(&self.history);
        judge(&Evidence { history: &self.history, truth: &truth, replicas })
    }
}

fn set(key: &'static str, value: &'static str) -> Mutation {
    Mutation::Set(key.into(), value.into())
}

fn get(key: &'static str, answer: Option<&'static str>) -> Call {
    Call::Get { key: key.into(), isolation: Isolation::Serializable, answer: Some(answer.map(Bytes::from)) }
}

fn range(rows: &[(&'static str, &'static str)], more: bool) -> Call {
    Call::GetRange {
        begin: KeySelector::first_greater_or_equal(""),
        end: KeySelector::first_greater_or_equal("\u{7f}"),
        limit: 0,
        reverse: false,
        isolation: Isolation::Serializable,
        answer: Some((rows.iter().map(|(k, v)| KeyValue::new(*k, *v)).collect(), more)),
    }
}

#[test]
fn serializable_hears_a_wrong_value_at_the_read_version() {
    let tell = |answer| {
        let mut story = Story::default();
        story.log(10, vec![(None, 0, vec![set("a", "1")])]);
        story.log(20, vec![(None, 0, vec![set("a", "2")])]);
        story.attempt(10, vec![get("a", Some(answer))]);
        story.judge(serializable::JUDGE.judge, &[])
    };
    assert_eq!(tell("1"), Ok(()));
    assert!(tell("2").unwrap_err().contains("the state holds \"1\""));
}

#[test]
fn serializable_hears_a_read_that_no_longer_held_at_the_commit() {
    let tell = |call| {
        let mut story = Story::default();
        story.log(10, vec![(None, 0, vec![set("a", "1")])]);
        let (id, _) = story.attempt(10, vec![call, Call::Write(set("b", "x"))]);
        story.log(20, vec![(None, 0, vec![set("a", "2")]), (Some(id), 1, vec![set("b", "x")])]);
        story.judge(serializable::JUDGE.judge, &[])
    };
    assert!(tell(get("a", Some("1"))).unwrap_err().contains("committed at version 20"));
    assert_eq!(tell(get("b", None)), Ok(()));
}

#[test]
fn serializable_passes_over_what_was_written_without_a_conflict_range() {
    let tell = |guarded: bool| {
        let mut story = Story::default();
        story.log(10, vec![(None, 0, vec![set("a", "1")])]);
        let (writer, attempt) = story.attempt(10, vec![Call::Write(set("a", "2"))]);
        if !guarded {
            attempt.write_ranges = Some(Vec::new());
        }
        let (reader, _) = story.attempt(10, vec![get("a", Some("1")), Call::Write(set("b", "x"))]);
        let written = vec![(Some(writer), 0, vec![set("a", "2")]), (Some(reader), 1, vec![set("b", "x")])];
        story.log(20, written);
        story.judge(serializable::JUDGE.judge, &[])
    };
    assert!(tell(true).unwrap_err().contains("committed at version 20"));
    assert_eq!(tell(false), Ok(()));
}

#[test]
fn serializable_hears_a_range_that_loses_an_own_write_and_one_that_ends_early() {
    let tell = |rows: &[(&'static str, &'static str)], more| {
        let mut story = Story::default();
        story.log(10, vec![(None, 0, vec![set("a", "1")])]);
        story.attempt(10, vec![Call::Write(set("b", "2")), range(rows, more)]);
        story.judge(serializable::JUDGE.judge, &[])
    };
    assert_eq!(tell(&[("a", "1"), ("b", "2")], false), Ok(()));
    assert_eq!(tell(&[("a", "1")], true), Ok(()));
    assert!(tell(&[("a", "1")], false).unwrap_err().contains("missed \"b\""));
    assert!(tell(&[("b", "2")], false).unwrap_err().contains("where the state has"));
}

#[test]
fn real_time_hears_a_stale_read_version() {
    let tell = |asked, read_version| {
        let mut story = Story::default();
        let (id, first) = story.attempt(0, Vec::new());
        (first.told, first.ended) = (Told::Committed { version: 20, batch_index: 0 }, 100);
        story.log(20, vec![(Some(id), 0, vec![set("a", "1")])]);
        let (_, second) = story.attempt(read_version, Vec::new());
        second.asked = asked;
        story.judge(real_time::JUDGE.judge, &[])
    };
    assert_eq!(tell(101, 20), Ok(()));
    assert_eq!(tell(99, 10), Ok(()));
    assert!(tell(101, 19).unwrap_err().contains("got 19"));
}

#[test]
fn real_time_hears_a_commit_that_lands_after_its_unknown_result() {
    let mut story = Story::default();
    let (id, first) = story.attempt(0, Vec::new());
    (first.told, first.ended) = (Told::Failed(Error::COMMIT_UNKNOWN_RESULT), 100);
    story.log(30, vec![(Some(id), 0, vec![set("a", "1")])]);
    let (_, second) = story.attempt(20, Vec::new());
    second.asked = 200;
    assert!(story.judge(real_time::JUDGE.judge, &[]).is_err());
}

#[test]
fn durable_hears_a_lost_commit_a_wrong_stamp_and_a_repeated_one() {
    let tell = |logged: bool, order: u16, other: u16| {
        let mut story = Story::default();
        let (id, attempt) = story.attempt(0, Vec::new());
        attempt.told = Told::Committed { version: 10, batch_index: order };
        let mut transactions = vec![(None, other, vec![set("b", "1")])];
        transactions.extend(logged.then(|| (Some(id), 1, vec![set("a", "1")])));
        story.log(10, transactions);
        story.judge(durable::JUDGE.judge, &[])
    };
    assert_eq!(tell(true, 1, 0), Ok(()));
    assert!(tell(false, 1, 0).unwrap_err().contains("does not have it"));
    assert!(tell(true, 2, 0).unwrap_err().contains("order 1"));
    assert!(tell(true, 1, 1).unwrap_err().contains("two transactions"));
}

#[test]
fn durable_hears_a_commit_cut_off_by_a_recovery_and_a_replica_that_is_not_the_replay() {
    let mut story = Story::default();
    let (id, attempt) = story.attempt(0, Vec::new());
    attempt.told = Told::Committed { version: 10, batch_index: 0 };
    story.log(10, vec![(Some(id), 0, vec![set("a", "1")])]);
    let replica = |rows: &[(&'static str, &'static str)]| Replica {
        server: "storage-0".to_owned(),
        range: KeyRange::new("", "\u{7f}"),
        rows: rows.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
    };
    assert_eq!(story.judge(durable::JUDGE.judge, &[replica(&[("a", "1")])]), Ok(()));
    assert!(story.judge(durable::JUDGE.judge, &[replica(&[])]).unwrap_err().contains("nothing"));
    assert!(story.judge(durable::JUDGE.judge, &[replica(&[("a", "2")])]).is_err());
    story.history.ended.insert(1, 9);
    assert!(story.judge(durable::JUDGE.judge, &[]).unwrap_err().contains("does not have it"));
}

#[test]
fn convergent_hears_two_replicas_that_disagree() {
    let replica = |rows: &[(&'static str, &'static str)]| Replica {
        server: "storage".to_owned(),
        range: KeyRange::new("", "\u{7f}"),
        rows: rows.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
    };
    let tell = |a: &[_], b: &[_]| Story::default().judge(convergent::JUDGE.judge, &[replica(a), replica(b)]);
    assert_eq!(tell(&[("a", "1")], &[("a", "1")]), Ok(()));
    assert!(tell(&[("a", "1")], &[("a", "2")]).unwrap_err().contains("\"a\""));
    assert!(tell(&[("a", "1")], &[("a", "1"), ("b", "1")]).unwrap_err().contains("\"b\""));
}

#[test]
fn live_names_who_waits_for_what() {
    let pending: Vec<Operation<()>> = vec![Operation { called: 1_000_000_000, returned: 0, outcome: None }];
    let said = live::judge(&[pending], &[3], 3_000_000_000).unwrap_err();
    assert_eq!(said, "client 0 waits for its operation 0 since 2.000 s");
    assert!(live::judge(&[Vec::<Operation<()>>::new()], &[1], 0).unwrap_err().contains("open its session"));
    assert_eq!(live::judge(&[Vec::<Operation<()>>::new()], &[0], 0), Ok(()));
}
