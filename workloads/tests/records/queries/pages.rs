//! Continuations and limits of queries, and indexes that cannot be used.

use super::{all, ids, on_orders, orders, page, shop, with};
use crate::on_cluster;
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits, Stop},
    error::Error,
    expression::field,
    metadata::{Index, index_types},
    query::{Query, QueryError, RecordQuery},
};

#[test]
fn a_continuation_belongs_to_its_plan_and_its_store() {
    on_cluster(|db| async move {
        let stores = shop(|builder| {
            on_orders(builder, Index::new("price", "price"));
            on_orders(builder, Index::new("score", "score"));
        });
        let texts: Vec<String> =
            (0..9).map(|n| format!("order_id: {n} price: {} score: {}", n % 3, n % 2)).collect();
        let store = with(&stores, &db, &texts.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let price = |price: i32| Query::field("price").equals(price);
        let score = || Query::field("score").equals(1);
        let queries = [
            orders(price(1)),
            orders(price(2)),
            orders(price(1)).reverse(),
            orders(Query::or([price(1), score()])),
            orders(Query::and([price(1), score()])),
            orders(Query::field("price").is_in([0, 1])),
            orders(Query::or([price(1), Query::field("score").greater_than(0)])),
            RecordQuery::all(),
        ];
        let refused = |query: &RecordQuery, from: Continuation| {
            store.execute_query(query, from, Limits::default()).err() == Some(Error::Continuation("query"))
        };
        for query in &queries {
            let after = page(&store, query, Continuation::Start, Limits::rows(1)).await.continuation;
            for other in queries.iter().filter(|other| *other != query) {
                assert!(refused(other, after.clone()), "{query:?} {other:?}");
            }
            let bytes = after.to_bytes().unwrap();
            for cut in 1..bytes.len() {
                assert!(refused(query, Continuation::from_bytes(bytes.slice(..cut))), "{cut} bytes");
            }
            assert!(!refused(query, after));
        }
    });
}

#[test]
fn limits_are_those_of_all_steps_together() {
    on_cluster(|db| async move {
        let stores = shop(|builder| {
            on_orders(builder, Index::new("price", "price"));
            on_orders(builder, Index::new("score", "score"));
        });
        let texts: Vec<String> =
            (0..40).map(|n| format!("order_id: {n} price: 1 score: {}", n % 2)).collect();
        let store = with(&stores, &db, &texts.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let both = orders(Query::and([Query::field("price").equals(1), Query::field("score").equals(1)]));
        // Each record takes two entries of one index and one of the other, and itself.
        let limits = Limits { scanned: Some(20), ..Limits::default() };
        let some = page(&store, &both, Continuation::Start, limits.clone()).await;
        assert_eq!(some.stop, Stop::Scanned);
        assert!((4..=6).contains(&some.rows.len()), "{:?}", ids(&some));
        let (mut found, mut from) = (ids(&some), some.continuation);
        while from != Continuation::End {
            let next = page(&store, &both, from, limits.clone()).await;
            found.extend(ids(&next));
            from = next.continuation;
        }
        assert_eq!(found, (0..40).filter(|n| n % 2 == 1).collect::<Vec<i64>>());
        let bytes = Limits { bytes: Some(200), ..Limits::default() };
        let some = page(&store, &both, Continuation::Start, bytes).await;
        assert_eq!(some.stop, Stop::Bytes);
        assert!(!some.rows.is_empty() && some.rows.len() < 10);
        let none = page(&store, &both, Continuation::Start, Limits::rows(0)).await;
        assert_eq!((none.rows.len(), none.stop, none.continuation), (0, Stop::Rows, Continuation::Start));
    });
}

#[test]
fn an_index_that_is_not_readable_is_not_used() {
    on_cluster(|db| async move {
        let stores = shop(|builder| on_orders(builder, Index::new("price", "price")));
        let store = with(&stores, &db, &["order_id: 1 price: 1", "order_id: 2 price: 2"]).await;
        let query = orders(Query::field("price").equals(2));
        let kept = store.plan_query(&query).unwrap();
        assert_eq!(kept.explain(), "Load records\n  Scan index price: price = 2");
        store.mark_index_write_only("price").await.unwrap();
        assert_eq!(all(&store, &query).await, [2]);
        assert_eq!(
            store.plan_query(&query).unwrap().explain(),
            "Filter: price = 2\n  Scan records: everything"
        );
        let sorted = store.plan_query(&RecordQuery::of("Order").sort("price")).err();
        assert_eq!(sorted, Some(Error::InvalidQuery(QueryError::NoOrder("price".into()))));
        let stale = kept.execute(&store, Continuation::Start, Limits::default()).err();
        assert!(matches!(stale, Some(Error::IndexState { .. })), "{stale:?}");
    });
}

#[test]
fn an_index_of_ranks_that_is_not_readable_is_not_used() {
    on_cluster(|db| async move {
        let ranked = || Index::new("score", field("score").ungrouped()).kind(index_types::RANK);
        let stores = shop(|builder| {
            on_orders(builder, ranked());
            on_orders(builder, Index::new("price", "price"));
        });
        let store = with(&stores, &db, &["order_id: 1 price: 1 score: 5"]).await;
        // The rank of each record with the price is looked up in the index.
        let query = orders(Query::and([Query::field("price").equals(1), Query::rank("score").less_than(4)]));
        let kept = store.plan_query(&query).unwrap();
        assert_eq!(all(&store, &query).await, [1]);
        store.mark_index_write_only("score").await.unwrap();
        let unranked = store.plan_query(&query).err();
        assert_eq!(unranked, Some(Error::InvalidQuery(QueryError::NoRankIndex("score".into()))));
        let rows = kept.execute(&store, Continuation::Start, Limits::default()).unwrap();
        let stale = rows.to_list().await.err();
        let reason = "it is write-only".into();
        assert_eq!(stale, Some(Error::IndexState { index: "score".into(), reason }));
    });
}
