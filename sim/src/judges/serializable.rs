//! Serializable: every attempt reads the state at its read version, and the serializable reads of each
//! committed transaction are also valid in the state just before its commit. Both include the transaction's
//! own writes, in the order of the calls. A write without a write conflict range (option 30) does not
//! conflict: later reads of its keys are not checked at the commit.

use super::{
    Appends, Evidence, Joined, Judgement,
    keyspace::{Keyspace, Undo},
    may_join,
    writes::{LAST, Place, Writes},
};
use super::{Objection, Witness};
use crate::{
    history::{Attempt, Call},
    ids::AttemptId,
    proto::{KeyRange, LogEntry, LoggedTransaction, Mutation, Version},
};
use bytes::Bytes;
use shaketable_tx::{Isolation, KeySelector, MutationType, key_after, show};
use std::borrow::Cow;

/// Claims that every attempt read the state at its read version, and that the serializable reads of each
/// committed transaction are valid in the state just before its commit.
pub fn judge(evidence: &Evidence<'_>) -> Judgement {
    Replay::default().end(evidence)
}

/// The replay of the log up to a version, beside the attempts that read the states on its way.
#[derive(Default)]
pub struct Replay {
    /// The state at the version.
    pub state: Keyspace,
    /// The first objection: attempts after it are not checked.
    pub objection: Option<Box<Objection>>,
    until: Option<Version>,
    undo: Undo,
    /// What was written without a write conflict range, and when, ascending.
    without_conflict: Vec<(Version, KeyRange)>,
}

impl Replay {
    /// Replays the entries up to a version, and checks the attempts that are kept: those that read at the
    /// versions on the way, and those that committed at them.
    pub fn advance(&mut self, evidence: &Evidence<'_>, until: Version) {
        let since = self.until;
        let passed = |version: &Version| since.is_none_or(|since| since < *version) && *version <= until;
        let read = |(id, attempt): (AttemptId, &Attempt)| Some((attempt.read_version.filter(passed)?, id));
        let mut by_version: Vec<(Version, AttemptId)> =
            evidence.history.numbered().filter_map(read).collect();
        by_version.sort();
        let mut readers = by_version.into_iter().peekable();
        let entries = evidence.truth.entries.iter();
        for entry in entries.filter(|entry| passed(&entry.version)) {
            while let Some((version, id)) = readers.next_if(|(version, _)| *version < entry.version) {
                self.reads(evidence, id, version);
            }
            entry.transactions.iter().for_each(|tx| self.commits(evidence, entry, tx));
        }
        readers.for_each(|(version, id)| self.reads(evidence, id, version));
        self.until = Some(until);
    }

    /// Forgets which writes were made without a conflict range up to a version: nobody read so long ago.
    pub fn forget(&mut self, until: Version) {
        self.without_conflict.retain(|(version, _)| *version > until);
    }

    /// Replays what is left, to the end of the log.
    pub fn end(mut self, evidence: &Evidence<'_>) -> Judgement {
        self.advance(evidence, Version::MAX);
        self.objection.map_or(Ok(()), Err)
    }

    /// An attempt has read at the version of the state.
    fn reads(&mut self, evidence: &Evidence<'_>, id: AttemptId, version: Version) {
        let how = || format!("read at version {version}");
        self.check(evidence, id, how, (version, LAST), false);
    }

    /// A transaction commits.
    fn commits(&mut self, evidence: &Evidence<'_>, entry: &LogEntry, tx: &LoggedTransaction) {
        let attempt = tx.attempt.and_then(|id| Some((id, evidence.history.attempt(id)?)));
        if let Some((id, attempt)) = attempt {
            // If nothing was written since the read version, the reads have been checked already.
            let moved = attempt.read_version != Some(entry.previous)
                || entry.transactions.first().map(|t| t.batch_index) != Some(tx.batch_index);
            if moved {
                let how = || format!("committed at version {}", entry.version);
                self.check(evidence, id, how, before(entry.version, tx.batch_index), true);
            }
        }
        let written = attempt.and_then(|(_, attempt)| attempt.write_ranges.as_deref());
        for mutation in &tx.mutations {
            self.state.apply(mutation, None);
            let range = touched(mutation);
            if written.is_some_and(|written| !covers(written, &range)) {
                self.without_conflict.push((entry.version, range));
            }
        }
    }

    /// Checks an attempt, unless there is an objection already.
    fn check(
        &mut self,
        evidence: &Evidence<'_>,
        id: AttemptId,
        how: impl Fn() -> String,
        at: Place,
        at_commit: bool,
    ) {
        let (None, Some(attempt)) = (&self.objection, evidence.history.attempt(id)) else { return };
        let skipped = at_commit.then_some(&self.without_conflict[..]);
        if let Err(wrong) = check(attempt, &mut self.state, &mut self.undo, skipped) {
            self.objection = Some(objection(evidence, id, &how(), at, *wrong));
        }
    }
}

/// The last place before a transaction.
fn before(version: Version, batch_index: u16) -> Place {
    match batch_index {
        0 => (version - 1, LAST),
        index => (version, u32::from(index) - 1),
    }
}

/// The objection to an attempt whose read does not fit the state at a place.
fn objection(evidence: &Evidence<'_>, id: AttemptId, how: &str, at: Place, wrong: Wrong) -> Box<Objection> {
    let who = evidence.history.attempt(id).map_or_else(String::new, |attempt| {
        let op = attempt.operation.map_or_else(|| "no operation".to_owned(), |op| format!("operation {op}"));
        format!(" (client {}, {op})", attempt.client.0)
    });
    let mut attempts = vec![id];
    if !wrong.is_own {
        let writes = Writes::of(evidence.history, evidence.truth);
        attempts.extend(wrong.keys.iter().filter_map(|key| writes.last(key, at)?.by));
    }
    let witness = Witness {
        attempts,
        keys: wrong.keys,
        expected: Some(wrong.expected),
        found: Some(wrong.found),
        ..Witness::default()
    };
    let message = format!("attempt {}{who} {how}: {}", id.0, wrong.message);
    Box::new(Objection { message, witness, ..Objection::default() })
}

/// A read that does not fit the state.
struct Wrong {
    message: String,
    /// The keys at which they differ.
    keys: Vec<Bytes>,
    /// What the state has.
    expected: String,
    /// What was read.
    found: String,
    /// Whether the transaction itself had written the key before, and the read sees that.
    is_own: bool,
}

impl Wrong {
    fn new(message: String, keys: &[&Bytes], expected: String, found: String) -> Box<Wrong> {
        let keys = keys.iter().copied().cloned().collect();
        Box::new(Wrong { message, keys, expected, found, is_own: false })
    }
}

/// The keys that a mutation may change.
fn touched(mutation: &Mutation) -> KeyRange {
    match mutation {
        Mutation::Set(key, _) | Mutation::Atomic(key, ..) => KeyRange::new(key.clone(), key_after(key)),
        Mutation::ClearRange(range) => range.clone(),
    }
}

/// Whether each key of `range` lies in one of `ranges`.
fn covers(ranges: &[KeyRange], range: &KeyRange) -> bool {
    let mut begin = &range.begin;
    while *begin < range.end {
        match ranges.iter().filter(|r| r.begin <= *begin && *begin < r.end).map(|r| &r.end).max() {
            Some(end) => begin = end,
            None => return false,
        }
    }
    true
}

/// Whether a read may overlap one of these ranges.
fn may_touch(call: &Call, ranges: &[&KeyRange]) -> bool {
    match call {
        Call::Get { key, .. } => ranges.iter().any(|range| range.contains(key)),
        Call::GetRange { begin, end, .. } if is_plain(begin) && is_plain(end) => {
            let read = KeyRange::new(begin.key.clone(), end.key.clone());
            ranges.iter().any(|range| range.intersects(&read))
        }
        // Other selectors can resolve to any key.
        _ => !ranges.is_empty(),
    }
}

/// Whether a selector is `first_greater_or_equal`.
fn is_plain(selector: &KeySelector) -> bool {
    selector.offset == 1 && !selector.or_equal
}

/// The writes of an attempt so far, as its client sends them, and its appends if some may be joined.
struct OwnWrites<'a>(Vec<Cow<'a, Mutation>>, Option<Appends>, Option<Version>);

impl<'a> OwnWrites<'a> {
    fn of(attempt: &Attempt) -> OwnWrites<'a> {
        OwnWrites(Vec::new(), may_join(&attempt.calls).then(Appends::default), attempt.read_version)
    }

    /// Applies the next write to the state that the attempt sees.
    fn write(&mut self, mutation: &'a Mutation, state: &mut Keyspace, undo: &mut Undo) {
        let OwnWrites(writes, appends, read_version) = self;
        let join = |appends: &mut Appends| {
            appends.write(writes.len(), mutation, *read_version, |key| state.get(key).cloned())
        };
        match (appends.as_mut().and_then(join), mutation) {
            (Some(Joined { begun, sent, value }), Mutation::Atomic(key, ..)) => {
                state.put(key, value, undo);
                writes[begun] = Cow::Owned(sent);
            }
            _ => {
                state.apply(mutation, Some(undo));
                writes.push(Cow::Borrowed(mutation));
            }
        }
    }
}

/// Replays the calls of an attempt on `state`, compares its reads, and reverts its writes. `at_commit` is set
/// for the check at the commit, which skips snapshot reads and reads of these ranges, if they were written
/// after the read version.
fn check(
    attempt: &Attempt,
    state: &mut Keyspace,
    undo: &mut Undo,
    at_commit: Option<&[(Version, KeyRange)]>,
) -> Result<(), Box<Wrong>> {
    let skipped = at_commit.unwrap_or_default();
    let since = skipped.partition_point(|(version, _)| Some(*version) <= attempt.read_version);
    let skipped: Vec<&KeyRange> = skipped[since..].iter().map(|(_, range)| range).collect();
    let mut written = OwnWrites::of(attempt);
    let mut wrong = Ok(());
    for (number, call) in attempt.calls.iter().enumerate() {
        let isolation = match call {
            Call::Write(mutation) => {
                written.write(mutation, state, undo);
                continue;
            }
            Call::Get { isolation, .. }
            | Call::GetKey { isolation, .. }
            | Call::GetRange { isolation, .. } => *isolation,
        };
        if at_commit.is_some() && (isolation == Isolation::Snapshot || may_touch(call, &skipped)) {
            continue;
        }
        let own = attempt.own_writes.at(number);
        let sees_own = own.are_seen(isolation);
        if !sees_own {
            state.revert(undo);
        }
        let differs = counts_cleared_keys(call, &written.0)
            || (own.unreadable && meets_versionstamps(call, &written.0));
        if !(sees_own && differs) {
            wrong = compare(call, state);
        }
        if !sees_own {
            written.0.iter().for_each(|mutation| state.apply(mutation, Some(undo)));
        }
        if let Err(wrong) = &mut wrong {
            let wrote = |key: &Bytes| written.0.iter().any(|mutation| touched(mutation).contains(key));
            wrong.is_own = sees_own && wrong.keys.iter().any(wrote);
            break;
        }
    }
    state.revert(undo);
    wrong
}

/// Whether a selector may resolve to a key that the transaction itself has cleared. When it resolves a
/// selector, FoundationDB's client treats a key that was cleared by `CompareAndClear` in the same transaction
/// as present (`resolveKeySelectorFromCache` checks the kind of the write, not its result), and so does the
/// simulated client. The result of the selector then differs from the state.
fn counts_cleared_keys(call: &Call, written: &[Cow<'_, Mutation>]) -> bool {
    let resolves = match call {
        Call::GetKey { .. } => true,
        Call::GetRange { begin, end, .. } => !is_plain(begin) || !is_plain(end),
        _ => false,
    };
    resolves && written.iter().any(|m| matches!(&**m, Mutation::Atomic(_, _, MutationType::CompareAndClear)))
}

/// Whether a read may meet a key of which the versionstamp is not known yet. With option 1100 the client
/// answers it with what the transaction holds: the operand of the write, which is no state of the database.
fn meets_versionstamps(call: &Call, written: &[Cow<'_, Mutation>]) -> bool {
    written.iter().any(|mutation| match &**mutation {
        // Its key may be any.
        Mutation::Atomic(_, _, MutationType::SetVersionstampedKey) => true,
        Mutation::Atomic(_, _, MutationType::SetVersionstampedValue) => {
            may_touch(call, &[&touched(mutation)])
        }
        _ => false,
    })
}

fn compare(call: &Call, state: &Keyspace) -> Result<(), Box<Wrong>> {
    match call {
        Call::Get { key, answer: Some(answer), .. } if !is_system(key) => {
            let holds = state.get(key);
            if holds != answer.as_ref() {
                let value = |v: Option<&Bytes>| v.map_or("nothing".to_owned(), |v| show::value(v));
                let (found, expected) = (value(answer.as_ref()), value(holds));
                let message =
                    format!("get {} returned {found}, but the state has {expected}", show::key(key));
                return Err(Wrong::new(message, &[key], expected, found));
            }
        }
        Call::GetKey { selector, answer: Some(answer), .. } if !is_system(&selector.key) => {
            let key = state.resolve(selector);
            if key != answer {
                let (found, expected) = (show::key(answer), show::key(&key));
                let message =
                    format!("get_key {selector:?} returned {found}, but the state resolves it to {expected}");
                return Err(Wrong::new(message, &[&key, answer], expected, found));
            }
        }
        Call::GetRange { begin, end, limit, reverse, answer: Some((rows, more)), .. }
            if !is_system(&begin.key) && !is_system(&end.key) =>
        {
            let range = || format!("{} to {}", show::key(&begin.key), show::key(&end.key));
            let shown = |key: &Bytes, value: &Bytes| format!("{} = {}", show::key(key), show::value(value));
            let mut expected = state.range(begin, end, *reverse);
            for row in rows.iter() {
                match expected.next() {
                    Some((key, value)) if *key == row.key && *value == row.value => {}
                    other => {
                        let found = shown(&row.key, &row.value);
                        let holds = other.map_or("no further row".to_owned(), |(k, v)| shown(k, v));
                        let message =
                            format!("range {} returned {found}, but the state has {holds}", range());
                        let keys: Vec<&Bytes> =
                            other.map(|(key, _)| key).into_iter().chain([&row.key]).collect();
                        return Err(Wrong::new(message, &keys, holds, found));
                    }
                }
            }
            if *limit > 0 && rows.len() > *limit {
                let message = format!("a range with limit {limit} returned {} rows", rows.len());
                let (most, found) = (format!("at most {limit} rows"), format!("{} rows", rows.len()));
                return Err(Wrong::new(message, &[&rows[*limit].key], most, found));
            }
            if !more
                && (*limit == 0 || rows.len() < *limit)
                && let Some((key, value)) = expected.next()
            {
                let message = format!(
                    "range {} ended after {} rows and missed {}",
                    range(),
                    rows.len(),
                    show::key(key)
                );
                return Err(Wrong::new(message, &[key], shown(key, value), "no further row".to_owned()));
            }
        }
        _ => {}
    }
    Ok(())
}

/// System and special keys are not part of the state that the log replays.
fn is_system(key: &[u8]) -> bool {
    key.len() > 1 && key[0] == 0xff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_covered_by_ranges_without_a_gap() {
        let range = |begin: &'static str, end: &'static str| KeyRange::new(begin, end);
        let pieces = [range("c", "f"), range("a", "c"), range("b", "d")];
        assert!(covers(&pieces, &range("a", "f")));
        assert!(covers(&pieces, &range("b", "e")));
        assert!(!covers(&pieces, &range("a", "g")));
        assert!(!covers(&[range("a", "b"), range("c", "d")], &range("a", "d")));
        assert!(covers(&[], &range("a", "a")));
    }
}
