//! How a table is kept: its dimensions and its orders.

use foundationdb_tuple::Subspace;
use serde::{Deserialize, Serialize};
use shaketable_layers::{
    label::Label,
    table::{self, Error, Grid, Order},
};

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
    /// Three dimensions, in the orders 0 1 2, 2 0 1 and 1 2 0.
    Turned,
}

impl Shape {
    pub(super) fn dimensions(self) -> usize {
        if matches!(self, Shape::Cube | Shape::Turned) { 3 } else { 2 }
    }

    /// The orders that are kept, each with its subspace.
    pub(super) fn orders(self) -> Vec<(Subspace, Vec<usize>)> {
        let table = Subspace::from("T");
        match self {
            Shape::Rows => vec![(table, vec![0, 1])],
            Shape::Columns => vec![(table, vec![1, 0])],
            Shape::Both => vec![(table.subspace(&"R"), vec![0, 1]), (table.subspace(&"C"), vec![1, 0])],
            Shape::Cube => vec![(table.subspace(&0), vec![0, 1, 2]), (table.subspace(&1), vec![2, 0, 1])],
            Shape::Turned => [Shape::Cube.orders(), vec![(table.subspace(&2), vec![1, 2, 0])]].concat(),
        }
    }

    /// The axes of the first order that begins with these.
    pub(super) fn order_of(self, fixed: &[usize]) -> Result<Vec<usize>, Error> {
        let begins = |axes: &Vec<usize>| axes[..fixed.len()].iter().all(|axis| fixed.contains(axis));
        let mut orders = self.orders().into_iter().map(|(_, axes)| axes);
        let found = if fixed.len() < self.dimensions() { orders.find(begins) } else { None };
        found.ok_or_else(|| Error::NoOrder(fixed.to_vec()))
    }

    /// The key of a cell in each order.
    pub(super) fn keys(self, cell: &[Label]) -> Vec<Vec<u8>> {
        let key = |(space, axes): (Subspace, Vec<usize>)| {
            let labels = axes.iter().map(|axis| cell[*axis].packed());
            std::iter::once(space.bytes()).chain(labels).collect::<Vec<_>>().concat()
        };
        self.orders().into_iter().map(key).collect()
    }

    /// The table of rows and columns, if there are two dimensions.
    pub(super) fn table(self) -> Option<table::Table> {
        let space = Subspace::from("T");
        match self {
            Shape::Rows => Some(table::Table::by_row(space)),
            Shape::Columns => Some(table::Table::by_column(space)),
            Shape::Both => Some(table::Table::both(space)),
            Shape::Cube | Shape::Turned => None,
        }
    }

    /// The table as a grid.
    pub(super) fn grid(self) -> Result<Grid, Error> {
        if let Some(table) = self.table() {
            return Ok(table.grid().clone());
        }
        let orders = self.orders().into_iter().map(|(space, axes)| Order::new(space, &axes));
        Grid::new(self.dimensions(), orders.collect())
    }
}
