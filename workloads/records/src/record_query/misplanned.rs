//! Plans of planted bugs that are more than one step of the right plan changed.

use super::planted::Planted;
use foundationdb_tuple::Element;
use shaketable_record::{
    cursor::{BoxCursor, Continuation, CursorExt, Limits, Spent},
    error::Error,
    expression::{Evaluated, FanType, Function, KeyExpression},
    index::{IndexAt, IndexScan},
    metadata::{Index, RecordMetaData, index_types},
    query::{Bound, Bounds, Comparison, Operand, Plan, QueryComponent, RecordQuery, RecordQueryPlan},
    store::RecordStore,
    value::{IntoValue, Tuple, Value},
};
use shaketable_tx::Transaction;
use std::sync::{Arc, LazyLock};

/// The meta-data of the store, with the bug.
pub(super) fn meta_data(planted: Option<Planted>, right: &Arc<RecordMetaData>) -> Arc<RecordMetaData> {
    match planted {
        Some(Planted::LowerOfAscii) => {
            let mut builder = right.to_builder();
            builder.register_function("lower", LOWER_OF_ASCII.clone());
            builder.build().map_or_else(|_| right.clone(), Arc::new)
        }
        _ => right.clone(),
    }
}

static LOWER_OF_ASCII: LazyLock<Function> = LazyLock::new(|| {
    use shaketable_record::expression::Column;
    let lower = |column: &Column| match column {
        Column::Value(Element::String(text)) => Column::Value(text.to_ascii_lowercase().into_value()),
        other => other.clone(),
    };
    Function::new(1, move |key| Ok(vec![Evaluated::new(key.columns().iter().map(lower).collect())]))
});

/// The steps with which a plan finds the records of a query whose first column is one of several values, in
/// the order of this column and of others in the index, as if those between them had one value each.
pub(super) fn skipped<T: Transaction>(store: &RecordStore<T>, query: &RecordQuery) -> Option<Plan> {
    let (sort, filter) = (query.sort.as_ref()?.column_expressions(), query.filter.as_ref()?);
    let record_type = match &query.record_types[..] {
        [one] => store.meta_data().record_type(one)?,
        _ => return None,
    };
    let is_plain = |column: &KeyExpression| match column {
        KeyExpression::Field(field) => field.fan == FanType::None,
        KeyExpression::RecordType => true,
        _ => false,
    };
    let fits = |index: &&Arc<Index>| {
        let own = index.expression.column_expressions();
        let all: Vec<_> = own.iter().chain(&record_type.primary_key.column_expressions()).cloned().collect();
        let mut later = all.iter();
        index.kind == index_types::VALUE
            && store.meta_data().is_index_of(index, &record_type.name)
            && store.is_readable(&index.name) == Ok(true)
            && all.iter().all(is_plain)
            && all.first() == sort.first()
            && !all.starts_with(&sort)
            && sort.iter().all(|column| later.any(|other| other == column))
    };
    let index = store.meta_data().indexes().find(fits)?;
    let parts = match filter {
        QueryComponent::And(parts) => &parts[..],
        other => std::slice::from_ref(other),
    };
    let listed = |part: &QueryComponent| match part {
        QueryComponent::Compare { operand: Operand::Field(field), comparison: Comparison::In(values) }
            if sort.first() == Some(&field.clone().into()) =>
        {
            Some(values.clone())
        }
        _ => None,
    };
    let mut values: Vec<Value> = parts.iter().find_map(listed)?;
    values.retain(|value| !matches!(value, Element::Nil));
    values.sort_by_key(|value| Tuple::from(value.clone()).pack());
    values.dedup();
    if query.reverse {
        values.reverse();
    }
    let column = sort.first()?.to_string();
    let bounds = Bounds { equal: vec![(column.clone(), Bound::Each)], ..Bounds::default() };
    let scan =
        Plan::Index { index: index.name.clone(), by_rank: false, bounds, skip: 1, reverse: query.reverse };
    let joined = Plan::InJoin { column, values, inner: Box::new(scan) };
    let types = query.record_types.clone();
    let typed = Plan::Types { types, inner: Box::new(Plan::Load(Box::new(joined))) };
    Some(Plan::Filter { condition: filter.clone(), inner: Box::new(typed) })
}

/// Whether the first of the scans that are merged has records of the queried types only.
pub(super) fn first_is_of_types(meta_data: &RecordMetaData, query: &RecordQuery, inner: &Plan) -> bool {
    let Plan::Load(merged) = inner else { return false };
    let Plan::Union { children, .. } = &**merged else { return false };
    let Some(Plan::Index { index, .. }) = children.first() else { return false };
    let types = meta_data.index(index).and_then(|index| meta_data.types_of(index));
    types.is_some_and(|types| types.iter().all(|name| query.record_types.contains(name)))
}

/// The values which one comparison excludes and another one on the same side allows.
pub(super) fn ties(condition: &QueryComponent) -> Vec<Value> {
    let parts = match condition {
        QueryComponent::Or(parts) => return parts.iter().flat_map(ties).collect(),
        QueryComponent::And(parts) => parts,
        _ => return Vec::new(),
    };
    let leaf = |part: &QueryComponent| match part {
        QueryComponent::Compare { operand, comparison } => Some((operand.clone(), comparison.clone())),
        _ => None,
    };
    let leaves: Vec<_> = parts.iter().filter_map(leaf).collect();
    let mut found: Vec<_> = parts.iter().flat_map(ties).collect();
    for (operand, comparison) in &leaves {
        let (value, allows) = match comparison {
            Comparison::Greater(value) => (value, Comparison::GreaterOrEqual(value.clone())),
            Comparison::Less(value) => (value, Comparison::LessOrEqual(value.clone())),
            _ => continue,
        };
        if leaves.iter().any(|(of, other)| of == operand && *other == allows) {
            found.push(value.clone());
        }
    }
    found
}

/// The primary keys of the entries of a plan that loads those of one scan, whatever becomes of the index.
pub(super) fn unwatched<T: Transaction>(
    store: &RecordStore<T>,
    plan: &RecordQueryPlan,
) -> Result<Option<BoxCursor<Tuple>>, Error> {
    let Plan::Load(inner) = plan.root() else { return Ok(None) };
    let Plan::Index { index, by_rank: false, bounds, reverse, .. } = &**inner else { return Ok(None) };
    let at = IndexAt { store, index: store.index(index)? };
    let (Some(range), Some(maintainer)) = (bounds.tuples(None), store.registry().get(&at.index.kind)) else {
        return Ok(None);
    };
    let spent = Spent::new(Limits::default());
    let entries = maintainer.scan(at, IndexScan::ByValue, range, *reverse, Continuation::Start, &spent)?;
    Ok(Some(entries.map(|entry| entry.primary_key)))
}
