//! Planted bugs: blobs implemented or used wrongly, as published recipes do it or as is easily done by
//! mistake.

use super::{
    Answer, Op,
    client::{blobs, of_kind},
    operations::has_long_name,
    stored::{places, space},
};
use crate::shared;
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, pack, unpack};
use shaketable::specimen::{Content, INTERLEAVED, UNRECORDED};
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

/// A manifest as it is stored, of a blob whose content is in place.
#[derive(Clone, Copy)]
struct Manifest {
    size: u64,
    chunk: u64,
    generation: Generation,
}

async fn manifest<T: Transaction>(
    tx: &T,
    name: &[u8],
    serializable: bool,
) -> Result<Option<Manifest>, Error> {
    let isolation = if serializable { Serializable } else { Snapshot };
    let Some(value) = tx.get(&places(name).0, isolation).await? else { return Ok(None) };
    let (size, chunk, version, step, _): (u64, u64, i64, i64, TupleBytes<'_>) =
        unpack(&value).unwrap_or((0, 1, 0, 0, TupleBytes::from(&b""[..])));
    Ok(Some(Manifest { size, chunk, generation: Generation { version, step } }))
}

fn set_manifest<T: Transaction>(tx: &T, name: &[u8], manifest: &Manifest) {
    let Manifest { size, chunk, generation } = manifest;
    let parts = (*size, *chunk, generation.version, generation.step, TupleBytes::from(&b""[..]));
    tx.set(&places(name).0, &pack(&parts));
}

async fn next<T: Transaction>(tx: &T, old: Option<Manifest>) -> Result<Generation, Error> {
    let version = tx.get_read_version().await?;
    Ok(match old.map(|old| old.generation) {
        Some(old) if old.version == version => Generation { version, step: old.step + 1 },
        _ => Generation { version, step: 0 },
    })
}

/// Every chunk that is stored, in order, which is how the recipe reads a blob.
async fn chunks<T: Transaction>(tx: &T, name: &[u8]) -> Result<Vec<Bytes>, Error> {
    let rows = shared::rows(tx, &places(name).1).await?;
    Ok(rows.into_iter().map(|row| row.value).collect())
}

/// Performs a call that the bug changes; `None` for every other call.
pub async fn perform<T: Transaction>(
    planted: Planted,
    sizes: [usize; 2],
    tx: &T,
    op: &Op,
    isolation: Isolation,
    name_of: impl Fn(usize) -> &'static [u8],
) -> Option<Result<Answer, Error>> {
    if has_long_name(op) && planted != Planted::LongNameWritten {
        return None;
    }
    let told = |content: Option<Vec<u8>>| Answer::Content(content.as_ref().map(Content::from));
    Some(match (planted, op) {
        (Planted::TailKept, Op::Write(kind, name, data)) => {
            let (name, chunk, bytes) = (name_of(*name), sizes[kind % 3 % 2], data.bytes());
            async {
                let old = manifest(tx, name, true).await?;
                for (at, part) in (0u64..).step_by(chunk).zip(bytes.chunks(chunk)) {
                    tx.set(&places(name).1.pack(&(at,)), part);
                }
                let generation = next(tx, old).await?;
                let size = bytes.len() as u64;
                set_manifest(tx, name, &Manifest { size, chunk: chunk as u64, generation });
                Ok(Answer::Written(generation))
            }
            .await
        }
        (Planted::TailKept, Op::Read(name)) => {
            let name = name_of(*name);
            async {
                Ok(match manifest(tx, name, true).await? {
                    None => told(None),
                    Some(_) => told(Some(chunks(tx, name).await?.concat())),
                })
            }
            .await
        }
        (Planted::EmptyIsMissing, Op::Read(name)) => {
            chunks(tx, name_of(*name)).await.map(|chunks| told((!chunks.is_empty()).then(|| chunks.concat())))
        }
        (Planted::EmptyIsMissing, Op::Exists(name)) => {
            chunks(tx, name_of(*name)).await.map(|chunks| Answer::Exists(!chunks.is_empty()))
        }
        (Planted::EmptyKeeps, Op::Write(_, name, data)) if data.bytes().is_empty() => {
            let old = manifest(tx, name_of(*name), true).await;
            async { Ok(Answer::Written(next(tx, old?).await?)) }.await
        }
        (Planted::WholeRead, Op::ReadRange(name, start, length)) => {
            let end = start.checked_add(*length)?;
            let name = name_of(*name);
            async {
                if manifest(tx, name, true).await?.is_none() {
                    return Ok(told(None));
                }
                let bytes = chunks(tx, name).await?.concat();
                let within = |at: u64| at.min(bytes.len() as u64) as usize;
                Ok(told(Some(bytes[within(*start)..within(end)].to_vec())))
            }
            .await
        }
        (Planted::SizeReads, Op::Size(_, name)) => {
            let name = name_of(*name);
            async {
                let there = manifest(tx, name, true).await?.is_some();
                let sum = chunks(tx, name).await?.iter().map(|chunk| chunk.len() as u64).sum();
                Ok(Answer::Size(there.then_some(sum)))
            }
            .await
        }
        (Planted::FirstBatch, Op::Read(name)) => {
            let name = name_of(*name);
            async {
                if manifest(tx, name, true).await?.is_none() {
                    return Ok(told(None));
                }
                let range = RangeOption::from(places(name).1.range());
                let batch = tx.get_range(&range, 1, Serializable).await?;
                let chunks: Vec<Bytes> = batch.rows.into_iter().map(|row| row.value).collect();
                Ok(told(Some(chunks.concat())))
            }
            .await
        }
        (Planted::SnapshotAppend, Op::Append(kind, name, data)) => {
            let (name, bytes) = (name_of(*name), data.bytes());
            async {
                let old = manifest(tx, name, false).await?;
                let generation = next(tx, old).await?;
                let chunk = sizes[kind % 3 % 2] as u64;
                let mut new = old.unwrap_or(Manifest { size: 0, chunk, generation });
                let content = places(name).1;
                let first = new.size - new.size % new.chunk;
                let mut end = match first < new.size {
                    true => tx.get(&content.pack(&(first,)), Snapshot).await?.unwrap_or_default().to_vec(),
                    false => Vec::new(),
                };
                end.extend_from_slice(&bytes);
                for (at, part) in (first..).step_by(new.chunk as usize).zip(end.chunks(new.chunk as usize)) {
                    tx.set(&content.pack(&(at,)), part);
                }
                (new.size, new.generation) = (new.size + bytes.len() as u64, generation);
                set_manifest(tx, name, &new);
                Ok(Answer::Written(generation))
            }
            .await
        }
        (Planted::ClearedFirst, Op::Truncate(name, size)) => {
            let truncated = blobs(sizes[0]).truncate(tx, name_of(*name), *size).await;
            if let Err(Error::BeyondEnd { .. }) = truncated {
                let content = places(name_of(*name)).1;
                tx.clear_range(&content.pack(&(0u64,)), &content.range().1);
            }
            truncated.map(Answer::Written)
        }
        (Planted::LastChunkStays, Op::Delete(name)) => {
            let name = name_of(*name);
            async {
                let range = RangeOption::from(places(name).1.range());
                let rows = tx.get_range_all(range, Serializable).await?;
                let deleted = blobs(sizes[0]).delete(tx, name).await?;
                if let ([_, _, .., last], true) = (&rows[..], deleted) {
                    tx.set(&last.key, &last.value);
                }
                Ok(Answer::Deleted(deleted))
            }
            .await
        }
        (Planted::WrappingEnd, Op::ReadRange(name, start, length)) => {
            let length = start.wrapping_add(*length).saturating_sub(*start);
            let slice = blobs(sizes[0]).read_range(tx, name_of(*name), *start, length, Serializable).await;
            slice.map(|slice| told(slice.map(|slice| slice.to_vec())))
        }
        (Planted::LateStart, Op::ReadRange(name, start, length)) => {
            let name = name_of(*name);
            async {
                let size = manifest(tx, name, true).await?.map_or(0, |manifest| manifest.size);
                let start = if *start < size { *start } else { size.saturating_sub(*length) };
                let slice = blobs(sizes[0]).read_range(tx, name, start, *length, Serializable).await?;
                Ok(told(slice.map(|slice| slice.to_vec())))
            }
            .await
        }
        (Planted::OwnChunk, Op::ReadRange(name, start, length)) => {
            let end = start.checked_add(*length)?;
            let (name, chunk) = (name_of(*name), sizes[0] as u64);
            async {
                let Some(manifest) = manifest(tx, name, true).await? else { return Ok(told(None)) };
                let end = end.min(manifest.size);
                if *start >= end {
                    return Ok(told(Some(Vec::new())));
                }
                let (content, first) = (places(name).1, start - start % chunk);
                let range = RangeOption::new(content.pack(&(first,)), content.pack(&(end,)));
                let rows = tx.get_range_all(range, Serializable).await?;
                let chunks: Vec<Bytes> = rows.into_iter().map(|row| row.value).collect();
                let bytes = chunks.concat();
                let within = |at: u64| (at.saturating_sub(first)).min(bytes.len() as u64) as usize;
                Ok(told(Some(bytes[within(*start)..within(end)].to_vec())))
            }
            .await
        }
        (Planted::OneChunk, Op::WriteAt(name, start, data)) => {
            let (name, mut bytes) = (name_of(*name), data.bytes());
            async {
                if let Some(manifest) = manifest(tx, name, true).await? {
                    bytes.truncate((manifest.chunk - start % manifest.chunk) as usize);
                }
                blobs(sizes[0]).write_at(tx, name, *start, &bytes).await.map(Answer::Written)
            }
            .await
        }
        (Planted::LengthOnly, Op::Truncate(name, size)) => {
            let name = name_of(*name);
            let old = match manifest(tx, name, true).await {
                Ok(Some(old)) if *size <= old.size => old,
                // Calls that the layer refuses are left to the layer.
                Ok(_) => return None,
                Err(e) => return Some(Err(e)),
            };
            async {
                let new = Manifest { size: *size, generation: next(tx, Some(old)).await?, ..old };
                set_manifest(tx, name, &new);
                Ok(Answer::Written(new.generation))
            }
            .await
        }
        (Planted::GenerationKept, Op::WriteAt(name, start, data)) => {
            let (name, bytes) = (name_of(*name), data.bytes());
            async {
                let old = manifest(tx, name, true).await?;
                let written = blobs(sizes[0]).write_at(tx, name, *start, &bytes).await?;
                if let (Some(old), Some(new)) = (old, manifest(tx, name, true).await?) {
                    set_manifest(tx, name, &Manifest { generation: old.generation, ..new });
                }
                Ok(Answer::Written(old.map_or(written, |old| old.generation)))
            }
            .await
        }
        (Planted::EndIncluded, Op::ReadRange(name, start, length)) => {
            let end = start.checked_add(*length)?;
            let name = name_of(*name);
            async {
                let slice = blobs(sizes[0]).read_range(tx, name, *start, *length, isolation).await?;
                if let (Some(manifest), true) = (manifest(tx, name, true).await?, *length > 0)
                    && end < manifest.size
                    && end % manifest.chunk == 0
                {
                    tx.get(&places(name).1.pack(&(end,)), isolation).await?;
                }
                Ok(told(slice.map(|slice| slice.to_vec())))
            }
            .await
        }
        (Planted::EdgeKept, Op::Truncate(name, size)) => {
            let name = name_of(*name);
            async {
                let kept = match manifest(tx, name, true).await? {
                    Some(manifest) if *size < manifest.size && size % manifest.chunk == 0 => {
                        tx.get(&places(name).1.pack(&(*size,)), Serializable).await?
                    }
                    _ => None,
                };
                let generation = blobs(sizes[0]).truncate(tx, name, *size).await?;
                kept.into_iter().for_each(|kept| tx.set(&places(name).1.pack(&(*size,)), &kept));
                Ok(Answer::Written(generation))
            }
            .await
        }
        (Planted::SliceAtSnapshot, Op::ReadRange(name, start, length)) => {
            let slice = blobs(sizes[0]).read_range(tx, name_of(*name), *start, *length, Snapshot).await;
            slice.map(|slice| told(slice.map(|slice| slice.to_vec())))
        }
        (Planted::SnapshotConflicts, Op::Size(kind, name)) => {
            of_kind(sizes, *kind).size(tx, name_of(*name), Serializable).await.map(Answer::Size)
        }
        (Planted::AnyGeneration, Op::ReadRangeOf(name, _, start, length)) => {
            let slice = blobs(sizes[0]).read_range(tx, name_of(*name), *start, *length, isolation).await;
            slice.map(|slice| told(Some(slice.unwrap_or_default().to_vec())))
        }
        (Planted::NameWithoutEnd, Op::Delete(name)) => {
            let name = name_of(*name);
            async {
                let deleted = blobs(sizes[0]).delete(tx, name).await?;
                if deleted {
                    let all = space().pack(&(1, TupleBytes::from(name)));
                    let begin = &all[..all.len() - 1];
                    tx.clear_range(begin, &strinc(begin).unwrap_or_default());
                }
                Ok(Answer::Deleted(deleted))
            }
            .await
        }
        (Planted::LongNameWritten, Op::Write(_, name, data)) => {
            let (name, bytes) = (name_of(*name), data.bytes());
            match blobs(sizes[0]).write(tx, name, &bytes).await {
                Err(Error::TooLarge(_)) => {
                    async {
                        let generation = next(tx, None).await?;
                        tx.set(&places(name).1.pack(&(u64::MAX,)), &bytes);
                        Ok(Answer::Written(generation))
                    }
                    .await
                }
                written => written.map(Answer::Written),
            }
        }
        _ => return None,
    })
}
