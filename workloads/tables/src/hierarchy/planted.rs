//! Planted bugs: a hierarchy implemented or used wrongly.

use super::{Answer, Hierarchy, Op, layer, space};
use crate::models::json::{Shown, key, tuple};
use serde_json::{Map, Value};
use shaketable::{
    specimen::{INTERLEAVED, UNRECORDED},
    weakened::{Flaw, everything, flawed},
};
use shaketable_layers::hierarchy::{EMPTY_ARRAY, EMPTY_OBJECT, Error, Step};
use shaketable_tx::{
    Isolation::{self, Serializable},
    Transaction, Tx,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two changes that run side by side in one transaction decide about the same rows", "two futures in one transaction";
    Unrecorded = UNRECORDED, "an insert is retried after an unknown result without an operation record", "a write done twice";
    BlindInsert = "blind-insert", "an insert writes its tuples in addition to whatever is stored", "the recipe's insert_hier";
    IntegerMarkers = "integer-markers", "the integers -2 and -1 are read as an empty object and an empty list", "the recipe's markers, recognized by their first element";
    FromTheRoot = "from-the-root", "a read by path returns the tree from the root on", "the recipe's get_sub_hier";
    AbsentIsEmpty = "absent-is-empty", "a missing value is read as an empty object", "a published from_tuples";
    OneNumber = "one-number", "1.0 is stored as 1 and -0.0 as 0", "one type for all numbers";
    SkipsLong = "skips-long", "a leaf that is too long for a key is left out", "a limit that is discovered late";
    TuplesConflict = "tuples-conflict", "tuples that are requested at snapshot are read serializably", "an isolation that is not passed on";
    ClearedFirst = "cleared-first", "what is at a path is cleared before it is known whether the path can be written", "a refusal that comes too late";
    MembersEnd = "members-end", "the members of an object are read up to the name U+FFFF", "a range that ends at a constant";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform(
    planted: Planted,
    workload: &Hierarchy,
    tx: &Tx,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let hierarchy = layer();
    let read = async |path: &[Step]| hierarchy.get(tx, path, isolation).await;
    let told = |value: Option<Value>| Ok(Answer::Read(value.as_ref().map(Shown::from)));
    match (planted, op) {
        (Planted::BlindInsert, Op::Insert(..)) => {
            workload.right(&flawed(tx, Flaw::Uncleared, everything()), op, isolation).await
        }
        (Planted::IntegerMarkers, Op::Get(path)) => {
            told(read(path).await?.map(|value| match value.as_i64() {
                Some(EMPTY_OBJECT) => Map::new().into(),
                Some(EMPTY_ARRAY) => Vec::<Value>::new().into(),
                _ => value,
            }))
        }
        (Planted::FromTheRoot, Op::Get(path)) => told(read(path).await?.map(|value| from_root(path, value))),
        (Planted::AbsentIsEmpty, Op::Get(path)) => told(read(path).await?.or(Some(Map::new().into()))),
        (Planted::OneNumber, Op::Replace(path, item)) => {
            hierarchy.replace(tx, path, &one_number(item.value())).await.map(|()| Answer::Written)
        }
        (Planted::ClearedFirst, Op::Replace(path, _)) => {
            let replaced = workload.right(tx, op, isolation).await;
            if matches!(replaced, Err(Error::NotAnObject(_) | Error::NotAList(_) | Error::Gap { .. })) {
                let begin = key(space().bytes(), &tuple(path));
                tx.clear_range(&[&begin[..], &[0]].concat(), &[&begin[..], &[0xff]].concat());
            }
            replaced
        }
        (Planted::MembersEnd, Op::Get(path)) => told(read(path).await?.map(members_end)),
        (Planted::SkipsLong, Op::Replace(..)) => match workload.right(tx, op, isolation).await {
            Err(Error::TooLarge(_)) => Ok(Answer::Written),
            other => other,
        },
        (Planted::TuplesConflict, Op::Tuples(_)) => workload.right(tx, op, Serializable).await,
        _ => workload.right(tx, op, isolation).await,
    }
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
            Some(x) if number.is_f64() && x.fract() == 0.0 && x.abs() < 1e15 => (x as i64).into(),
            _ => number.into(),
        },
        Value::Array(elements) => elements.into_iter().map(one_number).collect(),
        Value::Object(members) => members.into_iter().map(|(k, v)| (k, one_number(v))).collect(),
        other => other,
    }
}
