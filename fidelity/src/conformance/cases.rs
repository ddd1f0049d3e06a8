//! A recorded case as plain data.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Bytes as spelled in recordings: hexadecimal, `"61*1500"` for a repeated byte, `{A}` for the versionstamp
/// of transaction A.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub String);

impl Bytes {
    /// The bytes, given the versionstamps known so far; `None` if the spelling is invalid or requires a stamp
    /// that is not known.
    pub fn decode(&self, stamps: &BTreeMap<String, [u8; 10]>) -> Option<Vec<u8>> {
        let text = &self.0;
        if let Some((byte, times)) = text.split_once('*') {
            return Some(vec![u8::from_str_radix(byte, 16).ok()?; times.parse().ok()?]);
        }
        let mut bytes = Vec::with_capacity(text.len() / 2);
        let mut rest = &text[..];
        while !rest.is_empty() {
            if let Some(named) = rest.strip_prefix('{') {
                let (name, after) = named.split_once('}')?;
                bytes.extend_from_slice(stamps.get(name)?);
                rest = after;
            } else {
                bytes.push(u8::from_str_radix(rest.get(..2)?, 16).ok()?);
                rest = &rest[2..];
            }
        }
        Some(bytes)
    }

    /// Spells bytes so that each of these stamps is replaced by its name.
    pub fn spell(bytes: &[u8], stamps: &BTreeMap<String, [u8; 10]>) -> Bytes {
        let mut text = String::new();
        let mut rest = bytes;
        while let Some((first, after)) = rest.split_first() {
            match stamps.iter().find(|(_, stamp)| rest.starts_with(&stamp[..])) {
                Some((name, stamp)) => {
                    text += &format!("{{{name}}}");
                    rest = &rest[stamp.len()..];
                }
                None => {
                    text += &format!("{first:02x}");
                    rest = after;
                }
            }
        }
        if text.contains('{') { Bytes(text) } else { Bytes::encode(bytes) }
    }

    /// The shortest spelling of bytes without stamps.
    pub fn encode(bytes: &[u8]) -> Bytes {
        if let [first, rest @ ..] = bytes
            && rest.len() > 8
            && rest.iter().all(|b| b == first)
        {
            return Bytes(format!("{first:02x}*{}", bytes.len()));
        }
        Bytes(bytes.iter().map(|b| format!("{b:02x}")).collect())
    }
}

/// A recorded key selector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selector {
    /// The base key.
    pub key: Bytes,
    /// Whether the base key itself counts as before.
    pub or_equal: bool,
    /// The number of keys to move.
    pub offset: i32,
}

/// One call of a case, and its result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The transaction's name.
    pub tx: String,
    /// The call.
    pub op: String,
    /// The recorded result; null in a script that is yet to be recorded.
    pub expect: Value,
    /// The key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Bytes>,
    /// The value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Bytes>,
    /// How often key and value are repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<[usize; 2]>,
    /// The begin of a range: a key, or a selector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin: Option<Value>,
    /// The end of a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Value>,
    /// The selector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<Selector>,
    /// Whether the read is a snapshot read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub snapshot: bool,
    /// The maximum number of rows; 0 and -1 are unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The streaming mode's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The streaming mode's iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<usize>,
    /// Descending order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reverse: bool,
    /// The atomic operation's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutation: Option<String>,
    /// A numeric code of an atomic operation or an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The atomic operation's operand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operand: Option<Bytes>,
    /// The option's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// The option's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<i32>,
    /// A read version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// Whether the versionstamp is requested before committing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stamp: bool,
    /// A watch's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Whether the result depends on the age of the cluster.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_old: bool,
}

/// One recorded case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name.
    pub id: String,
    /// Its subject.
    pub kind: String,
    /// The initial keyspace.
    pub setup: Vec<(Bytes, Bytes)>,
    /// The calls.
    pub steps: Vec<Step>,
    /// The final keyspace.
    #[serde(rename = "final")]
    pub last: Vec<(Bytes, Bytes)>,
}
