//! What can be scanned for a query: the records, and the indexes that have all records of the queried types.

use super::{
    columns::{Column, columns, rank_column, same},
    matching::Candidate,
};
use crate::{
    expression::KeyExpression,
    metadata::{Index, RecordMetaData, RecordType, index_types},
};
use std::sync::Arc;

/// The candidates for queries of these types, with the indexes that `readable` allows. Other types of indexes
/// than those of values are never used, those that an application maintains among them; nor is an index that
/// is not on all queried types. `blind` says which indexes do not show what the transaction has written.
pub(super) fn candidates(
    meta_data: &RecordMetaData,
    types: &[&Arc<RecordType>],
    readable: &dyn Fn(&Index) -> bool,
    blind: &dyn Fn(&Index) -> bool,
) -> Vec<Candidate> {
    let primary_key = common_primary_key(types);
    let all_types = meta_data.record_types().count();
    let records = Candidate {
        index: None,
        by_rank: false,
        columns: primary_key.clone().unwrap_or_default(),
        key: Vec::new(),
        primary_key: primary_key.clone(),
        other_types: types.len() < all_types,
        blind: false,
    };
    let mut found = vec![records];
    for index in meta_data.indexes() {
        let on_all = types.iter().all(|found| meta_data.is_index_of(index, &found.name));
        if !on_all || !has_values(index) || !readable(index) {
            continue;
        }
        let key = columns(&index.expression);
        let others = meta_data.types_of(index).map_or(all_types, <[String]>::len);
        let candidate = |by_rank, columns| Candidate {
            index: Some(index.clone()),
            by_rank,
            columns,
            key: key.clone(),
            primary_key: primary_key.clone(),
            other_types: types.len() < others,
            blind: blind(index),
        };
        found.push(candidate(false, key.iter().chain(primary_key.iter().flatten()).cloned().collect()));
        if index.kind == index_types::RANK {
            let groups = index.expression.grouping_columns().min(key.len());
            let rank = rank_column(&index.expression);
            found.push(candidate(true, key[..groups].iter().cloned().chain([rank]).collect()));
        }
    }
    found
}

/// Whether the entries of such an index are those of the records: one for each of their keys.
fn has_values(index: &Index) -> bool {
    matches!(&*index.kind, index_types::VALUE | index_types::RANK | index_types::VERSION)
}

/// The columns of the primary key, if they are the same for all of the types.
fn common_primary_key(types: &[&Arc<RecordType>]) -> Option<Vec<Column>> {
    let of = |found: &Arc<RecordType>| columns(&found.primary_key);
    let first = of(types.first()?);
    types.iter().all(|found| same(&of(found), &first)).then(|| first.into_iter().map(apart).collect())
}

/// The column with numbers for its fans that no column of an index has.
fn apart(column: Column) -> Column {
    let fans = column.fans.iter().map(|fan| usize::MAX - fan).collect();
    Column { fans, ..column }
}

/// The rank index with this expression, if it can be used.
pub(super) fn has_rank_index(candidates: &[Candidate], expression: &KeyExpression) -> bool {
    let key = rank_column(expression).key;
    candidates.iter().any(|one| one.by_rank && one.columns.last().is_some_and(|column| column.key == key))
}
