//! Which keys the operations of a run read and wrote, and in which order they took effect.

use bytes::Bytes;
use shaketable_sim::{
    history::{Attempt, Call, History, Reported},
    proto::{KeyRange, Mutation, Version},
};
use shaketable_tx::{KeySelector, MutationType, key_after};
use std::collections::{BTreeMap, BTreeSet};

/// An operation: its client and its index in the plan.
pub(super) type Operation = (usize, usize);

/// A byte that is greater than the first byte of every versionstamp.
const ABOVE_STAMPS: u8 = 0xff;

/// What the operations of a run read and wrote.
#[derive(Clone, Debug, Default)]
pub struct Accesses(BTreeMap<Operation, Access>);

/// What one operation read and wrote.
#[derive(Clone, Debug, Default)]
struct Access {
    /// Its first read version.
    begun: Option<Version>,
    /// The version, and the place in its batch, of its last commit, or its last read version.
    ended: (Version, u16),
    reads: Vec<KeyRange>,
    writes: Vec<KeyRange>,
}

impl Accesses {
    /// The accesses of a run.
    pub(crate) fn of(history: &History) -> Accesses {
        let mut accesses = Accesses::default();
        for attempt in history.attempts.iter().flatten() {
            if let Some(operation) = attempt.operation {
                let operation = (usize::from(attempt.client.0), operation as usize);
                accesses.0.entry(operation).or_default().add(attempt);
            }
        }
        accesses
    }

    /// How many pairs of overlapping ranges there are of which one of two operations wrote the one and the
    /// other operation read the other.
    pub(super) fn conflicts(&self, one: Operation, other: Operation) -> usize {
        let (Some(one), Some(other)) = (self.0.get(&one), self.0.get(&other)) else { return 0 };
        overlaps(&one.writes, &other.reads) + overlaps(&other.writes, &one.reads)
    }

    /// Whether an operation wrote something.
    pub(super) fn writes(&self, operation: Operation) -> bool {
        self.0.get(&operation).is_some_and(|access| !access.writes.is_empty())
    }

    /// Where each operation took effect among all operations of the run.
    pub(super) fn ranks(&self) -> BTreeMap<Operation, usize> {
        let order = self.in_order(self.0.keys().copied());
        order.into_iter().enumerate().map(|(rank, operation)| (operation, rank)).collect()
    }

    /// The operations that wrote the data of the explored ones: the last writers of what they read or
    /// overwrote, and the last writers of what those read or overwrote, and so on. At most `most`, in the
    /// order in which they took effect.
    pub(super) fn earlier_writers(&self, explored: &[Operation], most: usize) -> Vec<Operation> {
        let mut chosen: BTreeSet<Operation> = BTreeSet::new();
        let mut next: Vec<Operation> = explored.to_vec();
        while !next.is_empty() {
            let mut writers = Vec::new();
            for operation in &next {
                writers.extend(self.last_writers(*operation, explored));
            }
            next.clear();
            for writer in writers {
                if chosen.len() < most && chosen.insert(writer) {
                    next.push(writer);
                }
            }
        }
        self.in_order(chosen)
    }

    /// The last operations before this one that wrote what it read or wrote.
    fn last_writers(&self, operation: Operation, explored: &[Operation]) -> Vec<Operation> {
        /// The most writers that are taken for one operation.
        const MOST: usize = 3;
        let Some(access) = self.0.get(&operation) else { return Vec::new() };
        let Some(begun) = access.begun else { return Vec::new() };
        let precedes = |other: &Operation| explored.iter().all(|of| of.0 != other.0 || other.1 < of.1);
        let mut writers: Vec<(&Operation, &Access)> = self
            .0
            .iter()
            .filter(|(other, written)| precedes(other) && written.ended.0 <= begun)
            .filter(|(_, written)| {
                overlaps(&written.writes, &access.reads) + overlaps(&written.writes, &access.writes) > 0
            })
            .collect();
        writers.sort_by_key(|(_, written)| std::cmp::Reverse(written.ended));
        writers.into_iter().take(MOST).map(|(operation, _)| *operation).collect()
    }

    /// The next operations that read what these ones wrote, at most `most`.
    pub(super) fn later_readers(&self, explored: &[Operation], most: usize) -> Vec<Operation> {
        let own = || explored.iter().filter_map(|operation| self.0.get(operation));
        let Some(ended) = own().map(|access| access.ended).max() else { return Vec::new() };
        let follows = |other: &Operation| explored.iter().all(|of| of.0 != other.0 || other.1 > of.1);
        let reads = |access: &Access| own().any(|writer| overlaps(&writer.writes, &access.reads) > 0);
        let readers = self.0.iter().filter(|(other, access)| {
            follows(other) && access.begun.is_some_and(|begun| begun >= ended.0) && reads(access)
        });
        let mut readers = self.in_order(readers.map(|(operation, _)| *operation));
        readers.truncate(most);
        readers
    }

    fn in_order(&self, operations: impl IntoIterator<Item = Operation>) -> Vec<Operation> {
        let mut operations: Vec<Operation> = operations.into_iter().collect();
        operations.sort_by_key(|operation| (self.0.get(operation).map(|access| access.ended), *operation));
        operations
    }
}

impl Access {
    fn add(&mut self, attempt: &Attempt) {
        let (first, last) = (self.begun, attempt.read_version);
        self.begun = first.into_iter().chain(last).min();
        let is_committed = matches!(attempt.reported, Reported::Committed { .. });
        let ended = match attempt.reported {
            Reported::Committed { version, batch_index } => Some((version, batch_index)),
            _ => last.map(|version| (version, u16::MAX)),
        };
        self.ended = self.ended.max(ended.unwrap_or_default());
        for call in &attempt.calls {
            match call {
                Call::Write(mutation) if is_committed => self.writes.push(written(mutation)),
                Call::Write(_) => {}
                Call::Get { key, .. } => self.reads.push(of_key(key)),
                Call::GetKey { selector, answer, .. } => self.reads.push(resolved(selector, answer.as_ref())),
                Call::GetRange { begin, end, .. } => {
                    self.reads.push(KeyRange::new(begin.key.clone(), end.key.clone()));
                }
            }
        }
    }
}

fn of_key(key: &Bytes) -> KeyRange {
    KeyRange::new(key.clone(), key_after(key))
}

/// The keys between a selector and the key to which it was resolved.
fn resolved(selector: &KeySelector, answer: Option<&Bytes>) -> KeyRange {
    let answer = answer.unwrap_or(&selector.key);
    let (first, last) = (selector.key.clone().min(answer.clone()), selector.key.clone().max(answer.clone()));
    KeyRange::new(first, key_after(&last))
}

/// The keys that a mutation may have changed.
fn written(mutation: &Mutation) -> KeyRange {
    match mutation {
        Mutation::ClearRange(range) => range.clone(),
        // The versionstamp, whose place the last four bytes tell, is not known before the commit.
        Mutation::Atomic(key, _, MutationType::SetVersionstampedKey) => {
            let place = key.len().checked_sub(4).and_then(|at| key[at..].try_into().ok());
            let place = place.map_or(0, u32::from_le_bytes) as usize;
            let begin = key.slice(..place.min(key.len()));
            let end = [&begin[..], &[ABOVE_STAMPS]].concat();
            KeyRange::new(begin, end)
        }
        Mutation::Set(key, _) | Mutation::Atomic(key, ..) => of_key(key),
    }
}

/// How many pairs of ranges of two lists overlap.
fn overlaps(some: &[KeyRange], others: &[KeyRange]) -> usize {
    some.iter().map(|range| others.iter().filter(|other| range.intersects(other)).count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::story::Story;
    use shaketable_sim::ids::ClientId;
    use shaketable_tx::Isolation;

    fn get(key: &'static str) -> Call {
        Call::Get { key: key.into(), isolation: Isolation::Snapshot, answer: Some(None) }
    }

    fn set(key: &'static str) -> Call {
        Call::Write(Mutation::Set(key.into(), "x".into()))
    }

    /// Adds a transaction of an operation, which commits at this version if it writes.
    fn add(
        story: &mut Story,
        (client, index): Operation,
        read: Version,
        commit: Option<Version>,
        calls: Vec<Call>,
    ) {
        let (_, attempt) = story.attempt(read, calls);
        (attempt.client, attempt.operation) = (ClientId(client as u16), Some(index as u32));
        if let Some(version) = commit {
            attempt.reported = Reported::Committed { version, batch_index: 0 };
        }
    }

    #[test]
    fn an_operation_has_those_that_made_its_data_and_those_that_read_it() {
        let mut story = Story::default();
        add(&mut story, (0, 0), 1, Some(10), vec![set("a")]);
        add(&mut story, (1, 0), 1, Some(20), vec![set("b")]);
        add(&mut story, (0, 1), 20, Some(30), vec![get("a"), set("c")]);
        add(&mut story, (1, 1), 30, None, vec![get("c")]);
        add(&mut story, (2, 0), 30, None, vec![get("b"), set("a")]);
        add(&mut story, (0, 2), 30, None, vec![get("c"), get("d")]);
        let accesses = Accesses::of(&story.history);
        assert_eq!(accesses.earlier_writers(&[(0, 1)], 6), [(0, 0)]);
        assert_eq!(accesses.earlier_writers(&[(1, 1)], 6), [(0, 0), (0, 1)]);
        assert_eq!(accesses.earlier_writers(&[(1, 1)], 1), [(0, 1)]);
        // What an explored operation's client does after it is no data of another explored one.
        assert_eq!(accesses.earlier_writers(&[(1, 1), (0, 0)], 6), []);
        assert_eq!(accesses.later_readers(&[(0, 1)], 2), [(0, 2), (1, 1)]);
        assert_eq!(accesses.later_readers(&[(0, 1)], 1), [(0, 2)]);
        assert_eq!(accesses.later_readers(&[(1, 1)], 2), []);
        assert_eq!(
            [((0, 1), (1, 1)), ((1, 1), (0, 1)), ((0, 0), (1, 0)), ((0, 0), (2, 0))]
                .map(|(one, other)| accesses.conflicts(one, other)),
            [1, 1, 0, 0]
        );
        // A transaction that did not commit wrote nothing.
        assert_eq!(
            [(0, 1), (2, 0), (1, 1), (9, 9)].map(|of| accesses.writes(of)),
            [true, false, false, false]
        );
        assert_eq!(accesses.ranks()[&(0, 1)], 2);
    }

    #[test]
    fn a_range_and_a_selector_meet_what_is_written_between() {
        let range = Call::GetRange {
            begin: KeySelector::first_greater_or_equal("b"),
            end: KeySelector::first_greater_or_equal("d"),
            limit: 0,
            reverse: false,
            isolation: Isolation::Serializable,
            answer: None,
        };
        let key = |answer: &'static str| Call::GetKey {
            selector: KeySelector::first_greater_than("b"),
            isolation: Isolation::Serializable,
            answer: Some(answer.into()),
        };
        let stamped = |key: &'static [u8]| {
            Call::Write(Mutation::Atomic(key.into(), "".into(), MutationType::SetVersionstampedKey))
        };
        let clear = || Call::Write(Mutation::ClearRange(KeyRange::new("c", "e")));
        for (reads, writes, meet) in [
            (range.clone(), set("c"), 1),
            (range.clone(), set("d"), 0),
            (range.clone(), clear(), 1),
            (range.clone(), stamped(b"cxxxxxxxxxx\x01\0\0\0"), 1),
            (range, stamped(b"exxxxxxxxxx\x01\0\0\0"), 0),
            (key("d"), set("c"), 1),
            (key("d"), set("e"), 0),
        ] {
            let mut story = Story::default();
            let shown = format!("{reads:?} {writes:?}");
            add(&mut story, (0, 0), 1, Some(10), vec![writes]);
            add(&mut story, (1, 0), 1, None, vec![reads]);
            assert_eq!(Accesses::of(&story.history).conflicts((0, 0), (1, 0)), meet, "{shown}");
        }
    }
}
