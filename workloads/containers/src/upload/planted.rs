//! Planted bugs: uploads implemented or used wrongly.

use super::{
    Answer, Client, Deed, Done, Life, Op, Upload, Wish,
    client::{applied, read_as, refused},
    model::meets,
    operations::PAGE,
};
use crate::blob;
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, pack, unpack};
use shaketable::{
    isolation,
    specimen::UNRECORDED,
    weakened::{Flaw, everything, flawed, only, weakened},
    workload::Outcome,
};
use shaketable_layers::blob::{Blobs, Error, Expect, Generation, UploadId};
use shaketable_tx::{
    Database,
    Isolation::{Serializable, Snapshot},
    RetryError, RunError, Transaction,
    once::{self, converging},
};
use std::time::Duration;

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "the last transaction of an upload is retried after an unknown result without an operation record", "an upload that is finished twice";
    InPlace = "in-place", "parts are appended to the blob itself", "an upload that every reader sees";
    SwitchFirst = "switch-first", "the manifest names the new content before its parts are written", "an upload in the wrong order";
    NotCompared = "not-compared", "the expectation is not compared when the upload ends", "a switch without a comparison";
    PagesUnchecked = "pages-unchecked", "a reader does not compare the generation between pages", "a reader that trusts the offset";
    PartUnchecked = "part-unchecked", "a part does not check that its upload is still in progress", "a blind write of a part";
    CollectAtSnapshot = "collect-at-snapshot", "the collector reads at snapshot which uploads are in progress", "a collector without isolation";
    PartsCounted = "parts-counted", "the number of a part is the number of parts before it", "parts that are appended";
    PartsAtSnapshot = "parts-at-snapshot", "the parts that exist are read at snapshot, whatever isolation was requested", "a dropped conflict range";
    OldKept = "old-kept", "the content that an upload replaces is not cleared", "a switch that only moves the pointer";
    AgeInVersions = "age-in-versions", "the collector removes uploads that began many versions ago", "an earlier version of the layer's own collector";
    SeenIsDead = "seen-is-dead", "the collector removes every upload that existed before it waited", "a collector that compares only the name";
    SignOfBeginning = "sign-of-beginning", "writing a part is no sign of life", "a lease that is not renewed";
    TailOfPart = "tail-of-part", "a shorter part leaves the end of the one that it replaces", "a write without a clear";
    GapTaken = "gap-taken", "an upload is finished without a part in the middle", "parts that are counted, not compared";
    ShortTaken = "short-taken", "an upload is finished with a short part in the middle", "parts that are counted, not measured";
    AbandonKeeps = "abandon-keeps", "an upload that is given up keeps its content", "a forgotten clear";
    BegunAgain = "begun-again", "an upload begins again although its content has become the blob's", "an id that is used twice";
    FirstPage = "first-page", "a collector observes one page of the uploads in progress", "a list that is longer than a page";
    AnotherBlob = "another-blob", "an upload that is in progress is begun for another blob", "an id that is not compared";
}

impl Planted {
    /// Whether the bug affects uploads as a whole.
    pub(super) fn uploads(self) -> bool {
        matches!(
            self,
            Planted::Unrecorded
                | Planted::InPlace
                | Planted::SwitchFirst
                | Planted::NotCompared
                | Planted::PartUnchecked
                | Planted::PartsCounted
                | Planted::OldKept
        )
    }

    /// Whether it affects readers.
    pub(super) fn reads(self) -> bool {
        self == Planted::PagesUnchecked
    }

    /// Whether it affects collectors.
    pub(super) fn collects(self) -> bool {
        matches!(self, Planted::CollectAtSnapshot | Planted::AgeInVersions | Planted::SeenIsDead)
    }

    /// Whether the bug is revealed by uploads that take longer than collectors wait.
    pub(super) fn is_impatient(self) -> bool {
        matches!(self, Planted::AgeInVersions | Planted::SeenIsDead | Planted::SignOfBeginning)
    }
}

/// Performs an operation that the bug changes; `None` for every other operation.
pub async fn apply<D: Database>(
    planted: Planted,
    workload: &Upload,
    client: &mut Client<D>,
    op: &Op,
) -> Option<Outcome<Answer>> {
    let db = &client.session.database().clone();
    Some(match (planted, op) {
        (Planted::PagesUnchecked, Op::Pages(name, _)) => pages(workload, db, workload.name(*name)).await,
        (planted, Op::Collect) if planted.collects() => {
            let collected = collect(planted, workload, db).await;
            collected.map_or_else(|e| refused(e.error), |()| Outcome::Answered(Answer::Unseen))
        }
        // A name that is too long is refused correctly.
        (_, Op::Upload(name, data, wish)) if planted.uploads() && *name < 1_000 => {
            let (name, data) = (workload.name(*name), data.bytes());
            upload(planted, workload, client, name, &data, *wish).await.unwrap_or_else(|e| refused(e.error))
        }
        _ => return None,
    })
}

/// Collects the uploads that show no sign of life, of those that fit on a page.
pub async fn first_page<D: Database>(
    workload: &Upload,
    db: &D,
    patience: Duration,
) -> Result<Vec<UploadId>, RunError<Error>> {
    let blobs = &workload.blobs();
    let page = db.run(|tx, _| async move {
        let mut page = Vec::new();
        for upload in blobs.uploads(&tx, None, PAGE, Snapshot).await? {
            page.push((upload, tx.get(&signs(upload), Snapshot).await?));
        }
        Ok::<_, Error>(page)
    });
    let (page, mut collected) = (page.await?, Vec::new());
    db.env().sleep(patience).await;
    for (upload, seen) in &page {
        let abandoned = db.run(|tx, _| async move {
            let is_silent = tx.get(&signs(*upload), Serializable).await? == *seen;
            Ok(is_silent && blobs.abandon_upload(&tx, *upload).await?)
        });
        if abandoned.await? {
            collected.push(*upload);
        }
    }
    Ok(collected)
}

/// Begins an upload again that has ended.
pub async fn begin_again<T: Transaction>(
    planted: Planted,
    blobs: &Blobs,
    tx: &T,
    name: &[u8],
    upload: UploadId,
) -> Result<(), Error> {
    match planted {
        Planted::BegunAgain => {
            let unread = flawed(tx, Flaw::Unread, [part_of(2, upload).range()]);
            blobs.begin_upload(&unread, name, upload).await
        }
        _ => blobs.begin_upload(tx, name, upload).await,
    }
}

/// Performs a step with the bug, or correctly if the bug does not change this step.
pub async fn step<T: Transaction>(
    planted: Planted,
    workload: &Upload,
    tx: &T,
    life: &Life,
    id: UploadId,
    deed: &Deed,
) -> Result<Done, Error> {
    let (blobs, name) = (&workload.blobs(), workload.name(life.name));
    match (planted, deed) {
        (Planted::PartsAtSnapshot, Deed::Parts) => {
            let read = |tx, _| async move { blobs.parts(&tx, id, Snapshot).await };
            isolation::at_both_levels(tx, deed, read).await.map(Done::Parts)
        }
        (Planted::SignOfBeginning, Deed::Put(_) | Deed::PutOther(..)) => {
            workload.right(&flawed(tx, Flaw::Unwritten, [only(signs(id))]), life, id, deed).await
        }
        (Planted::TailOfPart, Deed::Put(_) | Deed::PutOther(..)) => {
            workload.right(&flawed(tx, Flaw::Uncleared, everything()), life, id, deed).await
        }
        (Planted::AbandonKeeps, Deed::Abandon) => {
            let content = [part_of(2, id).range()];
            workload.right(&flawed(tx, Flaw::Uncleared, content), life, id, deed).await
        }
        (Planted::GapTaken | Planted::ShortTaken, Deed::Finish) => {
            match (planted, workload.right(tx, life, id, deed).await) {
                (Planted::GapTaken, Err(Error::MissingPart(_)))
                | (Planted::ShortTaken, Err(Error::ShortPart(_))) => {
                    let parts = blobs.parts(tx, id, Serializable).await?;
                    let size = parts.iter().map(|(_, length)| length).sum();
                    switch(tx, workload, name, id, size, Expect::Anything).await?;
                    forget(tx, id);
                    Ok(Done::Was(true))
                }
                (_, done) => done,
            }
        }
        (Planted::AnotherBlob, Deed::BeginOther) => {
            blobs.begin_upload(tx, name, id).await.map(|()| Done::Done)
        }
        _ => workload.right(tx, life, id, deed).await,
    }
}

/// Clears everything that is stored about an upload, except for its content.
fn forget<T: Transaction>(tx: &T, upload: UploadId) {
    tx.clear(&record(upload));
    tx.clear(&signs(upload));
    let (begin, end) = part_of(4, upload).range();
    tx.clear_range(&begin, &end);
}

fn part_of(kind: i64, upload: UploadId) -> Subspace {
    blob::space().subspace(&(kind, TupleBytes::from(&upload.0[..])))
}

fn record(upload: UploadId) -> Vec<u8> {
    blob::space().pack(&(3, TupleBytes::from(&upload.0[..])))
}

/// The key that counts an upload's signs of life.
fn signs(upload: UploadId) -> Vec<u8> {
    blob::space().pack(&(5, TupleBytes::from(&upload.0[..])))
}

/// Performs an upload with the bug.
async fn upload<D: Database>(
    planted: Planted,
    workload: &Upload,
    client: &mut Client<D>,
    name: &[u8],
    data: &[u8],
    wish: Wish,
) -> Result<Outcome<Answer>, RunError<Error>> {
    let db = &client.session.database().clone();
    let (blobs, parts) = (&workload.blobs(), workload.parts(data));
    let expect = workload.expectation(db, name, wish).await?;
    client.expected = expect;
    let session = &mut client.session;
    let uploaded = |generation| Answer::Uploaded(expect, Vec::new(), generation, Vec::new());
    // What a session has recorded is an answer, also when it is resolved.
    let told = |outcome: once::Outcome<Generation, Error>| applied(outcome, expect, uploaded);
    let upload = UploadId::draw(db.env());
    if planted != Planted::InPlace {
        converging(db, |tx| async move { blobs.begin_upload(&tx, name, upload).await }).await?;
    }
    let size = data.len() as u64;
    Ok(match planted {
        Planted::InPlace => {
            let first = parts.first().map_or(Bytes::new(), |(_, part)| part.clone());
            let first = &first;
            let begun = session.apply(|tx| async move {
                let found = blobs.stat(&tx, name, Serializable).await?.map(|stat| stat.generation);
                match meets(expect, found) {
                    true => blobs.write(&tx, name, first).await,
                    false => Err(Error::Changed { expected: expect, found }),
                }
            });
            let mut outcome = told(begun.await);
            for (_, part) in parts.iter().skip(1) {
                if !matches!(outcome, Outcome::Answered(Answer::Uploaded(..))) {
                    break;
                }
                let appended = session.apply(|tx| async move { blobs.append(&tx, name, part).await });
                outcome = told(appended.await);
            }
            outcome
        }
        Planted::SwitchFirst => {
            let switched = session
                .apply(|tx| async move { switch(&tx, workload, name, upload, size, expect).await })
                .await;
            let outcome = told(switched);
            workload.put(db, upload, &parts).await?;
            converging(db, |tx| async move {
                forget(&tx, upload);
                Ok::<_, Error>(())
            })
            .await?;
            outcome
        }
        _ => {
            match planted {
                Planted::PartUnchecked => put_unchecked(workload, db, upload, &parts).await?,
                Planted::PartsCounted => put_counted(workload, db, upload, &parts).await?,
                _ => workload.put(db, upload, &parts).await?,
            }
            let condition = if planted == Planted::NotCompared { Expect::Anything } else { expect };
            let content = &[blob::places(name).1.range(), blob::space().subspace(&2).range()];
            let kept = if planted == Planted::OldKept { &content[..] } else { &[] };
            let finish = |tx: D::Transaction| async move {
                blobs.finish_upload(&flawed(&tx, Flaw::Uncleared, kept), upload, condition).await
            };
            if planted != Planted::Unrecorded {
                return Ok(told(session.apply(finish).await));
            }
            match db.run(|tx, _| finish(tx)).await {
                Ok(generation) => Outcome::Answered(uploaded(generation)),
                Err(e) => match e.error.fdb() {
                    Some(error) if e.maybe_committed => Outcome::Unknown(error),
                    _ => told(once::Outcome::Refused(e.error)),
                },
            }
        }
    })
}

/// Writes parts without a check that the upload is in progress.
async fn put_unchecked<D: Database>(
    workload: &Upload,
    db: &D,
    upload: UploadId,
    parts: &[(u64, Bytes)],
) -> Result<(), RunError<Error>> {
    let chunk = workload.chunk();
    for (number, part) in parts {
        converging(db, |tx| async move {
            let first = number * (chunk * workload.chunks()) as u64;
            for (at, bytes) in (first..).step_by(chunk).zip(part.chunks(chunk)) {
                tx.set(&part_of(2, upload).pack(&(at,)), bytes);
            }
            tx.set(&part_of(4, upload).pack(&(*number,)), &pack(&(part.len() as u64,)));
            Ok::<_, Error>(())
        })
        .await?;
    }
    Ok(())
}

/// Puts each part with the number of parts before it as its number.
async fn put_counted<D: Database>(
    workload: &Upload,
    db: &D,
    upload: UploadId,
    parts: &[(u64, Bytes)],
) -> Result<(), RunError<Error>> {
    let blobs = &workload.blobs();
    for (_, part) in parts {
        converging(db, |tx| async move {
            let number = blobs.parts(&tx, upload, Serializable).await?.len() as u64;
            blobs.put_part(&tx, upload, number, part).await
        })
        .await?;
    }
    Ok(())
}

/// Names the upload in the blob's manifest, whatever its state.
async fn switch<T: Transaction>(
    tx: &T,
    workload: &Upload,
    name: &[u8],
    upload: UploadId,
    size: u64,
    expect: Expect,
) -> Result<Generation, Error> {
    let blobs = workload.blobs();
    let found = blobs.stat(tx, name, Serializable).await?.map(|stat| stat.generation);
    if !meets(expect, found) {
        return Err(Error::Changed { expected: expect, found });
    }
    blobs.delete(tx, name).await?;
    let version = tx.get_read_version().await?;
    let place = TupleBytes::from(&upload.0[..]);
    tx.set(&blob::places(name).0, &pack(&(size, workload.chunk() as u64, version, 0i64, place)));
    Ok(Generation { version, step: 0 })
}

/// Reads page by page, each at the offset after the previous one, until there is nothing left.
async fn pages<D: Database>(workload: &Upload, db: &D, name: &[u8]) -> Outcome<Answer> {
    let blobs = &workload.blobs();
    let opened = db.run(|tx, _| async move { blobs.stat(&tx, name, Snapshot).await }).await;
    let generation = match opened {
        Ok(Some(stat)) => stat.generation,
        Ok(None) => return read_as(None),
        Err(e) => return refused(e.error),
    };
    let (mut content, length) = (Vec::new(), (workload.chunk() * workload.chunks()) as u64);
    loop {
        let from = content.len() as u64;
        let page = db.run(|tx, _| async move { blobs.read_range(&tx, name, from, length, Snapshot).await });
        match page.await {
            Ok(Some(page)) if !page.is_empty() => content.extend_from_slice(&page),
            Ok(_) => return read_as(Some((generation, content.into()))),
            Err(e) => return refused(e.error),
        }
    }
}

/// Collects by the age of uploads, or what existed before the wait, or without a check that uploads are still
/// in progress.
async fn collect<D: Database>(planted: Planted, workload: &Upload, db: &D) -> Result<(), RunError<Error>> {
    let (blobs, patience) = (&workload.blobs(), workload.patience());
    let seen = db.run(|tx, _| async move { blobs.uploads(&tx, None, usize::MAX, Snapshot).await }).await?;
    if planted != Planted::AgeInVersions {
        db.env().sleep(patience).await;
    }
    for upload in seen {
        let collected = db.run(|tx, _| async move {
            match planted {
                Planted::CollectAtSnapshot => blobs.abandon_upload(&weakened(tx, everything()), upload).await,
                Planted::SeenIsDead => blobs.abandon_upload(&tx, upload).await,
                _ => {
                    let record = tx.get(&record(upload), Serializable).await?.unwrap_or_default();
                    let begun: Result<(TupleBytes<'_>, u64, u64, i64), _> = unpack(&record);
                    let before = tx.get_read_version().await? - patience.as_micros() as i64;
                    match begun {
                        Ok((.., begun)) if begun < before => blobs.abandon_upload(&tx, upload).await,
                        _ => Ok(false),
                    }
                }
            }
        });
        collected.await?;
    }
    Ok(())
}
