//! Where the workload stores what.

use foundationdb_tuple::{Subspace, unpack};
use shaketable_record::metadata::{Extensions, MetaDataStore};
use shaketable_sim::proto::Mutation;

/// The store.
pub(super) fn space() -> Subspace {
    Subspace::from("records")
}

/// The meta-data that all clients use.
pub(super) fn meta_data_space() -> Subspace {
    Subspace::from("meta-data")
}

/// The store of the meta-data, with a cache of its own.
pub(super) fn meta_data_store() -> MetaDataStore {
    MetaDataStore::new(meta_data_space(), Extensions::default())
}

/// Where a transaction notes with which version of the meta-data it has used the store.
pub(super) fn used_key(client: usize) -> Vec<u8> {
    Subspace::from("used").pack(&(client,))
}

/// The row with the version of the meta-data that is saved.
pub(super) fn saved_key() -> Vec<u8> {
    meta_data_space().pack(&("V",))
}

/// The version in that row.
pub(super) fn saved_version(value: &[u8]) -> Option<i32> {
    unpack::<(i32, i64, i64)>(value).ok().map(|(version, ..)| version)
}

/// What a transaction has last set a row to.
pub(super) fn written<'a>(mutations: &'a [Mutation], key: &[u8]) -> Option<&'a [u8]> {
    mutations.iter().rev().find_map(|mutation| match mutation {
        Mutation::Set(of, value) if of[..] == *key => Some(&value[..]),
        _ => None,
    })
}
