//! An index that the workload maintains itself: texts by their letters in reverse order.

use super::schema::BACKWARDS;
use foundationdb_tuple::Element;
use futures::future::{BoxFuture, FutureExt, ready};
use shaketable_record::{
    cursor::{BoxCursor, Continuation, Spent, TupleRange},
    error::Error,
    index::{IndexAt, IndexEntry, IndexMaintainer, IndexScan, Registry},
    metadata::Index,
    store::{Part, StoredRecord},
    value::Tuple,
};
use shaketable_tx::{Transaction, Tx};
use std::collections::BTreeSet;

/// Maintains indexes whose last column is a text: its letters are reversed. A record without the text has no
/// entry.
pub(super) struct Backwards;

/// All maintainers of a store.
pub(super) fn registry() -> Registry<Tx> {
    let mut registry = Registry::standard();
    registry.register(BACKWARDS, Backwards);
    registry
}

fn rows(at: IndexAt<'_, Tx>, record: Option<&StoredRecord>) -> Result<BTreeSet<Vec<u8>>, Error> {
    let Some(record) = record else { return Ok(BTreeSet::new()) };
    let space = at.space(Part::Indexes);
    let mut rows = BTreeSet::new();
    for key in at.keys(record)? {
        let (group, last) = key.tuple().split_at(at.index.expression.columns() - 1);
        if let [Element::String(text)] = last.elements() {
            let reversed = Tuple::from(text.chars().rev().collect::<String>());
            let tuple = group.followed_by(&reversed).followed_by(&record.primary_key);
            rows.insert([space.bytes(), &tuple.pack()].concat());
        }
    }
    Ok(rows)
}

impl Backwards {
    fn check_now(
        &self,
        at: IndexAt<'_, Tx>,
        old: Option<&StoredRecord>,
        new: Option<&StoredRecord>,
    ) -> Result<(), Error> {
        let (before, after) = (rows(at, old)?, rows(at, new)?);
        after.difference(&before).try_for_each(|row| at.fits(row))
    }

    fn update_now(
        &self,
        at: IndexAt<'_, Tx>,
        old: Option<&StoredRecord>,
        new: Option<&StoredRecord>,
    ) -> Result<(), Error> {
        let (tx, before, after) = (at.transaction()?, rows(at, old)?, rows(at, new)?);
        before.difference(&after).for_each(|row| tx.clear(row));
        after.difference(&before).for_each(|row| tx.set(row, b""));
        Ok(())
    }
}

impl IndexMaintainer<Tx> for Backwards {
    fn is_idempotent(&self, _: &Index) -> bool {
        true
    }

    fn check<'a>(
        &'a self,
        at: IndexAt<'a, Tx>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        ready(self.check_now(at, old, new)).boxed()
    }

    fn update<'a>(
        &'a self,
        at: IndexAt<'a, Tx>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        ready(self.update_now(at, old, new)).boxed()
    }

    fn scan(
        &self,
        at: IndexAt<'_, Tx>,
        _: IndexScan,
        range: TupleRange,
        reverse: bool,
        from: Continuation,
        spent: &Spent,
    ) -> Result<BoxCursor<IndexEntry>, Error> {
        at.scan_entries(&range, reverse, from, spent)
    }

    fn delete_where<'a>(
        &'a self,
        at: IndexAt<'a, Tx>,
        prefix: &'a Tuple,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        ready(at.delete_entries_where(prefix)).boxed()
    }
}
