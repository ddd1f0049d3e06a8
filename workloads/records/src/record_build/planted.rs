//! Planted bugs: builds and saves beside them, done wrongly, and a [scrub](super::scrubs) that is.

use super::{
    Act, Answer, RecordBuild, RecordBuildOp,
    client::{built, do_act, do_acts, wrote},
    faulty,
    layout::{names, space, stores, stores_with},
    scrubs,
};
use crate::record_shared::layout::part;
use shaketable::{sessions::polled, specimen::Recorded, weakened::weakened, workload::Outcome};
use shaketable_record::{
    error::Error,
    index::{
        BuildReport, IndexAt, IndexState,
        build::Batch,
        range_set::{FIRST, LAST},
    },
    store::{RecordContext, RecordStore},
    value::Tuple,
};
use shaketable_tx::{
    ConflictRangeType, Database, Db, Isolation::Snapshot, RunError, Transaction, Tx, once::Session,
};

shaketable::planted_bugs! {
    RecordsAtSnapshot = "records-at-snapshot", "R26: a builder reads the records of its batch at snapshot", "an index built from a snapshot";
    ProgressApart = "progress-apart", "R26: the progress of a build is written in another transaction than the entries", "a job that notes what it has done";
    WriteOnlySkipped = "write-only-skipped", "R26: saves leave a write-only index to the build", "an index built beside writers that do not know of it";
    ViolationsForgotten = "violations-forgotten", "R6: a builder does not note that records have the same unique key", "Record Layer issue 1371";
    StatesDeleted = "states-deleted", "R29: deleting all records deletes the states of the indexes", "indexes that become readable because their states are lost";
    RanksLeft = "ranks-left", "R29: deleting all records leaves what ranked sets have", "a space that a clear forgets";
    UnbuiltKept = "unbuilt-kept", "R26, R29: a deletion by the first columns of primary keys leaves the entries of an index that is being built", "maintenance beside use";
    GapsUnwatched = "gaps-unwatched", "R26: a builder reads the records of its batch, and does not conflict with saves between them", "a batch without a conflict up to its end";
    ScrubbedApart = "scrubbed-apart", "R28: a scrub reads an entry, reads its record, and removes the entry in three transactions", "Record Layer pull request 1293";
}

/// Performs an operation that the bug changes; `None` for every other operation.
pub async fn apply(
    planted: Planted,
    workload: &RecordBuild,
    session: &mut Session<Db>,
    op: &RecordBuildOp,
) -> Option<Outcome<Answer>> {
    let db = &session.database().clone();
    Some(match (planted, op) {
        (Planted::WriteOnlySkipped | Planted::UnbuiltKept, RecordBuildOp::write { acts }) => {
            let stores = stores_with(faulty::registry(planted));
            wrote(stores.run(session, |store| async move { do_acts(&store, acts).await }).await)
        }
        (Planted::StatesDeleted | Planted::RanksLeft, RecordBuildOp::write { acts }) => {
            let stores = stores();
            wrote(stores.run(session, |store| async move { clearing(planted, &store, acts).await }).await)
        }
        (_, RecordBuildOp::build { places, records, polls }) => {
            let (names, polls) = (&names(places), polls.unwrap_or(u64::MAX));
            built(match planted {
                Planted::RecordsAtSnapshot | Planted::ViolationsForgotten | Planted::GapsUnwatched => {
                    polled(polls, by_batches(planted, db, names, *records)).await
                }
                Planted::ProgressApart => polled(polls, apart(workload, db, names, *records)).await,
                _ => return None,
            })
        }
        (Planted::ScrubbedApart, RecordBuildOp::scrub { index, .. }) => {
            scrubs::apart(workload, db, *index).await
        }
        _ => return None,
    })
}

/// Does calls one after the other, and deletes all records in the way of the bug.
async fn clearing(planted: Planted, store: &RecordStore<Tx>, acts: &[Act]) -> Result<Recorded<bool>, Error> {
    let mut told = Vec::new();
    for act in acts {
        if *act != Act::DeleteAll {
            told.push(do_act(store, act).await?);
            continue;
        }
        let kept: &[i64] =
            if planted == Planted::StatesDeleted { &[] } else { &[part::SECONDARY, part::STATES] };
        for part in (part::RECORDS..=part::BUILDS).filter(|part| !kept.contains(part)) {
            let part = space().subspace(&(part,));
            store.context().clear_range(part.bytes(), &part.range().1)?;
        }
        told.push(true);
    }
    Ok(Recorded(told))
}

/// Builds indexes in the batches of the layer, in transactions that read the records at snapshot, which may
/// conflict with changes of what they have read, or with maintainers that forget violations. The layer itself
/// makes the indexes readable.
async fn by_batches(
    planted: Planted,
    db: &Db,
    names: &[&str],
    records: usize,
) -> Result<BuildReport, RunError<Error>> {
    let rows = &space().subspace(&(part::RECORDS,)).range();
    let spans = match planted {
        Planted::RecordsAtSnapshot | Planted::GapsUnwatched => vec![rows.clone()],
        _ => Vec::new(),
    };
    let (wrong, spans) = (&stores_with(faulty::registry(planted)), &spans);
    let within = &|tx: Tx| RecordContext::within(weakened(tx, spans.clone()));
    db.run(|tx, _| async move { wrong.open(&within(tx)).await?.begin_index_builds(names).await }).await?;
    loop {
        let batch = Batch { records, choice: db.env().random_u64() };
        let progress = db
            .run(|tx, _| async move {
                let context = within(tx.clone());
                if planted == Planted::GapsUnwatched {
                    for row in tx.get_range_all(rows.clone().into(), Snapshot).await? {
                        tx.add_conflict_key(&row.key, ConflictRangeType::Read)?;
                    }
                }
                let progress = wrong.open(&context).await?.build_indexes(names, batch).await?;
                context.close();
                Ok::<_, Error>(progress)
            })
            .await?;
        if progress.complete {
            return stores().build_indexes(db, names, records).await;
        }
    }
}

/// Builds indexes by the numbers of the records, from the first one to the last, and notes after each batch
/// what it has done.
async fn apart(
    workload: &RecordBuild,
    db: &Db,
    names: &[&str],
    records: usize,
) -> Result<BuildReport, RunError<Error>> {
    let stores = &stores();
    let open = &|tx| async move { stores.open(&RecordContext::within(tx)).await };
    db.run(|tx, _| async move { open(tx).await?.begin_index_builds(names).await }).await?;
    let numbers: Vec<i64> = (0..workload.records).collect();
    let mut chunks = numbers.chunks(records).peekable();
    let mut begin = FIRST.to_vec();
    while let Some(chunk) = chunks.next() {
        let end = chunks.peek().map_or(LAST.to_vec(), |next| Tuple::from(next[0]).pack());
        let range = (&begin[..], &end[..]);
        db.run(|tx, _| async move {
            let store = open(tx).await?;
            for at in write_only(&store, names)? {
                let maintainer = store.registry().get(&at.index.kind).expect("a standard type");
                for key in chunk.iter().map(|number| Tuple::from(*number)) {
                    if at.ranges().contains(at.transaction()?, &key.pack()).await? {
                        continue;
                    }
                    if let Some(record) = store.load_record(&key).await? {
                        maintainer.update(at, None, Some(&record)).await?;
                    }
                }
            }
            store.context().close();
            Ok::<_, Error>(())
        })
        .await?;
        db.run(|tx, _| async move {
            let store = open(tx).await?;
            for at in write_only(&store, names)? {
                at.ranges().insert(at.transaction()?, range).await?;
            }
            Ok::<_, Error>(())
        })
        .await?;
        begin = end;
    }
    stores.build_indexes(db, names, records).await
}

/// Those of the indexes that are being built.
fn write_only<'a>(store: &'a RecordStore<Tx>, names: &[&str]) -> Result<Vec<IndexAt<'a, Tx>>, Error> {
    let mut found = Vec::new();
    for name in names {
        if store.index_state(name)? == IndexState::WriteOnly {
            found.push(IndexAt { store, index: store.index(name)? });
        }
    }
    Ok(found)
}
