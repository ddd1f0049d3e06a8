//! The design recipes, "Vectors": get, set, push, size, scan and truncate, and their extensions.

use crate::shared::cluster::{begin, on_cluster, session};
use bytes::Bytes;
use foundationdb_tuple::{Subspace, pack};
use shaketable_layers::vector::{Error, MAX_SCAN, MAX_VALUE_BYTES, Matrix, Vector};
use shaketable_tx::{
    Isolation::Serializable,
    Transaction, Tx,
    limits::TooLarge,
    once::Outcome::{Applied, Refused},
};

fn vector() -> Vector {
    Vector::new(Subspace::from("V"))
}

async fn filled(tx: &Tx, values: &[&str]) -> Vector {
    for value in values {
        vector().push(tx, value.as_bytes()).await.expect("a value that fits");
    }
    vector()
}

fn values<const N: usize>(values: [&'static str; N]) -> Vec<Bytes> {
    values.map(|value| Bytes::from_static(value.as_bytes())).into()
}

#[test]
fn elements_are_stored_by_index_and_the_size_is_one_more_than_the_last() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        assert_eq!(vector().size(&tx, Serializable).await, Ok(0));
        let v = filled(&tx, &["a", "b"]).await;
        assert_eq!(v.push(&tx, b"c").await, Ok(2));
        assert_eq!(v.size(&tx, Serializable).await, Ok(3));
        assert_eq!(tx.get(&pack(&("V", 2)), Serializable).await.unwrap().as_deref(), Some(&b"c"[..]));
        v.set(&tx, 0, b"z").await.unwrap();
        assert_eq!(v.get(&tx, 0, Serializable).await.as_deref(), Ok(&b"z"[..]));
        assert_eq!(v.back(&tx, Serializable).await, Ok(Some(Bytes::from_static(b"c"))));
    });
}

#[test]
fn a_scan_is_a_slice_with_one_bound_and_with_two() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        let v = filled(&tx, &["a", "b", "c", "d"]).await;
        let scan = async |start, end| v.scan(&tx, start, end, Serializable).await;
        assert_eq!(scan(0, None).await, Ok(values(["a", "b", "c", "d"])));
        assert_eq!(scan(2, None).await, Ok(values(["c", "d"])));
        assert_eq!(scan(1, Some(3)).await, Ok(values(["b", "c"])));
        assert_eq!(scan(1, Some(100)).await, Ok(values(["b", "c", "d"])));
        assert_eq!(scan(3, Some(1)).await, Ok(values([])));
        assert_eq!(scan(4, None).await, Ok(values([])));
        assert_eq!(scan(-1, None).await, Err(Error::Negative(-1)));
    });
}

#[test]
fn a_truncation_removes_the_elements_from_the_new_size_onwards() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        let v = filled(&tx, &["a", "b", "c", "d"]).await;
        v.truncate(&tx, 2).await.unwrap();
        assert_eq!(v.scan(&tx, 0, None, Serializable).await, Ok(values(["a", "b"])));
        v.truncate(&tx, 9).await.unwrap();
        assert_eq!(v.size(&tx, Serializable).await, Ok(2));
        assert_eq!(v.truncate(&tx, -1).await, Err(Error::Negative(-1)));
        v.resize(&tx, 3).await.unwrap();
        assert_eq!(v.scan(&tx, 0, None, Serializable).await, Ok(values(["a", "b", ""])));
        assert_eq!(v.pop(&tx).await, Ok(Some(Bytes::new())));
        v.truncate(&tx, 0).await.unwrap();
        assert_eq!(v.pop(&tx).await, Ok(None));
        assert_eq!(v.is_empty(&tx, Serializable).await, Ok(true));
    });
}

#[test]
fn unset_elements_consume_no_storage_and_read_as_the_default() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        let sparse = Vector::with_default(Subspace::from("V"), "-");
        sparse.set(&tx, 3, b"x").await.unwrap();
        let rows = tx.get_range_all(Subspace::from("V").range().into(), Serializable).await.unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(sparse.scan(&tx, 0, None, Serializable).await, Ok(values(["-", "-", "-", "x"])));
        assert_eq!(sparse.scan(&tx, 0, Some(2), Serializable).await, Ok(values(["-", "-"])));
        assert_eq!(sparse.get(&tx, 1, Serializable).await.as_deref(), Ok(&b"-"[..]));
        let behind = sparse.get(&tx, 4, Serializable).await;
        assert_eq!(behind, Err(Error::OutOfRange { index: 4, size: 4 }));
        let swapped = sparse.swap(&tx, 0, 4).await;
        assert_eq!(swapped, Err(Error::OutOfRange { index: 4, size: 4 }));
        sparse.swap(&tx, 3, 0).await.unwrap();
        assert_eq!(sparse.scan(&tx, 0, None, Serializable).await, Ok(values(["x", "-", "-", "-"])));
        // An uncovered hole becomes an element: the sizes decrease by one.
        for size in [3, 2, 1, 0] {
            sparse.pop(&tx).await.unwrap();
            assert_eq!(sparse.size(&tx, Serializable).await, Ok(size));
        }
        sparse.set(&tx, MAX_SCAN, b"far").await.unwrap();
        let far = sparse.scan(&tx, 0, None, Serializable).await;
        assert_eq!(far, Err(Error::ScanTooLong { elements: MAX_SCAN + 1, limit: MAX_SCAN }));
        let all_but_one = sparse.scan(&tx, 1, None, Serializable).await.unwrap();
        assert_eq!((all_but_one.len() as i64, all_but_one.last()), (MAX_SCAN, Some(&Bytes::from("far"))));
        let stored = sparse.stored(&tx, 0, None, Serializable).await;
        assert_eq!(stored, Ok(vec![(MAX_SCAN, Bytes::from_static(b"far"))]));
        assert_eq!(sparse.set(&tx, -1, b"").await, Err(Error::Negative(-1)));
        assert_eq!(sparse.set(&tx, i64::MAX, b"").await, Err(Error::Full));
        let large = sparse.push(&tx, &vec![0; 100_000]).await;
        assert!(matches!(large, Err(Error::TooLarge(TooLarge::Value { .. }))), "{large:?}");
    });
}

#[test]
fn more_dimensions_are_more_indexes() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        let matrix = Matrix::new(Subspace::from("M"));
        matrix.row(0).unwrap().push(&tx, b"a").await.unwrap();
        matrix.row(2).unwrap().set(&tx, 1, b"b").await.unwrap();
        assert_eq!(tx.get(&pack(&("M", 2, 1)), Serializable).await.unwrap().as_deref(), Some(&b"b"[..]));
        assert_eq!(matrix.rows(&tx, Serializable).await, Ok(3));
        let row = async |row| matrix.row(row).unwrap().scan(&tx, 0, None, Serializable).await.unwrap();
        assert_eq!(
            (row(0).await, row(1).await, row(2).await),
            (values(["a"]), values([]), values(["", "b"]))
        );
        matrix.truncate(&tx, 1).await.unwrap();
        assert_eq!(matrix.rows(&tx, Serializable).await, Ok(1));
        assert_eq!(matrix.row(-1).unwrap_err(), Error::Negative(-1));
    });
}

#[test]
fn elements_point_to_other_structures() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        let below = |name: &Bytes| Vector::new(Subspace::from(("parts", &name[..])));
        let (whole, parts) = (vector(), values(["x", "y"]));
        for name in &parts {
            whole.push(&tx, name).await.unwrap();
            below(name).push(&tx, name).await.unwrap();
        }
        whole.swap(&tx, 0, 1).await.unwrap();
        let first = whole.get(&tx, 0, Serializable).await.unwrap();
        assert_eq!(below(&first).scan(&tx, 0, None, Serializable).await, Ok(values(["y"])));
    });
}

#[test]
fn of_two_pushes_at_once_one_is_done_again() {
    on_cluster(|db| async move {
        let (one, other) = (begin(&db), begin(&db));
        assert_eq!(vector().push(&one, b"1").await, Ok(0));
        assert_eq!(vector().push(&other, b"2").await, Ok(0));
        assert_eq!(one.commit().await, Ok(()));
        let refused = other.commit().await.unwrap_err();
        assert_eq!(other.on_error(refused).await, Ok(()));
        assert_eq!(vector().push(&other, b"2").await, Ok(1));
        assert_eq!(other.commit().await, Ok(()));
        let all = vector().scan(&begin(&db), 0, None, Serializable).await;
        assert_eq!(all, Ok(values(["1", "2"])));
    });
}

#[test]
fn the_largest_element_is_pushed_and_popped_exactly_once() {
    on_cluster(|db| async move {
        let (mut session, largest) = (session(&db).await, vec![7; MAX_VALUE_BYTES]);
        let value = &largest[..];
        let pushed = session.apply(|tx| async move {
            vector().push(&tx, value).await?;
            vector().push(&tx, b"").await
        });
        assert_eq!(pushed.await, Applied(1));
        let swapped = session.apply(|tx| async move { vector().swap(&tx, 0, 1).await }).await;
        assert_eq!(swapped, Applied(()));
        let popped = session.apply(|tx| async move { vector().pop(&tx).await }).await;
        assert_eq!(popped, Applied(Some(Bytes::copy_from_slice(value))));
        let refused = session.apply(|tx| async move { vector().swap(&tx, 0, 1).await }).await;
        assert_eq!(refused, Refused(Error::OutOfRange { index: 1, size: 1 }));
    });
}
