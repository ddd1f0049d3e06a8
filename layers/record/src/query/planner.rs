//! The planner: which steps find the records of a query.
//!
//! Of the indexes that have all the records, in the order that is asked for, one is chosen by these rules,
//! the first that tells two apart:
//!
//! 0. what the transaction itself has written is found: not by an index of type `version` in which the
//!    transaction may get entries before the plan is executed, if the query is not about versions; if it has
//!    entries already, the index is used only for a query that compares with versions or is sorted by them,
//!    even if no other has the order;
//! 1. more first columns that are bound to one value each. The record type is not counted: it bounds a scan
//!    to no less than all records of the type;
//! 2. none of them bound to each value of a list;
//! 3. a range on the next column;
//! 4. no records to load: the records themselves are scanned, or the entries have all that is required;
//! 5. all columns of a unique index, or of the primary key, are bound to one value;
//! 6. fewer conditions that have to be checked on each record;
//! 7. the name.
//!
//! Then, if other indexes bind conditions that this one leaves, and are ordered alike, their entries are
//! intersected before records are loaded. If the best index would be scanned as a whole, and the condition
//! has an `or` all of whose branches bind some index, the branches are planned on their own: their rows are
//! merged if they are ordered alike, and otherwise, when no order is asked for, read one branch after
//! another.

use super::{
    bounds::Bound,
    candidates::{candidates, has_rank_index},
    columns::{Column, Constants, columns},
    comparison::Comparison,
    component::{Operand, QueryComponent},
    covering::covering,
    error::QueryError,
    matching::{Candidate, MOST_BRANCHES, Match, Order, match_candidate},
    normal::{Conjunct, and, conjuncts, normal, nothing},
    plan::{Plan, RecordQueryPlan},
    record_query::RecordQuery,
    validate::validate,
};
use crate::{
    expression::KeyExpression,
    metadata::{Index, RecordMetaData, index_types},
    value::Value,
};
use foundationdb_tuple::Element;
use std::cmp::Reverse;

/// Plans a query, with the indexes for which `readable` is true: those that have all records. Fails if the
/// query does not fit the meta-data, or if no index has the order that is asked for.
pub fn plan_query(
    query: &RecordQuery,
    meta_data: &RecordMetaData,
    readable: &dyn Fn(&Index) -> bool,
) -> Result<RecordQueryPlan, QueryError> {
    plan_in(query, meta_data, readable, &|_| false)
}

/// As [`plan_query`], in a transaction that has entries in the indexes of versions for which `hides` is true:
/// scans of these indexes do not find them.
pub(super) fn plan_in(
    query: &RecordQuery,
    meta_data: &RecordMetaData,
    readable: &dyn Fn(&Index) -> bool,
    hides: &dyn Fn(&Index) -> bool,
) -> Result<RecordQueryPlan, QueryError> {
    let valid = validate(query, meta_data)?;
    let filter = valid.filter.as_ref().map_or_else(|| QueryComponent::And(Vec::new()), normal);
    let by_version = is_by_version(query, &filter);
    let blind = |index: &Index| {
        index.kind == index_types::VERSION && (!(by_version || tells_versions(query)) || hides(index))
    };
    // Refusing an order is better than leaving out what the transaction has written.
    let usable = |index: &Index| {
        readable(index) && (by_version || index.kind != index_types::VERSION || !hides(index))
    };
    let candidates = candidates(meta_data, &valid.types, &usable, &blind);
    let missing = |rank: &&KeyExpression| !has_rank_index(&candidates, rank);
    if let Some(rank) = filter.ranks().into_iter().find(missing) {
        return Err(QueryError::NoRankIndex(rank.to_string()));
    }
    let names = valid.types.iter().map(|found| found.name.clone()).collect();
    let one_type = match &valid.types[..] {
        [one] => Some(one.key.clone()),
        _ => None,
    };
    let mut planner = Planner { query, candidates, types: names, one_type, constants: Constants::default() };
    let constants = planner.conjuncts(&filter);
    planner.constants = Constants(constants.iter().filter_map(Conjunct::constant).cloned().collect());
    Ok(RecordQueryPlan { root: planner.plan(&filter)? })
}

/// Whether a query compares with versions or is sorted by them: a record without a version is not among its
/// rows.
fn is_by_version(query: &RecordQuery, filter: &QueryComponent) -> bool {
    filter.compares_versions() || query.sort.as_ref().is_some_and(|sort| sort.version_columns() > 0)
}

/// Whether a query wants to know versions.
fn tells_versions(query: &RecordQuery) -> bool {
    query.required_results.iter().flatten().any(|expression| expression.version_columns() > 0)
}

pub(super) struct Planner<'a> {
    pub query: &'a RecordQuery,
    pub candidates: Vec<Candidate>,
    /// The names of the queried types.
    pub types: Vec<String>,
    /// The key of the only queried type.
    pub one_type: Option<Value>,
    /// Those of the whole condition: in the branches of an `or` more columns have one value, each another.
    pub constants: Constants,
}

/// A way to find the records for which a condition is true.
pub(super) struct Access {
    /// Its rows are entries unless `loaded`.
    pub plan: Plan,
    pub loaded: bool,
    /// What remains to be checked on each record.
    pub residual: Vec<QueryComponent>,
    /// Whether records of types that are not queried may be among them.
    pub other_types: bool,
    /// Whether a record may be found more than once.
    pub duplicates: bool,
    /// The columns, before the primary key, by which the rows are strictly ordered, if they are.
    pub order: Option<Vec<Column>>,
    /// Whether some column is bound: not everything is scanned.
    pub bounded: bool,
    /// The columns of the entries, if they have all that is required.
    pub covering: Option<Vec<Option<KeyExpression>>>,
}

impl Planner<'_> {
    fn plan(&self, filter: &QueryComponent) -> Result<Plan, QueryError> {
        if *filter == nothing() {
            return Ok(Plan::Nothing);
        }
        let sort = self.constants.without(&self.query.sort.as_ref().map(columns).unwrap_or_default());
        let mut branches = MOST_BRANCHES;
        match self.access(filter, &sort, &mut branches) {
            Some(access) => Ok(self.finish(access, true)),
            None => Err(QueryError::NoOrder(
                self.query.sort.as_ref().map(ToString::to_string).unwrap_or_default(),
            )),
        }
    }

    /// What must hold, with the type of the records last if it is only one.
    fn conjuncts(&self, filter: &QueryComponent) -> Vec<Conjunct> {
        let mut all = conjuncts(filter);
        if let Some(key) = &self.one_type {
            let comparison = Comparison::Equals(key.clone());
            all.extend(conjuncts(&QueryComponent::Compare { operand: Operand::RecordType, comparison }));
        }
        all
    }

    pub fn access(&self, filter: &QueryComponent, sort: &[Column], branches: &mut usize) -> Option<Access> {
        let single = self.single(filter, sort);
        if single.as_ref().is_some_and(|single| single.bounded) {
            return single;
        }
        self.by_branches(filter, sort, branches).or(single)
    }

    /// The best index, with those that are intersected with it.
    fn single(&self, filter: &QueryComponent, sort: &[Column]) -> Option<Access> {
        let conjuncts = self.conjuncts(filter);
        let once = self.query.remove_duplicates;
        let found = self.candidates.iter().flat_map(|candidate| {
            let matched = |each| match_candidate(candidate, &conjuncts, sort, &self.constants, each, once);
            [true, false].into_iter().filter_map(matched)
        });
        let mut found: Vec<_> = found.map(|found| (self.access_of(&found, &conjuncts), found)).collect();
        found.sort_by_cached_key(|(access, found)| Reverse(self.score(access, found, &conjuncts)));
        let mut found = found.into_iter();
        let (best, chosen) = found.next()?;
        let others: Vec<_> = found.map(|(_, found)| found).collect();
        Some(self.intersected(chosen, &others, &conjuncts).unwrap_or(best))
    }

    /// Whether the type of the records is one of the columns that are bound.
    fn binds_type(&self, found: &Match<'_>, conjuncts: &[Conjunct]) -> bool {
        self.one_type.is_some() && found.exact.contains(&(conjuncts.len() - 1))
    }

    /// The greater, the better: the rules of this module's description.
    fn score(&self, access: &Access, found: &Match<'_>, conjuncts: &[Conjunct]) -> Score {
        let name = found.candidate.index.as_ref().map(|index| index.name.clone()).unwrap_or_default();
        (
            !found.candidate.blind,
            found.equal() - usize::from(self.binds_type(found, conjuncts)),
            found.each.is_empty(),
            found.bounds.range.is_some(),
            access.loaded || access.covering.is_some(),
            is_unique(found),
            Reverse(access.residual.len() + usize::from(access.other_types)),
            Reverse((name, found.candidate.by_rank)),
        )
    }

    /// The way to find records by one index.
    fn access_of(&self, found: &Match<'_>, conjuncts: &[Conjunct]) -> Access {
        let residual = self.residual(conjuncts, |i| found.exact.contains(&i));
        let of_type = self.binds_type(found, conjuncts);
        let required = self.query.required_results.as_ref().filter(|_| {
            found.candidate.index.is_some() && !found.candidate.other_types && self.one_type.is_some()
        });
        let covering = required.and_then(|required| covering(found.candidate, required, &residual));
        let merged = found.order == Order::Merged && !found.duplicates;
        Access {
            plan: self.scan(found),
            loaded: found.candidate.index.is_none(),
            residual,
            other_types: found.candidate.other_types && !of_type,
            duplicates: found.duplicates,
            order: (merged || found.can_merge()).then(|| found.remaining.clone()),
            bounded: found.bounds.range.is_some() || found.equal() > usize::from(of_type),
            covering,
        }
    }

    /// The conjuncts that are not satisfied, without that on the record's type.
    pub fn residual(&self, conjuncts: &[Conjunct], satisfied: impl Fn(usize) -> bool) -> Vec<QueryComponent> {
        let asked = conjuncts.len() - usize::from(self.one_type.is_some());
        let left = conjuncts[..asked].iter().enumerate().filter(|(i, _)| !satisfied(*i));
        left.map(|(_, conjunct)| conjunct.component.clone()).collect()
    }

    pub fn scan(&self, found: &Match<'_>) -> Plan {
        let reverse = self.query.reverse;
        let scan = |each: Option<&Value>| {
            let mut bounds = found.bounds.clone();
            for (_, bound) in &mut bounds.equal {
                if let (Bound::Each, Some(value)) = (&bound, each) {
                    *bound = Bound::To(value.clone());
                }
            }
            match &found.candidate.index {
                None => Plan::Records { bounds, reverse },
                Some(index) => Plan::Index {
                    index: index.name.clone(),
                    by_rank: found.candidate.by_rank,
                    bounds,
                    skip: found.skip(),
                    reverse,
                },
            }
        };
        match found.order {
            Order::Scan => scan(None),
            Order::InTurn => {
                let mut values = found.each.clone();
                if reverse {
                    values.reverse();
                }
                let each = |(_, bound): &&(String, Bound)| matches!(bound, Bound::Each);
                let column = found.bounds.equal.iter().find(each).map(|(name, _)| name.clone());
                Plan::InJoin { column: column.unwrap_or_default(), values, inner: Box::new(scan(None)) }
            }
            Order::Merged => Plan::Union {
                children: found.each.iter().map(|value| scan(Some(value))).collect(),
                order: names(&found.remaining),
                reverse,
            },
        }
    }

    /// The records of an access. Duplicates are removed at the top only.
    pub fn finish(&self, access: Access, top: bool) -> Plan {
        let mut plan = access.plan;
        if access.duplicates && self.query.remove_duplicates && top {
            plan = Plan::Distinct(Box::new(plan));
        }
        match (access.loaded, access.covering) {
            (true, _) => {}
            (false, None) => plan = Plan::Load(Box::new(plan)),
            (false, Some(columns)) => {
                let record_type = self.types.first().cloned().unwrap_or_default();
                plan = Plan::Partial { record_type, columns, inner: Box::new(plan) };
            }
        }
        if access.other_types {
            plan = Plan::Types { types: self.types.clone(), inner: Box::new(plan) };
        }
        match access.residual.is_empty() {
            true => plan,
            false => Plan::Filter { condition: and(access.residual), inner: Box::new(plan) },
        }
    }
}

/// Whether at most one record is found: but for nulls.
pub(super) fn is_unique(found: &Match<'_>) -> bool {
    let candidate = found.candidate;
    let (unique, columns) = match &candidate.index {
        None => (true, candidate.columns.len()),
        Some(index) => (index.unique && !candidate.by_rank, candidate.key.len()),
    };
    let one =
        |(_, bound): &(String, Bound)| matches!(bound, Bound::To(value) if !matches!(value, Element::Nil));
    unique && columns > 0 && found.equal() >= columns && found.bounds.equal.iter().all(one)
}

type Score = (bool, usize, bool, bool, bool, bool, Reverse<usize>, Reverse<(String, bool)>);

/// The columns by which rows are ordered.
pub(super) fn names(order: &[Column]) -> String {
    let names = order.iter().map(ToString::to_string).chain(["primary key".into()]);
    names.collect::<Vec<_>>().join(", ")
}
