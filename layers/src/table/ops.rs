//! Operations on tables, within a transaction.

use super::{Error, Order};
use crate::{
    label::Label,
    limits, nesting, read, sometimes,
    tx::{Isolation, RangeOption, Transaction, key_after},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use std::collections::BTreeMap;

/// Cells, keyed by their labels on all (free) axes.
pub type Cells = BTreeMap<Vec<Label>, Bytes>;

/// A row keyed by column, or a column keyed by row.
pub type Line = BTreeMap<Label, Bytes>;

const ROW: usize = 0;
const COLUMN: usize = 1;

/// A table of any number of dimensions. Dimensions are numbered from 0, and called axes.
#[derive(Clone, Debug)]
pub struct Grid {
    dimensions: usize,
    orders: Vec<Order>,
}

/// A table of rows and columns.
#[derive(Clone, Debug)]
pub struct Table {
    grid: Grid,
}

impl Grid {
    /// The table with these orders. They are part of the data format: all clients must always use the same.
    pub fn new(dimensions: usize, orders: Vec<Order>) -> Result<Grid, Error> {
        if orders.is_empty() {
            return Err(Error::NotAnOrder { axes: Vec::new(), dimensions });
        }
        orders.iter().try_for_each(|order| order.check(dimensions))?;
        for (at, order) in orders.iter().enumerate() {
            if let Some(other) = orders[at + 1..].iter().position(|other| order.overlaps(other)) {
                return Err(Error::Overlap { orders: [at, at + 1 + other] });
            }
        }
        Ok(Grid { dimensions, orders })
    }

    /// Sets the value of a cell.
    pub async fn set<T: Transaction>(&self, tx: &T, cell: &[Label], value: &[u8]) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let mut bytes = 0;
        let keys = self.keys(cell)?;
        cell.iter().try_for_each(|label| nesting::check(label.packed()))?;
        for key in &keys {
            limits::row(key, value)?;
            bytes += key.len() + value.len();
        }
        limits::transaction(bytes)?;
        keys.iter().for_each(|key| tx.set(key, value));
        Ok(())
    }

    /// The value of a cell, if it has one.
    pub async fn get<T: Transaction>(
        &self,
        tx: &T,
        cell: &[Label],
        isolation: Isolation,
    ) -> Result<Option<Bytes>, Error> {
        let tx = &tx.reading().await;
        Ok(tx.get(&self.keys(cell)?[0], isolation).await?)
    }

    /// Clears a cell.
    pub async fn delete<T: Transaction>(&self, tx: &T, cell: &[Label]) -> Result<(), Error> {
        let tx = &tx.writing().await;
        self.keys(cell)?.iter().for_each(|key| tx.clear(key));
        Ok(())
    }

    /// The cells with these labels on these axes, with their labels on all axes; all cells if `fixed` is
    /// empty. Reads everything at once: use [`page`](Grid::page) for more cells than one transaction can read
    /// within its time limit.
    pub async fn slice<T: Transaction>(
        &self,
        tx: &T,
        fixed: &[(usize, &Label)],
        isolation: Isolation,
    ) -> Result<Cells, Error> {
        let tx = &tx.reading().await;
        let (order, below) = self.orders_below(fixed).next().ok_or_else(|| no_order(fixed))?;
        let rows = read::all::<_, Error>(tx, RangeOption::from(below.range()), isolation).await?;
        rows.into_iter().map(|row| Ok((order.cell(&row.key)?, row.value))).collect()
    }

    /// Up to `most` cells of a [`slice`](Grid::slice), in one of the table's orders: the first ones, or those
    /// after the cell `after`, which need not exist. Only the fixed axes determine which order is used.
    pub async fn page<T: Transaction>(
        &self,
        tx: &T,
        fixed: &[(usize, &Label)],
        after: Option<&[Label]>,
        most: usize,
        isolation: Isolation,
    ) -> Result<Vec<(Vec<Label>, Bytes)>, Error> {
        let tx = &tx.reading().await;
        let (order, below) = self.orders_below(fixed).next().ok_or_else(|| no_order(fixed))?;
        let (mut begin, end) = below.range();
        if let Some(after) = after {
            self.check(after)?;
            begin = begin.max(key_after(&order.key(after)).to_vec());
        }
        let rows = read::page::<_, Error>(tx, (begin, end), most, isolation).await?;
        rows.into_iter().map(|row| Ok((order.cell(&row.key)?, row.value))).collect()
    }

    /// Replaces the cells with these labels on these axes. The new cells are given by their labels on the
    /// other axes, in axis order.
    ///
    /// Cells that are not adjacent in every order are read first, serializably: otherwise a cell that another
    /// client sets meanwhile would remain in the other orders.
    pub async fn replace<T: Transaction>(
        &self,
        tx: &T,
        fixed: &[(usize, &Label)],
        cells: &Cells,
    ) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let (mut bytes, mut sets) = (0, Vec::new());
        let mut ranges: Vec<_> = self.orders_below(fixed).map(|(_, below)| below.range()).collect();
        if ranges.is_empty() {
            return Err(no_order(fixed));
        }
        for (labels, value) in cells {
            let cell = self.complete(fixed, labels)?;
            cell.iter().try_for_each(|label| nesting::check(label.packed()))?;
            for key in self.keys(&cell)? {
                limits::row(&key, value)?;
                bytes += key.len() + value.len();
                sets.push((key, value));
            }
        }
        limits::transaction(bytes)?;
        let scattered: Vec<&Order> =
            self.orders.iter().filter(|order| order.below(fixed).is_none()).collect();
        let mut clears = Vec::new();
        if !scattered.is_empty() {
            let old = self.slice(tx, fixed, Isolation::Serializable).await?;
            sometimes!(!old.is_empty(), "table: what is replaced is found in another order");
            clears.extend(old.keys().flat_map(|cell| scattered.iter().map(|order| order.key(cell))));
        }
        let cleared: usize = clears.iter().map(Vec::len).sum();
        limits::transaction(bytes + 2 * cleared)?;
        ranges.drain(..).for_each(|(begin, end)| tx.clear_range(&begin, &end));
        clears.iter().for_each(|key| tx.clear(key));
        sets.iter().for_each(|(key, value)| tx.set(key, value));
        Ok(())
    }

    /// The orders in which the cells with the fixed labels are adjacent.
    fn orders_below(&self, fixed: &[(usize, &Label)]) -> impl Iterator<Item = (&Order, Subspace)> {
        self.orders.iter().filter_map(|order| Some((order, order.below(fixed)?)))
    }

    /// The cell's keys, one for each order.
    fn keys(&self, cell: &[Label]) -> Result<Vec<Vec<u8>>, Error> {
        self.check(cell)?;
        Ok(self.orders.iter().map(|order| order.key(cell)).collect())
    }

    /// Refuses a cell with the wrong number of dimensions.
    fn check(&self, cell: &[Label]) -> Result<(), Error> {
        match cell.len() == self.dimensions {
            true => Ok(()),
            false => Err(Error::WrongDimensions { given: cell.len(), dimensions: self.dimensions }),
        }
    }

    /// A complete cell from the fixed labels and the labels of the free axes.
    fn complete(&self, fixed: &[(usize, &Label)], free: &[Label]) -> Result<Vec<Label>, Error> {
        let needed = self.dimensions - fixed.len();
        if free.len() != needed {
            return Err(Error::WrongDimensions { given: free.len(), dimensions: needed });
        }
        let mut free = free.iter();
        let label = |axis| match fixed.iter().find(|(fixed, _)| *fixed == axis) {
            Some((_, label)) => Some((*label).clone()),
            None => free.next().cloned(),
        };
        Ok((0..self.dimensions).filter_map(label).collect())
    }
}

impl Table {
    /// The table in `subspace`, stored by row only.
    pub fn by_row(subspace: Subspace) -> Table {
        Table::of(vec![Order::new(subspace, &[ROW, COLUMN])])
    }

    /// The table in `subspace`, stored by column only.
    pub fn by_column(subspace: Subspace) -> Table {
        Table::of(vec![Order::new(subspace, &[COLUMN, ROW])])
    }

    /// The table in `subspace`, stored by row and by column.
    pub fn both(subspace: Subspace) -> Table {
        Table::of(vec![
            Order::new(subspace.subspace(&"R"), &[ROW, COLUMN]),
            Order::new(subspace.subspace(&"C"), &[COLUMN, ROW]),
        ])
    }

    fn of(orders: Vec<Order>) -> Table {
        Table { grid: Grid { dimensions: 2, orders } }
    }

    /// The table as a grid: rows are axis 0, columns axis 1.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Sets the value of a cell.
    pub async fn set_cell<T: Transaction>(
        &self,
        tx: &T,
        row: &Label,
        column: &Label,
        value: &[u8],
    ) -> Result<(), Error> {
        self.grid.set(tx, &[row.clone(), column.clone()], value).await
    }

    /// The value of a cell, if it has one.
    pub async fn get_cell<T: Transaction>(
        &self,
        tx: &T,
        row: &Label,
        column: &Label,
        isolation: Isolation,
    ) -> Result<Option<Bytes>, Error> {
        self.grid.get(tx, &[row.clone(), column.clone()], isolation).await
    }

    /// Clears a cell.
    pub async fn delete_cell<T: Transaction>(
        &self,
        tx: &T,
        row: &Label,
        column: &Label,
    ) -> Result<(), Error> {
        self.grid.delete(tx, &[row.clone(), column.clone()]).await
    }

    /// The cells of a row.
    pub async fn get_row<T: Transaction>(
        &self,
        tx: &T,
        row: &Label,
        isolation: Isolation,
    ) -> Result<Line, Error> {
        Ok(line(self.grid.slice(tx, &[(ROW, row)], isolation).await?, COLUMN))
    }

    /// The cells of a column.
    pub async fn get_column<T: Transaction>(
        &self,
        tx: &T,
        column: &Label,
        isolation: Isolation,
    ) -> Result<Line, Error> {
        Ok(line(self.grid.slice(tx, &[(COLUMN, column)], isolation).await?, ROW))
    }

    /// Replaces a row, including all of its previous cells.
    pub async fn set_row<T: Transaction>(&self, tx: &T, row: &Label, cells: &Line) -> Result<(), Error> {
        self.grid.replace(tx, &[(ROW, row)], &lined(cells)).await
    }

    /// Replaces a column.
    pub async fn set_column<T: Transaction>(
        &self,
        tx: &T,
        column: &Label,
        cells: &Line,
    ) -> Result<(), Error> {
        self.grid.replace(tx, &[(COLUMN, column)], &lined(cells)).await
    }

    /// Clears a row.
    pub async fn delete_row<T: Transaction>(&self, tx: &T, row: &Label) -> Result<(), Error> {
        self.grid.replace(tx, &[(ROW, row)], &Cells::new()).await
    }

    /// Clears a column.
    pub async fn delete_column<T: Transaction>(&self, tx: &T, column: &Label) -> Result<(), Error> {
        self.grid.replace(tx, &[(COLUMN, column)], &Cells::new()).await
    }
}

fn no_order(fixed: &[(usize, &Label)]) -> Error {
    Error::NoOrder(fixed.iter().map(|(axis, _)| *axis).collect())
}

/// Cells keyed by their label on one axis.
fn line(cells: Cells, axis: usize) -> Line {
    cells.into_iter().map(|(mut cell, value)| (cell.swap_remove(axis), value)).collect()
}

fn lined(cells: &Line) -> Cells {
    cells.iter().map(|(label, value)| (vec![label.clone()], value.clone())).collect()
}
