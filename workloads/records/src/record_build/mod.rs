//! `record_build`: indexes of a record store are built online while records are saved and deleted.
//!
//! Builders build several indexes of all types together, in batches, at the same time as others; some die in
//! the middle, and others continue. Indexes are disabled and built anew meanwhile. At every version each
//! index has what its state claims: a readable one the keys of all records, one that is being built at least
//! those of the records that are done, a disabled one nothing. The judge decodes the rows itself and computes
//! the keys from plain records.
//!
//! In some runs entries of indexes are removed or added behind the layer's back. A scrub finds nothing else,
//! and at the end it has repaired all of them. In some the transactions of builders have room for one record
//! only, and they must get along with that.

mod client;
mod faulty;
pub(super) mod judge;
mod layout;
mod model;
mod operations;
pub(super) mod plain;
mod planted;
pub(super) mod rows;
mod scrubs;

pub(super) use client::save;
pub(super) use layout::initial;
pub use model::Model;
pub use operations::{Act, Answer, Damage, Mark};
pub use plain::Record;

use crate::{
    record_shared::layout::{FORMAT, part, state},
    shared::{check_ended, compare, ended, session_keys},
};
use bytes::Bytes;
use client::{built, damage_entry, do_acts, found_rows, refused, stated, states, wrote};
use foundationdb_tuple::Subspace;
use judge::Tolerance;
use layout::{DAMAGED, UNIQUE, damages, definitions, meta_data, names, space, stores};
use operations::{mark, some_index};
use planted::{BUGS, Planted};
use proptest::{bool, collection::vec, option, prelude::*, sample::subsequence};
use rows::{States, Stored};
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit, sessions,
    specimen::Recorded,
    workload::{Bug, Outcome, Step},
};
use shaketable_record::{
    error::Error,
    index::{build::Batch, scrub::Scrub},
    store::{RebuildPolicy, RecordContext, RecordStore, describe_key, describe_value},
};
use shaketable_sim::seed::Stream;
use shaketable_tx::{self as tx, Database, Db, RetryError, Tx, once::Session};
use std::{
    collections::BTreeMap,
    ops::{Range, RangeInclusive},
};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordBuild {
    clients: usize,
    operations: Range<usize>,
    /// The number of primary keys. Two of three have a record at the beginning.
    records: i64,
    /// The number of different values of fields, and of the field with a unique index.
    values: i64,
    codes: i64,
    /// The records of a batch, at most.
    batch: usize,
    /// The states of the indexes at the beginning.
    start: Start,
    /// Whether records violate the unique index at the beginning.
    duplicates: bool,
    /// The weights of saves, builds, changes of states, and scrubs.
    mix: [u32; 4],
    /// Whether entries are damaged.
    damages: bool,
    /// Whether the transactions of online builds have room for one record only.
    confined: bool,
    /// The timeout that clients set on their database, in milliseconds.
    timeout: Option<i32>,
    planted: Option<Planted>,
}

/// The states of the indexes at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Start {
    Disabled,
    WriteOnly,
    Built,
}

impl Start {
    fn policy(self) -> RebuildPolicy {
        match self {
            Start::Disabled => RebuildPolicy::Disable,
            Start::WriteOnly => RebuildPolicy::WriteOnly,
            Start::Built => RebuildPolicy::Inline(usize::MAX),
        }
    }
}

impl RecordBuild {
    fn initial(&self) -> BTreeMap<i64, Record> {
        let ids = (0..self.records).filter(|id| id % 3 != 2);
        ids.map(|id| (id, initial(id, self.values, self.duplicates))).collect()
    }

    fn initial_states(&self) -> States {
        let all = |state| definitions().iter().map(|definition| (definition.name.clone(), state)).collect();
        match self.start {
            Start::Disabled => all(state::DISABLED),
            Start::WriteOnly => all(state::WRITE_ONLY),
            Start::Built if self.duplicates => [(definitions()[UNIQUE].name.clone(), state::PENDING)].into(),
            Start::Built => States::new(),
        }
    }

    /// Judges everything that is stored.
    fn judge(&self, stored: &Stored, tolerances: &BTreeMap<usize, Tolerance>) -> Result<(), String> {
        let header = stored.header.clone().ok_or("the store has no header")?;
        if (header.format, header.meta_data) != (Some(FORMAT), Some(meta_data()[1].version())) {
            return Err(format!("the header is {header:?}"));
        }
        let known = |number: &i64| definitions().iter().any(|definition| definition.number == *number);
        if let Some((part, number)) = stored.indexes.keys().find(|(_, number)| !known(number)) {
            return Err(format!("part {part} has rows of an index {number}, which does not exist"));
        }
        let none = Tolerance::default();
        definitions().iter().enumerate().try_for_each(|(place, definition)| {
            judge::index(definition, stored, tolerances.get(&place).unwrap_or(&none))
        })
    }
}

/// An error of the layer where there must be none.
pub(super) fn fdb(error: &Error) -> tx::Error {
    error.fdb().unwrap_or_else(|| panic!("the layer refuses: {error}"))
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<RecordBuild>()
}

/// Indexes of records built online by several builders while records are saved.
#[shaketable::workload(name = "record_build", session = Session<Db>, answer = Answer, model = Model)]
impl RecordBuild {
    /// Saves and deletes in one transaction.
    #[write(weight = 8 * self.mix[0])]
    async fn write(
        &self,
        session: &mut Session<Db>,
        #[draw(vec(self.act(), 1..4))] acts: &[Act],
    ) -> Outcome<Answer> {
        wrote(stores().run(session, |store| async move { do_acts(&store, acts).await }).await)
    }

    /// Builds indexes in batches of this many records until they are readable. The builder dies when it was
    /// polled this many times.
    #[write(weight = 2 * self.mix[1])]
    async fn build(
        &self,
        session: &mut Session<Db>,
        places: &[usize],
        #[draw(1..=self.batch)] records: usize,
        #[draw(option::weighted(0.5, 1..80u64))] polls: Option<u64>,
    ) -> Outcome<Answer> {
        let (db, stores, names) = (session.database(), stores(), names(places));
        let build = sessions::polled(polls.unwrap_or(u64::MAX), stores.build_indexes(db, &names, records));
        built(self.confined(db, build).await)
    }

    /// Does one batch of a build.
    #[write(weight = 3 * self.mix[1])]
    async fn batch(
        &self,
        session: &mut Session<Db>,
        places: &[usize],
        #[draw(1..=self.batch)] records: usize,
        #[draw(any::<u64>().prop_map(|choice| choice % 64))] choice: u64,
    ) -> Outcome<Answer> {
        let (stores, names) = (stores(), &names(places));
        let built = stores.run(session, |store| async move {
            store.begin_index_builds(names).await?;
            store.build_indexes(names, Batch { records, choice }).await?;
            states(&store, places)
        });
        stated(built.await)
    }

    /// Sets the state of an index.
    #[write(weight = 2 * self.mix[2])]
    async fn mark(
        &self,
        session: &mut Session<Db>,
        #[draw(0..definitions().len())] index: usize,
        #[draw(mark())] mark: Mark,
    ) -> Outcome<Answer> {
        let (stores, name) = (stores(), &*definitions()[index].name);
        let marked = stores.run(session, |store| async move {
            match mark {
                Mark::Disabled => store.mark_index_disabled(name).await?,
                Mark::WriteOnly => store.mark_index_write_only(name).await?,
                Mark::Readable => drop(store.mark_index_readable(name).await?),
            }
            states(&store, &[index])
        });
        stated(marked.await)
    }

    /// Scrubs an index: looks for entries without records, or else for records without entries.
    #[write(weight = self.mix[3] * (1 + 4 * u32::from(self.damages)))]
    async fn scrub(
        &self,
        session: &mut Session<Db>,
        #[draw(some_index())] index: usize,
        #[draw(any::<bool>())] dangling: bool,
        #[draw(bool::weighted(0.8))] repair: bool,
        #[draw(1..9usize)] limit: usize,
    ) -> Outcome<Answer> {
        let db = session.database();
        let scrub = if dangling { Scrub::Dangling } else { Scrub::Missing };
        let scrubbed = stores().scrub_index(db, &definitions()[index].name, scrub, repair, limit).await;
        self.scrubbed(db, index, scrubbed.map(|report| Some(found_rows(&report)))).await
    }

    /// Removes the entry of a record from an index, or adds an entry that its record does not have.
    #[write(weight = 10 * u32::from(self.damages))]
    async fn damage(
        &self,
        session: &mut Session<Db>,
        #[draw(self.some_damage())] damage: Damage,
    ) -> Outcome<Answer> {
        let done = session.apply(|tx| async move { damage_entry(&tx, damage).await });
        ended(done.await, |()| Answer::Done, refused)
    }

    /// Draws some of the indexes, by their places.
    #[draws(places)]
    fn places() -> impl Strategy<Value = Vec<usize>> {
        let places: Vec<usize> = (0..definitions().len()).collect();
        subsequence(places, 1..=definitions().len())
    }

    /// A build consists of many transactions.
    fn effects(&self, op: &RecordBuildOp) -> RangeInclusive<usize> {
        match op {
            RecordBuildOp::build { .. } | RecordBuildOp::batch { .. } | RecordBuildOp::scrub { .. } => {
                0..=usize::MAX
            }
            _ => 0..=1,
        }
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "record: a batch of an index is done again after an unknown result",
            "record: a batch lies between others",
            "record: a batch of an index is lessened",
            "record: a batch meets records that are in one of its indexes already",
            "record: a save changes a count that is being built",
            "record: a save leaves a count to the build",
            "record: a violation of a unique index is recorded",
            "record: a violation of a unique index is resolved",
            "record: a scrub finds a missing entry",
            "record: a scrub finds a dangling entry",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> RecordBuild {
        let most = rng.range(6..18) as usize;
        let records = if rng.chance(0.2) { rng.range(30..45) } else { rng.range(4..24) } as i64;
        let (damages, confined) = (rng.chance(0.4), rng.chance(0.3));
        let mix = *rng.pick(&[[2, 2, 1, 1], [1, 3, 1, 1], [3, 2, 0, 1], [2, 1, 2, 1], [4, 1, 0, 6]]);
        // Only a readable index is damaged and scrubbed.
        let first = if damages || mix[3] > 1 { Start::Built } else { Start::Disabled };
        RecordBuild {
            clients: rng.range(3..8) as usize,
            operations: most / 2..most,
            records,
            values: rng.range(1..5) as i64,
            codes: *rng.pick(&[1 + records / 2, records, if damages { records } else { 40 * records }]),
            batch: if confined { 12 } else { *rng.pick(&[1, 2, 3, 4, 6, 12]) },
            start: *rng.pick(&[first, first, Start::Disabled, Start::WriteOnly, Start::Built]),
            // Only an index with violations gets others by damages.
            duplicates: rng.chance(if damages { 0.85 } else { 0.6 }),
            mix,
            damages,
            confined,
            timeout: sessions::draw_timeout(rng),
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let row = |of: Subspace| Bytes::copy_from_slice(of.bytes());
        let records = (0..self.records).step_by(4).map(|id| row(space().subspace(&(part::RECORDS, id))));
        let indexes = definitions().iter().map(|index| row(space().subspace(&(part::INDEXES, index.number))));
        session_keys(self.clients).chain(records).chain(indexes).collect()
    }

    fn describe_key(&self, key: &[u8]) -> Option<String> {
        describe_key(&space(), &meta_data()[1], key)
    }

    fn describe_value(&self, key: &[u8], value: &[u8]) -> Option<String> {
        describe_value(&space(), &meta_data()[1], key, value)
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        let records = &self.initial();
        let before = &RecordStore::builder(space(), meta_data()[0].clone());
        let filled = db.run(|tx, _| async move {
            let store = before.create_or_open(&RecordContext::within(tx)).await?;
            for record in records.values() {
                save(&store, &plain::TYPES, record).await?;
            }
            Ok::<_, Error>(())
        });
        filled.await.map_err(|e| fdb(&e.error))?;
        let after = &stores().rebuild(self.start.policy());
        let upgraded = db.run(|tx, _| async move { after.open(&RecordContext::within(tx)).await.map(drop) });
        upgraded.await.map_err(|e| fdb(&e.error))
    }

    async fn open(&self, db: &Db, client: usize) -> tx::Result<Session<Db>> {
        sessions::open(db, client, self.timeout).await
    }

    async fn resolve_dropped(&self, session: &mut Session<Db>) {
        sessions::resolve_dropped(session, self.timeout).await;
    }

    async fn apply_planted(&self, session: &mut Session<Db>, op: &RecordBuildOp) -> Option<Outcome<Answer>> {
        planted::apply(self.planted?, self, session, op).await
    }

    async fn resolve(
        &self,
        session: &mut Session<Db>,
        op: &RecordBuildOp,
        error: tx::Error,
    ) -> Outcome<Answer> {
        sessions::resolve_unknown(session, self.timeout, error, async |session, pending| {
            let answer = match op {
                RecordBuildOp::write { .. } => {
                    session.resolve(pending).await?.map(|Recorded(told)| Answer::Wrote(told))
                }
                RecordBuildOp::damage { .. } => session.resolve(pending).await?.map(|()| Answer::Done),
                _ => session.resolve(pending).await?.map(|Recorded(states)| Answer::States(states)),
            };
            Ok(answer.map(Outcome::Answered))
        })
        .await
    }

    /// The last batch of a builder that died may be done after its death.
    fn may_land_late(&self, answer: &Answer) -> bool {
        *answer == Answer::Died
    }

    fn model(&self) -> Model {
        Model { records: self.initial(), states: self.initial_states(), ..Model::default() }
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        self.follow(model, step)
    }

    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        let mut tolerances = BTreeMap::<usize, Tolerance>::new();
        for index in DAMAGED.into_iter().filter(|_| self.damages) {
            let tolerance = tolerances.entry(index).or_default();
            for (row, removed) in damages(tx, index).await? {
                let rows = if removed { &mut tolerance.missing } else { &mut tolerance.dangling };
                rows.insert(row);
            }
        }
        let stored = Stored::read(tx, &space()).await?;
        Ok(stored.map_err(Misfit::from).and_then(|stored| Ok(self.judge(&stored, &tolerances)?)))
    }

    /// Builds all indexes, and scrubs them. Nothing is damaged afterwards.
    async fn check(&self, db: &Db, model: &Model) -> tx::Result<Result<(), Misfit>> {
        let (stores, all) = (stores(), names(&(0..definitions().len()).collect::<Vec<_>>()));
        if let Err(e) = stores.build_indexes(db, &all, self.batch).await {
            return check_ended(&e.error);
        }
        for (index, definition) in definitions().iter().enumerate().filter(|(_, index)| index.has_entries()) {
            for scrub in [Scrub::Missing, Scrub::Dangling] {
                match stores.scrub_index(db, &definition.name, scrub, true, self.batch).await {
                    Ok(report) if report.found.is_empty() || (self.damages && DAMAGED.contains(&index)) => {}
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
            if let Some(unbuilt) = stored.states.iter().find(|(_, state)| **state != state::PENDING) {
                return Err(format!("index {} is in state {} after a build", unbuilt.0, unbuilt.1).into());
            }
            self.judge(&stored, &BTreeMap::new())?;
            let records = stored.records.into_iter().map(|(id, kept)| (id, kept.record)).collect();
            compare(&records, &model.records)
        }))
    }
}
