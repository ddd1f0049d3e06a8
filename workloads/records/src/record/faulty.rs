//! Planted bugs of maintainers of indexes: the right one is misinformed or left out.

use super::{custom, planted::Planted, schema::BACKWARDS};
use crate::record_shared::faulty::{Change, Fault, Right, plant};
use foundationdb_tuple::Element;
use shaketable_record::{
    error::Error,
    index::{EntryChanges, IndexAt, IndexMaintainer, IndexState, Registry, ValueIndex},
    metadata::index_types,
    store::{Part, StoredRecord},
    value::Tuple,
};
use shaketable_tx::{Isolation::Serializable, MutationType, RangeOption, Transaction};

/// The maintainers of a store, all of them with the planted bug.
pub(super) fn registry<T: Transaction>(planted: Option<Planted>) -> Registry<T> {
    let mut registry = custom::registry();
    if let Some(planted) = planted {
        plant(&mut registry, &KINDS, planted);
    }
    registry
}

/// The types of all indexes.
const KINDS: [&str; 9] = [
    index_types::COUNT,
    index_types::COUNT_UPDATES,
    index_types::SUM,
    index_types::MIN_EVER,
    index_types::MAX_EVER,
    index_types::VALUE,
    index_types::RANK,
    index_types::VERSION,
    BACKWARDS,
];

impl Planted {
    /// The old and the new record as the bug sees them; `None` if it does not notice the change.
    fn seen<'a, T: Transaction>(self, at: IndexAt<'_, T>, (old, new): Change<'a>) -> Option<Change<'a>> {
        let kind = &*at.index.kind;
        let is_incomplete = old.is_some_and(|old| old.version.as_ref().is_some_and(|v| !v.is_complete()));
        let is_building =
            || at.store.index_state(&at.index.name).is_ok_and(|state| state == IndexState::WriteOnly);
        match self {
            Planted::OldForgotten if kind == index_types::VALUE && new.is_some() => Some((None, new)),
            Planted::OtherTypeStays if is_other_type(old, new) => Some((None, new)),
            Planted::VersionTwice if kind == index_types::VERSION && new.is_some() && is_incomplete => {
                Some((None, new))
            }
            Planted::VersionUndead if kind == index_types::VERSION && new.is_none() && is_incomplete => None,
            Planted::CountedAgain
                if [index_types::COUNT, index_types::SUM].contains(&kind) && new.is_some() =>
            {
                Some((None, new))
            }
            Planted::OwnNotDeleted if kind == BACKWARDS && new.is_none() => None,
            Planted::BuiltEmpty if is_building() => None,
            _ => Some((old, new)),
        }
    }
}

impl<T: Transaction> Fault<T> for Planted {
    async fn check<'a>(
        &'a self,
        right: &'a Right<T>,
        at: IndexAt<'a, T>,
        (old, new): Change<'a>,
    ) -> Result<(), Error> {
        let Some((old, new)) = self.seen(at, (old, new)) else { return Ok(()) };
        match right.check(at, old, new).await {
            Err(Error::EntryTooLarge { .. }) if *self == Planted::KeyUnchecked => Ok(()),
            Ok(()) if *self == Planted::NullCompared && at.index.unique => compare_nulls(at, old, new).await,
            checked => checked,
        }
    }

    async fn update<'a>(
        &'a self,
        right: &'a Right<T>,
        at: IndexAt<'a, T>,
        change: Change<'a>,
    ) -> Result<(), Error> {
        let Some((old, new)) = self.seen(at, change) else { return Ok(()) };
        if *self == Planted::ClearedLast && new.is_some() && at.index.kind == index_types::VALUE {
            right.update(at, None, new).await?;
            return right.update(at, old, None).await;
        }
        if *self == Planted::ScoreKept && old.is_some() && new.is_some() && at.index.kind == index_types::RANK
        {
            return ValueIndex.update(at, old, new).await;
        }
        let changes = match at.index.kind == index_types::VALUE {
            true => at.changes(old, new)?,
            false => EntryChanges::default(),
        };
        right.update(at, old, new).await?;
        let tx = at.transaction()?;
        match self {
            Planted::FirstEntryRemoved => {
                changes.removed.iter().skip(1).for_each(|entry| tx.set(&entry.row, b""));
            }
            Planted::LastEntryLost if changes.added.len() > 1 => {
                changes.added.iter().last().into_iter().for_each(|entry| tx.clear(&entry.row));
            }
            Planted::FirstKeyCounted if at.index.kind == index_types::COUNT && old.is_none() => {
                for key in new.map(|new| at.keys(new)).transpose()?.unwrap_or_default().iter().skip(1) {
                    let row = [at.space(Part::Indexes).bytes(), &key.tuple().pack()].concat();
                    tx.atomic_op(&row, &(-1i64).to_le_bytes(), MutationType::Add);
                }
            }
            _ => {}
        }
        match new {
            Some(new) if *self == Planted::LastForMax && at.index.kind == index_types::MAX_EVER => {
                set_last(at, new)
            }
            _ => Ok(()),
        }
    }

    async fn delete_where<'a>(
        &'a self,
        right: &'a Right<T>,
        at: IndexAt<'a, T>,
        prefix: &'a Tuple,
    ) -> Result<bool, Error> {
        match *self == Planted::GroupsStay && at.index.kind != BACKWARDS && !right.has_values() {
            true => Ok(true),
            false => right.delete_where(at, prefix).await,
        }
    }
}

fn is_other_type(old: Option<&StoredRecord>, new: Option<&StoredRecord>) -> bool {
    old.zip(new).is_some_and(|(old, new)| old.record_type.name != new.record_type.name)
}

/// Refuses a key that another record has, unless all of its columns are null.
async fn compare_nulls<T: Transaction>(
    at: IndexAt<'_, T>,
    old: Option<&StoredRecord>,
    new: Option<&StoredRecord>,
) -> Result<(), Error> {
    for entry in at.changes(old, new)?.added {
        let key = entry.key.tuple();
        let is_all_null = key.elements().iter().all(|value| matches!(value, Element::Nil));
        if !entry.key.has_non_unique_null() || is_all_null {
            continue;
        }
        let rows = at.transaction()?.get_range_all(RangeOption::from(at.rows_of(&key)), Serializable).await?;
        if rows.iter().any(|row| *row.key != *entry.row) {
            let (index, primary_key) = (at.index.name.clone(), entry.primary_key);
            return Err(Error::NotUnique { index, key, existing: primary_key.clone(), primary_key });
        }
    }
    Ok(())
}

/// Sets the values of the groups of a record to those that it has.
fn set_last<T: Transaction>(at: IndexAt<'_, T>, new: &StoredRecord) -> Result<(), Error> {
    for key in at.keys(new)? {
        let (group, value) = key.tuple().split_at(at.index.expression.grouping_columns());
        if !value.elements().iter().any(|value| matches!(value, Element::Nil)) {
            let row = [at.space(Part::Indexes).bytes(), &group.pack()].concat();
            at.transaction()?.set(&row, &value.pack());
        }
    }
    Ok(())
}
