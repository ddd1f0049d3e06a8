//! Simplifies configurations as JSON: each part is replaced with a simpler one that other seeds have drawn.
//!
//! Only values that the workload draws are used, because it might never end with any other.

use serde_json::Value;
use std::collections::BTreeMap;

/// The most values that are tried for one part of a configuration.
const VALUES: usize = 3;

/// The parts of drawn configurations: the values seen at each path that are simpler than the present one.
pub(super) struct Parts(BTreeMap<String, Vec<Value>>);

impl Parts {
    /// The parts of a configuration for which others have simpler values.
    pub(super) fn new(present: &Value, others: &[Value]) -> Parts {
        let mut parts = BTreeMap::new();
        collect(present, &others.iter().collect::<Vec<_>>(), "", &mut parts);
        Parts(parts)
    }

    /// The configuration with the simplest value of some of the parts.
    pub(super) fn simplest(&self, paths: &[&str], present: &Value) -> Value {
        let mut changed = present.clone();
        // Ascending paths: what is inside of a part is replaced after it.
        for path in paths {
            let value = self.0.get(*path).and_then(|values| values.first());
            if let (Some(part), Some(value)) = (changed.pointer_mut(path), value)
                && is_simpler(value, part)
            {
                *part = value.clone();
            }
        }
        changed
    }

    /// The paths of the parts, outer ones before what is in them.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The configuration with simpler values of one part, the simplest first.
    pub(super) fn simpler<'a>(
        &'a self,
        path: &'a str,
        present: &'a Value,
    ) -> impl Iterator<Item = Value> + 'a {
        let part = present.pointer(path);
        let simpler = move |value: &&Value| part.is_some_and(|part| is_simpler(value, part));
        let values: Vec<&Value> = self.0.get(path).into_iter().flatten().filter(simpler).collect();
        let step = values.len().div_ceil(VALUES).max(1);
        values.into_iter().step_by(step).map(move |value| {
            let mut changed = present.clone();
            if let Some(part) = changed.pointer_mut(path) {
                *part = value.clone();
            }
            changed
        })
    }
}

/// Collects the simpler values of a part, and of the parts in it.
fn collect(present: &Value, others: &[&Value], path: &str, into: &mut BTreeMap<String, Vec<Value>>) {
    let mut simpler: Vec<Value> =
        others.iter().filter(|other| is_simpler(other, present)).map(|other| (*other).clone()).collect();
    simpler.sort_by_key(weight);
    simpler.dedup();
    // The whole is no part.
    if !simpler.is_empty() && !path.is_empty() {
        into.insert(path.to_owned(), simpler);
    }
    let children: Vec<(String, &Value)> = match present {
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| (name.replace('~', "~0").replace('/', "~1"), field)).collect()
        }
        Value::Array(items) => items.iter().enumerate().map(|(at, item)| (at.to_string(), item)).collect(),
        _ => Vec::new(),
    };
    for (name, child) in children {
        let at = format!("/{name}");
        let inside: Vec<&Value> = others.iter().filter_map(|other| other.pointer(&at)).collect();
        collect(child, &inside, &format!("{path}{at}"), into);
    }
}

/// Whether a value is simpler than another one: nowhere larger or longer, and somewhere smaller or shorter.
fn is_simpler(a: &Value, b: &Value) -> bool {
    a != b && is_at_most(a, b)
}

fn is_at_most(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, _) => true,
        (Value::Bool(a), Value::Bool(b)) => a <= b,
        (Value::Number(_), Value::Number(_)) => number(a).abs() <= number(b).abs(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() < b.len() || (a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_at_most(a, b)))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| is_at_most(a, b)))
        }
        _ => a == b,
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::MAX)
}

/// The sum of the numbers and lengths in a value.
fn weight(value: &Value) -> u64 {
    match value {
        Value::Null => 0,
        Value::Bool(is) => 1 + u64::from(*is),
        Value::Number(_) => 1u64.saturating_add(number(value).abs() as u64),
        Value::String(text) => 1 + text.len() as u64,
        Value::Array(items) => items.iter().fold(1, |sum, item| weight(item).saturating_add(sum)),
        Value::Object(fields) => fields.values().fold(1, |sum, field| weight(field).saturating_add(sum)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn drawn() -> (Value, Vec<Value>) {
        let present = json!({"users": 7, "prefix": [9, 9], "range": {"start": 3, "end": 9}, "kind": "Wide", "bug": "A"});
        let others = vec![
            json!({"users": 2, "prefix": [], "range": {"start": 4, "end": 5}, "kind": "Slim", "bug": "A"}),
            json!({"users": 5, "prefix": [4, 4, 4], "range": {"start": 1, "end": 4}, "kind": "Wide", "bug": "A"}),
            json!({"users": 9, "prefix": [4], "range": {"start": 2, "end": 4}, "kind": "Wide", "bug": "A"}),
        ];
        (present, others)
    }

    #[test]
    fn only_simpler_values_that_were_drawn_are_used() {
        let (present, others) = drawn();
        let parts = Parts::new(&present, &others);
        let paths: Vec<&str> = parts.paths().collect();
        assert_eq!(
            paths,
            ["/prefix", "/prefix/0", "/prefix/1", "/range", "/range/end", "/range/start", "/users"]
        );
        let tried = |path: &str| -> Vec<Value> {
            parts
                .simpler(path, &present)
                .map(|value| value.pointer(path).cloned().expect("it is there"))
                .collect()
        };
        assert_eq!(tried("/users"), [json!(2), json!(5)]);
        assert_eq!(tried("/prefix"), [json!([]), json!([4])]);
        assert_eq!(tried("/range"), [json!({"start": 1, "end": 4}), json!({"start": 2, "end": 4})]);
        assert_eq!(tried("/kind"), Vec::<Value>::new(), "no text is simpler than another one");
    }

    #[test]
    fn all_parts_at_once() {
        let (present, others) = drawn();
        let all_of = |parts: Parts, of| parts.simplest(&parts.paths().collect::<Vec<_>>(), of);
        let all = all_of(Parts::new(&present, &others), &present);
        let simplest =
            json!({"users": 2, "prefix": [], "range": {"start": 1, "end": 4}, "kind": "Wide", "bug": "A"});
        assert_eq!(all, simplest);
        assert_eq!(all_of(Parts::new(&all, &others), &all), all);
    }

    #[test]
    fn what_is_simpler() {
        assert!(is_simpler(&json!(null), &json!(4)) && !is_simpler(&json!(4), &json!(null)));
        assert!(is_simpler(&json!(false), &json!(true)) && is_simpler(&json!(1), &json!(-2)));
        assert!(is_simpler(&json!([9]), &json!([1, 1])) && !is_simpler(&json!([2, 0]), &json!([1, 1])));
        assert!(!is_simpler(&json!({"a": 1}), &json!({"b": 2})));
    }
}
