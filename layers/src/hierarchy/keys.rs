//! The key schema of a nested value, and the tuples into which a value is decomposed.
//!
//! ```text
//! (hierarchy, step, step, .., leaf)    =  ''       a null, a boolean, a number or a text
//! (hierarchy, step, .., -2, null)      =  ''       an object without members
//! (hierarchy, step, .., -1, null)      =  ''       a list without elements
//! ```
//!
//! A step is the name of an object's member (a text), or the index of a list's element (an integer from 0): a
//! negative integer before another element is therefore always a marker. A value's rows are those whose
//! tuples continue the tuple of its path. A row whose tuple ends there holds the leaf of the parent path: the
//! key of the leaf `"jones"` at `user` is also the prefix of the rows below `user`, `jones`.

use super::Error;
use crate::{
    nesting::{self, DOUBLE, FALSE, GREATEST, LEAST, MAX_DEPTH, NULL, TEXT, TRUE},
    tx::KeyValue,
};
use bytes::Bytes;
use foundationdb_tuple::{pack_into, unpack};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use std::fmt::Write;

/// The marker for an object without members.
pub const EMPTY_OBJECT: i64 = -2;

/// The marker for a list without elements.
pub const EMPTY_ARRAY: i64 = -1;

/// A step of a path: into an object or into a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Step {
    /// To the member with this name.
    Key(String),
    /// To the element with this index.
    Index(u64),
}

impl From<&str> for Step {
    fn from(name: &str) -> Step {
        Step::Key(name.to_owned())
    }
}

impl From<u64> for Step {
    fn from(index: u64) -> Step {
        Step::Index(index)
    }
}

/// The steps to a leaf, followed by the leaf; each is a JSON value that is neither object nor list.
pub type Tuple = Vec<Value>;

/// Parses a JSON text. Of several members with the same name, serde_json keeps the last.
pub fn from_json(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|e| Error::NotJson(e.to_string()))
}

/// The tuples of a value, one for each leaf.
pub fn to_tuples(item: &Value) -> Result<Vec<Tuple>, Error> {
    let mut tuples = Vec::new();
    leaves(&[], item, &mut |path, leaf| {
        let steps = path.iter().map(|step| match step {
            Step::Key(name) => Value::from(name.as_str()),
            Step::Index(index) => Value::from(*index),
        });
        let leaf = match leaf {
            Leaf::Scalar(value) => vec![value.clone()],
            Leaf::Empty(marker) => vec![marker.into(), Value::Null],
        };
        tuples.push(steps.chain(leaf).collect());
        Ok(())
    })?;
    Ok(tuples)
}

/// The value formed by tuples in order; `None` if there are no tuples.
pub fn from_tuples(tuples: &[Tuple]) -> Result<Option<Value>, Error> {
    let nests = |value: &Value| value.is_object() || value.is_array();
    if tuples.iter().flatten().any(nests) {
        return Err(Error::NotAValue("an element of a tuple is an object or a list".into()));
    }
    build(tuples).map_err(|odd| Error::NotAValue(Value::from(odd.clone()).to_string()))
}

/// A path as a JSON Pointer (RFC 6901).
pub(crate) fn pointer(path: &[Step]) -> String {
    path.iter().fold(String::new(), |mut text, step| {
        match step {
            Step::Key(name) => text.extend(["/", &name.replace('~', "~0").replace('/', "~1")]),
            // Writing to a String cannot fail.
            Step::Index(index) => drop(write!(text, "/{index}")),
        }
        text
    })
}

/// A value as displayed in an error: for an object or a list, only that it is one.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".into(),
        Value::Array(_) => "a list".into(),
        leaf => leaf.to_string(),
    }
}

/// Refuses a value that is nested deeper than [`MAX_DEPTH`].
pub(crate) fn check_depth(item: &Value) -> Result<(), Error> {
    leaves(&[], item, &mut |_, _| Ok(()))
}

/// The end of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Leaf<'a> {
    /// A value that is neither object nor list.
    Scalar(&'a Value),
    /// The marker of an empty object or list.
    Empty(i64),
}

/// Calls `visit` with each leaf of the value at `path` and the leaf's path, in key order.
pub(crate) fn leaves<'a>(
    path: &[Step],
    item: &'a Value,
    visit: &mut impl FnMut(&[Step], Leaf<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    fn walk<'a>(
        path: &mut Vec<Step>,
        item: &'a Value,
        visit: &mut impl FnMut(&[Step], Leaf<'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let nests = matches!(item, Value::Object(_) | Value::Array(_));
        if path.len() + usize::from(nests) > MAX_DEPTH {
            return Err(Error::TooDeep { at: pointer(path).chars().take(48).collect() });
        }
        match item {
            Value::Object(members) if members.is_empty() => visit(path, Leaf::Empty(EMPTY_OBJECT)),
            Value::Array(elements) if elements.is_empty() => visit(path, Leaf::Empty(EMPTY_ARRAY)),
            Value::Object(members) => members.iter().try_for_each(|(name, member)| {
                path.push(Step::Key(name.clone()));
                walk(path, member, visit)?;
                path.pop();
                Ok(())
            }),
            Value::Array(elements) => (0..).zip(elements).try_for_each(|(index, element)| {
                path.push(Step::Index(index));
                walk(path, element, visit)?;
                path.pop();
                Ok(())
            }),
            scalar => visit(path, Leaf::Scalar(scalar)),
        }
    }
    walk(&mut path.to_vec(), item, visit)
}

/// The value formed by tuples in order, or the first tuple that does not fit.
pub(crate) fn build(tuples: &[Tuple]) -> Result<Option<Value>, &Tuple> {
    /// The value formed by tuples that are equal up to `depth`; there is at least one.
    fn below(tuples: &[Tuple], depth: usize) -> Result<Value, &Tuple> {
        let first = &tuples[0];
        if depth > MAX_DEPTH {
            return Err(first);
        }
        let alone = |value| tuples.get(1).map_or(Ok(value), Err);
        let groups = || tuples.chunk_by(move |a, b| a.get(depth) == b.get(depth));
        match &first[depth.min(first.len())..] {
            [leaf] => alone(leaf.clone()),
            [marker, Value::Null] if marker.as_i64() == Some(EMPTY_OBJECT) => alone(Map::new().into()),
            [marker, Value::Null] if marker.as_i64() == Some(EMPTY_ARRAY) => {
                alone(Vec::<Value>::new().into())
            }
            [Value::String(_), _, ..] => {
                let mut members = Map::new();
                for group in groups() {
                    let Some(Value::String(name)) = group[0].get(depth) else { return Err(&group[0]) };
                    if members.insert(name.clone(), below(group, depth + 1)?).is_some() {
                        return Err(&group[0]);
                    }
                }
                Ok(members.into())
            }
            [Value::Number(_), _, ..] => {
                let mut elements = Vec::new();
                for group in groups() {
                    if group[0].get(depth).and_then(Value::as_u64) != Some(elements.len() as u64) {
                        return Err(&group[0]);
                    }
                    elements.push(below(group, depth + 1)?);
                }
                Ok(elements.into())
            }
            _ => Err(first),
        }
    }
    if tuples.is_empty() { Ok(None) } else { below(tuples, 0).map(Some) }
}

/// Appends a step to a packed tuple.
pub(crate) fn push_step(key: &mut Vec<u8>, step: &Step) {
    match step {
        Step::Key(name) => pack_into(name, key),
        Step::Index(index) => pack_into(index, key),
    };
}

/// Appends a leaf to a packed tuple, preserving the type of numbers: 1 and 1.0 differ.
pub(crate) fn push_scalar(key: &mut Vec<u8>, scalar: &Value) -> Result<(), Error> {
    match scalar {
        Value::Bool(truth) => pack_into(truth, key),
        Value::String(text) => pack_into(text, key),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(integer), _, _) => pack_into(&integer, key),
            (None, Some(integer), _) => pack_into(&integer, key),
            (None, None, Some(float)) => pack_into(&float, key),
            (None, None, None) => return Err(Error::Number(number.to_string())),
        },
        // Objects and lists have been decomposed before.
        Value::Null | Value::Object(_) | Value::Array(_) => pack_into(&None::<()>, key),
    };
    Ok(())
}

/// The elements of a packed tuple, if all of them are JSON values.
pub(crate) fn scalars(mut packed: &[u8]) -> Option<Tuple> {
    let mut tuple = Vec::new();
    while let Some(length) = first_length(packed) {
        let (element, rest) = packed.split_at_checked(length)?;
        tuple.push(scalar(element)?);
        packed = rest;
    }
    packed.is_empty().then_some(tuple)
}

/// The length of the first element of a packed tuple, if it is a JSON value.
pub(crate) fn first_length(packed: &[u8]) -> Option<usize> {
    match *packed.first()? {
        NULL | FALSE | TRUE | DOUBLE | TEXT | LEAST..=GREATEST => nesting::first_length(packed),
        _ => None,
    }
}

fn scalar(element: &[u8]) -> Option<Value> {
    Some(match *element.first()? {
        NULL => Value::Null,
        FALSE => Value::Bool(false),
        TRUE => Value::Bool(true),
        TEXT => Value::String(unpack(element).ok()?),
        DOUBLE => Value::Number(Number::from_f64(unpack(element).ok()?)?),
        _ => match unpack::<i64>(element) {
            Ok(integer) => integer.into(),
            Err(_) => unpack::<u64>(element).ok()?.into(),
        },
    })
}

/// The kind of a value, as determined by its first row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Neither object nor list.
    Leaf,
    /// An empty object or list, with its marker.
    Empty(i64),
    /// An object with members.
    Object,
    /// A list with elements.
    List,
}

/// The kind of the value whose first row is `row`, with this tuple below the value's path.
pub(crate) fn shape(tuple: Option<Tuple>, row: &KeyValue) -> Result<Shape, Error> {
    let foreign = || Error::Foreign(Bytes::clone(&row.key));
    Ok(match &tuple.ok_or_else(foreign)?[..] {
        [_] => Shape::Leaf,
        [Value::String(_), ..] => Shape::Object,
        [Value::Number(number), ..] => match number.as_i64() {
            Some(marker @ (EMPTY_OBJECT | EMPTY_ARRAY)) => Shape::Empty(marker),
            Some(0) => Shape::List,
            _ => return Err(foreign()),
        },
        _ => return Err(foreign()),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// All kinds of JSON values, with a high share of edge cases.
    pub(crate) fn values() -> impl Strategy<Value = Value> {
        let name =
            || prop::sample::select(vec!["", "a", "a\0", "a\0b", "ab", "\u{ffff}", "𝄞", "-2", "0", "é/~"]);
        let float = prop_oneof![
            any::<f64>().prop_filter("JSON has no such number", |f| f.is_finite()),
            prop::sample::select(vec![-0.0, 0.0, 1.0, -1.0, -2.0, f64::MIN_POSITIVE, 5e-324, f64::MAX]),
        ];
        let integer = prop::sample::select(vec![0, 1, -1, -2, -3, 255, 256, i64::MAX, i64::MIN, -255, -256]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            integer.prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            Just(Value::from(u64::MAX)),
            float.prop_map(Value::from),
            name().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 48, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((name(), inner), 0..5)
                    .prop_map(|members| members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_is_the_value_of_its_tuples(item in values()) {
            let tuples = to_tuples(&item).unwrap();
            let again = from_tuples(&tuples).unwrap().unwrap();
            // Compared as text, since -0.0 and 0.0 differ there.
            prop_assert_eq!(again.to_string(), item.to_string());
        }

        #[test]
        fn packed_scalars_do_not_depend_on_what_precedes_them(item in values()) {
            for tuple in to_tuples(&item).unwrap() {
                let mut packed = Vec::new();
                for scalar in &tuple {
                    push_scalar(&mut packed, scalar).unwrap();
                }
                let again = scalars(&packed).unwrap();
                prop_assert_eq!(Value::from(again).to_string(), Value::from(tuple).to_string());
            }
        }

        #[test]
        fn bytes_that_are_not_a_tuple_decode_as_none(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            if let Some(tuple) = scalars(&bytes) {
                let mut packed = Vec::new();
                tuple.iter().for_each(|scalar| push_scalar(&mut packed, scalar).unwrap());
                prop_assert!(packed.len() <= bytes.len());
            }
        }
    }

    #[test]
    fn tuples_sort_as_leaves_are_visited() {
        let item = json!({"": 0, "a": {"b": [], "c": [1, {"d": null}, 3]}, "a\0": -2, "ab": {}});
        let tuples = to_tuples(&item).unwrap();
        let packed = tuples.iter().map(|tuple| {
            let mut packed = Vec::new();
            tuple.iter().for_each(|scalar| push_scalar(&mut packed, scalar).unwrap());
            packed
        });
        assert!(packed.is_sorted());
        assert_eq!(tuples[1], [json!("a"), json!("b"), json!(EMPTY_ARRAY), Value::Null]);
        assert_eq!(tuples[6], [json!("ab"), json!(EMPTY_OBJECT), Value::Null]);
        assert_eq!(from_tuples(&tuples), Ok(Some(item)));
    }

    #[test]
    fn integers_equal_to_a_marker_round_trip() {
        for item in [json!(-2), json!([-2]), json!({"a": -1}), json!([[], -1, null]), json!({"-2": null})] {
            assert_eq!(from_tuples(&to_tuples(&item).unwrap()), Ok(Some(item)));
        }
    }

    #[test]
    fn tuples_that_form_no_value_are_refused_by_name() {
        let odd = |tuples: Value| {
            let tuples: Vec<Tuple> = serde_json::from_value(tuples).unwrap();
            from_tuples(&tuples).unwrap_err()
        };
        let named = |tuple: &str| Error::NotAValue(tuple.into());
        assert_eq!(odd(json!([[1], [2]])), named("[2]"));
        assert_eq!(odd(json!([["a", 1], ["a", "b", 2]])), named(r#"["a","b",2]"#));
        assert_eq!(odd(json!([["a", -2, null], ["a", "b", 2]])), named(r#"["a","b",2]"#));
        assert_eq!(odd(json!([[0, 1], [2, 1]])), named("[2,1]"));
        assert_eq!(odd(json!([[1, 1]])), named("[1,1]"));
        assert_eq!(odd(json!([[0, 1], ["a", 1]])), named(r#"["a",1]"#));
        assert_eq!(odd(json!([["a", 1], [0, 1]])), named("[0,1]"));
        assert_eq!(odd(json!([["a", 1], ["b", 1], ["a", 1]])), named(r#"["a",1]"#));
        assert_eq!(odd(json!([["a", 1], ["b"]])), named(r#"["b"]"#));
        assert_eq!(odd(json!([[]])), named("[]"));
        for nested in [json!([[{}]]), json!([["a", []]])] {
            assert!(matches!(odd(nested), Error::NotAValue(why) if why.contains("an object or a list")));
        }
        assert_eq!(from_tuples(&[]), Ok(None));
    }

    #[test]
    fn nesting_ends_where_serde_json_does() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(to_tuples(&from_json(&nested(MAX_DEPTH)).unwrap()).is_ok());
        assert!(matches!(from_json(&nested(MAX_DEPTH + 1)), Err(Error::NotJson(_))));
        let deepest = (0..=MAX_DEPTH).fold(Value::Null, |inner, _| Value::from(vec![inner]));
        let refused = to_tuples(&deepest).unwrap_err();
        assert!(matches!(&refused, Error::TooDeep { at } if at.starts_with("/0/0")), "{refused}");
        assert!(to_tuples(&deepest[0]).is_ok());
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in ["NaN", "[Infinity]", "{\"a\": -inf}", "{a: 1}", "", "1 2", "1e999"] {
            assert!(matches!(from_json(text), Err(Error::NotJson(_))), "{text}");
        }
        assert_eq!(from_json("{\"a\": 1, \"a\": 2}"), Ok(json!({"a": 2})));
    }

    #[test]
    fn places_are_displayed_as_json_pointers() {
        assert_eq!(pointer(&[]), "");
        assert_eq!(pointer(&["a/b".into(), 3.into(), "".into(), "~".into()]), "/a~1b/3//~0");
    }
}
