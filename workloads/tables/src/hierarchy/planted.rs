//! Planted bugs: a hierarchy implemented or used wrongly.

use super::{Answer, Op, layer, space};
use crate::models::json::{Item, Shown, key, tuple};
use serde_json::{Map, Value};
use shaketable::specimen::{INTERLEAVED, UNRECORDED};
use shaketable_layers::hierarchy::{EMPTY_ARRAY, EMPTY_OBJECT, Error, Step, Tuple, to_tuples};
use shaketable_tx::{
    Isolation::{self, Serializable, Snapshot},
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

/// The isolation at which a look is performed that was requested at `asked`.
pub fn isolation(planted: Option<Planted>, op: &Op, asked: Isolation) -> Isolation {
    match (planted, op) {
        (Some(Planted::TuplesConflict), Op::Tuples(_)) => Isolation::Serializable,
        _ => asked,
    }
}

/// Performs a call that the bug changes; `None` for every other call.
pub async fn perform<T: Transaction>(planted: Planted, tx: &T, op: &Op) -> Option<Result<Answer, Error>> {
    let hierarchy = layer();
    Some(match (planted, op) {
        (Planted::BlindInsert, Op::Insert(path, Item::Value(item))) => tuples(path, &item.0).map(|tuples| {
            tuples.iter().for_each(|tuple| tx.set(&at(tuple), b""));
            Answer::Written
        }),
        (Planted::LeafByLeaf, Op::Replace(path, Item::Value(item))) if !is_empty(&item.0) => {
            leaf_by_leaf(tx, path, &item.0).await
        }
        (Planted::StaleMarker, Op::Insert(path, item) | Op::Replace(path, item)) => {
            let (_, parent) = path.split_last()?;
            let before = match hierarchy.get(tx, parent, Serializable).await {
                Ok(before) => before,
                Err(e) => return Some(Err(e)),
            };
            let written = match op {
                Op::Insert(..) => hierarchy.insert(tx, path, &item.value()).await,
                _ => hierarchy.replace(tx, path, &item.value()).await,
            };
            if before == Some(Map::new().into()) && written.is_ok() {
                tx.set(&at(&[tuple(parent), marker(EMPTY_OBJECT)].concat()), b"");
            }
            written.map(|()| Answer::Written)
        }
        (Planted::NoMarker, Op::Remove(path)) => {
            let (_, parent) = path.split_last()?;
            let removed = hierarchy.remove(tx, path).await;
            if removed == Ok(true) {
                tx.clear(&at(&[tuple(parent), marker(EMPTY_OBJECT)].concat()));
            }
            removed.map(Answer::Removed)
        }
        (Planted::IntegerMarkers, Op::Get(path)) => {
            read(hierarchy.get(tx, path, Serializable).await, integers)
        }
        (Planted::FromTheRoot, Op::Get(path)) => read(hierarchy.get(tx, path, Serializable).await, |value| {
            value.map(|value| from_root(path, value))
        }),
        (Planted::AbsentIsEmpty, Op::Get(path)) => {
            read(hierarchy.get(tx, path, Serializable).await, |value| value.or(Some(Map::new().into())))
        }
        (Planted::BytePrefix, Op::Remove(path)) if !path.is_empty() => {
            let removed = hierarchy.remove(tx, path).await;
            let begin = at(&tuple(path));
            if removed == Ok(true)
                && let Some(end) = strinc(&begin)
                && let Some(Step::Key(_)) = path.last()
            {
                tx.clear_range(&begin, &end);
            }
            removed.map(Answer::Removed)
        }
        (Planted::OneNumber, Op::Insert(path, item)) => {
            hierarchy.insert(tx, path, &one_number(item.value())).await.map(|()| Answer::Written)
        }
        (Planted::OneNumber, Op::Replace(path, item)) => {
            hierarchy.replace(tx, path, &one_number(item.value())).await.map(|()| Answer::Written)
        }
        (Planted::ClearedFirst, Op::Replace(path, item)) => {
            let replaced = hierarchy.replace(tx, path, &item.value()).await;
            if matches!(replaced, Err(Error::NotAnObject(_) | Error::NotAList(_) | Error::Gap { .. })) {
                clear(tx, path);
            }
            replaced.map(|()| Answer::Written)
        }
        (Planted::MembersEnd, Op::Get(path)) => read(hierarchy.get(tx, path, Serializable).await, |value| {
            value.map(|value| match value {
                Value::Object(members) => {
                    members.into_iter().filter(|(name, _)| &name[..] < "\u{ffff}").collect()
                }
                other => other,
            })
        }),
        (Planted::SkipsLong, Op::Replace(path, item)) => {
            match hierarchy.replace(tx, path, &item.value()).await {
                Err(Error::TooLarge(_)) => Ok(Answer::Written),
                other => other.map(|()| Answer::Written),
            }
        }
        (Planted::SnapshotGround, Op::Replace(path, Item::Value(item))) => {
            let (Step::Key(_), parent) = path.split_last()? else { return None };
            match hierarchy.get(tx, parent, Snapshot).await {
                Ok(Some(Value::Object(members))) if !members.is_empty() => {
                    clear(tx, path);
                    tuples(path, &item.0).map(|tuples| {
                        tuples.iter().for_each(|tuple| tx.set(&at(tuple), b""));
                        Answer::Written
                    })
                }
                Ok(_) => return None,
                Err(e) => Err(e),
            }
        }
        _ => return None,
    })
}

async fn leaf_by_leaf<T: Transaction>(tx: &T, path: &[Step], item: &Value) -> Result<Answer, Error> {
    // Whether the path is valid is checked correctly.
    let before = layer().get(tx, path, Serializable).await?;
    layer().replace(tx, path, item).await?;
    // What the bug does not clear is written again.
    for kept in before.iter().flat_map(|before| kept(before, item)) {
        tx.set(&at(&[tuple(path), kept].concat()), b"");
    }
    Ok(Answer::Written)
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

fn clear<T: Transaction>(tx: &T, path: &[Step]) {
    let begin = at(&tuple(path));
    tx.clear_range(&[&begin[..], &[0]].concat(), &[&begin[..], &[0xff]].concat());
}

fn read(
    value: Result<Option<Value>, Error>,
    change: impl FnOnce(Option<Value>) -> Option<Value>,
) -> Result<Answer, Error> {
    value.map(|value| Answer::Read(change(value).as_ref().map(Shown::from)))
}

/// Replaces integers that equal a marker by what the marker stands for.
fn integers(value: Option<Value>) -> Option<Value> {
    value.map(|value| match value {
        Value::Number(number) if number.as_i64() == Some(EMPTY_OBJECT) => Map::new().into(),
        Value::Number(number) if number.as_i64() == Some(EMPTY_ARRAY) => Vec::<Value>::new().into(),
        other => other,
    })
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
