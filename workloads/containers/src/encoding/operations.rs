//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::{
    Encoding,
    columns::{ALIKE, POOL},
    planted::Planted,
};
use crate::shared::page_sizes;
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable::specimen::Content;
use shaketable_layers::encoding::Part;
use shaketable_tx::VALUE_SIZE_LIMIT;

/// One call. Keys and prefixes are numbers of parts in the columns' pools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Sets a population.
    Set(Vec<u8>, u32),
    /// Reads a population.
    Get(Vec<u8>),
    /// Removes a population.
    Delete(Vec<u8>),
    /// Reads all populations under a prefix, such as those of a state.
    Under(Vec<u8>),
    /// Reads all populations from one key or prefix to another.
    Between(Vec<u8>, Vec<u8>),
    /// Reads up to this many populations under a prefix, after a key.
    Page(Vec<u8>, Option<Vec<u8>>, usize),
    /// Sets a value of the maximum size, or of one byte more if true.
    SetLarge(Vec<u8>, bool),
    /// Encodes the smallest number for a column of this width.
    Width(u8),
    /// Compares two texts in the order of a language that distinguishes only letters, or also accents, or
    /// everything.
    Compare(u8, u8, u8),
    /// Requests the collation of an unknown language.
    NoLanguage,
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// The population.
    Population(Option<Content>),
    /// Keys and their populations.
    Populations(Vec<(Vec<Shown>, Content)>),
    /// The number of bytes.
    Encoded(usize),
    /// Whether the first text is before the other (-1), equal, or after it, and whether both have the same
    /// collation key.
    Compared(i8, bool),
}

/// A part as answers contain it, so that an answer fits into a slot: the bits of a float, the digest of a
/// text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shown {
    /// An integer, or a float's bits.
    Bits(u64),
    /// A text.
    Text(Content),
}

impl From<&Part> for Shown {
    fn from(part: &Part) -> Shown {
        match part {
            Part::Unsigned(n) => Shown::Bits(*n),
            Part::Signed(n) => Shown::Bits(*n as u64),
            Part::Single(x) => Shown::Bits(x.to_bits().into()),
            Part::Double(x) => Shown::Bits(x.to_bits()),
            Part::Text(text) => Shown::Text(Content::from(text)),
        }
    }
}

impl Encoding {
    /// Draws one call.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let parts = |columns: usize| {
            let part = |pool: &Vec<u8>| proptest::sample::select(pool.clone()).boxed();
            self.parts[..columns].iter().map(part).collect::<Vec<_>>()
        };
        let columns = self.kinds.len();
        let population = || 0..10_000_000u32;
        let page = || proptest::option::weighted(0.8, parts(columns));
        let most = || prop_oneof![1 => Just(0), 5 => page_sizes()];
        let own = self.planted.is_some_and(Planted::has_own_keys);
        let mut odd = parts(columns);
        odd[columns - 1] = Just(POOL - 1).boxed();
        prop_oneof![
            10 => (parts(columns), population()).prop_map(|(key, n)| Op::Set(key, n)),
            4 => parts(columns).prop_map(Op::Get),
            3 => parts(columns).prop_map(Op::Delete),
            7 => parts(1).prop_map(Op::Under),
            1 => parts(columns).prop_map(Op::Under),
            1 => Just(Op::Under(Vec::new())),
            6 => (parts(1), parts(1)).prop_map(|(from, to)| Op::Between(from, to)),
            3 => (parts(columns), parts(2)).prop_map(|(from, to)| Op::Between(from, to)),
            1 => (odd, population()).prop_map(|(key, n)| Op::Set(key, n)),
            1 => vec(0..4u8, columns + 1).prop_map(Op::Get),
            4 => (parts(1), page(), most()).prop_map(|(prefix, after, most)| Op::Page(prefix, after, most)),
            3 => (page(), most()).prop_map(|(after, most)| Op::Page(Vec::new(), after, most)),
            1 => (parts(1), parts(1)).prop_map(|(prefix, after)| Op::Page(prefix, Some(after), 2)),
            1 => (parts(columns), any::<bool>()).prop_map(|(key, beyond)| Op::SetLarge(key, beyond)),
            1 => (0..11u8).prop_map(Op::Width),
            1 => (0..24u8, 0..24u8, 0..3u8).prop_map(|(a, b, tells)| Op::Compare(a, b, tells)),
            2 => (proptest::sample::select(&ALIKE[..]), 0..3u8).prop_map(|((a, b), tells)| Op::Compare(a, b, tells)),
            1 => Just(Op::NoLanguage),
        ]
        .prop_map(move |op| if own { plain(op) } else { op })
        .boxed()
    }
}

/// Replaces a call that a bug with keys of its own could not read or write.
fn plain(op: Op) -> Op {
    match op {
        Op::Page(prefix, ..) | Op::Between(prefix, _) => Op::Under(prefix),
        Op::SetLarge(key, _) => Op::Set(key, 1),
        op => op,
    }
}

/// The value of [`Op::SetLarge`].
pub(super) fn large(beyond: bool) -> Vec<u8> {
    vec![b'9'; VALUE_SIZE_LIMIT + usize::from(beyond)]
}
