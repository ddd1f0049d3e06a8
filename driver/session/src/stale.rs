//! What transactions of a program decided by what was no longer true: who wrote, or set a watch, after a key
//! that it knew had been changed by somebody else, where FoundationDB refuses nothing. There are three ways:
//!
//! * A read at snapshot adds no conflict range: what the transaction read changed before its commit.
//! * The read was in an earlier transaction of the thread, and this one writes the key without reading it.
//! * So was the look before a watch: the watch begins after the change that it is to wait for.
//!
//! None of it needs to be wrong, and each is how a correct program rarely works. A key counts as changed if
//! somebody else wrote it, unless what was written last is what was read, or all only add to it.

use crate::snapshot::RESTORER;
use bytes::Bytes;
use shaketable_sim::{
    history::{Attempt, Call, History, Origin},
    ids::{AttemptId, ClientId},
    judges::Truth,
    proto::{KeyRange, Mutation, Version},
    rt::{MILLISECOND, Nanos},
};
use shaketable_tx::{Isolation, MutationType, show};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

/// How many transactions of its thread may lie between a look and what is done with it.
const FURTHEST: u64 = 8;

/// The most that are kept.
const KEPT: usize = 100;

/// A place in the order of commits: the version, and the place in its batch.
type Place = (Version, u16);

/// How a transaction came to know what was no longer true, in the order in which this is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// It had read, without a conflict, the key that it wrote.
    Snapshot,
    /// It set a watch on a key that an earlier transaction had read.
    Watch,
    /// It wrote a key that an earlier transaction had read.
    Earlier,
    /// It had read another key without a conflict, or only added to this one.
    Other,
}

/// A transaction that decided by what was no longer true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    way: Way,
    /// How many transactions of its thread lie between the look and this one.
    distance: u64,
    /// When it committed, or was to watch.
    at: Nanos,
    by: Doer,
    /// What it did to the key; none if it only wrote others.
    did: Option<Did>,
    key: String,
    /// How many further keys it did the same with.
    more: usize,
    /// Who had looked and when, what it had read, and whether the read was at snapshot.
    looked: Doer,
    looked_at: Nanos,
    read: String,
    at_snapshot: bool,
    /// Who had changed the key, and when; of one that left no attempt, nothing is known.
    changed: Option<(Doer, Nanos)>,
    change: Did,
}

/// An attempt and its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Doer {
    attempt: AttemptId,
    thread: Option<u32>,
}

/// What was done to a key, in words: before and after the key.
type Did = (String, String);

impl Stale {
    /// The attempts that it is about: who decided, who had looked, and who had changed what was seen.
    pub fn attempts(&self) -> BTreeSet<AttemptId> {
        let changed = self.changed.map(|(doer, _)| doer);
        [self.by, self.looked].into_iter().chain(changed).map(|doer| doer.attempt).collect()
    }

    /// The key that it is about.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Two sentences: what was done, and why it was stale. `name` names an attempt.
    pub fn told(&self, name: impl Fn(AttemptId) -> String) -> [String; 2] {
        let Stale { by, looked, key, read, .. } = self;
        let who = |doer: &Doer| match doer.thread {
            Some(thread) => format!("{} of thread {thread}", name(doer.attempt)),
            None => name(doer.attempt),
        };
        let at = |time: Nanos| format!("at {} ms", time / MILLISECOND);
        let did = |(before, after): &Did, key: &str| format!("{before} {key}{after}");
        let its = self.did.as_ref().map_or_else(|| "committed".to_owned(), |its| did(its, key));
        let mut first = format!("{} {its} {}", who(by), at(self.at));
        if self.more > 0 {
            let _ = write!(first, ", and {} more", self.more);
        }
        first += match self.way {
            Way::Snapshot if self.at_snapshot => ", by a snapshot read that was no longer true",
            Way::Other if self.at_snapshot => ", after a snapshot read that was no longer true",
            Way::Snapshot | Way::Other => ", by a read that was no longer true",
            Way::Watch => ", after the change that it was to wait for",
            Way::Earlier => ", by what another transaction had read and was no longer true",
        };
        let mut second = match self.way {
            Way::Snapshot => format!("it had read {read} {}", at(self.looked_at)),
            Way::Other => format!("it had read {key} = {read} {}", at(self.looked_at)),
            Way::Watch | Way::Earlier => format!("{} had read {read} {}", who(looked), at(self.looked_at)),
        };
        let change = did(&self.change, "it");
        second += &match &self.changed {
            // A commit can be durable a little before a read version is asked for that does not have it.
            Some((doer, time)) => {
                let time = (*time).min(self.at).max(self.looked_at);
                format!("; then {} {change} {}", who(doer), at(time))
            }
            None => format!("; then somebody {change}"),
        };
        [first, second]
    }
}

/// A write of a key: where, by which attempt, and what.
type Written<'a> = (Place, Option<AttemptId>, &'a Mutation);

/// The attempts of a thread.
type OfThread<'a> = Vec<(AttemptId, &'a Attempt, Origin)>;

/// Who wrote what, in the order of commits.
struct Writes<'a> {
    history: &'a History,
    sets: BTreeMap<&'a Bytes, Vec<Written<'a>>>,
    clears: Vec<(Place, Option<AttemptId>, &'a Mutation, &'a KeyRange)>,
    times: BTreeMap<Version, Nanos>,
}

impl<'a> Writes<'a> {
    fn of(history: &'a History, truth: &'a Truth) -> Writes<'a> {
        let times = history.durable.iter().map(|((_, version), at)| (*version, *at)).collect();
        let mut writes = Writes { history, sets: BTreeMap::new(), clears: Vec::new(), times };
        for entry in &truth.entries {
            for tx in &entry.transactions {
                let place = (entry.version, tx.batch_index);
                for mutation in &tx.mutations {
                    match mutation {
                        Mutation::Set(key, _) | Mutation::Atomic(key, ..) => {
                            writes.sets.entry(key).or_default().push((place, tx.attempt, mutation));
                        }
                        Mutation::ClearRange(range) => {
                            writes.clears.push((place, tx.attempt, mutation, range))
                        }
                    }
                }
            }
        }
        writes
    }

    /// The last write of a key after a version and before a place.
    fn last(&self, key: &Bytes, after: Version, before: Place) -> Option<Written<'a>> {
        let is_within = |place: &Place| place.0 > after && *place < before;
        let sets = self.sets.get(key).map_or(&[][..], Vec::as_slice);
        let sets = &sets[..sets.partition_point(|(place, ..)| *place < before)];
        let set = sets.last().filter(|(place, ..)| is_within(place)).copied();
        let clears = &self.clears[..self.clears.partition_point(|(place, ..)| *place < before)];
        let mut recent = clears.iter().rev().take_while(|(place, ..)| is_within(place));
        let clear = recent.find(|(.., range)| range.contains(key));
        let clear = clear.map(|(place, by, mutation, _)| (*place, *by, *mutation));
        set.into_iter().chain(clear).max_by_key(|(place, ..)| *place)
    }

    fn doer(&self, attempt: AttemptId) -> Doer {
        let origin = self.history.attempt(attempt).and_then(|attempt| attempt.origin);
        Doer { attempt, thread: origin.map(|origin| origin.thread) }
    }

    /// Who changed what was read of a key, after the version of the read and before a place; none if nobody
    /// but these did.
    fn changed(
        &self,
        (key, read): (&Bytes, Option<&Bytes>),
        after: Version,
        before: Place,
        is_own: impl Fn(AttemptId) -> bool,
    ) -> Option<(Option<(Doer, Nanos)>, &'a Mutation)> {
        let (place, by, mutation) = self.last(key, after, before)?;
        let is_as_read = match mutation {
            Mutation::Set(_, to) => read == Some(to),
            Mutation::ClearRange(_) => read.is_none(),
            Mutation::Atomic(..) => false,
        };
        if is_as_read || by.is_some_and(is_own) {
            return None;
        }
        let time = self.times.get(&place.0).copied();
        let time = |by| time.or_else(|| Some(self.history.attempt(by)?.ended));
        let changed = by.and_then(|by| Some((self.doer(by), time(by)?)));
        Some((changed, mutation))
    }
}

fn did(mutation: &Mutation) -> Did {
    match mutation {
        Mutation::Set(_, to) => ("set".to_owned(), format!(" = {}", shown(to))),
        Mutation::ClearRange(_) => ("cleared".to_owned(), String::new()),
        Mutation::Atomic(_, operand, MutationType::Add) => {
            (format!("added {} to", shown(operand)), String::new())
        }
        Mutation::Atomic(_, operand, operation) => {
            (format!("applied {operation:?} to"), format!(", with {}", shown(operand)))
        }
    }
}

/// A value in few words: of a number of eight bytes, which nearly all have zeros, only the number.
fn shown(value: &Bytes) -> String {
    let whole = show::value(value);
    let number = || Some(i64::from_le_bytes(value[..].try_into().ok()?).to_string());
    number().filter(|number: &String| whole.ends_with(&format!(" ({number})"))).unwrap_or(whole)
}

/// What a thread knows of a key from its last read of it.
struct Look<'a> {
    by: AttemptId,
    transaction: u64,
    /// The number of transactions that the thread had begun.
    number: u64,
    at: Nanos,
    version: Version,
    read: Option<&'a Bytes>,
    at_snapshot: bool,
}

/// What was read of a key.
struct Read<'a> {
    key: &'a Bytes,
    value: Option<&'a Bytes>,
    isolation: Isolation,
    /// Whether it is a point read.
    is_point: bool,
}

/// The point reads of an attempt and the rows of its range reads, of keys that it had not written before.
fn reads(attempt: &Attempt) -> Vec<Read<'_>> {
    let (mut reads, mut own): (Vec<Read<'_>>, BTreeSet<&Bytes>) = Default::default();
    for (number, call) in attempt.calls.iter().enumerate() {
        match call {
            Call::Get { .. } if attempt.is_of_watch(number) => {}
            Call::Get { key, isolation, answer: Some(value) } if !own.contains(key) => {
                reads.push(Read { key, value: value.as_ref(), isolation: *isolation, is_point: true });
            }
            Call::GetRange { isolation, answer: Some((rows, _)), .. } => {
                let rows = rows.iter().filter(|row| !own.contains(&row.key));
                reads.extend(rows.map(|row| Read {
                    key: &row.key,
                    value: Some(&row.value),
                    isolation: *isolation,
                    is_point: false,
                }));
            }
            Call::Write(mutation) => own.extend(single(mutation)),
            _ => {}
        }
    }
    reads
}

/// The key that a mutation writes, if it is one.
fn single(mutation: &Mutation) -> Option<&Bytes> {
    match mutation {
        Mutation::Set(key, _) | Mutation::Atomic(key, ..) => Some(key),
        Mutation::ClearRange(range) if range.end.strip_suffix(b"\0") == Some(&range.begin) => {
            Some(&range.begin)
        }
        Mutation::ClearRange(_) => None,
    }
}

/// Whether a transaction has read a key or a range around it itself.
fn has_read(attempt: &Attempt, key: &Bytes) -> bool {
    attempt.calls.iter().enumerate().any(|(number, call)| match call {
        Call::Get { key: read, .. } => read == key && !attempt.is_of_watch(number),
        Call::GetKey { answer, .. } => answer.as_ref() == Some(key),
        Call::GetRange { begin, end, .. } => begin.key <= *key && *key < end.key,
        Call::Write(_) => false,
    })
}

/// The last mutation of each single key.
fn written(attempt: &Attempt) -> BTreeMap<&Bytes, &Mutation> {
    let mutations = attempt.calls.iter().filter_map(|call| match call {
        Call::Write(mutation) => Some((single(mutation)?, mutation)),
        _ => None,
    });
    mutations.collect()
}

/// What a run decided by what was no longer true, most telling first.
pub(crate) fn of(history: &History, truth: &Truth) -> Vec<Stale> {
    let writes = Writes::of(history, truth);
    let mut found = Vec::new();
    let mut threads: BTreeMap<(ClientId, u32), OfThread<'_>> = BTreeMap::new();
    for (id, attempt) in history.numbered().filter(|(_, attempt)| attempt.client != RESTORER) {
        found.extend(at_snapshot(&writes, truth, (id, attempt)));
        if let Some(origin) = attempt.origin {
            threads.entry((attempt.client, origin.thread)).or_default().push((id, attempt, origin));
        }
    }
    for thread in threads.into_values() {
        of_thread(&writes, truth, thread, &mut found);
    }
    found.sort_by_key(|stale: &Stale| (stale.way, stale.distance, stale.at, stale.by.attempt));
    found.truncate(KEPT);
    found
}

/// What an attempt had read without a conflict that refused it, and wrote all the same.
fn at_snapshot(writes: &Writes<'_>, truth: &Truth, (id, attempt): (AttemptId, &Attempt)) -> Option<Stale> {
    let (place, version) = truth.place(id).zip(attempt.read_version)?;
    let wrote = written(attempt);
    let added = |key: &Bytes| attempt.added_ranges().any(|range| range.contains(key));
    let mut found: Vec<Stale> = Vec::new();
    for Read { key, value: read, isolation, is_point } in reads(attempt) {
        let mutation = wrote.get(key).copied();
        // A range that is read at snapshot shows what there is to choose from: what is chosen is written.
        if (mutation.is_none() && !is_point) || (isolation == Isolation::Snapshot && added(key)) {
            continue;
        }
        let Some((changed, change)) = writes.changed((key, read), version, place, |by| by == id) else {
            continue;
        };
        let way = match (mutation, change) {
            (Some(Mutation::Set(..) | Mutation::ClearRange(_)), _) => Way::Snapshot,
            // Both count, and what a counter was at some moment is all that a snapshot read can say.
            (Some(Mutation::Atomic(..)), Mutation::Atomic(..)) => continue,
            (Some(Mutation::Atomic(..)) | None, _) => Way::Other,
        };
        let key_shown = show::key(key);
        found.push(Stale {
            way,
            distance: 0,
            at: attempt.ended,
            by: writes.doer(id),
            did: mutation.map(did),
            key: key_shown,
            more: 0,
            looked: writes.doer(id),
            looked_at: attempt.version_requested,
            read: value(read),
            at_snapshot: isolation == Isolation::Snapshot,
            changed,
            change: did(change),
        });
    }
    first(found)
}

fn value(read: Option<&Bytes>) -> String {
    read.map_or_else(|| "nothing".to_owned(), shown)
}

/// The most telling one of an attempt, which counts the others.
fn first(mut found: Vec<Stale>) -> Option<Stale> {
    // An empty value says least.
    found.sort_by_key(|stale| (stale.way, stale.distance, stale.read == "\"\""));
    let more = found.len().saturating_sub(1);
    found.into_iter().next().map(|stale| Stale { more, ..stale })
}

/// What the transactions of a thread wrote or watched without reading it, as earlier ones had read it.
fn of_thread(writes: &Writes<'_>, truth: &Truth, mut attempts: OfThread<'_>, found: &mut Vec<Stale>) {
    attempts.sort_by_key(|(id, attempt, _)| (attempt.version_requested.min(attempt.ended), *id));
    let mut looks: BTreeMap<&Bytes, Look<'_>> = BTreeMap::new();
    let (mut number, mut last) = (0, None);
    for (id, attempt, origin) in attempts {
        if last.replace(origin.transaction) != Some(origin.transaction) {
            number += 1;
        }
        let place = truth.place(id);
        let is_own = |by: AttemptId| {
            let other = writes.history.attempt(by).map(|other| (other.client, other.origin));
            other.is_some_and(|(client, other)| {
                client == attempt.client && other.is_some_and(|other| other.thread == origin.thread)
            })
        };
        let stale = |key: &Bytes, until: Place, way: Way, its: Did| {
            let look = looks.get(key).filter(|look| look.transaction != origin.transaction)?;
            let distance = number - look.number;
            if distance > FURTHEST {
                return None;
            }
            let (changed, change) = writes.changed((key, look.read), look.version, until, is_own)?;
            if has_read(attempt, key) {
                return None;
            }
            Some(Stale {
                way,
                distance,
                at: attempt.ended,
                by: writes.doer(id),
                did: Some(its),
                key: show::key(key),
                more: 0,
                looked: writes.doer(look.by),
                looked_at: look.at,
                read: value(look.read),
                at_snapshot: look.at_snapshot,
                changed,
                change: did(change),
            })
        };
        let mut its: Vec<Stale> = Vec::new();
        if let Some(place) = place {
            let set = written(attempt).into_iter();
            let set = set.filter(|(_, mutation)| !matches!(mutation, Mutation::Atomic(..)));
            its.extend(set.filter_map(|(key, mutation)| stale(key, place, Way::Earlier, did(mutation))));
        }
        if let Some(version) = attempt.read_version {
            let until = (version + 1, 0);
            let watch = || ("watched".to_owned(), String::new());
            its.extend(attempt.watches().filter_map(|key| stale(key, until, Way::Watch, watch())));
        }
        found.extend(first(its));
        if let Some(version) = attempt.read_version {
            for Read { key, value: read, isolation, .. } in reads(attempt) {
                looks.insert(
                    key,
                    Look {
                        by: id,
                        transaction: origin.transaction,
                        number,
                        at: attempt.version_requested,
                        version,
                        read,
                        at_snapshot: isolation == Isolation::Snapshot,
                    },
                );
            }
        }
        // Whoever has written a key knows it, whatever was read before.
        for key in written(attempt).into_keys() {
            looks.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_sim::{
        history::{Aside, Reported},
        ids::NodeId,
        proto::{KeyRange, LogEntry, LoggedTransaction},
    };
    use shaketable_tx::{ConflictRangeType, KeyValue};
    use std::sync::Arc;

    /// A history in which versions are milliseconds.
    #[derive(Default)]
    struct Run(History);

    impl Run {
        /// An attempt of a thread that reads at a version, and commits at another one if it does.
        fn attempt(
            &mut self,
            (thread, transaction): (u32, u64),
            read: Version,
            calls: Vec<Call>,
            committed: Option<Version>,
        ) -> &mut Attempt {
            let id = self.0.reserve();
            let is_write = |call: &Call| matches!(call, Call::Write(_));
            let mutations = calls.iter().filter_map(|call| match call {
                Call::Write(mutation) => Some(mutation.clone()),
                _ => None,
            });
            let mutations: Vec<Mutation> = mutations.collect();
            let ended = committed.unwrap_or(read) as Nanos * MILLISECOND;
            let reported = match committed {
                Some(version) if calls.iter().any(is_write) => {
                    Reported::Committed { version, batch_index: 0 }
                }
                _ => Reported::ReadOnly,
            };
            if let (Some(version), false) = (committed, mutations.is_empty()) {
                let transactions = vec![LoggedTransaction { attempt: Some(id), batch_index: 0, mutations }];
                let entry = LogEntry { previous: version - 1, version, known_committed: 0, transactions };
                self.0.log_durable(1, NodeId(1), &Arc::new(entry), ended);
            }
            let attempt = Attempt {
                origin: Some(Origin { thread, transaction }),
                version_requested: read as Nanos * MILLISECOND,
                read_version: Some(read),
                calls,
                reported,
                ended,
                ..Attempt::new(ClientId(0))
            };
            self.0.record(id, attempt);
            self.0.attempts[id.0 as usize].as_mut().expect("it was recorded")
        }

        fn told(&self) -> Vec<String> {
            let found = of(&self.0, &Truth::of(&self.0));
            let told = found.iter().map(|stale| stale.told(|id| format!("T{}", id.0)).join(" | "));
            told.collect()
        }
    }

    fn get(key: &'static str, value: Option<&'static str>) -> Call {
        let answer = Some(value.map(Bytes::from));
        Call::Get { key: key.into(), isolation: Isolation::Serializable, answer }
    }

    fn at_snapshot(key: &'static str, value: &'static str) -> Call {
        Call::Get { key: key.into(), isolation: Isolation::Snapshot, answer: Some(Some(value.into())) }
    }

    fn set(key: &'static str, value: &'static str) -> Call {
        Call::Write(Mutation::Set(key.into(), value.into()))
    }

    fn clear(key: &'static str) -> Call {
        Call::Write(Mutation::ClearRange(KeyRange::new(key, format!("{key}\0"))))
    }

    fn add(key: &'static str) -> Call {
        let one = Bytes::copy_from_slice(&1_i64.to_le_bytes());
        Call::Write(Mutation::Atomic(key.into(), one, MutationType::Add))
    }

    /// Thread 1 reads `k` = 1 with the transaction 1 at 10, and does this with transaction 2, which reads at
    /// 30 and commits at 40; thread 2 sets `k` to this value at 20.
    fn decided(value: &'static str, thread: u32, calls: Vec<Call>) -> Vec<String> {
        let mut run = Run::default();
        run.attempt((1, 1), 10, vec![get("k", Some("1"))], None);
        run.attempt((thread, 3), 15, vec![get("k", Some("1")), set("k", value)], Some(20));
        run.attempt((1, 2), 30, calls, Some(40));
        run.told()
    }

    #[test]
    fn what_an_earlier_transaction_had_read_is_no_longer_true() {
        let stale = "T2 of thread 1 set \"k\" = \"3\" at 40 ms, by what another transaction had read and was no longer true \
            | T0 of thread 1 had read \"1\" at 10 ms; then T1 of thread 2 set it = \"2\" at 20 ms";
        assert_eq!(decided("2", 2, vec![set("k", "3")]), [stale]);
        let cleared = decided("2", 2, vec![clear("k"), set("l", "1")]);
        assert!(cleared[0].starts_with("T2 of thread 1 cleared \"k\" at 40 ms, by what"), "{cleared:?}");
        let none: [&str; 0] = [];
        assert_eq!(decided("1", 2, vec![set("k", "3")]), none, "it is what was read");
        assert_eq!(decided("2", 1, vec![set("k", "3")]), none, "the thread did it");
        assert_eq!(decided("2", 2, vec![get("k", Some("2")), set("k", "3")]), none, "it has looked again");
        assert_eq!(decided("2", 2, vec![set("l", "3")]), none, "it is about another key");
        assert_eq!(decided("2", 2, vec![add("k")]), none, "it is right whatever there was");
        // Another thread had looked.
        let mut run = Run::default();
        run.attempt((3, 1), 10, vec![get("k", Some("1"))], None);
        run.attempt((2, 3), 15, vec![set("k", "2")], Some(20));
        run.attempt((1, 2), 30, vec![set("k", "3")], Some(40));
        assert_eq!(run.told(), none);
        // What looked is long ago.
        let mut run = Run::default();
        run.attempt((1, 1), 10, vec![get("k", Some("1"))], None);
        run.attempt((2, 3), 15, vec![set("k", "2")], Some(20));
        (0..FURTHEST).for_each(|n| drop(run.attempt((1, 10 + n), 21, vec![get("l", None)], None).clone()));
        run.attempt((1, 2), 30, vec![set("k", "3")], Some(40));
        assert_eq!(run.told(), none);
        // Attempts at the same transaction look again, or know what they do.
        let mut run = Run::default();
        run.attempt((1, 1), 10, vec![get("k", Some("1"))], None);
        run.attempt((2, 3), 15, vec![set("k", "2")], Some(20));
        run.attempt((1, 1), 30, vec![set("k", "3")], Some(40));
        assert_eq!(run.told(), none);
    }

    #[test]
    fn a_snapshot_read_was_no_longer_true_at_the_commit() {
        let told = |calls: Vec<Call>, changed: Version| {
            let mut run = Run::default();
            run.attempt((2, 3), 5, vec![add("k")], Some(changed));
            let attempt = run.attempt((1, 2), 10, calls, Some(40));
            let is_added = attempt.calls.len() > 3;
            let range = Aside::ConflictRange(ConflictRangeType::Read, KeyRange::new("k", "k\0"));
            attempt.asides.extend(is_added.then_some((0, range)));
            run.told()
        };
        let stale = "T1 of thread 1 set \"k\" = \"0\" at 40 ms, by a snapshot read that was no longer true \
            | it had read \"1\" at 10 ms; then T0 of thread 2 added 1 to it at 20 ms";
        let calls = || vec![at_snapshot("k", "1"), set("k", "0")];
        assert_eq!(told(calls(), 20), [stale]);
        let none: [&str; 0] = [];
        assert_eq!(told(calls(), 10), none, "it is what was read");
        assert_eq!(told(calls(), 41), none, "it was true at the commit");
        // A conflict range of its own makes a snapshot read one that is refused.
        let own = [calls(), vec![set("l", "0"), set("m", "0")]].concat();
        assert_eq!(told(own, 20), none);
        assert_eq!(told(vec![set("k", "1"), at_snapshot("k", "1")], 20), none, "it reads its own write");
        assert_eq!(told(vec![at_snapshot("k", "1"), add("k")], 20), none, "both count");
        let other = told(vec![at_snapshot("k", "1"), set("l", "0")], 20);
        let stale = "T1 of thread 1 committed at 40 ms, after a snapshot read that was no longer true \
            | it had read \"k\" = \"1\" at 10 ms; then T0 of thread 2 added 1 to it at 20 ms";
        assert_eq!(other, [stale]);
        // What it read in order to choose, and did not write.
        let rows = [
            KeyValue { key: "k".into(), value: "1".into() },
            KeyValue { key: "l".into(), value: "1".into() },
        ];
        let range = Call::GetRange {
            begin: shaketable_tx::KeySelector::first_greater_or_equal("a"),
            end: shaketable_tx::KeySelector::first_greater_or_equal("z"),
            limit: 0,
            reverse: false,
            isolation: Isolation::Snapshot,
            answer: Some((rows.into(), false)),
        };
        assert_eq!(told(vec![range.clone(), clear("l")], 20), none);
        let taken = told(vec![range, clear("k")], 20);
        assert!(
            taken[0].starts_with("T1 of thread 1 cleared \"k\" at 40 ms, by a snapshot read"),
            "{taken:?}"
        );
    }

    #[test]
    fn a_watch_begins_after_the_change_that_it_was_to_wait_for() {
        let told = |calls: Vec<Call>, changed: Version| {
            let mut run = Run::default();
            run.attempt((1, 1), 10, vec![get("k", None)], None);
            run.attempt((2, 3), 15, vec![set("k", "2")], Some(changed));
            let attempt = run.attempt((1, 2), 30, calls, None);
            // The watch reads its key at last.
            attempt.asides = vec![(attempt.calls.len() - 1, Aside::Watch("k".into()))];
            run.told()
        };
        let stale = "T2 of thread 1 watched \"k\" at 30 ms, after the change that it was to wait for \
            | T0 of thread 1 had read nothing at 10 ms; then T1 of thread 2 set it = \"2\" at 20 ms";
        assert_eq!(told(vec![get("k", Some("2"))], 20), [stale]);
        let none: [&str; 0] = [];
        assert_eq!(told(vec![get("k", None)], 31), none, "the watch sees the change");
        assert_eq!(
            told(vec![get("k", Some("2")), get("k", Some("2"))], 20),
            none,
            "it looks before it watches"
        );
    }

    #[test]
    fn what_tells_most_comes_first_and_an_attempt_once() {
        let mut run = Run::default();
        run.attempt((1, 1), 10, vec![get("k", Some("1")), get("l", Some("1"))], None);
        run.attempt((2, 3), 15, vec![set("k", "2"), set("l", "2")], Some(20));
        run.attempt((1, 2), 30, vec![set("k", "3"), clear("l")], Some(40));
        run.attempt((2, 4), 25, vec![at_snapshot("m", "1"), set("m", "2")], Some(50));
        run.attempt((3, 5), 25, vec![add("m")], Some(45));
        let told = run.told();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("T3 of thread 2 set \"m\""), "{told:?}");
        assert!(told[1].starts_with("T2 of thread 1 set \"k\" = \"3\" at 40 ms, and 1 more, by"), "{told:?}");
    }
}
