//! Infers from samples which operations the strategy of a configuration can draw.
//!
//! A simpler configuration is a valid candidate only if its strategy could have drawn the operations that
//! remain in the plan. A strategy cannot be asked that, so operations are drawn from it as samples, and the
//! remaining operations must resemble them in the types and ranges of their values.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// From this many different texts at a path on, any text may occur there. With fewer, only those that were
/// seen may: they are names.
const ARBITRARY: usize = 8;

/// The values that samples have at each path. All items of a list have the same path.
#[derive(Default)]
pub(super) struct SampledValues(BTreeMap<String, Seen>);

#[derive(Default)]
struct Seen {
    has_bool: bool,
    has_null: bool,
    /// The smallest and the greatest number, 0 included.
    numbers: Option<(f64, f64)>,
    texts: BTreeSet<String>,
    longest_list: Option<usize>,
    is_object: bool,
}

impl SampledValues {
    /// Collects the values of lists of operations.
    pub(super) fn of<'a>(lists: impl Iterator<Item = &'a Value>) -> SampledValues {
        let mut sampled = SampledValues::default();
        for list in lists {
            // How many operations there are does not matter.
            list.as_array().into_iter().flatten().for_each(|operation| sampled.add(operation, ""));
        }
        sampled
    }

    fn add(&mut self, value: &Value, path: &str) {
        let seen = self.0.entry(path.to_owned()).or_default();
        match value {
            Value::Null => seen.has_null = true,
            Value::Bool(_) => seen.has_bool = true,
            Value::Number(number) => {
                let number = number.as_f64().unwrap_or_default();
                let (least, most) = seen.numbers.unwrap_or_default();
                seen.numbers = Some((least.min(number), most.max(number)));
            }
            Value::String(text) => drop(seen.texts.insert(text.clone())),
            Value::Array(items) => seen.longest_list = seen.longest_list.max(Some(items.len())),
            Value::Object(_) => seen.is_object = true,
        }
        inside(value, path, |child, path| {
            self.add(child, path);
            true
        });
    }

    /// Whether the operations of a list resemble the samples.
    pub(super) fn contains(&self, list: &Value) -> bool {
        list.as_array().into_iter().flatten().all(|operation| self.has(operation, ""))
    }

    fn has(&self, value: &Value, path: &str) -> bool {
        let Some(seen) = self.0.get(path) else { return false };
        let is_seen = match value {
            Value::Null => seen.has_null,
            Value::Bool(_) => seen.has_bool,
            Value::Number(number) => seen
                .numbers
                .zip(number.as_f64())
                .is_some_and(|((least, most), number)| (least..=most).contains(&number)),
            Value::String(text) => {
                let is_short = || seen.texts.iter().any(|other| other.len() >= text.len());
                seen.texts.contains(text) || (seen.texts.len() >= ARBITRARY && is_short())
            }
            Value::Array(items) => seen.longest_list.is_some_and(|longest| items.len() <= longest),
            Value::Object(_) => seen.is_object,
        };
        is_seen && inside(value, path, |child, path| self.has(child, path))
    }
}

/// Whether something is true for everything directly in a value.
fn inside(value: &Value, path: &str, mut all: impl FnMut(&Value, &str) -> bool) -> bool {
    match value {
        Value::Array(items) => {
            let path = format!("{path}/*");
            items.iter().all(|item| all(item, &path))
        }
        Value::Object(fields) => fields.iter().all(|(name, field)| all(field, &format!("{path}/{name}"))),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_operation_that_resembles_no_sample_is_refused() {
        let samples = [
            json!([{"Set": [3, "low"]}, "Look"]),
            json!([{"Set": [8, "high"]}, {"Pages": {"sizes": [1, 2], "last": null}}]),
        ];
        let sampled = SampledValues::of(samples.iter());
        let holds = |operation: Value| sampled.contains(&json!([operation]));
        assert!(holds(json!({"Set": [0, "high"]})) && holds(json!("Look")));
        assert!(holds(json!({"Pages": {"sizes": [2], "last": null}})));
        for refused in [
            json!({"Set": [9, "low"]}),
            json!({"Set": [-1, "low"]}),
            json!({"Set": [3, "mid"]}),
            json!({"Clear": 3}),
            json!("Stop"),
            json!({"Pages": {"sizes": [1, 2, 2], "last": null}}),
            json!({"Pages": {"sizes": [1], "last": 4}}),
        ] {
            assert!(!holds(refused.clone()), "{refused}");
        }
        assert!(sampled.contains(&json!([])));
    }

    #[test]
    fn texts_of_which_there_are_many_are_arbitrary() {
        let samples: Vec<Value> = (0..10).map(|n| json!([format!("name-{n}")])).collect();
        let sampled = SampledValues::of(samples.iter());
        assert!(sampled.contains(&json!(["a"])) && !sampled.contains(&json!(["a long name"])));
    }
}
