//! Records with the Record Layer: defines a type, stores three records, explains a query and runs it.

use shaketable_record::prelude::*;
use shaketable_tx::{Database, once::Session, once::Slots};

const RECORDS: &str = r#"
    syntax = "proto2";
    import "record_metadata_options.proto";
    message Flower {
        optional int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true];
        optional string kind = 2 [(com.apple.foundationdb.record.field).index = {}];
        optional int64 price = 3;
    }
    message RecordTypeUnion { optional Flower _Flower = 1; }
"#;

/// Generic over the database: the same function runs on a real cluster.
pub async fn flowers<D: Database>(db: D) -> Result<String, Error> {
    let mut builder = RecordMetaData::builder();
    builder.set_records(&compile(RECORDS)?)?;
    builder.add_index(Some("Flower"), Index::new("kind_price", concat(["kind", "price"])))?;
    let stores = RecordStore::builder(Subspace::from("flowers"), builder.build()?);

    // One transaction, applied once, whatever happens to its commit.
    let mut session = Session::open(&db, &Slots::new(Subspace::from("sessions")), 1).await?;
    let flower = stores.meta_data().record_type("Flower").expect("it is defined above").message.clone();
    let saved = stores.run(&mut session, |store| {
        let flower = flower.clone();
        async move {
            for (id, kind, price) in [(1, "rose", 23), (2, "tulip", 35), (3, "rose", 9)] {
                let mut message = DynamicMessage::new(flower.clone());
                message.set_field_by_name("id", Value::I64(id));
                message.set_field_by_name("kind", Value::String(kind.into()));
                message.set_field_by_name("price", Value::I64(price));
                store.save_record(&message).await?;
            }
            Ok::<_, Error>(())
        }
    });
    assert_eq!(saved.await, Outcome::Applied(()));

    let context = RecordContext::open(&db)?;
    let store = stores.open(&context).await?;
    let cheap = [Query::field("kind").equals("rose"), Query::field("price").less_than(30)];
    let query = RecordQuery::of("Flower").filter(Query::and(cheap)).sort("price");
    let plan = store.plan_query(&query)?;
    let found = plan.execute(&store, Continuation::Start, Limits::default())?.to_list().await?;
    let keys: Vec<_> = found.rows.iter().map(|row| row.primary_key()).collect();
    Ok(format!("{}\n{keys:?}", plan.explain()))
}

#[allow(clippy::print_stdout, reason = "a program that prints")]
fn main() {
    let shown = shaketable::calm::simulate(flowers).expect("a calm cluster answers");
    println!("{shown}");
}
