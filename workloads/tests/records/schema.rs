//! The records that these tests store.

use crate::{
    begin,
    fixture::{Store, Tx, all, at, commit, keys, open},
};
use prost_reflect::{DynamicMessage, ReflectMessage, Value};
use shaketable_record::{
    cursor::{Continuation, Limits, Spent, TupleRange},
    metadata::{Index, RecordMetaData, RecordMetaDataBuilder, compile, index_types},
    store::{RecordStoreBuilder, StoredRecord},
};
use shaketable_tx::{Db, Isolation::Serializable, KeyValue, RangeOption, Transaction};
use std::{collections::BTreeSet, sync::Arc};

const RECORDS: &str = r#"
    syntax = "proto2";
    package test;
    import "record_metadata_options.proto";
    message MySimpleRecord {
        required int64 rec_no = 1 [(com.apple.foundationdb.record.field).primary_key = true];
        optional string str_value_indexed = 2 [(com.apple.foundationdb.record.field).index = {}];
        optional int32 num_value_unique = 3 [(com.apple.foundationdb.record.field).index = { unique: true }];
        optional int32 num_value_2 = 4;
        optional int32 num_value_3_indexed = 5 [(com.apple.foundationdb.record.field).index = {}];
        repeated string tags = 6;
        map<string, int32> counts = 7;
        optional bytes blob = 8;
    }
    message MyOtherRecord {
        required int64 rec_no = 1 [(com.apple.foundationdb.record.field).primary_key = true];
        optional int32 num_value_2 = 2 [(com.apple.foundationdb.record.field).index = {}];
    }
    message RecordTypeUnion {
        optional MySimpleRecord _MySimpleRecord = 1;
        optional MyOtherRecord _MyOtherRecord = 2;
    }
"#;

/// A builder of the meta-data of the overview's records, and of another type.
pub fn builder() -> RecordMetaDataBuilder {
    let mut builder = RecordMetaData::builder();
    builder.set_records(&compile(RECORDS).expect("valid records")).expect("valid options");
    builder
}

/// The overview's meta-data.
pub fn meta_data() -> Arc<RecordMetaData> {
    build(&builder())
}

pub fn build(builder: &RecordMetaDataBuilder) -> Arc<RecordMetaData> {
    Arc::new(builder.build().expect("valid meta-data"))
}

/// The meta-data with a further index on the type of the overview.
pub fn with_index(index: Index) -> Arc<RecordMetaData> {
    let mut builder = builder();
    builder.add_index(Some("MySimpleRecord"), index).expect("a new index");
    build(&builder)
}

/// A message of a record type, with these fields.
pub fn message<'a>(
    meta_data: &RecordMetaData,
    record_type: &str,
    fields: impl IntoIterator<Item = (&'a str, Value)>,
) -> DynamicMessage {
    let of = &meta_data.record_type(record_type).expect("a record type").message;
    let mut message = DynamicMessage::new(of.clone());
    fields.into_iter().for_each(|(name, value)| message.set_field_by_name(name, value));
    assert_eq!(message.descriptor(), *of);
    message
}

/// A record of the overview's type.
pub fn simple<'a>(
    meta_data: &RecordMetaData,
    rec_no: i64,
    fields: impl IntoIterator<Item = (&'a str, Value)>,
) -> DynamicMessage {
    message(meta_data, "MySimpleRecord", [("rec_no", Value::I64(rec_no))].into_iter().chain(fields))
}

pub fn text(text: &str) -> Value {
    Value::String(text.into())
}

/// Runs `body` on the store in a transaction, which then commits.
pub async fn with<R>(stores: &RecordStoreBuilder<Tx>, db: &Db, body: impl AsyncFnOnce(&Store) -> R) -> R {
    let store = open(stores, db).await;
    let result = body(&store).await;
    commit(store).await;
    result
}

/// Saves records, in one transaction.
pub async fn save(stores: &RecordStoreBuilder<Tx>, db: &Db, records: &[DynamicMessage]) {
    with(stores, db, async |store| {
        for record in records {
            store.save_record(record).await.expect("a valid record");
        }
    })
    .await;
}

/// All rows of the database.
pub async fn rows(db: &Db) -> Vec<KeyValue> {
    begin(db).get_range_all(RangeOption::new("", "\u{7f}"), Serializable).await.expect("a look")
}

/// Panics unless every VALUE index that is readable has the keys of the store's records, and nothing else.
pub async fn assert_indexes(store: &Store) {
    let scan =
        store.scan_records(TupleRange::all(), false, Continuation::Start, &Spent::new(Limits::default()));
    let records = all(scan.expect("a scan")).await;
    for index in store.meta_data().indexes().filter(|index| index.kind == index_types::VALUE) {
        if !store.is_scannable(&index.name).expect("an index") {
            continue;
        }
        let of = |record: &StoredRecord| at(store, &index.name).keys(record).expect("keys");
        let entries = records.iter().flat_map(|record| {
            of(record).into_iter().map(|key| (key.tuple(), record.primary_key.clone())).collect::<Vec<_>>()
        });
        let expected: BTreeSet<_> = entries.collect();
        assert_eq!(
            keys(store, &index.name).await,
            expected.into_iter().collect::<Vec<_>>(),
            "{}",
            index.name
        );
    }
}
