//! Operations side by side in one transaction, and several stores in one context.

use crate::{
    fixture::{Db, Store, all, at, commit, keys, meta_data, open, scan, stores},
    on_cluster,
    schema::{assert_indexes, message, text},
};
use futures::future::{join, join_all, join3, try_join_all};
use prost_reflect::{DynamicMessage, Value};
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits, Spent, TupleRange},
    error::Error,
    expression::{KeyExpression, field},
    index::{
        IndexScan, IndexState,
        aggregate::{Aggregate, CLEAR_WHEN_ZERO},
        function::{AggregateFunction, RecordFunction},
        rank::{COUNT_DUPLICATES, count_below},
    },
    metadata::{Index, RecordMetaData, index_types},
    query::{Query, RecordQuery},
    store::RecordContext,
    value::Tuple,
};
use shaketable_tx::Isolation::Serializable;

const GAMES: &str = r#"
    syntax = "proto2";
    import "record_metadata_options.proto";
    message Player {
        optional int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true];
        optional string name = 2 [(com.apple.foundationdb.record.field).index = { unique: true }];
        optional int64 score = 3 [(com.apple.foundationdb.record.field).index = { type: "rank" }];
    }
    message RecordTypeUnion { optional Player _Player = 1; }
"#;

fn games() -> RecordMetaData {
    meta_data(GAMES, |builder| {
        let counted = Index::new("counted", field("score")).kind(index_types::RANK);
        let sum = Index::new("sum", field("score")).kind(index_types::SUM);
        let last = Index::new("version", KeyExpression::Version).kind(index_types::VERSION);
        builder.set_store_record_versions(true).expect("set");
        for index in [counted.option(COUNT_DUPLICATES, "true"), sum.option(CLEAR_WHEN_ZERO, "true"), last] {
            builder.add_index(Some("Player"), index).expect("added");
        }
    })
}

fn player(store: &Store, id: i64, name: &str, score: i64) -> DynamicMessage {
    let fields = [("id", Value::I64(id)), ("name", text(name)), ("score", Value::I64(score))];
    message(store.meta_data(), "Player", fields)
}

#[test]
fn of_joined_saves_with_one_unique_key_one_is_refused() {
    on_cluster(|db| async move {
        let stores = stores("games", games());
        let store = open(&stores, &db).await;
        let records: Vec<_> = (0..6).map(|id| player(&store, id, "ann", id)).collect();
        let saved = join_all(records.iter().map(|record| store.save_record(record))).await;
        assert!(saved[0].is_ok(), "{saved:?}");
        assert!(saved[1..].iter().all(|one| matches!(one, Err(Error::NotUnique { .. }))), "{saved:?}");
        assert_eq!(keys(&store, "Player$name").await, [("ann".into(), 0.into())]);
        commit(store).await;
    });
}

#[test]
fn joined_changes_keep_ranks_and_sums() {
    on_cluster(|db| async move {
        let stores = stores("games", games());
        let store = open(&stores, &db).await;
        let records: Vec<_> = (0..40).map(|id| player(&store, id, &format!("p{id}"), id / 2)).collect();
        try_join_all(records.iter().map(|record| store.save_record(record))).await.expect("saved");
        commit(store).await;
        let store = open(&stores, &db).await;
        let records: Vec<_> = (0..40).map(|id| player(&store, id, &format!("p{id}"), 100 - id / 2)).collect();
        let saves = try_join_all(records[..30].iter().map(|record| store.save_record(record)));
        let again = try_join_all(records[10..20].iter().map(|record| store.save_record(record)));
        let pks: Vec<Tuple> = (30..40).map(Tuple::from).collect();
        let deletes = try_join_all(pks.iter().map(|pk| store.delete_record(pk)));
        let (one, other) = join(join(saves, again), deletes).await;
        assert!(one.0.is_ok() && one.1.is_ok() && other == Ok(vec![true; 10]));
        commit(store).await;
        let store = open(&stores, &db).await;
        for id in 0..30i64 {
            let key = Tuple::from(100 - id / 2);
            let lesser = (0..30).filter(|other| other / 2 > id / 2).count() as i64;
            assert_eq!(count_below(at(&store, "counted"), &key, Serializable).await, Ok(lesser), "{id}");
            assert_eq!(count_below(at(&store, "Player$score"), &key, Serializable).await, Ok(lesser / 2));
        }
        let sum = AggregateFunction::new(Aggregate::Sum, field("score").ungrouped());
        let sum = store.evaluate_aggregate(&["Player"], &sum, &Tuple::empty()).await;
        assert_eq!(sum, Ok(Some((0..30i64).map(|id| 100 - id / 2).sum::<i64>().into())));
        let versions = scan(&store, "version", IndexScan::ByValue, TupleRange::all(), false).expect("a scan");
        assert_eq!(all(versions).await.len(), 30);
        assert_indexes(&store).await;
    });
}

#[test]
fn a_state_that_changes_beside_saves_leaves_no_entry() {
    on_cluster(|db| async move {
        let stores = stores("games", games());
        let store = open(&stores, &db).await;
        let records: Vec<_> = (0..3).map(|id| player(&store, id, &format!("p{id}"), id)).collect();
        let (saved, disabled) = join(
            try_join_all(records.iter().map(|record| store.save_record(record))),
            store.mark_index_disabled("Player$score"),
        )
        .await;
        assert!(saved.is_ok() && disabled == Ok(()));
        commit(store).await;
        let store = open(&stores, &db).await;
        assert_eq!(store.index_state("Player$score"), Ok(IndexState::Disabled));
        let rows = at(&store, "Player$score")
            .scan_entries(&TupleRange::all(), false, Continuation::Start, &Spent::new(Limits::default()))
            .expect("a scan");
        assert_eq!(all(rows).await, []);
        let deletes = [Tuple::from(0), Tuple::from(1)];
        let (all, one) = join(store.delete_all_records(), store.save_record(&records[0])).await;
        assert!(all.is_ok() && one.is_ok());
        let both = try_join_all(deletes.iter().map(|pk| store.delete_record(pk))).await;
        assert_eq!(both, Ok(vec![true, false]));
        assert_indexes(&store).await;
        commit(store).await;
    });
}

/// The save has the first turn, so that the index is still readable when the third operation is called.
#[test]
fn an_index_is_chosen_in_the_turn_that_reads_it() {
    on_cluster(|db| async move {
        let stores = stores("games", games());
        let store = open(&stores, &db).await;
        let records: Vec<_> = (1..4).map(|id| player(&store, id, &format!("p{id}"), id)).collect();
        let first = store.save_record(&records[0]).await.expect("saved");
        commit(store).await;
        let store = open(&stores, &db).await;
        let sum = AggregateFunction::new(Aggregate::Sum, field("score").ungrouped());
        let everything = Tuple::empty();
        let (saved, disabled, evaluated) = join3(
            store.save_record(&records[1]),
            store.mark_index_disabled("sum"),
            store.evaluate_aggregate(&["Player"], &sum, &everything),
        )
        .await;
        assert!(saved.is_ok() && disabled == Ok(()));
        assert!(matches!(evaluated, Err(Error::Query(_))), "{evaluated:?}");
        let rank = RecordFunction::Rank(field("score").ungrouped());
        let disabled = ["counted", "Player$score"].map(|index| store.mark_index_disabled(index));
        let (saved, disabled, ranked) = join3(
            store.save_record(&records[2]),
            try_join_all(disabled),
            store.evaluate_record_function(&rank, &first),
        )
        .await;
        assert!(saved.is_ok() && disabled.is_ok());
        assert!(matches!(ranked, Err(Error::IndexState { .. })), "{ranked:?}");
    });
}

/// A store with committed players.
async fn with_ten_players(db: &Db) -> Store {
    let stores = stores("games", games());
    let store = open(&stores, db).await;
    for id in 0..10 {
        let record = player(&store, id, &format!("p{id}"), id);
        store.save_record(&record).await.expect("saved");
    }
    commit(store).await;
    open(&stores, db).await
}

#[test]
fn a_query_that_is_open_beside_a_delete_leaves_the_record_out() {
    on_cluster(|db| async move {
        let store = with_ten_players(&db).await;
        let query = RecordQuery::of("Player").filter(Query::field("name").starts_with("p"));
        // What is read ahead is as it was then.
        for (pipeline, left) in [(1, 8), (10, 9)] {
            let limits = Limits { pipeline, ..Limits::default() };
            let mut found = store.execute_query(&query, Continuation::Start, limits).expect("a plan");
            found.next().await.expect("the first record");
            store.delete_record(&2.into()).await.expect("deleted");
            assert_eq!(found.to_list().await.map(|page| page.rows.len()), Ok(left));
            store.save_record(&player(&store, 2, "p2", 2)).await.expect("saved");
        }
    });
}

#[test]
fn a_scan_that_is_open_when_its_index_is_disabled_fails() {
    on_cluster(|db| async move {
        let disabled = |error: Option<Error>| matches!(error, Some(Error::IndexState { .. }));
        let store = with_ten_players(&db).await;
        let query = RecordQuery::of("Player").filter(Query::field("name").starts_with("p"));
        let plan = store.plan_query(&query).expect("a plan");
        assert!(plan.explain().contains("Scan index Player$name"), "{}", plan.explain());
        let mut found = plan.execute(&store, Continuation::Start, Limits::default()).expect("a cursor");
        found.next().await.expect("the first record");
        store.mark_index_disabled("Player$name").await.expect("disabled");
        assert!(disabled(found.to_list().await.err()));
        // Nor is it read by a plan that was made before.
        assert!(disabled(plan.execute(&store, Continuation::Start, Limits::default()).err()));
    });
}

#[test]
fn stores_of_one_context_agree_on_states_and_meta_data() {
    on_cluster(|db| async move {
        let before = games();
        let mut builder = before.to_builder();
        builder.add_index(Some("Player"), Index::new("added", "score")).expect("added");
        let (old, new) = (stores("games", before), stores("games", builder.build().expect("valid")));
        commit(open(&old, &db).await).await;
        let context = RecordContext::open(&db).expect("a transaction");
        let (one, other) = (old.open(&context).await.expect("open"), old.open(&context).await.expect("open"));
        one.mark_index_disabled("Player$name").await.expect("disabled");
        assert_eq!(other.index_state("Player$name"), Ok(IndexState::Disabled));
        let record = player(&other, 1, "ann", 5);
        other.save_record(&record).await.expect("saved");
        other.mark_index_write_only("Player$name").await.expect("write-only");
        assert_eq!(one.index_state("Player$name"), Ok(IndexState::WriteOnly));
        let later = new.open(&context).await.expect("open");
        let stale = one.save_record(&record).await;
        assert!(matches!(stale, Err(Error::StaleMetaData { .. })), "{stale:?}");
        assert!(matches!(other.delete_record(&1.into()).await, Err(Error::StaleMetaData { .. })));
        later.save_record(&record).await.expect("saved");
        context.commit().await.expect("nobody else writes");
    });
}

#[test]
fn a_query_finds_what_its_transaction_has_written_unless_only_an_index_of_versions_has_the_order() {
    on_cluster(|db| async move {
        let versions = meta_data(GAMES, |builder| {
            builder.set_store_record_versions(true).expect("set");
            let by_name = KeyExpression::Concat(vec!["score".into(), KeyExpression::Version]);
            let index = Index::new("score and version", by_name).kind(index_types::VERSION);
            builder.remove_index("Player$score").expect("removed");
            builder.add_index(Some("Player"), index).expect("added");
        });
        let stores = stores("games", versions);
        let store = open(&stores, &db).await;
        store.save_record(&player(&store, 1, "ann", 5)).await.expect("saved");
        commit(store).await;
        let store = open(&stores, &db).await;
        let five = RecordQuery::of("Player").filter(Query::field("score").equals(5));
        let found = |query: RecordQuery, store: Store| async move {
            let rows = store.execute_query(&query, Continuation::Start, Limits::default()).expect("a plan");
            all(rows).await.len()
        };
        store.save_record(&player(&store, 1, "ann", 5)).await.expect("saved");
        store.save_record(&player(&store, 2, "bob", 5)).await.expect("saved");
        assert_eq!(found(five.clone(), store.clone()).await, 2);
        let of_version = Query::and([
            Query::field("score").equals(5),
            Query::version().greater_than(shaketable_record::version::RecordVersion::complete([0; 10], 0)),
        ]);
        let of_version = RecordQuery::of("Player").filter(of_version);
        assert_eq!(found(of_version.clone(), store.clone()).await, 2);
        let plan = |store: &Store, query: &RecordQuery| store.plan_query(query).expect("a plan").explain();
        assert!(!plan(&store, &of_version).contains("score and version"));
        commit(store).await;
        let store = open(&stores, &db).await;
        assert!(plan(&store, &of_version).contains("score and version"));
        assert_eq!(found(of_version, store.clone()).await, 2);
        assert!(!plan(&store, &five).contains("score and version"));
    });
}

#[test]
fn a_tuple_with_more_than_a_primary_key_is_in_no_record() {
    on_cluster(|db| async move {
        let plain = meta_data(
            r#"
            syntax = "proto2";
            import "record_metadata_options.proto";
            message Player {
                optional int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true];
                optional bytes blob = 2;
            }
            message RecordTypeUnion { optional Player _Player = 1; }
            "#,
            |builder| drop(builder.set_store_record_versions(true)),
        );
        let stores = stores("games", plain);
        let store = open(&stores, &db).await;
        for id in 0..3 {
            let blob = Value::Bytes(vec![7; 150_000].into());
            let record = message(store.meta_data(), "Player", [("id", Value::I64(id)), ("blob", blob)]);
            store.save_record(&record).await.expect("saved");
        }
        commit(store).await;
        let store = open(&stores, &db).await;
        let list = |range: TupleRange, reverse: bool| {
            let spent = Spent::new(Limits::default());
            all(store.scan_records(range, reverse, Continuation::Start, &spent).expect("a scan"))
        };
        let whole = list(TupleRange::all(), false).await;
        assert!(whole.iter().all(|record| record.version.is_some()));
        for suffix in [-1i64, 0, 1, 2, 9] {
            let beyond = Tuple::from((1, suffix));
            assert_eq!(list(TupleRange::all_of(beyond.clone()), false).await, []);
            use shaketable_record::cursor::Endpoint::{Exclusive, Inclusive, Open};
            for reverse in [false, true] {
                for low in [Inclusive(beyond.clone()), Exclusive(beyond.clone())] {
                    assert_eq!(list(TupleRange::between(low, Open), reverse).await, whole[2..]);
                }
                for high in [Inclusive(beyond.clone()), Exclusive(beyond.clone())] {
                    let mut found = list(TupleRange::between(Open, high), reverse).await;
                    found.sort_by(|a, b| a.primary_key.cmp(&b.primary_key));
                    assert_eq!(found, whole[..2]);
                }
            }
            assert_eq!(store.delete_where(&beyond).await, Ok(()));
            assert_eq!(store.load_record(&beyond).await, Ok(None));
            assert_eq!(store.record_exists(&Tuple::empty(), Serializable).await, Ok(false));
        }
        assert_eq!(list(TupleRange::all(), false).await, whole);
        store.delete_where(&1.into()).await.expect("deleted");
        assert_eq!(list(TupleRange::all(), false).await.len(), 2);
    });
}
