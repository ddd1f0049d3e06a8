//! The overview's examples of queries, with its values.

use super::{all, ids, on_orders, open, orders, page, shop, with};
use crate::on_cluster;
use prost_reflect::{ReflectMessage, text_format::FormatOptions};
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits, Stop},
    error::Error,
    expression::{KeyExpression, concat, field},
    metadata::{Index, index_types},
    query::{EmptyList, Query, QueryError, RecordQuery},
    value::Tuple,
};

#[test]
fn roses_that_cost_less_than_fifty() {
    on_cluster(|db| async move {
        let stores = shop(|builder| on_orders(builder, Index::new("price", "price")));
        let store = with(
            &stores,
            &db,
            &[
                r#"order_id: 1 price: 23 flower { type: "ROSE" color: "RED" }"#,
                r#"order_id: 2 price: 35 flower { type: "TULIP" color: "PINK" }"#,
                r#"order_id: 3 price: 55 flower { type: "ROSE" color: "YELLOW" }"#,
                r#"order_id: 4 flower { type: "ROSE" }"#,
                r#"order_id: 5 price: 9"#,
            ],
        )
        .await;
        let rose = Query::field("flower").matches(Query::field("type").equals("ROSE"));
        let query = orders(Query::and([Query::field("price").less_than(50), rose.clone()]));
        let plan = store.plan_query(&query).unwrap();
        assert_eq!(
            plan.explain(),
            "Filter: flower.type = \"ROSE\"\n  Load records\n    Scan index price: price < 50"
        );
        let found =
            plan.execute(&store, Continuation::Start, Limits::default()).unwrap().to_list().await.unwrap();
        assert_eq!(ids(&found), [1]);
        let message = found.rows[0].record.message.to_text_format_with_options(&FormatOptions::new());
        assert_eq!(message, r#"order_id:1,flower{type:"ROSE",color:"RED"},price:23"#);
        assert_eq!(found.rows[0].record.message.descriptor().name(), "Order");
        let (index, entry) = found.rows[0].entry.clone().unwrap();
        assert_eq!((index.as_str(), entry.key), ("price", Tuple::from(23)));
        assert!(found.rows[0].record.version.is_some());
        assert_eq!(all(&store, &orders(rose)).await, [1, 3, 4]);
        assert_eq!(all(&store, &RecordQuery::of("Order").sort("price")).await, [4, 5, 1, 2, 3]);
        assert_eq!(all(&store, &RecordQuery::of("Order").sort("price").reverse()).await, [3, 2, 1, 5, 4]);
    });
}

#[test]
fn one_of_them_stops_at_the_first_match() {
    on_cluster(|db| async move {
        for indexed in [false, true] {
            let stores = shop(|builder| {
                if indexed {
                    on_orders(builder, Index::new("names", field("repeated_str").fan_out()));
                }
            });
            let store = with(
                &stores,
                &db,
                &[
                    r#"order_id: 1 repeated_str: ["Mary Smith", "Mary Smith"]"#,
                    r#"order_id: 2 repeated_str: ["John", "Mary Smith", "Ann"]"#,
                    r#"order_id: 3 repeated_str: ["John"]"#,
                    r#"order_id: 4"#,
                ],
            )
            .await;
            let mary = Query::field("repeated_str").one_of_them().equals("Mary Smith");
            assert_eq!(all(&store, &orders(mary.clone())).await, [1, 2]);
            // Of an empty list it is unknown, and so is its negation.
            assert_eq!(all(&store, &orders(Query::not(mary))).await, [3]);
            let mary =
                Query::field("repeated_str").one_of_them_with(EmptyList::NoMatches).equals("Mary Smith");
            assert_eq!(all(&store, &orders(Query::not(mary))).await, [3, 4]);
        }
    });
}

const SORTED: [&str; 3] = [
    r#"order_id: 1 repeated_str: ["aaa", "bbb"]"#,
    r#"order_id: 2 repeated_str: ["aaa", "ccc"]"#,
    r#"order_id: 3 repeated_str: ["brr", "cxx"]"#,
];

/// The overview's r1, r2 and r3.
#[test]
fn sorting_by_a_repeated_field() {
    on_cluster(|db| async move {
        let f = || field("repeated_str");
        let stores = shop(|builder| {
            on_orders(builder, Index::new("each", f().fan_out()));
            on_orders(builder, Index::new("whole", f().concatenate()));
        });
        let store = with(&stores, &db, &SORTED).await;
        let whole = RecordQuery::of("Order").sort(f().concatenate());
        assert_eq!(all(&store, &whole).await, [1, 2, 3]);
        assert_eq!(all(&store, &whole.reverse()).await, [3, 2, 1]);
        let each = RecordQuery::of("Order").sort(f().fan_out());
        let with_duplicates = each.clone().remove_duplicates(false);
        assert_eq!(all(&store, &with_duplicates).await, [1, 2, 1, 3, 2, 3]);
        assert_eq!(all(&store, &with_duplicates.reverse()).await, [3, 2, 3, 1, 2, 1]);
        assert_eq!(all(&store, &each).await, [1, 2, 3]);

        // The first two, and what comes after them, in another transaction.
        let first = page(&store, &each, Continuation::Start, Limits::rows(2)).await;
        assert_eq!((ids(&first), first.stop), (vec![1, 2], Stop::Rows));
        let store = open(&stores, &db).await;
        let second = page(&store, &each, first.continuation, Limits::rows(2)).await;
        assert_eq!((ids(&second), &second.continuation), (vec![3, 2], &Continuation::End));
    });
}

#[test]
fn comparisons_with_null_find_nothing() {
    on_cluster(|db| async move {
        for indexed in [false, true] {
            let stores = shop(|builder| {
                if indexed {
                    on_orders(builder, Index::new("price", "price"));
                }
            });
            let store =
                with(&stores, &db, &["order_id: 1", "order_id: 2 price: 0", "order_id: 3 price: 5"]).await;
            let price = || Query::field("price");
            for (condition, found) in [
                (price().is_null(), vec![1]),
                (price().not_null(), vec![2, 3]),
                (price().equals(None::<i32>), vec![]),
                (price().not_equals(None::<i32>), vec![]),
                (price().less_than(9), vec![2, 3]),
                (price().less_than(None::<i32>), vec![]),
                (price().not_equals(5), vec![2]),
                (Query::not(price().equals(5)), vec![2]),
                (Query::not(price().is_null()), vec![2, 3]),
                (Query::or([price().is_null(), price().equals(5)]), vec![1, 3]),
                (Query::not(Query::and([price().equals(5), price().not_null()])), vec![1, 2]),
                (Query::not(Query::or([price().equals(5), price().not_null()])), vec![]),
                (price().is_in([None, Some(5)]), vec![3]),
                (Query::not(price().is_in([None, Some(5)])), vec![]),
            ] {
                let mut rows = all(&store, &orders(condition.clone())).await;
                rows.sort_unstable();
                assert_eq!(rows, found, "{condition}");
            }
        }
    });
}

#[test]
fn records_by_their_rank() {
    on_cluster(|db| async move {
        let ranked = |name: &str, of: KeyExpression| Index::new(name, of).kind(index_types::RANK);
        let stores = shop(|builder| {
            on_orders(builder, ranked("score", field("score").into()));
            on_orders(builder, ranked("rank_per_game", field("score").group_by("game_id")));
            on_orders(builder, Index::new("price", "price"));
        });
        let texts: Vec<String> = (0..20)
            .map(|n| {
                format!(
                    "order_id: {n} score: {} price: {} game_id: \"{}\"",
                    100 - 3 * n,
                    n % 2,
                    ["a", "b"][n % 2]
                )
            })
            .collect();
        let store = with(&stores, &db, &texts.iter().map(String::as_str).collect::<Vec<_>>()).await;
        // Order 19 has the least score, and rank 0.
        let rank = || Query::rank("score");
        assert_eq!(all(&store, &orders(rank().equals(10))).await, [9]);
        assert_eq!(
            all(&store, &orders(Query::and([rank().greater_or_equal(3), rank().less_than(6)]))).await,
            [16, 15, 14]
        );
        assert_eq!(all(&store, &orders(rank().less_than(3)).sort("score").reverse()).await, [17, 18, 19]);
        let in_game = |game: &str| {
            let rank = Query::rank(field("score").group_by("game_id")).less_than(2);
            orders(Query::and([rank, Query::field("game_id").equals(game)]))
        };
        assert_eq!(all(&store, &in_game("a")).await, [18, 16]);
        assert_eq!(all(&store, &in_game("b")).await, [19, 17]);
        // Without the group, and beside another index, the rank of each record is looked up.
        let mut first = all(&store, &orders(Query::rank(field("score").group_by("game_id")).equals(0))).await;
        first.sort_unstable();
        assert_eq!(first, [18, 19]);
        let even = orders(Query::or([
            Query::and([Query::field("price").equals(0), rank().less_than(4)]),
            Query::and([Query::field("price").equals(1), rank().equals(0)]),
        ]));
        assert_eq!(all(&store, &even).await, [16, 18, 19]);
        let unranked = store.plan_query(&orders(Query::rank("price").equals(1)));
        assert_eq!(unranked.err(), Some(Error::InvalidQuery(QueryError::NoRankIndex("price".into()))));
    });
}

#[test]
fn records_by_their_version() {
    on_cluster(|db| async move {
        let versioned = |name: &str, of: KeyExpression| Index::new(name, of).kind(index_types::VERSION);
        let stores = shop(|builder| {
            let num = KeyExpression::from(field("num_value_2"));
            on_orders(
                builder,
                versioned("MySimpleRecord$num2-version", concat([num, KeyExpression::Version])),
            );
            on_orders(builder, versioned("globalVersion", KeyExpression::Version));
        });
        with(&stores, &db, &["order_id: 1 num_value_2: 42", "order_id: 2 num_value_2: 42", "order_id: 3"])
            .await;
        let store = with(&stores, &db, &["order_id: 1 num_value_2: 42"]).await;
        let sorted = RecordQuery::all().sort(KeyExpression::Version);
        assert_eq!(all(&store, &sorted).await, [2, 3, 1]);
        let previous = store.load_record_version(&Tuple::from(2)).await.unwrap().unwrap();
        let later = || Query::version().greater_than(previous.clone());
        assert_eq!(all(&store, &RecordQuery::all().filter(later())).await, [3, 1]);
        let of_42 = orders(Query::and([later(), Query::field("num_value_2").equals(42)]));
        assert_eq!(
            store.plan_query(&of_42).unwrap().explain(),
            format!(
                "Load records\n  Scan index MySimpleRecord$num2-version: num_value_2 = 42, version > {previous}"
            )
        );
        assert_eq!(all(&store, &of_42).await, [1]);
    });
}
