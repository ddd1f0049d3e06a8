//! `record_query`: random queries on records of the Record Layer, while clients save and delete.
//!
//! There are four schemas: the same fields with and without presence, under several kinds of primary keys,
//! with indexes of every kind that queries use. Records, conditions, orders and required columns are drawn
//! from numbers. Clients save and delete records, disable indexes and build them again, and ask queries in
//! three ways: by the plan that the readable indexes allow, by a scan of all records, which is the plan
//! without indexes, and by the plan in pages. Pages are read in one transaction, in several ones at one read
//! version, or in several ones that see what was written between them.
//!
//! A model in plain Rust says what a query finds. At every version the entries of each index that is readable
//! are those that the model computes from the stored records.

mod check;
mod client;
pub mod generate;
mod judge;
mod lowered;
pub mod model;
mod operations;
mod planted;
pub mod records;
pub mod schema;
mod state;
mod stored;

pub use check::Expected;
pub use client::{MakePlan, Question, Written, name_of, steps};
pub use judge::{At, judge};
pub use operations::{Answer, Change, End, Found, Page, Pages, Row, Shape, Size, Way};
pub use state::{History, State};

use crate::{
    beside,
    record_shared::layout::part,
    shared::{check_ended, compare, session_keys, unexpected},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use generate::Maker;
use model::{Model, Record};
use planted::{BUGS, Planted};
use proptest::{collection::vec, prelude::*};
use schema::{Schema, schemas};
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit, sessions,
    specimen::Recorded,
    workload::{Bug, Outcome, Step},
};
use shaketable_record::{
    error::Error,
    index::build::Batch,
    query::{RecordQuery, RecordQueryPlan},
    store::{
        RecordContext, RecordExistenceCheck, RecordStore, RecordStoreBuilder, SaveVersion, describe_key,
        describe_value,
    },
    version::RecordVersion,
};
use shaketable_sim::seed::{Seed, Stream};
use shaketable_tx::{
    self as tx, Database, Db, RetryError, Tx,
    once::{self, Session},
};
use std::ops::Range;

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Queries {
    clients: usize,
    operations: Range<usize>,
    /// The number of the schema.
    schema: usize,
    /// The numbers of records are 1 to this one.
    ids: i64,
    /// The records that exist from the beginning: for each the number from which it is drawn.
    first: Vec<u64>,
    /// The places of the indexes that are disabled at the beginning.
    disabled: Vec<usize>,
    /// The weights of writes, and of queries.
    mix: [u32; 2],
    /// The pause between pages, in milliseconds.
    pause: u64,
    /// The timeout that clients set on their database, in milliseconds.
    timeout: Option<i32>,
    planted: Option<Planted>,
}

/// The subspace of the store.
fn space() -> Subspace {
    Subspace::from("queried")
}

impl Queries {
    fn schema(&self) -> &'static Schema {
        &schemas()[self.schema % schemas().len()]
    }

    /// The number of indexes.
    fn indexes(&self) -> usize {
        self.schema().meta_data.indexes().count()
    }

    /// The name of the index at this place in the meta-data.
    fn index_at(&self, place: usize) -> &'static str {
        let index = self.schema().meta_data.indexes().nth(place % self.indexes());
        index.map_or("", |index| &index.name)
    }

    /// The record with this number that is drawn from another one.
    fn record(&self, id: i64, drawn: u64) -> Record {
        records::record(id, self.schema(), &mut Seed(drawn).stream("record"))
    }

    /// The versions of the first records, which queries compare with.
    fn first_version(place: usize) -> RecordVersion {
        RecordVersion::complete([0, 0, 0, 0, 0, 0, 0, 0, 0, place as u8], place as u16)
    }

    /// The records that exist from the beginning.
    fn first_records(&self) -> Vec<Record> {
        let first = self.first.iter().zip(1..=self.ids).enumerate();
        first
            .map(|(place, (drawn, id))| Record {
                version: Some(Queries::first_version(place)),
                ..self.record(id, *drawn)
            })
            .collect()
    }

    /// The query that is drawn from a number.
    fn query(&self, drawn: u64) -> RecordQuery {
        let versions: Vec<_> = (0..self.first.len()).map(Queries::first_version).collect();
        let maker = Maker { meta_data: &self.schema().meta_data, versions: &versions };
        maker.query(&mut Seed(drawn).stream("query"))
    }

    /// Queries that differ from one in one thing.
    fn others(&self, drawn: u64, query: &RecordQuery) -> Vec<RecordQuery> {
        let mut rng = Seed(drawn).stream("others");
        (0..2).map(|_| generate::other(query, &mut rng)).collect()
    }

    /// Queries that do not fit the meta-data; none for most of them.
    fn misfits(&self, drawn: u64, query: &RecordQuery) -> Vec<RecordQuery> {
        let mut rng = Seed(drawn).stream("misfits");
        let count = if rng.chance(0.3) { 3 } else { 0 };
        (0..count).map(|_| generate::misfit(query, &mut rng)).collect()
    }

    /// What a transaction changes in which the query that is drawn from this number is asked too; nothing for
    /// most of them.
    fn changes(&self, drawn: u64) -> Vec<Written> {
        let mut rng = Seed(drawn).stream("changes");
        if !rng.chance(0.45) {
            return Vec::new();
        }
        let model = Model { records: &[], schema: self.schema() };
        let mut change = || {
            let record = self.record(1 + rng.below(self.ids as u64) as i64, rng.below(u64::MAX));
            match rng.chance(0.8) {
                true => Written::Saved(model.message(&record)),
                false => Written::Deleted(model.primary_key(&record)),
            }
        };
        (0..5).map(|_| change()).collect()
    }

    fn stores(&self) -> RecordStoreBuilder<Tx> {
        RecordStore::builder(space(), lowered::meta_data(self.planted, &self.schema().meta_data))
    }

    /// The keys of the rows beside the store. A store refuses to be where the prefix itself has a row.
    fn beside() -> Vec<Vec<u8>> {
        beside::of(space().bytes()).split_off(1)
    }
}

impl Queries {
    /// Does a write on a store that it opens.
    async fn written<F>(
        &self,
        session: &mut Session<Db>,
        write: impl Fn(RecordStore<Tx>) -> F + Send + Sync,
    ) -> Outcome<Answer>
    where
        F: Future<Output = Result<Answer, Error>> + Send,
    {
        let (stores, write) = (&self.stores(), &write);
        let written = session.apply(|tx| async move {
            let context = RecordContext::within(tx);
            let store = stores.open(&context).await?;
            Ok::<_, Error>(Recorded(vec![write(store).await?]))
        });
        match written.await {
            once::Outcome::Applied(Recorded(answers)) => answered(answers),
            once::Outcome::Refused(error) => unexpected(&error, Outcome::Failed),
            once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
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

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Queries>()
}

/// Random queries of records: by plans, by scans and in pages, against a model.
#[shaketable::workload(name = "record_query", session = Session<Db>, answer = Answer, model = History)]
impl Queries {
    /// Saves records in one transaction: the number of each, and the number from which its fields are drawn.
    #[write(weight = self.mix[0])]
    async fn save(
        &self,
        session: &mut Session<Db>,
        #[draw(vec((1..=self.ids, any::<u64>()), 1..4))] records: Vec<(i64, u64)>,
    ) -> Outcome<Answer> {
        let (model, records) = (&Model { records: &[], schema: self.schema() }, &records);
        let save = |store: RecordStore<Tx>| async move {
            let mut were = Vec::new();
            for (id, drawn) in records {
                let record = self.record(*id, *drawn);
                were.push(store.load_record(&model.primary_key(&record)).await?.is_some());
                store.save_record(&model.message(&record)).await?;
            }
            Ok(Answer::Were(were))
        };
        self.written(session, save).await
    }

    /// Deletes the records with these numbers in one transaction.
    #[write(weight = self.mix[0].div_ceil(3))]
    async fn delete(
        &self,
        session: &mut Session<Db>,
        #[draw(vec(1..=self.ids, 1..3))] ids: Vec<i64>,
    ) -> Outcome<Answer> {
        let (model, ids) = (&Model { records: &[], schema: self.schema() }, &ids);
        let delete = |store: RecordStore<Tx>| async move {
            let mut were = Vec::new();
            for id in ids {
                // The primary key follows from the number.
                let primary_key = model.primary_key(&self.record(*id, 0));
                were.push(store.delete_record(&primary_key).await?);
            }
            Ok(Answer::Were(were))
        };
        self.written(session, delete).await
    }

    /// Changes the state of the index at this place in the meta-data.
    #[write(weight = self.mix[0].div_ceil(3))]
    async fn index(
        &self,
        session: &mut Session<Db>,
        #[draw(0..self.indexes())] place: usize,
        #[draw(Change::drawn())] change: Change,
    ) -> Outcome<Answer> {
        let name = self.index_at(place);
        let changed = |store: RecordStore<Tx>| async move {
            match change {
                Change::Disable => store.mark_index_disabled(name).await?,
                Change::Write => store.mark_index_write_only(name).await?,
                Change::Build(records) => build(&store, name, records).await?,
            }
            Ok(Answer::State(store.index_state(name)?.to_string()))
        };
        self.written(session, changed).await
    }

    /// Asks the query that is drawn from this number.
    #[read(weight = self.mix[1])]
    async fn ask(
        &self,
        session: &mut Session<Db>,
        #[draw(any::<u64>())] drawn: u64,
        #[draw(self.pages())] pages: Pages,
    ) -> Outcome<Answer> {
        let query = self.query(drawn);
        let plan = |store: &RecordStore<Tx>| -> Result<RecordQueryPlan, Error> {
            match self.planted {
                None => store.plan_query(&query),
                Some(planted) => planted::plan(planted, store, &query),
            }
        };
        let stores = self.stores();
        let changes = &self.changes(drawn);
        let planted = self.planted;
        let (others, misfits) = (&self.others(drawn, &query), &self.misfits(drawn, &query));
        let stores = &stores;
        let question =
            Question { stores, query: &query, plan: &plan, pages, planted, changes, others, misfits };
        match question.ask(session.database()).await {
            Ok(answer) => Outcome::Answered(answer),
            Err(failed) => unexpected(&failed.error, Outcome::Failed),
        }
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "record query: the plan, a scan of all records and the model agree",
            "record query: pages are read at several versions",
            "record query: a condition is unknown",
            "record query: a duplicate is dropped before its record is loaded",
            "record query: a plan for nothing",
            "record query: a scan of records",
            "record query: a scan of an index",
            "record query: a scan by rank",
            "record query: an in-join",
            "record query: a union",
            "record query: an intersection",
            "record query: branches in turn",
            "record query: duplicates are removed",
            "record query: records are loaded",
            "record query: records are made of entries",
            "record query: records of some types",
            "record query: a filter",
            "record_query: a plan reads no more than it has to",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Queries {
        let planted = bug.and_then(Planted::named);
        let (most, ids) = (rng.range(5..16) as usize, rng.range(5..19) as i64);
        let first = (0..rng.range(0..ids as u64 + 1)).map(|_| rng.below(u64::MAX)).collect();
        let mut drawn = Queries {
            clients: rng.range(2..6) as usize,
            operations: most / 2..most + 1,
            schema: rng.index(schemas().len()),
            ids,
            first,
            disabled: Vec::new(),
            mix: [rng.range(2..8) as u32, rng.range(8..16) as u32],
            pause: *rng.pick(&[1, 5, 20, 60]),
            timeout: rng.chance(0.4).then(|| *rng.pick(&[60, 120, 300, 1_000])),
            planted,
        };
        let share = *rng.pick(&[0.0, 0.3, 0.6]);
        drawn.disabled = (0..drawn.indexes()).filter(|_| rng.chance(share)).collect();
        drawn
    }

    fn keys(&self) -> Vec<Bytes> {
        let model = Model { records: &[], schema: self.schema() };
        let records = (1..=self.ids).map(|id| {
            let primary_key = model.primary_key(&self.record(id, 0));
            [space().pack(&(part::RECORDS,)), primary_key.pack()].concat()
        });
        let indexes = self.schema().meta_data.indexes();
        let indexes = indexes.map(|index| space().pack(&(part::INDEXES, index.subspace_key)));
        session_keys(self.clients).chain(records.chain(indexes).map(Bytes::from)).collect()
    }

    fn describe_key(&self, key: &[u8]) -> Option<String> {
        describe_key(&space(), &self.schema().meta_data, key)
    }

    fn describe_value(&self, key: &[u8], value: &[u8]) -> Option<String> {
        describe_value(&space(), &self.schema().meta_data, key, value)
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        beside::plant(db, &Queries::beside()).await?;
        let stores = &self.stores();
        let filled = db.run(|tx, _| async move {
            let store = stores.create_or_open(&RecordContext::within(tx)).await?;
            for place in &self.disabled {
                store.mark_index_disabled(self.index_at(*place)).await?;
            }
            let model = Model { records: &[], schema: self.schema() };
            for record in self.first_records() {
                let version = record.version.clone().map_or(SaveVersion::Next, SaveVersion::Own);
                let message = model.message(&record);
                store.save_record_with(&message, RecordExistenceCheck::None, version).await?;
            }
            Ok::<_, Error>(())
        });
        filled.await.map_err(|e| e.error.fdb().unwrap_or(tx::Error::INTERNAL_ERROR))
    }

    async fn open(&self, db: &Db, client: usize) -> tx::Result<Session<Db>> {
        sessions::open(db, client, self.timeout).await
    }

    async fn resolve_dropped(&self, session: &mut Session<Db>) {
        sessions::resolve_dropped(session, self.timeout).await;
    }

    async fn resolve(&self, session: &mut Session<Db>, _: &QueriesOp, error: tx::Error) -> Outcome<Answer> {
        sessions::resolve_unknown(session, self.timeout, error, async |session, pending| {
            Ok(session.resolve(pending).await?.map(|Recorded(answers)| answered(answers)))
        })
        .await
    }

    fn model(&self) -> History {
        let disabled = self.disabled.iter().map(|place| self.index_at(*place));
        History::new(State::new(self.first_records(), disabled))
    }

    fn step(&self, model: &mut History, step: &Step<'_, Self>) -> Result<(), Misfit> {
        self.follow(model, step)
    }

    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        Ok(self.stored(tx).await?.map(drop).map_err(Misfit::from))
    }

    async fn check(&self, db: &Db, model: &History) -> tx::Result<Result<(), Misfit>> {
        let stored = db.run(|tx, _| async move {
            let described = self.described(&tx).await?;
            Ok::<_, tx::Error>(self.stored(&tx).await?.and_then(|stored| described.map(|()| stored)))
        });
        match stored.await {
            Ok(stored) => Ok(stored.map_err(Misfit::from).and_then(|stored| compare(&stored, model.now()))),
            Err(failed) => check_ended(&failed.error),
        }
    }
}

/// The answer of a write.
fn answered(mut answers: Vec<Answer>) -> Outcome<Answer> {
    answers.pop().map_or_else(|| Outcome::Violated("nothing was recorded".into()), Outcome::Answered)
}
