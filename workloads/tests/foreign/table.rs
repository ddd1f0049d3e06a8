//! Tables and grids.

use crate::{Layer, calls::Calls, multimap::labels, space, written};
use bytes::Bytes;
use shaketable_layers::{
    label::Label,
    table::{Cells, Grid, Line, Order, Table},
};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::Isolation::Serializable;

pub struct Tables {
    tables: [Table; 3],
    grid: Grid,
}

impl Layer for Tables {
    const NAME: &'static str = "table";

    fn new() -> Tables {
        let own = |name: &str| space().subspace(&name);
        let orders = vec![Order::new(own("1"), &[0, 1, 2]), Order::new(own("2"), &[2, 1, 0])];
        Tables {
            tables: [Table::by_row(own("r")), Table::by_column(own("c")), Table::both(own("b"))],
            grid: Grid::new(3, orders).expect("two orders apart"),
        }
    }

    async fn write(&self, db: &SimDatabase) {
        written(db, |tx| async move {
            let labels = labels();
            for table in &self.tables {
                for row in &labels[..2] {
                    for column in &labels[1..3] {
                        table.set_cell(&tx, row, column, b"value").await?;
                    }
                }
            }
            self.grid.set(&tx, &labels[..3], b"value").await?;
            self.grid.set(&tx, &labels[1..4], b"").await
        })
        .await;
    }

    async fn call(&self, calls: &mut Calls) {
        let [a, b, c, ..] = &labels();
        let line = &Line::from([(a.clone(), Bytes::from_static(b"new")), (b.clone(), Bytes::new())]);
        for table in &self.tables {
            for row in &labels() {
                calls
                    .tx("Table::set_cell", |tx| async move { table.set_cell(&tx, row, b, b"new").await })
                    .await;
                calls
                    .tx(
                        "Table::get_cell",
                        |tx| async move { table.get_cell(&tx, row, b, Serializable).await },
                    )
                    .await;
                calls
                    .tx("Table::delete_cell", |tx| async move { table.delete_cell(&tx, row, b).await })
                    .await;
                calls
                    .tx("Table::get_row", |tx| async move { table.get_row(&tx, row, Serializable).await })
                    .await;
                calls
                    .tx(
                        "Table::get_column",
                        |tx| async move { table.get_column(&tx, row, Serializable).await },
                    )
                    .await;
                calls.tx("Table::set_row", |tx| async move { table.set_row(&tx, row, line).await }).await;
                calls
                    .tx("Table::set_column", |tx| async move { table.set_column(&tx, row, line).await })
                    .await;
                calls.tx("Table::delete_row", |tx| async move { table.delete_row(&tx, row).await }).await;
                calls
                    .tx("Table::delete_column", |tx| async move { table.delete_column(&tx, row).await })
                    .await;
            }
        }
        let [_, _, both] = &self.tables;
        for grid in [&self.grid, both.grid()] {
            for cell in [&[a.clone(), b.clone(), c.clone()][..], &[b.clone(), c.clone()]] {
                calls.tx("Grid::set", |tx| async move { grid.set(&tx, cell, b"new").await }).await;
                calls.tx("Grid::get", |tx| async move { grid.get(&tx, cell, Serializable).await }).await;
                calls.tx("Grid::delete", |tx| async move { grid.delete(&tx, cell).await }).await;
            }
            for fixed in
                [&[][..], &[(0, a)], &[(1, b)], &[(2, c)], &[(2, c), (1, b)], &[(0, a), (0, b), (7, c)]]
            {
                calls.tx("Grid::slice", |tx| async move { grid.slice(&tx, fixed, Serializable).await }).await;
                let cells = &Cells::from([(vec![a.clone(), b.clone()], Bytes::new())]);
                calls.tx("Grid::replace", |tx| async move { grid.replace(&tx, fixed, cells).await }).await;
                calls
                    .pages("Grid::page", async |tx, after: Option<Vec<Label>>| {
                        let page = grid.page(&tx, fixed, after.as_deref(), 1, Serializable).await;
                        page.map(|page| page.into_iter().next().map(|(cell, _)| cell))
                    })
                    .await;
            }
        }
    }
}
