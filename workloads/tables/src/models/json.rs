//! JSON values: how workloads draw, change and return them; and a whole nested value, as the sequential model
//! of layers that store it in pieces.

use foundationdb_tuple::pack_into;
use proptest::{collection::vec, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shaketable::specimen::Content;
use shaketable_layers::hierarchy::{EMPTY_ARRAY, EMPTY_OBJECT, Error, MAX_DEPTH, Step, Tuple};
use shaketable_tx::limits;
use std::{
    collections::BTreeMap,
    fmt::{self, Debug},
};

/// A JSON value that equals another one only if their texts are equal: 0.0 and -0.0 differ.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(pub Value);

impl PartialEq for Json {
    fn eq(&self, other: &Json) -> bool {
        let text = |value: &Value| value.to_string();
        text(&self.0) == text(&other.0)
    }
}

impl Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A JSON value as answers contain it: its text, or a digest of a long one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// The whole text.
    Text(String),
    /// The beginning of a long text.
    Long(Content),
}

impl From<&Value> for Shown {
    fn from(value: &Value) -> Shown {
        let text = value.to_string();
        match text.len() {
            ..=200 => Shown::Text(text),
            _ => Shown::Long(Content::from(&text)),
        }
    }
}

/// What a workload writes: a value, or the description of a large one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Item {
    /// This value.
    Value(Json),
    /// A text of this many bytes.
    Text(usize),
    /// A text of this many bytes, most of which take four to a character.
    Wide(usize),
    /// This many nested lists around a null.
    Nested(usize),
}

impl Item {
    /// The value.
    pub fn value(&self) -> Value {
        match self {
            Item::Value(Json(value)) => value.clone(),
            Item::Text(bytes) => Value::String("0123456789".chars().cycle().take(*bytes).collect()),
            Item::Wide(bytes) => Value::String("a".repeat(bytes % 4) + &"𝄞".repeat(bytes / 4)),
            Item::Nested(depth) => (0..*depth).fold(Value::Null, |inner, _| Value::from(vec![inner])),
        }
    }
}

/// The names of members that are drawn: some continue another, one of them with the last code point, and one
/// is empty.
const NAMES: [&str; 7] = ["a", "a\0b", "\u{10ffff}", "b", "a\u{10ffff}", "", "\u{ffff}"];

/// The number of names.
pub const MOST_NAMES: usize = NAMES.len();

/// One of the first `names` names.
pub fn name(names: usize) -> impl Strategy<Value = String> + Clone {
    select(&NAMES[..names]).prop_map(str::to_owned)
}

/// A path of up to this many steps, often a short one.
pub fn path(names: usize, longest: usize) -> BoxedStrategy<Vec<Step>> {
    let step = prop_oneof![4 => name(names).prop_map(Step::Key), 2 => (0..3u64).prop_map(Step::Index)];
    prop_oneof![vec(step.clone(), 0..=longest), vec(step, 1..=2)].boxed()
}

/// A leaf of any kind, including numbers that are markers elsewhere, and numbers that other types treat as
/// equal.
pub fn leaf() -> impl Strategy<Value = Value> + Clone {
    let integer = select(vec![-2, -2, -1, -1, 0, 1, 127, 128, 255, 256, -255, -256, i64::MIN, i64::MAX]);
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        integer.prop_map(Value::from),
        select(vec![1.0, -0.0, 0.0, -2.0, 0.5, 1e300]).prop_map(Value::from),
        select(vec![u64::MAX, i64::MAX as u64 + 1]).prop_map(Value::from),
        select(vec!["", "x", "a", "a\0b", "\u{ffff}𝄞", "ß", "İ"]).prop_map(Value::from),
    ]
}

/// A small value with some of these names.
pub fn value(names: usize) -> BoxedStrategy<Value> {
    leaf()
        .prop_recursive(3, 10, 3, move |inner| {
            prop_oneof![
                2 => vec(inner.clone(), 0..4).prop_map(Value::from),
                3 => vec((name(names), inner), 0..3).prop_map(|members| members.into_iter().collect()),
            ]
        })
        .boxed()
}

/// The value at a path.
pub fn get<'a>(root: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(root, |at, step| match step {
        Step::Key(name) => at.as_object()?.get(name),
        Step::Index(index) => at.as_array()?.get(*index as usize),
    })
}

/// Replaces the value at a path by what `change` returns.
pub fn change(
    root: Option<Value>,
    path: &[Step],
    change: impl FnOnce(Option<Value>) -> Value,
) -> Result<Value, Error> {
    fn below(
        at: Option<Value>,
        path: &[Step],
        depth: usize,
        change: impl FnOnce(Option<Value>) -> Value,
    ) -> Result<Value, Error> {
        let here = || pointer(&path[..depth]);
        match path.get(depth) {
            None => Ok(change(at)),
            Some(Step::Key(name)) => {
                let mut members = match at {
                    None => Map::new(),
                    Some(Value::Object(members)) => members,
                    Some(_) => return Err(Error::NotAnObject(here())),
                };
                let member = below(members.remove(name), path, depth + 1, change)?;
                members.insert(name.clone(), member);
                Ok(members.into())
            }
            Some(Step::Index(index)) => {
                let mut elements = match at {
                    None => Vec::new(),
                    Some(Value::Array(elements)) => elements,
                    Some(_) => return Err(Error::NotAList(here())),
                };
                let length = elements.len() as u64;
                if *index > length {
                    return Err(Error::Gap { at: here(), index: *index, length });
                }
                let old = (*index < length).then(|| elements.remove(*index as usize));
                elements.insert(*index as usize, below(old, path, depth + 1, change)?);
                Ok(elements.into())
            }
        }
    }
    below(root, path, 0, change)
}

/// Merges a value into another; objects are united.
pub fn merged(old: Option<Value>, new: &Value) -> Value {
    match (old, new) {
        (Some(Value::Object(mut old)), Value::Object(new)) => {
            for (name, member) in new {
                let before = old.remove(name);
                old.insert(name.clone(), merged(before, member));
            }
            old.into()
        }
        (_, new) => new.clone(),
    }
}

/// Removes the value at a path. Returns whether there was one.
pub fn remove(root: &mut Option<Value>, path: &[Step]) -> bool {
    let Some((last, above)) = path.split_last() else { return root.take().is_some() };
    let above = above.iter().try_fold(root.as_mut(), |at, step| match (step, at) {
        (Step::Key(name), Some(Value::Object(members))) => Some(members.get_mut(name)),
        (Step::Index(index), Some(Value::Array(elements))) => Some(elements.get_mut(*index as usize)),
        _ => None,
    });
    match (last, above.flatten()) {
        (Step::Key(name), Some(Value::Object(members))) => members.remove(name).is_some(),
        (Step::Index(index), Some(Value::Array(elements))) if (*index as usize) < elements.len() => {
            elements.remove(*index as usize);
            true
        }
        _ => false,
    }
}

/// Where the layer stores leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// In the key.
    Key,
    /// In the value; a text in pieces of this many bytes.
    Value(usize),
}

/// Refuses what the layer refuses to write at a path below the key `root`, before it reads.
pub fn fits(root: &[u8], leaves: Leaves, path: &[Step], item: &Value) -> Result<(), Error> {
    let nests = usize::from(item.is_object() || item.is_array());
    if path.len() + nests > MAX_DEPTH {
        return Err(Error::TooDeep { at: pointer(path).chars().take(48).collect() });
    }
    let at = |step| path.iter().cloned().chain([step]).collect::<Vec<_>>();
    match item {
        Value::Object(members) if !members.is_empty() => members
            .iter()
            .try_for_each(|(name, member)| fits(root, leaves, &at(Step::Key(name.clone())), member)),
        Value::Array(elements) if !elements.is_empty() => {
            (0..).zip(elements).try_for_each(|(i, element)| fits(root, leaves, &at(Step::Index(i)), element))
        }
        leaf => {
            let mut tuple = tuple(path);
            match (leaves, leaf) {
                (Leaves::Value(longest), Value::String(text)) if text.len() > longest => {
                    // From these pieces on, their numbers take one byte more.
                    let pieces = text.len().div_ceil(longest);
                    return [0, 1, 256].into_iter().filter(|number| *number < pieces).try_for_each(
                        |number| {
                            let piece = [Value::from(-3), Value::from(number)];
                            Ok(limits::key(&key(root, &[&tuple[..], &piece].concat()))?)
                        },
                    );
                }
                (_, Value::Object(_)) => tuple.push(EMPTY_OBJECT.into()),
                (_, Value::Array(_)) => tuple.push(EMPTY_ARRAY.into()),
                (Leaves::Key, leaf) => tuple.push(leaf.clone()),
                (Leaves::Value(_), _) => {}
            }
            if leaves == Leaves::Key && nests > 0 {
                tuple.push(Value::Null);
            }
            Ok(limits::key(&key(root, &tuple))?)
        }
    }
}

/// Refuses a path that fits into no key, as the layer does.
pub fn reaches(root: &[u8], path: &[Step]) -> Result<(), Error> {
    Ok(limits::key(&key(root, &tuple(path)))?)
}

/// A path, as the beginning of a tuple.
pub fn tuple(path: &[Step]) -> Tuple {
    path.iter()
        .map(|step| match step {
            Step::Key(name) => Value::from(name.as_str()),
            Step::Index(index) => Value::from(*index),
        })
        .collect()
}

/// The key of a tuple.
pub fn key(root: &[u8], tuple: &[Value]) -> Vec<u8> {
    let mut key = root.to_vec();
    for element in tuple {
        match element {
            Value::Bool(truth) => pack_into(truth, &mut key),
            Value::String(text) => pack_into(text, &mut key),
            Value::Number(n) if n.is_f64() => pack_into(&n.as_f64(), &mut key),
            Value::Number(n) if n.is_i64() => pack_into(&n.as_i64(), &mut key),
            Value::Number(n) => pack_into(&n.as_u64(), &mut key),
            _ => pack_into(&None::<()>, &mut key),
        };
    }
    key
}

/// A path as a JSON Pointer.
fn pointer(path: &[Step]) -> String {
    let step = |step: &Step| match step {
        Step::Key(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
        Step::Index(index) => format!("/{index}"),
    };
    path.iter().map(step).collect()
}

/// A value that is assembled from its tuples one by one. It refuses a tuple that does not fit.
#[derive(Debug, Default)]
pub struct Assembly {
    /// A leaf or a marker that ends here.
    leaf: Option<Value>,
    members: BTreeMap<String, Assembly>,
    elements: BTreeMap<u64, Assembly>,
}

impl Assembly {
    /// Adds a tuple.
    pub fn add(&mut self, tuple: &[Value]) -> Result<(), String> {
        let below = match tuple {
            [leaf] => return self.end(leaf.clone()),
            [marker, Value::Null] if *marker == EMPTY_OBJECT => return self.end(Map::new().into()),
            [marker, Value::Null] if *marker == EMPTY_ARRAY => return self.end(Vec::<Value>::new().into()),
            [Value::String(name), ..] => self.members.entry(name.clone()).or_default(),
            [Value::Number(index), ..] if index.is_u64() => {
                self.elements.entry(index.as_u64().unwrap_or(u64::MAX)).or_default()
            }
            other => return Err(format!("no path continues with {}", Value::from(other))),
        };
        below.add(&tuple[1..])
    }

    fn end(&mut self, leaf: Value) -> Result<(), String> {
        match self.leaf.replace(leaf) {
            None => Ok(()),
            Some(other) => Err(format!("two leaves at the same place, one of them {other}")),
        }
    }

    /// The value, or `None` if no tuple was added.
    pub fn finish(self) -> Result<Option<Value>, String> {
        match (self.leaf, self.members, self.elements) {
            (leaf, members, elements) if members.is_empty() && elements.is_empty() => Ok(leaf),
            (None, members, elements) if elements.is_empty() => {
                let member =
                    |(name, member): (String, Assembly)| Ok((name, member.finish()?.unwrap_or_default()));
                members.into_iter().map(member).collect::<Result<Map<_, _>, String>>().map(|m| Some(m.into()))
            }
            (None, members, elements) if members.is_empty() => {
                let element = |(expected, (index, element)): (u64, (u64, Assembly))| match index == expected {
                    true => Ok(element.finish()?.unwrap_or_default()),
                    false => Err(format!("a list has no element {expected}, but it has element {index}")),
                };
                let elements = (0..).zip(elements).map(element).collect::<Result<Vec<_>, String>>()?;
                Ok(Some(elements.into()))
            }
            (leaf, members, elements) => Err(format!(
                "{} members, {} elements and {leaf:?} at the same place",
                members.len(),
                elements.len()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn changes_are_those_of_a_value_in_one_piece() {
        let put = |root: Value, path: &[Step], item: Value| change(Some(root), path, |_| item);
        assert_eq!(put(json!({"a": 1}), &["b".into(), 0.into()], json!(2)), Ok(json!({"a": 1, "b": [2]})));
        assert_eq!(put(json!([1, 2]), &[1.into()], json!(3)), Ok(json!([1, 3])));
        assert_eq!(put(json!([1, 2]), &[2.into()], json!(3)), Ok(json!([1, 2, 3])));
        assert_eq!(
            put(json!([1]), &[2.into()], json!(3)),
            Err(Error::Gap { at: "".into(), index: 2, length: 1 })
        );
        assert_eq!(
            put(json!({"a": 1}), &["a".into(), "b".into()], json!(2)),
            Err(Error::NotAnObject("/a".into()))
        );
        assert_eq!(change(None, &["a".into()], |_| json!(1)), Ok(json!({"a": 1})));
        assert_eq!(
            merged(Some(json!({"a": {"b": 1}, "c": [1, 2]})), &json!({"a": {"d": null}, "c": [3]})),
            json!({"a": {"b": 1, "d": null}, "c": [3]})
        );
        let mut root = Some(json!({"a": [1, 2]}));
        assert!(!remove(&mut root, &["b".into()]));
        assert!(!remove(&mut root, &["a".into(), 2.into()]));
        assert!(remove(&mut root, &["a".into(), 0.into()]));
        assert_eq!(root, Some(json!({"a": [2]})));
        assert!(remove(&mut root, &[]));
        assert_eq!(root, None);
    }

    #[test]
    fn an_assembly_refuses_tuples_that_do_not_fit() {
        let of = |tuples: Value| {
            let tuples: Vec<Tuple> = serde_json::from_value(tuples).unwrap();
            let mut assembly = Assembly::default();
            tuples.iter().try_for_each(|tuple| assembly.add(tuple))?;
            assembly.finish()
        };
        assert_eq!(of(json!([])), Ok(None));
        assert_eq!(
            of(json!([["a", 0, 1], ["a", 1, -2], ["b", -2, null]])),
            Ok(Some(json!({"a": [1, -2], "b": {}})))
        );
        assert!(of(json!([["a", 1], ["a", 2]])).unwrap_err().contains("two leaves"));
        assert!(of(json!([["a", 1], ["a", "b", 2]])).unwrap_err().contains("1 members"));
        assert!(of(json!([[-1, null], [0, 2]])).unwrap_err().contains("1 elements"));
        assert!(of(json!([[0, 1], [2, 2]])).unwrap_err().contains("no element 1"));
        assert!(of(json!([[-3, 2]])).unwrap_err().contains("continues"));
        assert!(of(json!([[null, 2]])).unwrap_err().contains("continues"));
    }
}
