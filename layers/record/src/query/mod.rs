//! Queries: which records are asked for, and the plan that finds them.
//!
//! A [`RecordQuery`] has the types of the records, a condition made with [`Query`], and an order. It is
//! checked against the meta-data, planned with the indexes that are readable, and executed as a cursor.
//! [`RecordQueryPlan::explain`] shows the plan.
//!
//! Conditions are true, false or unknown. A comparison with null is unknown, whichever side is null; `not`,
//! `and` and `or` are those of Kleene's logic, as in SQL; a query finds the records for which the condition
//! is true. A condition on one of the elements of a repeated field is true if it is for one element, and
//! otherwise unknown if it is for one; if there is no element, it is unknown or false, as [`EmptyList`] says.
//! Java's Record Layer takes it for false also if it is unknown for an element.

mod bounds;
mod branches;
mod candidates;
mod columns;
mod comparison;
mod component;
mod continuation;
mod covering;
mod cursors;
mod encoding;
mod error;
mod evaluate;
mod execute;
mod matching;
mod normal;
mod plan;
mod planner;
mod queried;
mod record_query;
mod validate;

#[cfg(test)]
mod tests;

pub(crate) use columns::is_ranked_by;

pub use bounds::{Bound, Bounds, ValueRange};
pub use comparison::Comparison;
pub use component::{EmptyList, Operand, Query, QueryComponent, QueryElements, QueryField, QueryValue};
pub use error::QueryError;
pub use plan::{Plan, RecordQueryPlan};
pub use planner::plan_query;
pub use queried::QueriedRecord;
pub use record_query::RecordQuery;
