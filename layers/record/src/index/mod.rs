//! Indexes: what keeps them up to date, by their type.
//!
//! An [`IndexMaintainer`] is called for every record that is saved or deleted, with the record as it was and
//! as it will be, in the transaction that writes the record. A [`Registry`] has the maintainers by the type
//! of the index.
//!
//! # Custom indexes
//!
//! An application maintains a type of indexes of its own in three steps:
//!
//! 1. It declares the type: [`RecordMetaDataBuilder::register_index_type`]. Meta-data with an index of an
//!    unknown type is refused.
//! 2. It implements [`IndexMaintainer`]. Rows that are entries, the index's key followed by the primary key,
//!    can be scanned with [`IndexAt::scan_entries`].
//! 3. It registers the maintainer with the [`Registry`] with which the store is opened
//!    ([`RecordStoreBuilder::registry`]). A store does not open without it.
//!
//! The maintainer is then called for every insert, update and delete of a record, by online builds, and by
//! [`RecordStore::scan_index`]. Queries never use such an index. A maintainer must see to it that all that it
//! reads to decide what it writes is read serializably, and should say what that conflicts with, as the
//! modules here do.
//!
//! [`RecordMetaDataBuilder::register_index_type`]: crate::metadata::RecordMetaDataBuilder::register_index_type
//! [`RecordStoreBuilder::registry`]: crate::store::RecordStoreBuilder::registry

pub mod aggregate;
pub mod build;
mod by_rank;
mod entries;
pub mod function;
mod groups;
mod online;
pub mod range_set;
pub mod rank;
pub mod ranked_set;
mod registry;
pub mod scrub;
mod standard;
mod state;
pub(crate) mod states;
mod value;
pub mod version;

pub use entries::{Entry, EntryChanges};
pub use online::{BuildReport, ScrubReport};
pub use registry::Registry;
pub use states::IndexState;
pub use value::ValueIndex;

use crate::{
    cursor::{BoxCursor, Continuation, Spent, TupleRange},
    error::Error,
    expression::Evaluated,
    metadata::{Index, RecordMetaData, RecordType},
    store::{Part, RecordStore, StoredRecord},
    value::Tuple,
};
use foundationdb_tuple::Subspace;
use futures::future::BoxFuture;
use shaketable_tx::Transaction;
use std::sync::Arc;

/// One entry of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexEntry {
    /// The columns of the index's expression.
    pub key: Tuple,
    /// The primary key of the record; empty for an aggregate, which is of a group.
    pub primary_key: Tuple,
    /// What is stored there: for an aggregate, its value.
    pub value: Tuple,
}

/// A record whose key in a unique index another record has too.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The columns of the index's expression.
    pub key: Tuple,
    /// The primary key of the record.
    pub primary_key: Tuple,
    /// That of another record which had the key when the violation was recorded.
    pub existing: Tuple,
}

/// How an index is scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexScan {
    /// Entries in a range of the index's columns, followed by the primary key.
    ByValue,
    /// Entries in a range of (group.., rank): of an index of type `rank`.
    ByRank,
    /// The aggregates of a range of groups.
    ByGroup,
}

/// One index of a store in a transaction: what a maintainer works on.
pub struct IndexAt<'a, T: Transaction> {
    /// The store.
    pub store: &'a RecordStore<T>,
    /// The index.
    pub index: &'a Arc<Index>,
}

impl<T: Transaction> Clone for IndexAt<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Transaction> Copy for IndexAt<'_, T> {}

impl<'a, T: Transaction> IndexAt<'a, T> {
    /// The transaction.
    pub fn transaction(&self) -> Result<&'a T, Error> {
        self.store.context().transaction()
    }

    /// The index's share of a part of the store: `Part::Indexes` has its entries.
    pub fn space(&self, part: Part) -> Subspace {
        self.store.keyspace().of_index(part, self.index)
    }

    /// Whether the first columns of the index's keys are those of the primary keys of all its records.
    pub fn begins_with_primary_key(&self, columns: usize) -> bool {
        let meta_data = self.store.meta_data();
        let own = self.index.expression.column_expressions();
        let is_same = |record_type: &RecordType| {
            let primary_key = record_type.primary_key.column_expressions();
            primary_key.len() >= columns && own.len() >= columns && primary_key[..columns] == own[..columns]
        };
        meta_data
            .record_types()
            .filter(|record_type| meta_data.is_index_of(self.index, &record_type.name))
            .all(|record_type| is_same(record_type))
    }

    /// The keys of a record in the index, none if the index is not on records of this type.
    pub fn keys(&self, record: &StoredRecord) -> Result<Vec<Evaluated>, Error> {
        match self.store.meta_data().is_index_of(self.index, &record.record_type.name) {
            true => Ok(self.index.expression.evaluate(record.subject(self.store.meta_data()))?),
            false => Ok(Vec::new()),
        }
    }
}

/// Keeps one type of indexes up to date. It is called by every save and delete of a record, in the
/// transaction that writes the record, and must write to that transaction only, within [`IndexAt::space`].
pub trait IndexMaintainer<T: Transaction>: Send + Sync {
    /// Refuses an index that it cannot maintain, with the reason.
    fn validate(&self, _index: &Index, _meta_data: &RecordMetaData) -> Result<(), String> {
        Ok(())
    }

    /// Whether updating for a record again, after it was updated once, changes nothing: then a build may meet
    /// records that are already in the index.
    fn is_idempotent(&self, index: &Index) -> bool;

    /// Whether queries may use it as an index of values; an index of a type that the application maintains is
    /// never used.
    fn has_values(&self) -> bool {
        false
    }

    /// Refuses a change that the index cannot take: an entry over FoundationDB's limits, a key that a unique
    /// index has for another record. It may read, and must not write: a save calls this for all indexes of
    /// the record before it writes anything, so that a refused save leaves nothing in the transaction.
    fn check<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Changes the index from what `old` needs to what `new` needs. One of them is absent for an insert and a
    /// delete. Called after [`check`](IndexMaintainer::check) with the same records; fails with errors of
    /// FoundationDB only.
    fn update<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// The entries in a range, from a continuation. Fails with [`Error::IndexState`] if the index cannot be
    /// scanned in this way.
    fn scan(
        &self,
        at: IndexAt<'_, T>,
        scan: IndexScan,
        range: TupleRange,
        reverse: bool,
        from: Continuation,
        spent: &Spent,
    ) -> Result<BoxCursor<IndexEntry>, Error>;

    /// Whether [`delete_where`](IndexMaintainer::delete_where) can remove what the index has for these
    /// records. A delete asks all indexes of a store before it removes anything.
    fn can_delete_where(&self, at: IndexAt<'_, T>, prefix: &Tuple) -> bool {
        at.begins_with_primary_key(prefix.len())
    }

    /// Removes what the index has for all records, whose primary keys begin with `prefix`. Returns `false` if
    /// it cannot, because its keys do not begin with these columns; nothing was removed then.
    fn delete_where<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        prefix: &'a Tuple,
    ) -> BoxFuture<'a, Result<bool, Error>>;
}
