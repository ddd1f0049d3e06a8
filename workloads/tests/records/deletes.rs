//! Deletes: by prefix, of everything, and what they leave.

use crate::{
    begin,
    fixture::{commit, open, stores},
    on_cluster,
    schema::{assert_indexes, build, builder, meta_data, rows, save, simple, text, with},
};
use foundationdb_tuple::Subspace;
use prost_reflect::{DynamicMessage, Value};
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits, Spent, TupleRange},
    error::Error,
    expression::{KeyExpression, concat},
    index::IndexState,
    metadata::{Index, RecordMetaData, index_types},
    store::{Part, RecordContext},
    value::Tuple,
};
use shaketable_tx::{self as tx, Transaction};
use std::sync::Arc;

const TEXT: &str = "MySimpleRecord$str_value_indexed";

#[test]
fn deleting_all_records_keeps_the_header_and_the_states_of_indexes() {
    on_cluster(|db| async move {
        let mut builder = builder();
        builder.set_store_record_versions(true).unwrap();
        let simple_type = Some("MySimpleRecord");
        let by_number = || KeyExpression::from("num_value_2");
        for (name, kind, expression) in [
            ("rank", index_types::RANK, by_number()),
            ("sum", index_types::SUM, by_number()),
            ("count", index_types::COUNT, KeyExpression::Empty.group_last(0)),
            ("version", index_types::VERSION, KeyExpression::Version),
        ] {
            builder.add_index(simple_type, Index::new(name, expression).kind(kind)).unwrap();
        }
        let meta_data = build(&builder);
        let stores = stores("s", meta_data.clone());
        let record = |rec_no| {
            let blob = Value::Bytes(vec![0; 150_000].into());
            simple(
                &meta_data,
                rec_no,
                [("num_value_2", Value::I32(1)), ("blob", blob), ("num_value_unique", Value::I32(1))],
            )
        };
        let store = open(&stores, &db).await;
        store.mark_index_write_only("MySimpleRecord$num_value_unique").await.unwrap();
        store.mark_index_disabled(TEXT).await.unwrap();
        commit(store).await;
        save(&stores, &db, &[record(1), record(2)]).await;
        let parts = |wanted: Part| {
            let db = db.clone();
            async move {
                let part = Subspace::from("s").subspace(&(wanted as i64,));
                rows(&db).await.iter().filter(|row| row.key.starts_with(part.bytes())).count()
            }
        };
        for part in
            [Part::Header, Part::Records, Part::Indexes, Part::Secondary, Part::States, Part::Violations]
        {
            assert!(parts(part).await > 0, "{part:?}");
        }
        let neighbours = [Subspace::from("r"), Subspace::from("s\0"), Subspace::from("t")];
        let tx = begin(&db);
        neighbours.iter().for_each(|near| tx.set(&near.pack(&(1,)), b""));
        tx.commit().await.unwrap();

        with(&stores, &db, async |store| {
            // Also what the same transaction has written.
            store.save_record(&record(3)).await.unwrap();
            store.delete_all_records().await.unwrap();
        })
        .await;
        for part in
            [Part::Records, Part::Indexes, Part::Secondary, Part::Ranges, Part::Violations, Part::Builds]
        {
            assert_eq!(parts(part).await, 0, "{part:?}");
        }
        assert_eq!((parts(Part::Header).await, parts(Part::States).await), (1, 2));
        assert_eq!(rows(&db).await.len(), 3 + 3);
        let store = open(&stores, &db).await;
        assert_eq!(store.index_state(TEXT), Ok(IndexState::Disabled));
        assert_eq!(store.index_state("MySimpleRecord$num_value_unique"), Ok(IndexState::WriteOnly));
        store.save_record(&record(1)).await.unwrap();
        assert_indexes(&store).await;
        commit(store).await;
    });
}

/// Records whose primary keys begin with a number.
fn grouped(indexes: impl IntoIterator<Item = Index>) -> Arc<RecordMetaData> {
    let mut builder = builder();
    builder.record_type("MySimpleRecord").unwrap().set_primary_key(concat(["num_value_2", "rec_no"]));
    builder.record_type("MyOtherRecord").unwrap().set_primary_key(concat(["num_value_2", "rec_no"]));
    for name in [TEXT, "MySimpleRecord$num_value_unique", "MySimpleRecord$num_value_3_indexed"] {
        builder.remove_index(name).unwrap();
    }
    for index in indexes {
        builder.add_index(Some("MySimpleRecord"), index).unwrap();
    }
    build(&builder)
}

fn records(meta_data: &RecordMetaData) -> Vec<DynamicMessage> {
    let record = |group: i32, rec_no: i64| {
        let fields = [("num_value_2", Value::I32(group)), ("str_value_indexed", text("x"))];
        simple(meta_data, rec_no, fields)
    };
    [(1, 1), (1, 2), (2, 1), (12, 1)].map(|(group, rec_no)| record(group, rec_no)).to_vec()
}

#[test]
fn records_are_deleted_by_the_beginning_of_their_primary_keys() {
    on_cluster(|db| async move {
        let meta_data = grouped([Index::new("in group", concat(["num_value_2", "str_value_indexed"]))]);
        let stores = stores("s", meta_data.clone());
        save(&stores, &db, &records(&meta_data)).await;
        with(&stores, &db, async |store| store.delete_where(&Tuple::from(1)).await.unwrap()).await;
        let store = open(&stores, &db).await;
        assert_indexes(&store).await;
        let spent = Spent::new(Limits::default());
        let left = store.scan_records(TupleRange::all(), false, Continuation::Start, &spent).unwrap();
        let left: Vec<_> = left.to_list().await.unwrap().rows.into_iter().map(|r| r.primary_key).collect();
        assert_eq!(left, [Tuple::from((2, 1)), Tuple::from((12, 1))]);
    });
}

#[test]
fn a_delete_that_an_index_cannot_follow_is_refused_whole() {
    on_cluster(|db| async move {
        let meta_data = grouped([
            Index::new("a in group", concat(["num_value_2", "str_value_indexed"])),
            Index::new("b by text", "str_value_indexed"),
        ]);
        let stores = stores("s", meta_data.clone());
        save(&stores, &db, &records(&meta_data)).await;
        let before = rows(&db).await;
        let refused = with(&stores, &db, async |store| store.delete_where(&Tuple::from(1)).await).await;
        assert!(
            matches!(&refused, Err(Error::IndexState { index, .. }) if index == "b by text"),
            "{refused:?}"
        );
        assert_eq!(rows(&db).await, before);
        // A disabled index has nothing to delete.
        with(&stores, &db, async |store| {
            store.mark_index_disabled("b by text").await.unwrap();
            store.delete_where(&Tuple::from(1)).await.unwrap();
            assert_indexes(store).await;
        })
        .await;
    });
}

#[test]
fn a_delete_conflicts_with_a_save_of_the_record() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        save(&stores, &db, &[simple(&meta_data, 1, [("str_value_indexed", text("old"))])]).await;
        let context = RecordContext::open(&db).unwrap();
        let store = stores.open(&context).await.unwrap();
        assert_eq!(store.delete_record(&Tuple::from(1)).await, Ok(true));
        save(&stores, &db, &[simple(&meta_data, 1, [("str_value_indexed", text("new"))])]).await;
        assert_eq!(context.commit().await, Err(Error::Fdb(tx::Error::NOT_COMMITTED)));
        assert_indexes(&open(&stores, &db).await).await;
    });
}
