//! What a client does in several transactions: workers, and builders and readers of the workspace.

use super::{
    Answer, Bulk, Looks,
    layout::{build_id, built, job, jobs, rest, tag, tag_of, work, workspace, workspace_space},
    operations::{DISPUTED, SHARED},
};
use crate::shared::{Timer, ended, turned, unexpected};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use shaketable::{isolation, specimen::Recorded, workload::Outcome};
use shaketable_layers::bulk::{BuildId, Error};
use shaketable_tx::{
    self as tx, Database, Db,
    Isolation::{Serializable, Snapshot},
    KeyValue, RetryError, RunError, Transaction, TransactionOption, Tx,
    once::{self, Session, converging},
};
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

/// The state of a client.
pub struct Client {
    pub(super) session: Session<Db>,
    /// The tag of the build that the client's last build replaces.
    pub(super) base: Option<u32>,
}

impl Client {
    pub(super) fn db(&self) -> &Db {
        self.session.database()
    }
}

impl Bulk {
    /// Performs a batch whose work fails. One that is too large is tried again at half its size, down to one
    /// row; after another error it is not.
    pub(super) async fn fail_batch(&self, db: &Db, too_large: bool) -> Outcome<Answer> {
        let (batches, other) = (&AtomicUsize::new(0), Error::NoBuild(build_id(DISPUTED)));
        let own = &other;
        let fail = |tx: Tx, row: KeyValue| async move {
            // No transaction commits with the mark, so that each one counts once.
            let mark = jobs().pack(&("mark",));
            if tx.get(&mark, Snapshot).await?.is_none() {
                tx.set(&mark, b"");
                batches.fetch_add(1, Ordering::Relaxed);
            }
            if !too_large {
                return Err(own.clone());
            }
            tx.set_option(TransactionOption::SizeLimit(32))?;
            work(tx, row).await
        };
        let ended = job().advance(db, &self.limits(), fail).await;
        let batches = batches.load(Ordering::Relaxed);
        let is_right = match &ended {
            // Others may have processed the rows meanwhile.
            Ok(progress) => progress.finished && (too_large || batches == 0),
            Err(e) if e.error == other => !too_large && batches == 1,
            Err(e) if e.error.fdb() == Some(tx::Error::TRANSACTION_TOO_LARGE) => {
                too_large && batches > self.batch.ilog2() as usize
            }
            Err(_) => true,
        };
        match ended {
            _ if !is_right => Outcome::Violated(format!("after {batches} batches that failed: {ended:?}")),
            Err(e) if e.error.fdb().is_some_and(|e| e != tx::Error::TRANSACTION_TOO_LARGE) => worked(e),
            _ => Outcome::Answered(Answer::Done),
        }
    }

    /// Begins a build and writes up to `most` batches of it. Returns the tag of the build that it is to
    /// replace. The timer belongs to the last claim, and was started before that claim.
    pub(super) async fn make(
        &self,
        db: &Db,
        tag: u32,
        most: usize,
        timer: &mut Timer,
    ) -> Result<Option<u32>, RunError<Error>> {
        let (workspace, build) = (&workspace(), build_id(tag));
        *timer = Timer::new(db, self.silence());
        let base = converging(db, |tx| async move { workspace.begin(&turned(&tx), build).await }).await?;
        for batch in self.batches().iter().take(most) {
            self.pause(db).await;
            let anew = Timer::new(db, self.silence());
            converging(db, |tx| async move {
                let space = workspace.claim(&turned(&tx), build).await?;
                for row in batch {
                    tx.set(&space.pack(&(*row,)), &built(tag));
                }
                Ok::<_, Error>(())
            })
            .await?;
            *timer = anew;
        }
        Ok(base.map(tag_of))
    }

    /// Begins the build that all clients share, which was given up and cleared before, and writes up to
    /// `most` batches of it. What a builder has written stays as long as it is never silent.
    pub(super) async fn revive(&self, db: &Db, most: usize) -> Result<Outcome<Answer>, RunError<Error>> {
        let (workspace, build) = (&workspace(), build_id(SHARED));
        let (mut timer, mut active) = (Timer::new(db, self.silence()), false);
        match converging(db, |tx| async move { workspace.begin(&turned(&tx), build).await }).await {
            Ok(_) => {}
            // It is being cleared.
            Err(e) if matches!(e.error, Error::NoBuild(_)) => return Ok(Outcome::Answered(Answer::Done)),
            Err(e) => return Err(e),
        }
        let mut written: Vec<i64> = Vec::new();
        for batch in self.batches().iter().take(most).chain([&Vec::new()]) {
            self.pause(db).await;
            let (anew, before) = (Timer::new(db, self.silence()), &written);
            let claimed = converging(db, |tx| async move {
                let space = workspace.claim(&turned(&tx), build).await?;
                let rows = rest(&tx, &space, None, None).await?;
                let lost = before.iter().find(|row| {
                    let key = space.pack(&(**row,));
                    rows.iter().all(|found| found.key[..] != key[..])
                });
                for row in batch {
                    tx.set(&space.pack(&(*row,)), &built(SHARED));
                }
                Ok::<_, Error>(lost.copied())
            });
            let claimed = claimed.await;
            let in_time = active && !timer.is_over();
            match claimed {
                Ok(Some(row)) if in_time => {
                    return Ok(Outcome::Violated(format!("row {row} of a build in progress is gone")));
                }
                Err(e) if in_time && matches!(e.error, Error::NoBuild(_)) => {
                    let why = "a build was given up although its builder was active";
                    return Ok(Outcome::Violated(why.to_owned()));
                }
                Ok(_) => {}
                Err(e) => return Err(e),
            }
            // From its first claim on, observers see it, until it has once been silent.
            active = in_time || written.is_empty() && !active;
            written.extend(batch);
            timer = anew;
        }
        Ok(Outcome::Answered(Answer::Done))
    }

    /// Begins the disputed build if it can be begun, claims it this many times, and writes its first batch.
    async fn begin_disputed(&self, db: &Db, claims: usize) -> Result<(), RunError<Error>> {
        let (workspace, build) = (&workspace(), build_id(DISPUTED));
        let row = &self.batches().concat();
        converging(db, |tx| async move {
            workspace.begin(&turned(&tx), build).await?;
            for _ in 0..claims {
                let space = workspace.claim(&turned(&tx), build).await?;
                row.iter().for_each(|row| tx.set(&space.pack(&(*row,)), &built(DISPUTED)));
            }
            Ok(())
        })
        .await
    }

    /// An observation of the disputed build does not fit its next incarnation, even if that was claimed as
    /// often.
    pub(super) async fn discard_stale(&self, db: &Db) -> Result<Outcome<Answer>, RunError<Error>> {
        let (workspace, build) = (&workspace(), build_id(DISPUTED));
        workspace.clear_all_retired(db, usize::MAX).await?;
        self.begin_disputed(db, 1).await?;
        let observed = db.run(|tx, _| async move {
            let all = workspace.observe(&turned(&tx), None, usize::MAX).await?;
            let claims = claims(&tx, build).await?;
            Ok::<_, Error>((all.into_iter().find(|observed| observed.build == build), claims))
        });
        let (Some(observed), claims) = observed.await? else { return Ok(Outcome::Answered(Answer::Done)) };
        if !db.run(|tx, _| async move { workspace.discard(&turned(&tx), build).await }).await? {
            return Ok(Outcome::Answered(Answer::Done));
        }
        workspace.clear_all_retired(db, usize::MAX).await?;
        self.begin_disputed(db, claims as usize).await?;
        let fits =
            converging(db, |tx| async move { workspace.discard_observed(&turned(&tx), observed).await });
        Ok(match fits.await? {
            true => Outcome::Violated("a build was given up as another incarnation was observed".into()),
            false => Outcome::Answered(Answer::Done),
        })
    }

    /// A batch of a retired build is not cleared by a transaction that began before the build was cleared by
    /// others and has begun again.
    pub(super) async fn clear_and_begin(&self, db: &Db) -> Result<Outcome<Answer>, RunError<Error>> {
        let (workspace, build) = (&workspace(), build_id(DISPUTED));
        workspace.clear_all_retired(db, usize::MAX).await?;
        self.begin_disputed(db, 1).await?;
        db.run(|tx, _| async move { workspace.discard(&turned(&tx), build).await }).await?;
        let failed = |error: tx::Error| RunError { error: error.into(), maybe_committed: false, attempts: 1 };
        let late = db.create_transaction().map_err(failed)?;
        if workspace.clear_retired(&late, self.cleared).await.is_err() {
            return Ok(Outcome::Answered(Answer::Done));
        }
        workspace.clear_all_retired(db, usize::MAX).await?;
        let mut timer = Timer::new(db, self.silence());
        self.begin_disputed(db, 1).await?;
        // Whether it commits does not matter: nothing of the new incarnation may be gone.
        let _ = late.commit().await;
        let rows = converging(db, |tx| async move {
            let space = workspace.claim(&turned(&tx), build).await?;
            rest(&tx, &space, None, None).await
        });
        let rows = rows.await?.len();
        Ok(match rows < self.batches().concat().len() && !timer.is_over() {
            true => Outcome::Violated(format!("a build that was begun again has {rows} rows left")),
            false => Outcome::Answered(Answer::Done),
        })
    }

    pub(super) async fn read_pages(&self, db: &Db) -> Result<Outcome<Answer>, RunError<Error>> {
        let workspace = &workspace();
        let current = db.run(|tx, _| async move { workspace.current(&turned(&tx), Snapshot).await }).await?;
        let Some((build, space)) = current else { return Ok(Outcome::Answered(Answer::Tag(None))) };
        let mut rows: Vec<KeyValue> = Vec::new();
        loop {
            let (most, last) = (self.build.1, rows.last().map(|row| row.key.clone()));
            let last = &last;
            let page = db
                .run(|tx, _| async move {
                    let read =
                        |tx, isolation| async move { workspace.pinned(&turned(&tx), build, isolation).await };
                    let space = isolation::at_both_levels(&tx, &build, read).await?;
                    rest(&tx, &space, last.as_deref(), Some(most)).await
                })
                .await?;
            let ends = page.len() < most;
            rows.extend(page);
            self.pause(db).await;
            if ends {
                return Ok(self.tagged(&space, &rows));
            }
        }
    }

    /// The answer for the rows of the current build.
    pub(super) fn tagged(&self, space: &Subspace, rows: &[KeyValue]) -> Outcome<Answer> {
        let tag = tag(space, rows, self.build.0);
        tag.map_or_else(Outcome::Violated, |tag| Outcome::Answered(Answer::Tag(Some(tag))))
    }

    /// The pause of a builder or a reader between two transactions.
    pub(super) async fn pause(&self, db: &Db) {
        if self.pause > 0 {
            db.env().sleep(Duration::from_millis(self.pause)).await;
        }
    }
}

/// How often a build was claimed.
async fn claims(tx: &Tx, build: BuildId) -> Result<i64, Error> {
    let key = workspace_space().pack(&(3, TupleBytes::from(&build.0[..])));
    let claims = tx.get(&key, Serializable).await?;
    Ok(claims.and_then(|claims| claims[..].try_into().ok()).map_or(0, i64::from_le_bytes))
}

/// Objects if a build was given up while its builder was active.
pub(super) fn alive(outcome: Outcome<Answer>, timer: &mut Timer) -> Outcome<Answer> {
    match outcome {
        Outcome::Answered(Answer::GivenUp) if !timer.is_over() => {
            Outcome::Violated("a build was given up although its builder was active".into())
        }
        outcome => outcome,
    }
}

pub(super) fn done<A>(ran: Result<A, RunError<Error>>) -> Outcome<Answer> {
    ran.map_or_else(|e| refused(e.error), |_| Outcome::Answered(Answer::Done))
}

pub(super) fn or_refused(ran: Result<Outcome<Answer>, RunError<Error>>) -> Outcome<Answer> {
    ran.unwrap_or_else(|e| refused(e.error))
}

/// The outcome of a worker that gave up: its batches may have been done, or may be done by the next worker.
pub(super) fn worked(e: RunError<Error>) -> Outcome<Answer> {
    unexpected(&e.error, Outcome::Unknown)
}

pub(super) fn refused(error: Error) -> Outcome<Answer> {
    match error {
        Error::Outdated(_) => Outcome::Answered(Answer::Outdated),
        Error::NoBuild(_) => Outcome::Answered(Answer::GivenUp),
        Error::Swapped { .. } => Outcome::Answered(Answer::Swapped),
        e => unexpected(&e, Outcome::Failed),
    }
}

/// The answer for a build that was made in one transaction.
pub(super) fn looks(Recorded(mut looks): Recorded<Looks>) -> Answer {
    looks.pop().map_or(Answer::GivenUp, Answer::AtOnce)
}

pub(super) fn applied<A>(
    outcome: once::Outcome<A, Error>,
    answer: impl FnOnce(A) -> Answer,
) -> Outcome<Answer> {
    ended(outcome, answer, refused)
}
