//! Storing and retrieving records: the overview's examples, and what is refused.

use crate::{
    begin, fixture, on_cluster,
    schema::{message, meta_data, simple, text},
};
use foundationdb_tuple::Subspace;
use prost_reflect::Value;
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits, Spent, TupleRange},
    error::Error,
    index::IndexScan,
    store::{RecordContext, RecordStore},
    value::Tuple,
};
use shaketable_tx::Isolation::Serializable;
use std::sync::Arc;

const NAMED: &str = r#"
    syntax = "proto2";
    import "record_metadata_options.proto";
    message Named { required string name = 1 [(com.apple.foundationdb.record.field).primary_key = true]; }
    message RecordTypeUnion { optional Named _Named = 1; }
"#;

#[test]
fn a_record_is_stored_and_retrieved_by_its_primary_key() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let builder = RecordStore::builder(Subspace::all().subspace(&("mydb", "mytest")), meta_data.clone());
        let context = RecordContext::open(&db).unwrap();
        let store = builder.create_or_open(&context).await.unwrap();
        let record = simple(
            &meta_data,
            1,
            [
                ("str_value_indexed", text("first")),
                ("num_value_unique", Value::I32(14)),
                ("num_value_2", Value::I32(3)),
            ],
        );
        store.save_record(&record).await.unwrap();
        context.commit().await.unwrap();

        let context = RecordContext::open(&db).unwrap();
        let store = builder.open(&context).await.unwrap();
        let loaded = store.load_record(&Tuple::from(1)).await.unwrap().unwrap();
        assert_eq!(loaded.message, record);
        assert_eq!((loaded.record_type.name.as_str(), &loaded.version), ("MySimpleRecord", &None));
        assert_eq!(store.load_record(&Tuple::from(2)).await, Ok(None));
        let spent = Spent::new(Limits::default());
        let entries = store.scan_index(
            "MySimpleRecord$str_value_indexed",
            IndexScan::ByValue,
            TupleRange::all(),
            false,
            Continuation::Start,
            &spent,
        );
        let entries = entries.unwrap().to_list().await.unwrap();
        let found: Vec<_> = entries.rows.iter().map(|e| (e.key.clone(), e.primary_key.clone())).collect();
        assert_eq!(found, [(Tuple::from("first"), Tuple::from(1))]);
        let records = store.scan_records(TupleRange::all(), false, Continuation::Start, &spent).unwrap();
        assert_eq!(records.to_list().await.unwrap().rows, [loaded]);
        assert_eq!(store.delete_record(&Tuple::from(1)).await, Ok(true));
        assert_eq!(store.delete_record(&Tuple::from(1)).await, Ok(false));
        context.commit().await.unwrap();
    });
}

#[test]
fn what_is_no_primary_key_has_no_record() {
    on_cluster(|db| async move {
        let meta_data = Arc::new(fixture::meta_data(NAMED, |_| ()));
        let stores = fixture::stores("s", meta_data.clone());
        let store = fixture::open(&stores, &db).await;
        let named = message(&meta_data, "Named", [("name", text("a"))]);
        let saved = store.save_record(&named).await.unwrap();
        for key in [Tuple::empty(), Tuple::from(1), Tuple::from(("a", 0)), Tuple::from("b")] {
            assert_eq!(store.load_record(&key).await, Ok(None), "{key:?}");
            assert_eq!(store.load_record_version(&key).await, Ok(None), "{key:?}");
            assert_eq!(store.record_exists(&key, Serializable).await, Ok(false), "{key:?}");
        }
        assert_eq!(store.load_record(&Tuple::from("a")).await, Ok(Some(saved)));
        fixture::commit(store).await;
    });
}

#[test]
fn a_context_commits_once_and_not_after_it_is_closed() {
    on_cluster(|db| async move {
        let builder = RecordStore::builder(Subspace::from("s"), meta_data());
        let context = RecordContext::open(&db).unwrap();
        builder.create(&context).await.unwrap();
        context.commit().await.unwrap();
        assert_eq!(context.commit().await, Err(Error::Closed));
        let store = builder.open(&context).await;
        assert_eq!(store.err(), Some(Error::Closed));

        let closed = RecordContext::open(&db).unwrap();
        let store = builder.open(&closed).await.unwrap();
        store.save_record(&simple(&meta_data(), 1, [])).await.unwrap();
        closed.close();
        assert_eq!(closed.commit().await, Err(Error::Closed));
        assert_eq!(store.load_record(&Tuple::from(1)).await, Err(Error::Closed));

        let dropped = RecordContext::open(&db).unwrap();
        let store = builder.open(&dropped).await.unwrap();
        store.save_record(&simple(&meta_data(), 1, [])).await.unwrap();
        drop((store, dropped));

        let context = RecordContext::open(&db).unwrap();
        let store = builder.open(&context).await.unwrap();
        assert_eq!(store.load_record(&Tuple::from(1)).await, Ok(None));
        let within = RecordContext::within(begin(&db));
        assert_eq!(within.commit().await, Err(Error::NotOwned));
    });
}
