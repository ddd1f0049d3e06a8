//! How the columns of an index match what a query asks for.

use super::{
    bounds::{Bound, Bounds, ValueRange},
    columns::{Column, ColumnKey, Constants, same},
    comparison::Comparison,
    normal::{Conjunct, Leaf},
};
use crate::{metadata::Index, value::Value};
use foundationdb_tuple::Element;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// How many scans may be merged, and how many branches an `or` may have, together with those inside them, to
/// be planned one by one.
pub(super) const MOST_BRANCHES: usize = 64;

/// Something that can be scanned: an index in one of its orders, or the records themselves.
pub(super) struct Candidate {
    /// The index; the records if there is none.
    pub index: Option<Arc<Index>>,
    /// Whether it is scanned by rank.
    pub by_rank: bool,
    /// The columns by which a scan can be bounded.
    pub columns: Vec<Column>,
    /// The columns of the entries' keys.
    pub key: Vec<Column>,
    /// The columns of the primary key, if they are the same for all queried types.
    pub primary_key: Option<Vec<Column>>,
    /// Whether records of other types than the queried ones are in it.
    pub other_types: bool,
    /// Whether it does not show what the transaction itself has written.
    pub blind: bool,
}

/// How an order that is asked for comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// In the order of the scan.
    Scan,
    /// The scans for the values of the bound that is `each`, one after another.
    InTurn,
    /// The scans for the values of the bound that is `each`, merged.
    Merged,
}

/// A candidate that can be used.
pub(super) struct Match<'a> {
    pub candidate: &'a Candidate,
    pub bounds: Bounds,
    /// The values of the bound that is `each`.
    pub each: Vec<Value>,
    /// The conjuncts that hold for exactly the records that are found, by position.
    pub exact: BTreeSet<usize>,
    /// The columns of the key after those that have one value: the rows are ordered by these, then by primary
    /// key.
    pub remaining: Vec<Column>,
    /// Whether a record may be found more than once.
    pub duplicates: bool,
    pub order: Order,
}

impl Match<'_> {
    /// The number of columns that have one value.
    pub fn equal(&self) -> usize {
        self.bounds.equal.len()
    }

    /// How many of the first columns of the key have one value: the rows are ordered by the others.
    pub fn skip(&self) -> usize {
        self.candidate.key.len() - self.remaining.len()
    }

    /// Whether the rows are strictly ordered by the remaining columns and the primary key, so that they can
    /// be merged with others that are.
    pub fn can_merge(&self) -> bool {
        self.each.is_empty() && !self.duplicates && !self.remaining.iter().any(Column::fans_out)
    }
}

/// Matches a candidate with what must hold and with an order, `None` if the records that are found with it
/// would not be all, or not in the order. With `each` a comparison with a list may bound a column; with
/// `once` duplicates will be removed.
pub(super) fn match_candidate<'a>(
    candidate: &'a Candidate,
    conjuncts: &[Conjunct],
    sort: &[Column],
    constants: &Constants,
    each: bool,
    once: bool,
) -> Option<Match<'a>> {
    // Sorting by an expression that fans out has a record once for each of its keys: nothing may choose among
    // them.
    let sort_fans = sort.iter().any(Column::fans_out);
    let mut matching = Matching { conjuncts, fans: BTreeMap::new(), taken: BTreeSet::new(), each: None };
    let mut bounds = Bounds { of_ranks: candidate.by_rank, ..Bounds::default() };
    for column in &candidate.columns {
        if sort_fans && column.fans_out() {
            break;
        }
        if let Some(bound) = matching.equal(column, each) {
            bounds.equal.push((column.to_string(), bound));
        } else {
            let range = matching.range(column);
            bounds.range = range.map(|range| (column.to_string(), range));
            break;
        }
    }
    let equal = bounds.equal.len();
    let remaining = match candidate.by_rank {
        true => candidate.key[equal.min(candidate.columns.len() - 1)..].to_vec(),
        false => candidate.key[equal.min(candidate.key.len())..].to_vec(),
    };
    let fans: BTreeSet<usize> = candidate.key.iter().flat_map(|column| &column.fans).copied().collect();
    let varying = constants.without(&remaining);
    let sorted = varying.len().min(if sort_fans { sort.len() } else { 0 });
    if !same(&varying[..sorted], &sort[..sorted]) {
        return None;
    }
    let sorted_fans: BTreeSet<usize> =
        varying[..sorted].iter().flat_map(|column| &column.fans).copied().collect();
    // A record without elements has no entry, unless a condition asks for an element.
    let complete = fans.iter().all(|fan| matching.fans.contains_key(fan) || sorted_fans.contains(fan));
    // With duplicates, a record is there once for each of its keys: further columns would give it more.
    let more = !once && sort_fans && varying[sorted..].iter().any(Column::fans_out);
    if !complete || more {
        return None;
    }
    let bound_to_one =
        |position: usize| bounds.equal.get(position).is_some_and(|(_, bound)| matches!(bound, Bound::To(_)));
    let several = |(position, column): (usize, &Column)| column.fans_out() && !bound_to_one(position);
    let each_fans = matching.each.as_ref().is_some_and(|(column, _)| column.fans_out());
    let duplicates = candidate.key.iter().enumerate().any(several);
    let order = order_of(candidate, &matching, &remaining, equal, sort, constants)?;
    // Merging finds a record that is there for several values at the same place.
    let only_each = || {
        let other = |(position, column): (usize, &Column)| {
            several((position, column)) && !matches!(bounds.equal.get(position), Some((_, Bound::Each)))
        };
        !candidate.key.iter().enumerate().any(other)
    };
    let duplicates = match order {
        Order::Merged if each_fans && only_each() => false,
        _ => duplicates,
    };
    let exact = matching.exact();
    let each = matching.each.map(|(_, values)| values).unwrap_or_default();
    Some(Match { candidate, bounds, each, exact, remaining, duplicates, order })
}

/// How the order comes about, if it does.
fn order_of(
    candidate: &Candidate,
    matching: &Matching<'_>,
    remaining: &[Column],
    equal: usize,
    sort: &[Column],
    constants: &Constants,
) -> Option<Order> {
    let each = matching.each.as_ref().map(|(column, _)| column);
    let in_turn = each.map(|_| Order::InTurn);
    if sort.is_empty() {
        return Some(in_turn.unwrap_or(Order::Scan));
    }
    let bound_in_primary_key = equal.saturating_sub(candidate.key.len());
    let rest: Vec<Column> =
        candidate.primary_key.iter().flatten().skip(bound_in_primary_key).cloned().collect();
    let rest = candidate.primary_key.is_some().then_some(&rest[..]);
    match each {
        None => gives(remaining, rest, sort, constants).then_some(Order::Scan),
        Some(each) if each.key == sort[0].key && gives(remaining, rest, &sort[1..], constants) => in_turn,
        // Scans are merged by the whole primary key.
        Some(_) if bound_in_primary_key > 0 || remaining.iter().any(Column::fans_out) => None,
        Some(_) if matching.values() > MOST_BRANCHES => None,
        Some(_) => gives(remaining, rest, sort, constants).then_some(Order::Merged),
    }
}

/// Whether rows that are ordered by these columns, and then by those of the primary key, are in the order of
/// `sort`, which has no constants. The primary key is `None` if its columns differ from type to type.
pub(super) fn gives(
    order: &[Column],
    primary_key: Option<&[Column]>,
    sort: &[Column],
    constants: &Constants,
) -> bool {
    let all = constants.without(&[order, primary_key.unwrap_or_default()].concat());
    match sort.len() <= all.len() {
        true => same(&all[..sort.len()], sort),
        // After the whole primary key, which no two records share, there is no order left, but a record may
        // have to be there several times.
        false => {
            let (first, rest) = sort.split_at(all.len());
            primary_key.is_some() && same(&all, first) && !rest.iter().any(Column::fans_out)
        }
    }
}

/// The comparisons that have been taken for the columns of an index.
struct Matching<'a> {
    conjuncts: &'a [Conjunct],
    /// The element that the conditions ask for, by the number of the fan in the index.
    fans: BTreeMap<usize, usize>,
    /// Conjuncts and their leaves, by position.
    taken: BTreeSet<(usize, usize)>,
    each: Option<(Column, Vec<Value>)>,
}

impl Matching<'_> {
    /// How many values the column has that is bound to each of a list.
    fn values(&self) -> usize {
        self.each.as_ref().map_or(0, |(_, values)| values.len())
    }

    /// The leaves that are about this column, and about the same elements as what has been taken.
    fn leaves(&self, column: &Column) -> Vec<((usize, usize), Leaf)> {
        let mut found = Vec::new();
        for (i, conjunct) in self.conjuncts.iter().enumerate() {
            for (j, leaf) in conjunct.leaves.iter().enumerate() {
                let fans = || column.fans.iter().zip(&leaf.column.fans);
                let about = leaf.column.key == column.key
                    && leaf.column.fans.len() == column.fans.len()
                    && fans().all(|(fan, element)| self.fans.get(fan).is_none_or(|known| known == element));
                if about && !self.taken.contains(&(i, j)) {
                    found.push(((i, j), leaf.clone()));
                }
            }
        }
        found
    }

    fn take(&mut self, at: (usize, usize), column: &Column, leaf: &Leaf) {
        self.taken.insert(at);
        self.fans.extend(column.fans.iter().copied().zip(leaf.column.fans.iter().copied()));
    }

    fn equal(&mut self, column: &Column, each: bool) -> Option<Bound> {
        let of_rank = matches!(column.key, ColumnKey::Rank(_));
        let leaves = self.leaves(column);
        for (at, leaf) in &leaves {
            let value = match &leaf.comparison {
                Comparison::Equals(value) => value.clone(),
                Comparison::IsNull if !of_rank => Element::Nil,
                _ => continue,
            };
            self.take(*at, column, leaf);
            return Some(Bound::To(value));
        }
        for (at, leaf) in &leaves {
            if let (Comparison::In(values), true, None) = (&leaf.comparison, each, &self.each) {
                self.each = Some((column.clone(), values.clone()));
                self.take(*at, column, leaf);
                return Some(Bound::Each);
            }
        }
        None
    }

    fn range(&mut self, column: &Column) -> Option<ValueRange> {
        let mut range = ValueRange::new();
        let mut any = false;
        for (at, leaf) in self.leaves(column) {
            // Two conditions on a repeated field may be true for different elements.
            let same_element = leaf.column.fans.iter().zip(&column.fans);
            let same_element = same_element
                .into_iter()
                .all(|(element, fan)| self.fans.get(fan).is_none_or(|known| known == element));
            if same_element && range.narrow(&leaf.comparison) {
                self.take(at, column, &leaf);
                any = true;
            }
        }
        any.then_some(range)
    }

    /// The conjuncts all of whose leaves have been taken, for the same elements.
    fn exact(&self) -> BTreeSet<usize> {
        let exact = |(i, conjunct): (usize, &Conjunct)| {
            let all = (0..conjunct.leaves.len()).all(|j| self.taken.contains(&(i, j)));
            let elements = conjunct.leaves.iter().flat_map(|leaf| &leaf.column.fans);
            let once = elements
                .into_iter()
                .all(|element| self.fans.values().filter(|known| *known == element).count() == 1);
            (conjunct.complete && all && once && !conjunct.leaves.is_empty()).then_some(i)
        };
        self.conjuncts.iter().enumerate().filter_map(exact).collect()
    }
}
