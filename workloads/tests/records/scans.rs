//! Scans of records and of indexes: pages of any size, limits, continuations, ranges.

use crate::{
    fixture::{Store, Tx, all, commit, open, stores},
    on_cluster,
    schema::{build, builder, message, rows, save, simple, text, with},
};
use bytes::Bytes;
use prost_reflect::{DynamicMessage, Value};
use shaketable_record::{
    cursor::{
        BoxCursor, Continuation, Cursor, CursorExt, Endpoint, Limits, Next, Page, Spent, Stop, TupleRange,
    },
    error::Error,
    index::{IndexEntry, IndexScan},
    metadata::RecordMetaData,
    store::{RecordStoreBuilder, StoredRecord},
    value::{Tuple, Value as Element},
};
use shaketable_tx::{Database, Db, Transaction};
use std::{sync::Arc, time::Duration};

const BY_TEXT: &str = "MySimpleRecord$str_value_indexed";

/// Records of one and of several rows, with versions.
fn records(meta_data: &RecordMetaData) -> Vec<DynamicMessage> {
    let record = |rec_no: i64| {
        let blob = Bytes::from(vec![rec_no as u8; if rec_no % 3 == 0 { 250_000 } else { 10 }]);
        let texts = ["b", "a", "c"].map(text);
        let by = texts[rec_no as usize % 3].clone();
        simple(meta_data, rec_no, [("blob", Value::Bytes(blob)), ("str_value_indexed", by)])
    };
    (1..=7).map(record).collect()
}

async fn filled(db: &Db) -> (Arc<RecordMetaData>, RecordStoreBuilder<Tx>) {
    let mut builder = builder();
    builder.set_store_record_versions(true).unwrap();
    let meta_data = build(&builder);
    let stores = stores("s", meta_data.clone());
    save(&stores, db, &records(&meta_data)).await;
    (meta_data, stores)
}

fn scan_records(
    store: &Store,
    reverse: bool,
    from: Continuation,
    spent: &Spent,
) -> Result<BoxCursor<StoredRecord>, Error> {
    store.scan_records(TupleRange::all(), reverse, from, spent)
}

fn scan_index(
    store: &Store,
    reverse: bool,
    from: Continuation,
    spent: &Spent,
) -> Result<BoxCursor<IndexEntry>, Error> {
    store.scan_index(BY_TEXT, IndexScan::ByValue, TupleRange::all(), reverse, from, spent)
}

type Scanner<R> = fn(&Store, bool, Continuation, &Spent) -> Result<BoxCursor<R>, Error>;

/// All pages of a scan, each in a transaction of its own, with the continuation stored as bytes in between.
async fn pages<R: Send + 'static>(
    db: &Db,
    stores: &RecordStoreBuilder<Tx>,
    scan: Scanner<R>,
    reverse: bool,
    limits: &Limits,
) -> Vec<Page<R>> {
    let (mut from, mut pages) = (Continuation::Start, Vec::new());
    loop {
        let store = open(stores, db).await;
        let spent = Spent::new(limits.clone());
        let cursor = scan(&store, reverse, from.clone(), &spent).expect("a scan");
        let page = cursor.limited(&spent, from).to_list().await.expect("a page");
        let next = page.continuation.to_bytes();
        pages.push(page);
        match next {
            Some(bytes) => from = Continuation::from_bytes(bytes),
            None => return pages,
        }
    }
}

/// Compares the pages of every size with one scan of everything.
async fn compare<R: Clone + Send + PartialEq + std::fmt::Debug + 'static>(db: &Db, scan: Scanner<R>) {
    let (_, stores) = filled(db).await;
    let mut both = Vec::new();
    for reverse in [false, true] {
        let whole = pages(db, &stores, scan, reverse, &Limits::default()).await;
        assert_eq!((whole.len(), whole[0].rows.len(), whole[0].stop), (1, 7, Stop::Exhausted));
        let whole = &whole[0].rows;
        for size in 1..=8 {
            let scanned = Limits { scanned: Some(size), ..Limits::default() };
            for (limits, stop) in [(Limits::rows(size), Stop::Rows), (scanned, Stop::Scanned)] {
                let pages = pages(db, &stores, scan, reverse, &limits).await;
                let (last, full) = pages.split_last().expect("a page");
                assert!(full.iter().all(|page| page.rows.len() == size && page.stop == stop), "{size}");
                assert!(last.rows.len() < size && last.stop == Stop::Exhausted, "{size}");
                assert_eq!(pages.iter().flat_map(|page| page.rows.clone()).collect::<Vec<_>>(), *whole);
            }
        }
        both.push(whole.clone());
    }
    both[1].reverse();
    assert_eq!(both[0], both[1]);
}

#[test]
fn pages_of_records_of_any_size_are_all_records() {
    on_cluster(|db| async move { compare(&db, scan_records).await });
}

#[test]
fn pages_of_entries_of_any_size_are_all_entries() {
    on_cluster(|db| async move { compare(&db, scan_index).await });
}

#[test]
fn a_scan_stops_at_each_limit_with_the_row_that_reaches_it() {
    on_cluster(|db| async move {
        let (_, stores) = filled(&db).await;
        let pages = |limits: Limits| {
            let (db, stores) = (db.clone(), stores.clone());
            async move { pages(&db, &stores, scan_records, false, &limits).await }
        };
        let bytes = pages(Limits { bytes: Some(1), ..Limits::default() }).await;
        assert_eq!(bytes.len(), 8, "one record each, and the end");
        assert!(bytes[..7].iter().all(|page| page.rows.len() == 1 && page.stop == Stop::Bytes));
        let bytes = pages(Limits { bytes: Some(250_000), ..Limits::default() }).await;
        let lengths: Vec<_> = bytes.iter().map(|page| page.rows.len()).collect();
        assert_eq!(lengths, [3, 3, 1], "records 3 and 6 are of more than that");

        let no_time = Limits { time: Some((Duration::ZERO, db.env().clone())), ..Limits::default() };
        let time = pages(no_time).await;
        assert_eq!(time.len(), 8);
        assert!(time[..7].iter().all(|page| page.rows.len() == 1 && page.stop == Stop::Time));
        let an_hour =
            Limits { time: Some((Duration::from_secs(3_600), db.env().clone())), ..Limits::default() };
        assert_eq!(pages(an_hour).await.len(), 1);
        // The clock is the cluster's: a scan that is not asked for a while stops.
        let store = open(&stores, &db).await;
        let second = Limits { time: Some((Duration::from_secs(1), db.env().clone())), ..Limits::default() };
        let mut scan = scan_records(&store, false, Continuation::Start, &Spent::new(second)).unwrap();
        assert!(matches!(scan.next().await, Ok(Next::Row(..))));
        assert!(matches!(scan.next().await, Ok(Next::Row(..))));
        db.env().sleep(Duration::from_secs(1)).await;
        assert!(matches!(scan.next().await, Ok(Next::Stopped(Stop::Time, _))));
    });
}

#[test]
fn a_filter_makes_progress_although_it_keeps_nothing() {
    on_cluster(|db| async move {
        let (_, stores) = filled(&db).await;
        let nothing: Scanner<StoredRecord> =
            |store, reverse, from, spent| Ok(scan_records(store, reverse, from, spent)?.filter(|_| false));
        let limits = Limits { scanned: Some(2), ..Limits::rows(1) };
        let found = pages(&db, &stores, nothing, false, &limits).await;
        assert_eq!(found.len(), 4);
        assert!(found.iter().all(|page| page.rows.is_empty()));
        let even: Scanner<i64> = |store, reverse, from, spent| {
            let rec_no = |record: StoredRecord| match record.primary_key.elements() {
                [Element::Int(number)] => *number,
                other => panic!("{other:?}"),
            };
            Ok(scan_records(store, reverse, from, spent)?.map(rec_no).filter(|rec_no| rec_no % 2 == 0))
        };
        let found = pages(&db, &stores, even, true, &Limits::rows(2)).await;
        assert_eq!(found.into_iter().map(|page| page.rows).collect::<Vec<_>>(), [vec![6, 4], vec![2]]);
        let store = open(&stores, &db).await;
        let scan = even(&store, false, Continuation::Start, &Spent::new(Limits::default())).unwrap();
        assert_eq!(all(scan.skip(2)).await, [6]);
    });
}

#[test]
fn a_stream_has_the_continuation_beside_each_row() {
    on_cluster(|db| async move {
        let (_, stores) = filled(&db).await;
        let store = open(&stores, &db).await;
        let spent = Spent::new(Limits::default());
        let whole = all(scan_records(&store, false, Continuation::Start, &spent).unwrap()).await;
        let stream = scan_records(&store, false, Continuation::Start, &spent).unwrap().into_stream();
        let items: Vec<_> = futures::StreamExt::collect(stream).await;
        let (last, rows) = items.split_last().expect("an item");
        assert_eq!(*last, Ok(Next::Stopped(Stop::Exhausted, Continuation::End)));
        for (i, item) in rows.iter().enumerate() {
            let Ok(Next::Row(row, after)) = item else { panic!("{item:?}") };
            assert_eq!(*row, whole[i]);
            let rest = scan_records(&store, false, after.clone(), &Spent::new(Limits::default())).unwrap();
            assert_eq!(all(rest).await, whole[i + 1..]);
        }
        let nothing = scan_records(&store, false, Continuation::End, &spent).unwrap();
        assert_eq!(all(nothing).await, []);
        let none = scan_records(&store, false, Continuation::Start, &spent).unwrap();
        let none = none.take_rows(0, Continuation::Start).to_list().await.unwrap();
        assert_eq!((none.rows.len(), none.stop, none.continuation), (0, Stop::Rows, Continuation::Start));
    });
}

#[test]
fn a_continuation_of_another_scan_is_refused() {
    on_cluster(|db| async move {
        let (meta_data, stores) = filled(&db).await;
        let store = open(&stores, &db).await;
        let spent = Spent::new(Limits::default());
        let mut scan = scan_records(&store, false, Continuation::Start, &spent).unwrap();
        let Ok(Next::Row(_, after)) = scan.next().await else { panic!("a record") };
        let refused = |result: Option<Error>| {
            assert!(matches!(result, Some(Error::Continuation(_))), "{result:?}");
        };
        assert!(scan_records(&store, false, after.clone(), &spent).is_ok());
        refused(scan_records(&store, true, after.clone(), &spent).err());
        refused(scan_index(&store, false, after.clone(), &spent).err());
        let part = TupleRange::between(Endpoint::Open, Endpoint::Inclusive(Tuple::from(5)));
        refused(store.scan_records(part, false, after.clone(), &spent).err());
        let other = self::stores("other", meta_data);
        let elsewhere = open(&other, &db).await;
        refused(scan_records(&elsewhere, false, after.clone(), &spent).err());
        let bytes = after.to_bytes().unwrap();
        for torn in 1..bytes.len() {
            let torn = Continuation::from_bytes(bytes.slice(..torn));
            refused(scan_records(&store, false, torn, &spent).err());
        }
    });
}

#[test]
fn a_scan_sees_what_its_transaction_has_written_with_versions() {
    on_cluster(|db| async move {
        let (meta_data, stores) = filled(&db).await;
        let store = open(&stores, &db).await;
        let mut expected = Vec::new();
        for rec_no in 0..=8 {
            let primary_key = Tuple::from(rec_no);
            match rec_no {
                1 | 6 => assert_eq!(store.delete_record(&primary_key).await, Ok(true)),
                0 | 3 | 8 => expected.push(store.save_record(&simple(&meta_data, rec_no, [])).await.unwrap()),
                7 => {
                    // Saved, deleted and saved again.
                    store.save_record(&simple(&meta_data, rec_no, [])).await.unwrap();
                    store.delete_record(&primary_key).await.unwrap();
                    expected.push(store.save_record(&simple(&meta_data, rec_no, [])).await.unwrap());
                }
                5 => {
                    store.save_record(&simple(&meta_data, rec_no, [])).await.unwrap();
                    store.delete_record(&primary_key).await.unwrap();
                }
                _ => expected.push(store.load_record(&primary_key).await.unwrap().unwrap()),
            }
        }
        assert!(expected.iter().any(|record| !record.version.as_ref().unwrap().is_complete()));
        for reverse in [false, true] {
            let found =
                all(scan_records(&store, reverse, Continuation::Start, &Spent::new(Limits::default()))
                    .unwrap());
            assert_eq!(found.await, expected);
            for size in 1..4 {
                let (mut from, mut found) = (Continuation::Start, Vec::new());
                while from != Continuation::End {
                    let limits = Limits { scanned: Some(size), ..Limits::default() };
                    let page =
                        scan_records(&store, reverse, from, &Spent::new(limits)).unwrap().to_list().await;
                    let page = page.unwrap();
                    found.extend(page.rows);
                    from = page.continuation;
                }
                assert_eq!(found, expected, "{size}");
            }
            expected.reverse();
        }
        commit(store).await;
        let again = with(&stores, &db, async |store| {
            all(scan_records(store, false, Continuation::Start, &Spent::new(Limits::default())).unwrap())
                .await
        });
        let again: Vec<_> = again.await.into_iter().map(|record| record.primary_key).collect();
        assert_eq!(again, expected.into_iter().map(|record| record.primary_key).collect::<Vec<_>>());
    });
}

#[test]
fn ranges_are_those_of_the_tuples_that_begin_with_their_ends() {
    on_cluster(|db| async move {
        let meta_data = crate::schema::meta_data();
        let stores = stores("s", meta_data.clone());
        let texts = ["", "a", "a\0", "a\0b", "aa", "b"];
        let records = texts
            .iter()
            .zip(1..)
            .map(|(value, rec_no)| simple(&meta_data, rec_no, [("str_value_indexed", text(value))]));
        save(&stores, &db, &records.chain([simple(&meta_data, 7, [])]).collect::<Vec<_>>()).await;
        let store = open(&stores, &db).await;
        let mut entries: Vec<Tuple> =
            texts.iter().zip(1..).map(|(text, rec_no)| Tuple::from((*text, rec_no))).collect();
        entries.push(Tuple::from((None::<i64>, 7)));
        entries.sort();
        let mut ends = vec![Endpoint::Open];
        for tuple in entries.iter().map(|entry| entry.split_at(1).0).chain(entries.clone()) {
            ends.extend([Endpoint::Inclusive(tuple.clone()), Endpoint::Exclusive(tuple)]);
        }
        for low in &ends {
            for high in &ends {
                let is_in = |entry: &&Tuple| {
                    let low = match low {
                        Endpoint::Open => true,
                        Endpoint::Inclusive(low) => *entry >= low,
                        Endpoint::Exclusive(low) => *entry > low && !entry.starts_with(low),
                    };
                    let high = match high {
                        Endpoint::Open => true,
                        Endpoint::Inclusive(high) => *entry < high || entry.starts_with(high),
                        Endpoint::Exclusive(high) => *entry < high,
                    };
                    low && high
                };
                let range = TupleRange::between(low.clone(), high.clone());
                let (from, spent) = (Continuation::Start, Spent::new(Limits::default()));
                let found =
                    store.scan_index(BY_TEXT, IndexScan::ByValue, range, false, from, &spent).unwrap();
                let found: Vec<_> = all(found).await;
                let found: Vec<_> = found.iter().map(|e| e.key.followed_by(&e.primary_key)).collect();
                assert_eq!(
                    found,
                    entries.iter().filter(is_in).cloned().collect::<Vec<_>>(),
                    "{low:?} {high:?}"
                );
            }
        }
    });
}

#[test]
fn an_index_is_scanned_by_what_its_type_has_and_only_if_it_is_there() {
    on_cluster(|db| async move {
        let (_, stores) = filled(&db).await;
        let store = open(&stores, &db).await;
        let scan = |index: &str, scan: IndexScan| {
            let (from, spent) = (Continuation::Start, Spent::new(Limits::default()));
            store.scan_index(index, scan, TupleRange::all(), false, from, &spent).err()
        };
        assert_eq!(scan("none", IndexScan::ByValue), Some(Error::UnknownIndex("none".into())));
        assert!(matches!(scan(BY_TEXT, IndexScan::ByRank), Some(Error::IndexState { .. })));
        assert!(matches!(scan(BY_TEXT, IndexScan::ByGroup), Some(Error::IndexState { .. })));
        store.mark_index_disabled(BY_TEXT).await.unwrap();
        let refused = scan(BY_TEXT, IndexScan::ByValue).expect("disabled");
        assert_eq!(refused.to_string(), format!("index {BY_TEXT}: it is disabled"));
        store.mark_index_write_only(BY_TEXT).await.unwrap();
        assert!(matches!(scan(BY_TEXT, IndexScan::ByValue), Some(Error::IndexState { .. })));
    });
}

#[test]
fn a_scan_conflicts_with_changes_where_it_has_read() {
    on_cluster(|db| async move {
        let (meta_data, stores) = filled(&db).await;
        for (rec_no, conflicts) in [(1, true), (7, false)] {
            let store = open(&stores, &db).await;
            let limits = Limits { scanned: Some(2), ..Limits::default() };
            scan_records(&store, false, Continuation::Start, &Spent::new(limits))
                .unwrap()
                .to_list()
                .await
                .unwrap();
            store.context().transaction().unwrap().set(b"elsewhere", b"");
            save(&stores, &db, &[simple(&meta_data, rec_no, [])]).await;
            assert_eq!(store.context().commit().await.is_err(), conflicts, "record {rec_no}");
        }
        assert!(!rows(&db).await.is_empty());
        let other = message(&meta_data, "MyOtherRecord", [("rec_no", Value::I64(100))]);
        save(&stores, &db, &[other]).await;
    });
}
