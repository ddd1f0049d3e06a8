//! The Record Layer: a store with indexes of every kind, and meta-data that is saved.

use crate::{Layer, calls::Calls, space, written};
use foundationdb_tuple::Subspace;
use prost_reflect::DynamicMessage;
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits, Spent, TupleRange},
    error::Error,
    expression::{KeyExpression, field},
    index::{
        IndexScan,
        aggregate::Aggregate,
        build::Batch,
        function::{AggregateFunction, rank},
        rank::COUNT_DUPLICATES,
        scrub::Scrub,
    },
    metadata::{Extensions, Index, MetaDataStore, RecordMetaData, compile, index_types},
    query::{Query, RecordQuery},
    store::{RecordContext, RecordStore, RecordStoreBuilder},
    value::Tuple,
};
use shaketable_sim::client::{SimDatabase, SimTransaction};
use shaketable_tx::Isolation::Snapshot;

const RECORDS: &str = r#"
    syntax = "proto2";
    import "record_metadata_options.proto";
    option (com.apple.foundationdb.record.schema).store_record_versions = true;
    message Player {
        optional int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true];
        optional string name = 2 [(com.apple.foundationdb.record.field).index = { unique: true }];
        optional int64 score = 3 [(com.apple.foundationdb.record.field).index = { type: "rank" }];
        repeated string tags = 4 [(com.apple.foundationdb.record.field).index = {}];
        optional bytes blob = 5;
    }
    message RecordTypeUnion { optional Player _Player = 1; }
"#;

const INDEXES: [(&str, IndexScan); 9] = [
    ("Player$name", IndexScan::ByValue),
    ("Player$score", IndexScan::ByValue),
    ("Player$score", IndexScan::ByRank),
    ("Player$tags", IndexScan::ByValue),
    ("counted", IndexScan::ByRank),
    ("version", IndexScan::ByValue),
    ("count", IndexScan::ByGroup),
    ("sum", IndexScan::ByGroup),
    ("most", IndexScan::ByGroup),
];

pub struct Records {
    stores: RecordStoreBuilder<SimTransaction>,
    meta_data: MetaDataStore,
}

impl Records {
    fn player(&self, id: i64, fields: &str) -> DynamicMessage {
        let of = &self.stores.meta_data().record_type("Player").expect("the type").message;
        let text = format!("id: {id} {fields}");
        DynamicMessage::parse_text_format(of.clone(), &text).expect("a player")
    }

    async fn open(&self, tx: SimTransaction) -> Result<RecordStore<SimTransaction>, Error> {
        self.stores.open(&RecordContext::within(tx)).await
    }
}

impl Layer for Records {
    const NAME: &'static str = "record";

    fn new() -> Records {
        let mut builder = RecordMetaData::builder();
        builder.set_records(&compile(RECORDS).expect("a file")).expect("records");
        let counted = Index::new("counted", field("score")).kind(index_types::RANK);
        let group = || KeyExpression::from("name");
        for index in [
            counted.option(COUNT_DUPLICATES, "true"),
            Index::new("version", KeyExpression::Version).kind(index_types::VERSION),
            Index::new("count", group().group_last(0)).kind(index_types::COUNT),
            Index::new("sum", field("score").group_by("name")).kind(index_types::SUM),
            Index::new("most", field("score").group_by("name")).kind(index_types::MAX_EVER),
        ] {
            builder.add_index(Some("Player"), index).expect("an index");
        }
        let stores = RecordStore::builder(space(), builder.build().expect("meta-data"));
        let meta_data = MetaDataStore::new(Subspace::from("foreign meta-data"), Extensions::default());
        Records { stores, meta_data }
    }

    fn spaces(&self) -> Vec<bytes::Bytes> {
        [space(), Subspace::from("foreign meta-data")].map(|space| space.into_bytes().into()).into()
    }

    async fn write(&self, db: &SimDatabase) {
        written(db, |tx| async move {
            self.meta_data.save_record_meta_data(&tx, self.stores.meta_data()).await?;
            let context = RecordContext::within(tx);
            let store = self.stores.create_or_open(&context).await?;
            store.mark_index_write_only("Player$name").await?;
            for (id, fields) in [
                (1, r#"name: "ann" score: 5 tags: "a" tags: "b""#.to_owned()),
                (2, r#"name: "ann" score: 5"#.to_owned()),
                (3, format!(r#"score: -300 blob: "{}""#, "x".repeat(150_000))),
            ] {
                store.save_record(&self.player(id, &fields)).await?;
            }
            store.build_indexes(&["Player$name"], Batch { records: 2, choice: 0 }).await?;
            context.close();
            Ok::<_, Error>(())
        })
        .await;
    }

    async fn call(&self, calls: &mut Calls) {
        let whole = || (TupleRange::all(), Continuation::Start, Spent::new(Limits::default()));
        calls.tx("open", |tx| async move { self.open(tx).await.map(drop) }).await;
        calls.tx("load meta-data", |tx| async move { self.meta_data.load(&tx).await.map(drop) }).await;
        let save =
            |tx| async move { self.meta_data.save_record_meta_data(&tx, self.stores.meta_data()).await };
        calls.tx("save meta-data", save).await;
        for reverse in [false, true] {
            calls
                .tx("scan_records", |tx| async move {
                    let (range, from, spent) = whole();
                    let found = self.open(tx).await?.scan_records(range, reverse, from, &spent)?;
                    Ok::<_, Error>(found.to_list().await?.rows.len())
                })
                .await;
            for (index, scan) in INDEXES {
                calls
                    .tx("scan_index", |tx| async move {
                        let (range, from, spent) = whole();
                        let found =
                            self.open(tx).await?.scan_index(index, scan, range, reverse, from, &spent)?;
                        Ok::<_, Error>(found.to_list().await?.rows.len())
                    })
                    .await;
            }
        }
        calls
            .tx("scan_violations", |tx| async move {
                let (range, from, spent) = whole();
                let found =
                    self.open(tx).await?.scan_violations("Player$name", range, false, from, &spent)?;
                Ok::<_, Error>(found.to_list().await?.rows.len())
            })
            .await;
        for id in 0..4i64 {
            let pk = Tuple::from(id);
            let pk = &pk;
            calls.tx("load_record", |tx| async move { self.open(tx).await?.load_record(pk).await }).await;
            let version = |tx| async move { self.open(tx).await?.load_record_version(pk).await };
            calls.tx("load_record_version", version).await;
            let exists = |tx| async move { self.open(tx).await?.record_exists(pk, Snapshot).await };
            calls.tx("record_exists", exists).await;
            calls
                .tx("rank", |tx| async move {
                    let store = self.open(tx).await?;
                    let Some(record) = store.load_record(pk).await? else { return Ok(None) };
                    store.evaluate_record_function(&rank(field("score").ungrouped()), &record).await
                })
                .await;
            let changed = self.player(id, r#"name: "bob" score: 7 tags: "c""#);
            let changed = &changed;
            calls
                .tx("save_record", |tx| async move { self.open(tx).await?.save_record(changed).await })
                .await;
            calls.tx("delete_record", |tx| async move { self.open(tx).await?.delete_record(pk).await }).await;
        }
        for (aggregate, operand) in [
            (Aggregate::Count, KeyExpression::from("name").group_last(0)),
            (Aggregate::Sum, field("score").group_by("name")),
            (Aggregate::MaxEver, field("score").group_by("name")),
        ] {
            let function = AggregateFunction::new(aggregate, operand);
            let function = &function;
            calls
                .tx("evaluate_aggregate", |tx| async move {
                    self.open(tx).await?.evaluate_aggregate(&["Player"], function, &Tuple::empty()).await
                })
                .await;
        }
        for query in [
            Query::field("score").greater_than(0),
            Query::rank(field("score").ungrouped()).less_than(2),
            Query::field("tags").one_of_them().starts_with("a"),
        ] {
            let query = RecordQuery::of("Player").filter(query);
            let query = &query;
            calls
                .tx("query", |tx| async move {
                    let store = self.open(tx).await?;
                    let found = store.execute_query(query, Continuation::Start, Limits::default())?;
                    Ok::<_, Error>(found.to_list().await?.rows.len())
                })
                .await;
        }
        for index in ["Player$name", "Player$score", "counted", "Player$tags", "version"] {
            for scrub in [Scrub::Missing, Scrub::Dangling] {
                calls
                    .tx("scrub_index", |tx| async move {
                        self.open(tx).await?.scrub_index(index, scrub, true, Continuation::Start, 10).await
                    })
                    .await;
            }
            let disable = |tx| async move { self.open(tx).await?.mark_index_disabled(index).await };
            calls.tx("mark_index_disabled", disable).await;
        }
        let all = ["Player$name", "Player$score", "counted", "count", "sum", "version"];
        let all = &all;
        calls
            .tx("build_indexes", |tx| async move {
                let store = self.open(tx).await?;
                store.begin_index_builds(all).await?;
                store.build_indexes(all, Batch { records: 2, choice: 3 }).await
            })
            .await;
        let ready = |tx| async move { self.open(tx).await?.mark_index_readable("Player$name").await };
        calls.tx("mark_index_readable", ready).await;
        let some = |tx| async move { self.open(tx).await?.delete_where(&Tuple::from(1)).await };
        calls.tx("delete_where", some).await;
        calls
            .tx("delete_all_records", |tx| async move { self.open(tx).await?.delete_all_records().await })
            .await;
    }
}
