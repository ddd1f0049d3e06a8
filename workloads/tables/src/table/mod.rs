//! `table`: cells of a sparse table are set, read and deleted, one at a time, by row and by column.
//!
//! Each run keeps its table by row, by column, both ways, or in three dimensions with two or three of the six
//! orders. Rows and columns have labels that are easily confused. Rows are replaced by others that have some
//! of their columns. Values have lengths from zero to several kilobytes, and sometimes the maximum length or
//! one byte more. A few cells have the wrong number of dimensions, a few labels fit into no key, a few
//! requests have no order or name an axis twice, and a few orders share keys. Looks at snapshot must not
//! conflict.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;
mod model;
mod planted;
mod shape;

use crate::{
    models::labels::{Family, Which, label},
    shared::{self, page_sizes},
};
use foundationdb_tuple::Subspace;
use model::Sheet;
use proptest::{collection::btree_map, option};
use shaketable::{prelude::*, specimen::Content, strategies};
use shaketable_layers::{
    label::Label,
    table::{Error, Grid, Line, Order},
};
use shaketable_tx::VALUE_SIZE_LIMIT;
use shape::Shape;
use std::collections::BTreeMap;

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    shape: Shape,
    /// The labels of each axis.
    families: [Family; 3],
    /// The maximum length of values, in bytes.
    longest: usize,
}

/// A cell by its labels, or by some of them.
type Cell = Vec<Which>;

/// A value: a byte, and the number of its repetitions.
type Value = (u8, usize);

/// Labels on some axes: a row is axis 0, a column axis 1.
type Fixed = Vec<(usize, Which)>;

/// Cells with these labels are replaced by others, which are given by their other labels.
type Replacement = (Fixed, Vec<(Cell, Value)>);

/// Orders by the numbers of their subspaces, and their axes.
type Orders = Vec<(u8, Vec<usize>)>;

/// Cells with some of their labels, or with all of them.
type Found = Vec<(Vec<Content>, Content)>;

/// Cells of a sparse table, kept by row, by column, and in other orders.
#[shaketable::workload(name = "table", model = Sheet, planted, promises(turns, limits))]
impl Table {
    fn draw(rng: &mut Stream, bug: Option<&str>) -> Table {
        let drawn = *rng.pick(&[
            Shape::Rows,
            Shape::Columns,
            Shape::Both,
            Shape::Both,
            Shape::Cube,
            Shape::Turned,
            Shape::Turned,
            Shape::Turned,
        ]);
        Table {
            shape: bug.and_then(planted::shape).unwrap_or(drawn),
            families: [(); 3].map(|()| Family::draw(rng)),
            longest: *rng.pick(&[8, 200, 3_000]),
        }
    }

    fn points() -> &'static [&'static str] {
        &["table: what is replaced is found in another order"]
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let first = |(space, axes): (Subspace, Vec<usize>)| {
            let labels = self.families[axes[0]].all().into_iter().map(label);
            labels.map(|label| space.pack(&(label,))).collect::<Vec<_>>()
        };
        self.shape.orders().into_iter().flat_map(first).collect()
    }

    fn one(&self, axis: usize) -> BoxedStrategy<Which> {
        self.families[axis].one()
    }

    fn cell(&self) -> BoxedStrategy<Cell> {
        (0..self.shape.dimensions()).map(|axis| self.one(axis)).collect::<Vec<_>>().boxed()
    }

    /// A cell whose row fits into no key.
    fn wide(&self) -> BoxedStrategy<Cell> {
        let first = Just(Family::oversize()).boxed();
        let others = (1..self.shape.dimensions()).map(|axis| self.one(axis));
        std::iter::once(first).chain(others).collect::<Vec<_>>().boxed()
    }

    fn short(&self) -> BoxedStrategy<Value> {
        (any::<u8>(), 0..=self.longest).boxed()
    }

    fn edge() -> impl Strategy<Value = Value> {
        (any::<u8>(), select(vec![VALUE_SIZE_LIMIT, VALUE_SIZE_LIMIT, VALUE_SIZE_LIMIT + 1]))
    }

    fn fixed(&self) -> BoxedStrategy<Fixed> {
        let slices: Vec<Vec<usize>> = match self.shape.dimensions() {
            2 => vec![vec![0], vec![1]],
            _ => vec![vec![0], vec![2], vec![0, 1], vec![2, 0], vec![], vec![1], vec![1, 2]],
        };
        let table = self.clone();
        let labels = move |axes: Vec<usize>| {
            axes.into_iter().map(|axis| (Just(axis), table.one(axis))).collect::<Vec<_>>()
        };
        select(slices).prop_flat_map(labels).boxed()
    }

    /// An axis twice, an axis that does not exist, all axes, and a label that is too long.
    fn odd(&self) -> BoxedStrategy<Fixed> {
        let dimensions = self.shape.dimensions();
        prop_oneof![
            (self.one(0), self.one(0)).prop_map(|(a, b)| vec![(0, a), (0, b)]),
            self.one(0).prop_map(move |which| vec![(dimensions, which)]),
            self.cell().prop_map(|cell| cell.into_iter().enumerate().collect::<Vec<_>>()),
            Just(vec![(0, Family::oversize())]),
        ]
        .boxed()
    }

    #[draws(replacement)]
    fn replacement(&self) -> BoxedStrategy<Replacement> {
        let (table, dimensions) = (self.clone(), self.shape.dimensions());
        let whole = self.fixed().prop_flat_map(move |fixed| {
            let free = (0..dimensions).filter(|axis| fixed.iter().all(|(fixed, _)| fixed != axis));
            let cells = btree_map(free.map(|axis| table.one(axis)).collect::<Vec<_>>(), table.short(), 0..4);
            (Just(fixed), cells.prop_map(|cells| cells.into_iter().collect()))
        });
        let edge = (0..dimensions, self.cell(), Self::edge()).prop_map(|(axis, mut cell, value)| {
            let fixed = vec![(axis, cell.remove(axis))];
            (fixed, vec![(cell, value)])
        });
        let misfit = (self.fixed(), vec(self.one(0), 3), self.short())
            .prop_map(|(fixed, free, value)| (fixed, vec![(free, value)]));
        prop_oneof![
            8 => whole,
            1 => (self.fixed(), Just(Vec::new())),
            1 => edge,
            1 => misfit,
            1 => (self.odd(), Just(Vec::new())),
        ]
        .boxed()
    }

    /// The cell before a page, which now and then has fewer dimensions than the table, or more.
    #[draws(after)]
    fn after(&self) -> BoxedStrategy<Option<Cell>> {
        let misfit = prop_oneof![vec(self.one(0), 0..=1), vec(self.one(0), 4)];
        option::weighted(0.7, strategies::mostly(self.cell(), misfit)).boxed()
    }

    /// Orders of a table with two dimensions, and of others.
    #[draws(orders)]
    fn orders() -> impl Strategy<Value = Orders> {
        let axes = prop_oneof![
            8 => select(vec![vec![0, 1], vec![1, 0]]),
            1 => select(vec![vec![0], vec![0, 2], vec![1, 0, 1]]),
        ];
        vec((0..SUBSPACES, axes), 0..6)
    }

    #[write(weight = 12, blind)]
    async fn set(
        &self,
        tx: &Tx,
        #[draw(prop_oneof![11 => self.cell(), 1 => self.wide()])] cell: &Cell,
        #[draw(prop_oneof![11 => self.short(), 1 => Self::edge()])] value: Value,
    ) -> Result<(), Error> {
        match (self.shape.table(), &labels(cell)[..]) {
            (Some(table), [row, column]) => table.set_cell(tx, row, column, &bytes(value)).await,
            (_, cell) => self.shape.grid()?.set(tx, cell, &bytes(value)).await,
        }
    }

    #[read(weight = 7)]
    async fn get(
        &self,
        tx: &Tx,
        isolation: Isolation,
        #[draw(prop_oneof![5 => self.cell(), 1 => self.wide(), 1 => vec(self.one(0), 4)])] cell: &Cell,
    ) -> Result<Option<Content>, Error> {
        let value = match (self.shape.table(), &labels(cell)[..]) {
            (Some(table), [row, column]) => table.get_cell(tx, row, column, isolation).await?,
            (_, cell) => self.shape.grid()?.get(tx, cell, isolation).await?,
        };
        Ok(value.as_ref().map(Content::from))
    }

    #[write(weight = 6, blind)]
    async fn delete(
        &self,
        tx: &Tx,
        #[draw(prop_oneof![4 => self.cell(), 1 => self.wide(), 1 => vec(self.one(0), 1)])] cell: &Cell,
    ) -> Result<(), Error> {
        match (self.shape.table(), &labels(cell)[..]) {
            (Some(table), [row, column]) => table.delete_cell(tx, row, column).await,
            (_, cell) => self.shape.grid()?.delete(tx, cell).await,
        }
    }

    #[read(weight = 9)]
    async fn slice(
        &self,
        tx: &Tx,
        isolation: Isolation,
        #[draw(prop_oneof![8 => self.fixed(), 1 => self.odd()])] fixed: &Fixed,
    ) -> Result<Found, Error> {
        let of = labelled(fixed);
        let line = match (self.shape.table(), &of[..]) {
            (Some(table), [(0, row)]) => table.get_row(tx, row, isolation).await?,
            (Some(table), [(1, column)]) => table.get_column(tx, column, isolation).await?,
            _ => {
                let cells = self.shape.grid()?.slice(tx, &borrowed(&of), isolation).await?;
                let found = cells.iter().map(|(cell, value)| (free(cell, &of), Content::from(value)));
                return Ok(found.collect());
            }
        };
        Ok(line.iter().map(|(label, value)| (contents([label]), Content::from(value))).collect())
    }

    #[write(weight = 12)]
    async fn replace(&self, tx: &Tx, replacement: &Replacement) -> Result<(), Error> {
        let (fixed, cells) = replacement;
        let of = labelled(fixed);
        let one = |(free, value): &(Cell, Value)| Some((label(*free.first()?), bytes(*value)));
        if let (Some(table), [(axis @ (0 | 1), label)]) = (self.shape.table(), &of[..])
            && cells.iter().all(|(free, _)| free.len() == 1)
        {
            let line: Line = cells.iter().filter_map(one).collect();
            return match (axis, line.is_empty()) {
                (0, true) => table.delete_row(tx, label).await,
                (0, false) => table.set_row(tx, label, &line).await,
                (_, true) => table.delete_column(tx, label).await,
                (_, false) => table.set_column(tx, label, &line).await,
            };
        }
        let cells = cells.iter().map(|(free, value)| (labels(free), bytes(*value))).collect();
        self.shape.grid()?.replace(tx, &borrowed(&of), &cells).await
    }

    /// Cells of a slice, after a cell.
    #[read(weight = 6)]
    async fn page(
        &self,
        tx: &Tx,
        isolation: Isolation,
        #[draw(prop_oneof![5 => self.fixed(), 1 => self.odd()])] fixed: &Fixed,
        after: Option<Cell>,
        #[draw(prop_oneof![1 => Just(0), 6 => page_sizes()])] most: usize,
    ) -> Result<Found, Error> {
        let (of, after) = (labelled(fixed), after.as_ref().map(|after| labels(after)));
        let grid = self.shape.grid()?;
        let cells = grid.page(tx, &borrowed(&of), after.as_deref(), most, isolation).await?;
        Ok(cells.iter().map(|(cell, value)| (contents(cell), Content::from(value))).collect())
    }

    /// Configures a table with these orders; the subspaces of some share keys.
    #[read(weight = 2)]
    async fn configure(&self, tx: &Tx, orders: &Orders) -> Result<(), Error> {
        // So that the call has a place in the history.
        tx.reading().await.get(b"T", Serializable).await?;
        let orders = orders.iter().map(|(space, axes)| Order::new(subspace(*space), axes));
        Grid::new(2, orders.collect()).map(drop)
    }

    fn model(&self) -> Sheet {
        Sheet::new(self.shape, BTreeMap::new())
    }

    /// Reads every order: all contain the same cells.
    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Result<Sheet, String>> {
        let mut first = None;
        for (space, axes) in self.shape.orders() {
            let mut found = BTreeMap::new();
            for row in shared::rows(tx, &space).await? {
                let Ok(labels) = space.unpack::<Vec<Label>>(&row.key) else {
                    return Ok(Err(format!("{} is not the key of a cell", row.key.escape_ascii())));
                };
                let mut cell: Vec<_> = axes.iter().zip(labels).collect();
                cell.sort();
                let cell: Vec<Label> = cell.into_iter().map(|(_, label)| label).collect();
                found.insert(cell, Content::from(&row.value));
            }
            match &first {
                Some(first) if *first != found => {
                    return Ok(Err(format!("one order contains {first:?}, another one {found:?}")));
                }
                _ => first = Some(found),
            }
        }
        Ok(first.map(|cells| Sheet::new(self.shape, cells)).ok_or_else(|| "no order".into()))
    }
}

fn labels(which: &[Which]) -> Vec<Label> {
    which.iter().copied().map(label).collect()
}

fn bytes((byte, length): Value) -> Bytes {
    vec![byte; length].into()
}

/// The fixed axes with their labels.
fn labelled(fixed: &[(usize, Which)]) -> Vec<(usize, Label)> {
    fixed.iter().map(|(axis, which)| (*axis, label(*which))).collect()
}

fn borrowed(of: &[(usize, Label)]) -> Vec<(usize, &Label)> {
    of.iter().map(|(axis, label)| (*axis, label)).collect()
}

/// A cell's labels on the axes that are not fixed.
fn free(cell: &[Label], of: &[(usize, Label)]) -> Vec<Content> {
    let is_free = |axis: usize| of.iter().all(|(fixed, _)| *fixed != axis);
    contents(cell.iter().enumerate().filter(|(axis, _)| is_free(*axis)).map(|(_, label)| label))
}

fn contents<'a>(labels: impl IntoIterator<Item = &'a Label>) -> Vec<Content> {
    labels.into_iter().map(|label| Content::from(label.packed())).collect()
}

/// The number of subspaces that orders are drawn with.
const SUBSPACES: u8 = 8;

/// A subspace of an order: some contain others.
fn subspace(number: u8) -> Subspace {
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
fn nest(a: u8, b: u8) -> bool {
    a == b || matches!((a.min(b), a.max(b)), (0, 1 | 3 | 4) | (1, 4))
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Table>>()
}
