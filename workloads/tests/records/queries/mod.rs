//! Queries on a simulated cluster.

mod examples;
mod pages;
mod pipeline;
mod scores;

use foundationdb_tuple::Subspace;
use prost_reflect::DynamicMessage;
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits, Page, Stop},
    metadata::{Index, RecordMetaData, RecordMetaDataBuilder, compile},
    query::{QueriedRecord, QueryComponent, RecordQuery},
    store::{RecordContext, RecordStore, RecordStoreBuilder},
};
use shaketable_tx::{Db, Tx};

type Store = RecordStore<Tx>;

const SHOP: &str = r#"
    syntax = "proto2";
    message Order {
        optional int64 order_id = 1;
        optional Flower flower = 2;
        optional int32 price = 3;
        repeated string repeated_str = 4;
        optional int32 num_value_2 = 5;
        optional int32 score = 6;
        optional string game_id = 7;
    }
    message Flower { optional string type = 1; optional string color = 2; }
    message RecordTypeUnion { optional Order _Order = 1; }
"#;

fn shop(add: impl FnOnce(&mut RecordMetaDataBuilder)) -> RecordStoreBuilder<Tx> {
    let mut builder = RecordMetaData::builder();
    builder.set_records(&compile(SHOP).unwrap()).unwrap();
    builder.record_type("Order").unwrap().set_primary_key("order_id");
    builder.set_store_record_versions(true).unwrap();
    add(&mut builder);
    RecordStore::builder(Subspace::from("shop"), builder.build().unwrap())
}

fn on_orders(builder: &mut RecordMetaDataBuilder, index: Index) {
    builder.add_index(Some("Order"), index).unwrap();
}

async fn open(stores: &RecordStoreBuilder<Tx>, db: &Db) -> Store {
    stores.create_or_open(&RecordContext::open(db).unwrap()).await.unwrap()
}

/// Saves orders in protobuf's text format, in one transaction, and opens the store again.
async fn with(stores: &RecordStoreBuilder<Tx>, db: &Db, orders: &[&str]) -> Store {
    let store = open(stores, db).await;
    let message = store.meta_data().record_type("Order").unwrap().message.clone();
    for order in orders {
        let order = DynamicMessage::parse_text_format(message.clone(), order).unwrap();
        store.save_record(&order).await.unwrap();
    }
    store.context().commit().await.unwrap();
    open(stores, db).await
}

async fn page(store: &Store, query: &RecordQuery, from: Continuation, limits: Limits) -> Page<QueriedRecord> {
    store.execute_query(query, from, limits).unwrap().to_list().await.unwrap()
}

fn ids(page: &Page<QueriedRecord>) -> Vec<i64> {
    let id = |row: &QueriedRecord| match row.primary_key().get(0) {
        Some(foundationdb_tuple::Element::Int(id)) => *id,
        other => panic!("{other:?}"),
    };
    page.rows.iter().map(id).collect()
}

async fn all(store: &Store, query: &RecordQuery) -> Vec<i64> {
    let page = page(store, query, Continuation::Start, Limits::default()).await;
    assert_eq!((page.stop, &page.continuation), (Stop::Exhausted, &Continuation::End));
    ids(&page)
}

fn orders(filter: QueryComponent) -> RecordQuery {
    RecordQuery::of("Order").filter(filter)
}
