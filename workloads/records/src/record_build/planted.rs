//! Planted bugs: builds and saves beside them, done wrongly, and which [scrubs](super::scrubs) are.

use super::{
    Act, Answer, Mark, Op, RecordBuild,
    client::{built, do_act, limited, stated, told, write},
    faulty::{self, Fault},
    layout::{PARTS, RANK, UNIQUE, definitions, names, space, stores, stores_with},
    scrubs,
};
use crate::record_shared::layout::{header_key, part, state};
use foundationdb_tuple::pack;
use shaketable::{specimen::Recorded, weakened::weakened, workload::Outcome};
use shaketable_record::{
    error::Error,
    index::{
        BuildReport, IndexAt, IndexState, Registry,
        build::Batch,
        range_set::{FIRST, LAST},
    },
    store::{RecordContext, RecordStore},
    value::Tuple,
};
use shaketable_tx::{
    Database,
    Isolation::Snapshot,
    RunError, Transaction,
    once::{self, Session},
};

shaketable::planted_bugs! {
    StatesAtSnapshot = "states-at-snapshot", "R25: a save reads the header and the states of the indexes at snapshot", "a change of an index's state that is missed";
    PassedAtSnapshot = "passed-at-snapshot", "R26: a save reads at snapshot whether the build has passed its record", "a check that a commit does not repeat";
    RecordsAtSnapshot = "records-at-snapshot", "R26: a builder reads the records of its batch at snapshot", "an index built from a snapshot";
    ReadableUnbuilt = "readable-unbuilt", "R26: an index over records is marked readable when its build begins", "a new index that is used before it is built";
    ProgressApart = "progress-apart", "R26: the progress of a build is written in another transaction than the entries", "a job that notes what it has done";
    RangeRemembered = "range-remembered", "R26: a builder continues after the record that it remembers, whatever was done meanwhile", "counts and ranks that are built twice";
    WriteOnlySkipped = "write-only-skipped", "R26: saves leave a write-only index to the build", "an index built beside writers that do not know of it";
    CountedEarly = "counted-early", "R30: a save changes a count although the build has not come to its record", "an index for which a record must not be counted twice, maintained like the others";
    DuplicatesReadable = "duplicates-readable", "R6: a unique index over records with equal keys becomes readable", "Record Layer issue 1371";
    ViolationsForgotten = "violations-forgotten", "R6: a builder does not note that records have the same unique key", "Record Layer issue 1371";
    RowsKept = "rows-kept", "R26: an index that is disabled keeps its rows, and is built again over them", "entries of records that were deleted meanwhile";
    StatesDeleted = "states-deleted", "R29: deleting all records deletes the states of the indexes", "indexes that become readable because their states are lost";
    RanksLeft = "ranks-left", "R29: deleting all records leaves what ranked sets have", "a space that a clear forgets";
    UnbuiltKept = "unbuilt-kept", "R26, R29: a deletion by the first columns of primary keys leaves the entries of an index that is being built", "maintenance beside use";
    ViolationsLeft = "violations-left", "R29: deleting all records leaves the violations of unique indexes", "a space that a clear forgets";
    GapsUnwatched = "gaps-unwatched", "R26: a builder reads the records of its batch, and does not conflict with saves between them", "a batch without a conflict up to its end";
    LastOutside = "last-outside", "R26: the range of a batch ends before its last record, which is built again", "a range that ends at its last element";
    LastOfBatch = "last-of-batch", "the last record of a batch of more than six is not built", "a loop that ends one too early";
    EndsAtLimit = "ends-at-limit", "a build of more than 24 records ends after 24", "a limit that tests never reach";
    OneIndexBuilt = "one-index-built", "of several indexes that are built together the last one is only marked", "several indexes in one pass";
    RanksUnrepaired = "ranks-unrepaired", "R28: a scrub puts a missing entry back, and leaves its score out of the ranked set", "a repair of one of two places";
    ScrubbedApart = "scrubbed-apart", "R28: a scrub reads an entry, reads its record, and removes the entry in three transactions", "Record Layer pull request 1293";
    ViolationsUnresolved = "violations-unresolved", "R28: a scrub removes an entry of a unique index, and leaves the violations that it was one of", "a repair of one of two places";
    FirstEntryScrubbed = "first-entry-scrubbed", "R28: a scrub looks at the first entry of each record only", "an index of a list";
    BatchKept = "batch-kept", "an online build whose batch is too large tries the same batch again, and does not end", "a batch that grows with its records";
}

/// Performs an operation that the bug changes; `None` for every other operation.
pub async fn apply<D: Database>(
    planted: Planted,
    workload: &RecordBuild,
    session: &mut Session<D>,
    op: &Op,
) -> Option<Outcome<Answer>> {
    let db = &session.database().clone();
    let stores = stores();
    let of = |part: i64| space().subspace(&(part,)).range();
    match (planted, op) {
        (Planted::StatesAtSnapshot, Op::Write(acts)) => {
            let header = header_key(&space());
            let spans = vec![(header.clone(), [&header[..], b"\x00"].concat()), of(part::STATES)];
            Some(weakly(session, spans, acts).await)
        }
        (Planted::PassedAtSnapshot, Op::Write(acts)) => {
            Some(weakly(session, vec![of(part::RANGES)], acts).await)
        }
        (Planted::WriteOnlySkipped, Op::Write(acts)) => {
            Some(faultily(session, Fault::SkipsWriteOnly, acts).await)
        }
        (Planted::UnbuiltKept, Op::Write(acts)) => Some(faultily(session, Fault::KeepsUnbuilt, acts).await),
        (Planted::CountedEarly, Op::Write(acts)) => Some(faultily(session, Fault::CountsEarly, acts).await),
        (Planted::StatesDeleted | Planted::RanksLeft | Planted::ViolationsLeft, Op::Write(acts)) => {
            let wrote = stores.run(session, |store| async move { clearing(planted, &store, acts).await });
            Some(told(wrote.await))
        }
        (Planted::RecordsAtSnapshot | Planted::ViolationsForgotten, Op::Build(places, records, polls)) => {
            let names = &names(places);
            Some(built(limited(*polls, by_batches(planted, db, names, *records)).await))
        }
        (
            Planted::ProgressApart
            | Planted::RangeRemembered
            | Planted::GapsUnwatched
            | Planted::LastOutside
            | Planted::LastOfBatch
            | Planted::EndsAtLimit
            | Planted::OneIndexBuilt,
            Op::Build(places, records, polls),
        ) => {
            let names = &names(places);
            Some(built(limited(*polls, by_numbers(planted, workload, db, names, *records)).await))
        }
        (Planted::ReadableUnbuilt, Op::Build(places, ..)) => {
            let (names, places) = (&names(places), &places[..]);
            let begun = stores.run(session, |store| async move {
                store.begin_index_builds(names).await?;
                names.iter().try_for_each(|name| make_readable(&store, name))?;
                Ok::<_, Error>(Recorded(vec![state::READABLE; places.len()]))
            });
            Some(stated(begun.await))
        }
        (Planted::DuplicatesReadable, Op::Build(places, records, polls)) if places.contains(&UNIQUE) => {
            let names = &names(places);
            let build = async {
                let report = stores.build_indexes(db, names, *records).await?;
                if report.states.contains(&IndexState::ReadableUniquePending) {
                    let stores = &stores;
                    db.run(|tx, _| async move {
                        let store = stores.open(&RecordContext::within(tx)).await?;
                        let unique = &definitions()[UNIQUE].name;
                        match store.index_state(unique)? {
                            IndexState::ReadableUniquePending => make_readable(&store, unique),
                            _ => Ok(()),
                        }
                    })
                    .await?;
                }
                Ok(report)
            };
            Some(built(limited(*polls, build).await))
        }
        (Planted::RowsKept, Op::Mark(index, mark @ (Mark::Disabled | Mark::WriteOnly))) => {
            let set = stores.run(session, |store| async move {
                let (name, tx) = (&*definitions()[*index].name, store.context().transaction()?);
                let state = if *mark == Mark::Disabled { state::DISABLED } else { state::WRITE_ONLY };
                tx.set(&state_key(name), &pack(&(state,)));
                Ok::<_, Error>(Recorded(vec![state]))
            });
            Some(stated(set.await))
        }
        (Planted::RanksUnrepaired, Op::Scrub(scrubbing))
            if scrubbing.index == RANK && !scrubbing.dangling =>
        {
            Some(scrubs::repaired_in_part(workload, db, scrubbing).await)
        }
        (Planted::ScrubbedApart, Op::Scrub(scrubbing)) => {
            Some(scrubs::apart(workload, db, scrubbing.index).await)
        }
        (Planted::ViolationsUnresolved, Op::Scrub(scrubbing))
            if scrubbing.index == UNIQUE && scrubbing.dangling =>
        {
            Some(scrubs::of_rows(workload, db, scrubbing, usize::MAX).await)
        }
        (Planted::FirstEntryScrubbed, Op::Scrub(scrubbing)) if scrubbing.index == PARTS => {
            Some(scrubs::of_rows(workload, db, scrubbing, 1).await)
        }
        (Planted::BatchKept, Op::Build(places, records, polls)) => {
            let names = &names(places);
            let build = limited(*polls, by_batches(planted, db, names, *records));
            Some(built(workload.confined(db, build).await))
        }
        _ => None,
    }
}

fn state_key(name: &str) -> Vec<u8> {
    space().pack(&(part::STATES, name))
}

fn make_readable<T: Transaction>(store: &RecordStore<T>, name: &str) -> Result<(), Error> {
    store.context().transaction()?.clear(&state_key(name));
    Ok(())
}

/// Saves and deletes; what is read in these spans does not conflict.
async fn weakly<D: Database>(
    session: &mut Session<D>,
    spans: Vec<(Vec<u8>, Vec<u8>)>,
    acts: &[Act],
) -> Outcome<Answer> {
    let (stores, spans) = (&stores(), &spans);
    let wrote: once::Outcome<Recorded<bool>, Error> = session
        .apply(|tx| async move {
            let tx = weakened(tx, spans.clone());
            let context = RecordContext::within(tx);
            let told = write(&stores.open(&context).await?, acts).await?;
            context.close();
            Ok(told)
        })
        .await;
    told(wrote)
}

/// Saves and deletes with faulty maintainers.
async fn faultily<D: Database>(session: &mut Session<D>, fault: Fault, acts: &[Act]) -> Outcome<Answer> {
    let stores = stores_with(faulty::registry(fault));
    told(stores.run(session, |store| async move { write(&store, acts).await }).await)
}

/// Does calls one after the other, and deletes all records in the way of the bug.
async fn clearing<T: Transaction>(
    planted: Planted,
    store: &RecordStore<T>,
    acts: &[Act],
) -> Result<Recorded<bool>, Error> {
    let mut told = Vec::new();
    for act in acts {
        if *act != Act::DeleteAll {
            told.push(do_act(store, act).await?);
            continue;
        }
        let kept = match planted {
            Planted::StatesDeleted => None,
            Planted::RanksLeft => Some(part::SECONDARY),
            _ => Some(part::VIOLATIONS),
        };
        let parts =
            [part::RECORDS, part::INDEXES, part::SECONDARY, part::RANGES, part::VIOLATIONS, part::BUILDS];
        let states = kept.is_none().then_some(part::STATES);
        for part in parts.into_iter().filter(|part| Some(*part) != kept).chain(states) {
            let part = space().subspace(&(part,));
            store.context().clear_range(part.bytes(), &part.range().1)?;
        }
        told.push(true);
    }
    Ok(Recorded(told))
}

/// Builds indexes in the batches of the layer, none of which is lessened: in transactions that read the
/// records at snapshot, or with maintainers that forget violations.
async fn by_batches<D: Database>(
    planted: Planted,
    db: &D,
    names: &[&str],
    records: usize,
) -> Result<BuildReport, RunError<Error>> {
    let spans = match planted {
        Planted::RecordsAtSnapshot => vec![space().subspace(&(part::RECORDS,)).range()],
        _ => Vec::new(),
    };
    let registry = match planted {
        Planted::ViolationsForgotten => faulty::registry(Fault::ForgetsViolations),
        _ => Registry::standard(),
    };
    let (stores, spans) = (&stores_with(registry), &spans);
    let within = |tx: D::Transaction| RecordContext::within(weakened(tx, spans.clone()));
    let within = &within;
    db.run(|tx, _| async move { stores.open(&within(tx)).await?.begin_index_builds(names).await }).await?;
    let mut read = 0;
    loop {
        let batch = Batch { records, choice: db.env().random_u64() };
        let progress = db
            .run(|tx, _| async move {
                let context = within(tx);
                let progress = stores.open(&context).await?.build_indexes(names, batch).await?;
                context.close();
                Ok::<_, Error>(progress)
            })
            .await?;
        read += progress.records;
        if progress.complete {
            return Ok(BuildReport { states: finish(db, names).await?, records: read });
        }
    }
}

async fn finish<D: Database>(db: &D, names: &[&str]) -> Result<Vec<IndexState>, RunError<Error>> {
    let stores = &stores();
    db.run(|tx, _| async move {
        let store = stores.open(&RecordContext::within(tx)).await?;
        let mut states = Vec::new();
        for name in names {
            states.push(store.mark_index_readable(name).await?);
        }
        Ok(states)
    })
    .await
}

/// Builds indexes by the numbers of the records, from the first one to the last.
async fn by_numbers<D: Database>(
    planted: Planted,
    workload: &RecordBuild,
    db: &D,
    names: &[&str],
    records: usize,
) -> Result<BuildReport, RunError<Error>> {
    let stores = &stores();
    db.run(
        |tx, _| async move { stores.open(&RecordContext::within(tx)).await?.begin_index_builds(names).await },
    )
    .await?;
    let numbers: Vec<i64> = (0..workload.records).collect();
    let chunks: Vec<&[i64]> = numbers.chunks(records).collect();
    let chunks = &chunks[..];
    for (place, chunk) in chunks.iter().enumerate() {
        let begin = if place == 0 { FIRST.to_vec() } else { Tuple::from(chunk[0]).pack() };
        let end = chunks.get(place + 1).map_or(LAST.to_vec(), |next| Tuple::from(next[0]).pack());
        let range = (&begin[..], &end[..]);
        let is_apart = planted == Planted::ProgressApart;
        db.run(|tx, _| async move {
            let context = RecordContext::within(tx);
            let store = stores.open(&context).await?;
            for at in write_only(&store, names)? {
                let missing = at.ranges();
                let tx = at.transaction()?;
                if planted == Planted::OneIndexBuilt
                    && names.len() > 1
                    && names.last() == Some(&&*at.index.name)
                {
                    at.ranges().insert(tx, range).await?;
                    continue;
                }
                for number in planted.built(chunks, place) {
                    let key = Tuple::from(number);
                    if is_apart && missing.contains(tx, &key.pack()).await? {
                        continue;
                    }
                    let is_absent = planted == Planted::GapsUnwatched
                        && store.load_record_at(&key, Snapshot).await?.is_none();
                    if is_absent {
                        continue;
                    }
                    if let Some(record) = store.load_record(&key).await? {
                        let maintainer = store.registry().get(&at.index.kind).expect("a standard type");
                        maintainer.update(at, None, Some(&record)).await?;
                    }
                }
                if !is_apart {
                    at.ranges().insert(tx, range).await?;
                }
            }
            context.close();
            Ok::<_, Error>(())
        })
        .await?;
        if is_apart {
            db.run(|tx, _| async move {
                let store = stores.open(&RecordContext::within(tx)).await?;
                for at in write_only(&store, names)? {
                    at.ranges().insert(at.transaction()?, range).await?;
                }
                Ok::<_, Error>(())
            })
            .await?;
        }
    }
    Ok(BuildReport { states: finish(db, names).await?, records: numbers.len() })
}

impl Planted {
    /// The numbers of the records that are built in one of the batches.
    fn built(self, chunks: &[&[i64]], place: usize) -> Vec<i64> {
        let chunk = chunks[place];
        match self {
            Planted::LastOutside => {
                let before = place.checked_sub(1).and_then(|place| chunks[place].last());
                before.into_iter().chain(chunk).copied().collect()
            }
            Planted::LastOfBatch if chunk.len() > 6 => chunk[..chunk.len() - 1].to_vec(),
            Planted::EndsAtLimit => {
                let done: usize = chunks[..place].iter().map(|chunk| chunk.len()).sum();
                chunk.iter().take(24usize.saturating_sub(done)).copied().collect()
            }
            _ => chunk.to_vec(),
        }
    }
}

/// Those of the indexes that are being built.
fn write_only<'a, T: Transaction>(
    store: &'a RecordStore<T>,
    names: &[&str],
) -> Result<Vec<IndexAt<'a, T>>, Error> {
    let mut found = Vec::new();
    for name in names {
        if store.index_state(name)? == IndexState::WriteOnly {
            found.push(IndexAt { store, index: store.index(name)? });
        }
    }
    Ok(found)
}
