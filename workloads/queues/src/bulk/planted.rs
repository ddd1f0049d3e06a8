//! Planted bugs: jobs and swaps implemented or used wrongly.

use super::{
    Act, ActAnswer, Answer, Bulk, Client, Op,
    client::{applied, done, refused, worked},
    composed::{perform, progress},
    layout::{
        build_id, built, job, job_key, put, put_row, rest, rows, tag, tag_of, work, workspace,
        workspace_space,
    },
};
use crate::shared::Timer;
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, pack, unpack};
use shaketable::{
    isolation,
    specimen::{INTERLEAVED, Recorded, UNRECORDED},
    weakened::{Flaw, everything, flawed, only, weakened},
    workload::Outcome,
};
use shaketable_layers::bulk::{BuildId, Cleared, Error, Limits, Progress};
use shaketable_tx::{
    Database, Env,
    Isolation::{Serializable, Snapshot},
    RangeOption, RunError, Transaction,
    once::{self, Session, converging},
};
use std::time::Duration;

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "a worker continues from the cursor that it remembers, not from the recorded one", "a batch done again after an unknown result";
    ProgressAfter = "progress-after", "the progress is written in a separate transaction after the work", "a job that notes what it has done";
    ProgressBefore = "progress-before", "the progress is written in a separate transaction before the work", "a job that notes what it is about to do";
    ProgressAtSnapshot = "progress-at-snapshot", "a worker reads the progress at snapshot", "two workers with one batch";
    RowsAtSnapshot = "rows-at-snapshot", "a worker reads the rows of its batch at snapshot", "an index built from a snapshot";
    LastAgain = "last-again", "a batch begins with the last row of the batch before", "a cursor that is the last key";
    ShortBatchIsLast = "short-batch-is-last", "the first batch of the range read is taken for all rows, and a short one for the last", "a range that is longer than a batch";
    WriterUnaware = "writer-unaware", "a writer leaves the index to the job", "an index built beside writers that do not know of it";
    PassedAtSnapshot = "passed-at-snapshot", "a writer asks at snapshot whether the job has passed its row", "a check that a commit does not repeat";
    BuiltInPlace = "built-in-place", "a builder overwrites the rows that are read", "a load without a workspace";
    PublishedFirst = "published-first", "a build is published before its rows are written", "a swap in the wrong order";
    BaseIgnored = "base-ignored", "a build is published whatever was published since it began", "a swap without a comparison";
    ClaimedOnce = "claimed-once", "a builder claims its build at the beginning only", "a build that was given up goes on";
    AgeInVersions = "age-in-versions", "a build is given up because it began a number of versions ago", "an age measured in versions";
    SilenceInVersions = "silence-in-versions", "the silence of a builder is measured by how far the version advances", "a recovery, which jumps a hundred million versions";
    GivenUpUnseen = "given-up-unseen", "a build is given up that was in progress before and after the wait, whatever its builder did meanwhile", "an observer that does not compare";
    ClaimsUnseen = "claims-unseen", "a claim writes nothing that an observer could see", "a builder without a sign of life";
    ClaimAtSnapshot = "claim-at-snapshot", "a claim reads at snapshot whether the build is in progress", "a check that a commit does not repeat";
    CursorPassed = "cursor-passed", "the key at the cursor counts as passed", "a bound that is inclusive instead of exclusive";
    LookBehindWrites = "look-behind-writes", "a read of the progress does not see the batch of its own transaction", "a look-up in a transaction of its own";
    ProgressConflicts = "progress-conflicts", "a read of the progress that is requested at snapshot is serializable", "an isolation that is not passed on";
    PinnedBeside = "pinned-beside", "whether a build is current is read in another transaction than the one that publishes it", "a look-up that is given the database";
    OldStays = "old-stays", "a publication does not retire the previous build", "a swap that leaves the old table";
    ReaderRemembers = "reader-remembers", "a reader reads only once which build is current", "a pointer that is cached";
    Interleaved = INTERLEAVED, "two batches that run side by side in one transaction begin at one cursor", "two futures in one transaction";
    IncarnationUnseen = "incarnation-unseen", "a build is given up whose number of claims is as before, although it was begun anew", "an observer that compares a counter";
    ClearsBlindly = "clears-blindly", "a retired build is cleared without a check that it is still retired", "a build that has begun again";
}

/// More batches than any job of the workload needs. The operation must end even if the job makes no progress.
const MOST_BATCHES: usize = 60;

/// Performs an operation that the bug changes; `None` for every other operation.
pub async fn apply<D: Database>(
    planted: Planted,
    workload: &Bulk,
    client: &mut Client<D>,
    op: &Op,
) -> Option<Outcome<Answer>> {
    let db = &client.session.database().clone();
    match (planted, op) {
        (Planted::WriterUnaware | Planted::PassedAtSnapshot, Op::Put(..) | Op::Remove(_)) => {
            let (row, new) = match op {
                Op::Put(row, new) => (*row, Some(*new)),
                Op::Remove(row) => (*row, None),
                _ => return None,
            };
            let put = client.session.apply(|tx| async move {
                match planted {
                    Planted::WriterUnaware => put_row(&tx, row, new, false).await,
                    _ => put(&weakened(tx, [only(job_key())]), &job(), row, new).await,
                }
            });
            Some(applied(put.await, Answer::Before))
        }
        (
            Planted::Unrecorded
            | Planted::ProgressAfter
            | Planted::ProgressBefore
            | Planted::ProgressAtSnapshot
            | Planted::RowsAtSnapshot
            | Planted::LastAgain
            | Planted::ShortBatchIsLast,
            Op::Work(_) | Op::Finish,
        ) => {
            let batches = if let Op::Work(batches) = op { *batches } else { MOST_BATCHES };
            let worked = run(planted, workload, db, batches).await.map_err(worked);
            Some(worked.map_or_else(|e| e, |()| Outcome::Answered(Answer::Done)))
        }
        (
            Planted::BuiltInPlace
            | Planted::PublishedFirst
            | Planted::BaseIgnored
            | Planted::ClaimedOnce
            | Planted::OldStays,
            Op::Build(tag),
        ) => Some(build(planted, workload, client, *tag).await.unwrap_or_else(|e| refused(e.error))),
        (Planted::ClaimedOnce, Op::Leave(tag, most)) => {
            Some(done(claimed_once(workload, db, *tag, *most).await))
        }
        (
            Planted::ProgressConflicts | Planted::LookBehindWrites | Planted::CursorPassed,
            Op::Together(acts),
        ) => {
            let answers = client.session.apply(|tx| async move {
                let mut answers = Vec::new();
                for act in acts {
                    answers.push(match (planted, act) {
                        (Planted::ProgressConflicts, Act::Progress) => {
                            let read = |tx, _| async move { job().progress(&tx, Serializable).await };
                            progress(isolation::at_both_levels(&tx, act, read).await?)
                        }
                        (Planted::CursorPassed, Act::AtCursor) => ActAnswer::Passed(true),
                        (Planted::LookBehindWrites, Act::Progress) => {
                            let read =
                                db.run(|own, _| async move { job().progress(&own, Serializable).await });
                            progress(read.await.map_err(|e| e.error)?)
                        }
                        (_, act) => perform(&tx, db.env(), &job(), *act).await?,
                    });
                }
                Ok::<_, Error>(Recorded(answers))
            });
            Some(applied(answers.await, |Recorded(answers)| Answer::Together(answers)))
        }
        (Planted::ClearsBlindly, Op::Clear) => {
            let most = workload.build().1;
            Some(done(db.run(|tx, _| async move { clear_blindly(&tx, most).await }).await))
        }
        (Planted::AgeInVersions | Planted::SilenceInVersions | Planted::GivenUpUnseen, Op::Sweep) => {
            Some(match give_up(planted, workload, db).await {
                Ok(()) => done(workspace().clear_all_retired(db, workload.build().1).await),
                Err(e) => refused(e.error),
            })
        }
        (Planted::ReaderRemembers, Op::Pages) => {
            Some(pages(workload, db, &mut client.remembered).await.unwrap_or_else(|e| refused(e.error)))
        }
        _ => None,
    }
}

/// Claims a build, and returns its space.
pub async fn claim<T: Transaction>(planted: Planted, tx: &T, build: BuildId) -> Result<Subspace, Error> {
    match planted {
        Planted::ClaimsUnseen => workspace().claim(&flawed(tx, Flaw::Unwritten, everything()), build).await,
        Planted::ClaimAtSnapshot => workspace().claim(&weakened(tx.clone(), everything()), build).await,
        _ => workspace().claim(tx, build).await,
    }
}

/// Whether a build is the current one, read in another transaction.
pub async fn pinned<D: Database>(
    planted: Planted,
    db: &D,
    tx: &D::Transaction,
    build: BuildId,
) -> Result<Subspace, Error> {
    match planted {
        Planted::PinnedBeside => {
            let asked = db.run(|own, _| async move { workspace().pinned(&own, build, Serializable).await });
            asked.await.map_err(|e| e.error)
        }
        _ => workspace().pinned(tx, build, Serializable).await,
    }
}

/// How often a build was claimed.
pub async fn claims<T: Transaction>(tx: &T, build: BuildId) -> Result<i64, Error> {
    let key = workspace_space().pack(&(3, TupleBytes::from(&build.0[..])));
    let claims = tx.get(&key, Serializable).await?;
    Ok(claims.and_then(|claims| claims[..].try_into().ok()).map_or(0, i64::from_le_bytes))
}

/// Gives up a build that was claimed this often, whichever incarnation it is.
pub async fn discard_any<T: Transaction>(tx: &T, build: BuildId, seen: i64) -> Result<bool, Error> {
    Ok(claims(tx, build).await? == seen && workspace().discard(tx, build).await?)
}

/// Clears a batch of a retired build, which it finds at snapshot.
pub async fn clear_blindly<T: Transaction>(tx: &T, most: usize) -> Result<Cleared, Error> {
    workspace().clear_retired(&weakened(tx.clone(), everything()), most).await
}

/// Gives up builds that seem abandoned.
async fn give_up<D: Database>(planted: Planted, workload: &Bulk, db: &D) -> Result<(), RunError<Error>> {
    let workspace = &workspace();
    let silence = workload.silence().as_micros() as i64;
    let observe = || db.run(|tx, _| async move { workspace.observe(&tx, None, usize::MAX).await });
    let version = || db.run(|tx, _| async move { Ok::<_, Error>(tx.get_read_version().await?) });
    let before = observe().await?;
    if before.is_empty() {
        return Ok(());
    }
    match planted {
        Planted::SilenceInVersions => {
            let began = version().await?;
            while version().await? < began + silence {
                db.env().sleep(Duration::from_millis(5)).await;
            }
        }
        Planted::GivenUpUnseen => db.env().sleep(workload.silence()).await,
        _ => {}
    }
    for observed in before {
        db.run(|tx, _| async move {
            match planted {
                Planted::SilenceInVersions => workspace.discard_observed(&tx, observed).await,
                Planted::GivenUpUnseen => workspace.discard(&tx, observed.build).await,
                _ => {
                    let id = TupleBytes::from(&observed.build.0[..]);
                    let record = tx.get(&workspace_space().pack(&(1, id)), Serializable).await?;
                    let began = record.and_then(|record| {
                        unpack::<(i64, TupleBytes<'_>)>(&record).ok().map(|(began, _)| began)
                    });
                    let now = tx.get_read_version().await?;
                    match began {
                        Some(began) if began < now - silence => workspace.discard(&tx, observed.build).await,
                        _ => Ok(false),
                    }
                }
            }
        })
        .await?;
    }
    Ok(())
}

/// Performs some batches of the job.
async fn run<D: Database>(
    planted: Planted,
    workload: &Bulk,
    db: &D,
    batches: usize,
) -> Result<(), RunError<Error>> {
    let limits = &workload.limits();
    let mut known = db.run(|tx, _| async move { job().progress(&tx, Snapshot).await }).await?;
    for _ in 0..batches {
        if known.finished {
            return Ok(());
        }
        let before = &known;
        let next = db.run(|tx, _| async move { step(planted, limits, db.env(), &tx, before).await }).await?;
        let progress = &next;
        let rest = db.run(|tx, _| async move {
            match planted {
                Planted::ProgressAfter => tx.set(&job_key(), &encoded(progress)),
                Planted::ProgressBefore => {
                    let batch = RangeOption::new(before.cursor.clone(), progress.cursor.clone());
                    for row in tx.get_range_all(batch, Serializable).await? {
                        work(tx.clone(), row).await?;
                    }
                }
                _ => {}
            }
            Ok::<_, Error>(())
        });
        rest.await?;
        known = next;
    }
    Ok(())
}

/// Performs the next batch, or what the bug does in its transaction. Returns the progress after it.
async fn step<T: Transaction>(
    planted: Planted,
    limits: &Limits,
    env: &Env,
    tx: &T,
    before: &Progress,
) -> Result<Progress, Error> {
    let (job, recorded, all) = (job(), [only(job_key())], [rows().range()]);
    match planted {
        Planted::ProgressAfter => job.step(&flawed(tx, Flaw::Unwritten, recorded), env, limits, work).await,
        Planted::ProgressBefore => job.step(tx, env, limits, |_, _| async { Ok::<_, Error>(()) }).await,
        Planted::ProgressAtSnapshot => job.step(&weakened(tx.clone(), recorded), env, limits, work).await,
        Planted::RowsAtSnapshot => job.step(&weakened(tx.clone(), all), env, limits, work).await,
        Planted::ShortBatchIsLast => job.step(&flawed(tx, Flaw::FirstBatch, all), env, limits, work).await,
        Planted::LastAgain => {
            let mut next = job.step(tx, env, limits, work).await?;
            if !next.finished {
                // Without the byte that makes it the key after the last one.
                next.cursor.truncate(next.cursor.len() - 1);
                tx.set(&job_key(), &encoded(&next));
            }
            Ok(next)
        }
        _ => {
            tx.set(&job_key(), &encoded(before));
            job.step(tx, env, limits, work).await
        }
    }
}

fn encoded(progress: &Progress) -> Vec<u8> {
    pack(&(progress.rows, progress.finished, TupleBytes::from(&progress.cursor[..])))
}

/// Makes a build and publishes it, with the bug.
async fn build<D: Database>(
    planted: Planted,
    workload: &Bulk,
    client: &mut Client<D>,
    tag: u32,
) -> Result<Outcome<Answer>, RunError<Error>> {
    let Client { session, base, .. } = client;
    let (db, workspace, build) = (&session.database().clone(), &workspace(), build_id(tag));
    Ok(match planted {
        Planted::BuiltInPlace => {
            let current = db.run(|tx, _| async move { workspace.current(&tx, Snapshot).await }).await?;
            let Some((found, _)) = current else {
                *base = claimed_once(workload, db, tag, usize::MAX).await?;
                let found = *base;
                let published = published(session, build).await;
                return Ok(applied(published, |()| Answer::Published(found)));
            };
            write(workload, db, found, tag, usize::MAX).await?;
            Outcome::Answered(Answer::Published(Some(tag_of(found))))
        }
        Planted::PublishedFirst => {
            let found = converging(db, |tx| async move { workspace.begin(&tx, build).await }).await?;
            *base = found.map(tag_of);
            let found = *base;
            let published = applied(published(session, build).await, |()| Answer::Published(found));
            if published == Outcome::Answered(Answer::Published(found)) {
                write(workload, db, build, tag, usize::MAX).await?;
            }
            published
        }
        Planted::OldStays => {
            let mut timer = Timer::new(db, workload.silence());
            *base = workload.make(db, tag, usize::MAX, &mut timer).await?;
            let found = *base;
            let published = session.apply(|tx| async move {
                let retired = [workspace_space().subspace(&(4,)).range()];
                workspace.publish(&flawed(&tx, Flaw::Unwritten, retired), build).await
            });
            applied(published.await, |()| Answer::Published(found))
        }
        Planted::BaseIgnored => {
            *base = claimed_once(workload, db, tag, usize::MAX).await?;
            let found = *base;
            let published = session.apply(|tx| async move { publish(&tx, build).await });
            applied(published.await, |()| Answer::Published(found))
        }
        _ => {
            *base = claimed_once(workload, db, tag, usize::MAX).await?;
            let found = *base;
            let published = published(session, build).await;
            applied(published, |()| Answer::Published(found))
        }
    })
}

/// Writes some batches of a build's rows, whatever has become of the build.
async fn write<D: Database>(
    workload: &Bulk,
    db: &D,
    build: BuildId,
    tag: u32,
    most: usize,
) -> Result<(), RunError<Error>> {
    let space = &workspace_space().subspace(&(2, TupleBytes::from(&build.0[..])));
    for batch in workload.batches().iter().take(most) {
        workload.pause(db).await;
        converging(db, |tx| async move {
            for row in batch {
                tx.set(&space.pack(&(*row,)), &built(tag));
            }
            Ok::<_, Error>(())
        })
        .await?;
    }
    Ok(())
}

/// Begins a build and writes some batches of it. Returns the tag of the build that it is to replace.
async fn claimed_once<D: Database>(
    workload: &Bulk,
    db: &D,
    tag: u32,
    most: usize,
) -> Result<Option<u32>, RunError<Error>> {
    let (workspace, build) = (&workspace(), build_id(tag));
    let base = converging(db, |tx| async move { workspace.begin(&tx, build).await }).await?;
    write(workload, db, build, tag, most).await?;
    Ok(base.map(tag_of))
}

/// Makes a build the current one, whichever was current when it began.
async fn publish<T: Transaction>(tx: &T, build: BuildId) -> Result<(), Error> {
    let space = workspace_space();
    let row = |part: i64, build: BuildId| space.pack(&(part, TupleBytes::from(&build.0[..])));
    workspace().claim(tx, build).await?;
    if let Some((current, _)) = workspace().current(tx, Serializable).await? {
        tx.set(&row(4, current), b"");
    }
    tx.clear(&row(1, build));
    tx.clear(&row(3, build));
    tx.set(&space.pack(&(0,)), &pack(&(TupleBytes::from(&build.0[..]),)));
    Ok(())
}

/// Publishes a build correctly.
async fn published<D: Database>(session: &mut Session<D>, build: BuildId) -> once::Outcome<(), Error> {
    session.apply(|tx| async move { workspace().publish(&tx, build).await }).await
}

/// Reads in batches the build that was current when the client first read which one is.
async fn pages<D: Database>(
    workload: &Bulk,
    db: &D,
    remembered: &mut Option<BuildId>,
) -> Result<Outcome<Answer>, RunError<Error>> {
    let workspace = &workspace();
    if remembered.is_none() {
        let current = db.run(|tx, _| async move { workspace.current(&tx, Snapshot).await }).await?;
        *remembered = current.map(|(build, _)| build);
    }
    let Some(build) = *remembered else { return Ok(Outcome::Answered(Answer::Tag(None))) };
    let space = workspace_space().subspace(&(2, TupleBytes::from(&build.0[..])));
    let (space, (expected, most)) = (&space, workload.build());
    let mut found = Vec::new();
    loop {
        let last: Option<Bytes> = found.last().map(|row: &shaketable_tx::KeyValue| row.key.clone());
        let last = &last;
        let page = db.run(|tx, _| async move { rest(&tx, space, last.as_deref(), Some(most)).await }).await?;
        let ends = page.len() < most;
        found.extend(page);
        workload.pause(db).await;
        if ends {
            return Ok(tag(space, &found, expected)
                .map_or_else(Outcome::Violated, |tag| Outcome::Answered(Answer::Tag(Some(tag)))));
        }
    }
}
