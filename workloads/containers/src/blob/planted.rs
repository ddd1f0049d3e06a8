//! Planted bugs: blobs implemented or used wrongly, as published recipes do it or as is easily done by
//! mistake.

use super::{
    Answer, Blob, Op,
    client::blobs,
    operations::has_long_name,
    stored::{places, space},
};
use crate::shared;
use foundationdb_tuple::{Bytes as TupleBytes, pack, unpack};
use shaketable::{
    specimen::{Content, INTERLEAVED, UNRECORDED},
    weakened::{Flaw, everything, flawed, weakened},
};
use shaketable_layers::blob::{Error, Generation};
use shaketable_tx::{
    Isolation::{self, Serializable, Snapshot},
    RangeOption, Transaction, strinc,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two appends that run side by side in one transaction begin at the same end", "two futures in one transaction";
    Unrecorded = UNRECORDED, "an append is retried after an unknown result without an operation record", "an append done twice";
    TailKept = "tail-kept", "a write does not clear the previous content, and a read takes every chunk", "the official recipe's write";
    EmptyIsMissing = "empty-is-missing", "a blob without a chunk is taken for a missing blob", "the recipe, which stores nothing but chunks";
    EmptyKeeps = "empty-keeps", "a write of zero bytes returns at once", "the official recipe's write";
    WholeRead = "whole-read", "a slice scans the blob from its beginning", "the recipe's read of a range";
    SizeReads = "size-reads", "the size is the sum of all chunks", "the recipe's size";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole content", "a range that is longer than a batch";
    SnapshotAppend = "snapshot-append", "an append reads the end of the blob at snapshot", "a write that depends on a read without isolation";
    WrappingEnd = "wrapping-end", "start and length of a slice are added without a check for overflow", "an end that wraps around";
    LateStart = "late-start", "a slice from beyond the end is read backwards from the end", "an offset that is clamped";
    OwnChunk = "own-chunk", "a slice finds its first chunk by the reader's chunk size", "a chunk size that is not stored";
    OneChunk = "one-chunk", "a write that crosses the edge of a chunk ends there", "a write into the chunk where it begins";
    LengthOnly = "length-only", "truncating changes the size and leaves the chunks", "a cut that only the manifest knows";
    GenerationKept = "generation-kept", "a write at an offset does not change the generation", "a change that cannot be noticed";
    EndIncluded = "end-included", "a slice that ends where a chunk begins reads that chunk too", "a bound that is off by one";
    EdgeKept = "edge-kept", "a blob that is cut where a chunk begins keeps that chunk", "a bound that is off by one";
    SliceAtSnapshot = "slice-at-snapshot", "a slice is read at snapshot, whatever isolation was requested", "a dropped conflict range";
    SnapshotConflicts = "snapshot-conflicts", "a read that is requested at snapshot is serializable", "an isolation that is not passed on";
    AnyGeneration = "any-generation", "a slice of a generation is read from whatever generation is stored", "a comparison that is left out";
    NameWithoutEnd = "name-without-end", "deleting a blob clears every key with the blob's name as its prefix", "a prefix without an end";
    LongNameWritten = "long-name-written", "a name that is too long is refused only by the commit", "a limit that is not checked";
    ClearedFirst = "cleared-first", "a truncation beyond the end is refused after the chunks were cleared", "a refusal that comes too late";
    LastChunkStays = "last-chunk-stays", "a deletion of more than two chunks leaves the last one", "a loop that ends one too early";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform<T: Transaction>(
    planted: Planted,
    workload: &Blob,
    tx: &T,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    if has_long_name(op) && planted != Planted::LongNameWritten {
        return workload.right(tx, op, isolation).await;
    }
    let one = blobs(workload.chunks[0]);
    let told = |content: Option<&[u8]>| Answer::Content(content.map(Content::from));
    match (planted, op) {
        (Planted::TailKept, Op::Write(..)) => {
            workload.right(&flawed(tx, Flaw::Uncleared, everything()), op, isolation).await
        }
        (Planted::TailKept, Op::Read(name)) => {
            Ok(told(every_chunk(tx, workload.name(*name)).await?.as_deref()))
        }
        (Planted::EmptyIsMissing, Op::Read(name)) => {
            let content = every_chunk(tx, workload.name(*name)).await?;
            Ok(told(content.as_deref().filter(|content| !content.is_empty())))
        }
        (Planted::EmptyIsMissing, Op::Exists(name)) => {
            let content = every_chunk(tx, workload.name(*name)).await?;
            Ok(Answer::Exists(content.is_some_and(|content| !content.is_empty())))
        }
        (Planted::EmptyKeeps, Op::Write(_, _, data)) if data.bytes().is_empty() => {
            let silent = flawed(tx, Flaw::Unwritten, everything());
            workload.right(&flawed(&silent, Flaw::Uncleared, everything()), op, isolation).await
        }
        (Planted::WholeRead, Op::ReadRange(name, start, length)) if start.checked_add(*length).is_some() => {
            let content = every_chunk(tx, workload.name(*name)).await?;
            let slice = content.as_deref().map(|bytes| {
                let within = |at: u64| at.min(bytes.len() as u64) as usize;
                &bytes[within(*start)..within(start + length)]
            });
            Ok(told(slice))
        }
        (Planted::SizeReads, Op::Size(_, name)) => {
            let content = every_chunk(tx, workload.name(*name)).await?;
            Ok(Answer::Size(content.map(|content| content.len() as u64)))
        }
        (Planted::FirstBatch, Op::Read(name)) => {
            let first = flawed(tx, Flaw::FirstBatch, everything());
            Ok(told(every_chunk(&first, workload.name(*name)).await?.as_deref()))
        }
        (Planted::SnapshotAppend, Op::Append(..)) => {
            workload.right(&weakened(tx.clone(), everything()), op, isolation).await
        }
        (Planted::ClearedFirst, Op::Truncate(name, _)) => {
            let truncated = workload.right(tx, op, isolation).await;
            if let Err(Error::BeyondEnd { .. }) = truncated {
                let (begin, end) = places(workload.name(*name)).1.range();
                tx.clear_range(&begin, &end);
            }
            truncated
        }
        (Planted::LastChunkStays, Op::Delete(name)) => {
            let rows = shared::rows(tx, &places(workload.name(*name)).1).await?;
            let deleted = workload.right(tx, op, isolation).await?;
            if let ([_, _, .., last], Answer::Deleted(true)) = (&rows[..], &deleted) {
                tx.set(&last.key, &last.value);
            }
            Ok(deleted)
        }
        (Planted::WrappingEnd, Op::ReadRange(name, start, length)) => {
            let length = start.wrapping_add(*length).saturating_sub(*start);
            workload.right(tx, &Op::ReadRange(*name, *start, length), isolation).await
        }
        (Planted::LateStart, Op::ReadRange(name, start, length)) => {
            let size = one.size(tx, workload.name(*name), isolation).await?.unwrap_or(0);
            let start = if *start < size { *start } else { size.saturating_sub(*length) };
            workload.right(tx, &Op::ReadRange(*name, start, *length), isolation).await
        }
        (Planted::OwnChunk, Op::ReadRange(name, start, length)) if start.checked_add(*length).is_some() => {
            let (name, chunk) = (workload.name(*name), workload.chunks[0] as u64);
            let Some(size) = one.size(tx, name, isolation).await? else { return Ok(told(None)) };
            let end = size.min(start + length);
            if *start >= end {
                return Ok(told(Some(&[])));
            }
            let (content, first) = (places(name).1, start - start % chunk);
            let range = RangeOption::new(content.pack(&(first,)), content.pack(&(end,)));
            let rows = tx.get_range_all(range, isolation).await?;
            let bytes: Vec<u8> = rows.into_iter().flat_map(|row| row.value).collect();
            let within = |at: u64| at.saturating_sub(first).min(bytes.len() as u64) as usize;
            Ok(told(Some(&bytes[within(*start)..within(end)])))
        }
        (Planted::OneChunk, Op::WriteAt(name, start, data)) => {
            let (name, mut bytes) = (workload.name(*name), data.bytes());
            if let Some((_, chunk)) = workload.chunk(tx, name).await? {
                bytes.truncate((chunk - start % chunk) as usize);
            }
            one.write_at(tx, name, *start, &bytes).await.map(Answer::Written)
        }
        (Planted::LengthOnly, Op::Truncate(name, _)) => {
            let content = [places(workload.name(*name)).1.range()];
            let unwritten = flawed(tx, Flaw::Unwritten, content.clone());
            workload.right(&flawed(&unwritten, Flaw::Uncleared, content), op, isolation).await
        }
        (Planted::GenerationKept, Op::WriteAt(name, ..)) => {
            let (name, key) = (workload.name(*name), places(workload.name(*name)).0);
            let old = one.stat(tx, name, Serializable).await?.map(|stat| stat.generation);
            let written = workload.right(tx, op, isolation).await?;
            let new = tx.get(&key, Serializable).await?.unwrap_or_default();
            let new: Result<(u64, u64, i64, i64, TupleBytes<'_>), _> = unpack(&new);
            let (Some(old), Ok((size, chunk, _, _, place))) = (old, new) else { return Ok(written) };
            tx.set(&key, &pack(&(size, chunk, old.version, old.step, place)));
            Ok(Answer::Written(old))
        }
        (Planted::EndIncluded, Op::ReadRange(name, start, length)) => {
            let (name, end) = (workload.name(*name), start.saturating_add(*length));
            let slice = workload.right(tx, op, isolation).await?;
            if let (Some((size, chunk)), 1..) = (workload.chunk(tx, name).await?, *length)
                && end < size
                && end % chunk == 0
            {
                tx.get(&places(name).1.pack(&(end,)), isolation).await?;
            }
            Ok(slice)
        }
        (Planted::EdgeKept, Op::Truncate(name, size)) => {
            let (name, key) = (workload.name(*name), places(workload.name(*name)).1.pack(&(*size,)));
            let chunk = workload.chunk(tx, name).await?;
            let is_edge = chunk.is_some_and(|(old, chunk)| *size < old && size % chunk == 0);
            let kept = tx.get(&key, Serializable).await?.filter(|_| is_edge);
            let truncated = workload.right(tx, op, isolation).await?;
            kept.iter().for_each(|kept| tx.set(&key, kept));
            Ok(truncated)
        }
        (Planted::SliceAtSnapshot, Op::ReadRange(..)) => workload.right(tx, op, Snapshot).await,
        (Planted::SnapshotConflicts, Op::Size(..)) => workload.right(tx, op, Serializable).await,
        (Planted::AnyGeneration, Op::ReadRangeOf(name, _, start, length)) => {
            let slice = one.read_range(tx, workload.name(*name), *start, *length, isolation).await?;
            Ok(told(Some(&slice.unwrap_or_default())))
        }
        (Planted::NameWithoutEnd, Op::Delete(name)) => {
            let deleted = workload.right(tx, op, isolation).await?;
            if deleted == Answer::Deleted(true) {
                let all = space().pack(&(1, TupleBytes::from(workload.name(*name))));
                let begin = &all[..all.len() - 1];
                tx.clear_range(begin, &strinc(begin).unwrap_or_default());
            }
            Ok(deleted)
        }
        (Planted::LongNameWritten, Op::Write(_, name, data)) => {
            match workload.right(tx, op, isolation).await {
                Err(Error::TooLarge(_)) => {
                    let version = tx.get_read_version().await?;
                    tx.set(&places(workload.name(*name)).1.pack(&(u64::MAX,)), &data.bytes());
                    Ok(Answer::Written(Generation { version, step: 0 }))
                }
                written => written,
            }
        }
        _ => workload.right(tx, op, isolation).await,
    }
}

/// Every chunk that is stored of a blob that exists, in order, which is how the recipe reads it.
async fn every_chunk<T: Transaction>(tx: &T, name: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    if !blobs(1).exists(tx, name, Serializable).await? {
        return Ok(None);
    }
    let rows = shared::rows(tx, &places(name).1).await?;
    Ok(Some(rows.into_iter().flat_map(|row| row.value).collect()))
}
