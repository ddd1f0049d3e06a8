//! Planted bugs: blobs implemented or used wrongly, as published recipes do it or as is easily done by
//! mistake.

use super::{
    Answer, Blob, Op,
    operations::has_long_name,
    stored::{places, space},
};
use crate::shared;
use foundationdb_tuple::Bytes as TupleBytes;
use shaketable::{
    specimen::{INTERLEAVED, UNRECORDED},
    weakened::{Flaw, everything, flawed},
};
use shaketable_layers::blob::Error;
use shaketable_tx::{
    Isolation::{self, Serializable, Snapshot},
    Transaction, Tx, strinc,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two appends that run side by side in one transaction begin at the same end", "two futures in one transaction";
    Unrecorded = UNRECORDED, "an append is retried after an unknown result without an operation record", "an append done twice";
    TailKept = "tail-kept", "a write does not clear the previous content", "the official recipe's write";
    EmptyIsMissing = "empty-is-missing", "a blob without a chunk is read as a missing blob", "the recipe, which stores nothing but chunks";
    EmptyKeeps = "empty-keeps", "a write of zero bytes returns at once", "the official recipe's write";
    WholeRead = "whole-read", "a slice scans the blob from its beginning", "the recipe's read of a range";
    SizeReads = "size-reads", "the size is the sum of all chunks", "the recipe's size";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole content", "a range that is longer than a batch";
    SliceAtSnapshot = "slice-at-snapshot", "a slice is read at snapshot, whatever isolation was requested", "a dropped conflict range";
    SnapshotConflicts = "snapshot-conflicts", "a read that is requested at snapshot is serializable", "an isolation that is not passed on";
    NameWithoutEnd = "name-without-end", "deleting a blob clears every key with the blob's name as its prefix", "a prefix without an end";
    ClearedFirst = "cleared-first", "a truncation beyond the end is refused after the chunks were cleared", "a refusal that comes too late";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform(
    planted: Planted,
    workload: &Blob,
    tx: &Tx,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let right = workload.right(tx, op, isolation);
    match (planted, op) {
        _ if has_long_name(op) => right.await,
        (Planted::TailKept, Op::Write(..)) => {
            workload.right(&flawed(tx, Flaw::Uncleared, everything()), op, isolation).await
        }
        (Planted::FirstBatch, Op::Read(_)) => {
            workload.right(&flawed(tx, Flaw::FirstBatch, everything()), op, isolation).await
        }
        (Planted::EmptyIsMissing, Op::Read(_)) => Ok(match right.await? {
            Answer::Content(content) => Answer::Content(content.filter(|content| content.length() > 0)),
            other => other,
        }),
        (Planted::EmptyKeeps, Op::Write(_, _, data)) if data.bytes().is_empty() => {
            let silent = flawed(tx, Flaw::Unwritten, everything());
            workload.right(&flawed(&silent, Flaw::Uncleared, everything()), op, isolation).await
        }
        (Planted::WholeRead, Op::ReadRange(name, ..)) | (Planted::SizeReads, Op::Size(_, name)) => {
            shared::rows(tx, &places(workload.name(*name)).1).await?;
            right.await
        }
        (Planted::ClearedFirst, Op::Truncate(name, _)) => {
            let truncated = right.await;
            if let Err(Error::BeyondEnd { .. }) = truncated {
                let (begin, end) = places(workload.name(*name)).1.range();
                tx.clear_range(&begin, &end);
            }
            truncated
        }
        (Planted::SliceAtSnapshot, Op::ReadRange(..)) => workload.right(tx, op, Snapshot).await,
        (Planted::SnapshotConflicts, Op::Size(..)) => workload.right(tx, op, Serializable).await,
        (Planted::NameWithoutEnd, Op::Delete(name)) => {
            let deleted = right.await?;
            if deleted == Answer::Deleted(true) {
                let all = space().pack(&(1, TupleBytes::from(workload.name(*name))));
                let begin = &all[..all.len() - 1];
                tx.clear_range(begin, &strinc(begin).unwrap_or_default());
            }
            Ok(deleted)
        }
        _ => right.await,
    }
}
