//! Compares reads of own writes with the simplest correct implementation: apply the writes to a copy of the
//! snapshot and read from that.

use super::{
    conflict::{RangeSet, add_read, of_range},
    keys::{ALL_END, USER_END, single_key},
    limits::Limits,
    range::{Batch, Fetch, RangeRead, Step, key_of},
    selector::Selector,
    snapshot_cache::SnapshotCache,
    write_map::{Op, WriteMap, conflict_ranges},
};
use crate::{
    atomic,
    proto::KeyRange,
    seed::{Seed, Stream},
};
use bytes::Bytes;
use proptest::prelude::*;
use shaketable_tx::{KeyValue, MutationType, Result};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

type Rows = BTreeMap<Bytes, Bytes>;

#[derive(Clone, Debug)]
enum Write {
    Set(Bytes, Bytes),
    Clear(Bytes, Bytes, bool),
    Atomic(Bytes, MutationType, Bytes),
    Conflict(Bytes, Bytes),
}

impl Write {
    fn record(&self, map: &mut WriteMap) {
        match self.clone() {
            Write::Set(key, value) => map.mutate(key, Op::Set(Some(value)), true),
            Write::Clear(a, b, conflict) if a != b => map.clear(a.clone().min(b.clone()), a.max(b), conflict),
            Write::Atomic(key, op, operand) => map.mutate(key, Op::Atomic(op, operand), true),
            Write::Conflict(a, b) if a != b => map.add_conflict(a.clone().min(b.clone()), a.max(b)),
            Write::Clear(..) | Write::Conflict(..) => {}
        }
    }

    fn apply(&self, rows: &mut Rows) {
        match self.clone() {
            Write::Set(key, value) => drop(rows.insert(key, value)),
            Write::Clear(a, b, _) => {
                rows.retain(|k, _| *k < a.clone().min(b.clone()) || *k >= a.clone().max(b.clone()))
            }
            Write::Atomic(key, op, operand) => match atomic::apply(op, rows.get(&key), &operand) {
                Some(value) => drop(rows.insert(key, value)),
                None => drop(rows.remove(&key)),
            },
            Write::Conflict(..) => {}
        }
    }

    /// The range it adds to the write conflict ranges.
    fn conflict(&self) -> Option<KeyRange> {
        match self.clone() {
            Write::Set(key, _) | Write::Atomic(key, ..) => Some(single_key(&key)),
            Write::Clear(a, b, true) | Write::Conflict(a, b) => {
                Some(KeyRange::new(a.clone().min(b.clone()), a.max(b)))
            }
            Write::Clear(_, _, false) => None,
        }
    }
}

/// The storage servers' reply.
fn fetch(snapshot: &Rows, fetch: &Fetch) -> Batch {
    let position = |s: &Selector| resolve(snapshot, s, &ALL_END);
    let (begin, end) = (position(&fetch.begin), position(&fetch.end));
    let mut rows: Vec<KeyValue> = snapshot
        .range(begin.clone()..end.clone().max(begin.clone()))
        .map(|(k, v)| KeyValue::new(k.clone(), v.clone()))
        .collect();
    if fetch.reverse {
        rows.reverse();
    }
    let mut limits = fetch.limits;
    let all = rows.len();
    let taken = rows.iter().take_while(|row| {
        let reached = limits.is_reached();
        if !reached {
            limits.take(row);
        }
        !reached
    });
    let taken = taken.count();
    rows.truncate(taken);
    let more = taken < all || limits.is_reached();
    Batch {
        rows,
        more,
        read_to_begin: begin.is_empty()
            && fetch.begin.offset < 1
            && (fetch.begin.key.is_empty() || !(fetch.reverse && more)),
        read_through_end: end == ALL_END && fetch.end.offset > 1 && (fetch.reverse || !more),
        read_through: None,
    }
}

/// The key to which a selector resolves among `rows`, between the beginning and `end`.
fn resolve(rows: &Rows, selector: &Selector, end: &Bytes) -> Bytes {
    let keys: Vec<&Bytes> = rows.keys().collect();
    let at = keys.partition_point(|k| **k < selector.key) as i64 + i64::from(selector.offset) - 1;
    match at {
        // An end between two keys keeps its position.
        _ if selector.offset == 1 => selector.key.clone().min(end.clone()),
        _ if at < 0 => Bytes::new(),
        at => keys.get(at as usize).map_or(end.clone(), |k| (*k).clone()),
    }
}

/// Runs a read to its end.
fn run(read: RangeRead, snapshot: &Rows, cache: &mut SnapshotCache, writes: &WriteMap) -> Result<Batch> {
    run_noting(read, snapshot, cache, writes, &mut |_| {})
}

/// Like `run`; calls `note` with each step.
fn run_noting(
    mut read: RangeRead,
    snapshot: &Rows,
    cache: &mut SnapshotCache,
    writes: &WriteMap,
    note: &mut dyn FnMut(&Step),
) -> Result<Batch> {
    for _ in 0..1_000 {
        let step = read.advance((cache, writes))?;
        note(&step);
        match step {
            Step::Done(batch) => return Ok(batch),
            Step::Fetch(wanted) => read.fetched(cache, fetch(snapshot, &wanted)),
            Step::Resolve(selector) => read.resolved(key(selector, snapshot, cache, writes)?),
        }
    }
    panic!("a read that does not end");
}

fn key(selector: Selector, snapshot: &Rows, cache: &mut SnapshotCache, writes: &WriteMap) -> Result<Bytes> {
    let forward = selector.offset > 0;
    let batch = run(RangeRead::of_key(selector, USER_END), snapshot, cache, writes)?;
    Ok(key_of(&batch, forward, &USER_END))
}

fn a_key() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(prop::sample::select(vec![0u8, 1, 2]), 0..3).prop_map(Bytes::from)
}

fn a_value() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(0u8..3, 0..4).prop_map(Bytes::from)
}

fn a_write() -> impl Strategy<Value = Write> {
    // FoundationDB's client counts a key that `compare_and_clear` has cleared when it moves a selector, and
    // so does this one: the result differs from that of applying the writes.
    let ops: Vec<MutationType> =
        MutationType::ALL.iter().copied().filter(|op| !matches!(op.code(), 14 | 15 | 20)).collect();
    prop_oneof![
        3 => (a_key(), a_value()).prop_map(|(k, v)| Write::Set(k, v)),
        2 => (a_key(), a_key(), any::<bool>()).prop_map(|(a, b, c)| Write::Clear(a, b, c)),
        3 => (a_key(), prop::sample::select(ops), a_value()).prop_map(|(k, o, v)| Write::Atomic(k, o, v)),
        1 => (a_key(), a_key()).prop_map(|(a, b)| Write::Conflict(a, b)),
    ]
}

fn a_selector() -> impl Strategy<Value = Selector> {
    (a_key(), prop_oneof![3 => Just(1), 2 => -3..5i32]).prop_map(|(key, offset)| Selector { key, offset })
}

#[derive(Clone, Debug)]
enum Action {
    Write(Write),
    Get(Bytes),
    Key(Selector),
    Range(Selector, Selector, Option<i64>, Option<i64>, bool),
}

fn an_action() -> impl Strategy<Value = Action> {
    let limit = prop_oneof![Just(None), (1i64..5).prop_map(Some)];
    let bytes = prop_oneof![Just(None), (1i64..60).prop_map(Some)];
    prop_oneof![
        3 => a_write().prop_map(Action::Write),
        1 => a_key().prop_map(Action::Get),
        2 => a_selector().prop_map(Action::Key),
        4 => (a_selector(), a_selector(), limit, bytes, any::<bool>())
            .prop_map(|(b, e, l, y, r)| Action::Range(b, e, l, y, r)),
    ]
}

/// The rows of a range after applying the writes.
fn expected_range(rows: &Rows, begin: &Selector, end: &Selector, reverse: bool) -> Vec<KeyValue> {
    let (from, to) = (resolve(rows, begin, &USER_END), resolve(rows, end, &USER_END));
    if from >= to {
        return Vec::new();
    }
    let mut found: Vec<KeyValue> =
        rows.range(from..to).map(|(k, v)| KeyValue::new(k.clone(), v.clone())).collect();
    if reverse {
        found.reverse();
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reads_see_the_snapshot_with_own_writes_over_it(
        snapshot in prop::collection::btree_map(a_key(), a_value(), 0..9),
        actions in prop::collection::vec(an_action(), 1..14),
    ) {
        let mut now: Rows = snapshot.clone();
        let mut writes = WriteMap::default();
        let mut cache = SnapshotCache::default();
        for action in actions {
            match action {
                Action::Write(write) => {
                    write.record(&mut writes);
                    write.apply(&mut now);
                }
                Action::Get(k) => {
                    let segment = writes.cursor_at(&k);
                    let below = snapshot.get(&k);
                    let value = match segment.segment() {
                        super::write_map::Segment::Cleared => None,
                        super::write_map::Segment::Unmodified => below.cloned(),
                        _ => segment.stack().over(below),
                    };
                    prop_assert_eq!(value.as_ref(), now.get(&k));
                    cache.insert(k.clone(), single_key(&k).end, below.cloned());
                }
                Action::Key(selector) => {
                    let found = key(selector.clone(), &snapshot, &mut cache, &writes).unwrap();
                    let keys: Vec<&Bytes> = now.keys().collect();
                    let base = keys.partition_point(|k| **k < selector.key) as i64;
                    let at = base + i64::from(selector.offset) - 1;
                    let wanted = match at {
                        _ if at < 0 => Bytes::new(),
                        at => keys.get(at as usize).map_or(USER_END, |k| (*k).clone()),
                    };
                    prop_assert_eq!(found, wanted, "{:?}", selector);
                }
                Action::Range(begin, end, rows, bytes, reverse) => {
                    if begin.offset >= end.offset && begin.key >= end.key {
                        continue;
                    }
                    let limits = Limits { rows, min_rows: 1, bytes };
                    let read = RangeRead::new(begin.clone(), end.clone(), limits, reverse, USER_END);
                    let batch = run(read, &snapshot, &mut cache, &writes).unwrap();
                    let all = expected_range(&now, &begin, &end, reverse);
                    prop_assert!(all.starts_with(&batch.rows), "{:?} of {:?}", batch, all);
                    prop_assert!(batch.more || batch.rows.len() == all.len(), "{:?} of {:?}", batch, all);
                    prop_assert!(!batch.rows.is_empty() || all.is_empty(), "{:?} of {:?}", batch, all);
                    if bytes.is_none() {
                        let enough = rows.map_or(all.len(), |n| all.len().min(n as usize));
                        prop_assert_eq!(batch.rows.len(), enough);
                    }
                }
            }
        }
    }

    #[test]
    fn write_conflict_ranges_are_what_was_written(writes in prop::collection::vec(a_write(), 0..14)) {
        let mut map = WriteMap::default();
        let mut set = RangeSet::default();
        for write in &writes {
            write.record(&mut map);
            if let Some(range) = write.conflict() {
                set.insert(range);
            }
        }
        prop_assert_eq!(conflict_ranges(&map, &Bytes::new(), &ALL_END), set.ranges());
        // Segments cover the keyspace in both directions.
        let mut cursor = map.cursor_at(b"");
        let mut edges = vec![cursor.begin().to_bytes()];
        while cursor.end() < super::keys::Edge::at(b"\xff\xff") {
            let end = cursor.end().to_bytes();
            cursor.next();
            prop_assert_eq!(cursor.begin().to_bytes(), end.clone());
            let found = map.cursor_at(&end);
            prop_assert_eq!((found.begin(), found.end()), (cursor.begin(), cursor.end()));
            edges.push(end);
        }
        while edges.len() > 1 {
            prop_assert_eq!(cursor.begin().to_bytes(), edges.pop().unwrap());
            cursor.prev();
        }
    }

    #[test]
    fn what_lies_outside_of_a_reads_conflict_range_cannot_change_it(
        snapshot in prop::collection::btree_map(a_key(), a_value(), 0..9),
        own in prop::collection::vec(a_write(), 0..5),
        (begin, end) in (a_selector(), a_selector()),
        (limit, reverse) in (prop_oneof![Just(None), (1i64..4).prop_map(Some)], any::<bool>()),
        changes in prop::collection::vec((a_key(), prop::option::of(a_value())), 1..6),
    ) {
        if begin.offset >= end.offset && begin.key >= end.key {
            return Ok(());
        }
        let mut writes = WriteMap::default();
        own.iter().for_each(|write| write.record(&mut writes));
        let limits = Limits { rows: limit, min_rows: 1, bytes: None };
        let read = |snapshot: &Rows| {
            let read = RangeRead::new(begin.clone(), end.clone(), limits, reverse, USER_END);
            run(read, snapshot, &mut SnapshotCache::default(), &writes).unwrap()
        };
        let before = read(&snapshot);
        let mut set = RangeSet::default();
        add_read(&mut set, &writes, of_range(&begin, &end, reverse, &before, &USER_END));
        let mut changed = snapshot.clone();
        for (key, value) in changes {
            if !set.ranges().iter().any(|range| range.contains(&key)) {
                match value {
                    Some(value) => drop(changed.insert(key, value)),
                    None => drop(changed.remove(&key)),
                }
            }
        }
        prop_assert_eq!(read(&changed).rows, before.rows, "conflict ranges {:?}", set);
    }
}

#[test]
fn every_key_of_a_small_keyspace_is_drawn() {
    // The tests above are meaningless if their keys never overlap.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let drawn: BTreeSet<Bytes> = (0..500)
        .map(|_| proptest::strategy::ValueTree::current(&a_key().new_tree(&mut runner).unwrap()))
        .collect();
    assert_eq!(drawn.len(), 13);
}

/// The number of reads in the snapshot of requests.
const READS: usize = 200;

fn drawn_bytes(rng: &mut Stream, longest: u64) -> Bytes {
    (0..rng.below(longest + 1)).map(|_| rng.below(3) as u8).collect()
}

fn drawn_selector(rng: &mut Stream) -> Selector {
    let offset = if rng.chance(0.5) { 1 } else { rng.below(9) as i32 - 4 };
    Selector { key: drawn_bytes(rng, 2), offset }
}

fn drawn_write(rng: &mut Stream, longest: u64) -> Write {
    match rng.below(7) {
        0 => Write::Set(drawn_bytes(rng, longest), drawn_bytes(rng, 3)),
        1 => Write::Atomic(drawn_bytes(rng, longest), MutationType::Add, Bytes::from_static(b"1")),
        2..5 => {
            let range = single_key(&drawn_bytes(rng, longest));
            Write::Clear(range.begin, range.end, true)
        }
        _ => Write::Clear(drawn_bytes(rng, longest), drawn_bytes(rng, longest), true),
    }
}

/// A selector as one token: its key's bytes, and its offset.
fn selector_text(selector: &Selector) -> String {
    format!("{}{:+}", digits(&selector.key), selector.offset)
}

/// Appends what a read requests from the storage servers, and how it ends. The second read finds part of the
/// range cached, and takes it in small batches.
fn requests_of(
    (begin, end, limits, reverse): (Selector, Selector, Limits, bool),
    snapshot: &Rows,
    writes: &WriteMap,
    out: &mut String,
) -> std::fmt::Result {
    let direction = if reverse { "back" } else { "on" };
    writeln!(out, " {} to {} {direction}, {}", selector_text(&begin), selector_text(&end), amount(&limits))?;
    let mut cache = SnapshotCache::default();
    for limits in [limits, Limits { rows: None, min_rows: 1, bytes: Some(30) }] {
        let read = RangeRead::new(begin.clone(), end.clone(), limits, reverse, USER_END);
        let batch = steps_of(read, snapshot, &mut cache, writes, out)?;
        let conflict = of_range(&begin, &end, reverse, &batch, &USER_END);
        let (from, to) = (digits(&conflict.begin), digits(&conflict.end));
        writeln!(out, "  = {} rows, more {}{}, {from} to {to}", batch.rows.len(), batch.more, ends(&batch))?;
    }
    Ok(())
}

/// Runs a read, and appends what it requests.
fn steps_of(
    read: RangeRead,
    snapshot: &Rows,
    cache: &mut SnapshotCache,
    writes: &WriteMap,
    out: &mut String,
) -> std::result::Result<Batch, std::fmt::Error> {
    let mut steps = Vec::new();
    let batch = run_noting(read, snapshot, cache, writes, &mut |step| steps.push(step.clone()));
    for step in steps {
        match step {
            Step::Fetch(Fetch { begin, end, limits, .. }) => {
                let (begin, end) = (selector_text(&begin), selector_text(&end));
                writeln!(out, "  {begin} to {end}, {}", amount(&limits))?;
            }
            Step::Resolve(selector) => writeln!(out, "  key {}", selector_text(&selector))?,
            Step::Done(_) => {}
        }
    }
    Ok(batch.expect("a read ends"))
}

fn amount(limits: &Limits) -> String {
    let [rows, bytes] = [limits.rows, limits.bytes].map(|n| n.map_or("-".to_owned(), |n| n.to_string()));
    format!("{rows} rows {bytes} bytes")
}

/// The ends of all keys that a batch has reached.
fn ends(batch: &Batch) -> String {
    let ends = [(batch.read_to_begin, ", from the beginning"), (batch.read_through_end, ", to the end")];
    ends.into_iter().filter(|(reached, _)| *reached).map(|(_, end)| end).collect()
}

/// The limits determine how many requests are sent to the storage servers, and nothing else: no result shows
/// whether they have changed.
#[test]
fn requests_to_storage_servers() {
    let mut rng = Seed(1).stream("requests");
    let mut requests = String::new();
    let mut reads = 0;
    while reads < READS {
        // Every other keyspace is large enough that a read takes several requests.
        let (longest, rows, changes) = if reads % 2 == 0 { (2, 14, 10) } else { (3, 40, 30) };
        let snapshot: Rows = (0..rng.below(rows))
            .map(|_| (drawn_bytes(&mut rng, longest), drawn_bytes(&mut rng, 3)))
            .collect();
        let mut writes = WriteMap::default();
        (0..rng.below(changes)).for_each(|_| drawn_write(&mut rng, longest).record(&mut writes));
        let (begin, end) = (drawn_selector(&mut rng), drawn_selector(&mut rng));
        let some = |rng: &mut Stream, most: u64| rng.chance(0.6).then(|| 1 + rng.below(most) as i64);
        let limits = Limits { rows: some(&mut rng, 5), min_rows: 1, bytes: some(&mut rng, 60) };
        let reverse = rng.chance(0.5);
        if begin.offset >= end.offset && begin.key >= end.key {
            continue;
        }
        reads += 1;
        write!(requests, "{reads}").expect("a string takes it");
        requests_of((begin, end, limits, reverse), &snapshot, &writes, &mut requests)
            .expect("a string takes it");
    }
    insta::assert_snapshot!(requests);
}

/// The ends of all keys have rules of their own: a selector that leads to one becomes it.
#[test]
fn requests_at_the_ends_of_all_keys() {
    let mut rng = Seed(3).stream("ends");
    let mut requests = String::new();
    for number in 1..=READS {
        let key = |rng: &mut Stream| match rng.below(4) {
            0 => Bytes::new(),
            1 => USER_END,
            _ => drawn_bytes(rng, 1),
        };
        let selector = |rng: &mut Stream| Selector { key: key(rng), offset: rng.below(8) as i32 - 3 };
        let snapshot: Rows = (0..rng.below(4)).map(|_| (drawn_bytes(&mut rng, 1), "v".into())).collect();
        let mut writes = WriteMap::default();
        (0..rng.below(3)).for_each(|_| drawn_write(&mut rng, 1).record(&mut writes));
        let (begin, end) = (selector(&mut rng), selector(&mut rng));
        let limits = Limits { rows: rng.chance(0.5).then_some(1), min_rows: 1, bytes: None };
        let reverse = rng.chance(0.5);
        let keys: Vec<String> = snapshot.keys().map(|key| digits(key)).collect();
        writeln!(requests, "{number} {}", keys.join(" ")).expect("a string takes it");
        if begin.offset < end.offset || begin.key < end.key {
            requests_of((begin.clone(), end, limits, reverse), &snapshot, &writes, &mut requests)
                .expect("a string takes it");
        }
        let forward = begin.offset > 0;
        writeln!(requests, " key {}", selector_text(&begin)).expect("a string takes it");
        let read = RangeRead::of_key(begin, USER_END);
        let batch = steps_of(read, &snapshot, &mut SnapshotCache::default(), &writes, &mut requests);
        let batch = batch.expect("a string takes it");
        let found = digits(&key_of(&batch, forward, &USER_END));
        writeln!(requests, "  = {found}{}", ends(&batch)).expect("a string takes it");
    }
    insta::assert_snapshot!(requests);
}

/// A request goes past keys that the transaction has cleared one by one, but past a hundred segments at most
/// (`skipUncached` in ReadYourWrites.actor.cpp).
#[test]
fn requests_past_many_cleared_keys() {
    let key = |n: u8| Bytes::from(vec![1, n]);
    let snapshot: Rows = (0..240).map(|n| (key(n), Bytes::from_static(b"v"))).collect();
    let mut writes = WriteMap::default();
    for key in (0..240).filter(|n| n % 3 != 0).map(key).chain([Bytes::new()]) {
        let range = single_key(&key);
        Write::Clear(range.begin, range.end, true).record(&mut writes);
    }
    let mut odd = writes.clone();
    // Two rows next to each other: what follows them is the other half of the alternating segments.
    for key in [key(99), single_key(&key(99)).end, key(141), single_key(&key(141)).end] {
        Write::Set(key, "v".into()).record(&mut odd);
    }
    let mut requests = String::new();
    for (reverse, writes) in [(false, &writes), (true, &writes), (false, &odd), (true, &odd)] {
        let all = [((10, 1), (230, 1), 60), ((10, 3), (230, 1), 60), ((10, 1), (230, -1), 60)];
        // Ends that a read reaches after it has passed some of the keys that it may pass, for several
        // requests.
        let ends = (60..=180).step_by(8).flat_map(|n| [((n, -2), (230, 3), 200), ((10, -2), (n, 3), 200)]);
        for ((begin, before), (end, after), rows) in all.into_iter().chain(ends) {
            let begin = Selector { key: key(begin), offset: before };
            let end = Selector { key: key(end), offset: after };
            let limits = Limits { rows: Some(rows), min_rows: 1, bytes: None };
            requests_of((begin, end, limits, reverse), &snapshot, writes, &mut requests)
                .expect("a string takes it");
        }
    }
    insta::assert_snapshot!(requests);
}

/// The number of write maps in the snapshot of segments.
const MAPS: usize = 120;

/// A key's bytes, or `end` for the end of the keys.
fn digits(key: &[u8]) -> String {
    match key {
        key if key.first() >= Some(&0xff) => "end".to_owned(),
        key => format!("'{}'", key.iter().map(|byte| byte.to_string()).collect::<String>()),
    }
}

/// The division of a transaction's writes into segments determines what a read merges and what conflicts, and
/// many divisions lead to the same results: no other test detects a change.
#[test]
fn segments_of_own_writes() {
    let mut rng = Seed(2).stream("writes");
    let mut divided = String::new();
    for number in 1..=MAPS {
        let mut map = WriteMap::default();
        let mut story = Vec::new();
        for _ in 0..2 + rng.below(7) {
            let stamped =
                |rng: &mut Stream, op| (drawn_bytes(rng, 2), Op::Atomic(op, Bytes::from_static(&[0; 14])));
            match rng.below(10) {
                0 => {
                    let (key, op) = stamped(&mut rng, MutationType::SetVersionstampedValue);
                    story.push(format!("stamp {}", digits(&key)));
                    map.mutate(key, op, true);
                }
                1 => {
                    let (begin, end) = (drawn_bytes(&mut rng, 2), drawn_bytes(&mut rng, 2));
                    if begin < end {
                        story.push(format!("unreadable {} {}", digits(&begin), digits(&end)));
                        map.make_unreadable(begin, end);
                    }
                }
                2 => {
                    let write = Write::Conflict(drawn_bytes(&mut rng, 2), drawn_bytes(&mut rng, 2));
                    story.push(write_text(&write));
                    write.record(&mut map);
                }
                _ => {
                    let write = match drawn_write(&mut rng, 2) {
                        Write::Clear(begin, end, _) => Write::Clear(begin, end, rng.chance(0.5)),
                        write => write,
                    };
                    story.push(write_text(&write));
                    write.record(&mut map);
                }
            }
        }
        writeln!(divided, "{number} {}", story.join(", ")).expect("a string takes it");
        let mut cursor = map.cursor_at(b"");
        loop {
            let marks = [(cursor.is_conflict(), " conflict"), (cursor.is_unreadable(), " unreadable")];
            let marks: String = marks.into_iter().filter(|(is, _)| *is).map(|(_, mark)| mark).collect();
            let operations = match cursor.is_operation() {
                true => format!(" {:?}", cursor.stack().ops()),
                false => String::new(),
            };
            let begin = digits(&cursor.begin().to_bytes());
            writeln!(divided, "  {begin} {:?}{marks}{operations}", cursor.segment())
                .expect("a string takes it");
            if cursor.end() >= super::keys::Edge::at(b"\xff\xff") {
                break;
            }
            cursor.next();
        }
    }
    insta::assert_snapshot!(divided);
}

/// A short description of a write.
fn write_text(write: &Write) -> String {
    match write {
        Write::Set(key, _) => format!("set {}", digits(key)),
        Write::Atomic(key, ..) => format!("add {}", digits(key)),
        Write::Clear(a, b, conflict) => {
            let how = if *conflict { "clear" } else { "clear without conflict" };
            format!("{how} {} {}", digits(a.min(b)), digits(a.max(b)))
        }
        Write::Conflict(a, b) => format!("conflict {} {}", digits(a.min(b)), digits(a.max(b))),
    }
}
