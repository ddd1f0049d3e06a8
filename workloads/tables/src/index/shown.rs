//! What answers say of records and of lists of them: little enough for the slot of a session.

use super::Thing;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use shaketable::specimen::Content;
use shaketable_layers::{
    id::Id,
    index::{Old, users::User},
};
use shaketable_sim::trace::hash_bytes;
use std::fmt::Debug;

/// A user: id, name, zip code.
pub type ShownUser = (String, Content, Option<String>);

/// A thing: id, tag, rank, body.
pub type ShownThing = (Id, Option<Id>, i64, Content);

/// A list of any length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    pub(super) count: usize,
    digest: u64,
    start: Vec<String>,
}

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

/// Ids, with what the index covers of their records.
pub(super) fn listed_covered(found: &[(Id, Bytes)]) -> Listed {
    listed(found.iter().map(|(id, covered)| (id, Content::from(covered))))
}

/// Keys and ids, with what the index covers of their records.
pub(super) fn listed_span<K: Debug>(found: Vec<(K, Id, Bytes)>) -> Listed {
    listed(found.into_iter().map(|(key, id, covered)| (key, id, Content::from(&covered))))
}

/// What the index, and the covering index if it was read, contain about a zip code.
pub(super) fn region(ids: &[String], named: Option<&[(String, String)]>) -> Vec<Listed> {
    let named = named.map(|named| listed(named.iter().map(|(id, name)| (id, Content::from(name)))));
    std::iter::once(listed(ids)).chain(named).collect()
}

pub(super) fn shown_user(user: &User) -> ShownUser {
    (user.id.clone(), Content::from(&user.name), user.zipcode.clone())
}

pub(super) fn shown_thing(thing: &Thing) -> ShownThing {
    (thing.id.clone(), thing.tag.clone(), thing.rank, Content::from(&thing.body))
}

pub(super) fn replaced_user(old: Option<Old<User>>) -> Option<ShownUser> {
    old.map(|Old(user)| shown_user(&user))
}

pub(super) fn replaced_thing(old: Option<Old<Thing>>) -> Option<ShownThing> {
    old.map(|Old(thing)| shown_thing(&thing))
}
