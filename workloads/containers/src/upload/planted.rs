//! Planted bugs: uploads implemented or used wrongly.

use super::{
    Answer, Client, Deed, Done, Life, Upload, UploadOp, Wish,
    client::{applied, refused},
};
use shaketable::{
    isolation,
    specimen::UNRECORDED,
    weakened::{Flaw, everything, flawed},
    workload::Outcome,
};
use shaketable_layers::blob::{Error, Generation, UploadId};
use shaketable_tx::{
    Database,
    Isolation::{Serializable, Snapshot},
    RunError, Tx,
    once::{self, converging},
};

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "the last transaction of an upload is retried after an unknown result without an operation record", "an upload that is finished twice";
    InPlace = "in-place", "parts are appended to the blob itself", "an upload that every reader sees";
    PartsCounted = "parts-counted", "the number of a part is the number of parts before it", "parts that are appended";
    PartsAtSnapshot = "parts-at-snapshot", "the parts that exist are read at snapshot, whatever isolation was requested", "a dropped conflict range";
    TailOfPart = "tail-of-part", "a shorter part leaves the end of the one that it replaces", "a write without a clear";
}

impl Planted {
    /// Whether the bug affects uploads as a whole.
    pub(super) fn uploads(self) -> bool {
        matches!(self, Planted::Unrecorded | Planted::InPlace | Planted::PartsCounted)
    }
}

/// Performs an operation that the bug changes; `None` for every other operation.
pub async fn apply(
    planted: Planted,
    workload: &Upload,
    client: &mut Client,
    op: &UploadOp,
) -> Option<Outcome<Answer>> {
    match op {
        // A name that is too long is refused correctly.
        UploadOp::upload { name, data, wish } if planted.uploads() && *name < 1_000 => {
            let (name, data) = (workload.name(*name), data.bytes());
            let uploaded = upload(planted, workload, client, name, &data, *wish).await;
            Some(uploaded.unwrap_or_else(|e| refused(e.error)))
        }
        _ => None,
    }
}

/// Performs a step with the bug, or correctly if the bug does not change this step.
pub async fn step(
    planted: Planted,
    workload: &Upload,
    tx: &Tx,
    life: &Life,
    id: UploadId,
    deed: &Deed,
) -> Result<Done, Error> {
    let blobs = &workload.blobs();
    match (planted, deed) {
        (Planted::PartsAtSnapshot, Deed::Parts) => {
            let read = |tx, _| async move { blobs.parts(&tx, id, Snapshot).await };
            isolation::at_both_levels(tx, deed, read).await.map(Done::Parts)
        }
        (Planted::TailOfPart, Deed::Put(_) | Deed::PutOther(..)) => {
            workload.right(&flawed(tx, Flaw::Uncleared, everything()), life, id, deed).await
        }
        _ => workload.right(tx, life, id, deed).await,
    }
}

/// Performs an upload with the bug.
async fn upload(
    planted: Planted,
    workload: &Upload,
    client: &mut Client,
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
    converging(db, |tx| async move { blobs.begin_upload(&tx, name, upload).await }).await?;
    // Of an upload in place, the blob gets its first part as it should, and the others afterwards.
    let (first, others) = match planted {
        Planted::InPlace => parts.split_at(parts.len().min(1)),
        _ => (&parts[..], &[][..]),
    };
    if planted == Planted::PartsCounted {
        for (_, part) in first {
            converging(db, |tx| async move {
                let number = blobs.parts(&tx, upload, Serializable).await?.len() as u64;
                blobs.put_part(&tx, upload, number, part).await
            })
            .await?;
        }
    } else {
        workload.put(db, upload, first).await?;
    }
    let finish = |tx: Tx| async move { blobs.finish_upload(&tx, upload, expect).await };
    if planted == Planted::Unrecorded {
        return Ok(match db.run(|tx, _| finish(tx)).await {
            Ok(generation) => Outcome::Answered(uploaded(generation)),
            Err(RunError { error: Error::Fdb(e), maybe_committed: true, .. }) => Outcome::Unknown(e),
            Err(e) => told(once::Outcome::Refused(e.error)),
        });
    }
    let mut outcome = told(session.apply(finish).await);
    for (_, part) in others {
        if !matches!(outcome, Outcome::Answered(Answer::Uploaded(..))) {
            break;
        }
        outcome = told(session.apply(|tx| async move { blobs.append(&tx, name, part).await }).await);
    }
    Ok(outcome)
}
