//! Maintainers of indexes with planted bugs: each wraps the right one, and misinforms it or leaves it out.

use super::{custom, planted::Planted, schema::BACKWARDS};
use foundationdb_tuple::Element;
use futures::future::{BoxFuture, FutureExt, ready};
use shaketable_layers::tx::{Isolation::Serializable, RangeOption, Transaction};
use shaketable_record::{
    cursor::{BoxCursor, Continuation, Spent, TupleRange},
    error::Error,
    index::{IndexAt, IndexEntry, IndexMaintainer, IndexScan, IndexState, Registry, ValueIndex},
    metadata::{Index, index_types},
    store::{Part, StoredRecord},
    value::Tuple,
};
use std::sync::Arc;

/// The maintainers of a store, all of them with the planted bug.
pub(super) fn registry<T: Transaction>(planted: Option<Planted>) -> Registry<T> {
    let right = custom::registry();
    let Some(planted) = planted else { return right };
    let mut registry = right.clone();
    let aggregates = [
        index_types::COUNT,
        index_types::COUNT_UPDATES,
        index_types::SUM,
        index_types::MIN_EVER,
        index_types::MAX_EVER,
    ];
    for kind in
        aggregates.into_iter().chain([index_types::VALUE, index_types::RANK, index_types::VERSION, BACKWARDS])
    {
        if let Some(right) = right.get(kind).cloned() {
            registry.register(kind, Faulty { planted, right });
        }
    }
    registry
}

/// A maintainer with a planted bug.
struct Faulty<T: Transaction> {
    planted: Planted,
    right: Arc<dyn IndexMaintainer<T>>,
}

type Change<'a> = (Option<&'a StoredRecord>, Option<&'a StoredRecord>);

impl<T: Transaction> Faulty<T> {
    /// The old and the new record as the bug sees them; `None` if it does not notice the change.
    fn seen<'a>(&self, at: IndexAt<'_, T>, (old, new): Change<'a>) -> Option<Change<'a>> {
        let kind = &*at.index.kind;
        let is_incomplete = old.is_some_and(|old| old.version.as_ref().is_some_and(|v| !v.is_complete()));
        let is_building =
            || at.store.index_state(&at.index.name).is_ok_and(|state| state == IndexState::WriteOnly);
        match self.planted {
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

    async fn checked<'a>(&'a self, at: IndexAt<'a, T>, (old, new): Change<'a>) -> Result<(), Error> {
        let Some((old, new)) = self.seen(at, (old, new)) else { return Ok(()) };
        match self.right.check(at, old, new).await {
            Err(Error::EntryTooLarge { .. }) if self.planted == Planted::KeyUnchecked => Ok(()),
            Ok(()) if self.planted == Planted::NullCompared && at.index.unique => {
                compare_nulls(at, old, new).await
            }
            checked => checked,
        }
    }

    async fn updated<'a>(&'a self, at: IndexAt<'a, T>, change: Change<'a>) -> Result<(), Error> {
        let Some((old, new)) = self.seen(at, change) else { return Ok(()) };
        if self.planted == Planted::ClearedLast && new.is_some() && at.index.kind == index_types::VALUE {
            self.right.update(at, None, new).await?;
            return self.right.update(at, old, None).await;
        }
        if self.planted == Planted::ScoreKept
            && old.is_some()
            && new.is_some()
            && at.index.kind == index_types::RANK
        {
            return ValueIndex.update(at, old, new).await;
        }
        self.right.update(at, old, new).await?;
        match new {
            Some(new) if self.planted == Planted::LastForMax && at.index.kind == index_types::MAX_EVER => {
                set_last(at, new)
            }
            _ => Ok(()),
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

impl<T: Transaction> IndexMaintainer<T> for Faulty<T> {
    fn is_idempotent(&self, index: &Index) -> bool {
        self.right.is_idempotent(index)
    }

    fn has_values(&self) -> bool {
        self.right.has_values()
    }

    fn check<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.checked(at, (old, new)).boxed()
    }

    fn update<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.updated(at, (old, new)).boxed()
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
        self.right.scan(at, scan, range, reverse, from, spent)
    }

    fn can_delete_where(&self, at: IndexAt<'_, T>, prefix: &Tuple) -> bool {
        self.right.can_delete_where(at, prefix)
    }

    fn delete_where<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        prefix: &'a Tuple,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        match self.planted == Planted::GroupsStay && at.index.kind != BACKWARDS && !self.right.has_values() {
            true => ready(Ok(true)).boxed(),
            false => self.right.delete_where(at, prefix),
        }
    }
}
