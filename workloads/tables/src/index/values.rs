//! What calls are given: ids, texts, records and keys of indexes, and how they are drawn.

use super::{Index, records::Thing};
use bytes::Bytes;
use foundationdb_tuple::{TupleDepth, TuplePack, VersionstampOffset};
use proptest::option;
use shaketable::{prelude::*, real::key_room, strategies};
use shaketable_layers::{
    id::Id,
    index::{MAX_RECORD_BYTES, users::User},
};
use std::{fmt::Debug, io, ops::Bound};

/// A key of an index over things.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Key {
    /// In `tag`.
    Tag(Id),
    /// In `tag_rank`.
    TagRank(Id, i64),
    /// In `rank`.
    Rank(i64),
}

impl Key {
    pub(super) fn index(&self) -> &'static str {
        match self {
            Key::Tag(_) => "tag",
            Key::TagRank(..) => "tag_rank",
            Key::Rank(_) => "rank",
        }
    }
}

impl TuplePack for Key {
    fn pack<W: io::Write>(&self, w: &mut W, depth: TupleDepth) -> io::Result<VersionstampOffset> {
        match self {
            Key::Tag(tag) => tag.pack(w, depth),
            Key::TagRank(tag, rank) => (tag, rank).pack(w, depth),
            Key::Rank(rank) => rank.pack(w, depth),
        }
    }
}

/// The ends of a range.
pub type Ends<K> = (Bound<K>, Bound<K>);

/// A range of keys of an index over things.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Span {
    /// In `tag`.
    Tag(Ends<Id>),
    /// In `tag_rank`.
    TagRank(Ends<(Id, i64)>),
    /// In `rank`.
    Rank(Ends<i64>),
}

impl Index {
    pub(super) fn id_window(&self) -> Vec<Id> {
        let (from, count) = self.ids;
        let padded = |id| match id {
            Id::Text(text) => Id::Text(strategies::padded(self.id_padding, &text)),
            Id::Bytes(bytes) => Id::Bytes([&vec![0; self.id_padding][..], &bytes].concat().into()),
            Id::Int(number) => Id::Int(number),
        };
        id_pool().into_iter().cycle().skip(from).take(count).map(padded).collect()
    }

    pub(super) fn user_ids(&self) -> Vec<String> {
        self.texts(self.users).map(|text| strategies::padded(self.id_padding, text)).collect()
    }

    pub(super) fn zipcodes(&self) -> Vec<String> {
        self.texts(self.zipcodes).map(str::to_owned).collect()
    }

    pub(super) fn names(&self) -> Vec<String> {
        let pad = "x".repeat(self.padding);
        self.texts(self.names).map(|text| format!("{pad}{text}")).collect()
    }

    /// So many of the confusable texts, and those at edges.
    fn texts(&self, confused: usize) -> impl Iterator<Item = &str> {
        let confused = strategies::CONFUSED_TEXT[..confused].iter().copied();
        let edges = self.edges.iter().map(String::as_str);
        confused.chain(edges.filter(|edge| !strategies::CONFUSED_TEXT.contains(edge)))
    }

    pub(super) fn user(&self) -> BoxedStrategy<User> {
        // Long names that fit, one of them just so for the user with the empty id, and others.
        let long = select(vec![9_800 - key_room(), 9_976 - key_room(), 9_977, 10_000])
            .prop_map(|length| "x".repeat(length));
        let name = prop_oneof![60 => self.name(), 1 => long];
        // Zip codes that fit into no key, or into no key of the second one of the two indexes.
        let long = select(vec![9_969, 9_973, 10_000]).prop_map(|length| Some("9".repeat(length)));
        let zipcode = prop_oneof![60 => option::weighted(0.8, self.zip()), 1 => long];
        (self.user_id(), name, zipcode).prop_map(|(id, name, zipcode)| User { id, name, zipcode }).boxed()
    }

    pub(super) fn thing(&self) -> BoxedStrategy<Thing> {
        let tag = option::weighted(0.8, self.id());
        let drawn = (self.id(), tag, strategies::integers(), 0..200usize, 0..40u8);
        let thing = drawn.prop_map(|(id, tag, rank, length, odd)| {
            let thing = Thing { id, tag, rank, body: vec![length as u8; length].into() };
            // At each of the two limits, and one byte beyond.
            match odd {
                0 => Thing { tag: None, ..thing }.sized(MAX_RECORD_BYTES),
                1 => Thing { tag: None, ..thing }.sized(MAX_RECORD_BYTES + 1),
                2 => Thing { body: vec![b'b'; 50_000].into(), ..thing },
                3 => Thing { body: vec![b'b'; 50_001].into(), ..thing },
                _ => thing,
            }
        });
        thing.boxed()
    }

    pub(super) fn tag_rank(&self) -> BoxedStrategy<(Id, i64)> {
        (self.id(), strategies::integers()).boxed()
    }

    pub(super) fn span(&self) -> BoxedStrategy<Span> {
        prop_oneof![
            ends(self.id()).prop_map(Span::Tag),
            ends(self.tag_rank()).prop_map(Span::TagRank),
            ends(strategies::integers().boxed()).prop_map(Span::Rank),
        ]
        .boxed()
    }
}

/// One of these texts, and now and then one beyond ASCII.
pub(super) fn mostly(usual: Vec<String>) -> BoxedStrategy<String> {
    let beyond = select(&strategies::BEYOND_ASCII[..]).prop_map(str::to_owned);
    strategies::mostly(select(usual), beyond)
}

fn ends<K: Clone + Debug + 'static>(key: BoxedStrategy<K>) -> impl Strategy<Value = Ends<K>> {
    let bound = || {
        prop_oneof![
            3 => key.clone().prop_map(Bound::Included),
            3 => key.clone().prop_map(Bound::Excluded),
            1 => Just(Bound::Unbounded),
        ]
    };
    (bound(), bound())
}

/// The ids and tags that are drawn: equal as text, prefixes of each other, empty, extreme.
pub(super) fn id_pool() -> Vec<Id> {
    let bytes = |bytes: &'static [u8]| Id::Bytes(Bytes::from_static(bytes));
    vec![
        bytes(b""),
        "".into(),
        0.into(),
        bytes(b"1"),
        "1".into(),
        1.into(),
        bytes(b"a"),
        "a".into(),
        bytes(b"a\0"),
        "a\0".into(),
        bytes(b"a\0\xff"),
        "a\0b".into(),
        bytes(b"\xff"),
        bytes(b"\0"),
        (-1).into(),
        256.into(),
        i64::MIN.into(),
        i64::MAX.into(),
    ]
}
