//! The key schema of documents, and their ids.
//!
//! ```text
//! (documents, id, step, step, ..)       =  (leaf)    a null, a boolean, a number or a text
//! (documents, id, step, .., -2)         =  (null)    an object without members
//! (documents, id, step, .., -1)         =  (null)    a list without elements
//! (documents, id, step, .., -3, n)      =  bytes     the n-th piece of a long text
//!
//! (index, leaf, id)                     =  ''        the document has this leaf at the index's path
//! ```
//!
//! Steps are those of a [`hierarchy`](crate::hierarchy). A document that is itself a leaf has no step. Ids
//! are unsigned integers or texts: 1 and "1" identify two documents. Indexes contain only the beginning of a
//! long text.

use crate::{
    hierarchy::{push_scalar, scalars},
    once,
    tx::Env,
};
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::{Subspace, pack_into};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// The name of the member that holds a document's own id.
pub const DOC_ID: &str = "doc_id";

/// The maximum length of an id, in bytes.
pub const MAX_ID_BYTES: usize = 1_000;

/// The maximum number of bytes of a text that are part of an index's key.
pub(super) const MAX_INDEXED_BYTES: usize = 1_000;

/// The id of a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Id {
    /// A text.
    Text(String),
    /// A number, such as drawn ids.
    Number(u64),
}

impl Id {
    /// Draws an id from 0 to 100,000,000. Draw it before a retry loop: drawn inside, the id differs in each
    /// attempt, and an unknown result can lead to two documents.
    pub fn draw(env: &Env) -> Id {
        Id::Number(env.random_u64() % 100_000_001)
    }

    /// The id that a JSON value represents, if it is a valid id.
    pub fn of(value: &Value) -> Option<Id> {
        match value {
            Value::Number(number) => number.as_u64().map(Id::Number),
            Value::String(text) => Some(Id::Text(text.clone())),
            _ => None,
        }
    }

    /// The id as a JSON value.
    pub fn to_value(&self) -> Value {
        match self {
            Id::Number(number) => Value::from(*number),
            Id::Text(text) => Value::from(text.as_str()),
        }
    }

    /// Appends the id to a packed tuple.
    pub(super) fn push(&self, key: &mut Vec<u8>) {
        match self {
            Id::Number(number) => pack_into(number, key),
            Id::Text(text) => pack_into(text, key),
        };
    }

    /// Unpacks an id from a packed tuple.
    pub(super) fn unpack(packed: &[u8]) -> Option<Id> {
        match &scalars(packed)?[..] {
            [id] => Id::of(id),
            _ => None,
        }
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Id {
        Id::Number(number)
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Id {
        Id::Text(text.to_owned())
    }
}

/// Formatted as JSON, so that 1 and "1" differ.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_value().fmt(f)
    }
}

/// Encoded as a packed tuple.
impl once::Answer for Id {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        let mut packed = Vec::new();
        self.push(&mut packed);
        out.extend_from_slice(&packed);
        Ok(None)
    }

    fn decode(bytes: Bytes) -> Option<Id> {
        Id::unpack(&bytes)
    }
}

/// The prefix of an index's entries for a leaf, and whether entries of other leaves may have the same prefix
/// because they differ only after the part that a key holds. Objects and lists have no entries.
pub(super) fn entries(index: &Subspace, leaf: &Value) -> Option<(Vec<u8>, bool)> {
    let mut key = index.bytes().to_vec();
    let is_shared = match leaf {
        Value::Object(_) | Value::Array(_) => return None,
        Value::String(text) => {
            let begin = &text[..text.floor_char_boundary(MAX_INDEXED_BYTES)];
            pack_into(&begin, &mut key);
            // The text is cut at a character boundary, up to three bytes early.
            begin.len() + 3 >= MAX_INDEXED_BYTES
        }
        // A number that cannot be stored occurs in no document.
        leaf => push_scalar(&mut key, leaf).map(|()| false).ok()?,
    };
    Some((key, is_shared))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::once::Answer;
    use serde_json::json;

    #[test]
    fn ids_are_of_two_types_and_sort_by_them() {
        let texts = ["", "1", "a", "a\0", "ab"].map(Id::from);
        let numbers = [0, 1, 255, 256, u64::MAX].map(Id::from);
        let ids = [texts, numbers].concat();
        assert!(ids.is_sorted());
        let packed = ids.into_iter().map(|id| {
            let mut out = BytesMut::new();
            assert_eq!(id.encode(&mut out), Ok(None));
            assert_eq!(Id::decode(out.clone().freeze()), Some(id.clone()));
            assert_eq!(Id::of(&id.to_value()), Some(id.clone()));
            assert_eq!(serde_json::from_value(id.to_value()).ok(), Some(id));
            out
        });
        assert!(packed.is_sorted());
        assert_eq!(Id::from(1).to_string(), "1");
        assert_eq!(Id::from("1").to_string(), "\"1\"");
        for odd in [json!(-1), json!(1.0), json!(null), json!([1]), json!({})] {
            assert_eq!(Id::of(&odd), None, "{odd}");
        }
        assert_eq!(Id::decode(Bytes::from_static(b"\x15\x01\x15\x01")), None);
    }

    #[test]
    fn entries_distinguish_leaves_up_to_their_maximum_size() {
        let index = Subspace::from("i");
        let key = |leaf: Value| entries(&index, &leaf);
        assert_ne!(key(json!(1)), key(json!(1.0)));
        assert_ne!(key(json!(0.0)), key(json!(-0.0)));
        assert_eq!(key(json!([])), None);
        assert_eq!(key(json!({})), None);
        let long = "é".repeat(MAX_INDEXED_BYTES);
        let begin = "é".repeat(MAX_INDEXED_BYTES / 2);
        assert!(key(json!(long)).unwrap().1);
        assert_eq!(key(json!(begin)), key(json!(long)));
        assert_ne!(key(json!("é")), key(json!(long)));
        assert!(!key(json!("é")).unwrap().1);
        let early = "a".to_owned() + &"𝄞".repeat(MAX_INDEXED_BYTES);
        let (_, is_shared) = key(json!(&early[..early.floor_char_boundary(MAX_INDEXED_BYTES)])).unwrap();
        assert!(is_shared);
    }
}
