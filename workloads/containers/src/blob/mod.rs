//! `blob`: byte strings that are stored in chunks are written, appended to, overwritten, truncated and read
//! in part.
//!
//! There are few blobs and chunks are small, so that most writes begin or end inside a chunk, at its edge, or
//! cover several chunks. Three kinds of writers use chunk sizes of their own. Some blobs are empty and some
//! do not exist. Some offsets are beyond the end, which the layer refuses, or for which it returns nothing.
//! Offsets and lengths are at the edges of chunks and next to them. Names are prefixes of each other; a few
//! are as long as a key allows, or longer. Some transactions contain a blob that no writer writes: it is
//! larger than one transaction reads, and damaged. A slice must read no chunk that it does not need, and a
//! look at snapshot must not conflict.

#[cfg(test)]
mod bounds;
mod data;
#[cfg(test)]
mod documents;
mod foreign;
mod model;
mod planted;
mod sparing;
mod stored;

pub use data::Data;
pub(crate) use model::writable;
pub use model::{Model, Stored};
pub(crate) use stored::{places, space, stored};

use crate::shared::one_call;
use shaketable::{prelude::*, real::key_room, specimen::Content, strategies::CONFUSED};
use shaketable_layers::blob::{Blobs, Error, Generation};
use shaketable_tx::{KEY_SIZE_LIMIT, VALUE_SIZE_LIMIT};
use std::sync::LazyLock;

/// The drawn configuration of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blob {
    /// The names: the first of [`CONFUSED`], and how many from there on.
    names: (usize, usize),
    /// The chunk sizes of two kinds of writers; the third kind uses
    /// [`Blobs::new`](shaketable_layers::blob::Blobs::new).
    chunks: [usize; 2],
    /// The maximum length of what is written, in bytes.
    longest: usize,
}

/// Byte strings in chunks: written, appended to, cut off, read in part.
#[shaketable::workload(name = "blob", model = Model, planted, promises(turns, limits))]
impl Blob {
    /// Blobs with these names and chunk sizes, for another workload.
    pub(crate) fn among(names: (usize, usize), chunks: [usize; 2], longest: usize) -> Blob {
        Blob { names, chunks, longest }
    }

    fn draw(rng: &mut Stream) -> Blob {
        // In a few seeds a chunk is as large as a value can be.
        let chunk = match rng.chance(0.04) {
            true => VALUE_SIZE_LIMIT,
            false => *rng.pick(&[1, 4, 4, 16, 16, 64, 64, 500, 500]),
        };
        Blob {
            names: (rng.below(CONFUSED.len() as u64) as usize, *rng.pick(&[1, 2, 2, 3, 5])),
            chunks: [chunk, *rng.pick(&[chunk, 7, 100])],
            longest: if chunk == VALUE_SIZE_LIMIT { chunk + 1 } else { 3 * chunk + 1 },
        }
    }

    fn points() -> &'static [&'static str] {
        &["blob: a write begins and ends in different chunks"]
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let place = |name: usize| {
            let (manifest, content) = places(self.name(name));
            [manifest, content.pack(&(self.chunks[0] as u64,))]
        };
        (0..self.names.1).flat_map(place).collect()
    }

    /// Sets the tag of the data that a call writes: its client and its number.
    pub(crate) fn number(op: &mut BlobOp, client: usize, number: usize) {
        if let BlobOp::write { written: (_, _, data) }
        | BlobOp::append { named: (_, data), .. }
        | BlobOp::write_at { named: (_, data), .. } = op
        {
            data.tag(client, number);
        }
    }

    pub(crate) fn name(&self, name: usize) -> &'static [u8] {
        match name {
            _ if name == LONG[0] => longest(),
            _ if name == LONG[1] => too_long(),
            _ if name == LONG[2] => much_too_long(),
            _ => CONFUSED[(self.names.0 + name % self.names.1) % CONFUSED.len()],
        }
    }

    /// The layer with the chunk size of this kind of writers.
    fn layer(&self, kind: usize) -> Blobs {
        self.chunks.get(kind).map_or_else(|| Blobs::new(space()), |chunk| blobs(*chunk))
    }

    /// The number of a name, which is rarely that of a long one.
    #[draws(name)]
    fn names(&self) -> BoxedStrategy<usize> {
        prop_oneof![30 => 0..self.names.1, 1 => select(&[LONG[0], LONG[1], LONG[1], LONG[2]][..])].boxed()
    }

    #[draws(kind)]
    fn kind() -> impl Strategy<Value = usize> {
        0..3usize
    }

    /// A name, and data for it.
    #[draws(named)]
    fn named(&self) -> BoxedStrategy<(usize, Data)> {
        let longest = self.longest;
        let data = prop_oneof![
            2 => Data::up_to(longest),
            1 => self.edge().prop_map(move |length| Data::of((length as usize).min(longest))),
            1 => Just(Data::of(0)),
        ];
        // The key of each chunk contains the name. If the name is long, few chunks fit into a transaction.
        let most = |name| if is_long(name) { 16 } else { usize::MAX };
        (self.names(), data)
            .prop_map(move |(name, data)| (name, Data::of(data.length().min(most(name)))))
            .boxed()
    }

    /// The kind of the writer, a name, and data for it.
    #[draws(written)]
    fn written(&self) -> BoxedStrategy<(usize, usize, Data)> {
        let usual = (Self::kind(), self.named()).prop_map(|(kind, (name, data))| (kind, name, data));
        // More chunks with a long name than fit into a transaction, if chunks are not large.
        let many = self.chunks.map(|chunk| Data::of(400 * chunk.min(500)));
        let many = (0..2usize).prop_map(move |kind| (kind, LONG[0], many[kind]));
        prop_oneof![12 => usual, 1 => many].boxed()
    }

    /// A number at the edge of a chunk, more often of the first kind of writers.
    fn edge(&self) -> BoxedStrategy<u64> {
        edge([&self.chunks[..], &self.chunks[..1]].concat(), 3)
    }

    fn offset(&self) -> BoxedStrategy<u64> {
        prop_oneof![1 => 0..=2 * self.longest as u64, 2 => self.edge()].boxed()
    }

    /// Slices whose ends are at the ends of what a number can be, or that are empty.
    fn odd(&self) -> impl Strategy<Value = (u64, u64)> + use<> {
        let first = self.chunks[0] as u64;
        select(vec![(0, u64::MAX), (1, u64::MAX), (u64::MAX, 1), (u64::MAX, 0), (first, 0)])
    }

    /// The start and the length of a slice.
    #[draws(slice)]
    fn slice(&self) -> BoxedStrategy<(u64, u64)> {
        prop_oneof![6 => (self.offset(), self.offset()), 2 => self.odd()].boxed()
    }

    /// Whether a slice is of the blob's generation, and otherwise of another one; its start and its length.
    #[draws(of)]
    fn of(&self) -> BoxedStrategy<(bool, (u64, u64))> {
        let usual = (any::<bool>(), self.offset(), self.offset());
        let usual = usual.prop_map(|(same, at, length)| (same || length % 3 > 0, (at, length)));
        prop_oneof![3 => usual, 1 => (any::<bool>(), self.odd())].boxed()
    }

    #[draws(chunk, part)]
    fn layout() -> impl Strategy<Value = usize> {
        select(vec![0, 1, 2, 3, 7, VALUE_SIZE_LIMIT, VALUE_SIZE_LIMIT + 1, 5_000_000, 5_000_001])
    }

    /// Replaces a blob, as the writer of this kind.
    #[write(weight = OTHERS * 13, at)]
    async fn write(&self, tx: &Tx, written: (usize, usize, Data)) -> Result<Generation, Error> {
        let (kind, name, data) = written;
        self.layer(kind).write(tx, self.name(name), &data.bytes()).await
    }

    #[write(weight = OTHERS * 18, at)]
    async fn append(&self, tx: &Tx, kind: usize, named: (usize, Data)) -> Result<Generation, Error> {
        let (name, data) = named;
        self.layer(kind).append(tx, self.name(name), &data.bytes()).await
    }

    #[write(weight = OTHERS * 19, at)]
    async fn write_at(
        &self,
        tx: &Tx,
        named: (usize, Data),
        #[draw(prop_oneof![18 => self.offset(), 1 => Just(u64::MAX)])] start: u64,
    ) -> Result<Generation, Error> {
        let (name, data) = named;
        self.layer(0).write_at(tx, self.name(name), start, &data.bytes()).await
    }

    #[write(weight = OTHERS * 12, at)]
    async fn truncate(
        &self,
        tx: &Tx,
        name: usize,
        #[draw(self.offset())] size: u64,
    ) -> Result<Generation, Error> {
        self.layer(0).truncate(tx, self.name(name), size).await
    }

    #[write(weight = OTHERS * 6)]
    async fn delete(&self, tx: &Tx, name: usize) -> Result<bool, Error> {
        self.layer(0).delete(tx, self.name(name)).await
    }

    #[read(weight = READS * 4)]
    async fn read(&self, tx: &Tx, isolation: Isolation, name: usize) -> Result<Option<Content>, Error> {
        Ok(self.layer(0).read(tx, self.name(name), isolation).await?.as_ref().map(Content::from))
    }

    #[read(weight = READS * 8)]
    async fn read_range(
        &self,
        tx: &Tx,
        isolation: Isolation,
        name: usize,
        slice: (u64, u64),
    ) -> Result<Option<Content>, Error> {
        let (start, length) = slice;
        let look = |tx| async move {
            let read = self.layer(0).read_range(&tx, self.name(name), start, length, isolation).await?;
            Ok(read.as_ref().map(Content::from))
        };
        self.sparing(tx, isolation, name, slice, look).await
    }

    #[read(weight = READS * 4)]
    async fn read_range_of(
        &self,
        tx: &Tx,
        isolation: Isolation,
        name: usize,
        of: (bool, (u64, u64)),
    ) -> Result<Content, Error> {
        let (same, slice @ (start, length)) = of;
        let look = |tx| async move {
            let (layer, tx, name) = (self.layer(0), &one_call(&tx, true).await, self.name(name));
            let found = layer.stat(tx, name, isolation).await?.map(|stat| stat.generation);
            let ask = generation_to_ask(found, same);
            Ok(Content::from(&layer.read_range_of(tx, name, ask, start, length, isolation).await?))
        };
        self.sparing(tx, isolation, name, slice, look).await
    }

    #[read(weight = READS * 2)]
    async fn size(
        &self,
        tx: &Tx,
        isolation: Isolation,
        kind: usize,
        name: usize,
    ) -> Result<Option<u64>, Error> {
        let look = |tx| async move { self.layer(kind).size(&tx, self.name(name), isolation).await };
        self.sparing(tx, isolation, name, (0, 0), look).await
    }

    #[read(weight = READS * 2)]
    async fn exists(&self, tx: &Tx, isolation: Isolation, name: usize) -> Result<bool, Error> {
        let look = |tx| async move { self.layer(0).exists(&tx, self.name(name), isolation).await };
        self.sparing(tx, isolation, name, (0, 0), look).await
    }

    /// Reads its size and its generation.
    #[read(weight = READS * 2)]
    async fn stat(
        &self,
        tx: &Tx,
        isolation: Isolation,
        name: usize,
    ) -> Result<Option<(u64, Generation)>, Error> {
        let look = |tx| async move {
            let stat = self.layer(0).stat(&tx, self.name(name), isolation).await?;
            Ok(stat.map(|stat| (stat.size, stat.generation)))
        };
        self.sparing(tx, isolation, name, (0, 0), look).await
    }

    /// Configures the layer with chunks and parts of these sizes.
    #[read(weight = OTHERS, rare)]
    async fn sizes(&self, tx: &Tx, isolation: Isolation, chunk: usize, part: usize) -> Result<(), Error> {
        // A read, so that the call has a place in the history.
        self.layer(0).exists(tx, self.name(0), isolation).await?;
        Blobs::with_sizes(space(), chunk, part).map(drop)
    }

    /// Stores a blob with chunks of this size that is longer than one transaction reads, and damaged; reads
    /// it and changes it, which is refused, and removes it again. Returns how each call was refused.
    #[write(weight = OTHERS, rare)]
    async fn foreign(
        &self,
        tx: &Tx,
        #[draw(select(vec![2, 84, 500, 10_000]))] chunk: usize,
    ) -> Result<Vec<String>, Error> {
        foreign::refusals(&one_call(tx, false).await, chunk).await
    }

    #[stored]
    async fn read_back(&self, tx: &Tx) -> tx::Result<Result<Model, String>> {
        Ok(stored(tx).await?.map(|blobs| Model { blobs, ..self.model() }))
    }

    pub(crate) fn model(&self) -> Model {
        Model::of(self.clone())
    }
}

/// The factors of the weights of reads and of other calls: 54 of 124 calls read a blob.
const READS: u32 = 27;
const OTHERS: u32 = 11;

/// The layer with chunks of this size, and ten of them in a part.
fn blobs(chunk: usize) -> Blobs {
    Blobs::with_sizes(space(), chunk, 10 * chunk).expect("sizes within the limits")
}

/// The generation to request when the blob has this one: the same, or another.
fn generation_to_ask(found: Option<Generation>, same: bool) -> Generation {
    let found = found.unwrap_or(Generation { version: 0, step: 0 });
    Generation { step: found.step + i64::from(!same), ..found }
}

/// A number at the beginning of a chunk, or next to it, for one of the first chunks of one of these sizes.
pub(crate) fn edge(chunks: Vec<usize>, most: u64) -> BoxedStrategy<u64> {
    (select(chunks), 0..=most, 0..3u64)
        .prop_map(|(chunk, number, beside)| (number * chunk as u64 + beside).saturating_sub(1))
        .boxed()
}

/// The numbers of the long names.
const LONG: [usize; 3] = [1_000, 1_001, 1_002];

fn is_long(name: usize) -> bool {
    name >= LONG[0]
}

/// A name of this many bytes.
fn of_bytes(bytes: usize) -> &'static [u8] {
    static NAME: LazyLock<Vec<u8>> = LazyLock::new(|| vec![b'n'; KEY_SIZE_LIMIT + 1]);
    &NAME[..bytes]
}

/// The bytes of a chunk's key beside the name.
fn beside() -> usize {
    places(b"").1.pack(&(u64::MAX,)).len()
}

/// The longest name. With one byte more, the key of a chunk would be too long.
fn longest() -> &'static [u8] {
    of_bytes(KEY_SIZE_LIMIT - beside() - key_room())
}

/// A name that is too long for the key of a chunk, by one byte: that of a blob that cannot be written, and
/// therefore does not exist.
fn too_long() -> &'static [u8] {
    of_bytes(KEY_SIZE_LIMIT - beside() + 1)
}

/// A name for which even the manifest's key is too long, by one byte.
fn much_too_long() -> &'static [u8] {
    of_bytes(KEY_SIZE_LIMIT + 1 - places(b"").0.len())
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Blob>>()
}
