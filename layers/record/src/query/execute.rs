//! Executing plans on a store.

use super::{
    bounds::Bounds,
    component::QueryComponent,
    covering::partial,
    cursors::{Distinct, Found, InTurn, Keep, Merge},
    encoding::encoded,
    evaluate::Ranks,
    plan::{Plan, RecordQueryPlan},
    planner::plan_in,
    queried::QueriedRecord,
    record_query::RecordQuery,
};
use crate::{
    cursor::{BoxCursor, Continuation, Cursor, CursorExt, Limits, Next, Positions, Spent},
    error::Error,
    expression::KeyExpression,
    index::{IndexAt, IndexEntry, IndexScan, IndexState},
    metadata::Index,
    store::{Part, RecordStore, StoredRecord},
    value::Value,
};
use futures::future::{BoxFuture, FutureExt, try_join_all};
use shaketable_tx::{Isolation, Transaction, sometimes};
use std::{collections::BTreeSet, sync::Arc};

impl<T: Transaction> RecordStore<T> {
    /// Plans a query with the indexes that are readable in this transaction. An index by version in which the
    /// transaction has entries, which it does not find, is used only for a query that compares with versions
    /// or is sorted by them. Fails with [`Error::InvalidQuery`] if the query does not fit the meta-data, or
    /// if no index gives the order that is asked for.
    pub fn plan_query(&self, query: &RecordQuery) -> Result<RecordQueryPlan, Error> {
        let mut readable = BTreeSet::new();
        for index in self.meta_data().indexes() {
            if self.index_state(&index.name)? == IndexState::Readable {
                readable.insert(index.name.clone());
            }
        }
        let hides = |index: &Index| {
            let (begin, end) = self.keyspace().of_index(Part::Indexes, index).range();
            self.context().hides(&begin, &end)
        };
        Ok(plan_in(query, self.meta_data(), &|index| readable.contains(&index.name), &hides)?)
    }

    /// Plans a query and executes the plan; see [`RecordQueryPlan::execute`]. To continue in another
    /// transaction, keep the plan: planned again, the query may have another one, to which the continuation
    /// does not belong.
    pub fn execute_query(
        &self,
        query: &RecordQuery,
        from: Continuation,
        limits: Limits,
    ) -> Result<BoxCursor<QueriedRecord>, Error> {
        self.plan_query(query)?.execute(self, from, limits)
    }
}

impl RecordQueryPlan {
    /// The records that the plan finds, from a continuation. All reads are serializable. The limits are those
    /// of all steps together: every entry and every record that is read counts.
    ///
    /// A plan that uses an index by version does not find what this transaction itself has saved: these
    /// records have no complete version. Other plans do. A record that the transaction deletes while the
    /// cursor is open may be left out.
    ///
    /// Records are read for several entries at once, [`Limits::pipeline`]: what the transaction writes while
    /// the cursor is open may not be seen in the next rows.
    ///
    /// Fails with [`Error::Continuation`] if the continuation is torn or belongs to another plan or another
    /// store, and with [`Error::IndexState`] if an index of the plan is no longer readable.
    pub fn execute<T: Transaction>(
        &self,
        store: &RecordStore<T>,
        from: Continuation,
        limits: Limits,
    ) -> Result<BoxCursor<QueriedRecord>, Error> {
        let positions = Positions::of("query", &[&encoded(&self.root)]);
        let inner = match positions.read(&from)? {
            Some(position) => Continuation::from_bytes(position),
            None => from.clone(),
        };
        let spent = Spent::new(limits);
        let step = StepExecution { store: store.clone(), spent: spent.clone(), each: None };
        let found = step.open(&self.root, inner)?;
        Ok(Box::new(Sealed { found, positions, spent: spent.clone() }).limited(&spent, from))
    }
}

/// Gives the rows of a plan with continuations that belong to it.
struct Sealed {
    found: BoxCursor<Found>,
    positions: Positions,
    spent: Spent,
}

impl Sealed {
    fn after(&self, at: Continuation) -> Continuation {
        match at {
            Continuation::After(position) => self.positions.after(&position),
            other => other,
        }
    }
}

impl Cursor for Sealed {
    type Row = QueriedRecord;

    fn next(&mut self) -> BoxFuture<'_, Result<Next<QueriedRecord>, Error>> {
        async move {
            Ok(match self.found.next().await? {
                Next::Row(row, after) => {
                    self.spent.give();
                    Next::Row(QueriedRecord::new(row)?, self.after(after))
                }
                Next::Stopped(stop, at) => Next::Stopped(stop, self.after(at)),
            })
        }
        .boxed()
    }
}

/// A step of a plan, as it is executed.
struct StepExecution<T: Transaction> {
    store: RecordStore<T>,
    spent: Spent,
    /// The value of the in-join around it.
    each: Option<Value>,
}

impl<T: Transaction> Clone for StepExecution<T> {
    fn clone(&self) -> Self {
        StepExecution { store: self.store.clone(), spent: self.spent.clone(), each: self.each.clone() }
    }
}

impl<T: Transaction> StepExecution<T> {
    fn open(&self, plan: &Plan, from: Continuation) -> Result<BoxCursor<Found>, Error> {
        match plan {
            Plan::Nothing => self.nothing(),
            Plan::Records { bounds, reverse } => self.records(bounds, *reverse, from),
            Plan::Index { index, by_rank, bounds, skip, reverse } => {
                self.entries(index, *by_rank, bounds, *skip, *reverse, from)
            }
            Plan::InJoin { values, inner, .. } => {
                let (values, inner) = (values.clone(), inner.clone());
                self.in_turn(values.len(), from, move |step, i, at| {
                    StepExecution { each: values.get(i).cloned(), ..step.clone() }.open(&inner, at)
                })
            }
            Plan::Either { branches } => {
                let branches = branches.clone();
                self.in_turn(branches.len(), from, move |step, i, at| {
                    let rows = step.open(&branches[i].1, at)?;
                    let earlier: Vec<_> =
                        branches[..i].iter().map(|(condition, _)| condition.clone()).collect();
                    Ok(if earlier.is_empty() {
                        rows
                    } else {
                        step.filter(rows, QueryComponent::Or(earlier), false)
                    })
                })
            }
            Plan::Union { children, reverse, .. } => self.merge(children, Keep::Any, *reverse, from),
            Plan::Intersection { children, reverse, .. } => self.merge(children, Keep::All, *reverse, from),
            Plan::Distinct(inner) => Ok(Box::new(Distinct::new(self.open(inner, from.clone())?, from))),
            Plan::Load(inner) => Ok(self.load(self.open(inner, from)?)),
            Plan::Partial { record_type, columns, inner } => {
                self.partial(record_type, columns, self.open(inner, from)?)
            }
            Plan::Types { types, inner } => {
                let types = types.clone();
                let of_types = move |found: &Found| {
                    found.record.as_ref().is_some_and(|record| types.contains(&record.record_type.name))
                };
                Ok(self.open(inner, from)?.filter(of_types))
            }
            Plan::Filter { condition, inner } => {
                Ok(self.filter(self.open(inner, from)?, condition.clone(), true))
            }
        }
    }

    fn in_turn(
        &self,
        number: usize,
        from: Continuation,
        open: impl Fn(&StepExecution<T>, usize, Continuation) -> Result<BoxCursor<Found>, Error> + Send + 'static,
    ) -> Result<BoxCursor<Found>, Error> {
        let step = self.clone();
        let open = Box::new(move |i: usize, at: Continuation| open(&step, i, at));
        Ok(Box::new(InTurn::new(open, number, &from, &self.spent)?))
    }

    fn merge(
        &self,
        children: &[Plan],
        keep: Keep,
        reverse: bool,
        from: Continuation,
    ) -> Result<BoxCursor<Found>, Error> {
        let open = |i: usize, at| self.open(&children[i], at);
        Ok(Box::new(Merge::new(children.len(), keep, reverse, &from, open)?))
    }

    /// No rows.
    fn nothing(&self) -> Result<BoxCursor<Found>, Error> {
        self.in_turn(0, Continuation::Start, |step, _, _| step.nothing())
    }

    fn records(&self, bounds: &Bounds, reverse: bool, from: Continuation) -> Result<BoxCursor<Found>, Error> {
        let Some(range) = bounds.tuples(self.each.as_ref()) else { return self.nothing() };
        let records = self.store.scan_records(range, reverse, from, &self.spent)?;
        Ok(records.map(|record| Found {
            order: record.primary_key.clone(),
            primary_key: record.primary_key.clone(),
            entry: None,
            record: Some(record),
        }))
    }

    fn entries(
        &self,
        index: &str,
        by_rank: bool,
        bounds: &Bounds,
        skip: usize,
        reverse: bool,
        from: Continuation,
    ) -> Result<BoxCursor<Found>, Error> {
        let found = self.store.meta_data().index(index).cloned();
        let index = found.ok_or_else(|| Error::UnknownIndex(index.into()))?;
        let scan = if by_rank { IndexScan::ByRank } else { IndexScan::ByValue };
        let Some(range) = bounds.tuples(self.each.as_ref()) else { return self.nothing() };
        let entries = self.store.scan_index(&index.name, scan, range, reverse, from, &self.spent)?;
        Ok(entries.map(move |entry| Found {
            order: entry.key.split_at(skip).1.followed_by(&entry.primary_key),
            primary_key: entry.primary_key.clone(),
            entry: Some((index.clone(), entry)),
            record: None,
        }))
    }

    /// The rows with their records.
    fn load(&self, rows: BoxCursor<Found>) -> BoxCursor<Found> {
        let step = self.clone();
        rows.then(&self.spent, move |row| {
            let step = step.clone();
            // Counted before it is read: the entries of further records are read before that, and must not be
            // more than the limit allows.
            if row.record.is_none() {
                step.spent.begin();
            }
            async move { step.loaded(row).await }.boxed()
        })
    }

    /// The row with its record, which was counted; `None` if the record was deleted after its entry was read.
    async fn loaded(&self, mut row: Found) -> Result<Option<Found>, Error> {
        if row.record.is_none() {
            let Some(record) = self.store.load_record(&row.primary_key).await? else {
                self.spent.forgo();
                return match &row.entry {
                    Some((index, entry)) if self.has_entry(index, entry).await? => Err(Error::IndexState {
                        index: index.name.clone(),
                        reason: format!("it has record {}, which does not exist", row.primary_key),
                    }),
                    _ => Ok(None),
                };
            };
            self.spent.weigh(record.key_bytes + record.value_bytes);
            row.record = Some(record);
        }
        Ok(Some(row))
    }

    async fn has_entry(&self, index: &Arc<Index>, entry: &IndexEntry) -> Result<bool, Error> {
        let at = IndexAt { store: &self.store, index };
        Ok(at.transaction()?.get(&at.row_of(entry), Isolation::Serializable).await?.is_some())
    }

    /// The rows with records of the fields that the entries have.
    fn partial(
        &self,
        record_type: &str,
        columns: &[Option<KeyExpression>],
        rows: BoxCursor<Found>,
    ) -> Result<BoxCursor<Found>, Error> {
        let found = self.store.meta_data().record_type(record_type).cloned();
        let record_type = found.ok_or_else(|| Error::UnknownType(record_type.into()))?;
        let columns = columns.to_vec();
        Ok(rows.filter_map(move |row| {
            let entry = row.entry.as_ref().map(|(_, entry)| entry.key.followed_by(&entry.primary_key));
            let entry = entry.unwrap_or_default();
            let (message, version) = partial(&record_type.message, &columns, &entry).ok_or_else(|| {
                let index = row.entry.as_ref().map(|(index, _)| index.name.clone()).unwrap_or_default();
                Error::IndexState { index, reason: format!("its entry {entry} has a value of another type") }
            })?;
            let record = StoredRecord {
                primary_key: row.primary_key.clone(),
                record_type: record_type.clone(),
                message,
                version,
                rows: 0,
                key_bytes: 0,
                value_bytes: 0,
            };
            Ok(Some(Found { record: Some(record), ..row }))
        }))
    }

    /// The rows for whose records the condition is true, or, if not `wanted`, is not.
    fn filter(&self, rows: BoxCursor<Found>, condition: QueryComponent, wanted: bool) -> BoxCursor<Found> {
        let step = self.clone();
        if condition.ranks().is_empty() {
            return rows.filter_map(move |row| {
                let holds = step.holds(&condition, &row, &Ranks::new())?;
                Ok((holds == wanted).then_some(row))
            });
        }
        rows.then(&self.spent, move |row| {
            let (step, condition) = (step.clone(), condition.clone());
            async move {
                let ranks = step.ranks(&condition, &row).await?;
                let holds = step.holds(&condition, &row, &ranks)?;
                Ok((holds == wanted).then_some(row))
            }
            .boxed()
        })
    }

    fn holds(&self, condition: &QueryComponent, row: &Found, ranks: &Ranks) -> Result<bool, Error> {
        let Some(record) = &row.record else { return Ok(false) };
        let holds = condition.holds(record.subject(self.store.meta_data()), ranks)?;
        sometimes!(holds.is_none(), "record query: a condition is unknown");
        Ok(holds == Some(true))
    }

    /// The record's rank in each index that the condition compares with.
    async fn ranks(&self, condition: &QueryComponent, row: &Found) -> Result<Ranks, Error> {
        let Some(record) = &row.record else { return Ok(Ranks::new()) };
        let of = |expression: KeyExpression| async move {
            let (_, ranks) = self.store.ranks_of(&expression, record).await?;
            Ok((expression, ranks))
        };
        try_join_all(condition.ranks().into_iter().cloned().map(of)).await
    }
}
