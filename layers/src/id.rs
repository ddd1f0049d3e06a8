//! Typed identifiers by which records of a layer refer to each other.
//!
//! An id that is read back from a link must find the record that it was stored for. Bytes, text and integers
//! have different type codes in the tuple layer, so that `b"a"` and `"a"` identify different records: an
//! [`Id`] keeps its type in keys and in values.

use crate::once;
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::{PackError, PackResult, TupleDepth, TuplePack, TupleUnpack, VersionstampOffset};
use serde::{Deserialize, Serialize};
use std::{fmt, io};

/// An identifier of one of three types; ordered as the tuple layer orders keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Id {
    /// A byte string, possibly empty.
    Bytes(Bytes),
    /// A text, possibly empty.
    Text(String),
    /// An integer.
    Int(i64),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Bytes(bytes) => write!(f, "b\"{}\"", bytes.escape_ascii()),
            Id::Text(text) => write!(f, "{text:?}"),
            Id::Int(number) => number.fmt(f),
        }
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Id {
        Id::Text(text.into())
    }
}

impl From<String> for Id {
    fn from(text: String) -> Id {
        Id::Text(text)
    }
}

impl From<i64> for Id {
    fn from(number: i64) -> Id {
        Id::Int(number)
    }
}

impl From<Bytes> for Id {
    fn from(bytes: Bytes) -> Id {
        Id::Bytes(bytes)
    }
}

impl TuplePack for Id {
    fn pack<W: io::Write>(&self, w: &mut W, depth: TupleDepth) -> io::Result<VersionstampOffset> {
        match self {
            Id::Bytes(bytes) => foundationdb_tuple::Bytes::from(&bytes[..]).pack(w, depth),
            Id::Text(text) => text.pack(w, depth),
            Id::Int(number) => number.pack(w, depth),
        }
    }
}

impl<'de> TupleUnpack<'de> for Id {
    fn unpack(input: &'de [u8], depth: TupleDepth) -> PackResult<(&'de [u8], Id)> {
        // The tuple layer's type codes of byte strings and of text.
        match input.first() {
            None => Err(PackError::MissingBytes),
            Some(1) => foundationdb_tuple::Bytes::unpack(input, depth)
                .map(|(rest, bytes)| (rest, Id::Bytes(Bytes::copy_from_slice(&bytes)))),
            Some(2) => String::unpack(input, depth).map(|(rest, text)| (rest, Id::Text(text))),
            Some(_) => i64::unpack(input, depth).map(|(rest, number)| (rest, Id::Int(number))),
        }
    }
}

/// Packed by the tuple layer.
impl once::Answer for Id {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        out.extend_from_slice(&foundationdb_tuple::pack(self));
        Ok(None)
    }

    fn decode(bytes: Bytes) -> Option<Id> {
        foundationdb_tuple::unpack(&bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::once::Answer;
    use foundationdb_tuple::{pack, unpack};

    fn awkward() -> Vec<Id> {
        let bytes = |bytes: &'static [u8]| Id::Bytes(Bytes::from_static(bytes));
        vec![
            bytes(b""),
            bytes(b"\0"),
            bytes(b"\0\xff"),
            bytes(b"a"),
            bytes(b"\xff"),
            "".into(),
            "\0".into(),
            "a".into(),
            "a\0b".into(),
            "ß".into(),
            i64::MIN.into(),
            (-256).into(),
            (-1).into(),
            0.into(),
            255.into(),
            256.into(),
            i64::MAX.into(),
        ]
    }

    #[test]
    fn ids_sort_as_their_keys_do_and_keep_their_type() {
        let ids = awkward();
        assert!(ids.is_sorted());
        let keys: Vec<_> = ids.iter().map(|id| pack(&("x", id, 1))).collect();
        assert!(keys.is_sorted());
        for (id, key) in ids.iter().zip(&keys) {
            assert_eq!(unpack::<(String, Id, i64)>(key).unwrap(), ("x".into(), id.clone(), 1));
            let mut out = BytesMut::new();
            assert_eq!(id.encode(&mut out), Ok(None));
            assert_eq!(Id::decode(out.freeze()).as_ref(), Some(id));
        }
        assert_ne!(pack(&Id::from("a")), pack(&Id::from(Bytes::from_static(b"a"))));
    }

    #[test]
    fn invalid_ids_are_refused() {
        assert!(unpack::<Id>(b"").is_err());
        assert!(unpack::<Id>(&pack(&1.5f64)).is_err());
        assert!(unpack::<Id>(&pack(&None::<i64>)).is_err());
        assert!(unpack::<Id>(&pack(&(1, 2))).is_err());
        assert_eq!(Id::decode(Bytes::from_static(b"x")), None);
    }

    #[test]
    fn ids_read_as_they_are_written() {
        let shown: Vec<String> =
            [Id::from("a\0"), 7.into(), Bytes::from_static(b"\xff").into()].map(|id| id.to_string()).into();
        assert_eq!(shown, ["\"a\\0\"", "7", "b\"\\xff\""]);
    }
}
