//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::Directory;
use foundationdb_tuple::pack;
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{real::key_room, specimen::Content};
use shaketable_layers::directory::{CandidateSeed, PARTITION};
use shaketable_tx::{KEY_SIZE_LIMIT, VALUE_SIZE_LIMIT};

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Creates a directory with this tag, and with this manual prefix if there is one.
    Create(Names, Vec<u8>, Option<Vec<u8>>, CandidateSeed),
    /// Opens or creates a directory with this tag.
    CreateOrOpen(Names, Vec<u8>, CandidateSeed),
    /// Opens or creates two directories concurrently.
    Both([Names; 2], [CandidateSeed; 2]),
    /// Opens a directory.
    Open(Names, Vec<u8>),
    /// Moves a directory.
    Rename(Names, Names),
    /// Removes a directory.
    Remove(Names),
    /// Removes a directory if it exists.
    RemoveIfExists(Names),
    /// Lists the directories below one.
    List(Names),
    /// Lists them page by page, from the first one on or after a name, so many on each.
    Pages(Names, Option<String>, usize),
    /// Reads whether a directory exists.
    Exists(Names),
    /// Stores a row in a directory: this key, and this byte repeated this many times.
    Put(Names, u8, u8, usize),
    /// The same, through a handle that was opened earlier.
    PutLater(Names, u8, u8, usize),
    /// Reads the rows of a directory.
    Read(Names),
    /// Opens a directory without a tag, and performs the call through its handle. A create removes the
    /// directory through the handle first, so that the new one is not that of the handle.
    ByHandle(Box<Op>),
    /// Declares the version of the schema, as another program would.
    Declare([u32; 3]),
    /// Allocates a prefix of the root for something else than a directory.
    Allocate(CandidateSeed),
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The directory's tag, and its prefix.
    Opened(Vec<u8>, Option<Vec<u8>>),
    /// Done.
    Done,
    /// Whether the directory exists, or existed.
    Is(bool),
    /// Names.
    Names(Names),
    /// The rows.
    Content(Vec<(u8, Content)>),
    /// The prefix, which the allocator has not given before.
    Allocated(Option<Vec<u8>>),
}

/// Names.
pub type Names = Vec<String>;

/// The names that are drawn.
pub(super) const NAMES: [&str; 7] = ["a", "", "b\0é", "a\u{10ffff}", "x y", "ß", "ss"];

/// What follows the prefix of a directory in the keys of its content, in order: nothing, packed tuples, and
/// what sorts after all tuples.
pub(super) const CONTENT: [&[u8]; 6] = [b"", b"\x14", b"\x15\x01", b"\xff", b"\xff\xff\x01", b"\xff\xff\xff"];

/// The layer tags that are drawn.
const TAGS: [&[u8]; 4] = [b"", b"", b"t\0g", PARTITION];

/// Manual prefixes that the allocator does not choose. Some of them nest; the empty one and the last three
/// are reserved.
pub(super) const PREFIXES: [&[u8]; 9] =
    [b"1", b"1A", b"1A\0", b"2\xff", b"2\xff\0", b"", b"\xfe\x01", b"\xff\x02", b"\xff\xff"];

/// What may follow a candidate's prefix in a manual one.
const BEYOND: &[&[u8]] = &[b"", b"\0", b"x"];

/// The versions of the schema that another program declares: those of which all directories can be changed,
/// and others. Some numbers differ in each of their bytes.
const VERSIONS: [[u32; 3]; 3] = [[1, 0, 0], [1, 0, 7], [1, 0, 0x0403_0201]];
const LATER: [[u32; 3]; 4] = [[1, 1, 0], [1, 0x0403_0201, 0], [2, 0, 0], [0x0403_0201, 0, 9]];

impl Directory {
    /// Two names for the root: the longest one that fits into a key, and a longer one.
    fn long_names(&self) -> Vec<String> {
        let room = KEY_SIZE_LIMIT - self.directories().nodes().root().child("").len();
        [room - key_room(), room + 1].map(|length| "x".repeat(length)).to_vec()
    }

    /// Draws one call.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let (names, depth) = (&NAMES[..self.names], self.depth);
        // Only at the root, so that it is known how long the keys are.
        let long = select(self.long_names()).prop_map(|name| vec![name]);
        let path = move || {
            let length = prop_oneof![1 => Just(0), 16 => 1..=depth];
            let usual =
                length.prop_flat_map(move |length| vec(select(names).prop_map(str::to_owned), length));
            prop_oneof![100 => usual, 1 => long.clone()]
        };
        let tag = || select(&TAGS[..]).prop_map(<[u8]>::to_vec);
        let chances = if self.store.exhausted { 1 } else { self.chances };
        let nested = u32::from(self.nested);
        let chance = move || (0..chances).prop_map(CandidateSeed);
        let content = self.subspaces().1.into_bytes();
        let below = move |rest: &[u8]| [&content[..], rest].concat();
        let among = below.clone();
        let prefix = prop_oneof![
            8 => select(&PREFIXES[..]).prop_map(<[u8]>::to_vec),
            // The prefix of a candidate, or one that begins with it, or the beginning of most candidates'
            // prefixes.
            nested * 8 => (self.store.drawn_from(), select(BEYOND))
                .prop_map(move |(candidate, rest)| among(&[&pack(&candidate)[..], rest].concat())),
            nested * 6 => self.store.drawn_from().prop_map(move |candidate| {
                let packed = pack(&candidate.max(1));
                below(&packed[..packed.len() - 1])
            }),
        ];
        let prefix = prefix.prop_map(Some);
        // Only where the prefix is given, so that it is known which key has the tag.
        let any_tag = prop_oneof![
            80 => tag(),
            u32::from(self.manual) => Just(vec![b't'; VALUE_SIZE_LIMIT + 1]),
        ];
        let value = (0..CONTENT.len() as u8, any::<u8>(), 0..=self.longest);
        let versions = if self.versions { 1 } else { 0 };
        let any = prop_oneof![
            6 => (path(), tag(), chance()).prop_map(|(p, t, c)| Op::Create(p, t, None, c)),
            4 + nested * 4 => (path(), any_tag, prefix, chance()).prop_map(|(p, t, x, c)| Op::Create(p, t, x, c)),
            6 => (path(), tag(), chance()).prop_map(|(p, t, c)| Op::CreateOrOpen(p, t, c)),
            3 => (path(), path(), chance(), chance()).prop_map(|(p, q, c, d)| Op::Both([p, q], [c, d])),
            2 => (path(), chance(), chance()).prop_map(|(p, c, d)| Op::Both([p.clone(), p], [c, d])),
            3 => (path(), tag()).prop_map(|(p, t)| Op::Open(p, t)),
            8 => (path(), path()).prop_map(|(p, q)| Op::Rename(p, q)),
            1 => (path(), select(names)).prop_map(|(p, name)| {
                Op::Rename(p.clone(), p.into_iter().chain([name.to_owned()]).collect())
            }),
            3 => path().prop_map(Op::Remove),
            3 => path().prop_map(Op::RemoveIfExists),
            3 => path().prop_map(Op::List),
            3 => (path(), option::weighted(0.3, select(names)), 1..4usize)
                .prop_map(|(p, after, page)| Op::Pages(p, after.map(str::to_owned), page)),
            1 => path().prop_map(Op::Exists),
            6 => (path(), value.clone()).prop_map(|(p, (k, b, n))| Op::Put(p, k, b, n)),
            9 => (path(), value).prop_map(|(p, (k, b, n))| Op::PutLater(p, k, b, n)),
            4 => path().prop_map(Op::Read),
            7 => prop_oneof![
                (path(), path()).prop_map(|(p, q)| Op::Rename(p, q)),
                // Mostly out of its partition, if it is in one.
                (path(), select(names)).prop_map(|(p, name)| {
                    let below = p.iter().skip(1).cloned();
                    Op::Rename(p.clone(), std::iter::once(name.to_owned()).chain(below).collect())
                }),
                (path(), tag(), chance()).prop_map(|(p, t, c)| Op::Create(p, t, None, c)),
                path().prop_map(Op::Remove),
                path().prop_map(Op::RemoveIfExists),
                path().prop_map(Op::List),
                path().prop_map(Op::Exists),
                path().prop_map(|p| Op::CreateOrOpen(p, Vec::new(), CandidateSeed(0))),
            ]
            .prop_map(|op| Op::ByHandle(Box::new(op))),
            2 => chance().prop_map(Op::Allocate),
        ];
        match versions {
            0 => any.boxed(),
            // Mostly back to a version that allows writes.
            _ => prop_oneof![
                40 => any,
                1 => select(&LATER[..]).prop_map(Op::Declare),
                4 => select(&VERSIONS[..]).prop_map(Op::Declare),
            ]
            .boxed(),
        }
    }
}
