//! Uploads done wrong, one bug at a time.

use crate::{
    workload::Outcome,
    workloads::{
        blob,
        upload::{Answer, Client, Flaw, Op, Upload, Wish, applied, meets, read_as, refused},
    },
};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, pack, unpack};
use shaketable_layers::{
    blob::{Error, Expect, Generation, UploadId},
    once::converging,
    tx::{
        Database,
        Isolation::{Serializable, Snapshot},
        RangeOption, RetryError, RunError, Transaction,
    },
};

/// Does an operation that the bug touches; `None` when it leaves this one as it is.
pub async fn apply<D: Database>(
    flaw: Flaw,
    workload: &Upload,
    client: &mut Client<D>,
    op: &Op,
) -> Option<Outcome<Answer>> {
    let db = &client.session.database().clone();
    Some(match (flaw, op) {
        (Flaw::PagesUnchecked, Op::Pages(name)) => pages(workload, db, workload.name(*name)).await,
        (Flaw::CollectAtSnapshot, Op::Collect) => {
            let age = workload.age();
            let collected = converging(db, |tx| async move { collect(&tx, age).await }).await;
            collected.map_or_else(|e| refused(e.error), |()| Outcome::Answered(Answer::Unseen))
        }
        (Flaw::PagesUnchecked | Flaw::CollectAtSnapshot, _) => return None,
        (_, Op::Upload(name, data, wish) | Op::Relay(name, data, wish, _)) => {
            let (name, data) = (workload.name(*name), data.bytes());
            upload(flaw, workload, client, name, &data, *wish).await.unwrap_or_else(|e| refused(e.error))
        }
        _ => return None,
    })
}

fn part_of(kind: i64, upload: UploadId) -> Subspace {
    blob::space().subspace(&(kind, TupleBytes::from(&upload.0[..])))
}

/// The keys of an upload: its record, the marks of its parts, its content.
fn record(upload: UploadId) -> Vec<u8> {
    blob::space().pack(&(3, TupleBytes::from(&upload.0[..])))
}

/// An upload, done as the bug does it.
async fn upload<D: Database>(
    flaw: Flaw,
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
    let uploaded = |generation| Answer::Uploaded(expect, generation);
    let upload = UploadId::draw(db.env());
    if flaw != Flaw::InPlace {
        converging(db, |tx| async move { blobs.begin_upload(&tx, name, upload).await }).await?;
    }
    let size = data.len() as u64;
    Ok(match flaw {
        Flaw::InPlace => {
            let first = parts.first().map_or(Bytes::new(), |(_, part)| part.clone());
            let first = &first;
            let begun = session.apply(|tx| async move {
                let found = blobs.stat(&tx, name, Serializable).await?.map(|stat| stat.generation);
                match meets(expect, found) {
                    true => blobs.write(&tx, name, first).await,
                    false => Err(Error::Changed { expected: expect, found }),
                }
            });
            let mut outcome = applied(begun.await, uploaded);
            for (_, part) in parts.iter().skip(1) {
                if !matches!(outcome, Outcome::Answered(Answer::Uploaded(..))) {
                    break;
                }
                outcome = applied(blobs.append_once(session, name, part).await, uploaded);
            }
            outcome
        }
        Flaw::SwitchFirst => {
            let switched = session
                .apply(|tx| async move { switch(&tx, workload, name, upload, size, expect, true).await })
                .await;
            let outcome = applied(switched, uploaded);
            workload.put(db, upload, &parts).await?;
            converging(db, |tx| async move {
                tx.clear(&record(upload));
                let (begin, end) = part_of(4, upload).range();
                tx.clear_range(&begin, &end);
                Ok::<_, Error>(())
            })
            .await?;
            outcome
        }
        Flaw::OldKept => {
            workload.put(db, upload, &parts).await?;
            let switched = session.apply(|tx| async move {
                if tx.get(&record(upload), Serializable).await?.is_none() {
                    return Err(Error::NoUpload(upload));
                }
                let generation = switch(&tx, workload, name, upload, size, expect, false).await?;
                tx.clear(&record(upload));
                let (begin, end) = part_of(4, upload).range();
                tx.clear_range(&begin, &end);
                Ok(generation)
            });
            applied(switched.await, uploaded)
        }
        Flaw::PartUnchecked => {
            let chunk = workload.chunk();
            for (number, part) in &parts {
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
            applied(blobs.finish_upload_once(session, upload, expect).await, uploaded)
        }
        Flaw::PartsCounted => {
            for (_, part) in &parts {
                converging(db, |tx| async move {
                    let number = blobs.parts(&tx, upload, Serializable).await?.len() as u64;
                    blobs.put_part(&tx, upload, number, part).await
                })
                .await?;
            }
            applied(blobs.finish_upload_once(session, upload, expect).await, uploaded)
        }
        Flaw::NotCompared => {
            workload.put(db, upload, &parts).await?;
            applied(blobs.finish_upload_once(session, upload, Expect::Anything).await, uploaded)
        }
        // The record is all that the other bugs leave away.
        _ => {
            workload.put(db, upload, &parts).await?;
            match db.run(|tx, _| async move { blobs.finish_upload(&tx, upload, expect).await }).await {
                Ok(generation) => Outcome::Answered(uploaded(generation)),
                Err(e) => match e.error.fdb() {
                    Some(error) if e.maybe_committed => Outcome::Unknown(error),
                    _ => refused(e.error),
                },
            }
        }
    })
}

/// Names the upload in the blob's manifest, whatever has come of it; clears what was there, or not.
async fn switch<T: Transaction>(
    tx: &T,
    workload: &Upload,
    name: &[u8],
    upload: UploadId,
    size: u64,
    expect: Expect,
    clears: bool,
) -> Result<Generation, Error> {
    let blobs = workload.blobs();
    let found = blobs.stat(tx, name, Serializable).await?.map(|stat| stat.generation);
    if !meets(expect, found) {
        return Err(Error::Changed { expected: expect, found });
    }
    if clears {
        blobs.delete(tx, name).await?;
    }
    let version = tx.get_read_version().await?;
    let place = TupleBytes::from(&upload.0[..]);
    tx.set(&blob::places(name).0, &pack(&(size, workload.chunk() as u64, version, 0i64, place)));
    Ok(Generation { version, step: 0 })
}

/// Reads page by page, each at the offset behind the last one, until nothing comes.
async fn pages<D: Database>(workload: &Upload, db: &D, name: &[u8]) -> Outcome<Answer> {
    let blobs = &workload.blobs();
    let opened = db.run(|tx, _| async move { blobs.stat(&tx, name, Snapshot).await }).await;
    let generation = match opened {
        Ok(Some(stat)) => stat.generation,
        Ok(None) => return read_as(None, None),
        Err(e) => return refused(e.error),
    };
    let (mut content, length) = (Vec::new(), (workload.chunk() * workload.chunks()) as u64);
    loop {
        let from = content.len() as u64;
        let page = db.run(|tx, _| async move { blobs.read_range(&tx, name, from, length, Snapshot).await });
        match page.await {
            Ok(Some(page)) if !page.is_empty() => content.extend_from_slice(&page),
            Ok(_) => return read_as(Some(generation), Some(content.into())),
            Err(e) => return refused(e.error),
        }
    }
}

/// Clears the uploads that are old enough, without making sure that they still are under way.
async fn collect<T: Transaction>(tx: &T, age: i64) -> Result<(), Error> {
    let before = tx.get_read_version().await?.saturating_sub(age);
    let records = blob::space().subspace(&(3,));
    for row in tx.get_range_all(RangeOption::from(records.range()), Snapshot).await? {
        let id: Option<(TupleBytes<'_>,)> = records.unpack(&row.key).ok();
        let begun: Option<(TupleBytes<'_>, u64, u64, i64)> = unpack(&row.value).ok();
        let (Some((id,)), Some((.., version))) = (id, begun) else { continue };
        if version >= before {
            continue;
        }
        tx.clear(&row.key);
        for kind in [2, 4] {
            let (begin, end) = blob::space().subspace(&(kind, id.clone())).range();
            tx.clear_range(&begin, &end);
        }
    }
    Ok(())
}
