//! Data that hurts, which workloads draw from.
//!
//! Each is a small set of values that are easily confused or that stand at a limit, so that
//! clients meet and edges are reached in a few seeds.

use proptest::{
    sample::select,
    strategy::{BoxedStrategy, Strategy},
};
use shaketable_layers::tx::VALUE_SIZE_LIMIT;

/// Short byte strings that are easily confused: the empty one, NUL, 0xff, and prefixes of each other.
pub const CONFUSED: [&[u8]; 12] = [
    b"",
    b"\0",
    b"\0\0",
    b"\0\xff",
    b"a",
    b"a\0",
    b"a\0\xff",
    b"a\xff",
    b"ab",
    b"\xfe",
    b"\xff",
    b"\xff\xff",
];

/// Text that is easily confused: the empty one, NUL, prefixes of each other, beyond the basic plane, and two
/// spellings of one letter.
pub const CONFUSED_TEXT: [&str; 9] = ["", "\0", "a", "a\0", "a\0b", "ab", "é", "e\u{301}", "\u{10ffff}"];

/// Integers where the tuple layer needs another byte, zero, and both ends.
pub fn integers() -> BoxedStrategy<i64> {
    select(&[i64::MIN, -65_536, -256, -255, -1, 0, 1, 255, 256, 65_535, 65_536, i64::MAX][..]).boxed()
}

/// Lengths of values: mostly up to `usual`, now and then exactly at `limit`, and now and then one beyond it,
/// which is refused.
pub fn lengths(usual: usize, limit: usize) -> BoxedStrategy<usize> {
    proptest::prop_oneof![
        40 => 0..=usual,
        1 => proptest::strategy::Just(limit),
        1 => proptest::strategy::Just(limit + 1),
    ]
    .boxed()
}

/// [`lengths`] of values that FoundationDB's own limit bounds.
pub fn value_lengths(usual: usize) -> BoxedStrategy<usize> {
    lengths(usual, VALUE_SIZE_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_is_easily_confused_differs() {
        assert_eq!(BTreeSet::from(CONFUSED).len(), CONFUSED.len());
        assert_eq!(BTreeSet::from(CONFUSED_TEXT).len(), CONFUSED_TEXT.len());
    }
}
