//! Indexes that an application maintains itself.

use crate::{
    fixture::{Tx, all, commit, meta_data, open, scan, stores},
    on_cluster,
    schema::{message, text},
};
use foundationdb_tuple::Element;
use futures::future::{BoxFuture, FutureExt, ready};
use parking_lot::Mutex;
use prost_reflect::Value;
use shaketable_record::{
    cursor::{BoxCursor, Continuation, Spent, TupleRange},
    error::Error,
    index::{IndexAt, IndexEntry, IndexMaintainer, IndexScan, Registry},
    metadata::{Extensions, Index, MetaDataError, RecordMetaData, index_types},
    store::{Part, StoredRecord},
    value::Tuple,
};
use shaketable_tx::Transaction;
use std::{collections::BTreeSet, sync::Arc};

const RECORDS: &str = r#"
    syntax = "proto2";
    import "record_metadata_options.proto";
    message Book {
        optional int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true];
        optional string title = 2;
    }
    message RecordTypeUnion { optional Book _Book = 1; }
"#;

/// Keeps the length of a text instead of the text; notes what it is called for.
#[derive(Clone, Default)]
struct Lengths {
    calls: Arc<Mutex<Vec<(bool, bool)>>>,
}

impl Lengths {
    fn rows(at: IndexAt<'_, Tx>, record: Option<&StoredRecord>) -> Result<BTreeSet<Vec<u8>>, Error> {
        let Some(record) = record else { return Ok(BTreeSet::new()) };
        let space = at.space(Part::Indexes);
        let length = |key: Tuple| match key.get(0) {
            Some(Element::String(text)) => text.chars().count() as i64,
            _ => 0,
        };
        let row = |length: i64| {
            [space.bytes(), &Tuple::from(length).followed_by(&record.primary_key).pack()].concat()
        };
        Ok(at.keys(record)?.into_iter().map(|key| row(length(key.tuple()))).collect())
    }

    fn update_now(
        &self,
        at: IndexAt<'_, Tx>,
        old: Option<&StoredRecord>,
        new: Option<&StoredRecord>,
    ) -> Result<(), Error> {
        self.calls.lock().push((old.is_some(), new.is_some()));
        let tx = at.transaction()?;
        Self::rows(at, old)?.iter().for_each(|row| tx.clear(row));
        Self::rows(at, new)?.iter().for_each(|row| tx.set(row, b""));
        Ok(())
    }
}

impl IndexMaintainer<Tx> for Lengths {
    fn validate(&self, index: &Index, _: &RecordMetaData) -> Result<(), String> {
        match index.expression.columns() {
            1 => Ok(()),
            columns => Err(format!("{columns} columns instead of 1")),
        }
    }

    fn is_idempotent(&self, _: &Index) -> bool {
        true
    }

    fn check<'a>(
        &'a self,
        at: IndexAt<'a, Tx>,
        _: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let fit = Self::rows(at, new).and_then(|rows| rows.iter().try_for_each(|row| at.fits(row)));
        ready(fit).boxed()
    }

    fn update<'a>(
        &'a self,
        at: IndexAt<'a, Tx>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        ready(self.update_now(at, old, new)).boxed()
    }

    fn scan(
        &self,
        at: IndexAt<'_, Tx>,
        _: IndexScan,
        range: TupleRange,
        reverse: bool,
        from: Continuation,
        spent: &Spent,
    ) -> Result<BoxCursor<IndexEntry>, Error> {
        at.scan_entries(&range, reverse, from, spent)
    }

    fn can_delete_where(&self, _: IndexAt<'_, Tx>, _: &Tuple) -> bool {
        false
    }

    fn delete_where<'a>(&'a self, _: IndexAt<'a, Tx>, _: &'a Tuple) -> BoxFuture<'a, Result<bool, Error>> {
        ready(Ok(false)).boxed()
    }
}

fn with_lengths(columns: &[&str]) -> RecordMetaData {
    let expression = shaketable_record::expression::concat(columns.iter().copied());
    meta_data(RECORDS, |builder| {
        builder.register_index_type("lengths");
        builder.add_index(Some("Book"), Index::new("length", expression).kind("lengths")).expect("an index");
    })
}

#[test]
fn a_custom_index_is_maintained_and_scanned() {
    on_cluster(|db| async move {
        let lengths = Lengths::default();
        let mut registry: Registry<Tx> = Registry::standard();
        registry.register("lengths", lengths.clone());
        let stores = stores("books", with_lengths(&["title"])).registry(registry);
        let store = open(&stores, &db).await;
        let save = async |id: i64, title: &str| {
            let fields = [("id", Value::I64(id)), ("title", text(title))];
            store.save_record(&message(store.meta_data(), "Book", fields)).await.expect("saved");
        };
        save(1, "Emma").await;
        save(2, "Persuasion").await;
        save(3, "Ulysses").await;
        save(2, "Dune").await;
        assert!(store.delete_record(&3.into()).await.expect("deleted"));
        let (insert, update, delete) = ((false, true), (true, true), (true, false));
        assert_eq!(*lengths.calls.lock(), [insert, insert, insert, update, delete]);
        let entries = scan(&store, "length", IndexScan::ByValue, TupleRange::all_of(4), false);
        let found: Vec<Tuple> =
            all(entries.expect("a scan")).await.into_iter().map(|entry| entry.primary_key).collect();
        assert_eq!(found, [Tuple::from(1), Tuple::from(2)]);
        let maintainer = store.registry().get("lengths").expect("registered");
        assert!(!maintainer.has_values(), "the planner does not know it");
        let refused = store.delete_where(&1.into()).await;
        assert!(matches!(refused, Err(Error::IndexState { .. })), "{refused:?}");
        commit(store).await;
    });
}

#[test]
fn an_index_without_a_maintainer_is_refused() {
    on_cluster(|db| async move {
        let context = || shaketable_record::store::RecordContext::open(&db).expect("a transaction");
        let unknown = stores("books", with_lengths(&["title"])).create(&context()).await;
        let kind = String::from("lengths");
        assert_eq!(unknown.map(drop), Err(Error::UnknownIndexType { index: "length".into(), kind }));
        let mut registry: Registry<Tx> = Registry::standard();
        registry.register("lengths", Lengths::default());
        let two = stores("books", with_lengths(&["title", "id"])).registry(registry).create(&context()).await;
        assert!(matches!(two.map(drop), Err(Error::InvalidIndex { .. })));
        let mut builder = with_lengths(&["title"]).to_builder();
        builder.set_extensions(Extensions::default());
        let refused = builder.build().map(drop);
        assert!(matches!(refused, Err(MetaDataError::UnknownIndexType { .. })), "{refused:?}");
        let options = Index::new("rank", "id").kind(index_types::RANK).option("rankNLevels", "9");
        let nine = meta_data(RECORDS, |builder| drop(builder.add_index(None, options).map(drop)));
        let refused = stores("books", nine).create(&context()).await;
        assert!(matches!(refused.map(drop), Err(Error::InvalidIndex { .. })));
    });
}
