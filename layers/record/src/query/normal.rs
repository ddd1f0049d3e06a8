//! The normal form of a condition: negations at the comparisons, and what must hold for every record that is
//! found.

use super::{
    columns::{Column, ColumnKey, rank_column},
    comparison::{Comparison, compare},
    component::{Operand, QueryComponent},
};
use crate::expression::{Field, KeyExpression, field};
use std::cmp::Ordering;

/// A condition that is true for the same records: nested lists of one kind are one list, negations are as far
/// inside as they can be, conditions on a message that is not repeated are about one of its fields each, and
/// what cannot be true is `Or([])`.
pub(super) fn normal(component: &QueryComponent) -> QueryComponent {
    positive(component, false)
}

fn positive(component: &QueryComponent, negate: bool) -> QueryComponent {
    match component {
        QueryComponent::And(parts) | QueryComponent::Or(parts) => {
            let parts = parts.iter().map(|part| positive(part, negate));
            match matches!(component, QueryComponent::And(_)) != negate {
                true => and(parts),
                false => or(parts),
            }
        }
        QueryComponent::Not(inner) => positive(inner, !negate),
        QueryComponent::Matches { field, component } => match positive(component, negate) {
            QueryComponent::And(parts) => and(parts.into_iter().map(|part| within(field, part))),
            QueryComponent::Or(parts) => or(parts.into_iter().map(|part| within(field, part))),
            inner => within(field, inner),
        },
        QueryComponent::Compare { operand, comparison } => match negate {
            true => not_compared(operand, comparison),
            false => compared(operand, comparison),
        },
        QueryComponent::OneMatches { .. } if negate => QueryComponent::Not(Box::new(component.clone())),
        QueryComponent::OneMatches { field, empty, component } => match positive(component, false) {
            inner if inner == nothing() => inner,
            inner => {
                QueryComponent::OneMatches { field: field.clone(), empty: *empty, component: Box::new(inner) }
            }
        },
    }
}

/// What is true for no record.
pub(super) fn nothing() -> QueryComponent {
    QueryComponent::Or(Vec::new())
}

fn within(field: &str, component: QueryComponent) -> QueryComponent {
    QueryComponent::Matches { field: field.into(), component: Box::new(component) }
}

/// All parts, in one list; a list of one is that one.
pub(super) fn and(parts: impl IntoIterator<Item = QueryComponent>) -> QueryComponent {
    let mut all = Vec::new();
    for part in parts {
        match part {
            QueryComponent::And(inner) => all.extend(inner),
            QueryComponent::Or(inner) if inner.is_empty() => return nothing(),
            other if all.contains(&other) => {}
            other => all.push(other),
        }
    }
    match all.len() {
        1 => all.remove(0),
        _ => QueryComponent::And(all),
    }
}

fn or(parts: impl IntoIterator<Item = QueryComponent>) -> QueryComponent {
    let mut all = Vec::new();
    for part in parts {
        match part {
            QueryComponent::Or(inner) => all.extend(inner),
            QueryComponent::And(inner) if inner.is_empty() => return QueryComponent::And(inner),
            other if all.contains(&other) => {}
            other => all.push(other),
        }
    }
    match all.len() {
        1 => all.remove(0),
        _ => QueryComponent::Or(all),
    }
}

fn compared(operand: &Operand, comparison: &Comparison) -> QueryComponent {
    let with = |comparison| QueryComponent::Compare { operand: operand.clone(), comparison };
    match comparison {
        comparison if comparison.never_holds() => nothing(),
        Comparison::In(values) => {
            let mut values: Vec<_> =
                values.iter().filter(|value| compare(value, value).is_some()).cloned().collect();
            values.sort_by(|left, right| compare(left, right).unwrap_or(Ordering::Equal));
            values.dedup_by(|left, right| compare(left, right) == Some(Ordering::Equal));
            match values.len() {
                1 => with(Comparison::Equals(values.remove(0))),
                _ => with(Comparison::In(values)),
            }
        }
        comparison => with(comparison.clone()),
    }
}

fn not_compared(operand: &Operand, comparison: &Comparison) -> QueryComponent {
    let one_value = match operand {
        Operand::OneOf { .. } | Operand::Key(_) => false,
        Operand::Rank(expression) => !rank_column(expression).fans_out(),
        _ => true,
    };
    match comparison.negated().filter(|_| one_value) {
        Some(comparison) => compared(operand, &comparison),
        None => QueryComponent::Not(Box::new(QueryComponent::Compare {
            operand: operand.clone(),
            comparison: comparison.clone(),
        })),
    }
}

/// One of the conditions of which all must hold.
#[derive(Clone, Debug)]
pub(super) struct Conjunct {
    /// The condition.
    pub component: QueryComponent,
    /// Comparisons of single columns that are true whenever the condition is.
    pub leaves: Vec<Leaf>,
    /// Whether the condition is true whenever all leaves are, those with the same fans for the same elements.
    pub complete: bool,
}

/// A comparison of a column. The fans of the column number the elements of repeated fields that the
/// conditions ask for: two leaves with the same number are about the same element.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub column: Column,
    pub comparison: Comparison,
}

/// What must hold, of a condition in normal form.
pub(super) fn conjuncts(filter: &QueryComponent) -> Vec<Conjunct> {
    let parts = match filter {
        QueryComponent::And(parts) => parts.clone(),
        other => vec![other.clone()],
    };
    let mut elements = 0;
    let conjunct = |component: QueryComponent| {
        let mut leaves = Leaves { elements: &mut elements, found: Vec::new(), complete: true };
        leaves.add(&component, &[], &[]);
        let (leaves, complete) = (leaves.found, leaves.complete);
        Conjunct { component, leaves, complete }
    };
    parts.into_iter().map(conjunct).collect()
}

impl Conjunct {
    /// The column that has one value in all records that are found, if this is such a condition.
    pub fn constant(&self) -> Option<&ColumnKey> {
        match &self.leaves[..] {
            [Leaf { column, comparison: Comparison::Equals(_) | Comparison::IsNull }] if self.complete => {
                column.fans.is_empty().then_some(&column.key)
            }
            _ => None,
        }
    }
}

struct Leaves<'a> {
    elements: &'a mut usize,
    found: Vec<Leaf>,
    complete: bool,
}

impl Leaves<'_> {
    fn element(&mut self) -> usize {
        *self.elements += 1;
        *self.elements
    }

    fn add(&mut self, component: &QueryComponent, parents: &[Field], fans: &[usize]) {
        match component {
            QueryComponent::Compare { operand, comparison } => {
                match matches!(comparison, Comparison::NotEquals(_)) {
                    true => self.complete = false,
                    false => self.compare(operand, comparison, parents, fans),
                }
            }
            QueryComponent::Matches { field: name, component } => {
                self.add(component, &[parents, &[field(name)]].concat(), fans);
            }
            QueryComponent::OneMatches { field: name, component, .. } => {
                let fans = [fans, &[self.element()]].concat();
                self.add(component, &[parents, &[field(name).fan_out()]].concat(), &fans);
            }
            QueryComponent::And(parts) => parts.iter().for_each(|part| self.add(part, parents, fans)),
            QueryComponent::Or(_) | QueryComponent::Not(_) => self.complete = false,
        }
    }

    fn compare(&mut self, operand: &Operand, comparison: &Comparison, parents: &[Field], fans: &[usize]) {
        let key = match operand {
            Operand::Field(one) => one.clone().into(),
            Operand::OneOf { field, .. } => field.clone().fan_out().into(),
            Operand::Version => KeyExpression::Version,
            Operand::RecordType => KeyExpression::RecordType,
            Operand::Key(expression) => expression.clone(),
            Operand::Rank(expression) => {
                let Column { key, fans } = rank_column(expression);
                let column = Column { key, fans: fans.iter().map(|_| self.element()).collect() };
                return self.found.push(Leaf { column, comparison: comparison.clone() });
            }
        };
        let nested = parents.iter().rev().fold(key, |inner, parent| parent.clone().nest(inner));
        let columns = super::columns::columns(&nested);
        let [column] = &columns[..] else {
            self.complete = false;
            return;
        };
        // The first fans are those of the messages around; the operand may fan out further.
        let mut numbers = fans.to_vec();
        while numbers.len() < column.fans.len() {
            numbers.push(self.element());
        }
        let column = Column { key: column.key.clone(), fans: numbers };
        self.found.push(Leaf { column, comparison: comparison.clone() });
    }
}
