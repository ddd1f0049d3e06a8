//! Tables: cells stored twice, and rows that are replaced.

use crate::shared::cluster::on_cluster;
use foundationdb_tuple::{Subspace, pack};
use shaketable_layers::{
    label::Label,
    table::{Error, Line, Table},
};
use shaketable_tx::{
    Database,
    Isolation::Serializable,
    Transaction,
    limits::{TRANSACTION_SIZE_LIMIT, TooLarge},
};

fn line<const N: usize>(cells: [(&str, &[u8]); N]) -> Line {
    cells.into_iter().map(|(label, value)| (label.into(), value.to_vec().into())).collect()
}

#[test]
fn a_cell_is_found_by_row_and_by_column() {
    on_cluster(|db| async move {
        let set = db.run(|tx, _| async move {
            Table::both(Subspace::from("T")).set_cell(&tx, &"row".into(), &"column".into(), b"v").await
        });
        set.await.expect("a cell");
        let read = db.run(|tx, _| async move {
            let by_row = tx.get(&pack(&("T", "R", "row", "column")), Serializable).await?;
            let by_column = tx.get(&pack(&("T", "C", "column", "row")), Serializable).await?;
            Ok::<_, Error>((by_row, by_column))
        });
        let (by_row, by_column) = read.await.expect("a look");
        assert_eq!(by_row.as_deref(), Some(&b"v"[..]));
        assert_eq!(by_column, by_row);
    });
}

#[test]
fn a_row_that_is_set_is_replaced_in_its_columns_too() {
    on_cluster(|db| async move {
        let set = db.run(|tx, _| async move {
            let table = Table::both(Subspace::from("T"));
            table.set_row(&tx, &"r".into(), &line([("a", b"1"), ("b", b"2")])).await?;
            table.set_cell(&tx, &"s".into(), &"a".into(), b"3").await?;
            table.set_row(&tx, &"r".into(), &line([("b", b"4"), ("c", b"")])).await
        });
        set.await.expect("rows");
        let read = db.run(|tx, _| async move {
            let table = Table::both(Subspace::from("T"));
            let row = table.get_row(&tx, &"r".into(), Serializable).await?;
            let mut columns = Vec::new();
            for column in ["a", "b", "c"] {
                columns.push(table.get_column(&tx, &column.into(), Serializable).await?);
            }
            let nothing = table.get_cell(&tx, &"r".into(), &"a".into(), Serializable).await?;
            Ok::<_, Error>((row, columns, nothing))
        });
        let (row, columns, nothing) = read.await.expect("a look");
        assert_eq!(row, line([("b", b"4"), ("c", b"")]));
        assert_eq!(columns, [line([("s", b"3")]), line([("r", b"4")]), line([("r", b"")])]);
        assert_eq!(nothing, None);
    });
}

#[test]
fn a_row_that_does_not_fit_into_a_transaction_is_refused() {
    on_cluster(|db| async move {
        let (table, row) = (&Table::both(Subspace::from("T")), &Label::from("r"));
        let is_too_large = |result: Result<(), Error>| {
            matches!(
                result,
                Err(Error::TooLarge(TooLarge::Transaction { limit: TRANSACTION_SIZE_LIMIT, .. }))
            )
        };
        // Each value is stored twice.
        let cells: &Line = &(0..51i64).map(|n| (n.into(), vec![0; 100_000].into())).collect();
        let set = db.run(|tx, _| async move { table.set_row(&tx, row, cells).await });
        assert!(is_too_large(set.await.map_err(|e| e.error)));
        let fits: &Line = &cells.clone().into_iter().take(2).collect();
        let set = db.run(|tx, _| async move { table.set_row(&tx, row, fits).await });
        assert_eq!(set.await, Ok(()));
        // The keys of replaced cells are cleared one by one in the other order.
        let label = |n: usize| Label::from(format!("{n:>9900}"));
        for part in 0..4 {
            let set = db.run(|tx, _| async move {
                for n in 0..130 {
                    table.set_cell(&tx, row, &label(130 * part + n), b"").await?;
                }
                Ok::<_, Error>(())
            });
            assert_eq!(set.await, Ok(()));
        }
        let delete = db.run(|tx, _| async move { table.delete_row(&tx, row).await });
        assert!(is_too_large(delete.await.map_err(|e| e.error)));
        let kept = db.run(|tx, _| async move { table.get_row(&tx, row, Serializable).await });
        assert_eq!(kept.await.map(|row| row.len()), Ok(522));
    });
}
