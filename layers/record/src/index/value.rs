//! Indexes of values: an entry for each key of each record.
//!
//! A unique index reads the entries of a key serializably before it adds one, so that of two transactions
//! that add the same key one conflicts. Keys with a null that is not unique
//! ([`NullStandin::Null`](crate::expression::NullStandin)) are not compared. While the index is being built,
//! or has violations, a key that another record has is not refused but recorded: each of the records with
//! that key has a violation, until it is the only one.

use super::{Entry, IndexAt, IndexEntry, IndexMaintainer, IndexScan, IndexState};
use crate::{
    cursor::{BoxCursor, Continuation, Spent, TupleRange},
    error::Error,
    metadata::Index,
    store::{Part, StoredRecord},
    value::Tuple,
};
use futures::future::{BoxFuture, FutureExt, try_join_all};
use shaketable_tx::{Isolation, RangeOption, Transaction, reachable};

/// Maintains indexes of type [`VALUE`](crate::metadata::index_types::VALUE).
#[derive(Clone, Copy, Debug, Default)]
pub struct ValueIndex;

impl<T: Transaction> IndexMaintainer<T> for ValueIndex {
    fn is_idempotent(&self, _index: &Index) -> bool {
        true
    }

    fn has_values(&self) -> bool {
        true
    }

    fn check<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        async move {
            let changes = at.changes(old, new)?;
            changes.added.iter().try_for_each(|entry| at.fits(&entry.row))?;
            if at.index.unique && at.state()? == IndexState::Readable {
                try_join_all(changes.added.iter().map(|entry| refuse_taken(at, entry))).await?;
            }
            Ok(())
        }
        .boxed()
    }

    fn update<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        async move {
            let (tx, changes) = (at.transaction()?, at.changes(old, new)?);
            for entry in &changes.removed {
                tx.clear(&entry.row);
                resolve_violation(at, &entry.key.tuple(), &entry.primary_key).await?;
            }
            for entry in &changes.added {
                record_violation(at, entry).await?;
                tx.set(&entry.row, &[]);
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
        match scan {
            IndexScan::ByValue => at.scan_entries(&range, reverse, from, spent),
            IndexScan::ByRank | IndexScan::ByGroup => {
                Err(at.no_scan("an index of values is scanned by value"))
            }
        }
    }

    fn delete_where<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        prefix: &'a Tuple,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        async move { at.delete_entries_where(prefix) }.boxed()
    }
}

/// The primary keys of other records with a key, at most two, and not all if this record has it too.
async fn others<T: Transaction>(
    at: IndexAt<'_, T>,
    key: &Tuple,
    primary_key: &Tuple,
) -> Result<Vec<Tuple>, Error> {
    let range = RangeOption::from(at.rows_of(key)).limit(2);
    let rows = at.transaction()?.get_range_all(range, Isolation::Serializable).await?;
    let space = at.space(Part::Indexes);
    let found: Result<Vec<_>, _> = rows.iter().map(|row| at.split_row(&space, &row.key)).collect();
    let others = found?.into_iter().map(|(_, other)| other);
    Ok(others.filter(|other| other != primary_key).collect())
}

async fn refuse_taken<T: Transaction>(at: IndexAt<'_, T>, entry: &Entry) -> Result<(), Error> {
    if entry.key.has_non_unique_null() {
        return Ok(());
    }
    match others(at, &entry.key.tuple(), &entry.primary_key).await?.into_iter().next() {
        None => Ok(()),
        Some(existing) => {
            reachable!("record: a unique index refuses a key");
            Err(Error::NotUnique {
                index: at.index.name.clone(),
                key: entry.key.tuple(),
                primary_key: entry.primary_key.clone(),
                existing,
            })
        }
    }
}

/// Whether the index is unique, and has or may have violations.
fn has_violations<T: Transaction>(at: IndexAt<'_, T>) -> Result<bool, Error> {
    Ok(at.index.unique && at.state()? != IndexState::Readable)
}

/// Records that the record of a new entry, and those that have its key, violate the uniqueness of the index,
/// unless the key has a null that is not unique.
pub(super) async fn record_violation<T: Transaction>(at: IndexAt<'_, T>, entry: &Entry) -> Result<(), Error> {
    if !has_violations(at)? || entry.key.has_non_unique_null() {
        return Ok(());
    }
    let (tx, key) = (at.transaction()?, entry.key.tuple());
    // If there are several others, each of them has a violation.
    let others = others(at, &key, &entry.primary_key).await?;
    let Some(other) = others.first() else { return Ok(()) };
    reachable!("record: a violation of a unique index is recorded");
    tx.set(&at.violation(&key, &entry.primary_key), &other.pack());
    for other in &others {
        tx.set(&at.violation(&key, other), &entry.primary_key.pack());
    }
    Ok(())
}

/// Removes the violation of an entry that was removed, and that of the last record with its key.
pub(super) async fn resolve_violation<T: Transaction>(
    at: IndexAt<'_, T>,
    key: &Tuple,
    primary_key: &Tuple,
) -> Result<(), Error> {
    if !has_violations(at)? {
        return Ok(());
    }
    let tx = at.transaction()?;
    tx.clear(&at.violation(key, primary_key));
    if let [last] = &others(at, key, primary_key).await?[..] {
        reachable!("record: a violation of a unique index is resolved");
        tx.clear(&at.violation(key, last));
    }
    Ok(())
}
