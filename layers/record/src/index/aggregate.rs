//! Indexes of aggregates: a number or a tuple for each group of records.
//!
//! The columns of the index's expression before the grouped ones are the group
//! ([`KeyExpression::grouping_columns`](crate::expression::KeyExpression::grouping_columns)); the index has
//! one row for each group that ever had a record:
//!
//! | type | value | a record changes it |
//! |---|---|---|
//! | `count` | how many keys the group has | when it gets or loses a key |
//! | `count_updates` | how often a record with a key in the group was saved | whenever it is saved |
//! | `sum` | the sum of the grouped column, which is an integer | when the group's part of it changes |
//! | `min_ever` | the least tuple of the grouped columns that a record ever had | when it is less |
//! | `max_ever` | the greatest | when it is greater |
//!
//! The types `min_ever` and `max_ever` keep what Java's Record Layer keeps for `min_ever_tuple` and
//! `max_ever_tuple`. There the shorter names, which are deprecated, stand for `min_ever_long` and
//! `max_ever_long`, whose values are numbers of 8 bytes: a store with such an index cannot be used by both.
//!
//! Counts and sums are 8 bytes, little-endian, and wrap around; the others are packed tuples. A key with a
//! null in a grouped column takes no part in `sum`, `min_ever` and `max_ever`. With the option
//! [`CLEAR_WHEN_ZERO`] the row of a count or a sum is removed when it gets zero.
//!
//! A save that is done again because the result of its commit was unknown changes a count or a sum once,
//! since the record is then as it was saved; a plain retry loop counts it twice in `count_updates`, a
//! [`Session`](shaketable_tx::once::Session) once.
//!
//! # Conflicts
//!
//! Values change by atomic operations: saves never conflict with each other here, even in the same group. A
//! serializable scan conflicts with all changes to the groups that it reads.

use super::{IndexAt, IndexEntry, IndexMaintainer, IndexScan, groups::GroupCursor};
use crate::{
    cursor::{BoxCursor, Continuation, Spent, TupleRange},
    error::Error,
    metadata::{Index, index_types},
    store::{Part, StoredRecord},
    value::{Shown, Tuple},
};
use foundationdb_tuple::Element;
use futures::future::{BoxFuture, FutureExt, ready};
use shaketable_tx::{MutationType, Transaction, limits};
use std::collections::BTreeMap;

/// The option with which the row of a count or a sum is removed when it gets zero: `"true"`.
pub const CLEAR_WHEN_ZERO: &str = "clearWhenZero";

/// What an index of aggregates keeps for each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// The number of keys.
    Count,
    /// The number of saves.
    CountUpdates,
    /// The sum of the grouped column.
    Sum,
    /// The least tuple.
    MinEver,
    /// The greatest tuple.
    MaxEver,
}

impl Aggregate {
    /// All of them.
    pub const ALL: [Aggregate; 5] =
        [Aggregate::Count, Aggregate::CountUpdates, Aggregate::Sum, Aggregate::MinEver, Aggregate::MaxEver];

    /// The type of its indexes.
    pub fn kind(self) -> &'static str {
        match self {
            Aggregate::Count => index_types::COUNT,
            Aggregate::CountUpdates => index_types::COUNT_UPDATES,
            Aggregate::Sum => index_types::SUM,
            Aggregate::MinEver => index_types::MIN_EVER,
            Aggregate::MaxEver => index_types::MAX_EVER,
        }
    }

    /// The aggregate of two groups together, by their values: of no group, [`None`].
    pub fn combine(self, one: Option<Tuple>, other: Tuple) -> Tuple {
        let Some(one) = one else { return other };
        let take_other = match self {
            Aggregate::MinEver => other < one,
            Aggregate::MaxEver => other > one,
            _ => return Tuple::from(number(&one).wrapping_add(number(&other))),
        };
        if take_other { other } else { one }
    }

    /// The aggregate of no record: zero for numbers, nothing for the others.
    pub fn of_nothing(self) -> Option<Tuple> {
        self.is_number().then(|| Tuple::from(0i64))
    }

    fn is_number(self) -> bool {
        !matches!(self, Aggregate::MinEver | Aggregate::MaxEver)
    }

    /// The value of a row.
    pub(super) fn decode(self, key: &[u8], value: &[u8]) -> Result<Tuple, Error> {
        let decoded = match self.is_number() {
            true => value.try_into().ok().map(|bytes| Tuple::from(i64::from_le_bytes(bytes))),
            false => Tuple::unpack(value),
        };
        decoded.ok_or_else(|| Error::foreign("an aggregate", key))
    }
}

fn number(value: &Tuple) -> i64 {
    match value.get(0) {
        Some(Element::Int(number)) => *number,
        _ => 0,
    }
}

/// Maintains indexes of one kind of aggregates.
#[derive(Clone, Copy, Debug)]
pub struct AggregateIndex(pub Aggregate);

/// What is to be done to the row of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Add(i64),
    /// The least or the greatest of the record's tuples.
    Tuple(Tuple),
}

impl AggregateIndex {
    /// The changes by group, from what the old record contributes to what the new one does.
    fn changes<T: Transaction>(
        self,
        at: IndexAt<'_, T>,
        old: Option<&StoredRecord>,
        new: Option<&StoredRecord>,
    ) -> Result<BTreeMap<Tuple, Change>, Error> {
        let mut changes = BTreeMap::new();
        self.contribute(at, new, 1, &mut changes)?;
        match self.0 {
            Aggregate::CountUpdates => {}
            Aggregate::Count | Aggregate::Sum => self.contribute(at, old, -1, &mut changes)?,
            Aggregate::MinEver | Aggregate::MaxEver => {
                let mut before = BTreeMap::new();
                self.contribute(at, old, 1, &mut before)?;
                changes.retain(|group, change| before.get(group) != Some(change));
            }
        }
        changes.retain(|_, change| *change != Change::Add(0));
        Ok(changes)
    }

    fn contribute<T: Transaction>(
        self,
        at: IndexAt<'_, T>,
        record: Option<&StoredRecord>,
        sign: i64,
        changes: &mut BTreeMap<Tuple, Change>,
    ) -> Result<(), Error> {
        let Some(record) = record else { return Ok(()) };
        for key in at.keys(record)? {
            let (group, grouped) = key.tuple().split_at(at.index.expression.grouping_columns());
            let change = match self.0 {
                Aggregate::Count | Aggregate::CountUpdates => Change::Add(sign),
                Aggregate::Sum => match grouped.get(0) {
                    Some(Element::Int(number)) => Change::Add(number.wrapping_mul(sign)),
                    Some(Element::Nil) | None => continue,
                    // Functions may give what the meta-data cannot know.
                    Some(other) => {
                        let reason = format!("{} is not an integer, and cannot be added", Shown(other));
                        return Err(Error::IndexState { index: at.index.name.clone(), reason });
                    }
                },
                Aggregate::MinEver | Aggregate::MaxEver => {
                    match grouped.elements().iter().any(|value| matches!(value, Element::Nil)) {
                        true => continue,
                        false => Change::Tuple(grouped),
                    }
                }
            };
            match (changes.remove(&group), change) {
                (None, change) => changes.insert(group, change),
                (Some(Change::Add(one)), Change::Add(other)) => {
                    changes.insert(group, Change::Add(one.wrapping_add(other)))
                }
                (Some(Change::Tuple(one)), Change::Tuple(other)) => {
                    changes.insert(group, Change::Tuple(self.0.combine(Some(one), other)))
                }
                (Some(one), _) => changes.insert(group, one),
            };
        }
        Ok(())
    }

    fn apply<T: Transaction>(self, at: IndexAt<'_, T>, group: &Tuple, change: Change) -> Result<(), Error> {
        let (tx, key) = (at.transaction()?, row_of(at, group));
        match (change, self.0) {
            (Change::Add(count), _) => {
                tx.atomic_op(&key, &count.to_le_bytes(), MutationType::Add);
                if at.index.options.get(CLEAR_WHEN_ZERO).is_some_and(|value| value == "true") {
                    tx.atomic_op(&key, &0i64.to_le_bytes(), MutationType::CompareAndClear);
                }
            }
            (Change::Tuple(tuple), Aggregate::MinEver) => {
                tx.atomic_op(&key, &tuple.pack(), MutationType::ByteMin)
            }
            (Change::Tuple(tuple), _) => tx.atomic_op(&key, &tuple.pack(), MutationType::ByteMax),
        }
        Ok(())
    }

    fn check_now<T: Transaction>(
        self,
        at: IndexAt<'_, T>,
        old: Option<&StoredRecord>,
        new: Option<&StoredRecord>,
    ) -> Result<(), Error> {
        for (group, change) in self.changes(at, old, new)? {
            let value = match change {
                Change::Add(count) => count.to_le_bytes().to_vec(),
                Change::Tuple(tuple) => tuple.pack(),
            };
            let named = |too_large| Error::EntryTooLarge { index: at.index.name.clone(), too_large };
            limits::row(&row_of(at, &group), &value).map_err(named)?;
        }
        Ok(())
    }

    fn update_now<T: Transaction>(
        self,
        at: IndexAt<'_, T>,
        old: Option<&StoredRecord>,
        new: Option<&StoredRecord>,
    ) -> Result<(), Error> {
        for (group, change) in self.changes(at, old, new)? {
            self.apply(at, &group, change)?;
        }
        Ok(())
    }

    fn delete_where_now<T: Transaction>(self, at: IndexAt<'_, T>, prefix: &Tuple) -> Result<bool, Error> {
        if !self.can_delete_where(at, prefix) {
            return Ok(false);
        }
        let (begin, end) = TupleRange::all_of(prefix.clone()).keys(&at.space(Part::Indexes));
        at.store.context().clear_range(&begin, &end)?;
        Ok(true)
    }
}

fn row_of<T: Transaction>(at: IndexAt<'_, T>, group: &Tuple) -> Vec<u8> {
    [at.space(Part::Indexes).bytes(), &group.pack()].concat()
}

impl<T: Transaction> IndexMaintainer<T> for AggregateIndex {
    fn is_idempotent(&self, _: &Index) -> bool {
        matches!(self.0, Aggregate::MinEver | Aggregate::MaxEver)
    }

    fn check<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        ready(self.check_now(at, old, new)).boxed()
    }

    fn update<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        ready(self.update_now(at, old, new)).boxed()
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
        match scan {
            IndexScan::ByGroup => GroupCursor::scan(at, self.0, &range, reverse, from, spent),
            _ => Err(at.no_scan("an index of aggregates is scanned by group")),
        }
    }

    fn can_delete_where(&self, at: IndexAt<'_, T>, prefix: &Tuple) -> bool {
        prefix.len() <= at.index.expression.grouping_columns() && at.begins_with_primary_key(prefix.len())
    }

    fn delete_where<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        prefix: &'a Tuple,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        ready(self.delete_where_now(at, prefix)).boxed()
    }
}
