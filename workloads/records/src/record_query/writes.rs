//! How a client saves and deletes records and changes the states of indexes, on a store that is open.

use super::{Answer, Change, Op, Queries, model::Model};
use shaketable_record::{error::Error, index::build::Batch, store::RecordStore};
use shaketable_tx::Tx;

impl Queries {
    /// Performs a write on a store that is open.
    pub(super) async fn write(&self, store: &RecordStore<Tx>, op: &Op) -> Result<Answer, Error> {
        let schema = self.schema();
        let model = Model { records: &[], schema };
        match op {
            Op::Save(records) => {
                let mut were = Vec::new();
                for (id, drawn) in records {
                    let record = self.record(*id, *drawn);
                    were.push(store.load_record(&model.primary_key(&record)).await?.is_some());
                    store.save_record(&model.message(&record)).await?;
                }
                Ok(Answer::Were(were))
            }
            Op::Delete(ids) => {
                let mut were = Vec::new();
                for id in ids {
                    // The primary key follows from the number.
                    let primary_key = model.primary_key(&self.record(*id, 0));
                    were.push(store.delete_record(&primary_key).await?);
                }
                Ok(Answer::Were(were))
            }
            Op::Index(place, change) => {
                let name = self.index(*place);
                match change {
                    Change::Disable => store.mark_index_disabled(name).await?,
                    Change::Write => store.mark_index_write_only(name).await?,
                    Change::Build(records) => build(store, name, *records).await?,
                }
                Ok(Answer::State(store.index_state(name)?.to_string()))
            }
            Op::Ask(..) => Err(Error::Query("a query is not asked in a write".into())),
        }
    }
}

/// Builds an index in this transaction, this number of records at a time.
async fn build(store: &RecordStore<Tx>, name: &str, records: usize) -> Result<(), Error> {
    if store.begin_index_builds(&[name]).await? {
        let mut batch = Batch { records, choice: 0 };
        while !store.build_indexes(&[name], batch).await?.complete {
            batch.choice += 1;
        }
        store.mark_index_readable(name).await?;
    }
    Ok(())
}
