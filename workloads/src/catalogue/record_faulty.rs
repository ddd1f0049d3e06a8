//! A maintainer of indexes with a planted bug: one of the layer's, with another update.

use futures::future::BoxFuture;
use shaketable_layers::tx::Transaction;
use shaketable_record::{
    cursor::{BoxCursor, Continuation, Spent, TupleRange},
    error::Error,
    index::{IndexAt, IndexEntry, IndexMaintainer, IndexScan},
    metadata::{Index, RecordMetaData},
    store::StoredRecord,
    value::Tuple,
};

/// An update of an index that is wrong.
pub(crate) trait Update<T: Transaction>: Send + Sync {
    /// Changes the index from what `old` needs to what `new` needs, wrongly.
    fn update<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>>;
}

/// The maintainer `M`, which updates as `U` does.
pub(crate) struct Faulty<M, U>(pub M, pub U);

impl<T: Transaction, M: IndexMaintainer<T>, U: Update<T>> IndexMaintainer<T> for Faulty<M, U> {
    fn validate(&self, index: &Index, meta_data: &RecordMetaData) -> Result<(), String> {
        self.0.validate(index, meta_data)
    }

    fn is_idempotent(&self, index: &Index) -> bool {
        self.0.is_idempotent(index)
    }

    fn has_values(&self) -> bool {
        self.0.has_values()
    }

    fn check<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.0.check(at, old, new)
    }

    fn update<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.1.update(at, old, new)
    }

    fn scan(
        &self,
        at: IndexAt<'_, T>,
        scan: IndexScan,
        range: TupleRange,
        reverse: bool,
        from: Continuation,
        spent: &Spent,
    ) -> Result<BoxCursor<IndexEntry>, Error> {
        self.0.scan(at, scan, range, reverse, from, spent)
    }

    fn can_delete_where(&self, at: IndexAt<'_, T>, prefix: &Tuple) -> bool {
        self.0.can_delete_where(at, prefix)
    }

    fn delete_where<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        prefix: &'a Tuple,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        self.0.delete_where(at, prefix)
    }
}
