//! Queries by the rank of records with several scores, or with scores whose nulls are unique, and of UUIDs in
//! entries.

use super::{Tx, all, orders};
use crate::on_cluster;
use foundationdb_tuple::Subspace;
use prost_reflect::DynamicMessage;
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits},
    expression::{KeyExpression, NullStandin, concat, field},
    metadata::{Index, RecordMetaData, compile, index_types},
    query::{Query, QueryComponent, RecordQuery},
    store::{RecordContext, RecordStore, RecordStoreBuilder},
};
use shaketable_tx::Db;

const SCORES: &str = r#"
    syntax = "proto2";
    import "tuple_fields.proto";
    message Order {
        optional int64 order_id = 1;
        repeated int32 scores = 2;
        optional int32 score = 3;
        optional com.apple.foundationdb.record.UUID token = 4;
        optional com.apple.foundationdb.record.NullableInt32 price = 5;
    }
    message RecordTypeUnion { optional Order _Order = 1; }
"#;

fn stores(indexes: impl IntoIterator<Item = Index>) -> RecordStoreBuilder<Tx> {
    let mut builder = RecordMetaData::builder();
    builder.set_records(&compile(SCORES).unwrap()).unwrap();
    builder.record_type("Order").unwrap().set_primary_key("order_id");
    for index in indexes {
        builder.add_index(Some("Order"), index).unwrap();
    }
    RecordStore::builder(Subspace::from("shop"), builder.build().unwrap())
}

async fn saved(stores: &RecordStoreBuilder<Tx>, db: &Db, orders: &[&str]) -> RecordStore<Tx> {
    let open = || async { stores.create_or_open(&RecordContext::open(db).unwrap()).await.unwrap() };
    let store = open().await;
    let message = store.meta_data().record_type("Order").unwrap().message.clone();
    for order in orders {
        let order = DynamicMessage::parse_text_format(message.clone(), order).unwrap();
        store.save_record(&order).await.unwrap();
    }
    store.context().commit().await.unwrap();
    open().await
}

const THREE: [&str; 4] = [
    "order_id: 1 scores: 10 scores: 30",
    "order_id: 2 scores: 20",
    "order_id: 3",
    "order_id: 4 scores: 30 scores: 40",
];

#[test]
fn a_record_has_a_rank_for_each_of_its_scores() {
    on_cluster(|db| async move {
        let scores = || field("scores").fan_out();
        let stores = stores([Index::new("scores", scores()).kind(index_types::RANK)]);
        let store = saved(&stores, &db, &THREE).await;
        let rank = || Query::rank(scores().ungrouped());
        let hidden = |condition: QueryComponent| {
            // Found by a filter: the other branch is true for no record, and cannot be looked up.
            Query::or([condition, Query::field("score").not_equals(5)])
        };
        for (condition, expected) in [
            (rank().equals(2), &[1i64, 4][..]),
            (rank().greater_or_equal(2), &[1, 4]),
            (rank().less_than(2), &[1, 2]),
            (rank().is_in([0, 3]), &[1, 4]),
            (Query::not(rank().equals(2)), &[2]),
            (Query::and([rank().equals(0), rank().equals(2)]), &[1]),
        ] {
            for condition in [condition.clone(), hidden(condition)] {
                let mut found = all(&store, &orders(condition.clone())).await;
                found.sort_unstable();
                assert_eq!(found, expected, "{condition}");
            }
        }
    });
}

#[test]
fn a_null_that_is_unique_has_a_rank_too() {
    on_cluster(|db| async move {
        let score = || field("score").null(NullStandin::NullUnique);
        let stores = stores([Index::new("score", score().ungrouped()).kind(index_types::RANK)]);
        let texts = ["order_id: 1 score: 5", "order_id: 2", "order_id: 3 score: 9"];
        let store = saved(&stores, &db, &texts).await;
        for expression in [score(), field("score")] {
            let rank = || Query::rank(expression.clone().ungrouped());
            for condition in [rank().equals(1), Query::and([rank().equals(1), rank().not_equals(4)])] {
                assert_eq!(all(&store, &orders(condition)).await, [1]);
            }
            let unbounded = Query::or([rank().equals(0), Query::field("score").not_equals(5)]);
            assert_eq!(all(&store, &orders(unbounded)).await, [2, 3]);
        }
    });
}

#[test]
fn entries_have_uuids() {
    on_cluster(|db| async move {
        let both: KeyExpression = concat(["token", "price"]);
        let stores = stores([Index::new("token", both)]);
        let token = "token: { most_significant_bits: -5 least_significant_bits: 7 }";
        let texts = [format!("order_id: 1 {token} price: {{ value: 3 }}"), "order_id: 2".to_owned()];
        let store = saved(&stores, &db, &texts.each_ref().map(String::as_str)).await;
        let id = uuid::Uuid::from_u64_pair((-5i64).cast_unsigned(), 7);
        let query = RecordQuery::of("Order")
            .filter(Query::field("token").equals(id))
            .required_results(["token", "price", "order_id"]);
        assert!(store.plan_query(&query).unwrap().explain().contains("Fields of Order"));
        let found = store.execute_query(&query, Continuation::Start, Limits::default()).unwrap();
        let rows = found.to_list().await.unwrap().rows;
        let loaded = store.load_record(&1.into()).await.unwrap().unwrap();
        assert_eq!(rows.iter().map(|row| &row.record.message).collect::<Vec<_>>(), [&loaded.message]);
    });
}
