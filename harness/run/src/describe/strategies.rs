//! Test data for workloads: small sets of values that are easily confused or that lie at a limit.
//!
//! The sets are small so that clients collide and edge cases are reached within a few seeds.

use proptest::{
    prop_oneof,
    sample::select,
    strategy::{BoxedStrategy, Just, Strategy},
};
use shaketable_sim::seed::Stream;
use shaketable_tx::VALUE_SIZE_LIMIT;
use std::fmt::Debug;

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

/// Text beyond ASCII: letters whose other case has another length or depends on the place, a ligature, an
/// accent that is composed or not, and a letter that takes two units of UTF-16. Some are equal in another
/// case or form.
pub const BEYOND_ASCII: [&str; 12] =
    ["ß", "ss", "SS", "İ", "i\u{307}", "Σ", "σ", "ς", "ﬁ", "é", "e\u{301}", "𝄞"];

/// Unsigned integers at which a number needs another byte, or no longer fits into a narrower or a signed
/// type.
pub const UNSIGNED: [u64; 13] = [
    0,
    1,
    127,
    128,
    255,
    256,
    65_535,
    65_536,
    u32::MAX as u64,
    u32::MAX as u64 + 1,
    i64::MAX as u64,
    i64::MAX as u64 + 1,
    u64::MAX,
];

/// What is usual, and now and then an edge: edges are met in each sweep, and clients still meet at what is
/// usual.
pub fn mostly<T: Debug + 'static>(
    usual: impl Strategy<Value = T> + 'static,
    edges: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<T> {
    prop_oneof![24 => usual, 1 => edges].boxed()
}

/// Integers at which the length of their tuple encoding changes, zero, and the smallest and largest integer;
/// now and then one beyond these, or at the end of a narrower type.
pub fn integers() -> BoxedStrategy<i64> {
    const NARROWER: [i64; 12] = [
        i64::MIN + 1,
        i32::MIN as i64 - 1,
        i32::MIN as i64,
        -65_537,
        -257,
        257,
        i32::MAX as i64,
        i32::MAX as i64 + 1,
        u32::MAX as i64,
        u32::MAX as i64 + 1,
        1 << 53,
        i64::MAX - 1,
    ];
    let usual = [i64::MIN, -65_536, -256, -255, -1, 0, 1, 255, 256, 65_535, 65_536, i64::MAX];
    mostly(select(usual.to_vec()), select(&NARROWER[..]))
}

/// Counts at which a limit or a number of things shows: none, one, `of`, and its neighbours.
pub fn counts(of: usize) -> BoxedStrategy<usize> {
    select(vec![0, 1, of.saturating_sub(1), of, of.saturating_add(1)]).boxed()
}

/// Lengths of values: mostly up to `usual`, sometimes at what one or two bytes can count, sometimes exactly
/// `limit`, or one byte less, and sometimes `limit + 1`, which is refused.
pub fn lengths(usual: usize, limit: usize) -> BoxedStrategy<usize> {
    let counted = [1, 127, 128, 255, 256, 257, 65_535, 65_536, limit.saturating_sub(1)];
    let counted: Vec<usize> = counted.into_iter().filter(|length| *length < limit).collect();
    prop_oneof![
        40 => 0..=usual,
        1 => select(if counted.is_empty() { vec![limit] } else { counted }),
        1 => Just(limit),
        1 => Just(limit + 1),
    ]
    .boxed()
}

/// The number of bytes with which all names or ids of a run begin: mostly none, and in some runs so many that
/// short names have lengths around those that one byte can count.
pub fn draw_padding(rng: &mut Stream) -> usize {
    *rng.pick(&[0, 0, 0, 0, 0, 0, 0, 252, 254, 256])
}

/// A name or an id with these bytes before it.
pub fn padded(padding: usize, name: &str) -> String {
    "p".repeat(padding) + name
}

/// [`lengths`] with FoundationDB's limit on the size of a value.
pub fn value_lengths(usual: usize) -> BoxedStrategy<usize> {
    lengths(usual, VALUE_SIZE_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    use std::collections::BTreeSet;

    #[test]
    fn the_confusable_values_are_distinct() {
        assert_eq!(BTreeSet::from(CONFUSED).len(), CONFUSED.len());
        assert_eq!(BTreeSet::from(CONFUSED_TEXT).len(), CONFUSED_TEXT.len());
        assert_eq!(BTreeSet::from(BEYOND_ASCII).len(), BEYOND_ASCII.len());
        assert!(UNSIGNED.is_sorted() && UNSIGNED.windows(2).all(|pair| pair[0] != pair[1]));
    }

    /// What a strategy draws in two thousand values.
    fn drawn<T: Ord + Debug>(strategy: &BoxedStrategy<T>) -> BTreeSet<T> {
        let mut runner = TestRunner::deterministic();
        let mut draw = || strategy.new_tree(&mut runner).expect("a value").current();
        (0..2_000).map(|_| draw()).collect()
    }

    #[test]
    fn edges_are_drawn_and_nothing_beyond_them() {
        assert_eq!(drawn(&counts(7)), BTreeSet::from([0, 1, 6, 7, 8]));
        assert_eq!(drawn(&counts(0)), BTreeSet::from([0, 1]));
        let lengths = drawn(&lengths(4, 300));
        assert_eq!(lengths, BTreeSet::from([0, 1, 2, 3, 4, 127, 128, 255, 256, 257, 299, 300, 301]));
        assert_eq!(drawn(&super::lengths(1, 0)), BTreeSet::from([0, 1]));
        let integers = drawn(&integers());
        assert!(integers.contains(&(i64::MIN + 1)) && integers.contains(&(i64::from(i32::MAX) + 1)));
        assert_eq!(drawn(&mostly(Just(1), Just(2))), BTreeSet::from([1, 2]));
    }
}
