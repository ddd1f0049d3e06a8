//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::{Blob, stored::places};
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::specimen::Content;
use shaketable_layers::{
    blob::Generation,
    tx::{KEY_SIZE_LIMIT, VALUE_SIZE_LIMIT},
};
use std::{fmt::Debug, sync::LazyLock};

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

/// What is written: so many bytes that tell who wrote them, and each its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    tag: u32,
    pub(super) length: usize,
}

impl Data {
    /// Drawn with up to so many bytes; its tag is told later.
    fn up_to(longest: usize) -> impl Strategy<Value = Data> {
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

/// The longest name: one byte more, and the key of a chunk is too long.
pub(super) static LONGEST: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let rest = places(b"").1.pack(&(u64::MAX,)).len();
    vec![b'n'; KEY_SIZE_LIMIT - rest]
});

/// One byte longer: a blob that cannot be written, and is not there.
pub(super) static TOO_LONG: LazyLock<Vec<u8>> = LazyLock::new(|| vec![b'n'; LONGEST.len() + 1]);

/// So long that the manifest's key is longer than any key, by a byte.
pub(super) static MUCH_TOO_LONG: LazyLock<Vec<u8>> =
    LazyLock::new(|| vec![b'n'; KEY_SIZE_LIMIT + 1 - places(b"").0.len()]);

/// The numbers of the long names.
pub(super) const LONG: [usize; 3] = [1_000, 1_001, 1_002];

/// A number beside a place where a chunk begins, or there; the first chunks of any of these sizes.
pub(crate) fn edge(chunks: Vec<usize>, most: u64) -> BoxedStrategy<u64> {
    (select(chunks), 0..=most, 0..3u64)
        .prop_map(|(chunk, number, beside)| (number * chunk as u64 + beside).saturating_sub(1))
        .boxed()
}

impl Blob {
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
}

/// Whether a call is about a blob with a long name.
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
}
