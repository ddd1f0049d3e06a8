//! `table`: cells of a sparse table are set, read and deleted, alone, by the row and by the column.
//!
//! A run keeps its table by row, by column, both ways, or in three dimensions with two of the six orders.
//! Rows and columns are named by labels that are easily confused. Rows are replaced by others that have
//! some of their columns; values reach from nothing to several kilobytes, and stand at the limit and a byte
//! beyond; now and then a cell is not in the table's dimensions, a label fits into no key, what is asked for has
//! no order, or names an axis twice, and orders share keys. Looks at snapshot conflict with nothing.

mod planted;

use super::blob::fits;
use crate::models::labels::{Family, Which, label};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use proptest::{
    collection::{btree_map, vec},
    prelude::*,
    sample::select,
};
use serde::{Deserialize, Serialize};
use shaketable::{
    specimen::{self, At, Content, Specimen, UNRECORDED},
    workload::{Bug, Outcome},
};
use shaketable_layers::{
    label::Label,
    limits,
    once::Session,
    table::{self, Cells, Error, Grid, Line, Order},
    tx::{
        self, Database, Env,
        Isolation::{self, Serializable},
        RangeOption, Transaction, VALUE_SIZE_LIMIT,
    },
};
use shaketable_sim::seed::Stream;
use std::collections::BTreeMap;

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "a cell is set again after an unknown result without an operation record", "a blind write done twice";
    SetRowAsPrinted = "set-row-as-printed", "replacing a row clears it in the order of rows only", "the recipe's table_set_row";
    GetCellAsPrinted = "get-cell-as-printed", "an unassigned cell is decoded as if it had a value", "the recipe's table_get_cell";
    DeleteCellByRow = "delete-cell-by-row", "a cell is deleted in the first order only", "an order forgotten on one path";
    DeleteRowByRow = "delete-row-by-row", "a row is deleted in the first order only", "an order forgotten on one path";
    SnapshotReplace = "snapshot-replace", "the old cells of a row are read at snapshot", "a decision on a snapshot read";
    RowsMerge = "rows-merge", "setting a row leaves the columns that are not given", "an update taken for a replacement";
    OrderOnItsOwn = "order-on-its-own", "the second order is written in a transaction of its own", "an index outside the transaction";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole row", "a range that is longer than a batch";
    TextLabels = "text-labels", "labels are stored as text, so that row 1 is row \"1\"", "labels without their types";
    EmptyIsAbsent = "empty-is-absent", "an empty value reads as an unassigned cell", "absent and empty taken for one";
    SliceAtSnapshot = "slice-at-snapshot", "a slice is read at snapshot, however it is asked for", "a dropped conflict range";
    LastAgain = "last-again", "a page begins with the last cell of the one before", "a cursor that is the last key";
    AxisTwice = "axis-twice", "an axis that is given twice counts once", "a question that is not checked";
    LargestRefused = "largest-refused", "a value as large as can be is refused", "a limit that is off by one";
}

/// How the table is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    /// By row.
    Rows,
    /// By column.
    Columns,
    /// Both ways.
    Both,
    /// Three dimensions, in the orders 0 1 2 and 2 0 1.
    Cube,
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    shape: Shape,
    /// The labels of each axis.
    families: [Family; 3],
    /// Values have up to so many bytes.
    longest: usize,
    planted: Option<Planted>,
}

/// So many bytes of this number.
type Value = (u8, usize);

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
    /// Replaces them by these, which are given by their other labels.
    Replace(Vec<(usize, Which)>, Vec<(Vec<Which>, Value)>),
    /// Reads up to so many cells of a slice, behind a cell.
    Page(Vec<(usize, Which)>, Option<Vec<Which>>, usize),
    /// Asks for a table of these orders; the subspaces of some share keys.
    Orders(Vec<(u8, Vec<usize>)>),
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// The cell's value.
    Value(Option<Content>),
    /// The cells with the labels that were not given, in the order of labels.
    Cells(Vec<(Vec<Content>, Content)>),
    /// The cells with all their labels, in an order of the table.
    Page(Vec<(Vec<Content>, Content)>),
}

/// What should be there.
pub type Model = BTreeMap<Vec<Label>, Content>;

impl Shape {
    pub(crate) fn dimensions(self) -> usize {
        if self == Shape::Cube { 3 } else { 2 }
    }

    /// The orders that are kept, each with its subspace.
    pub(crate) fn orders(self) -> Vec<(Subspace, Vec<usize>)> {
        let table = Subspace::from("T");
        match self {
            Shape::Rows => vec![(table, vec![0, 1])],
            Shape::Columns => vec![(table, vec![1, 0])],
            Shape::Both => vec![(table.subspace(&"R"), vec![0, 1]), (table.subspace(&"C"), vec![1, 0])],
            Shape::Cube => vec![(table.subspace(&0), vec![0, 1, 2]), (table.subspace(&1), vec![2, 0, 1])],
        }
    }

    /// Whether some order begins with these axes.
    fn keeps(self, fixed: &[usize]) -> bool {
        self.order_of(fixed).is_some()
    }

    /// The axes of the first order that begins with these.
    fn order_of(self, fixed: &[usize]) -> Option<Vec<usize>> {
        let begins = |axes: &Vec<usize>| axes[..fixed.len()].iter().all(|axis| fixed.contains(axis));
        let orders = self.orders().into_iter().map(|(_, axes)| axes);
        orders.filter(|_| fixed.len() < self.dimensions()).find(begins)
    }

    /// A cell's key in each order.
    pub(crate) fn keys(self, cell: &[Label]) -> Vec<Vec<u8>> {
        let key = |(space, axes): (Subspace, Vec<usize>)| {
            let labels = axes.iter().map(|axis| cell[*axis].packed());
            std::iter::once(space.bytes()).chain(labels).collect::<Vec<_>>().concat()
        };
        self.orders().into_iter().map(key).collect()
    }
}

pub(crate) fn labels(which: &[Which]) -> Vec<Label> {
    which.iter().copied().map(label).collect()
}

pub(crate) fn bytes((byte, length): Value) -> Bytes {
    vec![byte; length].into()
}

/// Cells without the labels on these axes.
pub(crate) fn cells<'a, V: AsRef<[u8]> + 'a>(
    cells: impl IntoIterator<Item = (&'a Vec<Label>, &'a V)>,
    fixed: &[usize],
) -> Answer {
    let cell = |(cell, value): (&Vec<Label>, &V)| {
        let free = cell.iter().enumerate().filter(|(axis, _)| !fixed.contains(axis));
        (free.map(|(_, label)| Content::from(label.packed())).collect(), Content::from(value))
    };
    Answer::Cells(cells.into_iter().map(cell).collect())
}

/// The fixed axes, their labels, and the two as a layer takes them.
pub(crate) fn fixed(fixed: &[(usize, Which)]) -> (Vec<usize>, Vec<Label>) {
    fixed.iter().map(|(axis, which)| (*axis, label(*which))).unzip()
}

/// A subspace of [`Op::Orders`]: some are the same, or in each other.
fn subspace(number: u8) -> Subspace {
    match number {
        0 => Subspace::from("T"),
        1 => Subspace::from(("T", "R")),
        2 => Subspace::from("Ta"),
        3 => Subspace::from(("T", "RR")),
        _ => Subspace::from(("T", "R", 1)),
    }
}

/// Whether one of the two subspaces is in the other.
fn nest(a: u8, b: u8) -> bool {
    a == b || matches!((a.min(b), a.max(b)), (0, 1 | 3 | 4) | (1, 4))
}

impl Table {
    /// What the table says of a cell before it looks at it.
    fn accepts(&self, cell: &[Which]) -> Result<Vec<Label>, Error> {
        let dimensions = self.shape.dimensions();
        match cell.len() == dimensions {
            true => Ok(labels(cell)),
            false => Err(Error::WrongDimensions { given: cell.len(), dimensions }),
        }
    }

    /// What it says of a cell's sizes.
    fn holds(&self, cell: &[Label], value: Value) -> Result<(), Error> {
        let value = bytes(value);
        self.shape.keys(cell).iter().try_for_each(|key| Ok(limits::row(key, &value)?))
    }
}

impl Specimen for Table {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "table";
    const ABOUT: &'static str = "cells of a sparse table, kept by row, by column, and in other orders";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &["table: what is replaced is found in another order"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Table {
        let planted = bug.and_then(Planted::named);
        let drawn = *rng.pick(&[Shape::Rows, Shape::Columns, Shape::Both, Shape::Both, Shape::Cube]);
        Table {
            shape: planted.and_then(Planted::shape).unwrap_or(drawn),
            families: [(); 3].map(|()| Family::draw(rng)),
            longest: *rng.pick(&[8, 200, 3_000]),
            planted,
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let orders = self.shape.orders().into_iter();
        let first = |(space, axes): (Subspace, Vec<usize>)| {
            let labels = self.families[axes[0]].all().into_iter().map(label);
            labels.map(|label| Bytes::from(space.pack(&(label,)))).collect::<Vec<_>>()
        };
        orders.flat_map(first).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
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
        // An axis twice, one that there is not, all of them, and one that is too long.
        let odd = prop_oneof![
            (families[0].one(), families[0].one()).prop_map(|(a, b)| vec![(0, a), (0, b)]),
            families[0].one().prop_map(row(dimensions)),
            cell().prop_map(|cell| cell.into_iter().enumerate().collect::<Vec<_>>()),
            Just(vec![(0, Family::oversize())]),
        ]
        .boxed();
        let odd = move || odd.clone();
        let page = {
            let (fixed, some) = (fixed.clone(), cell());
            let after = move || proptest::option::weighted(0.7, some.clone());
            move || {
                (fixed(), after(), 0..4usize).prop_map(|(fixed, after, most)| Op::Page(fixed, after, most))
            }
        };
        let orders =
            vec((0..5u8, select(vec![vec![0, 1], vec![1, 0], vec![0], vec![0, 2], vec![1, 0, 1]])), 0..4);
        let edge = || {
            let lengths = select(vec![VALUE_SIZE_LIMIT, VALUE_SIZE_LIMIT, VALUE_SIZE_LIMIT + 1]);
            (any::<u8>(), lengths)
        };
        prop_oneof![
            10 => (cell(), value()).prop_map(|(cell, value)| Op::Set(cell, value)),
            5 => cell().prop_map(Op::Get),
            4 => cell().prop_map(Op::Delete),
            8 => fixed().prop_map(Op::Slice),
            5 => replace,
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
            1 => orders.prop_map(Op::Orders),
        ]
        .boxed()
    }

    fn is_look(op: &Op) -> bool {
        !matches!(op, Op::Set(..) | Op::Delete(_) | Op::Replace(..))
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Set(..) | Op::Delete(_))
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        matches!(op, Op::Get(_) | Op::Slice(_) | Op::Page(..))
            && self.planted.is_none_or(|planted| planted == Planted::SliceAtSnapshot)
    }

    async fn perform<T: Transaction>(
        &self,
        tx: &T,
        _: &Env,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Error> {
        let answer = match self.planted {
            Some(planted) => planted::perform(planted, self.shape, tx, op, isolation).await?,
            None => perform(self.shape, tx, op, isolation).await?,
        };
        if !Self::is_look(op) {
            fits(tx, op).await?;
        }
        Ok(answer)
    }

    async fn divert<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        match (self.planted, ops) {
            (Some(Planted::OrderOnItsOwn), [Op::Set(cell, value)]) => {
                planted::order_on_its_own(self.shape, session, cell, *value).await
            }
            _ => None,
        }
    }

    fn model(&self) -> Model {
        Model::new()
    }

    fn replay(&self, model: &mut Model, op: &Op, _: &At) -> Result<Answer, Error> {
        let among = |cell: &[Label], axes: &[usize], of: &[Label]| {
            axes.iter().zip(of).all(|(axis, label)| cell[*axis] == *label)
        };
        Ok(match op {
            Op::Set(cell, value) => {
                let cell = self.accepts(cell)?;
                self.holds(&cell, *value)?;
                model.insert(cell, Content::of(value.0, value.1));
                Answer::Written
            }
            Op::Get(cell) => Answer::Value(model.get(&self.accepts(cell)?).cloned()),
            Op::Delete(cell) => {
                model.remove(&self.accepts(cell)?);
                Answer::Written
            }
            Op::Slice(given) => {
                let (axes, of) = fixed(given);
                if !self.shape.keeps(&axes) {
                    return Err(Error::NoOrder(axes));
                }
                let found = model.iter().filter(|(cell, _)| among(cell, &axes, &of));
                let cell = |(cell, value): (&Vec<Label>, &Content)| {
                    let free = cell.iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
                    (free.map(|(_, label)| Content::from(label.packed())).collect(), value.clone())
                };
                Answer::Cells(found.map(cell).collect())
            }
            Op::Replace(given, cells) => {
                let (axes, of) = fixed(given);
                if !self.shape.keeps(&axes) {
                    return Err(Error::NoOrder(axes));
                }
                model.retain(|cell, _| !among(cell, &axes, &of));
                for (free, value) in cells {
                    let needed = self.shape.dimensions() - axes.len();
                    if free.len() != needed {
                        return Err(Error::WrongDimensions { given: free.len(), dimensions: needed });
                    }
                    let mut free = free.iter();
                    let label = |axis| match axes.iter().position(|fixed| *fixed == axis) {
                        Some(at) => Some(of[at].clone()),
                        None => free.next().copied().map(label),
                    };
                    let cell: Vec<Label> = (0..self.shape.dimensions()).filter_map(label).collect();
                    self.holds(&cell, *value)?;
                    model.insert(cell, Content::of(value.0, value.1));
                }
                Answer::Written
            }
            Op::Page(given, after, most) => {
                let (axes, of) = fixed(given);
                let order = self.shape.order_of(&axes).ok_or_else(|| Error::NoOrder(axes.clone()))?;
                let after = after.as_ref().map(|after| self.accepts(after)).transpose()?;
                let place = |cell: &[Label]| order.iter().map(|axis| cell[*axis].clone()).collect::<Vec<_>>();
                let after = after.map(|after| place(&after));
                let mut found: Vec<_> = model
                    .iter()
                    .filter(|(cell, _)| among(cell, &axes, &of))
                    .map(|(cell, value)| (place(cell), cell, value))
                    .filter(|(place, ..)| after.as_ref().is_none_or(|after| place > after))
                    .collect();
                found.sort();
                page(found.into_iter().map(|(_, cell, value)| (cell, value.clone())).take(*most))
            }
            Op::Orders(orders) => {
                let is_order = |axes: &[usize]| matches!(axes, [0, 1] | [1, 0]);
                if orders.is_empty() {
                    return Err(Error::NotAnOrder { axes: Vec::new(), dimensions: 2 });
                }
                if let Some((_, axes)) = orders.iter().find(|(_, axes)| !is_order(axes)) {
                    return Err(Error::NotAnOrder { axes: axes.clone(), dimensions: 2 });
                }
                for (at, (one, _)) in orders.iter().enumerate() {
                    for (also, (other, _)) in orders.iter().enumerate().skip(at + 1) {
                        if nest(*one, *other) {
                            return Err(Error::Overlap { orders: [at, also] });
                        }
                    }
                }
                Answer::Written
            }
        })
    }

    /// Every order holds the same cells.
    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Model, String>> {
        let mut first: Option<Model> = None;
        for (space, axes) in self.shape.orders() {
            let mut found = Model::new();
            for row in tx.get_range_all(RangeOption::from(space.range()), Serializable).await? {
                let Ok(labels) = space.unpack::<Vec<Label>>(&row.key) else {
                    return Ok(Err(format!("no cell's key: {}", row.key.escape_ascii())));
                };
                let mut cell: Vec<_> = axes.iter().zip(labels).collect();
                cell.sort();
                let cell = cell.into_iter().map(|(_, label)| label).collect();
                found.insert(cell, Content::from(&row.value));
            }
            match &first {
                Some(first) if *first != found => {
                    return Ok(Err(format!("one order holds {first:?}, another {found:?}")));
                }
                _ => first = Some(found),
            }
        }
        Ok(first.ok_or_else(|| "no order".to_owned()))
    }
}

/// Cells with all their labels, as they come.
pub(crate) fn page<'a>(cells: impl IntoIterator<Item = (&'a Vec<Label>, Content)>) -> Answer {
    let cell = |(cell, value): (&Vec<Label>, Content)| {
        (cell.iter().map(|label| Content::from(label.packed())).collect(), value)
    };
    Answer::Page(cells.into_iter().map(cell).collect())
}

fn grid(shape: Shape) -> Result<Grid, Error> {
    let orders = shape.orders().into_iter().map(|(space, axes)| Order::new(space, &axes));
    Grid::new(shape.dimensions(), orders.collect())
}

fn table(shape: Shape) -> Option<table::Table> {
    let space = Subspace::from("T");
    match shape {
        Shape::Rows => Some(table::Table::by_row(space)),
        Shape::Columns => Some(table::Table::by_column(space)),
        Shape::Both => Some(table::Table::both(space)),
        Shape::Cube => None,
    }
}

/// Does a call right: as a table of rows and columns where it is one.
pub(crate) async fn perform<T: Transaction>(
    shape: Shape,
    tx: &T,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let lined = |line: Line| line.into_iter().map(|(label, value)| (vec![label], value)).collect::<Cells>();
    if let Some(table) = table(shape) {
        match op {
            Op::Set(cell, value) if cell.len() == 2 => {
                table.set_cell(tx, &label(cell[0]), &label(cell[1]), &bytes(*value)).await?;
                return Ok(Answer::Written);
            }
            Op::Get(cell) if cell.len() == 2 => {
                let value = table.get_cell(tx, &label(cell[0]), &label(cell[1]), isolation).await?;
                return Ok(Answer::Value(value.as_ref().map(Content::from)));
            }
            Op::Delete(cell) if cell.len() == 2 => {
                table.delete_cell(tx, &label(cell[0]), &label(cell[1])).await?;
                return Ok(Answer::Written);
            }
            Op::Slice(fixed) if matches!(fixed[..], [(0 | 1, _)]) => {
                let (axis, of) = (fixed[0].0, label(fixed[0].1));
                let line = match axis {
                    0 => table.get_row(tx, &of, isolation).await?,
                    _ => table.get_column(tx, &of, isolation).await?,
                };
                return Ok(cells(&lined(line), &[]));
            }
            Op::Replace(fixed, cells)
                if matches!(fixed[..], [(0 | 1, _)]) && cells.iter().all(|(free, _)| free.len() == 1) =>
            {
                let (axis, of) = (fixed[0].0, label(fixed[0].1));
                let line: Line = cells.iter().map(|(at, value)| (label(at[0]), bytes(*value))).collect();
                match (axis, line.is_empty()) {
                    (0, true) => table.delete_row(tx, &of).await?,
                    (0, false) => table.set_row(tx, &of, &line).await?,
                    (_, true) => table.delete_column(tx, &of).await?,
                    (_, false) => table.set_column(tx, &of, &line).await?,
                }
                return Ok(Answer::Written);
            }
            _ => {}
        }
    }
    let grid = match table(shape) {
        Some(table) => table.grid().clone(),
        None => grid(shape)?,
    };
    match op {
        Op::Page(given, after, most) => {
            let (axes, of) = fixed(given);
            let pairs: Vec<_> = axes.iter().copied().zip(&of).collect();
            let after = after.as_deref().map(labels);
            let cells = grid.page(tx, &pairs, after.as_deref(), *most, isolation).await?;
            Ok(page(cells.iter().map(|(cell, value)| (cell, Content::from(value)))))
        }
        Op::Orders(orders) => {
            // A look, for the answer to have its place among the others.
            tx.get(b"T", Serializable).await?;
            let orders = orders.iter().map(|(space, axes)| Order::new(subspace(*space), axes));
            Grid::new(2, orders.collect())?;
            Ok(Answer::Written)
        }
        Op::Set(cell, value) => {
            grid.set(tx, &labels(cell), &bytes(*value)).await?;
            Ok(Answer::Written)
        }
        Op::Get(cell) => {
            let value = grid.get(tx, &labels(cell), isolation).await?;
            Ok(Answer::Value(value.as_ref().map(Content::from)))
        }
        Op::Delete(cell) => {
            grid.delete(tx, &labels(cell)).await?;
            Ok(Answer::Written)
        }
        Op::Slice(given) => {
            let (axes, of) = fixed(given);
            let pairs: Vec<_> = axes.iter().copied().zip(&of).collect();
            Ok(cells(&grid.slice(tx, &pairs, isolation).await?, &axes))
        }
        Op::Replace(given, new) => {
            let (axes, of) = fixed(given);
            let pairs: Vec<_> = axes.iter().copied().zip(&of).collect();
            let new: Cells = new.iter().map(|(at, value)| (labels(at), bytes(*value))).collect();
            grid.replace(tx, &pairs, &new).await?;
            Ok(Answer::Written)
        }
    }
}

impl Planted {
    /// The shape that the bug needs, if it needs one.
    fn shape(self) -> Option<Shape> {
        use Planted::*;
        match self {
            SetRowAsPrinted | DeleteCellByRow | DeleteRowByRow | SnapshotReplace | OrderOnItsOwn => {
                Some(Shape::Both)
            }
            FirstBatch => Some(Shape::Rows),
            AxisTwice => Some(Shape::Cube),
            _ => None,
        }
    }
}
