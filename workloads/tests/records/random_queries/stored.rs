//! Random queries on stores of the simulated cluster.

use super::{
    compare::{Compared, Tally, save},
    generate::{self, Maker},
    model::{Model, Record},
    pure::chosen,
    schema::schemas,
};
use crate::on_cluster;
use foundationdb_tuple::Subspace;
use shaketable_record::{store::RecordStore, value::IntoValue};
use shaketable_sim::seed::Seed;

#[test]
fn queries_find_what_a_scan_and_the_model_find() {
    const QUERIES: usize = 60;
    on_cluster(|db| async move {
        let mut tally = Tally::default();
        for (number, schema) in schemas().into_iter().enumerate() {
            let mut rng = Seed(number as u64).stream("stored queries");
            let mut records: Vec<Record> =
                (1..=14).map(|id| generate::record(id, schema.presence, &mut rng)).collect();
            let stores = RecordStore::builder(Subspace::from(number as i64), schema.meta_data.clone());
            save(&db, &stores, &mut records).await.expect("the records are saved");
            let versions: Vec<_> = records.iter().filter_map(|record| record.version.clone()).collect();
            let meta_data = schema.meta_data.clone();
            let key =
                |name: &str| meta_data.record_type(name).map_or(0.into_value(), |found| found.key.clone());
            let model = Model { records: &records, type_key: &key };
            let compared = Compared { db: &db, stores: &stores, model };
            let maker = Maker { meta_data: &schema.meta_data, versions: &versions };
            for _ in 0..QUERIES {
                let query = maker.query(&mut rng);
                let indexes = chosen(&schema.meta_data, &mut rng);
                if let Err(difference) = compared.compare(&query, &indexes, &mut rng, &mut tally).await {
                    panic!("schema {number}: {difference}");
                }
            }
        }
        let enough = tally.queries > 150 && tally.rows > 300 && tally.pages > 500 && tally.partial > 0;
        assert!(enough && tally.steps.len() >= 11, "{tally:?}");
    });
}
