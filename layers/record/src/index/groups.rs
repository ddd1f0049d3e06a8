//! Scans of an index of aggregates: a row for each group.

use super::{IndexAt, IndexEntry, aggregate::Aggregate};
use crate::{
    cursor::{BoxCursor, Continuation, Cursor, KeyValueCursor, Next, Row, Scan, Spent, Stop, TupleRange},
    error::Error,
    store::Part,
    value::Tuple,
};
use futures::future::{BoxFuture, FutureExt};
use shaketable_tx::Transaction;

/// The aggregates of a range of groups.
pub(super) struct GroupCursor<T: Transaction> {
    rows: KeyValueCursor<T>,
    /// The length of the index's subspace.
    prefix: usize,
    aggregate: Aggregate,
    spent: Spent,
    at: Continuation,
    /// Whether a group was read.
    begun: bool,
}

impl<T: Transaction> GroupCursor<T> {
    pub fn scan(
        at: IndexAt<'_, T>,
        aggregate: Aggregate,
        range: &TupleRange,
        reverse: bool,
        from: Continuation,
        spent: &Spent,
    ) -> Result<BoxCursor<IndexEntry>, Error> {
        let space = at.space(Part::Indexes);
        let scan =
            Scan { what: "scan by group", space: &space, range, reverse, from: &from, prefixes: false };
        Ok(Box::new(GroupCursor {
            rows: KeyValueCursor::new(at.store.context(), &scan)?,
            prefix: space.bytes().len(),
            aggregate,
            spent: spent.clone(),
            at: from,
            begun: false,
        }))
    }

    async fn advance(&mut self) -> Result<Next<IndexEntry>, Error> {
        if self.begun
            && let Some(stop) = self.spent.reached()
        {
            return Ok(Next::Stopped(stop, self.at.clone()));
        }
        let Some(Row::Stored(row)) = self.rows.next(&self.spent).await? else {
            return Ok(Next::Stopped(Stop::Exhausted, Continuation::End));
        };
        self.begun = true;
        self.spent.count(row.key.len() + row.value.len());
        self.at = self.rows.after(&row.key);
        let group = Tuple::unpack(&row.key[self.prefix..]);
        let key = group.ok_or_else(|| Error::foreign("the group of an aggregate", &row.key))?;
        let value = self.aggregate.decode(&row.key, &row.value)?;
        Ok(Next::Row(IndexEntry { key, primary_key: Tuple::empty(), value }, self.at.clone()))
    }
}

impl<T: Transaction> Cursor for GroupCursor<T> {
    type Row = IndexEntry;

    fn next(&mut self) -> BoxFuture<'_, Result<Next<IndexEntry>, Error>> {
        self.advance().boxed()
    }
}
