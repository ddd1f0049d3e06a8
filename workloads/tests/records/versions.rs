//! Indexes by version: the examples of the overview, and several writes of a record in one transaction.

use crate::{
    begin,
    fixture::{Store, all, at, commit, keys, meta_data, open, scan, stores},
    on_cluster,
    schema::{message, text},
};
use prost_reflect::Value;
use shaketable_record::{
    cursor::{Endpoint, TupleRange},
    error::Error,
    expression::{KeyExpression, concat, field},
    index::IndexScan,
    metadata::{Index, RecordMetaData, index_types},
    store::{Part, RecordContext, RecordExistenceCheck, SaveVersion, StoredRecord},
    value::Tuple,
    version::RecordVersion,
};
use shaketable_sim::seed::Seed;
use shaketable_tx::{Database, Db, Error as FdbError, Isolation::Serializable, RangeOption, Transaction};
use std::collections::BTreeMap;

const RECORDS: &str = r#"
    syntax = "proto2";
    import "record_metadata_options.proto";
    option (com.apple.foundationdb.record.schema).store_record_versions = true;
    message MySimpleRecord {
        optional int64 rec_no = 1 [(com.apple.foundationdb.record.field).primary_key = true];
        optional int32 num_value_2 = 4;
        optional string text = 5;
    }
    message RecordTypeUnion { optional MySimpleRecord _MySimpleRecord = 1; }
"#;

const GLOBAL: &str = "globalVersion";
const BY_NUMBER: &str = "MySimpleRecord$num2-version";

fn indexes(builder: &mut shaketable_record::metadata::RecordMetaDataBuilder) {
    let number = concat([KeyExpression::from(field("num_value_2")), KeyExpression::Version]);
    let by_number = Index::new(BY_NUMBER, number).kind(index_types::VERSION);
    builder.add_index(Some("MySimpleRecord"), by_number).expect("an index");
    let global = Index::new(GLOBAL, KeyExpression::Version).kind(index_types::VERSION);
    builder.add_index(None, global).expect("an index");
}

fn versioned() -> RecordMetaData {
    meta_data(RECORDS, indexes)
}

async fn save_with(
    store: &Store,
    rec_no: i64,
    number: i32,
    version: SaveVersion,
) -> Result<StoredRecord, Error> {
    let fields = [("rec_no", Value::I64(rec_no)), ("num_value_2", Value::I32(number))];
    let record = message(store.meta_data(), "MySimpleRecord", fields);
    store.save_record_with(&record, RecordExistenceCheck::None, version).await
}

async fn save(store: &Store, rec_no: i64, number: i32) -> StoredRecord {
    save_with(store, rec_no, number, SaveVersion::Next).await.expect("saved")
}

/// The records of an index by version in this range, in its order.
async fn records(store: &Store, index: &str, range: TupleRange) -> Vec<i64> {
    let entries = all(scan(store, index, IndexScan::ByValue, range, false).expect("a scan")).await;
    let number = |entry: shaketable_record::index::IndexEntry| match entry.primary_key.elements() {
        [foundationdb_tuple::Element::Int(rec_no)] => *rec_no,
        other => panic!("{other:?}"),
    };
    entries.into_iter().map(number).collect()
}

fn after(versions: impl Into<Tuple>) -> TupleRange {
    TupleRange::between(Endpoint::Exclusive(versions.into()), Endpoint::Open)
}

#[test]
fn records_are_in_the_order_of_their_last_updates() {
    on_cluster(|db| async move {
        let stores = stores("records", versioned());
        for rec_no in [3, 1, 2] {
            let store = open(&stores, &db).await;
            save(&store, rec_no, 42).await;
            commit(store).await;
        }
        let store = open(&stores, &db).await;
        assert_eq!(records(&store, GLOBAL, TupleRange::all()).await, [3, 1, 2]);
        let previous = store.load_record_version(&1.into()).await.expect("read").expect("a version");
        save(&store, 3, 41).await;
        assert!(store.delete_record(&2.into()).await.expect("deleted"));
        commit(store).await;
        let store = open(&stores, &db).await;
        assert_eq!(records(&store, GLOBAL, TupleRange::all()).await, [1, 3], "deleted records are absent");
        assert_eq!(records(&store, GLOBAL, after(previous.clone())).await, [3]);
        let of_42 =
            TupleRange::between(Endpoint::Exclusive((42, previous).into()), Endpoint::Inclusive(42.into()));
        assert_eq!(records(&store, BY_NUMBER, of_42).await, [] as [i64; 0]);
        assert_eq!(records(&store, BY_NUMBER, TupleRange::all_of(42)).await, [1]);
        assert_eq!(records(&store, BY_NUMBER, TupleRange::all_of(41)).await, [3]);
        let by_group = scan(&store, GLOBAL, IndexScan::ByGroup, TupleRange::all(), false);
        assert!(matches!(by_group.map(drop), Err(Error::IndexState { .. })));
    });
}

/// Each live record has one entry, with the version that it has, and there are no others.
async fn check(
    db: &Db,
    stores: &shaketable_record::store::RecordStoreBuilder<crate::fixture::Tx>,
    model: &BTreeMap<i64, i32>,
) {
    let store = open(stores, db).await;
    let (mut global, mut by_number) = (Vec::new(), Vec::new());
    for (rec_no, number) in model {
        let version = store.load_record_version(&(*rec_no).into()).await.expect("read").expect("a version");
        assert!(version.is_complete());
        global.push((Tuple::from(version.clone()), Tuple::from(*rec_no)));
        by_number.push((Tuple::from((*number, version)), Tuple::from(*rec_no)));
    }
    global.sort();
    by_number.sort();
    assert_eq!(keys(&store, GLOBAL).await, global);
    assert_eq!(keys(&store, BY_NUMBER).await, by_number);
}

#[test]
fn several_writes_of_a_record_in_one_transaction_leave_the_entries_of_the_last() {
    on_cluster(|db| async move {
        let stores = stores("records", versioned());
        let store = open(&stores, &db).await;
        save(&store, 1, 1).await;
        save(&store, 2, 1).await;
        save(&store, 1, 1).await;
        save(&store, 3, 1).await;
        save(&store, 3, 2).await;
        save(&store, 4, 1).await;
        store.delete_record(&4.into()).await.expect("deleted");
        save(&store, 5, 1).await;
        store.delete_record(&5.into()).await.expect("deleted");
        save(&store, 5, 7).await;
        commit(store).await;
        check(&db, &stores, &BTreeMap::from([(1, 1), (2, 1), (3, 2), (5, 7)])).await;
        let store = open(&stores, &db).await;
        assert_eq!(records(&store, GLOBAL, TupleRange::all()).await, [2, 1, 3, 5]);
    });
}

#[test]
fn random_writes_leave_one_entry_for_each_record() {
    on_cluster(|db| async move {
        let stores = stores("records", versioned());
        let (mut rng, mut model) = (Seed(3).stream("versions"), BTreeMap::new());
        for step in 0..40 {
            // By its own commit, by that of a retry loop, and not at all.
            let context = match step % 3 {
                0 => RecordContext::open(&db).expect("a transaction"),
                _ => RecordContext::within(begin(&db)),
            };
            let tx = context.transaction().expect("it is open").clone();
            let store = stores.create_or_open(&context).await.expect("a store");
            let mut next = model.clone();
            for _ in 0..1 + rng.below(6) {
                let rec_no = rng.below(8) as i64;
                match rng.chance(0.3) {
                    true => {
                        let was = next.remove(&rec_no).is_some();
                        assert_eq!(store.delete_record(&rec_no.into()).await, Ok(was));
                    }
                    false => {
                        let number = rng.below(3) as i32;
                        save(&store, rec_no, number).await;
                        next.insert(rec_no, number);
                    }
                }
            }
            if rng.chance(0.1) {
                store.delete_all_records().await.expect("deleted");
                next.clear();
            }
            match step % 3 {
                0 => context.commit().await.expect("nobody else writes"),
                1 => {
                    drop((store, context));
                    tx.commit().await.expect("nobody else writes");
                }
                _ => {
                    drop((store, context));
                    continue;
                }
            }
            model = next;
            check(&db, &stores, &model).await;
        }
    });
}

/// The second attempt of a retry loop does not write what the first one was about to.
#[test]
fn entries_do_not_survive_a_retry() {
    on_cluster(|db| async move {
        let stores = &stores("records", versioned());
        let result = db.run(|tx, attempt| async move {
            let context = RecordContext::within(tx);
            let store = stores.create_or_open(&context).await?;
            if attempt.number == 0 {
                save(&store, 1, 1).await;
                return Err(Error::Fdb(FdbError::NOT_COMMITTED));
            }
            save(&store, 2, 2).await;
            Ok(())
        });
        result.await.expect("the second attempt commits");
        check(&db, stores, &BTreeMap::from([(2, 2)])).await;
    });
}

#[test]
fn two_stores_in_one_transaction_do_not_mix_their_versions() {
    on_cluster(|db| async move {
        let (one, two) = (stores("one", versioned()), stores("two", versioned()));
        let context = RecordContext::open(&db).expect("a transaction");
        let (first, second) =
            (one.create(&context).await.expect("a store"), two.create(&context).await.expect("a store"));
        save(&first, 1, 1).await;
        save(&second, 1, 2).await;
        first.delete_record(&1.into()).await.expect("deleted");
        context.commit().await.expect("nobody else writes");
        check(&db, &one, &BTreeMap::new()).await;
        check(&db, &two, &BTreeMap::from([(1, 2)])).await;
    });
}

#[test]
fn entries_of_incomplete_versions_are_not_seen_by_scans_of_their_transaction() {
    on_cluster(|db| async move {
        let stores = stores("records", versioned());
        let store = open(&stores, &db).await;
        save(&store, 1, 1).await;
        save(&store, 2, 1).await;
        commit(store).await;
        let store = open(&stores, &db).await;
        let saved = save(&store, 1, 1).await;
        assert!(saved.version.is_some_and(|version| !version.is_complete()));
        assert_eq!(records(&store, GLOBAL, TupleRange::all()).await, [2]);
        store.context().flush().expect("flushed");
        let flushed = save_with(&store, 1, 2, SaveVersion::Next).await;
        assert!(matches!(flushed, Err(Error::Version(_))), "{flushed:?}");
        commit(store).await;
        check(&db, &stores, &BTreeMap::from([(1, 1), (2, 1)])).await;
    });
}

#[test]
fn a_poller_misses_no_record_of_a_transaction_and_repeats_none() {
    on_cluster(|db| async move {
        let stores = stores("records", versioned());
        let store = open(&stores, &db).await;
        for rec_no in 0..5 {
            save(&store, rec_no, 1).await;
        }
        commit(store).await;
        let store = open(&stores, &db).await;
        let (mut polled, mut range) = (Vec::new(), TupleRange::all());
        // One record at a time: the versions of one transaction differ in their last two bytes only.
        while let Some(next) = records(&store, GLOBAL, range).await.first() {
            polled.push(*next);
            let version = store.load_record_version(&(*next).into()).await.expect("read").expect("a version");
            range = after(version);
        }
        assert_eq!(polled, [0, 1, 2, 3, 4]);
    });
}

#[test]
fn versions_of_ones_own_are_complete_at_once() {
    on_cluster(|db| async move {
        let stores = stores("records", versioned());
        let store = open(&stores, &db).await;
        let own = |number: u8| RecordVersion::complete([number; 10], 7);
        save_with(&store, 1, 1, SaveVersion::Own(own(9))).await.expect("saved");
        save_with(&store, 2, 1, SaveVersion::Own(own(8))).await.expect("saved");
        assert_eq!(records(&store, GLOBAL, TupleRange::all()).await, [2, 1]);
        save(&store, 3, 1).await;
        save_with(&store, 3, 1, SaveVersion::Own(own(7))).await.expect("saved");
        save_with(&store, 1, 2, SaveVersion::Own(own(1))).await.expect("saved");
        let incomplete = SaveVersion::Own(RecordVersion::incomplete(1));
        assert!(matches!(save_with(&store, 4, 1, incomplete).await, Err(Error::Version(_))));
        commit(store).await;
        let store = open(&stores, &db).await;
        assert_eq!(records(&store, GLOBAL, TupleRange::all()).await, [1, 3, 2]);
        let rows = at(&store, GLOBAL).space(Part::Indexes).range();
        let rows =
            store.context().transaction().expect("open").get_range_all(RangeOption::from(rows), Serializable);
        assert_eq!(rows.await.expect("read").len(), 3);
    });
}

#[test]
fn records_from_before_the_option_have_no_version_and_come_first() {
    on_cluster(|db| async move {
        let without = RECORDS
            .replace("option (com.apple.foundationdb.record.schema).store_record_versions = true;", "");
        let before = meta_data(&without, |_| {});
        let stores_before = stores("records", before.clone());
        let store = open(&stores_before, &db).await;
        let fields = [("rec_no", Value::I64(2)), ("text", text("old"))];
        store.save_record(&message(&before, "MySimpleRecord", fields)).await.expect("saved");
        commit(store).await;
        let mut builder = before.to_builder();
        builder.set_store_record_versions(true).expect("versions");
        indexes(&mut builder);
        let stores = stores("records", builder.build().expect("meta-data"));
        let store = open(&stores, &db).await;
        save(&store, 1, 1).await;
        commit(store).await;
        let report = stores.build_indexes(&db, &[GLOBAL, BY_NUMBER], 10).await.expect("built");
        assert_eq!(report.records, 2);
        let store = open(&stores, &db).await;
        assert_eq!(records(&store, GLOBAL, TupleRange::all()).await, [2, 1]);
        assert_eq!(keys(&store, GLOBAL).await[0].0, Tuple::from(None::<i64>));
        assert_eq!(store.load_record_version(&2.into()).await, Ok(None));
        save(&store, 2, 1).await;
        commit(store).await;
        check(&db, &stores, &BTreeMap::from([(1, 1), (2, 1)])).await;
    });
}

/// Saves that are refused use up versions too: that many records would exceed a transaction's size.
#[test]
fn a_transaction_gives_at_most_65_536_versions() {
    on_cluster(|db| async move {
        let by_text = Index::new("text", "text");
        let stores = stores(
            "records",
            meta_data(RECORDS, |builder| {
                builder.add_index(Some("MySimpleRecord"), by_text).expect("an index");
            }),
        );
        let store = open(&stores, &db).await;
        let long = [("rec_no", Value::I64(1)), ("text", text(&"x".repeat(10_000)))];
        let long = message(store.meta_data(), "MySimpleRecord", long);
        for _ in 0..=u16::MAX {
            assert!(matches!(store.save_record(&long).await, Err(Error::EntryTooLarge { .. })));
        }
        assert_eq!(save_with(&store, 1, 1, SaveVersion::Next).await, Err(Error::TooManyVersions));
    });
}
