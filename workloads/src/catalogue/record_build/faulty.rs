//! Faulty maintainers of indexes, for planted bugs: each one wraps a standard one.

use futures::{FutureExt, future::BoxFuture};
use shaketable_layers::tx::Transaction;
use shaketable_record::{
    cursor::{BoxCursor, Continuation, Spent, TupleRange},
    error::Error,
    index::{IndexAt, IndexEntry, IndexMaintainer, IndexScan, IndexState, Registry},
    metadata::{Index, index_types},
    store::{Part, StoredRecord},
    value::Tuple,
};
use std::sync::Arc;

/// What a maintainer does wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::catalogue) enum Fault {
    /// It does not update an index that is being built.
    SkipsWriteOnly,
    /// It says of every index that a record can be counted twice.
    CountsEarly,
    /// It forgets that records have the same unique key.
    ForgetsViolations,
}

/// The standard maintainers, with a fault.
pub(in crate::catalogue) fn registry<T: Transaction>(fault: Fault) -> Registry<T> {
    let mut registry = Registry::standard();
    let kinds =
        [index_types::VALUE, index_types::RANK, index_types::VERSION, index_types::COUNT, index_types::SUM];
    for kind in kinds {
        let inner = registry.get(kind).expect("a standard type").clone();
        registry.register(kind, Faulty { inner, fault });
    }
    registry
}

struct Faulty<T: Transaction> {
    inner: Arc<dyn IndexMaintainer<T>>,
    fault: Fault,
}

impl<T: Transaction> IndexMaintainer<T> for Faulty<T> {
    fn is_idempotent(&self, index: &Index) -> bool {
        self.fault == Fault::CountsEarly || self.inner.is_idempotent(index)
    }

    fn check<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.check(at, old, new)
    }

    fn update<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        async move {
            let is_built = at.state()? == IndexState::WriteOnly;
            if self.fault == Fault::SkipsWriteOnly && is_built {
                return Ok(());
            }
            self.inner.update(at, old, new).await?;
            if self.fault == Fault::ForgetsViolations {
                let (begin, end) = at.space(Part::Violations).range();
                at.transaction()?.clear_range(&begin, &end);
            }
            Ok(())
        }
        .boxed()
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
        self.inner.scan(at, scan, range, reverse, from, spent)
    }

    fn delete_where<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        prefix: &'a Tuple,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        self.inner.delete_where(at, prefix)
    }
}
