//! Records that are read at once: how long a query waits for them, and what it must not change.

use super::{Store, all, ids, on_orders, open, orders, page, shop, with};
use crate::on_cluster;
use prost_reflect::DynamicMessage;
use shaketable_record::{
    cursor::{Continuation, Cursor, CursorExt, Limits, Next, Stop},
    error::Error,
    metadata::Index,
    query::{Query, RecordQuery},
    store::{RecordStoreBuilder, suffix},
    value::Tuple,
};
use shaketable_tx::{Database, Db, Transaction, Tx};
use std::time::Duration;

const ORDERS: i64 = 40;

fn priced() -> RecordStoreBuilder<Tx> {
    shop(|builder| on_orders(builder, Index::new("price", "price")))
}

async fn filled(stores: &RecordStoreBuilder<Tx>, db: &Db) -> Store {
    let texts: Vec<String> = (0..ORDERS).map(|n| format!("order_id: {n} price: {}", n / 4)).collect();
    with(stores, db, &texts.iter().map(String::as_str).collect::<Vec<_>>()).await
}

fn cheap() -> RecordQuery {
    orders(Query::field("price").less_than(100))
}

fn by(pipeline: usize) -> Limits {
    Limits { pipeline, ..Limits::default() }
}

#[test]
fn a_query_waits_once_for_several_records() {
    on_cluster(|db| async move {
        let stores = priced();
        filled(&stores, &db).await;
        let mut waited = Vec::new();
        for limits in [by(1), by(5), Limits::default(), by(40)] {
            let store = open(&stores, &db).await;
            let begun = db.env().now();
            let found = page(&store, &cheap(), Continuation::Start, limits).await;
            assert_eq!(ids(&found), (0..ORDERS).collect::<Vec<_>>());
            waited.push(db.env().now() - begun);
        }
        let [one, five, ten, all]: [Duration; 4] = waited.try_into().unwrap();
        // 40 waits for records, 8, 4, and 1, besides one for the entries.
        assert!(2 * five < one && 4 * ten < one && 2 * all < ten, "{one:?} {five:?} {ten:?} {all:?}");
    });
}

#[test]
fn limits_and_continuations_are_those_of_single_reads() {
    on_cluster(|db| async move {
        let store = filled(&priced(), &db).await;
        for scanned in 1..26 {
            let limits = |pipeline| Limits { scanned: Some(scanned), pipeline, ..Limits::default() };
            let single = page(&store, &cheap(), Continuation::Start, limits(1)).await;
            let several = page(&store, &cheap(), Continuation::Start, limits(10)).await;
            assert_eq!(single, several, "{scanned} entries and records");
            assert_eq!((single.stop, single.rows.len()), (Stop::Scanned, scanned.div_ceil(2)));
        }
        let limits = |pipeline| Limits { bytes: Some(300), pipeline, ..Limits::default() };
        let single = page(&store, &cheap(), Continuation::Start, limits(1)).await;
        assert_eq!(single, page(&store, &cheap(), Continuation::Start, limits(10)).await);
        assert_eq!(single.stop, Stop::Bytes);
    });
}

#[test]
fn no_more_records_are_read_than_rows_are_asked_for() {
    on_cluster(|db| async move {
        let stores = priced();
        let store = filled(&stores, &db).await;
        let first = page(&store, &cheap(), Continuation::Start, Limits::rows(2)).await;
        assert_eq!(ids(&first), [0, 1]);
        let message = store.meta_data().record_type("Order").unwrap().message.clone();
        let order = |text: &str| DynamicMessage::parse_text_format(message.clone(), text).unwrap();
        // Another client changes the next record, but not its entry.
        let other = open(&stores, &db).await;
        other.save_record(&order("order_id: 2 price: 0 score: 7")).await.unwrap();
        other.context().commit().await.unwrap();
        store.save_record(&order("order_id: 99")).await.unwrap();
        store.context().commit().await.expect("the record was not read");
    });
}

#[test]
fn what_is_written_between_two_rows_does_not_wait_for_reads() {
    on_cluster(|db| async move {
        let store = filled(&priced(), &db).await;
        let mut cursor = store.execute_query(&cheap(), Continuation::Start, Limits::default()).unwrap();
        let mut found = 0;
        while let Next::Row(row, _) = cursor.next().await.unwrap() {
            found += 1;
            assert!(store.delete_record(row.primary_key()).await.unwrap());
        }
        assert_eq!(found, ORDERS);
        drop(cursor);
        assert_eq!(all(&store, &cheap()).await, [0i64; 0]);
    });
}

#[test]
fn an_error_comes_after_the_rows_before_it() {
    on_cluster(|db| async move {
        let store = filled(&priced(), &db).await;
        let record = store.keyspace().record(&Tuple::from(7));
        store.context().transaction().unwrap().clear(&record.pack(&(suffix::UNSPLIT,)));
        store.context().transaction().unwrap().clear(&record.pack(&(suffix::VERSION,)));
        let mut cursor = store.execute_query(&cheap(), Continuation::Start, Limits::default()).unwrap();
        for _ in 0..7 {
            assert!(matches!(cursor.next().await, Ok(Next::Row(..))));
        }
        assert!(matches!(cursor.next().await, Err(Error::IndexState { .. })));
        let rest = page(&store, &cheap(), Continuation::Start, Limits::rows(7)).await;
        let rest = store.execute_query(&cheap(), rest.continuation, Limits::rows(1)).unwrap();
        assert!(rest.to_list().await.is_err());
    });
}
