//! Planted bugs: jobs and swaps implemented or used wrongly.

use super::{
    ActAnswer, Answer, Bulk, BulkOp, Client,
    client::{applied, done, refused, worked},
    composed::progress,
    layout::{build_id, built, job, job_key, rows, tag_of, work, workspace, workspace_space},
};
use foundationdb_tuple::{Bytes as TupleBytes, pack};
use shaketable::{
    isolation,
    specimen::{INTERLEAVED, UNRECORDED},
    weakened::{Flaw, flawed, only, weakened},
    workload::Outcome,
};
use shaketable_layers::bulk::{Error, Progress};
use shaketable_tx::{
    Database, Db,
    Isolation::{Serializable, Snapshot},
    RunError, Transaction, Tx,
    once::converging,
};
use std::time::Duration;

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "a worker continues from the cursor that it remembers, not from the recorded one", "a batch done again after an unknown result";
    ProgressAfter = "progress-after", "the progress is written in a separate transaction after the work", "a job that notes what it has done";
    RowsAtSnapshot = "rows-at-snapshot", "a worker reads the rows of its batch at snapshot", "an index built from a snapshot";
    ShortBatchIsLast = "short-batch-is-last", "the first batch of the range read is taken for all rows, and a short one for the last", "a range that is longer than a batch";
    BuiltInPlace = "built-in-place", "a builder overwrites the rows that are read", "a load without a workspace";
    PublishedFirst = "published-first", "a build is published before its rows are written", "a swap in the wrong order";
    SilenceInVersions = "silence-in-versions", "the silence of a builder is measured by how far the version advances", "a recovery, which jumps a hundred million versions";
    LookBehindWrites = "look-behind-writes", "a read of the progress does not see the batch of its own transaction", "a look-up in a transaction of its own";
    ProgressConflicts = "progress-conflicts", "a read of the progress that is requested at snapshot is serializable", "an isolation that is not passed on";
    Interleaved = INTERLEAVED, "two batches that run side by side in one transaction begin at one cursor", "two futures in one transaction";
}

/// Performs an operation that the bug changes; `None` for every other operation.
pub async fn apply(bulk: &Bulk, client: &mut Client, op: &BulkOp) -> Option<Outcome<Answer>> {
    use Planted::*;
    let (planted, db) = (bulk.planted?, &client.db().clone());
    match (planted, op) {
        (
            Unrecorded | ProgressAfter | RowsAtSnapshot | ShortBatchIsLast,
            BulkOp::work { .. } | BulkOp::finish {},
        ) => {
            // More than any job of the workload needs: it must end even if the job makes no progress.
            let batches = if let BulkOp::work { batches } = op { *batches } else { 60 };
            let worked = run(planted, bulk, db, batches).await.map_err(worked);
            Some(worked.map_or_else(|e| e, |()| Outcome::Answered(Answer::Done)))
        }
        (BuiltInPlace | PublishedFirst, BulkOp::build { tag }) => {
            build(planted, bulk, client, *tag).await.unwrap_or_else(|e| Some(refused(e.error)))
        }
        (SilenceInVersions, BulkOp::sweep {}) => Some(match give_up(bulk, db).await {
            Ok(()) => done(workspace().clear_all_retired(db, bulk.cleared).await),
            Err(e) => refused(e.error),
        }),
        _ => None,
    }
}

/// Reads the progress in a transaction.
pub async fn look(planted: Planted, db: &Db, tx: &Tx) -> Result<ActAnswer, Error> {
    if planted == Planted::LookBehindWrites {
        let read = db.run(|own, _| async move { job().progress(&own, Serializable).await });
        return read.await.map(progress).map_err(|e| e.error);
    }
    let read = |tx, _| async move { job().progress(&tx, Serializable).await };
    isolation::at_both_levels(tx, &"the progress", read).await.map(progress)
}

/// Performs some batches of the job.
async fn run(planted: Planted, bulk: &Bulk, db: &Db, batches: usize) -> Result<(), RunError<Error>> {
    let (job, limits, key, all) = (&job(), &bulk.limits(), &job_key(), &[rows().range()]);
    let encoded = |at: &Progress| pack(&(at.rows, at.finished, TupleBytes::from(&at.cursor[..])));
    let mut known = db.run(|tx, _| async move { job.progress(&tx, Snapshot).await }).await?;
    for _ in 0..batches {
        if known.finished {
            return Ok(());
        }
        let before = &encoded(&known);
        known = db
            .run(|tx, _| async move {
                let tx = match planted {
                    Planted::ProgressAfter => flawed(&tx, Flaw::Unwritten, [only(&key[..])]),
                    Planted::RowsAtSnapshot => weakened(tx, all.clone()),
                    Planted::ShortBatchIsLast => flawed(&tx, Flaw::FirstBatch, all.clone()),
                    _ => {
                        tx.set(key, before);
                        Tx::new(tx)
                    }
                };
                job.step(&tx, db.env(), limits, work).await
            })
            .await?;
        if planted == Planted::ProgressAfter {
            let after = &encoded(&known);
            converging(db, |tx| async move {
                tx.set(key, after);
                Ok(())
            })
            .await?;
        }
    }
    Ok(())
}

/// Makes a build and publishes it, with the bug; `None` if it is to be made correctly.
async fn build(
    planted: Planted,
    bulk: &Bulk,
    client: &mut Client,
    tag: u32,
) -> Result<Option<Outcome<Answer>>, RunError<Error>> {
    let Client { session, base } = client;
    let (db, workspace, mut build) = (&session.database().clone(), &workspace(), build_id(tag));
    let published = if planted == Planted::BuiltInPlace {
        let current = db.run(|tx, _| async move { workspace.current(&tx, Snapshot).await }).await?;
        let Some((current, _)) = current else { return Ok(None) };
        build = current;
        Outcome::Answered(Answer::Published(Some(tag_of(current))))
    } else {
        let found = converging(db, |tx| async move { workspace.begin(&tx, build).await }).await?;
        *base = found.map(tag_of);
        let published = session.apply(|tx| async move { workspace.publish(&tx, build).await }).await;
        applied(published, |()| Answer::Published(*base))
    };
    if let Outcome::Answered(Answer::Published(_)) = published {
        let space = &workspace_space().subspace(&(2, TupleBytes::from(&build.0[..])));
        for batch in bulk.batches() {
            bulk.pause(db).await;
            let batch = &batch;
            converging(db, |tx| async move {
                batch.iter().for_each(|row| tx.set(&space.pack(&(*row,)), &built(tag)));
                Ok(())
            })
            .await?;
        }
    }
    Ok(Some(published))
}

/// Gives up builds that seem abandoned.
async fn give_up(bulk: &Bulk, db: &Db) -> Result<(), RunError<Error>> {
    let workspace = &workspace();
    let version = async || db.run(|tx, _| async move { Ok::<_, Error>(tx.get_read_version().await?) }).await;
    let before = db.run(|tx, _| async move { workspace.observe(&tx, None, usize::MAX).await }).await?;
    let until = version().await? + bulk.silence().as_micros() as i64;
    while !before.is_empty() && version().await? < until {
        db.env().sleep(Duration::from_millis(5)).await;
    }
    for observed in before {
        db.run(|tx, _| async move { workspace.discard_observed(&tx, observed).await }).await?;
    }
    Ok(())
}
