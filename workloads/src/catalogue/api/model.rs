//! The sequential model: what each call must return at its place among the committed transactions.

use super::{Api, Asked, Call, Op, Seen, layout::Layout};
use bytes::Bytes;
use shaketable::{
    models::keyspace::{Space, View, Write, apply as make_permanent},
    workload::Step,
};
use shaketable_tx::{Isolation, RangeOption, Result};

/// The model, and the keys that operations name by number.
#[derive(Clone)]
pub struct Model {
    pub(super) space: Space,
    pub(super) layout: Layout,
}

impl Api {
    /// Performs one operation on the model, at its place in the history, and checks what it returned.
    pub(super) fn follow(
        &self,
        Model { space, layout }: &mut Model,
        step: &Step<'_, Self>,
    ) -> Result<(), String> {
        let seen = step.answer.map(|answer| answer.seen.as_slice());
        let (writes, verdict) = replay(space, layout, step.client, step.op, seen, step.read_version);
        if let Some(stamp) = &step.stamp {
            make_permanent(space, &writes, stamp);
        }
        verdict?;
        match step.answer.and_then(|answer| answer.stamp) {
            told @ Some(_) if told != step.stamp => {
                Err(format!("received the versionstamp {told:?}, but has {:?}", step.stamp))
            }
            _ => Ok(()),
        }
    }
}

/// Replays an operation over `space`. Returns its writes, and an error for the first call that did not return
/// what the model returns.
fn replay(
    space: &Space,
    layout: &Layout,
    client: usize,
    op: &Op,
    seen: Option<&[Seen]>,
    read_version: Option<i64>,
) -> (Vec<Write>, Result<(), String>) {
    let mut view = View::new(space, op.read_your_writes).snapshots(op.snapshot_ryw);
    let mut verdict = Ok(());
    if let Some(seen) = seen
        && seen.len() != op.calls.len()
    {
        verdict = Err(format!("{} calls returned {} answers", op.calls.len(), seen.len()));
    }
    for (i, call) in op.calls.iter().enumerate() {
        let answer = seen.and_then(|seen| seen.get(i)).filter(|_| verdict.is_ok());
        if let Some(answer) = answer
            && let Err(expected) = agrees(&view, layout, client, call, answer, read_version)
        {
            verdict = Err(format!("call {i}, {call:?}, returned {answer:?}, the model returns {expected}"));
        }
        if let Some(write) = layout.write(client, call) {
            view.write(write);
        }
    }
    (view.into_writes(), verdict)
}

/// Checks that a call returned what the model returns. The error is what the model returns.
fn agrees(
    view: &View,
    layout: &Layout,
    client: usize,
    call: &Call,
    seen: &Seen,
    read_version: Option<i64>,
) -> Result<(), String> {
    if let Call::Ask(asked) = call {
        return agrees_on(view, *asked, seen, read_version);
    }
    let snapshot;
    let view = match call {
        Call::Get(_, Isolation::Snapshot)
        | Call::GetRange(_, Isolation::Snapshot)
        | Call::GetStamped(_, Isolation::Snapshot) => {
            snapshot = view.at_snapshot();
            &snapshot
        }
        _ => view,
    };
    let all = |range: &RangeOption| -> Vec<(Bytes, Bytes)> {
        view.get_range(range).into_iter().map(|row| (row.key, row.value)).collect()
    };
    let expected = match call {
        Call::Get(at, isolation) => {
            let key = layout.point(client, *at, *isolation);
            if view.must_not_read(key) { Seen::Unreadable } else { Seen::Value(view.get(key)) }
        }
        Call::GetKey(selector) => {
            // The selector of a get_key is always resolved; the selector of a range only bounds the range.
            let mut selector = layout.selector(client, *selector);
            let expected = view.get_key(&selector);
            selector.or_equal = true;
            if !view.resolves_surely(&selector) {
                return Ok(());
            }
            Seen::Key(expected)
        }
        Call::GetRange(range, isolation) => {
            let option = layout.range(client, *range, *isolation);
            if !view.resolves_surely(&option.begin) || !view.resolves_surely(&option.end) {
                return Ok(());
            }
            let expected = all(&layout.range(client, *range, *isolation));
            if let Seen::Rows(rows, true) = seen
                && range.one_batch
                && expected.starts_with(rows)
            {
                return Ok(());
            }
            Seen::Rows(expected, false)
        }
        Call::GetStamped(own, isolation) => {
            let (begin, end) = layout.stamped(client, *own || *isolation == Isolation::Snapshot);
            Seen::Rows(all(&RangeOption::new(begin, end)), false)
        }
        _ => Seen::Nothing,
    };
    // The model does not define where an unreadable range ends, but without a versionstamp there is none.
    let excused = *seen == Seen::Unreadable && view.may_be_unreadable() && expected != Seen::Nothing;
    if *seen == expected || excused { Ok(()) } else { Err(format!("{expected:?}")) }
}

/// Checks that what a transaction returned about itself is possible.
fn agrees_on(view: &View, asked: Asked, seen: &Seen, read_version: Option<i64>) -> Result<(), String> {
    let is_possible = match (asked, seen) {
        (Asked::ReadVersion, Seen::Number(version)) => read_version.is_none_or(|read| read == *version),
        (Asked::Size, Seen::Number(bytes)) => *bytes >= view.written() as i64,
        (Asked::StoredBytes, Seen::Number(bytes)) => *bytes >= 0,
        (Asked::SplitPoints, Seen::Keys(keys)) => {
            let ends = (keys.first().map(|key| &key[..]), keys.last().map(|key| &key[..]));
            ends == (Some(b"api/"), Some(b"api0")) && keys.is_sorted_by(|a, b| a < b)
        }
        _ => false,
    };
    match is_possible {
        true => Ok(()),
        false => Err(format!(
            "a result for the read version {read_version:?} and {} bytes written",
            view.written()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Before, Data, Range, Selector, Spot},
        *,
    };
    use shaketable_tx::StreamingMode;

    fn own(n: u8) -> Spot {
        Spot { own: true, n }
    }

    fn data(bytes: &[u8]) -> Data {
        Data(bytes.to_vec(), 1)
    }

    /// A transaction without calls.
    fn plain() -> Op {
        Op {
            read_your_writes: true,
            snapshot_ryw: true,
            before: Before::Nothing,
            options: Vec::new(),
            calls: Vec::new(),
            watch: None,
            wake: None,
        }
    }

    fn verdict(op: &Op, seen: &[Seen]) -> Result<(), String> {
        replay(&Layout::initial(), &Layout::new(2), 1, op, Some(seen), Some(7)).1
    }

    #[test]
    fn snapshots_see_own_writes_unless_that_is_disabled() {
        let calls = vec![Call::Set(own(1), data(b"x")), Call::Get(own(1), Isolation::Snapshot)];
        let seen = |value: Option<&'static str>| [Seen::Nothing, Seen::Value(value.map(Bytes::from))];
        let op = Op { calls, ..plain() };
        assert_eq!(verdict(&op, &seen(Some("x"))), Ok(()));
        assert!(verdict(&op, &seen(None)).is_err());
        let op = Op { snapshot_ryw: false, ..op };
        assert_eq!(verdict(&op, &seen(None)), Ok(()));
        assert!(verdict(&op, &seen(Some("x"))).is_err());
    }

    #[test]
    fn what_a_transaction_returns_about_itself_is_checked() {
        let key = |bytes: &'static [u8]| Bytes::from_static(bytes);
        for (asked, right, wrong) in [
            (Asked::ReadVersion, Seen::Number(7), Seen::Number(8)),
            (Asked::Size, Seen::Number(12), Seen::Number(9)),
            (Asked::StoredBytes, Seen::Number(0), Seen::Number(-1)),
            (
                Asked::SplitPoints,
                Seen::Keys(vec![key(b"api/"), key(b"api/01"), key(b"api0")]),
                Seen::Keys(vec![key(b"api/"), key(b"api/01")]),
            ),
        ] {
            let op = Op { calls: vec![Call::Set(own(1), data(b"xy")), Call::Ask(asked)], ..plain() };
            assert_eq!(verdict(&op, &[Seen::Nothing, right]), Ok(()), "{asked:?}");
            assert!(verdict(&op, &[Seen::Nothing, wrong]).is_err(), "{asked:?}");
        }
    }

    #[test]
    fn wrong_answers_are_distinguished_from_right_ones() {
        use Isolation::Serializable;
        let op = Op {
            calls: vec![
                Call::Set(own(1), data(b"x")),
                Call::Get(own(1), Serializable),
                Call::StampValue(own(2), data(b"")),
                Call::Get(own(2), Serializable),
                Call::GetKey(Selector(own(0), false, 1)),
            ],
            ..plain()
        };
        let key = Layout::new(2).key(1, own(1)).clone();
        let right = [
            Seen::Nothing,
            Seen::Value(Some(Bytes::from("x"))),
            Seen::Nothing,
            Seen::Unreadable,
            Seen::Key(key.clone()),
        ];
        assert_eq!(verdict(&op, &right), Ok(()));
        let mut unreadable_walk = right.clone();
        unreadable_walk[4] = Seen::Unreadable;
        assert_eq!(verdict(&op, &unreadable_walk), Ok(()));
        for (i, wrong) in [
            (1, Seen::Value(None)),
            (1, Seen::Unreadable),
            (3, Seen::Value(None)),
            (4, Seen::Key(Layout::new(2).key(1, own(2)).clone())),
            (0, Seen::Unreadable),
        ] {
            let mut seen = right.clone();
            seen[i] = wrong;
            assert!(verdict(&op, &seen).is_err_and(|why| why.contains(&format!("call {i}"))), "{i}");
        }
        assert!(verdict(&op, &right[..4]).is_err());
        let blind = Op { read_your_writes: false, ..op };
        assert!(verdict(&blind, &right).is_err());
    }

    #[test]
    fn one_batch_may_be_short_but_not_wrong() {
        let range = Range {
            begin: Selector(own(0), false, 1),
            end: Selector(own(9), false, 1),
            limit: 0,
            reverse: true,
            mode: StreamingMode::Small,
            one_batch: true,
        };
        let calls = vec![
            Call::Set(own(1), data(b"1")),
            Call::Set(own(2), data(b"2")),
            Call::GetRange(range, Isolation::Snapshot),
        ];
        let op = Op { calls, ..plain() };
        let row = |n: u8| (Layout::new(2).key(1, own(n)).clone(), Bytes::from(n.to_string()));
        let verdict = |rows, more| verdict(&op, &[Seen::Nothing, Seen::Nothing, Seen::Rows(rows, more)]);
        assert_eq!(verdict(vec![row(2), row(1)], false), Ok(()));
        assert_eq!(verdict(vec![row(2)], true), Ok(()));
        assert_eq!(verdict(vec![], true), Ok(()));
        assert!(verdict(vec![row(2)], false).is_err());
        assert!(verdict(vec![row(1)], true).is_err());
    }
}
