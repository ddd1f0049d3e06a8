//! How clients do what operations consist of: those who save and delete, builders, and scrubbers.

use super::{
    Answer, RecordBuild,
    layout::{
        DAMAGED, NO_CODE, PARTS, RANK, ROOM_FOR_ONE, UNIQUE, damaged, damages, definitions, names, space,
        stores,
    },
    operations::{Act, Damage},
    plain::{Record, TYPES, primary_key},
    rows::Stored,
};
use crate::{
    record_shared::layout::{part, state},
    shared::{ended, unexpected},
};
use foundationdb_tuple::{pack, unpack};
use shaketable::{specimen::Recorded, workload::Outcome};
use shaketable_record::{
    error::Error,
    index::{BuildReport, IndexAt, IndexEntry, IndexState, ScrubReport},
    store::{RecordContext, RecordExistenceCheck, RecordStore, SaveVersion},
    value::Tuple,
};
use shaketable_tx::{
    self as tx, Database, DatabaseOption, Db, RetryError, RunError, Transaction, Tx, limits, once,
};
use std::collections::BTreeSet;

impl RecordBuild {
    /// Judges what a scrub has found, if it could scrub the index: nothing but what was damaged.
    pub(super) async fn scrubbed(
        &self,
        db: &Db,
        index: usize,
        found: Result<Option<Vec<Vec<u8>>>, RunError<Error>>,
    ) -> Outcome<Answer> {
        let found = match found {
            Ok(Some(found)) => found,
            Ok(None) | Err(RunError { error: Error::IndexState { .. }, .. }) => {
                return Outcome::Answered(Answer::Unscrubbed);
            }
            Err(e) => return worked(&e),
        };
        let noted = match self.damages && DAMAGED.contains(&index) && !found.is_empty() {
            true => db.run(|tx, _| async move { damages(&tx, index).await }).await,
            false => Ok(Vec::new()),
        };
        let noted = match noted {
            Ok(noted) => noted,
            Err(e) => return Outcome::Unknown(e.error),
        };
        match found.iter().find(|row| noted.iter().all(|(damaged, _)| damaged != *row)) {
            None => Outcome::Answered(Answer::Done),
            Some(row) => Outcome::Violated(format!(
                "a scrub of index {} found the entry \"{}\", which nothing has damaged",
                definitions()[index].name,
                row.escape_ascii()
            )),
        }
    }

    /// Builds in transactions that have room for one record only, if the run has drawn that. Those of other
    /// operations have the room of FoundationDB, also after the build was dropped.
    pub(super) async fn confined<A>(&self, db: &Db, build: impl Future<Output = A>) -> A {
        struct Confined<'a>(&'a Db);
        impl Drop for Confined<'_> {
            fn drop(&mut self) {
                set_room(self.0, limits::TRANSACTION_SIZE_LIMIT as i32);
            }
        }
        if !self.confined {
            return build.await;
        }
        set_room(db, ROOM_FOR_ONE);
        let _confined = Confined(db);
        build.await
    }
}

/// The rows that a scrub has found.
pub(super) fn found_rows(report: &ScrubReport) -> Vec<Vec<u8>> {
    let row = |entry: &IndexEntry| entry.key.followed_by(&entry.primary_key).pack();
    report.found.iter().map(row).collect()
}

/// Sets the size of a database's transactions.
fn set_room(db: &Db, bytes: i32) {
    db.set_option(DatabaseOption::TransactionSizeLimit(bytes))
        .expect("the size is one that a database takes");
}

/// The outcome of a build.
pub(super) fn built(built: Option<Result<BuildReport, RunError<Error>>>) -> Outcome<Answer> {
    match built {
        None => Outcome::Answered(Answer::Died),
        Some(Ok(BuildReport { states, .. })) => {
            Outcome::Answered(Answer::States(states.into_iter().map(|state| state as i64).collect()))
        }
        Some(Err(RunError { error: Error::IndexState { .. }, .. })) => Outcome::Answered(Answer::Incomplete),
        Some(Err(e)) => worked(&e),
    }
}

/// The outcome of an operation that gave up: its transactions may have committed.
fn worked(e: &RunError<Error>) -> Outcome<Answer> {
    match e.error.fdb() {
        Some(tx::Error::TRANSACTION_TOO_LARGE) => {
            Outcome::Violated("a batch was too large, and there was room for one record".into())
        }
        _ => unexpected(&e.error, Outcome::Unknown),
    }
}

pub(super) fn refused(error: Error) -> Outcome<Answer> {
    match &error {
        Error::NotUnique { primary_key, .. } => match primary_key.get(0) {
            Some(foundationdb_tuple::Element::Int(id)) => Outcome::Answered(Answer::Taken(*id)),
            _ => Outcome::Violated(error.to_string()),
        },
        Error::IndexState { .. } => Outcome::Answered(Answer::Incomplete),
        e => unexpected(e, Outcome::Failed),
    }
}

pub(super) fn wrote(outcome: once::Outcome<Recorded<bool>, Error>) -> Outcome<Answer> {
    ended(outcome, |Recorded(told)| Answer::Wrote(told), refused)
}

pub(super) fn stated(outcome: once::Outcome<Recorded<i64>, Error>) -> Outcome<Answer> {
    ended(outcome, |Recorded(states)| Answer::States(states), refused)
}

/// Does calls one after the other.
pub(super) async fn do_acts(store: &RecordStore<Tx>, acts: &[Act]) -> Result<Recorded<bool>, Error> {
    let mut told = Vec::new();
    for act in acts {
        told.push(do_act(store, act).await?);
    }
    Ok(Recorded(told))
}

pub(super) async fn do_act(store: &RecordStore<Tx>, act: &Act) -> Result<bool, Error> {
    match act {
        Act::Save(record) => save(store, &TYPES, record).await.map(|()| true),
        Act::Delete(id) => store.delete_record(&Tuple::from(*id)).await,
        Act::DeleteAll => store.delete_all_records().await.map(|()| true),
        Act::DeleteWhere => store.delete_where(&Tuple::empty()).await.map(|()| true),
    }
}

/// Saves a record in a store whose types have these names.
pub(crate) async fn save(store: &RecordStore<Tx>, names: &[&str], record: &Record) -> Result<(), Error> {
    let (check, version) = (RecordExistenceCheck::None, SaveVersion::Next);
    store.save_message(names[record.of as usize - 1], &record.row(), check, version).await.map(drop)
}

/// The states of indexes, as the transaction sees them.
pub(super) fn states(store: &RecordStore<Tx>, places: &[usize]) -> Result<Recorded<i64>, Error> {
    let names = names(places).into_iter();
    let states: Result<Vec<_>, _> = names.map(|name| store.index_state(name)).collect();
    Ok(Recorded(states?.into_iter().map(|state: IndexState| state as i64).collect()))
}

/// Removes an entry of a record, and what a ranked set has of it, or adds an entry that the record does not
/// have, if the index has the keys of all records.
pub(super) async fn damage_entry(tx: &Tx, Damage { index, id, removes }: Damage) -> Result<(), Error> {
    let definition = &definitions()[index];
    let stored = match Stored::read(tx, &space()).await? {
        Ok(stored) => stored,
        // The audit objects to it.
        Err(_) => return Ok(()),
    };
    if ![state::READABLE, state::PENDING].contains(&stored.state(&definition.name)) {
        return Ok(());
    }
    let own = stored.records.get(&id).map(|kept| definition.entries(kept)).unwrap_or_default();
    let entries = stored.rows(part::INDEXES, definition.number);
    let row = match (removes, index) {
        (true, _) => own.into_iter().rfind(|row| entries.contains_key(row)),
        (false, UNIQUE) => return duplicate(tx, &stored, id),
        (false, PARTS) => Some(pack(&(id, id))).filter(|row| !own.contains(row)),
        (false, _) => Some(pack(&(id % 2, id, id))).filter(|row| !own.contains(row)),
    };
    let Some(row) = row else { return Ok(()) };
    tx.set(&damaged(index, &row), if removes { b"removed" } else { b"added" });
    match (removes, index) {
        (true, RANK) => unrank(tx, id).await?,
        (true, _) => tx.clear(&row_key(index, part::INDEXES, &row)),
        (false, _) => tx.set(&row_key(index, part::INDEXES, &row), b""),
    }
    Ok(())
}

/// Adds entries to the unique index for a code that no record has: one to a readable index, if it has none,
/// and otherwise two, each of which is a violation, as all that are there already are.
fn duplicate(tx: &Tx, stored: &Stored, id: i64) -> Result<(), Error> {
    let definition = &definitions()[UNIQUE];
    let row = |id: i64| pack(&(NO_CODE, id));
    let entries = stored.rows(part::INDEXES, definition.number);
    let id_of = |row: &Vec<u8>| match unpack(row) {
        Ok((NO_CODE, id)) => Some(id),
        _ => None,
    };
    let mut ids: BTreeSet<i64> = entries.keys().filter_map(id_of).collect();
    if stored.state(&definition.name) != state::READABLE {
        ids.extend([id, id ^ 1]);
    } else if ids.is_empty() {
        ids.insert(id);
    }
    for id in &ids {
        tx.set(&damaged(UNIQUE, &row(*id)), b"added");
        tx.set(&row_key(UNIQUE, part::INDEXES, &row(*id)), b"");
        if let Some(other) = ids.iter().find(|other| *other != id) {
            tx.set(&row_key(UNIQUE, part::VIOLATIONS, &row(*id)), &primary_key(*other));
        }
    }
    Ok(())
}

/// The key of a row of an index.
pub(super) fn row_key(index: usize, part: i64, row: &[u8]) -> Vec<u8> {
    [space().subspace(&(part, definitions()[index].number)).bytes(), row].concat()
}

/// Removes a record from the index of ranks.
async fn unrank(tx: &Tx, id: i64) -> Result<(), Error> {
    let context = RecordContext::within(tx.clone());
    let store = stores().open(&context).await?;
    let at = IndexAt { store: &store, index: store.index(&definitions()[RANK].name)? };
    let maintainer = store.registry().get(&at.index.kind).expect("a standard type");
    if let Some(record) = store.load_record(&Tuple::from(id)).await? {
        maintainer.update(at, Some(&record), None).await?;
    }
    context.close();
    Ok(())
}
