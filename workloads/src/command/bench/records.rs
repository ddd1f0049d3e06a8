//! The speed of the Record Layer: one client on the smallest calm cluster. CPU time is that of the client,
//! the layer and all roles of the cluster.

use shaketable::{
    calm,
    command::{
        Refusal,
        bench::{figure, thread_cpu},
        interrupt::Interrupt,
    },
};
use shaketable_record::{
    index::{
        IndexAt,
        rank::{rank_of, score_at},
        ranked_set::{Config, RankedSet},
    },
    prelude::*,
    query::plan_query,
    store::{Part, RecordStoreBuilder},
};
use shaketable_reports::{Figure, text};
use shaketable_tx::{Db, Isolation::Snapshot, Tx};
use std::{future::Future, sync::Arc};

const RECORDS: &str = r#"
    syntax = "proto2";
    import "record_metadata_options.proto";
    message Item {
        optional int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true];
        optional string name = 2 [(com.apple.foundationdb.record.field).index = { unique: true }];
        optional string kind = 3 [(com.apple.foundationdb.record.field).index = {}];
        optional int64 price = 4;
        optional int64 score = 5;
        optional string text = 6;
    }
    message RecordTypeUnion { optional Item _Item = 1; }
"#;
/// Records that are saved and loaded.
const SAVES: i64 = 4_000;
/// Records in a transaction.
const BATCH: i64 = 10;
/// Scores that are ranked.
const SCORES: i64 = 100_000;
/// Scores that are added in a transaction.
const SCORES_OF_BATCH: i64 = 500;
/// Looked-up ranks, and as many looked-up scores.
const LOOKUPS: i64 = 5_000;
/// Look-ups in a transaction.
const LOOKUPS_OF_BATCH: i64 = 50;
/// Times that each query is planned.
const PLANS: u64 = 2_000;
/// A step between numbers that visits all of a million in an order that is far from theirs.
const STRIDE: i64 = 617_411;
const NUMBERS: i64 = 1_000_000;

/// What the records' figures were measured on.
const CLUSTER: &str = "one client on a calm cluster with one of each role";

/// The figures of saves, loads, look-ups of ranks, and planning.
pub fn figures(interrupt: &Interrupt) -> Result<Vec<Figure>, Refusal> {
    let mut figures = saves_and_loads(interrupt)?;
    figures.push(rank_lookups(interrupt)?);
    figures.push(planning(interrupt)?);
    Ok(figures)
}

/// Runs a job as a client; `None` from it is an interrupt.
fn client<T: Send + 'static, F: Future<Output = Result<Option<T>, Error>> + 'static>(
    what: &str,
    interrupt: &Interrupt,
    job: impl Fn(Db, Interrupt) -> F + Send + Sync + 'static,
) -> Result<T, Refusal> {
    let listening = interrupt.clone();
    match calm::simulate(move |db| job(db, listening.clone())) {
        Ok(Some(measured)) => Ok(measured),
        Ok(None) => Err(interrupt.refusal(&format!("before {what} was measured"))),
        Err(error) => Err(Refusal::Usage(format!("{what}: {error}"))),
    }
}

/// Meta-data of items with these indexes besides those of the options.
fn meta_data(indexes: impl IntoIterator<Item = Index>) -> Result<Arc<RecordMetaData>, Error> {
    let mut builder = RecordMetaData::builder();
    builder.set_records(&compile(RECORDS)?)?;
    for index in indexes {
        builder.add_index(Some("Item"), index)?;
    }
    Ok(Arc::new(builder.build()?))
}

/// An item; `price` changes with `round`.
fn item(meta_data: &RecordMetaData, id: i64, round: i64) -> DynamicMessage {
    let mut message =
        DynamicMessage::new(meta_data.record_type("Item").expect("it is defined above").message.clone());
    message.set_field_by_name("id", Value::I64(id));
    message.set_field_by_name("name", Value::String(format!("item {id}")));
    message.set_field_by_name("kind", Value::String(format!("kind {}", id % 50)));
    message.set_field_by_name("price", Value::I64((id * STRIDE + round) % NUMBERS));
    message.set_field_by_name("score", Value::I64((id * STRIDE + 7 * round) % 10_000));
    message.set_field_by_name("text", Value::String("x".repeat(200)));
    message
}

/// CPU nanoseconds of saves, of saves again with three changed indexes, and of loads.
async fn save_and_load(db: Db, interrupt: Interrupt) -> Result<Option<[u64; 3]>, Error> {
    let meta_data = meta_data([
        Index::new("kind_price", concat(["kind", "price"])),
        Index::new("rank", field("score")).kind(index_types::RANK),
        Index::new("sum", field("price").group_by("kind")).kind(index_types::SUM),
    ])?;
    let stores = RecordStore::builder(Subspace::from("items"), meta_data.clone());
    let mut took = [0; 3];
    for (phase, took) in took.iter_mut().enumerate() {
        let before = thread_cpu();
        for batch in 0..SAVES / BATCH {
            if interrupt.is_set() {
                return Ok(None);
            }
            let context = RecordContext::open(&db)?;
            let store = stores.create_or_open(&context).await?;
            for id in batch * BATCH..(batch + 1) * BATCH {
                match phase {
                    2 => assert!(store.load_record(&id.into()).await?.is_some(), "it was saved"),
                    _ => drop(store.save_record(&item(&meta_data, id, phase as i64)).await?),
                }
            }
            context.commit().await?;
        }
        *took = thread_cpu() - before;
    }
    Ok(Some(took))
}

fn saves_and_loads(interrupt: &Interrupt) -> Result<Vec<Figure>, Refusal> {
    let took = client("saves of records", interrupt, save_and_load)?;
    let what = "a record of 250 bytes with five indexes: two values, one of them unique,\na composite, a rank, a sum";
    let per_second = |took: u64| SAVES as f64 * 1e9 / took.max(1) as f64;
    let figures = [
        ("record, inserts", "records that are new"),
        ("record, saves", "each of them changed in three indexes"),
        ("record, loads", "each by its primary key"),
    ];
    let figures = figures.into_iter().zip(took).map(|((name, how), took)| {
        let profile = format!(
            "{what}, {} of them, {how},\n{BATCH} in a transaction, {CLUSTER}",
            text::count(SAVES as u64)
        );
        figure(name, per_second(took), "records per CPU s", &profile)
    });
    Ok(figures.collect())
}

/// CPU nanoseconds of the look-ups.
async fn look_up_ranks(db: Db, interrupt: Interrupt) -> Result<Option<u64>, Error> {
    let index = Index::new("rank", field("score")).kind(index_types::RANK);
    let stores: RecordStoreBuilder<Tx> = RecordStore::builder(Subspace::from("scores"), meta_data([index])?);
    let score = |n: i64| (n * STRIDE) % NUMBERS;
    // The ranked set alone is filled: records would take longer than all else, and are not read.
    for batch in 0..SCORES / SCORES_OF_BATCH {
        if interrupt.is_set() {
            return Ok(None);
        }
        let context = RecordContext::open(&db)?;
        let store = stores.create_or_open(&context).await?;
        let at = IndexAt { store: &store, index: store.index("rank")? };
        let set = RankedSet::new(at.space(Part::Secondary), Config::default());
        for n in batch * SCORES_OF_BATCH..(batch + 1) * SCORES_OF_BATCH {
            set.add(at.transaction()?, &Tuple::from(score(n)).pack()).await?;
        }
        context.commit().await?;
    }
    let before = thread_cpu();
    for batch in 0..LOOKUPS / LOOKUPS_OF_BATCH {
        if interrupt.is_set() {
            return Ok(None);
        }
        let context = RecordContext::open(&db)?;
        let store = stores.open(&context).await?;
        let at = IndexAt { store: &store, index: store.index("rank")? };
        for n in batch * LOOKUPS_OF_BATCH..(batch + 1) * LOOKUPS_OF_BATCH {
            let key = Tuple::from(score(n * 17 % SCORES));
            let rank = rank_of(at, &key, Snapshot).await?.expect("the score was added");
            let found = score_at(at, &Tuple::default(), rank, Snapshot).await?;
            assert_eq!(found, Some(key), "the score of rank {rank}");
        }
    }
    Ok(Some(thread_cpu() - before))
}

fn rank_lookups(interrupt: &Interrupt) -> Result<Figure, Refusal> {
    let took = client("look-ups of ranks", interrupt, look_up_ranks)?;
    let profile = format!(
        "{} look-ups of a rank by its score, and as many of a score by its rank,\n\
         in a ranked set of {} scores,\n{LOOKUPS_OF_BATCH} of each in a transaction, at snapshot, {CLUSTER}",
        text::count(LOOKUPS as u64),
        text::count(SCORES as u64)
    );
    let value = 2.0 * LOOKUPS as f64 * 1e9 / took.max(1) as f64;
    Ok(figure("rank look-ups", value, "look-ups per CPU s", &profile))
}

/// The queries that are planned, from simple to hard.
fn queries() -> [RecordQuery; 4] {
    let price = || Query::field("price");
    let kinds = |kinds: &[&str]| Query::or(kinds.iter().map(|kind| Query::field("kind").equals(*kind)));
    [
        RecordQuery::of("Item").filter(Query::field("name").equals("item 7")),
        RecordQuery::of("Item")
            .filter(Query::and([Query::field("kind").equals("kind 7"), price().less_than(100)]))
            .sort("price"),
        RecordQuery::of("Item").filter(Query::and([kinds(&["kind 1", "kind 2"]), price().greater_than(5)])),
        RecordQuery::of("Item").filter(Query::and([
            Query::or([kinds(&["kind 1", "kind 2", "kind 3"]), Query::field("name").starts_with("item 1")]),
            Query::not(Query::and([price().is_null(), Query::rank("score").less_than(10)])),
        ])),
    ]
}

fn planning(interrupt: &Interrupt) -> Result<Figure, Refusal> {
    let refused = |error: Error| Refusal::Usage(format!("planning: {error}"));
    let meta_data = meta_data([
        Index::new("kind_price", concat(["kind", "price"])),
        Index::new("rank", field("score")).kind(index_types::RANK),
    ])
    .map_err(refused)?;
    let (queries, before) = (queries(), thread_cpu());
    for _ in 0..PLANS {
        if interrupt.is_set() {
            return Err(interrupt.refusal("before planning was measured"));
        }
        for query in &queries {
            let plan = plan_query(query, &meta_data, &|_| true).map_err(|error| refused(error.into()))?;
            std::hint::black_box(plan);
        }
    }
    let took = thread_cpu() - before;
    let profile = format!(
        "the mean of {} queries, each planned {} times: one field, two fields and a sort,\n\
         a union, a nested filter; four indexes",
        queries.len(),
        text::count(PLANS)
    );
    let value = took as f64 / 1e3 / (PLANS * queries.len() as u64) as f64;
    Ok(figure("query planning", value, "CPU µs", &profile))
}
