//! Opening a store: its header, its versions, and what becomes of indexes when the meta-data changes.

use crate::{
    begin,
    fixture::{commit, keys, open, stores},
    on_cluster,
    schema::{assert_indexes, build, builder, meta_data, rows, save, simple, text, with, with_index},
};
use foundationdb_tuple::Subspace;
use prost_reflect::Value;
use shaketable_record::{
    cursor::{Continuation, Limits, Spent, TupleRange},
    error::Error,
    index::{IndexScan, IndexState, Registry, ValueIndex},
    metadata::{Index, RecordMetaData, index_types},
    store::{KeySpacePath, PreviousVersions, RebuildPolicy, RecordContext, RecordStore},
    value::Tuple,
};
use shaketable_tx::{self as tx, Db, Transaction};
use std::sync::Arc;

const ADDED: &str = "by number";

fn added() -> Index {
    Index::new(ADDED, "num_value_2")
}

fn records(meta_data: &RecordMetaData) -> Vec<prost_reflect::DynamicMessage> {
    (1..=5).map(|n| simple(meta_data, n, [("num_value_2", Value::I32(n as i32 % 2))])).collect()
}

#[test]
fn a_store_is_created_once_and_opened_if_it_is_there() {
    on_cluster(|db| async move {
        let stores = stores("s", meta_data());
        let context = || RecordContext::open(&db).unwrap();
        assert_eq!(stores.open(&context()).await.err(), Some(Error::NoStore));
        let created = context();
        assert_eq!(stores.create(&created).await.unwrap().previous_versions(), None);
        assert_eq!(stores.create(&created).await.err(), Some(Error::StoreExists));
        created.commit().await.unwrap();
        assert_eq!(stores.create(&context()).await.err(), Some(Error::StoreExists));
        let opened = stores.open(&context()).await.unwrap();
        assert_eq!(opened.previous_versions(), Some(PreviousVersions { meta_data: 4, user: None }));
        // Format 9, meta-data 4 (an inline index is a change): the numbers of the fields are those of Java.
        let header = rows(&db).await.remove(0);
        assert_eq!(header.key[..], Subspace::from("s").pack(&(0,))[..]);
        assert_eq!(header.value[..], [0x08, 9, 0x10, 4]);
    });
}

#[test]
fn a_header_that_this_version_cannot_read_is_refused() {
    on_cluster(|db| async move {
        let stores = stores("s", meta_data());
        let refused = |header: &'static [u8]| {
            let (db, stores) = (db.clone(), stores.clone());
            async move {
                let tx = begin(&db);
                tx.set(&Subspace::from("s").pack(&(0,)), header);
                let context = RecordContext::within(tx);
                stores.create_or_open(&context).await.err().expect("refused")
            }
        };
        assert_eq!(refused(&[0x08, 10, 0x10, 0]).await, Error::NewerFormat { found: 10, known: 9 });
        for foreign in [
            &[0x08, 8, 0x10, 0][..],
            &[0x08, 9],
            &[0x10, 0],
            &[],
            &[0x08],
            b"no header",
            // Records without suffix, and a key of counts.
            &[0x08, 9, 0x10, 0, 0x30, 1],
            &[0x08, 9, 0x10, 0, 0x22, 0],
        ] {
            assert!(matches!(refused(foreign).await, Error::Foreign { .. }), "{foreign:?}");
        }
    });
}

#[test]
fn what_java_keeps_in_a_header_stays_there() {
    on_cluster(|db| async move {
        let stores = stores("s", meta_data()).user_version(7);
        commit(open(&stores, &db).await).await;
        let of_java =
            [&[0x28, 5, 0x38, 1][..], &[0x42, 3, 0x0a, 1, b'k'], &[0x42, 3, 0x0a, 1, b'l']].concat();
        let tx = begin(&db);
        tx.set(&Subspace::from("s").pack(&(0,)), &[&[0x08, 9, 0x10, 3, 0x18, 6][..], &of_java].concat());
        tx.commit().await.unwrap();
        commit(open(&stores, &db).await).await;
        let header = rows(&db).await.remove(0);
        assert_eq!(header.value[..], [&[0x08, 9, 0x10, 4, 0x18, 7][..], &of_java].concat());
    });
}

#[test]
fn rows_without_a_header_are_no_store() {
    on_cluster(|db| async move {
        let stores = stores("s", meta_data());
        for key in [&b""[..], b"\x15\x01", b"\xfe"] {
            let tx = begin(&db);
            tx.set(&[Subspace::from("s").bytes(), key].concat(), b"");
            let context = RecordContext::within(tx);
            for refused in [stores.open(&context).await.err(), stores.create(&context).await.err()] {
                assert_eq!(refused, Some(Error::NoHeader), "{key:?}");
            }
        }
        // A subspace whose name begins alike is another one.
        let other = RecordStore::builder(Subspace::from("s\0"), meta_data());
        save(&other, &db, &[simple(&meta_data(), 1, [])]).await;
        save(&stores, &db, &[simple(&meta_data(), 2, [])]).await;
        with(&stores, &db, async |store| store.delete_all_records().await.unwrap()).await;
        let left = with(&other, &db, async |store| store.load_record(&Tuple::from(1)).await.unwrap()).await;
        assert!(left.is_some());
    });
}

#[test]
fn older_meta_data_and_applications_are_refused() {
    on_cluster(|db| async move {
        let (old, new) = (meta_data(), with_index(added()));
        let store = open(&stores("s", new.clone()).user_version(3), &db).await;
        commit(store).await;
        let refused = |builder: shaketable_record::store::RecordStoreBuilder<_>| {
            let context = RecordContext::open(&db).unwrap();
            async move { builder.open(&context).await.err() }
        };
        assert_eq!(refused(stores("s", old)).await, Some(Error::StaleMetaData { store: 5, given: 4 }));
        let stale = refused(stores("s", new.clone()).user_version(2)).await;
        assert_eq!(stale, Some(Error::StaleUserVersion { store: 3, given: 2 }));
        assert_eq!(refused(stores("s", new.clone())).await, None);
        let store = open(&stores("s", new.clone()).user_version(4), &db).await;
        assert_eq!(store.previous_versions(), Some(PreviousVersions { meta_data: 5, user: Some(3) }));
        commit(store).await;
        assert!(refused(stores("s", new).user_version(3)).await.is_some());
    });
}

/// What becomes of an index that is added to a store with these records.
async fn upgrade(db: &Db, policy: RebuildPolicy, filled: bool) -> IndexState {
    let (old, new) = (meta_data(), with_index(added()));
    let records = records(&old);
    let tx = begin(db);
    tx.clear_range(b"", b"\x7f");
    tx.commit().await.unwrap();
    save(&stores("s", old.clone()), db, if filled { &records } else { &[] }).await;
    let stores = stores("s", new).rebuild(policy);
    let state = with(&stores, db, async |store| store.index_state(ADDED).unwrap()).await;
    let store = open(&stores, db).await;
    assert_eq!(store.index_state(ADDED), Ok(state), "the state is stored");
    assert_indexes(&store).await;
    // The next opening changes nothing.
    let before = rows(db).await;
    commit(open(&stores, db).await).await;
    assert_eq!(rows(db).await, before);
    state
}

#[test]
fn a_new_index_is_readable_only_if_it_has_all_records() {
    on_cluster(|db| async move {
        use RebuildPolicy::{Disable, Inline, WriteOnly};
        for policy in [Disable, WriteOnly, Inline(0)] {
            assert_eq!(upgrade(&db, policy, false).await, IndexState::Readable, "{policy:?}");
        }
        assert_eq!(upgrade(&db, Disable, true).await, IndexState::Disabled);
        assert_eq!(upgrade(&db, WriteOnly, true).await, IndexState::WriteOnly);
        assert_eq!(upgrade(&db, Inline(4), true).await, IndexState::Disabled);
        assert_eq!(upgrade(&db, Inline(5), true).await, IndexState::Readable);
    });
}

#[test]
fn an_inline_build_that_finds_violations_leaves_them_pending() {
    on_cluster(|db| async move {
        let (old, new) = (meta_data(), with_index(added().unique()));
        save(&stores("s", old.clone()), &db, &records(&old)).await;
        let stores = stores("s", new).rebuild(RebuildPolicy::Inline(200));
        let state = with(&stores, &db, async |store| store.index_state(ADDED).unwrap()).await;
        assert_eq!(state, IndexState::ReadableUniquePending);
    });
}

#[test]
fn a_disabled_index_is_not_written_and_a_write_only_one_is_not_scanned() {
    on_cluster(|db| async move {
        for (policy, entries) in [(RebuildPolicy::Disable, 0), (RebuildPolicy::WriteOnly, 1)] {
            let space = format!("{policy:?}");
            let (old, new) = (meta_data(), with_index(added()));
            save(&stores(&space, old.clone()), &db, &records(&old)).await;
            let stores = stores(&space, new.clone()).rebuild(policy);
            let store = open(&stores, &db).await;
            store.save_record(&simple(&new, 9, [("num_value_2", Value::I32(9))])).await.unwrap();
            let index = store
                .keyspace()
                .of_index(shaketable_record::store::Part::Indexes, store.index(ADDED).unwrap());
            let range = tx::RangeOption::from(index.range());
            let found =
                store.context().transaction().unwrap().get_range_all(range, tx::Isolation::Serializable);
            assert_eq!(found.await.unwrap().len(), entries);
            let (from, spent) = (Continuation::Start, Spent::new(Limits::default()));
            let scan = store.scan_index(ADDED, IndexScan::ByValue, TupleRange::all(), false, from, &spent);
            assert!(matches!(scan.err(), Some(Error::IndexState { .. })));
            commit(store).await;
        }
    });
}

#[test]
fn what_a_removed_or_changed_index_had_is_cleared() {
    on_cluster(|db| async move {
        let mut builder = builder();
        builder.add_index(Some("MySimpleRecord"), added()).unwrap();
        let first = build(&builder);
        save(&stores("s", first.clone()), &db, &records(&first)).await;
        let index_rows = || {
            let db = db.clone();
            async move {
                let index = Subspace::from("s").subspace(&(2,));
                rows(&db).await.iter().filter(|row| row.key.starts_with(index.bytes())).count()
            }
        };
        // By number, by text, the unique one and the third one.
        assert_eq!(index_rows().await, 20);
        with(&stores("s", first.clone()), &db, async |store| {
            store.mark_index_disabled("MySimpleRecord$str_value_indexed").await.unwrap();
        })
        .await;
        assert_eq!(index_rows().await, 15);
        builder.remove_index(ADDED).unwrap();
        builder.remove_index("MySimpleRecord$str_value_indexed").unwrap();
        let second = build(&builder);
        with(&stores("s", second.clone()), &db, async |store| assert_indexes(store).await).await;
        assert_eq!(index_rows().await, 10);
        // No state of an index that is gone is left: one of the same name begins anew.
        assert!(
            !rows(&db)
                .await
                .iter()
                .any(|row| row.key.starts_with(Subspace::from("s").subspace(&(5,)).bytes()))
        );
        builder.change_index(Index::new("MySimpleRecord$num_value_3_indexed", "rec_no")).unwrap();
        let third = stores("s", build(&builder)).rebuild(RebuildPolicy::Inline(10));
        let changed = with(&third, &db, async |store| {
            assert_indexes(store).await;
            keys(store, "MySimpleRecord$num_value_3_indexed").await
        });
        assert_eq!(changed.await.len(), 5);
    });
}

#[test]
fn a_save_conflicts_with_a_change_of_the_meta_data_or_of_a_state() {
    on_cluster(|db| async move {
        let (old, new) = (meta_data(), with_index(added()));
        let stores_of = |meta_data: &Arc<RecordMetaData>| stores("s", meta_data.clone());
        save(&stores_of(&old), &db, &[]).await;
        // The saver has opened the store with the old meta-data; then somebody opens it with the new.
        let saver = open(&stores_of(&old), &db).await;
        saver.save_record(&simple(&old, 1, [("num_value_2", Value::I32(1))])).await.unwrap();
        commit(open(&stores_of(&new), &db).await).await;
        assert_eq!(saver.context().commit().await, Err(Error::Fdb(tx::Error::NOT_COMMITTED)));

        // Two that are the first to open it with new meta-data, of which one finds a record.
        let saver = open(&stores_of(&new), &db).await;
        saver.save_record(&simple(&new, 1, [("str_value_indexed", text("a"))])).await.unwrap();
        with(&stores_of(&new), &db, async |store| store.mark_index_disabled(ADDED).await.unwrap()).await;
        assert_eq!(saver.context().commit().await, Err(Error::Fdb(tx::Error::NOT_COMMITTED)));
        with(&stores_of(&new), &db, async |store| {
            assert_eq!(store.index_state(ADDED), Ok(IndexState::Disabled));
            assert_indexes(store).await;
        })
        .await;
    });
}

#[test]
fn an_index_without_a_maintainer_is_refused_when_the_store_is_opened() {
    on_cluster(|db| async move {
        let mut builder = builder();
        builder.register_index_type("mine");
        builder.add_index(Some("MySimpleRecord"), added().kind("mine")).unwrap();
        let stores = stores("s", build(&builder));
        let context = RecordContext::open(&db).unwrap();
        let refused = stores.create_or_open(&context).await.err();
        assert_eq!(refused, Some(Error::UnknownIndexType { index: ADDED.into(), kind: "mine".into() }));
        let mut registry = Registry::standard();
        registry.register("mine", ValueIndex);
        assert!(stores.registry(registry).create_or_open(&context).await.is_ok());
        assert!(Registry::<crate::fixture::Tx>::default().get(index_types::VALUE).is_none());
    });
}

#[test]
fn each_path_has_a_store_of_its_own() {
    on_cluster(|db| async move {
        let paths = [
            KeySpacePath::new("app").add("user", 17),
            KeySpacePath::new("app").add("user", "17"),
            KeySpacePath::new("app").add("user", 1).directory("7"),
            KeySpacePath::new("app").directory("user"),
        ];
        let meta_data = meta_data();
        for (path, rec_no) in paths.iter().zip(1..) {
            let stores = RecordStore::builder(path.subspace(), meta_data.clone());
            save(&stores, &db, &[simple(&meta_data, rec_no, [])]).await;
        }
        for (path, rec_no) in paths.iter().zip(1..) {
            let stores = RecordStore::builder(path.clone().into(), meta_data.clone());
            let store = open(&stores, &db).await;
            assert_eq!(
                keys(&store, "MySimpleRecord$str_value_indexed").await,
                [(Tuple::from(None::<i64>), Tuple::from(rec_no))]
            );
        }
    });
}

#[test]
fn an_index_on_a_new_type_is_readable_at_once() {
    on_cluster(|db| async move {
        let file = |new: &str, field: &str| {
            let text = format!(
                r#"
                syntax = "proto2";
                import "record_metadata_options.proto";
                message Old {{ optional int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true]; }}
                {new}
                message RecordTypeUnion {{ optional Old _Old = 1; {field} }}
                "#
            );
            shaketable_record::metadata::compile(&text).expect("a valid file")
        };
        let mut builder = RecordMetaData::builder();
        builder.set_records(&file("", "")).expect("records");
        let before = builder.build().expect("valid");
        let new = r#"message New {
            optional int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true];
            optional string name = 2 [(com.apple.foundationdb.record.field).index = {}];
        }"#;
        builder.update_records(&file(new, "optional New _New = 2;")).expect("updated");
        builder.add_index(None, Index::new("all", "id")).expect("added");
        let after = builder.build().expect("valid");
        let store = open(&stores("s", before), &db).await;
        let old = crate::schema::message(store.meta_data(), "Old", [("id", Value::I64(1))]);
        store.save_record(&old).await.expect("saved");
        commit(store).await;
        let store = open(&stores("s", after), &db).await;
        assert_eq!(store.index_state("New$name"), Ok(IndexState::Readable));
        assert_eq!(store.index_state("all"), Ok(IndexState::Disabled));
        commit(store).await;
    });
}

#[test]
fn an_index_with_violations_is_readable_when_it_is_no_longer_unique() {
    on_cluster(|db| async move {
        const NUMBER: &str = "Coin$number";
        let coins = |index: &str, version: i32| {
            let text = format!(
                r#"
                syntax = "proto2";
                import "record_metadata_options.proto";
                message Coin {{
                    optional int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true];
                    optional int32 number = 2 [(com.apple.foundationdb.record.field).index = {{ {index} }}];
                }}
                message RecordTypeUnion {{ optional Coin _Coin = 1; }}
                "#
            );
            let mut builder = RecordMetaData::builder();
            builder
                .set_records(&shaketable_record::metadata::compile(&text).expect("a file"))
                .expect("records");
            builder.set_version(version);
            builder.build().expect("meta-data")
        };
        let (unique, plain) = (coins("unique: true", 1), coins("", 2));
        assert_eq!(plain.validate_evolution(&unique), Ok(()));
        let (before, after) = (stores("s", unique), stores("s", plain));
        let coin = |store: &crate::fixture::Store, id| {
            let fields = [("id", Value::I64(id)), ("number", Value::I32(7))];
            crate::schema::message(store.meta_data(), "Coin", fields)
        };
        with(&before, &db, async |store| {
            store.mark_index_write_only(NUMBER).await.expect("write-only");
            for id in 1..4 {
                store.save_record(&coin(store, id)).await.expect("saved");
            }
        })
        .await;
        let built = before.build_indexes(&db, &[NUMBER], 10).await.expect("built");
        assert_eq!(built.states, [IndexState::ReadableUniquePending]);
        with(&after, &db, async |store| {
            assert_eq!(store.index_state(NUMBER), Ok(IndexState::Readable));
            store.save_record(&coin(store, 5)).await.expect("saved");
            assert_indexes(store).await;
        })
        .await;
        let violations = Subspace::from("s").subspace(&(7,));
        assert!(rows(&db).await.iter().all(|row| !row.key.starts_with(violations.bytes())));
    });
}
