//! How a client performs an operation: with the meta-data that it has, or with the latest.

use super::{
    Answer, Policy, RecordEvolve,
    chain::{Link, place_of},
    layout::{space, used_key},
    operations::{Act, ActAnswer, Op},
    planted,
};
use crate::{
    record_build::{Record, plain::Row, save},
    shared::{ended, unexpected},
};
use foundationdb_tuple::{Element, pack};
use shaketable::{sessions, specimen::Recorded, workload::Outcome};
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits, Spent, TupleRange},
    error::Error,
    metadata::{MetaDataProvider, MetaDataStore, RecordMetaData},
    store::{RecordContext, RecordStore, RecordStoreBuilder, StoredRecord},
    value::Tuple,
};
use shaketable_tx::{
    Database, Db, RunError, Transaction, Tx, always,
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
    pub(super) own: Arc<RecordMetaData>,
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

    /// Performs an operation.
    pub(super) async fn perform(&self, client: &mut Client, op: &Op) -> Outcome<Answer> {
        if client.is_stale
            && let Err(e) = self.refresh(client).await
        {
            return refused(usize::MAX, e);
        }
        let own = match self.version(client.own.clone()) {
            Ok(own) => own,
            Err(e) => return refused(usize::MAX, e),
        };
        let outcome = self.perform_with(client, op, &own).await;
        client.is_stale = matches!(outcome, Outcome::Answered(Answer::Stale(_)));
        outcome
    }

    async fn perform_with(&self, client: &mut Client, op: &Op, own: &Version) -> Outcome<Answer> {
        let db = &client.session.database().clone();
        let (number, chain) = (client.number, self.chain());
        let (meta_data_store, links) = (&client.meta_data_store.clone(), &chain[..]);
        match op {
            Op::Use(acts) => {
                let used =
                    client.session.apply(|tx| async move { self.use_store(tx, number, own, acts).await });
                answered(own.place, used.await)
            }
            Op::UseLatest(acts) => {
                let used = client.session.apply(|tx| async move {
                    let latest = self.version(meta_data_store.meta_data(&tx).await?)?;
                    self.use_store(tx, number, &latest, acts).await
                });
                answered(usize::MAX, used.await)
            }
            Op::Evolve => {
                let evolved = client.session.apply(|tx| async move {
                    let latest = self.version(meta_data_store.meta_data(&tx).await?)?.place;
                    let next = (latest + 1).min(links.len() - 1);
                    meta_data_store.save_record_meta_data(&tx, &links[next].meta_data).await?;
                    Ok::<_, Error>(Recorded(vec![ActAnswer::Latest(next)]))
                });
                answered(usize::MAX, evolved.await)
            }
            Op::SaveOwn => {
                let saved = client.session.apply(|tx| async move {
                    let saved = meta_data_store.save_record_meta_data(&tx, &own.meta_data).await;
                    let is_saved = match saved {
                        Err(Error::MetaData(_)) => false,
                        saved => saved.map(|()| true)?,
                    };
                    Ok::<_, Error>(Recorded(vec![ActAnswer::Own(own.place, is_saved)]))
                });
                answered(own.place, saved.await)
            }
            Op::SaveWrong(wrong) => {
                let saved = client.session.apply(|tx| async move {
                    let latest = self.version(meta_data_store.meta_data(&tx).await?)?.place;
                    let saved =
                        meta_data_store.save_record_meta_data(&tx, &links[latest].wrong(*wrong)).await;
                    let is_saved = match saved {
                        Err(Error::MetaData(_)) => false,
                        saved => saved.map(|()| true)?,
                    };
                    Ok::<_, Error>(Recorded(vec![ActAnswer::Own(latest, is_saved)]))
                });
                answered(usize::MAX, saved.await)
            }
            Op::Refresh => match self.refresh(client).await {
                Ok(place) => Outcome::Answered(Answer::Told(vec![ActAnswer::Latest(place)])),
                Err(e) => refused(usize::MAX, e),
            },
            Op::Build(records, polls) => {
                let names: Vec<&str> =
                    links[own.place].definitions.iter().map(|index| &*index.name).collect();
                let stores = self.stores(&planted::changed(self.planted, &links[own.place], &own.meta_data));
                let build = stores.build_indexes(db, &names, *records);
                let built = match polls {
                    Some(polls) => sessions::polled(*polls, build).await,
                    None => Some(build.await),
                };
                match built {
                    None => Outcome::Answered(Answer::Died),
                    Some(Ok(_)) => Outcome::Answered(Answer::Built),
                    Some(Err(RunError { error: Error::Fdb(e), .. })) => Outcome::Unknown(e),
                    Some(Err(e)) => refused(own.place, e.error),
                }
            }
        }
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

    /// Loads the meta-data that is saved, for the operations from now on. Returns its place.
    pub(super) async fn refresh(&self, client: &mut Client) -> Result<usize, Error> {
        let (db, meta_data_store) = (client.session.database().clone(), &client.meta_data_store);
        let latest = db.run(|tx, _| async move { meta_data_store.meta_data(&tx).await }).await;
        let latest = latest.map_err(|e| e.error)?;
        client.own = latest.clone();
        client.is_stale = false;
        Ok(self.version(latest)?.place)
    }
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
