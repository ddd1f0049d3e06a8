//! Tests of the judges of what a layer says of itself, with made-up histories: unknown outcomes that are
//! certain, items that are overwritten, operations that are slow.

use super::Story;
use crate::{
    describe::{
        erased::{AnyValue, AnyWorkload},
        misfit::Misfit,
        workload::{Operation, Outcome, Step, Workload},
    },
    judge::{Judgement, Truth, certain, overwritten, slow},
};
use bytes::Bytes;
use proptest::strategy::{BoxedStrategy, Just, Strategy};
use serde::{Deserialize, Serialize};
use shaketable_sim::{
    history::{Call, Reported},
    ids::ClientId,
    proto::{KeyRange, Mutation, Version},
    rt::{Nanos, SECOND},
    seed::Stream,
};
use shaketable_tx::{self as tx, Db, Error, Isolation, KeySelector, KeyValue, Tx};
use std::time::Duration;

/// The auditor of a run.
const AUDITOR: ClientId = ClientId(1_000);

/// Operations are strings, which may not overwrite and end within five seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Strict;

impl Workload for Strict {
    type Op = String;
    type Answer = ();
    type Session = ();
    type Model = ();

    const NAME: &'static str = "strict";
    const ABOUT: &'static str = "nothing";

    fn may_overwrite(&self, op: &String) -> bool {
        op == "last wins"
    }
    fn time_limit(&self, op: &String) -> Option<Duration> {
        (op != "unbounded").then_some(Duration::from_secs(5))
    }
    fn draw(_: &mut Stream, _: Option<&str>) -> Strict {
        Strict
    }
    fn clients(&self) -> usize {
        2
    }
    fn keys(&self) -> Vec<Bytes> {
        Vec::new()
    }
    fn operations(&self, _: usize) -> BoxedStrategy<Vec<String>> {
        Just(Vec::new()).boxed()
    }
    async fn open(&self, _: &Db, _: usize) -> tx::Result<()> {
        Ok(())
    }
    async fn apply(&self, (): &mut (), _: &String) -> Outcome<()> {
        Outcome::Answered(())
    }
    fn model(&self) {}
    fn step(&self, (): &mut (), _: &Step<'_, Self>) -> Result<(), Misfit> {
        Ok(())
    }
    async fn audit(&self, _: &Tx) -> tx::Result<Result<(), Misfit>> {
        Ok(Ok(()))
    }
    async fn check(&self, _: &Db, (): &()) -> tx::Result<Result<(), Misfit>> {
        Ok(Ok(()))
    }
}

fn set(key: &'static str, value: &'static str) -> Mutation {
    Mutation::Set(key.into(), value.into())
}

fn said(judged: Judgement) -> Option<String> {
    judged.err().map(|objection| objection.message)
}

#[test]
fn an_unknown_outcome_is_in_doubt() {
    let write = || vec![Call::Write(set("a", "1"))];
    let refused = Reported::Failed(Error::NOT_COMMITTED);
    let judge = |outcome: Outcome<AnyValue>, attempts: &[(Reported, bool)], given_up: bool| {
        let mut story = Story::default();
        for (reported, writes) in attempts {
            let (_, attempt) = story.attempt(1, if *writes { write() } else { Vec::new() });
            (attempt.operation, attempt.reported) = (Some(0), *reported);
        }
        let operations = [vec![Operation { called: 0, returned: 1, outcome: Some(outcome) }]];
        said(certain::judge(&operations, |_| given_up, &story.history, |_| "it".to_owned()))
    };
    let unknown = || Outcome::Unknown(Error::NOT_COMMITTED);
    let expected = "it has an unknown outcome with not_committed (1020), but it certainly has no effect: its last \
                    transaction that wrote failed with not_committed (1020), and no other may have committed";
    assert_eq!(judge(unknown(), &[(refused, true)], false).as_deref(), Some(expected));
    assert!(
        judge(unknown(), &[(refused, true), (refused, true), (Reported::ReadOnly, false)], false).is_some()
    );
    assert!(judge(Outcome::Unknown(Error::COMMIT_UNKNOWN_RESULT), &[(refused, true)], false).is_some());
    let late = || Outcome::Unknown(Error::TRANSACTION_TIMED_OUT);
    assert_eq!(judge(late(), &[(refused, true)], false), None, "a retry may have met it");
    assert_eq!(judge(unknown(), &[(refused, true)], true), None);
    assert_eq!(judge(Outcome::Failed(Error::NOT_COMMITTED), &[(refused, true)], false), None);
    for doubt in [
        Reported::Nothing,
        Reported::Committed { version: 5, batch_index: 0 },
        Reported::Failed(Error::COMMIT_UNKNOWN_RESULT),
        Reported::Failed(Error::TRANSACTION_TIMED_OUT),
    ] {
        assert_eq!(judge(unknown(), &[(refused, true), (doubt, true)], false), None, "{doubt:?}");
        assert_eq!(judge(unknown(), &[(doubt, true), (refused, true)], false), None, "{doubt:?}");
    }
    // Who only read does not say more with the one than with the other.
    assert_eq!(judge(unknown(), &[(refused, false)], false), None);
    assert_eq!(judge(unknown(), &[], false), None);
}

/// Operation 0 of client 0 reads this at version 10 and sets `k` to `1` at version 30, where operation 0 of
/// client 1 committed these mutations at version 20.
fn overwrites(op: &str, read: Call, guarded: bool, between: Vec<Mutation>) -> Option<String> {
    let mut story = Story::default();
    let (other, attempt) = story.attempt(5, Vec::new());
    (attempt.client, attempt.operation) = (ClientId(1), Some(0));
    let (id, attempt) = story.attempt(10, vec![read]);
    attempt.operation = Some(0);
    if guarded {
        attempt.read_ranges = vec![KeyRange::new("a", "z")];
    }
    story.log(20, vec![(Some(other), 0, between)]);
    story.log(30, vec![(Some(id), 0, vec![set("k", "1")])]);
    let plan = [vec![AnyValue::new(op.to_owned())], vec![AnyValue::new("theirs".to_owned())]];
    let truth = Truth::of(&story.history);
    said(overwritten::judge(&AnyWorkload::new(Strict), &plan, &story.history, &truth))
}

#[test]
fn what_is_written_where_nothing_was_seen_overwrites_nothing() {
    use Isolation::{Serializable, Snapshot};
    let get = |isolation, answer: Option<&'static str>| Call::Get {
        key: "k".into(),
        isolation,
        answer: Some(answer.map(Bytes::from)),
    };
    let range = |rows: &[&'static str], reverse, more| Call::GetRange {
        begin: KeySelector::first_greater_or_equal("a"),
        end: KeySelector::first_greater_or_equal("z"),
        limit: 1,
        reverse,
        isolation: Snapshot,
        answer: Some((rows.iter().map(|key| KeyValue::new(*key, "v")).collect(), more)),
    };
    let last = |found: &'static str| Call::GetKey {
        selector: KeySelector::last_less_than("z"),
        isolation: Snapshot,
        answer: Some(found.into()),
    };
    let theirs = || vec![set("k", "2")];
    let expected = "operation 0 of client 0 (\"mine\"), which committed at version 30, overwrote \"k\": it had seen nothing \
                    there, at snapshot, and operation 0 of client 1 (\"theirs\") had written it at version 20 in the \
                    meantime, which is lost";
    assert_eq!(overwrites("mine", get(Snapshot, None), false, theirs()).as_deref(), Some(expected));
    // Also where it was not the first that they wrote.
    let later = vec![set("l", "0"), set("k", "2")];
    assert_eq!(overwrites("mine", get(Snapshot, None), false, later).as_deref(), Some(expected));
    for read in
        [range(&[], false, false), range(&["j"], true, true), range(&["j", "l"], false, true), last("j")]
    {
        assert!(overwrites("mine", read.clone(), false, theirs()).is_some(), "{read:?}");
    }
    // It has seen something, or the other end of the range, or would have conflicted.
    for read in [
        get(Snapshot, Some("0")),
        get(Serializable, None),
        range(&["k"], false, false),
        range(&["j"], false, true),
        range(&["l"], true, true),
        last("k"),
    ] {
        assert_eq!(overwrites("mine", read.clone(), false, theirs()), None, "{read:?}");
    }
    assert_eq!(overwrites("mine", get(Snapshot, None), true, theirs()), None);
    assert_eq!(overwrites("last wins", get(Snapshot, None), false, theirs()), None);
    // Nothing is lost.
    let clear = Mutation::ClearRange(KeyRange::new("k", "l"));
    for between in [vec![set("k", "1")], vec![set("l", "2")], vec![set("k", "2"), clear]] {
        assert_eq!(overwrites("mine", get(Snapshot, None), false, between.clone()), None, "{between:?}");
    }
}

#[test]
fn an_operation_is_slow_while_others_are_served() {
    // Another one succeeds every 400 ms until this time.
    let judge = |op: &str, took: Nanos, until: Nanos, client: ClientId| {
        let mut story = Story::default();
        // The attempt that ended last began first.
        for at in (0..until).step_by(400_000_000).collect::<Vec<_>>().into_iter().rev() {
            let read = Call::Get { key: "k".into(), isolation: Isolation::Snapshot, answer: Some(None) };
            let (_, attempt) = story.attempt(at as Version, vec![read]);
            (attempt.client, attempt.ended) = (client, at);
            if client != AUDITOR {
                attempt.reported = Reported::ReadOnly;
            }
        }
        // One that is quick, and one that is perhaps slow.
        let plan = [["quick", op].map(|op| AnyValue::new(op.to_owned())).to_vec()];
        let ended = |returned| {
            let outcome = Some(Outcome::Answered(AnyValue::new(())));
            Operation { called: 0, returned, outcome }
        };
        let operations = [vec![ended(0), ended(took)]];
        said(slow::judge(&AnyWorkload::new(Strict), &plan, &operations, &story.history))
    };
    let (other, long) = (ClientId(1), 20 * SECOND);
    let expected = "operation 1 of client 0 (\"it\") took 9.000 s, of which the cluster served others for at least \
                    8.800 s; its limit is 5.000 s";
    assert_eq!(judge("it", 9 * SECOND, long, other).as_deref(), Some(expected));
    assert!(judge("it", 9 * SECOND, long, AUDITOR).is_some());
    assert_eq!(judge("it", 5 * SECOND, long, other), None);
    assert_eq!(judge("unbounded", 9 * SECOND, long, other), None);
    assert_eq!(judge("it", 9 * SECOND, long, ClientId(0)), None, "it served only itself");
    assert_eq!(judge("it", 9 * SECOND, 4 * SECOND, other), None, "it served nobody later");
}
