//! Keys, values and ranges in readable form, the same wherever a report or a message shows them: decoded as
//! tuples where they are tuples, also after a prefix, otherwise as printable ASCII with other bytes escaped,
//! and of what is long only the first bytes.

use crate::{KeySelector, nesting};
use bytes::Buf;
use foundationdb_tuple::Element;

/// The maximum number of bytes of a key or value that are shown.
const MOST_BYTES: usize = 64;

/// The longest prefix of a subspace after which a tuple is looked for, bytes.
const LONGEST_PREFIX: usize = 32;

/// A key, decoded if it is a packed tuple, a packed tuple and one more byte, or one of both after a prefix.
pub fn key(bytes: &[u8]) -> String {
    or_its_end(bytes, tuple).or_else(|| prefixed(bytes)).unwrap_or_else(|| raw(bytes))
}

/// What `decode` makes of a key, or of a key without its last byte: the end of a tuple's range, or the key
/// after a tuple.
fn or_its_end(bytes: &[u8], decode: impl Fn(&[u8]) -> Option<String>) -> Option<String> {
    decode(bytes).or_else(|| {
        let (last, head) = bytes.split_last()?;
        decode(head).map(|tuple| format!("{tuple}\\x{last:02x}"))
    })
}

/// A key of a subspace with a prefix of its own: `"\xfe" + ("a", 1)`. Text can end in what looks like
/// numbers, so that only a tuple which begins with text or bytes, and has no null, is taken for one.
fn prefixed(bytes: &[u8]) -> Option<String> {
    let begins = (1..bytes.len().min(LONGEST_PREFIX + 1)).filter(|at| matches!(bytes[*at], 1 | 2));
    let without_null = |bytes: &[u8]| tuple(bytes).filter(|tuple| !tuple.contains("null"));
    let mut decoded = begins.filter_map(|at| Some((at, or_its_end(&bytes[at..], without_null)?)));
    decoded.next().map(|(at, tuple)| format!("{} + {tuple}", raw(&bytes[..at])))
}

/// A value. It is decoded as a tuple only if it contains no null, and if its first element is text or bytes,
/// or it has several elements that are packed to the same bytes: other encodings can look like tuples of
/// numbers, and a number of eight bytes, whichever comes first, nearly always has a byte that is a null.
pub fn value(bytes: &[u8]) -> String {
    let is_text = |may_be: fn(char) -> bool| {
        std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(|c| !c.is_control() || may_be(c)))
    };
    let as_tuple = || {
        let begins_with_text = matches!(bytes, [1 | 2, ..]);
        let is_tuple = begins_with_text || (!is_text(char::is_whitespace) && packs_again(bytes));
        tuple(bytes).filter(|tuple| is_tuple && !tuple.contains("null"))
    };
    let number = || {
        let number = i64::from_le_bytes(bytes.try_into().ok()?);
        Some(format!("{} ({number})", raw(bytes)))
    };
    let text = is_text(|_| false).then(|| raw(bytes));
    text.or_else(as_tuple).or_else(number).unwrap_or_else(|| raw(bytes))
}

/// Whether bytes are a tuple of several elements, in the one form that a tuple has.
fn packs_again(bytes: &[u8]) -> bool {
    let elements = nesting::unpack::<Vec<Element<'_>>>(bytes);
    elements.is_ok_and(|elements| elements.len() > 1 && foundationdb_tuple::pack(&elements) == bytes)
}

/// The range `[begin, end)`: a single key, or its two ends.
pub fn range(begin: &[u8], end: &[u8]) -> String {
    match end.strip_suffix(b"\0") == Some(begin) {
        true => key(begin),
        false => format!("{} to {}", key(begin), key(end)),
    }
}

/// A key selector: the key of the usual ones, otherwise its formula.
pub fn selector(selector: &KeySelector) -> String {
    match (selector.or_equal, selector.offset) {
        (false, 1) => key(&selector.key),
        (true, 1) => format!("after {}", key(&selector.key)),
        (or_equal, offset) => {
            let of = if or_equal { "last <=" } else { "last <" };
            format!("({of} {} + {offset})", key(&selector.key))
        }
    }
}

/// An element of a tuple.
pub fn element(element: &Element<'_>) -> String {
    match element {
        Element::Nil => "null".to_owned(),
        Element::Bytes(bytes) => format!("b{}", raw(bytes)),
        Element::String(text) => format!("{text:?}"),
        Element::Tuple(elements) => listed(elements),
        Element::Int(number) => number.to_string(),
        Element::BigInt(number) => number.to_string(),
        Element::Float(number) => format!("{number:?}"),
        Element::Double(number) => format!("{number:?}"),
        Element::Bool(value) => value.to_string(),
        Element::Uuid(uuid) => uuid.to_string(),
        Element::Versionstamp(stamp) if !stamp.is_complete() => {
            format!("incomplete versionstamp/{}", stamp.user_version())
        }
        Element::Versionstamp(stamp) => {
            let mut bytes = stamp.transaction_version();
            let (version, batch) = (bytes.get_u64(), bytes.get_u16());
            format!("versionstamp {version}.{batch}/{}", stamp.user_version())
        }
    }
}

/// Bytes as they are: `"a\xff"`, and of more than 64 the first: `"aaa… (65 bytes)"`.
pub fn raw(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(MOST_BYTES)];
    let rest = if shown.len() < bytes.len() { format!("… ({} bytes)", bytes.len()) } else { String::new() };
    format!("\"{}{rest}\"", shown.escape_ascii())
}

fn tuple(bytes: &[u8]) -> Option<String> {
    let elements: Vec<Element<'_>> = nesting::unpack(bytes).ok().filter(|_| !bytes.is_empty())?;
    Some(listed(&elements))
}

fn listed(elements: &[Element<'_>]) -> String {
    let each: Vec<String> = elements.iter().map(element).collect();
    match &each[..] {
        [one] => format!("({one},)"),
        many => format!("({})", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundationdb_tuple::{Versionstamp, pack};

    #[test]
    fn keys_are_shown_as_tuples_where_they_are_tuples() {
        assert_eq!(key(&pack(&("queue", 5))), r#"("queue", 5)"#);
        assert_eq!(key(&pack(&("queue",))), r#"("queue",)"#);
        assert_eq!(key(&[pack(&("queue", -300)), vec![0xff]].concat()), r#"("queue", -300)\xff"#);
        let stamp = Versionstamp::complete([0, 0, 0, 0, 0, 0, 1, 2, 0, 3], 4);
        assert_eq!(key(&pack(&(stamp, (true, 2.5)))), "(versionstamp 258.3/4, (true, 2.5))");
        let stamp = Versionstamp::complete([0, 0, 0, 0, 0, 0, 0, 9, 1, 2], 0);
        assert_eq!(key(&pack(&(stamp,))), "(versionstamp 9.258/0,)");
        assert_eq!(key(b"plain \x80"), r#""plain \x80""#);
        let name = pack(&(foundationdb_tuple::Bytes::from(&b"\xfe"[..]), 0, "name"));
        assert_eq!(key(&[b"\xfe", &name[..]].concat()), r#""\xfe" + (b"\xfe", 0, "name")"#);
        assert_eq!(key(&[b"app/", &name[..], b"\0"].concat()), r#""app/" + (b"\xfe", 0, "name")\x00"#);
        assert_eq!(key(b"a\x02x\0\0\0"), r#""a\x02x\x00\x00\x00""#);
        assert_eq!(key(b"a\x15\x07"), r#""a\x15\x07""#);
        assert_eq!(key(&[&[b'a'; 33][..], &name].concat()), raw(&[&[b'a'; 33][..], &name].concat()));
        assert_eq!(key(b""), r#""""#);
        // Nested too deeply to be decoded on the stack.
        assert!(key(&[5; 9_000]).ends_with("… (9000 bytes)\""));
    }

    #[test]
    fn every_kind_of_tuple_element_is_shown() {
        let stamp = Versionstamp::incomplete(7);
        let own = foundationdb_tuple::Bytes::from(&b"\xff"[..]);
        let elements = (None::<i64>, own, "a", (), (1, 2), -3, 1.5_f32, -2.5, false, stamp);
        let shown = r#"(null, b"\xff", "a", (), (1, 2), -3, 1.5, -2.5, false, incomplete versionstamp/7)"#;
        assert_eq!(key(&pack(&elements)), shown);
        let eleven = [&[0x1d, 9][..], &[1; 9], &[0x30], &[0x11; 16]].concat();
        assert_eq!(key(&eleven), "(18519084246547628289, 11111111-1111-1111-1111-111111111111)");
    }

    #[test]
    fn only_the_first_bytes_are_shown() {
        assert_eq!(raw(&[b'x'; 64]), format!("\"{}\"", "x".repeat(64)));
        assert_eq!(raw(&[b'x'; 65]), format!("\"{}… (65 bytes)\"", "x".repeat(64)));
    }

    #[test]
    fn values_are_shown_as_text_number_tuple_or_bytes() {
        assert_eq!(value(b""), r#""""#);
        assert_eq!(value(b"paid"), r#""paid""#);
        assert_eq!(value(b"8 bytes!"), r#""8 bytes!""#);
        assert_eq!(value(&7_i64.to_le_bytes()), r#""\x07\x00\x00\x00\x00\x00\x00\x00" (7)"#);
        assert_eq!(value(&1_i64.to_le_bytes()), r#""\x01\x00\x00\x00\x00\x00\x00\x00" (1)"#);
        assert_eq!(value(&258_i64.to_le_bytes()), r#""\x02\x01\x00\x00\x00\x00\x00\x00" (258)"#);
        assert_eq!(value(&pack(&("a", 1_000))), r#"("a", 1000)"#);
        assert_eq!(value(&pack(&("a", None::<i64>))), r#""\x02a\x00\x00""#);
        assert_eq!(value(b"\xff\x00"), r#""\xff\x00""#);
        // Tuples of numbers, and numbers that begin as they do.
        assert_eq!(value(&pack(&(2, 1, 1_646_886_570_043_i64))), "(2, 1, 1646886570043)");
        assert_eq!(value(&pack(&(0, -1))), "(0, -1)");
        assert_eq!(value(&pack(&(7, (1, "a"), 2.5))), r#"(7, (1, "a"), 2.5)"#);
        assert_eq!(value(&pack(&(1, 2, 3, 4))), "(1, 2, 3, 4)", "eight bytes");
        for number in [0x0215_i64, 0x1415, 0x15_0215, 0x1502_1501_1503, 5_397, 20] {
            let bytes = number.to_le_bytes();
            assert_eq!(value(&bytes), format!("{} ({number})", raw(&bytes)));
            let first = number.to_be_bytes();
            assert_eq!(value(&first), format!("{} ({})", raw(&first), number.swap_bytes()));
        }
        for other in [
            &pack(&(7,))[..],
            &pack(&(7, None::<i64>)),
            // Numbers with more bytes than they need.
            b"\x16\0\x02\x15\x01",
            b"\x15\0\x15\x01",
            // The end of an element is missing.
            b"\x15\x02\x16\x01",
            b"\x08\x96\x01\x10\x05",
            // Lines that could be a float or a UUID, and numbers after it.
            b" a\tb\n&'&'",
            b"0123456789\n012345&'&'",
        ] {
            assert_eq!(value(other), raw(other));
        }
        assert_eq!(value(&[1, 0, 0, 0]), r#""\x01\x00\x00\x00""#);
    }

    #[test]
    fn selectors_are_shown_by_what_they_select() {
        let shown = |or_equal, offset| selector(&KeySelector::new("a", or_equal, offset));
        assert_eq!(shown(false, 1), "\"a\"");
        assert_eq!(shown(true, 1), "after \"a\"");
        assert_eq!(shown(true, 0), "(last <= \"a\" + 0)");
        assert_eq!(shown(false, -2), "(last < \"a\" + -2)");
    }

    #[test]
    fn ranges_are_shown_as_two_ends_or_one_key() {
        assert_eq!(range(b"", b"b"), "\"\" to \"b\"");
        assert_eq!(range(&pack(&("a",)), &[&pack(&("a",))[..], b"\0"].concat()), r#"("a",)"#);
        assert_eq!(range(&pack(&("a",)), &pack(&("b",))), r#"("a",) to ("b",)"#);
    }
}
