//! Indexes by version: entries with the record's version in one column.
//!
//! An entry is that of a value index: the columns of the expression, one of which is
//! [`KeyExpression::Version`](crate::expression::KeyExpression::Version), followed by the primary key. A
//! record that was written before the store kept versions has null there, and comes first. A record has
//! entries of its last version only.
//!
//! # In the transaction that saves
//!
//! The version of a record is complete when its transaction commits. Until then its entries are in the
//! [`RecordContext`](crate::store::RecordContext): a scan in the same transaction does not return them, and
//! does not return the entries of the record's last version either. If the record is saved again or deleted
//! in the same transaction, they are taken back. After [`flush`](crate::store::RecordContext::flush) they
//! cannot be taken back: saving or deleting such a record is refused with [`Error::Version`]. A version of
//! the application's own is complete; its entries are visible at once.
//!
//! # Conflicts
//!
//! A save writes keys that only its own record has, and reads nothing. FoundationDB takes the place of an
//! entry whose versionstamp is not known for the range of all places that it may get: a serializable scan of
//! the index beyond its last entry conflicts with every save, as it has to.

use super::{IndexAt, IndexEntry, IndexMaintainer, IndexScan};
use crate::{
    cursor::{BoxCursor, Continuation, Spent, TupleRange},
    error::Error,
    metadata::Index,
    store::{Part, StoredRecord},
    value::Tuple,
};
use foundationdb_tuple::VersionstampOffset;
use futures::future::{BoxFuture, FutureExt, ready};
use shaketable_tx::Transaction;
use std::collections::BTreeSet;

/// Maintains indexes by version.
#[derive(Clone, Copy, Debug, Default)]
pub struct VersionIndex;

/// A row: its key, or the operand of `SET_VERSIONSTAMPED_KEY` while the version is incomplete.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Complete(Vec<u8>),
    Incomplete(Vec<u8>),
}

fn rows<T: Transaction>(at: IndexAt<'_, T>, record: Option<&StoredRecord>) -> Result<BTreeSet<Row>, Error> {
    let Some(record) = record else { return Ok(BTreeSet::new()) };
    let space = at.space(Part::Indexes);
    let row = |key: Tuple| {
        let (packed, offset) = key.followed_by(&record.primary_key).pack_stamped();
        let mut key = [space.bytes(), &packed].concat();
        let VersionstampOffset::OneIncomplete { offset } = offset else { return Row::Complete(key) };
        key.extend((space.bytes().len() as u32 + offset).to_le_bytes());
        Row::Incomplete(key)
    };
    Ok(at.keys(record)?.into_iter().map(|key| row(key.tuple())).collect())
}

impl VersionIndex {
    fn check_now<T: Transaction>(
        self,
        at: IndexAt<'_, T>,
        old: Option<&StoredRecord>,
        new: Option<&StoredRecord>,
    ) -> Result<(), Error> {
        let has_incomplete = rows(at, old)?.iter().any(|row| matches!(row, Row::Incomplete(_)));
        if has_incomplete && at.store.context().has_flushed() {
            return Err(Error::Version(
                "the context has given the entries of the last one to the transaction",
            ));
        }
        for row in rows(at, new)? {
            let key = match &row {
                Row::Complete(key) => &key[..],
                Row::Incomplete(operand) => &operand[..operand.len() - size_of::<u32>()],
            };
            at.fits(key)?;
        }
        Ok(())
    }

    fn update_now<T: Transaction>(
        self,
        at: IndexAt<'_, T>,
        old: Option<&StoredRecord>,
        new: Option<&StoredRecord>,
    ) -> Result<(), Error> {
        let (old, new) = (rows(at, old)?, rows(at, new)?);
        let (tx, context) = (at.transaction()?, at.store.context());
        for row in old.difference(&new) {
            match row {
                Row::Complete(key) => tx.clear(key),
                Row::Incomplete(key) => context.clear_versionstamped_key(key),
            }
        }
        for row in new.difference(&old) {
            match row {
                Row::Complete(key) => tx.set(key, b""),
                Row::Incomplete(key) => context.set_versionstamped_key(key.clone(), Vec::new()),
            }
        }
        Ok(())
    }
}

impl<T: Transaction> IndexMaintainer<T> for VersionIndex {
    fn is_idempotent(&self, _: &Index) -> bool {
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
            IndexScan::ByValue => at.scan_entries(&range, reverse, from, spent),
            _ => Err(at.no_scan("an index by version is scanned by value")),
        }
    }

    fn delete_where<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        prefix: &'a Tuple,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        ready(at.delete_entries_where(prefix)).boxed()
    }
}
