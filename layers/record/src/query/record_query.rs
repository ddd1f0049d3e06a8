//! The query: record types, a condition, an order.

use super::component::QueryComponent;
use crate::expression::KeyExpression;
use std::fmt;

/// Which records are asked for, and in which order.
///
/// ```
/// use shaketable_record::query::{Query, RecordQuery};
///
/// let query = RecordQuery::of("Order").filter(Query::field("price").less_than(50)).sort("price").reverse();
/// assert_eq!(query.record_types, ["Order"]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RecordQuery {
    /// The types of the records, by name; all if there is none.
    pub record_types: Vec<String>,
    /// The condition; records for which it is true are found.
    pub filter: Option<QueryComponent>,
    /// The order; without one the cheapest. An expression that fans out has a record once for each of its
    /// keys, none for a record without keys.
    pub sort: Option<KeyExpression>,
    /// Whether the order is descending: nulls, which are otherwise first, are last.
    pub reverse: bool,
    /// Whether a record that is found several times, by several elements of a repeated field, is returned
    /// once. The default is `true`.
    ///
    /// This is done within one continuation: a record that was returned is not returned again by the same
    /// cursor, and the position after a row is after all following rows that this cursor has returned
    /// already. A cursor that continues there does not know what was returned earlier.
    pub remove_duplicates: bool,
    /// The columns that are needed of the records; with none all is. If one index has all of them, records
    /// are not loaded, and what is returned has these fields only.
    pub required_results: Option<Vec<KeyExpression>>,
}

impl Default for RecordQuery {
    fn default() -> RecordQuery {
        RecordQuery {
            record_types: Vec::new(),
            filter: None,
            sort: None,
            reverse: false,
            remove_duplicates: true,
            required_results: None,
        }
    }
}

impl RecordQuery {
    /// All records of all types.
    pub fn all() -> RecordQuery {
        RecordQuery::default()
    }

    /// The records of one type.
    pub fn of(record_type: impl Into<String>) -> RecordQuery {
        RecordQuery::of_types([record_type])
    }

    /// The records of several types.
    pub fn of_types<S: Into<String>>(record_types: impl IntoIterator<Item = S>) -> RecordQuery {
        let record_types = record_types.into_iter().map(Into::into).collect();
        RecordQuery { record_types, ..RecordQuery::default() }
    }

    /// Those for which the condition is true.
    pub fn filter(self, filter: QueryComponent) -> RecordQuery {
        RecordQuery { filter: Some(filter), ..self }
    }

    /// In the order of an expression's keys.
    pub fn sort(self, sort: impl Into<KeyExpression>) -> RecordQuery {
        RecordQuery { sort: Some(sort.into()), ..self }
    }

    /// In descending order. Without a sort, in the reverse of the order in which they would be found.
    pub fn reverse(self) -> RecordQuery {
        RecordQuery { reverse: true, ..self }
    }

    /// Whether a record that is found several times is returned once; see
    /// [`remove_duplicates`](RecordQuery::remove_duplicates).
    pub fn remove_duplicates(self, remove_duplicates: bool) -> RecordQuery {
        RecordQuery { remove_duplicates, ..self }
    }

    /// Only these columns are needed.
    pub fn required_results<E: Into<KeyExpression>>(
        self,
        columns: impl IntoIterator<Item = E>,
    ) -> RecordQuery {
        RecordQuery { required_results: Some(columns.into_iter().map(Into::into).collect()), ..self }
    }
}

/// In one line: `Order where price < 5 sort by price backwards`.
impl fmt::Display for RecordQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.record_types.is_empty() {
            true => f.write_str("all")?,
            false => f.write_str(&self.record_types.join(", "))?,
        }
        if let Some(filter) = &self.filter {
            write!(f, " where {filter}")?;
        }
        if let Some(sort) = &self.sort {
            write!(f, " sort by {sort}")?;
        }
        f.write_str(if self.reverse { " backwards" } else { "" })?;
        f.write_str(if self.remove_duplicates { "" } else { " with duplicates" })?;
        if let Some(required) = &self.required_results {
            write!(f, " for {}", KeyExpression::Concat(required.clone()))?;
        }
        Ok(())
    }
}
