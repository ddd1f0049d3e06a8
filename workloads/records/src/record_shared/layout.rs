//! The layout of a record store, written independently of the layer: see the table in the layer's
//! `store/keyspace.rs`.

use foundationdb_tuple::{Subspace, Versionstamp, unpack};
use prost::Message;
use shaketable_tx::{self as tx, Isolation::Serializable, KeyValue, RangeOption, Transaction, Tx};

/// The parts of a store.
pub(crate) mod part {
    pub(crate) const HEADER: i64 = 0;
    pub(crate) const RECORDS: i64 = 1;
    pub(crate) const INDEXES: i64 = 2;
    pub(crate) const SECONDARY: i64 = 3;
    pub(crate) const STATES: i64 = 5;
    pub(crate) const RANGES: i64 = 6;
    pub(crate) const VIOLATIONS: i64 = 7;
    pub(crate) const BUILDS: i64 = 9;
}

/// The last elements of a record's keys.
pub(crate) mod suffix {
    pub(crate) const VERSION: i64 = -1;
    /// Of a record that is whole in one row.
    pub(crate) const WHOLE: i64 = 0;
}

/// The numbers of the states of indexes.
pub(crate) mod state {
    pub(crate) const READABLE: i64 = 0;
    pub(crate) const WRITE_ONLY: i64 = 1;
    pub(crate) const DISABLED: i64 = 2;
    pub(crate) const PENDING: i64 = 3;
}

/// The format of stores that the layer writes.
pub(crate) const FORMAT: i32 = 9;

/// A store's header.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Header {
    #[prost(int32, optional, tag = "1")]
    pub(crate) format: Option<i32>,
    /// The version of the meta-data.
    #[prost(int32, optional, tag = "2")]
    pub(crate) meta_data: Option<i32>,
    /// The version of the application.
    #[prost(int32, optional, tag = "3")]
    pub(crate) user: Option<i32>,
}

impl Header {
    /// The header of a store with this version of the meta-data.
    pub(crate) fn of(meta_data: i32) -> Header {
        Header { format: Some(FORMAT), meta_data: Some(meta_data), user: None }
    }
}

/// The key of the header.
pub(crate) fn header_key(store: &Subspace) -> Vec<u8> {
    store.pack(&(part::HEADER,))
}

/// The key of the row in which a record is whole.
pub(crate) fn record_key(store: &Subspace, id: i64) -> Vec<u8> {
    store.pack(&(part::RECORDS, id, suffix::WHOLE))
}

/// The key of the row with a record's version.
pub(crate) fn version_key(store: &Subspace, id: i64) -> Vec<u8> {
    store.pack(&(part::RECORDS, id, suffix::VERSION))
}

/// The primary key of a record that is whole in the row with this key.
pub(crate) fn id_of(store: &Subspace, key: &[u8]) -> Option<i64> {
    match store.unpack(key) {
        Ok((part::RECORDS, id, suffix::WHOLE)) => Some(id),
        _ => None,
    }
}

/// The version of a record in a row: a complete versionstamp.
pub(crate) fn version_of(value: &[u8]) -> Option<[u8; 12]> {
    let (version,): (Versionstamp,) = unpack(value).ok()?;
    version.is_complete().then_some(*version.as_bytes())
}

/// The keys that begin with a prefix, of which 0xff is not the next byte.
pub(crate) fn below(prefix: &[u8]) -> (Vec<u8>, Vec<u8>) {
    (prefix.to_vec(), [prefix, b"\xff"].concat())
}

/// All rows of a store, also one whose key is the store's prefix.
pub(crate) async fn rows(tx: &Tx, store: &Subspace) -> tx::Result<Vec<KeyValue>> {
    tx.get_range_all(RangeOption::from(below(store.bytes())), Serializable).await
}

/// A key or a value, readable and truncated.
pub(crate) fn text(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes[..bytes.len().min(80)].escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_the_bytes_of_the_format() {
        assert_eq!(Header::of(4).encode_to_vec(), [1 << 3, 9, 2 << 3, 4]);
    }

    #[test]
    fn a_version_is_a_complete_versionstamp() {
        let stamp = Versionstamp::complete([7; 10], 3);
        assert_eq!(version_of(&foundationdb_tuple::pack(&(stamp.clone(),))), Some(*stamp.as_bytes()));
        assert_eq!(version_of(&foundationdb_tuple::pack(&(Versionstamp::incomplete(3),))), None);
        assert_eq!(version_of(&foundationdb_tuple::pack(&(stamp, 1))), None);
    }
}
