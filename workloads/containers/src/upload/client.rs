//! What a client does in several transactions: it uploads a blob, leaves one to collectors, reads page by
//! page.

use super::{Answer, Life, Upload, Wish, steps::Pulse};
use crate::{
    blob::{BlobAnswer, BlobOp},
    shared::{self, ended, turned, unexpected},
};
use bytes::Bytes;
use shaketable::{
    specimen::{Content, Recorded, Specimen},
    workload::Outcome,
};
use shaketable_layers::blob::{Error, Expect, Generation, Pages, UploadId};
use shaketable_tx::{
    Database, Db, Env,
    Isolation::{Serializable, Snapshot},
    RunError, Tx, always,
    once::{self, Session, converging},
};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// The state of a client.
pub struct Client {
    pub(super) session: Session<Db>,
    /// What the client's last upload expected.
    pub(super) expected: Expect,
}

impl Upload {
    /// Notes what an upload expects.
    pub(super) async fn expects(
        &self,
        client: &mut Client,
        name: usize,
        wish: Wish,
    ) -> Result<Expect, RunError<Error>> {
        let db = &client.session.database().clone();
        client.expected = self.expectation(db, self.name(name), wish).await?;
        Ok(client.expected)
    }

    /// Uploads a blob step by step.
    pub(super) async fn upload_in_steps(&self, client: &mut Client, life: &Life) -> Outcome<Answer> {
        let expect = match self.expects(client, life.name, life.wish).await {
            Ok(expect) => expect,
            Err(e) => return refused(e.error),
        };
        let (db, blobs) = (&client.session.database().clone(), &self.blobs());
        let upload = UploadId::draw(db.env());
        let mut pulse = Pulse { env: db.env().clone(), patience: self.patience(), last: None };
        if let Err(outcome) = self.live(client, life, upload, &mut pulse).await {
            return outcome;
        }
        let (env, session) = (db.env(), &mut client.session);
        // The last part is put late once.
        let (size, late) = (life.data.bytes().len(), &AtomicBool::new(false));
        let ended = session.apply(|tx| async move {
            let [before, behind] = &life.calls;
            let before = self.call(&tx, env, before).await?;
            let generation = blobs.finish_upload(&tx, upload, expect).await?;
            let content = self.content(life);
            if content.len() < size && !late.load(Ordering::Relaxed) {
                let parts = self.parts(&content);
                self.put(db, upload, &parts[parts.len() - 1..]).await.map_err(|e| e.error)?;
                late.store(true, Ordering::Relaxed);
            }
            self.begin_again(&tx, life, upload).await?;
            let behind = self.call(&tx, env, behind).await?;
            Ok(Recorded(vec![Answer::Uploaded(expect, before, generation, behind)]))
        });
        match applied(ended.await, expect, only) {
            Outcome::Answered(Answer::Collected) if pulse.is_live() => {
                Outcome::Violated("an upload was collected although it had shown a sign of life".to_owned())
            }
            outcome => outcome,
        }
    }

    /// The expectation that a wish means for the current blob.
    pub(super) async fn expectation(
        &self,
        db: &Db,
        name: &[u8],
        wish: Wish,
    ) -> Result<Expect, RunError<Error>> {
        let blobs = &self.blobs();
        Ok(match wish {
            Wish::Anything => Expect::Anything,
            Wish::Absent => Expect::Absent,
            Wish::AsSeen => {
                match db.run(|tx, _| async move { blobs.stat(&turned(&tx), name, Snapshot).await }).await? {
                    Some(stat) => Expect::Generation(stat.generation),
                    None => Expect::Absent,
                }
            }
        })
    }

    /// Writes some parts, each in a separate transaction.
    pub(super) async fn put(
        &self,
        db: &Db,
        upload: UploadId,
        parts: &[(u64, Bytes)],
    ) -> Result<(), RunError<Error>> {
        let blobs = &self.blobs();
        for (number, data) in parts {
            converging(db, |tx| async move { blobs.put_part(&turned(&tx), upload, *number, data).await })
                .await?;
        }
        Ok(())
    }

    pub(super) async fn pause(&self, db: &Db) {
        if self.pause > 0 {
            db.env().sleep(Duration::from_millis(self.pause)).await;
        }
    }

    /// Begins an upload again that has ended. That is refused, because its content is the blob's now; without
    /// content it is another upload, which is given up.
    async fn begin_again(&self, tx: &Tx, life: &Life, upload: UploadId) -> Result<(), Error> {
        let (blobs, name) = (self.blobs(), self.name(life.name));
        match blobs.begin_upload(&turned(tx), name, upload).await {
            Err(Error::Fdb(e)) => return Err(Error::Fdb(e)),
            begun => {
                let is_refused = matches!(begun, Err(Error::NoUpload(_)));
                always!(
                    is_refused != life.data.bytes().is_empty(),
                    "an upload of {} bytes that has ended is begun again: {begun:?}",
                    life.data.bytes().len()
                );
            }
        }
        blobs.abandon_upload(&turned(tx), upload).await.map(drop)
    }

    pub(super) async fn call(&self, tx: &Tx, env: &Env, calls: &[BlobOp]) -> Result<Vec<BlobAnswer>, Error> {
        let (blob, mut answers) = (self.blob(), Vec::new());
        for call in calls {
            answers.push(blob.perform(&turned(tx), env, call, Serializable).await?);
        }
        Ok(answers)
    }

    /// Leaves an upload to the collector; waits until it is collected if requested.
    pub(super) async fn leave_parts(
        &self,
        db: &Db,
        name: &[u8],
        parts: &[(u64, Bytes)],
        waits: bool,
    ) -> Result<Outcome<Answer>, RunError<Error>> {
        let (blobs, upload) = (&self.blobs(), UploadId::draw(db.env()));
        converging(db, |tx| async move { blobs.begin_upload(&turned(&tx), name, upload).await }).await?;
        self.put(db, upload, parts).await?;
        if !waits {
            return Ok(Outcome::Answered(Answer::Unseen));
        }
        // A part may commit late and be a sign of life, but not repeatedly.
        for _ in 0..4 {
            blobs.collect(db, self.patience()).await?;
            let read = db.run(|tx, _| async move {
                let parts = blobs.parts(&turned(&tx), upload, Serializable).await?;
                Ok::<_, Error>(parts.is_empty() && !self.is_listed(&tx, upload).await?)
            });
            if read.await? {
                return Ok(Outcome::Answered(Answer::Unseen));
            }
        }
        Ok(Outcome::Violated("an upload that was abandoned is not collected".to_owned()))
    }

    /// Begins uploads in one transaction, and waits until they are collected.
    pub(super) async fn begin_many(
        &self,
        db: &Db,
        name: &[u8],
        uploads: &[UploadId],
    ) -> Result<Outcome<Answer>, RunError<Error>> {
        let blobs = &self.blobs();
        let begun = converging(db, |tx| async move {
            for upload in uploads {
                blobs.begin_upload(&turned(&tx), name, *upload).await?;
            }
            Ok::<_, Error>(())
        });
        begun.await?;
        // They may begin late once more, which is a sign of life.
        for _ in 0..2 {
            blobs.collect(db, self.patience()).await?;
        }
        let left =
            db.run(|tx, _| async move { blobs.uploads(&turned(&tx), None, usize::MAX, Serializable).await });
        let left = left.await?.iter().filter(|left| uploads.contains(left)).count();
        Ok(match left {
            0 => Outcome::Answered(Answer::Unseen),
            _ => Outcome::Violated(format!("{left} of {} uploads are not collected", uploads.len())),
        })
    }

    /// Reads a blob page by page.
    pub(super) async fn read_pages(
        &self,
        db: &Db,
        name: &[u8],
        pauses: bool,
    ) -> Result<Outcome<Answer>, RunError<Error>> {
        let blobs = &self.blobs();
        if !pauses {
            let read = blobs.read_paged(db, name).await?;
            return Ok(read_as(read));
        }
        let Some(mut pages) = Pages::open(db, blobs, name).await? else { return Ok(read_as(None)) };
        let (stat, mut content) = (pages.stat(), Vec::new());
        loop {
            self.pause(db).await;
            match pages.next(db).await? {
                Some(page) if page.is_empty() || page.len() > self.chunk * self.part => {
                    return Ok(Outcome::Violated(format!("a page of {} bytes", page.len())));
                }
                Some(page) => content.extend_from_slice(&page),
                None if content.len() as u64 != stat.size => {
                    return Ok(Outcome::Violated(format!("pages of {} bytes of {stat:?}", content.len())));
                }
                None => return Ok(read_as(Some((stat.generation, content.into())))),
            }
        }
    }
}

/// The answer with what was read.
fn read_as(read: Option<(Generation, Bytes)>) -> Outcome<Answer> {
    Outcome::Answered(Answer::Content(read.map(|(generation, bytes)| (generation, Content::from(&bytes)))))
}

/// The outcome for an error of an operation without a refusal.
pub(super) fn refused(error: Error) -> Outcome<Answer> {
    match error {
        Error::NoUpload(_) => Outcome::Answered(Answer::Collected),
        Error::Changed { expected: Expect::Generation(expected), found } => {
            Outcome::Answered(Answer::Changed(expected, found))
        }
        e => unexpected(&e, Outcome::Failed),
    }
}

/// The outcome of the transaction with the visible effect.
pub(super) fn applied<A>(
    outcome: once::Outcome<A, Error>,
    expect: Expect,
    answer: impl FnOnce(A) -> Answer,
) -> Outcome<Answer> {
    ended(outcome, answer, |error| match error {
        Error::NoUpload(_) => Outcome::Answered(Answer::Collected),
        e => shared::refused(&e, |words| Answer::Refused(expect, words)),
    })
}

/// The recorded answer.
pub(super) fn only(Recorded(mut answers): Recorded<Answer>) -> Answer {
    answers.pop().unwrap_or(Answer::Unseen)
}
