//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::Vector;
use proptest::{option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{specimen::Content, strategies};
use shaketable_layers::vector::MAX_VALUE_BYTES;

/// One call on a row. Values are so many bytes of a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Op {
    /// The row.
    pub row: i64,
    /// What is done with it.
    pub call: Call,
}

/// What is done with a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Call {
    /// Appends.
    Push(u8, usize),
    /// Removes the last element.
    Pop,
    /// Sets an element.
    Set(i64, u8, usize),
    /// Exchanges two.
    Swap(i64, i64),
    /// Makes it so long.
    Resize(i64),
    /// Makes it at most so long.
    Truncate(i64),
    /// Removes the rows from that one on.
    TruncateRows(i64),
    /// Reads an element.
    Get(i64),
    /// Reads the last element.
    Back,
    /// Reads the size.
    Size,
    /// Reads whether there is no element.
    IsEmpty,
    /// Reads elements.
    Scan(i64, Option<i64>),
    /// Reads the elements that are stored from here on: those that are not the default, for a hole that was
    /// filled is stored.
    Stored(i64, Option<i64>),
    /// Reads how many rows there are.
    Rows,
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// An element, if there is one.
    Value(Option<Content>),
    /// An index or a size.
    Number(i64),
    /// Whether it is so.
    Is(bool),
    /// Elements.
    Scan(Vec<Content>),
    /// Elements with their indexes.
    Stored(Vec<(i64, Content)>),
}

/// The indexes and sizes that are drawn.
pub(super) const INDEXES: [i64; 12] =
    [0, 1, 2, 3, 5, 12, 40, -1, i64::MIN, i64::MAX, i64::MAX - 1, i64::MAX - 2];

/// Of these, how many are small.
pub(super) const SMALL: usize = 7;

impl Vector {
    /// One call, drawn.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let indexes = &INDEXES[..self.indexes];
        let index = || select(indexes);
        let end = || option::of(select(indexes));
        let byte = any::<u8>;
        let length = || {
            let limit = strategies::lengths(60, MAX_VALUE_BYTES);
            prop_oneof![8 => 0..4usize, 6 => limit, 1 => Just(2_000), 1 => Just(99_970)]
        };
        // Rows that nobody fills, and those that are none.
        let row = || prop_oneof![60 => 0..self.rows, 1 => select(&[-1, i64::MAX, i64::MAX - 1, 256][..])];
        let rows = || prop_oneof![8 => 0..=self.rows, 1 => select(&[-1, i64::MAX, i64::MIN][..])];
        let call = prop_oneof![
            8 => (byte(), length()).prop_map(|(b, n)| Call::Push(b, n)),
            4 => Just(Call::Pop),
            4 => (index(), byte(), length()).prop_map(|(i, b, n)| Call::Set(i, b, n)),
            3 => (index(), index()).prop_map(|(i, j)| Call::Swap(i, j)),
            2 => index().prop_map(Call::Resize),
            2 => index().prop_map(Call::Truncate),
            1 => rows().prop_map(Call::TruncateRows),
            3 => index().prop_map(Call::Get),
            1 => Just(Call::Back),
            1 => Just(Call::Size),
            1 => Just(Call::IsEmpty),
            4 => (index(), end()).prop_map(|(i, end)| Call::Scan(i, end)),
            1 => (index(), end()).prop_map(|(i, end)| Call::Stored(i, end)),
            1 => Just(Call::Rows),
        ];
        (row(), call).prop_map(|(row, call)| Op { row, call }).boxed()
    }
}
