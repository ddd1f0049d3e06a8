//! Plans: how the records of a query are found, as a tree.

use super::{bounds::Bounds, component::QueryComponent};
use crate::{
    expression::KeyExpression,
    value::{Tuple, Value},
};
use std::fmt;

/// A step of a plan. The rows of a step that scans an index are entries; a step that needs records has
/// [`Load`](Plan::Load) or [`Partial`](Plan::Partial) below it.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// No rows.
    Nothing,
    /// Records in a range of primary keys.
    Records {
        /// The range.
        bounds: Bounds,
        /// Whether the last is first.
        reverse: bool,
    },
    /// Entries of an index.
    Index {
        /// The index's name.
        index: String,
        /// Whether the last bound is on ranks.
        by_rank: bool,
        /// The range.
        bounds: Bounds,
        /// How many of the first columns of a key are the same in all rows: the rows are ordered by the
        /// others.
        skip: usize,
        /// Whether the last is first.
        reverse: bool,
    },
    /// The rows of the inner step for one value after another.
    InJoin {
        /// The column that has these values.
        column: String,
        /// The values, in the order in which they are used.
        values: Vec<Value>,
        /// A step whose bounds have [`Bound::Each`](super::Bound::Each).
        inner: Box<Plan>,
    },
    /// The rows of all steps, which are ordered alike: those of the same record once.
    Union {
        /// The steps.
        children: Vec<Plan>,
        /// The columns by which the rows are ordered, before the primary key.
        order: String,
        /// Whether the last is first.
        reverse: bool,
    },
    /// The rows that all steps have, which are ordered alike.
    Intersection {
        /// The steps.
        children: Vec<Plan>,
        /// The columns by which the rows are ordered, before the primary key.
        order: String,
        /// Whether the last is first.
        reverse: bool,
    },
    /// The records of one branch after another, without those for which the condition of an earlier branch is
    /// true.
    Either {
        /// For each branch its condition, and the step that finds its records.
        branches: Vec<(QueryComponent, Plan)>,
    },
    /// Each record once, within one continuation.
    Distinct(Box<Plan>),
    /// The records of the entries.
    Load(Box<Plan>),
    /// Records with the fields that the entries have.
    Partial {
        /// The name of the records' type.
        record_type: String,
        /// The expression of each column of an entry, those of the primary key last; `None` for what is no
        /// field.
        columns: Vec<Option<KeyExpression>>,
        /// The step that has the entries.
        inner: Box<Plan>,
    },
    /// Records of some types.
    Types {
        /// The names of the types.
        types: Vec<String>,
        /// The step that has the records.
        inner: Box<Plan>,
    },
    /// Records for which a condition is true.
    Filter {
        /// The condition.
        condition: QueryComponent,
        /// The step that has the records.
        inner: Box<Plan>,
    },
}

/// How the records of a query are found. It can be kept, and executed in any number of transactions: a
/// continuation belongs to the plan, and a query that is planned again, when other indexes are readable, may
/// have another plan.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordQueryPlan {
    pub(super) root: Plan,
}

impl RecordQueryPlan {
    /// The outermost step.
    pub fn root(&self) -> &Plan {
        &self.root
    }

    /// The plan as a tree, one step in each line, each below the step that uses its rows.
    pub fn explain(&self) -> String {
        self.root.to_string()
    }
}

/// A plan as it is written, or as another one was changed. Nothing checks that it finds what a query asks
/// for. Executing it fails, or finds other records, if it does not fit the store.
impl From<Plan> for RecordQueryPlan {
    fn from(root: Plan) -> RecordQueryPlan {
        RecordQueryPlan { root }
    }
}

impl fmt::Display for RecordQueryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.root, f)
    }
}

impl Plan {
    /// The steps whose rows it uses.
    pub fn children(&self) -> Vec<&Plan> {
        match self {
            Plan::Nothing | Plan::Records { .. } | Plan::Index { .. } => Vec::new(),
            Plan::Union { children, .. } | Plan::Intersection { children, .. } => children.iter().collect(),
            Plan::Either { branches } => branches.iter().map(|(_, plan)| plan).collect(),
            Plan::InJoin { inner, .. }
            | Plan::Distinct(inner)
            | Plan::Load(inner)
            | Plan::Partial { inner, .. }
            | Plan::Types { inner, .. }
            | Plan::Filter { inner, .. } => vec![inner],
        }
    }

    /// The step, without those below it.
    fn line(&self) -> String {
        let backwards = |reverse: &bool| if *reverse { ", backwards" } else { "" };
        match self {
            Plan::Nothing => "Nothing".into(),
            Plan::Records { bounds, reverse } => format!("Scan records: {bounds}{}", backwards(reverse)),
            Plan::Index { index, by_rank, bounds, reverse, .. } => {
                let by_rank = if *by_rank { " by rank" } else { "" };
                format!("Scan index {index}{by_rank}: {bounds}{}", backwards(reverse))
            }
            Plan::InJoin { column, values, .. } => {
                format!("For each {column} in {}", Tuple::from_iter(values.iter().cloned()))
            }
            Plan::Union { order, reverse, .. } => format!("Union, ordered by {order}{}", backwards(reverse)),
            Plan::Intersection { order, reverse, .. } => {
                format!("Intersection, ordered by {order}{}", backwards(reverse))
            }
            Plan::Either { .. } => "One branch after another, each record in the first that has it".into(),
            Plan::Distinct(_) => "Remove duplicates".into(),
            Plan::Load(_) => "Load records".into(),
            Plan::Partial { record_type, .. } => format!("Fields of {record_type} in the entries"),
            Plan::Types { types, .. } => format!("Records of {}", types.join(", ")),
            Plan::Filter { condition, .. } => format!("Filter: {condition}"),
        }
    }

    fn write(&self, depth: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if depth > 0 {
            write!(f, "\n{:width$}", "", width = 2 * depth)?;
        }
        f.write_str(&self.line())?;
        self.children().into_iter().try_for_each(|child| child.write(depth + 1, f))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(0, f)
    }
}
