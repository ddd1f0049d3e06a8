//! The rows of a record store. The numbers are those of Java's `FDBRecordStoreKeyspace`.
//!
//! | key after the store's subspace | value |
//! |---|---|
//! | `(0)` | the header, a protobuf message |
//! | `(1, primary key.., 0)` | a record: its union message |
//! | `(1, primary key.., 1)`, `(.., 2)`, .. | the parts of a record of more than 100,000 bytes |
//! | `(1, primary key.., -1)` | the record's version, a packed tuple of one versionstamp |
//! | `(2, index, key.., primary key..)` | nothing: an entry of the index with this number |
//! | `(2, index, group..)` | the aggregate of a group, for an index of aggregates |
//! | `(3, index, group.., level, score)` | the ranked set of a group |
//! | `(5, index name)` | the state of an index that is not readable: a packed number |
//! | `(6, index, begin)` | a range of primary keys that are in the index: its end |
//! | `(7, index, key.., primary key..)` | a violation of a unique index: the other record's packed primary key |
//! | `(9, index, ..)` | the progress of the index's build |
//!
//! An entry has the whole primary key after the index's key, as the overview of the Record Layer describes
//! it; Java leaves out the columns that the index's key already has.

use crate::{metadata::Index, value::Tuple};
use foundationdb_tuple::Subspace;

/// The parts of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub enum Part {
    /// The header.
    Header = 0,
    /// Records.
    Records = 1,
    /// Index entries.
    Indexes = 2,
    /// What indexes keep beside their entries.
    Secondary = 3,
    /// The states of indexes.
    States = 5,
    /// The ranges of records that are in an index that is being built.
    Ranges = 6,
    /// Violations of unique indexes.
    Violations = 7,
    /// The progress of index builds.
    Builds = 9,
}

/// The last element of a record's key.
pub mod suffix {
    /// The record's version.
    pub const VERSION: i64 = -1;
    /// A record in one row.
    pub const UNSPLIT: i64 = 0;
    /// The first part of a record in several rows.
    pub const FIRST_PART: i64 = 1;
}

/// The subspaces of one store.
#[derive(Clone, Debug)]
pub struct Keyspace {
    store: Subspace,
}

impl Keyspace {
    /// Of the store in this subspace.
    pub fn new(store: Subspace) -> Keyspace {
        Keyspace { store }
    }

    /// The store's whole subspace.
    pub fn store(&self) -> &Subspace {
        &self.store
    }

    /// One part of the store.
    pub fn part(&self, part: Part) -> Subspace {
        self.store.subspace(&(part as i64,))
    }

    /// One index's share of a part.
    pub fn of_index(&self, part: Part, index: &Index) -> Subspace {
        self.store.subspace(&(part as i64, index.subspace_key))
    }

    /// The rows of one record.
    pub fn record(&self, primary_key: &Tuple) -> Subspace {
        let records = self.part(Part::Records);
        Subspace::from_bytes([records.bytes(), &primary_key.pack()].concat())
    }
}
