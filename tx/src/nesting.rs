//! A limit on how deeply stored data may be nested, checked before any recursion.
//!
//! The tuple layer unpacks nested tuples recursively, and a key of 10,000 bytes can open 10,000 tuples, which
//! overflows the stack. A layer that unpacks elements of any type therefore unpacks with [`unpack`] or
//! [`unpack_below`], and calls [`check`] to refuse writes that it could not read back.

use crate::limits::TooLarge;
use foundationdb_tuple::{PackError, PackResult, Subspace, TupleUnpack};

/// The maximum depth of nested tuples, objects and lists: the depth that serde_json accepts.
pub const MAX_DEPTH: usize = 127;

// Type codes of the tuple layer's specification (design/tuple.md).
/// The type code of null.
pub const NULL: u8 = 0x00;
const BYTES: u8 = 0x01;
/// The type code of a string.
pub const TEXT: u8 = 0x02;
const NESTED: u8 = 0x05;
const LONG_NEGATIVE: u8 = 0x0b;
const LONG_POSITIVE: u8 = 0x1d;
/// The type code of the least integer.
pub const LEAST: u8 = ZERO - 8;
const ZERO: u8 = 0x14;
/// The type code of the greatest integer.
pub const GREATEST: u8 = ZERO + 8;
const FLOAT: u8 = 0x20;
/// The type code of a number of eight bytes.
pub const DOUBLE: u8 = 0x21;
/// The type code of false.
pub const FALSE: u8 = 0x26;
/// The type code of true.
pub const TRUE: u8 = 0x27;
const UUID: u8 = 0x30;
const VERSIONSTAMP: u8 = 0x33;
/// Follows a zero byte that is part of the content rather than its end.
const ESCAPE: u8 = 0xff;

/// Unpacks a whole tuple, unless it is nested deeper than [`MAX_DEPTH`].
pub fn unpack<'de, T: TupleUnpack<'de>>(packed: &'de [u8]) -> PackResult<T> {
    check_depth(packed, usize::MAX)?;
    foundationdb_tuple::unpack(packed)
}

/// Unpacks the part of a key after the subspace's prefix, unless it is nested deeper than [`MAX_DEPTH`].
pub fn unpack_below<'de, T: TupleUnpack<'de>>(subspace: &Subspace, key: &'de [u8]) -> PackResult<T> {
    unpack(key.strip_prefix(subspace.bytes()).ok_or(PackError::BadPrefix)?)
}

/// Refuses to unpack a first element that is nested deeper than [`MAX_DEPTH`].
pub fn check_depth_of_first(packed: &[u8]) -> PackResult<()> {
    check_depth(packed, 1)
}

/// Refuses to write a packed tuple that [`unpack`] would reject.
pub fn check(packed: &[u8]) -> Result<(), TooLarge> {
    check_depth(packed, usize::MAX).map_err(|_| TooLarge::Depth { limit: MAX_DEPTH })
}

/// The length of a packed tuple's first element; `None` if it is nested or not a valid element.
pub fn first_length(packed: &[u8]) -> Option<usize> {
    Some(match *packed.first()? {
        NULL | FALSE | TRUE => 1,
        BYTES | TEXT => {
            let mut at = 1;
            loop {
                at += packed.get(at..)?.iter().position(|byte| *byte == 0)? + 1;
                match packed.get(at) {
                    Some(&ESCAPE) => at += 1,
                    _ => break at,
                }
            }
        }
        code @ LEAST..=GREATEST => 1 + usize::from(code.abs_diff(ZERO)),
        LONG_NEGATIVE => 2 + usize::from(packed.get(1)? ^ 0xff),
        LONG_POSITIVE => 2 + usize::from(*packed.get(1)?),
        FLOAT => 5,
        DOUBLE => 9,
        VERSIONSTAMP => 13,
        UUID => 17,
        _ => return None,
    })
}

/// Fails if one of the first `elements` elements is nested too deeply. Reads as far as unpacking would: to
/// the end or to the first invalid element.
fn check_depth(packed: &[u8], mut elements: usize) -> PackResult<()> {
    let (mut rest, mut depth) = (packed, 0);
    while elements > 0 {
        let length = match rest {
            [NESTED, ..] if depth == MAX_DEPTH => {
                return Err(PackError::Message(format!("nested deeper than {MAX_DEPTH}").into()));
            }
            [NESTED, ..] => {
                depth += 1;
                1
            }
            [NULL, ESCAPE, ..] if depth > 0 => 2,
            [NULL, ..] if depth > 0 => {
                depth -= 1;
                1
            }
            _ => match first_length(rest) {
                Some(length) => length,
                None => break,
            },
        };
        let Some(after) = rest.get(length..) else { break };
        rest = after;
        elements -= usize::from(depth == 0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundationdb_tuple::{Element, Versionstamp, pack};
    use proptest::prelude::*;

    fn nested(depth: usize) -> Vec<u8> {
        [vec![NESTED; depth], pack(&"x"), vec![0; depth]].concat()
    }

    /// The depth to which an element is nested.
    fn depth(element: &Element<'_>) -> usize {
        match element {
            Element::Tuple(inside) => 1 + inside.iter().map(depth).max().unwrap_or_default(),
            _ => 0,
        }
    }

    #[test]
    fn as_deep_as_allowed_is_unpacked_and_one_deeper_is_not() {
        let deepest = nested(MAX_DEPTH);
        let (element,): (Element<'_>,) = unpack(&deepest).unwrap();
        assert_eq!(depth(&element), MAX_DEPTH);
        assert_eq!(check(&deepest), Ok(()));
        // The depths of adjacent elements do not add up.
        assert_eq!(check(&[&deepest[..], &deepest].concat()), Ok(()));
        for packed in [nested(MAX_DEPTH + 1), [deepest, nested(MAX_DEPTH + 1)].concat()] {
            assert!(matches!(unpack::<Vec<Element<'_>>>(&packed), Err(PackError::Message(_))));
            assert_eq!(check(&packed), Err(TooLarge::Depth { limit: MAX_DEPTH }));
        }
        assert!(check_depth_of_first(&[nested(MAX_DEPTH), nested(MAX_DEPTH + 1)].concat()).is_ok());
        assert!(check_depth_of_first(&nested(MAX_DEPTH + 1)).is_err());
    }

    #[test]
    fn a_key_of_nothing_but_openings_is_refused() {
        let key = [&b"s"[..], &[NESTED; 9_980]].concat();
        let space = Subspace::from_bytes(&b"s"[..]);
        assert!(unpack_below::<Vec<Element<'_>>>(&space, &key).is_err());
        assert!(matches!(unpack_below::<()>(&space, b"other"), Err(PackError::BadPrefix)));
    }

    #[test]
    fn elements_have_the_lengths_that_the_tuple_layer_writes() {
        let stamp = Versionstamp::complete([0; 10], 0);
        let all = [
            pack(&None::<()>),
            pack(&(&b"a\0\xff"[..])),
            pack(&"a\0b"),
            pack(&i64::MIN),
            pack(&0),
            pack(&u64::MAX),
            pack(&i128::MAX),
            pack(&i128::MIN),
            pack(&1.0f32),
            pack(&1.0),
            pack(&true),
            pack(&false),
            pack(&stamp),
        ];
        for packed in all {
            assert_eq!(first_length(&packed), Some(packed.len()), "{}", packed.escape_ascii());
            let followed = [&packed[..], &nested(MAX_DEPTH + 1)].concat();
            assert!(check(&followed).is_err(), "{}", packed.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn bytes_are_bounded_as_deep_as_they_unpack(
            before in 0..3usize,
            opened in MAX_DEPTH - 2..MAX_DEPTH + 3,
            bytes in prop::collection::vec(
                prop_oneof![4 => prop::sample::select(vec![0, 1, 2, 5, 0x0b, 0x15, 0x1d, 0x26, 0x33, 0xff]), 1 => any::<u8>()],
                0..24,
            ),
        ) {
            let packed = [vec![0x26; before], vec![NESTED; opened], bytes, vec![0; opened]].concat();
            if let Ok(elements) = foundationdb_tuple::unpack::<Vec<Element<'_>>>(&packed) {
                let deepest = elements.iter().map(depth).max().unwrap_or_default();
                prop_assert_eq!(check(&packed).is_ok(), deepest <= MAX_DEPTH);
            }
        }
    }
}
