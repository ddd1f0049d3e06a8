//! Several calls in one transaction: calls about the job, or all calls of a build.

use super::{
    Act, ActAnswer, Bulk, Looks,
    layout::{built, job, jobs, put, rest, rows, tag_of, work, workspace, workspace_space},
};
use crate::shared::{one_call, turned};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use shaketable::isolation;
use shaketable_layers::bulk::{self, BuildId, Error, Job, Limits, Observed, Progress};
use shaketable_tx::{self as tx, Env, Isolation::Serializable, Transaction, Tx, always};
use std::time::Duration;

/// Performs a call about the job.
pub(super) async fn perform(tx: &Tx, env: &Env, job: &Job, act: Act) -> Result<ActAnswer, Error> {
    Ok(match act {
        Act::Put(row, new) => ActAnswer::Before(put(&one_call(tx, false).await, job, row, new).await?),
        Act::Passed(row) => ActAnswer::Passed(job.has_passed(&turned(tx), &rows().pack(&(row,))).await?),
        Act::AtCursor => {
            let tx = &one_call(tx, true).await;
            let progress = job.progress(&turned(tx), Serializable).await?;
            // The cursor of a job that has finished is not a key of its range.
            ActAnswer::Passed(progress.finished || job.has_passed(&turned(tx), &progress.cursor).await?)
        }
        Act::Step(_) | Act::StepOnce(_) => {
            let all = Limits { rows: usize::MAX, bytes: i64::MAX, time: Duration::MAX };
            let limits = match act {
                Act::Step(most) => Limits { rows: most, ..all },
                Act::StepOnce(true) => Limits { time: Duration::ZERO, ..all },
                _ => Limits { bytes: 1, ..all },
            };
            progress(job.step(&turned(tx), env, &limits, work).await?)
        }
        Act::Progress => {
            let (tx, read) = (one_call(tx, true).await, |tx, isolation| async move {
                job.progress(&turned(&tx), isolation).await
            });
            progress(isolation::at_both_levels(&tx, &act, read).await?)
        }
    })
}

pub(super) fn progress(progress: Progress) -> ActAnswer {
    ActAnswer::Progress(progress.rows, progress.finished, progress.cursor.to_vec())
}

/// Makes a build in one transaction, and observes it after each step.
pub(super) async fn at_once(
    tx: &Tx,
    bulk: &Bulk,
    (build, tag): (BuildId, u32),
    publishes: bool,
) -> Result<Looks, Error> {
    let workspace = &workspace();
    let pinned = async || {
        let read = |tx, isolation| async move { workspace.pinned(&turned(&tx), build, isolation).await };
        match isolation::at_both_levels(tx, &build, read).await {
            Ok(_) => Ok(true),
            Err(Error::Swapped { .. }) => Ok(false),
            Err(e) => Err(e),
        }
    };
    let current = async || {
        let current = workspace.current(&turned(tx), Serializable).await?;
        Ok::<_, Error>(current.map(|(build, _)| tag_of(build)))
    };
    let observed = async || -> Result<Option<Observed>, Error> {
        let mut last = None;
        loop {
            let (page, most) = (workspace.observe(&turned(tx), last, bulk.page).await?, bulk.page.max(1));
            always!(page.len() <= most, "{} builds are observed, of up to {most}", page.len());
            let found = page.iter().find(|observed| observed.build == build);
            if found.is_some() || page.len() < most {
                return Ok(found.copied());
            }
            last = page.last().map(|observed| observed.build);
        }
    };
    let (before, unbegun) = (current().await?, observed().await?);
    let base = workspace.begin(&turned(tx), build).await?.map(tag_of);
    let begun = observed().await?;
    let space = workspace.claim(&turned(tx), build).await?;
    (0..bulk.build.0).for_each(|row| tx.set(&space.pack(&(row,)), &built(tag)));
    let claimed = observed().await?;
    let pinned_before = pinned().await?;
    let discarded = async |observed: Option<Observed>| match observed {
        Some(observed) => workspace.discard_observed(&turned(tx), observed).await,
        None => Ok(false),
    };
    let left_alone = !discarded(begun).await?;
    let given_up = match publishes {
        true => {
            workspace.publish(&turned(tx), build).await?;
            true
        }
        false => discarded(claimed).await?,
    };
    let refused = matches!(workspace.claim(&turned(tx), build).await, Err(Error::NoBuild(of)) if of == build);
    let again = workspace.discard(&turned(tx), build).await?;
    let gone = observed().await?;
    let pinned = [pinned_before, pinned().await?];
    // Only sometimes, so that other clients find something to clear, too.
    let cleared = tag % 2 > 0 || clear(tx, bulk.cleared).await?;
    Ok(Looks {
        tags: [before, base, current().await?],
        under_way: [unbegun, begun, claimed, gone].map(|observed| observed.is_some()),
        claim_seen: begun != claimed,
        ended: [refused, !again],
        pinned,
        observed: [left_alone, given_up],
        cleared,
    })
}

/// Clears what is retired, including what this transaction has retired. Returns whether everything is
/// cleared, and the number of rows was right.
async fn clear(tx: &Tx, most: usize) -> Result<bool, Error> {
    let space = workspace_space();
    let retired = async || -> Result<(usize, usize), Error> {
        let builds = rest(tx, &space.subspace(&(4,)), None, None).await?;
        let mut rows = 0;
        for row in &builds {
            let build = space.unpack::<(i64, TupleBytes<'_>)>(&row.key);
            let (_, build) = build.map_err(|_| Error::Foreign(row.key.clone()))?;
            rows += rest(tx, &space.subspace(&(2, build)), None, None).await?.len();
        }
        Ok((builds.len(), rows))
    };
    let (builds, rows) = retired().await?;
    let mut cleared = 0;
    // Each batch clears a row, or is the last batch of a build.
    for _ in 0..=builds + rows {
        let batch = workspace().clear_retired(tx, most).await?;
        cleared += batch.rows;
        if batch.rows > most.max(1) || !batch.more {
            break;
        }
    }
    Ok(cleared == rows && retired().await? == (0, 0))
}

/// Whether each of these was refused: names at the limit and beyond it, and keys at the ends of a range.
pub(super) async fn beyond(tx: &Tx) -> Result<Vec<bool>, Error> {
    let named = |bytes: usize| {
        let name = vec![b'n'; bytes - jobs().pack(&(TupleBytes::from(&b""[..]),)).len()];
        matches!(Job::new(&jobs(), &name, rows().range()), Err(Error::TooLarge(_)))
    };
    // The id with the longest tuple encoding is all zeros.
    let below = |bytes: usize| {
        let record = Subspace::all().pack(&(1, TupleBytes::from(&[0; 16][..]))).len();
        let workspace = bulk::Workspace::new(Subspace::from_bytes(vec![b'w'; bytes - record]));
        matches!(workspace, Err(Error::TooLarge(_)))
    };
    let (job, (begin, end)) = (&job(), &rows().range());
    let outside = async |key: &[u8]| match job.has_passed(&turned(tx), key).await {
        Err(Error::OutsideRange { key: of }) => Ok(of[..] == key[..]),
        answered => answered.map(|_| false),
    };
    Ok(vec![
        named(tx::KEY_SIZE_LIMIT),
        named(tx::KEY_SIZE_LIMIT + 1),
        below(tx::KEY_SIZE_LIMIT),
        below(tx::KEY_SIZE_LIMIT + 1),
        outside(begin).await?,
        outside(&begin[..begin.len() - 1]).await?,
        outside(&[&begin[..], b"\xff\xff"].concat()).await?,
        outside(end).await?,
        outside(b"").await?,
    ])
}

/// What [`beyond`] must return. A key within the bounds of the range is not refused, whatever its content.
pub(super) const BEYOND: [bool; 9] = [false, true, false, true, false, true, false, true, true];
