//! The rows of a record store, decoded without the layer: see the table in the layer's `store/keyspace.rs`.

use super::plain::{Kept, Record};
use crate::record_shared::layout::{self, Header, part, state, suffix, version_of};
use bytes::Bytes;
use foundationdb_tuple::{Element, Subspace, unpack};
use prost::Message;
use shaketable_sim::proto::Mutation;
use shaketable_tx::{self as tx, KeyValue, Tx, nesting};
use std::collections::BTreeMap;

/// Rows of an index in one part, by the rest of their keys.
pub(crate) type Rows = BTreeMap<Vec<u8>, Bytes>;

/// The states of the indexes that are not readable, by name.
pub(crate) type States = BTreeMap<String, i64>;

/// Everything that a store has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stored {
    pub header: Option<Header>,
    /// The records by their primary keys.
    pub records: BTreeMap<i64, Kept>,
    pub states: States,
    /// The rows of indexes, by part and the index's number.
    pub indexes: BTreeMap<(i64, i64), Rows>,
}

impl Stored {
    /// Reads a store. The inner error describes a row that is not one of a store.
    pub async fn read(tx: &Tx, store: &Subspace) -> tx::Result<Result<Stored, String>> {
        Ok(Stored::of(store, layout::rows(tx, store).await?))
    }

    fn of(store: &Subspace, rows: Vec<KeyValue>) -> Result<Stored, String> {
        let mut stored = Stored::default();
        let mut versions = BTreeMap::new();
        for KeyValue { key, value } in rows {
            if stored.take(&mut versions, store, &key, value).is_none() {
                return Err(format!("the row \"{}\" is not one of the store", key.escape_ascii()));
            }
        }
        for (id, version) in versions {
            match stored.records.get_mut(&id) {
                Some(kept) => kept.version = Some(version),
                None => return Err(format!("record {id} has a version only")),
            }
        }
        Ok(stored)
    }

    fn take(
        &mut self,
        versions: &mut BTreeMap<i64, [u8; 12]>,
        store: &Subspace,
        key: &[u8],
        value: Bytes,
    ) -> Option<()> {
        let elements: Vec<Element<'_>> = nesting::unpack_below(store, key).ok()?;
        match elements[..] {
            [Element::Int(part::HEADER)] => self.header = Some(Header::decode(value).ok()?),
            [Element::Int(part::RECORDS), Element::Int(id), Element::Int(suffix::WHOLE)] => {
                let record = Record::of_stored(&value).filter(|record| record.id == id)?;
                self.records.insert(id, Kept { record, version: None });
            }
            [Element::Int(part::RECORDS), Element::Int(id), Element::Int(suffix::VERSION)] => {
                versions.insert(id, version_of(&value)?);
            }
            [Element::Int(part::STATES), Element::String(ref name)] => {
                let (state,): (i64,) = unpack(&value).ok()?;
                self.states.insert(name.to_string(), state);
            }
            [Element::Int(of), Element::Int(number), ..]
                if ![part::HEADER, part::RECORDS, part::STATES].contains(&of) =>
            {
                let rest = key.strip_prefix(store.subspace(&(of, number)).bytes())?;
                self.indexes.entry((of, number)).or_default().insert(rest.to_vec(), value);
            }
            _ => return None,
        }
        Some(())
    }

    /// The state of an index.
    pub fn state(&self, name: &str) -> i64 {
        self.states.get(name).copied().unwrap_or(state::READABLE)
    }

    /// The rows of an index in one part.
    pub fn rows(&self, part: i64, number: i64) -> &Rows {
        static NONE: Rows = Rows::new();
        self.indexes.get(&(part, number)).unwrap_or(&NONE)
    }
}

/// Applies what a transaction has done to the states of indexes.
pub(crate) fn follow_states(store: &Subspace, mutations: &[Mutation], states: &mut States) {
    let space = store.subspace(&(part::STATES,));
    for mutation in mutations {
        match mutation {
            Mutation::Set(key, value) => {
                if let (Ok((name,)), Ok((state,))) = (space.unpack::<(String,)>(key), unpack::<(i64,)>(value))
                {
                    states.insert(name, state);
                }
            }
            Mutation::ClearRange(range) => states.retain(|name, _| {
                let key = space.pack(&(&**name,));
                key[..] < range.begin[..] || range.end[..] <= key[..]
            }),
            Mutation::Atomic(..) => {}
        }
    }
}
