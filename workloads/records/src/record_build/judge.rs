//! Whether the rows of an index are what its state claims.

use super::{
    plain::{Definition, Kept, Kind, primary_key},
    rows::{Rows, Stored},
};
use crate::record_shared::layout::{part, state, text};
use foundationdb_tuple::{Bytes as TupleBytes, Element, unpack};
use std::collections::{BTreeMap, BTreeSet};

/// Entries that something else than the layer has written or removed.
#[derive(Default)]
pub(crate) struct Tolerance {
    /// The rows that may be there without a record.
    pub dangling: BTreeSet<Vec<u8>>,
    /// The rows that records may lack.
    pub missing: BTreeSet<Vec<u8>>,
}

/// Claims that an index has what its state says. A readable one has the keys of all records and no others;
/// one that is being built has those of all records whose primary keys are in the ranges that are done; a
/// disabled one has no rows. A unique index has violations exactly for the keys that several of its records
/// have, and is not readable then.
pub(crate) fn index(definition: &Definition, stored: &Stored, tolerance: &Tolerance) -> Result<(), String> {
    let judged = judge(definition, stored, tolerance);
    let state = stored.state(&definition.name);
    judged.map_err(|why| format!("index {}, whose state is {state}: {why}", definition.name))
}

fn judge(definition: &Definition, stored: &Stored, tolerance: &Tolerance) -> Result<(), String> {
    let rows = |part| stored.rows(part, definition.number);
    let parts = [part::INDEXES, part::SECONDARY, part::RANGES, part::VIOLATIONS, part::BUILDS];
    let state = stored.state(&definition.name);
    if state == state::DISABLED {
        return match parts.iter().find(|part| !rows(**part).is_empty()) {
            Some(part) => Err(format!("it has {} rows in part {part}", rows(*part).len())),
            None => Ok(()),
        };
    }
    if state == state::PENDING && definition.kind != Kind::Unique {
        return Err("it is not unique, and waits for violations to be resolved".into());
    }
    if !rows(part::BUILDS).is_empty() || (state != state::WRITE_ONLY && !rows(part::RANGES).is_empty()) {
        return Err("there is progress of a build that is not under way".into());
    }
    let ranges = ranges(rows(part::RANGES))?;
    let is_done = |kept: &&Kept| {
        let key = primary_key(kept.record.id);
        state != state::WRITE_ONLY || ranges.iter().any(|(begin, end)| *begin <= key && key < *end)
    };
    let done: Vec<&Kept> = stored.records.values().filter(is_done).collect();
    if !definition.has_entries() {
        let others = [part::SECONDARY, part::VIOLATIONS];
        if others.iter().any(|part| !rows(*part).is_empty()) {
            return Err("an index of aggregates has rows beside them".into());
        }
        return aggregates(definition, &done, rows(part::INDEXES));
    }
    let entries = |kept: &Kept| definition.entries(kept);
    let must: BTreeSet<Vec<u8>> = done.into_iter().flat_map(entries).collect();
    let may = match definition.is_idempotent() {
        true => stored.records.values().flat_map(entries).collect(),
        false => must.clone(),
    };
    let entries = rows(part::INDEXES);
    let is_wrong = |row: &&Vec<u8>| !may.contains(*row) && !tolerance.dangling.contains(*row);
    if let Some(row) = entries.keys().find(is_wrong) {
        return Err(format!("the entry {} belongs to no record", text(row)));
    }
    let is_missing = |row: &&Vec<u8>| !entries.contains_key(*row) && !tolerance.missing.contains(*row);
    if let Some(row) = must.iter().find(is_missing) {
        return Err(format!("the entry {} is missing", text(row)));
    }
    if let Some(row) = entries.iter().find(|(_, value)| !value.is_empty()) {
        return Err(format!("the entry {} has a value", text(row.0)));
    }
    violations(definition, state, entries, rows(part::VIOLATIONS))?;
    ranks(definition, entries, rows(part::SECONDARY))
}

/// A range of packed primary keys: its begin, and its end, which is not in it.
type Range = (Vec<u8>, Vec<u8>);

/// The ranges of primary keys that are done, which must not overlap.
fn ranges(rows: &Rows) -> Result<Vec<Range>, String> {
    let mut ranges: Vec<Range> = Vec::new();
    for (row, end) in rows {
        let (begin,): (TupleBytes<'_>,) =
            unpack(row).map_err(|_| format!("the range {} cannot be read", text(row)))?;
        let after = ranges.last().map_or(&[][..], |(_, end)| end);
        if begin[..] < *after || end[..] <= begin[..] {
            return Err(format!("the range {} overlaps, or is empty", text(row)));
        }
        ranges.push((begin.to_vec(), end.to_vec()));
    }
    Ok(ranges)
}

fn aggregates(definition: &Definition, done: &[&Kept], rows: &Rows) -> Result<(), String> {
    let mut expected: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
    for (group, number) in done.iter().flat_map(|kept| definition.contributions(kept)) {
        *expected.entry(group).or_default() += number;
    }
    let number = |(group, value): (&Vec<u8>, &bytes::Bytes)| match value[..].try_into() {
        Ok(bytes) => Ok((group.clone(), i64::from_le_bytes(bytes))),
        Err(_) => Err(format!("the aggregate of {} cannot be read", text(group))),
    };
    let mut found = rows.iter().map(number).collect::<Result<BTreeMap<_, _>, _>>()?;
    // A group keeps its row when its number becomes zero.
    found.retain(|_, number| *number != 0);
    expected.retain(|_, number| *number != 0);
    match found == expected {
        true => Ok(()),
        false => Err(format!("it has {}, should have {}", groups(&found), groups(&expected))),
    }
}

fn groups(groups: &BTreeMap<Vec<u8>, i64>) -> String {
    let group = |(group, number): (&Vec<u8>, &i64)| format!("{} {number}", text(group));
    groups.iter().map(group).collect::<Vec<_>>().join(", ")
}

/// The columns of an entry's key, and the record's number.
fn split(entry: &[u8]) -> Result<(Vec<Element<'_>>, i64), String> {
    let mut key: Vec<Element<'_>> =
        unpack(entry).map_err(|_| format!("the entry {} cannot be read", text(entry)))?;
    match key.pop() {
        Some(Element::Int(id)) => Ok((key, id)),
        _ => Err(format!("the entry {} has no primary key", text(entry))),
    }
}

fn violations(definition: &Definition, state: i64, entries: &Rows, rows: &Rows) -> Result<(), String> {
    let mut by_key: BTreeMap<Vec<u8>, BTreeSet<&Vec<u8>>> = BTreeMap::new();
    if definition.kind == Kind::Unique {
        for row in entries.keys() {
            let (key, _) = split(row)?;
            if !key.contains(&Element::Nil) {
                by_key.entry(foundationdb_tuple::pack(&key)).or_default().insert(row);
            }
        }
    }
    let expected: BTreeSet<&Vec<u8>> = by_key.into_values().filter(|rows| rows.len() > 1).flatten().collect();
    if state == state::READABLE && !expected.is_empty() {
        return Err(format!("it is unique and readable, and has {} records of equal keys", expected.len()));
    }
    if rows.keys().collect::<BTreeSet<_>>() != expected {
        let (found, expected) = (rows.keys().map(|row| text(row)), expected.iter().map(|row| text(row)));
        let (found, expected): (Vec<_>, Vec<_>) = (found.collect(), expected.collect());
        return Err(format!("it has the violations {found:?}, should have {expected:?}"));
    }
    match rows.values().all(|other| unpack::<(i64,)>(other).is_ok()) {
        true => Ok(()),
        false => Err("a violation does not name another record".into()),
    }
}

/// The ranked sets have the scores of the entries, and the counts of each level are the sums of those of the
/// level below.
fn ranks(definition: &Definition, entries: &Rows, rows: &Rows) -> Result<(), String> {
    let Kind::Rank(duplicates) = definition.kind else {
        return if rows.is_empty() { Ok(()) } else { Err("it has rows of ranks".into()) };
    };
    let mut expected: BTreeMap<(Vec<u8>, Vec<u8>), i64> = BTreeMap::new();
    for row in entries.keys() {
        let (mut group, _) = split(row)?;
        let score = group.pop().map(|score| foundationdb_tuple::pack(&vec![score])).unwrap_or_default();
        let count = expected.entry((foundationdb_tuple::pack(&group), score)).or_default();
        *count = if duplicates { *count + 1 } else { 1 };
    }
    // By group and level, each score with its count.
    let mut levels: BTreeMap<(Vec<u8>, i64), BTreeMap<Vec<u8>, i64>> = BTreeMap::new();
    for (row, value) in rows {
        let unreadable = || format!("the row {} of a ranked set cannot be read", text(row));
        let mut group: Vec<Element<'_>> = unpack(row).map_err(|_| unreadable())?;
        let (Some(Element::Bytes(score)), Some(Element::Int(level))) = (group.pop(), group.pop()) else {
            return Err(unreadable());
        };
        let count = value[..].try_into().map(i64::from_le_bytes).map_err(|_| unreadable())?;
        levels.entry((foundationdb_tuple::pack(&group), level)).or_default().insert(score.to_vec(), count);
    }
    let lowest = levels.iter().filter(|((_, level), _)| *level == 0);
    let found: BTreeMap<(Vec<u8>, Vec<u8>), i64> = lowest
        .flat_map(|((group, _), scores)| {
            scores.iter().map(|(score, count)| ((group.clone(), score.clone()), *count))
        })
        .filter(|((_, score), count)| !score.is_empty() || *count != 0)
        .collect();
    if found != expected {
        return Err(format!("its ranked sets have {found:?}, should have {expected:?}"));
    }
    for ((group, level), scores) in levels.iter().filter(|((_, level), _)| *level > 0) {
        let below = levels.get(&(group.clone(), level - 1)).cloned().unwrap_or_default();
        let ends = scores.keys().skip(1).map(Some).chain([None]);
        for ((score, count), end) in scores.iter().zip(ends) {
            let until = |other: &Vec<u8>| end.is_none_or(|end| other < end);
            let sum: i64 =
                below.range(score.clone()..).take_while(|(other, _)| until(other)).map(|(_, n)| n).sum();
            if sum != *count || !below.contains_key(score) {
                return Err(format!("level {level} counts {count} from {}, there are {sum}", text(score)));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record_build::{Record, plain::Column};
    use bytes::Bytes;

    fn definition(kind: Kind) -> Definition {
        let columns = vec![Column::Field(0), Column::Field(3)];
        Definition { name: "index".into(), number: 1, kind, columns, types: vec![] }
    }

    /// A store of two records with the same fields.
    fn stored() -> Stored {
        let record = |id| Record { of: 1, id, fields: [Some(7), None, None, Some(9)], parts: vec![2, 1, 2] };
        let records = [1, 2].map(|id| (id, Kept { record: record(id), version: None }));
        Stored { records: records.into(), ..Stored::default() }
    }

    fn judged(kind: Kind, state: i64, rows: &[(i64, Vec<u8>, Vec<u8>)]) -> bool {
        judged_as(&definition(kind), state, rows)
    }

    fn judged_as(definition: &Definition, state: i64, rows: &[(i64, Vec<u8>, Vec<u8>)]) -> bool {
        let mut stored = stored();
        stored.states.insert("index".into(), state);
        for (part, row, value) in rows {
            stored.indexes.entry((*part, 1)).or_default().insert(row.clone(), Bytes::from(value.clone()));
        }
        index(definition, &stored, &Tolerance::default()).is_ok()
    }

    fn entry(id: i64) -> (i64, Vec<u8>, Vec<u8>) {
        (part::INDEXES, foundationdb_tuple::pack(&(7, 9, id)), Vec::new())
    }

    #[test]
    fn an_entry_that_is_missing_or_dangling_is_found() {
        use state::{DISABLED, READABLE, WRITE_ONLY};
        assert!(judged(Kind::Value, READABLE, &[entry(1), entry(2)]));
        assert!(!judged(Kind::Value, READABLE, &[entry(1)]));
        assert!(!judged(Kind::Value, READABLE, &[entry(1), entry(2), entry(3)]));
        assert!(!judged(Kind::Value, DISABLED, &[entry(1)]));
        // The first record is done, the second is not.
        let done = (part::RANGES, foundationdb_tuple::pack(&(TupleBytes::from(&b"\0"[..]),)), primary_key(2));
        assert!(judged(Kind::Value, WRITE_ONLY, &[entry(1), done.clone()]));
        assert!(judged(Kind::Value, WRITE_ONLY, &[entry(1), entry(2), done.clone()]));
        assert!(!judged(Kind::Value, WRITE_ONLY, &[entry(2), done.clone()]));
        assert!(!judged(Kind::Value, READABLE, &[entry(1), entry(2), done]));
    }

    #[test]
    fn a_record_needs_an_entry_for_each_value_of_its_list() {
        let entry = |part: i64, id: i64| (part::INDEXES, foundationdb_tuple::pack(&(part, id)), Vec::new());
        let judged = |rows: &[(i64, Vec<u8>, Vec<u8>)]| {
            let columns = vec![Column::Part];
            let definition = Definition { columns, ..definition(Kind::Value) };
            judged_as(&definition, state::READABLE, rows)
        };
        let rows = [entry(1, 1), entry(2, 1), entry(1, 2), entry(2, 2)];
        assert!(judged(&rows));
        assert!(!judged(&rows[1..]));
        assert!(!judged(&[&rows[..], &[entry(3, 1)]].concat()));
    }

    #[test]
    fn violations_are_those_of_records_with_equal_keys() {
        let violation = |id: i64, other: i64| {
            (part::VIOLATIONS, foundationdb_tuple::pack(&(7, 9, id)), primary_key(other))
        };
        let rows = [entry(1), entry(2), violation(1, 2), violation(2, 1)];
        assert!(judged(Kind::Unique, state::PENDING, &rows));
        assert!(!judged(Kind::Unique, state::READABLE, &rows));
        assert!(!judged(Kind::Unique, state::PENDING, &rows[..3]));
        assert!(!judged(Kind::Value, state::PENDING, &rows[..2]));
    }

    #[test]
    fn sums_and_ranks_are_those_of_the_records() {
        let number = |part, row: Vec<u8>, number: i64| (part, row, number.to_le_bytes().to_vec());
        let sum = |of| [number(part::INDEXES, foundationdb_tuple::pack(&(7,)), of)];
        assert!(judged(Kind::Sum, state::READABLE, &sum(18)));
        assert!(!judged(Kind::Sum, state::READABLE, &sum(9)));
        let score = foundationdb_tuple::pack(&(9,));
        let level = |level: i64, score: &[u8], count| {
            number(part::SECONDARY, foundationdb_tuple::pack(&(7, level, TupleBytes::from(score))), count)
        };
        let ranked = |counts: [i64; 3]| {
            let rows = [level(0, b"", counts[0]), level(0, &score, counts[1]), level(1, b"", counts[2])];
            [&[entry(1), entry(2)][..], &rows].concat()
        };
        assert!(judged(Kind::Rank(true), state::READABLE, &ranked([0, 2, 2])));
        assert!(judged(Kind::Rank(false), state::READABLE, &ranked([0, 1, 1])));
        assert!(!judged(Kind::Rank(true), state::READABLE, &ranked([0, 1, 1])));
        assert!(!judged(Kind::Rank(true), state::READABLE, &ranked([0, 2, 1])));
    }
}
