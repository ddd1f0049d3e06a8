//! `blob`: byte strings in chunks are written, appended to, overwritten, cut off and read in part.
//!
//! Few blobs and small chunks, so that most writes meet the middle of a chunk, its edge, or several; three
//! writers with chunk sizes of their own; empty blobs beside missing ones; and offsets beyond the end,
//! which the layer refuses, or answers with nothing. Offsets and lengths stand at the edges of chunks and
//! beside them. Names are prefixes of each other, and now and then as long as a key can be, or longer. A slice
//! must read no chunk that it does not need, and a look at snapshot must conflict with nothing.

mod planted;

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, unpack};
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    specimen::{At, Content, Specimen, UNRECORDED},
    strategies::CONFUSED,
    workload::Bug,
};
use shaketable_layers::{
    always,
    blob::{Blobs, Error, Expect, Generation},
    limits,
    tx::{
        self, Env,
        Isolation::{self, Serializable, Snapshot},
        KEY_SIZE_LIMIT, RangeOption, Transaction, VALUE_SIZE_LIMIT, strinc,
    },
};
use shaketable_sim::seed::Stream;
use std::{collections::BTreeMap, fmt::Debug, sync::LazyLock};

shaketable::planted_bugs! {
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
    EndIncluded = "end-included", "a slice that ends where a chunk begins reads that chunk too", "a bound that is off by one";
    EdgeKept = "edge-kept", "a blob that is cut where a chunk begins keeps that chunk", "a bound that is off by one";
    SliceAtSnapshot = "slice-at-snapshot", "a slice is read at snapshot, however it is asked for", "a dropped conflict range";
    SnapshotConflicts = "snapshot-conflicts", "what is asked for at snapshot is read serializably", "an isolation that is not passed on";
    AnyGeneration = "any-generation", "a slice of a generation is read from whatever is there", "a comparison that is left out";
    NameWithoutEnd = "name-without-end", "deleting clears all that begins with the blob's name", "a prefix without an end";
    LongNameWritten = "long-name-written", "a name that is too long is found out by the commit", "a limit that is not checked";
}

/// The longest name: one byte more, and the key of a chunk is too long.
static LONGEST: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let rest = places(b"").1.pack(&(u64::MAX,)).len();
    vec![b'n'; KEY_SIZE_LIMIT - rest]
});

/// One byte longer: a blob that cannot be written, and is not there.
static TOO_LONG: LazyLock<Vec<u8>> = LazyLock::new(|| vec![b'n'; LONGEST.len() + 1]);

/// So long that the manifest's key is longer than any key, by a byte.
static MUCH_TOO_LONG: LazyLock<Vec<u8>> =
    LazyLock::new(|| vec![b'n'; KEY_SIZE_LIMIT + 1 - places(b"").0.len()]);

/// The numbers of the long names.
const LONG: [usize; 3] = [1_000, 1_001, 1_002];

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Blob {
    /// The names: so many of [`CONFUSED`] from this one on.
    names: (usize, usize),
    /// The chunk sizes of two kinds of writers; a third one has those of [`Blobs::new`].
    chunks: [usize; 2],
    /// What is written has up to so many bytes.
    longest: usize,
    planted: Option<Planted>,
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
    /// Reads a slice of its generation, or of one that it is not in.
    ReadRangeOf(usize, bool, u64, u64),
    /// Asks for its size; by the reader of this chunk size.
    Size(usize, usize),
    /// Asks whether it is there.
    Exists(usize),
    /// Asks for its size and its generation.
    Stat(usize),
    /// Asks for blobs with chunks and parts of these sizes.
    Sizes(usize, usize),
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
    /// The size and the generation.
    Stat(Option<(u64, Generation)>),
    /// Sizes that are possible.
    Sized,
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

    /// So many bytes.
    pub(crate) fn of(length: usize) -> Data {
        Data { tag: 0, length }
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

/// The blobs of a kind of writers.
pub(crate) fn of_kind(chunks: [usize; 2], kind: usize) -> Blobs {
    match kind % 3 {
        2 => Blobs::new(space()),
        kind => blobs(chunks[kind]),
    }
}

/// A number beside a place where a chunk begins, or there; the first chunks of any of these sizes.
pub(crate) fn edge(chunks: Vec<usize>, most: u64) -> BoxedStrategy<u64> {
    (select(chunks), 0..=most, 0..3u64)
        .prop_map(|(chunk, number, beside)| (number * chunk as u64 + beside).saturating_sub(1))
        .boxed()
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
        let signs = rows.get(&space().pack(&(5, id.clone()))[..]);
        let (marks, content) = (space().subspace(&(4, id.clone())), space().subspace(&(2, id)));
        let (begin, end) = marks.range();
        keys += 1 + usize::from(signs.is_some());
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

const READ: &[u8] = b"\xff\xff/transaction/read_conflict_range/";

/// The keys below `space` that this transaction has read serializably so far: where such a range begins, and
/// where it ends.
async fn conflicts<T: Transaction>(tx: &T, space: &Subspace) -> tx::Result<Vec<(Bytes, bool)>> {
    // All that begins with the prefix: encoded integers may begin with 0xff, where a subspace's range ends.
    let end = strinc(space.bytes()).unwrap_or_else(|| vec![0xff].into());
    let range = RangeOption::new([READ, space.bytes()].concat(), [READ, &end].concat());
    let rows = tx.get_range_all(range, Serializable).await?;
    Ok(rows.into_iter().map(|row| (row.key.slice(READ.len()..), &row.value[..] == b"1")).collect())
}

/// Claims that what FoundationDB refuses for its size was refused before it was written.
pub(crate) async fn fits<T: Transaction>(tx: &T, what: &impl Debug) -> tx::Result<()> {
    let size = tx.get_approximate_size().await;
    let is_too_large =
        matches!(size, Err(e) if [tx::Error::KEY_TOO_LARGE, tx::Error::VALUE_TOO_LARGE].contains(&e));
    always!(!is_too_large, "{what:?} was not refused, and then {size:?}");
    size.map(drop)
}

/// The generation that is asked for where this one is: the same, or another.
fn generation_to_ask(found: Option<Generation>, same: bool) -> Generation {
    let found = found.unwrap_or(Generation { version: 0, step: 0 });
    Generation { step: found.step + i64::from(!same), ..found }
}

impl Blob {
    /// Blobs of these names and chunk sizes, as another workload has them.
    pub(crate) fn among(names: (usize, usize), chunks: [usize; 2], longest: usize) -> Blob {
        Blob { names, chunks, longest, planted: None }
    }

    pub(crate) fn name(&self, name: usize) -> &'static [u8] {
        match name {
            _ if name == LONG[0] => &LONGEST,
            _ if name == LONG[1] => &TOO_LONG,
            _ if name == LONG[2] => &MUCH_TOO_LONG,
            _ => CONFUSED[(self.names.0 + name % self.names.1) % CONFUSED.len()],
        }
    }

    /// A blob's name; now and then a long one.
    fn names(&self) -> BoxedStrategy<usize> {
        prop_oneof![30 => 0..self.names.1, 1 => select(&[LONG[0], LONG[1], LONG[1], LONG[2]][..])].boxed()
    }

    /// One call.
    pub(crate) fn calls(&self) -> BoxedStrategy<Op> {
        let (name, kind) = (|| self.names(), || 0..3usize);
        let longest = self.longest;
        let sizes = [self.chunks.to_vec(), vec![self.chunks[0]]].concat();
        let edge = || edge(sizes.clone(), 3);
        let data = || {
            prop_oneof![
                2 => Data::up_to(longest),
                1 => edge().prop_map(move |length| Data::of((length as usize).min(longest))),
                1 => Just(Data::of(0)),
            ]
        };
        // Every chunk has the name in its key: of a long one, few fit into a transaction.
        let named = || {
            let most = |name| if name < LONG[0] { usize::MAX } else { 16 };
            (name(), data()).prop_map(move |(name, data)| (name, Data::of(data.length.min(most(name)))))
        };
        let offset = || prop_oneof![1 => 0..=2 * longest as u64, 2 => edge()];
        let first = self.chunks[0] as u64;
        let odd = select(vec![(0, u64::MAX), (1, u64::MAX), (u64::MAX, 1), (u64::MAX, 0), (first, 0)]);
        let look = || {
            prop_oneof![
                4 => name().prop_map(Op::Read),
                6 => (name(), offset(), offset()).prop_map(|(name, at, n)| Op::ReadRange(name, at, n)),
                2 => (name(), odd.clone()).prop_map(|(name, (at, n))| Op::ReadRange(name, at, n)),
                3 => (name(), any::<bool>(), offset(), offset())
                    .prop_map(|(name, same, at, n)| Op::ReadRangeOf(name, same || n % 3 > 0, at, n)),
                2 => (kind(), name()).prop_map(|(kind, name)| Op::Size(kind, name)),
                2 => name().prop_map(Op::Exists),
                2 => name().prop_map(Op::Stat),
            ]
        };
        let size =
            || select(vec![0, 1, 2, 3, 7, VALUE_SIZE_LIMIT, VALUE_SIZE_LIMIT + 1, 5_000_000, 5_000_001]);
        prop_oneof![
            12 => (kind(), named()).prop_map(|(kind, (name, data))| Op::Write(kind, name, data)),
            18 => (kind(), named()).prop_map(|(kind, (name, data))| Op::Append(kind, name, data)),
            18 => (offset(), named()).prop_map(|(at, (name, data))| Op::WriteAt(name, at, data)),
            12 => (name(), offset()).prop_map(|(name, at)| Op::Truncate(name, at)),
            6 => name().prop_map(Op::Delete),
            54 => look(),
            1 => named().prop_map(|(name, data)| Op::WriteAt(name, u64::MAX, data)),
            1 => (size(), size()).prop_map(|(chunk, part)| Op::Sizes(chunk, part)),
        ]
        .boxed()
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
        for (key, _) in conflicts(tx, content).await? {
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

    /// The size of a blob, and of its chunks. Read at snapshot, so that no look conflicts because of it.
    async fn chunk<T: Transaction>(&self, tx: &T, name: &[u8]) -> Result<Option<(u64, u64)>, Error> {
        let manifest = tx.get(&places(name).0, Snapshot).await?;
        let sizes = |value: Bytes| {
            let parts: (u64, u64, i64, i64, TupleBytes<'_>) = unpack(&value).ok()?;
            Some((parts.0, parts.1))
        };
        Ok(manifest.and_then(sizes))
    }

    async fn do_it<T: Transaction>(&self, tx: &T, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        let answer = self.call(tx, op, isolation).await?;
        if !is_look(op) {
            fits(tx, op).await?;
        }
        Ok(answer)
    }

    async fn call<T: Transaction>(&self, tx: &T, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        if let Some(planted) = self.planted
            && let Some(answer) =
                planted::perform(planted, self.chunks, tx, op, isolation, |name| self.name(name)).await
        {
            return answer;
        }
        let of_kind = |kind: usize| of_kind(self.chunks, kind);
        let one = of_kind(0);
        Ok(match op {
            Op::Write(kind, name, data) => {
                Answer::Written(of_kind(*kind).write(tx, self.name(*name), &data.bytes()).await?)
            }
            Op::Append(kind, name, data) => {
                Answer::Written(of_kind(*kind).append(tx, self.name(*name), &data.bytes()).await?)
            }
            Op::WriteAt(name, start, data) => {
                Answer::Written(one.write_at(tx, self.name(*name), *start, &data.bytes()).await?)
            }
            Op::Truncate(name, size) => Answer::Written(one.truncate(tx, self.name(*name), *size).await?),
            Op::Delete(name) => Answer::Deleted(one.delete(tx, self.name(*name)).await?),
            Op::Read(name) => {
                let content = one.read(tx, self.name(*name), isolation).await?;
                Answer::Content(content.as_ref().map(Content::from))
            }
            Op::ReadRange(name, start, length) => {
                let slice = one.read_range(tx, self.name(*name), *start, *length, isolation).await?;
                Answer::Content(slice.as_ref().map(Content::from))
            }
            Op::ReadRangeOf(name, same, start, length) => {
                let name = self.name(*name);
                let found = one.stat(tx, name, isolation).await?.map(|stat| stat.generation);
                let ask = generation_to_ask(found, *same);
                let slice = one.read_range_of(tx, name, ask, *start, *length, isolation).await?;
                Answer::Content(Some(Content::from(&slice)))
            }
            Op::Size(kind, name) => Answer::Size(of_kind(*kind).size(tx, self.name(*name), isolation).await?),
            Op::Exists(name) => Answer::Exists(one.exists(tx, self.name(*name), isolation).await?),
            Op::Stat(name) => {
                let stat = one.stat(tx, self.name(*name), isolation).await?;
                Answer::Stat(stat.map(|stat| (stat.size, stat.generation)))
            }
            Op::Sizes(chunk, part) => {
                // A look, for the answer to have its place among the others.
                one.exists(tx, self.name(0), isolation).await?;
                Blobs::with_sizes(space(), *chunk, *part)?;
                Answer::Sized
            }
        })
    }
}

/// Whether a call is about a blob with a long name.
pub(crate) fn has_long_name(op: &Op) -> bool {
    match op {
        Op::Write(_, name, _)
        | Op::Append(_, name, _)
        | Op::WriteAt(name, ..)
        | Op::Truncate(name, _)
        | Op::Delete(name)
        | Op::Read(name)
        | Op::ReadRange(name, ..)
        | Op::ReadRangeOf(name, ..)
        | Op::Size(_, name)
        | Op::Exists(name)
        | Op::Stat(name) => *name >= LONG[0],
        Op::Sizes(..) => false,
    }
}

/// Whether a call never writes.
pub(crate) fn is_look(op: &Op) -> bool {
    !matches!(op, Op::Write(..) | Op::Append(..) | Op::WriteAt(..) | Op::Truncate(..) | Op::Delete(_))
}

/// Gives what is written the tag of its client and its number.
pub(crate) fn tag(op: &mut Op, client: usize, number: usize) {
    if let Op::Write(_, _, data) | Op::Append(_, _, data) | Op::WriteAt(_, _, data) = op {
        data.tag(client, number);
    }
}

/// What the layer says of a name under which nothing can be written.
pub(crate) fn writable(name: &[u8]) -> Result<(), Error> {
    Ok(limits::key(&places(name).1.pack(&(u64::MAX,)))?)
}

/// What it says of a name under which nothing can be.
fn readable(name: &[u8]) -> Result<(), Error> {
    Ok(limits::key(&places(name).0)?)
}

/// Puts a change into the model.
pub(crate) fn change(
    model: &mut Model,
    name: &[u8],
    at: &At,
    change: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<Answer, Error> {
    writable(name)?;
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
        // Now and then a chunk is as large as a value can be.
        let chunk = match rng.chance(0.04) {
            true => VALUE_SIZE_LIMIT,
            false => *rng.pick(&[4, 16, 64, 500]),
        };
        Blob {
            names: (rng.below(CONFUSED.len() as u64) as usize, *rng.pick(&[1, 2, 2, 3, 5])),
            chunks: [chunk, *rng.pick(&[chunk, 7, 100])],
            longest: if chunk == VALUE_SIZE_LIMIT { chunk + 1 } else { 3 * chunk + 1 },
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let place = |name: usize| {
            let (manifest, content) = places(self.name(name));
            [manifest.into(), content.pack(&(self.chunks[0] as u64,)).into()]
        };
        (0..self.names.1).flat_map(place).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        self.calls()
    }

    fn number(op: &mut Op, client: usize, number: usize) {
        tag(op, client, number);
    }

    fn is_look(op: &Op) -> bool {
        is_look(op)
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        let dropped = |planted| [Planted::SliceAtSnapshot, Planted::SnapshotConflicts].contains(&planted);
        is_look(op) && self.planted.is_none_or(dropped)
    }

    async fn perform<T: Transaction>(
        &self,
        tx: &T,
        _: &Env,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Error> {
        let (name, bounds) = match op {
            Op::ReadRange(name, start, length) | Op::ReadRangeOf(name, _, start, length) => {
                (*name, Some((*start, start.checked_add(*length))))
            }
            Op::Size(_, name) | Op::Exists(name) | Op::Stat(name) => (*name, Some((0, Some(0)))),
            _ => (0, None),
        };
        // What conflicts is not told of keys beyond the limit.
        let bounds = bounds.filter(|_| name < LONG[0] && isolation == Serializable);
        let Some((start, Some(end))) = bounds else { return self.do_it(tx, op, isolation).await };
        let name = self.name(name);
        let content = places(name).1;
        let (sizes, before) = (self.chunk(tx, name).await?, conflicts(tx, &content).await?);
        let answer = self.do_it(tx, op, isolation).await?;
        let end = sizes.map_or(0, |(size, _)| end.min(size));
        self.sparing(tx, &content, before, sizes.map(|(_, chunk)| chunk), (start, end)).await?;
        Ok(answer)
    }

    fn model(&self) -> Model {
        Model::new()
    }

    fn replay(&self, model: &mut Model, op: &Op, at: &At) -> Result<Answer, Error> {
        let slice = |model: &Model, name: &[u8], start: u64, length: u64| {
            let end = end(start, length)?;
            readable(name)?;
            let slice = model.get(name).map(|blob| {
                let size = blob.bytes.len() as u64;
                let (start, end) = (start.min(size) as usize, end.min(size) as usize);
                Content::from(&blob.bytes[start..end])
            });
            Ok::<_, Error>(slice)
        };
        let look = |model: &Model, name: usize| {
            readable(self.name(name))?;
            Ok::<_, Error>(model.get(self.name(name)).cloned())
        };
        Ok(match op {
            Op::Write(_, name, data) => change(model, self.name(*name), at, |bytes| {
                *bytes = data.bytes();
                Ok(())
            })?,
            Op::Append(_, name, data) => change(model, self.name(*name), at, |bytes| {
                bytes.extend(data.bytes());
                Ok(())
            })?,
            Op::WriteAt(name, start, data) => {
                end(*start, data.length as u64)?;
                change(model, self.name(*name), at, |bytes| {
                    let size = bytes.len() as u64;
                    if *start > size {
                        return Err(Error::BeyondEnd { offset: *start, size });
                    }
                    let (from, to) = (*start as usize, *start as usize + data.length);
                    bytes.splice(from..to.min(bytes.len()), data.bytes());
                    Ok(())
                })?
            }
            Op::Truncate(name, size) => {
                let name = self.name(*name);
                writable(name)?;
                if !model.contains_key(name) {
                    return Err(Error::Missing);
                }
                change(model, name, at, |bytes| match bytes.len() as u64 {
                    now if *size > now => Err(Error::BeyondEnd { offset: *size, size: now }),
                    _ => {
                        bytes.truncate(*size as usize);
                        Ok(())
                    }
                })?
            }
            Op::Delete(name) => {
                writable(self.name(*name))?;
                Answer::Deleted(model.remove(self.name(*name)).is_some())
            }
            Op::Read(name) => Answer::Content(slice(model, self.name(*name), 0, u64::MAX)?),
            Op::ReadRange(name, start, length) => {
                Answer::Content(slice(model, self.name(*name), *start, *length)?)
            }
            Op::ReadRangeOf(name, same, start, length) => {
                let found = look(model, *name)?.map(|blob| blob.generation);
                let slice = slice(model, self.name(*name), *start, *length)?;
                let ask = generation_to_ask(found, *same);
                match found == Some(ask) {
                    true => Answer::Content(slice),
                    false => return Err(Error::Changed { expected: Expect::Generation(ask), found }),
                }
            }
            Op::Size(_, name) => Answer::Size(look(model, *name)?.map(|blob| blob.bytes.len() as u64)),
            Op::Exists(name) => Answer::Exists(look(model, *name)?.is_some()),
            Op::Stat(name) => {
                Answer::Stat(look(model, *name)?.map(|blob| (blob.bytes.len() as u64, blob.generation)))
            }
            Op::Sizes(chunk, part) => match (*chunk, *part) {
                (chunk, _) if chunk == 0 || chunk > VALUE_SIZE_LIMIT => return Err(Error::ChunkSize(chunk)),
                (chunk, part) if part < chunk || part > 5_000_000 || part % chunk > 0 => {
                    return Err(Error::PartSize { part, chunk });
                }
                _ => Answer::Sized,
            },
        })
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
