//! How long queries of the Record Layer wait for their reads: virtual time on a calm cluster, whose network
//! and servers have the latencies of any run. The times are the same each time, on each machine.
//!
//! A row is a query over 200 records, with how many records it finds, how long it takes if
//! [`Limits::pipeline`](shaketable_record::cursor::Limits::pipeline) records are read at once, and its plan.
//! The first line has a read of one key: what one round trip costs.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints")]

use foundationdb_tuple::Subspace;
use prost_reflect::DynamicMessage;
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits},
    expression::field,
    metadata::{Index, RecordMetaData, compile, index_types},
    query::{Query, RecordQuery},
    store::{RecordContext, RecordStore, RecordStoreBuilder},
};
use shaketable_tx::{Database, Db, Isolation, Transaction, Tx};
use shaketable_workloads_shared::cluster::on_cluster;
use std::time::Duration;

const RECORDS: usize = 200;
/// How many records are read at once.
const PIPELINES: [usize; 3] = [1, 10, 50];
/// A time is the mean of so many executions, because latencies vary.
const TIMES: u32 = 20;

const SHOP: &str = r#"
    syntax = "proto2";
    message Order {
        optional int64 order_id = 1;
        optional string color = 2;
        optional int32 price = 3;
        optional int32 score = 4;
    }
    message RecordTypeUnion { optional Order _Order = 1; }
"#;

fn stores() -> RecordStoreBuilder<Tx> {
    let mut builder = RecordMetaData::builder();
    builder.set_records(&compile(SHOP).unwrap()).unwrap();
    builder.record_type("Order").unwrap().set_primary_key("order_id");
    for index in [
        Index::new("price", "price"),
        Index::new("color", "color"),
        Index::new("score", field("score").ungrouped()).kind(index_types::RANK),
    ] {
        builder.add_index(Some("Order"), index).unwrap();
    }
    RecordStore::builder(Subspace::from("shop"), builder.build().unwrap())
}

async fn open(stores: &RecordStoreBuilder<Tx>, db: &Db) -> RecordStore<Tx> {
    stores.create_or_open(&RecordContext::open(db).unwrap()).await.unwrap()
}

async fn fill(stores: &RecordStoreBuilder<Tx>, db: &Db) {
    let store = open(stores, db).await;
    let message = store.meta_data().record_type("Order").unwrap().message.clone();
    for n in 0..RECORDS {
        let color = ["red", "blue", "white", "pink"][n % 4];
        let text = format!("order_id: {n} color: '{color}' price: {} score: {}", n % 50, n * 7 % RECORDS);
        let order = DynamicMessage::parse_text_format(message.clone(), &text).unwrap();
        store.save_record(&order).await.unwrap();
    }
    store.context().commit().await.unwrap();
}

fn queries() -> Vec<(&'static str, RecordQuery)> {
    let of = |filter| RecordQuery::of("Order").filter(filter);
    let (price, color) = (|| Query::field("price"), || Query::field("color"));
    let rank = || Query::rank(field("score").ungrouped());
    vec![
        ("all records", RecordQuery::of("Order")),
        ("filter, no index", of(Query::not(price().is_in([1, 2, 3, 4, 5])))),
        ("index", of(price().less_than(10))),
        ("index, order", RecordQuery::of("Order").filter(price().less_than(10)).sort("price").reverse()),
        ("index, filter", of(Query::and([price().less_than(25), Query::field("score").less_than(40)]))),
        ("covering index", of(price().less_than(10)).required_results(["price"])),
        ("intersection", of(Query::and([price().equals(8), color().equals("red")]))),
        ("union", of(Query::or([price().equals(8), color().equals("red")]))),
        ("IN", of(price().is_in([1, 2, 3, 4, 5]))),
        ("by rank", of(rank().less_than(40))),
        ("filter by rank", of(Query::and([price().less_than(5), Query::not(rank().less_than(40))]))),
    ]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

async fn one_read(db: &Db) -> f64 {
    let mut waited = Duration::ZERO;
    for n in 0..TIMES {
        let tx = db.create_transaction().unwrap();
        // Its read version is not counted: an opened store has one.
        tx.get_read_version().await.unwrap();
        let begun = db.env().now();
        tx.get(&n.to_be_bytes(), Isolation::Serializable).await.unwrap();
        waited += db.env().now() - begun;
    }
    milliseconds(waited / TIMES)
}

fn main() {
    on_cluster(|db| async move {
        let stores = stores();
        fill(&stores, &db).await;
        let mut lines = vec![
            format!("milliseconds of virtual time; one read: {:.2}", one_read(&db).await),
            format!("{:<24}{:>5}{:>9}{:>9}{:>9}  plan", "records at once", "rows", 1, 10, 50),
        ];
        for (name, query) in queries() {
            let (mut rows, mut plan, mut times) = (0, String::new(), Vec::new());
            for pipeline in PIPELINES {
                let mut waited = Duration::ZERO;
                for _ in 0..TIMES {
                    let store = open(&stores, &db).await;
                    let limits = Limits { pipeline, ..Limits::default() };
                    let begun = db.env().now();
                    let found = store.execute_query(&query, Continuation::Start, limits).unwrap().to_list();
                    rows = found.await.unwrap().rows.len();
                    waited += db.env().now() - begun;
                    let explained = store.plan_query(&query).unwrap().explain();
                    plan = explained.lines().map(str::trim).collect::<Vec<_>>().join(" < ");
                }
                times.push(format!("{:>9.2}", milliseconds(waited / TIMES)));
            }
            lines.push(format!("{name:<24}{rows:>5}{}  {plan}", times.concat()));
        }
        println!("{}", lines.join("\n"));
    });
}
