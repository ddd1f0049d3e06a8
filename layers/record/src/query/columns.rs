//! The columns of key expressions, in a form in which those of queries and of indexes are compared.

use crate::{
    expression::{FanType, Field, KeyExpression, NullStandin, concat},
    metadata::Index,
};
use std::fmt;

/// What is in a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ColumnKey {
    /// The value of an expression of one column.
    Value(KeyExpression),
    /// The rank in an index with this expression.
    Rank(KeyExpression),
}

/// A column: what it has, and the repeated fields that it fans out over, outermost first. Columns of one
/// expression with the same number are about the same element of that field.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    pub key: ColumnKey,
    pub fans: Vec<usize>,
}

impl Column {
    /// Whether it may have several values for a record, or none.
    pub fn fans_out(&self) -> bool {
        !self.fans.is_empty()
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            ColumnKey::Value(expression) => fmt::Display::fmt(expression, f),
            ColumnKey::Rank(_) => f.write_str("rank"),
        }
    }
}

/// The columns of an expression.
pub(super) fn columns(expression: &KeyExpression) -> Vec<Column> {
    let mut walk = Walk { next: 0, found: Vec::new() };
    walk.add(expression, &[], &[]);
    walk.found
}

/// The column of the ranks in an index with this expression, however that is written.
fn rank_key(expression: &KeyExpression) -> ColumnKey {
    let values = columns(expression).into_iter().filter_map(|column| match column.key {
        ColumnKey::Value(value) => Some(value),
        ColumnKey::Rank(_) => None,
    });
    let grouped = expression.columns() - expression.grouping_columns();
    ColumnKey::Rank(concat(values).group_last(grouped))
}

/// The column of the ranks in an index with this expression. A record has a rank for each of its keys, so
/// that the column fans out over everything that the expression does.
pub(super) fn rank_column(expression: &KeyExpression) -> Column {
    let mut fans: Vec<usize> = columns(expression).into_iter().flat_map(|column| column.fans).collect();
    fans.sort_unstable();
    fans.dedup();
    Column { key: rank_key(expression), fans }
}

/// Whether an index with the one expression ranks by the other.
pub(crate) fn is_ranked_by(index: &Index, expression: &KeyExpression) -> bool {
    rank_key(&index.expression) == rank_key(expression)
}

/// The columns that have one value in all records that a query finds: they are in any order.
#[derive(Clone, Debug, Default)]
pub(super) struct Constants(pub Vec<ColumnKey>);

impl Constants {
    /// The columns that may have different values.
    pub fn without(&self, columns: &[Column]) -> Vec<Column> {
        let varies = |column: &&Column| {
            let constant = self.0.contains(&column.key);
            !matches!(column.key, ColumnKey::Value(KeyExpression::Literal(_)))
                && (!constant || column.fans_out())
        };
        columns.iter().filter(varies).cloned().collect()
    }
}

/// Whether two lists of columns have the same values for every record: also that they fan out together or
/// apart.
pub(super) fn same(left: &[Column], right: &[Column]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).all(|(left, right)| left.key == right.key)
        && renumbered(left) == renumbered(right)
}

/// The fans of each column, numbered in the order in which they appear.
fn renumbered(columns: &[Column]) -> Vec<Vec<usize>> {
    let mut seen: Vec<usize> = Vec::new();
    let mut number = |fan: &usize| {
        seen.iter().position(|known| known == fan).unwrap_or_else(|| {
            seen.push(*fan);
            seen.len() - 1
        })
    };
    columns.iter().map(|column| column.fans.iter().map(&mut number).collect()).collect()
}

struct Walk {
    next: usize,
    found: Vec<Column>,
}

impl Walk {
    fn fan(&mut self, fans: &[usize]) -> Vec<usize> {
        self.next += 1;
        [fans, &[self.next]].concat()
    }

    fn add(&mut self, expression: &KeyExpression, parents: &[Field], fans: &[usize]) {
        match expression {
            KeyExpression::Empty => {}
            KeyExpression::Concat(parts) => parts.iter().for_each(|part| self.add(part, parents, fans)),
            KeyExpression::Group { whole, .. } => self.add(whole, parents, fans),
            KeyExpression::Nest { parent, child } => {
                let fans = match parent.fan {
                    FanType::FanOut => self.fan(fans),
                    _ => fans.to_vec(),
                };
                self.add(child, &[parents, &[plain(parent)]].concat(), &fans);
            }
            KeyExpression::Field(field) => {
                let fans = match field.fan {
                    FanType::FanOut => self.fan(fans),
                    _ => fans.to_vec(),
                };
                self.push(plain(field).into(), parents, fans);
            }
            // A function may give any number of keys.
            KeyExpression::Function { name, arguments } => {
                let fans = self.fan(fans);
                let arguments = Box::new(plain_all(arguments));
                self.push(KeyExpression::Function { name: name.clone(), arguments }, parents, fans);
            }
            // These are of the record, in whatever they are nested.
            KeyExpression::Version | KeyExpression::RecordType | KeyExpression::Literal(_) => {
                let parents: Vec<_> =
                    parents.iter().filter(|parent| parent.fan == FanType::FanOut).cloned().collect();
                self.push(expression.clone(), &parents, fans.to_vec());
            }
        }
    }

    fn push(&mut self, column: KeyExpression, parents: &[Field], fans: Vec<usize>) {
        let nested = parents.iter().rev().fold(column, |inner, parent| parent.clone().nest(inner));
        self.found.push(Column { key: ColumnKey::Value(nested), fans });
    }
}

/// The field, with the same values: a null is a null, unique or not.
fn plain(field: &Field) -> Field {
    match field.null {
        NullStandin::NullUnique => field.clone().null(NullStandin::Null),
        _ => field.clone(),
    }
}

fn plain_all(expression: &KeyExpression) -> KeyExpression {
    match expression {
        KeyExpression::Field(field) => plain(field).into(),
        KeyExpression::Nest { parent, child } => plain(parent).nest(plain_all(child)),
        KeyExpression::Concat(parts) => concat(parts.iter().map(plain_all)),
        other => other.clone(),
    }
}
