//! Meta-data in the database: what is saved, what is refused, and that no transaction sees what another
//! replaced.

use super::{begin, on_cluster};
use foundationdb_tuple::Subspace;
use shaketable_record::{
    error::Error,
    metadata::{
        EvolutionError, Extensions, Index, MetaDataError, MetaDataProvider, MetaDataStore, RecordMetaData,
    },
};
use shaketable_tx::{self as tx, Db, Isolation::Serializable, RangeOption, Transaction, limits::TooLarge};
use std::sync::Arc;

fn space() -> Subspace {
    Subspace::from_bytes(b"m".to_vec())
}

fn store() -> MetaDataStore {
    MetaDataStore::new(space(), Extensions::default())
}

/// Orders, in a version that is given.
fn orders(version: i32) -> RecordMetaData {
    let text = r#"
        syntax = "proto2";
        import "record_metadata_options.proto";
        message Order {
            optional int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true];
            optional string flower = 2;
        }
        message RecordTypeUnion { optional Order _Order = 1; }
    "#;
    let built = RecordMetaData::from_proto(text).expect("valid records");
    built.to_builder().set_version(version).build().expect("valid")
}

/// Orders with an index, whose definition has about `bytes` bytes, as the version after this one.
fn with_index(before: &RecordMetaData, bytes: usize) -> RecordMetaData {
    let mut builder = before.to_builder();
    let index = Index::new("flower", "flower").option("comment", "x".repeat(bytes));
    match before.index("flower") {
        None => builder.add_index(Some("Order"), index).expect("added"),
        Some(_) => builder.change_index(index).expect("changed"),
    };
    builder.build().expect("valid")
}

async fn save(db: &Db, meta_data: &RecordMetaData) -> Result<(), Error> {
    let tx = begin(db);
    store().save_record_meta_data(&tx, meta_data).await?;
    Ok(tx.commit().await?)
}

/// What a client that has cached nothing loads.
async fn load(db: &Db) -> Result<Option<Arc<RecordMetaData>>, Error> {
    store().load(&begin(db)).await
}

async fn rows(db: &Db) -> Vec<(Vec<u8>, usize)> {
    let (begin_key, end) = (b"m".to_vec(), b"n".to_vec());
    let rows = begin(db).get_range_all(RangeOption::from((begin_key, end)), Serializable).await;
    rows.expect("a read").into_iter().map(|row| (row.key.to_vec(), row.value.len())).collect()
}

fn same(loaded: Result<Option<Arc<RecordMetaData>>, Error>, expected: &RecordMetaData) {
    let loaded = loaded.expect("a calm cluster answers").expect("saved meta-data");
    assert_eq!(loaded.to_bytes(), expected.to_bytes());
}

#[test]
fn rl14_what_is_saved_is_loaded() {
    on_cluster(|db| async move {
        assert!(matches!(load(&db).await, Ok(None)));
        let missing = MetaDataProvider::meta_data(&store(), &begin(&db)).await.map(|_| ());
        assert_eq!(missing, Err(Error::NoMetaData));
        let first = orders(1);
        save(&db, &first).await.expect("saved");
        same(load(&db).await, &first);
        let provided = MetaDataProvider::meta_data(&store(), &begin(&db)).await.expect("provided");
        assert_eq!(provided.version(), 1);
        let constant = Arc::new(first);
        let provided = MetaDataProvider::meta_data(&constant, &begin(&db)).await.expect("provided");
        assert!(Arc::ptr_eq(&provided, &constant));
        let keys: Vec<_> = rows(&db).await.into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [b"m\x00\x14".to_vec(), b"m\x02V\x00".to_vec()]);
    });
}

#[test]
fn rl14_long_meta_data_takes_several_rows() {
    on_cluster(|db| async move {
        let first = orders(1);
        save(&db, &first).await.expect("saved");
        let long = with_index(&first, 250_000);
        save(&db, &long).await.expect("saved");
        same(load(&db).await, &long);
        let parts = rows(&db).await;
        let keys: Vec<&[u8]> = parts.iter().map(|(key, _)| &key[..]).collect();
        assert_eq!(keys, [&b"m\x00\x15\x01"[..], b"m\x00\x15\x02", b"m\x00\x15\x03", b"m\x02V\x00"]);
        assert_eq!((parts[0].1, parts[1].1), (100_000, 100_000));
        let short = with_index(&long, 1);
        save(&db, &short).await.expect("saved");
        same(load(&db).await, &short);
        assert_eq!(rows(&db).await.len(), 2);
    });
}

#[test]
fn rl14_meta_data_has_the_size_of_a_transaction() {
    on_cluster(|db| async move {
        let first = orders(1);
        save(&db, &first).await.expect("saved");
        let tx = begin(&db);
        let refused = store().save_record_meta_data(&tx, &with_index(&first, 10_000_000)).await;
        assert!(matches!(refused, Err(Error::TooLarge(TooLarge::Transaction { .. }))), "{refused:?}");
        tx.commit().await.expect("nothing was written");
        same(load(&db).await, &first);
        let largest = with_index(&first, 9_900_000);
        save(&db, &largest).await.expect("saved");
        same(load(&db).await, &largest);
    });
}

#[test]
fn rl14_meta_data_does_not_go_back() {
    on_cluster(|db| async move {
        let (first, second) = (orders(1), with_index(&orders(1), 1));
        save(&db, &second).await.expect("saved");
        let refused = |meta_data: RecordMetaData| {
            let db = db.clone();
            async move {
                let tx = begin(&db);
                let refused = store().save_record_meta_data(&tx, &meta_data).await;
                tx.commit().await.expect("nothing was written");
                match refused {
                    Err(Error::MetaData(error)) => match *error {
                        MetaDataError::Evolution(error) => error,
                        other => panic!("{other}"),
                    },
                    other => panic!("{other:?}"),
                }
            }
        };
        let older = EvolutionError::VersionNotLater { old: 2, new: 1 };
        assert_eq!(refused(first).await, older);
        let equal = EvolutionError::VersionNotLater { old: 2, new: 2 };
        assert_eq!(refused(orders(2)).await, equal);
        assert_eq!(refused(orders(3)).await, EvolutionError::IndexDropped("flower".into()));
        same(load(&db).await, &second);
        // The same again, as a retry after an unknown result, writes nothing.
        let loading = begin(&db);
        same(store().load(&loading).await, &second);
        loading.set(b"other", b"");
        save(&db, &second).await.expect("saved");
        loading.commit().await.expect("no conflict");
        same(load(&db).await, &second);
    });
}

#[test]
fn rl14_no_client_works_with_what_another_replaced() {
    on_cluster(|db| async move {
        let store = store();
        let first = orders(1);
        save(&db, &first).await.expect("saved");
        let loaded = store.load(&begin(&db)).await.expect("an answer").expect("meta-data");
        let again = store.load(&begin(&db)).await.expect("an answer").expect("meta-data");
        assert!(Arc::ptr_eq(&loaded, &again), "from the cache");
        let old = begin(&db);
        old.get_read_version().await.expect("a read version");
        let second = with_index(&first, 1);
        save(&db, &second).await.expect("saved");
        same(store.load(&begin(&db)).await, &second);
        same(store.clone().load(&old).await, &first);
        same(store.load(&begin(&db)).await, &second);
    });
}

/// Also if the other has the same version, because the subspace was cleared.
#[test]
fn rl14_the_version_alone_does_not_tell_meta_data_apart() {
    on_cluster(|db| async move {
        let store = store();
        let first = orders(2);
        save(&db, &first).await.expect("saved");
        same(store.load(&begin(&db)).await, &first);
        let tx = begin(&db);
        tx.clear_range(b"m", b"n");
        tx.commit().await.expect("cleared");
        assert!(matches!(store.load(&begin(&db)).await, Ok(None)));
        let other = with_index(&orders(1), 1);
        assert_eq!(first.version(), other.version());
        save(&db, &other).await.expect("saved");
        same(store.load(&begin(&db)).await, &other);
    });
}

#[test]
fn rl14_a_transaction_that_loaded_conflicts_with_one_that_saves() {
    on_cluster(|db| async move {
        let store = store();
        let first = orders(1);
        save(&db, &first).await.expect("saved");
        same(store.load(&begin(&db)).await, &first);
        let (loading, saving) = (begin(&db), begin(&db));
        same(store.load(&loading).await, &first);
        loading.set(b"other", b"");
        let second = with_index(&first, 1);
        store.save_record_meta_data(&saving, &second).await.expect("written");
        save(&db, &second).await.expect("saved");
        assert_eq!(loading.commit().await, Err(tx::Error::NOT_COMMITTED));
        assert_eq!(saving.commit().await, Err(tx::Error::NOT_COMMITTED));
    });
}

#[test]
fn rl14_a_transaction_loads_what_it_saved_and_no_other_does() {
    on_cluster(|db| async move {
        let store = store();
        let first = orders(1);
        save(&db, &first).await.expect("saved");
        let second = with_index(&first, 1);
        let abandoned = begin(&db);
        store.save_record_meta_data(&abandoned, &second).await.expect("written");
        same(store.load(&abandoned).await, &second);
        same(store.load(&begin(&db)).await, &first);
    });
}

#[test]
fn rl14_rows_that_are_torn_are_an_error() {
    on_cluster(|db| async move {
        let long = with_index(&orders(1), 250_000);
        let torn = |write: fn(&tx::Tx)| {
            let (db, long) = (db.clone(), long.clone());
            async move {
                let tx = begin(&db);
                tx.clear_range(b"m", b"n");
                tx.commit().await.expect("cleared");
                save(&db, &long).await.expect("saved");
                let tx = begin(&db);
                write(&tx);
                tx.commit().await.expect("torn");
                load(&db).await.map(|_| ()).expect_err("torn")
            }
        };
        let parts = [&b"m\x00\x15\x01"[..], b"m\x00\x15\x02", b"m\x00\x15\x03"];
        let foreign = |error: Error| matches!(error, Error::Foreign { .. });
        assert!(foreign(torn(|tx| tx.clear(b"m\x00\x15\x01")).await));
        assert!(foreign(torn(|tx| tx.clear(b"m\x00\x15\x02")).await));
        assert!(foreign(torn(|tx| tx.clear_range(b"m\x00", b"m\x01")).await));
        assert!(foreign(torn(|tx| tx.clear(b"m\x02V\x00")).await));
        assert!(foreign(torn(|tx| tx.set(b"m\x02V\x00", b"")).await));
        assert!(foreign(torn(|tx| tx.set(b"m\x00\x14", b"x")).await));
        assert!(foreign(torn(|tx| tx.set(b"m\x00\x15\x02x", b"x")).await));
        for error in
            [torn(|tx| tx.clear(b"m\x00\x15\x03")).await, torn(|tx| tx.set(b"m\x00\x15\x01", b"\xff")).await]
        {
            assert!(matches!(error, Error::MetaData(_)), "{error:?}");
        }
        let (key, torn_value) = (parts[1], vec![b'y'; 100_000]);
        save_again(&db, &long).await;
        let tx = begin(&db);
        tx.set(key, &torn_value);
        tx.commit().await.expect("torn");
        assert!(foreign(load(&db).await.map(|_| ()).expect_err("other bytes of the same length")));
    });
}

async fn save_again(db: &Db, meta_data: &RecordMetaData) {
    let tx = begin(db);
    tx.clear_range(b"m", b"n");
    tx.commit().await.expect("cleared");
    save(db, meta_data).await.expect("saved");
}
