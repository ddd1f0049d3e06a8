//! The key schema of an indexed table, and the definition of its records.
//!
//! ```text
//! (table, "records", id)              =  record
//! (table, "index", name, key .., id)  =  ''                    an index
//! (table, "index", name, key .., id)  =  covered part          a covering index
//! ```
//!
//! `key ..` are the tuple elements that the index derives from the record.

use super::Error;
use crate::{
    nesting,
    once::MAX_ANSWER_BYTES,
    tx::{KEY_SIZE_LIMIT, VALUE_SIZE_LIMIT},
};
use bytes::Bytes;
use foundationdb_tuple::{Subspace, TuplePack, TupleUnpack};
use std::{collections::BTreeMap, fmt::Debug};

/// The maximum size of a record, as the bytes of its packed id and its encoding together: an operation that
/// replaces or deletes the record must be able to record it in its session.
pub const MAX_RECORD_BYTES: usize = MAX_ANSWER_BYTES - 8;

/// The name for the records themselves in errors.
pub(super) const RECORDS: &str = "records";

/// A record type that a table can store.
pub trait Record: Clone + Debug + Send + Sync + 'static {
    /// The type of ids: a tuple-layer element, or a tuple.
    type Id: TuplePack + for<'de> TupleUnpack<'de> + Clone + Debug + Ord + Send + Sync;

    /// The indexes of the table, each with a unique name.
    const INDEXES: &'static [Index<Self>];

    /// This record's id.
    fn id(&self) -> &Self::Id;

    /// The rest of the record as bytes.
    fn encode(&self) -> Vec<u8>;

    /// Decodes the record with this id from the output of [`encode`](Record::encode).
    fn decode(id: Self::Id, bytes: &[u8]) -> Option<Self>;
}

/// An index over records.
#[derive(Clone, Copy, Debug)]
pub struct Index<R> {
    /// Its name, which is part of its keys.
    pub name: &'static str,
    /// The packed tuple under which a record is found; `None` if the record has no entry.
    pub key: fn(&R) -> Option<Vec<u8>>,
    /// The value stored with the entry, for lookups that then do not need to read the record.
    pub covers: fn(&R) -> Vec<u8>,
}

/// An [`Index::covers`] that stores nothing.
pub fn covers_nothing<R>(_: &R) -> Vec<u8> {
    Vec::new()
}

/// The subspaces of a table.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    records: Subspace,
    indexes: Vec<Subspace>,
}

impl Keys {
    pub fn new<R: Record>(table: &Subspace) -> Keys {
        Keys {
            records: table.subspace(&RECORDS),
            indexes: R::INDEXES.iter().map(|index| table.subspace(&("index", index.name))).collect(),
        }
    }

    pub fn records(&self) -> (Vec<u8>, Vec<u8>) {
        self.records.range()
    }

    pub fn record<I: TuplePack>(&self, id: &I) -> Vec<u8> {
        self.records.pack(id)
    }

    pub fn record_id<R: Record>(&self, key: &[u8]) -> Result<R::Id, Error> {
        nesting::unpack_below(&self.records, key).map_err(|_| Error::Foreign(RECORDS))
    }

    /// The entries of one index under one key.
    pub fn under(&self, index: usize, key: &[u8]) -> Subspace {
        Subspace::from_bytes([self.indexes[index].bytes(), key].concat())
    }

    /// The entries of `record` in all indexes.
    pub fn entries<R: Record>(&self, record: &R) -> BTreeMap<Vec<u8>, Bytes> {
        let entry = |(at, index): (usize, &Index<R>)| {
            let key = self.under(at, &(index.key)(record)?).pack(record.id());
            Some((key, (index.covers)(record).into()))
        };
        R::INDEXES.iter().enumerate().filter_map(entry).collect()
    }

    /// Refuses a record that FoundationDB would reject, or that could not be replaced later.
    pub fn fits<R: Record>(&self, record: &R) -> Result<(), Error> {
        let key_fits = |index, bytes| match bytes {
            ..=KEY_SIZE_LIMIT => Ok(()),
            _ => Err(Error::KeyTooLarge { index, bytes, limit: KEY_SIZE_LIMIT }),
        };
        let key = self.record(record.id()).len();
        key_fits(RECORDS, key)?;
        nesting::check(&foundationdb_tuple::pack(record.id())).map_err(|_| Error::TooDeep(RECORDS))?;
        let bytes = key - self.records.bytes().len() + record.encode().len();
        if bytes > MAX_RECORD_BYTES {
            return Err(Error::RecordTooLarge { bytes, limit: MAX_RECORD_BYTES });
        }
        for (at, index) in R::INDEXES.iter().enumerate() {
            let Some(key) = (index.key)(record) else { continue };
            nesting::check(&key).map_err(|_| Error::TooDeep(index.name))?;
            key_fits(index.name, self.under(at, &key).pack(record.id()).len())?;
            let bytes = (index.covers)(record).len();
            if bytes > VALUE_SIZE_LIMIT {
                return Err(Error::CoveredTooLarge { index: index.name, bytes, limit: VALUE_SIZE_LIMIT });
            }
        }
        Ok(())
    }
}
