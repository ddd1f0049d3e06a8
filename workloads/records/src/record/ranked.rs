//! The ranked sets of an index of ranks, decoded here independently of the layer: at each level, the counts
//! must be those of the scores that the records have.

use super::{schema::packed, stored::Rows};
use foundationdb_tuple::{Element, unpack};
use std::collections::{BTreeMap, BTreeSet};

/// The levels of a ranked set, unless an option of the index sets another number.
const LEVELS: i64 = 6;

/// The scores of each group, all of them packed.
pub(super) type Scores = BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>;

/// One level: the counts of its elements.
type Level = BTreeMap<Vec<u8>, i64>;

/// Compares the rows of an index's ranked sets with the scores. A group without scores may have an empty set:
/// it had scores before.
pub(super) fn check(rows: &Rows, scores: &Scores) -> Result<(), String> {
    let mut sets: BTreeMap<Vec<u8>, BTreeMap<i64, Level>> = BTreeMap::new();
    for (key, value) in rows {
        let Some((group, level, element)) = row(key) else {
            return Err(format!("the row \"{}\" is of no ranked set", key.escape_ascii()));
        };
        let count = value[..].try_into().map(i64::from_le_bytes).map_err(|_| "a count has not 8 bytes")?;
        sets.entry(group).or_default().entry(level).or_default().insert(element, count);
    }
    let none = BTreeSet::new();
    for (group, elements) in scores {
        if !sets.contains_key(group) {
            return Err(format!("group {group:?} has the scores {elements:?}, and no ranked set"));
        }
    }
    for (group, levels) in &sets {
        let elements = scores.get(group).unwrap_or(&none);
        is_set_of(levels, elements).map_err(|why| format!("the ranked set of group {group:?}: {why}"))?;
    }
    Ok(())
}

/// The packed group, the level and the element of a row's key.
fn row(key: &[u8]) -> Option<(Vec<u8>, i64, Vec<u8>)> {
    let elements: Vec<Element<'_>> = unpack(key).ok()?;
    let [group @ .., Element::Int(level), Element::Bytes(element)] = &elements[..] else { return None };
    let group: Vec<_> = group.iter().cloned().map(Element::into_owned).collect();
    Some((packed(&group), *level, element.to_vec()))
}

fn is_set_of(levels: &BTreeMap<i64, Level>, elements: &BTreeSet<Vec<u8>>) -> Result<(), String> {
    if !levels.keys().copied().eq(0..LEVELS) {
        return Err(format!("it has the levels {:?}", levels.keys()));
    }
    for (number, level) in levels {
        let mut own = level.keys();
        let begins = own.next().is_some_and(Vec::is_empty);
        let below = |element: &Vec<u8>| match number {
            0 => elements.contains(element),
            _ => levels[&(number - 1)].contains_key(element),
        };
        if !begins || !own.all(below) || *number == 0 && level.len() != elements.len() + 1 {
            return Err(format!("level {number} has the elements {:?} of {elements:?}", level.keys()));
        }
        let ends = level.keys().skip(1).map(Some).chain([None]);
        for ((element, count), end) in level.iter().zip(ends) {
            let within =
                elements.range(element.clone()..).take_while(|other| end.is_none_or(|end| *other < end));
            let expected = within.count() as i64;
            if *count != expected {
                return Err(format!("level {number} counts {count} from {element:?}, should be {expected}"));
            }
        }
    }
    Ok(())
}
