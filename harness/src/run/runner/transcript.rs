//! The transcript of a run, for the author of a layer: operations, the reads and writes of their transactions
//! with decoded keys, the reasons why commits failed, and faults by name.

use super::testbed::{AUDITOR, CHECKER, SETTER};
use crate::{
    describe::erased::AnyValue,
    describe::workload::{Operation, Outcome},
    judge::Truth,
    run::plan::Plan,
};
use bytes::{Buf, Bytes};
use foundationdb_tuple::Element;
use shaketable_sim::{
    faults::Family,
    history::{Attempt, Call, History, Reported},
    ids::{AttemptId, ClientId, NodeId},
    proto::{KeyRange, LoggedTransaction, Mutation, Version},
    rt::Nanos,
    trace::{Event, Kind},
};
use shaketable_tx::{Error, Isolation, KeySelector, MutationType, nesting};
use std::fmt::Write;

/// The maximum number of rows of a range read that are shown.
const MOST_ROWS: usize = 8;
/// The maximum number of bytes of a key or value that are shown.
const MOST_BYTES: usize = 64;

/// One or more lines of the transcript, at one point in time.
struct TranscriptEntry {
    at: Nanos,
    who: String,
    text: String,
}

/// Writes the transcript of a run on a simulated cluster. `machine` returns the name of a machine of the
/// cluster.
pub(super) fn transcript(
    plan: &Plan,
    operations: &[Vec<Operation<AnyValue>>],
    history: &History,
    events: &[Event],
    machine: &dyn Fn(NodeId) -> String,
) -> String {
    let (mut calls, mut returns) = (Vec::new(), Vec::new());
    for (client, (list, planned)) in operations.iter().zip(&plan.operations).enumerate() {
        for (index, (operation, op)) in list.iter().zip(planned).enumerate() {
            let entry = |at, text| TranscriptEntry { at, who: who(ClientId(client as u16)), text };
            calls.push(entry(operation.called, format!("operation {index} begins: {op:?}")));
            let how = operation.outcome.as_ref().map(outcome);
            returns.extend(how.map(|how| entry(operation.returned, format!("operation {index} {how}"))));
        }
    }
    text_of(calls, returns, history, events, machine)
}

/// The transcript with these entries of the operations.
fn text_of(
    calls: Vec<TranscriptEntry>,
    returns: Vec<TranscriptEntry>,
    history: &History,
    events: &[Event],
    machine: &dyn Fn(NodeId) -> String,
) -> String {
    let mut entries: Vec<TranscriptEntry> =
        events.iter().filter_map(|event| of_event(event, machine)).collect();
    entries.extend(calls);
    let truth = Truth::of(history);
    for (id, attempt) in history.attempts.iter().enumerate() {
        let attempt = attempt.as_ref().filter(|attempt| ![AUDITOR, CHECKER].contains(&attempt.client));
        entries.extend(attempt.map(|attempt| of_attempt(id, attempt, history, &truth)));
    }
    entries.extend(returns);
    // A stable sort: at equal times an operation begins, then its attempts end, then it returns.
    entries.sort_by_key(|entry| entry.at);
    entries.iter().fold(String::new(), |mut text, TranscriptEntry { at, who, text: entry }| {
        for (i, line) in entry.lines().enumerate() {
            let _ = match i {
                0 => writeln!(text, "{:>11.6} s  {who:<10}  {line}", *at as f64 / 1e9),
                _ => writeln!(text, "{:27}{line}", ""),
            };
        }
        text
    })
}

fn of_event(event: &Event, machine: &dyn Fn(NodeId) -> String) -> Option<TranscriptEntry> {
    let text = match event.kind {
        Kind::Fault => {
            let family = Family::ALL.iter().find(|family| **family as u64 == event.a)?;
            match event.node {
                NodeId(0) => family.name().to_owned(),
                node => format!("{} at {}", family.name(), machine(node)),
            }
        }
        Kind::Kill => format!("{} is killed", machine(event.node)),
        Kind::Start if event.a > 0 => format!("{} is started again", machine(event.node)),
        Kind::Pause => format!("{} is paused", machine(event.node)),
        Kind::Resume => format!("{} is resumed", machine(event.node)),
        Kind::RecoveryBegin if event.a > 1 => "a recovery begins".to_owned(),
        Kind::RecoveryEnd if event.a > 1 => format!("the recovery ends at version {}", event.b),
        Kind::Act => format!("-- {} --", ["setup", "hurt", "heal", "check"].get(event.a as usize - 1)?),
        _ => return None,
    };
    let who = if event.kind == Kind::Fault { "fault" } else { "cluster" };
    Some(TranscriptEntry { at: event.at, who: who.to_owned(), text })
}

pub(super) fn outcome(outcome: &Outcome<AnyValue>) -> String {
    match outcome {
        Outcome::Answered(answer) => format!("returns {answer:?}"),
        Outcome::Failed(error) => format!("fails without an effect: {error}"),
        Outcome::Unknown(error) => format!("has an unknown outcome: {error}"),
        Outcome::Violated(why) => format!("violates the layer's promise: {why}"),
    }
}

fn of_attempt(id: usize, attempt: &Attempt, history: &History, truth: &Truth) -> TranscriptEntry {
    let mut text = format!("  attempt {id}");
    if let Some(operation) = attempt.operation {
        let _ = write!(text, " of operation {operation}");
    }
    match attempt.read_version {
        Some(version) => {
            let _ =
                write!(text, ", read version {version} from {:.6} s", attempt.version_requested as f64 / 1e9);
        }
        None => text += ", without a read version",
    }
    for call in &attempt.calls {
        let _ = write!(text, "\n    {}", of_call(call));
    }
    let _ = write!(text, "\n    => {}", end(id, attempt, history, truth));
    TranscriptEntry { at: attempt.ended, who: who(attempt.client), text }
}

/// How an attempt ended, in words.
pub(super) fn end(id: usize, attempt: &Attempt, history: &History, truth: &Truth) -> String {
    match attempt.reported {
        Reported::Nothing if attempt.commit_sent.is_some() => {
            format!("dropped during its commit{}", final_outcome(id, truth))
        }
        Reported::Nothing => "dropped".to_owned(),
        Reported::ReadOnly => "committed, read-only".to_owned(),
        Reported::Committed { version, .. } => format!("committed at version {version}"),
        Reported::Failed(Error::NOT_COMMITTED) => {
            format!("failed: {}{}", Error::NOT_COMMITTED, conflict(attempt, history, truth))
        }
        Reported::Failed(error) if error.leaves_commit_unknown() && attempt.commit_sent.is_some() => {
            format!("failed: {error}{}", final_outcome(id, truth))
        }
        Reported::Failed(error) => format!("failed: {error}"),
    }
}

fn who(client: ClientId) -> String {
    match client {
        SETTER => "setup".to_owned(),
        ClientId(number) => format!("client {number}"),
    }
}

/// The final outcome of a commit whose client does not know it.
fn final_outcome(id: usize, truth: &Truth) -> String {
    match truth.place(AttemptId(id as u32)) {
        Some((version, _)) => format!("; it committed at version {version}"),
        None => "; it did not commit".to_owned(),
    }
}

/// The write that refused a commit.
pub(super) struct Refusal {
    /// What the refused attempt had read.
    read: KeyRange,
    /// The version of the write.
    version: Version,
    /// The attempt that wrote.
    pub(super) by: Option<AttemptId>,
}

/// The write with which an attempt conflicted; `None` if no committed write did.
pub(super) fn refusal(attempt: &Attempt, history: &History, truth: &Truth) -> Option<Refusal> {
    let since = attempt.read_version.unwrap_or(Version::MAX);
    let later = truth.entries.iter().filter(|entry| entry.version > since);
    later.flat_map(|entry| entry.transactions.iter().map(|tx| (entry.version, tx))).find_map(
        |(version, tx)| {
            let hit = |read: &&KeyRange| written(tx, history).iter().any(|write| write.intersects(read));
            let read = attempt.read_ranges.iter().find(hit)?.clone();
            Some(Refusal { read, version, by: tx.attempt })
        },
    )
}

/// The write with which an attempt conflicted, in words.
fn conflict(attempt: &Attempt, history: &History, truth: &Truth) -> String {
    match refusal(attempt, history, truth) {
        Some(Refusal { read, version, by }) => {
            let by = by.map_or_else(String::new, |id| format!(" by attempt {}", id.0));
            format!("; {} was written at version {version}{by}", range(&read))
        }
        None => "; no committed write explains it: a fault caused it, or a transaction that did not become durable"
            .to_owned(),
    }
}

/// The write conflict ranges of a committed transaction.
pub(crate) fn written(tx: &LoggedTransaction, history: &History) -> Vec<KeyRange> {
    let attempt = tx.attempt.and_then(|id| history.attempts.get(id.0 as usize)?.as_ref());
    if let Some(ranges) = attempt.and_then(|attempt| attempt.write_ranges.clone()) {
        return ranges;
    }
    let of_key = |key: &Bytes| KeyRange::new(key.clone(), Bytes::from([key, &b"\0"[..]].concat()));
    let range = |mutation: &Mutation| match mutation {
        Mutation::Set(key, _) | Mutation::Atomic(key, ..) => of_key(key),
        Mutation::ClearRange(range) => range.clone(),
    };
    tx.mutations.iter().map(range).collect()
}

fn of_call(call: &Call) -> String {
    let snapshot =
        |isolation: &Isolation| if *isolation == Isolation::Snapshot { " at snapshot" } else { "" };
    match call {
        Call::Get { key, isolation, answer } => {
            let answer = match answer {
                None => "no reply".to_owned(),
                Some(None) => "nothing".to_owned(),
                Some(Some(found)) => value(found),
            };
            format!("get{} {} -> {answer}", snapshot(isolation), self::key(key))
        }
        Call::GetKey { selector: of, isolation, answer } => {
            let answer = answer.as_ref().map_or_else(|| "no reply".to_owned(), |found| key(found));
            format!("get key{} {} -> {answer}", snapshot(isolation), selector(of))
        }
        Call::GetRange { begin, end, limit, reverse, isolation, answer } => {
            let mut text =
                format!("get range{} {} to {}", snapshot(isolation), selector(begin), selector(end));
            if *limit > 0 {
                let _ = write!(text, ", at most {limit}");
            }
            if *reverse {
                text += ", reverse";
            }
            let Some((rows, more)) = answer else { return text + " -> no reply" };
            let rows_are = if rows.len() == 1 { "row" } else { "rows" };
            let _ = write!(text, " -> {} {rows_are}{}", rows.len(), if *more { ", and more" } else { "" });
            for row in rows.iter().take(MOST_ROWS) {
                let _ = write!(text, "\n        {} = {}", key(&row.key), value(&row.value));
            }
            if rows.len() > MOST_ROWS {
                text += "\n        ...";
            }
            text
        }
        Call::Write(Mutation::Set(at, to)) => format!("set {} = {}", key(at), value(to)),
        Call::Write(Mutation::ClearRange(cleared)) => format!("clear {}", range(cleared)),
        Call::Write(Mutation::Atomic(at, operand, op)) => {
            let (at, operand) = stamped(at, operand, *op);
            format!("{op:?} {} with {}", key(at), value(operand))
        }
    }
}

/// The key and the operand of an atomic operation, without the offset of a versionstamp in their last four
/// bytes.
pub(super) fn stamped<'a>(at: &'a [u8], operand: &'a [u8], op: MutationType) -> (&'a [u8], &'a [u8]) {
    let without_offset = |bytes: &'a [u8]| bytes.len().checked_sub(4).map_or(bytes, |end| &bytes[..end]);
    match op {
        MutationType::SetVersionstampedKey => (without_offset(at), operand),
        MutationType::SetVersionstampedValue => (at, without_offset(operand)),
        _ => (at, operand),
    }
}

pub(super) fn selector(selector: &KeySelector) -> String {
    match (selector.or_equal, selector.offset) {
        (false, 1) => key(&selector.key),
        (true, 1) => format!("after {}", key(&selector.key)),
        (or_equal, offset) => {
            let of = if or_equal { "last <=" } else { "last <" };
            format!("({of} {} + {offset})", key(&selector.key))
        }
    }
}

/// A range: a single key, or its two ends.
pub(super) fn range(range: &KeyRange) -> String {
    if range.end.strip_suffix(b"\0") == Some(&range.begin) {
        return key(&range.begin);
    }
    format!("{} to {}", key(&range.begin), key(&range.end))
}

/// A key, decoded if it is a packed tuple, or a packed tuple and one more byte.
pub(super) fn key(bytes: &[u8]) -> String {
    tuple(bytes)
        .or_else(|| {
            // The end of a tuple's range, or the key after a tuple.
            let (last, head) = bytes.split_last()?;
            tuple(head).map(|tuple| format!("{tuple}\\x{last:02x}"))
        })
        .unwrap_or_else(|| raw(bytes))
}

/// A value. It is decoded as a tuple only if its first element is text or bytes and it contains no null,
/// because other encodings can look like tuples of numbers.
pub(super) fn value(bytes: &[u8]) -> String {
    let text = || std::str::from_utf8(bytes).ok().filter(|text| !text.chars().any(char::is_control));
    let as_tuple = || match bytes {
        [1 | 2, ..] => tuple(bytes).filter(|tuple| !tuple.contains("null")),
        _ => None,
    };
    let number = || {
        let number = i64::from_le_bytes(bytes.try_into().ok()?);
        Some(format!("{} ({number})", raw(bytes)))
    };
    text().map(|_| raw(bytes)).or_else(as_tuple).or_else(number).unwrap_or_else(|| raw(bytes))
}

fn raw(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(MOST_BYTES)];
    let rest = if shown.len() < bytes.len() { format!("... ({} bytes)", bytes.len()) } else { String::new() };
    format!("\"{}{rest}\"", shown.escape_ascii())
}

fn tuple(bytes: &[u8]) -> Option<String> {
    let elements: Vec<Element<'_>> = nesting::unpack(bytes).ok().filter(|_| !bytes.is_empty())?;
    Some(listed(&elements))
}

fn listed(elements: &[Element<'_>]) -> String {
    let each: Vec<String> = elements.iter().map(element).collect();
    match &each[..] {
        [one] => format!("({one},)"),
        many => format!("({})", many.join(", ")),
    }
}

pub(crate) fn element(element: &Element<'_>) -> String {
    match element {
        Element::Nil => "null".to_owned(),
        Element::Bytes(bytes) => format!("b{}", raw(bytes)),
        Element::String(text) => format!("{text:?}"),
        Element::Tuple(elements) => listed(elements),
        Element::Int(number) => number.to_string(),
        Element::BigInt(number) => number.to_string(),
        Element::Float(number) => format!("{number:?}"),
        Element::Double(number) => format!("{number:?}"),
        Element::Bool(value) => value.to_string(),
        Element::Uuid(uuid) => uuid.to_string(),
        Element::Versionstamp(stamp) if !stamp.is_complete() => {
            format!("incomplete versionstamp/{}", stamp.user_version())
        }
        Element::Versionstamp(stamp) => {
            let mut bytes = stamp.transaction_version();
            let (version, batch) = (bytes.get_u64(), bytes.get_u16());
            format!("versionstamp {version}.{batch}/{}", stamp.user_version())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::alarms::Story;
    use foundationdb_tuple::{Versionstamp, pack};
    use shaketable_tx::KeyValue;

    #[test]
    fn keys_are_shown_as_tuples_where_they_are_tuples() {
        assert_eq!(key(&pack(&("queue", 5))), r#"("queue", 5)"#);
        assert_eq!(key(&pack(&("queue",))), r#"("queue",)"#);
        assert_eq!(key(&[pack(&("queue", -300)), vec![0xff]].concat()), r#"("queue", -300)\xff"#);
        let stamp = Versionstamp::complete([0, 0, 0, 0, 0, 0, 1, 2, 0, 3], 4);
        assert_eq!(key(&pack(&(stamp, (true, 2.5)))), "(versionstamp 258.3/4, (true, 2.5))");
        let stamp = Versionstamp::complete([0, 0, 0, 0, 0, 0, 0, 9, 1, 2], 0);
        assert_eq!(key(&pack(&(stamp,))), "(versionstamp 9.258/0,)");
        assert_eq!(key(b"plain \x80"), r#""plain \x80""#);
        assert_eq!(key(b""), r#""""#);
        // Nested too deeply to be decoded on the stack.
        assert!(key(&[5; 9_000]).ends_with("... (9000 bytes)\""));
    }

    #[test]
    fn every_kind_of_tuple_element_is_shown() {
        let stamp = Versionstamp::incomplete(7);
        let bytes = foundationdb_tuple::Bytes::from(&b"\xff"[..]);
        let elements = (None::<i64>, bytes, "a", (), (1, 2), -3, 1.5_f32, -2.5, false, stamp);
        let shown = r#"(null, b"\xff", "a", (), (1, 2), -3, 1.5, -2.5, false, incomplete versionstamp/7)"#;
        assert_eq!(key(&pack(&elements)), shown);
        let eleven = [&[0x1d, 9][..], &[1; 9], &[0x30], &[0x11; 16]].concat();
        assert_eq!(key(&eleven), "(18519084246547628289, 11111111-1111-1111-1111-111111111111)");
    }

    #[test]
    fn only_the_first_bytes_are_shown() {
        assert_eq!(raw(&[b'x'; 64]), format!("\"{}\"", "x".repeat(64)));
        assert_eq!(raw(&[b'x'; 65]), format!("\"{}... (65 bytes)\"", "x".repeat(64)));
    }

    #[test]
    fn values_are_shown_as_text_number_tuple_or_bytes() {
        assert_eq!(value(b""), r#""""#);
        assert_eq!(value(b"paid"), r#""paid""#);
        assert_eq!(value(b"8 bytes!"), r#""8 bytes!""#);
        assert_eq!(value(&7_i64.to_le_bytes()), r#""\x07\x00\x00\x00\x00\x00\x00\x00" (7)"#);
        assert_eq!(value(&1_i64.to_le_bytes()), r#""\x01\x00\x00\x00\x00\x00\x00\x00" (1)"#);
        assert_eq!(value(&258_i64.to_le_bytes()), r#""\x02\x01\x00\x00\x00\x00\x00\x00" (258)"#);
        assert_eq!(value(&pack(&("a", 1_000))), r#"("a", 1000)"#);
        assert_eq!(value(&pack(&("a", None::<i64>))), r#""\x02a\x00\x00""#);
        assert_eq!(value(b"\xff\x00"), r#""\xff\x00""#);
        assert_eq!(value(&[1, 0, 0, 0]), r#""\x01\x00\x00\x00""#);
    }

    #[test]
    fn events_of_the_cluster_are_shown_by_name() {
        let shown = |kind, node, a, b| {
            let entry =
                of_event(&Event { at: 7, node: NodeId(node), kind, a, b }, &|node| format!("m{}", node.0));
            entry.map(|entry| format!("{}: {}", entry.who, entry.text))
        };
        let fault = Family::ALL[0];
        for (kind, node, a, b, text) in [
            (Kind::Fault, 0, fault as u64, 0, Some(format!("fault: {}", fault.name()))),
            (Kind::Fault, 3, fault as u64, 0, Some(format!("fault: {} at m3", fault.name()))),
            (Kind::Kill, 3, 0, 0, Some("cluster: m3 is killed".to_owned())),
            (Kind::Start, 3, 1, 0, Some("cluster: m3 is started again".to_owned())),
            (Kind::Pause, 3, 0, 0, Some("cluster: m3 is paused".to_owned())),
            (Kind::Resume, 3, 0, 0, Some("cluster: m3 is resumed".to_owned())),
            (Kind::RecoveryBegin, 0, 2, 0, Some("cluster: a recovery begins".to_owned())),
            (Kind::RecoveryEnd, 0, 2, 99, Some("cluster: the recovery ends at version 99".to_owned())),
            (Kind::Act, 0, 2, 0, Some("cluster: -- hurt --".to_owned())),
            // How a cluster starts is of no interest.
            (Kind::Start, 3, 0, 0, None),
            (Kind::RecoveryBegin, 0, 1, 0, None),
            (Kind::RecoveryEnd, 0, 1, 99, None),
        ] {
            assert_eq!(shown(kind, node, a, b), text);
        }
    }

    /// The text of an attempt.
    fn shown(history: &History, id: AttemptId) -> String {
        let attempt = history.attempts[id.0 as usize].as_ref().expect("an attempt");
        of_attempt(id.0 as usize, attempt, history, &Truth::of(history)).text
    }

    #[test]
    fn the_end_of_an_attempt_is_shown_with_what_the_log_knows_of_it() {
        let (unknown, late) = (Error::COMMIT_UNKNOWN_RESULT, Error::TRANSACTION_TIMED_OUT);
        let too_old = Error::TRANSACTION_TOO_OLD;
        let committed = Reported::Committed { version: 5, batch_index: 0 };
        for (reported, sent, logged, end) in [
            (Reported::Nothing, false, false, "dropped".to_owned()),
            (
                Reported::Nothing,
                true,
                true,
                "dropped during its commit; it committed at version 5".to_owned(),
            ),
            (Reported::Nothing, true, false, "dropped during its commit; it did not commit".to_owned()),
            (Reported::ReadOnly, false, false, "committed, read-only".to_owned()),
            (committed, true, true, "committed at version 5".to_owned()),
            (Reported::Failed(unknown), true, true, format!("failed: {unknown}; it committed at version 5")),
            (Reported::Failed(late), true, false, format!("failed: {late}; it did not commit")),
            // Its reads ran out of time: there is no commit of which anything could be known.
            (Reported::Failed(late), false, false, format!("failed: {late}")),
            (Reported::Failed(too_old), true, false, format!("failed: {too_old}")),
        ] {
            let mut story = Story::default();
            let (id, attempt) = story.attempt(0, Vec::new());
            (attempt.commit_sent, attempt.reported) = (sent.then_some(1), reported);
            if logged {
                story.log(5, vec![(Some(id), 0, Vec::new())]);
            }
            let text = shown(&story.history, id);
            assert_eq!(text.rsplit_once("=> ").expect("an end").1, end);
        }
    }

    #[test]
    fn a_conflict_is_shown_with_the_first_later_write_of_what_was_read() {
        let at = |key: &'static str| KeyRange::new(key, format!("{key}\0"));
        let set = |key: &'static str| Mutation::Set(key.into(), "".into());
        let add = Mutation::Atomic("b".into(), "1".into(), MutationType::Add);
        let clear = Mutation::ClearRange(KeyRange::new("a", "c"));
        // Versions and what each of them wrote; the conflicting attempt read at version 10.
        let conflict = |log: Vec<(Version, Mutation)>| {
            let mut story = Story::default();
            let (id, attempt) = story.attempt(10, Vec::new());
            attempt.read_ranges = vec![at("x"), at("b")];
            attempt.reported = Reported::Failed(Error::NOT_COMMITTED);
            for (version, mutation) in log {
                story.log(version, vec![(None, 0, Vec::new()), (None, 1, vec![mutation])]);
            }
            let text = shown(&story.history, id);
            text.rsplit_once("; ").expect("a reason").1.to_owned()
        };
        let unexplained = conflict(Vec::new());
        assert!(unexplained.starts_with("no committed write explains it"), "{unexplained}");
        // The state at the read version contains what was written at it.
        assert_eq!(conflict(vec![(9, set("b")), (10, set("b"))]), unexplained);
        assert_eq!(conflict(vec![(11, set("a"))]), unexplained);
        assert_eq!(conflict(vec![(11, set("b")), (12, set("x"))]), "\"b\" was written at version 11");
        assert_eq!(conflict(vec![(10, set("b")), (12, set("x"))]), "\"x\" was written at version 12");
        assert_eq!(conflict(vec![(11, set("c")), (13, add)]), "\"b\" was written at version 13");
        assert_eq!(conflict(vec![(11, clear)]), "\"b\" was written at version 11");
    }

    #[test]
    fn a_write_without_a_conflict_range_is_not_the_reason_of_a_conflict() {
        let mut story = Story::default();
        let set = |key: &'static str| Mutation::Set(key.into(), "".into());
        let ranges = [None, Some(vec![KeyRange::new("a", "b")]), None];
        let writers = ranges.map(|ranges| {
            let (id, attempt) = story.attempt(1, Vec::new());
            attempt.write_ranges = ranges;
            id
        });
        let (reader, attempt) = story.attempt(1, Vec::new());
        attempt.read_ranges = vec![KeyRange::new("b", "c")];
        attempt.reported = Reported::Failed(Error::NOT_COMMITTED);
        for (version, (writer, key)) in (2..).zip(writers.into_iter().zip(["a", "b", "b"])) {
            story.log(version, vec![(Some(writer), 0, vec![set(key)])]);
        }
        let text = shown(&story.history, reader);
        assert!(text.ends_with("; \"b\" to \"c\" was written at version 4 by attempt 2"), "{text}");
    }

    #[test]
    fn outcomes_are_shown_as_the_client_knows_them() {
        let error = Error::NOT_COMMITTED;
        for (shown, expected) in [
            (Outcome::Answered(AnyValue::new(5)), "returns 5".to_owned()),
            (Outcome::Failed(error), format!("fails without an effect: {error}")),
            (Outcome::Unknown(error), format!("has an unknown outcome: {error}")),
            (Outcome::Violated("a gap".to_owned()), "violates the layer's promise: a gap".to_owned()),
        ] {
            assert_eq!(outcome(&shown), expected);
        }
    }

    /// Every call with every kind of result.
    fn every_call() -> Vec<Call> {
        let (snapshot, serializable) = (Isolation::Snapshot, Isolation::Serializable);
        let (first, after) = (KeySelector::first_greater_or_equal("a"), KeySelector::first_greater_than("c"));
        let rows = |count: u8| (0..count).map(|n| KeyValue::new(vec![b'a' + n], vec![b'0' + n])).collect();
        let get = |isolation, answer: Option<Option<&'static str>>| Call::Get {
            key: "a".into(),
            isolation,
            answer: answer.map(|found| found.map(Bytes::from)),
        };
        let get_key = |isolation, answer: Option<&'static str>| Call::GetKey {
            selector: after.clone(),
            isolation,
            answer: answer.map(Bytes::from),
        };
        let get_range = |limit, reverse, isolation, answer: Option<(u8, bool)>| Call::GetRange {
            begin: first.clone(),
            end: after.clone(),
            limit,
            reverse,
            isolation,
            answer: answer.map(|(count, more)| (rows(count), more)),
        };
        let atomic = |key: &'static [u8], operand: &'static [u8], op| {
            Call::Write(Mutation::Atomic(Bytes::from_static(key), Bytes::from_static(operand), op))
        };
        vec![
            get(serializable, None),
            get(snapshot, Some(None)),
            get(serializable, Some(Some("found"))),
            get_key(snapshot, None),
            get_key(serializable, Some("d")),
            get_range(0, false, serializable, None),
            get_range(0, true, serializable, Some((0, false))),
            get_range(1, false, serializable, Some((1, true))),
            get_range(2, true, snapshot, Some((2, false))),
            get_range(0, false, serializable, Some((MOST_ROWS as u8, false))),
            get_range(0, false, serializable, Some((MOST_ROWS as u8 + 1, true))),
            Call::Write(Mutation::Set("a".into(), "value".into())),
            Call::Write(Mutation::ClearRange(KeyRange::new("a", "c"))),
            atomic(b"a", b"operand", MutationType::ByteMax),
            atomic(b"key\x03\0\0\0", b"value", MutationType::SetVersionstampedKey),
            atomic(b"key", b"value\x05\0\0\0", MutationType::SetVersionstampedValue),
            atomic(b"key", b"val", MutationType::SetVersionstampedValue),
        ]
    }

    #[test]
    fn a_transcript_shows_operations_attempts_and_faults_by_time() {
        let entry = |at, client, text: &str| TranscriptEntry { at, who: who(client), text: text.to_owned() };
        let mut story = Story::default();
        let mut record = |client, operation, ended, version: Option<Version>, calls| {
            let (_, attempt) = story.attempt(0, calls);
            (attempt.client, attempt.operation, attempt.ended) = (client, operation, ended);
            (attempt.read_version, attempt.version_requested) = (version, ended / 2);
        };
        record(SETTER, None, 1_000_000, None, Vec::new());
        record(ClientId(1), Some(0), 3_000_000_000, Some(7), every_call());
        record(AUDITOR, None, 4_000_000_000, Some(8), Vec::new());
        record(CHECKER, None, 4_000_000_000, Some(8), Vec::new());
        // An attempt of a client that died.
        story.history.reserve();
        let event = |at, kind, node, a| Event { at, node: NodeId(node), kind, a, b: 0 };
        let text = text_of(
            vec![entry(2_000_000_000, ClientId(1), "operation 0 begins: Deposit")],
            vec![entry(3_000_000_000, ClientId(1), "operation 0 returns 5")],
            &story.history,
            &[event(500, Kind::Act, 0, 1), event(2_500_000_000, Kind::Kill, 3, 0)],
            &|node| format!("machine {}", node.0),
        );
        insta::assert_snapshot!(text);
    }

    #[test]
    fn selectors_are_shown_by_what_they_select() {
        let shown = |or_equal, offset| selector(&KeySelector::new("a", or_equal, offset));
        assert_eq!(shown(false, 1), "\"a\"");
        assert_eq!(shown(true, 1), "after \"a\"");
        assert_eq!(shown(true, 0), "(last <= \"a\" + 0)");
        assert_eq!(shown(false, -2), "(last < \"a\" + -2)");
    }

    #[test]
    fn ranges_are_shown_as_two_ends_or_one_key() {
        let to = |begin: &[u8], end: &[u8]| {
            range(&KeyRange::new(Bytes::copy_from_slice(begin), Bytes::copy_from_slice(end)))
        };
        assert_eq!(to(&pack(&("a",)), &[&pack(&("a",))[..], b"\0"].concat()), r#"("a",)"#);
        assert_eq!(to(&pack(&("a",)), &pack(&("b",))), r#"("a",) to ("b",)"#);
    }
}
