//! Random queries on stores of the simulated cluster, planned with any of the indexes.

use super::pure::chosen;
use crate::on_cluster;
use foundationdb_tuple::Subspace;
use shaketable_record::{
    error::Error,
    query::plan_query,
    store::{RecordContext, RecordStore, RecordStoreBuilder},
};
use shaketable_sim::seed::{Seed, Stream};
use shaketable_tx::{Db, Tx};
use shaketable_workloads_records::record_query::{
    Answer, Pages, Question, Size, Way,
    generate::Maker,
    judge,
    model::{Model, Record},
    records::record,
    schema::schemas,
};

/// What was compared.
#[derive(Debug, Default)]
struct Tally {
    queries: usize,
    refused: usize,
    rows: usize,
    pages: usize,
    partial: usize,
}

/// Saves records, each transaction some of them; they get their versions.
async fn save(db: &Db, stores: &RecordStoreBuilder<Tx>, records: &mut [Record]) -> Result<(), Error> {
    for batch in records.chunks_mut(4) {
        let context = RecordContext::open(db)?;
        let store = stores.create_or_open(&context).await?;
        for record in batch.iter_mut() {
            let found = store.meta_data().record_type(record.record_type).expect("a type").clone();
            record.version = store.save_record(&record.message(&found.message)).await?.version;
        }
        context.commit().await?;
        let stamp = context.versionstamp().await?.expect("versions");
        for record in batch {
            record.version = record.version.take().map(|version| version.completed(stamp));
        }
    }
    Ok(())
}

fn pages(rng: &mut Stream) -> Pages {
    let size = 1 + rng.index(4);
    let size = match rng.below(3) {
        0 => Size::Rows(size),
        1 => Size::Scanned(size),
        _ => Size::Bytes(64 * size, 1 + rng.index(4)),
    };
    Pages { way: *rng.pick(&[Way::Together, Way::Pinned, Way::Moving]), size, pause: 0 }
}

#[test]
fn queries_find_what_a_scan_and_the_model_find() {
    const QUERIES: usize = 60;
    on_cluster(|db| async move {
        let mut tally = Tally::default();
        for (number, schema) in schemas().iter().enumerate() {
            let mut rng = Seed(number as u64).stream("stored queries");
            let mut records: Vec<Record> = (1..=14).map(|id| record(id, schema, &mut rng)).collect();
            let stores = RecordStore::builder(Subspace::from(number as i64), schema.meta_data.clone());
            save(&db, &stores, &mut records).await.expect("the records are saved");
            let versions: Vec<_> = records.iter().filter_map(|record| record.version.clone()).collect();
            let maker = Maker { meta_data: &schema.meta_data, versions: &versions };
            for _ in 0..QUERIES {
                let query = &maker.query(&mut rng);
                let indexes = chosen(&schema.meta_data, &mut rng);
                let plan = |store: &RecordStore<_>| {
                    Ok(plan_query(query, store.meta_data(), &|index| indexes.contains(&index.name))?)
                };
                let pages = pages(&mut rng);
                let question = Question {
                    stores: &stores,
                    query,
                    plan: &plan,
                    pages,
                    planted: None,
                    changes: &[],
                    others: &[],
                    misfits: &[],
                };
                match question.ask(&db).await.expect("nothing fails") {
                    Answer::NoIndex(..) => tally.refused += 1,
                    Answer::Found(found) => {
                        let model = |_| Model { records: &records, schema };
                        if let Err(difference) = judge(query, &found, &model) {
                            panic!("schema {number}: {difference}");
                        }
                        tally.queries += 1;
                        tally.rows += found.rows.len();
                        tally.pages += found.pages.len();
                        tally.partial += found.rows.iter().filter(|row| row.partial).count();
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        let enough = tally.queries > 150 && tally.rows > 300 && tally.pages > 500 && tally.partial > 0;
        assert!(enough && tally.refused < 90, "{tally:?}");
    });
}
