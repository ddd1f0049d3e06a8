//! Tests of the judges: each one must accept a sound history and reject a broken one.

mod lies;
mod model;
mod witness;

use super::{
    Evidence, Judgement, Replica, Truth, convergent, durable, live, real_time, serializable, story::Story,
};
use crate::{
    describe::erased::AnyValue,
    describe::workload::Operation,
    describe::workload::Outcome,
    judge::finding::{Finding, Kind, Witness},
};
use bytes::Bytes;
use shaketable_sim::{
    history::{Attempt, Call, OwnWrites, Reported},
    ids::AttemptId,
    judges::Early,
    proto::{KeyRange, Mutation, Version},
};
use shaketable_tx::{Error, Isolation, KeySelector, KeyValue, MutationType};

impl Story {
    fn judgement(&self, judge: fn(&Evidence<'_>) -> Judgement, replicas: &[Replica]) -> Judgement {
        let truth = Truth::of(&self.history);
        let judgement = judge(&Evidence { history: &self.history, truth: &truth, replicas });
        if std::ptr::fn_addr_eq(judge, serializable::judge as fn(&Evidence<'_>) -> Judgement) {
            assert_eq!(self.judged_early(&truth).is_ok(), judgement.is_ok());
        }
        judgement
    }

    /// The judgement of serializability if the history forgets at each version what was judged.
    fn judged_early(&self, truth: &Truth) -> Judgement {
        let (mut early, mut history) = (Early::default(), self.history.clone());
        for entry in &truth.entries {
            early.advance(&mut history, entry.version, Version::MAX, |_| true);
        }
        let read = |attempt: &Attempt| attempt.calls.iter().any(|call| !matches!(call, Call::Write(_)));
        let last = truth.entries.last().map_or(0, |entry| entry.version);
        let left = history.attempts.iter().flatten().filter(|attempt| read(attempt));
        assert!(left.filter_map(|attempt| attempt.read_version).all(|version| version > last));
        early.end(&Evidence { history: &history, truth, replicas: &[] })
    }

    fn judge(&self, judge: fn(&Evidence<'_>) -> Judgement, replicas: &[Replica]) -> Result<(), String> {
        self.judgement(judge, replicas).map_err(|objection| objection.message)
    }

    /// The witness of the finding.
    fn witness(&self, judge: fn(&Evidence<'_>) -> Judgement, replicas: &[Replica]) -> Witness {
        let objection = self.judgement(judge, replicas).expect_err("the story is broken");
        Finding::of(Kind::Serializable, *objection).witness
    }
}

/// A witness of these attempts and keys, and what was expected and found.
fn witness(attempts: &[u32], keys: &[&'static str], texts: Option<(&str, &str)>) -> Witness {
    Witness {
        operations: Vec::new(),
        attempts: attempts.iter().copied().map(AttemptId).collect(),
        keys: keys.iter().copied().map(Bytes::from).collect(),
        expected: texts.map(|(expected, _)| expected.to_owned()),
        found: texts.map(|(_, found)| found.to_owned()),
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
fn serializable_detects_a_wrong_value_at_the_read_version() {
    let verdict = |answer| {
        let mut story = Story::default();
        story.log(10, vec![(None, 0, vec![set("a", "1")])]);
        story.log(20, vec![(None, 0, vec![set("a", "2")])]);
        story.attempt(10, vec![get("a", Some(answer))]);
        story.judge(serializable::judge, &[])
    };
    assert_eq!(verdict("1"), Ok(()));
    assert!(verdict("2").unwrap_err().contains("the state has \"1\""));
}

#[test]
fn serializable_detects_a_read_that_is_no_longer_valid_at_the_commit() {
    let verdict = |call| {
        let mut story = Story::default();
        story.log(10, vec![(None, 0, vec![set("a", "1")])]);
        let (id, _) = story.attempt(10, vec![call, Call::Write(set("b", "x"))]);
        story.log(20, vec![(None, 0, vec![set("a", "2")]), (Some(id), 1, vec![set("b", "x")])]);
        story.judge(serializable::judge, &[])
    };
    assert!(verdict(get("a", Some("1"))).unwrap_err().contains("committed at version 20"));
    assert_eq!(verdict(get("b", None)), Ok(()));
}

#[test]
fn serializable_ignores_reads_of_keys_written_without_a_conflict_range() {
    let verdict = |has_conflict_range: bool| {
        let mut story = Story::default();
        story.log(10, vec![(None, 0, vec![set("a", "1")])]);
        let (writer, attempt) = story.attempt(10, vec![Call::Write(set("a", "2"))]);
        if !has_conflict_range {
            attempt.write_ranges = Some(Vec::new());
        }
        let (reader, _) = story.attempt(10, vec![get("a", Some("1")), Call::Write(set("b", "x"))]);
        let written = vec![(Some(writer), 0, vec![set("a", "2")]), (Some(reader), 1, vec![set("b", "x")])];
        story.log(20, written);
        story.judge(serializable::judge, &[])
    };
    assert!(verdict(true).unwrap_err().contains("committed at version 20"));
    assert_eq!(verdict(false), Ok(()));
}

/// The state at the read version includes a write without a conflict range at that version.
#[test]
fn serializable_checks_keys_written_without_a_conflict_range_before_the_read() {
    let verdict = |read_version| {
        let mut story = Story::default();
        let (silent, attempt) = story.attempt(0, vec![Call::Write(set("a", "1"))]);
        attempt.write_ranges = Some(Vec::new());
        let (reader, _) = story.attempt(read_version, vec![get("a", Some("1"))]);
        story.log(10, vec![(None, 0, vec![set("a", "1")])]);
        story.log(20, vec![(Some(silent), 0, vec![set("a", "1")])]);
        story.log(30, vec![(None, 0, vec![set("a", "2")])]);
        story.log(40, vec![(Some(reader), 0, Vec::new())]);
        story.judge(serializable::judge, &[])
    };
    assert_eq!(verdict(19), Ok(()));
    assert!(verdict(20).unwrap_err().contains("committed at version 40"));
}

/// Only a range between two plain selectors is known not to touch the keys outside of it.
#[test]
fn serializable_ignores_selectors_that_may_have_passed_a_key_written_without_a_conflict_range() {
    let verdict = |(begin, end): (KeySelector, KeySelector)| {
        let mut story = Story::default();
        story.log(10, vec![(None, 0, vec![set("a", "1"), set("b", "1"), set("c", "1"), set("d", "1")])]);
        let (silent, attempt) = story.attempt(10, vec![Call::Write(set("c", "2"))]);
        attempt.write_ranges = Some(Vec::new());
        let read = rows((begin, end), (0, false), (&["b"], false));
        let (reader, _) = story.attempt(10, vec![read]);
        story.log(20, vec![(Some(silent), 0, vec![Mutation::ClearRange(KeyRange::new("c", "d"))])]);
        story.log(30, vec![(None, 0, vec![set("b", "2")])]);
        story.log(40, vec![(Some(reader), 0, Vec::new())]);
        story.judge(serializable::judge, &[])
    };
    let selector = |key, offset| KeySelector::new(key, false, offset);
    assert!(verdict(between("b", "c")).unwrap_err().contains("committed at version 40"));
    assert_eq!(verdict((selector("b", 1), selector("b", 2))), Ok(()));
    assert_eq!(verdict((selector("a", 2), selector("c", 1))), Ok(()));
    assert_eq!(verdict((selector("a", 2), selector("b", 2))), Ok(()));
}

#[test]
fn serializable_detects_a_range_that_misses_an_own_write_or_ends_early() {
    let verdict = |rows: &[(&'static str, &'static str)], more| {
        let mut story = Story::default();
        story.log(10, vec![(None, 0, vec![set("a", "1")])]);
        story.attempt(10, vec![Call::Write(set("b", "2")), range(rows, more)]);
        story.judge(serializable::judge, &[])
    };
    assert_eq!(verdict(&[("a", "1"), ("b", "2")], false), Ok(()));
    assert_eq!(verdict(&[("a", "1")], true), Ok(()));
    assert!(verdict(&[("a", "1")], false).unwrap_err().contains("missed \"b\""));
    assert!(verdict(&[("b", "2")], false).unwrap_err().contains("the state has"));
}

/// The verdict on one attempt with these calls. It reads at version 20, where `a`, `b` and `c` are "1", and
/// possibly commits at version 40, after `a` became "2" at version 30.
fn serializable(
    committed: bool,
    calls: Vec<Call>,
    options: impl Fn(&mut Attempt, &mut Attempt),
) -> Result<(), String> {
    let mut story = Story::default();
    story.log(10, vec![(None, 0, vec![set("a", "1"), set("b", "1"), set("c", "1")])]);
    story.log(20, vec![]);
    let (other, _) = story.attempt(20, vec![Call::Write(set("a", "2"))]);
    let (id, _) = story.attempt(20, calls);
    let [writer, attempt] = &mut story.history.attempts[..] else { panic!("two attempts") };
    options(writer.as_mut().expect("recorded"), attempt.as_mut().expect("recorded"));
    story.log(30, vec![(Some(other), 0, vec![set("a", "2")])]);
    if committed {
        story.log(40, vec![(Some(id), 0, vec![])]);
    }
    story.judge(serializable::judge, &[])
}

/// [`serializable`] for an attempt without options.
fn plain(committed: bool, calls: Vec<Call>) -> Result<(), String> {
    serializable(committed, calls, |_, _| {})
}

fn at_snapshot(call: Call) -> Call {
    match call {
        Call::Get { key, answer, .. } => Call::Get { key, isolation: Isolation::Snapshot, answer },
        other => other,
    }
}

fn get_key(selector: KeySelector, answer: &'static str) -> Call {
    Call::GetKey { selector, isolation: Isolation::Serializable, answer: Some(answer.into()) }
}

fn rows(
    (begin, end): (KeySelector, KeySelector),
    (limit, reverse): (usize, bool),
    (found, more): (&[&'static str], bool),
) -> Call {
    let found = found.iter().map(|key| KeyValue::new(*key, "1")).collect();
    let isolation = Isolation::Serializable;
    Call::GetRange { begin, end, limit, reverse, isolation, answer: Some((found, more)) }
}

fn between(begin: &'static str, end: &'static str) -> (KeySelector, KeySelector) {
    (KeySelector::first_greater_or_equal(begin), KeySelector::first_greater_or_equal(end))
}

#[test]
fn serializable_checks_a_snapshot_read_only_at_its_read_version() {
    assert_eq!(plain(true, vec![at_snapshot(get("a", Some("1")))]), Ok(()));
    assert!(plain(true, vec![get("a", Some("1"))]).unwrap_err().contains("committed at version 40"));
    for committed in [false, true] {
        let why = plain(committed, vec![at_snapshot(get("a", Some("2")))]).unwrap_err();
        assert!(why.contains("attempt 1 (client 0, operation 1) read at version 20"), "{why}");
    }
}

#[test]
fn serializable_distinguishes_reads_that_see_own_writes() {
    let written = |read: Call| vec![Call::Write(set("b", "own")), read, get("c", Some("1"))];
    let own = |call: fn(Call) -> Call, read: bool, snapshot: bool, answer| {
        serializable(false, written(call(get("b", Some(answer)))), |_, attempt| {
            attempt.own_writes.note(0, OwnWrites { read, snapshot_read: snapshot, unreadable: false });
        })
    };
    let serializably: fn(Call) -> Call = |call| call;
    let at_snapshot: fn(Call) -> Call = at_snapshot;
    for (call, read, snapshot, sees) in [
        (serializably, true, true, true),
        (serializably, true, false, true),
        (serializably, false, true, false),
        (at_snapshot, true, true, true),
        (at_snapshot, true, false, false),
        (at_snapshot, false, true, false),
    ] {
        assert_eq!(own(call, read, snapshot, "own").is_ok(), sees);
        assert_eq!(own(call, read, snapshot, "1").is_ok(), !sees);
    }
    // Own writes that one read must not see are visible to the next read.
    let calls = vec![
        Call::Write(set("b", "own")),
        at_snapshot(get("b", Some("1"))),
        get("b", Some("own")),
        at_snapshot(get("b", Some("1"))),
    ];
    let blind = OwnWrites { snapshot_read: false, ..OwnWrites::default() };
    let without = |_: &mut Attempt, attempt: &mut Attempt| attempt.own_writes.note(0, blind);
    assert_eq!(serializable(false, calls, without), Ok(()));
    // The options may change between two reads.
    let calls = vec![
        Call::Write(set("b", "own")),
        at_snapshot(get("b", Some("1"))),
        at_snapshot(get("b", Some("own"))),
    ];
    let from = |call: usize| {
        serializable(false, calls.clone(), |_, attempt| {
            attempt.own_writes.note(0, blind);
            attempt.own_writes.note(call, OwnWrites::default());
        })
    };
    assert_eq!([1, 2, 3].map(|call| from(call).is_ok()), [false, true, false]);
}

#[test]
fn serializable_skips_reads_of_versionstamps_that_are_not_known() {
    let stamped =
        |key: &str, kind| Mutation::Atomic(Bytes::copy_from_slice(key.as_bytes()), Bytes::new(), kind);
    let judged = |kind, read: Call, unreadable| {
        let calls = vec![Call::Write(stamped("b", kind)), read];
        serializable(false, calls, |_, attempt| {
            attempt.own_writes.note(0, OwnWrites { unreadable, ..OwnWrites::default() });
        })
    };
    let (value, key) = (MutationType::SetVersionstampedValue, MutationType::SetVersionstampedKey);
    for (kind, read, skipped) in [
        (value, get("b", Some("operand")), true),
        (value, get("c", Some("operand")), false),
        (key, get("c", Some("operand")), true),
        (MutationType::Max, get("b", Some("operand")), false),
    ] {
        assert_eq!(judged(kind, read.clone(), true).is_ok(), skipped, "{kind:?} {read:?}");
        assert!(judged(kind, read, false).is_err());
    }
}

#[test]
fn serializable_detects_wrong_keys_and_ranges() {
    let first = || KeySelector::first_greater_than("a");
    assert_eq!(plain(false, vec![get_key(first(), "b")]), Ok(()));
    let why = plain(false, vec![get_key(first(), "c")]).unwrap_err();
    assert!(why.contains("returned \"c\", but the state resolves it to \"b\""), "{why}");
    let all = || between("a", "d");
    for (limits, answer, sound) in [
        ((0, false), (&["a", "b", "c"][..], false), true),
        ((0, true), (&["c", "b", "a"][..], false), true),
        ((0, false), (&["c", "b", "a"][..], false), false),
        ((0, false), (&["a", "b"][..], true), true),
        ((0, false), (&["a", "b"][..], false), false),
        ((2, false), (&["a", "b"][..], false), true),
        ((3, false), (&["a", "b"][..], false), false),
        ((1, false), (&["a", "b"][..], true), false),
        ((1, true), (&["c"][..], true), true),
        ((0, false), (&["a", "b", "c", "d"][..], false), false),
    ] {
        let judged = plain(false, vec![rows(all(), limits, answer)]);
        assert_eq!(judged.is_ok(), sound, "{limits:?} {answer:?}: {judged:?}");
    }
    let why = plain(false, vec![rows(all(), (1, false), (&["a", "b"], true))]).unwrap_err();
    assert!(why.contains("a range with limit 1 returned 2 rows"), "{why}");
    let why = plain(false, vec![rows(all(), (0, false), (&["a", "b", "c", "d"], false))]).unwrap_err();
    assert!(why.contains("no further row"), "{why}");
}

#[test]
fn serializable_does_not_check_system_keys() {
    let system = |key: &'static [u8], answer| Call::Get {
        key: Bytes::from_static(key),
        isolation: Isolation::Serializable,
        answer: Some(answer),
    };
    let value = Some(Bytes::from("?"));
    assert_eq!(plain(false, vec![system(b"\xff/x", value.clone())]), Ok(()));
    assert_eq!(plain(false, vec![system(b"\xff\xff/x", value.clone())]), Ok(()));
    assert!(plain(false, vec![system(b"\xff", value.clone())]).is_err());
    assert!(plain(false, vec![system(b"ab", value)]).is_err());
    let beyond = || KeySelector::first_greater_or_equal(Bytes::from_static(b"\xff/x"));
    assert_eq!(plain(false, vec![get_key(beyond(), "?")]), Ok(()));
    let to_system = (KeySelector::first_greater_or_equal("b"), beyond());
    assert_eq!(plain(false, vec![rows(to_system, (0, false), (&[], false))]), Ok(()));
    let from_system = (beyond(), KeySelector::first_greater_or_equal("b"));
    assert_eq!(plain(false, vec![rows(from_system, (0, false), (&["?"], false))]), Ok(()));
}

#[test]
fn serializable_ignores_only_reads_of_keys_written_without_a_conflict_range() {
    let unchecked = |calls| serializable(true, calls, |writer, _| writer.write_ranges = Some(Vec::new()));
    assert_eq!(unchecked(vec![get("a", Some("1"))]), Ok(()));
    assert_eq!(unchecked(vec![rows(between("a", "d"), (0, false), (&["a", "b", "c"], false))]), Ok(()));
    // This read is wrong at its read version, regardless of later writes.
    assert!(unchecked(vec![get("b", Some("2"))]).is_err());
    // Another attempt writes `b` with a conflict range. Reads of `b` are still checked.
    let verdict = |calls: Vec<Call>, since: Version, write_ranges: Option<Vec<KeyRange>>| {
        let mut story = Story::default();
        story.log(10, vec![(None, 0, vec![set("a", "1"), set("b", "1"), set("c", "1")])]);
        let (first, attempt) = story.attempt(10, Vec::new());
        attempt.write_ranges = write_ranges;
        let (second, _) = story.attempt(10, Vec::new());
        let (id, _) = story.attempt(since, calls);
        story.log(20, vec![(Some(first), 0, vec![set("a", "2")])]);
        story.log(30, vec![(Some(second), 0, vec![set("b", "2")])]);
        story.log(40, vec![(Some(id), 0, vec![])]);
        story.judge(serializable::judge, &[])
    };
    let none = || Some(Vec::new());
    assert_eq!(verdict(vec![get("a", Some("1"))], 10, none()), Ok(()));
    assert!(verdict(vec![get("b", Some("1"))], 10, none()).is_err());
    assert!(verdict(vec![get("a", Some("1"))], 10, None).is_err());
    assert!(verdict(vec![get("a", Some("1"))], 10, Some(vec![KeyRange::new("a", "b")])).is_err());
    assert_eq!(verdict(vec![get("a", Some("1"))], 10, Some(vec![KeyRange::new("b", "c")])), Ok(()));
    // Ranges whose bounds are keys are ignored if they overlap such a write. Other selectors may lead
    // anywhere.
    assert!(verdict(vec![rows(between("b", "d"), (0, false), (&["b", "c"], false))], 10, none()).is_err());
    assert_eq!(
        verdict(vec![rows(between("a", "d"), (0, false), (&["a", "b", "c"], false))], 10, none()),
        Ok(())
    );
    let after = (KeySelector::first_greater_than("a"), KeySelector::first_greater_or_equal("d"));
    assert_eq!(verdict(vec![rows(after.clone(), (0, false), (&["b", "c"], false))], 10, none()), Ok(()));
    assert!(verdict(vec![rows(after, (0, false), (&["b", "c"], false))], 10, None).is_err());
    // Writes without a conflict range before the read version do not matter.
    assert!(verdict(vec![get("a", Some("2")), get("b", Some("1"))], 20, none()).is_err());
}

#[test]
fn serializable_allows_foundationdbs_treatment_of_own_cleared_keys() {
    let emptied = |call: Call| {
        let clear = Mutation::Atomic("b".into(), "1".into(), MutationType::CompareAndClear);
        plain(false, vec![Call::Write(clear), call])
    };
    // Selectors are then not compared, but values are.
    let next = || KeySelector::first_greater_than("a");
    assert_eq!((emptied(get_key(next(), "b")), emptied(get_key(next(), "c"))), (Ok(()), Ok(())));
    assert_eq!(emptied(get("b", None)), Ok(()));
    assert!(emptied(get("b", Some("1"))).is_err());
    assert!(emptied(rows(between("a", "d"), (0, false), (&["a", "b", "c"], false))).is_err());
    let odd = || (next(), KeySelector::first_greater_or_equal("d"));
    assert_eq!(emptied(rows(odd(), (0, false), (&["b", "c"], false))), Ok(()));
    let odd = || (KeySelector::first_greater_or_equal("a"), KeySelector::first_greater_than("c"));
    assert_eq!(emptied(rows(odd(), (0, false), (&["a", "b", "c"], false))), Ok(()));
    // Without such a write selectors are compared.
    assert!(plain(false, vec![rows(odd(), (0, false), (&["a"], false))]).is_err());
}

#[test]
fn serializable_checks_reads_at_the_last_version_and_later_ones() {
    for version in [30, 40, 1_000] {
        let verdict = |answer| {
            let mut story = Story::default();
            story.log(10, vec![(None, 0, vec![set("a", "1")])]);
            story.log(30, vec![(None, 0, vec![set("a", "2")])]);
            story.attempt(version, vec![get("a", Some(answer))]);
            story.judge(serializable::judge, &[])
        };
        assert_eq!(verdict("2"), Ok(()));
        assert!(verdict("1").unwrap_err().contains(&format!("read at version {version}")));
    }
}

#[test]
fn real_time_detects_a_stale_read_version() {
    let verdict = |version_requested, read_version| {
        let mut story = Story::default();
        let (id, first) = story.attempt(0, Vec::new());
        (first.reported, first.ended) = (Reported::Committed { version: 20, batch_index: 0 }, 100);
        story.log(20, vec![(Some(id), 0, vec![set("a", "1")])]);
        let (_, second) = story.attempt(read_version, Vec::new());
        second.version_requested = version_requested;
        story.judge(real_time::judge, &[])
    };
    assert_eq!(verdict(101, 20), Ok(()));
    assert_eq!(verdict(99, 10), Ok(()));
    assert!(verdict(101, 19).unwrap_err().contains("received 19"));
}

#[test]
fn real_time_detects_a_commit_that_lands_after_its_unknown_result() {
    let mut story = Story::default();
    let (id, first) = story.attempt(0, Vec::new());
    (first.reported, first.ended) = (Reported::Failed(Error::COMMIT_UNKNOWN_RESULT), 100);
    story.log(30, vec![(Some(id), 0, vec![set("a", "1")])]);
    let (_, second) = story.attempt(20, Vec::new());
    second.version_requested = 200;
    assert!(story.judge(real_time::judge, &[]).is_err());
}

#[test]
fn durable_detects_a_lost_commit_a_wrong_stamp_and_a_repeated_stamp() {
    let verdict = |logged: bool, order: u16, other: u16| {
        let mut story = Story::default();
        let (id, attempt) = story.attempt(0, Vec::new());
        attempt.reported = Reported::Committed { version: 10, batch_index: order };
        let mut transactions = vec![(None, other, vec![set("b", "1")])];
        transactions.extend(logged.then(|| (Some(id), 1, vec![set("a", "1")])));
        story.log(10, transactions);
        story.judge(durable::judge, &[])
    };
    assert_eq!(verdict(true, 1, 0), Ok(()));
    assert!(verdict(false, 1, 0).unwrap_err().contains("does not contain it"));
    assert!(verdict(true, 2, 0).unwrap_err().contains("order 1"));
    assert!(verdict(true, 1, 1).unwrap_err().contains("two transactions"));
}

#[test]
fn durable_detects_an_attempt_that_is_in_the_log_twice() {
    let mut story = Story::default();
    let (id, _) = story.attempt(0, Vec::new());
    story.log(10, vec![(Some(id), 0, vec![set("a", "1")])]);
    assert_eq!(story.judge(durable::judge, &[]), Ok(()));
    story.log(20, vec![(Some(id), 0, vec![set("a", "1")])]);
    assert_eq!(story.judge(durable::judge, &[]), Err("attempt 0 is in the log twice".to_owned()));
}

#[test]
fn durable_detects_a_commit_lost_in_a_recovery_and_a_replica_that_differs_from_the_log() {
    let mut story = Story::default();
    let (id, attempt) = story.attempt(0, Vec::new());
    attempt.reported = Reported::Committed { version: 10, batch_index: 0 };
    story.log(10, vec![(Some(id), 0, vec![set("a", "1")])]);
    let replica = |rows: &[(&'static str, &'static str)]| Replica {
        server: "storage-0".to_owned(),
        range: KeyRange::new("", "\u{7f}"),
        rows: rows.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
    };
    assert_eq!(story.judge(durable::judge, &[replica(&[("a", "1")])]), Ok(()));
    assert!(story.judge(durable::judge, &[replica(&[])]).unwrap_err().contains("nothing"));
    assert!(story.judge(durable::judge, &[replica(&[("a", "2")])]).is_err());
    story.history.ended.insert(1, 9);
    assert!(story.judge(durable::judge, &[]).unwrap_err().contains("does not contain it"));
}

#[test]
fn convergent_detects_two_replicas_that_differ() {
    let replica = |rows: &[(&'static str, &'static str)]| Replica {
        server: "storage".to_owned(),
        range: KeyRange::new("", "\u{7f}"),
        rows: rows.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
    };
    let verdict = |a: &[_], b: &[_]| Story::default().judge(convergent::judge, &[replica(a), replica(b)]);
    assert_eq!(verdict(&[("a", "1")], &[("a", "1")]), Ok(()));
    assert!(verdict(&[("a", "1")], &[("a", "2")]).unwrap_err().contains("\"a\""));
    assert!(verdict(&[("a", "1")], &[("a", "1"), ("b", "1")]).unwrap_err().contains("\"b\""));
}

#[test]
fn live_reports_which_client_waits_for_what() {
    let pending = vec![Operation { called: 1_000_000_000, returned: 0, outcome: None }];
    let why =
        live::judge(&[pending], &[vec![AnyValue::new("Pop"); 3]], &[0].into(), 3_000_000_000).unwrap_err();
    assert_eq!(why.message, "client 0 has waited for its operation 0 (\"Pop\") for 2.000 s");
    let ended = |outcome| Operation { called: 0, returned: 0, outcome: Some(outcome) };
    let nothing = || AnyValue::new(());
    let answered = ended(Outcome::Answered(nothing()));
    assert_eq!(live::judge(&[vec![answered]], &[vec![nothing()]], &[].into(), 0), Ok(()));
    assert!(
        live::judge(&[Vec::new()], &[vec![nothing()]], &[0].into(), 0)
            .unwrap_err()
            .message
            .contains("to open its session")
    );
    assert_eq!(live::judge(&[Vec::new()], &[Vec::new()], &[0].into(), 0), Ok(()));
    // It has left for good.
    assert_eq!(live::judge(&[Vec::new()], &[vec![nothing()]], &[].into(), 0), Ok(()));
}
