//! Stores of the tests of indexes.

use foundationdb_tuple::Subspace;
use shaketable_record::{
    cursor::{BoxCursor, Continuation, CursorExt, Limits, Spent, Stop, TupleRange},
    error::Error,
    index::{IndexAt, IndexEntry, IndexScan},
    metadata::{RecordMetaData, compile},
    store::{RecordContext, RecordStore, RecordStoreBuilder},
    value::Tuple,
};
pub use shaketable_tx::{Db, Tx};
use std::{future::Future, sync::Arc};

pub type Store = RecordStore<Tx>;

/// How a store is opened.
pub fn stores(subspace: &str, meta_data: impl Into<Arc<RecordMetaData>>) -> RecordStoreBuilder<Tx> {
    RecordStore::builder(Subspace::from(subspace), meta_data)
}

/// Meta-data of records that are described in this text, after `add` was called.
pub fn meta_data(
    text: &str,
    add: impl FnOnce(&mut shaketable_record::metadata::RecordMetaDataBuilder),
) -> RecordMetaData {
    let mut builder = RecordMetaData::builder();
    builder.set_records(&compile(text).expect("a file of records")).expect("records");
    add(&mut builder);
    builder.build().expect("meta-data")
}

/// The store in a new transaction.
pub async fn open(stores: &RecordStoreBuilder<Tx>, db: &Db) -> Store {
    let context = RecordContext::open(db).expect("a transaction");
    stores.create_or_open(&context).await.expect("a store")
}

/// Commits what was done on a store; nobody else writes.
pub async fn commit(store: Store) {
    store.context().commit().await.expect("nobody else writes");
}

/// An index of a store.
pub fn at<'a>(store: &'a Store, index: &str) -> IndexAt<'a, Tx> {
    IndexAt { store, index: store.index(index).expect("an index") }
}

/// A scan of an index from its beginning, without limits.
pub fn scan(
    store: &Store,
    index: &str,
    scan: IndexScan,
    range: TupleRange,
    reverse: bool,
) -> Result<BoxCursor<IndexEntry>, Error> {
    store.scan_index(index, scan, range, reverse, Continuation::Start, &Spent::new(Limits::default()))
}

/// All rows of a cursor.
pub fn all<R: Send + 'static>(cursor: BoxCursor<R>) -> impl Future<Output = Vec<R>> {
    let page = cursor.to_list();
    async move {
        let page = page.await.expect("read");
        assert_eq!(page.stop, Stop::Exhausted);
        page.rows
    }
}

/// The keys of an index with the primary keys of their records.
pub async fn keys(store: &Store, index: &str) -> Vec<(Tuple, Tuple)> {
    let entries = scan(store, index, IndexScan::ByValue, TupleRange::all(), false).expect("a scan");
    all(entries).await.into_iter().map(|entry| (entry.key, entry.primary_key)).collect()
}

/// The groups of an index of aggregates.
pub async fn groups(store: &Store, index: &str) -> Vec<(Tuple, Tuple)> {
    let groups = scan(store, index, IndexScan::ByGroup, TupleRange::all(), false).expect("a scan");
    all(groups).await.into_iter().map(|entry| (entry.key, entry.value)).collect()
}
