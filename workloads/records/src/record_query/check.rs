//! Whether the rows of a query are those that the model expects.

use super::model::{Model, Record};
use shaketable_record::{
    query::RecordQuery,
    value::{Tuple, Value},
};

/// What a query has to find.
#[derive(Debug)]
pub struct Expected {
    /// The records, each as often as the sort has it, with the keys of the sort in its order.
    rows: Vec<(Tuple, i64)>,
    sorted: bool,
    once: bool,
}

impl Expected {
    /// By the model.
    pub fn of(query: &RecordQuery, model: &Model<'_>) -> Expected {
        let wanted = |record: &&Record| {
            let types = &query.record_types;
            let of_type = types.is_empty() || types.iter().any(|name| name == record.record_type);
            of_type && query.filter.as_ref().is_none_or(|filter| model.holds(filter, record) == Some(true))
        };
        let mut rows: Vec<(Tuple, i64)> = Vec::new();
        for record in model.records.iter().filter(wanted) {
            let keys = match &query.sort {
                None => vec![Vec::new()],
                Some(sort) => model.keys(sort, Some(&record.fields), record),
            };
            rows.extend(keys.into_iter().map(|key: Vec<Value>| (Tuple::from_iter(key), record.id)));
        }
        rows.sort();
        rows.dedup();
        if query.reverse {
            rows.reverse();
        }
        let (sorted, once) = (query.sort.is_some(), query.remove_duplicates);
        Expected { rows, sorted, once }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether a record with this number is among them.
    pub fn has(&self, id: i64) -> bool {
        self.rows.iter().any(|(_, own)| *own == id)
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether these are the rows, by the numbers of the records. `pages` is set if they are those of several
    /// continuations, where a record of an earlier page may come again. Rows with equal keys may come in any
    /// order.
    pub fn check(&self, found: &[i64], pages: bool) -> Result<(), String> {
        let error = |what: &str| Err(format!("{what}: found {found:?}, expected {:?}", self.rows));
        let distinct = first_of_each(found);
        if self.once && !pages && distinct.len() != found.len() {
            return error("duplicates");
        }
        let fans = self.rows.len() != first_of_each(&self.ids()).len();
        // Without removal a record may be found by several elements; only the sort says how often.
        let found = if fans && !self.once { found.to_vec() } else { distinct };
        let expected = match fans && !self.once {
            true => self.rows.clone(),
            false => {
                let mut seen = Vec::new();
                let mut first = self.rows.clone();
                first.retain(|(_, id)| {
                    !seen.contains(id) && {
                        seen.push(*id);
                        true
                    }
                });
                first
            }
        };
        let same = |mut left: Vec<i64>, mut right: Vec<i64>| {
            left.sort_unstable();
            right.sort_unstable();
            left == right
        };
        let ids = |rows: &[(Tuple, i64)]| rows.iter().map(|(_, id)| *id).collect::<Vec<_>>();
        if !same(found.clone(), ids(&expected)) {
            return error("other records");
        }
        let mut rest = &found[..];
        for tie in expected.chunk_by(|(left, _), (right, _)| !self.sorted || left == right) {
            let (these, after) = rest.split_at(tie.len());
            if !same(these.to_vec(), ids(tie)) {
                return error("another order");
            }
            rest = after;
        }
        Ok(())
    }

    fn ids(&self) -> Vec<i64> {
        self.rows.iter().map(|(_, id)| *id).collect()
    }
}

fn first_of_each(rows: &[i64]) -> Vec<i64> {
    let mut first = Vec::new();
    for row in rows {
        if !first.contains(row) {
            first.push(*row);
        }
    }
    first
}
