//! Arrays.

use crate::{Layer, calls::Calls, space, written};
use shaketable_layers::array::Array;
use shaketable_sim::client::SimDatabase;
use shaketable_tx::Isolation::Serializable;

pub struct Arrays {
    line: Array,
    matrix: Array,
}

impl Layer for Arrays {
    const NAME: &'static str = "array";

    fn new() -> Arrays {
        Arrays {
            line: Array::new(space().subspace(&"l")),
            matrix: Array::with_dimensions(space().subspace(&"m"), 2),
        }
    }

    async fn write(&self, db: &SimDatabase) {
        written(db, |tx| async move {
            for index in [0, 1, 300] {
                self.line.set(&tx, &[index], b"value").await?;
                self.matrix.set(&tx, &[index, 2], b"").await?;
            }
            self.matrix.set(&tx, &[1, 5], b"value").await
        })
        .await
    }

    async fn call(&self, calls: &mut Calls) {
        for (array, row) in [(&self.line, &[][..]), (&self.matrix, &[1])] {
            for index in [&[1][..], &[300], &[1, 2], &[i64::MAX, 0], &[-1], &[]] {
                calls.tx("Array::get", |tx| async move { array.get(&tx, index, Serializable).await }).await;
                calls.tx("Array::set", |tx| async move { array.set(&tx, index, b"new").await }).await;
                calls.tx("Array::clear", |tx| async move { array.clear(&tx, index).await }).await;
                calls
                    .tx("Array::cells", |tx| async move { array.cells(&tx, index, Serializable).await })
                    .await;
            }
            calls.tx("Array::cells", |tx| async move { array.cells(&tx, row, Serializable).await }).await;
            calls
                .pages("Array::page", async |tx, after: Option<Vec<i64>>| {
                    let page = array.page(&tx, row, after.as_deref(), 1, Serializable).await;
                    page.map(|page| page.into_iter().next().map(|(index, _)| index))
                })
                .await;
        }
    }
}
