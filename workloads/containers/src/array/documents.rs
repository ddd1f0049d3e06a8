//! Arrays: `temps2012`, a year's daily temperatures.

use crate::shared::cluster::{begin, on_cluster};
use foundationdb_tuple::{Subspace, pack};
use shaketable_layers::array::{Array, Error};
use shaketable_tx::{
    Database,
    Isolation::Serializable,
    Transaction, Tx,
    limits::{READ_LIMIT, TooLarge},
};

async fn add_temp(tx: &Tx, day: i64, temp: i64) -> Result<(), Error> {
    Array::new(Subspace::from("temps2012")).set(tx, &[day], temp.to_string().as_bytes()).await
}

async fn get_temp(tx: &Tx, day: i64) -> Result<Option<i64>, Error> {
    let temp = Array::new(Subspace::from("temps2012")).get(tx, &[day], Serializable).await?;
    Ok(temp.and_then(|temp| std::str::from_utf8(&temp).ok()?.parse().ok()))
}

#[test]
fn temperatures_are_kept_by_the_day_and_a_day_without_one_has_none() {
    on_cluster(|db| async move {
        let added = db.run(|tx, _| async move {
            add_temp(&tx, 1, -4).await?;
            add_temp(&tx, 365, 12).await
        });
        added.await.expect("two temperatures");
        let read = db.run(|tx, _| async move {
            let stored = tx.get(&pack(&("temps2012", 365)), Serializable).await?;
            Ok::<_, Error>((
                get_temp(&tx, 1).await?,
                get_temp(&tx, 2).await?,
                get_temp(&tx, 365).await?,
                stored,
            ))
        });
        let (first, second, last, stored) = read.await.expect("a look");
        assert_eq!((first, second, last), (Some(-4), None, Some(12)));
        assert_eq!(stored.as_deref(), Some(&b"12"[..]));
    });
}

#[test]
fn cells_are_read_in_pages_and_more_than_one_transaction_reads_are_refused() {
    on_cluster(|db| async move {
        let cells = Array::with_dimensions(Subspace::from("large"), 2);
        for row in 0..3 {
            let tx = begin(&db);
            for column in 0..34 {
                cells.set(&tx, &[row, column], &[7; 99_990]).await.unwrap();
            }
            tx.commit().await.unwrap();
        }
        let tx = begin(&db);
        let all = cells.cells(&tx, &[], Serializable).await;
        assert_eq!(all, Err(Error::TooLarge(TooLarge::Read { limit: READ_LIMIT })));
        assert_eq!(cells.cells(&tx, &[1], Serializable).await.map(|row| row.len()), Ok(34));
        let page = async |prefix: &[i64], after: Option<&[i64]>, limit| {
            let page = cells.page(&tx, prefix, after, limit, Serializable).await;
            page.map(|page| page.into_iter().map(|(index, _)| index).collect::<Vec<_>>())
        };
        assert_eq!(page(&[], Some(&[0, 32]), 2).await, Ok(vec![vec![0, 33], vec![1, 0]]));
        assert_eq!(page(&[0], Some(&[0, 32]), 2).await, Ok(vec![vec![0, 33]]));
        assert_eq!(page(&[2], Some(&[0, 32]), 1).await, Ok(vec![vec![2, 0]]));
        assert_eq!(page(&[0], Some(&[2, 0]), 1).await, Ok(vec![]));
        assert_eq!(page(&[], None, 0).await, Ok(vec![]));
        assert_eq!(page(&[], Some(&[1]), 1).await, Err(Error::WrongDimensions { given: 1, dimensions: 2 }));
    });
}
