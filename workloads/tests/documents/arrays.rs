//! Arrays: `temps2012`, a year's daily temperatures.

use crate::on_cluster;
use foundationdb_tuple::{Subspace, pack};
use shaketable_layers::{
    array::{Array, Error},
    tx::{Database, Isolation::Serializable, Transaction},
};

async fn add_temp<T: Transaction>(tx: &T, day: i64, temp: i64) -> Result<(), Error> {
    Array::new(Subspace::from("temps2012")).set(tx, &[day], temp.to_string().as_bytes()).await
}

async fn get_temp<T: Transaction>(tx: &T, day: i64) -> Result<Option<i64>, Error> {
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
