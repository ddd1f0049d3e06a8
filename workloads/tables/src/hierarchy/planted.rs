//! Planted bugs: a hierarchy implemented or used wrongly.

use super::{Answer, Hierarchy, Op, layer, space};
use crate::models::json::{Item, Shown, key, tuple};
use serde_json::{Map, Value};
use shaketable::{
    specimen::{INTERLEAVED, UNRECORDED},
    weakened::{everything, weakened},
};
use shaketable_layers::hierarchy::{EMPTY_ARRAY, EMPTY_OBJECT, Error, Step, Tuple, to_tuples};
use shaketable_tx::{
    Isolation::{self, Serializable},
    Transaction, strinc,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two changes that run side by side in one transaction decide about the same rows", "two futures in one transaction";
    Unrecorded = UNRECORDED, "an insert is retried after an unknown result without an operation record", "a write done twice";
    BlindInsert = "blind-insert", "an insert writes its tuples in addition to whatever is stored", "the recipe's insert_hier";
    LeafByLeaf = "leaf-by-leaf", "a replace clears only what its own leaves overwrite: a shorter list keeps its end", "the recipe's insert_hier, partly repaired";
    StaleMarker = "stale-marker", "the marker of an empty object remains when the first member is inserted", "the recipe's markers";
    NoMarker = "no-marker", "an object that loses its last member disappears", "the recipe's markers";
    IntegerMarkers = "integer-markers", "the integers -2 and -1 are read as an empty object and an empty list", "the recipe's markers, recognized by their first element";
    FromTheRoot = "from-the-root", "a read by path returns the tree from the root on", "the recipe's get_sub_hier";
    AbsentIsEmpty = "absent-is-empty", "a missing value is read as an empty object", "a published from_tuples";
    BytePrefix = "byte-prefix", "the rows of a path are all rows with its bytes as a prefix, and include longer names", "a prefix taken for a tuple";
    OneNumber = "one-number", "1.0 is stored as 1 and -0.0 as 0", "one type for all numbers";
    SkipsLong = "skips-long", "a leaf that is too long for a key is left out", "a limit that is discovered late";
    SnapshotGround = "snapshot-ground", "whether a path leads through an object is read at snapshot", "the wrong isolation";
    TuplesConflict = "tuples-conflict", "tuples that are requested at snapshot are read serializably", "an isolation that is not passed on";
    ClearedFirst = "cleared-first", "what is at a path is cleared before it is known whether the path can be written", "a refusal that comes too late";
    MembersEnd = "members-end", "the members of an object are read up to the name U+FFFF", "a range that ends at a constant";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform<T: Transaction>(
    planted: Planted,
    workload: &Hierarchy,
    tx: &T,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let hierarchy = layer();
    let read = async |path: &[Step]| hierarchy.get(tx, path, isolation).await;
    let told = |value: Option<Value>| Ok(Answer::Read(value.as_ref().map(Shown::from)));
    match (planted, op) {
        (Planted::BlindInsert, Op::Insert(path, Item::Value(item))) => {
            tuples(path, &item.0)?.iter().for_each(|tuple| tx.set(&at(tuple), b""));
            Ok(Answer::Written)
        }
        (Planted::LeafByLeaf, Op::Replace(path, Item::Value(item))) if !is_empty(&item.0) => {
            let before = read(path).await?;
            let replaced = workload.right(tx, op, isolation).await?;
            // What the bug does not clear is written again.
            for kept in before.iter().flat_map(|before| kept(before, &item.0)) {
                tx.set(&at(&[tuple(path), kept].concat()), b"");
            }
            Ok(replaced)
        }
        (Planted::StaleMarker, Op::Insert(path, _) | Op::Replace(path, _)) if !path.is_empty() => {
            let parent = &path[..path.len() - 1];
            let before = read(parent).await?;
            let written = workload.right(tx, op, isolation).await?;
            if before == Some(Map::new().into()) {
                tx.set(&at(&[tuple(parent), marker(EMPTY_OBJECT)].concat()), b"");
            }
            Ok(written)
        }
        (Planted::NoMarker, Op::Remove(path)) if !path.is_empty() => {
            let removed = workload.right(tx, op, isolation).await?;
            if removed == Answer::Removed(true) {
                let parent = tuple(&path[..path.len() - 1]);
                tx.clear(&at(&[parent, marker(EMPTY_OBJECT)].concat()));
            }
            Ok(removed)
        }
        (Planted::IntegerMarkers, Op::Get(path)) => told(integers(read(path).await?)),
        (Planted::FromTheRoot, Op::Get(path)) => told(read(path).await?.map(|value| from_root(path, value))),
        (Planted::AbsentIsEmpty, Op::Get(path)) => told(read(path).await?.or(Some(Map::new().into()))),
        (Planted::BytePrefix, Op::Remove(path)) if matches!(path.last(), Some(Step::Key(_))) => {
            let removed = workload.right(tx, op, isolation).await?;
            let begin = at(&tuple(path));
            if removed == Answer::Removed(true) {
                tx.clear_range(&begin, &strinc(&begin).unwrap_or_default());
            }
            Ok(removed)
        }
        (Planted::OneNumber, Op::Insert(path, item)) => {
            hierarchy.insert(tx, path, &one_number(item.value())).await.map(|()| Answer::Written)
        }
        (Planted::OneNumber, Op::Replace(path, item)) => {
            hierarchy.replace(tx, path, &one_number(item.value())).await.map(|()| Answer::Written)
        }
        (Planted::ClearedFirst, Op::Replace(path, _)) => {
            let replaced = workload.right(tx, op, isolation).await;
            if matches!(replaced, Err(Error::NotAnObject(_) | Error::NotAList(_) | Error::Gap { .. })) {
                let begin = at(&tuple(path));
                tx.clear_range(&[&begin[..], &[0]].concat(), &[&begin[..], &[0xff]].concat());
            }
            replaced
        }
        (Planted::MembersEnd, Op::Get(path)) => told(read(path).await?.map(members_end)),
        (Planted::SkipsLong, Op::Replace(..)) => match workload.right(tx, op, isolation).await {
            Err(Error::TooLarge(_)) => Ok(Answer::Written),
            other => other,
        },
        (Planted::SnapshotGround, Op::Replace(..)) => {
            workload.right(&weakened(tx.clone(), everything()), op, isolation).await
        }
        (Planted::TuplesConflict, Op::Tuples(_)) => workload.right(tx, op, Serializable).await,
        _ => workload.right(tx, op, isolation).await,
    }
}

/// The tuples of the old value that no leaf of the new one replaces.
fn kept(old: &Value, new: &Value) -> Vec<Tuple> {
    let places: Vec<Tuple> = to_tuples(new).unwrap_or_default();
    let is_hit = |tuple: &Tuple| {
        places.iter().any(|place| {
            let steps = &place[..place.len() - 1];
            tuple.starts_with(steps)
        })
    };
    to_tuples(old).unwrap_or_default().into_iter().filter(|tuple| !is_hit(tuple)).collect()
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

fn marker(marker: i64) -> Tuple {
    vec![marker.into(), Value::Null]
}

fn tuples(path: &[Step], item: &Value) -> Result<Vec<Tuple>, Error> {
    Ok(to_tuples(item)?.into_iter().map(|below| [tuple(path), below].concat()).collect())
}

fn at(tuple: &[Value]) -> Vec<u8> {
    key(space().bytes(), tuple)
}

/// Replaces integers that equal a marker by what the marker stands for.
fn integers(value: Option<Value>) -> Option<Value> {
    value.map(|value| match value {
        Value::Number(number) if number.as_i64() == Some(EMPTY_OBJECT) => Map::new().into(),
        Value::Number(number) if number.as_i64() == Some(EMPTY_ARRAY) => Vec::<Value>::new().into(),
        other => other,
    })
}

/// An object without its members from the name U+FFFF on.
pub fn members_end(value: Value) -> Value {
    match value {
        Value::Object(members) => members.into_iter().filter(|(name, _)| &name[..] < "\u{ffff}").collect(),
        other => other,
    }
}

/// The value inside an object for each step of its path.
pub fn from_root(path: &[Step], value: Value) -> Value {
    path.iter().rev().fold(value, |inner, step| match step {
        Step::Key(name) => Value::Object([(name.clone(), inner)].into_iter().collect()),
        Step::Index(_) => Value::from(vec![inner]),
    })
}

/// The value, with every whole number as an integer.
pub fn one_number(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(whole) if number.is_f64() && whole.fract() == 0.0 && whole.abs() < 1e15 => {
                (whole as i64).into()
            }
            _ => number.into(),
        },
        Value::Array(elements) => elements.into_iter().map(one_number).collect(),
        Value::Object(members) => members.into_iter().map(|(k, v)| (k, one_number(v))).collect(),
        other => other,
    }
}
