//! Vectors and matrices.

use crate::{Layer, calls::Calls, space, written};
use shaketable_layers::vector::{Matrix, Vector};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::Isolation::{Serializable, Snapshot};

pub struct Vectors {
    vector: Vector,
    matrix: Matrix,
}

impl Layer for Vectors {
    const NAME: &'static str = "vector";

    fn new() -> Vectors {
        Vectors {
            vector: Vector::new(space().subspace(&"v")),
            matrix: Matrix::with_default(space().subspace(&"m"), "-"),
        }
    }

    async fn write(&self, db: &SimDatabase) {
        written(db, |tx| async move {
            for value in [&b"a"[..], b"", b"c"] {
                self.vector.push(&tx, value).await?;
            }
            self.vector.set(&tx, 9, b"far").await?;
            self.matrix.row(2)?.push(&tx, b"x").await?;
            self.matrix.row(0)?.set(&tx, 3, b"y").await
        })
        .await
    }

    async fn call(&self, calls: &mut Calls) {
        let Vectors { vector, matrix } = self;
        for index in [0, 1, 4, 9, 10, i64::MAX - 1, i64::MAX, -1] {
            calls.tx("Vector::get", |tx| async move { vector.get(&tx, index, Serializable).await }).await;
            calls.tx("Vector::set", |tx| async move { vector.set(&tx, index, b"new").await }).await;
            calls.tx("Vector::swap", |tx| async move { vector.swap(&tx, index, 2).await }).await;
            calls.tx("Vector::resize", |tx| async move { vector.resize(&tx, index).await }).await;
            calls.tx("Vector::truncate", |tx| async move { vector.truncate(&tx, index).await }).await;
            calls.tx("Vector::scan", |tx| async move { vector.scan(&tx, index, None, Snapshot).await }).await;
            calls
                .tx("Vector::scan", |tx| async move { vector.scan(&tx, 1, Some(index), Snapshot).await })
                .await;
            let stored = |tx| async move { vector.stored(&tx, 0, Some(index), Serializable).await };
            calls.tx("Vector::stored", stored).await;
            calls.tx("Matrix::truncate", |tx| async move { matrix.truncate(&tx, index).await }).await;
        }
        calls.tx("Vector::pop", |tx| async move { vector.pop(&tx).await }).await;
        calls.tx("Vector::push", |tx| async move { vector.push(&tx, b"new").await }).await;
        calls.tx("Vector::back", |tx| async move { vector.back(&tx, Snapshot).await }).await;
        calls.tx("Vector::size", |tx| async move { vector.size(&tx, Snapshot).await }).await;
        calls.tx("Vector::is_empty", |tx| async move { vector.is_empty(&tx, Snapshot).await }).await;
        calls.tx("Matrix::rows", |tx| async move { matrix.rows(&tx, Serializable).await }).await;
        let row = |tx| async move { matrix.row(2)?.scan(&tx, 0, None, Serializable).await };
        calls.tx("Matrix::row", row).await;
    }
}
