//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::Vector;
use proptest::{option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{specimen::Content, strategies};
use shaketable_layers::vector::MAX_VALUE_BYTES;

/// One call on a row. A value is a byte and the number of its repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Op {
    /// The row.
    pub row: i64,
    /// The call.
    pub call: Call,
}

/// A call on a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Call {
    /// Appends.
    Push(u8, usize),
    /// Removes the last element.
    Pop,
    /// Sets an element.
    Set(i64, u8, usize),
    /// Exchanges two elements.
    Swap(i64, i64),
    /// Changes the size to this number.
    Resize(i64),
    /// Reduces the size to this number, if it is larger.
    Truncate(i64),
    /// Removes the rows from this one on.
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
    /// Reads the elements that are stored, from here on. Those with the default value are left out, because a
    /// hole that was filled is stored too.
    Stored(i64, Option<i64>),
    /// Reads the number of rows.
    Rows,
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// An element, if there is one.
    Value(Option<Content>),
    /// An index or a size.
    Number(i64),
    /// Whether the condition holds.
    Is(bool),
    /// Elements.
    Scan(Vec<Content>),
    /// Elements, with their indexes.
    Stored(Vec<(i64, Content)>),
}

/// The indexes and sizes that are drawn.
pub(super) const INDEXES: [i64; 12] =
    [0, 1, 2, 3, 5, 12, 40, -1, i64::MIN, i64::MAX, i64::MAX - 1, i64::MAX - 2];

/// How many of these are small.
pub(super) const SMALL: usize = 7;

impl Vector {
    /// Draws one call.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let indexes = &INDEXES[..self.indexes];
        let index = || select(indexes);
        let end = || option::of(select(indexes));
        let byte = any::<u8>;
        let length = || {
            let limit = strategies::lengths(60, MAX_VALUE_BYTES);
            prop_oneof![8 => 0..4usize, 6 => limit, 1 => Just(2_000), 1 => Just(99_970)]
        };
        // Rows that are never written, and invalid ones.
        let far = [-1, i64::MAX, i64::MAX - 1, 127, 128, 255, 256, 65_536];
        let row = move || prop_oneof![60 => 0..self.rows, 1 => select(far.to_vec())];
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
