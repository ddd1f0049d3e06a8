//! Maintainers of indexes with planted bugs: each one wraps a right one, and does some of it wrongly.

use futures::future::{BoxFuture, FutureExt};
use shaketable_record::{
    cursor::{BoxCursor, Continuation, Spent, TupleRange},
    error::Error,
    index::{IndexAt, IndexEntry, IndexMaintainer, IndexScan, Registry},
    metadata::{Index, RecordMetaData},
    store::StoredRecord,
    value::Tuple,
};
use shaketable_tx::Tx;
use std::sync::Arc;

/// The maintainer that is wrapped.
pub(crate) type Right = dyn IndexMaintainer<Tx>;

/// The old and the new record of a change.
pub(crate) type Change<'a> = (Option<&'a StoredRecord>, Option<&'a StoredRecord>);

/// What a faulty maintainer does wrongly. What is not defined is done by the right one.
pub(crate) trait Fault: Send + Sync {
    /// Instead of [`IndexMaintainer::update`].
    fn update<'a>(
        &'a self,
        right: &'a Right,
        at: IndexAt<'a, Tx>,
        change: Change<'a>,
    ) -> impl Future<Output = Result<(), Error>> + Send + 'a;

    /// Instead of [`IndexMaintainer::delete_where`].
    fn delete_where<'a>(
        &'a self,
        right: &'a Right,
        at: IndexAt<'a, Tx>,
        prefix: &'a Tuple,
    ) -> impl Future<Output = Result<bool, Error>> + Send + 'a {
        right.delete_where(at, prefix)
    }
}

/// Gives the fault to the maintainers of these types of indexes.
pub(crate) fn plant<F: Fault + Clone + 'static>(registry: &mut Registry<Tx>, kinds: &[&str], fault: F) {
    for kind in kinds {
        let right = registry.get(kind).expect("the type has a maintainer").clone();
        registry.register(*kind, Faulty { right, fault: fault.clone() });
    }
}

/// A maintainer with a fault.
struct Faulty<F> {
    right: Arc<Right>,
    fault: F,
}

impl<F: Fault> IndexMaintainer<Tx> for Faulty<F> {
    fn validate(&self, index: &Index, meta_data: &RecordMetaData) -> Result<(), String> {
        self.right.validate(index, meta_data)
    }

    fn is_idempotent(&self, index: &Index) -> bool {
        self.right.is_idempotent(index)
    }

    fn has_values(&self) -> bool {
        self.right.has_values()
    }

    fn check<'a>(
        &'a self,
        at: IndexAt<'a, Tx>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.right.check(at, old, new)
    }

    fn update<'a>(
        &'a self,
        at: IndexAt<'a, Tx>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.fault.update(&*self.right, at, (old, new)).boxed()
    }

    fn scan(
        &self,
        at: IndexAt<'_, Tx>,
        scan: IndexScan,
        range: TupleRange,
        reverse: bool,
        from: Continuation,
        spent: &Spent,
    ) -> Result<BoxCursor<IndexEntry>, Error> {
        self.right.scan(at, scan, range, reverse, from, spent)
    }

    fn can_delete_where(&self, at: IndexAt<'_, Tx>, prefix: &Tuple) -> bool {
        self.right.can_delete_where(at, prefix)
    }

    fn delete_where<'a>(
        &'a self,
        at: IndexAt<'a, Tx>,
        prefix: &'a Tuple,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        self.fault.delete_where(&*self.right, at, prefix).boxed()
    }
}
