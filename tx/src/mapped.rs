//! Mapped ranges: a range read, for example of an index, each of whose rows maps to another range that is
//! read as well.
//!
//! A *mapper* defines the range that a row maps to. It is an encoded tuple whose elements are used unchanged,
//! except for strings of these forms:
//!
//! | element | is replaced by |
//! |---|---|
//! | `{K[n]}` | the `n`th element of the row's key, which must be a tuple |
//! | `{V[n]}` | the `n`th element of the row's value, which must be a tuple |
//! | `{{`, `}}` within a string | `{` and `}` |
//! | `{...}`, last | all keys that start with the other elements |
//!
//! The C API supports ranges only: a mapper that does not end with `{...}`, which FoundationDB's servers
//! would treat as a single key, is rejected with 2108.

use super::{Error, KeyValue, Result};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A row of a mapped range, and the range that it maps to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedRow {
    /// The row itself.
    pub parent: KeyValue,
    /// The begin of the range that it maps to.
    pub begin: Bytes,
    /// The end of that range.
    pub end: Bytes,
    /// The rows of that range in ascending order: at most 2,000, without an indication whether there are
    /// more.
    pub rows: Vec<KeyValue>,
}

/// One batch of a mapped range.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MappedBatch {
    /// The rows, in the requested order.
    pub rows: Vec<MappedRow>,
    /// Whether rows may remain after the last one.
    pub more: bool,
}

/// The replacement of an element of a mapper.
#[derive(Clone, Debug, PartialEq, Eq)]
enum MapperElement {
    /// The element itself, encoded.
    Literal(Bytes),
    /// An element of the row's key or else of its value; `None` if the index is not a number.
    Element { of_key: bool, index: Option<i32> },
}

/// A parsed mapper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapper(Vec<MapperElement>);

impl Mapper {
    /// Parses the mapper that `tuple` encodes. Fails with 2043 if it is not a tuple, with 2032 if `{...}` is
    /// not the last element, and with 2108 if the last element is not `{...}`.
    pub fn parse(tuple: &[u8]) -> Result<Mapper> {
        let elements = elements(tuple).ok_or(Error::MAPPER_NOT_TUPLE)?;
        let mut parts = Vec::with_capacity(elements.len());
        let last = elements.len().checked_sub(1);
        let mut is_range = false;
        for (at, element) in elements.into_iter().enumerate() {
            let raw = &tuple[element];
            match string(raw).as_deref() {
                Some(b"{...}") if Some(at) != last => return Err(Error::MAPPER_BAD_RANGE_DESCRIPTOR),
                Some(b"{...}") => is_range = true,
                Some(text) => parts.push(part(raw, text)),
                None => parts.push(MapperElement::Literal(Bytes::copy_from_slice(raw))),
            }
        }
        if is_range { Ok(Mapper(parts)) } else { Err(Error::UNSUPPORTED_OPERATION) }
    }

    /// The prefix of the keys that a row maps to. Fails with 2030 for an invalid index, and with 2041 or 2042
    /// for a key or a value that is needed as a tuple and is not one.
    pub fn prefix(&self, row: &KeyValue) -> Result<Bytes> {
        let mut prefix = Vec::new();
        for part in &self.0 {
            match part {
                MapperElement::Literal(raw) => prefix.extend_from_slice(raw),
                MapperElement::Element { of_key, index } => {
                    let index = index.ok_or(Error::MAPPER_BAD_INDEX)?;
                    let (tuple, error) = match of_key {
                        true => (&row.key, Error::KEY_NOT_TUPLE),
                        false => (&row.value, Error::VALUE_NOT_TUPLE),
                    };
                    let elements = elements(tuple).ok_or(error)?;
                    let element = usize::try_from(index).ok().and_then(|index| elements.get(index));
                    prefix.extend_from_slice(&tuple[element.ok_or(Error::MAPPER_BAD_INDEX)?.clone()]);
                }
            }
        }
        Ok(prefix.into())
    }
}

/// The replacement of a string element of a mapper.
fn part(raw: &[u8], text: &[u8]) -> MapperElement {
    let unescaped = replace(&replace(text, b"{{", b'{'), b"}}", b'}');
    if unescaped.len() != text.len() {
        // It becomes a byte string, whether it was text or bytes.
        let mut literal = vec![1];
        for byte in unescaped {
            literal.push(byte);
            if byte == 0 {
                literal.push(0xff);
            }
        }
        literal.push(0);
        return MapperElement::Literal(literal.into());
    }
    match text {
        [b'{', kind @ (b'K' | b'V'), b'[', index @ .., b']', b'}'] if !index.is_empty() => {
            MapperElement::Element { of_key: *kind == b'K', index: number(index) }
        }
        _ => MapperElement::Literal(Bytes::copy_from_slice(raw)),
    }
}

fn replace(text: &[u8], double: &[u8; 2], single: u8) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, ..] = rest {
        let is_double = rest.starts_with(double);
        replaced.push(if is_double { single } else { *first });
        rest = &rest[if is_double { 2 } else { 1 }..];
    }
    replaced
}

/// Parses the number at the start of `text` as C++ does: skips blanks, takes a sign, ignores what follows.
fn number(text: &[u8]) -> Option<i32> {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number: i64 = std::str::from_utf8(&digits[..count]).ok()?.parse().ok()?;
    i32::try_from(if negative { -number } else { number }).ok()
}

/// The positions of the elements of an encoded tuple, as `fdbclient/Tuple.cpp` finds them: nested tuples are
/// not supported, and an element that is cut off at the end is included. `None` if the bytes are not a tuple.
fn elements(tuple: &[u8]) -> Option<Vec<Range<usize>>> {
    let (mut elements, mut at): (Vec<Range<usize>>, usize) = (Vec::new(), 0);
    while at < tuple.len() {
        let length = match tuple[at] {
            1 | 2 => 1 + string_length(&tuple[at + 1..]),
            code @ 0x0c..=0x1c => 1 + usize::from(code.abs_diff(0x14)),
            0x20 => 5,
            0x21 => 9,
            0 | 0x26 | 0x27 => 1,
            0x33 => 13,
            _ => return None,
        };
        let end = (at + length).min(tuple.len());
        elements.push(at..end);
        at = end;
    }
    Some(elements)
}

/// The length of the encoding of a string, including the terminating zero byte.
fn string_length(encoded: &[u8]) -> usize {
    let mut at = 0;
    while at + 1 < encoded.len() && (encoded[at] != 0 || encoded[at + 1] == 0xff) {
        at += if encoded[at] == 0 { 2 } else { 1 };
    }
    at + 1
}

/// The string that an element encodes, or `None` if it is not a string.
fn string(element: &[u8]) -> Option<Vec<u8>> {
    let [1 | 2, encoded @ .., _] = element else { return None };
    let mut text = Vec::with_capacity(encoded.len());
    let mut bytes = encoded.iter();
    while let Some(byte) = bytes.next() {
        text.push(*byte);
        if *byte == 0 {
            bytes.next();
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundationdb_tuple::{Versionstamp, pack};

    fn row() -> KeyValue {
        KeyValue::new(pack(&("key-0", "key-1", "key-2")), pack(&("value-0", 7, vec![0_u8, 1])))
    }

    fn mapped(mapper: &[u8]) -> Result<Bytes> {
        Mapper::parse(mapper)?.prefix(&row())
    }

    #[test]
    fn elements_are_taken_from_key_and_value() {
        let prefix = mapped(&pack(&("normal", "{{escaped}}", "{K[2]}", "{V[0]}", "{...}")));
        // An escaped string becomes a byte string.
        let expected = pack(&("normal", &b"{escaped}"[..], "key-2", "value-0"));
        assert_eq!(prefix, Ok(expected.into()));
        let literals =
            pack(&(-5_i64, 1.5_f64, true, Option::<i64>::None, Versionstamp::complete([7; 10], 3)));
        let mut mapper = literals.clone();
        mapper.extend(pack(&("{V[1]}", "{V[2]}", "{...}")));
        let mut expected = literals;
        expected.extend(pack(&(7, vec![0_u8, 1])));
        assert_eq!(mapped(&mapper), Ok(expected.into()));
        assert_eq!(mapped(&pack(&("{...}",))), Ok(Bytes::new()));
        assert_eq!(mapped(&pack(&("{K[]}", "{X[1]}", "{...}"))), Ok(pack(&("{K[]}", "{X[1]}")).into()));
        assert_eq!(mapped(&pack(&("{{{{}}", "}}", "{...}"))), Ok(pack(&(&b"{{}"[..], &b"}"[..])).into()));
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        for index in ["{K[3]}", "{K[-1]}", "{K[a]}", "{K[99999999999]}"] {
            assert_eq!(mapped(&pack(&(index, "{...}"))), Err(Error::MAPPER_BAD_INDEX), "{index}");
        }
        // As C++'s `stoi` parses it.
        assert_eq!(mapped(&pack(&("{K[ +1x]}", "{...}"))), Ok(pack(&("key-1",)).into()));
        assert_eq!(mapped(&pack(&("{...}", "{...}"))), Err(Error::MAPPER_BAD_RANGE_DESCRIPTOR));
        assert_eq!(mapped(&pack(&("{...}", "x"))), Err(Error::MAPPER_BAD_RANGE_DESCRIPTOR));
        assert_eq!(mapped(&pack(&("x",))), Err(Error::UNSUPPORTED_OPERATION));
        assert_eq!(mapped(b""), Err(Error::UNSUPPORTED_OPERATION));
        assert_eq!(mapped(b"\x05"), Err(Error::MAPPER_NOT_TUPLE));
        let mapper = |element: &str| Mapper::parse(&pack(&(element, "{...}"))).expect("a mapper");
        let plain = KeyValue::new("key", "value");
        assert_eq!(mapper("{K[0]}").prefix(&plain), Err(Error::KEY_NOT_TUPLE));
        assert_eq!(mapper("{V[0]}").prefix(&plain), Err(Error::VALUE_NOT_TUPLE));
        assert_eq!(mapper("x").prefix(&plain), Ok(pack(&("x",)).into()), "not needed, not looked at");
    }

    #[test]
    fn elements_lie_where_the_encoding_puts_them() {
        let parts: [&[u8]; 7] = [
            &pack(&"a\0b"),
            &pack(&vec![0_u8, 0xff, 0]),
            &pack(&-70_000_i64),
            &pack(&0),
            &pack(&i64::MAX),
            &pack(&1.5_f32),
            &pack(&false),
        ];
        let tuple = parts.concat();
        let found = elements(&tuple).expect("a tuple");
        let found: Vec<&[u8]> = found.into_iter().map(|at| &tuple[at]).collect();
        assert_eq!(found, parts);
        assert_eq!(elements(b"\x01abc").map(|e| e.len()), Some(1), "cut off");
        for cut in [b"\x15", b"\x01"] {
            assert_eq!(elements(cut).as_deref(), Some(std::slice::from_ref(&(0..1))), "cut off");
        }
    }
}
