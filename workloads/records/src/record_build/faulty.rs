//! Planted bugs of maintainers of indexes: the right one is left out, or something is undone after it.

use super::planted::Planted;
use crate::record_shared::faulty::{Change, Fault, Right, plant};
use shaketable_record::{
    error::Error,
    index::{IndexAt, IndexState, Registry},
    metadata::index_types,
    store::Part,
    value::Tuple,
};
use shaketable_tx::{Transaction, Tx};

/// The standard maintainers, with the planted bug.
pub(super) fn registry(planted: Planted) -> Registry<Tx> {
    let mut registry = Registry::standard();
    let kinds =
        [index_types::VALUE, index_types::RANK, index_types::VERSION, index_types::COUNT, index_types::SUM];
    plant(&mut registry, &kinds, planted);
    registry
}

impl Fault for Planted {
    async fn delete_where<'a>(
        &'a self,
        right: &'a Right,
        at: IndexAt<'a, Tx>,
        prefix: &'a Tuple,
    ) -> Result<bool, Error> {
        let is_built = at.state()? == IndexState::WriteOnly;
        if *self == Planted::UnbuiltKept && is_built {
            return Ok(true);
        }
        right.delete_where(at, prefix).await
    }

    async fn update<'a>(
        &'a self,
        right: &'a Right,
        at: IndexAt<'a, Tx>,
        (old, new): Change<'a>,
    ) -> Result<(), Error> {
        let is_built = at.state()? == IndexState::WriteOnly;
        if *self == Planted::WriteOnlySkipped && is_built {
            return Ok(());
        }
        right.update(at, old, new).await?;
        if *self == Planted::ViolationsForgotten {
            let (begin, end) = at.space(Part::Violations).range();
            at.transaction()?.clear_range(&begin, &end);
        }
        Ok(())
    }
}
