//! What a query returns.

use super::cursors::Found;
use crate::{error::Error, index::IndexEntry, store::StoredRecord, value::Tuple};

/// A record that a query has found.
#[derive(Clone, Debug, PartialEq)]
pub struct QueriedRecord {
    /// The record. If it is [partial](QueriedRecord::partial) it has the fields that the entry has, and its
    /// sizes are 0.
    pub record: StoredRecord,
    /// The entry by which it was found, with the name of its index; none if records were scanned.
    pub entry: Option<(String, IndexEntry)>,
    /// Whether the record was not loaded: see
    /// [`RecordQuery::required_results`](super::RecordQuery::required_results).
    pub partial: bool,
}

impl QueriedRecord {
    /// The record's primary key.
    pub fn primary_key(&self) -> &Tuple {
        &self.record.primary_key
    }

    /// Fails if the plan gives entries without records.
    pub(super) fn new(found: Found) -> Result<QueriedRecord, Error> {
        let record =
            found.record.ok_or_else(|| Error::foreign("a record of the plan", &found.order.pack()))?;
        let entry = found.entry.map(|(index, entry)| (index.name.clone(), entry));
        Ok(QueriedRecord { partial: record.rows == 0, record, entry })
    }
}
