//! `blob`: byte strings in chunks are written, appended to, overwritten, cut off and read in part.
//!
//! Few blobs and small chunks, so that most writes meet the middle of a chunk, its edge, or several; two
//! writers with chunk sizes of their own; empty blobs beside missing ones; and offsets beyond the end,
//! which the layer refuses, or answers with nothing. A slice must read no chunk that it does not need.

use crate::{
    sabotage::blob as sabotage,
    specimen::{At, Content, Specimen, UNRECORDED},
    workload::Bug,
};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, unpack};
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable_layers::{
    always,
    blob::{Blobs, Error, Generation},
    limits,
    tx::{self, Env, Isolation::Serializable, RangeOption, Transaction},
};
use shaketable_sim::seed::Stream;
use std::collections::BTreeMap;

flaws! {
    Unrecorded = UNRECORDED, "an append is retried after an unknown result without an operation record", "an append done twice";
    TailKept = "tail-kept", "a write does not clear what was there, and a read takes every chunk", "the official recipe's write";
    EmptyIsMissing = "empty-is-missing", "a blob without a chunk is taken for no blob", "the recipe, which stores nothing but chunks";
    EmptyKeeps = "empty-keeps", "a write of nothing returns at once", "the official recipe's write";
    WholeRead = "whole-read", "a slice scans the blob from its beginning", "the recipe's read of a range";
    SizeReads = "size-reads", "the size is the sum of all chunks", "the recipe's size";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole content", "a range that is longer than a batch";
    SnapshotAppend = "snapshot-append", "an append reads the end of the blob at snapshot", "a write that depends on a read without isolation";
    WrappingEnd = "wrapping-end", "start and length of a slice are added without a look at the overflow", "an end that wraps around";
    LateStart = "late-start", "a slice from beyond the end is taken from the end backwards", "an offset that is clamped";
    OwnChunk = "own-chunk", "a slice finds its first chunk by the reader's chunk size", "a chunk size that is not stored";
    OneChunk = "one-chunk", "a write over the edge of a chunk ends there", "a write into the chunk where it begins";
    LengthOnly = "length-only", "truncating changes the size and leaves the chunks", "a cut that only the manifest knows";
    GenerationKept = "generation-kept", "a write at an offset leaves the generation as it is", "a change that nobody can notice";
}

/// The names of blobs: what a key must escape, and one that is a prefix of another.
const NAMES: [&[u8]; 5] = [b"a", b"", b"a\0", b"\xff\xff", b"\0\xff"];

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Blob {
    /// Of [`NAMES`], how many are used.
    names: usize,
    /// The chunk sizes of two kinds of writers.
    chunks: [usize; 2],
    /// What is written has up to so many bytes.
    longest: usize,
    flaw: Option<Flaw>,
}

/// What is written: so many bytes that tell who wrote them, and each its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    tag: u32,
    length: usize,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Replaces a blob; by the writer of this chunk size.
    Write(usize, usize, Data),
    /// Appends to it.
    Append(usize, usize, Data),
    /// Writes from an offset.
    WriteAt(usize, u64, Data),
    /// Cuts it off.
    Truncate(usize, u64),
    /// Removes it.
    Delete(usize),
    /// Reads all of it.
    Read(usize),
    /// Reads a slice.
    ReadRange(usize, u64, u64),
    /// Asks for its size; by the reader of this chunk size.
    Size(usize, usize),
    /// Asks whether it is there.
    Exists(usize),
    /// Asks for its generation.
    Generation(usize),
    /// Writes under a name of so many bytes.
    LongName(usize),
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written: this is the blob's generation.
    Written(Generation),
    /// Deleted, if it was there.
    Deleted(bool),
    /// What was read.
    Content(Option<Content>),
    /// The size.
    Size(Option<u64>),
    /// Whether it is there.
    Exists(bool),
    /// The generation.
    Generation(Option<Generation>),
}

/// A blob of the model.
#[derive(Clone, PartialEq)]
pub struct Stored {
    /// Its generation.
    pub generation: Generation,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.generation, Content::from(&self.bytes))
    }
}

/// All blobs, by name.
pub type Model = BTreeMap<Vec<u8>, Stored>;

impl Data {
    /// Drawn with up to so many bytes; its tag is told later.
    pub(crate) fn up_to(longest: usize) -> impl Strategy<Value = Data> {
        (0..=longest).prop_map(|length| Data { tag: 0, length })
    }

    /// Makes it what this client writes as number so.
    pub(crate) fn tag(&mut self, client: usize, number: usize) {
        self.tag = (client << 16 | (number & 0xffff)) as u32;
    }

    /// The bytes: the tag in each four of them, mixed with their place.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        (0..self.length).map(|i| self.tag.to_be_bytes()[i % 4] ^ (i / 4) as u8).collect()
    }
}

pub(crate) fn space() -> Subspace {
    Subspace::from("blobs")
}

/// The key of a blob's manifest, and where its content is in place.
pub(crate) fn places(name: &[u8]) -> (Vec<u8>, Subspace) {
    (space().pack(&(0, TupleBytes::from(name))), space().subspace(&(1, TupleBytes::from(name))))
}

/// Blobs with chunks of this size, ten of them in a part.
pub(crate) fn blobs(chunk: usize) -> Blobs {
    Blobs::with_sizes(space(), chunk, 10 * chunk).expect("sizes within the limits")
}

/// What the layer answers about an end that has no offset.
pub(crate) fn end(start: u64, length: u64) -> Result<u64, Error> {
    start.checked_add(length).ok_or(Error::Overflow { start, length })
}

/// Every blob, read by the key schema, chunk by chunk. Says what is not as it must be: a chunk that is
/// nobody's, one too short or too long, a hole.
pub(crate) async fn stored<T: Transaction>(tx: &T) -> tx::Result<Result<Model, String>> {
    let rows = tx.get_range_all(RangeOption::from(space().range()), Serializable).await?;
    Ok(whole(rows.into_iter().map(|row| (row.key, row.value)).collect()))
}

fn whole(rows: BTreeMap<Bytes, Bytes>) -> Result<Model, String> {
    let words = |key: &[u8]| format!("\"{}\"", key.escape_ascii());
    let (mut model, mut named) = (Model::new(), 0);
    for (key, value) in &rows {
        let Ok((0, name)) = space().unpack::<(i64, TupleBytes<'_>)>(key) else { continue };
        let (size, chunk, version, step, upload): (u64, u64, i64, i64, TupleBytes<'_>) =
            unpack(value).map_err(|_| format!("a manifest that cannot be read: {}", words(key)))?;
        let place = match upload.is_empty() {
            true => places(&name).1,
            false => space().subspace(&(2, upload)),
        };
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < size {
            let at = bytes.len() as u64;
            let chunk = rows.get(&place.pack(&(at,))[..]).filter(|c| c.len() as u64 == chunk.min(size - at));
            bytes.extend_from_slice(chunk.ok_or_else(|| {
                format!("{} of {size} bytes has not the chunk it must have at {at}", words(&name))
            })?);
            named += 1;
        }
        model.insert(name.to_vec(), Stored { generation: Generation { version, step }, bytes });
    }
    let uploads = uploads(&rows)?;
    match model.len() + named + uploads == rows.len() {
        true => Ok(model),
        false => Err(format!(
            "of {} keys {} are no blob's and no upload's",
            rows.len(),
            rows.len() - model.len() - named - uploads
        )),
    }
}

/// How many keys belong to uploads under way: their records, the marks of their parts, the chunks.
fn uploads(rows: &BTreeMap<Bytes, Bytes>) -> Result<usize, String> {
    let mut keys = 0;
    for (key, record) in rows {
        let Ok((3, id)) = space().unpack::<(i64, TupleBytes<'_>)>(key) else { continue };
        let (_, chunk, part, _): (TupleBytes<'_>, u64, u64, i64) =
            unpack(record).map_err(|_| "an upload's record that cannot be read".to_owned())?;
        let (marks, content) = (space().subspace(&(4, id.clone())), space().subspace(&(2, id)));
        let (begin, end) = marks.range();
        keys += 1;
        for (mark, length) in rows.range(Bytes::from(begin)..Bytes::from(end)) {
            let number: Option<(u64,)> = marks.unpack(mark).ok();
            let length: Option<(u64,)> = unpack(length).ok();
            let (Some((number,)), Some((length,))) = (number, length) else {
                return Err("a part's mark that cannot be read".to_owned());
            };
            keys += 1;
            for at in (0..length).step_by(chunk as usize) {
                let stored = rows.get(&content.pack(&(number * part + at,))[..]);
                if stored.is_none_or(|stored| stored.len() as u64 != chunk.min(length - at)) {
                    return Err(format!("part {number} of an upload has not the chunk it must have at {at}"));
                }
                keys += 1;
            }
        }
    }
    Ok(keys)
}

/// The chunks below `content` that this transaction has read serializably so far: from and to which key,
/// without the prefix.
async fn read_chunks<T: Transaction>(tx: &T, content: &Subspace) -> tx::Result<Vec<(Bytes, bool)>> {
    const READ: &[u8] = b"\xff\xff/transaction/read_conflict_range/";
    let (begin, end) = content.range();
    let range = RangeOption::new([READ, &begin].concat(), [READ, &end].concat());
    let rows = tx.get_range_all(range, Serializable).await?;
    Ok(rows.into_iter().map(|row| (row.key.slice(READ.len()..), &row.value[..] == b"1")).collect())
}

impl Blob {
    fn name(&self, name: usize) -> &'static [u8] {
        NAMES[name % self.names]
    }

    /// Claims that a look reads no chunk outside of `start` to `end`; only of the first read of a blob in
    /// its transaction, for all reads add up.
    async fn sparing<T: Transaction>(
        &self,
        tx: &T,
        content: &Subspace,
        before: Vec<(Bytes, bool)>,
        chunk: Option<u64>,
        (start, end): (u64, u64),
    ) -> Result<(), Error> {
        let (Some(chunk), true) = (chunk, before.is_empty()) else { return Ok(()) };
        for (key, _) in read_chunks(tx, content).await? {
            let at = |at: u64| content.pack(&(at,));
            let needed = start < end && at(start - start % chunk)[..] <= key[..] && key[..] <= at(end)[..];
            always!(
                needed,
                "the bytes from {start} to {end}, in chunks of {chunk}, need no chunk at {}",
                key.escape_ascii()
            );
        }
        Ok(())
    }

    /// The chunk size of a blob.
    async fn chunk<T: Transaction>(&self, tx: &T, name: &[u8]) -> Result<Option<(u64, u64)>, Error> {
        let manifest = tx.get(&places(name).0, Serializable).await?;
        let sizes = |value: Bytes| {
            let parts: (u64, u64, i64, i64, TupleBytes<'_>) = unpack(&value).ok()?;
            Some((parts.0, parts.1))
        };
        Ok(manifest.and_then(sizes))
    }

    async fn do_it<T: Transaction>(&self, tx: &T, op: &Op) -> Result<Answer, Error> {
        if let Some(flaw) = self.flaw
            && let Some(answer) = sabotage::perform(flaw, self.chunks, tx, op, |name| self.name(name)).await
        {
            return answer;
        }
        let either = |kind: usize| blobs(self.chunks[kind % 2]);
        let one = either(0);
        Ok(match op {
            Op::Write(kind, name, data) => {
                Answer::Written(either(*kind).write(tx, self.name(*name), &data.bytes()).await?)
            }
            Op::Append(kind, name, data) => {
                Answer::Written(either(*kind).append(tx, self.name(*name), &data.bytes()).await?)
            }
            Op::WriteAt(name, start, data) => {
                Answer::Written(one.write_at(tx, self.name(*name), *start, &data.bytes()).await?)
            }
            Op::Truncate(name, size) => Answer::Written(one.truncate(tx, self.name(*name), *size).await?),
            Op::Delete(name) => Answer::Deleted(one.delete(tx, self.name(*name)).await?),
            Op::Read(name) => {
                let content = one.read(tx, self.name(*name), Serializable).await?;
                Answer::Content(content.as_ref().map(Content::from))
            }
            Op::ReadRange(name, start, length) => {
                let slice = one.read_range(tx, self.name(*name), *start, *length, Serializable).await?;
                Answer::Content(slice.as_ref().map(Content::from))
            }
            Op::Size(kind, name) => {
                Answer::Size(either(*kind).size(tx, self.name(*name), Serializable).await?)
            }
            Op::Exists(name) => Answer::Exists(one.exists(tx, self.name(*name), Serializable).await?),
            Op::Generation(name) => {
                let stat = one.stat(tx, self.name(*name), Serializable).await?;
                Answer::Generation(stat.map(|stat| stat.generation))
            }
            Op::LongName(length) => {
                Answer::Written(one.write(tx, &vec![b'n'; *length], b"beyond the limit").await?)
            }
        })
    }
}

/// Puts a change into the model.
pub(crate) fn change(
    model: &mut Model,
    name: &[u8],
    at: &At,
    change: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<Answer, Error> {
    let mut blob = model
        .get(name)
        .cloned()
        .unwrap_or(Stored { generation: Generation { version: -1, step: 0 }, bytes: Vec::new() });
    change(&mut blob.bytes)?;
    let version = at.read_version.unwrap_or(0);
    blob.generation = match blob.generation {
        Generation { version: known, step } if known == version => Generation { version, step: step + 1 },
        _ => Generation { version, step: 0 },
    };
    let generation = blob.generation;
    model.insert(name.to_vec(), blob);
    Ok(Answer::Written(generation))
}

impl Specimen for Blob {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "blob";
    const ABOUT: &'static str = "byte strings in chunks: written, appended to, cut off, read in part";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &["blob: a write begins and ends in different chunks"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Blob {
        let chunk = *rng.pick(&[4, 16, 64, 500]);
        Blob {
            names: rng.range(1..NAMES.len() as u64 + 1) as usize,
            chunks: [chunk, *rng.pick(&[chunk, 7, 100])],
            longest: 3 * chunk + 1,
            flaw: bug.and_then(Flaw::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let place = |name: &&[u8]| {
            let (manifest, content) = places(name);
            [manifest.into(), content.pack(&(self.chunks[0] as u64,)).into()]
        };
        NAMES[..self.names].iter().flat_map(place).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let (name, kind) = (|| 0..self.names, || 0..2usize);
        let longest = self.longest;
        let (data, offset) = (move || Data::up_to(longest), move || 0..=2 * longest as u64);
        let edge = self.chunks[0] as u64;
        let odd = select(vec![(0, u64::MAX), (1, u64::MAX), (u64::MAX, 1), (edge, edge), (edge, 0)]);
        prop_oneof![
            4 => (kind(), name(), data()).prop_map(|(kind, name, data)| Op::Write(kind, name, data)),
            6 => (kind(), name(), data()).prop_map(|(kind, name, data)| Op::Append(kind, name, data)),
            6 => (name(), offset(), data()).prop_map(|(name, at, data)| Op::WriteAt(name, at, data)),
            4 => (name(), offset()).prop_map(|(name, at)| Op::Truncate(name, at)),
            2 => name().prop_map(Op::Delete),
            4 => name().prop_map(Op::Read),
            6 => (name(), offset(), offset()).prop_map(|(name, at, n)| Op::ReadRange(name, at, n)),
            2 => (name(), odd).prop_map(|(name, (at, n))| Op::ReadRange(name, at, n)),
            1 => (name(), data()).prop_map(|(name, data)| Op::WriteAt(name, u64::MAX, data)),
            2 => (kind(), name()).prop_map(|(kind, name)| Op::Size(kind, name)),
            2 => name().prop_map(Op::Exists),
            2 => name().prop_map(Op::Generation),
            1 => (9_990usize..10_100).prop_map(Op::LongName),
        ]
        .prop_map(|op| match op {
            // Nothing at all is written as often as much.
            Op::Write(kind, name, data) if data.length % 5 == 1 => {
                Op::Write(kind, name, Data { length: 0, ..data })
            }
            op => op,
        })
        .boxed()
    }

    fn number(op: &mut Op, client: usize, number: usize) {
        if let Op::Write(_, _, data) | Op::Append(_, _, data) | Op::WriteAt(_, _, data) = op {
            data.tag(client, number);
        }
    }

    fn is_look(op: &Op) -> bool {
        matches!(op, Op::Read(_) | Op::ReadRange(..) | Op::Size(..) | Op::Exists(_) | Op::Generation(_))
    }

    async fn perform<T: Transaction>(&self, tx: &T, _: &Env, op: &Op) -> Result<Answer, Error> {
        let (name, bounds) = match op {
            Op::ReadRange(name, start, length) => (*name, Some((*start, start.checked_add(*length)))),
            Op::Size(_, name) => (*name, Some((0, Some(0)))),
            _ => (0, None),
        };
        let Some((start, Some(end))) = bounds else { return self.do_it(tx, op).await };
        let name = self.name(name);
        let content = places(name).1;
        let (sizes, before) = (self.chunk(tx, name).await?, read_chunks(tx, &content).await?);
        let answer = self.do_it(tx, op).await?;
        let end = sizes.map_or(0, |(size, _)| end.min(size));
        self.sparing(tx, &content, before, sizes.map(|(_, chunk)| chunk), (start, end)).await?;
        Ok(answer)
    }

    fn model(&self) -> Model {
        Model::new()
    }

    fn replay(&self, model: &mut Model, op: &Op, at: &At) -> Result<Answer, Error> {
        let slice = |model: &Model, name: usize, start: u64, length: u64| {
            let end = end(start, length)?;
            let slice = model.get(self.name(name)).map(|blob| {
                let size = blob.bytes.len() as u64;
                let (start, end) = (start.min(size) as usize, end.min(size) as usize);
                Content::from(&blob.bytes[start..end])
            });
            Ok::<_, Error>(Answer::Content(slice))
        };
        match op {
            Op::Write(_, name, data) => change(model, self.name(*name), at, |bytes| {
                *bytes = data.bytes();
                Ok(())
            }),
            Op::Append(_, name, data) => change(model, self.name(*name), at, |bytes| {
                bytes.extend(data.bytes());
                Ok(())
            }),
            Op::WriteAt(name, start, data) => change(model, self.name(*name), at, |bytes| {
                end(*start, data.length as u64)?;
                let size = bytes.len() as u64;
                if *start > size {
                    return Err(Error::BeyondEnd { offset: *start, size });
                }
                let (from, to) = (*start as usize, *start as usize + data.length);
                bytes.splice(from..to.min(bytes.len()), data.bytes());
                Ok(())
            }),
            Op::Truncate(name, size) if model.contains_key(self.name(*name)) => {
                change(model, self.name(*name), at, |bytes| match bytes.len() as u64 {
                    now if *size > now => Err(Error::BeyondEnd { offset: *size, size: now }),
                    _ => {
                        bytes.truncate(*size as usize);
                        Ok(())
                    }
                })
            }
            Op::Truncate(..) => Err(Error::Missing),
            Op::Delete(name) => Ok(Answer::Deleted(model.remove(self.name(*name)).is_some())),
            Op::Read(name) => slice(model, *name, 0, u64::MAX),
            Op::ReadRange(name, start, length) => slice(model, *name, *start, *length),
            Op::Size(_, name) => {
                Ok(Answer::Size(model.get(self.name(*name)).map(|blob| blob.bytes.len() as u64)))
            }
            Op::Exists(name) => Ok(Answer::Exists(model.contains_key(self.name(*name)))),
            Op::Generation(name) => {
                Ok(Answer::Generation(model.get(self.name(*name)).map(|blob| blob.generation)))
            }
            Op::LongName(length) => {
                limits::key(&places(&vec![b'n'; *length]).1.pack(&(u64::MAX,)))?;
                Err(Error::Missing)
            }
        }
    }

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Model, String>> {
        stored(tx).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_tells_who_wrote_it() {
        let data = |tag| Data { tag, length: 300 }.bytes();
        let (one, other) = (data(0x0001_0001), data(0x0001_0002));
        assert_eq!(one.len(), 300);
        assert!(one.iter().zip(&other).filter(|(a, b)| a != b).count() >= 75);
        assert_ne!(one[..4], one[4..8]);
    }

    #[test]
    fn a_chunk_that_is_nobodys_and_one_that_is_missing_are_noticed() {
        let (manifest, content) = places(b"x");
        let key = |at: u64| Bytes::from(content.pack(&(at,)));
        let size = foundationdb_tuple::pack(&(3u64, 2u64, 5i64, 0i64, TupleBytes::from(&b""[..])));
        let mut rows = BTreeMap::from([
            (Bytes::from(manifest), Bytes::from(size)),
            (key(0), Bytes::from_static(b"ab")),
            (key(2), Bytes::from_static(b"c")),
        ]);
        let model = whole(rows.clone()).expect("a whole blob");
        assert_eq!(model[&b"x"[..]].bytes, b"abc");
        rows.insert(key(4), Bytes::new());
        assert!(whole(rows.clone()).is_err_and(|why| why.contains("no blob's")));
        rows.remove(&key(2));
        assert!(whole(rows).is_err_and(|why| why.contains("at 2")));
    }
}
