//! Records of more than one row, and rows that are not those of a record.

use crate::{
    begin,
    fixture::{Store, all, commit, open, stores},
    on_cluster,
    schema::{assert_indexes, build, builder, meta_data, rows, save, simple, text, with},
};
use prost::Message;
use prost_reflect::{DynamicMessage, Value};
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits, Spent, TupleRange},
    error::Error,
    metadata::RecordMetaData,
    store::{OnTorn, Part},
    value::Tuple,
};
use shaketable_tx::{Isolation::Serializable, Transaction, limits::TooLarge};

/// A record whose union message has this many bytes.
fn of_size(meta_data: &RecordMetaData, rec_no: i64, bytes: usize) -> DynamicMessage {
    let record = |blob: usize| {
        let blob = (0..blob).map(|i| i as u8).collect::<Vec<_>>();
        simple(meta_data, rec_no, [("blob", Value::Bytes(blob.into())), ("str_value_indexed", text("split"))])
    };
    // The union's field has a tag of one byte, and a length of up to four.
    let size = |record: &DynamicMessage| {
        let length = record.encoded_len();
        1 + prost::length_delimiter_len(length) + length
    };
    let found = (bytes - 40..bytes).rev().map(record).find(|record| size(record) == bytes);
    found.expect("a record of this size")
}

/// The last elements of the keys of a record's rows, with the lengths of their values.
async fn parts(store: &Store, primary_key: &Tuple) -> Vec<(i64, usize)> {
    let space = store.keyspace().record(primary_key);
    let tx = store.context().transaction().unwrap();
    let rows = tx.get_range_all(space.range().into(), Serializable).await.unwrap();
    let part = |key: &[u8]| space.unpack::<(i64,)>(key).expect("an integer").0;
    rows.iter().map(|row| (part(&row.key), row.value.len())).collect()
}

#[test]
fn records_are_split_above_100_000_bytes() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        let store = open(&stores, &db).await;
        let cases = [
            (99_999, vec![(0, 99_999)]),
            (100_000, vec![(0, 100_000)]),
            (100_001, vec![(1, 100_000), (2, 1)]),
            (200_000, vec![(1, 100_000), (2, 100_000)]),
            (200_001, vec![(1, 100_000), (2, 100_000), (3, 1)]),
        ];
        // The same record again and again: nothing of a longer one is left under a shorter one.
        for (bytes, expected) in cases.iter().chain(cases.iter().rev()) {
            let record = of_size(&meta_data, 1, *bytes);
            let saved = store.save_record(&record).await.unwrap();
            assert_eq!((saved.rows, saved.value_bytes), (expected.len(), *bytes));
            assert_eq!(parts(&store, &Tuple::from(1)).await, *expected);
            assert_eq!(store.load_record(&Tuple::from(1)).await, Ok(Some(saved)));
        }
        assert_indexes(&store).await;
        store.save_record(&of_size(&meta_data, 1, 200_001)).await.unwrap();
        assert_eq!(store.delete_record(&Tuple::from(1)).await, Ok(true));
        assert_eq!(parts(&store, &Tuple::from(1)).await, []);
        assert_indexes(&store).await;
        commit(store).await;
        assert_eq!(rows(&db).await.len(), 1, "the header");
    });
}

#[test]
fn a_record_may_be_as_large_as_a_transaction() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        let large = of_size(&meta_data, 1, 9_900_000);
        save(&stores, &db, std::slice::from_ref(&large)).await;
        let store = open(&stores, &db).await;
        let loaded = store.load_record(&Tuple::from(1)).await.unwrap().expect("a record");
        assert_eq!((loaded.rows, loaded.message == large), (99, true));

        let store = open(&stores, &db).await;
        let tx = store.context().transaction().unwrap();
        let before = tx.get_approximate_size().await.unwrap();
        let refused = store.save_record(&of_size(&meta_data, 2, 10_000_000)).await.unwrap_err();
        assert!(matches!(refused, Error::TooLarge(TooLarge::Transaction { .. })), "{refused}");
        // What was read counts, but nothing was written.
        let read = tx.get_approximate_size().await.unwrap() - before;
        assert!(read < 200, "{read} bytes");
        store.save_record(&simple(&meta_data, 3, [])).await.unwrap();
        assert_eq!(store.load_record(&Tuple::from(2)).await, Ok(None));
        commit(store).await;
    });
}

#[test]
fn a_record_must_fit_into_a_transaction_with_its_keys() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        let store = open(&stores, &db).await;
        // Its bytes would fit, but not with the keys of its hundred rows.
        let refused = store.save_record(&of_size(&meta_data, 1, 9_995_000)).await.unwrap_err();
        assert!(matches!(refused, Error::TooLarge(TooLarge::Transaction { .. })), "{refused}");
        store.save_record(&simple(&meta_data, 2, [])).await.unwrap();
        assert_eq!(store.load_record(&Tuple::from(1)).await, Ok(None));
        commit(store).await;
    });
}

#[test]
fn two_large_records_in_one_transaction_are_one_too_many() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        let store = open(&stores, &db).await;
        store.save_record(&of_size(&meta_data, 1, 6_000_000)).await.unwrap();
        let refused = store.save_record(&of_size(&meta_data, 2, 6_000_000)).await.unwrap_err();
        assert!(matches!(refused, Error::TooLarge(TooLarge::Transaction { .. })), "{refused}");
        commit(store).await;
        let found = with(&stores, &db, async |store| {
            let mut found = Vec::new();
            for rec_no in [1, 2] {
                found.push(store.record_exists(&Tuple::from(rec_no), Serializable).await.unwrap());
            }
            found
        });
        assert_eq!(found.await, [true, false]);
    });
}

#[test]
fn a_store_that_does_not_split_refuses_long_records() {
    on_cluster(|db| async move {
        let mut builder = builder();
        builder.set_split_long_records(false).unwrap();
        let meta_data = build(&builder);
        let stores = stores("s", meta_data.clone());
        let store = open(&stores, &db).await;
        store.save_record(&of_size(&meta_data, 1, 100_000)).await.unwrap();
        let refused = store.save_record(&of_size(&meta_data, 2, 100_001)).await.unwrap_err();
        assert!(matches!(refused, Error::TooLarge(TooLarge::Value { bytes: 100_001, .. })), "{refused}");
        commit(store).await;
    });
}

/// Damages the rows of record 2 of three.
async fn damaged(
    db: &shaketable_tx::Db,
    damage: impl FnOnce(&Store),
) -> shaketable_record::store::RecordStoreBuilder<crate::fixture::Tx> {
    let meta_data = meta_data();
    let stores = stores("s", meta_data.clone());
    let records = [simple(&meta_data, 1, []), of_size(&meta_data, 2, 250_000), simple(&meta_data, 3, [])];
    save(&stores, db, &records).await;
    with(&stores, db, async |store| damage(store)).await;
    stores
}

#[test]
fn torn_records_are_errors_with_their_primary_key() {
    on_cluster(|db| async move {
        let key = |store: &Store, part: i64| store.keyspace().record(&Tuple::from(2)).pack(&(part,));
        let set = |store: &Store, part: i64, value: &[u8]| {
            store.context().transaction().unwrap().set(&key(store, part), value);
        };
        let clear = |store: &Store, part: i64| {
            store.context().transaction().unwrap().clear(&key(store, part));
        };
        type Damage<'a> = (&'a str, Box<dyn Fn(&Store) + 'a>);
        let damages: [Damage<'_>; 10] = [
            ("no first part", Box::new(|store| clear(store, 1))),
            ("no middle part", Box::new(|store| clear(store, 2))),
            ("no last part", Box::new(|store| clear(store, 3))),
            ("a shorter part", Box::new(|store| set(store, 2, b"short"))),
            ("other bytes", Box::new(|store| set(store, 1, &[0xff; 100_000]))),
            ("one row and parts", Box::new(|store| set(store, 0, b""))),
            ("a version of something else", Box::new(|store| set(store, -1, b"\x02x\x00"))),
            ("a further row", Box::new(|store| set(store, -2, b""))),
            (
                "a version without a record",
                Box::new(|store| {
                    (1..=3).for_each(|part| clear(store, part));
                    set(store, -1, &[&[0x33][..], &[0; 12]].concat());
                }),
            ),
            (
                "an empty record",
                Box::new(|store| {
                    (1..=3).for_each(|part| clear(store, part));
                    set(store, 0, b"");
                }),
            ),
        ];
        for (what, damage) in damages {
            let stores = damaged(&db, damage).await;
            let store = open(&stores, &db).await;
            let two = Tuple::from(2);
            let is_torn = |error: Option<Error>| {
                assert!(
                    matches!(&error, Some(Error::Torn { primary_key, .. }) if *primary_key == two),
                    "{what}: {error:?}"
                );
            };
            is_torn(store.load_record(&two).await.err());
            is_torn(store.delete_record(&two).await.err());
            is_torn(store.save_record(&simple(store.meta_data(), 2, [])).await.err());
            for reverse in [false, true] {
                let spent = Spent::new(Limits::default());
                let scan = store.scan_records(TupleRange::all(), reverse, Continuation::Start, &spent);
                is_torn(scan.unwrap().to_list().await.err());
                let (from, torn) = (Continuation::Start, OnTorn::Skip);
                let scan = store.scan_records_or_torn(TupleRange::all(), reverse, from, &spent, torn);
                let mut rows = all(scan.unwrap()).await;
                assert_eq!(rows.len(), 3, "{what}");
                is_torn(rows.remove(1).err());
                let mut found: Vec<_> = rows.into_iter().map(|row| row.unwrap().primary_key).collect();
                found.sort();
                assert_eq!(found, [Tuple::from(1), Tuple::from(3)]);
            }
            // A refused save has left nothing.
            commit(store).await;
            let store = open(&stores, &db).await;
            is_torn(store.load_record(&two).await.err());
            store.context().close();
            let tx = begin(&db);
            tx.clear_range(b"", b"\x7f");
            tx.commit().await.unwrap();
        }
    });
}

#[test]
fn a_row_that_is_no_records_is_an_error() {
    on_cluster(|db| async move {
        let stores = stores("s", meta_data());
        for key in [&b"\xfe"[..], b"\x01\x00", b"\x15\x01"] {
            let store = open(&stores, &db).await;
            let row = [store.keyspace().part(Part::Records).bytes(), key].concat();
            store.context().transaction().unwrap().set(&row, b"");
            let spent = Spent::new(Limits::default());
            let scan = store.scan_records(TupleRange::all(), false, Continuation::Start, &spent).unwrap();
            let refused = scan.to_list().await.unwrap_err();
            assert!(matches!(refused, Error::Foreign { .. }), "{refused}");
        }
    });
}
