//! Reading what a workload has of its own in a repro file: first as JSON without types, so that only the last
//! step is compiled for each workload. No field may be unknown, and none may be there twice.

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};
use std::fmt;

/// The schema version of repro files. A file of another version is refused.
pub const SCHEMA: u32 = 3;

/// Why a repro file cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The file cannot be read, or is not the JSON of a plan.
    #[error("not a complete repro file: {0}")]
    Incomplete(String),
    /// The file has another schema version.
    #[error("schema version {found}; this program reads version {SCHEMA}")]
    Schema {
        /// The schema version of the file.
        found: u64,
    },
    /// The file belongs to another workload.
    #[error("a repro file of the workload {found}, not of {wanted}")]
    Workload {
        /// The workload of the file.
        found: String,
        /// The workload that was to replay it.
        wanted: &'static str,
    },
    /// The file has a field that no plan has, probably because of an editing error.
    #[error("unknown field {0}")]
    Unknown(String),
    /// The plan is impossible or contradicts itself.
    #[error("{0}")]
    Impossible(String),
}

/// A configuration or an operation as JSON.
pub(crate) fn plain(value: &dyn erased_serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// A value in whose objects no field is there twice. Of two such fields [`Value`] keeps one.
pub(crate) struct Json(pub Value);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(AnyJson).map(Json)
    }
}

struct AnyJson;

impl<'de> Visitor<'de> for AnyJson {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }
    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(Json(item)) = items.next_element()? {
            read.push(item);
        }
        Ok(Value::Array(read))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if read.contains_key(&name) {
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
            read.insert(name, fields.next_value::<Json>()?.0);
        }
        Ok(Value::Object(read))
    }
}

/// Reads a value that is at `path` of a repro file. Refuses a field that its type does not have.
pub(crate) fn strictly<T: DeserializeOwned + Serialize>(path: &str, value: &Value) -> Result<T, PlanError> {
    let read = T::deserialize(value).map_err(|e| PlanError::Incomplete(format!("{path}: {e}")))?;
    match lost(path, value, &plain(&read)) {
        None => Ok(read),
        Some(field) => Err(PlanError::Unknown(field)),
    }
}

/// The first field of a value that is not in what was read from it. `null` is also written as a field left
/// out.
fn lost(path: &str, value: &Value, read: &Value) -> Option<String> {
    let below = |name: &str, value: &Value, read: Option<&Value>| match (value, read) {
        (Value::Null, _) => None,
        (_, None) => Some(format!("{path}.{name}")),
        (value, Some(read)) => lost(&format!("{path}.{name}"), value, read),
    };
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| below(name, value, read.get(name))),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(i, value)| below(&i.to_string(), value, read.get(i)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Op {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<i64>,
        parts: Vec<BTreeMap<u8, f64>>,
    }

    fn read(text: &str) -> Result<Op, String> {
        let json: Json = serde_json::from_str(text).map_err(|e| e.to_string())?;
        strictly("operations.0.3", &json.0).map_err(|e| e.to_string())
    }

    #[test]
    fn a_value_is_read_as_it_was_written() {
        for limit in [Some(i64::MIN), None] {
            let op = Op { name: "é\\n".into(), limit, parts: vec![BTreeMap::from([(1, 0.1), (2, -0.0)])] };
            assert_eq!(read(&serde_json::to_string(&op).unwrap_or_default()), Ok(op));
        }
        assert!(read(r#"{"name": "x", "limit": null, "parts": []}"#).is_ok());
    }

    #[test]
    fn a_field_that_is_unknown_or_repeated_is_refused() {
        for (text, why) in [
            (r#"{"name": "x", "parts": [], "mint": 1}"#, "unknown field operations.0.3.mint"),
            (r#"{"name": "x", "parts": [], "name": "y"}"#, "duplicate field `name` at line 1 column 33"),
            (r#"{"parts": []}"#, "not a complete repro file: operations.0.3: missing field `name`"),
            (r#"{"name": 1, "parts": []}"#, "operations.0.3: invalid type: integer `1`, expected a string"),
        ] {
            let refused = read(text).expect_err(text);
            assert!(refused.ends_with(why), "{refused}");
        }
    }
}
