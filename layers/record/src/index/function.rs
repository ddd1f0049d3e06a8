//! Functions that an index evaluates: of a record, and of the groups of an index of aggregates.

use super::{IndexAt, aggregate::Aggregate, groups::GroupCursor, rank::rank_of};
use crate::{
    cursor::{Continuation, Cursor, Limits, Next, Spent, TupleRange},
    error::Error,
    expression::{Evaluated, KeyExpression},
    metadata::{Index, index_types},
    query::is_ranked_by,
    store::{RecordStore, StoredRecord},
    value::Tuple,
};
use futures::future::try_join_all;
use shaketable_tx::{
    Isolation, Transaction,
    limits::{READ_LIMIT, TooLarge},
};
use std::{collections::BTreeSet, sync::Arc};

/// A function of a record that an index evaluates.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordFunction {
    /// The rank of the record by an index of type [`rank`](index_types::RANK) with this expression.
    Rank(KeyExpression),
}

/// The rank of a record among the scores of its group; `expression` is that of an index of ranks.
pub fn rank(expression: impl Into<KeyExpression>) -> RecordFunction {
    RecordFunction::Rank(expression.into())
}

/// An aggregate that an index has.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateFunction {
    /// What is computed.
    pub aggregate: Aggregate,
    /// Of what: the grouped columns are those of the index, and its group columns begin as those of the index
    /// do.
    pub operand: KeyExpression,
    /// The index to use; any that fits if none is given.
    pub index: Option<String>,
}

impl AggregateFunction {
    /// An aggregate, from any index that has it.
    pub fn new(aggregate: Aggregate, operand: impl Into<KeyExpression>) -> AggregateFunction {
        AggregateFunction { aggregate, operand: operand.into(), index: None }
    }

    /// This aggregate, from this index.
    pub fn from_index(self, index: impl Into<String>) -> AggregateFunction {
        AggregateFunction { index: Some(index.into()), ..self }
    }

    fn fits(&self, index: &Index) -> bool {
        let (own, columns) = split(&self.operand);
        let (group, grouped) = split(&index.expression);
        index.kind == self.aggregate.kind()
            && self.index.as_ref().is_none_or(|name| *name == index.name)
            && group.starts_with(&own)
            && columns == grouped
    }
}

/// The columns of the group, and those that are grouped.
fn split(expression: &KeyExpression) -> (Vec<KeyExpression>, Vec<KeyExpression>) {
    let mut group = expression.column_expressions();
    let grouped = group.split_off(expression.grouping_columns().min(group.len()));
    (group, grouped)
}

impl<T: Transaction> RecordStore<T> {
    /// Evaluates a function of a record, which need not be as it is stored. The rank is `None` if the index
    /// has no key for the record, or does not have its score. Fails with [`Error::Query`] if no index has the
    /// function, and with [`Error::IndexState`] if none of those that have it is readable, or if the record
    /// has several scores.
    pub async fn evaluate_record_function(
        &self,
        function: &RecordFunction,
        record: &StoredRecord,
    ) -> Result<Option<i64>, Error> {
        let RecordFunction::Rank(expression) = function;
        let (index, ranks) = self.ranks_of(expression, record).await?;
        match ranks[..] {
            [] => Ok(None),
            [rank] => Ok(rank),
            _ => {
                let reason = format!("record {} has {} scores", record.primary_key, ranks.len());
                Err(Error::IndexState { index: index.name.clone(), reason })
            }
        }
    }

    /// The rank of each score of a record in the index of ranks with this expression, `None` for a score that
    /// the index does not have, and the index. Fails as
    /// [`evaluate_record_function`](RecordStore::evaluate_record_function) does if there is no such index.
    pub(crate) async fn ranks_of(
        &self,
        expression: &KeyExpression,
        record: &StoredRecord,
    ) -> Result<(Arc<Index>, Vec<Option<i64>>), Error> {
        let is_of = |index: &Index| {
            index.kind == index_types::RANK
                && self.meta_data().is_index_of(index, &record.record_type.name)
                && is_ranked_by(index, expression)
        };
        // The index is chosen in the turn that reads it: a change of its state may have the turn before.
        let store = self.reading().await;
        let Some(index) = store.readable_index(is_of)? else {
            let unreadable = self.meta_data().indexes().find(|index| is_of(index)).ok_or_else(|| {
                Error::Query(format!("no index ranks {} by {expression}", record.record_type.name))
            })?;
            let reason = format!("it is {}", store.index_state(&unreadable.name)?);
            return Err(Error::IndexState { index: unreadable.name.clone(), reason });
        };
        let at = IndexAt { store: &store, index: &index };
        let keys = at.keys(record)?;
        let rank = |key: Evaluated| async move { rank_of(at, &key.tuple(), Isolation::Serializable).await };
        let ranks = try_join_all(keys.into_iter().map(rank)).await?;
        Ok((index, ranks))
    }

    /// Evaluates an aggregate over the records of these types (of all types if there are none), in all groups
    /// that begin with `group`. A count or a sum of no record is 0, the others are `None`. Fails with
    /// [`Error::Query`] if no readable index on just these types has it, and with [`TooLarge::Read`] if there
    /// are too many groups.
    pub async fn evaluate_aggregate(
        &self,
        record_types: &[&str],
        function: &AggregateFunction,
        group: &Tuple,
    ) -> Result<Option<Tuple>, Error> {
        let is_of = |index: &Index| function.fits(index) && self.is_on_just(index, record_types);
        // As for ranks.
        let store = self.reading().await;
        let index = store.readable_index(is_of)?.ok_or_else(|| {
            let (kind, operand) = (function.aggregate.kind(), &function.operand);
            Error::Query(format!("no readable index of type {kind} has {operand} of just these records"))
        })?;
        if group.len() > function.operand.grouping_columns() {
            return Err(Error::Query(format!(
                "{group} has more columns than the groups of {}",
                function.operand
            )));
        }
        let at = IndexAt { store: &store, index: &index };
        let spent = Spent::new(Limits { bytes: Some(READ_LIMIT), ..Limits::default() });
        let (range, from) = (TupleRange::all_of(group.clone()), Continuation::Start);
        let mut rows = GroupCursor::scan(at, function.aggregate, &range, false, from, &spent)?;
        let mut result = function.aggregate.of_nothing();
        loop {
            match rows.next().await? {
                Next::Row(entry, _) => result = Some(function.aggregate.combine(result, entry.value)),
                Next::Stopped(_, Continuation::End) => return Ok(result),
                Next::Stopped(..) => return Err(TooLarge::Read { limit: READ_LIMIT }.into()),
            }
        }
    }

    /// A readable index, the first by name.
    fn readable_index(&self, is_of: impl Fn(&Index) -> bool) -> Result<Option<Arc<Index>>, Error> {
        for index in self.meta_data().indexes().filter(|index| is_of(index)) {
            if self.is_readable(&index.name)? {
                return Ok(Some(index.clone()));
            }
        }
        Ok(None)
    }

    /// Whether the index is on all of these types of records, all types if there are none, and on no others.
    fn is_on_just(&self, index: &Index, record_types: &[&str]) -> bool {
        let all = || self.meta_data().record_types().map(|record_type| record_type.name.as_str());
        let own: BTreeSet<&str> = all().filter(|name| self.meta_data().is_index_of(index, name)).collect();
        match record_types {
            [] => own.len() == all().count(),
            types => own == types.iter().copied().collect(),
        }
    }
}
