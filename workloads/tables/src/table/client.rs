//! How one call is performed in a transaction.

use super::{
    Answer, Op, Shape,
    operations::{bytes, cells, fixed, labels, page, subspace},
    shape::{grid, table},
};
use crate::models::labels::label;
use shaketable::specimen::Content;
use shaketable_layers::table::{Cells, Error, Grid, Line, Order};
use shaketable_tx::{
    Isolation::{self, Serializable},
    Transaction, Tx,
};

/// Performs a call correctly: with the functions for rows and columns if the table has two dimensions.
pub(super) async fn perform(shape: Shape, tx: &Tx, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
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
            // A read, so that the call has a place in the history.
            tx.reading().await.get(b"T", Serializable).await?;
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
