//! Where the workload stores what, the indexes, and how the store is opened.

use super::plain::{Column, Definition, FIELDS, Kind, Record, Shape, TYPES};
use crate::{record_shared::meta_data, shared};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use shaketable_record::{
    index::Registry,
    metadata::RecordMetaData,
    store::{RecordStore, RecordStoreBuilder},
};
use shaketable_tx::{self as tx, Tx};
use std::sync::{Arc, LazyLock};

/// The indexes whose entries are damaged in some runs.
pub(super) const DAMAGED: [usize; 4] = [VALUE, UNIQUE, RANK, PARTS];
/// The index of values.
const VALUE: usize = 0;
/// The unique index.
pub(super) const UNIQUE: usize = 1;
/// The index of ranks that is damaged.
pub(super) const RANK: usize = 4;
/// The index with several entries for a record.
pub(super) const PARTS: usize = 7;

/// A value of the field with a unique index that no record has. Entries that damages add to the index have
/// it, so that they are in the way of each other, and of no record.
pub(super) const NO_CODE: i64 = -1;

/// The bytes of a transaction that has room for one record with its entries in all indexes, and for the
/// beginning and the end of a build, but not for many records.
pub(super) const ROOM_FOR_ONE: i32 = 8_000;

/// The store.
pub(super) fn space() -> Subspace {
    Subspace::from("records")
}

/// The rows of the index that were written or removed behind the layer's back, each with whether it was
/// removed.
pub(super) fn damage() -> Subspace {
    Subspace::from("damage")
}

/// The key that notes a damaged row of an index.
pub(super) fn damaged(index: usize, row: &[u8]) -> Vec<u8> {
    damage().pack(&(index, TupleBytes::from(row)))
}

/// The damaged rows of an index, each with whether it was removed.
pub(super) async fn damages(tx: &Tx, index: usize) -> tx::Result<Vec<(Vec<u8>, bool)>> {
    let rows = shared::rows(tx, &damage().subspace(&(index,))).await?;
    let note = |row: &tx::KeyValue| {
        let (_, damaged): (usize, TupleBytes<'_>) = damage().unpack(&row.key).ok()?;
        Some((damaged.to_vec(), row.value[..] == *b"removed"))
    };
    Ok(rows.iter().filter_map(note).collect())
}

/// The indexes, by their places.
pub(super) fn definitions() -> &'static [Definition] {
    static DEFINITIONS: LazyLock<Vec<Definition>> = LazyLock::new(|| {
        let [shelf, tag, code, score] = [0, 1, 2, 3].map(Column::Field);
        let both = vec![1, 2];
        let index = |name: &str, number, kind, columns, types| Definition {
            name: name.into(),
            number,
            kind,
            columns,
            types,
        };
        vec![
            index("value", 1, Kind::Value, vec![shelf, tag], vec![1]),
            index("unique", 2, Kind::Unique, vec![code], both.clone()),
            index("count", 3, Kind::Count, vec![shelf], both),
            index("sum", 4, Kind::Sum, vec![shelf, score], vec![2]),
            index("rank", 5, Kind::Rank(false), vec![shelf, score], vec![]),
            index("counted rank", 6, Kind::Rank(true), vec![tag, score], vec![]),
            index("version", 7, Kind::Version, vec![shelf, Column::Version], vec![]),
            index("parts", 8, Kind::Value, vec![Column::Part], vec![]),
        ]
    });
    &DEFINITIONS
}

/// The names of the indexes at these places.
pub(super) fn names(places: &[usize]) -> Vec<&'static str> {
    places.iter().map(|place| &*definitions()[*place].name).collect()
}

/// The meta-data before there are indexes, and with them.
pub(super) fn meta_data() -> &'static [Arc<RecordMetaData>; 2] {
    static META_DATA: LazyLock<[Arc<RecordMetaData>; 2]> = LazyLock::new(|| {
        let mut builder = Shape::first(2, FIELDS.len()).meta_data(&[]);
        let first = builder.build().expect("the meta-data is valid");
        definitions().iter().for_each(|definition| definition.add(&mut builder, &TYPES));
        [first, builder.build().expect("the meta-data is valid")].map(|built| meta_data::stored(&built))
    });
    &META_DATA
}

/// How the store is opened.
pub(super) fn stores() -> RecordStoreBuilder<Tx> {
    RecordStore::builder(space(), meta_data()[1].clone())
}

/// How the store is opened, with maintainers of one's own.
pub(super) fn stores_with(registry: Registry<Tx>) -> RecordStoreBuilder<Tx> {
    stores().registry(registry)
}

/// The record with this number before the run.
pub(crate) fn initial(id: i64, values: i64, duplicates: bool) -> Record {
    let code = if duplicates { id / 2 } else { id };
    Record {
        of: if id % 4 == 0 { 2 } else { 1 },
        id,
        fields: [Some(id % 2), (id % 3 != 1).then_some(id % values), Some(code), Some(id % values)],
        parts: (0..id % 4).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_have_the_numbers_of_the_meta_data() {
        for definition in definitions() {
            let index = meta_data()[1].index(&definition.name).expect("an index");
            assert_eq!(index.subspace_key, definition.number, "{}", definition.name);
        }
    }
}
