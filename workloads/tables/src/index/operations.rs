//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::{Index, Thing};
use crate::shared::page_sizes;
use bytes::Bytes;
use proptest::{option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{real::key_room, specimen::Content, strategies};
use shaketable_layers::{
    id::Id,
    index::{MAX_RECORD_BYTES, users::User},
};
use shaketable_sim::trace::hash_bytes;
use std::{fmt::Debug, ops::Bound};

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Stores a user.
    SetUser(User),
    /// Removes a user.
    DeleteUser(String),
    /// Exchanges the zip codes of two users, if both exist.
    Swap(String, String),
    /// Reads a user.
    GetUser(String),
    /// Finds the users with a zip code, in the index and, if true, in the covering index.
    InRegion(String, bool),
    /// Finds the users with a zip code from the first one on, before the second one.
    InRegions(String, String),
    /// Finds the users with a name.
    ByName(String),
    /// Lists the users, at snapshot if true.
    Users(bool),
    /// Stores a thing.
    Set(Thing),
    /// Removes a thing.
    Delete(Id),
    /// Reads a thing, at snapshot if true.
    Get(Id, bool),
    /// Finds the things with a key, once without and once with what is covered, at snapshot if true.
    Find(Key, bool),
    /// Finds the things with a key by pages of this many, at snapshot if true.
    Pages(Key, bool, usize),
    /// Lists the things page by page, at snapshot if true.
    Things(bool),
    /// Finds the things with a key in a range, at snapshot if true.
    Between(Span, bool),
    /// Reads an index that is not declared: a range if false.
    Undeclared(bool),
}

impl Op {
    /// The same look at snapshot; `None` for a write, and for a look that is at snapshot already.
    pub(super) fn at_snapshot(&self) -> Option<Op> {
        Some(match self.clone() {
            Op::Users(false) => Op::Users(true),
            Op::Get(id, false) => Op::Get(id, true),
            Op::Find(key, false) => Op::Find(key, true),
            Op::Pages(key, false, most) => Op::Pages(key, true, most),
            Op::Things(false) => Op::Things(true),
            Op::Between(span, false) => Op::Between(span, true),
            _ => return None,
        })
    }
}

/// A key of an index over things.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Key {
    /// In `tag`.
    Tag(Id),
    /// In `tag_rank`.
    TagRank(Id, i64),
    /// In `rank`.
    Rank(i64),
}

/// A range of keys of an index over things.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Span {
    /// In `tag`.
    Tag(Bound<Id>, Bound<Id>),
    /// In `tag_rank`.
    TagRank(Bound<(Id, i64)>, Bound<(Id, i64)>),
    /// In `rank`.
    Rank(Bound<i64>, Bound<i64>),
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The user that was read, or that was replaced or deleted.
    User(Option<ToldUser>),
    /// Whether both users exist.
    Swapped(bool),
    /// The thing that was read, or that was replaced or deleted.
    Thing(Option<ToldThing>),
    /// What was found.
    Found(Vec<Listed>),
}

/// A user as answers contain it: id, name, zip code.
pub type ToldUser = (String, Content, Option<String>);

/// A thing as answers contain it: id, tag, rank, body.
pub type ToldThing = (Id, Option<Id>, i64, Content);

/// A list as answers contain it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    count: usize,
    digest: u64,
    start: Vec<String>,
}

/// A list of any length, as an answer that fits into a session's slot.
pub(super) fn listed<I: Debug>(items: impl IntoIterator<Item = I>) -> Listed {
    let mut list = Listed { count: 0, digest: 0, start: Vec::new() };
    for item in items {
        let item = format!("{item:?}");
        list.count += 1;
        list.digest = hash_bytes(list.digest, item.as_bytes());
        if list.start.len() < 5 {
            list.start.push(item);
        }
    }
    list
}

pub(super) fn told_user(user: &User) -> ToldUser {
    (user.id.clone(), Content::from(&user.name), user.zipcode.clone())
}

pub(super) fn told_thing(thing: &Thing) -> ToldThing {
    (thing.id.clone(), thing.tag.clone(), thing.rank, Content::from(&thing.body))
}

pub(super) fn old_user(old: Option<User>) -> Answer {
    Answer::User(old.as_ref().map(told_user))
}

pub(super) fn old_thing(old: Option<Thing>) -> Answer {
    Answer::Thing(old.as_ref().map(told_thing))
}

/// The answer for what the index, and the covering index if it was read, contain about a zip code.
pub(super) fn region(ids: &[String], named: Option<&[(String, String)]>) -> Answer {
    let named = named.map(|named| listed(named.iter().map(|(id, name)| (id, Content::from(name)))));
    Answer::Found(std::iter::once(listed(ids)).chain(named).collect())
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

fn bound<K: Clone + Debug + 'static>(key: BoxedStrategy<K>) -> BoxedStrategy<Bound<K>> {
    prop_oneof![
        3 => key.clone().prop_map(Bound::Included),
        3 => key.prop_map(Bound::Excluded),
        1 => Just(Bound::Unbounded),
    ]
    .boxed()
}

impl Index {
    /// Draws one call.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let beyond = select(&strategies::BEYOND_ASCII[..]).prop_map(str::to_owned).boxed();
        let user = strategies::mostly(select(self.user_ids()), beyond.clone());
        let zip = strategies::mostly(select(self.zipcodes()), beyond.clone());
        let name = strategies::mostly(select(self.names()), beyond);
        // Long names that fit, one of them just so for the user with the empty id, and others.
        let long = select(vec![9_800 - key_room(), 9_976 - key_room(), 9_977, 10_000])
            .prop_map(|length| "x".repeat(length));
        let any_name = prop_oneof![60 => name.clone(), 1 => long];
        // Zip codes that fit into no key, or into no key of the second one of the two indexes.
        let long = select(vec![9_969, 9_973, 10_000]).prop_map(|length| Some("9".repeat(length)));
        let any_zip = prop_oneof![60 => option::weighted(0.8, zip.clone()), 1 => long];
        let set_user = (user.clone(), any_name, any_zip);
        let id = select(self.id_window()).boxed();
        let tag = id.clone();
        let rank = strategies::integers();
        let drawn = (id.clone(), option::weighted(0.8, tag.clone()), rank.clone(), 0..200usize, 0..40u8);
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
        let tag_rank = (tag.clone(), rank.clone()).boxed();
        let key = prop_oneof![
            tag.clone().prop_map(Key::Tag),
            tag_rank.clone().prop_map(|(tag, rank)| Key::TagRank(tag, rank)),
            rank.clone().prop_map(Key::Rank),
        ];
        let span = prop_oneof![
            (bound(tag.clone()), bound(tag)).prop_map(|(from, to)| Span::Tag(from, to)),
            (bound(tag_rank.clone()), bound(tag_rank)).prop_map(|(from, to)| Span::TagRank(from, to)),
            (bound(rank.clone()), bound(rank)).prop_map(|(from, to)| Span::Rank(from, to)),
        ];
        let snapshot = any::<bool>;
        let [write, read, store, find] = self.mix;
        prop_oneof![
            8 * write => set_user.prop_map(|(id, name, zipcode)| Op::SetUser(User { id, name, zipcode })),
            3 * write => user.clone().prop_map(Op::DeleteUser),
            2 * write => (user.clone(), user.clone()).prop_map(|(a, b)| Op::Swap(a, b)),
            3 * read => user.prop_map(Op::GetUser),
            3 * read => (zip.clone(), any::<bool>()).prop_map(|(zip, covered)| Op::InRegion(zip, covered)),
            2 * read => (zip.clone(), zip).prop_map(|(from, to)| Op::InRegions(from, to)),
            2 * read => name.prop_map(Op::ByName),
            read => snapshot().prop_map(Op::Users),
            8 * store => thing.prop_map(Op::Set),
            3 * store => id.clone().prop_map(Op::Delete),
            find => (id, snapshot()).prop_map(|(id, snapshot)| Op::Get(id, snapshot)),
            2 * find => (key.clone(), snapshot()).prop_map(|(key, snapshot)| Op::Find(key, snapshot)),
            find => (key, snapshot(), page_sizes()).prop_map(|(key, snapshot, n)| Op::Pages(key, snapshot, n)),
            find => snapshot().prop_map(Op::Things),
            3 * find => (span, snapshot()).prop_map(|(span, snapshot)| Op::Between(span, snapshot)),
            1 => snapshot().prop_map(Op::Undeclared),
        ]
        .boxed()
    }

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

    /// So many of the confusable texts, and those at edges.
    fn texts(&self, confused: usize) -> impl Iterator<Item = &str> {
        let confused = strategies::CONFUSED_TEXT[..confused].iter().copied();
        let edges = self.edges.iter().map(String::as_str);
        confused.chain(edges.filter(|edge| !strategies::CONFUSED_TEXT.contains(edge)))
    }

    pub(super) fn zipcodes(&self) -> Vec<String> {
        self.texts(self.zipcodes).map(str::to_owned).collect()
    }

    pub(super) fn names(&self) -> Vec<String> {
        let pad = "x".repeat(self.padding);
        self.texts(self.names).map(|text| format!("{pad}{text}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{index::State, shared::drawn};
    use shaketable::{
        models::timeline::Timeline,
        specimen::{At, Mounted, Specimen},
    };
    use shaketable_sim::seed::Seed;
    use std::collections::BTreeSet;

    #[test]
    fn clients_meet_and_every_bound_is_drawn() {
        let (mut moved, mut found, mut bounds) = (0, 0, BTreeSet::new());
        for seed in 0..100 {
            let mut model = Timeline::new(State::default());
            let (_, operations) = drawn::<Mounted<Index>>(seed);
            for op in operations.iter().flatten().flatten() {
                let draw = Index::draw(&mut Seed(0).stream("index"), None);
                match draw.replay(&mut model, op, &At::default()) {
                    Ok(Answer::User(Some(_)) | Answer::Thing(Some(_))) => moved += 1,
                    Ok(Answer::Found(lists)) if lists[0].count > 1 => found += 1,
                    _ => {}
                }
                if let Op::Between(Span::TagRank(from, to), _) = op {
                    let kind = |bound: &Bound<_>| format!("{bound:?}").split('(').next().map(str::to_owned);
                    bounds.insert((kind(from), kind(to)));
                }
            }
        }
        assert!(moved > 500 && found > 50 && bounds.len() == 9, "{moved} {found} {bounds:?}");
    }
}
