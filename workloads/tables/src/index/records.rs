//! The records of both tables, and their key schema: what the layer is expected to store for each.

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, pack, unpack};
use serde::{Deserialize, Serialize};
use shaketable_layers::{
    id::Id,
    index::{
        self as layer, Record, Table, covers_nothing,
        users::{User, Users},
    },
};
use std::{collections::BTreeMap, fmt::Debug};

/// A record with keys of several types.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thing {
    pub(super) id: Id,
    pub(super) tag: Option<Id>,
    pub(super) rank: i64,
    pub(super) body: Bytes,
}

impl Record for Thing {
    type Id = Id;

    const INDEXES: &'static [layer::Index<Thing>] = &[
        layer::Index { name: "tag", key: |thing| thing.tag.as_ref().map(pack), covers: covers_nothing },
        layer::Index { name: "tag_rank", key: tag_rank, covers: covered },
        layer::Index { name: "rank", key: |thing| Some(pack(&thing.rank)), covers: covers_nothing },
    ];

    fn id(&self) -> &Id {
        &self.id
    }

    fn encode(&self) -> Vec<u8> {
        pack(&(&self.tag, self.rank, TupleBytes::from(&self.body[..])))
    }

    fn decode(id: Id, bytes: &[u8]) -> Option<Thing> {
        let (tag, rank, body): (_, _, TupleBytes<'_>) = unpack(bytes).ok()?;
        Some(Thing { id, tag, rank, body: Bytes::copy_from_slice(&body) })
    }
}

fn tag_rank(thing: &Thing) -> Option<Vec<u8>> {
    thing.tag.as_ref().map(|tag| pack(&(tag, thing.rank)))
}

/// Twice the body, so that there are records that fit although what is covered of them does not; one byte
/// less if the rank is odd, so that it has any length.
pub(super) fn covered(thing: &Thing) -> Vec<u8> {
    let mut twice = thing.body.repeat(2);
    twice.truncate(twice.len().saturating_sub((thing.rank & 1) as usize));
    twice
}

impl Thing {
    /// The size to which the limit for records applies.
    pub(super) fn size(&self) -> usize {
        pack(&self.id).len() + self.encode().len()
    }

    /// The thing with a body that gives it this size. The body has no NUL, which would take two bytes.
    pub(super) fn sized(mut self, bytes: usize) -> Thing {
        self.body = Bytes::new();
        self.body = vec![b'b'; bytes - self.size()].into();
        self
    }
}

pub(super) fn table() -> Subspace {
    Subspace::from("users")
}

/// The prefix of the other table continues the end of the first one's.
pub(super) fn other_table() -> Subspace {
    Subspace::from("users\0")
}

pub(super) fn users() -> Users {
    Users::new(&table())
}

pub(super) fn things() -> Table<Thing> {
    Table::new(&other_table())
}

/// Index entries: keys, with what they cover.
pub(super) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// The entries of a user in all indexes, by the key schema.
pub(super) fn entries(user: &User) -> Entries {
    let table = table();
    let entry = |index: &str, key: &str| table.pack(&("index", index, key, &user.id));
    let by_name = [(entry("name", &user.name), Vec::new())];
    let by_zipcode = user.zipcode.iter().flat_map(|zipcode| {
        [
            (entry("zipcode", zipcode), Vec::new()),
            (entry("zipcode_name", zipcode), user.name.clone().into_bytes()),
        ]
    });
    by_zipcode.chain(by_name).collect()
}

/// The entries of a thing in all indexes, by the key schema.
pub(super) fn entries_of_thing(thing: &Thing) -> Entries {
    let table = other_table();
    let by_rank = [(table.pack(&("index", "rank", thing.rank, &thing.id)), Vec::new())];
    let by_tag = thing.tag.iter().flat_map(|tag| {
        [
            (table.pack(&("index", "tag", tag, &thing.id)), Vec::new()),
            (table.pack(&("index", "tag_rank", tag, thing.rank, &thing.id)), covered(thing)),
        ]
    });
    by_tag.chain(by_rank).collect()
}

pub(super) fn record_key(id: &str) -> Vec<u8> {
    table().pack(&("records", id))
}

/// The key of a thing's record, by the key schema.
pub(super) fn thing_key(id: &Id) -> Vec<u8> {
    other_table().pack(&("records", id))
}

/// The value of a user's record, by the key schema.
pub(super) fn record_value(user: &User) -> Vec<u8> {
    pack(&(&user.name, &user.zipcode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::values::id_pool;
    use shaketable_layers::index::MAX_RECORD_BYTES;

    #[test]
    fn a_thing_has_the_requested_size() {
        for id in id_pool() {
            let thing = Thing { id, tag: None, rank: i64::MIN, body: Bytes::new() };
            assert_eq!(thing.sized(MAX_RECORD_BYTES).size(), MAX_RECORD_BYTES);
        }
    }
}
