//! The rows of a record store, decoded and encoded here independently of the layer: see the table in the
//! layer's `store/keyspace.rs`.

use super::{
    plain::Record,
    schema::{Schema, packed},
};
use crate::record_shared::layout::{part, suffix};
use foundationdb_tuple::{Element, Subspace, Versionstamp};

/// The bytes in each row of a split record.
const PART: usize = 100_000;

/// Where the store is.
pub(super) fn store() -> Subspace {
    Subspace::from("record")
}

/// One part of the store.
pub(super) fn part_of(number: i64) -> Subspace {
    store().subspace(&(number,))
}

/// The entries of the index with this number.
pub(super) fn index(number: i64) -> Subspace {
    store().subspace(&(part::INDEXES, number))
}

/// The ranked sets of the index with this number.
pub(super) fn secondary(number: i64) -> Subspace {
    store().subspace(&(part::SECONDARY, number))
}

/// The key of one of a record's rows, by its primary key.
pub(super) fn row_key(primary_key: &[Element<'static>], last: i64) -> Vec<u8> {
    let key = [primary_key, &[Element::Int(last)]].concat();
    [part_of(part::RECORDS).bytes(), &packed(&key)].concat()
}

/// The rows of a record.
pub(super) fn rows(schema: &Schema, record: &Record, version: Option<&[u8; 12]>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (primary_key, bytes) = (schema.primary_key(record), record.stored());
    let key = |last| row_key(&primary_key, last);
    let stamp = version.map(|version| {
        let stamp = Element::Versionstamp(Versionstamp::from(*version));
        (key(suffix::VERSION), packed(&[stamp]))
    });
    let parts: Vec<_> = match bytes.len() > PART {
        true => (1..).zip(bytes.chunks(PART)).map(|(last, part)| (key(last), part.to_vec())).collect(),
        false => vec![(key(suffix::WHOLE), bytes)],
    };
    stamp.into_iter().chain(parts).collect()
}
