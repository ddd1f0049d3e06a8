//! How a client performs an operation: those who save and delete, builders, and scrubbers.

use super::{
    Answer, RecordBuild,
    layout::{DAMAGED, damaged, damages, definitions, names, space, stores},
    operations::{Act, Mark, Op, Scrubbing},
    plain::Record,
    rows::Stored,
};
use crate::catalogue::{
    record_shared::layout::{part, state},
    shared::{ended, unexpected},
};
use foundationdb_tuple::pack;
use shaketable::{sessions, specimen::Recorded, workload::Outcome};
use shaketable_layers::{
    once::{self, Session},
    tx::{Database, RunError, Transaction},
};
use shaketable_record::{
    error::Error,
    index::{BuildReport, IndexAt, IndexEntry, IndexState, ScrubReport, build::Batch, scrub::Scrub},
    store::{RecordContext, RecordExistenceCheck, RecordStore, SaveVersion},
    value::Tuple,
};

impl RecordBuild {
    /// Performs an operation.
    pub(super) async fn perform<D: Database>(&self, session: &mut Session<D>, op: &Op) -> Outcome<Answer> {
        let (db, stores) = (&session.database().clone(), stores());
        match op {
            Op::Write(acts) => {
                let wrote = stores.run(session, |store| async move { write(&store, acts).await });
                told(wrote.await)
            }
            Op::Build(places, records, polls) => {
                let names = names(places);
                let build = stores.build_indexes(db, &names, *records);
                built(limited(*polls, build).await)
            }
            Op::Batch(places, records, choice) => {
                let batch = Batch { records: *records, choice: *choice };
                let (names, places) = (&names(places), &places[..]);
                let built = stores.run(session, |store| async move {
                    store.begin_index_builds(names).await?;
                    store.build_indexes(names, batch).await?;
                    states(&store, places)
                });
                stated(built.await)
            }
            Op::Mark(index, mark) => {
                let marked =
                    stores.run(session, |store| async move { mark_index(&store, *index, *mark).await });
                stated(marked.await)
            }
            Op::Scrub(scrubbing) => {
                let Scrubbing { index, repair, limit, .. } = *scrubbing;
                let name = &*definitions()[index].name;
                match stores.scrub_index(db, name, scrubbing.scrub(), repair, limit).await {
                    Ok(report) => self.found(db, index, found_rows(&report)).await,
                    Err(RunError { error: Error::IndexState { .. }, .. }) => {
                        Outcome::Answered(Answer::Unscrubbed)
                    }
                    Err(e) => worked(&e),
                }
            }
            Op::Damage(index, id, removes) => {
                let done = session.apply(|tx| async move { damage(&tx, *index, *id, *removes).await });
                ended(done.await, |()| Answer::Done, refused)
            }
        }
    }

    /// Judges what a scrub has found: nothing but what was damaged.
    pub(super) async fn found<D: Database>(
        &self,
        db: &D,
        index: usize,
        found: Vec<Vec<u8>>,
    ) -> Outcome<Answer> {
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
}

/// The rows that a scrub has found.
pub(super) fn found_rows(report: &ScrubReport) -> Vec<Vec<u8>> {
    let row = |entry: &IndexEntry| entry.key.followed_by(&entry.primary_key).pack();
    report.found.iter().map(row).collect()
}

impl Scrubbing {
    pub(super) fn scrub(&self) -> Scrub {
        if self.dangling { Scrub::Dangling } else { Scrub::Missing }
    }
}

/// Runs `build`, unless the builder dies before it has ended.
pub(super) async fn limited<A>(
    polls: Option<u64>,
    build: impl Future<Output = Result<A, RunError<Error>>>,
) -> Option<Result<A, RunError<Error>>> {
    match polls {
        Some(polls) => sessions::polled(polls, build).await,
        None => Some(build.await),
    }
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
    unexpected(&e.error, Outcome::Unknown)
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

pub(super) fn told(outcome: once::Outcome<Recorded<bool>, Error>) -> Outcome<Answer> {
    ended(outcome, |Recorded(told)| Answer::Wrote(told), refused)
}

pub(super) fn stated(outcome: once::Outcome<Recorded<i64>, Error>) -> Outcome<Answer> {
    ended(outcome, |Recorded(states)| Answer::States(states), refused)
}

/// Does calls one after the other.
pub(super) async fn write<T: Transaction>(
    store: &RecordStore<T>,
    acts: &[Act],
) -> Result<Recorded<bool>, Error> {
    let mut told = Vec::new();
    for act in acts {
        told.push(do_act(store, act).await?);
    }
    Ok(Recorded(told))
}

pub(super) async fn do_act<T: Transaction>(store: &RecordStore<T>, act: &Act) -> Result<bool, Error> {
    match act {
        Act::Save(record) => save(store, record).await.map(|()| true),
        Act::Delete(id) => store.delete_record(&Tuple::from(*id)).await,
        Act::DeleteAll => store.delete_all_records().await.map(|()| true),
    }
}

/// Saves a record.
pub(in crate::catalogue) async fn save<T: Transaction>(
    store: &RecordStore<T>,
    record: &Record,
) -> Result<(), Error> {
    let (check, version) = (RecordExistenceCheck::None, SaveVersion::Next);
    store.save_message(record.type_name(), &record.row(), check, version).await.map(drop)
}

/// Sets the state of an index, and returns it.
async fn mark_index<T: Transaction>(
    store: &RecordStore<T>,
    index: usize,
    mark: Mark,
) -> Result<Recorded<i64>, Error> {
    let name = &*definitions()[index].name;
    match mark {
        Mark::Disabled => store.mark_index_disabled(name).await?,
        Mark::WriteOnly => store.mark_index_write_only(name).await?,
        Mark::Readable => drop(store.mark_index_readable(name).await?),
    }
    states(store, &[index])
}

/// The states of indexes, as the transaction sees them.
pub(super) fn states<T: Transaction>(
    store: &RecordStore<T>,
    places: &[usize],
) -> Result<Recorded<i64>, Error> {
    let names = names(places).into_iter();
    let states: Result<Vec<_>, _> = names.map(|name| store.index_state(name)).collect();
    Ok(Recorded(states?.into_iter().map(|state: IndexState| state as i64).collect()))
}

/// Removes the entry of a record, and what a ranked set has of it, or adds an entry that the record does not have, if the
/// index is readable.
async fn damage<T: Transaction>(tx: &T, index: usize, id: i64, removes: bool) -> Result<(), Error> {
    let definition = &definitions()[index];
    let stored = match Stored::read(tx, &space()).await? {
        Ok(stored) => stored,
        // The audit objects to it.
        Err(_) => return Ok(()),
    };
    if stored.state(&definition.name) != state::READABLE {
        return Ok(());
    }
    let own = stored.records.get(&id).and_then(|kept| definition.entry(kept));
    let row = match removes {
        true => own.filter(|row| stored.rows(part::INDEXES, definition.number).contains_key(row)),
        false => Some(pack(&(id % 2, id, id))).filter(|row| own.as_ref() != Some(row)),
    };
    let Some(row) = row else { return Ok(()) };
    tx.set(&damaged(index, &row), if removes { b"removed" } else { b"added" });
    if !removes {
        tx.set(&[space().subspace(&(part::INDEXES, definition.number)).bytes(), &row].concat(), b"");
        return Ok(());
    }
    let context = RecordContext::within(tx.clone());
    let store = stores().open(&context).await?;
    let at = IndexAt { store: &store, index: store.index(&definition.name)? };
    let maintainer = store.registry().get(&at.index.kind).expect("a standard type");
    if let Some(record) = store.load_record(&Tuple::from(id)).await? {
        maintainer.update(at, Some(&record), None).await?;
    }
    context.close();
    Ok(())
}
