//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::Table;
use crate::models::labels::{Family, Which, label};
use crate::shared::page_sizes;
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use proptest::{
    collection::{btree_map, vec},
    prelude::*,
    sample::select,
};
use serde::{Deserialize, Serialize};
use shaketable::{specimen::Content, strategies};
use shaketable_layers::label::Label;
use shaketable_tx::VALUE_SIZE_LIMIT;

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Sets a cell.
    Set(Vec<Which>, Value),
    /// Reads a cell.
    Get(Vec<Which>),
    /// Deletes a cell.
    Delete(Vec<Which>),
    /// Reads the cells with these labels on these axes: a row is axis 0, a column axis 1.
    Slice(Vec<(usize, Which)>),
    /// Replaces the cells with these labels by the given ones, which are given by their other labels.
    Replace(Vec<(usize, Which)>, Vec<(Vec<Which>, Value)>),
    /// Reads up to this many cells of a slice, after a cell.
    Page(Vec<(usize, Which)>, Option<Vec<Which>>, usize),
    /// Configures a table with these orders; the subspaces of some share keys.
    Orders(Vec<(u8, Vec<usize>)>),
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// The cell's value.
    Value(Option<Content>),
    /// The cells without the labels that were given, in the order of labels.
    Cells(Vec<(Vec<Content>, Content)>),
    /// The cells with all their labels, in an order of the table.
    Page(Vec<(Vec<Content>, Content)>),
}

/// A value: a byte, and the number of its repetitions.
pub(super) type Value = (u8, usize);

pub(super) fn labels(which: &[Which]) -> Vec<Label> {
    which.iter().copied().map(label).collect()
}

pub(super) fn bytes((byte, length): Value) -> Bytes {
    vec![byte; length].into()
}

/// The answer with these cells, without their labels on the fixed axes.
pub(super) fn cells<'a, V: AsRef<[u8]> + 'a>(
    cells: impl IntoIterator<Item = (&'a Vec<Label>, &'a V)>,
    fixed: &[usize],
) -> Answer {
    let cell = |(cell, value): (&Vec<Label>, &V)| {
        let free = cell.iter().enumerate().filter(|(axis, _)| !fixed.contains(axis));
        (free.map(|(_, label)| Content::from(label.packed())).collect(), Content::from(value))
    };
    Answer::Cells(cells.into_iter().map(cell).collect())
}

/// The answer with these cells and all their labels.
pub(super) fn page<'a>(cells: impl IntoIterator<Item = (&'a Vec<Label>, Content)>) -> Answer {
    let cell = |(cell, value): (&Vec<Label>, Content)| {
        (cell.iter().map(|label| Content::from(label.packed())).collect(), value)
    };
    Answer::Page(cells.into_iter().map(cell).collect())
}

/// The fixed axes, and their labels.
pub(super) fn fixed(fixed: &[(usize, Which)]) -> (Vec<usize>, Vec<Label>) {
    fixed.iter().map(|(axis, which)| (*axis, label(*which))).unzip()
}

/// The number of subspaces of [`Op::Orders`].
const SUBSPACES: u8 = 8;

/// A subspace of [`Op::Orders`]: some contain others.
pub(super) fn subspace(number: u8) -> Subspace {
    match number {
        0 => Subspace::from("T"),
        1 => Subspace::from(("T", "R")),
        2 => Subspace::from("Ta"),
        3 => Subspace::from(("T", "RR")),
        5.. => Subspace::from(("U", i64::from(number))),
        _ => Subspace::from(("T", "R", 1)),
    }
}

/// Whether one of the two subspaces contains the other.
pub(super) fn nest(a: u8, b: u8) -> bool {
    a == b || matches!((a.min(b), a.max(b)), (0, 1 | 3 | 4) | (1, 4))
}

impl Table {
    /// Draws one call.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let dimensions = self.shape.dimensions();
        let families = self.families;
        let value = || (any::<u8>(), 0..=self.longest);
        let cell = || families[..dimensions].iter().map(|family| family.one()).collect::<Vec<_>>();
        let slices: Vec<Vec<usize>> = match dimensions {
            2 => vec![vec![0], vec![1]],
            _ => vec![vec![0], vec![2], vec![0, 1], vec![2, 0], vec![], vec![1], vec![1, 2]],
        };
        let fixed = move || {
            let labels = move |axes: Vec<usize>| {
                axes.into_iter().map(|axis| (Just(axis), families[axis].one())).collect::<Vec<_>>()
            };
            select(slices.clone()).prop_flat_map(labels)
        };
        let replace = {
            let (longest, fixed) = (self.longest, fixed.clone());
            fixed().prop_flat_map(move |fixed| {
                let free = (0..dimensions).filter(|axis| fixed.iter().all(|(fixed, _)| fixed != axis));
                let labels: Vec<_> = free.map(|axis| families[axis].one()).collect();
                let cells = btree_map(labels, (any::<u8>(), 0..=longest), 0..4);
                (Just(fixed), cells)
                    .prop_map(|(fixed, cells)| Op::Replace(fixed, cells.into_iter().collect()))
            })
        };
        let mut wide = cell();
        wide[0] = Just(Family::oversize()).boxed();
        let wide = move || wide.clone();
        let row = |axis: usize| move |which: Which| vec![(axis, which)];
        // An axis twice, an axis that does not exist, all axes, and a label that is too long.
        let odd = prop_oneof![
            (families[0].one(), families[0].one()).prop_map(|(a, b)| vec![(0, a), (0, b)]),
            families[0].one().prop_map(row(dimensions)),
            cell().prop_map(|cell| cell.into_iter().enumerate().collect::<Vec<_>>()),
            Just(vec![(0, Family::oversize())]),
        ]
        .boxed();
        let odd = move || odd.clone();
        let page = {
            // Now and then the cell has fewer dimensions than the table, or more.
            let some = strategies::mostly(
                cell(),
                prop_oneof![vec(families[0].one(), 0..=1), vec(families[0].one(), 4)],
            );
            let fixed = fixed.clone();
            let after = move || proptest::option::weighted(0.7, some.clone());
            move || {
                (fixed(), after(), prop_oneof![1 => Just(0), 6 => page_sizes()])
                    .prop_map(|(fixed, after, most)| Op::Page(fixed, after, most))
            }
        };
        let axes = prop_oneof![
            8 => select(vec![vec![0, 1], vec![1, 0]]),
            1 => select(vec![vec![0], vec![0, 2], vec![1, 0, 1]]),
        ];
        let orders = vec((0..SUBSPACES, axes), 0..6);
        let edge = || {
            let lengths = select(vec![VALUE_SIZE_LIMIT, VALUE_SIZE_LIMIT, VALUE_SIZE_LIMIT + 1]);
            (any::<u8>(), lengths)
        };
        prop_oneof![
            10 => (cell(), value()).prop_map(|(cell, value)| Op::Set(cell, value)),
            5 => cell().prop_map(Op::Get),
            4 => cell().prop_map(Op::Delete),
            8 => fixed().prop_map(Op::Slice),
            8 => replace,
            1 => fixed().prop_map(|fixed| Op::Replace(fixed, Vec::new())),
            1 => (wide(), value()).prop_map(|(cell, value)| Op::Set(cell, value)),
            1 => wide().prop_map(Op::Get),
            1 => wide().prop_map(Op::Delete),
            1 => (cell(), edge()).prop_map(|(cell, value)| Op::Set(cell, value)),
            1 => (0..dimensions, cell(), edge()).prop_map(|(axis, mut cell, value)| {
                let fixed = vec![(axis, cell.remove(axis))];
                Op::Replace(fixed, vec![(cell, value)])
            }),
            1 => vec(families[0].one(), 4).prop_map(Op::Get),
            1 => vec(families[0].one(), 1).prop_map(Op::Delete),
            1 => (fixed(), vec(families[0].one(), 3), value())
                .prop_map(|(fixed, free, value)| Op::Replace(fixed, vec![(free, value)])),
            1 => odd().prop_map(Op::Slice),
            1 => (odd(), value()).prop_map(|(fixed, _)| Op::Replace(fixed, Vec::new())),
            1 => odd().prop_map(|fixed| Op::Page(fixed, None, 2)),
            5 => page(),
            2 => orders.prop_map(Op::Orders),
        ]
        .boxed()
    }
}
