//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::{
    Encoding,
    columns::{ALIKE, POOL},
    planted::Planted,
};
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable::specimen::Content;
use shaketable_layers::{encoding::Part, tx::VALUE_SIZE_LIMIT};

/// One call. Keys, and what they begin with, are numbers of the columns' pools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Sets a population.
    Set(Vec<u8>, u32),
    /// Reads one.
    Get(Vec<u8>),
    /// Removes one.
    Delete(Vec<u8>),
    /// All that begin with these parts: the counties of a state.
    Under(Vec<u8>),
    /// All from here to there.
    Between(Vec<u8>, Vec<u8>),
    /// Up to so many that begin with these parts, behind a key.
    Page(Vec<u8>, Option<Vec<u8>>, usize),
    /// Sets a value as large as can be, or by a byte larger.
    SetLarge(Vec<u8>, bool),
    /// Encodes the smallest number for a column of this width.
    Width(u8),
    /// How two texts stand to each other, of a language; only letters are told apart, or accents, or all.
    Compare(u8, u8, u8),
    /// Asks for the order of words of no language.
    NoLanguage,
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// The population.
    Population(Option<Content>),
    /// Keys and their populations.
    Populations(Vec<(Vec<Shown>, Content)>),
    /// So many bytes.
    Encoded(usize),
    /// The first text is before the other, equal, behind it; and whether they have one collation key.
    Compared(i8, bool),
}

/// A part as answers hold it, which a slot has to take: floats by their bits, texts in short.
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
    /// One call, drawn.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let parts = |columns: usize| {
            let part = |pool: &Vec<u8>| proptest::sample::select(pool.clone()).boxed();
            self.parts[..columns].iter().map(part).collect::<Vec<_>>()
        };
        let columns = self.kinds.len();
        let population = || 0..10_000_000u32;
        let page = || proptest::option::weighted(0.8, parts(columns));
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
            4 => (parts(1), page(), 0..4usize).prop_map(|(prefix, after, most)| Op::Page(prefix, after, most)),
            3 => (page(), 0..4usize).prop_map(|(after, most)| Op::Page(Vec::new(), after, most)),
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

/// A call that reads and writes nothing but what a bug with keys of its own can read.
fn plain(op: Op) -> Op {
    match op {
        Op::Page(prefix, ..) => Op::Under(prefix),
        Op::SetLarge(key, _) => Op::Set(key, 1),
        op => op,
    }
}

/// The value of [`Op::SetLarge`].
pub(super) fn large(beyond: bool) -> Vec<u8> {
    vec![b'9'; VALUE_SIZE_LIMIT + usize::from(beyond)]
}
