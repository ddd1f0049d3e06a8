//! Which transaction wrote which key, for the witnesses of findings: from what a transaction read to those
//! that wrote it.
//!
//! It is built from the log once a claim is broken, and not in a run that passes.

use super::Truth;
use super::{SESSIONS, Witness};
use crate::{
    history::{Attempt, Call, History},
    ids::AttemptId,
    proto::{KeyRange, Mutation, Version},
};
use bytes::Bytes;
use shaketable_tx::{KeyValue, key_after};
use std::{cmp::Reverse, collections::BTreeMap};

/// A place in the order of commits: version and batch index.
pub type Place = (Version, u32);

/// The batch index of a place after every transaction of its version.
pub const LAST: u32 = u32::MAX;

/// The place after every transaction.
pub const END: Place = (Version::MAX, LAST);

/// One write of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Where it committed.
    pub at: Place,
    /// The attempt, if it is in the history.
    pub by: Option<AttemptId>,
    /// Whether the key was cleared.
    clears: bool,
}

/// The writes of each key, ascending by place.
pub struct Writes<'a> {
    history: &'a History,
    of: BTreeMap<Bytes, Vec<Written>>,
}

impl<'a> Writes<'a> {
    /// The writes of a run.
    pub fn of(history: &'a History, truth: &Truth) -> Writes<'a> {
        let mut of: BTreeMap<Bytes, Vec<Written>> = BTreeMap::new();
        for entry in &truth.entries {
            for tx in &entry.transactions {
                let written =
                    Written { at: (entry.version, u32::from(tx.batch_index)), by: tx.attempt, clears: false };
                for mutation in &tx.mutations {
                    match mutation {
                        Mutation::Set(key, _) | Mutation::Atomic(key, ..) => {
                            of.entry(key.clone()).or_default().push(written);
                        }
                        Mutation::ClearRange(range) if range.begin < range.end => {
                            let cleared = of.range_mut(range.begin.clone()..range.end.clone());
                            let present = cleared.filter(|(_, writes)| writes.last().is_some_and(is_present));
                            present.for_each(|(_, writes)| writes.push(Written { clears: true, ..written }));
                        }
                        Mutation::ClearRange(_) => {}
                    }
                }
            }
        }
        Writes { history, of }
    }

    /// The last write of a key up to a place.
    pub fn last(&self, key: &[u8], until: Place) -> Option<Written> {
        last_of(self.of.get(key)?, until)
    }

    /// The keys that an attempt changed.
    pub fn by(&self, attempt: AttemptId) -> Vec<Bytes> {
        let is_its = |written: &Written| written.by == Some(attempt);
        let keys = self.of.iter().filter(|(_, writes)| writes.iter().any(is_its));
        matters(keys.map(|(key, _)| key.clone()).collect(), |key| key)
    }

    /// The attempts of operations that committed at a version.
    pub fn at(&self, version: Version) -> Vec<AttemptId> {
        let writes = self.of.values().flatten().filter(|written| written.at.0 == version);
        let mut at: Vec<(Place, AttemptId)> =
            writes.filter_map(|written| Some((written.at, self.operation(written)?))).collect();
        at.sort();
        at.dedup();
        at.into_iter().map(|(_, by)| by).collect()
    }

    /// What reads of these ranges at a place saw, as far as operations wrote it: the keys with their last
    /// writers, the latest first.
    pub fn seen(&self, spans: &[KeyRange], at: Place) -> Vec<(Bytes, AttemptId)> {
        let mut seen = Vec::new();
        for span in spans {
            let last = |(key, writes): (&Bytes, &Vec<Written>)| Some((key.clone(), last_of(writes, at)?));
            let mut keys: Vec<(Bytes, Written)> = self.in_span(span).filter_map(last).collect();
            if keys.iter().any(|(_, written)| is_present(written)) {
                keys.retain(|(_, written)| is_present(written));
            } else {
                // Nothing is there: the last transaction that cleared something explains it.
                keys = keys.into_iter().min_by_key(|(_, written)| Reverse(written.at)).into_iter().collect();
            }
            seen.extend(keys);
        }
        self.latest_first(seen)
    }

    /// What operations wrote in these ranges after a place and before another one, the latest first.
    pub fn between(&self, spans: &[KeyRange], after: Place, before: Place) -> Vec<(Bytes, AttemptId)> {
        let within = |written: &&Written| after < written.at && written.at < before;
        let each = spans.iter().flat_map(|span| self.in_span(span));
        let each = each
            .flat_map(|(key, writes)| writes.iter().filter(within).map(|written| (key.clone(), *written)));
        self.latest_first(each.collect())
    }

    fn in_span<'b>(
        &'b self,
        span: &KeyRange,
    ) -> impl Iterator<Item = (&'b Bytes, &'b Vec<Written>)> + use<'b> {
        let end = span.end.clone().max(span.begin.clone());
        self.of.range(span.begin.clone()..end)
    }

    fn latest_first(&self, mut writes: Vec<(Bytes, Written)>) -> Vec<(Bytes, AttemptId)> {
        writes.sort_by(|(a, one), (b, other)| other.at.cmp(&one.at).then_with(|| a.cmp(b)));
        let by = |(key, written): (Bytes, Written)| Some((key, self.operation(&written)?));
        matters(writes.into_iter().filter_map(by).collect(), |(key, _)| key)
    }

    /// The attempt, if it is one of an operation.
    fn operation(&self, written: &Written) -> Option<AttemptId> {
        let by = written.by?;
        self.history.attempt(by)?.operation.map(|_| by)
    }
}

impl Witness {
    /// Adds keys and those who wrote them.
    pub fn add(&mut self, writes: Vec<(Bytes, AttemptId)>) {
        let (keys, attempts): (Vec<Bytes>, Vec<AttemptId>) = writes.into_iter().unzip();
        self.keys.extend(keys);
        self.attempts.extend(attempts);
    }
}

fn is_present(written: &Written) -> bool {
    !written.clears
}

fn last_of(writes: &[Written], until: Place) -> Option<Written> {
    writes[..writes.partition_point(|written| written.at <= until)].last().copied()
}

/// Whether a key is a part of the stored sessions of clients.
fn is_session(key: &[u8]) -> bool {
    key.starts_with(SESSIONS)
}

/// Those that are not about the records of sessions, unless all of them are.
fn matters<T>(mut all: Vec<T>, key: impl Fn(&T) -> &Bytes) -> Vec<T> {
    if all.iter().any(|one| !is_session(key(one))) {
        all.retain(|one| !is_session(key(one)));
    }
    all
}

/// The keys that an attempt wrote, whether or not it committed.
pub fn written(attempt: &Attempt) -> Vec<Bytes> {
    let key = |call: &Call| match call {
        Call::Write(Mutation::Set(key, _) | Mutation::Atomic(key, ..)) => Some(key.clone()),
        Call::Write(Mutation::ClearRange(range)) => Some(range.begin.clone()),
        _ => None,
    };
    matters(attempt.calls.iter().filter_map(key).collect(), |key| key)
}

/// The ranges that an attempt read, one for each read that was answered.
pub fn spans(attempt: &Attempt) -> Vec<KeyRange> {
    let span = |call: &Call| match call {
        Call::Get { key, answer: Some(_), .. } => Some(point(key)),
        Call::GetKey { selector, answer: Some(found), .. } => Some(resolved(&selector.key, found)),
        Call::GetRange { begin, end, reverse, answer: Some((rows, more)), .. } => {
            let asked = KeyRange::new(begin.key.clone(), end.key.clone());
            Some(scanned(asked, rows, *reverse, *more))
        }
        _ => None,
    };
    attempt.calls.iter().filter_map(span).collect()
}

/// A range of one key.
pub fn point(key: &[u8]) -> KeyRange {
    KeyRange::new(Bytes::copy_from_slice(key), key_after(key))
}

/// What the resolution of a selector reads.
pub fn resolved(from: &Bytes, found: &Bytes) -> KeyRange {
    KeyRange::new(from.min(found).clone(), key_after(from.max(found)))
}

/// The part of a range that was read until these rows were found.
pub fn scanned(asked: KeyRange, rows: &[KeyValue], reverse: bool, more: bool) -> KeyRange {
    let keys = || rows.iter().map(|row| &row.key);
    let (Some(first), Some(last)) = (keys().min(), keys().max()) else { return asked };
    let begin = if more && reverse { first.clone() } else { asked.begin.min(first.clone()) };
    let end = if more && !reverse { key_after(last) } else { asked.end.max(key_after(last)) };
    KeyRange::new(begin, end)
}
