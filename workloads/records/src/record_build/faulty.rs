//! Faulty maintainers of indexes, for planted bugs.

use crate::record_shared::faulty::{self, Change, Right, plant};
use shaketable_record::{
    error::Error,
    index::{IndexAt, IndexState, Registry},
    metadata::{Index, index_types},
    store::Part,
    value::Tuple,
};
use shaketable_tx::Transaction;

/// What a maintainer does wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It does not update an index that is being built.
    SkipsWriteOnly,
    /// It says of every index that a record can be counted twice.
    CountsEarly,
    /// It leaves what an index that is being built has when records are deleted by their primary keys.
    KeepsUnbuilt,
    /// It forgets that records have the same unique key.
    ForgetsViolations,
}

/// The standard maintainers, with a fault.
pub(super) fn registry<T: Transaction>(fault: Fault) -> Registry<T> {
    let mut registry = Registry::standard();
    let kinds =
        [index_types::VALUE, index_types::RANK, index_types::VERSION, index_types::COUNT, index_types::SUM];
    plant(&mut registry, &kinds, fault);
    registry
}

impl<T: Transaction> faulty::Fault<T> for Fault {
    async fn delete_where<'a>(
        &'a self,
        right: &'a Right<T>,
        at: IndexAt<'a, T>,
        prefix: &'a Tuple,
    ) -> Result<bool, Error> {
        let is_built = at.state()? == IndexState::WriteOnly;
        if *self == Fault::KeepsUnbuilt && is_built {
            return Ok(true);
        }
        right.delete_where(at, prefix).await
    }

    fn is_idempotent(&self, right: &Right<T>, index: &Index) -> bool {
        *self == Fault::CountsEarly || right.is_idempotent(index)
    }

    async fn update<'a>(
        &'a self,
        right: &'a Right<T>,
        at: IndexAt<'a, T>,
        (old, new): Change<'a>,
    ) -> Result<(), Error> {
        let is_built = at.state()? == IndexState::WriteOnly;
        if *self == Fault::SkipsWriteOnly && is_built {
            return Ok(());
        }
        right.update(at, old, new).await?;
        if *self == Fault::ForgetsViolations {
            let (begin, end) = at.space(Part::Violations).range();
            at.transaction()?.clear_range(&begin, &end);
        }
        Ok(())
    }
}
