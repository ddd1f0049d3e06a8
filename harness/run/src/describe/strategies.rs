//! Test data for workloads: small sets of values that are easily confused or that lie at a limit.
//!
//! The sets are small so that clients collide and edge cases are reached within a few seeds.

use proptest::{
    sample::select,
    strategy::{BoxedStrategy, Strategy},
};
use shaketable_tx::VALUE_SIZE_LIMIT;

/// Short byte strings that are easily confused: the empty string, NUL, 0xff, and prefixes of each other.
pub const CONFUSED: [&[u8]; 14] = [
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
    b"a\xff\xff",
    b"\xff\xff\xff",
];

/// Text that is easily confused: the empty string, NUL, prefixes of each other, code points on both sides of
/// the end of the basic multilingual plane, alone and after a prefix, and the composed and the decomposed
/// form of one letter.
pub const CONFUSED_TEXT: [&str; 12] = [
    "",
    "\0",
    "a",
    "a\u{10ffff}",
    "a\0",
    "a\0b",
    "ab",
    "é",
    "e\u{301}",
    "\u{10ffff}",
    "a\u{ffff}",
    "\u{ffff}",
];

/// Integers at which the length of their tuple encoding changes, zero, and the smallest and largest integer.
pub fn integers() -> BoxedStrategy<i64> {
    select(&[i64::MIN, -65_536, -256, -255, -1, 0, 1, 255, 256, 65_535, 65_536, i64::MAX][..]).boxed()
}

/// Lengths of values: mostly up to `usual`, sometimes exactly `limit`, and sometimes `limit + 1`, which is
/// refused.
pub fn lengths(usual: usize, limit: usize) -> BoxedStrategy<usize> {
    proptest::prop_oneof![
        40 => 0..=usual,
        1 => proptest::strategy::Just(limit),
        1 => proptest::strategy::Just(limit + 1),
    ]
    .boxed()
}

/// [`lengths`] with FoundationDB's limit on the size of a value.
pub fn value_lengths(usual: usize) -> BoxedStrategy<usize> {
    lengths(usual, VALUE_SIZE_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_confusable_values_are_distinct() {
        assert_eq!(BTreeSet::from(CONFUSED).len(), CONFUSED.len());
        assert_eq!(BTreeSet::from(CONFUSED_TEXT).len(), CONFUSED_TEXT.len());
    }
}
