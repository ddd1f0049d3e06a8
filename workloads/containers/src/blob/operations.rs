//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::{Blob, stored::places};
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{real::key_room, specimen::Content};
use shaketable_layers::blob::Generation;
use shaketable_tx::{KEY_SIZE_LIMIT, VALUE_SIZE_LIMIT};
use std::{fmt::Debug, sync::LazyLock};

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Replaces a blob, as the writer of this kind.
    Write(usize, usize, Data),
    /// Appends to a blob, as the writer of this kind.
    Append(usize, usize, Data),
    /// Writes at an offset.
    WriteAt(usize, u64, Data),
    /// Truncates a blob.
    Truncate(usize, u64),
    /// Deletes a blob.
    Delete(usize),
    /// Reads a whole blob.
    Read(usize),
    /// Reads a slice.
    ReadRange(usize, u64, u64),
    /// Reads a slice of the blob's generation, or of another generation.
    ReadRangeOf(usize, bool, u64, u64),
    /// Reads its size, as the reader of this kind.
    Size(usize, usize),
    /// Reads whether it exists.
    Exists(usize),
    /// Reads its size and its generation.
    Stat(usize),
    /// Configures the layer with chunks and parts of these sizes.
    Sizes(usize, usize),
    /// Stores a blob with chunks of this size that is longer than one transaction reads, and damaged; reads
    /// it and changes it, which is refused, and removes it again.
    Foreign(usize),
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written; the blob now has this generation.
    Written(Generation),
    /// Whether the blob existed.
    Deleted(bool),
    /// The content that was read.
    Content(Option<Content>),
    /// The size.
    Size(Option<u64>),
    /// Whether it exists.
    Exists(bool),
    /// The size and the generation.
    Stat(Option<(u64, Generation)>),
    /// The sizes are valid.
    Sized,
    /// How each call on a foreign blob was refused; empty if it was not.
    Foreign(Vec<String>),
}

/// What is written: bytes that identify the write and, within it, their position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    tag: u32,
    pub(super) length: usize,
}

impl Data {
    /// Data of up to this length; the tag is set later.
    fn up_to(longest: usize) -> impl Strategy<Value = Data> {
        (0..=longest).prop_map(|length| Data { tag: 0, length })
    }

    /// Data of this length.
    pub(crate) fn of(length: usize) -> Data {
        Data { tag: 0, length }
    }

    /// Sets the tag: this client, and the number of the write.
    pub(crate) fn tag(&mut self, client: usize, number: usize) {
        self.tag = (client << 16 | (number & 0xffff)) as u32;
    }

    /// The bytes: each four bytes are the tag, combined with their position.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        (0..self.length).map(|i| self.tag.to_be_bytes()[i % 4] ^ (i / 4) as u8).collect()
    }
}

/// A name of this many bytes.
fn named(bytes: usize) -> &'static [u8] {
    static NAME: LazyLock<Vec<u8>> = LazyLock::new(|| vec![b'n'; KEY_SIZE_LIMIT + 1]);
    &NAME[..bytes]
}

/// The bytes of a chunk's key beside the name.
fn beside() -> usize {
    places(b"").1.pack(&(u64::MAX,)).len()
}

/// The longest name. With one byte more, the key of a chunk would be too long.
pub(super) fn longest() -> &'static [u8] {
    named(KEY_SIZE_LIMIT - beside() - key_room())
}

/// A name that is too long for the key of a chunk, by one byte: that of a blob that cannot be written, and
/// therefore does not exist.
pub(super) fn too_long() -> &'static [u8] {
    named(KEY_SIZE_LIMIT - beside() + 1)
}

/// A name for which even the manifest's key is too long, by one byte.
pub(super) fn much_too_long() -> &'static [u8] {
    named(KEY_SIZE_LIMIT + 1 - places(b"").0.len())
}

/// The numbers of the long names.
pub(super) const LONG: [usize; 3] = [1_000, 1_001, 1_002];

/// A number at the beginning of a chunk, or next to it, for one of the first chunks of one of these sizes.
pub(crate) fn edge(chunks: Vec<usize>, most: u64) -> BoxedStrategy<u64> {
    (select(chunks), 0..=most, 0..3u64)
        .prop_map(|(chunk, number, beside)| (number * chunk as u64 + beside).saturating_sub(1))
        .boxed()
}

impl Blob {
    /// Draws a blob's name, which is rarely a long one.
    fn names(&self) -> BoxedStrategy<usize> {
        prop_oneof![30 => 0..self.names.1, 1 => select(&[LONG[0], LONG[1], LONG[1], LONG[2]][..])].boxed()
    }

    /// Draws one call.
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
        // The key of each chunk contains the name. If the name is long, few chunks fit into a transaction.
        let named = || {
            let most = |name| if name < LONG[0] { usize::MAX } else { 16 };
            (name(), data()).prop_map(move |(name, data)| (name, Data::of(data.length.min(most(name)))))
        };
        let offset = || prop_oneof![1 => 0..=2 * longest as u64, 2 => edge()];
        let (first, chunks) = (self.chunks[0] as u64, self.chunks);
        // More chunks with a long name than fit into a transaction, if chunks are not large.
        let many = move |kind: usize| Data::of(400 * chunks[kind].min(500));
        let odd = select(vec![(0, u64::MAX), (1, u64::MAX), (u64::MAX, 1), (u64::MAX, 0), (first, 0)]);
        let read = || {
            prop_oneof![
                4 => name().prop_map(Op::Read),
                6 => (name(), offset(), offset()).prop_map(|(name, at, n)| Op::ReadRange(name, at, n)),
                2 => (name(), odd.clone()).prop_map(|(name, (at, n))| Op::ReadRange(name, at, n)),
                3 => (name(), any::<bool>(), offset(), offset())
                    .prop_map(|(name, same, at, n)| Op::ReadRangeOf(name, same || n % 3 > 0, at, n)),
                1 => (name(), any::<bool>(), odd.clone())
                    .prop_map(|(name, same, (at, n))| Op::ReadRangeOf(name, same, at, n)),
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
            54 => read(),
            1 => named().prop_map(|(name, data)| Op::WriteAt(name, u64::MAX, data)),
            1 => (0..2usize).prop_map(move |kind| Op::Write(kind, LONG[0], many(kind))),
            1 => (size(), size()).prop_map(|(chunk, part)| Op::Sizes(chunk, part)),
            1 => select(vec![2, 84, 500, 10_000]).prop_map(Op::Foreign),
        ]
        .boxed()
    }
}

/// Whether a call uses a blob with a long name.
pub(super) fn has_long_name(op: &Op) -> bool {
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
        Op::Sizes(..) | Op::Foreign(_) => false,
    }
}

/// Whether a call never writes.
pub(crate) fn is_read_only(op: &Op) -> bool {
    use Op::*;
    !matches!(op, Write(..) | Append(..) | WriteAt(..) | Truncate(..) | Delete(_) | Foreign(_))
}

/// Sets the tag of the data that a call writes: its client and its number.
pub(crate) fn tag(op: &mut Op, client: usize, number: usize) {
    if let Op::Write(_, _, data) | Op::Append(_, _, data) | Op::WriteAt(_, _, data) = op {
        data.tag(client, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_identify_their_write() {
        let data = |tag| Data { tag, length: 300 }.bytes();
        let (one, other) = (data(0x0001_0001), data(0x0001_0002));
        assert_eq!(one.len(), 300);
        assert!(one.iter().zip(&other).filter(|(a, b)| a != b).count() >= 75);
        assert_ne!(one[..4], one[4..8]);
    }
}
