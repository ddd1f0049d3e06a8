//! Mistake bugs of maintainers of indexes: the right one is left out, or something is done after it.

use super::{
    custom,
    schema::{BACKWARDS, Mistake},
};
use crate::record_shared::faulty::{Change, Fault, Right, plant};
use foundationdb_tuple::Element;
use shaketable_record::{
    error::Error,
    index::{IndexAt, Registry},
    metadata::index_types,
    store::{Part, StoredRecord},
};
use shaketable_tx::{Transaction, Tx};

/// The maintainers of a store, with the mistake.
pub(super) fn registry(mistake: Option<Mistake>) -> Registry<Tx> {
    let mut registry = custom::registry();
    if let Some(mistake) = mistake {
        plant(&mut registry, &[index_types::MAX_EVER, BACKWARDS], mistake);
    }
    registry
}

impl Fault for Mistake {
    async fn update<'a>(
        &'a self,
        right: &'a Right,
        at: IndexAt<'a, Tx>,
        (old, new): Change<'a>,
    ) -> Result<(), Error> {
        if *self == Mistake::OwnNotDeleted && at.index.kind == BACKWARDS && new.is_none() {
            return Ok(());
        }
        right.update(at, old, new).await?;
        match new {
            Some(new) if *self == Mistake::LastForMax && at.index.kind == index_types::MAX_EVER => {
                set_last(at, new)
            }
            _ => Ok(()),
        }
    }
}

/// Sets the values of the groups of a record to those that it has.
fn set_last(at: IndexAt<'_, Tx>, new: &StoredRecord) -> Result<(), Error> {
    for key in at.keys(new)? {
        let (group, value) = key.tuple().split_at(at.index.expression.grouping_columns());
        if !value.elements().iter().any(|value| matches!(value, Element::Nil)) {
            let row = [at.space(Part::Indexes).bytes(), &group.pack()].concat();
            at.transaction()?.set(&row, &value.pack());
        }
    }
    Ok(())
}
