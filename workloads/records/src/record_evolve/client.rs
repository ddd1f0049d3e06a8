//! How clients load and save meta-data, and use the store with it.

use super::{
    Answer, Policy, RecordEvolve,
    chain::{Link, place_of},
    layout::{space, used_key},
    operations::{Act, ActAnswer},
    planted,
};
use crate::{
    record_build::{Record, plain::Row, save},
    shared::{ended, unexpected},
};
use foundationdb_tuple::{Element, pack};
use shaketable::{specimen::Recorded, workload::Outcome};
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits, Spent, TupleRange},
    error::Error,
    metadata::{MetaDataProvider, MetaDataStore, RecordMetaData},
    store::{RecordContext, RecordStore, RecordStoreBuilder, StoredRecord},
    value::Tuple,
};
use shaketable_tx::{
    Database, Db, Transaction, Tx, always,
    once::{self, Session},
    sometimes,
};
use std::sync::Arc;

/// The state of a client.
pub struct Client {
    pub(super) number: usize,
    pub(super) session: Session<Db>,
    pub(super) meta_data_store: MetaDataStore,
    /// The meta-data that the client has.
    pub(super) own: Version,
    /// Whether the store has refused it.
    pub(super) is_stale: bool,
}

/// A version of the meta-data, with its place.
#[derive(Clone)]
pub(super) struct Version {
    pub place: usize,
    pub meta_data: Arc<RecordMetaData>,
}

impl RecordEvolve {
    /// How the store is opened with this meta-data.
    pub(super) fn stores(&self, meta_data: &Arc<RecordMetaData>) -> RecordStoreBuilder<Tx> {
        RecordStore::builder(space(), meta_data.clone()).rebuild(self.policy.into())
    }

    /// The place of meta-data that a client has loaded. Fails if no client has saved this version.
    pub(super) fn version(&self, meta_data: Arc<RecordMetaData>) -> Result<Version, Error> {
        let unsaved = || Error::Message { record_type: "meta-data".into(), reason: "nobody saved it".into() };
        let place = place_of(&self.chain(), meta_data.version()).ok_or_else(unsaved)?;
        Ok(Version { place, meta_data })
    }

    /// The meta-data that is saved.
    pub(super) async fn latest(&self, from: &MetaDataStore, tx: &Tx) -> Result<Version, Error> {
        self.version(from.meta_data(tx).await?)
    }

    /// Loads the meta-data that is saved, for the operations from now on.
    pub(super) async fn load(&self, client: &mut Client) -> Result<(), Error> {
        let (db, from) = (client.session.database(), &client.meta_data_store);
        let latest = db.run(|tx, _| async move { self.latest(from, &tx).await }).await;
        client.own = latest.map_err(|e| e.error)?;
        client.is_stale = false;
        Ok(())
    }

    /// Opens the store in a transaction, and notes with which version of the meta-data.
    pub(super) async fn open_store(
        &self,
        tx: Tx,
        client: usize,
        version: &Version,
    ) -> Result<RecordStore<Tx>, Error> {
        tx.set(&used_key(client), &pack(&(version.place as i64,)));
        let meta_data = planted::changed(self.planted, &self.chain()[version.place], &version.meta_data);
        let store = self.stores(&meta_data).open(&RecordContext::within(tx)).await?;
        if let (Policy::Inline(most), Some(before)) = (self.policy, store.previous_versions())
            && before.meta_data < meta_data.version()
        {
            built_inline(&store, before.meta_data, most).await?;
        }
        Ok(store)
    }

    /// Opens the store in a transaction, and does calls one after the other.
    pub(super) async fn use_store(
        &self,
        tx: Tx,
        client: usize,
        version: &Version,
        acts: &[Act],
    ) -> Result<Recorded<ActAnswer>, Error> {
        let store = self.open_store(tx, client, version).await?;
        do_acts(store, &self.chain()[version.place], version.place, acts).await
    }
}

/// Saves meta-data, if it can follow what is saved.
pub(super) async fn save_meta_data(
    to: &MetaDataStore,
    tx: &Tx,
    version: &Version,
) -> Result<Recorded<ActAnswer>, Error> {
    let is_saved = match to.save_record_meta_data(tx, &version.meta_data).await {
        Err(Error::MetaData(_)) => false,
        saved => saved.map(|()| true)?,
    };
    Ok(Recorded(vec![ActAnswer::Own(version.place, is_saved)]))
}

/// Claims that opening a store from this version of the meta-data has built the indexes that were changed
/// since, if it may for as many records as there are.
async fn built_inline(store: &RecordStore<Tx>, before: i32, most: usize) -> Result<(), Error> {
    let spent = Spent::new(Limits::default());
    let records = store.scan_records(TupleRange::all(), false, Continuation::Start, &spent)?;
    let count = records.to_list().await?.rows.len();
    if count > most {
        return Ok(());
    }
    sometimes!(count == most, "record_evolve: as many records as may be indexed where a store is opened");
    let changed = store.meta_data().indexes().filter(|index| index.last_modified_version > before);
    for index in changed {
        let state = store.index_state(&index.name)?;
        always!(
            state.is_scannable(),
            "opened with {count} records, {most} of which may be indexed, and index {} is {state}",
            index.name
        );
    }
    Ok(())
}

/// Does calls one after the other.
pub(super) async fn do_acts(
    store: RecordStore<Tx>,
    link: &Link,
    place: usize,
    acts: &[Act],
) -> Result<Recorded<ActAnswer>, Error> {
    let mut answers = vec![ActAnswer::With(place)];
    for act in acts {
        answers.push(match act {
            Act::Save(record) => {
                save(&store, &link.shape.names, &link.fit(record)).await.map(|()| ActAnswer::Saved)?
            }
            Act::Delete(id) => ActAnswer::Deleted(store.delete_record(&Tuple::from(*id)).await?),
            Act::Load(id) => {
                let loaded = store.load_record(&Tuple::from(*id)).await?;
                ActAnswer::Loaded(loaded.map(|record| plain(link, &record)).transpose()?)
            }
            Act::Scan => {
                let spent = Spent::new(Limits::default());
                let scan = store.scan_records(TupleRange::all(), false, Continuation::Start, &spent)?;
                let numbers =
                    scan.to_list().await?.rows.into_iter().map(|record| number(&record.primary_key));
                ActAnswer::Scanned(numbers.collect())
            }
        });
    }
    store.context().close();
    Ok(Recorded(answers))
}

fn number(primary_key: &Tuple) -> i64 {
    match primary_key.get(0) {
        Some(Element::Int(number)) => *number,
        _ => i64::MIN,
    }
}

/// A record that was loaded with this version of the meta-data, as plain data.
fn plain(link: &Link, record: &StoredRecord) -> Result<Record, Error> {
    let (name, row) = (&record.record_type.name, record.transcode::<Row>()?);
    let unreadable = || Error::Message { record_type: name.clone(), reason: "it has no number".into() };
    Record::of_row(&link.shape.names, name, &row).ok_or_else(unreadable)
}

pub(super) fn answered(place: usize, outcome: once::Outcome<Recorded<ActAnswer>, Error>) -> Outcome<Answer> {
    ended(outcome, |Recorded(answers)| Answer::Told(answers), |e| refused(place, e))
}

/// The outcome of an operation that was refused, of a client whose meta-data has this place.
pub(super) fn refused(place: usize, error: Error) -> Outcome<Answer> {
    match &error {
        Error::StaleMetaData { .. } => Outcome::Answered(Answer::Stale(place)),
        Error::NotUnique { primary_key, .. } => Outcome::Answered(Answer::Taken(number(primary_key))),
        Error::IndexState { .. } => Outcome::Answered(Answer::Incomplete),
        e => unexpected(e, Outcome::Failed),
    }
}
