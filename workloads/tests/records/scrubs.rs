//! Scrubs: entries that are missing or dangling are found and repaired, and a save at the same time loses
//! none.

use crate::{
    fixture::{Store, Tx, at, commit, keys, meta_data, open, stores},
    on_cluster,
    schema::{message, text},
};
use prost_reflect::Value;
use shaketable_record::{
    cursor::Continuation,
    error::Error,
    expression::{KeyExpression, field},
    index::{
        IndexEntry,
        rank::{COUNT_DUPLICATES, count_below, count_scores},
        scrub::Scrub,
    },
    metadata::{Index, index_types},
    store::{Part, RecordStoreBuilder},
    value::Tuple,
};
use shaketable_tx::{Db, Error as FdbError, Isolation::Serializable, Transaction};
use std::slice;

const RECORDS: &str = r#"
    syntax = "proto2";
    import "record_metadata_options.proto";
    option (com.apple.foundationdb.record.schema).store_record_versions = true;
    message Player {
        optional int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true];
        optional string name = 2 [(com.apple.foundationdb.record.field).index = {}];
        optional int64 score = 3 [(com.apple.foundationdb.record.field).index = { type: "rank" }];
    }
    message RecordTypeUnion { optional Player _Player = 1; }
"#;

const NAME: &str = "Player$name";
const RANK: &str = "Player$score";
const COUNTED: &str = "counted";
const VERSION: &str = "version";
const COUNT: &str = "count";

async fn filled(db: &Db) -> RecordStoreBuilder<Tx> {
    let meta_data = meta_data(RECORDS, |builder| {
        let counted = Index::new(COUNTED, field("score")).kind(index_types::RANK);
        let version = Index::new(VERSION, KeyExpression::Version).kind(index_types::VERSION);
        let count = Index::new(COUNT, KeyExpression::Empty.group_last(0)).kind(index_types::COUNT);
        for index in [counted.option(COUNT_DUPLICATES, "true"), version, count] {
            builder.add_index(Some("Player"), index).expect("an index");
        }
    });
    let stores = stores("players", meta_data);
    let store = open(&stores, db).await;
    for id in 0..10 {
        save(&store, id, &format!("name {id}"), id / 2).await;
    }
    commit(store).await;
    stores
}

async fn save(store: &Store, id: i64, name: &str, score: i64) {
    let fields = [("id", Value::I64(id)), ("name", text(name)), ("score", Value::I64(score))];
    store.save_record(&message(store.meta_data(), "Player", fields)).await.expect("saved");
}

fn entry(key: impl Into<Tuple>, id: i64) -> IndexEntry {
    IndexEntry { key: key.into(), primary_key: id.into(), value: Tuple::empty() }
}

/// The row of an entry.
fn row(store: &Store, index: &str, entry: &IndexEntry) -> Vec<u8> {
    let space = at(store, index).space(Part::Indexes);
    [space.bytes(), &entry.key.followed_by(&entry.primary_key).pack()].concat()
}

#[test]
fn an_index_without_faults_is_left_as_it_is() {
    on_cluster(|db| async move {
        let stores = filled(&db).await;
        for index in [NAME, RANK, COUNTED, VERSION] {
            for scrub in [Scrub::Missing, Scrub::Dangling] {
                let report = stores.scrub_index(&db, index, scrub, true, 3).await.expect("scrubbed");
                assert_eq!((report.scanned, report.found), (10, vec![]), "{index} {scrub:?}");
            }
        }
        let refused = stores.scrub_index(&db, COUNT, Scrub::Missing, false, 3).await;
        assert!(matches!(refused, Err(failed) if matches!(failed.error, Error::IndexState { .. })));
    });
}

#[test]
fn missing_and_dangling_entries_are_found_and_repaired() {
    on_cluster(|db| async move {
        let stores = filled(&db).await;
        let store = open(&stores, &db).await;
        let before = keys(&store, NAME).await;
        let missing = entry("name 4", 4);
        let dangling = [entry("another name", 7), entry("name 99", 99)];
        let tx = store.context().transaction().expect("open").clone();
        tx.clear(&row(&store, NAME, &missing));
        dangling.iter().for_each(|entry| tx.set(&row(&store, NAME, entry), b""));
        commit(store).await;
        let of_both = [(Scrub::Missing, vec![missing]), (Scrub::Dangling, dangling.to_vec())];
        for (scrub, expected) in of_both {
            for repair in [false, true] {
                let report = stores.scrub_index(&db, NAME, scrub, repair, 3).await.expect("scrubbed");
                assert_eq!(report.found, expected);
            }
            let report = stores.scrub_index(&db, NAME, scrub, true, 3).await.expect("scrubbed");
            assert_eq!(report.found, vec![]);
        }
        assert_eq!(keys(&open(&stores, &db).await, NAME).await, before);
    });
}

#[test]
fn ranked_sets_are_repaired_with_the_entries() {
    on_cluster(|db| async move {
        let stores = filled(&db).await;
        for index in [RANK, COUNTED] {
            let store = open(&stores, &db).await;
            let tx = store.context().transaction().expect("open").clone();
            // Score 1 loses one of its two entries, score 77 has an entry of no record; neither is in the
            // ranked set.
            tx.clear(&row(&store, index, &entry(1, 2)));
            tx.set(&row(&store, index, &entry(77, 55)), b"");
            commit(store).await;
            for scrub in [Scrub::Missing, Scrub::Dangling] {
                let report = stores.scrub_index(&db, index, scrub, true, 4).await.expect("scrubbed");
                assert_eq!(report.found.len(), 1);
            }
            let store = open(&stores, &db).await;
            let scores = if index == RANK { 5 } else { 10 };
            assert_eq!(count_scores(at(&store, index), &Tuple::empty(), Serializable).await, Ok(scores));
            let below = count_below(at(&store, index), &2.into(), Serializable).await;
            assert_eq!(below, Ok(scores * 2 / 5));
            assert_eq!(keys(&store, index).await.len(), 10);
        }
    });
}

/// The record gets the dangling entry's key while the scrub removes it.
#[test]
fn a_scrub_does_not_remove_an_entry_that_a_save_writes() {
    on_cluster(|db| async move {
        let stores = filled(&db).await;
        for scrub_first in [true, false] {
            let store = open(&stores, &db).await;
            save(&store, 7, "name 7", 1).await;
            let dangling = entry("another name", 7);
            store.context().transaction().expect("open").set(&row(&store, NAME, &dangling), b"");
            commit(store).await;
            let (scrubbing, saving) = (open(&stores, &db).await, open(&stores, &db).await);
            let scrubbed = scrubbing.scrub_index(NAME, Scrub::Dangling, true, Continuation::Start, 100).await;
            assert_eq!(scrubbed.expect("scrubbed").found, slice::from_ref(&dangling));
            save(&saving, 7, "another name", 1).await;
            match scrub_first {
                true => {
                    commit(scrubbing).await;
                    commit(saving).await;
                }
                false => {
                    commit(saving).await;
                    let late = scrubbing.context().commit().await;
                    assert_eq!(late, Err(Error::Fdb(FdbError::NOT_COMMITTED)));
                }
            }
            assert!(
                keys(&open(&stores, &db).await, NAME).await.contains(&(dangling.key, dangling.primary_key))
            );
        }
    });
}
