//! `record_evolve`: the meta-data of a record store changes while clients use the store.
//!
//! The meta-data is saved in the database, and replaced by one version after another: record types, fields
//! and indexes are added, types get other names and exchange them, indexes are changed and removed, and come
//! back under their old names, and one is no longer unique. Clients load it and keep it, so that many have
//! older versions than others. A store that was opened with a later version refuses an older one; its header
//! never goes back. At every version each index of the store's meta-data has what its state claims, what was
//! removed has no rows left, and all records can be read. An index that came with its record type is always
//! readable.

mod chain;
mod client;
mod layout;
mod model;
mod operations;
mod planted;
mod wrong;

pub use super::record_build::Record;
pub use client::Client;
pub use model::Model;
pub use operations::{Act, ActAnswer, Answer};
pub use wrong::Wrong;

use crate::{
    record_build::{
        fdb, initial,
        judge::{self, Tolerance},
        rows::Stored,
        save,
    },
    record_shared::layout::{FORMAT, part, state},
    shared::{check_ended, compare, session_keys},
};
use bytes::Bytes;
use chain::{CHAINS, Link, chain, place_of};
use client::{Version, answered, refused, save_meta_data};
use foundationdb_tuple::Subspace;
use layout::{meta_data_space, meta_data_store, saved_key, saved_version, space};
use planted::{BUGS, Planted};
use proptest::{option, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit, sessions,
    specimen::Recorded,
    workload::{Bug, Outcome, Step},
};
use shaketable_record::{
    error::Error,
    index::scrub::Scrub,
    store::{RebuildPolicy, RecordContext},
};
use shaketable_sim::seed::Stream;
use shaketable_tx::{self as tx, Database, Db, Isolation::Serializable, RunError, Transaction, Tx};
use std::{
    collections::BTreeMap,
    ops::{Range, RangeInclusive},
    sync::Arc,
};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordEvolve {
    clients: usize,
    operations: Range<usize>,
    /// Which versions the meta-data has.
    chain: u64,
    /// The number of primary keys. Two of three have a record at the beginning.
    records: i64,
    /// The number of different values of fields, and of the field that may have a unique index.
    values: i64,
    codes: i64,
    /// The records of a batch of a build, at most.
    batch: usize,
    /// What becomes of indexes that are new.
    policy: Policy,
    /// The weights of uses of the store, changes of the meta-data, and builds.
    mix: [u32; 3],
    /// The timeout that clients set on their database, in milliseconds.
    timeout: Option<i32>,
    planted: Option<Planted>,
}

/// What becomes of indexes that are new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Policy {
    Disable,
    WriteOnly,
    Inline(usize),
}

impl From<Policy> for RebuildPolicy {
    fn from(policy: Policy) -> RebuildPolicy {
        match policy {
            Policy::Disable => RebuildPolicy::Disable,
            Policy::WriteOnly => RebuildPolicy::WriteOnly,
            Policy::Inline(records) => RebuildPolicy::Inline(records),
        }
    }
}

impl RecordEvolve {
    /// The versions of the meta-data.
    fn chain(&self) -> Arc<Vec<Link>> {
        chain(self.chain)
    }

    fn initial(&self) -> BTreeMap<i64, Record> {
        let (ids, chain) = ((0..self.records).filter(|id| id % 3 != 2), self.chain());
        ids.map(|id| (id, chain[0].fit(&initial(id, self.values, false)))).collect()
    }

    /// Judges everything that the store has.
    fn judge(&self, stored: &Stored, saved: Option<i32>) -> Result<(), String> {
        let (chain, place) = (self.chain(), |version| place_of(&self.chain(), version));
        let header = stored.header.clone().ok_or("the store has no header")?;
        let opened = header.meta_data.and_then(place).filter(|_| header.format == Some(FORMAT));
        let opened = opened.ok_or_else(|| format!("the header is {header:?}"))?;
        let saved = saved.and_then(place).ok_or("no meta-data is saved")?;
        if saved < opened {
            return Err(format!("the store has version {opened} of the meta-data, {saved} is saved"));
        }
        let link = &chain[opened];
        let known = |number: &i64| link.definitions.iter().any(|definition| definition.number == *number);
        if let Some((part, number)) = stored.indexes.keys().find(|(_, number)| !known(number)) {
            return Err(format!(
                "part {part} has rows of index {number}, which version {opened} does not have"
            ));
        }
        let named = |name: &String| link.definitions.iter().any(|definition| definition.name == *name);
        if let Some(name) = stored.states.keys().find(|name| !named(name)) {
            return Err(format!("index {name} has a state, but is not in version {opened}"));
        }
        if let Some(kept) = stored.records.values().find(|kept| link.fit(&kept.record) != kept.record) {
            return Err(format!("version {opened} cannot have the record {:?}", kept.record));
        }
        let readable = |name: &&String| stored.state(name) == state::READABLE;
        if let Some(name) = link.born.iter().find(|name| !readable(name)) {
            return Err(format!("index {name} came with its record type, and is not readable"));
        }
        let none = Tolerance::default();
        link.definitions.iter().try_for_each(|definition| judge::index(definition, stored, &none))
    }
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<RecordEvolve>()
}

/// Record types, fields and indexes added and removed while clients use the store.
#[shaketable::workload(name = "record_evolve", session = Client, answer = Answer, model = Model)]
impl RecordEvolve {
    /// Uses the store with the meta-data that the client has, in one transaction.
    #[write(weight = 8 * self.mix[0])]
    async fn use_own(&self, client: &mut Client, #[draw(self.acts())] acts: &[Act]) -> Outcome<Answer> {
        let (number, own) = (client.number, &client.own);
        let used = client.session.apply(|tx| async move { self.use_store(tx, number, own, acts).await });
        answered(own.place, used.await)
    }

    /// Uses the store with the meta-data that the same transaction loads.
    #[write(weight = 2 * self.mix[0])]
    async fn use_latest(&self, client: &mut Client, #[draw(self.acts())] acts: &[Act]) -> Outcome<Answer> {
        let (number, meta_data_store) = (client.number, &client.meta_data_store);
        let used = client.session.apply(|tx| async move {
            let latest = self.latest(meta_data_store, &tx).await?;
            self.use_store(tx, number, &latest, acts).await
        });
        answered(usize::MAX, used.await)
    }

    /// Replaces the meta-data that is saved by its next version.
    #[write(weight = 3 * self.mix[1])]
    async fn evolve(&self, client: &mut Client) -> Outcome<Answer> {
        let (chain, meta_data_store) = (&self.chain(), &client.meta_data_store);
        let evolved = client.session.apply(|tx| async move {
            let next = (self.latest(meta_data_store, &tx).await?.place + 1).min(chain.len() - 1);
            meta_data_store.save_record_meta_data(&tx, &chain[next].meta_data).await?;
            Ok::<_, Error>(Recorded(vec![ActAnswer::Latest(next)]))
        });
        answered(usize::MAX, evolved.await)
    }

    /// Saves the meta-data that the client has.
    #[write(weight = self.mix[1])]
    async fn save_own(&self, client: &mut Client) -> Outcome<Answer> {
        let (own, meta_data_store) = (&client.own, &client.meta_data_store);
        let saved = client.session.apply(|tx| async move { save_meta_data(meta_data_store, &tx, own).await });
        answered(own.place, saved.await)
    }

    /// Tries to save meta-data that cannot follow what is saved.
    #[write(weight = self.mix[1])]
    async fn save_wrong(
        &self,
        client: &mut Client,
        #[draw(select(Wrong::ALL.to_vec()))] wrong: Wrong,
    ) -> Outcome<Answer> {
        let (chain, meta_data_store) = (&self.chain(), &client.meta_data_store);
        let saved = client.session.apply(|tx| async move {
            let place = self.latest(meta_data_store, &tx).await?.place;
            let meta_data = chain[place].wrong(wrong).into();
            save_meta_data(meta_data_store, &tx, &Version { place, meta_data }).await
        });
        answered(usize::MAX, saved.await)
    }

    /// Loads the meta-data that is saved; the client has it from then on.
    #[read(weight = self.mix[1])]
    async fn refresh(&self, client: &mut Client) -> Outcome<Answer> {
        match self.load(client).await {
            Ok(()) => Outcome::Answered(Answer::Told(vec![ActAnswer::Latest(client.own.place)])),
            Err(e) => refused(usize::MAX, e),
        }
    }

    /// Builds the indexes of the client's meta-data in batches of this many records. The builder dies when it
    /// was polled this many times.
    #[write(weight = 3 * self.mix[2])]
    async fn build(
        &self,
        client: &mut Client,
        #[draw(1..=self.batch)] records: usize,
        #[draw(option::weighted(0.4, 1..80u64))] polls: Option<u64>,
    ) -> Outcome<Answer> {
        let (own, chain) = (&client.own, self.chain());
        let link = &chain[own.place];
        let names: Vec<&str> = link.definitions.iter().map(|index| &*index.name).collect();
        let stores = self.stores(&planted::changed(self.planted, link, &own.meta_data));
        let build = stores.build_indexes(client.session.database(), &names, records);
        match sessions::polled(polls.unwrap_or(u64::MAX), build).await {
            None => Outcome::Answered(Answer::Died),
            Some(Ok(_)) => Outcome::Answered(Answer::Built),
            Some(Err(RunError { error: Error::Fdb(e), .. })) => Outcome::Unknown(e),
            Some(Err(e)) => refused(own.place, e.error),
        }
    }

    /// Does an operation. A client whose meta-data was refused loads it again first.
    async fn apply(&self, client: &mut Client, op: &RecordEvolveOp) -> Outcome<Answer> {
        if client.is_stale
            && let Err(e) = self.load(client).await
        {
            return refused(usize::MAX, e);
        }
        let outcome = self.perform(client, op).await;
        client.is_stale = matches!(outcome, Outcome::Answered(Answer::Stale(_)));
        outcome
    }

    /// A build consists of many transactions.
    fn effects(&self, op: &RecordEvolveOp) -> RangeInclusive<usize> {
        match op {
            RecordEvolveOp::build { .. } => 0..=usize::MAX,
            _ => 0..=1,
        }
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "record: a store is opened with later meta-data",
            "record: a store refuses older meta-data",
            "record: what a removed index had is cleared",
            "record: indexes are built in the transaction that opens the store",
            "record: an index on new types only is readable at once",
            "record_evolve: as many records as may be indexed where a store is opened",
            "record: meta-data from the cache",
            "record: meta-data is saved that is there already",
            "record: a batch of an index is done again after an unknown result",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> RecordEvolve {
        let most = rng.range(6..24) as usize;
        let records = rng.range(3..16) as i64;
        RecordEvolve {
            clients: rng.range(2..6) as usize,
            operations: most / 2..most,
            chain: rng.below(CHAINS),
            records,
            values: rng.range(1..5) as i64,
            codes: *rng.pick(&[1 + records / 2, 1 + records / 2, records, 40 * records]),
            batch: rng.range(1..7) as usize,
            // At the beginning two of three records exist.
            policy: match rng.below(5) {
                0 => Policy::Disable,
                1 => Policy::WriteOnly,
                2 | 3 => Policy::Inline((records * 2 / 3 + rng.range(0..3) as i64 - 1).max(1) as usize),
                _ => Policy::Inline(200),
            },
            mix: *rng.pick(&[[2, 1, 1], [3, 2, 1], [1, 1, 1]]),
            timeout: sessions::draw_timeout(rng),
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let row = |of: Subspace| Bytes::copy_from_slice(of.bytes());
        let records = (0..self.records).step_by(4).map(|id| row(space().subspace(&(part::RECORDS, id))));
        let indexes = (1..4i64).map(|number| row(space().subspace(&(part::INDEXES, number))));
        session_keys(self.clients).chain(records).chain(indexes).chain([row(meta_data_space())]).collect()
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        let (records, chain) = (&self.initial(), &self.chain());
        let first = &chain[0].meta_data;
        let filled = db.run(|tx, _| async move {
            meta_data_store().save_record_meta_data(&tx, first).await?;
            let store = self.stores(first).create_or_open(&RecordContext::within(tx)).await?;
            for record in records.values() {
                save(&store, &chain[0].shape.names, record).await?;
            }
            Ok::<_, Error>(())
        });
        filled.await.map_err(|e| fdb(&e.error))
    }

    async fn open(&self, db: &Db, client: usize) -> tx::Result<Client> {
        let session = sessions::open(db, client, self.timeout).await?;
        let meta_data_store = meta_data_store();
        let loading = &meta_data_store;
        let (own, is_stale) = match db.run(|tx, _| async move { self.latest(loading, &tx).await }).await {
            Ok(own) => (own, false),
            Err(RunError { error: Error::Fdb(error), .. }) => return Err(error),
            // The next operation loads it again, and tells why it cannot.
            Err(_) => (Version { place: 0, meta_data: self.chain()[0].meta_data.clone() }, true),
        };
        Ok(Client { number: client, session, meta_data_store, own, is_stale })
    }

    async fn resolve_dropped(&self, client: &mut Client) {
        sessions::resolve_dropped(&mut client.session, self.timeout).await;
    }

    async fn apply_planted(&self, client: &mut Client, op: &RecordEvolveOp) -> Option<Outcome<Answer>> {
        planted::apply(self.planted?, self, client, op).await
    }

    async fn resolve(&self, client: &mut Client, _: &RecordEvolveOp, error: tx::Error) -> Outcome<Answer> {
        sessions::resolve_unknown(&mut client.session, self.timeout, error, async |session, pending| {
            let fate = session.resolve(pending).await?;
            Ok(fate.map(|Recorded(answers)| Outcome::Answered(Answer::Told(answers))))
        })
        .await
    }

    /// The last batch of a builder that died may be done after its death.
    fn may_land_late(&self, answer: &Answer) -> bool {
        *answer == Answer::Died
    }

    fn model(&self) -> Model {
        Model { records: self.initial(), ..Model::default() }
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        self.follow(model, step)
    }

    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        let saved = tx.get(&saved_key(), Serializable).await?;
        let saved = saved.and_then(|value| saved_version(&value));
        let stored = Stored::read(tx, &space()).await?;
        Ok(stored.map_err(Misfit::from).and_then(|stored| Ok(self.judge(&stored, saved)?)))
    }

    /// Builds all indexes of the latest meta-data, and scrubs them.
    async fn check(&self, db: &Db, model: &Model) -> tx::Result<Result<(), Misfit>> {
        let latest = db.run(|tx, _| async move { self.latest(&meta_data_store(), &tx).await });
        let latest = match latest.await {
            Ok(latest) => latest,
            Err(e) => return check_ended(&e.error),
        };
        let (stores, chain) = (self.stores(&latest.meta_data), self.chain());
        let definitions = &chain[latest.place].definitions;
        let names: Vec<&str> = definitions.iter().map(|definition| &*definition.name).collect();
        if let Err(e) = stores.build_indexes(db, &names, self.batch).await {
            return check_ended(&e.error);
        }
        for definition in definitions.iter().filter(|definition| definition.has_entries()) {
            for scrub in [Scrub::Missing, Scrub::Dangling] {
                match stores.scrub_index(db, &definition.name, scrub, false, self.batch).await {
                    Ok(report) if report.found.is_empty() => {}
                    Ok(report) => {
                        return Ok(Err(
                            format!("a scrub of {} found {:?}", definition.name, report.found).into()
                        ));
                    }
                    Err(e) => return check_ended(&e.error),
                }
            }
        }
        let stored = db.run(|tx, _| async move { Stored::read(&tx, &space()).await });
        let stored = stored.await.map_err(|e| e.error)?;
        Ok(stored.map_err(Misfit::from).and_then(|stored| {
            self.judge(&stored, Some(latest.meta_data.version()))?;
            let records = stored.records.into_iter().map(|(id, kept)| (id, kept.record)).collect();
            compare(&(latest.place, records), &(model.saved, model.records.clone()))
        }))
    }
}
